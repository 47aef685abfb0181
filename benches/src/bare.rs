//! The bare loop: the ceiling of the workloads over HTTP. It has the HTTP client and the JSON parser of the library, keeps a list
//! of messages, sends all of it, reads the answer and calls the tool. It has no sessions, no limits and no log.

use crate::texts::{result, system};
use reqwest::Client;
use serde_json::{Value as Json, json};

type Done<T> = Result<T, String>;

/// A server and the requests to it.
#[derive(Clone)]
pub(crate) struct Bare {
    client: Client,
    url: String,
    model: String,
    tools: Json,
    is_streamed: bool,
}

/// An answer of the model.
#[derive(Default)]
struct Answer {
    text: String,
    /// Label and arguments of the call, if it has one.
    call: Option<(String, String)>,
}

/// Returns an HTTP client.
pub(crate) fn client() -> Done<Client> {
    // It needs a provider of TLS, even without TLS. Another part of the process may have set it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().build();
    client.map_err(|e| e.to_string())
}

impl Bare {
    /// Asks the server below this address, which ends in `/v1`.
    pub(crate) fn new(url: &str, turns: usize) -> Done<Self> {
        let parameters = json!({
            "type": "object",
            "properties": { "key": { "type": "string" }, "n": { "type": "integer" } },
            "required": ["key", "n"],
        });
        let function =
            json!({ "name": "lookup", "description": "Look a key up.", "parameters": parameters });
        Ok(Self {
            client: client()?,
            url: format!("{url}/chat/completions"),
            model: format!("stub-{turns}"),
            tools: json!([{ "type": "function", "function": function }]),
            is_streamed: url.contains("/p"),
        })
    }

    /// Runs one tool loop from a user message to the final answer. Returns the answer.
    pub(crate) async fn run(&self, message: &str) -> Done<String> {
        let mut messages = vec![
            json!({ "role": "system", "content": system() }),
            json!({ "role": "user", "content": message }),
        ];
        loop {
            let answer = self.ask(&messages).await?;
            let Some((label, arguments)) = answer.call else {
                return Ok(answer.text);
            };
            let parsed: Json = serde_json::from_str(&arguments).map_err(|e| e.to_string())?;
            let n = parsed["n"].as_u64().ok_or("`n` is not a number")?;
            let function = json!({ "name": "lookup", "arguments": arguments });
            let call = json!({ "id": label, "type": "function", "function": function });
            let text = Some(answer.text).filter(|text| !text.is_empty());
            messages.push(json!({ "role": "assistant", "content": text, "tool_calls": [call] }));
            messages.push(
                json!({ "role": "tool", "tool_call_id": label, "content": result(n as usize) }),
            );
        }
    }

    async fn ask(&self, messages: &[Json]) -> Done<Answer> {
        let mut body = json!({ "model": self.model, "messages": messages, "tools": self.tools });
        if self.is_streamed {
            body["stream"] = true.into();
            body["stream_options"] = json!({ "include_usage": true });
        }
        let request = self.client.post(&self.url).bearer_auth("x").json(&body);
        let mut response = request.send().await.map_err(|e| e.to_string())?;
        let mut answer = Answer::default();
        if !self.is_streamed {
            let document: Json = response.json().await.map_err(|e| e.to_string())?;
            answer.add(&document["choices"][0]["message"]);
            return Ok(answer);
        }
        let mut rest = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|e| e.to_string())? {
            rest.extend_from_slice(&bytes);
            while let Some(end) = memchr::memmem::find(&rest, b"\n\n") {
                if let Some(data) = rest[..end].strip_prefix(b"data: ")
                    && data != b"[DONE]"
                {
                    let event: Json = serde_json::from_slice(data).map_err(|e| e.to_string())?;
                    answer.add(&event["choices"][0]["delta"]);
                }
                rest.drain(..end + 2);
            }
        }
        Ok(answer)
    }
}

impl Answer {
    /// Adds a message or a piece of one.
    fn add(&mut self, part: &Json) {
        if let Some(text) = part["content"].as_str() {
            self.text.push_str(text);
        }
        let call = &part["tool_calls"][0];
        let arguments = call["function"]["arguments"].as_str();
        if let (Some(label), Some(arguments)) = (call["id"].as_str(), arguments) {
            self.call = Some((label.to_owned(), arguments.to_owned()));
        }
    }
}

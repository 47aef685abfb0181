//! Requests as the machine renders them, and the answers to them.

use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex};
use steersman_adapters::chat::encode::Dialect;
use steersman_adapters::chat::{Chat, Server};
use steersman_adapters::wire::Timeouts;
use steersman_machine::context::{CallSpec, Content, Request, Segment};
use steersman_machine::network::{CallStyle, Part, ToolChoice};
use steersman_machine::questions::{Purpose, ToolSpec};
use steersman_machine::stored::ids::{Digest, Id, Line};
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::model::{Delta, Encodings, Model, ModelCall, Report, Sink, Transport};
use tokio_util::sync::CancellationToken;

/// A request of these contents.
pub(crate) fn request(contents: Vec<Content>) -> Request {
    let segments = contents.into_iter().map(|content| {
        let part = match &content {
            Content::System(_) => Part::System,
            Content::Tools(_) => Part::Tools,
            Content::User(_)
            | Content::File(_)
            | Content::Assistant { .. }
            | Content::Result { .. } => Part::History,
        };
        let text = serde_json::to_vec(&content).unwrap();
        Arc::new(Segment {
            part,
            digest: Digest::of(&text),
            len: text.len() as u64,
            content,
        })
    });
    Request {
        model: "default".into(),
        purpose: Purpose::Answer,
        segments: segments.collect(),
        params: Arc::new([]),
        choice: ToolChoice::Auto,
        output: None,
        prefill: None,
        calls: CallStyle::Native,
        digest: Digest::of(b"request"),
        prefix: 0,
        broke: None,
    }
}

pub(crate) fn system(text: &str) -> Content {
    Content::System(text.to_owned())
}

pub(crate) fn user(text: &str) -> Content {
    Content::User(text.to_owned())
}

pub(crate) fn params(list: &[(&str, Json)]) -> Arc<[(String, Json)]> {
    list.iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect()
}

pub(crate) fn tool(name: &str, description: &str, parameters: Json) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: parameters.to_string(),
    }
}

/// `get_weather(city)` and `add(a, b)`.
pub(crate) fn two_tools() -> Content {
    let integer = json!({ "type": "integer" });
    Content::Tools(vec![
        tool(
            "get_weather",
            "The weather in a city.",
            json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"],
                    "additionalProperties": false }),
        ),
        tool(
            "add",
            "Adds two numbers.",
            json!({ "type": "object", "properties": { "a": integer, "b": integer }, "required": ["a", "b"],
                    "additionalProperties": false }),
        ),
    ])
}

pub(crate) fn assistant(
    text: Option<&str>,
    calls: &[(&str, &str, &str)],
    opaque: Option<&str>,
) -> Content {
    Content::Assistant {
        text: text.map(str::to_owned),
        calls: calls
            .iter()
            .map(|(label, name, args)| CallSpec {
                label: (*label).to_owned(),
                name: (*name).to_owned(),
                args: (*args).to_owned(),
            })
            .collect(),
        opaque: opaque.map(str::to_owned),
    }
}

pub(crate) fn result(label: &str, name: &str, text: &str, error: bool) -> Content {
    Content::Result {
        label: label.to_owned(),
        name: name.to_owned(),
        text: text.to_owned(),
        error,
    }
}

/// A model at this address, with the default timeouts.
pub(crate) fn chat(url: &str) -> Chat {
    chat_with(url, Dialect::COMPATIBLE, Timeouts::default())
}

pub(crate) fn chat_with(url: &str, dialect: Dialect, timeouts: Timeouts) -> Chat {
    Chat::new(Server {
        label: "compatible/test".into(),
        url: url.to_owned(),
        model: "test".to_owned(),
        dialect,
        timeouts,
    })
}

/// The deltas and reports that came while a model answered.
#[derive(Default)]
pub(crate) struct Seen(pub(crate) Mutex<Vec<Delta>>, pub(crate) Mutex<Vec<Report>>);

impl Sink for Seen {
    fn report(&self, report: Report) {
        self.1.lock().unwrap().push(report);
    }

    fn delta(&self, delta: Delta) {
        self.0.lock().unwrap().push(delta);
    }
}

impl Seen {
    pub(crate) fn text(&self) -> String {
        let seen = self.0.lock().unwrap();
        seen.iter()
            .filter_map(|delta| match delta {
                Delta::Text(text) => Some(text.as_str()),
                Delta::Reasoning(_) | Delta::Call(..) => None,
            })
            .collect()
    }
}

pub(crate) fn call_of(request: Request, key: Option<&str>) -> ModelCall {
    ModelCall {
        effect: Id::new(Line(1), 1),
        session: "session".into(),
        attempt: 1,
        request,
        agent: "agent".into(),
        def: "agent".into(),
        branch: "main".into(),
        index: None,
        position: 0,
        position_on_branch: 0,
        transport: Transport {
            key: key.map(str::to_owned),
            ..Transport::default()
        },
        seed: 0,
        trace: None,
        encodings: Encodings::default(),
    }
}

pub(crate) async fn ask(model: &dyn Model, request: Request) -> Result<Answer, Failure> {
    ask_seen(model, request, &Seen::default()).await
}

pub(crate) async fn ask_seen(
    model: &dyn Model,
    request: Request,
    seen: &Seen,
) -> Result<Answer, Failure> {
    let call = call_of(request, Some("sk-test-key"));
    model.call(&call, seen, &CancellationToken::new()).await
}

/// Prints an answer for a snapshot.
pub(crate) fn shown(result: &Result<Answer, Failure>) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    match result {
        Err(failure) => {
            let _ = writeln!(
                out,
                "failure {} {:?}\n  {}",
                failure.code, failure.retry, failure.message
            );
        }
        Ok(answer) => {
            for (name, value) in [
                ("text", &answer.text),
                ("opaque", &answer.opaque),
                ("misfit", &answer.misfit),
            ] {
                if let Some(value) = value {
                    let _ = writeln!(out, "{name}  {value:?}");
                }
            }
            for ask in &answer.asks {
                let _ = writeln!(out, "call  {} {} as {:?}", ask.name, ask.args, ask.label);
            }
            let usage = &answer.usage;
            let _ = write!(
                out,
                "usage {} in ({} cached), {} out",
                usage.input, usage.cached, usage.output
            );
            out.push_str(if answer.cut { ", cut\n" } else { "\n" });
        }
    }
    out
}

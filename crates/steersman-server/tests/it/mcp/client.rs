//! A client of the Model Context Protocol over HTTP, without a library of ours.

use crate::world::Caller;
use reqwest::{Method, Response};
use serde_json::{Value as Json, json};
use std::sync::atomic::{AtomicI64, Ordering};

/// The version of clients with a connection.
pub(super) const OLD: &str = "2025-11-25";
/// The version of clients whose requests stand alone.
pub(super) const NEW: &str = "2026-07-28";

/// A client.
pub(super) struct Client<'w> {
    pub(super) caller: &'w Caller<'w>,
    pub(super) version: &'static str,
    pub(super) connection: Option<String>,
    pub(super) capabilities: Json,
    pub(super) next: AtomicI64,
}

/// Everything that a client got: the messages before the answer, and the answer.
pub(super) struct Got {
    pub(super) before: Vec<Json>,
    pub(super) answer: Json,
}

impl Got {
    /// The result of a tool.
    #[track_caller]
    pub(super) fn result(&self) -> &Json {
        assert!(self.answer["error"].is_null(), "{:#}", self.answer);
        &self.answer["result"]
    }

    /// The structured result of a tool.
    #[track_caller]
    pub(super) fn turn(&self) -> &Json {
        let turn = &self.result()["structuredContent"];
        assert!(turn.is_object(), "{:#}", self.answer);
        turn
    }

    #[track_caller]
    pub(super) fn text(&self) -> &str {
        self.turn()["text"].as_str().unwrap()
    }

    #[track_caller]
    pub(super) fn session(&self) -> &str {
        self.turn()["session"].as_str().unwrap()
    }

    /// The sentence of a tool's error.
    #[track_caller]
    pub(super) fn fails(&self) -> &str {
        let result = self.result();
        assert_eq!(result["isError"], true, "{result:#}");
        result["content"][0]["text"].as_str().unwrap()
    }
}

pub(super) fn forms() -> Json {
    json!({ "elicitation": { "form": {} } })
}

impl<'w> Client<'w> {
    /// A client that opens a connection.
    pub(super) async fn open(caller: &'w Caller<'w>, capabilities: Json) -> Self {
        let mut client = Self::alone(caller, capabilities);
        client.version = OLD;
        let params = json!({
            "protocolVersion": OLD,
            "capabilities": client.capabilities,
            "clientInfo": { "name": "test", "version": "1" },
        });
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let mut response = client.send(&body).await;
        assert_eq!(response.status(), 200);
        let id = response.headers()["mcp-session-id"].to_str().unwrap();
        client.connection = Some(id.to_owned());
        let got = client.read(&mut response, &mut |_| None).await.unwrap();
        let info = got.result();
        assert_eq!(info["protocolVersion"], OLD, "{info:#}");
        assert_eq!(info["serverInfo"]["name"], "steersman");
        let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(client.send(&done).await.status(), 202);
        client
    }

    /// A client whose requests stand alone.
    pub(super) fn alone(caller: &'w Caller<'w>, capabilities: Json) -> Self {
        Self {
            caller,
            version: NEW,
            connection: None,
            capabilities,
            next: AtomicI64::new(1),
        }
    }

    pub(super) async fn send(&self, body: &Json) -> Response {
        let mut request = self.caller.request(Method::POST, "/mcp").json(body);
        request = request.header("accept", "application/json, text/event-stream");
        if body["method"] != "initialize" {
            request = request.header("mcp-protocol-version", self.version);
        }
        if let Some(id) = &self.connection {
            request = request.header("mcp-session-id", id);
        }
        if self.version == NEW {
            request = request.header("mcp-method", body["method"].as_str().unwrap());
            if let Some(name) = body["params"]["name"].as_str() {
                request = request.header("mcp-name", name);
            }
            if let Some(uri) = body["params"]["uri"].as_str() {
                request = request.header("mcp-name", uri);
            }
        }
        request.send().await.unwrap()
    }

    /// Reads a stream up to the answer. `None` if it ends before. What the server asks is answered by `person`.
    pub(super) async fn read(
        &self,
        response: &mut Response,
        person: &mut dyn FnMut(&Json) -> Option<Json>,
    ) -> Option<Got> {
        let (mut text, mut before) = (String::new(), Vec::new());
        loop {
            while let Some(end) = text.find("\n\n") {
                let frame: String = text.drain(..end + 2).collect();
                let data = frame.lines().find_map(|line| line.strip_prefix("data:"));
                let Some(data) = data.filter(|data| !data.trim().is_empty()) else {
                    continue;
                };
                let message: Json = serde_json::from_str(data).unwrap();
                if message["method"] == "elicitation/create" {
                    if let Some(given) = person(&message["params"]) {
                        let body =
                            json!({ "jsonrpc": "2.0", "id": message["id"], "result": given });
                        assert_eq!(self.send(&body).await.status(), 202);
                    }
                    before.push(message);
                } else if message["method"].is_string() {
                    before.push(message);
                } else {
                    return Some(Got {
                        before,
                        answer: message,
                    });
                }
            }
            match response.chunk().await.unwrap() {
                Some(chunk) => text.push_str(std::str::from_utf8(&chunk).unwrap()),
                None if text.starts_with('{') => {
                    let answer = serde_json::from_str(&text).unwrap();
                    return Some(Got { before, answer });
                }
                None => return None,
            }
        }
    }

    pub(super) fn body(&self, method: &str, mut params: Json) -> Json {
        if self.version == NEW {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = NEW.into();
            params["_meta"]["io.modelcontextprotocol/clientInfo"] =
                json!({ "name": "test", "version": "1" });
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                self.capabilities.clone();
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    pub(super) async fn ask(&self, method: &str, params: Json) -> Got {
        let mut response = self.send(&self.body(method, params)).await;
        self.read(&mut response, &mut |_| None).await.unwrap()
    }

    pub(super) async fn call(&self, tool: &str, arguments: Json) -> Got {
        let params = json!({ "name": tool, "arguments": arguments });
        self.ask("tools/call", params).await
    }

    /// Calls a tool; a person answers what the server asks over the connection.
    pub(super) async fn call_with(
        &self,
        tool: &str,
        arguments: Json,
        mut person: impl FnMut(&Json) -> Option<Json>,
    ) -> Got {
        let params = json!({ "name": tool, "arguments": arguments });
        let mut response = self.send(&self.body("tools/call", params)).await;
        let got = self.read(&mut response, &mut person).await;
        got.unwrap()
    }
}

//! What a server says that it can do. A 200 proves nothing: servers drop tools that their template cannot show.

use crate::transport::{Clients, body};
use crate::wire::endpoint;
use reqwest::Url;
use serde_json::{Value as Json, json};
use std::time::Duration;

/// Bytes of an answer about capabilities: chat templates are in it.
const MAX: usize = 1 << 20;
/// A server that does not answer this soon says nothing.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a server said about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Kind of server: `llama.cpp`, `ollama`.
    pub server: Option<&'static str>,
    /// Whether tools reach the model; none where the server does not say.
    pub tools: Option<bool>,
}

/// Asks a server with chat completions at this base address, in the ways of those that can be asked.
pub(crate) async fn ask(clients: &Clients, base: &Url, model: &str) -> Capabilities {
    let mut root = base.clone();
    root.set_query(None);
    root.set_path(base.path().trim_end_matches('/').trim_end_matches("v1"));
    let Ok(client) = clients.of(base) else {
        return Capabilities::default();
    };
    if let Some(props) = json_of(client.get(endpoint(&root, "props"))).await {
        let found = of_props(&props);
        if found.server.is_some() {
            return found;
        }
    }
    let show = client
        .post(endpoint(&root, "api/show"))
        .json(&json!({ "model": model }));
    json_of(show)
        .await
        .map(|shown| of_show(&shown))
        .unwrap_or_default()
}

async fn json_of(request: reqwest::RequestBuilder) -> Option<Json> {
    let reading = async {
        let mut response = request.send().await.ok()?.error_for_status().ok()?;
        let bytes = body(&mut response, MAX).await.ok()?;
        serde_json::from_slice(&bytes).ok()
    };
    tokio::time::timeout(PATIENCE, reading).await.ok().flatten()
}

/// `GET /props` of llama.cpp.
fn of_props(props: &Json) -> Capabilities {
    let known =
        props.get("chat_template").is_some() || props.get("default_generation_settings").is_some();
    Capabilities {
        server: known.then_some("llama.cpp"),
        tools: props
            .pointer("/chat_template_caps/supports_tools")
            .and_then(Json::as_bool),
    }
}

/// `POST /api/show` of Ollama.
fn of_show(shown: &Json) -> Capabilities {
    let list = shown.get("capabilities").and_then(Json::as_array);
    Capabilities {
        server: shown.get("model_info").map(|_| "ollama"),
        tools: list.map(|list| list.contains(&json!("tools"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_say_it_in_their_own_ways() {
        let props =
            json!({ "chat_template": "x", "chat_template_caps": { "supports_tools": false } });
        let llama = |tools| Capabilities {
            server: Some("llama.cpp"),
            tools,
        };
        assert_eq!(of_props(&props), llama(Some(false)));
        assert_eq!(of_props(&json!({ "chat_template": "x" })), llama(None));
        assert_eq!(
            of_props(&json!({ "name": "another" })),
            Capabilities::default()
        );
        let ollama = |tools| Capabilities {
            server: Some("ollama"),
            tools,
        };
        let shown = json!({ "model_info": {}, "capabilities": ["completion", "tools"] });
        assert_eq!(of_show(&shown), ollama(Some(true)));
        assert_eq!(
            of_show(&json!({ "model_info": {}, "capabilities": ["completion"] })),
            ollama(Some(false))
        );
        assert_eq!(of_show(&json!({ "model_info": {} })), ollama(None));
    }
}

//! Capabilities that a server reports about itself. An answer with status 200 does not prove that tools reached the model: some
//! servers drop tools that their chat template cannot render.

use crate::transport::{Clients, body};
use crate::wire::endpoint;
use reqwest::{StatusCode, Url};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of bytes of a report: it may contain chat templates.
const MAX: usize = 1 << 20;
/// Time limit for a report. A slower server counts as silent.
const PATIENCE: Duration = Duration::from_secs(3);

/// A server's report about itself.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Kind of server: `llama.cpp`, `ollama`; `None` if it is not known.
    pub server: Option<&'static str>,
    /// True if tools reach the model; `None` if the server does not say.
    pub tools: Option<bool>,
}

/// Lifetime of a remembered report or refusal. Another server, or another version of the model, may be started at the same address
/// while this process runs, without any notice. So the server is asked again: rarely enough that the requests cost nothing
/// compared with the calls, often enough that a new server is soon known.
const LIFE: Duration = Duration::from_mins(10);
/// Maximum number of pairs of server and model that are remembered.
const REMEMBERED: usize = 1_024;

/// Facts about models at their servers, each kept for a limited time.
#[derive(Debug)]
pub(crate) struct Remembered<T>(Mutex<BTreeMap<(String, String), (T, Instant)>>);

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Copy> Remembered<T> {
    /// Returns the fact about this model at this address, unless it is too old.
    pub(crate) fn get(&self, base: &Url, model: &str, now: Instant) -> Option<T> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (what, since) = all.get(&(base.to_string(), model.to_owned()))?;
        (now.saturating_duration_since(*since) < LIFE).then_some(*what)
    }

    /// Stores a fact learned at `now`.
    pub(crate) fn learn(&self, base: &Url, model: &str, what: T, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED {
            all.retain(|_, (_, since)| now.saturating_duration_since(*since) < LIFE);
        }
        if all.len() >= REMEMBERED {
            all.pop_first();
        }
        all.insert((base.to_string(), model.to_owned()), (what, now));
    }
}

/// Reports of servers about themselves. That a server answers none of the requests is remembered, too. A catalog and its models
/// share one value.
#[derive(Debug, Default)]
pub(crate) struct Known(Remembered<Capabilities>);

impl Known {
    /// Returns the capabilities of the server at this base address, as remembered or as it reports them now. If the server cannot
    /// be reached or is out of order, the result is empty and nothing is remembered: the next call asks again.
    pub(crate) async fn of(&self, clients: &Clients, base: &Url, model: &str) -> Capabilities {
        if let Some(known) = self.0.get(base, model, Instant::now()) {
            return known;
        }
        let Ok(said) = ask(clients, base, model).await else {
            return Capabilities::default();
        };
        self.0.learn(base, model, said, Instant::now());
        said
    }

    /// Remembers that the server refused tools for this model.
    pub(crate) fn has_no_tools(&self, base: &Url, model: &str) {
        let now = Instant::now();
        let known = self.0.get(base, model, now).unwrap_or_default();
        let tools = Some(false);
        self.0
            .learn(base, model, Capabilities { tools, ..known }, now);
    }
}

/// The server could not be reached or was out of order: this says nothing about its capabilities.
struct Silent;

/// Returns the address of a server without the version of the protocol.
fn root(base: &Url) -> Url {
    let mut root = base.clone();
    root.set_query(None);
    let path = base.path().trim_end_matches('/');
    root.set_path(path.strip_suffix("/v1").unwrap_or(path));
    root
}

/// Asks a server for its report, with the requests that known servers answer: first llama.cpp's, then Ollama's.
async fn ask(clients: &Clients, base: &Url, model: &str) -> Result<Capabilities, Silent> {
    let root = root(base);
    let client = clients.of(base).map_err(|_| Silent)?;
    if let Some(props) = json_of(client.get(endpoint(&root, "props"))).await? {
        let found = of_props(&props);
        if found.server.is_some() {
            return Ok(found);
        }
    }
    let show = client
        .post(endpoint(&root, "api/show"))
        .json(&json!({ "model": model }));
    let shown = json_of(show).await?;
    Ok(shown.map(|shown| of_show(&shown)).unwrap_or_default())
}

/// Reads the server's answer; `None` if the server does not know the request.
async fn json_of(request: reqwest::RequestBuilder) -> Result<Option<Json>, Silent> {
    let reading = async {
        let mut response = request.send().await.map_err(|_| Silent)?;
        if !response.status().is_success() {
            return if is_temporary(response.status()) {
                Err(Silent)
            } else {
                Ok(None)
            };
        }
        let bytes = body(&mut response, MAX).await.map_err(|_| Silent)?;
        Ok(serde_json::from_slice(&bytes).ok())
    };
    let patient = tokio::time::timeout(PATIENCE, reading).await;
    patient.unwrap_or(Err(Silent))
}

/// Returns true if another answer may come soon: the server is starting, overloaded or out of order.
fn is_temporary(status: StatusCode) -> bool {
    let busy = [
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::TOO_EARLY,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    let broken = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
    broken || busy.contains(&status)
}

/// Reads `GET /props` of llama.cpp.
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

/// Reads `POST /api/show` of Ollama.
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

    /// A server that was replaced is asked again, and the number of remembered facts has a bound.
    #[test]
    fn what_was_learned_is_believed_for_a_while() {
        let base = Url::parse("http://127.0.0.1:1/v1").unwrap();
        let (known, began) = (Remembered::default(), Instant::now());
        known.learn(&base, "m", None::<bool>, began);
        let last = began + LIFE.saturating_sub(Duration::from_secs(1));
        assert_eq!(known.get(&base, "m", last), Some(None));
        assert_eq!(known.get(&base, "m", began + LIFE), None);
        assert_eq!(known.get(&base, "other", began), None);
        for n in 0..2 * REMEMBERED {
            known.learn(&base, &n.to_string(), Some(true), began);
        }
        assert_eq!(known.0.lock().unwrap().len(), REMEMBERED);
    }

    #[test]
    fn a_server_that_is_out_of_order_says_nothing_of_what_it_can_do() {
        for (status, for_now) in [(404, false), (401, false), (405, false), (501, false)]
            .into_iter()
            .chain([408, 425, 429, 500, 502, 503].map(|status| (status, true)))
        {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(is_temporary(status), for_now, "{status}");
        }
    }

    #[test]
    fn only_the_version_is_cut_from_an_address() {
        for (base, props) in [
            ("/v1", "/props"),
            ("/v1/?key=k", "/props"),
            ("/myv1", "/myv1/props"),
            ("/my/v1/", "/my/props"),
            ("/v1/v1", "/v1/props"),
            ("/", "/props"),
        ] {
            let base = Url::parse("http://127.0.0.1:1")
                .unwrap()
                .join(base)
                .unwrap();
            let asked = endpoint(&root(&base), "props");
            assert_eq!(
                asked.as_str(),
                format!("http://127.0.0.1:1{props}"),
                "{base}"
            );
        }
    }

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

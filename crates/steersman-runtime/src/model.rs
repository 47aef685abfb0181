//! The model port: a neutral request in, an answer out, what appears meanwhile through a sink.

pub mod scripted;

pub use crate::limiter::Left;
use crate::{Boxed, Env};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use steersman_machine::context::Request;
use steersman_machine::effect::{Answer, Failure, Retry};
use steersman_machine::ids::{Id, Name};
use steersman_machine::network::{ModelDef, Network};
use steersman_machine::price::Price;
use tokio_util::sync::CancellationToken;

/// A model that can be called. Retries are the driver's, never a model's.
pub trait Model: Send + Sync + 'static {
    /// Calls it once. Streams what appears into `sink`; ends early when `cancel` is cancelled.
    ///
    /// What an answer cost is in its usage; tokens that are told as 0 are estimated from what was sent and what came.
    /// What a call cost that failed nobody tells, so it is estimated too, unless nothing came and its code says that the
    /// model was never asked: `unreachable`, `tls`, `rate_limited`, `provider_overloaded`, `provider_error`,
    /// `unauthorized`, `insufficient_quota`, `model_not_found`, `invalid_request`, `context_overflow`, `no_tools`,
    /// `not_supported`, `script_missing`.
    ///
    /// What codes mean beyond that: those of a connection or a server out of order (`unreachable`, `tls`, `timeout`,
    /// `disconnected`, `truncated`, `provider_error`, `provider_overloaded`) count for the circuit breaker of its place, and
    /// `rate_limited` with [`Retry::After`] keeps all sessions from asking before.
    /// After these, and after what another model may not have (`unauthorized`, `insufficient_quota`, `model_not_found`,
    /// `not_supported`, `no_tools`, `bad_response`, `too_large`), a `fallback` is asked; after all others nobody is.
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>>;

    /// Makes a vector of each text, in order, in one request. Not every model can.
    fn embed<'a>(&'a self, embed: &'a Embed) -> Boxed<'a, Result<Vec<Vec<f32>>, Failure>> {
        let _ = embed;
        let failure = Failure {
            code: "not_supported".to_owned(),
            message: format!("`{}` gives no embeddings", self.label()),
            retry: Retry::Never,
        };
        Box::pin(std::future::ready(Err(failure)))
    }

    /// `openai/gpt-5-mini`, `scripted`: for people and usage records.
    fn label(&self) -> Name;
}

/// Texts whose vectors are wanted.
#[derive(Clone, Debug)]
pub struct Embed {
    /// The texts; never empty.
    pub texts: Vec<Arc<str>>,
    /// Key and address.
    pub transport: Transport,
}

/// One model call.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// Its effect id.
    pub effect: Id,
    /// The session, behind which effect ids are unique in the world.
    pub session: Arc<str>,
    /// Attempt, from 1.
    pub attempt: u32,
    /// What is asked.
    pub request: Request,
    /// Who asks: names from the entry down, instance names where given (`parent/adder`).
    pub agent: Arc<str>,
    /// The agent's definition name.
    pub def: Name,
    /// Label of the branch, `main` for main; its id if it has none.
    pub branch: Arc<str>,
    /// Which of the branches of an agent's fork it is, from 1.
    pub index: Option<u32>,
    /// Model calls of this agent committed on its branch before this one: the position in a script.
    pub position: u32,
    /// The same, since its branch began: the position in a script of that branch.
    pub position_on_branch: u32,
    /// What sampling begins from: made of the session's seed, the agent, its branch and the position, so a call that is
    /// repeated after a crash has the same.
    pub seed: u64,
    /// Secrets that resolved for this call: key and address.
    pub transport: Transport,
}

/// Where a model is reached. Never stored, never logged.
#[derive(Clone, Default)]
pub struct Transport {
    /// Base address.
    pub url: Option<String>,
    /// Key.
    pub key: Option<String>,
    /// Model name at the provider.
    pub model: Option<String>,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport")
            .field("url", &self.url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// Knows models: what the definition's names mean here, and who calls them. Implemented by an adapter's catalog, and
/// by [`ScriptedModel`](scripted::ScriptedModel) for tests.
pub trait Models: Send + Sync + 'static {
    /// Decides what each model of a network means for a session that starts now; recorded in its binding. `auto` is
    /// resolved here, once. Files that the network names lie in `folder`.
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        env: &'a Env,
        folder: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>>;

    /// The model that was bound, in this process.
    fn model(&self, bound: &BoundModel) -> Result<Arc<dyn Model>, ModelsError>;
}

/// What a model's name in a definition was resolved to. **Stored** as JSON in the binding; holds no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundModel {
    /// The definition's name.
    pub name: Name,
    /// Wire: `openai`, `compatible`, `scripted`.
    pub provider: Name,
    /// Name at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Base address, where it is not a template of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Environment variable that holds the key, where the definition names no secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// Each call makes something at the provider's side (hosted tools, stored conversations): it is on disk before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stateful: bool,
    /// What it costs, if that is known: the definition's price, else that of the built-in table when the session began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl BoundModel {
    /// For people and usage records: `openai/gpt-5-mini`.
    pub fn label(&self) -> Name {
        match &self.model {
            Some(model) => format!("{}/{model}", self.provider).into(),
            None => self.provider.clone(),
        }
    }

    /// Its place, for people and lists: who is asked, and where. `def`: as the definition has it; an address that it makes of
    /// values may be secret, and is not told. `openai/gpt-5-mini`, `compatible/qwen at http://127.0.0.1:8080/v1`.
    pub fn place(&self, def: Option<&ModelDef>) -> Name {
        let label = self.label();
        let written = def.and_then(|def| def.url.as_ref());
        let url = match written {
            Some(written) => written.text(),
            None => self.url.as_deref(),
        };
        let Some(url) = url else {
            return label;
        };
        // What may be secret in an address is no part of its name.
        let bare = url.split(['?', '#']).next().unwrap_or_default();
        let (scheme, rest) = bare.split_once("://").unwrap_or(("", bare));
        let end = rest.find('/').unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        let host = host.rsplit('@').next().unwrap_or_default();
        let colon = if scheme.is_empty() { "" } else { "://" };
        format!("{label} at {scheme}{colon}{host}{path}").into()
    }

    /// What it costs, if that is known. A script without a price costs nothing.
    pub fn price(&self) -> Option<Price> {
        let free = (&*self.provider == "scripted").then(Price::default);
        self.price.or(free)
    }
}

/// Why no model can be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("model `{name}`: {message}")]
pub struct ModelsError {
    /// The definition's name.
    pub name: Name,
    /// What was looked for and not found, and what to do.
    pub message: String,
}

/// Where streamed pieces go. Provisional: marked with effect and attempt, withdrawn when superseded.
pub trait Sink: Send + Sync {
    /// A piece appeared.
    fn delta(&self, delta: Delta);

    /// The server said something about the call beside its answer, whether it answers or not. Models that wrap others
    /// pass it on; what comes later adds to what came before.
    fn report(&self, report: Report) {
        let _ = report;
    }
}

/// What a server says of a call beside its answer, in nobody's words.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Of the tokens in, those that the server was asked to keep for later, and kept.
    pub cache_write: u64,
    /// Requests that the server says are left for this model and key.
    pub requests: Option<Left>,
    /// Tokens that it says are left.
    pub tokens: Option<Left>,
}

/// A streamed piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// Of the text.
    Text(String),
    /// Of reasoning that may be shown.
    Reasoning(String),
    /// Of a call's arguments: index, name at its first piece, text.
    Call(u32, Option<String>, String),
}

impl Delta {
    /// Bytes of what came, names of tools included.
    pub(crate) fn len(&self) -> u64 {
        let bytes = match self {
            Self::Text(text) | Self::Reasoning(text) => text.len(),
            Self::Call(_, name, text) => text.len() + name.as_ref().map_or(0, String::len),
        };
        bytes as u64
    }
}

//! The model port: takes a neutral request and returns an answer. Pieces of the answer go to a sink while they arrive.

pub mod scripted;

pub use crate::limiter::Left;
use crate::trace::TraceParent;
use crate::{Boxed, Env};
use serde::{Deserialize, Serialize};
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steersman_machine::context::Request;
use steersman_machine::network::{ModelDef, Network, SCRIPTED};
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_machine::values::price::Price;
use tokio_util::sync::CancellationToken;

/// A model that can be called. The driver retries; a model never does.
pub trait Model: Send + Sync + 'static {
    /// Calls the model once. Streams pieces into `sink`, and ends early when `cancel` is cancelled.
    ///
    /// The usage of an answer says what the call cost. Tokens that are reported as 0 are estimated from the request and the
    /// answer. Nobody reports the cost of a failed call, so it is estimated too, unless nothing was streamed and the model was
    /// never asked ([`FailureCode::was_asked`]).
    ///
    /// [`FailureCode::place`] says which failures count for the circuit breaker of the place, and with which a
    /// [`Retry::After`](steersman_machine::stored::outcome::Retry::After) keeps all sessions from asking before that time.
    /// [`FailureCode::may_fall_back`] says after which failures the `fallback` is asked.
    ///
    /// Until its first await that is pending, the call runs in the task of its session, which does nothing else meanwhile.
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>>;

    /// Returns a vector for each text, in order, with one request. Not every model supports this.
    fn embed<'a>(&'a self, embed: &'a Embed) -> Boxed<'a, Result<Vec<Vec<f32>>, Failure>> {
        let _ = embed;
        let message = format!("`{}` gives no embeddings", self.label());
        let failure = Failure::new(FailureCode::NotSupported, message);
        Box::pin(std::future::ready(Err(failure)))
    }

    /// Returns the name for people and usage records, such as `openai/gpt-5-mini` or `scripted`.
    fn label(&self) -> Name;
}

/// Texts to embed.
#[derive(Clone, Debug)]
pub struct Embed {
    /// The texts, of which there is at least one.
    pub texts: Vec<Arc<str>>,
    /// Key and address of the provider.
    pub transport: Transport,
}

/// One model call.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// Effect of the model call.
    pub effect: Id,
    /// Id of the session. With it, effect ids are unique in the world.
    pub session: Arc<str>,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The neutral request.
    pub request: Request,
    /// The calling agent: names from the entry down, with instance names where given (`parent/adder`).
    pub agent: Arc<str>,
    /// Name of the agent's definition.
    pub def: Name,
    /// Label of the branch, or its id if it has none. `main` for main.
    pub branch: Arc<str>,
    /// Number of the branch, from 1, in the fork of an agent or in a search.
    pub index: Option<u32>,
    /// Number of model calls of the same kind (such as those of the agent itself) that this agent committed on its path before this
    /// one: the position in a script.
    pub position: u32,
    /// Number of those calls since the branch began: the position in a script for that branch.
    pub position_on_branch: u32,
    /// Seed for sampling. It is made from the session's seed, the agent, its branch and the position, so a call that is repeated
    /// after a crash has the same seed.
    pub seed: u64,
    /// Key and address for this call, with secrets resolved.
    pub transport: Transport,
    /// The span of the call, for the server of the model. `None` if nobody gets the spans.
    pub trace: Option<TraceParent>,
    /// Place for what the adapter encoded, for the agent's next call.
    pub encodings: Encodings,
}

/// An agent's requests as adapters have encoded them, so that the next call encodes only what is new. Clones share it. It
/// holds texts of the session, so it is dropped whenever these may be erased. It may be dropped at any time.
#[derive(Clone, Debug, Default)]
pub struct Encodings(Arc<Mutex<BTreeMap<TypeId, Box<dyn Any + Send>>>>);

impl Encodings {
    /// Takes what was kept of this type. `None` if there is nothing, or if another attempt has taken it.
    pub fn take<T: Any + Send>(&self) -> Option<T> {
        let kept = self.kept().remove(&TypeId::of::<T>())?;
        kept.downcast().ok().map(|kept| *kept)
    }

    /// Keeps a value in place of the one of its type.
    pub fn keep<T: Any + Send>(&self, value: T) {
        self.kept().insert(TypeId::of::<T>(), Box::new(value));
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<TypeId, Box<dyn Any + Send>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Key and address of a model. Never stored, never logged.
#[derive(Clone, Default)]
pub struct Transport {
    /// Base address of the server.
    pub url: Option<String>,
    /// Key for the provider, opened.
    pub key: Option<String>,
    /// Name of the model at the provider.
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

/// Resolves the model names of definitions, and gives access to the models. Implemented by an adapter's catalog, and by
/// [`ScriptedModel`](scripted::ScriptedModel) for tests.
pub trait Models: Send + Sync + 'static {
    /// Resolves each model of a network for a session that starts now. The result is recorded in its binding. `auto` is resolved
    /// here, once. Files that the network names are in `folder`.
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        env: &'a Env,
        folder: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>>;

    /// Returns the model that this process asks in the place of a bound one. Nothing of it is stored with the session.
    fn instead(&self, bound: &BoundModel) -> Option<BoundModel> {
        let _ = bound;
        None
    }

    /// Returns the bound model in this process.
    fn model(&self, bound: &BoundModel) -> Result<Arc<dyn Model>, ModelsError>;
}

/// The result of resolving a model's name. **Stored** as JSON in the binding; contains no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundModel {
    /// Name of the model in the definition.
    pub name: Name,
    /// Provider, which decides the protocol: `openai`, `compatible`, `scripted`.
    pub provider: Name,
    /// Name of the model at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Base address, if it is not a template of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Environment variable that holds the key, if the definition names no secret. Several names with blanks between them are the
    /// parts of one key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// True if each call creates state at the provider (hosted tools, stored conversations). Such a call begins only after its
    /// start is on disk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stateful: bool,
    /// Price, if known: the one in the definition, otherwise the one in the built-in table when the session began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl BoundModel {
    /// Returns the name for people and usage records, such as `openai/gpt-5-mini`.
    pub fn label(&self) -> Name {
        match &self.model {
            Some(model) => format!("{}/{model}", self.provider).into(),
            None => self.provider.clone(),
        }
    }

    /// Returns the place of the model for people and lists: `openai/gpt-5-mini`, `compatible/qwen at http://127.0.0.1:8080/v1`.
    /// `def` is the model in the definition. If its address is a template, the template is shown, because its values may be
    /// secret.
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
        // Parts of an address that may be secret are left out.
        let bare = url.split(['?', '#']).next().unwrap_or_default();
        let (scheme, rest) = bare.split_once("://").unwrap_or(("", bare));
        let end = rest.find('/').unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        let host = host.rsplit('@').next().unwrap_or_default();
        let colon = if scheme.is_empty() { "" } else { "://" };
        format!("{label} at {scheme}{colon}{host}{path}").into()
    }

    /// Reads the key from the environment: the values of the variables of `key_env`, with blanks between them, without those that are
    /// not set. `None` if there is no such variable, or the first one is not set.
    pub fn key(&self, env: &Env) -> Option<String> {
        let mut names = self.key_env.as_deref()?.split(' ');
        let mut key = env(names.next()?)?;
        for part in names.filter_map(|name| env(name)) {
            key.push(' ');
            key.push_str(part.trim());
        }
        Some(key)
    }

    /// Returns the price, if known. A scripted model without a price is free.
    pub fn price(&self) -> Option<Price> {
        let free = (*self.provider == *SCRIPTED).then(Price::default);
        self.price.or(free)
    }
}

/// Reason for which no model can be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("model `{name}`: {message}")]
pub struct ModelsError {
    /// Name of the model in the definition.
    pub name: Name,
    /// The resources that were looked for and not found, and what to do about it.
    pub message: String,
}

/// Receiver of streamed pieces. They are provisional: marked with effect and attempt, and withdrawn when the attempt fails or is
/// cancelled.
pub trait Sink: Send + Sync {
    /// Receives one piece of the answer.
    fn delta(&self, delta: Delta);

    /// Receives a statement of the server about the call, whether or not it answers. A model that wraps another one passes
    /// reports on. A later report adds to the earlier ones.
    fn report(&self, report: Report) {
        let _ = report;
    }
}

/// Statements of a server about a call, in addition to its answer.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Requests that the server says are left for this model and key.
    pub requests: Option<Left>,
    /// Tokens that the server says are left for this model and key.
    pub tokens: Option<Left>,
}

/// A streamed piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// A piece of the text.
    Text(String),
    /// A piece of reasoning that may be shown.
    Reasoning(String),
    /// A piece of a call's arguments: index of the call, name of the tool in its first piece, text.
    Call(u32, Option<String>, String),
}

impl Delta {
    /// Returns the length of the piece in bytes, with the name of the tool.
    pub(crate) fn len(&self) -> u64 {
        let bytes = match self {
            Self::Text(text) | Self::Reasoning(text) => text.len(),
            Self::Call(_, name, text) => text.len() + name.as_ref().map_or(0, String::len),
        };
        bytes as u64
    }
}

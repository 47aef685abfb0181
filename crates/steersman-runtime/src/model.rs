//! The model port: a neutral request in, an answer out, what appears meanwhile through a sink.

use crate::Boxed;
use std::sync::Arc;
use steersman_machine::context::Request;
use steersman_machine::effect::{Answer, Failure};
use steersman_machine::ids::{Id, Name};
use tokio_util::sync::CancellationToken;

/// A model that can be called. Retries are the driver's, never a model's.
pub trait Model: Send + Sync + 'static {
    /// Calls it once. Streams what appears into `sink`; ends early when `cancel` is cancelled.
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>>;

    /// `openai/gpt-5-mini`, `scripted`: for people and usage records.
    fn label(&self) -> Name;
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
    /// Label of the branch, `main` for main.
    pub branch: Arc<str>,
    /// Model calls of this agent committed on its branch before this one: the position in a script.
    pub position: u32,
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

/// Where streamed pieces go. Provisional: marked with effect and attempt, withdrawn when superseded.
pub trait Sink: Send + Sync {
    /// A piece appeared.
    fn delta(&self, delta: Delta);
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

//! Outcomes of effects: the answer of a model, the mapped result of a call, a failure. A mapped result that no branch took is
//! stored as a kept outcome ([`super::codec::keep_outcome`]).

use super::by::Decider;
use super::codes::{FailureCode, PlaceState};
use super::commit::Usage;
use super::interaction::How;
use super::parts::NewPart;
use serde_json::Value as Json;
use std::sync::Arc;

/// The outcome of an effect, in the form in which it is offered to the machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A model answered.
    Answer(Answer),
    /// A tool, person, wait or simulation ended. The outcome is already mapped ([`crate::view::mapping`]) and sealed.
    Mapped(Mapped),
    /// A model or router failed for good.
    Failed(Failure),
    /// Dry mode cannot go on here, for this reason.
    Leaf(String),
    /// One part of a wait was met. The wait may go on for its other parts.
    Came(Came),
}

/// The event or moment that met a part of a wait.
#[derive(Clone, Debug, PartialEq)]
pub enum Came {
    /// The due time of the effect has come.
    Time,
    /// An event came in.
    Event {
        /// Name of the event.
        event: String,
        /// Fields of the event.
        fields: Json,
        /// Artifacts that came with it; their contents are blobs already.
        came: Vec<NewArtifact>,
    },
}

/// The answer of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Text of the answer.
    pub text: Option<String>,
    /// JSON that the provider wants back unchanged.
    pub opaque: Option<String>,
    /// Calls of the answer, in order.
    pub asks: Vec<Ask>,
    /// The reason why the text does not fit the wanted output, if an adapter had to check it (JSON Schema files).
    pub misfit: Option<String>,
    /// True if the model stopped because it reached its output limit (`max_tokens`).
    pub cut: bool,
    /// Cost and tokens of the call.
    pub usage: Usage,
}

/// One call in an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Name of the tool, as the model gave it.
    pub name: String,
    /// The provider's id of the call.
    pub label: Option<String>,
    /// The arguments as the model gave them: JSON, or invalid text.
    pub args: String,
    /// The reason why the arguments do not fit, if an adapter had to check them (JSON Schema files).
    pub misfit: Option<String>,
}

/// An outcome after mapping: the result of a call and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// The way in which the call closes.
    pub how: How,
    /// Code for `on_error`, if the call did not end well.
    pub code: Option<String>,
    /// Text that the model sees.
    pub shown: Option<String>,
    /// Parts that follow the text, in order.
    pub more: Vec<NewPart>,
    /// State writes. Secrets are sealed before the machine gets them.
    pub writes: Vec<NewWrite>,
    /// New versions of artifacts.
    pub artifacts: Vec<NewArtifact>,
    /// A tool that is called next, with its arguments.
    pub then: Option<(String, Json)>,
    /// The decider that gave the result in place of a tool or agent.
    pub by: Option<Decider>,
    /// The next mode of the caller, if the call succeeds.
    pub mode: Option<String>,
}

impl Mapped {
    /// An end without writes, artifacts or follow-up, with a text for the model.
    pub fn plain(how: How, code: Option<&str>, shown: impl Into<String>) -> Self {
        Self {
            how,
            code: code.map(str::to_owned),
            shown: Some(shown.into()),
            more: Vec::new(),
            writes: Vec::new(),
            artifacts: Vec::new(),
            then: None,
            by: None,
            mode: None,
        }
    }
}

/// A write before it has a place in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct NewWrite {
    /// Name of the entry. The machine finds the instance that declares it, outward from the writer.
    pub name: String,
    /// The new value. `None` unsets the entry.
    pub value: Option<Json>,
    /// True if the driver must seal the value before it offers the write.
    pub seal: bool,
}

/// A version of an artifact before it has a place in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewArtifact {
    /// Name of the artifact.
    pub name: String,
    /// Media type, such as `text/plain`.
    pub media: String,
    /// blake3 hash of the content.
    pub hash: [u8; 32],
    /// Size of the content in bytes.
    pub len: u64,
    /// The content, which the driver stores before it offers the outcome. `None` means that it is a blob already.
    pub content: Option<Arc<[u8]>>,
}

/// A failure of a model or router, as data.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Stable code in snake case, of [`FailureCode`] or of a model's own.
    pub code: String,
    /// Message for people.
    pub message: String,
    /// Advice on retries.
    pub retry: Retry,
}

impl Failure {
    /// Makes a failure with the code's own advice on retries.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self {
            code: code.text().to_owned(),
            message: message.into(),
            retry: code.retry(),
        }
    }

    /// Returns the code, if the engine knows it.
    pub fn known(&self) -> Option<FailureCode> {
        FailureCode::named(&self.code)
    }

    /// Returns true if another model may answer after this final failure. False for an unknown code.
    pub fn may_fall_back(&self) -> bool {
        self.known().is_some_and(FailureCode::may_fall_back)
    }

    /// Returns true if the failed call may have cost something. True for an unknown code.
    pub fn was_asked(&self) -> bool {
        self.known().is_none_or(FailureCode::was_asked)
    }

    /// Returns the state of the place that the failure shows: [`PlaceState::Answers`] for an unknown code.
    pub fn place(&self) -> PlaceState {
        self.known().map_or(PlaceState::Answers, FailureCode::place)
    }
}

/// Advice on whether and when to retry.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Retry {
    /// A retry would fail again.
    Never,
    /// Retry after at least this many milliseconds.
    After(u64),
    /// The retry layer decides.
    Policy,
}

//! Spans of a session, as tracing tools show them: what a turn did, and how long it took.
//!
//! A [`Tracer`] derives them from lines. The ids follow from the log ([`steersman_runtime::trace`]), so the spans of a session are the same in
//! every process and whenever they are made: while the session runs, or from its log a year later.
//!
//! ```text
//!   invoke_agent desk             first segment of a turn: from its message until nothing works any more     the root
//!     chat openai/gpt-5-mini      a model call
//!     execute_tool note           a call of a tool
//!     invoke_agent searcher       the task of an agent that was called
//!       chat ...
//!     steersman.wait approval     what kept an effect back, or a question; made when it is over
//!     invoke_agent desk           a later segment of the same turn: what was waited for has come
//! ```
//!
//! **No span is open while a session waits**: a turn that waits for days has ended its segment, so nothing that a tracing tool shows lacks
//! its parent for days.
//!
//! **Texts are left out** unless they are asked for. Then a masked reader masks the secrets in them, as in every view.
//!
//! Names follow the GenAI conventions [`CONVENTIONS`].

mod content;
mod open;
mod tracer;

pub use tracer::Tracer;

use serde_json::Value as Json;
use steersman_machine::stored::ids::{Name, Time};
use steersman_runtime::trace::{SpanId, SpanKind, TraceId, TraceParent};

/// The conventions of the names: address of their schema, for the resource of a trace.
pub const CONVENTIONS: &str = "https://opentelemetry.io/schemas/gen-ai/0.1.0";

/// A span.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The turn that it belongs to.
    pub trace: TraceId,
    /// Its id.
    pub id: SpanId,
    /// The span that it is a part of. `None` for the root of a trace.
    pub parent: Option<SpanId>,
    /// Its kind.
    pub kind: SpanKind,
    /// Its name.
    pub name: String,
    /// Time of its beginning.
    pub from: Time,
    /// Time of its end; of the last line, if it goes on.
    pub to: Time,
    /// True if it goes on. The same span comes again when it is over.
    pub is_open: bool,
    /// The code of what went wrong, if something did.
    pub error: Option<Name>,
    /// Everything else that is known: names of the conventions, and values that are texts, numbers, truth values or lists of texts.
    pub attributes: Vec<(&'static str, Json)>,
    /// Traces of the requests that it answers, as their senders told them.
    pub links: Vec<TraceParent>,
}

impl Span {
    /// Returns an attribute.
    pub fn attribute(&self, name: &str) -> Option<&Json> {
        let mut all = self.attributes.iter();
        all.find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    fn set(&mut self, name: &'static str, value: impl Into<Json>) {
        self.attributes.push((name, value.into()));
    }

    /// Adds an attribute, if its value is known.
    fn maybe(&mut self, name: &'static str, value: Option<impl Into<Json>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }
}

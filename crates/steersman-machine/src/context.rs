//! The context: what a model sees, rendered anew for every call from the snapshot and the stack.
//!
//! What is reproduced byte for byte is the neutral [`Request`], before a provider's encoding.

use crate::ids::{Body, Digest, Id, Line, Name};
use crate::interaction::Interaction;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::sync::Arc;

/// Version of the renderer; it changes when the same network and commits would give other requests.
pub const RENDER_VERSION: u16 = 1;

/// Reads stacks and texts. Implemented by whoever holds the log; bounded caching is theirs.
pub trait History: crate::effect::Bodies {
    /// The interactions that `line` pushed onto `agent`'s stack, oldest first, and the line of its push before them.
    fn pushes(&self, agent: Id, line: Line) -> (Arc<[Interaction]>, Line);
    /// Text of a body (a helper for readers that hold only a `History`).
    fn body(&self, body: Body) -> Arc<str> {
        self.text(body)
    }
}

/// A model call before any provider's encoding.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The definition's name of the model.
    pub model: Name,
    /// Shared, immutable pieces in the order of the declared parts.
    pub segments: Vec<Arc<Segment>>,
    /// Parameters, merged: `temperature`, `max_tokens`, others as they are. In key order.
    pub params: Arc<[(String, Json)]>,
    /// Whether it must call.
    pub choice: crate::network::ToolChoice,
    /// JSON Schema of the wanted answer; none: text.
    pub output: Option<Arc<str>>,
    /// Begins the answer.
    pub prefill: Option<Arc<str>>,
    /// How tools are told.
    pub calls: crate::network::CallStyle,
    /// Chained digest over all of it.
    pub digest: Digest,
    /// Bytes from the start that it shares with this agent's call before.
    pub prefix: u64,
    /// The part that broke the prefix; none if it only grew.
    pub broke: Option<Name>,
}

/// A piece of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// The part it belongs to: `system`, `tools`, `history`, `now`.
    pub part: crate::network::Part,
    /// What it says.
    pub content: Content,
    /// Digest of the content.
    pub digest: Digest,
    /// Size in bytes of its canonical form.
    pub len: u64,
}

/// Content of a segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// The system prompt.
    System(String),
    /// The tools, in frozen order.
    Tools(Vec<ToolSpec>),
    /// Said by a person, a caller or the engine.
    User(String),
    /// Said by the model.
    Assistant {
        /// Its text.
        text: Option<String>,
        /// Its calls.
        calls: Vec<CallSpec>,
        /// JSON that the provider wants back as it was.
        opaque: Option<String>,
    },
    /// What a call gave. Follows its `Assistant`, one for each call, in call order.
    Result {
        /// The call's label: the provider's id, else ours.
        label: String,
        /// The tool as the model saw it.
        name: String,
        /// What the model sees.
        text: String,
        /// It did not end well.
        error: bool,
    },
}

/// A tool as a model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments, as canonical text.
    pub parameters: String,
}

/// A call as the model made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallSpec {
    /// The provider's id, else ours.
    pub label: String,
    /// The tool as the model saw it.
    pub name: String,
    /// JSON arguments.
    pub args: String,
}

//! Reflection: answers and calls that are judged before they count.

use crate::stored::ids::Name;
use crate::values::expression::{Expr, Template};

/// Settings by which an answer or a call is judged before it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Reflect {
    /// The agent that judges. `None` means the agent that made the answer or call.
    pub by: Option<Name>,
    /// For an answer: maximum number of judgements. For a tool: maximum number of its calls in a row that may be sent back.
    pub rounds: u32,
    /// The answer or call is judged if this expression holds.
    pub when: Expr,
    /// Prompt for the judgement. `None` means a sentence of the engine.
    pub prompt: Option<Template>,
}

//! Reflection: what is judged before it counts, and by whom.

use crate::expression::{Expr, Template};
use crate::ids::Name;

/// An answer or a call is judged before it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Reflect {
    /// The reviewer, an agent; none: whoever made it.
    pub by: Option<Name>,
    /// Of an answer: how often it is judged at most. Of a tool: how often in a row a call of it may be sent back.
    pub rounds: u32,
    /// Whether this one is judged.
    pub when: Expr,
    /// What whoever judges is told in place of the engine's sentence.
    pub prompt: Option<Template>,
}

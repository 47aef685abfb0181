//! Reflection: an answer, a result, or the arguments of an unsafe call are judged before they count.
//!
//! The judge is the agent itself, with one model call per round, or a reviewer: a child that the engine calls with the material
//! to judge. Each judgement names its subject: a draft by the model call that gave it, a call by its id.

mod answer;
mod calls;
mod review;

pub(crate) use answer::After;
pub(crate) use calls::{Begins, Result as JudgedResult};

use crate::stored::ids::Name;

/// Result of the judgements on an agent's tool calls in one tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reviewed {
    /// At least one call must be made again.
    Revise,
    /// No call has an objection. Names the tool whose call was judged last.
    Stands(Name),
}

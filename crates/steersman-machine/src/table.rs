//! **The table**: phase x event -> take, leave or refuse, before anything acts. Total; one page; a test prints it.

use crate::snapshot::Phase;

/// What may come to an agent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message.
    Message,
    /// The outcome of its model or router.
    Decision,
    /// The outcome of one of its calls, or the end of a called agent.
    CallOutcome,
    /// A call from its parent.
    ParentCall,
    /// A person joins branches at it.
    Join,
    /// One of its calls was edited by a person, adopted, or its wait is over.
    CallChanged,
    /// A cancel.
    Cancel,
    /// A message that cancels what is open.
    Interrupt,
}

/// What the table says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Taken.
    Take,
    /// Taken unless it ended in this very tick: no message lies above a `Finished` of the same tick.
    TakeUnlessEnded,
    /// Taken if no model or router was asked yet, so that one call sees all; else left until it answered.
    TakeIfNothingWished,
    /// Taken if it names an open question, or if a dialogue below rests at the end of a turn; else left until the
    /// exchange closes.
    TakeIfAddressed,
    /// The call stays open in the agent's queue until its task ends.
    Queue,
    /// Left until the router decided.
    Leave,
    /// Refused: nobody waits for it any more.
    Stale,
    /// There is nothing to do.
    Nothing,
}

/// The table.
#[expect(
    clippy::match_same_arms,
    reason = "rows and columns as on the page, not as short as can be"
)]
pub fn rule(phase: Phase, event: Event) -> Rule {
    use Event::{CallChanged, CallOutcome, Cancel, Decision, Interrupt, Join, Message, ParentCall};
    use Phase::{Calling, Resting, Routing, Thinking};
    match (phase, event) {
        (Resting, Message | Interrupt) => Rule::TakeUnlessEnded,
        (Resting, ParentCall | Join) => Rule::Take,
        (Resting, Decision | CallOutcome | CallChanged) => Rule::Stale,
        (Resting, Cancel) => Rule::Nothing,

        (Thinking, Message) => Rule::TakeIfNothingWished,
        (Thinking, Decision | Cancel | Interrupt) => Rule::Take,
        (Thinking, ParentCall) => Rule::Queue,
        (Thinking, CallOutcome | CallChanged | Join) => Rule::Stale,

        (Routing, Message) => Rule::Leave,
        (Routing, Decision | Cancel | Interrupt) => Rule::Take,
        (Routing, ParentCall) => Rule::Queue,
        (Routing, CallOutcome | CallChanged | Join) => Rule::Stale,

        (Calling, Message) => Rule::TakeIfAddressed,
        (Calling, CallOutcome | CallChanged | Cancel | Interrupt) => Rule::Take,
        (Calling, ParentCall) => Rule::Queue,
        (Calling, Decision | Join) => Rule::Stale,
    }
}

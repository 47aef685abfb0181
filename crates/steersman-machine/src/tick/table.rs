//! **The table**: phase x event -> take, leave or refuse, before anything acts. It is total over both and fits on one page; a
//! test prints it.
//!
//! An event is an input that an agent takes in some phases only. About half of the offers ([`Offered`]) are such events; the
//! others do not depend on a phase, and [`judge`] says for each kind of offer which check applies. A parent's call is the only
//! event that is never offered: it happens within a tick.

use crate::snapshot::Phase;
use crate::tick::effect::Offered;

/// An event for an agent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message to the agent.
    Message,
    /// The outcome of the agent's model call or router.
    Decision,
    /// The outcome of one of the agent's calls.
    CallOutcome,
    /// A call by the agent's parent.
    ParentCall,
    /// A person joins branches at the agent.
    Join,
    /// A person edited the arguments of one of the agent's calls.
    CallChanged,
    /// One of the agent's calls is asked for again, because what it reads has changed since a person was asked.
    CallAnew,
    /// A cancel of the agent. A cancel of one call or of everything is judged without the table.
    Cancel,
    /// A message that first cancels everything that its addressee has open.
    Interrupt,
}

/// Rule of the table for a phase and an event.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The event is taken.
    Take,
    /// The event is taken unless the agent ended in this same tick: no message is pushed above a `Finished` of the same tick.
    TakeUnlessEnded,
    /// The message is taken if no model or router has been asked yet, so that one call sees all messages. Otherwise it is left
    /// until the answer arrives.
    TakeIfNothingWished,
    /// The message is taken if it names an open question, or if a dialogue below rests at the end of a turn. Otherwise it is left
    /// until the exchange closes.
    TakeIfAddressed,
    /// The call stays open in the agent's queue until its task ends.
    Queue,
    /// The message is left until the router has decided.
    Leave,
    /// The event is refused: nothing waits for it any more.
    Stale,
    /// There is nothing to do.
    Nothing,
}

/// Returns the rule for a phase and an event.
#[expect(
    clippy::match_same_arms,
    reason = "one arm for each phase and rule, as in the printed table"
)]
pub fn rule(phase: Phase, event: Event) -> Rule {
    use Event::{
        CallAnew, CallChanged, CallOutcome, Cancel, Decision, Interrupt, Join, Message, ParentCall,
    };
    use Phase::{Calling, Resting, Routing, Thinking};
    match (phase, event) {
        (Resting, Message | Interrupt) => Rule::TakeUnlessEnded,
        (Resting, ParentCall | Join) => Rule::Take,
        (Resting, Decision | CallOutcome | CallChanged | CallAnew) => Rule::Stale,
        (Resting, Cancel) => Rule::Nothing,

        (Thinking, Message) => Rule::TakeIfNothingWished,
        (Thinking, Decision | Cancel | Interrupt) => Rule::Take,
        (Thinking, ParentCall) => Rule::Queue,
        (Thinking, CallOutcome | CallChanged | CallAnew | Join) => Rule::Stale,

        (Routing, Message) => Rule::Leave,
        (Routing, Decision | Cancel | Interrupt) => Rule::Take,
        (Routing, ParentCall) => Rule::Queue,
        (Routing, CallOutcome | CallChanged | CallAnew | Join) => Rule::Stale,

        (Calling, Message) => Rule::TakeIfAddressed,
        (Calling, CallOutcome | CallChanged | CallAnew | Cancel | Interrupt) => Rule::Take,
        (Calling, ParentCall) => Rule::Queue,
        (Calling, Decision | Join) => Rule::Stale,
    }
}

/// Check that decides whether an offer is taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Judge {
    /// The kind of offer.
    pub offer: &'static str,
    /// The events of the table that an offer of this kind can be. Empty if its fate does not depend on a phase.
    pub events: &'static [Event],
    /// Further conditions, checked in the file of the same name in `take/`.
    pub asked: &'static str,
}

/// Returns the check for a kind of offer.
pub fn judge(offered: &Offered) -> Judge {
    let (offer, events, asked): (_, &'static [Event], _) = match offered {
        Offered::Start(_) => ("Start", &[], "there is no root yet"),
        Offered::Opened(_) => (
            "Opened",
            &[],
            "whoever acts there stands where it is forked",
        ),
        Offered::Adopt { .. } => (
            "Adopt",
            &[],
            "the fork call is open and has that branch; its agent acts here; no state was written on both sides",
        ),
        Offered::NotAdopted { .. } => ("NotAdopted", &[], "the fork call is open"),
        Offered::Outcome { .. } => (
            "Outcome",
            &[Event::Decision, Event::CallOutcome],
            "the effect is out",
        ),
        Offered::Edited { .. } => (
            "Edited",
            &[Event::CallChanged],
            "the call is one of a tool, and its effect is out",
        ),
        Offered::Anew { .. } => (
            "Anew",
            &[Event::CallAnew],
            "the call is one of a tool, and its effect is out",
        ),
        Offered::Clock => ("Clock", &[], "an entry of state or a limit of time is due"),
        Offered::Ended { .. } => ("Ended", &[], "the call that waits for them is open"),
        Offered::Join { .. } => ("Join", &[Event::Join], "the root acts on this branch"),
        Offered::Edit { .. } => (
            "Edit",
            &[],
            "the session has begun, the values fit its state",
        ),
        Offered::Interrupt { .. } => (
            "Interrupt",
            &[Event::Interrupt],
            "the addressee acts on this branch",
        ),
        Offered::Cancel { .. } => (
            "Cancel",
            &[Event::Cancel],
            "of one call or of everything: that something is open",
        ),
        Offered::Message(_) => (
            "Message",
            &[Event::Message],
            "to an open question: it is its answer; else the addressee acts on this branch",
        ),
    };
    Judge {
        offer,
        events,
        asked,
    }
}

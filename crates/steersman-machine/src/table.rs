//! **The table**: phase x event -> take, leave or refuse, before anything acts. Total over both; one page; a test
//! prints it.
//!
//! What a phase decides upon is an event. Of what may be offered ([`Offered`]) that is about one half; the other half
//! is not about an agent's phase, and [`judge`] says for each kind who judges it. The one event that nobody offers is a
//! parent's call, which comes about within a tick.

use crate::effect::Offered;
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
    /// A person edited the arguments of one of its calls.
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

/// Who says whether an offer is taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Judge {
    /// The kind of offer.
    pub offer: &'static str,
    /// The events by which the table judges it, with the phase of the agent that it is for; none: it is about no phase.
    pub events: &'static [Event],
    /// What is asked beside or instead, in the file of that name in `take/`.
    pub asked: &'static str,
}

/// Who judges a kind of offer.
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

//! What a session waits for: questions, holds, events, times. A query over ledger and snapshots, never a stream of
//! notices: whoever looks late sees the same.

use std::sync::Arc;
use steersman_machine::ids::{Id, Name, Time};

/// Something that a session waits for from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The effect that waits: its address.
    pub effect: Id,
    /// On this branch.
    pub branch: Id,
    /// The agent, and its name in the definition.
    pub agent: (Id, Name),
    /// What is awaited.
    pub kind: PendingKind,
    /// Who can end it: `user`, a person; of events and times nobody.
    pub by: Option<Name>,
    /// The tool, if the call is of one.
    pub tool: Option<Name>,
    /// Arguments as JSON, secrets sealed.
    pub args: Option<Arc<str>>,
    /// The question, the event's name.
    pub text: Arc<str>,
    /// Answers to choose from.
    pub options: Vec<String>,
    /// Arguments that an approver may change.
    pub edit: Vec<Name>,
    /// Why it is asked, for people.
    pub because: Option<String>,
    /// When it ends by itself.
    pub due: Option<Time>,
    /// Since when.
    pub since: Time,
}

/// Kinds of waiting.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PendingKind {
    /// A person decides on exactly these arguments.
    Approval,
    /// A person is asked for a secret.
    Input,
    /// It may have happened.
    Doubt,
    /// The budget is used up.
    Budget,
    /// The same was done or doubted before.
    Repeat,
    /// An agent asks a person.
    Question,
    /// An event from outside.
    Event,
    /// Only time.
    Timer,
    /// A failed attempt is repeated then.
    Again,
}

impl PendingKind {
    /// As people see it: `approval`, `question`, `doubt`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Input => "input",
            Self::Doubt => "doubt",
            Self::Budget => "budget",
            Self::Repeat => "repeat",
            Self::Question => "question",
            Self::Event => "event",
            Self::Timer => "timer",
            Self::Again => "again",
        }
    }

    /// Whether a person can end it.
    pub fn is_asked(self) -> bool {
        match self {
            Self::Approval
            | Self::Input
            | Self::Doubt
            | Self::Budget
            | Self::Repeat
            | Self::Question => true,
            Self::Event | Self::Timer | Self::Again => false,
        }
    }
}

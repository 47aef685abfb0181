//! Calls that the engine makes for itself, and the policies of watermarks and summaries.

use super::commit::Period;
use super::ids::{Id, Name};
use super::interaction::{Call, Target};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The party that made a call, and the purpose of the call. **Stored**: grows at its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Caller {
    /// The agent's model, with its newest answer.
    Model,
    /// The call follows another one (`then:`, the follow-up of a wait). The id is that of the first call of the chain.
    Chain(Id),
    /// The router of the agent: a member acts.
    Router,
    /// A person, who joins branches.
    Person,
    /// The engine, before a turn. The result has this name in templates.
    Before(Name),
    /// The engine: state is filled from messages.
    Extract(Extracted),
    /// The engine: a judgement of this subject.
    Judge(Judged),
    /// The engine: a person is asked for more of a limit.
    More(Asked),
    /// A hook around the agent's life, by its name.
    Hook(Name),
    /// A state of the agent's net, by its name: the call is its work. No call has the caller `Hook` or `Schedule` yet.
    State(Name),
    /// A schedule, by its name.
    Schedule(Name),
}

/// The text that an extraction reads.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Extracted {
    /// The messages to the agent that no extraction has read.
    Message,
    /// The last message of a speaker in a state of a graph.
    Turn,
}

/// A question to a person for more of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Key of the limit: `model_calls`, `tokens`.
    pub limit: Name,
    /// The period over which the limit counts.
    pub per: Period,
    /// True for a limit of the whole session, false for one of an agent.
    pub all: bool,
}

/// Subject of a judgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Judged {
    /// The draft of this model call.
    Draft(Id),
    /// The result of this call of a tool.
    Result(Id, Name),
    /// The arguments of this call of a tool. The call has not begun.
    Args(Id, Name),
}

impl Judged {
    /// Returns the tool whose call is judged.
    pub fn tool(&self) -> Option<&Name> {
        match self {
            Self::Draft(_) => None,
            Self::Result(_, tool) | Self::Args(_, tool) => Some(tool),
        }
    }

    /// Returns the subject in words for people: `the draft`, `what search gave`, `the arguments of pay`.
    pub fn words(&self) -> String {
        match self {
            Self::Draft(_) => "the draft".to_owned(),
            Self::Result(_, tool) => format!("what {tool} gave"),
            Self::Args(_, tool) => format!("the arguments of {tool}"),
        }
    }
}

impl Caller {
    /// Returns the name of a call of the engine for people and models. It contains a `/`, unlike the names of a definition.
    /// `None` means that the call has the name of its tool or member. No code parses the name.
    pub(crate) fn name(&self) -> Option<Name> {
        match self {
            Self::Before(name) => Some(format!("before/{name}").into()),
            Self::Extract(Extracted::Message) => Some("extract/message".into()),
            Self::Extract(Extracted::Turn) => Some("extract/turn".into()),
            Self::Judge(Judged::Draft(of)) => Some(format!("review/draft/{of}").into()),
            Self::Judge(Judged::Result(of, tool)) => {
                Some(format!("review/result/{of}/{tool}").into())
            }
            Self::Judge(Judged::Args(of, tool)) => Some(format!("review/args/{of}/{tool}").into()),
            Self::More(asked) => Some(asked.to_string().into()),
            Self::Model
            | Self::Chain(_)
            | Self::Router
            | Self::Person
            | Self::Hook(_)
            | Self::State(_)
            | Self::Schedule(_) => None,
        }
    }
}

/// The name of the question: `more/tokens/answer`, for a limit of the session `more/tokens/session/all`.
impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = if self.all { "/all" } else { "" };
        write!(f, "more/{}/{}{all}", self.limit, self.per)
    }
}

impl Call {
    /// Returns true if the engine made the call or it follows in a chain. False if a model, a router or a person made it.
    pub fn is_of_engine(&self) -> bool {
        match self.by {
            Caller::Model | Caller::Router | Caller::Person => false,
            Caller::Chain(_)
            | Caller::Before(_)
            | Caller::Extract(_)
            | Caller::Judge(_)
            | Caller::More(_)
            | Caller::Hook(_)
            | Caller::State(_)
            | Caller::Schedule(_) => true,
        }
    }

    /// Returns the call that began the chain, if this call follows in one.
    pub fn chain(&self) -> Option<Id> {
        match self.by {
            Caller::Chain(first) => Some(first),
            _ => None,
        }
    }

    /// Returns true if the engine made the call before a turn.
    pub(crate) fn is_ahead(&self) -> bool {
        matches!(self.by, Caller::Before(_))
    }

    /// Returns the state of the agent's net that made the call. `None` if no state made it.
    pub fn state(&self) -> Option<&Name> {
        match &self.by {
            Caller::State(state) => Some(state),
            _ => None,
        }
    }

    /// Returns true if the call is the own work of a state, and not a call that the state makes of another tool.
    pub fn is_own_work(&self) -> bool {
        self.state() == Some(&self.name)
    }

    /// Returns true if the call fills state from messages.
    pub fn is_extraction(&self) -> bool {
        matches!(self.by, Caller::Extract(_))
    }

    /// Returns true if the call asks a person for more of a limit.
    pub(crate) fn is_for_more(&self) -> bool {
        matches!(self.by, Caller::More(_))
    }

    /// Returns the subject that the call must judge. `None` means that the call is not a judgement.
    pub fn judged(&self) -> Option<&Judged> {
        match &self.by {
            Caller::Judge(of) => Some(of),
            _ => None,
        }
    }

    /// Returns true if the call asks the agent's own model to judge: a judgement that no agent serves.
    pub fn asks_itself(&self) -> bool {
        self.judged().is_some() && matches!(self.target, Target::Tool(_))
    }
}

/// The policy of `keep_exchanges` in watermarks.
pub(crate) const KEEP_EXCHANGES: &str = "keep_exchanges";

/// The policy of `compact` in watermarks and summaries.
pub const COMPACT: &str = "compact";

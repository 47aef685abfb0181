//! The state of a session that has settled: it continues only after an input from outside, or at a time.

use crate::pending::Pending;
use std::sync::Arc;
use steersman_machine::stored::ids::Name;

/// The state of a session that has settled: it continues only after an input from outside, or at a time.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Settled {
    /// The root gave an answer: it ended a turn or its task.
    Answered {
        /// Results of tasks that ended since the previous answer, in their order. The user should read them ahead of `text`.
        before: Vec<Arc<str>>,
        /// Text of the answer.
        text: Arc<str>,
        /// True if the root ended its task, false if it ended a turn. A new message continues the session in both cases.
        task: bool,
    },
    /// People are asked; the session continues when one of them answers.
    Asks(Vec<Pending>),
    /// The session waits only for events and times.
    Waits(Vec<Pending>),
    /// A limit was reached.
    Limit {
        /// Code of the limit, such as `model_calls` or `tokens`.
        code: Name,
        /// The answer so far, if there is one.
        text: Option<Arc<str>>,
    },
    /// The root agent failed.
    Failed {
        /// Code of the failure, such as `provider_overloaded`, `deadlock` or `no_rule`.
        code: Name,
        /// Description of the failure, for people.
        message: Arc<str>,
    },
    /// A person has to say whether an effect happened.
    Doubt(Vec<Pending>),
    /// The root agent was cancelled.
    Cancelled,
    /// A person paused the session.
    Paused,
    /// The session has not taken a message yet.
    Empty,
}

impl Settled {
    /// Returns the word that `sessions` shows: `answered`, `waits`, `doubt`, `limit`, `failed`, `cancelled`, `paused`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "answered",
            Self::Asks(_) | Self::Waits(_) | Self::Empty => "waits",
            Self::Limit { .. } => "limit",
            Self::Failed { .. } => "failed",
            Self::Doubt(_) => "doubt",
            Self::Cancelled => "cancelled",
            Self::Paused => "paused",
        }
    }
}

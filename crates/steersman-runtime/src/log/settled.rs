//! The state of a session that has settled: it continues only after an input from outside, or at a time.

use crate::log::error::EngineError;
use crate::pending::Pending;
use std::sync::Arc;
use steersman_machine::stored::ids::{Line, Name, Time};

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

/// Reasons to continue that are outside of the session. The session continues when one of them occurs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// Number of running effects, including those on superseded branches.
    pub running: usize,
    /// The next time at which a timer, a deadline or another attempt is due, if there is one.
    pub due: Option<Time>,
    /// A place that does not answer, if calls of any branch wait for one ([`PendingKind::Outage`]).
    ///
    /// [`PendingKind::Outage`]: crate::pending::PendingKind::Outage
    pub place: Option<Name>,
}

/// The state of a driver.
#[derive(Clone, Debug)]
pub(crate) enum Standing {
    Busy,
    /// Everything that can be done now is done and on disk. Effects are running, or will be tried again soon.
    Outside(Outside),
    /// The session stopped after a line, until a caller lets it go on.
    Stands {
        line: Line,
        /// True if an effect is running meanwhile.
        running: bool,
    },
    Settled(Arc<Settled>, Outside),
    Gone(Arc<EngineError>),
}

//! The tap: an observer in this process that is told what happens to all sessions which the process drives, for metrics and traces.
//!
//! It only observes. It is called in the task of a session between two steps, so it must not block, and what it takes long for belongs in a
//! task of its own. Without a tap nothing is measured.

use crate::store::SessionId;
use std::sync::Arc;
use steersman_machine::stored::commit::{LogLine, Usage};
use steersman_machine::stored::ids::{Id, Name, Time};

/// An observer of all sessions that a process drives.
pub trait Tap: Send + Sync + 'static {
    /// A line of a session is on disk, `took` milliseconds after it was made. The lines of a session come in order, each once; those that
    /// another process wrote do not come.
    fn line(&self, session: &SessionId, line: &Arc<LogLine>, took: u64) {
        let _ = (session, line, took);
    }

    /// An attempt of a model or tool ended.
    fn attempt(&self, attempt: &Attempted<'_>) {
        let _ = attempt;
    }

    /// The process began or ceased to own a session.
    fn owner(&self, session: &SessionId, owned: Owned) {
        let _ = (session, owned);
    }
}

/// Several taps are one: each of them is told everything.
impl Tap for Vec<Arc<dyn Tap>> {
    fn line(&self, session: &SessionId, line: &Arc<LogLine>, took: u64) {
        for tap in self {
            tap.line(session, line, took);
        }
    }

    fn attempt(&self, attempt: &Attempted<'_>) {
        for tap in self {
            tap.attempt(attempt);
        }
    }

    fn owner(&self, session: &SessionId, owned: Owned) {
        for tap in self {
            tap.owner(session, owned);
        }
    }
}

/// A change of ownership.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Owned {
    /// The process owns the session now, as its owner of this number. The first owner of a session has number 1.
    Claimed(u64),
    /// Another process owns the session: this one can write nothing any more.
    Fenced,
    /// The process let the session go.
    Released,
}

/// An attempt that ended.
#[derive(Clone, Debug)]
pub struct Attempted<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// Name of its definition.
    pub definition: &'a Name,
    /// The effect.
    pub effect: Id,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The model that was asked or the tool that ran.
    pub what: &'a Worked,
    /// Time of its beginning.
    pub began: Time,
    /// Time of its end.
    pub ended: Time,
    /// Milliseconds for which the limiter of its place kept it back. For a model they are a part of the time between beginning and end,
    /// for a tool they come before.
    pub waited: u64,
    /// Its end: `done`, `failed`, `not_performed`, `unknown` or `parked`.
    pub outcome: &'static str,
    /// Code of what went wrong. It may be in the words of a server.
    pub code: Option<&'a str>,
    /// The tokens and the cost of a model's answer.
    pub usage: Option<&'a Usage>,
}

/// The model that an attempt asked, or the tool that it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Worked {
    /// A model, by provider and model: `openai/gpt-5-mini`.
    Model(Name),
    /// A tool, by its name in the definition.
    Tool(Name),
}

//! What can happen, as whoever follows a session sees it.

use super::Cursor;
use crate::Turn;
use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_machine::ids::{Id, Line, Name, Time};
use steersman_runtime::pending::{PendingId, PendingKind};

/// Something that happened in a session. Serializes as a flat JSON object: `cursor`, `line`, `branch`, `agent`, `event` (the
/// kind in lower case with underscores) and the fields of its kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Where a later reader goes on behind it. Of what is provisional: the place before it.
    #[serde(serialize_with = "shown")]
    pub cursor: Cursor,
    /// The line that holds it; none if it is not in the log.
    #[serde(serialize_with = "shown_line", skip_serializing_if = "Option::is_none")]
    pub line: Option<Line>,
    /// When, as the log says.
    #[serde(skip)]
    pub at: Option<Time>,
    /// The branch, `main` for all that names none.
    #[serde(serialize_with = "shown")]
    pub branch: Id,
    /// The agent, by its name in the definition, if one did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// Whether it is not in the log: it is shown once, to whoever looks now.
    pub fn is_provisional(&self) -> bool {
        self.line.is_none()
    }

    /// As JSON, for a server-sent event or a log.
    pub fn to_json(&self) -> Json {
        serde_json::to_value(self).expect("events hold nothing that JSON cannot")
    }
}

/// What happened. More kinds may come.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// Somebody said something to the agent: the user, somebody in a role, another agent.
    Heard {
        /// The role or agent; none: the user.
        by: Option<Name>,
        /// What.
        text: Arc<str>,
    },
    /// A piece of what the agent's model says. Provisional.
    Piece {
        /// The piece.
        text: String,
    },
    /// A piece of reasoning that may be shown. Provisional.
    Reasoning {
        /// The piece.
        text: String,
    },
    /// The pieces since the last [`EventKind::Said`] count no more: another attempt takes their place.
    Withdrawn,
    /// The agent said this: all that its pieces were of.
    Said {
        /// What.
        text: Arc<str>,
        /// It was cut off by a cancel.
        partial: bool,
    },
    /// What the agent said last is a draft ([`EventKind::Said`]): it is judged, and may be told to nobody. The answer is that
    /// of [`EventKind::Finished`].
    Draft {
        /// The draft.
        text: Arc<str>,
    },
    /// The net of the agent is in this state from here on, until it enters another one or ends: what follows is done in it.
    /// The built-in nets `react` and `refact` name `reasoning`, `action`, `reflection` and `answer`.
    Entered {
        /// The state.
        state: Name,
    },
    /// The agent is in another mode from here on.
    Mode {
        /// The mode; `finish` where it ends instead.
        mode: Name,
        /// What made it change: `after approve_plan`, `after 3 model calls`, `exit 2`, `exit 1 of all modes`, `said by approve_plan`, `anew`.
        why: String,
    },
    /// The agent called a tool, another agent, or waits for something.
    Called {
        /// The call: the effect, while it is open.
        #[serde(serialize_with = "shown")]
        call: Id,
        /// The name of what was called.
        name: Name,
        /// What that is.
        target: Called,
        /// The arguments; what is secret is not in them.
        arguments: Json,
    },
    /// An attempt of a call that must not be repeated blindly begins now.
    Began {
        /// The effect.
        #[serde(serialize_with = "shown")]
        effect: Id,
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// How far an attempt of a tool has come. Provisional.
    Progress {
        /// The effect.
        #[serde(serialize_with = "shown")]
        effect: Id,
        /// Done so far, in the tool's unit.
        done: f64,
        /// Of so much, if it is known.
        total: Option<f64>,
        /// What it does now.
        message: Option<String>,
    },
    /// A call ended.
    Ended {
        /// Which.
        #[serde(serialize_with = "shown")]
        call: Id,
        /// The name of what was called.
        name: Name,
        /// How.
        how: How,
        /// The code, if it did not end well: `refused`, `http_404`.
        code: Option<Name>,
        /// What the agent is told of it.
        text: Arc<str>,
        /// Who answered or decided, if a person did.
        by: Option<Name>,
    },
    /// A call made a version of an artifact. Its content: [`Session::artifacts`](crate::Session::artifacts).
    Artifact {
        /// The call.
        #[serde(serialize_with = "shown")]
        call: Id,
        /// Its name.
        name: Name,
        /// Media type.
        media: Name,
        /// Bytes.
        len: u64,
    },
    /// Somebody is asked. It stands in [`Turn::Asks`] as well, once nothing else goes on.
    Asked {
        /// What waits: the address of the answer.
        #[serde(serialize_with = "shown")]
        question: PendingId,
        /// What is asked for.
        #[serde(serialize_with = "word")]
        kind: PendingKind,
        /// Who, each of them alone: `user`, people of the definition, `any`.
        by: Vec<Name>,
        /// The question.
        text: Arc<str>,
    },
    /// What was asked is decided or over.
    Decided {
        /// The effect that waited.
        #[serde(serialize_with = "shown")]
        effect: Id,
        /// What was asked for.
        #[serde(serialize_with = "word")]
        kind: PendingKind,
        /// Whether it goes on: approved, given, not done.
        go: bool,
        /// Who decided: a role, `probe`, `rule`, `timeout`.
        by: Name,
    },
    /// The agent ended a turn or its task.
    Finished {
        /// Its task is over.
        task: bool,
        /// Whether it came to an end as meant: an answer.
        ok: bool,
        /// The code of a failure or limit.
        code: Option<Name>,
        /// The answer, or what went wrong.
        text: Arc<str>,
    },
    /// A branch begins here.
    Branch {
        /// What people call it.
        label: Option<Name>,
        /// The line where it leaves the other.
        #[serde(serialize_with = "shown")]
        from: Line,
        /// What touches the world is not run there.
        dry: bool,
    },
    /// What names no branch goes to this one from here on.
    Current {
        /// The branch.
        #[serde(serialize_with = "shown")]
        current: Id,
    },
    /// Something of a search over branches.
    Searched {
        /// Which.
        #[serde(serialize_with = "shown")]
        search: Id,
        /// What.
        step: Searching,
        /// The branch that stands or is judged, or that won.
        #[serde(serialize_with = "shown_id", skip_serializing_if = "Option::is_none")]
        of: Option<Id>,
        /// What it was judged to be worth.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<f64>,
        /// Why it ended, why a value cannot be used, or why the agent answers without it.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<Arc<str>>,
    },
    /// Somebody paused it, or ended the pause.
    Paused {
        /// Whether it is paused.
        paused: bool,
    },
    /// Nothing goes on by itself any more. Told whenever it comes to that, and to a reader that comes later; it is true when
    /// it is told. Only of sessions that this process drives.
    Settled(Turn),
    /// The reader was too slow for this much of what is provisional.
    Skipped {
        /// How many pieces.
        count: u64,
    },
}

/// How far a search came.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Searching {
    /// It begins.
    Began,
    /// A branch has gone on for a block.
    Stood,
    /// A branch was judged.
    Judged,
    /// It is over.
    Over,
    /// Its agent answers without what was found; a person's search found nothing.
    Without,
}

/// What was called.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Called {
    /// A tool.
    Tool,
    /// Another agent.
    Agent,
    /// An event or a time is waited for.
    Wait,
    /// Branches.
    Branches,
    /// There is nothing of that name.
    Unknown,
}

/// How a call ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum How {
    /// With a result.
    Done,
    /// It would have been done: the branch is dry.
    Simulated,
    /// It failed, and did not have its effect.
    Failed,
    /// It was not run: a precondition, a decision, wrong arguments.
    Refused,
    /// It was cancelled.
    Cancelled,
    /// It may have happened; nobody knows.
    Unknown,
    /// A limit ended it.
    Limit,
    /// Its time ran out.
    Expired,
}

fn shown<T: std::fmt::Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

#[expect(clippy::ref_option, reason = "serde wants a reference")]
fn shown_line<S: Serializer>(line: &Option<Line>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(line.map_or(0, |line| line.0))
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde wants a reference"
)]
fn shown_id<S: Serializer>(id: &Option<Id>, to: S) -> Result<S::Ok, S::Error> {
    match id {
        Some(id) => to.collect_str(id),
        None => to.serialize_none(),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn word<S: Serializer>(kind: &PendingKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.word())
}

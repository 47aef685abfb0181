//! The kinds of events that a reader of a session sees.

use super::Cursor;
use crate::shown::{self, optional_id, optional_line, optional_time};
use crate::turn::Turn;
use serde::Serialize;
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_runtime::pending::{PendingId, PendingKind};

/// An event of a session. Serializes as a flat JSON object: `cursor`, `line`, `at`, `branch`, `agent`, `agent_id`,
/// `event` (the kind in lower case with underscores) and the fields of its kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// The position after this event, from which a later reader continues. For a provisional event: the position after the
    /// last event on disk.
    #[serde(serialize_with = "shown::text")]
    pub cursor: Cursor,
    /// The line that holds the event; `None` if the event is not in the log.
    #[serde(
        serialize_with = "optional_line",
        skip_serializing_if = "Option::is_none"
    )]
    pub line: Option<Line>,
    /// The time of the line; `None` if the event is not in the log.
    #[serde(
        serialize_with = "optional_time",
        skip_serializing_if = "Option::is_none"
    )]
    pub at: Option<Time>,
    /// The branch; `main` for events that belong to no branch.
    #[serde(serialize_with = "shown::text")]
    pub branch: Id,
    /// The agent that caused the event, by its name in the definition, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
    /// The id of that agent.
    #[serde(
        serialize_with = "optional_id",
        skip_serializing_if = "Option::is_none"
    )]
    pub agent_id: Option<Id>,
    /// The kind of event, with its fields.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// Returns true if the event is not in the log: only readers that are attached now see it.
    pub fn is_provisional(&self) -> bool {
        self.line.is_none()
    }

    /// Returns the event as JSON, for a server-sent event or a log.
    pub fn to_json(&self) -> Json {
        serde_json::to_value(self).expect("events hold nothing that JSON cannot")
    }
}

/// Kinds of events. More may be added.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The agent received a message: from the user, a person in a role, or another agent.
    Heard {
        /// The role or agent that spoke; `None` means the user.
        by: Option<Name>,
        /// The identity of that person, if a front end checked it.
        #[serde(skip_serializing_if = "Option::is_none")]
        who: Option<Name>,
        /// The text of the message. Artifacts that are parts of it are named in it.
        text: Arc<str>,
        /// The parts of the message, in order. Empty if it is one text.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<SaidPart>,
    },
    /// A message of a conversation that was held elsewhere, before the session began. The agent has it in its context.
    Earlier {
        /// True for an answer of the model of that conversation, false for words of the user.
        by_agent: bool,
        /// The text of the message.
        text: Arc<str>,
        /// The names of the tools that the answer called. Their results are in the context, too.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Name>,
    },
    /// A piece of the text that the agent's model streams. Provisional.
    Piece {
        /// The id of the model call.
        #[serde(serialize_with = "shown::text")]
        effect: Id,
        /// The number of its attempt, from 1.
        attempt: u32,
        /// The text of the piece.
        text: String,
    },
    /// A piece of the model's reasoning that may be shown. Provisional.
    Reasoning {
        /// The id of the model call.
        #[serde(serialize_with = "shown::text")]
        effect: Id,
        /// The number of its attempt, from 1.
        attempt: u32,
        /// The text of the piece.
        text: String,
    },
    /// A piece of the arguments of a call that the agent's model streams. Provisional: the call is made when
    /// [`EventKind::Called`] reports it, with its complete arguments.
    Arguments {
        /// The id of the model call.
        #[serde(serialize_with = "shown::text")]
        effect: Id,
        /// The number of its attempt, from 1.
        attempt: u32,
        /// The position of the call in the answer, from 0.
        nth: u32,
        /// The name of the tool, in the first piece of each call.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<Name>,
        /// The text of the piece: a part of the JSON of the arguments, as the model writes it.
        text: String,
    },
    /// The pieces since the last [`EventKind::Said`] are void: another attempt replaces them.
    Withdrawn {
        /// The id of the model call.
        #[serde(serialize_with = "shown::text")]
        effect: Id,
        /// The number of the attempt that is void.
        attempt: u32,
    },
    /// The complete text of the agent's message. It replaces the pieces.
    Said {
        /// The id of the model call that it answers.
        #[serde(serialize_with = "shown::text")]
        effect: Id,
        /// The text of the message.
        text: Arc<str>,
        /// True if a cancel cut the message off.
        partial: bool,
    },
    /// The agent's last message ([`EventKind::Said`]) is a draft: it is judged, and may never be delivered. The answer is
    /// the text of [`EventKind::Finished`].
    Draft {
        /// The text of the draft.
        text: Arc<str>,
    },
    /// The net of the agent entered this state, in which it works until it enters another one or ends. The built-in nets
    /// `react` and `refact` name `reasoning`, `action`, `reflection` and `answer`.
    Entered {
        /// The name of the state.
        state: Name,
    },
    /// The agent changed its mode.
    Mode {
        /// The new mode; `finish` if the agent ends instead.
        mode: Name,
        /// The cause of the change: `after approve_plan`, `after 3 model calls`, `exit 2 holds`,
        /// `exit 1 of all modes holds`, `approve_plan says so`, and the word for a new task.
        why: String,
    },
    /// The agent called a tool or another agent, or waits for something.
    Called {
        /// The id of the call, and of its effect while the call is open.
        #[serde(serialize_with = "shown::text")]
        call: Id,
        /// The name of what was called.
        name: Name,
        /// The kind of callee.
        target: Called,
        /// The arguments, without secret ones.
        arguments: Json,
    },
    /// A router decided.
    Routed {
        /// The decision in words: `researcher`, `finish`, `enter talk`.
        chosen: String,
        /// The reason why the decision was refused; the router then tries again or falls back.
        refused: Option<Arc<str>>,
        /// The values that led to the decision, by path.
        read: Json,
    },
    /// A model summarized earlier interactions of an agent.
    Summary {
        /// The policy that wanted the summary.
        policy: Name,
        /// The summary, or the reason why there is none.
        text: Arc<str>,
        /// False if no summary could be written.
        ok: bool,
    },
    /// A person changed entries of the state, or entries expired. Writes of tools give no such event: read the state after
    /// their calls ended.
    State {
        /// The entries, in order.
        writes: Vec<Wrote>,
    },
    /// A label of the session changed.
    Label {
        /// The name of the label.
        name: Name,
        /// Its value; `None` if it was unset.
        value: Option<Arc<str>>,
    },
    /// A model call was paid.
    Used {
        /// The id of the model call.
        #[serde(serialize_with = "shown::optional_id")]
        effect: Option<Id>,
        /// Provider and model that answered.
        model: Option<Name>,
        /// The model that the server says it used, if it says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        served: Option<Name>,
        /// Number of input tokens, including those that were cached.
        input: u64,
        /// Input tokens that the provider had cached.
        cached: u64,
        /// Input tokens that the provider wrote to its cache because it was asked to.
        cache_write: u64,
        /// Number of output tokens.
        output: u64,
        /// Output tokens that were spent on reasoning.
        reasoning: u64,
        /// Price in millionths of the currency, if it is known.
        micros: Option<u64>,
        /// Bytes, from the start, that the request shares with the agent's request before.
        prefix: u64,
        /// The part that broke the shared prefix; `None` if nothing did.
        broke: Option<Name>,
        /// The provider's word for the end of the answer: `stop`, `length`, `tool_use`.
        #[serde(skip_serializing_if = "Option::is_none")]
        finish: Option<Name>,
        /// Milliseconds from the start of the successful attempt to the end of its answer.
        took: u64,
        /// Milliseconds from the start of that attempt to its first streamed piece; `None` if nothing was streamed.
        #[serde(skip_serializing_if = "Option::is_none")]
        first: Option<u64>,
    },
    /// The session runs under this definition from here on.
    Bound {
        /// The name of the network.
        network: Name,
        /// The digest of the definition with its bound values.
        digest: String,
    },
    /// A process, the first or another one, owns the session from here on.
    Owner {
        /// The number of the owner, from 1.
        epoch: u64,
        /// The process that owns it, by host and process id or as its options say.
        owner: Name,
        /// The version of its program.
        build: Name,
    },
    /// The session took a message of its inbox.
    Accepted {
        /// The id of the message.
        message: Name,
        /// The role of the sender; `None` if no person or program outside sent it.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<Name>,
        /// The identity of that person, if a front end checked it.
        #[serde(skip_serializing_if = "Option::is_none")]
        who: Option<Name>,
        /// The trace context of the request, a W3C `traceparent`.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<Name>,
    },
    /// The session refused a message of its inbox.
    Refused {
        /// The id of the message.
        message: Name,
        /// The reason, for people.
        why: Arc<str>,
    },
    /// An attempt of a call that must not be repeated blindly begins.
    Began {
        /// The id of the effect.
        #[serde(serialize_with = "shown::text")]
        effect: Id,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// An attempt ended, or another one is due later.
    Attempt {
        /// The id of the effect.
        #[serde(serialize_with = "shown::text")]
        effect: Id,
        /// The number of the attempt; `None` for one that is due later.
        attempt: Option<u32>,
        /// The end of the attempt.
        how: Tried,
        /// The time of the next attempt.
        #[serde(
            serialize_with = "optional_time",
            skip_serializing_if = "Option::is_none"
        )]
        again: Option<Time>,
    },
    /// A probe asks whether an effect in doubt happened.
    Probed {
        /// The id of the probe.
        #[serde(serialize_with = "shown::text")]
        effect: Id,
        /// The id of the effect in doubt.
        #[serde(serialize_with = "shown::text")]
        of: Id,
        /// The tool that is asked, when an attempt begins.
        tool: Option<Name>,
        /// The progress of the probe.
        how: Asking,
        /// True if the effect happened, false if not; `None` while the probe has not said.
        happened: Option<bool>,
        /// The answer of the probe, or the reason of its failure.
        text: Option<Arc<str>>,
    },
    /// A person is notified that something waits for them.
    Reached {
        /// The id of the notification.
        #[serde(serialize_with = "shown::text")]
        effect: Id,
        /// The id of what waits.
        #[serde(serialize_with = "shown::text")]
        of: Id,
        /// The role of the person who is notified.
        by: Name,
        /// The progress of the notification.
        how: Asking,
        /// The reason of a failure.
        text: Option<Arc<str>>,
    },
    /// A step inside of a tool's call began or ended.
    Stepped {
        /// The id of the effect.
        #[serde(serialize_with = "shown::text")]
        effect: Id,
        /// The number of the attempt that ran the step.
        attempt: u32,
        /// The number of the step among the steps and waits of the call.
        nth: u32,
        /// The name of the step.
        name: Name,
        /// The progress of the step.
        how: Asking,
        /// The error of a step that failed: JSON of its code and message.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<Arc<str>>,
    },
    /// Progress of a tool's attempt. Provisional.
    Progress {
        /// The id of the effect.
        #[serde(serialize_with = "shown::text")]
        effect: Id,
        /// The amount done so far, in the tool's unit.
        done: f64,
        /// The total amount, if it is known.
        total: Option<f64>,
        /// The tool's message about its current work.
        message: Option<String>,
    },
    /// A call ended, and its agent got a result.
    Ended {
        /// The id of the call.
        #[serde(serialize_with = "shown::text")]
        call: Id,
        /// The name of what was called.
        name: Name,
        /// The way it ended.
        how: How,
        /// The error code, if the call did not succeed: `refused`, `http_404`.
        code: Option<Name>,
        /// The text that the agent receives. Artifacts that are parts of it are named in it.
        text: Arc<str>,
        /// The parts of the result, in order. Empty if it is one text.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<SaidPart>,
        /// The person who answered or decided, if there was one.
        by: Option<Name>,
        /// The identity of that person, if a front end checked it.
        #[serde(skip_serializing_if = "Option::is_none")]
        who: Option<Name>,
    },
    /// A call made a version of an artifact. Its content is read from the session by name.
    Artifact {
        /// The id of the call.
        #[serde(serialize_with = "shown::text")]
        call: Id,
        /// The name of the artifact.
        name: Name,
        /// Its media type.
        media: Name,
        /// Its length in bytes.
        len: u64,
    },
    /// Somebody is asked. Once nothing else goes on, [`Turn::Asks`] lists the question as well.
    Asked {
        /// The id of the question, to which the answer is addressed.
        #[serde(serialize_with = "shown::text")]
        question: PendingId,
        /// The kind of question.
        #[serde(serialize_with = "shown::kind")]
        kind: PendingKind,
        /// The people of whom any one may answer: `user`, people of the definition, `any`.
        by: Vec<Name>,
        /// The text of the question.
        text: Arc<str>,
    },
    /// A question was decided, or is over.
    Decided {
        /// The id of the effect that waited.
        #[serde(serialize_with = "shown::text")]
        effect: Id,
        /// The kind of question.
        #[serde(serialize_with = "shown::kind")]
        kind: PendingKind,
        /// True if the effect was approved (perhaps with edits), got its input, or was resolved as done or as not done.
        /// False if it was refused, given up, cancelled or expired.
        go: bool,
        /// The decider: a role, `probe`, `rule`, `timeout`, `event`, or `place` (the place of the call answers again).
        by: Name,
        /// The identity of that person, if a front end checked it.
        #[serde(skip_serializing_if = "Option::is_none")]
        who: Option<Name>,
    },
    /// The agent ended a turn or its task.
    Finished {
        /// True if its task is over; false if only a turn ended.
        task: bool,
        /// True if the agent ended with an answer, as intended.
        ok: bool,
        /// The code of a failure or limit.
        code: Option<Name>,
        /// The answer, or the message of the failure.
        text: Arc<str>,
    },
    /// A new branch begins.
    Branch {
        /// The label that people gave it.
        label: Option<Name>,
        /// The line at which it leaves the other branch.
        #[serde(serialize_with = "shown::line")]
        from: Line,
        /// True if effects that touch the world are not run on it.
        dry: bool,
    },
    /// A branch ended.
    BranchEnded {
        /// The id of the branch.
        #[serde(serialize_with = "shown::text")]
        of: Id,
    },
    /// A branch was superseded: the branch does not continue after its line `after`.
    Superseded {
        /// The id of the branch.
        #[serde(serialize_with = "shown::text")]
        of: Id,
        /// Its last line that counts.
        #[serde(serialize_with = "shown::line")]
        after: Line,
    },
    /// A branch was adopted.
    Adopted {
        /// The id of the adopted branch.
        #[serde(serialize_with = "shown::text")]
        of: Id,
        /// The last line of it that was adopted.
        #[serde(serialize_with = "shown::line")]
        upto: Line,
    },
    /// A rewind left an effect behind that touched the world, or may have.
    Listed {
        /// The id of the effect.
        #[serde(serialize_with = "shown::text")]
        effect: Id,
    },
    /// On a dry branch: this effect would have needed an approval.
    WouldAsk {
        /// The id of the effect.
        #[serde(serialize_with = "shown::text")]
        effect: Id,
    },
    /// Another branch becomes the current one, to which everything goes that names no branch.
    Current {
        /// The id of the branch.
        #[serde(serialize_with = "shown::text")]
        current: Id,
    },
    /// A step of a search over branches.
    Searched {
        /// The id of the search.
        #[serde(serialize_with = "shown::text")]
        search: Id,
        /// The kind of step.
        step: Searching,
        /// The branch that ended a block, was judged, or won.
        #[serde(
            serialize_with = "optional_id",
            skip_serializing_if = "Option::is_none"
        )]
        of: Option<Id>,
        /// The value that the judgement gave it.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<f64>,
        /// The reason for the end of the search, for a value that cannot be used, or for an answer without the search.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<Arc<str>>,
    },
    /// A person paused the session, or ended the pause.
    Paused {
        /// True if it is paused now.
        paused: bool,
        /// The person.
        by: Name,
        /// The identity of that person, if a front end checked it.
        #[serde(skip_serializing_if = "Option::is_none")]
        who: Option<Name>,
    },
    /// A person holds the effects of a tool, or lets them begin again.
    Held {
        /// The tool; `None` means every tool that changes the world.
        tool: Option<Name>,
        /// True if the effects are held now.
        held: bool,
        /// The role of the person who gave the order.
        by: Name,
        /// The identity of that person, if a front end checked it.
        #[serde(skip_serializing_if = "Option::is_none")]
        who: Option<Name>,
    },
    /// A person accepted the store that holds the session, although it is a copy, was moved or restored, or lost lines.
    StoreAccepted,
    /// The session has settled: nothing goes on by itself. Reported each time this happens, and to a reader that attaches
    /// later if it still holds, whichever process drives the session.
    Settled(Turn),
    /// The reader was too slow, and provisional pieces were dropped.
    Skipped {
        /// The number of dropped pieces.
        count: u64,
    },
}

/// A new value of an entry of the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wrote {
    /// The name of the entry.
    pub name: Name,
    /// Its new value; null if it was unset.
    pub value: Json,
}

/// The ends of an attempt.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Tried {
    /// The effect happened.
    Done,
    /// The effect did not happen.
    NotPerformed,
    /// It is not known whether the effect happened.
    Unknown,
    /// An outcome came after the doubt about it was resolved.
    Late,
    /// Another attempt is due later.
    Again,
}

/// The progress of a probe, a notification or a step of a tool.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Asking {
    /// It begins, or an attempt of it.
    Began,
    /// It was answered or delivered, or is done.
    Done,
    /// It failed, or an attempt of it.
    Failed,
}

/// The steps of a search.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Searching {
    /// The search begins.
    Began,
    /// A branch has run for one block.
    Stood,
    /// A branch was judged.
    Judged,
    /// The search is over.
    Over,
    /// Its agent answers without the result of the search; for a person's search: it found nothing.
    Without,
}

/// The kind of callee of a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Called {
    /// A tool of the definition.
    Tool,
    /// Another agent of the definition.
    Agent,
    /// A wait for an event or a time.
    Wait,
    /// A call to branches.
    Branches,
    /// Nothing has the name that the model called.
    Unknown,
}

/// The way in which a call ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum How {
    /// It succeeded with a result.
    Done,
    /// It was simulated, because the branch is dry.
    Simulated,
    /// It failed and did not have its effect.
    Failed,
    /// It was not run, because of a precondition, a decision or wrong arguments.
    Refused,
    /// It was cancelled.
    Cancelled,
    /// It may have happened; its outcome is not known.
    Unknown,
    /// A limit ended it.
    Limit,
    /// Its time ran out.
    Expired,
}

/// A part of a message or result that has several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SaidPart {
    /// A text.
    Text(Arc<str>),
    /// A version of an artifact.
    Artifact {
        /// The name of the artifact.
        name: Name,
        /// Its media type.
        media: Name,
        /// Its length in bytes.
        len: u64,
        /// The blake3 hash of its content, in hexadecimal digits. It tells which version is meant.
        hash: String,
    },
}

impl EventKind {
    /// The words of all kinds, as JSON has them.
    pub const WORDS: &[&str] = &[
        "heard",
        "earlier",
        "piece",
        "reasoning",
        "arguments",
        "withdrawn",
        "said",
        "draft",
        "entered",
        "mode",
        "called",
        "routed",
        "summary",
        "state",
        "label",
        "used",
        "bound",
        "owner",
        "accepted",
        "refused",
        "began",
        "attempt",
        "probed",
        "reached",
        "stepped",
        "progress",
        "ended",
        "artifact",
        "asked",
        "decided",
        "finished",
        "branch",
        "branch_ended",
        "superseded",
        "adopted",
        "listed",
        "would_ask",
        "current",
        "searched",
        "paused",
        "held",
        "store_accepted",
        "settled",
        "skipped",
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_word() {
        let source = include_str!("kind.rs");
        let (_, kinds) = source.split_once("pub enum EventKind {\n").unwrap();
        let (kinds, _) = kinds.split_once("\n}\n").unwrap();
        let kinds = kinds.lines().filter_map(|line| line.strip_prefix("    "));
        let kinds = kinds.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
        let words = kinds.map(|line| {
            let name = line.split(|c: char| !c.is_alphanumeric()).next().unwrap();
            let mut word = String::new();
            for letter in name.chars() {
                if letter.is_uppercase() && !word.is_empty() {
                    word.push('_');
                }
                word.extend(letter.to_lowercase());
            }
            word
        });
        assert_eq!(words.collect::<Vec<_>>(), EventKind::WORDS);
    }
}

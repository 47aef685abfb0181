//! Messages of an inbox: every request that people and programs send to a session. **Stored**: enums grow at their end, and a
//! struct that changes becomes a new version.
//!
//! Every request goes through the inbox, whether or not somebody owns the session. So each request is durable before it is
//! acknowledged and is accepted once. It stays in the inbox, outside every branch, until a tick takes it.

use crate::store::{InboxMessage, Scope, base32};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use steersman_machine::network::join::JoinOn;
use steersman_machine::stored::by::By;
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::stored::outcome::{NewArtifact, NewWrite};
use steersman_machine::view::artifact::Content;

/// The address of something that waits: the effect, and the line that opened its hold. An answer contains the address, so it can
/// never end a later hold that the person did not see. Written as `12.1@13`, or as `12.1` for a question, which has no hold.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct PendingId {
    /// The effect that waits.
    pub effect: Id,
    /// The line that opened the hold. `None` for a question, which has no hold.
    pub hold: Option<Line>,
}

impl fmt::Display for PendingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.effect)?;
        match self.hold {
            Some(line) => write!(f, "@{line}"),
            None => Ok(()),
        }
    }
}

/// Parses `n.k@line` or `n.k`. Any other text is an error without further detail.
impl FromStr for PendingId {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (effect, hold) = match text.split_once('@') {
            Some((effect, line)) => (effect, Some(Line(line.parse().map_err(drop)?))),
            None => (text, None),
        };
        Ok(Self {
            effect: effect.parse()?,
            hold,
        })
    }
}

/// Version of the encoding. It is the first byte of a stored message.
const VERSION: u8 = 1;

/// A request to a session: who makes it, where it applies, and what is wanted.
///
/// Made from a [`Wanted`] with `into()`, and the methods that add the rest:
/// `Message::from(Wanted::Pause(true)).by(By::from("operator"))`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The person or program that makes the request. `None` if no person does: an event, a schedule, a text of an agent.
    pub by: Option<By>,
    /// The trace that the request belongs to: a W3C `traceparent`, at most 55 bytes.
    pub parent: Option<Name>,
    /// The branch that the request is about. `None` means the current one.
    pub branch: Option<Id>,
    /// Contents that come with the request; only a start, a text and an event have any. Each is stored as a blob before the
    /// message is put into an inbox.
    pub files: Vec<File>,
    /// The request itself.
    pub wanted: Wanted,
}

/// The content of a [`Message`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wanted {
    /// The session begins.
    Start(Box<Begin>),
    /// A text for the agent that has the floor, or for a named agent or question.
    Say {
        /// The text.
        text: String,
        /// The agent or question that is meant. `None` means the agent that has the floor.
        to: Option<Id>,
    },
    /// A text from one agent to another (`send`).
    Sent {
        /// The text.
        text: String,
        /// The agent that receives it.
        to: Id,
        /// The agent that sent it.
        from: Id,
    },
    /// A text, like `Say`, that first cancels everything that is open.
    Interrupt(String),
    /// The answer to a question, or a secret that was asked for (`input`).
    Answer {
        /// The question, or the hold that asks for the secret.
        of: PendingId,
        /// The text, sealed because it may be a secret ([`crate::seal`]).
        sealed: String,
    },
    /// Grants an approval, a repetition or more budget.
    Approve {
        /// The hold that the person saw.
        of: PendingId,
        /// JSON object of arguments that replace those of the call. `None` keeps the call's arguments. For a budget: `more`, the
        /// amount that is allowed; `None` allows what the call may need.
        args: Option<String>,
    },
    /// Refuses an approval, a repetition or more budget.
    Reject {
        /// The hold that the person saw.
        of: PendingId,
        /// The reason, which the model can read.
        reason: Option<String>,
    },
    /// A person settles a doubt.
    Resolve {
        /// The doubt that the person saw. Without a line it is of an effect that no branch waits for any more.
        of: PendingId,
        /// Statement about the effect.
        how: Resolution,
    },
    /// Cancels work of the session.
    Cancel(CancelWhat),
    /// An event for this session.
    Event {
        /// Name of the event.
        event: Name,
        /// Fields of the event: a JSON object.
        fields: String,
    },
    /// Pauses (true) or resumes the session. Nothing new begins while it is paused.
    Pause(bool),
    /// A branch begins at a line of the message's branch.
    Fork {
        /// The line. `None` means the branch's last line.
        at: Option<Line>,
        /// Label of the new branch.
        label: Option<Name>,
        /// First message on the new branch.
        say: Option<String>,
        /// True if effects that touch the world run on the new branch too.
        live: bool,
    },
    /// A branch begins at an earlier line of the message's branch and becomes current. The branch that it replaces is superseded.
    Rewind {
        /// The line to go back to.
        at: Line,
        /// Label of the new branch.
        label: Option<Name>,
        /// First message on the new branch.
        say: Option<String>,
    },
    /// The root waits for branches until a condition is met.
    Join {
        /// The branches to wait for.
        branches: Vec<Id>,
        /// The condition, in the form that [`steersman_machine::network::join::JoinOn`] parses: `all`, `any`, a number, or an
        /// expression.
        on: String,
        /// A tool that is called next.
        then: Option<Name>,
        /// Arguments of the tool: a JSON object whose texts are templates over `result`. `None` hands on `result`
        /// itself ([`crate::session::Session::join`]).
        args: Option<String>,
    },
    /// The current branch adopts another branch.
    Adopt {
        /// The branch that is adopted.
        branch: Id,
        /// The last line that is adopted. `None` means the branch's last line, or the line before its first simulated effect.
        at: Option<Line>,
    },
    /// A branch becomes current.
    Current(Id),
    /// A person edits state: entries and JSON values. `None` unsets an entry.
    Edit(Vec<(Name, Option<String>)>),
    /// Keeps effects of a tool from beginning, or lets them begin again.
    Hold {
        /// The tool. `None` means all tools that may change the world.
        tool: Option<Name>,
        /// True to hold the effects, false to release them.
        held: bool,
    },
    /// Tries again now what failed: an effect that waits for its next attempt, or a model call whose failure ended the session. A
    /// model call is tried again from the line before. `None` means everything that waits or, if nothing does, the model call
    /// whose failure ended the session.
    Retry(Option<Id>),
    /// Binds new values of `config`: names and JSON values.
    Rebind(Vec<(Name, String)>),
    /// The session continues under another definition.
    Redefine(Box<Redefinition>),
    /// A search over branches begins on the message's branch.
    Search {
        /// The line to start from. `None` means the branch's last line.
        at: Option<Line>,
        /// First message on the root branch of the search.
        say: Option<String>,
        /// JSON of the plan ([`steersman_machine::network::search::Plan`]).
        plan: String,
    },
    /// Ends a search with the best result so far. `None` means all open searches.
    StopSearch(Option<Id>),
    /// The outcome of an effect that ran elsewhere.
    Outcome {
        /// The effect that the outcome is of.
        effect: Id,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The outcome as it came in.
        raw: RawOutcome,
    },
    /// A text for the agent that has the floor, and entries of state that are set in the tick that takes it.
    SayWith {
        /// The text.
        text: String,
        /// The entries and JSON values. `None` unsets an entry.
        state: Vec<(Name, Option<String>)>,
    },
}

/// The outcome of an effect that ran elsewhere, as JSON before mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RawOutcome {
    /// The JSON itself, at most 16 KiB.
    Here(String),
    /// The JSON is a blob.
    Blob {
        /// blake3 hash of the JSON.
        hash: [u8; 32],
        /// Length of the JSON, in bytes.
        len: u64,
    },
}

impl From<Wanted> for Message {
    fn from(wanted: Wanted) -> Self {
        Self {
            by: None,
            parent: None,
            branch: None,
            files: Vec::new(),
            wanted,
        }
    }
}

impl Wanted {
    /// Makes the content with which a person joins branches. `args` is a JSON object whose texts are templates over `result`.
    pub fn join(branches: Vec<Id>, on: &JoinOn, then: Option<Name>, args: Option<String>) -> Self {
        Self::Join {
            branches,
            on: on.to_string(),
            then,
            args,
        }
    }

    /// Makes a text for the agent that has the floor.
    pub fn say(text: impl Into<String>) -> Self {
        Self::Say {
            text: text.into(),
            to: None,
        }
    }

    /// Makes the edit of state with which a person rates an artifact. `write` comes from [`crate::artifact::Artifacts::rated`].
    pub fn rating(write: &NewWrite) -> Self {
        let value = write.value.as_ref().map(ToString::to_string);
        Self::Edit(vec![(write.name.as_str().into(), value)])
    }

    /// Makes a message of this content by a person or program.
    pub fn by(self, by: impl Into<By>) -> Message {
        Message::from(self).by(by)
    }

    /// Makes a message about a branch; `None` means the current one.
    pub fn on(self, branch: Option<Id>) -> Message {
        Message::from(self).on(branch)
    }

    /// Returns true for a text to an agent, from outside or from another agent.
    pub fn is_text(&self) -> bool {
        matches!(
            self,
            Self::Say { .. } | Self::SayWith { .. } | Self::Sent { .. } | Self::Interrupt(_)
        )
    }

    /// Returns true for the answer to something that is asked. It never waits for anything else: a session that has it goes on.
    pub fn is_decision(&self) -> bool {
        matches!(
            self,
            Self::Answer { .. } | Self::Approve { .. } | Self::Reject { .. } | Self::Resolve { .. }
        )
    }

    /// Returns true for an event.
    pub fn is_event(&self) -> bool {
        matches!(self, Self::Event { .. })
    }

    /// Returns the text that is said, if one is.
    pub(crate) fn said(&self) -> Option<&str> {
        match self {
            Self::Say { text, .. }
            | Self::SayWith { text, .. }
            | Self::Sent { text, .. }
            | Self::Interrupt(text) => Some(text),
            Self::Fork { say, .. } | Self::Rewind { say, .. } | Self::Search { say, .. } => {
                say.as_deref()
            }
            Self::Start(begin) => begin.say.as_deref(),
            _ => None,
        }
    }
}

impl Message {
    /// Says who makes the request.
    #[must_use]
    pub fn by(self, by: impl Into<By>) -> Self {
        let by = Some(by.into());
        Self { by, ..self }
    }

    /// Says which branch the request is about; `None` means the current one.
    #[must_use]
    pub fn on(self, branch: Option<Id>) -> Self {
        Self { branch, ..self }
    }
}

/// A new binding of a session. Its definition is a blob, and so is the manifest of its MCP servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redefinition {
    /// The new binding, except for its `values`.
    pub binding: steersman_machine::stored::commit::Binding,
    /// JSON of the bound values ([`crate::bind`]).
    pub values: String,
}

/// A content that comes with a message. It becomes an artifact when the message is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Name of the artifact.
    pub name: Name,
    /// Media type, such as `text/plain`.
    pub media: Name,
    /// blake3 hash of the content, which is a blob.
    pub hash: [u8; 32],
    /// Length of the content, in bytes.
    pub len: u64,
}

impl File {
    /// Returns the artifact in the form that the machine takes.
    pub(crate) fn version(self) -> NewArtifact {
        NewArtifact {
            name: self.name.to_string(),
            media: self.media.to_string(),
            hash: self.hash,
            len: self.len,
            content: None,
        }
    }
}

/// The beginning of a session. Its binding is decided when the session is created, not when it is first driven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// The binding, except for its `values`.
    pub binding: steersman_machine::stored::commit::Binding,
    /// JSON of the bound values ([`crate::bind`]).
    pub values: String,
    /// The root agent. `None` means the first agent of `entry`.
    pub agent: Option<Name>,
    /// Arguments for the agent's parameters: a JSON object.
    pub args: Option<String>,
    /// Text of the first message.
    pub say: Option<String>,
    /// A conversation that was held elsewhere and precedes the session: a JSON array of chat messages with `role` and `content`.
    pub history: Option<String>,
    /// Entries of state and JSON values that are set before anything else happens.
    pub state: Vec<(Name, String)>,
    /// The part of the store that the session belongs to.
    pub scope: Scope,
    /// The occurrence of a schedule that began the session.
    pub occasion: Option<Occasion>,
}

/// The occurrence of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occasion {
    /// Name of the schedule.
    pub schedule: Name,
    /// The moment for which the schedule planned the session.
    pub due: Time,
    /// Number of earlier occurrences that were missed and are made up for by this one.
    pub missed: u32,
}

/// A person's statement about an effect in doubt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resolution {
    /// The effect happened. Holds JSON of its result, in the form that the tool would have returned.
    Done {
        /// The result; `null` if it is not known.
        result: String,
    },
    /// The effect did not happen. It may run again, under the same key and approval.
    NotPerformed,
    /// Nobody will find out whether the effect happened. The model reads that it may have happened.
    Fail,
}

/// Work to cancel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CancelWhat {
    /// The call that an effect is for, or a model call itself.
    Effect(Id),
    /// An agent and everything that it started.
    Agent(Id),
    /// Everything that acts on the branch.
    Branch,
    /// Everything that acts on any branch.
    Session,
}

impl Message {
    /// Returns the message together with contents. The contents must be stored first ([`crate::engine::Engine::keep`]).
    #[must_use]
    pub fn with(mut self, contents: &[Content]) -> Self {
        for content in contents {
            let version = content.version();
            let file = File {
                name: version.name.into(),
                media: version.media.into(),
                hash: version.hash,
                len: version.len,
            };
            // One message may name the same content twice.
            if !self.files.contains(&file) {
                self.files.push(file);
            }
        }
        self
    }

    /// Takes the artifacts that came with the message out of it.
    pub(crate) fn came(&mut self) -> Vec<NewArtifact> {
        let files = std::mem::take(&mut self.files);
        files.into_iter().map(File::version).collect()
    }

    /// Returns the stored form: a version byte, the positional encoding, and eight bytes of a hash of the id and of everything
    /// before. The hash distinguishes damaged messages from those of a newer program.
    pub fn encode(&self, id: Name, at: Time) -> InboxMessage {
        let mut bytes = postcard::to_extend(self, vec![VERSION])
            .expect("a message holds nothing that cannot be encoded");
        bytes.extend_from_slice(&sum(&id, &bytes));
        InboxMessage {
            id,
            at,
            bytes: bytes.into(),
        }
    }

    /// Reads a stored message.
    pub fn decode(message: &InboxMessage) -> Result<Self, DecodeError> {
        let corrupt = || DecodeError::Corrupt(message.id.clone());
        let (hashed, hash) = message.bytes.split_last_chunk::<8>().ok_or_else(corrupt)?;
        let newer = |what: String| DecodeError::Newer(message.id.clone(), what);
        match hashed.split_first() {
            Some((&VERSION, rest)) if *hash == sum(&message.id, hashed) => {
                match postcard::take_from_bytes(rest).map_err(|e| newer(e.to_string()))? {
                    (message, []) => Ok(message),
                    (_, more) => Err(newer(format!("{} bytes follow its end", more.len()))),
                }
            }
            Some((&version, rest)) if version > VERSION => {
                // If the hash matches under our own version, only the version byte is damaged.
                let ours = [&[VERSION], rest].concat();
                if *hash == sum(&message.id, &ours) {
                    return Err(corrupt());
                }
                Err(newer(format!("form {version}, this one knows {VERSION}")))
            }
            _ => Err(corrupt()),
        }
    }
}

/// Returns the part of a stored message by which a repetition is recognised: all but its trace, since a request that is sent again belongs to
/// another span, and the text of an answer, which is sealed to another text each time. Bytes of another form are returned unchanged.
pub(crate) fn essence<'a>(id: &str, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    let shorter = || {
        let (hashed, _) = bytes.split_last_chunk::<8>()?;
        let (&VERSION, rest) = hashed.split_first()? else {
            return None;
        };
        let read = postcard::take_from_bytes::<Message>(rest);
        let (mut message, []) = read.ok()? else {
            return None;
        };
        let has_trace = message.parent.take().is_some();
        let is_answer = match &mut message.wanted {
            Wanted::Answer { sealed, .. } => {
                sealed.clear();
                true
            }
            _ => false,
        };
        let bytes = || message.encode(id.into(), Time::default()).bytes.to_vec();
        (has_trace || is_answer).then(bytes)
    };
    shorter().map_or(Cow::Borrowed(bytes), Cow::Owned)
}

fn sum(id: &str, hashed: &[u8]) -> [u8; 8] {
    let mut over = blake3::Hasher::new();
    over.update(&(id.len() as u64).to_le_bytes());
    over.update(id.as_bytes());
    over.update(hashed);
    let mut sum = [0; 8];
    sum.copy_from_slice(&over.finalize().as_bytes()[..8]);
    sum
}

/// Reasons for which a stored message cannot be read. The message stays in the inbox, and the session goes on without it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The message is damaged. Holds its id.
    #[error("inbox message `{0}` is damaged and not heard; it stays where it is")]
    Corrupt(Name),
    /// A newer program wrote the message. Holds its id and the reason.
    #[error(
        "inbox message `{0}` was written by a newer program ({1}) and is not heard; it stays where it is"
    )]
    Newer(Name, String),
}

impl DecodeError {
    /// Returns the id of the message that cannot be read.
    pub fn message(&self) -> &Name {
        match self {
            Self::Corrupt(id) | Self::Newer(id, _) => id,
        }
    }
}

/// Returns an error for each message of an inbox that cannot be read.
pub fn unread(inbox: &[InboxMessage]) -> Vec<DecodeError> {
    let errors = inbox.iter().filter_map(|m| Message::decode(m).err());
    errors.collect()
}

/// Returns a random id of a message: 16 characters of base 32, lower case.
pub fn random_id() -> Name {
    let mut bytes = [0_u8; 10];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    base32(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_of_a_message_is_not_a_part_of_what_was_said() {
        let said = |parent: Option<&str>| {
            let message = Message {
                parent: parent.map(Into::into),
                ..Wanted::Pause(true).by(By::role("ops"))
            };
            message.encode("m".into(), Time(5)).bytes
        };
        let plain = said(None);
        assert_eq!(&*essence("m", &plain), &*plain);
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(&*essence("m", &said(Some(parent))), &*plain);
        for wrong in [&b""[..], b"12345678", b"an event"] {
            assert_eq!(&*essence("m", wrong), wrong);
        }
    }

    #[test]
    fn an_answer_is_compared_by_its_question() {
        let answer = |of: &str, sealed: &str| {
            let wanted = Wanted::Answer {
                of: of.parse().unwrap(),
                sealed: sealed.to_owned(),
            };
            let answer = wanted.by(By::role("ops")).encode("m".into(), Time(5)).bytes;
            essence("m", &answer).into_owned()
        };
        assert_eq!(answer("3.1", "one"), answer("3.1", "another"));
        assert_ne!(answer("3.1", "one"), answer("4.1", "one"));
    }
}

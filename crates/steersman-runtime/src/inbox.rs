//! What lies in an inbox: everything that people and programs want of a session. **Stored**: enums grow at their end, a
//! struct that changes is a new version.
//!
//! Every act goes through the inbox, whoever owns the session: so it is durable before it is acknowledged, it is
//! accepted once, and it waits there, outside every branch, until a tick takes it.

use crate::pending::PendingId;
use crate::store::InboxMessage;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use steersman_machine::artifact::Content;
use steersman_machine::effect::{NewArtifact, NewWrite};
use steersman_machine::ids::{Id, Line, Name, Time};
use steersman_machine::join::JoinOn;

/// Version of the encoding: the first byte of a stored message.
const VERSION: u8 = 1;

/// Something wanted of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// The session begins.
    Start(Box<Begin>),
    /// Something is said to whoever has the floor, or to an agent or question.
    Say {
        /// The text.
        text: String,
        /// The agent or question; none: the floor.
        to: Option<Id>,
        /// The speaker's role if it is not the user.
        by: Option<Name>,
        /// The branch; none: the current one.
        branch: Option<Id>,
    },
    /// An agent says something to another agent (`send`).
    Sent {
        /// The text.
        text: String,
        /// To this agent.
        to: Id,
        /// From this agent.
        from: Id,
        /// On this branch.
        branch: Id,
    },
    /// The same as `Say`, but what is open is cancelled first.
    Interrupt {
        /// The text.
        text: String,
        /// The speaker's role if it is not the user.
        by: Option<Name>,
        /// The branch; none: the current one.
        branch: Option<Id>,
    },
    /// The answer to a question, or a secret that was asked for (`input`). Sealed, since it may be either.
    Answer {
        /// The question, or the hold that asks for the secret.
        of: PendingId,
        /// The sealed text ([`crate::seal`]).
        sealed: String,
        /// Who answers.
        by: Name,
    },
    /// An approval, a repetition or more budget is granted.
    Approve {
        /// The hold that was seen.
        of: PendingId,
        /// Who decides.
        by: Name,
        /// A JSON object of arguments that replace those of the call; none: exactly as asked.
        args: Option<String>,
    },
    /// The same is refused.
    Reject {
        /// The hold that was seen.
        of: PendingId,
        /// Who decides.
        by: Name,
        /// The reason, told to the model.
        reason: Option<String>,
    },
    /// A person settles a doubt.
    Resolve {
        /// The doubt that was seen; without a line, of an effect that no branch waits for any more.
        of: PendingId,
        /// Who knows.
        by: Name,
        /// What is the case.
        how: Resolution,
    },
    /// Something is cancelled.
    Cancel {
        /// What.
        what: CancelWhat,
        /// Who wants it.
        by: Name,
        /// The branch; none: the current one.
        branch: Option<Id>,
    },
    /// An event came in for this session.
    Event {
        /// Its name.
        event: Name,
        /// Its fields: a JSON object.
        fields: String,
    },
    /// A person pauses (true) or resumes the session: nothing new begins while it is paused.
    Pause(bool),
    /// A branch begins at a line.
    Fork {
        /// The branch that is forked; none: the current one.
        branch: Option<Id>,
        /// The line; none: its last.
        at: Option<Line>,
        /// What people call the new branch.
        label: Option<Name>,
        /// The first message there.
        say: Option<String>,
        /// Effects that touch the world run there, too.
        live: bool,
    },
    /// A branch begins at an earlier line and becomes current; what is left behind is superseded.
    Rewind {
        /// The branch that is rewound; none: the current one.
        branch: Option<Id>,
        /// The line.
        at: Line,
        /// What people call the new branch.
        label: Option<Name>,
        /// The first message there.
        say: Option<String>,
    },
    /// The root waits for branches, all of them.
    Join {
        /// Which.
        branches: Vec<Id>,
        /// A tool that follows.
        then: Option<Name>,
        /// Its arguments, a JSON object whose texts are templates over `result`; none: what the tool reads of it.
        args: Option<String>,
    },
    /// A branch is taken over.
    Adopt {
        /// Which.
        branch: Id,
        /// Up to this line of it; none: its last, or its first simulated effect.
        at: Option<Line>,
    },
    /// A branch becomes current.
    Current(Id),
    /// State is edited by a person: entry and JSON value; none unsets.
    Edit {
        /// The writes.
        writes: Vec<(Name, Option<String>)>,
        /// Who edits.
        by: Name,
    },
    /// Effects of a tool are kept from beginning, or may begin again.
    Hold {
        /// The tool; none: every one that may change the world.
        tool: Option<Name>,
        /// Whether they are kept.
        held: bool,
        /// Who orders it.
        by: Name,
    },
    /// What failed is tried again: an effect that waits for another attempt now, a model call whose failure ended the
    /// session from the line before.
    Retry {
        /// The effect; none: whatever failed.
        effect: Option<Id>,
        /// Who wants it.
        by: Name,
    },
    /// Values of `config` are bound anew.
    Rebind {
        /// Names and JSON values.
        config: Vec<(Name, String)>,
        /// Who binds them.
        by: Name,
    },
    /// Something that comes with contents: one of `Start`, `Say`, `Interrupt` and `Event`.
    With {
        /// The contents. Each is a blob before this is put into an inbox.
        files: Vec<File>,
        /// What they come with.
        message: Box<Message>,
    },
    /// The session goes on under another definition.
    Redefine(Box<Redefinition>),
    /// A search over branches begins.
    Search {
        /// The branch; none: the current one.
        branch: Option<Id>,
        /// The line; none: its last.
        at: Option<Line>,
        /// What is said there first.
        say: Option<String>,
        /// JSON of the plan ([`steersman_machine::search::Plan`]).
        plan: String,
    },
    /// A search ends with the best so far; none: all that go on.
    StopSearch(Option<Id>),
    /// The root waits for branches, until a condition holds of them.
    JoinOn {
        /// Which.
        branches: Vec<Id>,
        /// The condition, as [`steersman_machine::join::JoinOn`] reads it.
        on: String,
        /// A tool that follows.
        then: Option<Name>,
        /// Its arguments, as of `Join`.
        args: Option<String>,
    },
}

impl Message {
    /// A person joins branches; `args` is a JSON object whose texts are templates over `result`.
    pub fn join(branches: Vec<Id>, on: &JoinOn, then: Option<Name>, args: Option<String>) -> Self {
        match on {
            JoinOn::All => Self::Join {
                branches,
                then,
                args,
            },
            on => Self::JoinOn {
                branches,
                on: on.to_string(),
                then,
                args,
            },
        }
    }

    /// What somebody said with it.
    pub(crate) fn said(&self) -> Option<&str> {
        match self {
            Self::Say { text, .. } | Self::Sent { text, .. } | Self::Interrupt { text, .. } => {
                Some(text)
            }
            Self::Fork { say, .. } | Self::Rewind { say, .. } | Self::Search { say, .. } => {
                say.as_deref()
            }
            Self::Start(begin) => begin.say.as_deref(),
            Self::With { message, .. } => message.said(),
            _ => None,
        }
    }

    /// A person rates an artifact: an edit of state by what [`crate::artifact::Artifacts::rated`] gave.
    pub fn rating(write: &NewWrite, by: Name) -> Self {
        let value = write.value.as_ref().map(ToString::to_string);
        Self::Edit {
            writes: vec![(write.name.as_str().into(), value)],
            by,
        }
    }
}

/// What a session is to be bound to: a definition, which is a blob, as is what its servers offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redefinition {
    /// Its new binding, `values` aside.
    pub binding: steersman_machine::commit::Binding,
    /// JSON of the bound values ([`crate::bind`]).
    pub values: String,
    /// Who binds it.
    pub by: Name,
}

/// A content that comes with a message, and is an artifact once it is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Its name.
    pub name: Name,
    /// Media type.
    pub media: Name,
    /// blake3 of its content, which is a blob.
    pub hash: [u8; 32],
    /// Bytes.
    pub len: u64,
}

impl File {
    /// As the machine takes it.
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

/// How a session begins. What it is bound to is decided when it is started, not when it is first driven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// Its binding, `values` aside.
    pub binding: steersman_machine::commit::Binding,
    /// JSON of the bound values ([`crate::bind`]).
    pub values: String,
    /// The root agent; none: the entry.
    pub agent: Option<Name>,
    /// Arguments for its parameters: a JSON object.
    pub args: Option<String>,
    /// The first message.
    pub say: Option<String>,
    /// The speaker's role if it is not the user.
    pub by: Option<Name>,
}

/// What a person knows of an effect in doubt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resolution {
    /// It happened. JSON of its result, as the tool would have given it.
    Done {
        /// The result; `null` if it is not known.
        result: String,
    },
    /// It did not happen: it may run again, under the same key and approval.
    NotPerformed,
    /// Nobody will know: the model is told that it may have happened.
    Fail,
}

/// What is to be cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CancelWhat {
    /// The call that this effect is for, or the model call itself.
    Effect(Id),
    /// An agent with all it started.
    Agent(Id),
    /// All that acts on the branch.
    Branch,
    /// All that acts on any branch.
    Session,
}

impl Message {
    /// The same with contents: they are to be put into the store before it is ([`crate::engine::Engine::keep`]).
    #[must_use]
    pub fn with(self, contents: &[Content]) -> Self {
        if contents.is_empty() {
            return self;
        }
        let mut files: Vec<File> = Vec::with_capacity(contents.len());
        for content in contents {
            let version = content.version();
            let file = File {
                name: version.name.into(),
                media: version.media.into(),
                hash: version.hash,
                len: version.len,
            };
            // The same content may be named twice in what it comes with.
            if !files.contains(&file) {
                files.push(file);
            }
        }
        Self::With {
            files,
            message: Box::new(self),
        }
    }

    /// What it is, and what came with it.
    pub(crate) fn opened(self) -> (Self, Vec<NewArtifact>) {
        match self {
            Self::With { files, message } => {
                (*message, files.into_iter().map(File::version).collect())
            }
            plain => (plain, Vec::new()),
        }
    }

    /// As it is stored: a version byte, then positionally, then eight bytes over the id and all of it, so that what is
    /// damaged is told from what a newer program wrote.
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
        let (said, of) = message.bytes.split_last_chunk::<8>().ok_or_else(corrupt)?;
        let newer = |what: String| DecodeError::Newer(message.id.clone(), what);
        match said.split_first() {
            Some((&VERSION, rest)) if *of == sum(&message.id, said) => {
                postcard::from_bytes(rest).map_err(|e| newer(e.to_string()))
            }
            Some((&version, rest)) if version > VERSION => {
                // A damaged version byte is no newer version.
                let ours = [&[VERSION], rest].concat();
                if *of == sum(&message.id, &ours) {
                    return Err(corrupt());
                }
                Err(newer(format!("form {version}, this one knows {VERSION}")))
            }
            _ => Err(corrupt()),
        }
    }
}

fn sum(id: &str, said: &[u8]) -> [u8; 8] {
    let mut over = blake3::Hasher::new();
    over.update(&(id.len() as u64).to_le_bytes());
    over.update(id.as_bytes());
    over.update(said);
    let mut sum = [0; 8];
    sum.copy_from_slice(&over.finalize().as_bytes()[..8]);
    sum
}

/// Why a stored message cannot be read. It stays where it is, and the session goes on without it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It is not what was written.
    #[error("inbox message `{0}` is damaged and not heard; it stays where it is")]
    Corrupt(Name),
    /// A newer program wrote it.
    #[error(
        "inbox message `{0}` was written by a newer program ({1}) and is not heard; it stays where it is"
    )]
    Newer(Name, String),
}

impl DecodeError {
    /// The message that cannot be read.
    pub fn message(&self) -> &Name {
        match self {
            Self::Corrupt(id) | Self::Newer(id, _) => id,
        }
    }
}

/// Why messages of an inbox cannot be read, where they cannot.
pub fn unread(inbox: &[InboxMessage]) -> Vec<DecodeError> {
    let errors = inbox.iter().filter_map(|m| Message::decode(m).err());
    errors.collect()
}

/// A random id: 16 characters of base 32, lower case.
pub fn random_id() -> Name {
    let mut bytes = [0_u8; 10];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    base32(&bytes)
}

/// Five bits a character, without letters that are mistaken for digits.
pub(crate) fn base32(bytes: &[u8]) -> Arc<str> {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let (mut out, mut bits, mut held) = (String::new(), 0_u32, 0_u32);
    for byte in bytes {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            out.push(char::from(LETTERS[(held >> bits & 31) as usize]));
        }
    }
    if bits > 0 {
        out.push(char::from(LETTERS[(held << (5 - bits) & 31) as usize]));
    }
    out.into()
}

//! What goes in and out of a tick: offers, outcomes, wishes, requests. None of it is stored.

use crate::artifact::Content;
use crate::commit::{Commit, Text, Usage, Want};
use crate::ids::{Body, Id, Line, Name, Time};
use crate::interaction::{Class, How};
use crate::network::OnTimeout;
use crate::snapshot::Snapshot;
use serde_json::Value as Json;
use std::sync::Arc;

/// Texts that the snapshot and the stacks name. Implemented by whoever holds the log.
pub trait Bodies {
    /// The text of a body; `[erased]` if it was erased.
    fn text(&self, body: Body) -> Arc<str>;
}

/// What came in. A tick takes offers in the order of the variants; the driver sorts them so.
#[derive(Clone, Debug)]
pub enum Offered {
    /// The session begins: makes the root. Only on an empty snapshot.
    Start(Start),
    /// The branch begins here: forked by a person or an agent, or rewound.
    Opened(Opened),
    /// A branch is adopted into this one.
    Adopt {
        /// The fork call that it closes; none where a person adopts.
        call: Option<(Id, Id)>,
        /// The branch.
        branch: Id,
        /// Up to this line of it.
        at: Line,
        /// Its snapshot there.
        from: Box<Snapshot>,
        /// What the ledger knows of its open effects.
        known: Known,
    },
    /// The branch that a fork call chose cannot be adopted: the call closes with the reason.
    NotAdopted {
        /// Caller and fork call.
        call: (Id, Id),
        /// The branch.
        branch: Id,
        /// Why, for the model.
        why: Arc<str>,
    },
    /// An effect ended.
    Outcome {
        /// Which.
        effect: Id,
        /// Which attempt.
        attempt: u32,
        /// How.
        outcome: Outcome,
    },
    /// A person approved other arguments.
    Edited {
        /// The effect that was held.
        effect: Id,
        /// The arguments, a JSON object.
        args: Arc<str>,
        /// Their role.
        by: Name,
        /// Whose approval it was that they gave ([`Approval::by`]).
        approver: Name,
    },
    /// Time passed; something may be due ([`crate::wait::deadline`]).
    Clock,
    /// Branches that a call waits for ended.
    Ended {
        /// Caller and call.
        call: (Id, Id),
        /// All that count, together.
        ends: Vec<BranchEnd>,
    },
    /// A person joins branches: the root opens a call to them.
    Join {
        /// The branches.
        branches: Vec<Id>,
        /// When the call is over.
        on: crate::join::JoinOn,
        /// A tool that follows, with its arguments over `result`.
        then: Option<crate::network::Then>,
    },
    /// State is edited by a person.
    Edit {
        /// The writes, checked against the declared types.
        writes: Vec<NewWrite>,
        /// Their role.
        by: Name,
    },
    /// A message that cancels the open exchange of whoever has the floor.
    Interrupt {
        /// The message.
        message: Said,
        /// What the ledger knows of effects that are out.
        known: Known,
        /// What was shown of model calls that are out.
        shown: Vec<(Id, Arc<str>)>,
    },
    /// Something is cancelled.
    Cancel {
        /// What.
        what: Cancelled,
        /// By whom.
        by: Name,
        /// What the ledger knows of effects that are out.
        known: Known,
        /// What was shown of model calls that are out.
        shown: Vec<(Id, Arc<str>)>,
    },
    /// Something was said.
    Message(Said),
}

/// How a session begins.
#[derive(Clone, Debug)]
pub struct Start {
    /// The root agent; none: the entry of the network.
    pub agent: Option<Name>,
    /// Arguments for its parameters, a JSON object.
    pub args: Option<Json>,
    /// The first message.
    pub message: Option<Said>,
    /// What came with it, each a blob already: it belongs to the arguments, without any to the message.
    pub came: Vec<NewArtifact>,
    /// What the session is bound to; `values` is ignored, its text is `values` below.
    pub binding: crate::commit::Binding,
    /// JSON text of the bound values.
    pub values: Arc<str>,
}

/// How a branch begins.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// A rewind: live, and becomes current.
    pub rewound: bool,
    /// One agent and its descendants; none: the scope of what is forked, which is the session for `main`.
    pub scope: Option<Id>,
    /// Dry mode.
    pub dry: bool,
    /// What people call it.
    pub label: Option<Name>,
    /// An agent's fork: caller, call, index from 1 and how many.
    pub fork: Option<(Id, Id, u32, u32)>,
    /// The first message there.
    pub say: Option<Said>,
    /// What the ledger knows of effects that were out where it was forked.
    pub known: Known,
    /// A branch of a search: its number from 1 and how many there may be.
    pub of: Option<(u32, u32)>,
    /// A branch on which only this agent acts, which is made for it under the top agent: it judges what came of another.
    pub judge: Option<Judge>,
}

/// Who judges a branch.
#[derive(Clone, Debug)]
pub struct Judge {
    /// An agent with a model.
    pub agent: Name,
    /// Its arguments, a JSON object.
    pub args: Json,
}

/// Something said from outside.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its id, accepted once.
    pub id: Name,
    /// The text.
    pub text: Arc<str>,
    /// The agent or question it is for; none: whoever has the floor.
    pub to: Option<Id>,
    /// The speaker's role, if it is not the user; of an agent's `send` its id.
    pub by: Option<Name>,
    /// Sent by this agent with `send`.
    pub sender: Option<Id>,
    /// What came with it, each a blob already.
    pub came: Vec<NewArtifact>,
}

/// What is cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// One call, by caller and id.
    Call(Id, Id),
    /// An agent with all it started.
    Agent(Id),
    /// All that acts on this branch.
    All,
}

/// What the ledger knows of effects.
pub type Known = Vec<(Id, Fact)>;

/// What the ledger knows of one effect.
#[derive(Clone, Debug)]
pub enum Fact {
    /// No attempt was ever started.
    NeverStarted,
    /// It was carried out; its outcome.
    Done(Box<Outcome>),
    /// Started, and nobody knows.
    Unknown,
}

/// How a branch ended.
#[derive(Clone, Debug)]
pub struct BranchEnd {
    /// The branch.
    pub branch: Id,
    /// Its label.
    pub label: Option<Name>,
    /// Its last line.
    pub at: Line,
    /// Its top agent's answer.
    pub answer: Option<Arc<str>>,
    /// How its top agent ended.
    pub end: crate::interaction::End,
    /// Why.
    pub cause: crate::interaction::Cause,
}

/// How an effect ended, as the machine meets it.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A model answered.
    Answer(Answer),
    /// A tool, person, wait or simulation, already mapped ([`crate::mapping`]) and sealed.
    Mapped(Mapped),
    /// A model or router failed for good.
    Failed(Failure),
    /// Dry mode can go no further here.
    Leaf(String),
    /// Something that a wait of several parts waits for; it may go on all the same.
    Came(Came),
}

/// What came for a wait.
#[derive(Clone, Debug, PartialEq)]
pub enum Came {
    /// Its effect is due.
    Time,
    /// An event.
    Event {
        /// Its name.
        event: String,
        /// Its fields.
        fields: Json,
        /// What came with it, each a blob already.
        came: Vec<NewArtifact>,
    },
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Its text.
    pub text: Option<String>,
    /// JSON that the provider wants back as it was.
    pub opaque: Option<String>,
    /// Its calls, in order.
    pub asks: Vec<Ask>,
    /// Why its text does not fit the wanted output, where an adapter had to judge (JSON Schema files).
    pub misfit: Option<String>,
    /// The model stopped because it may not say more (`max_tokens`).
    pub cut: bool,
    /// What it cost and saw.
    pub usage: Usage,
}

/// One call in an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The name as the model gave it.
    pub name: String,
    /// The provider's id.
    pub label: Option<String>,
    /// The arguments as the model gave them: JSON, or not.
    pub args: String,
    /// Why they do not fit, where an adapter had to judge (JSON Schema files).
    pub misfit: Option<String>,
}

/// An outcome after mapping: what becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// How the call closes.
    pub how: How,
    /// Code of `on_error`.
    pub code: Option<String>,
    /// What the model sees.
    pub shown: Option<String>,
    /// State writes; secrets are sealed before the machine meets them.
    pub writes: Vec<NewWrite>,
    /// New versions of artifacts.
    pub artifacts: Vec<NewArtifact>,
    /// A tool that follows, with its arguments.
    pub then: Option<(String, Json)>,
    /// Who answered, if a person did.
    pub by: Option<String>,
    /// The mode in which its caller is next, if it succeeded.
    pub mode: Option<String>,
}

impl Mapped {
    /// A plain end with a text for the model.
    pub fn plain(how: How, code: Option<&str>, shown: impl Into<String>) -> Self {
        Self {
            how,
            code: code.map(str::to_owned),
            shown: Some(shown.into()),
            writes: Vec::new(),
            artifacts: Vec::new(),
            then: None,
            by: None,
            mode: None,
        }
    }
}

/// A write before it has a place in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct NewWrite {
    /// The entry; the machine finds the instance that declares it, outward from the writer.
    pub name: String,
    /// The value; none unsets.
    pub value: Option<Json>,
    /// The value is to be sealed by the driver before it is offered.
    pub seal: bool,
}

/// A version of an artifact before it has a place in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewArtifact {
    /// Its name.
    pub name: String,
    /// Media type.
    pub media: String,
    /// blake3 of its content.
    pub hash: [u8; 32],
    /// Bytes.
    pub len: u64,
    /// Its content, which the driver stores before it offers the outcome; none: it is a blob already.
    pub content: Option<Arc<[u8]>>,
}

/// A failure as data.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Stable, snake case: `rate_limited`, `provider_overloaded`, `timeout`.
    pub code: String,
    /// For people.
    pub message: String,
    /// Whether trying again may help.
    pub retry: Retry,
}

/// Whether and when to try again.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It would fail again.
    Never,
    /// After so many milliseconds at least.
    After(u64),
    /// As the retry layer sees fit.
    Policy,
}

/// An effect that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// Its id and idempotency key.
    pub id: Id,
    /// Whose.
    pub agent: Id,
    /// What for.
    pub what: Want,
    /// What is to be done.
    pub work: Work,
    /// When it is due or ends by itself.
    pub due: Option<Time>,
}

impl Wish {
    /// The call that it is for, if it is for one.
    pub fn call(&self) -> Option<Id> {
        self.what.call()
    }
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// A model call for the agent; the request is [`crate::context`]'s.
    Model,
    /// A tool.
    Tool(ToolWork),
    /// A dry tool: the recording, else `simulate:`, else a leaf.
    Simulate(ToolWork),
    /// A question to a person.
    Ask {
        /// `user` or a person's name.
        to: Name,
        /// The question.
        question: Arc<str>,
        /// Answers to choose from; empty: free text.
        options: Vec<String>,
    },
    /// One of these events from outside.
    Event {
        /// The events that it waits for, at least one, sorted.
        any: Vec<EventKey>,
    },
    /// Only time.
    Timer,
    /// A message for another agent.
    Send {
        /// The agent's instance, or none if the name has none yet.
        to: Option<Id>,
        /// Its name.
        name: Name,
        /// The message.
        message: Arc<str>,
    },
    /// What a state in Rust wants done.
    Custom {
        /// Registered handler.
        name: Name,
        /// JSON for it.
        input: Arc<str>,
    },
}

/// An event that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey {
    /// Its name.
    pub event: Name,
    /// Canonical JSON of the fields that must be equal.
    pub key: Arc<str>,
}

/// A tool to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolWork {
    /// Its name in the definition.
    pub tool: Name,
    /// Its class.
    pub class: Class,
    /// JSON object of the arguments.
    pub args: Arc<str>,
    /// Begins the names of contents that it gives and that nothing else names: the tool, and which of its agent's calls it is.
    /// Models read them, and unlike the effect's id no takeover changes it.
    pub makes: Name,
    /// People who decide first, one after the other.
    pub approve: Vec<Approval>,
    /// Secret parameters that a person is asked for: name and question.
    pub inputs: Vec<(Name, String)>,
}

impl ToolWork {
    /// Who decides next, where these have approved already.
    pub fn next_approval(&self, approved: &[Name]) -> Option<&Approval> {
        let mut approved: Vec<&[Name]> = approved.iter().map(std::slice::from_ref).collect();
        self.approve.iter().find(|wanted| {
            let given = approved.iter().position(|by| wanted.asked(by).is_some());
            given.map(|k| approved.swap_remove(k)).is_none()
        })
    }
}

/// An approval that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// Who decides.
    pub by: Name,
    /// The question.
    pub ask: String,
    /// Artifacts that are shown with it, by name.
    pub show: Vec<String>,
    /// Arguments that they may change.
    pub edit: Vec<Name>,
    /// How long they have, in milliseconds.
    pub timeout: Option<u64>,
    /// What happens then.
    pub on_timeout: OnTimeout<Approval>,
    /// Why it is wanted: the expression with its values, for people.
    pub because: Option<String>,
}

impl Approval {
    /// What the first of these people in its line is asked.
    pub fn asked(&self, by: &[Name]) -> Option<&Self> {
        let mut line = std::iter::successors(Some(self), |asked| asked.on_timeout.next());
        line.find(|asked| by.contains(&asked.by))
    }
}

/// What the machine asks of the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Open a branch; its id is reserved already.
    Open {
        /// Its id.
        branch: Id,
        /// Whose fork.
        scope: Id,
        /// The fork call.
        call: Id,
        /// Index from 1.
        index: u32,
        /// How many.
        of: u32,
        /// Its instructions.
        say: Arc<str>,
        /// Dry mode.
        dry: bool,
    },
    /// Adopt a branch into this one.
    Adopt {
        /// Caller and fork call.
        call: (Id, Id),
        /// The branch.
        branch: Id,
        /// Its line where its end was told; what it did since is not chosen.
        at: Line,
    },
    /// The call that waited for these branches is closed: those for which nothing else waits are superseded.
    Supersede {
        /// The branches.
        branches: Vec<Id>,
    },
}

/// What a left offer waits for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// This agent's exchange closes.
    Exchange(Id),
    /// This agent's model or router answered.
    Answered(Id),
    /// This agent rests.
    Rests(Id),
    /// The next tick: something in this one had to come first.
    Again,
    /// Never: it is stale and only noted in the ledger.
    Stale,
    /// Refused: the reason is for whoever offered it.
    Refused(&'static str),
}

/// What a tick did.
#[derive(Debug)]
pub struct Step {
    /// None if nothing was taken.
    pub commit: Option<Commit>,
    /// The texts that came in with it.
    pub bodies: Vec<Text>,
    /// Where the branch stands now.
    pub snapshot: Snapshot,
    /// Effects that are wanted.
    pub wishes: Vec<Wish>,
    /// Effects that are wanted no longer.
    pub stop: Vec<Id>,
    /// What the driver is to do to branches.
    pub requests: Vec<Request>,
    /// Contents of artifacts that the step made. They are in the store before the line is, as those are that outcomes bring.
    pub contents: Vec<Content>,
    /// Offers that were left, by index, and what each waits for.
    pub left: Vec<(usize, Until)>,
    /// The top agent of the scope rests since this tick.
    pub ended: Option<BranchEnd>,
    /// How many things the line made; the driver numbers after these.
    pub made: u32,
}

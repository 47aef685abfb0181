//! The input and output of a tick: offers, wishes, requests. None of them is stored.

use crate::network::OnTimeout;
use crate::snapshot::Snapshot;
use crate::stored::by::By;
use crate::stored::commit::{Commit, Text, Want};
use crate::stored::ids::{Id, Line, Name, Time};
use crate::stored::interaction::Class;
use crate::stored::outcome::{NewArtifact, NewWrite, Outcome};
use crate::view::artifact::Content;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::sync::Arc;

/// An offer: an input to a tick. The order of offers is that of [`OfferKind`].
#[derive(Clone, Debug)]
pub enum Offered {
    /// The session begins: makes the root. Taken only on an empty snapshot.
    Start(Start),
    /// A branch begins here: forked by a person or an agent, or rewound.
    Opened(Opened),
    /// A branch is adopted into this one.
    Adopt {
        /// The fork call that the adoption closes: caller and call. `None` if a person adopts.
        call: Option<(Id, Id)>,
        /// The adopted branch.
        branch: Id,
        /// The line up to which the branch is adopted.
        at: Line,
        /// Snapshot of the branch at that line.
        from: Box<Snapshot>,
        /// Facts of the ledger about the open effects of the branch.
        known: Known,
    },
    /// The branch that a fork call chose cannot be adopted. The call closes with the reason.
    NotAdopted {
        /// Caller and fork call.
        call: (Id, Id),
        /// The chosen branch.
        branch: Id,
        /// The reason, for the model.
        why: Arc<str>,
    },
    /// An effect ended.
    Outcome {
        /// The effect that ended.
        effect: Id,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The outcome of the attempt.
        outcome: Outcome,
    },
    /// A person approved a call with other arguments.
    Edited {
        /// The effect that was held.
        effect: Id,
        /// The arguments, a JSON object.
        args: Arc<str>,
        /// The person who changed them.
        by: By,
        /// The approver in whose place the person answered ([`Approval::by`]).
        approver: Name,
    },
    /// A person answered the question of an approval, or its time to approve came, but something that the call reads has changed
    /// since ([`crate::tick::changed`]): the call is asked for again.
    Anew {
        /// The effect that was held. It never began.
        effect: Id,
        /// The person who answered. `None` for a time-out.
        by: Option<By>,
    },
    /// Time passed. Something may be due ([`crate::tick::wait::deadline`]).
    Clock,
    /// Branches that a call waits for ended.
    Ended {
        /// Caller and call.
        call: (Id, Id),
        /// The ends of all branches that count, in one offer.
        ends: Vec<BranchEnd>,
    },
    /// A person joins branches: the root opens a call that waits for them.
    Join {
        /// The branches to join.
        branches: Vec<Id>,
        /// The condition on which the call is over.
        on: crate::network::join::JoinOn,
        /// A tool that is called next, with its arguments over `result`.
        then: Option<crate::network::Then>,
    },
    /// A person edits state.
    Edit {
        /// The writes, checked against the declared types.
        writes: Vec<NewWrite>,
        /// The person who edits.
        by: By,
    },
    /// A message that cancels the open exchange of the agent that has the floor.
    Interrupt {
        /// The message that interrupts.
        message: Said,
        /// Facts of the ledger about outstanding effects.
        known: Known,
        /// For each outstanding model call: the part of its answer that was shown so far.
        shown: Vec<(Id, Arc<str>)>,
    },
    /// A cancel of one call, one agent or everything.
    Cancel {
        /// The target of the cancel.
        what: Cancelled,
        /// The person who cancels.
        by: By,
        /// Facts of the ledger about outstanding effects.
        known: Known,
        /// For each outstanding model call: the part of its answer that was shown so far.
        shown: Vec<(Id, Arc<str>)>,
    },
    /// A message from outside or from another agent.
    Message(Said),
}

/// The kinds of offers, in the order in which a tick takes them. This is the only place that states the order: a tick sorts its
/// offers by their kinds, and so does the driver, whose ledger entries are in the order of the offers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OfferKind {
    /// [`Offered::Edit`]: before all others, because the fold applies edits of state before all pushes.
    Edit,
    /// [`Offered::Start`].
    Start,
    /// [`Offered::Opened`].
    Opened,
    /// [`Offered::Adopt`].
    Adopt,
    /// [`Offered::NotAdopted`].
    NotAdopted,
    /// [`Offered::Outcome`].
    Outcome,
    /// [`Offered::Edited`].
    Edited,
    /// A call is asked for again, because what it reads has changed.
    Anew,
    /// [`Offered::Clock`]. Entries of state whose time is over expire earlier in the tick, before its edits.
    Clock,
    /// [`Offered::Ended`].
    Ended,
    /// [`Offered::Join`].
    Join,
    /// [`Offered::Interrupt`].
    Interrupt,
    /// [`Offered::Cancel`].
    Cancel,
    /// [`Offered::Message`].
    Message,
}

impl OfferKind {
    /// Returns true if such an offer opens a branch or adopts one. Edits and the clock are then left for the next tick.
    pub const fn opens(self) -> bool {
        matches!(self, Self::Start | Self::Opened | Self::Adopt)
    }
}

impl Offered {
    /// Returns the kind of the offer.
    pub const fn kind(&self) -> OfferKind {
        match self {
            Self::Start(_) => OfferKind::Start,
            Self::Opened(_) => OfferKind::Opened,
            Self::Adopt { .. } => OfferKind::Adopt,
            Self::NotAdopted { .. } => OfferKind::NotAdopted,
            Self::Outcome { .. } => OfferKind::Outcome,
            Self::Edited { .. } => OfferKind::Edited,
            Self::Anew { .. } => OfferKind::Anew,
            Self::Clock => OfferKind::Clock,
            Self::Ended { .. } => OfferKind::Ended,
            Self::Join { .. } => OfferKind::Join,
            Self::Edit { .. } => OfferKind::Edit,
            Self::Interrupt { .. } => OfferKind::Interrupt,
            Self::Cancel { .. } => OfferKind::Cancel,
            Self::Message(_) => OfferKind::Message,
        }
    }
}

/// The beginning of a session.
#[derive(Clone, Debug)]
pub struct Start {
    /// The root agent. `None` means the entry of the network.
    pub agent: Option<Name>,
    /// Arguments for its parameters, a JSON object.
    pub args: Option<Json>,
    /// The first message.
    pub message: Option<Said>,
    /// Artifacts that came with it; their contents are blobs already. They belong to the arguments, or without arguments to the
    /// message.
    pub came: Vec<NewArtifact>,
    /// A conversation that was held elsewhere. The root agent has it ahead of everything else.
    pub history: crate::tick::history::ChatHistory,
    /// The binding of the session. Its `values` is ignored; the text is in `values` below.
    pub binding: crate::stored::commit::Binding,
    /// The bound values as JSON text.
    pub values: Arc<str>,
}

/// The beginning of a branch.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// True for a rewind: the branch is live and becomes current.
    pub rewound: bool,
    /// Only this agent and its descendants act on the branch. `None` means the agent that forks; without one, the scope of the
    /// forked branch, which on `main` is the session.
    pub scope: Option<Id>,
    /// True if effects that touch the world are answered from the recording or simulated.
    pub dry: bool,
    /// Name that people give the branch.
    pub label: Option<Name>,
    /// For the fork of an agent: caller, call, number from 1, and number of branches.
    pub fork: Option<(Id, Id, u32, u32)>,
    /// The first message on the branch.
    pub say: Option<Said>,
    /// Facts of the ledger about the effects that were outstanding at the fork.
    pub known: Known,
    /// For a branch of a search: its number from 1, and the maximum number of branches.
    pub of: Option<(u32, u32)>,
    /// An agent that judges another branch. It is made under the top agent of this branch, and only it acts here.
    pub judge: Option<Judge>,
}

/// The agent that judges a branch.
#[derive(Clone, Debug)]
pub struct Judge {
    /// Name of an agent with a model.
    pub agent: Name,
    /// Arguments of the agent, a JSON object.
    pub args: Json,
}

/// A message from outside or from another agent.
#[derive(Clone, Debug)]
pub struct Said {
    /// Id of the message. An id is accepted once.
    pub id: Name,
    /// Text of the message.
    pub text: Arc<str>,
    /// The agent or question that the message is for. `None` means the agent that has the floor.
    pub to: Option<Id>,
    /// The speaker. An agent's `send` has its agent in `sender`.
    pub by: By,
    /// The agent that sent it with `send`.
    pub sender: Option<Id>,
    /// Artifacts that came with it; their contents are blobs already.
    pub came: Vec<NewArtifact>,
    /// Entries of state that the speaker sets with it. They are set in the tick that takes the message.
    pub sets: Vec<NewWrite>,
}

/// The target of a cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// One call, by caller and id.
    Call(Id, Id),
    /// An agent and all agents that it started.
    Agent(Id),
    /// Everything that acts on this branch.
    All,
}

/// Facts of the ledger about effects, by effect id.
pub type Known = Vec<(Id, Fact)>;

/// A fact of the ledger about one effect.
#[derive(Clone, Debug)]
pub enum Fact {
    /// No attempt was ever started.
    NeverStarted,
    /// The effect was carried out, with this outcome.
    Done(Box<Outcome>),
    /// An attempt was started, and it is unknown whether the effect happened.
    Unknown,
}

/// The end of a branch.
#[derive(Clone, Debug)]
pub struct BranchEnd {
    /// The branch that ended.
    pub branch: Id,
    /// Label of the branch.
    pub label: Option<Name>,
    /// Last line of the branch when the end is reported.
    pub at: Line,
    /// Answer of its top agent.
    pub answer: Option<Arc<str>>,
    /// Kind of the top agent's end.
    pub end: crate::stored::interaction::End,
    /// Cause of the top agent's end.
    pub cause: crate::stored::interaction::Cause,
}

/// A wish: an effect that the machine asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// Id of the effect and idempotency key.
    pub id: Id,
    /// The agent that the effect is for.
    pub agent: Id,
    /// The purpose of the effect.
    pub what: Want,
    /// The work to do, with its inputs.
    pub work: Work,
    /// For a model or tool: the earliest moment at which it may begin. For a wait or a question: the moment at which it ends.
    pub due: Option<Time>,
}

impl Wish {
    /// Returns the call that the effect is for, if it is for a call.
    pub fn call(&self) -> Option<Id> {
        self.what.call()
    }
}

/// The work of an effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// A model call for the agent. [`crate::context`] builds the request.
    Model,
    /// A call of a tool.
    Tool(ToolWork),
    /// A call of a tool in dry mode: answered from the recording, else from `simulate:`, else the branch ends in a leaf.
    Simulate(ToolWork),
    /// A question to a person.
    Ask {
        /// `user` or a person's name.
        to: Name,
        /// Text of the question.
        question: Arc<str>,
        /// Answers to choose from. Empty means free text.
        options: Vec<String>,
    },
    /// A wait for one of several events from outside.
    Event {
        /// The events, sorted, at least one.
        any: Vec<EventKey>,
    },
    /// A wait for time alone.
    Timer,
    /// A message for another agent.
    Send {
        /// Instance of the agent. `None` means that no instance has the name yet.
        to: Option<Id>,
        /// Name of the agent.
        name: Name,
        /// Text of the message.
        message: Arc<str>,
    },
}

/// An event that a wait accepts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey {
    /// Name of the event.
    pub event: Name,
    /// Canonical JSON of the fields that must be equal.
    pub key: Arc<str>,
}

/// A call of a tool: what to run, and the approvals and inputs that it needs first.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolWork {
    /// Name of the tool in the definition.
    pub tool: Name,
    /// Effect class of the tool.
    pub class: Class,
    /// Arguments as a JSON object.
    pub args: Arc<str>,
    /// Prefix for the names of contents that the tool returns without a name: the tool, the agent's path and the number of the
    /// call. Models read these names, and unlike the effect's id the prefix does not change in a takeover.
    pub makes: Name,
    /// Approvals that are needed first, one after the other.
    pub approve: Vec<Approval>,
    /// Secret parameters that a person is asked for: name and question.
    pub inputs: Vec<(Name, String)>,
}

impl ToolWork {
    /// Returns the next approval that is needed after these people have approved.
    pub fn next_approval(&self, approved: &[Name]) -> Option<&Approval> {
        let mut approved: Vec<&[Name]> = approved.iter().map(std::slice::from_ref).collect();
        self.approve.iter().find(|wanted| {
            let given = approved.iter().position(|by| wanted.asked(by).is_some());
            given.map(|k| approved.swap_remove(k)).is_none()
        })
    }
}

/// An approval that is needed.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// The person or role that decides.
    pub by: Name,
    /// Text of the question.
    pub ask: String,
    /// Names of artifacts that are shown with the question.
    pub show: Vec<String>,
    /// Arguments that the approver may change.
    pub edit: Vec<Name>,
    /// Time to answer, in milliseconds.
    pub timeout: Option<u64>,
    /// The reaction to a time-out.
    pub on_timeout: OnTimeout<Approval>,
    /// The reason for the approval: the expression with its values, for people.
    pub because: Option<String>,
}

impl Approval {
    /// Returns the first approval in the line of this one and its escalations that one of these people decides.
    pub fn asked(&self, by: &[Name]) -> Option<&Self> {
        let mut line = std::iter::successors(Some(self), |asked| asked.on_timeout.next());
        line.find(|asked| by.contains(&asked.by))
    }
}

/// A request of the machine to the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Open a branch, whose id is reserved already.
    Open {
        /// Id of the branch.
        branch: Id,
        /// The agent that forked.
        scope: Id,
        /// The fork call of that agent.
        call: Id,
        /// Number of the branch, from 1.
        index: u32,
        /// Number of branches of the fork.
        of: u32,
        /// Instructions for the branch.
        say: Arc<str>,
        /// True for dry mode.
        dry: bool,
    },
    /// Adopt a branch into this one.
    Adopt {
        /// Caller and fork call.
        call: (Id, Id),
        /// The branch to adopt.
        branch: Id,
        /// The line at which its end was reported. Later lines of the branch are not adopted.
        at: Line,
    },
    /// A call no longer waits for these branches. Those that nothing else waits for are superseded.
    Supersede {
        /// The branches of the call.
        branches: Vec<Id>,
    },
}

/// The condition that a left offer waits for, or the reason why it is not offered again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// The exchange of this agent closes.
    Exchange(Id),
    /// The model or router of this agent has answered.
    Answered(Id),
    /// The next tick; something else had to come first in this one.
    Again,
    /// The offer is stale. It is not offered again, and only noted in the ledger.
    Stale,
    /// The offer is refused. The text tells its sender why.
    Refused(Cow<'static, str>),
}

impl Until {
    pub(crate) const fn refused(why: &'static str) -> Self {
        Self::Refused(Cow::Borrowed(why))
    }
}

/// The result of a tick.
#[derive(Debug)]
pub struct Step {
    /// The commit. `None` if no offer was taken.
    pub commit: Option<Commit>,
    /// The texts of the line, in the order of their numbers.
    pub bodies: Vec<Text>,
    /// Snapshot of the branch after the commit.
    pub snapshot: Snapshot,
    /// Wishes of this tick, and of no earlier one.
    pub wishes: Vec<Wish>,
    /// Effects that are no longer wanted.
    pub stop: Vec<Id>,
    /// Requests to the driver about branches.
    pub requests: Vec<Request>,
    /// Contents of artifacts that the step made. Like contents that outcomes bring, they must be stored before the line is.
    pub contents: Vec<Content>,
    /// Offers that were left, by index, each with the condition that it waits for.
    pub left: Vec<(usize, Until)>,
    /// The end of the branch, if the top agent of the scope came to rest in this tick.
    pub ended: Option<BranchEnd>,
    /// Number of things that the line made. The driver numbers its own things after these.
    pub made: u32,
}

//! Commits and lines: the content of a session's log. **Stored**: within a version of the form of lines an enum may grow at
//! its end, and nothing else may change. A struct that gets a field needs a new version, see [`crate::stored::codec`]. So anything
//! that may grow is an enum, or a list of enums.

mod adoption;
mod hold;
mod ledger;
mod own;
mod recorded;
mod text;

pub use adoption::{
    AdoptedAgent, AdoptedCall, AdoptedCell, Adoption, AgentFact, CallFact, CellFact, Counter,
    DraftStands, Period,
};
pub use hold::{About, Hold, Release, Why};
pub use ledger::{LedgerEntry, Searching};
pub use recorded::Recorded;
pub use text::{Hashed, Text};

pub use own::{Hooked, Moment, Probing, Reaching, Stepped};

use crate::stored::by::By;
use crate::stored::ids::{Body, Digest, Id, Line, Name, Time};
use crate::stored::interaction::{Artifact, Interaction, Write};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One row of the log: at most one commit and the ledger entries that go with it.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// Number of the line in the log.
    pub n: Line,
    /// Time of the tick; for a line without a commit, the time at which it was made.
    pub at: Time,
    /// The line before on its branch, which its hash covers. For the first line of a branch, the line that was forked.
    pub prev: Line,
    /// The branch that the line belongs to. For a line without a commit, the branch that it is about, else the current one.
    pub branch: Id,
    /// The change that the tick made, if there was one.
    pub commit: Option<Commit>,
    /// Events in the world, which are never rewound.
    pub ledger: Vec<LedgerEntry>,
    /// The texts that came in with this line; [`Body`] n.k is the k-th of line n.
    pub bodies: Vec<Text>,
}

/// The change that one tick made to one branch. Immutable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    /// The commit before on this branch. For the first commit of a branch, the commit that was forked.
    pub parent: Line,
    /// The description of the branch; only in its first commit.
    pub opening: Option<Opening>,
    /// The second parent and what came from it; only in an adopting commit.
    pub adoption: Option<Adoption>,
    /// The offers that were taken, in order.
    pub admitted: Vec<Admission>,
    /// State edits by a person, and entries that expired. They take effect before the pushes.
    pub edits: Vec<Write>,
    /// Agents that were made.
    pub made: Vec<Made>,
    /// Interactions that were pushed, in the order in which they were made.
    pub pushes: Vec<Push>,
    /// Changes of calls that stay open: forks that began, branches that were chosen, parts of waits that are over.
    pub calls: Vec<CallChange>,
    /// Effects that are wanted from the outside.
    pub wished: Vec<Wished>,
    /// Other changes, in this order.
    pub changes: Vec<Change>,
    /// Cost and tokens of the model calls whose outcomes were taken here.
    pub usage: Vec<Usage>,
    /// The binding that the commits from here on run under, if it changed.
    pub binding: Option<Binding>,
}

impl Commit {
    /// Returns the modes that changed, in order: agent, mode and reason.
    pub fn modes(&self) -> impl Iterator<Item = (Id, &Name, &Turned)> {
        self.changes.iter().filter_map(|change| match change {
            Change::Mode(agent, mode, why) => Some((*agent, mode, why)),
            _ => None,
        })
    }
    /// Returns the modes of an agent, oldest first. `path` gives the commits of a path, newest first. An adoption counts as one
    /// change, to the mode that came with it.
    pub fn modes_along<'a>(path: impl Iterator<Item = &'a Self>, agent: Id) -> Vec<Name> {
        let mut modes: Vec<Name> = Vec::new();
        for commit in path {
            let changed: Vec<&Name> = commit
                .modes()
                .filter(|m| m.0 == agent)
                .map(|m| m.1)
                .collect();
            let adopted = commit.adoption.iter().flat_map(|adoption| &adoption.agents);
            let adopted = adopted.filter(|adopted| adopted.id == agent);
            let adopted =
                adopted
                    .flat_map(|adopted| &adopted.facts)
                    .filter_map(|fact| match fact {
                        AgentFact::Mode(mode) => Some(mode),
                        _ => None,
                    });
            let made = commit.made.iter().filter(|made| made.agent == agent);
            let made = made.filter_map(|made| made.mode.as_ref());
            let newest_first = changed.into_iter().rev().chain(adopted).chain(made);
            modes.extend(newest_first.cloned());
        }
        modes.reverse();
        modes.dedup();
        modes
    }
    /// Returns the mode that a call wanted for its caller.
    pub fn asked(&self, call: Id) -> Option<&Name> {
        self.changes.iter().find_map(|change| match change {
            Change::Asked(_, of, mode) if *of == call => Some(mode),
            _ => None,
        })
    }
    /// Returns the states that nets entered: agent and state, in order.
    pub fn states(&self) -> impl Iterator<Item = (Id, &Name)> {
        self.changes.iter().filter_map(|change| match change {
            Change::State(agent, state) => Some((*agent, state)),
            _ => None,
        })
    }
    /// Returns the boundaries that moved.
    pub fn watermarks(&self) -> impl Iterator<Item = &Watermark> {
        self.changes.iter().filter_map(|change| match change {
            Change::Watermark(mark) => Some(mark),
            _ => None,
        })
    }
    /// Returns the labels that changed.
    pub fn labels(&self) -> impl Iterator<Item = (&Name, Option<Body>)> {
        self.changes.iter().filter_map(|change| match change {
            Change::Label(name, body) => Some((name, *body)),
            _ => None,
        })
    }
    /// Returns the versions of artifacts that came in from outside.
    pub fn came(&self) -> impl Iterator<Item = &Artifact> {
        self.changes.iter().filter_map(|change| match change {
            Change::Artifact(artifact) => Some(artifact),
            _ => None,
        })
    }
    /// Returns the changes that hooks made.
    pub fn hooked(&self) -> impl Iterator<Item = &Hooked> {
        self.changes.iter().filter_map(|change| match change {
            Change::Hooked(hooked) => Some(hooked),
            _ => None,
        })
    }
    /// Returns all versions of artifacts that the commit names, those of its adoption included.
    pub fn artifacts(&self) -> impl Iterator<Item = &Artifact> {
        let made = self.pushes.iter().flat_map(|push| match &push.what {
            Interaction::Result(result) => &result.artifacts[..],
            _ => &[],
        });
        let adopted = self
            .adoption
            .iter()
            .flat_map(|adoption| &adoption.artifacts);
        made.chain(adopted).chain(self.came())
    }
}

/// A change that has no list of its own in a [`Commit`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The agent is in this mode now, for this reason.
    Mode(Id, Name, Turned),
    /// A boundary of rendering moved.
    Watermark(Watermark),
    /// A label as rendered. `None` removes it.
    Label(Name, Option<Body>),
    /// An artifact came in from outside, with a message or event that this commit takes ([`crate::view::artifact::came_with`]).
    Artifact(Artifact),
    /// The net of the agent is in this state now.
    State(Id, Name),
    /// A call (the second id) of an agent (the first) succeeded. It wants the agent in this mode when the exchange closes.
    Asked(Id, Id, Name),
    /// This many bytes were pushed onto the stack of an agent whose context may be compacted. The number is stored because the
    /// texts may be erased later.
    Grew(Id, u32),
    /// A hook changed a request or an answer.
    Hooked(Hooked),
}

/// The reason for a change of mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Turned {
    /// An exit of the mode that was in force: its number, counted from 1, and what made it fire.
    Exit(u32, Fired),
    /// An exit of all modes of the agent: its number, counted from 1, and what made it fire.
    Everywhere(u32, Fired),
    /// The tool of this call set the mode.
    Said(Id),
    /// The agent is back in the mode in which agents start: it ended by an exit to `finish`, or is entered fresh.
    Anew,
}

impl fmt::Display for Turned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(n, fired) => write!(f, "exit {n}, {fired}"),
            Self::Everywhere(n, fired) => write!(f, "exit {n} of all modes, {fired}"),
            Self::Said(call) => write!(f, "said by {call}"),
            Self::Anew => f.write_str("anew"),
        }
    }
}

impl fmt::Display for Fired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(call) => write!(f, "after {call}"),
            Self::Calls(calls) => write!(f, "after {calls} calls"),
            Self::Held => f.write_str("it holds"),
        }
    }
}

/// The cause that made an exit of a mode fire.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fired {
    /// This call succeeded.
    Call(Id),
    /// The mode had made this many model calls.
    Calls(u32),
    /// The expression of the exit held.
    Held,
}

/// The description of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// Only this agent and its descendants act on the branch. `None` means all agents.
    pub scope: Option<Id>,
    /// Effects that touch the world are answered from the recording or simulated.
    pub dry: bool,
    /// Name that people give the branch.
    pub label: Option<Name>,
    /// Number from 1 of this branch and number of siblings, if an agent forked it.
    pub of: Option<(u32, u32)>,
}

/// A change of a call that stays open. For example, the branches of a fork are known only when the fork begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallChange {
    /// The agent that made the call.
    pub agent: Id,
    /// The call that changed.
    pub call: Id,
    /// The change of the call.
    pub what: CallChanged,
}

/// The change that a [`CallChange`] records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallChanged {
    /// The fork begins: these branches are to be opened.
    Began(Vec<Id>),
    /// The branches ended, and the chooser is asked. The body is JSON: the end of each branch, with its last line.
    Ended(Body),
    /// The branch that is to be adopted, up to the line at which its end was reported.
    Chose(Id, Line),
    /// For a wait: this part of it is over, with this result (JSON). `None` means that it can no longer be met.
    Met(u32, Option<Body>),
    /// For a call of a tool: a person changed its arguments and so approved it.
    Edited {
        /// The person who changed them.
        by: By,
        /// The role that was to approve the call. Another role may have answered in its place.
        approver: Name,
    },
    /// For a wait: the key (JSON) of an event part, as it was when the wait opened. Recorded only if the key depends on more
    /// than the call's arguments, which never change.
    Awaits(u32, Body),
}

/// An offer that was taken. Its text is usually in an interaction that was pushed. The hash of the line covers that text, so an
/// admission has no digest of it: a digest would stay in the line when the text is erased.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// Kind of the offer.
    pub kind: Admitted,
    /// The effect, branch or call that the offer names.
    pub id: Option<Id>,
    /// For a message or event: its id from outside, which is accepted once.
    pub message: Option<Name>,
    /// For a cancel or an edit: the person. The sender of a message is in its interaction, and the person who answered a question
    /// is in the result.
    pub by: Option<By>,
    /// The text of the offer, if no pushed interaction holds it.
    pub body: Option<Body>,
}

/// Kinds of admissions.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Admitted {
    /// A branch begins: a person or an agent forked it.
    Opened,
    /// A branch begins: a person rewound the session.
    Rewound,
    /// A branch is adopted.
    Adopted,
    /// An effect ended.
    Outcome,
    /// A person edited state, or approved a call with other arguments. Without a change of the call: a person approved it, or its
    /// time to approve came, but what it reads had changed since the question, so it is asked for again.
    Edited,
    /// Time passed: a state entry expired, or a limit of time was reached.
    Clock,
    /// Branches that were waited for ended.
    Ended,
    /// A person joins branches.
    Join,
    /// A message that cancels the open exchange.
    Interrupt,
    /// Something was cancelled.
    Cancel,
    /// A message came in from outside or from an agent.
    Message,
    /// The session starts with arguments, or without a message.
    Start,
    /// The binding changed: a person bound new values of `config`, MCP servers changed their tools, or a person bound the
    /// session to another definition. In the last two cases the body says in words what changed. The commit holds the binding.
    Rebound,
}

/// An agent was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// Id of the new agent.
    pub agent: Id,
    /// Name of the agent in the definition.
    pub def: Name,
    /// Kind of the agent, stored because the fold has no network.
    pub kind: Kind,
    /// The agent that started it; `None` for the root.
    pub parent: Option<Id>,
    /// The instance name that its caller gave (`named: true`).
    pub named: Option<Name>,
    /// First mode of the agent.
    pub mode: Option<Name>,
    /// Defaults of the state that the agent declares.
    pub state: Vec<Write>,
}

/// The kind of an agent: it says what chooses the agent's next step.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A model chooses the next step.
    Model,
    /// A router chooses the next step.
    Routed,
}

/// One interaction pushed onto a stack. The pushes of an agent are chained by `prev`; the chain is the stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Push {
    /// The agent whose stack it is.
    pub agent: Id,
    /// The line of the agent's push before this one; `Line::NONE` at the bottom.
    pub prev: Line,
    /// The interaction that was pushed.
    pub what: Interaction,
}

/// An effect that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wished {
    /// Id of the effect and idempotency key, the same for every attempt.
    pub id: Id,
    /// The agent that the effect is for.
    pub agent: Id,
    /// The purpose of the effect.
    pub what: Want,
    /// The arguments, if they differ from those of the call: edited by a person, fixed by the definition, or defaults.
    pub args: Option<Body>,
    /// For a model or tool: the earliest moment at which it may begin. For a wait or a question: the moment at which it ends.
    pub due: Option<Time>,
}

/// The purpose of an effect.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Want {
    /// The agent's own next step: of its model, its router, or its net in Rust. An agent has at most one such effect.
    Step,
    /// The work of this call of the agent.
    Call(Id),
}

impl Want {
    /// Returns the call that the effect is for, if it is for a call.
    pub fn call(self) -> Option<Id> {
        match self {
            Self::Step => None,
            Self::Call(call) => Some(call),
        }
    }
}

/// A boundary of what is rendered for a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watermark {
    /// The agent whose context it is.
    pub agent: Id,
    /// Name of the policy (`keep_exchanges`, `compact`, `horizon/TOOL`).
    pub policy: Name,
    /// Number of exchanges before the boundary, counted as the policy counts them.
    pub exchanges: u32,
}

/// Cost, tokens and times of one model call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The model call. `None` only in a default value.
    pub effect: Option<Id>,
    /// Provider and model as resolved, `openai/gpt-5-mini`.
    pub model: Option<Name>,
    /// The model that the server says it used, in its own words. `None` if it does not say.
    pub served: Option<Name>,
    /// Number of input tokens, including those that were cached.
    pub input: u64,
    /// Input tokens that the provider had cached.
    pub cached: u64,
    /// Input tokens that the provider wrote to its cache because it was asked to.
    pub cache_write: u64,
    /// Number of output tokens.
    pub output: u64,
    /// Output tokens that were spent on reasoning, if the provider counts them.
    pub reasoning: u64,
    /// Price in millionths of the price table's currency, if known.
    pub micros: Option<u64>,
    /// Digest of the neutral request.
    pub request: Option<Digest>,
    /// Version of the renderer that made the request.
    pub render: u16,
    /// Bytes, from the start, that the request shares with the agent's previous request. 0 if that went to another model.
    pub prefix: u64,
    /// The part that broke the shared prefix (`system`, `tools`, `history`, `now`). `None` means that nothing did.
    pub broke: Option<Name>,
    /// The reason for which the answer ended, in the words of the provider: `stop`, `length`, `tool_use`.
    pub finish: Option<Name>,
    /// Milliseconds from the start of the successful attempt to the end of its answer.
    pub took: u64,
    /// Milliseconds from the start of the attempt to the first streamed piece. `None` if nothing was streamed.
    pub first: Option<u64>,
}

impl Usage {
    /// Returns the sum of input and output tokens. It saturates, because a server may report any numbers.
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// The definition, values and versions that the commits after it run under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Digest of the compiled definition with its bound values.
    pub digest: Digest,
    /// Hash of the stored source of the definition (a blob).
    pub source: [u8; 32],
    /// Name of the network, shown in lists.
    pub network: Name,
    /// The agent that begins the session.
    pub entry: Name,
    /// JSON of resolved models, `config` values and seed.
    pub values: Body,
    /// Version of the machine.
    pub machine: u16,
}

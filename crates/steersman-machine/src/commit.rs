//! Commits and lines: what a session's log holds. **Stored**: within a version of the form of lines an enum may grow at
//! its end and nothing else may change; a struct that gets a field is a new version, see [`crate::codec`]. So whatever
//! may come to be more is an enum, or a list of one.

mod adoption;
mod hold;
mod own;
mod recorded;

pub use adoption::{
    AdoptedAgent, AdoptedCall, AdoptedCell, Adoption, AgentFact, CallFact, CellFact, Counter,
    DraftStands, Period,
};
pub use hold::{Hold, Release, Why};
pub use recorded::Recorded;

pub use own::{Probing, Reaching};

use crate::ids::{Body, Digest, Id, Line, Name, Time};
use crate::interaction::{Artifact, Class, Doubtful, Interaction, Write};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// One row of the log: at most one commit and the ledger entries that go with it.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// Its number.
    pub n: Line,
    /// The line before on its branch (of a branch's first line: the one that was forked): what its hash covers.
    pub prev: Line,
    /// The branch it belongs to (of a ledger-only line: the one it is about, else the current one).
    pub branch: Id,
    /// What the tick did.
    pub commit: Option<Commit>,
    /// What happened in the world; never rewound.
    pub ledger: Vec<LedgerEntry>,
    /// The texts that came in with this line; [`Body`] n.k is the k-th of line n.
    pub bodies: Vec<Text>,
}

/// A text, or what is left of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Text {
    /// The text itself.
    Here(Arc<str>),
    /// In the blob store under this hash; for texts over 16 KiB.
    Blob {
        /// blake3 of the text.
        hash: [u8; 32],
        /// Its length in bytes.
        len: u64,
    },
    /// Erased. Its salted hash stays in the line's hash, so the chain still verifies.
    Erased {
        /// Salted blake3 of what was here.
        hash: [u8; 32],
    },
}

/// What one tick did to one branch. Immutable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    /// The commit before on this branch (of a first commit: the one that was forked).
    pub parent: Line,
    /// Of a first commit: what the branch is.
    pub opening: Option<Opening>,
    /// Of an adopting commit: the second parent and what came from it.
    pub adoption: Option<Adoption>,
    /// The recorded time of this tick.
    pub now: Time,
    /// What was taken, in order.
    pub admitted: Vec<Admission>,
    /// State edits by a person, and entries that expired. They take effect before the pushes.
    pub edits: Vec<Write>,
    /// Agents that were made.
    pub made: Vec<Made>,
    /// What was pushed, in the order in which it was made.
    pub pushes: Vec<Push>,
    /// What became of calls that stay open: forks that began, branches that were chosen, parts of waits that are over.
    pub branching: Vec<Branching>,
    /// Effects that are wanted from the outside.
    pub wished: Vec<Wished>,
    /// What else changed, in this order.
    pub changes: Vec<Change>,
    /// What the model calls admitted here cost and saw.
    pub usage: Vec<Usage>,
    /// What the commits from here on run under.
    pub binding: Option<Binding>,
}

impl Commit {
    /// Modes that changed: agent and mode.
    pub fn modes(&self) -> impl Iterator<Item = (Id, &Name)> {
        self.changes.iter().filter_map(|change| match change {
            Change::Mode(agent, mode) => Some((*agent, mode)),
            _ => None,
        })
    }
    /// Modes that changed, in order: agent, mode and why.
    pub fn turns(&self) -> impl Iterator<Item = (Id, &Name, Option<&Turned>)> {
        let changes = self.changes.iter().enumerate();
        changes.filter_map(|(at, change)| match (change, self.changes.get(at + 1)) {
            (Change::Mode(agent, mode), Some(Change::Turned(same, why))) if same == agent => {
                Some((*agent, mode, Some(why)))
            }
            (Change::Mode(agent, mode), _) => Some((*agent, mode, None)),
            _ => None,
        })
    }
    /// The modes in which an agent was, oldest first, from the commits of a path, newest first. An adoption counts as one
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
    /// The mode that a call wanted for whoever called it.
    pub fn asked(&self, call: Id) -> Option<&Name> {
        self.changes.iter().find_map(|change| match change {
            Change::Asked(_, of, mode) if *of == call => Some(mode),
            _ => None,
        })
    }
    /// States that nets entered: agent and state, in order.
    pub fn states(&self) -> impl Iterator<Item = (Id, &Name)> {
        self.changes.iter().filter_map(|change| match change {
            Change::State(agent, state) => Some((*agent, state)),
            _ => None,
        })
    }
    /// Boundaries that moved.
    pub fn watermarks(&self) -> impl Iterator<Item = &Watermark> {
        self.changes.iter().filter_map(|change| match change {
            Change::Watermark(mark) => Some(mark),
            _ => None,
        })
    }
    /// Labels that changed.
    pub fn labels(&self) -> impl Iterator<Item = (&Name, Option<Body>)> {
        self.changes.iter().filter_map(|change| match change {
            Change::Label(name, body) => Some((name, *body)),
            _ => None,
        })
    }
    /// Versions of artifacts that came in from outside.
    pub fn came(&self) -> impl Iterator<Item = &Artifact> {
        self.changes.iter().filter_map(|change| match change {
            Change::Artifact(artifact) => Some(artifact),
            _ => None,
        })
    }
    /// All versions of artifacts that it names, those of its adoption included.
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

/// What a commit changed beside stacks, calls and state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// This agent is in that mode now.
    Mode(Id, Name),
    /// A boundary of pruning, compaction or spilling moved.
    Watermark(Watermark),
    /// A label, as rendered; none removes it.
    Label(Name, Option<Body>),
    /// A content came in from outside, with a message or an event that this commit takes ([`crate::artifact::came_with`]).
    Artifact(Artifact),
    /// The net of this agent is in that state now.
    State(Id, Name),
    /// Why the mode of this agent changed: follows its [`Change::Mode`].
    Turned(Id, Turned),
    /// A call of this agent that succeeded wants it to be in that mode when the exchange closes.
    Asked(Id, Id, Name),
    /// So many bytes were pushed onto the stack of an agent whose context may be compacted. It is said here, and not found in the
    /// texts: these may be erased.
    Grew(Id, u32),
}

/// Why a mode changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Turned {
    /// An exit of the mode that was in force: its number, counted from 1, and what made it fire.
    Exit(u32, Fired),
    /// An exit that leads out of every mode of the agent.
    Everywhere(u32, Fired),
    /// A tool said so: the call.
    Said(Id),
    /// What comes next begins where an agent starts: it ended by an exit to `finish`, or is entered fresh.
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

/// What made an exit of a mode fire.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fired {
    /// This call succeeded.
    Call(Id),
    /// So many model calls had been made since the mode began.
    Calls(u32),
    /// Its expression held.
    Held,
}

/// What a branch is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// Only this agent and its descendants act here; none: everybody.
    pub scope: Option<Id>,
    /// Effects that touch the world are answered from the recording or simulated.
    pub dry: bool,
    /// What people call the branch.
    pub label: Option<Name>,
    /// Index and number of siblings, from 1, where an agent forked.
    pub of: Option<(u32, u32)>,
}

/// What became of a call while it is open. The branches of a fork are known when it begins, not when it is pushed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branching {
    /// Whose call.
    pub agent: Id,
    /// Which.
    pub call: Id,
    /// What.
    pub what: Branched,
}

/// See [`Branching`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Branched {
    /// It begins: these branches are to be opened.
    Began(Vec<Id>),
    /// They ended, and somebody chooses: JSON of what became of each, with its last line.
    Ended(Body),
    /// This one of them is to be adopted, as it stood at the line where its end was told.
    Chose(Id, Line),
    /// Not of branches: this part of a wait is over, and this came of it (JSON); none: nothing can come of it.
    Met(u32, Option<Body>),
    /// Not of branches: who was to approve it gave other arguments, and approved these.
    Edited(Name),
    /// Not of branches: the key (JSON) of a part of a wait that is for an event, as it was when the wait opened. Only
    /// where it hangs on more than the call's arguments: those never change.
    Awaits(u32, Body),
}

/// Something that was taken. Its body lies in what was pushed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// What it was.
    pub kind: Admitted,
    /// The effect, branch or call that it names.
    pub id: Option<Id>,
    /// Of a message or event: its id from outside, accepted once.
    pub message: Option<Name>,
    /// Digest of what was admitted.
    pub digest: Digest,
    /// Its text where nothing that was pushed holds it.
    pub body: Option<Body>,
}

/// Kinds of admissions, in the order in which a tick takes them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Admitted {
    /// A branch begins, forked or by an agent's fork.
    Opened,
    /// A rewind begins.
    Rewound,
    /// A branch is adopted.
    Adopted,
    /// An effect ended.
    Outcome,
    /// A person approved a call with other arguments.
    Edited,
    /// Time passed: something expired.
    Clock,
    /// Branches that were waited for ended.
    Ended,
    /// A person joins branches.
    Join,
    /// A message that cancels what is open.
    Interrupt,
    /// A cancel.
    Cancel,
    /// A message.
    Message,
    /// The session starts by an event or call with arguments.
    Start,
    /// A person bound values of `config` anew; or, with what changed in words as its body, MCP servers changed their tools
    /// or a person bound the session to another definition. What the commit says of it is its binding.
    Rebound,
}

/// An agent was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// Its id.
    pub agent: Id,
    /// Its name in the definition.
    pub def: Name,
    /// Its kind, stored because the fold has no network.
    pub kind: Kind,
    /// Who started it; none for the root.
    pub parent: Option<Id>,
    /// The name its caller gave it (`named: true`).
    pub named: Option<Name>,
    /// Its first mode.
    pub mode: Option<Name>,
    /// Defaults of the state it declares.
    pub state: Vec<Write>,
}

/// Who chooses an agent's next step.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A model.
    Model,
    /// A router.
    Routed,
}

/// One push. `prev` is the line of this agent's push before: the chain is the stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Push {
    /// Whose stack.
    pub agent: Id,
    /// The line of the push below it; `Line::NONE` at the bottom.
    pub prev: Line,
    /// What was pushed.
    pub what: Interaction,
}

/// An effect is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wished {
    /// Its id: the idempotency key, the same for every attempt.
    pub id: Id,
    /// Whose it is.
    pub agent: Id,
    /// What is wanted.
    pub what: Want,
    /// The arguments, where a person edited them.
    pub args: Option<Body>,
    /// Before this moment it is not to begin (a retry that waits long), or when a wait ends.
    pub due: Option<Time>,
}

/// What an effect is wanted for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Want {
    /// The agent's own next step: of its model, of its router, or of its net in Rust. It owes one of these at most.
    Step,
    /// What this call of the agent asks for.
    Call(Id),
}

impl Want {
    /// The call that it is for, if it is for one.
    pub fn call(self) -> Option<Id> {
        match self {
            Self::Step => None,
            Self::Call(call) => Some(call),
        }
    }
}

/// A boundary that rendering keeps to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watermark {
    /// Whose context.
    pub agent: Id,
    /// Which policy (`keep_exchanges`, `compact`, `spill`).
    pub policy: Name,
    /// Exchanges of this agent that lie before the boundary.
    pub exchanges: u32,
}

/// What one model call cost and saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The model call; none only in a default value.
    pub effect: Option<Id>,
    /// Provider and model as resolved, `openai/gpt-5-mini`.
    pub model: Option<Name>,
    /// Tokens in, all.
    pub input: u64,
    /// Tokens in that the provider had cached.
    pub cached: u64,
    /// Tokens out.
    pub output: u64,
    /// Price in millionths of the price table's currency, if known.
    pub micros: Option<u64>,
    /// Digest of the neutral request.
    pub request: Option<Digest>,
    /// Version of the renderer that made it.
    pub render: u16,
    /// Bytes that it shares with this agent's call before, from the start.
    pub prefix: u64,
    /// The part that broke the prefix (`system`, `tools`, `history`, `now`); none if nothing did.
    pub broke: Option<Name>,
}

impl Usage {
    /// Tokens in and out. What a server claims is no reason to overflow: it stays at the greatest number.
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// What the commits after it run under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Digest of the compiled definition with its bound values.
    pub digest: Digest,
    /// Hash of the stored definition source (a blob).
    pub source: [u8; 32],
    /// Name of the network, for lists.
    pub network: Name,
    /// The agent that talks first.
    pub entry: Name,
    /// JSON: resolved models, `config` values, seed.
    pub values: Body,
    /// Version of the machine.
    pub machine: u16,
}

/// Entries about the world. No branch owns them and nothing rewinds them. Append-only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LedgerEntry {
    /// A new owner; its random mark, and the first line number it may use.
    Claimed {
        /// Grows by one with each owner.
        epoch: u64,
        /// Random; makes ids unique after a restored backup.
        mark: u64,
    },
    /// An inbox message was accepted.
    Accepted(Name),
    /// The owner drew this much ahead of use.
    Escrow {
        /// Tokens.
        tokens: u64,
        /// Millionths of the currency.
        micros: u64,
    },
    /// A model call was paid.
    Spend {
        /// Which.
        effect: Id,
        /// Tokens, in and out.
        tokens: u64,
        /// Millionths of the currency.
        micros: u64,
    },
    /// The open slice of an earlier owner became spent: this much of it was not shown settled by the log.
    Settle {
        /// Tokens.
        tokens: u64,
        /// Millionths of the currency.
        micros: u64,
    },
    /// Something keeps an effect from running or from closing.
    Hold(Hold),
    /// A hold ended.
    Released {
        /// Of this effect.
        effect: Id,
        /// Which kind of hold.
        why: Why,
        /// How it ended.
        how: Release,
        /// What the hold was about: the parameter that was asked for (`input`), as in [`Hold::about`].
        about: Option<Name>,
        /// Who answered: a role, `probe`, `rule`, `timeout`, `place` (one that answers again).
        by: Name,
        /// The reason, edited arguments or sealed value, if any.
        body: Option<Body>,
    },
    /// An attempt may begin from here on.
    Started {
        /// Of this effect.
        effect: Id,
        /// From 1.
        attempt: u32,
        /// By this owner.
        epoch: u64,
        /// The repeat guard's key: digest of tool name and arguments.
        digest: Digest,
        /// The class that the tool had then: whatever it is called later, that is how the attempt is judged.
        class: Class,
    },
    /// It happened.
    Done {
        /// The effect.
        effect: Id,
        /// The attempt.
        attempt: u32,
        /// The mapped outcome as JSON, where no commit of this line admits it.
        kept: Option<Body>,
    },
    /// It is proved not to have happened.
    NotPerformed {
        /// The effect.
        effect: Id,
        /// The attempt.
        attempt: u32,
    },
    /// Nobody knows whether it happened.
    Unknown {
        /// The effect.
        effect: Id,
        /// The attempt.
        attempt: u32,
    },
    /// An outcome came after its doubt was resolved, or of an effect that the log does not hold.
    Late {
        /// The effect.
        effect: Id,
        /// The attempt.
        attempt: u32,
        /// What it said.
        body: Option<Body>,
    },
    /// Another attempt is due then (a long Retry-After).
    Again {
        /// The effect.
        effect: Id,
        /// When.
        at: Time,
    },
    /// A branch was opened. Its first line may come later.
    Opened {
        /// The branch.
        branch: Id,
        /// The branch that was forked.
        from: Id,
        /// The commit of that branch at which it was forked.
        at: Line,
    },
    /// The top agent of its scope rests, or it came to a leaf.
    Ended(Id),
    /// No more ticks for this branch after that line.
    Superseded {
        /// The branch.
        branch: Id,
        /// Its last line that counts.
        after: Line,
    },
    /// What names no branch goes here from now on.
    Current(Id),
    /// A branch was adopted up to a line.
    Adopted {
        /// The branch.
        branch: Id,
        /// Up to here.
        at: Line,
    },
    /// An effect of an abandoned future, shown to whoever rewinds.
    Listed(Id),
    /// Dry mode would have asked for this approval.
    WouldAsk(Id),
    /// A person paused (true) or resumed the session.
    Paused(bool),
    /// A person keeps effects of a tool from beginning (true), or lets them begin again: a standing order over all
    /// branches, until it is taken back.
    Barred {
        /// The tool; none: every tool that is `idempotent` or `unsafe`.
        tool: Option<Name>,
        /// Whether it is kept.
        barred: bool,
        /// Who ordered it.
        by: Name,
    },
    /// What an inbox message wanted was refused. So whoever put it there from another process learns why.
    Refused {
        /// The message.
        message: Name,
        /// Why, in words for people.
        why: Body,
    },
    /// A person is told that something waits for them: the tool of their `reach`, once for each whom it waits for.
    Reach {
        /// Its id, made by the first of these lines: the key of every attempt.
        effect: Id,
        /// The question or held effect that waits.
        of: Id,
        /// The person, as in [`Hold::by`].
        by: Name,
        /// How far it came.
        what: Reaching,
    },
    /// Something of a search over branches ([`crate::search`]).
    Search {
        /// Which: of an agent's the effect by which it was to answer, of a person's the branch at whose first commit it begins.
        search: Id,
        /// What.
        what: Searching,
    },
    /// A person accepted the store that this session lies in, so that it may be driven. What happened outside and is in no
    /// line of this log is not known to it.
    StoreAccepted {
        /// When.
        at: Time,
        /// What was the matter with the store.
        was: Doubtful,
    },
    /// A tool is asked whether an effect in doubt happened. It is an effect of its own, of class `read`: it changes nothing
    /// outside, so the next owner begins it again.
    Probe {
        /// Its id, made by the first of these lines: the key of every attempt.
        effect: Id,
        /// The effect in doubt.
        of: Id,
        /// How far it came.
        what: Probing,
    },
    /// The session that this one reruns did an effect, or may have: the repeat guard knows it here, too.
    Recorded {
        /// The effect, by its id there.
        effect: Id,
        /// The line there that says how it stands.
        at: Line,
        /// Of tool name and arguments.
        digest: Digest,
        /// The class that its tool had.
        class: Class,
        /// How it stands.
        how: Recorded,
    },
    /// Since then the place of a model does not answer, and a call of it is held: the hold of this line names the place.
    Outage {
        /// The call.
        effect: Id,
        /// Since when it waits.
        since: Time,
    },
    /// More than is left of a limit of the session: so much is asked for with a hold, or was granted. Of what is not limited,
    /// or not short, nothing.
    More {
        /// The call that may cost so much.
        effect: Id,
        /// Tokens.
        tokens: u64,
        /// Millionths of the currency.
        micros: u64,
        /// Whether somebody granted it.
        granted: bool,
    },
    /// A provider told numbers for a call that cannot be. The bound of the call stands in its usage and counts as spent.
    Unbelievable {
        /// The call.
        effect: Id,
        /// Tokens in, as told.
        input: u64,
        /// Tokens out, as told.
        output: u64,
        /// Millionths of the currency, as told.
        micros: Option<u64>,
    },
}

/// What became of a search over branches. The tree follows from these entries and the branches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Searching {
    /// It begins, at a commit that is the root of its tree.
    Began {
        /// The agent that answers by it; none: a person wants it.
        agent: Option<Id>,
        /// The branch of the root.
        branch: Id,
        /// The commit; none: that of this line.
        at: Line,
        /// JSON of the plan ([`crate::search::Plan`]), with the seed that it has.
        plan: Body,
    },
    /// A branch is opened to be tried.
    Tried {
        /// The branch.
        branch: Id,
        /// Its number, from 1: the same whenever the same is searched.
        number: u32,
    },
    /// A branch is opened on which an agent judges where another one stands.
    Judged {
        /// The branch.
        branch: Id,
        /// The branch that is judged.
        of: Id,
        /// At this commit of it.
        at: Line,
    },
    /// A branch stands at the end of a block: a node of the tree.
    Stood {
        /// The branch.
        branch: Id,
        /// Its commit.
        at: Line,
        /// It came to its end there.
        over: bool,
        /// Model calls of the block.
        calls: u64,
        /// Tokens of the block.
        tokens: u64,
        /// Money of the block, in millionths of the currency.
        micros: u64,
    },
    /// A node was judged.
    Scored {
        /// Its branch.
        branch: Id,
        /// Its commit.
        at: Line,
        /// What it is worth: a JSON number; none: what came of judging it could not be used.
        value: Option<Name>,
        /// Why it could not.
        why: Option<Body>,
    },
    /// It is over.
    Over {
        /// The branch that is worth most, up to this commit; none: there is none.
        winner: Option<(Id, Line)>,
        /// Why: `done`, `enough`, `budget`, `session_tokens`, `session_cost`, `stopped`, `cancelled`.
        why: Name,
    },
    /// The agent that answers by it cannot take over what was found, for this reason: it answers without. Of a search that a
    /// person wanted: nothing was found, for this reason.
    Without(Body),
}

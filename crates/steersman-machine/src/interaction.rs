//! The seven interactions that lie on stacks, and their parts. **Stored**: enums are append-only.
//!
//! Stored forms name things and never index them, so a log can be read without its definition.

use crate::extract::is_extraction;
use crate::fold::{is_ahead, is_more};
use crate::ids::{Body, Id, Line, Name};
use crate::reflect::is_review;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One typed, immutable entry of a stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Interaction {
    /// Something said to the agent: by a person, its caller, another agent or the engine.
    UserMessage {
        /// Who said it.
        from: Origin,
        /// What was said; for a call the JSON of its arguments.
        body: Body,
    },
    /// What the model answered. Its calls follow as `Call`s.
    AssistantMessage {
        /// The model call that answered.
        effect: Id,
        /// Its text; none if it only called.
        text: Option<Body>,
        /// JSON that the provider wants back as it was (reasoning with signatures, order of blocks); none if text and calls say it all.
        opaque: Option<Body>,
        /// Cut off by a cancel or an interrupt: what had been shown until then.
        partial: bool,
    },
    /// A call was opened. It closes with exactly one [`CallResult`].
    Call(Call),
    /// A call was closed.
    Result(CallResult),
    /// A routed agent decided, or its decision was refused.
    Route(Route),
    /// A summary, made by a model; never an instruction.
    Summary(Summary),
    /// A turn or a task ended.
    Finished {
        /// Draft, turn or task.
        end: End,
        /// Why.
        cause: Cause,
        /// The answer, or what went wrong.
        body: Option<Body>,
        /// Code of a failure or of the limit that was reached (`provider_overloaded`, `model_calls`).
        code: Option<Name>,
        /// State writes, where no caller's result can carry them.
        writes: Vec<Write>,
    },
}

impl Interaction {
    /// The texts of it that its agent's model may be shown.
    pub(crate) fn shown(&self) -> impl Iterator<Item = Body> {
        let parts = match self {
            Self::UserMessage { body, .. } => [Some(*body), None],
            Self::AssistantMessage { text, opaque, .. } => [*text, *opaque],
            Self::Call(call) => [Some(call.args), None],
            Self::Result(result) => [result.body, None],
            Self::Summary(summary) if !summary.covers.is_nothing() => [Some(summary.body), None],
            Self::Summary(_) | Self::Route(_) | Self::Finished { .. } => [None, None],
        };
        parts.into_iter().flatten()
    }
}

/// A summary and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The effect that made it.
    pub effect: Id,
    /// The policy that wanted it, as in [`crate::commit::Watermark::policy`].
    pub policy: Name,
    /// What it stands for; of two equal ends nothing: then nobody could write it.
    pub covers: Covers,
    /// Its text, or why there is none.
    pub body: Body,
}

/// What a summary stands for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Covers {
    /// Of the agent on whose stack it lies the exchanges from this one to before that one, counted as
    /// [`crate::commit::Watermark`]s are; a summary among them is part of it.
    Exchanges(u32, u32),
    /// What came about in the agent's scope, its own stack and those of all that it started, behind the first of these
    /// lines and up to the second.
    Scope(Line, Line),
}

impl Covers {
    /// It stands for nothing: nobody could write it, and its text says why.
    pub fn is_nothing(self) -> bool {
        match self {
            Self::Exchanges(from, to) => from == to,
            Self::Scope(from, to) => from == to,
        }
    }
}

/// Who a `UserMessage` is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// A person or program outside; their role if it is not the user.
    Outside(Option<Name>),
    /// The parent, by this call.
    Call(Id),
    /// Another agent, by the tool `send`.
    Agent(Id),
    /// Handed back unanswered by an agent that released the floor.
    Released(Id),
    /// The router.
    Route,
    /// The engine, after a finished task.
    Continuation,
    /// The engine: the model's answer could not be used.
    Correction,
    /// The engine: a limit was reached and an answer is wanted now.
    Limit,
    /// The engine or a reviewer: the draft is to be judged or revised.
    Review,
    /// The net: enough was thought, an answer is wanted now, with tools off.
    Conclude,
    /// A net in Rust: what its next state wants of the model.
    Net,
    /// The engine: the agent is to judge what it made. Successor of [`Origin::Review`].
    Reflect {
        /// The draft, by the model call that gave it; or the call whose result is judged.
        of: Id,
        /// The tool that was called; none: a draft of the answer.
        tool: Option<Name>,
    },
}

/// A wish to do something, under an id that its result will name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Ours; also the id of its first effect.
    pub id: Id,
    /// The definition's name of the tool or agent, or what the model invented.
    pub name: Name,
    /// The name under which the model saw it, where that is another (`as`).
    pub seen: Option<Name>,
    /// What it resolved to.
    pub target: Target,
    /// The provider's id of the call: data, never identity.
    pub label: Option<Name>,
    /// JSON object, as the model gave it (or the engine made it).
    pub args: Body,
    /// The call that began the chain (`then:`, the follow-up of a wait), if this one follows.
    pub chain: Option<Id>,
    /// Which of its agent's calls it is.
    pub number: Number,
}

/// Which of its agent's calls a call is, over the agent's life: `3`, and `3_1` of the first that follows in its chain.
///
/// Ids hold the number of a line, which an owner that takes a session over shifts by what it writes itself. So whatever a
/// model reads names calls by this number, and never by an id.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Number {
    /// From 1; of what follows in a chain that of the call which began it.
    pub call: u32,
    /// 0, and from 1 the place behind that call.
    pub step: u32,
}

impl Number {
    /// Of the call that follows in the chain.
    pub fn next_step(self) -> Self {
        Self {
            step: self.step + 1,
            ..self
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            0 => write!(f, "{}", self.call),
            step => write!(f, "{}_{step}", self.call),
        }
    }
}

impl Call {
    /// What stands for the provider's id of a call where no provider gave one, or gave one twice.
    pub fn own_label(&self) -> String {
        format!("call.{}", self.number)
    }

    /// Whether the engine made it for itself: to judge, to fill state, ahead of a turn, at a limit, behind another call.
    pub fn is_of_engine(&self) -> bool {
        let beside = is_review(self)
            || is_extraction(&self.name)
            || is_ahead(self)
            || is_more(&self.name)
            || self.chain.is_some();
        // What a provider numbered was called by its model, whatever it named.
        beside && self.label.is_none()
    }
}

/// The calls that a model made with its answer, of what its agent pushed in the same line right behind that answer: there the
/// engine may have called something, too.
pub fn calls_of_answer<'a>(
    behind: impl IntoIterator<Item = &'a Interaction>,
) -> impl Iterator<Item = &'a Call> {
    let calls = behind.into_iter().map_while(|pushed| match pushed {
        Interaction::Call(call) => Some(call),
        _ => None,
    });
    calls.take_while(|call| !call.is_of_engine())
}

/// What a call is addressed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// A tool, with its effect class when it was called.
    Tool(Class),
    /// An agent: this instance, child of the caller.
    Agent(Id),
    /// A person (`user` or a declared one), by name.
    Person(Name),
    /// An event, a time, a predicate.
    Wait,
    /// Branches: of a `fork`, or of a person's join. Empty until the fork begins.
    Branches(Vec<Id>),
    /// Nothing of that name is offered here.
    Unknown,
}

/// Effect class of a tool: what may happen if it is run again.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Class {
    /// Depends on nothing outside, changes nothing outside.
    Pure,
    /// Changes nothing outside.
    Read,
    /// May be repeated under the same key.
    Idempotent,
    /// Must not be repeated when nobody knows whether it happened.
    Unsafe,
}

/// Why a store was not driven before a person accepted it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Doubtful {
    /// It is a copy, was moved, or was restored from a backup.
    Copied,
    /// It lost lines that it had acknowledged.
    Lost,
}

impl Class {
    /// Whether running it twice harms nobody, so that it may run ahead of the disk and be asked again.
    pub fn is_free(self) -> bool {
        matches!(self, Self::Pure | Self::Read)
    }
    /// The word of the definition format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Read => "read",
            Self::Idempotent => "idempotent",
            Self::Unsafe => "unsafe",
        }
    }
}

/// How a call closed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// Which call.
    pub call: Id,
    /// How it ended.
    pub how: How,
    /// What the model sees.
    pub body: Option<Body>,
    /// Code of `on_error` (`refused`, `http_404`), if it did not end well.
    pub code: Option<Name>,
    /// State writes; they take effect when the exchange closes.
    pub writes: Vec<Write>,
    /// Versions of artifacts that it added; they take effect with the writes.
    pub artifacts: Vec<Artifact>,
    /// Who answered or decided, if a person did.
    pub by: Option<Name>,
}

/// The ends of a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum How {
    /// A tool, person or wait gave a result.
    Done,
    /// Dry mode answered in the tool's place.
    Simulated,
    /// It failed, and is known not to have had its effect, or has none.
    Failed,
    /// Not run: precondition, approval, schema, unknown name.
    Refused,
    /// Cancelled before it began, or harmless to cut.
    Cancelled,
    /// It may have happened.
    Unknown,
    /// It was open where this branch began.
    NotInThisBranch,
    /// A called agent ended its task.
    Finished,
    /// A called agent gave the floor back.
    Released,
    /// A limit ended it.
    Limit,
    /// A wait or question ran out of time.
    Expired,
    /// The same effect was done elsewhere in this session; its recorded result.
    DoneBefore,
}

impl How {
    /// Whether it counts in `calls.NAME.ok`.
    pub fn is_ok(self) -> bool {
        matches!(
            self,
            Self::Done | Self::Simulated | Self::Finished | Self::Released
        )
    }
}

/// One write of a state entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// The agent instance whose scope declares the entry.
    pub scope: Id,
    /// The entry.
    pub name: Name,
    /// JSON of the new value, or of what is joined to the old; none unsets.
    pub value: Option<Body>,
    /// How it meets the old value.
    pub reduce: Reduce,
    /// Becomes unset this many milliseconds after the commit in which it takes effect.
    pub expires: Option<u64>,
}

/// A new version of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The agent instance in whose scope it lies: names resolve outward from an agent, as those of state do.
    pub scope: Id,
    /// The call that made it; of what came in from outside [`crate::artifact::came_with`] what was said.
    pub call: Id,
    /// Its name.
    pub name: Name,
    /// Media type.
    pub media: Name,
    /// blake3 of its content, which is a blob.
    pub hash: [u8; 32],
    /// Bytes.
    pub len: u64,
}

/// How several writes of one entry come together.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reduce {
    /// The later one wins.
    #[default]
    Last,
    /// A list is joined, anything else becomes its last element.
    Append,
    /// Numbers are added.
    Sum,
    /// The larger one stays.
    Max,
    /// Objects are merged, the later field wins.
    Merge,
}

/// A decision of a routed agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Route {
    /// The model call that answered, if a model decided.
    pub effect: Option<Id>,
    /// What comes next.
    pub chosen: Choice,
    /// Why it was not taken; the router tries again or falls back.
    pub refused: Option<Body>,
    /// State that the choice unsets.
    pub clear: Vec<Write>,
    /// JSON of the values that led to it, by path; beside them what the router went by: `rule` and `exit` (numbers from 1),
    /// of a judge `statement`, of a model `reason` and `offered`, of a speaker `turn`, and who `failed` or `expired`.
    pub read: Option<Body>,
}

/// What a router chose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Choice {
    /// These members, one after the other.
    Agents(Vec<Name>),
    /// The end; a cause other than the router's word (`no_rule`) is in the `Finished`.
    Finish,
    /// The floor stays where it is.
    Stay,
    /// A graph of states goes on in this state.
    Enter {
        /// The state.
        state: Name,
        /// What it counted and said before is forgotten.
        reset: bool,
    },
    /// A member speaks in a state, in this role.
    Speak {
        /// The role.
        role: Name,
        /// Who plays it.
        member: Name,
    },
    /// A member's words, said without a model call.
    Say {
        /// In which role.
        role: Name,
        /// In whose name.
        member: Name,
        /// What is said.
        body: Body,
    },
    /// A task begins; under `handoff` a member takes the floor.
    Task {
        /// The task, or the member.
        task: Name,
        /// Its agent.
        agent: Name,
        /// What was asked for, if this is done on the way to it: it is kept until it is done.
        goal: Option<Name>,
    },
    /// What is left to be done, in the user's voice; none if nothing is.
    Restate(Option<Body>),
    /// The router answers itself.
    Answer(Body),
}

/// What kind of end a `Finished` is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum End {
    /// Reflection may still change it.
    Draft,
    /// The floor goes to whoever it talks with.
    Turn,
    /// The work is over; the caller wakes.
    Task,
}

/// Why something finished.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cause {
    /// A plain answer.
    Answer,
    /// A finishing tool.
    Tool,
    /// The floor was given back.
    Released,
    /// The router said so.
    Routed,
    /// Dry mode could not go on.
    Leaf,
    /// A limit was reached.
    Limit,
    /// A failure nobody could mend.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
    /// Nothing is owed or awaited from outside.
    Deadlock,
    /// No rule of the router held.
    NoRule,
    /// Its draft was to be revised, and there was no room for that: the rounds of reflection were used up, or a limit was
    /// reached (the code says which). The last draft is a good answer to whoever called.
    Rounds,
}

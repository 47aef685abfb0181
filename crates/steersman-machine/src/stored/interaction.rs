//! The kinds of interactions on stacks, and their parts. **Stored**: enums are append-only.
//!
//! Stored forms contain names and never indexes, so a log can be read without its definition.

use crate::stored::by::{By, Decider};
use crate::stored::engine::Caller;
use crate::stored::ids::{Body, Id, Line, Name};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One typed, immutable entry of a stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Interaction {
    /// A message to the agent from a person, its caller, another agent or the engine.
    UserMessage {
        /// The sender of the message.
        from: Origin,
        /// The text. For a call, the JSON of its arguments.
        body: Body,
    },
    /// The answer of the model. Its calls follow as `Call`s.
    AssistantMessage {
        /// The model call that was answered.
        effect: Id,
        /// Text of the answer. `None` if it consists of calls alone.
        text: Option<Body>,
        /// JSON that the provider wants back unchanged (reasoning with signatures, order of blocks). `None` if there is none.
        opaque: Option<Body>,
        /// True if a cancel or an interrupt cut the answer. The text is then the part that had been shown until that moment.
        partial: bool,
    },
    /// A call was opened. It closes with exactly one [`CallResult`].
    Call(Call),
    /// A call was closed, with this result.
    Result(CallResult),
    /// A routed agent decided, or its decision was refused.
    Route(Route),
    /// A summary, made by a model; never an instruction.
    Summary(Summary),
    /// A turn or a task ended, or a draft of an answer was given.
    Finished {
        /// Kind of the end: draft, turn or task.
        end: End,
        /// Cause of the end.
        cause: Cause,
        /// The answer, or a text that says what went wrong.
        body: Option<Body>,
        /// Code of a failure, or of the limit that was reached (`provider_overloaded`, `model_calls`).
        code: Option<Name>,
        /// State writes that no result of a call carries: those of an agent without a caller on its branch, and those that reset an
        /// agent's state for its next task.
        writes: Vec<Write>,
    },
    /// A message of a conversation that was held elsewhere, before the session began. It asks for nothing: no phase changes.
    Earlier(Earlier),
}

/// The name under which people and models see a model that answered elsewhere.
pub const EARLIER: &str = "assistant";

/// A message of a conversation that was held elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Earlier {
    /// The words of a person.
    User(Body),
    /// An answer of a model. It is an exchange, with the results of its calls.
    Assistant {
        /// Text of the answer. `None` if it consists of calls alone.
        text: Option<Body>,
        /// Calls of the answer, in order.
        calls: Vec<EarlierCall>,
    },
}

/// A call in an answer that was given elsewhere. It names no tool of the definition, and counts nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierCall {
    /// The provider's id of the call.
    pub label: Name,
    /// Name of the tool, as that model knew it.
    pub name: Name,
    /// JSON object of the arguments.
    pub args: Body,
    /// Text of the result.
    pub result: Body,
}

impl Interaction {
    /// Returns true if it belongs to the exchange of the answer right before it: it is a call, and no state of a net made it.
    pub(crate) fn joins_answer(&self) -> bool {
        matches!(self, Self::Call(call) if call.state().is_none())
    }

    /// Returns the texts of the interaction that its agent's model may see.
    pub(crate) fn shown(&self) -> impl Iterator<Item = Body> {
        let earlier = match self {
            Self::Earlier(Earlier::Assistant { calls, .. }) => &calls[..],
            _ => &[],
        };
        let earlier = earlier.iter().flat_map(|call| [call.args, call.result]);
        let parts = match self {
            Self::UserMessage { body, .. } | Self::Earlier(Earlier::User(body)) => {
                [Some(*body), None]
            }
            Self::AssistantMessage { text, opaque, .. } => [*text, *opaque],
            Self::Call(call) => [Some(call.args), None],
            Self::Result(result) => [result.body, None],
            Self::Summary(summary) if !summary.covers.is_nothing() => [Some(summary.body), None],
            Self::Earlier(Earlier::Assistant { text, .. }) => [*text, None],
            Self::Summary(_) | Self::Route(_) | Self::Finished { .. } => [None, None],
        };
        parts.into_iter().flatten().chain(earlier)
    }
}

/// A summary, and the part of the conversation that it covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The effect that made the summary. If no model was asked, an id of its own, which names no effect.
    pub effect: Id,
    /// The policy that required the summary, as in [`crate::stored::commit::Watermark::policy`].
    pub policy: Name,
    /// The part that it covers. Two equal bounds cover nothing: then no summary could be written.
    pub covers: Covers,
    /// Text of the summary, or the reason why there is none.
    pub body: Body,
}

/// The part of a stack or scope that a summary covers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Covers {
    /// The exchanges of the agent that has the summary on its stack, from the first number up to but without the second. They
    /// are counted as [`crate::stored::commit::Watermark`]s are. A summary among them is part of it.
    Exchanges(u32, u32),
    /// Everything in the agent's scope (its own stack and the stacks of all agents that it started) after the first of these
    /// lines, up to and including the second.
    Scope(Line, Line),
}

impl Covers {
    /// Returns true if it covers nothing. No summary could be written then, and its text says why.
    pub fn is_nothing(self) -> bool {
        match self {
            Self::Exchanges(from, to) => from == to,
            Self::Scope(from, to) => from == to,
        }
    }
}

/// The sender of a `UserMessage`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// A person or program outside.
    Outside(By),
    /// The parent, by this call.
    Call(Id),
    /// Another agent, with the tool `send`.
    Agent(Id),
    /// An agent that released the floor: it handed the message back unanswered.
    Released(Id),
    /// The router of the agent.
    Route,
    /// The engine, after a finished task.
    Continuation,
    /// The engine: the model's answer could not be used.
    Correction,
    /// The engine: a limit was reached, and the model must answer now.
    Limit,
    /// The net concluded: the model must answer now, with tools off.
    Conclude,
    /// A net in Rust: its instruction to the model for the next state.
    Net,
    /// The engine: the agent must judge its own draft, or the result of one of its calls.
    Reflect {
        /// The model call that gave the draft, or the call whose result is judged.
        of: Id,
        /// The tool that was called. `None` means a draft of the answer.
        tool: Option<Name>,
    },
}

/// A call of an agent: of a tool, an agent or a person, or a wait or a fork. Its result names it by its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Id of the call, given by the machine. An effect that is wished in the line of the call has the same id.
    pub id: Id,
    /// Name of the tool or agent in the definition, or the name that the model invented.
    pub name: Name,
    /// The party that made the call, and the purpose of the call.
    pub by: Caller,
    /// The name under which the model saw it, if it has another (`as`); for a router, the member that runs the tool.
    pub seen: Option<Name>,
    /// The target that the name was resolved to.
    pub target: Target,
    /// The provider's id of the call. It is only data and identifies nothing.
    pub label: Option<Name>,
    /// JSON object, as the model gave it or the engine made it.
    pub args: Body,
    /// Number of the call among its agent's calls.
    pub number: Number,
}

/// The number of a call among its agent's calls, over the agent's life. `3` is the third call, `3_1` the first that follows
/// in its chain.
///
/// Texts for models name calls by this number and never by an id. An id contains the number of a line, and each takeover of the
/// session adds lines. So the same call would have another id after a takeover.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Number {
    /// The number, from 1. A call that follows in a chain has the number of the call that began the chain.
    pub call: u32,
    /// 0 for a call that begins a chain; for the calls that follow, their place from 1.
    pub step: u32,
}

impl Number {
    /// Returns the number of the call that follows in the chain.
    pub(crate) fn next_step(self) -> Self {
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
    /// Returns the machine's label of a call. It is used if the provider gave no id, or gave one id to two calls.
    pub(crate) fn own_label(&self) -> String {
        format!("call.{}", self.number)
    }

    /// Returns the name under which its model, its router or the engine made the call.
    pub fn called(&self) -> Name {
        let seen = self.seen.clone().or_else(|| self.by.name());
        seen.unwrap_or_else(|| self.name.clone())
    }
}

/// Returns the calls that a model made with its answer. `behind` are the interactions that its agent pushed in the same line
/// right after the answer. Calls of the engine among them are left out.
pub fn calls_of_answer<'a>(
    behind: impl IntoIterator<Item = &'a Interaction>,
) -> impl Iterator<Item = &'a Call> {
    let calls = behind.into_iter().map_while(|pushed| match pushed {
        Interaction::Call(call) => Some(call),
        _ => None,
    });
    calls.take_while(|call| !call.is_of_engine())
}

/// The target of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// A tool, with the effect class that it had when it was called.
    Tool(Class),
    /// An agent: this instance, a child of the caller.
    Agent(Id),
    /// A person, by name (`user` or a declared one).
    Person(Name),
    /// A wait for an event, a time or a predicate.
    Wait,
    /// Branches: those of a `fork`, or of a person's join. Empty until the fork begins.
    Branches(Vec<Id>),
    /// Nothing: the name is not offered, or the call of an agent was refused before the agent was made.
    Unknown,
}

/// Effect class of a tool: what may happen if it is run again.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Class {
    /// Depends only on its arguments and the session, and changes nothing outside.
    Pure,
    /// Reads from outside, and changes nothing there.
    Read,
    /// May be repeated under the same idempotency key.
    Idempotent,
    /// Must not be repeated if it is unknown whether it happened, unless a person consents.
    Unsafe,
}

/// The reason why a store was not driven before a person accepted it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Doubtful {
    /// It is a copy, was moved, or was restored from a backup.
    Copied,
    /// It lost lines that it had acknowledged.
    Lost,
}

impl Class {
    /// Returns true if running the tool twice does no harm. Its effects may begin before their line is on disk, and may be
    /// repeated.
    pub fn is_free(self) -> bool {
        matches!(self, Self::Pure | Self::Read)
    }
    /// Returns the name of the class in definitions.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Read => "read",
            Self::Idempotent => "idempotent",
            Self::Unsafe => "unsafe",
        }
    }
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// The call that closed.
    pub call: Id,
    /// The way in which it ended.
    pub how: How,
    /// Text that the model sees.
    pub body: Option<Body>,
    /// Code for `on_error` (`refused`, `http_404`), if the call did not succeed.
    pub code: Option<Name>,
    /// State writes; they take effect when the exchange closes.
    pub writes: Vec<Write>,
    /// Versions of artifacts that the call made. They take effect together with the writes.
    pub artifacts: Vec<Artifact>,
    /// The decider that gave the result in place of a tool or agent: a person, a rule or a time-out.
    pub by: Option<Decider>,
}

/// The ways in which a call can end.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum How {
    /// A tool, person or wait gave a result.
    Done,
    /// Dry mode gave the result in place of the tool.
    Simulated,
    /// The call failed, and it is known that it had no effect.
    Failed,
    /// Not run: a precondition or the arguments do not fit, an approval was refused, or the name is unknown.
    Refused,
    /// Cancelled before it began, or while cutting it was harmless.
    Cancelled,
    /// It may have happened.
    Unknown,
    /// It was open at the commit where this branch began, and is not made on this branch.
    NotInThisBranch,
    /// A called agent ended its task.
    Finished,
    /// A called agent gave the floor back.
    Released,
    /// A limit ended the call.
    Limit,
    /// A wait or question timed out.
    Expired,
    /// The same effect was done elsewhere in this session. The result is the recorded one.
    DoneBefore,
}

impl How {
    /// Returns true if the call counts in `calls.NAME.ok`.
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
    /// Name of the entry.
    pub name: Name,
    /// JSON of the new value, or of what is joined to the old value. `None` unsets the entry.
    pub value: Option<Body>,
    /// The rule by which the new value is joined to the old one.
    pub reduce: Reduce,
    /// Time after which the entry gets its default again or becomes unset, in milliseconds from the commit in which the write takes
    /// effect.
    pub expires: Option<u64>,
}

/// A new version of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The agent instance to whose scope it belongs. Names of artifacts resolve like names of state: in the agent first, then
    /// in the agents above it.
    pub scope: Id,
    /// The call that made it. For an artifact that came with a message from outside, [`crate::view::artifact::came_with`] gives
    /// this id.
    pub call: Id,
    /// Name of the artifact.
    pub name: Name,
    /// Media type, such as `text/plain`.
    pub media: Name,
    /// blake3 hash of its content, which is a blob.
    pub hash: [u8; 32],
    /// Size of the content in bytes.
    pub len: u64,
}

/// The rule by which several writes of one entry are joined.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reduce {
    /// The later value wins.
    #[default]
    Last,
    /// A list is appended. Any other value becomes the last element.
    Append,
    /// Numbers are added.
    Sum,
    /// The larger value stays.
    Max,
    /// Objects are merged; the later field wins.
    Merge,
}

/// A decision of a routed agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Route {
    /// The model call that was answered, if a model decided.
    pub effect: Option<Id>,
    /// The decision of the router.
    pub chosen: Choice,
    /// The reason why the decision was refused. The router then tries again or falls back.
    pub refused: Option<Body>,
    /// State writes that the decision makes. Of the routers here only a concierge makes some: `clear:` of a task unsets entries.
    pub writes: Vec<Write>,
    /// JSON of the values that led to the decision, by path, and of the data that the router used: `rule` and `exit` (numbers
    /// from 1; `exit` 0 if a model found that none holds), for a judge `statement`, for a model `reason` and `offered`, for a
    /// speaker `turn`, and the member that `failed` or `expired`.
    pub read: Option<Body>,
}

/// A decision of a router.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Choice {
    /// These members act, one after the other.
    Agents(Vec<Name>),
    /// The agent finishes. The `Finished` that follows has the cause, which may be another than the router's decision
    /// (`no_rule`).
    Finish,
    /// Nothing changes: the floor and the state stay.
    Stay,
    /// A graph of states continues in this state.
    Enter {
        /// Name of the state.
        state: Name,
        /// True if the counts and messages of the state are reset.
        reset: bool,
    },
    /// A member speaks in a state, in this role.
    Speak {
        /// The role in the state.
        role: Name,
        /// The member that plays the role.
        member: Name,
    },
    /// The router speaks a text in the name of a member, without a model call.
    Say {
        /// The role in the state.
        role: Name,
        /// The member in whose name it is said.
        member: Name,
        /// The text, which the others see as a message of the member.
        body: Body,
    },
    /// A task begins. Under `handoff` a member takes the floor.
    Task {
        /// Name of the task or of the member.
        task: Name,
        /// The agent of the task.
        agent: Name,
        /// The requested task, if this one must be done first. It is remembered until it is done.
        goal: Option<Name>,
    },
    /// The remaining part of the request, in the user's words. `None` if nothing is left.
    Restate(Option<Body>),
    /// The router answers the user itself, with this text.
    Answer(Body),
}

impl Choice {
    /// Returns the choice of one member, which acts next.
    pub fn to(member: impl Into<Name>) -> Self {
        Self::Agents(vec![member.into()])
    }
}

/// Kinds of ends of a `Finished`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum End {
    /// A draft: reflection may still change it.
    Draft,
    /// The floor goes to the person or agent that the agent talks with.
    Turn,
    /// The agent's work is over, and its caller continues.
    Task,
}

/// The cause of an end.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cause {
    /// An answer without a finishing tool.
    Answer,
    /// A call of a finishing tool.
    Tool,
    /// The floor was given back.
    Released,
    /// The router decided to finish.
    Routed,
    /// A dry branch could not go on: it needs a result or an answer from outside that it cannot get.
    Leaf,
    /// A limit was reached.
    Limit,
    /// The agent failed.
    Failed,
    /// The work was cancelled.
    Cancelled,
    /// A deadlock: no effect is outstanding, and nothing from outside is awaited.
    Deadlock,
    /// No rule of the router held.
    NoRule,
    /// The last draft should be revised, but the rounds of reflection were used up, or a limit was reached (the code says
    /// which). The caller gets the last draft as a normal answer.
    Rounds,
}

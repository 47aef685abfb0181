//! An agent of a snapshot, in parts. The fold changes each part through its methods where several fields change together.

use super::{Counters, Phase, Routing, Span, Uses};
use crate::stored::commit::Kind;
use crate::stored::ids::{Body, Id, Line, Name, Path, Time};
use crate::stored::interaction::{Cause, End};
use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An instance of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Id of the instance.
    pub id: Id,
    /// Name of the agent in the definition.
    pub def: Name,
    /// Kind of the agent: model-driven or routed.
    pub kind: Kind,
    /// Its place in the tree of agents.
    pub family: Family,
    /// Phase of the agent.
    pub phase: Phase,
    /// Its stack, its open calls and its outstanding step.
    pub stack: Stack,
    /// The calls and messages that it got.
    pub input: Input,
    /// The current turn; at rest, the last turn.
    pub turn: Turn,
    /// Its mode, if its definition has modes.
    pub mode: Option<Name>,
    /// For routed agents: the state of the routing. Branches share it until one of them routes.
    pub routing: Arc<Routing>,
    /// Counts for limits, triggers and expressions.
    pub counters: Counters,
    /// State of its context.
    pub context: Context,
}

/// Place of an agent in the tree of agents. It changes only when the agent starts a child, or when an adoption removes
/// children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    /// The agent that started this one. Only the parent calls it.
    pub parent: Option<Id>,
    /// Birth numbers from the root down to this agent.
    pub path: Path,
    /// Name that its caller gave to the instance.
    pub named: Option<Name>,
    /// Number of agents that it started.
    pub births: u32,
    /// Children that a later call continues instead of starting a new instance. The key is `agent/name` for a named instance
    /// (`named: true`), and `agent` for a member of a routed agent.
    pub children: OrdMap<Name, Id>,
}

/// State of an agent's stack: its head, its open calls and its outstanding step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// The line of its last push, which is the head of the chain that forms the stack.
    pub last: Line,
    /// Number of interactions on it.
    pub height: u32,
    /// Highest number that a call of the agent has had. A call that follows another (`then:`) repeats the number of the first
    /// call of its chain.
    pub calls: u32,
    /// Number of open calls of its exchange.
    pub open: u32,
    /// Number of these calls that have begun: an effect was wished, or the called agent serves the call.
    pub running: u32,
    /// The outstanding effect of the agent's step. `None` in [`Phase::Thinking`] means that the effect is not wished yet. Other
    /// effects of the agent ([`crate::stored::commit::Want`]) are not steps and are not stored here.
    pub owed: Option<Id>,
}

/// The calls and messages that an agent got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The call that the agent serves. It stays the same over all turns of a task.
    pub serving: Option<Id>,
    /// Calls of its parent that wait for it. The lowest id is the oldest call.
    pub queue: OrdSet<Id>,
    /// Arguments of the call that it serves, as JSON. For a root, its first message from outside, which need not be JSON.
    pub args: Option<Body>,
    /// The newest message.
    pub message: Option<Body>,
    /// Results of the tools that run before every turn, for the newest message, by name. `None` means that the tool failed.
    pub before: OrdMap<Name, Option<Body>>,
    /// True if those tools were called for the newest message.
    pub prepared: bool,
    /// Messages since it last ended a turn or a task.
    pub unanswered: Vec<Body>,
    /// The unanswered messages that no extraction has read yet.
    pub unread: Vec<Body>,
}

/// A turn of an agent: everything between two rests. A field is about the newest turn unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The line in which the agent left [`Phase::Resting`]: the line of a message or, if a person joined branches, of the call
    /// that joins them. [`Line::NONE`] before its first turn.
    pub began: Line,
    /// Text of the newest assistant message of this turn. `None` if there is no such message or it had no text.
    pub said: Option<Body>,
    /// The model call of the agent's newest assistant message, in any turn.
    pub spoke: Option<Id>,
    /// The draft of its answer that is being judged or was judged.
    pub draft: Option<Draft>,
    /// Tools whose calls were sent back in this turn, each with the number of times in a row. A call that is accepted ends the
    /// row, and so does an exchange that calls only other tools.
    pub sent_back: Vec<(Name, u32)>,
    /// The last call that failed in this turn, with the text of its result. `None` if a call of the same or a later exchange
    /// succeeded.
    pub missed: Option<(Name, Option<Body>)>,
    /// The last state that its net entered in this turn. `None` if it entered none, or if the net does not name its states.
    pub state: Option<Name>,
    /// Number of steps of this turn by the state that made them: answers of the model and calls of the state.
    pub steps: Vec<(Name, u32)>,
    /// The end of a call of its state, until the agent acts on it.
    pub gave: Option<Gave>,
    /// Text of the last `Finished` that ended a turn or a task. Until this turn ends, it is the text of an earlier turn.
    pub answer: Option<Body>,
    /// End and cause of that `Finished`.
    pub ended: Option<(End, Cause)>,
}

/// The end of a call that a state of a net made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gave {
    /// True if the call did what it was made for.
    pub ok: bool,
    /// Code of the failure.
    pub code: Option<Name>,
    /// The result, or the text of the failure.
    pub body: Option<Body>,
}

/// State of an agent's context: counts of its exchanges, its summaries and its size. The policies that shorten the context read
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// Number of exchanges that are closed.
    pub exchanges: u32,
    /// True if its newest answer has no call yet. If the next interaction is not a call, that answer is an exchange of its own.
    pub bare: bool,
    /// Number of exchanges in which it called a tool, by tool.
    pub used: Uses,
    /// The newest of these exchanges, by their numbers, at most [`LATELY`] for each tool: a summary is asked for only if it covers
    /// one that the summary before did not.
    pub lately: OrdMap<Name, Arc<[u32]>>,
    /// Summaries of the older part, by policy.
    pub sums: OrdMap<Name, Sum>,
    /// Size of the context.
    pub weight: Arc<Weight>,
}

/// Most exchanges in [`Context::lately`] of a tool.
pub const LATELY: usize = 64;

/// State of the summaries of one policy. A boundary is a number of exchanges, counted as the policy counts them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Boundary for which the newest summary was written or tried.
    pub tried: u32,
    /// Boundary of the newest summary: it covers all exchanges before.
    pub covered: u32,
    /// Text of that summary.
    pub body: Option<Body>,
    /// Number of the agent's exchanges when the last try failed or was of no use. `None` if the last try succeeded.
    pub failed: Option<u32>,
}

/// Size of an agent's context. It has two units: tokens, as the provider counted them for a model call, and bytes, as commits
/// record them for each push.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weight {
    /// Input tokens of a model call whose usage is counted and whose answer is not pushed yet.
    pub asked: u64,
    /// Input tokens of its newest own model call, less those of exchanges that left the context since; 0 if they are unknown.
    pub tokens: u64,
    /// Bytes that were pushed since that call.
    pub since: u64,
    /// Bytes of its newest closed exchanges, each with the messages ahead of it, oldest first.
    pub exchanges: Vec<u32>,
    /// Bytes after the newest of these exchanges.
    pub open: u64,
    /// The last line in which an exchange closed.
    pub closed: Line,
}

/// A draft of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// Text of the draft.
    pub body: Option<Body>,
    /// Origin of the draft: a plain answer or a finishing tool.
    pub cause: Cause,
    /// State of its judgement.
    pub stands: Stands,
}

/// State of the judgement of a draft.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stands {
    /// The draft is being judged.
    Open,
    /// The reviewer has no objection, or its judgement could not be used.
    Accepted,
    /// The draft must be revised, and the model has not answered since.
    Revise,
    /// The draft had to be revised, and the model has answered since.
    Criticised,
}

impl Agent {
    /// Returns a new agent that has received nothing. It rests.
    pub(super) fn born(id: Id, def: Name, kind: Kind, family: Family, now: Time) -> Self {
        Self {
            id,
            def,
            kind,
            family,
            phase: Phase::Resting,
            stack: Stack::default(),
            input: Input::default(),
            turn: Turn::default(),
            mode: None,
            routing: Arc::default(),
            counters: Counters {
                answer: Span::since(now),
                task: Span::since(now),
                session: Span::since(now),
                stood: now.0,
                ..Counters::default()
            },
            context: Context::default(),
        }
    }

    /// Returns the agent's parent, and the parent's call that the agent serves. `None` means that no call waits for the end of its
    /// task.
    pub(crate) fn caller(&self) -> Option<(Id, Id)> {
        self.family.parent.zip(self.input.serving)
    }
}

impl Family {
    /// Counts a child that the agent starts. Later calls continue a child that has a key. Returns the child's path.
    pub(super) fn bears(&mut self, child: Id, key: Option<Name>) -> Path {
        self.births += 1;
        if let Some(key) = key {
            self.children.insert(key, child);
        }
        self.path.iter().copied().chain([self.births]).collect()
    }
}

impl Stack {
    /// Counts a push. Returns true if it is the first one in its line.
    pub(super) fn pushed(&mut self, line: Line) -> bool {
        self.height += 1;
        std::mem::replace(&mut self.last, line) != line
    }

    /// Counts a call that was opened with this number.
    pub(super) fn opened(&mut self, number: u32) {
        self.calls = self.calls.max(number);
        self.open += 1;
    }

    /// Counts a call that closed. `began` is true if the call was running. Returns true if it closed its exchange.
    pub(super) fn closed(&mut self, began: bool) -> bool {
        self.open -= 1;
        self.running -= u32::from(began);
        self.open == 0
    }
}

impl Input {
    /// Records that the agent begins to serve a call. The caller also records the arguments as a message ([`Self::hear`]).
    pub(super) fn serve(&mut self, call: Id, args: Body) {
        self.serving = Some(call);
        self.queue.remove(&call);
        self.args = Some(args);
    }

    /// Records a message that the agent must answer. `known` means that it repeats an earlier message, which an extraction has
    /// read already.
    pub(super) fn hear(&mut self, message: Body, known: bool) {
        self.message = Some(message);
        self.before = OrdMap::new();
        self.prepared = false;
        self.unanswered.push(message);
        if !known {
            self.unread.push(message);
        }
    }

    /// Records the answer to all messages, which ends a turn or a task.
    pub(super) fn answered(&mut self, end: End) {
        self.unanswered.clear();
        self.unread.clear();
        if end == End::Task {
            self.serving = None;
        }
    }
}

impl Turn {
    /// Begins a turn with this line.
    pub(super) fn begin(&mut self, line: Line) {
        self.began = line;
        self.said = None;
        self.sent_back.clear();
        self.missed = None;
        self.state = None;
        self.steps.clear();
        self.gave = None;
    }

    /// Ends the turn.
    pub(super) fn finish(&mut self, end: End, cause: Cause, answer: Option<Body>) {
        self.answer = answer;
        self.ended = Some((end, cause));
        self.draft = None;
        self.gave = None;
    }

    /// Records an answer of the model. It changes a draft from [`Stands::Revise`] to [`Stands::Criticised`].
    pub(super) fn speak(&mut self, effect: Id, text: Option<Body>) {
        self.said = text;
        self.spoke = Some(effect);
        self.gave = None;
        if let Some(state) = self.state.clone() {
            self.steps(&state);
        }
        if let Some(draft) = &mut self.draft
            && draft.stands == Stands::Revise
        {
            draft.stands = Stands::Criticised;
        }
    }

    /// Records the end of a call of a state. Its result is what the agent said last.
    pub(super) fn gave(&mut self, gave: Gave) {
        if gave.ok {
            self.said = gave.body;
        }
        self.gave = Some(gave);
    }

    /// Counts a step of a state.
    pub(super) fn steps(&mut self, state: &Name) {
        match self.steps.iter_mut().find(|(name, _)| name == state) {
            Some((_, steps)) => *steps += 1,
            None => self.steps.push((state.clone(), 1)),
        }
    }

    /// Returns the number of steps that a state made in this turn.
    pub(crate) fn steps_of(&self, state: &str) -> u32 {
        let mut all = self.steps.iter();
        all.find(|(name, _)| **name == *state)
            .map_or(0, |(_, n)| *n)
    }

    /// Counts that a call of a tool was sent back: a reviewer wants it changed, or the agent is asked to judge its result itself.
    pub(super) fn send_back(&mut self, tool: &Name) {
        match self.sent_back.iter_mut().find(|(name, _)| name == tool) {
            Some((_, times)) => *times += 1,
            None => self.sent_back.push((tool.clone(), 1)),
        }
    }

    /// Ends the row of a tool: one of its calls was accepted.
    pub(super) fn accept(&mut self, tool: &Name) {
        self.sent_back.retain(|(name, _)| name != tool);
    }

    /// Ends the rows of the tools that an exchange did not call. An exchange without calls ends none.
    pub(super) fn call_only(&mut self, tools: &[Name]) {
        if !tools.is_empty() {
            self.sent_back.retain(|(name, _)| tools.contains(name));
        }
    }

    /// Returns how often in a row calls of a tool were sent back.
    pub(crate) fn times_sent_back(&self, tool: &Name) -> u32 {
        let mut all = self.sent_back.iter();
        all.find(|(name, _)| name == tool).map_or(0, |(_, n)| *n)
    }

    /// Returns true if a draft of the answer is being judged.
    pub(crate) fn draft_is_judged(&self) -> bool {
        self.draft
            .as_ref()
            .is_some_and(|draft| draft.stands == Stands::Open)
    }

    /// Returns true if a draft of the answer was accepted and is not the answer yet.
    pub(crate) fn draft_is_accepted(&self) -> bool {
        self.draft
            .as_ref()
            .is_some_and(|draft| draft.stands == Stands::Accepted)
    }
}

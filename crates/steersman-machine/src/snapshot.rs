//! The snapshot: everything that a step may depend on. Only [`mod@crate::snapshot::fold`] carries it forward.

mod agent;
pub mod checkpoint;
pub mod fold;
mod uses;

pub use agent::{
    Agent, Context, Draft, Family, Gave, Input, LATELY, Stack, Stands, Sum, Turn, Weight,
};
pub use uses::Uses;

use crate::stored::commit::{Binding, Want};
use crate::stored::ids::{Body, Digest, Id, Line, Name, Time};
use crate::stored::interaction::{Artifact, Call, How, Target, Write};
use crate::values::json::is_sealed;
use imbl::{OrdMap, OrdSet, Vector};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::sync::Arc;

/// The state of one branch after a line. Cloning it only increments a few reference counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The last commit that was folded in.
    pub line: Line,
    /// The recorded time of that commit.
    pub now: Time,
    /// Id of the branch.
    pub branch: Id,
    /// The agent that may act here, with its descendants. `None` means that all agents may act.
    pub scope: Option<Id>,
    /// True if effects that touch the world are answered from the recording or simulated.
    pub dry: bool,
    /// The commit at which the branch was forked; `Line::NONE` on `main`.
    pub forked_at: Line,
    /// Number of the branch among its siblings, from 1, and number of siblings, if an agent forked it.
    pub of: Option<(u32, u32)>,
    /// The first line that took a simulated outcome, or in which the dry branch could not go on (a leaf). An adoption takes only
    /// the lines before it.
    pub first_simulated: Option<Line>,
    /// The agent that a session begins with. `None` before the first commit.
    pub root: Option<Id>,
    /// All agents that were ever started on this branch's path.
    pub agents: OrdMap<Id, Arc<Agent>>,
    /// Calls of open exchanges by caller and id, closed ones included until their exchange closes.
    pub calls: OrdMap<(Id, Id), Arc<OpenCall>>,
    /// The calls that have not begun: no effect was wished, and no called agent serves them. Of the calls to one agent only the
    /// oldest is listed, and only while the agent serves no call; the others are in its queue.
    pub unbegun: OrdSet<(Id, Id)>,
    /// The calls that wait for an event, a time or a predicate.
    pub waits: OrdSet<(Id, Id)>,
    /// The calls that wait for branches, or for the agent that chooses among them.
    pub forks: OrdSet<(Id, Id)>,
    /// Outstanding effects.
    pub effects: OrdMap<Id, Effect>,
    /// State by declaring agent instance and entry. Unset entries are absent.
    pub state: OrdMap<(Id, Name), Cell>,
    /// Entries that were set once and are unset now, with the line that unset them. Adoptions need this.
    pub unset: OrdMap<(Id, Name), Line>,
    /// Entries that expire, in order of time.
    pub expiring: OrdSet<(Time, Id, Name)>,
    /// Writes of closed calls that wait for their exchange to close, for entries whose reducer joins writes with the stored
    /// value: declaring instance, entry, caller and call.
    pub waiting: OrdSet<(Id, Name, Id, Id)>,
    /// Boundaries of rendering by agent and policy, as numbers of exchanges.
    pub watermarks: OrdMap<(Id, Name), u32>,
    /// Versions of artifacts by scope and name, oldest first.
    pub artifacts: OrdMap<(Id, Name), Vector<Artifact>>,
    /// Texts of the labels, as last rendered.
    pub labels: OrdMap<Name, Body>,
    /// The binding of the next commit.
    pub binding: Option<Arc<Binding>>,
    /// Number of commits on this branch's path, for waits that count them.
    pub ticks: u64,
}

/// The phase of an agent: a function of its kind and stack.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// The agent owes nothing: its stack is empty, or a final `Finished` is on top.
    Resting,
    /// The agent owes a model call.
    Thinking,
    /// The agent owes a decision of its router.
    Routing,
    /// The agent has open calls.
    Calling,
}

/// State of a routed agent's routing: the input of its decisions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Routing {
    /// Number of decisions since the answer began.
    pub count: u32,
    /// Members that were chosen together and have not begun.
    pub pending: Vec<Name>,
    /// The member that acted last, how its call ended, and its result.
    pub last: Option<(Name, How, Option<Body>)>,
    /// Number of refused answers of the routing model in a row.
    pub refused: u32,
    /// Reason of the last refusal.
    pub why: Option<Body>,
    /// The current state of a graph, or the current task.
    pub at: Option<Name>,
    /// Counters of each state of a graph that was entered.
    pub places: OrdMap<Name, Place>,
    /// True if no message came in the state since it was entered or its exits were last checked.
    pub settled: bool,
    /// The task that ended, or the member whose call ended outside of a task, if no decision has followed yet.
    pub over: Option<Name>,
    /// Tasks still to be done, oldest first, each with the message that asked for it.
    pub goals: Vec<(Name, Option<Body>)>,
    /// Tasks that are done.
    pub done: OrdSet<Name>,
    /// True if no extraction has read the last message of a graph's state yet.
    pub unread: bool,
    /// Number of messages of members, and of answers that the router's model gave itself.
    pub said: u32,
    /// For each summary policy, the value of `said` when its last summary was written or tried.
    pub summed: OrdMap<Name, u32>,
}

/// Counters of a state of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Number of messages in the state.
    pub messages: u32,
    /// Role that was chosen to speak last.
    pub last: Option<Name>,
    /// The line in which the state was entered.
    pub entered: Line,
}

/// Counters for limits. Those of the answer start again with the first message after a final `Finished`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Own model calls of this answer.
    pub model_calls: u32,
    /// Model calls of this instance, failed ones included.
    pub model_calls_all: u32,
    /// Model calls of this instance that said what is left to be done.
    pub restated: u32,
    /// Model calls of this instance for extractions, failed ones included.
    pub extracted: u32,
    /// Model calls of this instance that wrote summaries, failed ones included.
    pub summed: u32,
    /// Model calls of this instance that compacted its context, failed ones included.
    pub compacted: u32,
    /// Own agent calls of this answer.
    pub agent_calls: u32,
    /// Corrections of this answer.
    pub corrections: u32,
    /// Commits of this answer in which the agent moved.
    pub ticks: u32,
    /// Digest of the last exchange (tools, arguments, results) or choice, and how often it came in a row.
    pub same: Option<(Digest, u32)>,
    /// Rounds of reflection of this answer.
    pub rounds: u32,
    /// Model calls since the mode began.
    pub mode_calls: u32,
    /// True if one last model call with tools off was asked for.
    pub last_call: bool,
    /// True if a limit asked for that last call. False if the net did.
    pub limited: bool,
    /// Counts of the agent and everything it started since the message that it answers.
    pub answer: Span,
    /// Counts of the agent and everything it started since the call that it serves; for the root since the session began.
    pub task: Span,
    /// Counts of the agent and everything it started since it was started.
    pub session: Span,
    /// The last line that moved the agent or a descendant.
    pub moved: Line,
    /// Number of outstanding effects of the agent and everything it started, without questions to people and waits.
    pub working: u32,
    /// The clock of the answer is stopped while `working` is 0. While it runs, this is the number of milliseconds for which it
    /// was stopped. While it is stopped, this is the time at which it stopped, minus that number. So starting and stopping are
    /// the same operation, and both within one commit change nothing.
    pub stood: i64,
    /// `calls.NAME` as the agent sees it, descendants included, since its task began (for the root: the session).
    pub calls: OrdMap<Name, Arc<Count>>,
}

/// Counts of an agent and everything it started, since some event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Time of that event.
    pub began: Time,
    /// Number of model calls.
    pub model_calls: u32,
    /// Number of agent calls, those that a limit refused included.
    pub agent_calls: u32,
    /// Number of commits that moved one of the agents.
    pub ticks: u32,
    /// Tokens, as far as providers report them.
    pub tokens: u64,
    /// Cost in millionths of the currency.
    pub micros: u64,
    /// Amounts above a limit that people allowed, by the name of the question. They are rare, so they are stored apart.
    pub more: Option<Arc<Vec<(Name, u64)>>>,
}

impl Counters {
    /// Returns the counts of answer, task and session.
    pub(crate) fn spans(&mut self) -> [&mut Span; 3] {
        [&mut self.answer, &mut self.task, &mut self.session]
    }

    /// Returns the milliseconds of this answer in which nothing worked.
    pub fn stood(&self, now: Time) -> i64 {
        if self.working == 0 {
            now.0.saturating_sub(self.stood)
        } else {
            self.stood
        }
    }

    /// Returns the counters with nothing at work: the clock of the answer is stopped at `at`.
    pub(crate) fn stopped(mut self, at: Time) -> Self {
        if std::mem::take(&mut self.working) > 0 {
            self.stood = at.0.saturating_sub(self.stood);
        }
        self
    }
}

impl Span {
    /// Returns empty counts that begin at this time.
    pub(crate) fn since(began: Time) -> Self {
        Self {
            began,
            ..Self::default()
        }
    }

    /// Returns the amounts that people allowed, for changes.
    pub(crate) fn allowed(&mut self) -> &mut Vec<(Name, u64)> {
        Arc::make_mut(self.more.get_or_insert_default())
    }

    /// Adds the difference between two states of another span.
    pub(crate) fn add(&mut self, now: &Self, before: &Self) {
        let sum = |sum: &mut u32, now: u32, before: u32| {
            *sum = sum.saturating_add(now.saturating_sub(before));
        };
        sum(&mut self.model_calls, now.model_calls, before.model_calls);
        sum(&mut self.agent_calls, now.agent_calls, before.agent_calls);
        sum(&mut self.ticks, now.ticks, before.ticks);
        let tokens = now.tokens.saturating_sub(before.tokens);
        self.tokens = self.tokens.saturating_add(tokens);
        let micros = now.micros.saturating_sub(before.micros);
        self.micros = self.micros.saturating_add(micros);
    }
}

/// Counts of a name of `calls`: `calls.NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Number of calls that ended well.
    pub ok: u32,
    /// Number of calls that ended otherwise.
    pub failed: u32,
    /// Arguments of the last call that ended well.
    pub args: Option<Body>,
    /// Result of that call, as the model saw it.
    pub result: Option<Body>,
}

/// A call of an open exchange.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenCall {
    /// The call as it was pushed.
    pub call: Call,
    /// The agent that made the call.
    pub owner: Id,
    /// The outstanding effect of the call.
    pub effect: Option<Id>,
    /// Arguments that replace the call's: edited by a person, fixed by the definition, or completed with defaults.
    pub edited: Option<Body>,
    /// Time at which the call was opened. A wait on a forked or adopted branch is moved by the time in which the branch did not
    /// run.
    pub opened: Time,
    /// Time at which its effect is due or its wait ends.
    pub due: Option<Time>,
    /// True if the call has begun: an effect was wished, or the called agent serves it. Always true for a closed call.
    pub begun: bool,
    /// True if a person approved the call with the arguments in `edited`.
    pub approved: bool,
    /// The approver in whose place a person changed the arguments to those in `edited`. This approver is not asked again.
    pub approver: Option<Name>,
    /// For a wait: the parts that are over, with the JSON of their results. `None` means that the part can no longer be met.
    pub met: Vec<(u32, Option<Body>)>,
    /// For a wait: keys of its events that do not follow from its arguments, by part (JSON).
    pub keys: Vec<(u32, Body)>,
    /// Number of commits on the branch's path when the call was opened. A wait for ticks counts from there.
    pub opened_at: u64,
    /// The agent that chooses among the call's branches.
    pub chooser: Option<Id>,
    /// JSON of the ends of its branches, once they are chosen among.
    pub ends: Option<Body>,
    /// The chosen branch and the line up to which it is to be adopted.
    pub chosen: Option<(Id, Line)>,
    /// Digest of tool and arguments, for the limit `same_call`.
    pub digest: Digest,
    /// The mode that its caller enters when the exchange closes.
    pub mode: Option<Name>,
    /// Data of the call's result, once the call is closed.
    pub closed: Option<Closed>,
}

/// Data that is kept between a result and the close of its exchange.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Closed {
    /// The way in which the call ended.
    pub how: How,
    /// Digest of the call and of the result that the model sees, for the limit `same_call`.
    pub digest: Digest,
    /// Text of the result that the model sees.
    pub gave: Option<Body>,
    /// Writes that wait for the close, with their values.
    pub writes: Vec<(Write, Option<Value>)>,
    /// Versions of artifacts that wait for the close.
    pub artifacts: Vec<Artifact>,
}

/// An outstanding effect: it was wished, and its outcome has not been taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// The agent for which the effect is wished.
    pub agent: Id,
    /// Purpose of the effect: a step or a call.
    pub what: Want,
    /// Time before which the effect does not begin, or at which it ends by itself.
    pub due: Option<Time>,
}

/// A state entry that is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Value of the entry.
    pub value: Value,
    /// The line that wrote it.
    pub line: Line,
    /// Time at which the entry becomes unset.
    pub expires: Option<Time>,
}

/// A shared JSON value. A sealed secret is an object whose only field is `$sealed`. Stored as JSON text, because positional
/// encodings cannot hold a value of any type.
#[derive(Clone, Debug, PartialEq)]
pub struct Value(pub Arc<Json>);

impl Value {
    /// Wraps a JSON value.
    pub fn new(json: Json) -> Self {
        Self(Arc::new(json))
    }
    /// Returns true if the value is a sealed secret.
    pub fn is_sealed(&self) -> bool {
        is_sealed(&self.0)
    }
}

impl Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0.to_string())
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        serde_json::from_str(&text)
            .map(Self::new)
            .map_err(serde::de::Error::custom)
    }
}

impl Snapshot {
    /// Returns the snapshot before the first commit of `main`.
    pub fn empty() -> Self {
        Self {
            line: Line::NONE,
            now: Time(0),
            branch: Id::MAIN,
            scope: None,
            dry: false,
            forked_at: Line::NONE,
            of: None,
            first_simulated: None,
            root: None,
            agents: OrdMap::new(),
            calls: OrdMap::new(),
            unbegun: OrdSet::new(),
            waits: OrdSet::new(),
            forks: OrdSet::new(),
            effects: OrdMap::new(),
            state: OrdMap::new(),
            unset: OrdMap::new(),
            expiring: OrdSet::new(),
            waiting: OrdSet::new(),
            watermarks: OrdMap::new(),
            artifacts: OrdMap::new(),
            labels: OrdMap::new(),
            binding: None,
            ticks: 0,
        }
    }

    /// Returns an agent. Panics if there is none with this id, because ids of agents come from this snapshot.
    pub fn agent(&self, id: Id) -> &Arc<Agent> {
        self.agents
            .get(&id)
            .expect("ids of agents come from the snapshot")
    }

    /// Returns the root agent, once there is one.
    pub fn root_agent(&self) -> Option<&Arc<Agent>> {
        self.root.map(|id| self.agent(id))
    }

    /// Returns the open exchange of an agent: its calls in call order, closed ones included.
    pub fn exchange(&self, agent: Id) -> impl Iterator<Item = &Arc<OpenCall>> {
        let (low, high) = (Id::MAIN, Id::new(Line::MAX, (1 << 20) - 1));
        self.calls
            .range((agent, low)..=(agent, high))
            .map(|(_, call)| call)
    }

    /// Returns the first call of an agent's exchange after `after` that is listed in `unbegun`.
    pub(crate) fn next_unbegun(&self, agent: Id, after: Option<Id>) -> Option<Id> {
        use std::ops::Bound::{self, Excluded, Included};
        let low = after.map_or(Included((agent, Id::MAIN)), |id| Excluded((agent, id)));
        let (owner, call) = self.unbegun.range((low, Bound::Unbounded)).next()?;
        (*owner == agent).then_some(*call)
    }

    /// Returns true if a state of its agent's net made an open call, or the call that it follows.
    pub(crate) fn is_of_state(&self, owner: Id, call: &Call) -> bool {
        // Until the chain ends, the agent does not act on the end of the call that began it.
        call.state().is_some() || call.chain().is_some() && self.agent(owner).turn.gave.is_some()
    }

    /// Returns a call of an open exchange by caller and id.
    pub fn call(&self, agent: Id, call: Id) -> Option<&Arc<OpenCall>> {
        self.calls.get(&(agent, call))
    }

    /// Returns the call that an effect is for.
    pub fn call_of(&self, effect: Id) -> Option<&Arc<OpenCall>> {
        let effect = self.effects.get(&effect)?;
        self.call(effect.agent, effect.what.call()?)
    }

    /// Returns the agent to which an open call gave the floor, if that agent rests. An agent that rests while it serves a call has
    /// ended a turn and not its task, as a member of a handoff does with each answer: the call stays open, and nothing is owed
    /// until a person speaks.
    pub fn rests_in(&self, open: &OpenCall) -> Option<&Arc<Agent>> {
        let Target::Agent(child) = open.call.target else {
            return None;
        };
        let child = self.agent(child);
        let serves = open.closed.is_none() && child.input.serving == Some(open.call.id);
        (serves && self.rests(child.id)).then_some(child)
    }

    /// Returns true if an agent owes nothing until a person speaks: it rests, or each call that it has open is one of an agent
    /// that [rests in it](Self::rests_in).
    pub fn rests(&self, agent: Id) -> bool {
        match self.agent(agent).phase {
            Phase::Resting => true,
            Phase::Thinking | Phase::Routing => false,
            Phase::Calling => {
                let mut open = self.exchange(agent).filter(|open| open.closed.is_none());
                open.all(|open| self.rests_in(open).is_some())
            }
        }
    }

    /// Returns true if something is open: an effect is out, or a call that its agent does not [rest in](Self::rests_in). What was
    /// asked, judged or begun is open until it ends.
    pub fn is_open(&self) -> bool {
        let mut calls = self.calls.values().filter(|open| open.closed.is_none());
        !self.effects.is_empty() || calls.any(|open| self.rests_in(open).is_none())
    }

    /// Returns true if an agent may act on this branch.
    pub fn in_scope(&self, agent: Id) -> bool {
        self.scope.is_none_or(|scope| self.is_under(agent, scope))
    }

    /// Returns true if an agent is `top` or descends from it. Paths cannot say this: an agent that was born here and one that
    /// came with an adoption may have the same birth number.
    pub(crate) fn is_under(&self, agent: Id, top: Id) -> bool {
        let mut at = Some(agent);
        while let Some(id) = at {
            if id == top {
                return true;
            }
            at = self.agents.get(&id).and_then(|a| a.family.parent);
        }
        false
    }

    /// Returns the top agent of this branch's scope. The branch ends when this agent rests.
    pub fn top(&self) -> Option<Id> {
        self.scope.or(self.root)
    }

    /// Returns the depth of an agent; the root has 1.
    pub fn depth(&self, agent: Id) -> u32 {
        self.agent(agent).family.path.len() as u32 + 1
    }

    /// Returns the values that wait to be joined to a state entry, in no meaningful order.
    pub(crate) fn waiting_for<'a>(
        &'a self,
        scope: Id,
        name: &'a Name,
    ) -> impl Iterator<Item = &'a Value> {
        let from = (scope, name.clone(), Id::MAIN, Id::MAIN);
        let of_entry = self.waiting.range(from..);
        let of_entry = of_entry.take_while(move |(s, n, ..)| *s == scope && n == name);
        let calls = of_entry.filter_map(|(_, _, owner, call)| self.call(*owner, *call));
        let closed = calls.filter_map(|call| call.closed.as_ref());
        let writes = closed.flat_map(|closed| &closed.writes);
        let of_entry = writes.filter(move |(w, _)| w.scope == scope && w.name == *name);
        of_entry.filter_map(|(_, value)| value.as_ref())
    }

    /// Replaces empty maps with new ones. A map keeps memory after its last entry is removed, and every snapshot in memory would
    /// keep its own.
    pub(crate) fn let_go(&mut self) {
        fn map<K: Ord + Clone, V: Clone>(map: &mut OrdMap<K, V>) {
            if map.is_empty() {
                *map = OrdMap::new();
            }
        }
        fn set<K: Ord + Clone>(set: &mut OrdSet<K>) {
            if set.is_empty() {
                *set = OrdSet::new();
            }
        }
        map(&mut self.calls);
        map(&mut self.effects);
        set(&mut self.unbegun);
        set(&mut self.waits);
        set(&mut self.forks);
        set(&mut self.waiting);
        set(&mut self.expiring);
    }

    /// Returns the entry of this scope, if it is set there. The caller finds the scope, which is the instance that declares the
    /// entry; that needs the network.
    pub fn cell(&self, scope: Id, name: &Name) -> Option<&Cell> {
        self.state.get(&(scope, name.clone()))
    }
}

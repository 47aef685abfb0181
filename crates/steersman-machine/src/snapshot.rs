//! The snapshot: all that a step may depend on. Carried forward by [`mod@crate::fold`] alone.

mod uses;

pub use uses::Uses;

use crate::commit::{Binding, Kind, Want};
use crate::ids::{Body, Digest, Id, Line, Name, Path, Time};
use crate::interaction::{Artifact, Call, Cause, End, How, Write};
use imbl::{OrdMap, OrdSet, Vector};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::sync::Arc;

/// Where a branch of a session stands. Cloning it costs a few counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The last commit folded in.
    pub line: Line,
    /// The recorded time of that commit.
    pub now: Time,
    /// The branch.
    pub branch: Id,
    /// Only this agent and its descendants act here; none: everybody.
    pub scope: Option<Id>,
    /// Effects that touch the world are answered from the recording or simulated.
    pub dry: bool,
    /// Where the branch was forked; `Line::NONE` on `main`.
    pub forked_at: Line,
    /// Index and number of siblings, from 1.
    pub of: Option<(u32, u32)>,
    /// The first line that took a simulated outcome or ended in a leaf: an adoption goes up to the line before.
    pub first_simulated: Option<Line>,
    /// The agent that talks first; none before the first commit.
    pub root: Option<Id>,
    /// All agents that were ever started here.
    pub agents: OrdMap<Id, Arc<Agent>>,
    /// Calls of open exchanges by caller and id, closed ones included until their exchange closes.
    pub calls: OrdMap<(Id, Id), Arc<OpenCall>>,
    /// Those of them that have not begun: no effect was wished, no called agent serves them. Of calls to one agent only
    /// the oldest, while it serves none: the others are in its queue.
    pub unbegun: OrdSet<(Id, Id)>,
    /// Those of them that wait for an event, a time or a predicate.
    pub waits: OrdSet<(Id, Id)>,
    /// Those of them that wait for branches, or for whoever chooses among these.
    pub forks: OrdSet<(Id, Id)>,
    /// Effects that are out.
    pub effects: OrdMap<Id, Effect>,
    /// State by declaring agent instance and entry; unset entries are absent.
    pub state: OrdMap<(Id, Name), Cell>,
    /// Entries that were set once and are unset now, with the line that unset them: an adoption must know.
    pub unset: OrdMap<(Id, Name), Line>,
    /// Entries that expire, by moment.
    pub expiring: OrdSet<(Time, Id, Name)>,
    /// Writes of closed calls whose exchange is open, where their entry's reducer joins them with what is there: declaring
    /// instance, entry, caller and call.
    pub waiting: OrdSet<(Id, Name, Id, Id)>,
    /// Boundaries of rendering by agent and policy, in exchanges.
    pub watermarks: OrdMap<(Id, Name), u32>,
    /// Versions of artifacts by scope and name, oldest first.
    pub artifacts: OrdMap<(Id, Name), Vector<Artifact>>,
    /// Labels as last rendered.
    pub labels: OrdMap<Name, Body>,
    /// What the next commit runs under.
    pub binding: Option<Arc<Binding>>,
    /// Commits on this branch's path, for waits that count them.
    pub ticks: u64,
}

/// The phase of an agent: a function of its kind and stack.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Nothing is owed: the stack is empty, or a final `Finished` is on top.
    Resting,
    /// A model is owed.
    Thinking,
    /// A decision of the router is owed.
    Routing,
    /// Calls are open.
    Calling,
}

/// An instance of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Its id.
    pub id: Id,
    /// Its name in the definition.
    pub def: Name,
    /// Who chooses its steps.
    pub kind: Kind,
    /// Who started it, and so is the only one to call it.
    pub parent: Option<Id>,
    /// Birth numbers from the root down.
    pub path: Path,
    /// How many it started.
    pub births: u32,
    /// The name its caller gave it.
    pub named: Option<Name>,
    /// Where it stands.
    pub phase: Phase,
    /// The effect that is out for its step. `Thinking` without it: a step is owed, nothing wished yet. What else is
    /// wanted for the agent ([`Want`]) is no step, and stands beside it.
    pub owed: Option<Id>,
    /// The call it works on, over turns.
    pub serving: Option<Id>,
    /// Calls that it made over its life, without those that follow in a chain: the next one is numbered behind them.
    pub calls: u32,
    /// Calls of its exchange that are still open.
    pub open: u32,
    /// Those of them that have begun: an effect was wished, or the called agent serves it.
    pub running: u32,
    /// Exchanges closed so far.
    pub exchanges: u32,
    /// Calls of its parent that wait for it: the lowest is the oldest.
    pub queue: OrdSet<Id>,
    /// Children to be continued, by `agent` (routed) or `agent/name` (`named: true`).
    pub children: OrdMap<Name, Id>,
    /// Arguments of the call it serves: JSON; none for the root of a plain message.
    pub args: Option<Body>,
    /// The newest message.
    pub message: Option<Body>,
    /// What the tools that run ahead of every turn gave for the newest message, by name; none: they failed.
    pub before: OrdMap<Name, Option<Body>>,
    /// They were called for it.
    pub prepared: bool,
    /// Messages since its last final `Finished`.
    pub unanswered: Vec<Body>,
    /// Those of them that state was not filled from yet, where that is wanted.
    pub unread: Vec<Body>,
    /// The text of its newest assistant message of this answer, if that had one.
    pub said: Option<Body>,
    /// Its last draft or answer.
    pub answer: Option<Body>,
    /// Its last `Finished`.
    pub ended: Option<(End, Cause)>,
    /// The model call of its newest assistant message.
    pub spoke: Option<Id>,
    /// The draft of its answer that is judged, or was.
    pub draft: Option<Draft>,
    /// Tools whose calls were sent back in this answer, each with how often in a row.
    pub sent_back: Vec<(Name, u32)>,
    /// The line of its last push: head of the chain that is its stack.
    pub last: Line,
    /// How many interactions lie on its stack.
    pub height: u32,
    /// Its mode, if its definition has modes.
    pub mode: Option<Name>,
    /// The state in which its net is since the answer began, if that names its states.
    pub state: Option<Name>,
    /// None of what it called last in this answer gave what it was called for: the last of these, and what was told of it.
    pub missed: Option<(Name, Option<Body>)>,
    /// Routed agents: where the routing stands. Shared by the branches of an agent that none of them routes.
    pub routing: Arc<Routing>,
    /// What limits and triggers count.
    pub counters: Counters,
    /// `calls.NAME` as seen from here, descendants included, since the task (root: the session) began.
    pub counts: OrdMap<Name, Arc<Count>>,
    /// Its newest answer had no call so far: with whatever comes above it, it is an exchange of its own.
    pub bare: bool,
    /// Exchanges in which it called a tool, by tool.
    pub used: Uses,
    /// Summaries of what lies further back in its context, by policy.
    pub sums: OrdMap<Name, Sum>,
    /// How large its context is.
    pub weight: Arc<Weight>,
}

/// What became of the summaries of one policy. Counted as the boundaries of this policy are.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// The newest one, or the try, was wanted for all before this.
    pub tried: u32,
    /// All before this is covered.
    pub covered: u32,
    /// The text that covers it.
    pub body: Option<Body>,
    /// The last try failed or was no use: how many exchanges its agent had then.
    pub failed: Option<u32>,
}

/// How large an agent's context is, as far as that is known: in tokens as its provider counted, and in bytes where commits say
/// how it grew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weight {
    /// Tokens of a model call that has been paid for and pushed nothing yet.
    pub asked: u64,
    /// Tokens that its newest own model call sent; 0: nobody said.
    pub tokens: u64,
    /// Bytes that were pushed since that was sent.
    pub since: u64,
    /// Bytes of its newest closed exchanges, with what was said ahead of each, oldest first.
    pub exchanges: Vec<u32>,
    /// Bytes behind the newest of these.
    pub open: u64,
    /// The last line in which an exchange closed.
    pub closed: Line,
}

/// A draft of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// Its text.
    pub body: Option<Body>,
    /// What gave it: a plain answer or a finishing tool.
    pub cause: Cause,
    /// Where it stands.
    pub stands: Stands,
}

/// Where a draft stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stands {
    /// It is judged.
    Open,
    /// A reviewer has nothing against it, or could not say so.
    Accepted,
    /// It is to be revised, and the model was not asked yet.
    Revise,
    /// It was to be revised, and the model went on.
    Criticised,
}

/// What a router decides upon, and what it must remember.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Routing {
    /// Decisions taken since the answer began.
    pub count: u32,
    /// Members chosen together that have not begun.
    pub pending: Vec<Name>,
    /// Who acted last, how it ended and what it gave.
    pub last: Option<(Name, How, Option<Body>)>,
    /// Refusals in a row.
    pub refused: u32,
    /// Why the last of them could not be used.
    pub why: Option<Body>,
    /// The state of a graph, the task at work.
    pub at: Option<Name>,
    /// Where each state of a graph stands that was entered.
    pub places: OrdMap<Name, Place>,
    /// Nothing was said in the state since its exits were looked at.
    pub settled: bool,
    /// Who ended, or whose task, and was not followed by a decision yet.
    pub over: Option<Name>,
    /// Tasks that are to be done, oldest first, each with the message that asked for it.
    pub goals: Vec<(Name, Option<Body>)>,
    /// Tasks that were done.
    pub done: OrdSet<Name>,
    /// What was said last in a state was not looked at for state entries yet.
    pub unread: bool,
    /// How often a member said something.
    pub said: u32,
    /// The summaries that were written, or tried, by policy: what had been said by then.
    pub summed: OrdMap<Name, u32>,
}

/// Where a state of a graph stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// What was said in it.
    pub messages: u32,
    /// The role in which somebody was chosen to speak last.
    pub last: Option<Name>,
    /// The line that entered it.
    pub entered: Line,
}

/// Counters; those of the answer begin anew with the message above a final `Finished`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Its own model calls of this answer.
    pub model_calls: u32,
    /// Model calls of this instance, failed ones included.
    pub model_calls_all: u32,
    /// Model calls of this instance that said what is left to be done.
    pub restated: u32,
    /// Model calls of this instance that filled state from what was said, failed ones included.
    pub extracted: u32,
    /// Model calls of this instance that wrote summaries, failed ones included.
    pub summed: u32,
    /// Model calls of this instance that compacted its context, failed ones included.
    pub compacted: u32,
    /// Its own agent calls of this answer.
    pub agent_calls: u32,
    /// Corrections of this answer.
    pub corrections: u32,
    /// Commits in which it moved, this answer.
    pub ticks: u32,
    /// Digest of tool, arguments and result of the last exchanges, and how often it came.
    pub same: Option<(Digest, u32)>,
    /// Rounds of reflection of this answer.
    pub rounds: u32,
    /// Model calls since the mode began.
    pub mode_calls: u32,
    /// A limit was reached and one last model call with tools off was asked for.
    pub last_call: bool,
    /// It was asked for because of a limit, and not by the net.
    pub limited: bool,
    /// It and all it started, since the message that it answers.
    pub answer: Span,
    /// It and all it started, since the call that it serves; of the root: since the session began.
    pub task: Span,
    /// It and all it started, since it was started.
    pub session: Span,
    /// The last line that moved it or one of those that it started.
    pub moved: Line,
    /// Effects that are out for it and all it started, but those that wait for people or are waits.
    pub working: u32,
    /// The clock of the answer stands while nothing works. While something does: for how many milliseconds it stood.
    /// While nothing does: the moment from which it would have stood as long as it did. So to go and to stop are the
    /// same step, and doing both within one commit changes nothing.
    pub stood: i64,
}

/// What an agent and all it started did since something began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// When it began.
    pub began: Time,
    /// Model calls.
    pub model_calls: u32,
    /// Agent calls, those that a limit refused included.
    pub agent_calls: u32,
    /// Commits that moved one of them.
    pub ticks: u32,
    /// Tokens, as far as providers report them.
    pub tokens: u64,
    /// Money, in millionths of the currency.
    pub micros: u64,
    /// How much above a limit a person allowed, by the name of the question. Hardly ever, so it lies apart.
    pub more: Option<Arc<Vec<(Name, u64)>>>,
}

impl Counters {
    /// What counts anew with answer, task and session.
    pub(crate) fn spans(&mut self) -> [&mut Span; 3] {
        [&mut self.answer, &mut self.task, &mut self.session]
    }

    /// For how many milliseconds of this answer nothing worked.
    pub fn stood(&self, now: Time) -> i64 {
        if self.working == 0 {
            now.0.saturating_sub(self.stood)
        } else {
            self.stood
        }
    }

    /// Nothing of it is out any more: from `at` on its clock stands.
    pub(crate) fn stopped(mut self, at: Time) -> Self {
        if std::mem::take(&mut self.working) > 0 {
            self.stood = at.0.saturating_sub(self.stood);
        }
        self
    }
}

impl Span {
    /// Nothing was done yet.
    pub(crate) fn since(began: Time) -> Self {
        Self {
            began,
            ..Self::default()
        }
    }

    /// What people allowed.
    pub(crate) fn allowed(&mut self) -> &mut Vec<(Name, u64)> {
        Arc::make_mut(self.more.get_or_insert_default())
    }

    /// Adds what another one counts more than it did before.
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

/// `calls.NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Ended well.
    pub ok: u32,
    /// Ended otherwise.
    pub failed: u32,
    /// Arguments of the last that ended well.
    pub args: Option<Body>,
    /// Its result as the model saw it.
    pub result: Option<Body>,
}

/// A call of an open exchange.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenCall {
    /// The call as pushed.
    pub call: Call,
    /// Whose exchange.
    pub owner: Id,
    /// The effect that is out for it.
    pub effect: Option<Id>,
    /// Arguments that a person edited; they replace the call's.
    pub edited: Option<Body>,
    /// When it was opened; of a wait on a branch that began later by as much later.
    pub opened: Time,
    /// When its effect is due or its wait ends.
    pub due: Option<Time>,
    /// It has begun: an effect was wished, or the called agent serves it. Always true of a closed one.
    pub begun: bool,
    /// A person approved it with the arguments in `edited`.
    pub approved: bool,
    /// Who was to approve it and gave the arguments with which it runs: so approved just these.
    pub approver: Option<Name>,
    /// Of a wait: parts that are over, and what came of them (JSON); none: nothing can come.
    pub met: Vec<(u32, Option<Body>)>,
    /// Of a wait: keys of its events that do not follow from its arguments, by part (JSON).
    pub keys: Vec<(u32, Body)>,
    /// Commits on the branch's path when it was opened: what a wait for ticks counts from.
    pub opened_at: u64,
    /// The agent that chooses among its branches.
    pub chooser: Option<Id>,
    /// JSON of how its branches ended, once somebody chooses among them.
    pub ends: Option<Body>,
    /// The branch that was chosen and is to be adopted, as it stood at that line.
    pub chosen: Option<(Id, Line)>,
    /// Digest of tool and arguments, for the limit `same_call`.
    pub digest: Digest,
    /// The mode in which its caller is to be when the exchange closes.
    pub mode: Option<Name>,
    /// What its result carried, once it is closed.
    pub closed: Option<Closed>,
}

/// What lies between a result and the close of its exchange.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Closed {
    /// How it ended.
    pub how: How,
    /// Digest of what the model sees of it, for the limit `same_call`.
    pub digest: Digest,
    /// What the model sees of it.
    pub gave: Option<Body>,
    /// Writes that wait, with their values.
    pub writes: Vec<(Write, Option<Value>)>,
    /// Versions of artifacts that wait.
    pub artifacts: Vec<Artifact>,
}

/// An effect that is out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// Whose.
    pub agent: Id,
    /// What for.
    pub what: Want,
    /// Not before, or ends by itself then.
    pub due: Option<Time>,
}

/// A state entry that is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its value.
    pub value: Value,
    /// The line that wrote it.
    pub line: Line,
    /// When it becomes unset.
    pub expires: Option<Time>,
}

/// A JSON value, shared. A sealed secret is an object with the one field `$sealed`. Stored as JSON text, since
/// positional encodings cannot hold a value of any type.
#[derive(Clone, Debug, PartialEq)]
pub struct Value(pub Arc<Json>);

impl Value {
    /// Wraps a value.
    pub fn new(json: Json) -> Self {
        Self(Arc::new(json))
    }
    /// Whether it is a sealed secret.
    pub fn is_sealed(&self) -> bool {
        is_sealed(&self.0)
    }
}

/// The one field of a sealed secret.
pub const SEALED: &str = "$sealed";

/// Whether this JSON is a sealed secret.
pub fn is_sealed(json: &Json) -> bool {
    json.as_object()
        .is_some_and(|o| o.len() == 1 && o.contains_key(SEALED))
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

impl Agent {
    /// Whether a draft of its answer is judged just now.
    pub(crate) fn draft_is_judged(&self) -> bool {
        let draft = self.draft.as_ref();
        draft.is_some_and(|draft| draft.stands == Stands::Open)
    }

    /// Whether a draft of its answer was accepted, and is not its answer yet.
    pub(crate) fn draft_is_accepted(&self) -> bool {
        let draft = self.draft.as_ref();
        draft.is_some_and(|draft| draft.stands == Stands::Accepted)
    }
}

impl Snapshot {
    /// Before the first commit of `main`.
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

    /// An agent that exists. Panics if it does not: ids of agents come from this snapshot.
    pub fn agent(&self, id: Id) -> &Arc<Agent> {
        self.agents
            .get(&id)
            .expect("ids of agents come from the snapshot")
    }

    /// The root agent, once there is one.
    pub fn root_agent(&self) -> Option<&Arc<Agent>> {
        self.root.map(|id| self.agent(id))
    }

    /// The open exchange of an agent: its calls in call order, closed ones included.
    pub fn exchange(&self, agent: Id) -> impl Iterator<Item = &Arc<OpenCall>> {
        let (low, high) = (Id::MAIN, Id::new(Line::MAX, (1 << 20) - 1));
        self.calls
            .range((agent, low)..=(agent, high))
            .map(|(_, call)| call)
    }

    /// The first call of an agent's exchange, behind `after`, that is open and has not begun.
    pub fn next_unbegun(&self, agent: Id, after: Option<Id>) -> Option<Id> {
        use std::ops::Bound::{self, Excluded, Included};
        let low = after.map_or(Included((agent, Id::MAIN)), |id| Excluded((agent, id)));
        let (owner, call) = self.unbegun.range((low, Bound::Unbounded)).next()?;
        (*owner == agent).then_some(*call)
    }

    /// An open call by caller and id.
    pub fn call(&self, agent: Id, call: Id) -> Option<&Arc<OpenCall>> {
        self.calls.get(&(agent, call))
    }

    /// The call that an effect is for.
    pub fn call_of(&self, effect: Id) -> Option<&Arc<OpenCall>> {
        let effect = self.effects.get(&effect)?;
        self.call(effect.agent, effect.what.call()?)
    }

    /// Whether an agent may act on this branch.
    pub fn in_scope(&self, agent: Id) -> bool {
        self.scope.is_none_or(|scope| self.is_under(agent, scope))
    }

    /// Whether an agent is `top` or descends from it. Paths do not say so: who was born here and who came by an adoption
    /// may have the same birth number.
    pub(crate) fn is_under(&self, agent: Id, top: Id) -> bool {
        let mut at = Some(agent);
        while let Some(id) = at {
            if id == top {
                return true;
            }
            at = self.agents.get(&id).and_then(|a| a.parent);
        }
        false
    }

    /// The top agent of this branch's scope: the branch ends when it rests.
    pub fn top(&self) -> Option<Id> {
        self.scope.or(self.root)
    }

    /// How deep an agent stands; the root is at 1.
    pub fn depth(&self, agent: Id) -> u32 {
        self.agent(agent).path.len() as u32 + 1
    }

    /// Values that wait to be joined to a state entry, in no order that means anything.
    pub fn waiting_for<'a>(&'a self, scope: Id, name: &'a Name) -> impl Iterator<Item = &'a Value> {
        let from = (scope, name.clone(), Id::MAIN, Id::MAIN);
        let of_entry = self.waiting.range(from..);
        let of_entry = of_entry.take_while(move |(s, n, ..)| *s == scope && n == name);
        let calls = of_entry.filter_map(|(_, _, owner, call)| self.call(*owner, *call));
        let closed = calls.filter_map(|call| call.closed.as_ref());
        let writes = closed.flat_map(|closed| &closed.writes);
        let of_entry = writes.filter(move |(w, _)| w.scope == scope && w.name == *name);
        of_entry.filter_map(|(_, value)| value.as_ref())
    }

    /// Maps whose last entry was taken out keep room for others. Each branch that is held would have that of its own.
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

    /// The value of a state entry as an agent sees it: its own scope first, then outward. The instance that
    /// declares the entry is found by whoever knows the network; here an entry counts where it is set.
    pub fn cell(&self, scope: Id, name: &Name) -> Option<&Cell> {
        self.state.get(&(scope, name.clone()))
    }
}

//! States in Rust: how a model-driven agent's answers become steps. `chat`, `react` and `refact` are built in; others
//! are registered under a name. And the registry of routers in Rust.

mod built_in;

use crate::effect::{Answer, Bodies};
use crate::ids::{Id, Name};
use crate::network::{Does, Network, Route, RouteBy};
use crate::snapshot::{Agent, Snapshot};
use crate::tick::Cx;
use crate::view::View;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// What happened to an agent whose net is asked.
#[derive(Debug)]
pub enum Event<'a> {
    /// It owes a step: a message came, or an exchange closed. Asked before anything is wished.
    Owes,
    /// The model answered.
    Answered(&'a Answer),
    /// What it wished with [`Step::Custom`] gave this text.
    Gave(&'a str),
}

/// What a net wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A model call.
    Think,
    /// Of an answer: its calls are opened; without calls it is the agent's answer.
    Take,
    /// Of an answer: its text is a thought, kept on the stack; another step is owed.
    Thought,
    /// Of an answer: the same, and the agent is told this before its next step: what the next state wants of the model.
    /// Calls of the answer are not opened. Where a step is owed: the agent is told this, and the net is asked again.
    Next(String),
    /// Of an answer: its text is a thought; one model call with tools off follows, whose text is the answer.
    Conclude,
    /// Work by a registered handler: its name and JSON for it.
    Custom(Name, Json),
    /// The answer, without a model.
    Answer(String),
    /// It cannot go on.
    Fail(String),
    /// This step, and from it on the agent is in the state of this name: [`NetView::state`] has it, the log and events
    /// carry it, people see it.
    Enter(Name, Box<Step>),
}

impl Step {
    /// This step, and the agent enters a state with it.
    pub fn enters(self, state: &str) -> Self {
        Self::Enter(state.into(), Box::new(self))
    }

    /// The state that is entered, if one is, and what is done.
    pub(crate) fn split(self) -> (Option<Name>, Self) {
        let (mut state, mut step) = (None, self);
        while let Self::Enter(name, then) = step {
            state = Some(crate::bounds::name(&name));
            step = *then;
        }
        (state, step)
    }
}

/// What a net sees.
pub struct NetView<'a> {
    /// Where the branch stands.
    pub snapshot: &'a Snapshot,
    /// The agent.
    pub agent: &'a Agent,
    /// Texts that the snapshot names.
    pub bodies: &'a dyn Bodies,
    /// Its state, its calls and the rest as expressions see them; secrets are handles.
    pub scope: &'a dyn crate::expression::Scope,
}

impl NetView<'_> {
    /// The agent's newest message.
    pub fn message(&self) -> Arc<str> {
        let body = self.agent.message;
        body.map_or_else(|| "".into(), |body| self.bodies.text(body))
    }
    /// How many steps it took for this answer: what it said or did so far. The one that is being judged is not among them.
    pub fn steps(&self) -> u32 {
        self.agent.counters.model_calls
    }
    /// What it said last for this answer before what is being judged, if it said something.
    pub fn said(&self) -> Option<Arc<str>> {
        self.agent.said.map(|body| self.bodies.text(body))
    }
    /// The state that was entered last since the answer began.
    pub fn state(&self) -> Option<&str> {
        self.agent.state.as_deref()
    }
    /// One model call with tools off follows, whose text is the answer: a limit was reached, or enough was thought.
    pub fn is_last(&self) -> bool {
        self.agent.counters.last_call
    }
    /// The tool or agent that was called last, where nothing that was called with it gave what it was called for.
    pub fn missed(&self) -> Option<&str> {
        Some(&*self.agent.missed.as_ref()?.0)
    }
    /// The value of an expression's name: `["state", "score"]`, `["calls", "search", "ok"]`; none where there is none, or it
    /// is unset.
    pub fn value(&self, path: &[&str]) -> Option<Json> {
        value(self.scope, path)
    }
}

/// The value of an expression's name; none where there is none, or it is unset.
fn value(scope: &dyn crate::expression::Scope, path: &[&str]) -> Option<Json> {
    let (root, rest) = path.split_first()?;
    let (mut value, taken) = scope.path(root, rest)?;
    for name in rest.get(taken..)? {
        value = value.get_attr(name).ok()?;
    }
    serde_json::to_value(value).ok().filter(|v| !v.is_null())
}

/// A state machine over an agent's steps. Pure: the same view and event give the same step.
pub trait Net: Send + Sync {
    /// Its version, part of the definition's digest.
    fn version(&self) -> String;
    /// What is to be done.
    fn next(&self, view: &NetView<'_>, event: &Event<'_>) -> Step;
}

/// What a router in Rust sees.
pub struct RouteView<'a> {
    /// Where the branch stands.
    pub snapshot: &'a Snapshot,
    /// The routed agent.
    pub agent: &'a Agent,
    /// State, calls and the rest as expressions see them; what is read here is recorded.
    pub scope: &'a dyn crate::expression::Scope,
}

impl RouteView<'_> {
    /// The value of an expression's name: `["calls", "search", "ok"]`, `["route", "last", "result"]`; none where there is
    /// none, or it is unset.
    pub fn value(&self, path: &[&str]) -> Option<Json> {
        value(self.scope, path)
    }
    /// A state entry in a type of yours; none while it is unset.
    ///
    /// # Errors
    /// What does not fit, with the entry's name.
    pub fn state<T: serde::de::DeserializeOwned>(&self, entry: &str) -> Result<Option<T>, String> {
        let value = self.value(&["state", entry]);
        let typed = value.map(serde_json::from_value).transpose();
        typed.map_err(|e| format!("state.{entry}: {e}"))
    }
    /// How many decisions were taken since the message that is answered.
    pub fn count(&self) -> u64 {
        self.value(&["route", "count"])
            .and_then(|count| count.as_u64())
            .unwrap_or_default()
    }
    /// Who acted last for this answer, and what it gave.
    pub fn last(&self) -> Option<(String, Option<String>)> {
        let text = |name| self.value(&["route", "last", name]);
        let agent = text("agent")?.as_str()?.to_owned();
        Some((
            agent,
            text("result").and_then(|r| r.as_str().map(str::to_owned)),
        ))
    }
}

/// A router in Rust. Called once for each decision; its answer is recorded. Pure: the same view gives the same answer.
pub trait Router: Send + Sync {
    /// Its version, part of the definition's digest.
    fn version(&self) -> String;
    /// What comes next.
    fn route(&self, view: &RouteView<'_>) -> Result<crate::interaction::Choice, String>;
}

/// Nets and routers in Rust by name.
#[derive(Clone, Default)]
pub struct Natives {
    /// Nets by name.
    pub nets: BTreeMap<Name, Arc<dyn Net>>,
    /// Routers by the name of their routed agent.
    pub routers: BTreeMap<Name, Arc<dyn Router>>,
}

impl Natives {
    /// Whether these are the same nets and routers, not only others of their names.
    pub fn is_same(&self, other: &Self) -> bool {
        fn same<T: ?Sized>(a: &BTreeMap<Name, Arc<T>>, b: &BTreeMap<Name, Arc<T>>) -> bool {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((a, x), (b, y))| a == b && Arc::ptr_eq(x, y))
        }
        same(&self.nets, &other.nets) && same(&self.routers, &other.routers)
    }
}

impl fmt::Debug for Natives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Natives")
            .field("nets", &self.nets.keys())
            .field("routers", &self.routers.keys())
            .finish()
    }
}

impl Network {
    /// Nets that its agents name and that come with no engine: they are registered in Rust.
    pub fn nets_in_rust(&self) -> BTreeSet<&Name> {
        let agents = self.agents.values();
        let nets = agents.flat_map(|agent| agent.models().map(|model| &model.net));
        nets.filter(|net| built_in::net(net).is_none()).collect()
    }

    /// Agents whose router is registered in Rust, with the version that the definition names.
    pub fn routers_in_rust(&self) -> BTreeMap<&Name, &str> {
        let agents = self.agents.iter();
        agents
            .filter_map(|(name, agent)| match &agent.does {
                Does::Route(Route {
                    by: RouteBy::Native { version, .. },
                    ..
                }) => Some((name, &**version)),
                Does::Route(_) | Does::Model(_) | Does::Run { .. } => None,
            })
            .collect()
    }
}

/// What the agent's net wants where a step is owed.
pub(crate) fn owes(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id) -> Step {
    next(cx, snapshot, agent, &Event::Owes)
}

/// What the agent's net makes of what it got.
pub(crate) fn answered(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id, event: &Event<'_>) -> Step {
    next(cx, snapshot, agent, event)
}

fn next(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id, event: &Event<'_>) -> Step {
    let scope = View::new(cx, snapshot, Some(agent));
    let agent = snapshot.agent(agent);
    let Some(model) = cx.network.in_force(agent) else {
        return Step::Think;
    };
    let view = NetView {
        snapshot,
        agent,
        bodies: cx.bodies,
        scope: &scope,
    };
    if let Some(net) = built_in::net(&model.net) {
        return net.next(&view, event);
    }
    match cx.network.natives.nets.get(&model.net) {
        Some(net) => net.next(&view, event),
        None => Step::Fail(format!("no net `{}` is registered", model.net)),
    }
}

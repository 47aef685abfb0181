//! Nets: a net turns the answers of a model-driven agent's model into steps. `chat`, `react` and `refact` are built in;
//! other nets are registered under a name. The module also holds the registry of routers in Rust.

pub(crate) mod built_in;
pub mod states;

use crate::network::hooks::Hooks;
use crate::network::{Does, Network, Route, RouteBy};
use crate::snapshot::{Agent, Snapshot};
use crate::stored::ids::{Bodies, Name};
use crate::stored::outcome::Answer;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// An event after which an agent's net chooses the next step.
#[derive(Debug)]
pub enum Event<'a> {
    /// The agent owes a step: a message came, or an exchange closed. The net is asked before any effect is wished.
    Owes,
    /// The model answered.
    Answered(&'a Answer),
    /// The call of a [`Step::Call`] closed. The net is asked before a limit is looked at, and again if it neither answers nor fails.
    Gave(Gave<'a>),
}

/// The end of a call that a state of a net made.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Gave<'a> {
    /// True if the call did what it was made for.
    pub ok: bool,
    /// The result, or the text of the failure.
    pub text: &'a str,
    /// Code of the failure, as in `on_error`.
    pub code: Option<&'a str>,
}

/// The step that a net asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The agent makes a model call.
    Think,
    /// For an answer of the model: opens its calls. If it has none, its text is the agent's answer. For the end of a call of a
    /// state: the result is the agent's answer.
    Take,
    /// For an answer of the model: its text is a thought that the stack keeps. The agent owes another step.
    Thought,
    /// For an answer of the model: as [`Step::Thought`], and the text given here is shown to the agent before its next step.
    /// The text instructs the model for the next state. Calls of the answer are not opened. For an owed step: the text is shown
    /// to the agent, and the net is asked again.
    Next(String),
    /// For an answer of the model: its text is a thought. One model call with tools off follows, and its text is the agent's
    /// answer.
    Conclude,
    /// The state calls this tool of the network with these arguments, a JSON object. The call is judged, approved, retried and
    /// recorded like one of a model; the net gets its end as [`Event::Gave`].
    Call(Name, Json),
    /// The agent's answer, without a model call.
    Answer(String),
    /// The agent fails with this text.
    Fail(String),
    /// The agent enters the state of this name and takes the step. [`NetView::state`] returns the name; the log, events and
    /// screens show it.
    Enter(Name, Box<Step>),
}

impl Step {
    /// Returns this step together with the entry into a state.
    pub fn enters(self, state: &str) -> Self {
        Self::Enter(state.into(), Box::new(self))
    }

    /// Returns the state that the step enters, if any, and the step without it. Of nested states the innermost counts.
    pub(crate) fn split(self) -> (Option<Name>, Self) {
        let (mut state, mut step) = (None, self);
        while let Self::Enter(name, then) = step {
            state = Some(crate::stored::bounds::name(&name));
            step = *then;
        }
        (state, step)
    }
}

/// The data that a net may read.
pub struct NetView<'a> {
    /// Snapshot of the branch.
    pub snapshot: &'a Snapshot,
    /// The agent whose net is asked.
    pub agent: &'a Agent,
    /// Texts that the snapshot names.
    pub bodies: &'a dyn Bodies,
    /// The agent's state, its calls and the other names of expressions. Secrets are handles.
    pub scope: &'a dyn crate::values::expression::Scope,
}

impl NetView<'_> {
    /// Returns the agent's newest message, empty if there is none.
    pub fn message(&self) -> Arc<str> {
        let body = self.agent.input.message;
        body.map_or_else(|| "".into(), |body| self.bodies.text(body))
    }
    /// Returns the number of steps that the agent made for this answer: its model calls and the calls of its states, without the
    /// model call whose answer is in the event.
    pub fn steps(&self) -> u32 {
        self.agent.counters.model_calls
    }
    /// Returns the number of steps that a state made for this answer, counted as in [`Self::steps`].
    pub fn steps_of(&self, state: &str) -> u32 {
        self.agent.turn.steps_of(state)
    }
    /// Returns true if the newest thing on the agent's stack is an answer of its model without calls: a thought.
    pub fn is_thought(&self) -> bool {
        self.agent.context.bare
    }
    /// Returns the last text of the agent for this answer, without the text in the event.
    pub fn said(&self) -> Option<Arc<str>> {
        self.agent.turn.said.map(|body| self.bodies.text(body))
    }
    /// Returns the state that the net entered last for this answer.
    pub fn state(&self) -> Option<&str> {
        self.agent.turn.state.as_deref()
    }
    /// Returns true if the next model call is the last one for this answer, because a limit was reached or the net concluded.
    /// It has tools off, and its text is the answer.
    pub fn is_last(&self) -> bool {
        self.agent.counters.last_call
    }
    /// Returns the tool or agent of the last failed call. `None` if a call of the same or a later exchange succeeded.
    pub fn missed(&self) -> Option<&str> {
        Some(&*self.agent.turn.missed.as_ref()?.0)
    }
    /// Returns the value of a name of expressions: `["state", "score"]`, `["calls", "search", "ok"]`. `None` means that there is
    /// no such value, or that it is unset.
    pub fn value(&self, path: &[&str]) -> Option<Json> {
        value(self.scope, path)
    }
}

/// Returns the value of a name of expressions. `None` means that there is no such value, or that it is unset.
fn value(scope: &dyn crate::values::expression::Scope, path: &[&str]) -> Option<Json> {
    let (root, rest) = path.split_first()?;
    let (mut value, taken) = scope.path(root, rest)?;
    for name in rest.get(taken..)? {
        value = value.get_attr(name).ok()?;
    }
    serde_json::to_value(value).ok().filter(|v| !v.is_null())
}

/// A state machine over an agent's steps. Implementations must be pure: the same view and event give the same step.
pub trait Net: Send + Sync {
    /// Returns the version of the net, which is part of the definition's digest.
    fn version(&self) -> String;
    /// Returns the next step.
    fn next(&self, view: &NetView<'_>, event: &Event<'_>) -> Step;
}

/// The data that a router in Rust may read.
pub struct RouteView<'a> {
    /// Snapshot of the branch.
    pub snapshot: &'a Snapshot,
    /// The routed agent.
    pub agent: &'a Agent,
    /// State, calls and the other names of expressions. Values that are read here are recorded.
    pub scope: &'a dyn crate::values::expression::Scope,
}

impl RouteView<'_> {
    /// Returns the value of a name of expressions: `["calls", "search", "ok"]`, `["route", "last", "result"]`. `None` means that
    /// there is no such value, or that it is unset.
    pub fn value(&self, path: &[&str]) -> Option<Json> {
        value(self.scope, path)
    }
    /// Returns a state entry, deserialized into a type of the caller. `None` means that the entry is unset.
    ///
    /// # Errors
    /// The value does not fit the type; the text names the entry.
    pub fn state<T: serde::de::DeserializeOwned>(&self, entry: &str) -> Result<Option<T>, String> {
        let value = self.value(&["state", entry]);
        let typed = value.map(serde_json::from_value).transpose();
        typed.map_err(|e| format!("state.{entry}: {e}"))
    }
    /// Returns the text of the newest message to the routed agent; empty if there is none.
    pub fn message(&self) -> String {
        let text = self.value(&["message", "text"]);
        let text = text.and_then(|text| text.as_str().map(str::to_owned));
        text.unwrap_or_default()
    }
    /// Returns the number of decisions that the router made for the current message.
    pub fn count(&self) -> u64 {
        self.value(&["route", "count"])
            .and_then(|count| count.as_u64())
            .unwrap_or_default()
    }
    /// Returns the member that acted last for this answer, and its result.
    pub fn last(&self) -> Option<(String, Option<String>)> {
        let text = |name| self.value(&["route", "last", name]);
        let agent = text("agent")?.as_str()?.to_owned();
        Some((
            agent,
            text("result").and_then(|r| r.as_str().map(str::to_owned)),
        ))
    }
}

/// A router in Rust, called once for each decision; the log records its answer. Implementations must be pure: the same view
/// gives the same answer.
pub trait Router: Send + Sync {
    /// Returns the version of the router, which is part of the definition's digest.
    fn version(&self) -> String;
    /// Returns the next choice, or the reason why there is none; a text for people.
    fn route(&self, view: &RouteView<'_>) -> Result<crate::stored::interaction::Choice, String>;
}

/// Nets, routers and hooks in Rust by name.
#[derive(Clone, Default)]
pub struct Natives {
    /// Registered nets by name.
    pub nets: BTreeMap<Name, Arc<dyn Net>>,
    /// Routers by the name of their routed agent.
    pub routers: BTreeMap<Name, Arc<dyn Router>>,
    /// Registered hooks by name.
    pub hooks: Hooks,
}

impl Natives {
    /// Returns true if both hold the same objects under the same names. Equal names alone are not enough.
    pub fn is_same(&self, other: &Self) -> bool {
        fn same<T: ?Sized>(a: &BTreeMap<Name, Arc<T>>, b: &BTreeMap<Name, Arc<T>>) -> bool {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((a, x), (b, y))| a == b && Arc::ptr_eq(x, y))
        }
        same(&self.nets, &other.nets)
            && same(&self.routers, &other.routers)
            && same(&self.hooks, &other.hooks)
    }
}

impl fmt::Debug for Natives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Natives")
            .field("nets", &self.nets.keys())
            .field("routers", &self.routers.keys())
            .field("hooks", &self.hooks.keys())
            .finish()
    }
}

/// Returns the names of the nets that are built in.
pub fn built_in() -> impl Iterator<Item = &'static str> {
    built_in::ALL.iter().map(|(name, _)| *name)
}

impl Network {
    /// Returns the nets of the network's agents that are not built in. A program must register them.
    pub fn nets_in_rust(&self) -> BTreeSet<&Name> {
        let agents = self.agents.values();
        let nets = agents.flat_map(|agent| agent.models().map(|model| &model.net));
        nets.filter(|net| built_in::net(net).is_none()).collect()
    }

    /// Returns the agents whose router is registered in Rust, with the version that the definition names.
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

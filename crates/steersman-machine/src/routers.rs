//! Routers: the next decision of a routed agent. Each is a function of network and snapshot and gives the values that led to it.

pub mod floor;
pub(crate) mod handoff;
mod native;
mod pick;
mod rules;
mod sequence;
pub(crate) mod states;
pub(crate) mod tasks;

use crate::network::{Does, Fallback, Route, RouteBy};
use crate::questions::ask::{About, Question};
use crate::questions::summary;
use crate::snapshot::Snapshot;
use crate::stored::ids::{Body, Id, Name};
use crate::stored::interaction::Choice;
use crate::values::expression::{self, Scope};
use crate::view::{Cx, View};
use serde_json::{Map, Value as Json, json};

/// Decision of a router.
pub(crate) enum Decision {
    /// The choice, and the values that led to it.
    Chosen(Choice, Map<String, Json>),
    /// Role, member and text: the router speaks the text for the member, without a model call.
    Say(Name, Name, String),
    /// An earlier request of the user continues: the choice, the text of the request, and the values that led to the choice.
    Resume(Choice, Body, Map<String, Json>),
    /// A model is asked this question.
    Ask(Question),
    /// The route ends; the values that led to the end.
    Over(Map<String, Json>),
    /// No rule holds. The agent ends with the cause `no_rule`.
    NoRule,
    /// The router could not decide.
    Failed(String),
}

impl Decision {
    /// Returns true unless the decision ends the turn or the task of the routed agent.
    pub(crate) fn goes_on(&self) -> bool {
        match self {
            Self::Chosen(choice, _) => !matches!(choice, Choice::Finish | Choice::Answer(_)),
            Self::Say(..) | Self::Resume(..) | Self::Ask(_) => true,
            Self::Over(_) | Self::NoRule | Self::Failed(_) => false,
        }
    }
}

/// Returns the next decision of a routed agent that owes one. It depends only on the snapshot, so an owner that takes the
/// session over can ask a model the same question again.
pub(crate) fn decide(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id) -> Decision {
    let state = snapshot.agent(agent);
    let Does::Route(route) = &cx.network.agent(&state.def).does else {
        return Decision::Failed("the agent is not routed".to_owned());
    };
    let view = View::new(cx, snapshot, Some(agent));
    let decision = match &route.by {
        RouteBy::Rules(rules) => rules::decide(cx, snapshot, agent, route, rules),
        RouteBy::Sequence(members) => sequence::decide(state, members),
        RouteBy::Native { members, .. } => {
            native::decide(cx.network, snapshot, agent, &view, members)
        }
        RouteBy::Pick(from) => pick::decide(cx, snapshot, agent, route, from, None),
        RouteBy::States(graph) => states::decide(cx, snapshot, agent, route, graph),
        RouteBy::Tasks(desk) => tasks::decide(cx, snapshot, agent, route, desk),
        RouteBy::Handoff(handoff) => handoff::decide(state, handoff),
    };
    match decision {
        Decision::Ask(question) if state.routing.refused > route.asks.unusable.retries => {
            fallback(cx, snapshot, agent, route, &question.about)
        }
        decision => decision,
    }
}

/// Returns the question that a routed agent asks a model, if it asks one: for a summary that is due, otherwise for its decision.
pub(crate) fn question(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id) -> Option<Question> {
    if let Some((question, _)) = summary::question(cx, snapshot, agent) {
        return Some(question);
    }
    match decide(cx, snapshot, agent) {
        Decision::Ask(question) => Some(question),
        _ => None,
    }
}

/// Returns the decision that replaces unusable answers of a routing model.
fn fallback(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id, route: &Route, about: &About) -> Decision {
    let state = snapshot.agent(agent);
    let why = state
        .routing
        .why
        .map(|body| cx.bodies.text(body).to_string());
    let read = Map::from_iter([
        ("unusable".to_owned(), json!(state.routing.refused)),
        ("why".to_owned(), json!(&why)),
    ]);
    match (&route.asks.unusable.to, about) {
        // The floor goes back to the user, who can say what is left to be done.
        (_, About::Left) => Decision::Over(read),
        (Fallback::Member(member), _) => {
            Decision::Chosen(Choice::Agents(vec![member.clone()]), read)
        }
        (Fallback::Stay, About::Exit(_)) => Decision::Chosen(Choice::Stay, read),
        (Fallback::Stay, About::Speaker(_)) => {
            let next = match (&route.by, &state.routing.at) {
                (RouteBy::States(graph), Some(at)) => graph
                    .states
                    .get(at)
                    .zip(state.routing.places.get(at))
                    .map(|(node, place)| states::speaks_as(states::in_turn(node, place))),
                _ => None,
            };
            match next {
                Some(next) => Decision::Chosen(next, read),
                None => Decision::Over(read),
            }
        }
        (Fallback::Stay | Fallback::Finish, _) => Decision::Over(read),
        (Fallback::Fail, _) => {
            let why = why.unwrap_or_default();
            Decision::Failed(format!("the routing model gave no usable answer: {why}"))
        }
    }
}

/// A scope that passes on the reads of another scope and records their values, which led to a choice.
pub(crate) struct Reads<'a> {
    scope: &'a dyn Scope,
    read: std::cell::RefCell<Map<String, Json>>,
}

impl<'a> Reads<'a> {
    pub(crate) fn new(scope: &'a dyn Scope) -> Self {
        Self {
            scope,
            read: std::cell::RefCell::default(),
        }
    }

    /// Returns the recorded values by path.
    pub(crate) fn into_values(self) -> Map<String, Json> {
        self.read.into_inner()
    }

    fn note(&self, path: String, value: &minijinja::Value) {
        let json = expression::to_json(value).unwrap_or_default();
        let json = expression::shown_json(&json);
        self.read.borrow_mut().insert(path, json);
    }
}

impl Scope for Reads<'_> {
    fn root(&self, name: &str) -> Option<minijinja::Value> {
        let value = self.scope.root(name)?;
        self.note(name.to_owned(), &value);
        Some(value)
    }

    fn path(&self, root: &str, steps: &[&str]) -> Option<(minijinja::Value, usize)> {
        let (value, taken) = self.scope.path(root, steps)?;
        let mut path = root.to_owned();
        for step in &steps[..taken] {
            path.push('.');
            path.push_str(step);
        }
        self.note(path, &value);
        Some((value, taken))
    }
}

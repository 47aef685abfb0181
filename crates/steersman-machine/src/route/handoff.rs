//! `handoff`: members pass the floor to each other; a message goes to whoever has it.

use super::Decision;
use crate::ids::{Id, Name};
use crate::interaction::Choice;
use crate::network::{Does, Handoff, Route, RouteBy};
use crate::snapshot::{Agent, Snapshot};
use crate::tick::Cx;
use serde_json::Map;

/// Whoever had the floor last has it, at first whoever begins; who ended without passing it on ends the route's turn.
pub(super) fn decide(agent: &Agent, handoff: &Handoff) -> Decision {
    if agent.routing.over.is_some() {
        return Decision::Over(Map::new());
    }
    let last = agent.routing.last.as_ref().map(|(name, ..)| name);
    let member = last.filter(|name| handoff.to.contains_key(*name));
    Decision::Chosen(takes(member.unwrap_or(&handoff.start)), Map::new())
}

/// A member takes the floor.
pub(crate) fn takes(member: &Name) -> Choice {
    Choice::Task {
        task: member.clone(),
        agent: member.clone(),
        goal: None,
    }
}

/// To whom an agent may hand over, and the routed agent above it; none: it has no floor to pass.
pub(crate) fn peers<'n>(cx: &Cx<'n>, snapshot: &Snapshot, agent: Id) -> Option<(Id, &'n [Name])> {
    let state = snapshot.agent(agent);
    let parent = state.parent.filter(|_| state.serving.is_some())?;
    let def = cx.network.agents.get(&snapshot.agent(parent).def)?;
    let Does::Route(Route {
        by: RouteBy::Handoff(handoff),
        ..
    }) = &def.does
    else {
        return None;
    };
    handoff.to.get(&state.def).map(|to| (parent, &**to))
}

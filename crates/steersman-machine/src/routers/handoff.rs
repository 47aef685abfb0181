//! `handoff`: members pass the floor to each other; a message goes to the member that has it.

use super::Decision;
use crate::network::{Does, Handoff, Route, RouteBy};
use crate::snapshot::{Agent, Snapshot};
use crate::stored::ids::{Id, Name};
use crate::stored::interaction::Choice;
use crate::view::Cx;
use serde_json::Map;

/// Chooses the member that had the floor last; at the first decision, the definition's `start`. If a member ended without
/// passing the floor on, the turn of the routed agent ends.
pub(super) fn decide(agent: &Agent, handoff: &Handoff) -> Decision {
    if agent.routing.over.is_some() {
        return Decision::Over(Map::new());
    }
    let last = agent.routing.last.as_ref().map(|(name, ..)| name);
    let member = last.filter(|name| handoff.to.contains_key(*name));
    Decision::Chosen(takes(member.unwrap_or(&handoff.start)), Map::new())
}

/// Returns the choice by which a member takes the floor.
pub(crate) fn takes(member: &Name) -> Choice {
    Choice::Task {
        task: member.clone(),
        agent: member.clone(),
        goal: None,
    }
}

/// Returns the routed agent above a member, and the members to which it may pass the
/// floor. `None` means that it has no floor to pass.
pub(crate) fn peers<'n>(cx: &Cx<'n>, snapshot: &Snapshot, agent: Id) -> Option<(Id, &'n [Name])> {
    let state = snapshot.agent(agent);
    let (parent, _) = state.caller()?;
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

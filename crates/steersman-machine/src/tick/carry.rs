//! Decides whether a session can go on under another definition: the checks when a session is bound again.
//!
//! A session identifies agents by their names, and state by the agents that declare it. The session cannot go on if the
//! other definition lacks one of them, or if a stored value does not fit it. Nothing that is stored is dropped or changed.

use crate::network::{AgentDef, Does, Network, Offer, RouteBy, Turns};
use crate::routers::floor::turns;
use crate::snapshot::{Agent, OpenCall, Phase, Snapshot};
use crate::stored::commit::Kind;
use crate::stored::ids::{Id, Name};
use crate::values::json::{is_sealed, read};
use crate::values::types::{TypeKind, misfit};
use crate::view::{Cx, rating};
use serde_json::{Map, Value as Json};

/// A new state entry with a default. It must be written for agents that exist already.
#[derive(Clone, Debug, PartialEq)]
pub struct New {
    /// The agent instance that declares the entry.
    pub scope: Id,
    /// Name of the entry.
    pub name: Name,
    /// Default of the entry.
    pub value: Json,
}

/// Returns the kind of an agent: a model or a router chooses its next step.
pub(crate) fn kind(def: &AgentDef) -> Kind {
    match &def.does {
        Does::Model(_) | Does::Run { .. } => Kind::Model,
        Does::Route(_) => Kind::Routed,
    }
}

/// Checks that the other definition has all agents of a branch, each of the same kind. Reading a branch needs this even if
/// the branch never moves again.
///
/// # Errors
/// The agent that is missing or of another kind, as a text for people.
pub fn agents(to: &Network, snapshot: &Snapshot) -> Result<(), String> {
    for agent in snapshot.agents.values() {
        let name = &agent.def;
        let Some(def) = to.agents.get(name) else {
            return Err(format!(
                "the agent `{name}` is not in it, and this session has it"
            ));
        };
        if kind(def) != agent.kind {
            let (was, is) = match agent.kind {
                Kind::Model => ("was no router", "is one now"),
                Kind::Routed => ("was a router", "is none now"),
            };
            return Err(format!("the agent `{name}` {was}, and {is}"));
        }
    }
    Ok(())
}

/// Returns the state entries that must be written so that a branch on which nothing is open goes on under another definition than
/// that of `cx`. Calls of agents that rest in them stay open: their agents have the floor under the other definition, too.
///
/// # Errors
/// The reason why the branch cannot go on, as a text for people.
pub fn carried(cx: &Cx<'_>, to: &Network, snapshot: &Snapshot) -> Result<Vec<New>, String> {
    agents(to, snapshot)?;
    for open in snapshot.calls.values() {
        keeps(cx, to, snapshot, open)?;
    }
    let mut new = Vec::new();
    for agent in snapshot.agents.values() {
        let (was, is) = (cx.network.agent(&agent.def), to.agent(&agent.def));
        arguments(cx, is, agent)?;
        chosen(to, agent)?;
        place(is, agent)?;
        mode(is, agent)?;
        for (name, ty) in &is.state {
            let cell = snapshot.cell(agent.id, name);
            let known = was.state.iter().find(|(known, _)| known == name);
            match (cell, &ty.default) {
                (Some(cell), _) if known.is_none_or(|(_, was)| was != ty) => {
                    let value = &*cell.value.0;
                    let why = if matches!(ty.kind, TypeKind::Secret) != is_sealed(value) {
                        "a secret stays one, and no other entry becomes one".to_owned()
                    } else if matches!(ty.kind, TypeKind::Schema(_)) {
                        "its schema changed, and it has a value".to_owned()
                    } else if let Some(misfit) = misfit(ty, value) {
                        misfit.to_string()
                    } else {
                        continue;
                    };
                    return Err(format!("state.{name} of agent `{}`: {why}", agent.def));
                }
                (None, Some(default)) if known.is_none() => new.push(New {
                    scope: agent.id,
                    name: name.clone(),
                    value: default.clone(),
                }),
                _ => {}
            }
        }
    }
    for (scope, name) in snapshot.state.keys() {
        if rating::is_rating(name) {
            continue;
        }
        let def = &snapshot.agents[scope].def;
        if !to.agent(def).state.iter().any(|(known, _)| known == name) {
            return Err(format!(
                "state.{name} of agent `{def}` is not in it, and has a value"
            ));
        }
    }
    Ok(new)
}

/// Checks that a call of an open exchange may stay as it is. If it is open, its agent rests in it, and under the other definition
/// the caller still gives the floor to that agent. If it is closed, its writes wait for the exchange, and their entries are the
/// same there.
fn keeps(cx: &Cx<'_>, to: &Network, snapshot: &Snapshot, open: &OpenCall) -> Result<(), String> {
    let name = &open.call.name;
    if let Some(closed) = &open.closed {
        let other = closed.writes.iter().find(|(write, _)| {
            let def = &snapshot.agent(write.scope).def;
            let entry = |network: &Network| {
                let mut state = network.agent(def).state.iter();
                state.find(|(name, _)| *name == write.name).cloned()
            };
            entry(cx.network) != entry(to)
        });
        return other.map_or(Ok(()), |(write, _)| {
            Err(format!(
                "a result of `{name}` waits to be written to state.{}, which changed",
                write.name
            ))
        });
    }
    let Some(agent) = snapshot.rests_in(open) else {
        return Err(format!(
            "a call of `{name}` is open, and a call must end under the definition under which it was made"
        ));
    };
    let name = &agent.def;
    let caller = &snapshot.agent(open.owner).def;
    let def = to.agent(caller);
    let is_called = match &def.does {
        Does::Route(route) => route.by.leads_to(name),
        Does::Model(_) | Does::Run { .. } => def
            .offers()
            .any(|used| matches!(&used.of, Offer::Agent(agent) if agent == name)),
    };
    if !is_called {
        return Err(format!(
            "`{name}` has the floor in `{caller}`, and is no member of it there"
        ));
    }
    if turns(to, snapshot, agent.id) != Turns::Dialogue {
        return Err(format!(
            "`{name}` has the floor in `{caller}`, and holds no dialogue there"
        ));
    }
    Ok(())
}

/// Checks that the state of a graph or the task in which a routed agent is still exists.
fn place(is: &AgentDef, agent: &Agent) -> Result<(), String> {
    let (Some(at), Does::Route(route)) = (&agent.routing.at, &is.does) else {
        return Ok(());
    };
    let (known, what) = match &route.by {
        RouteBy::States(graph) => (graph.states.contains_key(at), "state"),
        RouteBy::Tasks(desk) => (desk.task(at).is_some(), "task"),
        RouteBy::Rules(_)
        | RouteBy::Sequence(_)
        | RouteBy::Native { .. }
        | RouteBy::Pick(_)
        | RouteBy::Handoff(_) => return Ok(()),
    };
    if known {
        Ok(())
    } else {
        Err(format!(
            "the agent `{}` is in the {what} `{at}`, which is not in it",
            agent.def
        ))
    }
}

/// Checks the arguments of an agent at work, or of the root: its parameters must not have changed. A plain message of a root is
/// no object with arguments, so it fits any parameters.
fn arguments(cx: &Cx<'_>, is: &AgentDef, agent: &Agent) -> Result<(), String> {
    let is_root = agent.family.parent.is_none();
    let has_args = agent
        .input
        .args
        .is_some_and(|body| !is_root || read::<Map<String, Json>>(&cx.bodies.text(body)).is_ok());
    let works = is_root || agent.phase != Phase::Resting || agent.input.serving.is_some();
    if has_args && works && cx.network.agent(&agent.def).parameters != is.parameters {
        return Err(format!(
            "the parameters of the agent `{}` changed, and it is at work with its old arguments",
            agent.def
        ));
    }
    Ok(())
}

/// Checks that the current mode of an agent still exists. An agent without a mode gets the start mode of the definition.
fn mode(is: &AgentDef, agent: &Agent) -> Result<(), String> {
    let known = |mode: &Name| is.modes.iter().any(|modes| modes.get(mode).is_some());
    match agent.mode.as_ref().filter(|mode| !known(mode)) {
        Some(mode) => Err(format!(
            "the agent `{}` is in the mode `{mode}`, which is not in it",
            agent.def
        )),
        None => Ok(()),
    }
}

/// Checks that the members that a router chose and that have not begun still exist.
fn chosen(to: &Network, agent: &Agent) -> Result<(), String> {
    let gone = |name: &&Name| !to.agents.contains_key(*name) && !to.people.contains_key(*name);
    match agent.routing.pending.iter().find(gone) {
        Some(name) => Err(format!("`{name}`, which acts next, is not in it")),
        None => Ok(()),
    }
}

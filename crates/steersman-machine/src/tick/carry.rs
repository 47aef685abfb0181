//! Decides whether a session can go on under another definition: the checks when a session is bound again.
//!
//! A session identifies agents by their names, and state by the agents that declare it. The session cannot go on if the
//! other definition lacks one of them, or if a stored value does not fit it. Nothing that is stored is dropped or changed.

use crate::network::{AgentDef, Does, Network};
use crate::snapshot::{Agent, Phase, Snapshot};
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

/// Returns the state entries that must be written so that a branch without open calls goes on under another definition than that
/// of `cx`.
///
/// # Errors
/// The reason why the branch cannot go on, as a text for people.
pub fn carried(cx: &Cx<'_>, to: &Network, snapshot: &Snapshot) -> Result<Vec<New>, String> {
    if let Some(open) = snapshot.calls.values().next() {
        return Err(format!(
            "a call of `{}` is open, and a call must end under the definition under which it was made",
            open.call.name
        ));
    }
    agents(to, snapshot)?;
    let mut new = Vec::new();
    for agent in snapshot.agents.values() {
        let (was, is) = (cx.network.agent(&agent.def), to.agent(&agent.def));
        arguments(cx, is, agent)?;
        chosen(to, agent)?;
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

/// Checks the arguments of an agent at work, or of the root: its parameters must not have changed. A plain message of a root is
/// no object with arguments, so it fits any parameters.
fn arguments(cx: &Cx<'_>, is: &AgentDef, agent: &Agent) -> Result<(), String> {
    let is_root = agent.family.parent.is_none();
    let has_args = agent
        .input
        .args
        .is_some_and(|body| !is_root || read::<Map<String, Json>>(&cx.bodies.text(body)).is_ok());
    let works = is_root || agent.phase != Phase::Resting;
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

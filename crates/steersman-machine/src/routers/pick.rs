//! `pick`: a model picks one of the enabled members, or says that all is done.

use super::{Decision, Reads};
use crate::network::{AgentDef, Choosable, Route, texts};
use crate::questions::ask::{About, Question};
use crate::snapshot::Snapshot;
use crate::stored::ids::{Id, Name};
use crate::view::say::say_in;
use crate::view::{Cx, View};
use serde_json::json;
use std::fmt::Write as _;

/// Asks a model to choose one of the enabled members. If no member is enabled, the decision is [`Decision::NoRule`].
pub(super) fn decide(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    agent: Id,
    route: &Route,
    from: &[Choosable],
    model: Option<&Name>,
) -> Decision {
    let view = View::new(cx, snapshot, Some(agent));
    let reads = Reads::new(&view);
    let mut members = Vec::new();
    for choosable in from {
        let enabled = match &choosable.when {
            None => Ok(true),
            Some(when) => when.holds(&reads),
        };
        match enabled {
            Ok(true) => members.push(choosable.agent.clone()),
            Ok(false) => {}
            Err(e) => return Decision::Failed(format!("`pick` of `{}`: {e}", choosable.agent)),
        }
    }
    if members.is_empty() {
        return Decision::NoRule;
    }
    let mut system = match route.asks.system.as_ref().map(|t| t.render(&view)) {
        Some(Ok(system)) => system,
        Some(Err(e)) => return Decision::Failed(format!("`system` of `pick`: {e}")),
        None => say_in(&cx.network.texts, &view, texts::PICK, &[]),
    };
    system.push_str("\n\nThe team:");
    for member in &members {
        let words = cx.network.description_of(member);
        let _ = write!(system, "\n- {member}: {words}");
        let tools = tools_of(cx, member);
        if !tools.is_empty() {
            let _ = write!(system, " (tools: {})", tools.join(", "));
        }
    }
    let mut read = reads.into_values();
    read.insert("offered".to_owned(), json!(members));
    Decision::Ask(Question {
        about: About::Pick(members),
        model: model.unwrap_or(&route.asks.model).clone(),
        system,
        closing: "Who acts next?".to_owned(),
        read,
    })
}

/// Returns the names of the tools that a member is offered.
fn tools_of(cx: &Cx<'_>, member: &str) -> Vec<String> {
    let def = cx.network.agents.get(member);
    let offers = def.into_iter().flat_map(AgentDef::offers);
    let mut names: Vec<String> = Vec::new();
    for used in offers.filter(|used| !used.implied) {
        if !names.iter().any(|known| **known == *used.seen) {
            names.push(used.seen.to_string());
        }
    }
    names
}

//! `rules`: the first rule whose expression holds decides.

use super::{Decision, Reads, pick};
use crate::network::{Route, Rule, RuleTo};
use crate::snapshot::Snapshot;
use crate::stored::ids::Id;
use crate::stored::interaction::Choice;
use crate::view::{Cx, View};
use serde_json::json;

/// Returns the choice of the first rule that holds. An expression that fails is an error, never `false`.
pub(super) fn decide(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    agent: Id,
    route: &Route,
    rules: &[Rule],
) -> Decision {
    let view = View::new(cx, snapshot, Some(agent));
    let reads = Reads::new(&view);
    for (k, rule) in rules.iter().enumerate() {
        match rule.when.holds(&reads) {
            Ok(false) => {}
            Ok(true) => {
                let choice = match &rule.to {
                    RuleTo::Agents(members) => Choice::Agents(members.clone()),
                    RuleTo::Finish => Choice::Finish,
                    RuleTo::Pick { from, model } => {
                        let mut picks =
                            pick::decide(cx, snapshot, agent, route, from, model.as_ref());
                        if let Decision::Ask(question) = &mut picks {
                            question.read.extend(reads.into_values());
                            question.read.insert("rule".to_owned(), json!(k + 1));
                        }
                        return picks;
                    }
                };
                let mut read = reads.into_values();
                read.insert("rule".to_owned(), json!(k + 1));
                return Decision::Chosen(choice, read);
            }
            Err(e) => return Decision::Failed(format!("rule `{}`: {e}", rule.when.source)),
        }
    }
    Decision::NoRule
}

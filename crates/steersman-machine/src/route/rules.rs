//! `rules`: the first expression that holds names what comes next.

use super::{Decision, Reads, pick};
use crate::ids::Id;
use crate::interaction::Choice;
use crate::network::{Route, Rule, RuleTo};
use crate::snapshot::Snapshot;
use crate::tick::Cx;
use crate::view::View;

/// The first rule that holds. An expression that fails is an error, never `false`.
pub(super) fn decide(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    agent: Id,
    route: &Route,
    rules: &[Rule],
) -> Decision {
    let view = View::new(cx, snapshot, Some(agent));
    let reads = Reads::new(&view);
    for rule in rules {
        match rule.when.holds(&reads) {
            Ok(false) => {}
            Ok(true) => {
                let choice = match &rule.to {
                    RuleTo::Agents(members) => Choice::Agents(members.clone()),
                    RuleTo::Finish => Choice::Finish,
                    RuleTo::Pick { from, model } => {
                        return pick::decide(cx, snapshot, agent, route, from, model.as_ref());
                    }
                };
                return Decision::Chosen(choice, reads.into_values());
            }
            Err(e) => return Decision::Failed(format!("rule `{}`: {e}", rule.when.source)),
        }
    }
    Decision::NoRule
}

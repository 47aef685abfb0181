//! `rules`: the first expression that holds names what comes next.

use super::{Decision, Reads};
use crate::interaction::Choice;
use crate::network::{Rule, RuleTo};
use crate::view::View;

/// The first rule that holds. An expression that fails is an error, never `false`.
pub(super) fn decide(view: &View<'_>, rules: &[Rule]) -> Decision {
    let reads = Reads::new(view);
    for rule in rules {
        match rule.when.holds(&reads) {
            Ok(false) => {}
            Ok(true) => {
                let choice = match &rule.to {
                    RuleTo::Agents(members) => Choice::Agents(members.clone()),
                    RuleTo::Finish => Choice::Finish,
                };
                return Decision::Chosen(choice, reads.into_values());
            }
            Err(e) => return Decision::Failed(format!("rule `{}`: {e}", rule.when.source)),
        }
    }
    Decision::NoRule
}

//! `sequence`: the members act one after the other; each gets the result of the one before.

use super::Decision;
use crate::snapshot::Agent;
use crate::stored::ids::Name;
use crate::stored::interaction::Choice;
use serde_json::Map;

/// Chooses all members once, then the end.
pub(super) fn decide(agent: &Agent, members: &[Name]) -> Decision {
    let choice = if agent.routing.count == 0 {
        Choice::Agents(members.to_vec())
    } else {
        Choice::Finish
    };
    Decision::Chosen(choice, Map::new())
}

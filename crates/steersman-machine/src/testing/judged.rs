//! Random sessions in which agents and tools are judged.

use super::random::{Dice, busy, said};
use crate::effect::Outcome;
use crate::expression::Expr;
use crate::ids::Id;
use crate::network::{Network, Reflect};
use crate::reflect;
use crate::snapshot::Snapshot;

/// Makes some agents and tools judged, by themselves or by a reviewer that may call judged tools too.
pub(super) fn reflects(network: &mut Network, seed: u64) {
    let reflect = |by: Option<&str>, rounds: u32| {
        Some(Reflect {
            by: by.map(Into::into),
            rounds,
            when: Expr::parse("true").expect("a constant is an expression"),
            prompt: None,
        })
    };
    let rounds = 1 + (seed / 4 % 2) as u32;
    for (agent, by) in [
        ("lead", Some("critic")),
        ("helper", None),
        ("talker", Some("deep")),
        ("quick", None),
        ("clerk", Some("critic")),
    ] {
        if let Some(agent) = network.agents.get_mut(agent) {
            agent.reflect = reflect(by, rounds);
        }
    }
    for (tool, by) in [
        ("look", None),
        ("pay", Some("critic")),
        ("mail", Some("critic")),
        ("guarded", None),
    ] {
        if let Some(tool) = network.tools.get_mut(tool) {
            tool.reflect = reflect(by, rounds);
        }
    }
}

/// Returns true if the next model call of the agent is a judgement.
pub(super) fn is_asked(snapshot: &Snapshot, agent: Id) -> bool {
    reflect::judges_itself(snapshot, agent)
        || reflect::open(snapshot, agent).is_some()
        || reflect::serves_review(snapshot, agent)
}

/// Returns a random judgement; some cannot be used.
pub(super) fn verdict(dice: &mut Dice, effect: Id) -> Outcome {
    match dice.below(10) {
        0 => busy(),
        1 => said(effect, "Hm.", Vec::new()),
        2 => said(effect, "", Vec::new()),
        3..6 => said(effect, &reflect::revise("Better."), Vec::new()),
        _ => said(effect, &reflect::accept(), Vec::new()),
    }
}

//! Reflection in random sessions: judges of answers and of tool calls.

use super::random::{Dice, busy, said};
use steersman_machine::network::{Network, Reflect};
use steersman_machine::questions::judgement;
use steersman_machine::stored::ids::Id;
use steersman_machine::stored::outcome::Outcome;
use steersman_machine::values::expression::Expr;

/// Adds reflection to some agents and tools. The judge is the agent itself, or a reviewer, which may call judged tools too.
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

/// Returns a random judgement; some cannot be used.
pub(super) fn verdict(dice: &mut Dice, effect: Id) -> Outcome {
    match dice.below(10) {
        0 => busy(),
        1 => said(effect, "Hm.", Vec::new()),
        2 => said(effect, "", Vec::new()),
        3..6 => said(effect, &judgement::revise("Better."), Vec::new()),
        _ => said(effect, &judgement::accept(), Vec::new()),
    }
}

//! Modes in random sessions, and the checks on them.

use super::net::expr;
use super::world::{Fault, World, fault};
use steersman_machine::network::{
    ExitsWhen, FINISH, Limits, Mode, ModeExit, ModelAgent, Modes, Network, OnLimit,
};
use steersman_machine::stored::commit::Commit;
use steersman_machine::stored::ids::Id;
use steersman_machine::values::expression::Template;

/// Adds modes with every kind of exit to some agents, and lets a tool set a mode.
pub(super) fn moody(network: &mut Network, seed: u64) {
    let agents = match seed % 3 {
        0 => return,
        1 => &["helper", "clerk"][..],
        _ => &["lead", "helper", "talker", "deep"][..],
    };
    for name in agents {
        let agent = network.agents.get_mut(*name).expect("it is in the draft");
        let all = agent.model(None).expect("a model drives it").clone();
        agent.modes = Some(Box::new(modes(&all, &agent.limits)));
        agent.enter_fresh |= *name == "helper";
    }
    let add = network.tools.get_mut("add").expect("it is in the draft");
    add.mode = Some(Template::parse("{{ 'b' if result is odd else '' }}").expect("it parses"));
}

fn modes(all: &ModelAgent, limits: &Limits) -> Modes {
    let exit = |cause, to: &str| ModeExit {
        cause,
        to: to.into(),
    };
    let after = |name: &str| ExitsWhen::AfterTool(vec![name.into()]);
    let mode = |name: &str, exits| Mode {
        name: name.into(),
        model: ModelAgent {
            system: Some(Template::parse("You are {{ agent }}, {{ mode }}.").expect("it parses")),
            ..all.clone()
        },
        limits: limits.clone(),
        exits,
    };
    let mut few = mode("b", vec![exit(ExitsWhen::AfterCalls(2), "c")]);
    let mut odd = false;
    few.model.tools.retain(|used| {
        odd = !odd;
        odd || *used.seen == *"fork"
    });
    few.limits.model_calls.max = 6;
    few.limits.model_calls.then = OnLimit::Fail;
    let holds = ExitsWhen::Holds(expr("state.seen is not none and calls.look.ok > 1"));
    Modes {
        start: "a".into(),
        exits: vec![exit(after("mail"), "a"), exit(after("pay"), FINISH)],
        all: vec![
            mode("a", vec![exit(holds, "c"), exit(after("look"), "b")]),
            few,
            mode("c", vec![exit(after("note"), "a")]),
        ],
    }
}

/// Checks that each agent is in the mode that follows from the commits on its path, and that its definition has this mode.
/// Returns the number of changes.
pub(super) fn check(world: &World) -> Result<u64, Fault> {
    let mut changes = 0;
    for (branch, at) in world.branches() {
        let path = || {
            let head = Some(at.head).filter(|head| head.is_some());
            let lines = std::iter::successors(head, |at| {
                Some(world.line(*at).prev).filter(|prev| prev.is_some())
            });
            lines.filter_map(|at| world.line(at).commit.as_ref())
        };
        for agent in at.snapshot.agents.values() {
            let path_modes = Commit::modes_along(path(), agent.id);
            if path_modes.last() != agent.mode.as_ref() {
                return wrong(
                    *branch,
                    agent.id,
                    &format!("{path_modes:?}, it is {:?}", agent.mode),
                );
            }
            let def = world.cx().network.agent(&agent.def);
            let known = |mode: &str| def.modes.iter().any(|modes| modes.get(mode).is_some());
            if let Some(mode) = agent.mode.as_deref()
                && !known(mode)
                && (mode != FINISH || def.modes.is_none())
            {
                return wrong(*branch, agent.id, &format!("{mode} is none of its modes"));
            }
            changes += path_modes.len().saturating_sub(1) as u64;
        }
    }
    Ok(changes)
}

fn wrong<T>(branch: Id, agent: Id, why: &str) -> Result<T, Fault> {
    fault(format!("branch {branch}: modes of {agent}: {why}"))
}

//! The step that an agent's net asks for.

use crate::network::nets::{Event, Gave, NetView, Step, built_in};
use crate::snapshot::Snapshot;
use crate::stored::ids::Id;
use crate::view::{Cx, View};

/// Returns the step that the agent's net asks for when the agent owes one.
pub(crate) fn owes(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id) -> Step {
    gave(cx, snapshot, agent).unwrap_or_else(|| next(cx, snapshot, agent, &Event::Owes))
}

/// Returns the step that the agent's net asks for after a call of its state. `None` if the agent did something since.
pub(crate) fn gave(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id) -> Option<Step> {
    let gave = snapshot.agent(agent).turn.gave.as_ref()?;
    let text = gave
        .body
        .map_or_else(|| "".into(), |body| cx.bodies.text(body));
    let gave = Gave {
        ok: gave.ok,
        text: &text,
        code: gave.code.as_deref(),
    };
    Some(next(cx, snapshot, agent, &Event::Gave(gave)))
}

/// Returns the step that the agent's net asks for after an answer.
pub(crate) fn answered(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id, event: &Event<'_>) -> Step {
    next(cx, snapshot, agent, event)
}

fn next(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id, event: &Event<'_>) -> Step {
    let scope = View::new(cx, snapshot, Some(agent));
    let agent = snapshot.agent(agent);
    let Some(model) = cx.network.in_force(agent) else {
        return Step::Think;
    };
    let view = NetView {
        snapshot,
        agent,
        bodies: cx.bodies,
        scope: &scope,
    };
    if let Some(net) = built_in::net(&model.net) {
        return net.next(&view, event);
    }
    match cx.network.natives.nets.get(&model.net) {
        Some(net) => net.next(&view, event),
        None => Step::Fail(format!("no net `{}` is registered", model.net)),
    }
}

//! The floor: which tools of the floor an agent is offered, and whether its answer ends a turn or a task.

use super::handoff;
use crate::network::{Desk, Does, Network, Route, RouteBy, Source, Task, Turns, texts};
use crate::snapshot::{OpenCall, Snapshot};
use crate::stored::built_in::BuiltIn;
use crate::stored::commit::Kind;
use crate::stored::ids::Id;
use crate::view::say::say;
use crate::view::{Cx, View, mapping};
use serde_json::Value as Json;

/// Returns true if an agent is offered a built-in tool now. Tools of the floor are offered only to the member that has
/// the floor.
pub(crate) fn offers(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id, built_in: BuiltIn) -> bool {
    let task = || at_work(cx, snapshot, agent).map(|(_, task)| task);
    match built_in {
        BuiltIn::Done => task().is_some_and(|task| task.may_end),
        BuiltIn::NeedHelp => task().is_some_and(|task| task.may_release),
        BuiltIn::Handoff => {
            handoff::peers(cx, snapshot, agent).is_some_and(|(_, to)| !to.is_empty())
        }
        _ => true,
    }
}

/// Returns whether a plain answer of the agent ends a turn or its task. The definition decides. If it says nothing, an agent
/// that talks with the user ends a turn, and any other agent ends its task.
pub fn turns(network: &Network, snapshot: &Snapshot, agent: Id) -> Turns {
    let state = snapshot.agent(agent);
    let def = network.agent(&state.def);
    if let Some(turns) = def.turns {
        return turns;
    }
    // An agent whose members talk with the user talks with the user too.
    let has_dialogues = matches!(&def.does, Does::Route(route) if route.by.has_dialogues());
    let talks = match state.family.parent.map(|parent| snapshot.agent(parent)) {
        None => network.entry.contains(&state.def),
        Some(_) if has_dialogues => true,
        Some(parent) => match &network.agent(&parent.def).does {
            Does::Route(Route { by, .. }) => by.talks_with(&state.def),
            Does::Model(_) | Does::Run { .. } => false,
        },
    };
    if talks { Turns::Dialogue } else { Turns::Task }
}

/// Returns true if the agent's task ends with its turn: the task is done, or the agent is a member of a desk and has no task.
/// An error means that the task's `done` expression failed.
pub(crate) fn turn_is_task(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id) -> Result<bool, String> {
    match at_work(cx, snapshot, agent) {
        Some((_, task)) => {
            // If the agent cannot say that the task is done, its first answer ends it.
            let ends = !task.may_end || snapshot.agent(agent).kind == Kind::Routed;
            is_done(cx, snapshot, agent, task).unwrap_or(Ok(ends))
        }
        // A member of a desk that has no task answers once.
        None => Ok(desk_above(cx, snapshot, agent).is_some()),
    }
}

/// Returns true if this call asks the user whether to leave the current task.
pub(crate) fn asks_to_leave(network: &Network, open: &OpenCall) -> bool {
    let tool = network.tools.get(&open.call.name);
    tool.is_some_and(|tool| matches!(tool.source, Source::BuiltIn(BuiltIn::NeedHelp)))
}

/// Returns the question to the user whether to leave the current task.
pub(crate) fn leaves(cx: &Cx<'_>, snapshot: &Snapshot, open: &OpenCall) -> String {
    let args = mapping::arguments(cx, snapshot, open);
    let request = args.get("request").and_then(Json::as_str);
    let task = at_work(cx, snapshot, open.owner);
    let task = task.map_or_else(|| "this".to_owned(), |(_, task)| task.name.to_string());
    let request = request.filter(|request| !request.trim().is_empty());
    let values = [
        ("task", &*task),
        ("wish", request.unwrap_or("something else")),
    ];
    say(cx, snapshot, open.owner, texts::LEAVE, &values)
}

/// Returns the desk's agent, and the task on which an agent works for it.
pub(crate) fn at_work<'n>(cx: &Cx<'n>, snapshot: &Snapshot, agent: Id) -> Option<(Id, &'n Task)> {
    let (parent, desk) = desk_above(cx, snapshot, agent)?;
    let at = snapshot.agent(parent).routing.at.as_ref()?;
    let task = desk.task(at)?;
    (task.agent == snapshot.agent(agent).def).then_some((parent, task))
}

/// Returns the agent of the desk that an agent is a member of, and the desk.
pub(crate) fn desk_above<'n>(
    cx: &Cx<'n>,
    snapshot: &Snapshot,
    agent: Id,
) -> Option<(Id, &'n Desk)> {
    let state = snapshot.agent(agent);
    let (parent, _) = state.caller()?;
    let def = cx.network.agents.get(&snapshot.agent(parent).def)?;
    match &def.does {
        Does::Route(Route {
            by: RouteBy::Tasks(desk),
            ..
        }) => Some((parent, desk)),
        _ => None,
    }
}

/// Returns true if the agent's task is done. `None` means that the task has no `done` expression: the agent itself decides. An
/// error means that the expression failed.
pub(crate) fn is_done(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    agent: Id,
    task: &Task,
) -> Option<Result<bool, String>> {
    let done = task.done.as_ref()?;
    let holds = done.holds(&View::new(cx, snapshot, Some(agent)));
    Some(holds.map_err(|e| format!("`done` of `{}`: {e}", task.name)))
}

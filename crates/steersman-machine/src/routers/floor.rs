//! The floor: which tools of the floor an agent is offered, and whether its answer ends a turn or a task.

use super::{handoff, tasks};
use crate::network::{Does, Network, Route, Source, Turns, texts};
use crate::snapshot::{OpenCall, Snapshot};
use crate::stored::built_in::BuiltIn;
use crate::stored::commit::Kind;
use crate::stored::ids::Id;
use crate::view::say::say;
use crate::view::{Cx, mapping};
use serde_json::Value as Json;

/// Returns true if an agent is offered a built-in tool now. Tools of the floor are offered only to the member that has
/// the floor.
pub(crate) fn offers(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id, built_in: BuiltIn) -> bool {
    let task = || tasks::at_work(cx, snapshot, agent).map(|(_, task)| task);
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
    match tasks::at_work(cx, snapshot, agent) {
        Some((_, task)) => {
            // If the agent cannot say that the task is done, its first answer ends it.
            let ends = !task.may_end || snapshot.agent(agent).kind == Kind::Routed;
            tasks::is_done(cx, snapshot, agent, task).unwrap_or(Ok(ends))
        }
        // A member of a desk that has no task answers once.
        None => Ok(tasks::desk_above(cx, snapshot, agent).is_some()),
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
    let task = tasks::at_work(cx, snapshot, open.owner);
    let task = task.map_or_else(|| "this".to_owned(), |(_, task)| task.name.to_string());
    let request = request.filter(|request| !request.trim().is_empty());
    let values = [
        ("task", &*task),
        ("wish", request.unwrap_or("something else")),
    ];
    say(cx, snapshot, open.owner, texts::LEAVE, &values)
}

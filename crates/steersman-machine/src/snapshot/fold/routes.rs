//! Changes of a routed agent's routing state: by a decision, by the end of a member's call, by a message.

use super::routing;
use crate::snapshot::{Agent, Place, Routing};
use crate::stored::bounds::GOALS;
use crate::stored::ids::{Body, Line, Name};
use crate::stored::interaction::{Choice, How};

/// Records a decision.
pub(super) fn chosen(agent: &mut Agent, line: Line, choice: &Choice) {
    let message = agent.input.message;
    let routing = routing(agent);
    routing.refused = 0;
    routing.why = None;
    routing.over = None;
    routing.count += 1;
    routing.unread = false;
    match choice {
        Choice::Agents(members) => {
            routing.pending.clone_from(members);
            // A member that is chosen outside all tasks takes over the whole request, so the requested tasks are dropped.
            routing.goals.clear();
        }
        Choice::Speak { role, member } => {
            routing.pending = vec![member.clone()];
            if let Some(place) = place(routing) {
                place.last = Some(role.clone());
            }
        }
        Choice::Finish => {
            routing.at = None;
            routing.goals.clear();
        }
        Choice::Stay => routing.settled = true,
        Choice::Enter { state, reset } => {
            let place = routing.places.entry(state.clone()).or_default();
            if *reset {
                *place = Place::default();
            }
            place.entered = line;
            routing.at = Some(state.clone());
            // The exits depend on the messages of the state. They are checked again after the next message.
            routing.settled = true;
        }
        Choice::Say { role, member, body } => {
            routing.last = Some((member.clone(), How::Done, Some(*body)));
            if let Some(place) = place(routing) {
                place.last = Some(role.clone());
            }
            routing.said += 1;
            spoke(routing);
        }
        Choice::Task { task, agent, goal } => {
            routing.pending = vec![agent.clone()];
            routing.at = Some(task.clone());
            if let Some(goal) = goal
                && !routing.goals.iter().any(|(known, _)| known == goal)
            {
                routing.goals.push((goal.clone(), message));
                if routing.goals.len() > GOALS {
                    routing.goals.remove(0);
                }
            }
        }
        Choice::Answer(_) => routing.said += 1,
        Choice::Restate(_) => {}
    }
}

/// Records the end of a member's call.
pub(super) fn acted(agent: &mut Agent, member: Name, how: How, result: Option<Body>) {
    let routing = routing(agent);
    let is_place = place(routing).is_some();
    routing.said += 1;
    if is_place {
        spoke(routing);
        routing.unread = how.is_ok();
    }
    let task = routing.at.clone().filter(|_| !is_place);
    if how == How::Released {
        // The member gave the floor back without an answer. The next decision routes the same message again.
        routing.over = None;
    } else {
        routing.over = Some(task.clone().unwrap_or_else(|| member.clone()));
    }
    if !is_place {
        routing.at = None;
        if let (Some(task), true) = (task, how.is_ok() && how != How::Released) {
            routing.goals.retain(|(goal, _)| *goal != task);
            routing.done.insert(task);
        }
    }
    routing.last = Some((member, how, result));
}

/// Records a message to the routed agent.
pub(super) fn heard(agent: &mut Agent) {
    let routing = routing(agent);
    routing.refused = 0;
    routing.why = None;
    routing.over = None;
}

/// Returns the counters of the current state, if the router is a graph and is in a state.
fn place(routing: &mut Routing) -> Option<&mut Place> {
    routing.places.get_mut(routing.at.as_ref()?)
}

/// Counts a message in the current state.
fn spoke(routing: &mut Routing) {
    routing.settled = false;
    if let Some(place) = place(routing) {
        place.messages += 1;
    }
}

/// Returns a choice as text, for the digest that tells whether the same choice came again.
pub(super) fn words(choice: &Choice) -> String {
    match choice {
        Choice::Agents(names) => names.join(","),
        Choice::Finish => "finish".to_owned(),
        Choice::Stay => "stay".to_owned(),
        Choice::Enter { state, reset } => format!("enter {state} {reset}"),
        Choice::Speak { role, member } => format!("speak {role} {member}"),
        Choice::Say { role, member, body } => format!("say {role} {member} {body:?}"),
        Choice::Task { task, agent, goal } => format!("task {task} {agent} {goal:?}"),
        Choice::Restate(body) => format!("restate {body:?}"),
        Choice::Answer(body) => format!("answer {body:?}"),
    }
}

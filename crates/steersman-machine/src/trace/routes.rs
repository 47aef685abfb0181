//! Decisions of routers in traces.

use super::{quoted, write_of};
use crate::stored::ids::Bodies;
use crate::stored::interaction::{Choice, Route};
use std::fmt::Write as _;

/// Returns the text of a routing decision: the choice, the reason of a refusal, and the state entries that the decision unsets.
pub(super) fn route_of(route: &Route, bodies: &dyn Bodies) -> String {
    let mut out = String::new();
    if let Some(effect) = route.effect {
        let _ = write!(out, "{effect} ");
    }
    out.push_str(&chosen(&route.chosen, bodies));
    if let Some(refused) = route.refused {
        let _ = write!(out, " refused {}", quoted(bodies, refused));
    }
    for write in &route.writes {
        let _ = write!(out, " {}", write_of(write, bodies));
    }
    out
}

/// Returns a router's choice in words: `planner, coder`, `enter review`, `task book of clerk`.
pub fn chosen(choice: &Choice, bodies: &dyn Bodies) -> String {
    let mut out = String::new();
    match choice {
        Choice::Agents(names) => out.push_str(&names.join(", ")),
        Choice::Finish => out.push_str("finish"),
        Choice::Stay => out.push_str("stay"),
        Choice::Enter { state, reset } => {
            let again = if *reset { "" } else { " again" };
            let _ = write!(out, "enter{again} {state}");
        }
        Choice::Speak { role, member } => {
            let _ = write!(out, "{member}{}", played(role, member));
        }
        Choice::Say { role, member, body } => {
            let _ = write!(
                out,
                "{member}{} says {}",
                played(role, member),
                quoted(bodies, *body)
            );
        }
        Choice::Task { task, agent, goal } => {
            let _ = write!(out, "task {task}");
            if agent != task {
                let _ = write!(out, " of {agent}");
            }
            if let Some(goal) = goal.as_ref().filter(|goal| *goal != task) {
                let _ = write!(out, " for {goal}");
            }
        }
        Choice::Restate(None) => out.push_str("nothing left"),
        Choice::Restate(Some(body)) => {
            let _ = write!(out, "left {}", quoted(bodies, *body));
        }
        Choice::Answer(body) => {
            let _ = write!(out, "answer {}", quoted(bodies, *body));
        }
    }
    out
}

fn played(role: &str, member: &str) -> String {
    if role == member {
        String::new()
    } else {
        format!(" as {role}")
    }
}

//! What a routed agent chose, in words.

use crate::texts::Texts;
use steersman_machine::effect::Bodies;
use steersman_machine::interaction::{Choice, Route};

/// A decision of a router.
pub(super) fn told(route: &Route, texts: &Texts) -> String {
    match (&route.refused, &route.chosen) {
        (Some(why), _) => format!("choice refused: {}", texts.text(*why)),
        (None, Choice::Agents(names)) => format!("-> {}", names.join(", then ")),
        (None, Choice::Finish) => "-> finish".into(),
        (None, Choice::Stay) => "-> stays".into(),
        (None, Choice::Enter { state, .. }) => format!("-> state {state}"),
        (None, Choice::Speak { role, member }) if role == member => format!("-> {member}"),
        (None, Choice::Speak { role, member }) => format!("-> {member} as {role}"),
        (None, Choice::Say { member, body, .. }) => {
            format!("{member} opens: {}", texts.text(*body))
        }
        (None, Choice::Task { task, agent, goal }) => {
            let by = if agent == task {
                String::new()
            } else {
                format!(" ({agent})")
            };
            match goal.as_ref().filter(|goal| *goal != task) {
                Some(goal) => format!("-> {task}{by}, on the way to {goal}"),
                None => format!("-> {task}{by}"),
            }
        }
        (None, Choice::Restate(None)) => "nothing is left".into(),
        (None, Choice::Restate(Some(body))) => {
            format!("left to be done: {}", texts.text(*body))
        }
        (None, Choice::Answer(body)) => format!("answers: {}", texts.text(*body)),
    }
}

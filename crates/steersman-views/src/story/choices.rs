//! Describes the choices of a routed agent.

use crate::words::{leaves, line};
use serde_json::{Map, Value as Json};
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::interaction::{Choice, Route};

/// Maximum number of characters of a reason; `steersman why` shows all of it.
const REASON: usize = 120;

/// Describes a decision of a router, with its reason.
pub(super) fn told(route: &Route, texts: &dyn Bodies) -> String {
    let chosen = chosen(route, texts);
    match reason(route, texts) {
        Some(reason) => format!("{chosen} ({reason})"),
        None => chosen,
    }
}

/// Returns everything that was recorded about the reason, one row for each value.
pub(super) fn values(route: &Route, texts: &dyn Bodies) -> Vec<String> {
    let read = leaves(&read(route, texts)).into_iter();
    read.map(|(path, value)| format!("{path} = {}", line(&value.to_string(), 200)))
        .collect()
}

fn read(route: &Route, texts: &dyn Bodies) -> Map<String, Json> {
    let read = route
        .read
        .map(|body| serde_json::from_str(&texts.text(body)));
    read.and_then(Result::ok).unwrap_or_default()
}

/// Returns a short reason: that of the model, otherwise the rule or exit with the values that it read.
fn reason(route: &Route, texts: &dyn Bodies) -> Option<String> {
    if route.refused.is_some() || matches!(route.chosen, Choice::Say { .. }) {
        return None;
    }
    let mut read = read(route, texts);
    let text = |value: Option<Json>| value.and_then(|v| v.as_str().map(str::to_owned));
    let mut parts = Vec::new();
    if let Some(rule) = read.remove("rule") {
        parts.push(format!("rule {rule}"));
    }
    let exit = read.remove("exit");
    let statement = text(read.remove("statement"));
    match (exit, statement) {
        (_, Some(statement)) => parts.push(format!("judge: {statement}")),
        (Some(exit), None) if exit.as_u64() == Some(0) => parts.push("judge: not yet".to_owned()),
        (Some(exit), None) if route.effect.is_some() => parts.push(format!("judge: {exit}")),
        (Some(exit), None) => parts.push(format!("exit {exit}")),
        (None, None) => {}
    }
    if let Some(turn) = text(read.remove("turn")) {
        if turn != "only" {
            parts.push(turn.replace('_', " "));
        }
        read.remove("messages");
    }
    for (key, word) in [("failed", "failed"), ("expired", "gave no answer")] {
        if let Some(who) = text(read.remove(key)) {
            parts.push(format!("{who} {word}"));
        }
    }
    if read.remove("unusable").is_some() {
        read.remove("why");
        parts.push("no usable answer".to_owned());
    }
    read.remove("offered");
    match text(read.remove("reason")).filter(|reason| !reason.trim().is_empty()) {
        Some(reason) => parts.push(reason),
        None => parts.extend(
            leaves(&read)
                .into_iter()
                .filter(|(_, value)| !value.is_array())
                .map(|(path, value)| format!("{path} = {value}")),
        ),
    }
    let parts = parts.join("; ");
    (!parts.is_empty()).then(|| line(&parts, REASON))
}

fn chosen(route: &Route, texts: &dyn Bodies) -> String {
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

//! Interactions as texts that are equal for equal sessions: without ids, lines and times.

use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::ids::{Body, Id};
use steersman_machine::stored::interaction::{Earlier, Interaction, Target};

/// Returns the entries of a stack with results in the order of their calls, whichever closed first. An entry may
/// hold more than an interaction, for example its line; `of` returns its interaction. The flag of an entry is true for calls to
/// branches and for their results.
pub fn in_call_order<T>(stack: &[T], of: impl Fn(&T) -> &Interaction) -> Vec<(&T, bool)> {
    let mut out = Vec::new();
    let mut to_branches = BTreeSet::new();
    let mut results: BTreeMap<Id, (&T, bool)> = BTreeMap::new();
    for entry in stack {
        if let Interaction::Result(result) = of(entry) {
            let is_of_branches = to_branches.contains(&result.call);
            results.insert(result.call, (entry, is_of_branches));
            continue;
        }
        out.extend(std::mem::take(&mut results).into_values());
        let is_to_branches = matches!(of(entry), Interaction::Call(call)
            if matches!(call.target, Target::Branches(_)) && to_branches.insert(call.id));
        out.push((entry, is_to_branches));
    }
    out.extend(results.into_values());
    out
}

/// Returns an interaction as text without ids and times, equal for equal sessions. `of_branches` is true for a call to branches
/// and for its result, as [`in_call_order`] says.
pub fn essential(interaction: &Interaction, of_branches: bool, bodies: &dyn Bodies) -> String {
    let plain = |text: &str| {
        if of_branches {
            nameless(text)
        } else {
            text.to_owned()
        }
    };
    let text = |body: Option<Body>| body.map_or_else(String::new, |b| bodies.text(b).to_string());
    match interaction {
        Interaction::UserMessage { body, .. } => format!("U {}", bodies.text(*body)),
        Interaction::AssistantMessage {
            text: said,
            partial,
            ..
        } => {
            format!(
                "A {}{}",
                text(*said),
                if *partial { " (partial)" } else { "" }
            )
        }
        Interaction::Call(call) => {
            format!("call {} {}", call.name, plain(&bodies.text(call.args)))
        }
        Interaction::Result(result) => format!(
            "result {:?} {} {}",
            result.how,
            result.code.as_deref().unwrap_or(""),
            plain(&text(result.body))
        ),
        Interaction::Route(route) => {
            format!(
                "route {}",
                steersman_machine::trace::chosen(&route.chosen, bodies)
            )
        }
        Interaction::Summary(summary) => format!("S {}", bodies.text(summary.body)),
        Interaction::Earlier(Earlier::User(body)) => format!("EU {}", bodies.text(*body)),
        Interaction::Earlier(Earlier::Assistant { text: said, calls }) => {
            let calls = calls.iter().map(|call| {
                let (args, result) = (bodies.text(call.args), bodies.text(call.result));
                format!(" {} {args} {result}", call.name)
            });
            format!("EA {}{}", text(*said), calls.collect::<String>())
        }
        Interaction::Finished {
            end,
            cause,
            body,
            code,
            ..
        } => format!(
            "F {end:?} {cause:?} {} {}",
            code.as_deref().unwrap_or(""),
            text(*body)
        ),
    }
}

/// Removes the ids and lines of branches from the arguments or the result of a call to branches.
fn nameless(text: &str) -> String {
    let Ok(Json::Object(mut object)) = serde_json::from_str(text) else {
        return text.to_owned();
    };
    let Some(Json::Array(branches)) = object.get_mut("branches") else {
        return text.to_owned();
    };
    for branch in branches {
        match branch {
            Json::Object(ended) => {
                ended.remove("id");
                ended.remove("at");
                // A branch without a label is named by its id.
                let named = ended.get("branch").and_then(Json::as_str);
                if named.is_some_and(|name| name.parse::<Id>().is_ok()) {
                    ended.remove("branch");
                }
            }
            named => *named = Json::Null,
        }
    }
    Json::Object(object).to_string()
}

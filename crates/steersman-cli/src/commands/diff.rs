//! `diff`: how two branches, or two sessions, differ.

use crate::address::Address;
use crate::cli::{Diff as Args, Global};
use crate::error::{CommandError, Exit};
use crate::place::{Place, branch_name};
use crate::printer::{Printer, bold, dim, green, red};
use crate::words::{arguments, digits, line, money};
use serde_json::Value as Json;
use steersman::{Both, Deed, Diff};
use steersman_machine::ids::Id;

/// As wide as what is quoted is shown.
const WIDTH: usize = 100;

pub(crate) async fn run(
    args: Args,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let place = Place::to_look(global).await?;
    let a = side(&place, &args.a).await?;
    let b = side(&place, &args.b).await?;
    let diff = place
        .steersman
        .diff((&a.0, Some(a.1)), (&b.0, Some(b.1)))
        .await?;
    if printer.is_json() {
        printer.json(&document(&diff))?;
    } else {
        for row in rows(&diff, &a.2, &b.2) {
            printer.data(row)?;
        }
    }
    Ok(exit(&diff))
}

pub(crate) fn exit(diff: &Diff) -> Exit {
    if diff.outcome_differs() {
        Exit::Differs
    } else {
        Exit::Answered
    }
}

/// Session, branch, and how people call both.
async fn side(place: &Place, text: &str) -> Result<(String, Id, String), CommandError> {
    let address = Address::parse(text)?;
    if address.line.is_some() {
        return Err(CommandError::usage(format!("`{text}` names a line"))
            .hint("whole branches are compared: SESSION[:BRANCH]; a fork at a line is a branch"));
    }
    let (seen, at) = place.inspect(&address).await?;
    let branch = &seen.branches[at];
    let short = place.short(&seen.info.id).await?;
    let name = if branch.id == Id::MAIN {
        short
    } else {
        format!("{short}:{}", branch_name(branch))
    };
    Ok((seen.info.id.to_string(), branch.id, name))
}

/// As JSON: the parts of [`Diff`], and whether it matters.
pub(crate) fn document(diff: &Diff) -> Json {
    let mut document = serde_json::to_value(diff).unwrap_or_default();
    document["differs"] = diff.outcome_differs().into();
    document["empty"] = diff.is_empty().into();
    document
}

fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

/// A difference in rows for people: what both came to first.
pub(crate) fn rows(diff: &Diff, a: &str, b: &str) -> Vec<String> {
    if diff.is_empty() {
        return vec![green(&format!(
            "Nothing differs: {a} and {b} did the same and came to the same."
        ))];
    }
    let mut rows = Vec::new();
    let width = a.chars().count().max(b.chars().count());
    let pair = |rows: &mut Vec<String>, one: &str, other: &str| {
        rows.push(format!("  {a:width$}  {}", line(one, WIDTH)));
        rows.push(format!("  {b:width$}  {}", line(other, WIDTH)));
    };
    if diff.outcome_differs() {
        rows.push(format!("{}  {}", bold("outcome"), red("differs")));
        outcome(diff, &mut rows, &pair);
    } else {
        rows.push(format!("{}  {}", bold("outcome"), green("the same")));
    }
    for first in &diff.first {
        let after = match first.after {
            0 => "from its first interaction on".to_owned(),
            n => format!("after {n} that are the same"),
        };
        rows.push(format!(
            "{}  {} {}",
            bold("first"),
            first.agent,
            dim(&after)
        ));
        let shown = |side: &Option<String>, at: Option<u64>| match (side, at) {
            (Some(text), Some(at)) => format!("@{at} {text}"),
            (Some(text), None) => text.clone(),
            (None, _) => "nothing more".to_owned(),
        };
        pair(
            &mut rows,
            &shown(&first.a, first.lines.a),
            &shown(&first.b, first.lines.b),
        );
    }
    if diff.path.a != diff.path.b {
        rows.push(bold("path"));
        let shown = |path: &[String]| {
            if path.is_empty() {
                "none".to_owned()
            } else {
                path.join(", ")
            }
        };
        pair(&mut rows, &shown(&diff.path.a), &shown(&diff.path.b));
    }
    if diff.tools.a != diff.tools.b {
        rows.push(bold("tools"));
        rows.extend(tools(&diff.tools));
    }
    if diff.answers.a != diff.answers.b {
        rows.push(bold("answers"));
        let most = diff.answers.a.len().max(diff.answers.b.len());
        for n in 0..most {
            let (one, other) = (diff.answers.a.get(n), diff.answers.b.get(n));
            if one != other {
                let shown = |of: Option<&String>| of.map_or("none", String::as_str).to_owned();
                pair(&mut rows, &shown(one), &shown(other));
            }
        }
    }
    if !diff.state.is_empty() {
        rows.push(bold("state"));
        for (path, both) in &diff.state {
            rows.push(format!(
                "  {path}  {} | {}",
                line(&text(&both.a), 40),
                line(&text(&both.b), 40)
            ));
        }
    }
    rows.push(dim(&format!(
        "model calls {} | {}, tokens {} | {}, cost {} | {}",
        diff.model_calls.a,
        diff.model_calls.b,
        digits(diff.tokens.a),
        digits(diff.tokens.b),
        money(diff.micros.a),
        money(diff.micros.b),
    )));
    rows
}

fn outcome(diff: &Diff, rows: &mut Vec<String>, pair: &dyn Fn(&mut Vec<String>, &str, &str)) {
    if diff.ended.a != diff.ended.b {
        pair(rows, &diff.ended.a, &diff.ended.b);
    }
    if !diff.named {
        if diff.answer.a != diff.answer.b {
            let shown = |of: &Option<String>| of.clone().unwrap_or_else(|| "no answer".to_owned());
            pair(rows, &shown(&diff.answer.a), &shown(&diff.answer.b));
        }
        return;
    }
    let mut names: Vec<&String> = Vec::new();
    for side in [&diff.outcome.a, &diff.outcome.b] {
        names.extend(
            side.as_object()
                .into_iter()
                .flat_map(|fields| fields.keys()),
        );
    }
    names.sort();
    names.dedup();
    for name in names {
        let (one, other) = (&diff.outcome.a[name], &diff.outcome.b[name]);
        if one != other {
            rows.push(format!(
                "  {name}  {} | {}",
                line(&text(one), 45),
                line(&text(other), 45)
            ));
        }
    }
}

/// Calls that one side has and the other has not.
fn tools(both: &Both<Vec<Deed>>) -> Vec<String> {
    let only = |of: &[Deed], other: &[Deed], sign: &str| {
        let mut left = other.to_vec();
        let mut rows = Vec::new();
        for deed in of {
            match left.iter().position(|d| d == deed) {
                Some(at) => drop(left.remove(at)),
                None => rows.push(format!(
                    "  {sign} {}({})  {}, by {}",
                    deed.tool,
                    arguments(&deed.args),
                    deed.how,
                    deed.agent
                )),
            }
        }
        rows
    };
    let mut rows = only(&both.a, &both.b, "-");
    rows.extend(only(&both.b, &both.a, "+"));
    if rows.is_empty() {
        rows.push("  the same, in another order".to_owned());
    }
    rows
}

/// Both sides as one line, for tables.
pub(crate) fn short(diff: &Diff) -> String {
    if diff.ended.a != diff.ended.b {
        return format!("{} -> {}", diff.ended.a, diff.ended.b);
    }
    if diff.outcome_differs() && diff.named {
        let names = diff
            .outcome
            .b
            .as_object()
            .into_iter()
            .flat_map(|f| f.keys());
        let differ = names.filter(|name| diff.outcome.a[*name] != diff.outcome.b[*name]);
        let told = differ.map(|name| {
            format!(
                "{name}: {} -> {}",
                text(&diff.outcome.a[name]),
                text(&diff.outcome.b[name])
            )
        });
        return told.collect::<Vec<_>>().join("; ");
    }
    if diff.outcome_differs() {
        let shown = |of: &Option<String>| of.clone().unwrap_or_default();
        return format!("{} -> {}", shown(&diff.answer.a), shown(&diff.answer.b));
    }
    if diff.is_empty() {
        "nothing differs".to_owned()
    } else {
        diff.first
            .first()
            .map(|f| format!("another way, from {} on", f.agent))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_that_only_one_side_has_are_told() {
        let deed = |tool: &str| Deed {
            agent: "a".into(),
            tool: tool.into(),
            args: json!({ "n": 1 }).to_string(),
            how: "done".into(),
        };
        let both = Both {
            a: vec![deed("x"), deed("y")],
            b: vec![deed("y"), deed("z")],
        };
        assert_eq!(
            tools(&both),
            ["  - x(n: 1)  done, by a", "  + z(n: 1)  done, by a"]
        );
    }
}

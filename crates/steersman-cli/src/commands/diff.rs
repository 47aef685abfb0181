//! `diff`: shows the differences between two branches or two sessions.

use crate::address::Address;
use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::place::{Place, branch_name};
use crate::printer::{Printer, bold, dim, green, red};
use crate::remote::Remote;
use crate::source::{Source, about};
use crate::words::{self, arguments, digits, line, money};
use serde_json::Value as Json;
use steersman::views::screen::{Ask, WaitsScreen};
use steersman::{Both, Deed, Diff, First};
use steersman_client::ViewsDiffSessionsQuery;
use steersman_machine::stored::ids::Id;
use steersman_machine::view::rating;

pub(crate) const LISTED: &str = "Say how two sessions or branches differ";

/// Say how two sessions or branches differ: what they came to first. Exit code 8 if the outcome differs.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// SESSION[:BRANCH].
    a: String,
    /// Another one, or another branch of it: SESSION[:BRANCH].
    b: String,
}

/// Minimum room for a text.
const LEAST: usize = 20;

/// Returns the room that a row has for texts if something else takes so many columns.
fn room(taken: usize) -> usize {
    words::width().saturating_sub(taken).max(LEAST)
}

pub(crate) async fn run(
    args: DiffArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let (a, b) = (whole(&args.a)?, whole(&args.b)?);
    let (diff, a, b) = match Source::to_look(global).await? {
        Source::Store(place) => {
            let (a, b) = (side(&place, &a).await?, side(&place, &b).await?);
            let (of_a, of_b) = ((&*a.0, Some(a.1)), (&*b.0, Some(b.1)));
            let diff = place.steersman.diff(of_a, of_b).await?;
            (diff, a.2, b.2)
        }
        Source::Server(remote) => {
            let (a, b) = (there(&remote, &a).await?, there(&remote, &b).await?);
            let query = ViewsDiffSessionsQuery {
                a: Some(a.0),
                b: Some(b.0),
            };
            let diff = remote.client.views().diff_sessions(&query).await?;
            (remote.read(diff)?, a.1, b.1)
        }
    };
    if printer.is_json() {
        printer.json(&diff.to_json())?;
    } else {
        for row in rows(&diff, &a, &b) {
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

/// Reads an address that names no line.
fn whole(text: &str) -> Result<Address, CommandError> {
    let address = Address::parse(text)?;
    if address.line.is_some() {
        return Err(CommandError::usage(format!("`{text}` names a line"))
            .hint("whole branches are compared: SESSION[:BRANCH]; a fork at a line is a branch"));
    }
    Ok(address)
}

/// Returns a side as a server takes it, and its name.
async fn there(remote: &Remote, address: &Address) -> Result<(String, String), CommandError> {
    let seen: WaitsScreen = remote
        .screen(address, &about(address, Ask::default()))
        .await?;
    let name = if seen.branch == Id::MAIN.to_string() {
        seen.short
    } else {
        format!("{}:{}", seen.short, seen.branch)
    };
    Ok((format!("{}:{}", seen.session, seen.branch), name))
}

/// Returns the session, the branch and the name of a side.
async fn side(place: &Place, address: &Address) -> Result<(String, Id, String), CommandError> {
    let (seen, at) = place.inspect(address).await?;
    let branch = &seen.branches[at];
    let short = place.short(&seen.info.id).await?;
    let name = if branch.id == Id::MAIN {
        short
    } else {
        format!("{short}:{}", branch_name(branch))
    };
    Ok((seen.info.id.to_string(), branch.id, name))
}

fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

/// Renders a difference in rows for people, results first.
pub(crate) fn rows(diff: &Diff, a: &str, b: &str) -> Vec<String> {
    if diff.is_empty() {
        return vec![green(&format!(
            "Nothing differs: {a} and {b} did the same and came to the same."
        ))];
    }
    let mut rows = Vec::new();
    let width = a.chars().count().max(b.chars().count());
    let texts = room(width + 4);
    let one = |rows: &mut Vec<String>, side: &str, text: Option<String>| {
        rows.extend(text.map(|text| format!("  {side:width$}  {}", line(&text, texts))));
    };
    let pair = |rows: &mut Vec<String>, of_a: &str, of_b: &str| {
        one(rows, a, Some(of_a.to_owned()));
        one(rows, b, Some(of_b.to_owned()));
    };
    if diff.outcome_differs() {
        rows.push(format!("{}  {}", bold("outcome"), red("differs")));
        outcome(diff, &mut rows, &pair);
    } else {
        rows.push(format!("{}  {}", bold("outcome"), green("the same")));
    }
    let firsts = diff.first.iter();
    for first in firsts.filter(|first| !is_also_an_answer(diff, first)) {
        let after = match (first.after, &first.a, &first.b) {
            (0, Some(_), None) => format!("only in {a}"),
            (0, None, Some(_)) => format!("only in {b}"),
            (0, ..) => "from its first interaction on".to_owned(),
            (n, ..) => format!("after {n} that are the same"),
        };
        rows.push(format!(
            "{}  {} {}",
            bold("first"),
            first.agent,
            dim(&after)
        ));
        let shown = |side: &Option<String>, at: Option<u64>| match (side, at) {
            (Some(text), Some(at)) => Some(format!("@{at} {text}")),
            (Some(text), None) => Some(text.clone()),
            (None, _) => (first.after > 0).then(|| "nothing more".to_owned()),
        };
        one(&mut rows, a, shown(&first.a, first.lines.a));
        one(&mut rows, b, shown(&first.b, first.lines.b));
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
        let signs = format!("- only in {a}, + only in {b}");
        rows.push(format!("{}  {}", bold("tools"), dim(&signs)));
        rows.extend(tools(&diff.tools));
    }
    let answers: Vec<_> = aligned(&diff.answers.a, &diff.answers.b)
        .into_iter()
        .filter(|(of_a, of_b)| of_a != of_b)
        // Without an `outcome:`, the last answers are already shown as the result.
        .filter(|(of_a, of_b)| {
            let last = |of: Option<&String>, words: &Option<String>| {
                of.is_none_or(|of| Some(of) == words.as_ref())
            };
            diff.named || !(last(*of_a, &diff.answer.a) && last(*of_b, &diff.answer.b))
        })
        .collect();
    if !answers.is_empty() {
        rows.push(bold("answers"));
        for (of_a, of_b) in answers {
            one(&mut rows, a, of_a.cloned());
            one(&mut rows, b, of_b.cloned());
        }
    }
    if !diff.state.is_empty() {
        rows.push(format!("{}  {}", bold("state"), dim(&format!("{a} | {b}"))));
        for (path, both) in &diff.state {
            let value = |of: &Json| rating::told_value(of).unwrap_or_else(|| text(of));
            let rates = path.starts_with("rating of ");
            let value = |of: &Json| if rates { value(of) } else { text(of) };
            let half = room(path.chars().count() + 7) / 2;
            rows.push(format!(
                "  {path}  {} | {}",
                line(&value(&both.a), half),
                line(&value(&both.b), half)
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

/// Returns true if the only difference is a draft that a reviewer judged and that is shown as an answer too.
fn is_also_an_answer(diff: &Diff, first: &First) -> bool {
    let told = |side: &Option<String>, answers: &[String]| {
        let Some(text) = side else { return true };
        let asked = text
            .strip_prefix("U ")
            .and_then(|json| serde_json::from_str(json).ok());
        let asked: Json = asked.unwrap_or_default();
        asked["draft"]
            .as_str()
            .is_some_and(|draft| answers.iter().any(|a| a == draft))
    };
    told(&first.a, &diff.answers.a) && told(&first.b, &diff.answers.b)
}

type Pair<'a> = (Option<&'a String>, Option<&'a String>);

/// Aligns both lists so that as many entries as possible are equal. An entry of only one side has no partner.
fn aligned<'a>(a: &'a [String], b: &'a [String]) -> Vec<Pair<'a>> {
    // `same[i][j]` is the largest number of equal entries from `a[i]` and `b[j]` on.
    let mut same = vec![vec![0_usize; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            same[i][j] = if a[i] == b[j] {
                same[i + 1][j + 1] + 1
            } else {
                same[i + 1][j].max(same[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < a.len() || j < b.len() {
        let rest = same[i][j];
        let (of_a, of_b) = (a.get(i), b.get(j));
        // One entry replaces the other.
        let replaced = i < a.len() && j < b.len() && same[i + 1][j + 1] == rest;
        let pair = if of_a == of_b || replaced {
            (of_a, of_b)
        } else if i < a.len() && same[i + 1][j] == rest {
            (of_a, None)
        } else {
            (None, of_b)
        };
        i += usize::from(pair.0.is_some());
        j += usize::from(pair.1.is_some());
        pairs.push(pair);
    }
    pairs
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
            let half = room(name.chars().count() + 7) / 2;
            rows.push(format!(
                "  {name}  {} | {}",
                line(&text(one), half),
                line(&text(other), half)
            ));
        }
    }
}

/// Returns rows for the calls that only one side has.
fn tools(both: &Both<Vec<Deed>>) -> Vec<String> {
    let only = |of: &[Deed], other: &[Deed], sign: &str| {
        let mut left = other.to_vec();
        let mut rows = Vec::new();
        for deed in of {
            if let Some(at) = left.iter().position(|d| d == deed) {
                left.remove(at);
                continue;
            }
            let rest = format!("  {sign} {}()  {}, by {}", deed.tool, deed.how, deed.agent);
            rows.push(format!(
                "  {sign} {}({})  {}, by {}",
                deed.tool,
                line(&arguments(&deed.args), room(rest.chars().count())),
                deed.how,
                deed.agent
            ));
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

/// Renders both sides in one line, for tables.
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
            .map(|f| format!("another way there, from {} on", f.agent))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_additional_answer_shifts_no_other() {
        let texts = |all: &str| all.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let told = |a: &str, b: &str| {
            let (a, b) = (texts(a), texts(b));
            let pairs = aligned(&a, &b).into_iter();
            let word = |of: Option<&String>| of.map_or("-".to_owned(), Clone::clone);
            let rows = pairs.map(|(a, b)| format!("{}{}", word(a), word(b)));
            rows.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told("a b c", "a x b c"), "aa -x bb cc");
        assert_eq!(told("a x b c", "a b c"), "aa x- bb cc");
        assert_eq!(told("a b c", "a x c"), "aa bx cc");
        assert_eq!(told("a", "b c"), "ab -c");
    }

    #[test]
    fn calls_of_only_one_side_are_listed() {
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

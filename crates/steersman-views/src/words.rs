//! Numbers, spans and calls in words, as all views and programs write them.

use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::fmt::Write as _;
use steersman_machine::network::ANYBODY;
use steersman_machine::stored::by::By;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::interaction::Doubtful;
use steersman_machine::values::json::read;
pub use steersman_machine::values::price::digits;
use steersman_runtime::pending::PendingKind;

/// A word that this program knows, or that another program sent.
pub type Word = Cow<'static, str>;

/// Returns the sender as a story names one: `you` for a user of no known identity, otherwise role and identity.
pub(crate) fn speaker(by: &By) -> String {
    by.shown()
        .map_or_else(|| "you".to_owned(), ToString::to_string)
}

/// Renders the people or roles that may decide: `ops or supervisor`, `anybody`.
pub fn people(names: &[Name]) -> String {
    let one = |name: &Name| match &**name {
        ANYBODY => "anybody".to_owned(),
        name => name.to_owned(),
    };
    names.iter().map(one).collect::<Vec<_>>().join(" or ")
}

/// Returns the kind of a wait as people read it; the codes of [`PendingKind::word`] are for programs.
pub fn wait(kind: PendingKind) -> &'static str {
    match kind {
        PendingKind::Hold => "held by order",
        PendingKind::Again => "retry",
        kind => kind.word(),
    }
}

/// Renders a span of milliseconds: `41 ms`, `12 s`, `3 min`, `4 h`, `2 d`.
pub fn span(millis: i64) -> String {
    match millis {
        ..1_000 => format!("{} ms", millis.max(0)),
        1_000..60_000 => format!("{} s", millis / 1_000),
        60_000..3_600_000 => format!("{} min", millis / 60_000),
        3_600_000..86_400_000 => format!("{} h", millis / 3_600_000),
        _ => format!("{} d", millis / 86_400_000),
    }
}

/// Renders a length of time with tenths of a second below a minute: `41 ms`, `3.4 s`, `3 min`, `4 h`.
pub fn length(millis: u64) -> String {
    match millis {
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => span(i64::try_from(millis).unwrap_or(i64::MAX)),
    }
}

/// Renders a number with its noun: `1 line`, `2 lines`.
pub fn count(n: u64, thing: &str) -> String {
    match thing.strip_suffix('y') {
        _ if n == 1 => format!("1 {thing}"),
        // `reply` becomes `replies`, but `day` becomes `days`
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{} {stem}ies", digits(n)),
        _ if thing.ends_with("ch") => format!("{} {thing}es", digits(n)),
        _ => format!("{} {thing}s", digits(n)),
    }
}

/// Renders a size: `912 B`, `2.1 KiB`.
pub fn bytes(n: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", n / unit, n % unit * 10 / unit);
    match n {
        0..1_024 => format!("{n} B"),
        1_024..1_048_576 => format!("{} KiB", tenths(1 << 10)),
        _ => format!("{} MiB", tenths(1 << 20)),
    }
}

/// Renders millionths of the currency: `0.0064`.
pub fn money(micros: u64) -> String {
    format!("{}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100)
}

/// Returns the text in one line of at most `width` characters, cut with `...`.
pub fn line(text: &str, width: usize) -> String {
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= width {
        return flat;
    }
    let cut: String = flat.chars().take(width.saturating_sub(3)).collect();
    format!("{}...", cut.trim_end())
}

/// Returns true for a character that changes the display order of others. With one in an argument, a person would approve
/// what the screen shows, and something else would run.
pub fn turns(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// Renders a value as JSON. Characters that change the display order of others are escaped.
pub fn written_out(value: &Json) -> String {
    let text = value.to_string();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if turns(c) {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Renders the arguments of a call: `order: "4711", cents: 3990`.
pub fn arguments(json: &str) -> String {
    entries(json).join(", ")
}

/// Renders the arguments of a call one by one.
fn entries(json: &str) -> Vec<String> {
    match read::<Json>(json) {
        Ok(Json::Object(fields)) => fields
            .iter()
            .map(|(name, value)| format!("{name}: {}", written_out(value)))
            .collect(),
        Ok(other) => vec![written_out(&other)],
        Err(_) => vec![json.to_owned()],
    }
}

/// Renders a question to a person. If the definition has no text for it, the question is the call with JSON arguments,
/// which is rendered like other calls.
pub fn question(asked: &str) -> String {
    let call = || {
        let (tool, json) = asked.strip_suffix(')')?.split_once('(')?;
        let is_name = |c: char| c.is_alphanumeric() || "_-./".contains(c);
        let is_call = !tool.is_empty() && tool.chars().all(is_name);
        let fields = read::<Map<String, Json>>(json).ok();
        fields.filter(|_| is_call)?;
        Some(format!("{tool}({})", arguments(json)))
    };
    call().unwrap_or_else(|| asked.to_owned())
}

/// Returns values by path, with the fields of objects as separate entries: `route.count`. Fields of objects that are null or
/// empty lists are left out.
pub fn leaves(values: &Map<String, Json>) -> Vec<(String, Json)> {
    let mut leaves = Vec::new();
    for (path, value) in values {
        match value {
            Json::Object(fields) if !fields.is_empty() => {
                let below = self::leaves(fields).into_iter();
                let below = below
                    .filter(|(_, value)| !value.is_null() && *value != Json::Array(Vec::new()));
                leaves.extend(below.map(|(step, value)| (format!("{path}.{step}"), value)));
            }
            value => leaves.push((path.clone(), value.clone())),
        }
    }
    leaves
}

/// Describes why a search ended.
pub fn search_ended(why: &str) -> &str {
    match why {
        "session_tokens" => "stopped: the session's token limit",
        "session_cost" => "stopped: the session's cost limit",
        why => why,
    }
}

/// Describes that a person accepted the store.
pub(crate) fn accepted_store(was: Doubtful) -> &'static str {
    match was {
        Doubtful::Copied => "a person accepted the store: it was a copy, moved or restored",
        Doubtful::Lost => "a person accepted the store: it had lost lines",
    }
}

/// Returns the meaning of a letter of a stack, as [`AgentRow::letters`](crate::page::AgentRow::letters) has them.
pub fn letter(letter: &str) -> Option<&'static str> {
    Some(match letter {
        "U" => "message",
        "A" => "answer of the model",
        "TC" => "call of a tool",
        "TR" => "its result",
        "AC" => "call of an agent",
        "AR" => "its answer",
        "UI" => "question to a person",
        "UR" => "reply of a person (after an end: message)",
        "W" => "wait",
        "WR" => "its end",
        "R" => "result",
        "Ro" => "choice of a router",
        "S" => "summary",
        "F" => "end or draft",
        _ => return None,
    })
}

/// Wraps a text at blanks into lines of at most `width` characters. A longer word is not broken.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut current = String::new();
        for word in paragraph.split(' ') {
            if !current.is_empty() && current.chars().count() + 1 + word.chars().count() > width {
                lines.push(std::mem::take(&mut current));
            }
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
        lines.push(current);
    }
    lines
}

/// Wraps a text into lines of at most `width` characters. Breaks a longer word, because a text that a person decides on must not be
/// cut.
pub fn fold(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in wrap(text, width) {
        let mut rest = line.chars().peekable();
        lines.push(rest.by_ref().take(width).collect());
        while rest.peek().is_some() {
            lines.push(rest.by_ref().take(width).collect());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_all_its_digits_wherever_a_call_is_shown() {
        let digits = "123456789012345678901234567890";
        let args = format!("{{\"cents\":18446744073709551615,\"units\":{digits}}}");
        let shown = format!("cents: 18446744073709551615, units: \"{digits}\"");
        assert_eq!(arguments(&args), shown);
        assert_eq!(question(&format!("pay({args})")), format!("pay({shown})"));
    }

    #[test]
    fn numbers_and_calls_are_rendered_for_people() {
        assert_eq!(
            question(r#"pay({"to":"anna","cents":15})"#),
            r#"pay(to: "anna", cents: 15)"#
        );
        assert_eq!(question("Pay (now)?"), "Pay (now)?");
        assert_eq!(question("pay(now)"), "pay(now)");
        assert_eq!(span(41), "41 ms");
        assert_eq!(span(12_900), "12 s");
        assert_eq!(count(1, "reply"), "1 reply");
        assert_eq!(count(2, "reply"), "2 replies");
        assert_eq!(count(0, "day"), "0 days");
        assert_eq!(count(2, "branch"), "2 branches");
        assert_eq!(digits(1_234_567), "1,234,567");
        assert_eq!(money(6_400), "0.0064");
        assert_eq!(money(12_345_678), "12.3456");
        assert_eq!(line("a\tb\nc", 20), "a b c");
        assert_eq!(line("a long line of text", 10), "a long...");
    }

    #[test]
    fn no_argument_changes_the_order_in_which_it_is_shown() {
        let turned = written_out(&serde_json::json!({ "to": "a\u{202e}b" }));
        assert_eq!(turned, r#"{"to":"a\u202eb"}"#);
    }

    #[test]
    fn wrapped_text_keeps_every_character() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        let long = "a".repeat(100) + " and also 1000000 to E";
        let rows = fold(&long, 30);
        assert!(rows.iter().all(|row| row.chars().count() <= 30), "{rows:?}");
        assert_eq!(rows.concat().replace(' ', ""), long.replace(' ', ""));
    }
}

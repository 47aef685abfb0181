//! Renders numbers, times and texts for people: short, in columns, never wider than the terminal.

use serde_json::{Map, Value as Json};
use std::fmt::Write as _;
use steersman_machine::stored::interaction::Doubtful;
use steersman_machine::values::json::read;
pub(crate) use steersman_machine::values::price::digits;

/// Width of the layout in columns.
pub(crate) const WIDTH: usize = 90;

/// Renders a time in the past: `just now`, `12 s ago`, `3 min ago`, `4 h ago`, `2 d ago`.
pub(crate) fn ago(now: i64, then: i64) -> String {
    match now.saturating_sub(then) {
        ..2_000 => "just now".into(),
        past => format!("{} ago", span(past)),
    }
}

/// Renders a span of milliseconds: `41 ms`, `12 s`, `3 min`, `4 h`, `2 d`.
pub(crate) fn span(millis: i64) -> String {
    match millis {
        ..1_000 => format!("{} ms", millis.max(0)),
        1_000..60_000 => format!("{} s", millis / 1_000),
        60_000..3_600_000 => format!("{} min", millis / 60_000),
        3_600_000..86_400_000 => format!("{} h", millis / 3_600_000),
        _ => format!("{} d", millis / 86_400_000),
    }
}

/// Parses a span as people type it: `250ms`, `90s`, `10m`, `4h`, `3d`.
pub(crate) fn duration(text: &str) -> Result<std::time::Duration, String> {
    let wrong = || format!("`{text}` is no duration: `90s`, `10m`, `4h`");
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    let millis = number.parse::<u64>().ok();
    let millis = millis.and_then(|n| n.checked_mul(factor));
    millis
        .map(std::time::Duration::from_millis)
        .ok_or_else(wrong)
}

/// Renders a due time: `2 h`, `overdue`, `-`.
pub(crate) fn due(now: i64, at: Option<i64>) -> String {
    match at {
        None => "-".into(),
        Some(at) if at <= now => "overdue".into(),
        Some(at) => left(now, at),
    }
}

/// Renders the time left, rounded to the nearest unit: `3 d` for three days that began just now.
pub(crate) fn left(now: i64, at: i64) -> String {
    let millis = at.saturating_sub(now);
    let unit = match millis {
        ..60_000 => 1_000,
        60_000..3_600_000 => 60_000,
        3_600_000..86_400_000 => 3_600_000,
        _ => 86_400_000,
    };
    if millis < 1_000 {
        return span(millis);
    }
    span(millis.saturating_add(unit / 2) / unit * unit)
}

/// Renders a number with its noun: `1 line`, `2 lines`.
pub(crate) fn count(n: u64, thing: &str) -> String {
    match thing.strip_suffix('y') {
        _ if n == 1 => format!("1 {thing}"),
        // `reply` becomes `replies`, `day` stays `days`
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{} {stem}ies", digits(n)),
        _ if thing.ends_with("ch") => format!("{} {thing}es", digits(n)),
        _ => format!("{} {thing}s", digits(n)),
    }
}

/// Quotes a text for a shell, if necessary.
pub(crate) fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    if name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}

/// Renders the last word of a command so that it is not taken for an option.
pub(crate) fn operand(name: &str) -> String {
    let dashes = if name.starts_with('-') { "-- " } else { "" };
    format!("{dashes}{}", quoted(name))
}

/// Quotes a filter for the command line, after `--where`.
pub(crate) fn filter(text: &str) -> String {
    if text.contains(['"', '$', '`', '\\', '!']) {
        quoted(text)
    } else {
        format!("\"{text}\"")
    }
}

/// Renders a size: `912 B`, `2.1 KiB`.
pub(crate) fn bytes(n: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", n / unit, n % unit * 10 / unit);
    match n {
        0..1_024 => format!("{n} B"),
        1_024..1_048_576 => format!("{} KiB", tenths(1 << 10)),
        _ => format!("{} MiB", tenths(1 << 20)),
    }
}

/// Renders millionths of the currency: `0.0064`.
pub(crate) fn money(micros: u64) -> String {
    format!("{}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100)
}

/// Returns the text in one line of at most `width` characters, cut with `...`.
pub(crate) fn line(text: &str, width: usize) -> String {
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= width {
        return flat;
    }
    let cut: String = flat.chars().take(width.saturating_sub(3)).collect();
    format!("{}...", cut.trim_end())
}

/// Returns true for a character that changes the display order of others. With one in an argument, a person would approve
/// what the screen shows, and something else would run.
pub(crate) fn turns(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// Wraps a text at blanks into lines of at most `width` characters. A longer word is not broken.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
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

/// Wraps a text into lines of at most `width` characters, and breaks words if it must: a text for a decision is never cut.
pub(crate) fn fold(text: &str, width: usize) -> Vec<String> {
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

/// Renders a value as JSON. Characters that change the display order of others are escaped.
pub(crate) fn written_out(value: &Json) -> String {
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
pub(crate) fn arguments(json: &str) -> String {
    entries(json).join(", ")
}

/// Renders the arguments of a call one by one.
pub(crate) fn entries(json: &str) -> Vec<String> {
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
pub(crate) fn question(asked: &str) -> String {
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

/// Returns values by path, with the fields of objects as separate entries: `route.count`. Unset fields are left out.
pub(crate) fn leaves(values: &Map<String, Json>) -> Vec<(String, Json)> {
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

/// Parses a typed value: JSON if it is valid, else text.
pub(crate) fn value(typed: &str) -> Json {
    read(typed).unwrap_or_else(|_| typed.into())
}

/// Renders a table: each column is as wide as its widest cell, no cell is wider than the screen, and the last column gets
/// the rest.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let row = |row: &Vec<String>| row.iter().map(|cell| line(cell, WIDTH)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    let mut widths: Vec<usize> = heading.iter().map(|h| h.chars().count()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let last = widths.len().saturating_sub(1);
    let before: usize = widths[..last].iter().map(|w| w + 2).sum();
    let room = WIDTH.saturating_sub(before).max(20);
    let render = |cells: &[String]| {
        let mut out = String::new();
        for (i, cell) in cells.iter().enumerate() {
            if i == last {
                out.push_str(&line(cell, room));
            } else {
                let pad = widths[i] + 2 - cell.chars().count();
                out.push_str(cell);
                out.push_str(&" ".repeat(pad));
            }
        }
        out.trim_end().to_owned()
    };
    let heading: Vec<String> = heading.iter().map(|h| (*h).to_owned()).collect();
    std::iter::once(render(&heading))
        .chain(rows.iter().map(|row| render(row)))
        .collect()
}

/// Describes why a search ended.
pub(crate) fn search_ended(why: &str) -> &str {
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
    fn what_is_to_be_typed_is_taken_as_it_is_meant() {
        assert_eq!(operand("a b"), "'a b'");
        assert_eq!(operand("-v"), "-- -v");
        assert_eq!(filter("status = waits"), "\"status = waits\"");
        assert_eq!(filter("vendor = \"A\""), "'vendor = \"A\"'");
    }

    #[test]
    fn figures_are_put_for_people() {
        assert_eq!(
            question(r#"pay({"to":"anna","cents":15})"#),
            r#"pay(to: "anna", cents: 15)"#
        );
        assert_eq!(question("Pay (now)?"), "Pay (now)?");
        assert_eq!(question("pay(now)"), "pay(now)");
        assert_eq!(span(41), "41 ms");
        assert_eq!(span(12_900), "12 s");
        assert_eq!(ago(1_000_000, 100_000), "15 min ago");
        assert_eq!(ago(0, 5), "just now");
        assert_eq!(due(0, Some(7_200_000)), "2 h");
        assert_eq!(due(5, Some(5)), "overdue");
        assert_eq!(due(40, Some(3 * 86_400_000)), "3 d");
        assert_eq!(due(0, Some(59 * 60_000 + 59_900)), "1 h");
        assert_eq!(due(0, Some(999)), "999 ms");
        // Clocks may return any value.
        assert_eq!(due(i64::MIN, Some(i64::MAX)), "106751991167 d");
        assert_eq!(left(i64::MAX, i64::MIN), "0 ms");
        assert_eq!(ago(i64::MIN, i64::MAX), "just now");
        assert_eq!(count(1, "reply"), "1 reply");
        assert_eq!(count(2, "reply"), "2 replies");
        assert_eq!(count(0, "day"), "0 days");
        assert_eq!(count(2, "branch"), "2 branches");
        assert_eq!(digits(1_234_567), "1,234,567");
        assert_eq!(money(6_400), "0.0064");
        assert_eq!(money(12_345_678), "12.3456");
    }

    #[test]
    fn a_text_is_one_line_or_several() {
        assert_eq!(line("a\tb\nc", 20), "a b c");
        assert_eq!(line("a long line of text", 10), "a long...");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    }

    #[test]
    fn nothing_of_what_is_decided_on_is_cut_or_turned() {
        let long = "a".repeat(100) + " and also 1000000 to E";
        let rows = fold(&long, 30);
        assert!(rows.iter().all(|row| row.chars().count() <= 30), "{rows:?}");
        assert_eq!(rows.concat().replace(' ', ""), long.replace(' ', ""));
        let turned = written_out(&serde_json::json!({ "to": "a\u{202e}b" }));
        assert_eq!(turned, r#"{"to":"a\u202eb"}"#);
    }
}

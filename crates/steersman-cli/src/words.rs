//! Renders numbers, times and texts for people: short, in columns, never wider than the terminal.

use serde_json::Value as Json;
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::sync::OnceLock;
pub(crate) use steersman::views::words::{
    arguments, bytes, count, digits, fold, length, line, money, people, question, search_ended,
    span, turns, wait, wrap, written_out,
};
use steersman_machine::values::json::read;
use steersman_machine::values::types::{Type, TypeKind};

/// Width of the layout in columns where no terminal says its own.
const FIXED: usize = 90;
/// Number of rows where no terminal says its own.
const ROWS: usize = 24;
/// Widths of terminals that the layout follows. A narrower one wraps, and a line of a wider one would be hard to read.
const WIDTHS: RangeInclusive<usize> = 60..=200;

/// Returns the width of the layout on standard output.
pub(crate) fn width() -> usize {
    width_of(std::io::stdout())
}

/// Returns the width of the layout on standard error, where talk is printed.
pub(crate) fn talk_width() -> usize {
    width_of(std::io::stderr())
}

/// Returns the width of a terminal, which may change at any time; a file or a pipe always has the same.
fn width_of(stream: impl AsFd) -> usize {
    screen(stream).unwrap_or(FIXED)
}

/// Width of the terminal on which another process prints what this one writes.
static RELAYED: OnceLock<usize> = OnceLock::new();

/// Sets the width of the terminal on which another process prints what this one writes.
pub(crate) fn relayed(columns: usize) {
    // All printers are made from the same options.
    let _ = RELAYED.set(columns.clamp(*WIDTHS.start(), *WIDTHS.end()));
}

/// Returns the width of the layout on a terminal; `None` if the stream is none.
pub(crate) fn screen(stream: impl AsFd) -> Option<usize> {
    if let Some(columns) = RELAYED.get() {
        return Some(*columns);
    }
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    let columns = usize::from(size.ws_col);
    (columns > 0).then(|| columns.clamp(*WIDTHS.start(), *WIDTHS.end()))
}

/// Returns the number of rows of the terminal on standard output.
pub(crate) fn height() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let rows = size.map_or(0, |size| usize::from(size.ws_row));
    if rows > 0 { rows } else { ROWS }
}

/// Renders a time in the past: `just now`, `12 s ago`, `3 min ago`, `4 h ago`, `2 d ago`.
pub(crate) fn ago(now: i64, then: i64) -> String {
    match now.saturating_sub(then) {
        ..2_000 => "just now".into(),
        past => format!("{} ago", span(past)),
    }
}

/// Parses a span as people type it: `250ms`, `90s`, `10m`, `4h`, `3d`.
pub(crate) fn duration(text: &str) -> Result<std::time::Duration, String> {
    let wrong = || format!("`{text}` is not a duration: `90s`, `10m`, `4h`");
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

/// Says when texts are erased: `erased in 89 d`, `to be erased now`.
pub(crate) fn erased(now: i64, at: i64) -> String {
    if at <= now {
        return "to be erased now".to_owned();
    }
    format!("erased in {}", left(now, at))
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

/// Parses a typed value: JSON if it is valid, otherwise text.
pub(crate) fn value(typed: &str) -> Json {
    read(typed).unwrap_or_else(|_| typed.into())
}

/// Parses a typed value of a declared type: one of text is what is typed, without quotes if it is a text in JSON. Any other is
/// [`value`].
pub(crate) fn value_of(typed: &str, ty: Option<&Type>) -> Json {
    let takes_text = |ty: &Type| {
        matches!(
            ty.kind,
            TypeKind::String { .. } | TypeKind::Enum(_) | TypeKind::Secret | TypeKind::Artifact
        )
    };
    match value(typed) {
        value if !value.is_string() && ty.is_some_and(takes_text) => typed.into(),
        value => value,
    }
}

/// Minimum room for the last column of a table.
const LAST: usize = 12;
/// Columns of a table that are not wider than this are never cut.
const SLIM: usize = 8;

/// Renders a table: each column is as wide as its widest cell, and the last column gets the rest. If that is too little, the
/// widest columns are cut; the first one, which people type, never is.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    columns(heading, rows, false)
}

/// Maximum number of characters of the last column of a [`list`] in a file or a pipe.
const WHOLE: usize = 240;

/// Columns of a [`list`] in a file or a pipe that are not wider than this are never cut.
const LEGIBLE: usize = 40;

/// Renders a table as [`table`] does. In a file or a pipe its last column is not cut, and no other below [`LEGIBLE`] characters: there
/// rows may be long, and nobody can make the window wider.
pub(crate) fn list(heading: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    columns(heading, rows, screen(std::io::stdout()).is_none())
}

fn columns(heading: &[&str], rows: &[Vec<String>], whole: bool) -> Vec<String> {
    let screen = width();
    let flat = |(i, cell): (usize, &String)| {
        let is_whole = whole && i + 1 == heading.len();
        line(cell, if is_whole { WHOLE } else { screen })
    };
    let row = |row: &Vec<String>| row.iter().enumerate().map(flat).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    let mut widths: Vec<usize> = heading.iter().map(|h| h.chars().count()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let last = widths.len().saturating_sub(1);
    let least = widths.last().map_or(LAST, |widest| *widest.min(&LAST));
    let before = |widths: &[usize]| widths[..last].iter().map(|w| w + 2).sum::<usize>();
    let slim = if whole { LEGIBLE } else { SLIM };
    while before(&widths) + least > screen {
        let cut = widths[..last].iter_mut().skip(1).max();
        let Some(widest) = cut.filter(|widest| **widest > slim) else {
            break;
        };
        *widest -= 1;
    }
    let room = screen.saturating_sub(before(&widths)).max(least);
    let render = |cells: &[String]| {
        let mut out = String::new();
        for (i, cell) in cells.iter().enumerate() {
            if i == last {
                out.push_str(&line(cell, if whole { WHOLE } else { room }));
            } else {
                let cell = line(cell, widths[i]);
                let pad = widths[i] + 2 - cell.chars().count();
                out.push_str(&cell);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_and_filters_are_quoted_for_a_shell() {
        assert_eq!(operand("a b"), "'a b'");
        assert_eq!(operand("-v"), "-- -v");
        assert_eq!(filter("status = waits"), "\"status = waits\"");
        assert_eq!(filter("vendor = \"A\""), "'vendor = \"A\"'");
    }

    #[test]
    fn times_are_rendered_for_people() {
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
    }
}

//! Prints the rows of a story.

use crate::printer::{bold, cyan, dim, green, red, yellow};
use crate::words::{WIDTH, fold, line as one_line, wrap};
use steersman::views::story::{Row, Tone};
use steersman_machine::stored::interaction::Class;

/// Width of the columns for lines and for actors.
const NUMBER: usize = 5;
const WHO: usize = 12;
/// Maximum number of characters of a choice with its reason.
const CHOSE: usize = 180;
/// Maximum number of characters of an error.
const WRONG: usize = 240;
/// Minimum room for a note after a text that is cut.
const NOTE: usize = 13;

/// Renders a row: number, actor, text over as many lines as needed, note at the right.
pub(crate) fn print(row: &Row, number: bool) -> Vec<String> {
    let left = if number { NUMBER + 2 } else { 2 };
    let room = WIDTH - left - WHO - 1;
    let text = one_or_more(row, room);
    let mut rows = Vec::new();
    for (i, part) in text.iter().enumerate() {
        let number = match (number, i) {
            (true, 0) => format!("{:>NUMBER$}  ", format!("@{}", row.line)),
            (true, _) => " ".repeat(NUMBER + 2),
            (false, _) => "  ".into(),
        };
        let who = if i == 0 { row.who.as_str() } else { "" };
        let who = format!("{:<WHO$} ", one_line(who, WHO));
        let last = i + 1 == text.len();
        let mut out = format!(
            "{}{}{}",
            dim(&number),
            paint_who(row, &who),
            paint(row, part)
        );
        if last && !row.note.is_empty() {
            let used = part.chars().count();
            let gap = room.saturating_sub(used + row.note.chars().count()).max(2);
            out.push_str(&" ".repeat(gap));
            out.push_str(&paint_note(row));
        }
        rows.push(out.trim_end().to_owned());
    }
    rows
}

fn paint_who(row: &Row, who: &str) -> String {
    match row.tone {
        Tone::Said if row.who == "you" => bold(who),
        Tone::Doubt => red(who),
        Tone::Asked => yellow(who),
        _ => cyan(who),
    }
}

fn paint(row: &Row, text: &str) -> String {
    match row.tone {
        Tone::Said | Tone::Came => text.to_owned(),
        Tone::Called | Tone::Chose => bold(text),
        Tone::Wrong | Tone::Asked => yellow(text),
        Tone::Doubt => red(text),
        Tone::Decided => green(text),
        Tone::Engine | Tone::Found | Tone::Begins => dim(text),
    }
}

fn paint_note(row: &Row) -> String {
    match row.tone {
        Tone::Wrong | Tone::Asked => yellow(&row.note),
        Tone::Doubt => red(&row.note),
        _ => match row.note.as_str() {
            note if note == Class::Unsafe.word() => yellow(note),
            note => dim(note),
        },
    }
}

/// Splits the text of a row into lines. Messages and findings are shown in full, errors up to a limit; calls, results and
/// acts of the engine in one line.
fn one_or_more(row: &Row, room: usize) -> Vec<String> {
    // All durations get the same width, so that the same text is always cut at the same place.
    let note = match row.note.chars().count() {
        0 => 0,
        note => note.max(NOTE) + 2,
    };
    let beside = room.saturating_sub(note).max(20);
    match row.tone {
        Tone::Said => {
            let mut lines = wrap(&row.text, room);
            if lines.is_empty() {
                lines.push(String::new());
            }
            let last = lines.last().map_or(0, |l| l.chars().count());
            if note > 0 && last + note > room {
                lines.push(String::new());
            }
            lines
        }
        Tone::Chose => {
            let text = one_line(&row.text, CHOSE);
            wrap(&text, beside)
        }
        Tone::Found => {
            let text = one_line(&row.text, usize::MAX);
            if text.chars().count() <= beside {
                return vec![text];
            }
            fold(&row.text, beside)
        }
        Tone::Wrong => {
            let mut lines = fold(&one_line(&row.text, WRONG), beside);
            if lines.is_empty() {
                // An empty text still needs a line for its note.
                lines.push(String::new());
            }
            lines
        }
        Tone::Called
        | Tone::Came
        | Tone::Asked
        | Tone::Decided
        | Tone::Doubt
        | Tone::Engine
        | Tone::Begins => vec![one_line(&row.text, beside)],
    }
}

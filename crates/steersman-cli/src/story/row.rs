//! A row of a story, and how it is printed.

use crate::printer::{bold, cyan, dim, green, red, yellow};
use crate::words::{WIDTH, fold, line as one_line, wrap};
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::stored::interaction::Class;

/// One row of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The line of the log that the row is about.
    pub(crate) line: Line,
    /// The branch of that line.
    pub(crate) branch: Id,
    /// The actor: an agent, `you`, a role; empty for the result of a call.
    pub(crate) who: String,
    /// The text of the row.
    pub(crate) text: String,
    /// A note next to the text: a class, a duration, an end.
    pub(crate) note: String,
    /// The kind of row, which sets its style.
    pub(crate) tone: Tone,
}

/// The kind of a row. It carries no information that the text lacks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A message of a person or an agent.
    Said,
    /// A call of a tool or an agent.
    Called,
    /// A choice of a router, with its reason.
    Chose,
    /// A result of a call.
    Came,
    /// An error or a failure.
    Wrong,
    /// A question to somebody.
    Asked,
    /// A decision.
    Decided,
    /// An effect that may have happened.
    Doubt,
    /// An act of the engine.
    Engine,
    /// The result of a search; may take two rows.
    Found,
    /// The beginning of a branch.
    Begins,
}

/// Width of the columns for lines and for actors.
const NUMBER: usize = 5;
const WHO: usize = 12;
/// Maximum number of characters of a choice with its reason.
const CHOSE: usize = 180;
/// Maximum number of characters of an error.
const WRONG: usize = 240;
/// Minimum room for a note after a text that is cut.
const NOTE: usize = 13;

impl Row {
    /// Renders the row: number, actor, text over as many lines as needed, note at the right.
    pub(crate) fn print(&self, number: bool) -> Vec<String> {
        let left = if number { NUMBER + 2 } else { 2 };
        let room = WIDTH - left - WHO - 1;
        let text = one_or_more(self, room);
        let mut rows = Vec::new();
        for (i, part) in text.iter().enumerate() {
            let number = match (number, i) {
                (true, 0) => format!("{:>NUMBER$}  ", format!("@{}", self.line)),
                (true, _) => " ".repeat(NUMBER + 2),
                (false, _) => "  ".into(),
            };
            let who = if i == 0 { self.who.as_str() } else { "" };
            let who = format!("{:<WHO$} ", one_line(who, WHO));
            let last = i + 1 == text.len();
            let mut row = format!(
                "{}{}{}",
                dim(&number),
                self.paint_who(&who),
                self.paint(part)
            );
            if last && !self.note.is_empty() {
                let used = part.chars().count();
                let gap = room.saturating_sub(used + self.note.chars().count()).max(2);
                row.push_str(&" ".repeat(gap));
                row.push_str(&self.paint_note());
            }
            rows.push(row.trim_end().to_owned());
        }
        rows
    }

    fn paint_who(&self, who: &str) -> String {
        match self.tone {
            Tone::Said if self.who == "you" => bold(who),
            Tone::Doubt => red(who),
            Tone::Asked => yellow(who),
            _ => cyan(who),
        }
    }

    fn paint(&self, text: &str) -> String {
        match self.tone {
            Tone::Said | Tone::Came => text.to_owned(),
            Tone::Called | Tone::Chose => bold(text),
            Tone::Wrong | Tone::Asked => yellow(text),
            Tone::Doubt => red(text),
            Tone::Decided => green(text),
            Tone::Engine | Tone::Found | Tone::Begins => dim(text),
        }
    }

    fn paint_note(&self) -> String {
        match self.tone {
            Tone::Wrong | Tone::Asked => yellow(&self.note),
            Tone::Doubt => red(&self.note),
            _ => match self.note.as_str() {
                note if note == Class::Unsafe.word() => yellow(note),
                note => dim(note),
            },
        }
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

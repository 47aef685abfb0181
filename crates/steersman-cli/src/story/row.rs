//! A row of a story, and how it is printed.

use crate::printer::{bold, cyan, dim, green, red, yellow};
use crate::words::{WIDTH, fold, line as one_line, wrap};
use steersman_machine::ids::{Id, Line};
use steersman_machine::interaction::Class;

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The line it tells of.
    pub(crate) line: Line,
    /// The branch of that line.
    pub(crate) branch: Id,
    /// Who: an agent, `you`, a role; empty for what comes of a call.
    pub(crate) who: String,
    /// What.
    pub(crate) text: String,
    /// Beside it: a class, a duration, an end.
    pub(crate) note: String,
    /// How it is meant.
    pub(crate) tone: Tone,
}

/// How a row is meant. Carries nothing that the text lacks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Somebody said it.
    Said,
    /// Somebody called something.
    Called,
    /// A router chose, for the reason beside it.
    Chose,
    /// Something came of it.
    Came,
    /// It did not go well.
    Wrong,
    /// Somebody is asked.
    Asked,
    /// Somebody or something decided.
    Decided,
    /// It may have happened.
    Doubt,
    /// What the engine did meanwhile.
    Engine,
    /// What became of a search: two rows where one is too short.
    Found,
    /// A branch begins.
    Begins,
}

/// Width of the column of lines and of the column of who.
const NUMBER: usize = 5;
const WHO: usize = 12;
/// Characters of a choice with its reason.
const CHOSE: usize = 180;
/// Characters of what did not go well.
const WRONG: usize = 240;
/// Least room for a note behind a text that is cut.
const NOTE: usize = 13;

impl Row {
    /// The row for people: number, who, text over as many lines as it takes, note at the right.
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

/// What was said and what was found is shown in full, why something went wrong as far as people read it; calls, results and the
/// engine's doings in one line.
fn one_or_more(row: &Row, room: usize) -> Vec<String> {
    // one width for all durations, so that the same text is cut at the same place
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
                // of what ended without a word the note says why
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

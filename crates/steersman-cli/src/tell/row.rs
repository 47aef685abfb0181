//! Prints the rows of a story.

use crate::printer::{bold, cyan, dim, green, red, yellow};
use crate::words::{digits, fold, line as one_line, span, wrap};
use steersman::views::story::{Row, Tone};
use steersman_machine::stored::ids::Time;
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
/// Minimum room for a text next to its note.
const LEAST: usize = 20;

/// Lines of a message that are shown where long ones are shortened, and the lines that are shown of a longer one.
const LONG: usize = 24;
const FIRST: usize = 16;
/// Shortest duration of a model call that is shown, in milliseconds.
const SLOW: u64 = 1_000;
/// Width of the column for times.
const TIME: usize = 10;

/// The form of rows.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Form {
    /// Width in columns.
    pub(crate) width: usize,
    /// True if long messages are shortened.
    pub(crate) short: bool,
    /// True if each row begins with its time.
    pub(crate) times: bool,
}

impl Form {
    /// Returns the form of rows with messages in full and without times.
    pub(crate) fn wide(width: usize) -> Self {
        Self {
            width,
            short: false,
            times: false,
        }
    }
}

/// Returns the time of day in this computer's time zone, as wide as its column. A time that no calendar has is blank.
pub(crate) fn time_of(at: Time) -> String {
    let zoned = zoned(at).map(|at| at.strftime("%H:%M:%S").to_string());
    format!("{:<TIME$}", zoned.unwrap_or_default())
}

/// Returns the day in this computer's time zone.
pub(crate) fn day_of(at: Time) -> Option<String> {
    Some(zoned(at)?.date().to_string())
}

fn zoned(at: Time) -> Option<jiff::Zoned> {
    let at = jiff::Timestamp::from_millisecond(at.0).ok()?;
    Some(at.to_zoned(jiff::tz::TimeZone::system()))
}

/// Returns the note of a row: what the view says, and the duration of a model call that took long.
pub(crate) fn note(row: &Row) -> String {
    let slow = row.took.filter(|took| *took >= SLOW);
    let took = slow.map(|took| format!("model {}", span(i64::try_from(took).unwrap_or(i64::MAX))));
    match took {
        Some(took) if row.note.is_empty() => took,
        Some(took) => format!("{}, {took}", row.note),
        None => row.note.clone(),
    }
}

/// Renders a row: its line, actor, text over as many lines as needed, note at the right.
pub(crate) fn print(row: &Row, form: Form) -> Vec<String> {
    let time = if form.times { TIME } else { 0 };
    let room = form.width.saturating_sub(time + NUMBER + 2 + WHO + 1);
    let note = note(row);
    let mut text = one_or_more(row, &note, room);
    if form.short && row.tone == Tone::Said && text.len() > LONG {
        let words = row.text.split_whitespace().count();
        let shown = text[..FIRST]
            .iter()
            .flat_map(|part| part.split_whitespace());
        let more = words.saturating_sub(shown.count());
        text.truncate(FIRST);
        text.push(format!("... {} words more: --full", digits(more as u64)));
    }
    let mut rows = Vec::new();
    for (i, part) in text.iter().enumerate() {
        let time = match i {
            0 if form.times => time_of(row.at),
            _ => " ".repeat(time),
        };
        let number = match i {
            0 => format!("{time}{:>NUMBER$}  ", format!("@{}", row.line)),
            _ => format!("{time}{}", " ".repeat(NUMBER + 2)),
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
        if last && !note.is_empty() {
            let used = part.chars().count();
            let gap = room.saturating_sub(used + note.chars().count()).max(2);
            out.push_str(&" ".repeat(gap));
            out.push_str(&paint_note(row, &note));
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

fn paint_note(row: &Row, note: &str) -> String {
    match row.tone {
        Tone::Wrong | Tone::Asked => yellow(note),
        Tone::Doubt => red(note),
        _ if row.note == Class::Unsafe.word() => yellow(note),
        _ => dim(note),
    }
}

/// Splits the text of a row into lines. Messages and findings are shown in full, errors up to a limit; calls, results and
/// acts of the engine in one line.
fn one_or_more(row: &Row, note: &str, room: usize) -> Vec<String> {
    // All durations get the same width, so that the same text is always cut at the same place.
    let note = match note.chars().count() {
        0 => 0,
        note => note.max(NOTE) + 2,
    };
    // A note that leaves too little room stands below the text.
    let below = room < note + LEAST;
    let beside = if below { room } else { room - note };
    let mut lines = match row.tone {
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
                vec![text]
            } else {
                fold(&row.text, beside)
            }
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
    };
    if below && row.tone != Tone::Said {
        lines.push(String::new());
    }
    lines
}

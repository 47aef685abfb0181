//! The live region at the bottom of a terminal: one line for each agent that is at work, in place of what was there before.
//! It is removed before anything else is printed.

use crate::printer::Printer;
use crate::words::{line as one_line, talk_width, wrap};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use steersman::runtime::model::Delta;
use steersman::runtime::toolset::Progress;
use steersman_machine::stored::ids::Id;

/// Time without any output after which a line says what is awaited.
const SILENT: Duration = Duration::from_secs(3);
/// Interval at which the region is drawn if nothing happens.
pub(crate) const TICK: Duration = Duration::from_secs(1);
/// Shortest time between two drawings of streamed output.
const SOON: Duration = Duration::from_millis(40);
/// Maximum number of lines. Others are only counted.
const LINES: usize = 8;
/// Number of bytes of an answer that are kept to be shown.
const TAIL: usize = 2_000;

/// Something that is at work.
struct Work {
    /// The agent or tool.
    name: String,
    since: Instant,
    /// The end of what has come so far.
    text: String,
}

pub(crate) struct Live {
    printer: Printer,
    /// True if there is a terminal to draw on.
    pub(crate) terminal: bool,
    work: BTreeMap<Id, Work>,
    /// A line about the session as a whole.
    note: Option<String>,
    /// Number of lines on the screen.
    shown: usize,
    drawn: Instant,
}

impl Live {
    pub(crate) fn new(printer: &Printer) -> Self {
        Self {
            printer: printer.clone(),
            terminal: std::io::stderr().is_terminal() && !printer.is_quiet(),
            work: BTreeMap::new(),
            note: None,
            shown: 0,
            drawn: Instant::now(),
        }
    }

    /// Begins a line for a model call of an agent.
    pub(crate) fn asks(&mut self, effect: Id, name: &str) {
        self.at(effect, Some(name));
    }

    /// Adds a streamed piece of a model's answer. The name of an agent is unknown until the line that made it is on disk.
    pub(crate) fn streams(&mut self, effect: Id, name: Option<&str>, delta: Delta) {
        let piece = match delta {
            Delta::Text(text) | Delta::Reasoning(text) => text,
            Delta::Call(_, Some(name), piece) => format!(" {name} {piece}"),
            Delta::Call(_, None, piece) => piece,
        };
        let work = self.at(effect, name);
        work.text.push_str(&piece);
        if work.text.len() > 2 * TAIL {
            let mut from = work.text.len() - TAIL;
            while !work.text.is_char_boundary(from) {
                from += 1;
            }
            work.text.drain(..from);
        }
        if self.drawn.elapsed() >= SOON {
            self.draw();
        }
    }

    /// Shows the progress of a tool call, as its server reports it.
    pub(crate) fn progress(&mut self, effect: Id, tool: &str, progress: &Progress) {
        self.at(effect, Some(tool)).text = how_far(progress);
        self.draw();
    }

    /// Forgets what has come of an answer that begins again.
    pub(crate) fn withdraws(&mut self, effect: Id) {
        if let Some(work) = self.work.get_mut(&effect) {
            work.text.clear();
        }
        self.draw();
    }

    /// Removes the lines of what is over.
    pub(crate) fn ends(&mut self, over: &BTreeSet<Id>) {
        self.work.retain(|effect, _| !over.contains(effect));
    }

    /// Removes everything: the session rests.
    pub(crate) fn rests(&mut self) {
        self.clear();
        self.work.clear();
        self.note = None;
    }

    /// Sets the line about the session as a whole.
    pub(crate) fn note(&mut self, note: Option<String>) {
        self.note = note;
    }

    fn at(&mut self, effect: Id, name: Option<&str>) -> &mut Work {
        let work = self.work.entry(effect).or_insert_with(|| Work {
            name: String::new(),
            since: Instant::now(),
            text: String::new(),
        });
        if let Some(name) = name {
            name.clone_into(&mut work.name);
        }
        work
    }

    /// Draws the region.
    pub(crate) fn draw(&mut self) {
        if !self.terminal {
            return;
        }
        let rows = self.rows(talk_width());
        self.clear();
        self.drawn = Instant::now();
        self.shown = rows.len();
        self.printer.region(&rows);
    }

    /// Returns the lines of the region. A single answer grows over several lines.
    fn rows(&self, width: usize) -> Vec<String> {
        // A full line would let the terminal begin another one.
        let room = width.saturating_sub(3);
        let mut rows: Vec<String> = self.note.iter().map(|note| one_line(note, room)).collect();
        let mut told = self.work.values().filter(|work| work.is_told());
        if let (Some(work), None) = (told.next(), told.next())
            && !work.text.is_empty()
        {
            let whole = wrap(work.told().trim_end(), room);
            let from = whole.len().saturating_sub(LINES);
            rows.extend(whole[from..].iter().map(|row| one_line(row, room)));
            return rows;
        }
        let told = self.work.values().filter(|work| work.is_told());
        let told: Vec<String> = told.map(|work| work.row(room)).collect();
        let more = told.len().saturating_sub(LINES);
        rows.extend(told.into_iter().take(LINES));
        if more > 0 {
            rows.push(format!("and {more} more"));
        }
        rows
    }

    /// Removes the region.
    pub(crate) fn clear(&mut self) {
        let shown = std::mem::take(&mut self.shown);
        if shown == 0 {
            return;
        }
        for _ in 1..shown {
            self.printer.control("\r\x1b[K\x1b[A");
        }
        self.printer.clear_status();
    }
}

impl Work {
    fn is_told(&self) -> bool {
        !self.text.is_empty() || self.since.elapsed() >= SILENT
    }

    fn told(&self) -> String {
        match self.name.as_str() {
            "" => self.text.clone(),
            name => format!("{name}: {}", self.text),
        }
    }

    /// Returns one line: the end of what has come, or what is awaited.
    fn row(&self, room: usize) -> String {
        if self.text.is_empty() {
            let seconds = self.since.elapsed().as_secs();
            return one_line(
                &format!("{}: waits for its model, {seconds} s", self.name),
                room,
            );
        }
        let name = match self.name.as_str() {
            "" => String::new(),
            name => format!("{}: ", one_line(name, room / 2)),
        };
        let flat: Vec<&str> = self.text.split_whitespace().collect();
        let flat = flat.join(" ");
        let over = flat
            .chars()
            .count()
            .saturating_sub(room - name.chars().count());
        format!("{name}{}", flat.chars().skip(over).collect::<String>())
    }
}

/// Renders progress: `3 of 10, half way`.
fn how_far(progress: &Progress) -> String {
    let mut told = match progress.total {
        Some(total) => format!("{} of {total}", progress.done),
        None => progress.done.to_string(),
    };
    if let Some(message) = &progress.message {
        told = format!("{told}, {message}");
    }
    told
}

/// Time after which a start that is not over is told on a terminal, and elsewhere.
const LONG: Duration = Duration::from_secs(1);
const VERY_LONG: Duration = Duration::from_secs(5);

/// Waits for something that may take long without a line, such as the start of servers, and says so: on a terminal on one line
/// with the seconds, elsewhere once.
pub(crate) async fn meanwhile<T>(
    printer: &Printer,
    what: &str,
    work: impl Future<Output = T>,
) -> T {
    tokio::pin!(work);
    let began = Instant::now();
    let terminal = std::io::stderr().is_terminal();
    let mut told = false;
    loop {
        tokio::select! {
            biased;
            done = &mut work => {
                if told && terminal {
                    printer.clear_status();
                }
                return done;
            }
            () = tokio::time::sleep(if terminal { LONG } else { VERY_LONG }) => {
                let told_before = std::mem::replace(&mut told, true);
                if terminal {
                    printer.status(&format!("{what}, {} s", began.elapsed().as_secs()));
                } else if !told_before {
                    printer.talk(format!("{what}."));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Delta, LINES, Live, Printer, Progress};
    use crate::cli::{Color, Global};
    use crate::place::Driven;
    use steersman_machine::stored::ids::{Id, Line};

    fn id(k: u32) -> Id {
        Id::new(Line(3), k)
    }

    fn says(live: &mut Live, k: u32, text: &str) {
        live.streams(
            id(k),
            Some(&format!("agent{k}")),
            Delta::Text(text.to_owned()),
        );
    }

    #[test]
    fn each_running_agent_has_a_line_with_the_end_of_its_answer() {
        let global = Global {
            store: None,
            server: None,
            json: false,
            quiet: false,
            color: Color::Auto,
            columns: None,
            driven: Driven::default(),
        };
        let mut live = Live::new(&Printer::new(&global));
        says(&mut live, 1, "The first ");
        says(&mut live, 2, "A");
        says(&mut live, 1, "answer grows.");
        let progress = Progress {
            done: 3.0,
            total: Some(10.0),
            message: Some("half".to_owned()),
        };
        live.progress(id(3), "index", &progress);
        // It has said nothing yet, and is not awaited for long.
        live.asks(id(4), "agent4");
        let rows = [
            "agent1: The first answer grows.",
            "agent2: A",
            "index: 3 of 10, half",
        ];
        assert_eq!(live.rows(80), rows);

        // An agent that ended has no line any more; a single answer grows over several lines.
        live.ends(&[id(2), id(3)].into());
        says(&mut live, 1, &" And grows.".repeat(10));
        let rows = live.rows(60);
        assert!(
            rows.len() > 1 && rows[0].starts_with("agent1: The first"),
            "{rows:?}"
        );

        // Many agents: the rest is counted. Each line shows its end, and fits.
        for k in 10..30 {
            says(
                &mut live,
                k,
                &format!("{}the end of {k}", "words ".repeat(30)),
            );
        }
        let rows = live.rows(60);
        assert_eq!(rows.len(), LINES + 1);
        assert_eq!(rows[LINES], "and 13 more");
        assert!(
            rows[1].starts_with("agent10: ") && rows[1].ends_with("the end of 10"),
            "{rows:?}"
        );
        assert!(rows.iter().all(|row| row.chars().count() <= 57), "{rows:?}");
        live.withdraws(id(10));
        assert!(!live.rows(60).iter().any(|row| row.starts_with("agent10: ")));
        live.rests();
        assert!(live.rows(60).is_empty());
    }
}

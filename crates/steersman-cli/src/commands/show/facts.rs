//! The part of `show` below the branches: state, effects, agents, labels, outcome, inbox.

use super::Screen;
use crate::commands::effects::summed;
use crate::printer::{dim, yellow};
use crate::words::{self, count, line as one_line, money, written_out};
use serde_json::Value as Json;
use steersman::views::page::AgentRow;
use steersman_machine::view::rating::BEST;

/// Width of the column for the names of the rows.
const NAMES: usize = 9;
/// Minimum room for the letters of a stack.
const LETTERS: usize = 8;

impl Screen<'_> {
    /// Returns rows for state, effects, ratings, labels, outcome, orders and agents.
    pub(super) fn facts(&self) -> Vec<String> {
        let mut rows = Vec::new();
        let mut before = String::new();
        let of = if self.shown.alone {
            format!(" of {}  ", self.page.branch)
        } else {
            String::new()
        };
        let mut row = |name: &str, text: String| {
            // A name is printed only before its first row; the branch is printed on the first row of all.
            let of = if rows.is_empty() { &*of } else { "" };
            let shown = if before == name { "" } else { name };
            rows.push(format!("{:<NAMES$}{text}", format!("{shown}{of}")));
            name.clone_into(&mut before);
        };
        let state = self.page.state.iter().map(|(name, value)| match value {
            Json::String(sealed) if sealed == "(sealed)" => format!("{name} {sealed}"),
            value => format!("{name} {value}"),
        });
        for entries in in_rows(&state.collect::<Vec<_>>(), ", ") {
            row("state", entries);
        }
        if self.page.models.len() > 1 {
            for by in &self.page.models {
                let calls = count(by.calls, "call");
                row(
                    "models",
                    format!("{}: {calls}, cost {}", by.model, money(by.micros)),
                );
            }
        }
        for (tool, sum) in &self.page.sums {
            row("effects", format!("{tool}: {}", summed("", *sum)));
        }
        for agent in self.agents() {
            row("agents", agent);
        }
        let letters = self.page.legend.iter();
        let letters = letters.map(|(letter, meaning)| format!("{letter} {meaning}"));
        for part in packed(letters, words::width() - NAMES) {
            row("", dim(&part));
        }
        let rated = self.page.rated.iter();
        let rated =
            rated.map(|rated| format!("{} {} of {BEST} by {}", rated.name, rated.rating, rated.by));
        let rated: Vec<String> = rated.collect();
        if !rated.is_empty() {
            row("rated", rated.join(", "));
        }
        // The other facts are only known for the present.
        if self.shown.line.is_some() {
            return rows;
        }
        let labels = self.page.row.labels.iter();
        let labels = labels.filter_map(|(name, value)| {
            let value = value.as_str().filter(|value| !value.is_empty())?;
            Some(format!("{name}={value}"))
        });
        for labels in in_rows(&labels.collect::<Vec<_>>(), " ") {
            row("labels", labels);
        }
        let outcome = self.page.row.outcome.to_string();
        if !matches!(&*outcome, "" | "{}" | "null") {
            for entries in in_rows(&outcomes(&self.page.row.outcome), ", ") {
                row("outcome", entries);
            }
        }
        if !self.page.orders.is_empty() {
            row("orders", self.page.orders.join(", "));
        }
        if self.page.inbox > 0 {
            let messages = count(self.page.inbox as u64, "message");
            row("inbox", format!("{messages} not taken yet"));
        }
        for error in &self.page.unread {
            row("unread", error.clone());
        }
        rows
    }

    /// Returns one row for each agent: path of names, phase, letters of its stack.
    fn agents(&self) -> Vec<String> {
        let phases = self.page.agents.iter().map(phase);
        let phases: Vec<(&str, String)> = phases.collect();
        let widths = phases
            .iter()
            .map(|(word, state)| word.len() + state.chars().count());
        let width = widths.max().unwrap_or(0);
        let rows = self.page.agents.iter().zip(phases);
        rows.map(|(agent, (word, state))| {
            let gap = width - word.len() - state.chars().count();
            let shown = match word {
                RESTS => dim(word),
                _ => yellow(word),
            };
            let left = format!("{:<20} ", agent.path);
            let used = NAMES + left.chars().count() + width + 3;
            let room = words::width().saturating_sub(used).max(LETTERS);
            format!(
                "{left}{shown}{state}{}   {}",
                " ".repeat(gap),
                dim(&one_line(&agent.letters, room))
            )
        })
        .collect()
    }
}

const RESTS: &str = "rests";

/// Returns the phase of an agent, and the state of its net if it is in one.
fn phase(agent: &AgentRow) -> (&'static str, String) {
    if let Some(floor) = &agent.floor {
        return (RESTS, format!(", {floor} has the floor"));
    }
    let word = match agent.phase.as_str() {
        "thinking" => "thinks",
        "routing" => "routes",
        "calling" => "waits for results",
        _ => RESTS,
    };
    let state = agent.net_state.as_ref().filter(|_| word != RESTS);
    (
        word,
        state.map_or_else(String::new, |state| format!(" ({state})")),
    )
}

/// Returns the entries of an outcome; one without a value is `none`, as in a definition.
fn outcomes(outcome: &Json) -> Vec<String> {
    let Json::Object(fields) = outcome else {
        return vec![written_out(outcome)];
    };
    let value = |value: &Json| match value {
        Json::Null => "none".to_owned(),
        value => written_out(value),
    };
    let fields = fields.iter();
    fields
        .map(|(name, of)| format!("{name}: {}", value(of)))
        .collect()
}

/// Joins entries in as few rows as possible, without breaking one.
fn packed(all: impl IntoIterator<Item = String>, room: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for entry in all {
        match rows.last_mut() {
            Some(row) if row.chars().count() + 2 + entry.chars().count() <= room => {
                row.push_str(", ");
                row.push_str(&entry);
            }
            _ => rows.push(entry),
        }
    }
    rows
}

/// Returns the entries in one row if they fit, otherwise one row for each, cut to the width.
fn in_rows(all: &[String], between: &str) -> Vec<String> {
    let room = words::width() - NAMES;
    let joined = all.join(between);
    if joined.chars().count() <= room && !joined.contains(char::is_control) {
        return all.iter().take(1).map(|_| joined.clone()).collect();
    }
    all.iter().map(|entry| one_line(entry, room)).collect()
}

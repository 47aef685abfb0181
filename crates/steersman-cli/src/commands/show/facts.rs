//! The part of `show` below the branches: state, effects, agents, labels, outcome, inbox.

use super::{Page, ledger_orders};
use crate::commands::effects::summed;
use crate::commands::sessions;
use crate::place::branch_name;
use crate::printer::{dim, yellow};
use crate::words::{WIDTH, count, entries, line as one_line};
use std::collections::BTreeMap;
use steersman::runtime::branches::path;
use steersman::views::effects::Effects;
use steersman_machine::artifact;
use steersman_machine::rating::{self, BEST, is_rating};
use steersman_machine::snapshot::{Agent, Phase};

/// Width of the column for the names of the rows.
const NAMES: usize = 9;

impl Page<'_> {
    /// Returns rows for state, effects, ratings, labels, outcome, orders and agents.
    pub(super) fn facts(&self) -> Vec<String> {
        let mut rows = Vec::new();
        let mut before = String::new();
        let of = match &self.way {
            Some(_) => format!(" of {}  ", branch_name(self.branch)),
            None => String::new(),
        };
        let mut row = |name: &str, text: String| {
            // A name is printed only before its first row; the branch is printed on the first row of all.
            let of = if rows.is_empty() { &*of } else { "" };
            let shown = if before == name { "" } else { name };
            rows.push(format!("{:<NAMES$}{text}", format!("{shown}{of}")));
            name.clone_into(&mut before);
        };
        let state = self.state();
        let state = state.iter().map(|(name, value)| format!("{name} {value}"));
        for entries in told(&state.collect::<Vec<_>>(), ", ") {
            row("state", entries);
        }
        for (tool, sum) in Effects::sums(self.effects().all()) {
            row("effects", format!("{tool}: {}", summed("", sum)));
        }
        for agent in self.agents() {
            row("agents", agent);
        }
        let rated = self.rated();
        if !rated.is_empty() {
            row("rated", rated.join(", "));
        }
        // The other facts are only known for the present.
        if self.line.is_some() {
            return rows;
        }
        for labels in told(&sessions::each_label(&self.inspection.info), " ") {
            row("labels", labels);
        }
        let outcome = self.outcome();
        if !matches!(&*outcome, "" | "{}" | "null") {
            for entries in told(&entries(&outcome), ", ") {
                row("outcome", entries);
            }
        }
        if ledger_orders(self.inspection).count() > 0 {
            let held: Vec<String> = ledger_orders(self.inspection).collect();
            row("orders", held.join(", "));
        }
        if !self.inspection.inbox.is_empty() {
            row(
                "inbox",
                format!(
                    "{} not taken yet",
                    count(self.inspection.inbox.len() as u64, "message")
                ),
            );
        }
        for error in &self.inspection.unread {
            row("unread", error.to_string());
        }
        rows
    }

    /// Returns the newest versions of artifacts that were rated.
    fn rated(&self) -> Vec<String> {
        let seen = artifact::seen(&self.snapshot, None).into_iter();
        let rated = seen.filter_map(|seen| {
            let rating = rating::of(&self.snapshot, seen.versions.last()?)?;
            Some(format!(
                "{} {} of {BEST} by {}",
                seen.name, rating.rating, rating.by
            ))
        });
        rated.collect()
    }

    /// Returns the state by name. Entries of agents below the root are prefixed with the agent's name.
    pub(super) fn state(&self) -> BTreeMap<String, String> {
        let state = self.snapshot.state.iter();
        state
            .filter(|((_, name), _)| !is_rating(name))
            .map(|((scope, name), cell)| {
                let name = if Some(*scope) == self.snapshot.root {
                    name.to_string()
                } else {
                    format!("{}.{name}", path(&self.snapshot, *scope))
                };
                let value = if cell.value.is_sealed() {
                    "(sealed)".to_owned()
                } else {
                    cell.value.0.to_string()
                };
                (name, value)
            })
            .collect()
    }

    /// Returns one row for each agent: path of names, phase, letters of its stack.
    fn agents(&self) -> Vec<String> {
        let mut agents: Vec<_> = self.snapshot.agents.values().collect();
        agents.sort_by(|a, b| a.path.cmp(&b.path));
        let phases: Vec<(&str, String)> = agents.iter().map(|agent| phase(agent)).collect();
        let widths = phases
            .iter()
            .map(|(word, state)| word.len() + state.chars().count());
        let width = widths.max().unwrap_or(0);
        let rows = agents.into_iter().zip(phases);
        rows.map(|(agent, (word, state))| {
            let gap = width - word.len() - state.chars().count();
            let shown = match agent.phase {
                Phase::Resting => dim(word),
                _ => yellow(word),
            };
            format!(
                "{:<20} {shown}{state}{}   {}",
                path(&self.snapshot, agent.id),
                " ".repeat(gap),
                dim(&one_line(&self.letters(agent), 50))
            )
        })
        .collect()
    }
}

/// Returns the phase of an agent, and the state of its net if it is in one.
fn phase(agent: &Agent) -> (&'static str, String) {
    let word = match agent.phase {
        Phase::Resting => "rests",
        Phase::Thinking => "thinks",
        Phase::Routing => "routes",
        Phase::Calling => "waits for calls",
    };
    let state = agent.state.as_ref();
    let state = state.filter(|_| agent.phase != Phase::Resting);
    (
        word,
        state.map_or_else(String::new, |state| format!(" ({state})")),
    )
}

/// Returns the entries in one row if they fit, else one row for each, cut to the width.
fn told(all: &[String], between: &str) -> Vec<String> {
    let room = WIDTH - NAMES;
    let joined = all.join(between);
    if joined.chars().count() <= room && !joined.contains(char::is_control) {
        return all.iter().take(1).map(|_| joined.clone()).collect();
    }
    all.iter().map(|entry| one_line(entry, room)).collect()
}

//! Lines that a line names beside the one before it: what it speaks of was there when it was written.

use crate::rerun::RERUN_OF;
use std::collections::BTreeMap;
use steersman_machine::commit::{Branched, Commit, LedgerEntry, LogLine, Searching};
use steersman_machine::ids::Line;

/// What the lines of a log say of other lines, gathered as they are read.
#[derive(Default)]
pub(super) struct Named {
    /// By the line that is named, the first that names it.
    by: BTreeMap<Line, Line>,
    last: Line,
    /// Lines that are not there: an owner leaves no number out.
    left_out: Vec<(Line, String)>,
    /// It is a rerun: its lines have the numbers that they have in what it repeats.
    repeats: bool,
}

impl Named {
    /// Takes note of a line that verifies; they come in their order.
    pub(super) fn note(&mut self, line: &LogLine) {
        for named in line.ledger.iter().filter_map(entry) {
            self.by.entry(named).or_insert(line.n);
        }
        for named in line.commit.iter().flat_map(commit) {
            self.by.entry(named).or_insert(line.n);
        }
        let claims = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Claimed { .. });
        let before = Line(line.n.0.saturating_sub(1));
        let mut labels = line.commit.iter().flat_map(Commit::labels);
        self.repeats |= labels.any(|(label, _)| **label == *RERUN_OF);
        if !self.repeats && self.last < before && !line.ledger.iter().any(claims) {
            let first = self.last.next();
            let what = if first == before {
                "it is missing".to_owned()
            } else {
                format!("it is missing, and so may be lines from {first} on")
            };
            self.left_out.push((before, what));
        }
        self.last = line.n;
    }

    /// A line is there that cannot be read.
    pub(super) fn pass(&mut self, n: Line) {
        self.last = n;
    }

    /// What is not there though something says that it was.
    pub(super) fn missing(self, is_there: impl Fn(Line) -> bool) -> Vec<(Line, String)> {
        let named = self.by.into_iter();
        let named = named.filter(|(line, _)| line.is_some() && !is_there(*line));
        let named =
            named.map(|(line, by)| (line, format!("it is missing, and line {by} names it")));
        self.left_out.into_iter().chain(named).collect()
    }
}

fn entry(entry: &LedgerEntry) -> Option<Line> {
    match entry {
        LedgerEntry::Opened { at, .. } | LedgerEntry::Adopted { at, .. } => Some(*at),
        LedgerEntry::Superseded { after, .. } => Some(*after),
        LedgerEntry::Search { what, .. } => match what {
            Searching::Began { at, .. }
            | Searching::Judged { at, .. }
            | Searching::Stood { at, .. }
            | Searching::Scored { at, .. } => Some(*at),
            Searching::Over { winner, .. } => winner.map(|(_, at)| at),
            _ => None,
        },
        _ => None,
    }
}

fn commit(commit: &Commit) -> impl Iterator<Item = Line> {
    let adopted = commit.adoption.as_ref().map(|adoption| adoption.at);
    let chosen = commit.branching.iter().filter_map(|told| match &told.what {
        Branched::Chose(_, at) => Some(*at),
        _ => None,
    });
    let below = commit.pushes.iter().map(|push| push.prev);
    std::iter::once(commit.parent)
        .chain(adopted)
        .chain(chosen)
        .chain(below)
}

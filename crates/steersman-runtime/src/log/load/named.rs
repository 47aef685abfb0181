//! Finds missing lines by references: a line that another line names existed when that line was written.

use super::RERUN_OF;
use std::collections::BTreeMap;
use steersman_machine::stored::commit::{CallChanged, Commit, LedgerEntry, LogLine, Searching};
use steersman_machine::stored::ids::Line;

/// References from lines to other lines, collected while the lines are read.
#[derive(Default)]
pub(super) struct Named {
    /// Lines that are named, each with the first line that names it.
    by: BTreeMap<Line, Line>,
    last: Line,
    /// Missing lines that are shown by a gap in the numbers: an owner leaves out no number.
    left_out: Vec<(Line, String)>,
    /// True if the session is a rerun. Its lines keep the numbers that they have in the session that it repeats.
    repeats: bool,
}

impl Named {
    /// Adds a line that verifies. Lines must come in their order.
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

    /// Records a line that exists but cannot be read.
    pub(super) fn pass(&mut self, n: Line) {
        self.last = n;
    }

    /// Returns the missing lines, each with the evidence for it.
    pub(super) fn missing(self, is_there: impl Fn(Line) -> bool) -> Vec<(Line, String)> {
        let named = self.by.into_iter();
        let named = named.filter(|(line, _)| line.is_some() && !is_there(*line));
        let named =
            named.map(|(line, by)| (line, format!("it is missing, and line {by} names it")));
        self.left_out.into_iter().chain(named).collect()
    }
}

/// Returns the line that a ledger entry names.
pub(crate) fn entry(entry: &LedgerEntry) -> Option<Line> {
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
    let chosen = commit.calls.iter().filter_map(|told| match &told.what {
        CallChanged::Chose(_, at) => Some(*at),
        _ => None,
    });
    let below = commit.pushes.iter().map(|push| push.prev);
    std::iter::once(commit.parent)
        .chain(adopted)
        .chain(chosen)
        .chain(below)
}

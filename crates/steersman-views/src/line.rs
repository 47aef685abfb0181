//! Lines of the log, each with everything that it holds, as text.

use crate::shown;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use steersman_machine::stored::commit::{Admitted, LedgerEntry, LogLine};
use steersman_machine::stored::ids::Bodies;
use steersman_machine::stored::ids::{Id, Line, Time};
use steersman_machine::trace::Trace;

/// A line of the log as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineView {
    /// Number of the line.
    #[serde(serialize_with = "shown::line")]
    pub line: Line,
    /// The branch on which the line was written.
    #[serde(serialize_with = "shown::text")]
    pub branch: Id,
    /// The time that the line records.
    #[serde(serialize_with = "shown::time")]
    pub at: Time,
    /// Tokens of the model calls whose outcome it took.
    pub tokens: u64,
    /// Durations of the calls of models and tools whose outcome it took.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub took: Vec<Took>,
    /// Its number, its branch and the offers that it took.
    pub head: String,
    /// Everything that it made, pushed, wished and entered into the ledger.
    pub rows: Vec<String>,
    /// The text as it is printed: head and rows, indented.
    #[serde(skip)]
    pub text: String,
}

/// The duration of a call of a model or a tool.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Took {
    /// The effect.
    #[serde(serialize_with = "shown::text", deserialize_with = "shown::read::text")]
    pub effect: Id,
    /// Milliseconds: of a model, those of the attempt that succeeded; of a tool, those since its newest attempt began.
    pub millis: u64,
}

/// Reads lines in order and converts each into a view. Names come from the lines before.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    trace: Trace,
    /// The time at which each effect for a call began that is not over.
    began: BTreeMap<Id, Time>,
}

impl Lines {
    /// Reads a line without converting it.
    pub fn learn(&mut self, line: &LogLine) {
        self.trace.learn(line);
        self.took(line);
    }

    /// Returns the durations of what ended in a line, and notes what begins there.
    fn took(&mut self, line: &LogLine) -> Vec<Took> {
        let mut took = Vec::new();
        if let Some(commit) = &line.commit {
            let models = commit.usage.iter();
            took.extend(models.filter_map(|usage| {
                let (effect, millis) = (usage.effect?, usage.took);
                Some(Took { effect, millis })
            }));
            for admitted in commit
                .admitted
                .iter()
                .filter(|a| a.kind == Admitted::Outcome)
            {
                let began = admitted
                    .id
                    .and_then(|id| Some((id, self.began.remove(&id)?)));
                took.extend(began.map(|(effect, began)| Took {
                    effect,
                    millis: line.at.0.saturating_sub(began.0).max(0).unsigned_abs(),
                }));
            }
            let calls = commit.wished.iter().filter(|w| w.what.call().is_some());
            self.began.extend(calls.map(|wished| (wished.id, line.at)));
        }
        for entry in &line.ledger {
            match entry {
                LedgerEntry::Started { effect, .. } => {
                    self.began.insert(*effect, line.at);
                }
                // The end of a hold is no work of the call, and an attempt that ran when its owner died has an unknown duration.
                LedgerEntry::Released { effect, .. } => {
                    self.began.remove(effect);
                }
                LedgerEntry::Claimed { .. } => self.began.clear(),
                _ => {}
            }
        }
        took
    }

    /// Converts a line.
    pub fn line(&mut self, line: &LogLine, texts: &dyn Bodies) -> LineView {
        let text = self.trace.line(line, texts, None);
        let took = self.took(line);
        let mut rows = text.lines();
        let head = rows.next().unwrap_or_default().to_owned();
        let rows = rows.map(|row| row.trim().to_owned()).collect();
        let usage = line.commit.iter().flat_map(|commit| &commit.usage);
        LineView {
            line: line.n,
            branch: line.branch,
            at: line.at,
            tokens: usage.fold(0, |sum, used| used.tokens().saturating_add(sum)),
            took,
            head,
            rows,
            text,
        }
    }
}

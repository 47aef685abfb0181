//! Lines of the log, each with everything that it holds, as text.

use crate::shown;
use serde::Serialize;
use steersman_machine::stored::commit::LogLine;
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
    /// Its number, its branch and the offers that it took.
    pub head: String,
    /// Everything that it made, pushed, wished and entered into the ledger.
    pub rows: Vec<String>,
    /// The text as it is printed: head and rows, indented.
    #[serde(skip)]
    pub text: String,
}

/// Reads lines in order and converts each into a view. Names come from the lines before.
#[derive(Clone, Debug, Default)]
pub struct Lines(Trace);

impl Lines {
    /// Reads a line without converting it.
    pub fn learn(&mut self, line: &LogLine) {
        self.0.learn(line);
    }

    /// Converts a line.
    pub fn line(&mut self, line: &LogLine, texts: &dyn Bodies) -> LineView {
        let text = self.0.line(line, texts, None);
        let mut rows = text.lines();
        let head = rows.next().unwrap_or_default().to_owned();
        let rows = rows.map(|row| row.trim().to_owned()).collect();
        let usage = line.commit.iter().flat_map(|commit| &commit.usage);
        LineView {
            line: line.n,
            branch: line.branch,
            at: line.at,
            tokens: usage.fold(0, |sum, used| used.tokens().saturating_add(sum)),
            head,
            rows,
            text,
        }
    }
}

//! The result of a rerun, compared with the session that it repeated.

use crate::diff::Diff;
use crate::shown;
use serde::{Serialize, Serializer};
use steersman_machine::stored::ids::Line;
use steersman_runtime::rerun::Rerunned;

/// A rerun and its differences from the recorded session.
#[derive(Clone, Debug, Serialize)]
pub struct Reran {
    /// The session of the rerun.
    pub session: String,
    /// The recorded session.
    pub of: String,
    /// The line of the recorded session up to which it was repeated; `None` means the end.
    #[serde(serialize_with = "shown::maybe_line")]
    pub at: Option<Line>,
    /// Number of lines of the recording that were followed.
    pub lines: u64,
    /// The line after which the rerun left the recording, with the reason.
    pub diverged: Option<Left>,
    /// Acts of people that were not repeated.
    pub not_repeated: Vec<String>,
    /// The tools of MCP servers that are others now than in the recording. The rerun has the recorded ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// Number of model calls, by the source of their answers.
    pub model_calls: Calls,
    /// The effect that a dry rerun could not simulate, if it ended at one.
    pub leaf: Option<String>,
    /// The status of the rerun.
    pub status: &'static str,
    /// Tokens of the calls for which a model was asked.
    pub tokens: u64,
    /// Money spent on these calls, in the currency of the prices.
    pub cost: f64,
    /// The result in one word.
    pub result: Verdict,
    /// The differences.
    #[serde(serialize_with = "diff")]
    pub diff: Diff,
}

/// The point at which a rerun left its recording.
#[derive(Clone, Debug, Serialize)]
pub struct Left {
    /// The line of the recorded session.
    #[serde(serialize_with = "shown::line")]
    pub line: Line,
    /// The difference that made the rerun leave the recording.
    pub why: String,
}

/// Model calls of a rerun.
#[derive(Copy, Clone, Debug, Serialize)]
pub struct Calls {
    /// Calls that the recording answered.
    pub recorded: u64,
    /// Calls for which a model was asked.
    pub live: u64,
}

/// The result of a rerun.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The rerun came to the same result.
    Same,
    /// It came to the same result, but some acts of people were not repeated.
    Partial,
    /// It came to another result.
    Differs,
    /// It ended at an effect that a dry rerun cannot simulate.
    Leaf,
    /// It failed or reached a limit, and the recorded session did not.
    Failed,
}

impl Verdict {
    /// Returns the result of a rerun.
    pub fn of(ran: &Rerunned, found: &Diff) -> Self {
        let word = ran.settled.word();
        if ran.leaf.is_some() && found.ended.a != "leaf" {
            Self::Leaf
        } else if (word == "failed" || word == "limit") && found.ended.a != word {
            Self::Failed
        } else if found.outcome_differs() {
            Self::Differs
        } else if !ran.not_repeated.is_empty() {
            Self::Partial
        } else {
            Self::Same
        }
    }

    /// Returns its word, as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Partial => "partial",
            Self::Differs => "differs",
            Self::Leaf => "leaf",
            Self::Failed => "failed",
        }
    }
}

impl Reran {
    /// Compares a rerun with its recording, of which it repeated the lines up to `at`.
    pub fn of(ran: &Rerunned, found: &Diff, of: &str, at: Option<Line>) -> Self {
        Self {
            session: ran.session.to_string(),
            of: of.to_owned(),
            at,
            lines: ran.lines,
            diverged: ran.diverged.as_ref().map(|left| Left {
                line: left.line,
                why: left.why.clone(),
            }),
            not_repeated: ran.not_repeated.clone(),
            servers: ran.servers.clone(),
            model_calls: Calls {
                recorded: ran.recorded_calls,
                live: ran.live_calls,
            },
            leaf: ran.leaf.clone(),
            status: ran.settled.word(),
            tokens: ran.tokens,
            cost: ran.micros as f64 / 1e6,
            result: Verdict::of(ran, found),
            diff: found.clone(),
        }
    }
}

/// Returns true if the result differs, or is not known because not everything was repeated.
pub fn differs(ran: &Rerunned, found: &Diff) -> bool {
    found.outcome_differs() || !ran.not_repeated.is_empty()
}

fn diff<S: Serializer>(diff: &Diff, to: S) -> Result<S::Ok, S::Error> {
    diff.to_json().serialize(to)
}

//! A row of a story.

use crate::shown;
use serde::{Deserialize, Serialize};
use steersman_machine::stored::ids::{Id, Line, Time};

/// One row of a story.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Row {
    /// The line of the log that the row is about.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub line: Line,
    /// The branch of that line.
    #[serde(serialize_with = "shown::text", deserialize_with = "shown::read::text")]
    pub branch: Id,
    /// The time of that line.
    #[serde(serialize_with = "shown::time", deserialize_with = "shown::read::time")]
    pub at: Time,
    /// The agent that the row belongs to.
    #[serde(
        serialize_with = "shown::optional_id",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "shown::read::optional_id",
        default
    )]
    pub agent: Option<Id>,
    /// The line of the call that the row is about, for rows about a result, an attempt or a question.
    #[serde(
        serialize_with = "shown::maybe_line",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "shown::read::maybe_line",
        default
    )]
    pub of: Option<Line>,
    /// The actor: an agent, `you`, a role; empty for the result of a call.
    pub who: String,
    /// The text of the row.
    pub text: String,
    /// A note next to the text: a class, a duration, an end.
    pub note: String,
    /// Milliseconds that the model worked on the answer with which the row begins, without its waits and failed attempts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub took: Option<u64>,
    /// The number of owners that took the session over, for a row about that: those of claims in a row are one row.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owners: Option<u32>,
    /// The kind of row.
    pub tone: Tone,
}

impl Row {
    /// Adds the next takeover to the row about the ones before it.
    pub(crate) fn goes_on(&mut self, next: Self) {
        let owners = self
            .owners
            .unwrap_or(1)
            .saturating_add(next.owners.unwrap_or(1));
        *self = Self {
            text: format!(
                "taken up {owners} times; the last lines begin at {}",
                next.line
            ),
            owners: Some(owners),
            ..next
        };
    }
}

/// The kind of a row. It carries no information that the text lacks.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// A message of a person or an agent.
    Said,
    /// A call of a tool or an agent.
    Called,
    /// A choice of a router, with its reason.
    Chose,
    /// A result of a call.
    Came,
    /// An error or a failure.
    Wrong,
    /// A question to a person.
    Asked,
    /// A person, a probe or a time-out ended a hold.
    Decided,
    /// An effect that may have happened.
    Doubt,
    /// An act of the engine.
    Engine,
    /// The result of a search; may take two rows.
    Found,
    /// The beginning of a branch.
    Begins,
}

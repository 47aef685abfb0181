//! Progress of tools that the engine runs for itself: they tell people that something waits for them, and probe whether an effect
//! happened.

use crate::stored::ids::{Body, Name, Time};
use serde::{Deserialize, Serialize};

/// Progress of telling a person that something waits for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reaching {
    /// An attempt may begin after this entry is stored.
    Started {
        /// Name of the tool.
        tool: Name,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// The tool told the person.
    Done,
    /// The person was not told, or the outcome is unknown, for this reason. It is not tried again.
    Failed(Body),
}

/// Progress of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Probing {
    /// An attempt may begin after this entry is stored.
    Started {
        /// Name of the tool.
        tool: Name,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// The probe answered and is over.
    Said {
        /// Number of the attempt.
        attempt: u32,
        /// True if the effect happened. `None` means that the declared `done` cannot be evaluated for this answer.
        happened: Option<bool>,
        /// The answer, cut to the length that people are shown.
        said: Body,
    },
    /// The attempt failed.
    Failed {
        /// Number of the attempt.
        attempt: u32,
        /// Code and message of the failure.
        why: Body,
        /// Time of the next attempt. `None` means that the probe is over and has decided nothing.
        again: Option<Time>,
    },
}

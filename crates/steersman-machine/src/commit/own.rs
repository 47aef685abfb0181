//! How far tools came that the engine runs for itself: they tell people that something waits, and look whether something
//! happened.

use crate::ids::{Body, Name, Time};
use serde::{Deserialize, Serialize};

/// How far a person was told that something waits for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reaching {
    /// An attempt may begin from here on.
    Started {
        /// The tool.
        tool: Name,
        /// From 1.
        attempt: u32,
    },
    /// They were told.
    Done,
    /// They were not, or nobody knows, for this reason; nothing tries again.
    Failed(Body),
}

/// How far a probe came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Probing {
    /// An attempt may begin from here on.
    Started {
        /// The tool.
        tool: Name,
        /// From 1.
        attempt: u32,
    },
    /// It answered, and is over.
    Said {
        /// The attempt.
        attempt: u32,
        /// Whether the effect happened; none: the declared `done` cannot be told from this answer.
        happened: Option<bool>,
        /// The answer, in so many characters as people are shown.
        said: Body,
    },
    /// The attempt failed.
    Failed {
        /// The attempt.
        attempt: u32,
        /// Code and message.
        why: Body,
        /// Another attempt follows then; none: it is over, and has decided nothing.
        again: Option<Time>,
    },
}

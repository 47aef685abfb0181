//! Progress of tools that the engine runs for itself: they notify people, or probe whether an effect happened. Also progress of
//! steps inside a tool, and changes by hooks.

use crate::stored::ids::{Body, Id, Name, Time};
use serde::{Deserialize, Serialize};

/// Progress of a notification: a tool tells a person that something waits for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reaching {
    /// An attempt may begin after this entry is stored.
    Started {
        /// Name of the tool.
        tool: Name,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// The tool notified the person.
    Done,
    /// The person was not notified, or that is unknown, for this reason. It is not tried again.
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
    /// The probe answered and ended.
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
        /// Time of the next attempt. `None` means that the probe ended without an answer.
        again: Option<Time>,
    },
}

/// Progress of a step inside a tool.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stepped {
    /// The step may begin after this entry is stored. Without a later entry its end is unknown.
    Began,
    /// The step ended. JSON of its result, which a later attempt gets in place of running the step again.
    Done(Body),
    /// The step failed. JSON of code and message, which a later attempt gets, too.
    Failed(Body),
}

/// A change that a hook around an agent's life made, or its failure. The line that holds it is stored before the request leaves, or before the
/// answer is used. A replay makes the same change without the hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooked {
    /// The agent whose request, answer or end was changed.
    pub agent: Id,
    /// The effect of the model call or call whose request or answer was changed. `None` for the answer that ends a turn or task.
    pub effect: Option<Id>,
    /// The moment at which the hook ran.
    pub at: Moment,
    /// Name of the hook.
    pub hook: Name,
    /// JSON of the change: `was`, and `is` or `failed`. For a request [`crate::network::hooks::Edits`].
    pub change: Body,
}

/// Moments of an agent's life at which a hook runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Moment {
    /// Before a model call: the request may be changed.
    BeforeModel,
    /// After a model call: the answer may be changed.
    AfterModel,
    /// Before a call of a tool or agent: its arguments may be changed.
    BeforeCall,
    /// After a call: its result may be changed.
    AfterCall,
    /// Before the agent ends its turn or task: its answer may be changed.
    Finish,
}

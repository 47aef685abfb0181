//! Questions to models: why a model is called, by which tools it may answer, and everything that the engine asks for itself.

pub(crate) mod ask;
pub(crate) mod extract;
pub mod judgement;
pub(crate) mod summary;
pub mod verdict;

use crate::snapshot::Counters;
use crate::stored::engine::COMPACT;
use serde::{Deserialize, Serialize};

/// The purpose of a model call.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// The model gives an agent's own answer.
    #[default]
    Answer,
    /// The model decides for a router.
    Decision,
    /// The model says what is left to be done, for a router. Not one of the router's decisions.
    Continue,
    /// The model extracts state entries from messages.
    Extract,
    /// The model summarizes messages, or results of a tool.
    Summary,
    /// The model summarizes older parts of an agent's own context.
    Compact,
}

impl Purpose {
    /// Returns the word that follows the agent's name in scripts (`desk#continue`); `None` for the agent's own answers.
    pub fn beside(self) -> Option<&'static str> {
        match self {
            Self::Answer | Self::Decision => None,
            Self::Continue => Some("continue"),
            Self::Extract => Some("extract"),
            Self::Summary => Some("summary"),
            Self::Compact => Some("compact"),
        }
    }

    /// All purposes other than agents' own answers and decisions.
    pub const BESIDE: &[Self] = &[Self::Continue, Self::Extract, Self::Summary, Self::Compact];

    /// Returns the purpose of the model call for a summary of this policy.
    pub fn of_summary(policy: &str) -> Self {
        if *policy == *COMPACT {
            Self::Compact
        } else {
            Self::Summary
        }
    }

    /// Returns the number of calls with this purpose that an agent has committed.
    pub fn calls(self, counters: &Counters) -> u32 {
        match self {
            Self::Answer | Self::Decision => counters.model_calls_all,
            Self::Continue => counters.restated,
            Self::Extract => counters.extracted,
            Self::Summary => counters.summed,
            Self::Compact => counters.compacted,
        }
    }
}

/// Description of a tool for a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name of the tool.
    pub name: String,
    /// Purpose of the tool in words.
    pub description: String,
    /// JSON Schema of the arguments, as canonical text.
    pub parameters: String,
}

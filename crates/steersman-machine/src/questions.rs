//! Questions to models: the purposes of model calls, the tools by which a model answers, and the questions that the engine asks
//! for itself.

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
    /// The model answers for a model-driven agent.
    #[default]
    Answer,
    /// The model decides for a router.
    Decision,
    /// The model says what is left of the user's request, for a router. It does not choose a member.
    Continue,
    /// The model extracts state entries from messages.
    Extract,
    /// The model summarizes messages, or results of a tool.
    Summary,
    /// The model summarizes older parts of an agent's own context.
    Compact,
}

impl Purpose {
    /// Returns the word that follows the agent's name in scripts (`desk#continue`). `None` for answers and decisions, which
    /// have the agent's name alone.
    pub fn beside(self) -> Option<&'static str> {
        match self {
            Self::Answer | Self::Decision => None,
            Self::Continue => Some("continue"),
            Self::Extract => Some("extract"),
            Self::Summary => Some("summary"),
            Self::Compact => Some("compact"),
        }
    }

    /// All purposes except answers and decisions.
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
    /// Description of the tool.
    pub description: String,
    /// JSON Schema of the arguments, as canonical text.
    pub parameters: String,
}

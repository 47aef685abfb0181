//! Results of an agent's calls in this tick. The end of a call stores its result here, and the agent's next move reads it.

use super::reflect::{JudgedResult, Reviewed};
use crate::stored::ids::{Body, Name};
use crate::tick::limits::Reached;

/// Results of the calls of one agent that ended in this tick.
#[derive(Default)]
pub(crate) struct Results {
    newest: Option<Newest>,
    /// The results of the exchange that closed last that are to be judged.
    to_judge: Vec<JudgedResult>,
    /// The judgements on the agent's calls.
    reviewed: Option<Reviewed>,
    /// True if a limit asked a person for more, and the person refused.
    declined: bool,
    /// The limit that demanded the answer that the agent gave in this tick.
    demanded: Option<Reached>,
}

/// The result that came last.
pub(super) struct Newest {
    /// Its whole text, even if the agent sees only the beginning.
    pub(super) body: Option<Body>,
    /// True if it is a failure for which the definition sets no reaction.
    failed: bool,
}

impl Results {
    /// Records a result, and the results that are to be judged if it closed the exchange.
    pub(super) fn came(&mut self, body: Option<Body>, failed: bool, to_judge: Vec<JudgedResult>) {
        self.newest = Some(Newest { body, failed });
        if !to_judge.is_empty() {
            self.to_judge = to_judge;
        }
    }

    /// Returns the newest result.
    pub(super) fn newest(&self) -> Option<&Newest> {
        self.newest.as_ref()
    }

    /// Forgets the newest result. Returns true if it is a failure for which the definition sets no reaction.
    pub(super) fn take_failure(&mut self) -> bool {
        self.newest.take().is_some_and(|newest| newest.failed)
    }

    /// Removes and returns the results that are to be judged.
    pub(super) fn take_to_judge(&mut self) -> Vec<JudgedResult> {
        std::mem::take(&mut self.to_judge)
    }

    /// Records the judgement on a call of this tool. One objection stays, whatever the other judgements say.
    pub(super) fn review(&mut self, tool: &Name, revise: bool) {
        if revise {
            self.reviewed = Some(Reviewed::Revise);
        } else if self.reviewed.is_none() {
            self.reviewed = Some(Reviewed::Stands(tool.clone()));
        }
    }

    /// Returns the judgements on the agent's calls.
    pub(super) fn reviewed(&self) -> Option<&Reviewed> {
        self.reviewed.as_ref()
    }

    /// Records that a person refused to allow more than a limit.
    pub(super) fn decline(&mut self) {
        self.declined = true;
    }

    /// Records the limit that demanded the agent's answer.
    pub(super) fn demand(&mut self, reached: Option<Reached>) {
        self.demanded = reached;
    }

    /// Returns the limit that demanded the agent's answer.
    pub(super) fn demanded(&self) -> Option<Reached> {
        self.demanded
    }

    /// Returns true if a person refused to allow more than a limit, and forgets the refusal.
    pub(super) fn take_declined(&mut self) -> bool {
        std::mem::take(&mut self.declined)
    }
}

//! Summaries of an agent's own context: their answers and failures.

use crate::context::policies::{self, BEFORE_SUMMARY};
use crate::questions::summary::text_of;
use crate::stored::codes::FailureCode;
use crate::stored::engine::COMPACT;
use crate::stored::ids::{Id, Name};
use crate::stored::interaction::{Covers, Interaction};
use crate::stored::outcome::{Answer, Failure};
use crate::tick::Tick;

impl Tick<'_> {
    /// Takes a model's answer as the summary of this policy.
    pub(crate) fn compacted(&mut self, agent: Id, effect: Id, policy: Name, answer: &Answer) {
        let Some(text) = text_of(answer) else {
            return self.not_compacted(agent, effect, policy, "The answer is empty.");
        };
        let state = self.agent(agent);
        let mark = policies::mark(&self.snapshot, agent, &policy);
        if *policy == *COMPACT {
            let shown = |text: &str| (BEFORE_SUMMARY.len() + text.len()) as u64;
            // The new summary also replaces the summary before it.
            let summed = policies::sum(state, COMPACT).body;
            let summed = summed.map_or(0, |body| shown(&self.text(body)));
            let before = state.context.weight.before(state.context.exchanges, mark) + summed;
            let after = shown(&text);
            if after >= before {
                let why = format!("It did not help: {before} bytes before, {after} after.");
                return self.not_compacted(agent, effect, policy, &why);
            }
        }
        self.push_summary(agent, effect, policy, Covers::Exchanges(0, mark), &text);
    }

    /// If the failed model call was for a summary of the agent's own context, records the failed summary and returns true. The
    /// agent itself then does not fail.
    pub(crate) fn fails_to_compact(&mut self, agent: Id, effect: Id, why: &str) -> bool {
        let policy = policies::summing(&self.snapshot, agent);
        if let Some(policy) = policy.clone() {
            self.not_compacted(agent, effect, policy, why);
        }
        policy.is_some()
    }

    /// Returns the message of a failed model call. If the request was too long, the message says what became of the compaction
    /// that should have kept it short.
    pub(crate) fn with_compaction(&self, agent: Id, failure: &Failure) -> String {
        let message = &failure.message;
        if failure.known() != Some(FailureCode::ContextOverflow) {
            return message.clone();
        }
        let why = match policies::sum(self.agent(agent), COMPACT) {
            sum if sum.failed.is_some() => "The last try to compact the context failed.",
            sum if sum.body.is_some() => "What is left after the last compaction is too long.",
            _ => {
                "The context was not compacted: `context.compact` or the model's `window` says when it is."
            }
        };
        format!("{message} {why}")
    }

    /// Records a failed summary, which covers nothing: the agent continues with its whole context.
    fn not_compacted(&mut self, agent: Id, effect: Id, policy: Name, why: &str) {
        let mark = policies::mark(&self.snapshot, agent, &policy);
        self.push_summary(agent, effect, policy, Covers::Exchanges(mark, mark), why);
    }

    /// Returns true if the context of a model-driven agent was summarized in this tick, or could not be. The agent owes the step
    /// that it owed before.
    pub(crate) fn was_summed(&self, agent: Id) -> bool {
        let mut pushes = self.commit.pushes.iter();
        pushes.any(|push| push.agent == agent && matches!(push.what, Interaction::Summary(_)))
    }
}

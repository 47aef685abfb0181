//! Summaries of an agent's own context: their answers and failures.

use crate::context::policies::{self, BEFORE_SUMMARY};
use crate::questions::summary::text_of;
use crate::stored::engine::COMPACT;
use crate::stored::ids::{Id, Name};
use crate::stored::interaction::Covers;
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
            // The new summary replaces the one before, too.
            let summed = policies::sum(state, COMPACT).body;
            let summed = summed.map_or(0, |body| shown(&self.text(body)));
            let before = state.weight.before(state.exchanges, mark) + summed;
            let after = shown(&text);
            if after >= before {
                let why = format!("It did not help: {before} bytes before, {after} after.");
                return self.not_compacted(agent, effect, policy, &why);
            }
        }
        self.push_sum(agent, effect, policy, Covers::Exchanges(0, mark), &text);
    }

    /// Records the failure of a summary of the agent's own context, if the failed model call was for one. Nothing else fails
    /// then. Returns true in this case.
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
        if failure.code != "context_overflow" {
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
        self.push_sum(agent, effect, policy, Covers::Exchanges(mark, mark), why);
    }

    fn push_sum(&mut self, agent: Id, effect: Id, policy: Name, covers: Covers, text: &str) {
        self.summed.insert(agent);
        self.push_summary(agent, effect, policy, covers, text);
    }
}

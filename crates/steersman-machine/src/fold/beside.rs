//! Model calls that the engine makes for itself: what they fill state from, and summaries.

use super::{MISFIT, routing};
use crate::commit::Kind;
use crate::extract;
use crate::ids::{Id, Time};
use crate::interaction::{CallResult, How, Summary};
use crate::snapshot::Snapshot;

impl Snapshot {
    /// State was filled from what was said, or that failed: it is not tried again.
    pub(super) fn extracted(&mut self, owner: Id, name: &str, result: &CallResult) {
        // Nobody was asked, or whoever was is not heard any more.
        if matches!(result.how, How::Cancelled | How::NotInThisBranch) {
            return;
        }
        let answered = result.how.is_ok() || result.code.as_deref() == Some(MISFIT);
        let agent = self.agent_mut(owner);
        agent.counters.extracted += 1;
        // Its own steps are those of an agent that a model drives: this is none.
        if answered && agent.kind == Kind::Routed {
            agent.counters.model_calls += 1;
        }
        if name == extract::TURN {
            routing(agent).unread = false;
        } else {
            agent.unread.clear();
        }
        if answered {
            self.count_model_call_above(owner);
        }
    }

    /// A summary was written; or nobody could write one, and it stands for nothing.
    pub(super) fn push_summary(&mut self, now: Time, id: Id, summary: &Summary) {
        if self.agent(id).owed == Some(summary.effect) {
            self.withdraw(now, id);
        }
        let agent = self.agent_mut(id);
        agent.counters.summed += 1;
        if agent.kind == Kind::Routed {
            let said = agent.routing.said;
            routing(agent).summed.insert(summary.policy.clone(), said);
            agent.counters.model_calls += 1;
        }
        self.count_model_call_above(id);
    }

    /// A member told its caller's network something, and keeps the floor.
    pub(super) fn said_in_turn(&mut self, id: Id) {
        let agent = self.agent(id);
        let Some(above) = agent.parent.filter(|_| agent.serving.is_some()) else {
            return;
        };
        let above = self.agent_mut(above);
        if above.kind == Kind::Routed {
            routing(above).said += 1;
        }
    }
}

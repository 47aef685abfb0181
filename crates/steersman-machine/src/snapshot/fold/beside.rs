//! Model calls that the engine makes for itself: extractions, summaries, judgements.

use super::{routing, weight};
use crate::snapshot::{Agent, Snapshot, Stands};
use crate::stored::codes::{MISFIT, REVISE, UNUSABLE};
use crate::stored::commit::Kind;
use crate::stored::engine::{Extracted, Judged};
use crate::stored::ids::{Body, Id, Name, Time};
use crate::stored::interaction::{Call, CallResult, How, Summary};

/// Counts one more call of a tool that was sent back, or one more result that is judged.
pub(super) fn sent_back(agent: &mut Agent, tool: &Name) {
    match agent.sent_back.iter_mut().find(|(name, _)| name == tool) {
        Some((_, times)) => *times += 1,
        None => agent.sent_back.push((tool.clone(), 1)),
    }
}

impl Snapshot {
    /// Records the end of an extraction, so that it is not tried again.
    pub(super) fn extracted(&mut self, owner: Id, of: Extracted, result: &CallResult) {
        // A cancelled extraction got no answer and may be tried again.
        if matches!(result.how, How::Cancelled | How::NotInThisBranch) {
            return;
        }
        let answered = result.how.is_ok() || result.code.as_deref() == Some(MISFIT);
        let agent = self.agent_mut(owner);
        agent.counters.extracted += 1;
        // For a model-driven agent `model_calls` counts its own steps, and an extraction is none.
        if answered && agent.kind == Kind::Routed {
            agent.counters.model_calls += 1;
        }
        match of {
            Extracted::Turn => routing(agent).unread = false,
            Extracted::Message => agent.unread.clear(),
        }
        if answered {
            self.count_model_call_above(owner);
        }
    }

    /// Records an answer of the agent's model. A draft that had to be revised is then criticised.
    pub(super) fn spoke(&mut self, id: Id, effect: Id, text: Option<Body>) {
        let agent = self.agent_mut(id);
        agent.said = text;
        agent.spoke = Some(effect);
        if let Some(draft) = &mut agent.draft
            && draft.stands == Stands::Revise
        {
            draft.stands = Stands::Criticised;
        }
    }

    /// Counts a round of reflection if the call asks a reviewer to judge a draft.
    pub(super) fn asks_to_judge(&mut self, owner: Id, call: &Call) {
        if let Some(Judged::Draft(_)) = call.judged() {
            self.agent_mut(owner).counters.rounds += 1;
        }
    }

    /// Records the result of a judgement.
    pub(super) fn judged(&mut self, owner: Id, call: &Call, result: &CallResult) {
        if call.asks_itself() {
            self.judged_itself(owner, result);
        }
        let revise = result.code.as_deref() == Some(REVISE);
        let agent = self.agent_mut(owner);
        match call.judged() {
            Some(Judged::Draft(_)) => {
                if let Some(draft) = &mut agent.draft {
                    draft.stands = if revise {
                        Stands::Revise
                    } else {
                        Stands::Accepted
                    };
                }
                // A revision may need calls, so the net's last call with tools off is taken back.
                if revise && !agent.counters.limited {
                    agent.counters.last_call = false;
                }
            }
            Some(Judged::Result(_, tool) | Judged::Args(_, tool)) if revise => {
                sent_back(agent, tool);
            }
            Some(Judged::Result(_, tool) | Judged::Args(_, tool)) => {
                agent.sent_back.retain(|(name, _)| name != tool);
            }
            None => {}
        }
    }

    /// Counts a judgement of arguments by the agent's own model as one of its model calls.
    fn judged_itself(&mut self, owner: Id, result: &CallResult) {
        if matches!(result.how, How::Cancelled | How::NotInThisBranch) {
            return;
        }
        let answered = result.how.is_ok() || result.code.as_deref() == Some(UNUSABLE);
        if answered {
            self.count_model_call(owner);
        } else {
            self.agent_mut(owner).counters.model_calls_all += 1;
        }
    }

    /// Records a summary, or a failed try, which covers nothing.
    pub(super) fn push_summary(&mut self, now: Time, id: Id, summary: &Summary) {
        if self.agent(id).owed == Some(summary.effect) {
            self.withdraw(now, id);
        }
        let mark = self.watermarks.get(&(id, summary.policy.clone())).copied();
        let agent = self.agent_mut(id);
        if *summary.policy == *crate::stored::engine::COMPACT {
            agent.counters.compacted += 1;
        } else {
            agent.counters.summed += 1;
        }
        if agent.kind == Kind::Model {
            weight::summed(agent, mark.unwrap_or_default(), summary);
        }
        if agent.kind == Kind::Routed {
            let said = agent.routing.said;
            routing(agent).summed.insert(summary.policy.clone(), said);
            agent.counters.model_calls += 1;
        }
        self.count_model_call_above(id);
    }

    /// Counts a message of a member that ends a turn and keeps the floor.
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

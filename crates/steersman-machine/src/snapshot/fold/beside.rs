//! Model calls that the engine makes for itself: extractions, summaries, judgements.

use super::counts::Counted;
use super::routing;
use crate::snapshot::{Snapshot, Stands};
use crate::stored::codes::{Code, REVISE};
use crate::stored::commit::Kind;
use crate::stored::engine::{Extracted, Judged};
use crate::stored::ids::{Id, Time};
use crate::stored::interaction::{Call, CallResult, How, Summary};

impl Snapshot {
    /// Records the end of an extraction, so that it is not tried again.
    pub(super) fn extracted(&mut self, owner: Id, of: Extracted, result: &CallResult) {
        // A cancelled extraction got no answer and may be tried again.
        if matches!(result.how, How::Cancelled | How::NotInThisBranch) {
            return;
        }
        let answered = result.how.is_ok() || result.code.as_deref() == Some(Code::Misfit.text());
        let agent = self.agent_mut(owner);
        agent.counters.extracted += 1;
        match of {
            Extracted::Turn => routing(agent).unread = false,
            Extracted::Message => agent.input.unread.clear(),
        }
        if answered {
            self.count_call(owner, Counted::Beside);
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
                if let Some(draft) = &mut agent.turn.draft {
                    draft.stands = if revise {
                        Stands::Revise
                    } else {
                        Stands::Accepted
                    };
                }
                // A revision may need tools, so they are allowed again after the net's last call turned them off.
                if revise && !agent.counters.limited {
                    agent.counters.last_call = false;
                }
            }
            Some(Judged::Result(_, tool) | Judged::Args(_, tool)) if revise => {
                agent.turn.send_back(tool);
            }
            Some(Judged::Result(_, tool) | Judged::Args(_, tool)) => {
                agent.turn.accept(tool);
            }
            None => {}
        }
    }

    /// Counts a judgement of arguments by the agent's own model as one of its model calls.
    fn judged_itself(&mut self, owner: Id, result: &CallResult) {
        if matches!(result.how, How::Cancelled | How::NotInThisBranch) {
            return;
        }
        let answered = result.how.is_ok() || result.code.as_deref() == Some(Code::Unusable.text());
        if answered {
            self.count_answer(owner);
        } else {
            self.agent_mut(owner).counters.model_calls_all += 1;
        }
    }

    /// Records a summary. A failed one covers nothing.
    pub(super) fn push_summary(&mut self, now: Time, id: Id, summary: &Summary) {
        if self.agent(id).stack.owed == Some(summary.effect) {
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
            agent.context.summed(mark.unwrap_or_default(), summary);
        }
        if agent.kind == Kind::Routed {
            let said = agent.routing.said;
            routing(agent).summed.insert(summary.policy.clone(), said);
        }
        self.count_call(id, Counted::Beside);
    }

    /// Counts a message with which a member ended its turn and kept the floor.
    pub(super) fn said_in_turn(&mut self, id: Id) {
        let Some((above, _)) = self.agent(id).caller() else {
            return;
        };
        let above = self.agent_mut(above);
        if above.kind == Kind::Routed {
            routing(above).said += 1;
        }
    }
}

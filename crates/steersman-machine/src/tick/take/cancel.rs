//! Cancels, children first. A cancel begins nothing.

use crate::network::texts;
use crate::snapshot::{OpenCall, Phase};
use crate::stored::by::By;
use crate::stored::codes::Code;
use crate::stored::commit::{Admission, Admitted};
use crate::stored::ids::Id;
use crate::stored::interaction::{Cause, How, Target};
use crate::stored::outcome::{Mapped, Outcome};
use crate::tick::Tick;
use crate::tick::effect::{Cancelled, Fact, Known, Until};
use crate::tick::finish::Finish;
use crate::tick::table::{self, Event, Rule};
use crate::tick::take::Taken;
use std::sync::Arc;

/// Data about effects that are cut off.
#[derive(Default)]
pub(crate) struct Cut<'k> {
    /// Facts of the ledger about outstanding effects.
    pub(crate) known: &'k [(Id, Fact)],
    /// Texts of outstanding model calls, as far as they were shown.
    pub(crate) shown: &'k [(Id, Arc<str>)],
}

impl Tick<'_> {
    pub(crate) fn take_cancel(
        &mut self,
        what: &Cancelled,
        by: &By,
        known: &Known,
        shown: &[(Id, Arc<str>)],
    ) -> Taken {
        let cut = Cut { known, shown };
        match what {
            Cancelled::Call(owner, call) => {
                let open = self.snapshot.call(*owner, *call).cloned();
                let open = open.filter(|c| c.closed.is_none() && self.snapshot.in_scope(*owner));
                let Some(open) = open else {
                    return Err(Until::refused("there is no such open call"));
                };
                self.admit_cancel(Some(*call), by);
                self.while_cancelling(|tick| {
                    if open.call.is_extraction() || open.call.asks_itself() {
                        // `Refused` and not `Cancelled`, so that it is not asked again.
                        let code = Some(Code::Cancelled.text());
                        let refused = Mapped::plain(How::Refused, code, "cancelled");
                        tick.close_call(*owner, *call, refused);
                    } else {
                        tick.cut_call(&open, &cut);
                    }
                });
                self.unjudged(&open);
            }
            Cancelled::Agent(agent) => {
                if !self.snapshot.agents.contains_key(agent) || !self.snapshot.in_scope(*agent) {
                    return Err(Until::refused("there is no such agent on this branch"));
                }
                match table::rule(self.agent(*agent).phase, Event::Cancel) {
                    Rule::Take => {}
                    Rule::Nothing => return Err(Until::refused("nothing of it is open")),
                    Rule::TakeUnlessEnded
                    | Rule::TakeIfNothingWished
                    | Rule::TakeIfAddressed
                    | Rule::Queue
                    | Rule::Leave
                    | Rule::Stale => return Err(Until::Stale),
                }
                self.admit_cancel(Some(*agent), by);
                self.cut(*agent, &cut);
            }
            Cancelled::All => {
                let Some(top) = self.snapshot.top() else {
                    return Err(Until::refused("the session has not begun"));
                };
                let busy = |t: &Self, id: Id| {
                    t.agent(id).phase != Phase::Resting && t.snapshot.in_scope(id)
                };
                let ids: Vec<Id> = self.snapshot.agents.keys().copied().collect();
                if !ids.iter().any(|id| busy(self, *id)) {
                    return Err(Until::refused("nothing is open"));
                }
                self.admit_cancel(None, by);
                for id in std::iter::once(top).chain(ids) {
                    if busy(self, id) {
                        self.cut(id, &cut);
                    }
                }
            }
        }
        Ok(())
    }

    fn admit_cancel(&mut self, id: Option<Id>, by: &By) {
        self.admit(Admission {
            kind: Admitted::Cancel,
            id,
            message: None,
            by: Some(by.clone()),
            body: None,
        });
    }

    /// Cuts an agent off: its calls, its model call, then the agent itself.
    pub(crate) fn cut(&mut self, agent: Id, cut: &Cut<'_>) {
        self.cut_calls(agent, cut);
        self.cut_thought(agent, cut);
        self.finish(agent, Finish::task(Cause::Cancelled, None, None));
    }

    /// Closes all open calls of an agent, children first.
    pub(crate) fn cut_calls(&mut self, agent: Id, cut: &Cut<'_>) {
        if self.agent(agent).phase != Phase::Calling {
            return;
        }
        let open: Vec<_> = self
            .snapshot
            .exchange(agent)
            .filter(|c| c.closed.is_none())
            .cloned()
            .collect();
        self.while_cancelling(|tick| {
            for open in open {
                tick.cut_call(&open, cut);
            }
        });
    }

    /// Stops an agent's step. The shown text of a model call stays as a partial message.
    pub(crate) fn cut_thought(&mut self, agent: Id, cut: &Cut<'_>) {
        let Some(effect) = self.agent(agent).stack.owed else {
            return;
        };
        self.stop(effect);
        // The text of a summary is not part of the conversation.
        if crate::context::summing(&self.snapshot, agent).is_some() {
            return;
        }
        let shown = cut.shown.iter().find(|(id, _)| *id == effect);
        if let Some((_, text)) = shown.filter(|(_, text)| !text.is_empty()) {
            self.partial(agent, effect, text);
        }
    }

    fn cut_call(&mut self, open: &OpenCall, cut: &Cut<'_>) {
        let (owner, call) = (open.owner, open.call.id);
        if let Target::Agent(child) = open.call.target
            && self.agent(child).input.serving == Some(call)
        {
            // The end of the child gives this call its result.
            self.cut(child, cut);
        } else if let Some(chooser) = open
            .chooser
            .filter(|c| self.agent(*c).input.serving == Some(call))
        {
            self.cut(chooser, cut);
        }
        let fact = open
            .effect
            .and_then(|e| cut.known.iter().find(|(id, _)| *id == e));
        let mapped = match fact.map(|(_, fact)| fact) {
            Some(Fact::Done(outcome)) => match &**outcome {
                Outcome::Mapped(mapped) => Mapped {
                    then: None,
                    ..mapped.clone()
                },
                Outcome::Answer(_) | Outcome::Failed(_) | Outcome::Leaf(_) | Outcome::Came(_) => {
                    cancelled()
                }
            },
            Some(Fact::Unknown) if !crate::tick::call::class(&open.call.target).is_free() => {
                let text = self.says(owner, texts::MAY_HAVE_HAPPENED, &[]);
                Mapped::plain(How::Unknown, Some(Code::InDoubt.text()), text)
            }
            Some(Fact::Unknown | Fact::NeverStarted) | None => cancelled(),
        };
        self.close_call(owner, call, mapped);
    }
}

fn cancelled() -> Mapped {
    Mapped::plain(How::Cancelled, Some(Code::Cancelled.text()), "cancelled")
}

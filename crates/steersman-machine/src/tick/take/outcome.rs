//! Outcomes of effects.

use crate::routers::floor;
use crate::snapshot::Effect;
use crate::stored::bounds;
use crate::stored::codes::Code;
use crate::stored::commit::{Admitted, Kind, Want};
use crate::stored::ids::Id;
use crate::stored::interaction::{How, Interaction, Target};
use crate::stored::outcome::{Answer, Came, Mapped, Outcome};
use crate::tick::Tick;
use crate::tick::branch::standing;
use crate::tick::effect::Until;
use crate::tick::table::{self, Rule};
use crate::tick::take::Taken;

impl Tick<'_> {
    pub(crate) fn take_outcome(&mut self, effect: Id, outcome: &Outcome) -> Taken {
        let Some(out) = self.snapshot.effects.get(&effect).cloned() else {
            return Err(Until::Stale);
        };
        let event = match out.what {
            Want::Call(_) => table::Event::CallOutcome,
            Want::Step => table::Event::Decision,
        };
        let rule = table::rule(self.agent(out.agent).phase, event);
        if rule != Rule::Take || !self.snapshot.in_scope(out.agent) {
            return Err(Until::Stale);
        }
        // An agent below an open fork waits with it, even if it works on a message of its own. The answer of a chooser that is
        // not an agent belongs to the fork itself.
        if let Some(forked) = standing(&self.snapshot, out.agent)
            && forked != out.agent
        {
            return Err(Until::Exchange(forked));
        }
        if let Outcome::Came(came) = outcome {
            return self.came(effect, &out, came);
        }
        self.admit_as(Admitted::Outcome, Some(effect));
        match out.what {
            Want::Call(call) => self.call_ended(&out, call, effect, outcome),
            Want::Step => self.decided(&out, effect, outcome),
        }
        Ok(())
    }

    /// Takes an event or a time for a wait of several parts.
    fn came(&mut self, effect: Id, out: &Effect, came: &Came) -> Taken {
        let open = out
            .what
            .call()
            .and_then(|c| self.snapshot.call(out.agent, c))
            .cloned();
        let open = open.ok_or(Until::Stale)?;
        if open.call.target != Target::Wait {
            return Err(Until::Stale);
        }
        let (part, gave) = match came {
            Came::Time => (None, None),
            Came::Event { event, fields, .. } => {
                let part = self.part_of(&open, event, fields).ok_or(Until::Stale)?;
                (Some(part), Some(fields))
            }
        };
        self.admit_as(Admitted::Outcome, Some(effect));
        if let Came::Event { fields, came, .. } = came
            && !came.is_empty()
        {
            let with = self.body(fields.to_string());
            self.keep_came(out.agent, with, came);
        }
        self.part_met(&open, part, gave);
        Ok(())
    }

    /// Takes the answer of an agent's model or router.
    fn decided(&mut self, out: &Effect, effect: Id, outcome: &Outcome) {
        match outcome {
            Outcome::Answer(answer) => {
                if crate::context::summing(&self.snapshot, out.agent).is_none() {
                    self.note_demand(out.agent);
                }
                self.spend(effect, answer);
                if let Some(policy) = crate::context::summing(&self.snapshot, out.agent) {
                    return self.compacted(out.agent, effect, policy, answer);
                }
                match self.agent(out.agent).kind {
                    Kind::Model => self.answered(out.agent, effect, answer),
                    Kind::Routed => self.routed(out.agent, effect, answer),
                }
            }
            Outcome::Failed(failure) => {
                let why = format!("{}: {}", failure.code, failure.message);
                if !self.not_summed(out.agent, effect, &why)
                    && !self.fails_to_compact(out.agent, effect, &why)
                {
                    let message = self.with_compaction(out.agent, failure);
                    self.fail(out.agent, &failure.code, &message);
                }
            }
            Outcome::Leaf(text) => self.leaf(out.agent, text),
            Outcome::Mapped(_) | Outcome::Came(_) => {
                unreachable!("a step is a model call; only calls have results and wait")
            }
        }
    }

    fn spend(&mut self, effect: Id, answer: &Answer) {
        let mut usage = answer.usage.clone();
        for said in [&mut usage.served, &mut usage.finish] {
            *said = said.take().map(|said| bounds::name(&said));
        }
        usage.effect = Some(effect);
        self.snapshot.spend(&usage);
        self.commit.usage.push(usage);
    }

    fn call_ended(&mut self, out: &Effect, call: Id, effect: Id, outcome: &Outcome) {
        let (owner, open) = (out.agent, self.snapshot.call(out.agent, call).cloned());
        let Some(open) = open else { return };
        match outcome {
            Outcome::Mapped(mapped) => {
                if let Target::Branches(_) = open.call.target {
                    let text = mapped.shown.as_deref().unwrap_or_default();
                    return self.chosen(owner, call, text);
                }
                if mapped.how.is_ok() && floor::asks_to_leave(self.network, &open) {
                    let text = mapped.shown.as_deref().unwrap_or_default();
                    return self.may_leave(owner, &open, text);
                }
                let declined = open.call.is_for_more()
                    && mapped
                        .shown
                        .as_deref()
                        .is_none_or(crate::tick::limits::declines);
                if declined {
                    let mut mapped = mapped.clone();
                    (mapped.how, mapped.code) =
                        (How::Refused, Some(Code::Rejected.text().to_owned()));
                    return self.decline(owner, call, mapped);
                }
                self.close_call(owner, call, mapped.clone());
            }
            Outcome::Failed(failure) => {
                let text = format!("{}: {}", failure.code, failure.message);
                self.close_call(
                    owner,
                    call,
                    Mapped::plain(How::Failed, Some(&failure.code), text),
                );
            }
            Outcome::Answer(answer) if open.call.is_extraction() => {
                self.spend(effect, answer);
                self.extracted(owner, &open.call, answer);
            }
            Outcome::Answer(answer) => {
                if open.call.asks_itself() {
                    self.spend(effect, answer);
                }
                let text = answer.text.clone().unwrap_or_default();
                self.close_call(owner, call, Mapped::plain(How::Done, None, text));
            }
            Outcome::Leaf(text) => self.leaf(owner, text),
            Outcome::Came(_) => unreachable!("what comes for a wait was taken before"),
        }
    }

    /// Ends the agent's work in a leaf, because dry mode can go no further. Everything open ends, up to the agent that serves no
    /// open call on this branch: the top of the scope, or an agent that works on a message of its own.
    fn leaf(&mut self, agent: Id, text: &str) {
        let mut at = agent;
        while let Some((parent, call)) = self.agent(at).caller()
            && self.snapshot.in_scope(parent)
            && self
                .snapshot
                .call(parent, call)
                .is_some_and(|c| c.closed.is_none())
        {
            at = parent;
        }
        self.end_with(at, crate::stored::interaction::Cause::Leaf, "leaf", text);
    }

    /// Pushes a partial message: the shown text of a model call that is cut off.
    pub(super) fn partial(&mut self, agent: Id, effect: Id, text: &str) {
        let text = self.body(text);
        self.push(
            agent,
            Interaction::AssistantMessage {
                effect,
                text: Some(text),
                opaque: None,
                partial: true,
            },
        );
    }
}

//! Counts for limits: the counts of an agent with all its descendants, and the time during which it works.

use crate::snapshot::{Counters, Effect, Snapshot, Span};
use crate::stored::built_in::BuiltIn;
use crate::stored::commit::{Kind, Period, Usage, Want};
use crate::stored::engine::Asked;
use crate::stored::ids::{Digest, Id, Line, Time};
use crate::stored::interaction::{Call, Choice, How, Target};
use imbl::OrdMap;
use std::sync::Arc;

/// Returns true if a call does work: it calls a tool or an agent, the engine did not make it for itself, it does not change the
/// to-do list, and it neither ends a task nor passes the floor.
pub(super) fn acts(call: &Call) -> bool {
    let works = match call.target {
        Target::Tool(_) | Target::Agent(_) | Target::Unknown => true,
        Target::Person(_) | Target::Wait | Target::Branches(_) => false,
    };
    let notes_or_ends = |tool: BuiltIn| tool.takes_notes() || tool.ends();
    let is_internal = call.is_ahead() || call.is_extraction() || call.judged().is_some();
    works && !is_internal && !BuiltIn::named(&call.name).is_some_and(notes_or_ends)
}

/// Returns true if a result of this call is progress for the routers above: a tool did something, a person answered, or what was
/// waited for came. The answer of an agent is no progress by itself, because an agent that is stuck answers, too.
pub(super) fn progresses(call: &Call) -> bool {
    match call.target {
        Target::Tool(_) => acts(call),
        Target::Person(_) => !call.is_for_more(),
        Target::Wait | Target::Branches(_) => true,
        Target::Agent(_) | Target::Unknown => false,
    }
}

/// Returns true if a call with this end gave the result that it was made for.
pub(super) fn gives(how: How) -> bool {
    how.is_ok() || how == How::DoneBefore
}

/// Work that counts against the limits of model calls (`limits.model_calls`). Only this type says what counts, and for whom. A limit
/// in the definition counts all of it, for an agent and everything it started; a default limit only what is an agent's own.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// A step: an answer of an agent's model, a decision of a router's model, a judgement of a call by the agent's own model, or a
    /// call of a state. A reviewer or a judge is an agent, and its answers are its steps.
    Step,
    /// A model call that is no step: an extraction or a summary.
    Beside,
}

impl Counted {
    /// Returns the work that an open call is. `None` if it is another call: of a tool, of an agent, of a person.
    pub(crate) fn of(call: &Call) -> Option<Self> {
        if call.is_extraction() {
            Some(Self::Beside)
        } else {
            (call.asks_itself() || call.state().is_some()).then_some(Self::Step)
        }
    }

    /// Returns true if the work counts as the agent's own for a default limit. All model calls of a router do.
    fn is_own(self, kind: Kind) -> bool {
        self == Self::Step || kind == Kind::Routed
    }
}

impl Snapshot {
    /// Removes an outstanding effect. Its call must still be stored, with the target that it had when the effect was wished.
    pub(super) fn drop_effect(&mut self, now: Time, id: Id) {
        if let Some(effect) = self.effects.remove(&id) {
            self.works(now, &effect, false);
        }
    }

    /// Records that the work of an effect begins or ends, for its agent and all agents above. Questions to people and waits are
    /// not work.
    pub(super) fn works(&mut self, now: Time, effect: &Effect, begins: bool) {
        if !self.is_work(effect) {
            return;
        }
        let mut at = Some(effect.agent);
        while let Some(id) = at {
            let agent = self.agent_mut(id);
            let counters = &mut agent.counters;
            let before = counters.working;
            counters.working = if begins { before + 1 } else { before - 1 };
            if before == 0 || counters.working == 0 {
                counters.stood = now.0.saturating_sub(counters.stood);
            }
            at = agent.family.parent;
        }
    }

    /// Returns true if an effect is work. Questions to people, waits and choices among branches are not work.
    pub fn is_work(&self, effect: &Effect) -> bool {
        let call = effect.what.call();
        let open = call.and_then(|c| self.call(effect.agent, c));
        open.is_none_or(|open| match open.call.target {
            Target::Person(_) | Target::Wait | Target::Branches(_) => false,
            Target::Tool(_) | Target::Agent(_) | Target::Unknown => true,
        })
    }

    /// Records progress of an agent: for the routers above it, the next choice is not the same one again.
    pub(super) fn progressed(&mut self, id: Id) {
        let mut at = Some(id);
        while let Some(id) = at {
            let agent = self.agent_mut(id);
            if agent.kind == Kind::Routed {
                agent.counters.same = None;
            }
            at = agent.family.parent;
        }
    }

    /// Counts the commit of a line for an agent that it moves and for all agents above, once for each agent. The walk ends at
    /// an agent for which the commit was counted already, because it was counted for the agents above, too.
    pub(super) fn moves(&mut self, line: Line, id: Id) {
        let mut at = Some(id);
        while let Some(id) = at.filter(|id| self.agent(*id).counters.moved != line) {
            let agent = self.agent_mut(id);
            agent.counters.moved = line;
            for span in agent.counters.spans() {
                span.ticks = span.ticks.saturating_add(1);
            }
            at = agent.family.parent;
        }
    }

    /// Applies `count` to each span of an agent and of all agents above.
    pub(super) fn count_above(&mut self, from: Option<Id>, mut count: impl FnMut(&mut Span)) {
        let mut at = from;
        while let Some(id) = at {
            let agent = self.agent_mut(id);
            agent.counters.spans().into_iter().for_each(&mut count);
            at = agent.family.parent;
        }
    }

    /// Counts an answer of an agent's model.
    pub(super) fn count_answer(&mut self, id: Id) {
        let counters = &mut self.agent_mut(id).counters;
        counters.model_calls_all += 1;
        counters.mode_calls += 1;
        self.count_call(id, Counted::Step);
    }

    /// Counts a model call for a decision. A call that restates the request has its own counter, because scripts number these
    /// calls separately.
    pub(super) fn count_decision(&mut self, id: Id, chosen: &Choice) {
        let counters = &mut self.agent_mut(id).counters;
        match chosen {
            Choice::Restate(_) => counters.restated += 1,
            _ => counters.model_calls_all += 1,
        }
        self.count_call(id, Counted::Step);
    }

    /// Counts a call against the limits of model calls: those of its agent, and those of all agents above.
    pub(super) fn count_call(&mut self, id: Id, what: Counted) {
        let agent = self.agent_mut(id);
        if what.is_own(agent.kind) {
            agent.counters.model_calls += 1;
        }
        self.count_above(Some(id), |span| {
            span.model_calls = span.model_calls.saturating_add(1);
        });
    }

    /// Returns the number of calls of an agent and everything it started that have begun and are not counted yet. They count when
    /// they end. Effects and open calls are in the snapshot, so a call that a new owner makes again is one call.
    pub(crate) fn begun_calls(&self, top: Id) -> u64 {
        let steps = self.effects.values().filter(|e| e.what == Want::Step);
        let calls = self.calls.values().filter(|open| open.closed.is_none());
        let calls = calls.filter(|open| Counted::of(&open.call).is_some());
        let agents = steps
            .map(|effect| effect.agent)
            .chain(calls.map(|open| open.owner));
        agents.filter(|agent| self.is_under(*agent, top)).count() as u64
    }

    pub(super) fn count_agent_call(&mut self, id: Id) {
        self.agent_mut(id).counters.agent_calls += 1;
        self.count_above(Some(id), |span| {
            span.agent_calls = span.agent_calls.saturating_add(1);
        });
    }

    /// Counts the tokens and the cost of a model call whose effect is still outstanding, for its agent and all agents above.
    pub(crate) fn spend(&mut self, usage: &Usage) {
        let (tokens, micros) = (usage.tokens(), usage.micros.unwrap_or_default());
        let effect = usage.effect.and_then(|e| self.effects.get(&e));
        let agent = effect.map(|e| e.agent);
        if let Some(Effect {
            agent,
            what: Want::Step,
            ..
        }) = effect.cloned()
        {
            let agent = self.agent_mut(agent);
            if agent.kind == Kind::Model && usage.input > 0 {
                Arc::make_mut(&mut agent.context.weight).asked = usage.input;
            }
        }
        self.count_above(agent, |span| {
            span.tokens = span.tokens.saturating_add(tokens);
            span.micros = span.micros.saturating_add(micros);
        });
    }
}

impl Counters {
    /// Begins the counts of a new answer. They include the commit of the message, because it moves the agent.
    pub(super) fn begin_answer(&mut self, now: Time) {
        let before = std::mem::take(self);
        *self = Self {
            model_calls_all: before.model_calls_all,
            restated: before.restated,
            extracted: before.extracted,
            summed: before.summed,
            compacted: before.compacted,
            mode_calls: before.mode_calls,
            ticks: 1,
            answer: Span {
                ticks: 1,
                ..Span::since(now)
            },
            task: before.task,
            session: before.session,
            calls: before.calls,
            moved: before.moved,
            working: before.working,
            stood: if before.working == 0 { now.0 } else { 0 },
            ..Self::default()
        };
    }

    /// Begins the counts of a new task.
    pub(super) fn begin_task(&mut self, now: Time) {
        self.task = Span {
            ticks: 1,
            ..Span::since(now)
        };
        self.calls = OrdMap::new();
    }

    /// Applies a person's consent to more: it grants the amount used so far in addition to the limit, so the full limit is
    /// available again. Adding the limit once would be too little if one step used several times the limit. A limit may be reached
    /// by calls that have only begun, so at least one is granted.
    pub(super) fn allow(&mut self, asked: &Asked, now: Time) {
        let used = self.used(&asked.limit, asked.per, now).max(1);
        let span = match asked.per {
            Period::Session => &mut self.session,
            Period::Task => &mut self.task,
            Period::Answer => &mut self.answer,
        };
        let (more, question) = (span.allowed(), asked.to_string());
        match more.iter_mut().find(|(name, _)| **name == *question) {
            Some((_, granted)) => *granted = used,
            None => more.push((question.into(), used)),
        }
    }

    /// Returns the amount that counts against the limit of this key, in the unit of the limit.
    pub(crate) fn used(&self, key: &str, per: Period, now: Time) -> u64 {
        let span = match per {
            Period::Session => &self.session,
            Period::Task => &self.task,
            Period::Answer => &self.answer,
        };
        match key {
            "model_calls" => span.model_calls.into(),
            "agent_calls" => span.agent_calls.into(),
            "ticks" => span.ticks.into(),
            "tokens" => span.tokens,
            "cost" => span.micros,
            "same_call" => self.same.map_or(0, |(_, times)| times.into()),
            // The newest correction asks for an answer that has not been given yet.
            "corrections" => self.corrections.saturating_sub(1).into(),
            "wall_time" => {
                let past = now.0.saturating_sub(span.began.0);
                let stood = match per {
                    Period::Answer => self.stood(now),
                    Period::Task | Period::Session => 0,
                };
                u64::try_from(past.saturating_sub(stood)).unwrap_or(0)
            }
            // Other keys are bounds; no person is asked for more of them.
            _ => 0,
        }
    }

    /// Counts how many times in a row the same exchange or choice came.
    pub(super) fn again(&mut self, digest: Digest) {
        let times = match self.same {
            Some((before, times)) if before == digest => times + 1,
            _ => 1,
        };
        self.same = Some((digest, times));
    }
}

//! Everything that waits for a time: this file alone decides what is due, when, and what is done then.

use super::draft::Offer;
use super::{Heard, Job, OutState, Stop, What};
use steersman_machine::network::OnTimeout;
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::commit::{Release, Why};
use steersman_machine::stored::ids::{Id, Time};
use steersman_machine::stored::outcome::Came;
use steersman_machine::tick::effect::{Offered, Work};
use steersman_machine::tick::wait;
use steersman_machine::tick::wait::Meets;
use steersman_machine::view::mapping::{Fault, Raw};

/// Something that waits for a time.
#[derive(Copy, Clone)]
pub(crate) enum Due {
    /// An effect that is tried again, or that waits for the outside.
    Effect(Id),
    /// A hold of an effect.
    Hold(Id, Why),
    /// A deadline of the machine on a branch: the branch is offered the clock.
    Branch(Id),
    /// A probe of an effect in doubt is asked again.
    Probe(Id),
    /// The notification of a person is tried again; its effect.
    Reach(Id),
}

impl Job<'_, '_> {
    /// Returns everything that waits for a time. [`Job::came_due`] handles an entry, which removes it from this list, so
    /// a loop over due entries ends.
    pub(super) fn dues(&self) -> impl Iterator<Item = (Time, Due)> {
        let outs = self
            .d
            .effects
            .outs()
            .iter()
            .filter_map(|(id, out)| match out.state {
                OutState::Later(at) => Some((at, Due::Effect(*id))),
                OutState::Waits => Some((out.wish.due?, Due::Effect(*id))),
                _ => None,
            });
        let held = self.d.effects.outs().iter();
        let held = held.filter(|(_, out)| matches!(out.state, OutState::Held));
        let holds = held.filter_map(|(id, _)| self.d.ledger.effect(*id));
        let holds = holds.flat_map(|record| record.holds.values());
        let holds = holds.filter_map(|hold| Some((hold.due?, Due::Hold(hold.effect, hold.why))));
        let branches = self.d.branches.live().iter();
        let branches = branches.filter_map(|(id, b)| Some((b.deadline?, Due::Branch(*id))));
        let probes = self.probes_again();
        let probes = probes.map(|(at, of)| (at, Due::Probe(of)));
        let reaches = self.reaches_again();
        let reaches = reaches.map(|(at, effect)| (at, Due::Reach(effect)));
        // No probe is run and nobody is notified while nothing may begin.
        let asks = probes.chain(reaches).filter(|_| !self.is_halted());
        outs.chain(holds).chain(branches).chain(asks)
    }

    /// Returns the next time at which something of this session is due.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.dues().map(|(at, _)| at).min()
    }

    /// Everything that was due by a time is handled next: it ends, is tried again, or is offered the clock.
    pub(super) fn time_passed(&mut self, by_then: Time) {
        let due = self.dues().filter(|(at, _)| *at <= by_then);
        let due: Vec<Due> = due.map(|(_, due)| due).collect();
        for due in due.into_iter().rev() {
            self.d.course.hears_first(Heard::Due(due));
        }
    }

    pub(super) fn came_due(&mut self, due: Due) -> Result<(), Stop> {
        match due {
            Due::Effect(id) => self.effect_is_due(id),
            Due::Hold(id, why) => self.hold_is_due(id, why),
            Due::Probe(of) => self.probe(of),
            Due::Reach(effect) => self.reach_again(effect),
            Due::Branch(id) => {
                // Asked for once; the resulting line sets the next deadline.
                self.d.branches.waits_until(id, None);
                self.offer(id, Offer::new(What::Offer(Box::new(Offered::Clock))));
                Ok(())
            }
        }
    }

    fn effect_is_due(&mut self, effect: Id) -> Result<(), Stop> {
        if !self.d.effects.outs().contains_key(&effect) {
            return Ok(());
        }
        self.busy();
        let out = &self.d.effects.outs()[&effect];
        if matches!(out.state, OutState::Later(_)) {
            self.d.effects.tries_now(effect, self.seen.now);
            return Ok(());
        }
        match &out.wish.work {
            Work::Timer | Work::Event { .. } => self.wait_is_due(effect)?,
            // The definition may name a text that replaces this fault (`on_timeout`).
            Work::Ask { .. } => self.answer_fault(effect, Code::Timeout, "no answer came in time"),
            Work::Model | Work::Tool(_) | Work::Simulate(_) | Work::Send { .. } => {}
        }
        Ok(())
    }

    /// Handles a wait whose time has come: it is over, or continues with its remaining parts.
    fn wait_is_due(&mut self, effect: Id) -> Result<(), Stop> {
        let branch = self.d.effects.outs()[&effect].branch;
        let snapshot = &self.d.branches.live()[&branch].snapshot;
        match self.ask(|cx| wait::due(cx, snapshot, effect))? {
            Meets::Over(raw) => self.answer_raw(effect, raw, Vec::new()),
            Meets::Part => self.offer_came(effect, Came::Time, None),
            Meets::Nothing => {}
        }
        Ok(())
    }

    /// Ends a hold whose time ran out. The next approver has the full time, from the moment they are asked.
    fn hold_is_due(&mut self, effect: Id, why: Why) -> Result<(), Stop> {
        let now = self.seen.now;
        let Some(by) = self.d.ledger.hold(effect, why).map(|hold| hold.by.clone()) else {
            return Ok(());
        };
        let Some(out) = self.d.effects.out(effect) else {
            return Ok(());
        };
        if !matches!(out.state, OutState::Held) {
            return Ok(());
        }
        match why {
            Why::Outage => {
                self.outage_expired(effect);
                return Ok(());
            }
            Why::Wait => return self.wait_inside_is_over(effect),
            Why::Budget => return self.period_is_over(effect),
            _ => {}
        }
        let asked = out.tool().filter(|_| why == Why::Approval);
        let asked = asked.and_then(|tool| tool.next_approval(&out.approved));
        let asked = asked.and_then(|asked| asked.asked(&by));
        let then = asked.map_or(OnTimeout::Reject, |asked| asked.on_timeout.clone());
        let mut draft = self.draft(out.branch);
        match then {
            OnTimeout::Approve => {
                if let Some(changed) = self.changed(effect)? {
                    self.ask_anew(None, effect, None, Some(changed));
                    return Ok(());
                }
                self.go(&mut draft, effect, why, Decider::Timeout, None)?;
                self.write(draft)
            }
            OnTimeout::Next(next) => {
                draft.note(Self::released(
                    effect,
                    why,
                    Release::Expired,
                    Decider::Timeout,
                ));
                self.ask_approval(&mut draft, effect, &next, now);
                self.write(draft)
            }
            OnTimeout::Reject => {
                let released = Self::released(effect, why, Release::Expired, Decider::Timeout);
                let fault = Fault::new(Code::Expired, "nobody decided in time");
                self.answer_raw(effect, Raw::NotPerformed(fault), vec![released]);
                Ok(())
            }
        }
    }
}

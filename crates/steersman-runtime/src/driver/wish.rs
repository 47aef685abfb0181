//! The way of a wish to the ledger: the holds that keep it from running, and `Started` for effects that may begin.
//!
//! A tool passes its gates in this order: the repeat guard, approval, secrets that a person is asked for, a free slot. Approval
//! and secrets are holds in the line, and a repetition may be one; a gate that was passed is passed for all attempts.

use super::draft::{Draft, NewHold, Note, Offer};
use super::{Do, Job, OnDisk, Out, OutState, Stop, What};
use crate::ledger::Record;
use crate::limiter::{Ask, Limiter, Refused};
use crate::store::WaitChange;
use crate::toolset::ToolRun;
use std::sync::Arc;
use steersman_machine::network::{Source, ToolDef};
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::commit::{About, LedgerEntry, Release, Why};
use steersman_machine::stored::ids::{Digest, Id, Name};
use steersman_machine::stored::interaction::Class;
use steersman_machine::tick::effect::{ToolWork, Wish, Work};
use steersman_machine::view::mapping::{Fault, Raw};

impl Job<'_, '_> {
    /// Takes a wish to the ledger. Its start or hold is in the same line as the wish.
    pub(super) fn take_wish(
        &mut self,
        draft: &mut Draft,
        branch: Id,
        wish: Wish,
    ) -> Result<(), Stop> {
        let id = wish.id;
        let now = self.now(branch);
        let (work, due) = (wish.work.clone(), wish.due);
        let stands = self.is_searched(draft, branch, &wish)?;
        self.put_out(draft, branch, wish)?;
        if self.answered_from_recording(draft, id)? {
            return Ok(());
        }
        match work {
            Work::Model if stands => self.d.effects.awaits_search(id),
            Work::Model => {
                self.draw_escrow(draft);
                self.begin_or_wait(draft, id, due.filter(|due| *due > now));
            }
            Work::Tool(_) => match due.filter(|due| *due > now) {
                Some(due) => self.begin_or_wait(draft, id, Some(due)),
                None => self.gate(draft, id)?,
            },
            Work::Simulate(_) | Work::Send { .. } => draft.ready.push(id),
            Work::Ask { .. } => {
                // A person sees the question.
                draft.urgent = true;
                self.d.effects.waits_outside(id);
            }
            Work::Event { any } => {
                draft.waits.push(WaitChange {
                    effect: id,
                    open: any.into_iter().map(|one| (one.event, one.key)).collect(),
                });
                self.d.effects.waits_outside(id);
                // An event that comes before the store has stored the wait is in the store's box.
                draft.then.push(OnDisk::Look);
            }
            Work::Timer => self.d.effects.waits_outside(id),
        }
        Ok(())
    }

    /// Adds an effect to the outstanding ones. `draft`: the line that is being made.
    pub(super) fn put_out(
        &mut self,
        draft: &Draft,
        branch: Id,
        mut wish: Wish,
    ) -> Result<(), Stop> {
        let id = wish.id;
        let asked_in = self.asked_in(draft, branch, &mut wish)?;
        // An effect keeps the strictest class under which it began, even if the class of its tool has changed.
        let began = self.d.ledger.effect(id).and_then(|record| record.class);
        if let (Work::Tool(tool), Some(began)) = (&mut wish.work, began) {
            tool.class = tool.class.max(began);
        }
        let attempt = self.d.ledger.effect(id).map_or(0, |r| r.attempt);
        let now = self.now(branch);
        self.d.effects.wished(branch, wish, asked_in, attempt, now);
        self.d.asides.comes_out(id);
        Ok(())
    }

    fn begin_or_wait(
        &mut self,
        draft: &mut Draft,
        id: Id,
        later: Option<steersman_machine::stored::ids::Time>,
    ) {
        match later {
            None => draft.ready.push(id),
            Some(at) => self.d.effects.waits_until(id, at),
        }
    }

    /// Takes back the wait of an effect that waited for the outside.
    pub(super) fn quit_waiting(draft: &mut Draft, out: &Out) {
        let id = out.wish.id;
        if let Work::Event { .. } = out.wish.work {
            draft.waits.push(WaitChange {
                effect: id,
                open: Vec::new(),
            });
        }
    }

    /// Checks the next gate of a tool: it opens a hold, begins, waits for a slot, or is answered immediately.
    pub(super) fn gate(&mut self, draft: &mut Draft, id: Id) -> Result<(), Stop> {
        let out = &self.d.effects.outs()[&id];
        let branch = out.branch;
        let approved = out.approved.clone();
        let Some(tool) = out.tool().cloned() else {
            draft.ready.push(id);
            return Ok(());
        };
        let given: Vec<Name> = out.inputs.iter().map(|(name, _)| name.clone()).collect();
        let now = self.now(branch);
        if self.passes_guard(draft, id)? {
            return Ok(());
        }
        if let Some(approval) = tool.next_approval(&approved) {
            // It waited, for an equal effect or a time, before a person was asked.
            if id.line() != draft.n && self.changed(id)?.is_some() {
                self.ask_anew(None, id, None, None);
                return Ok(());
            }
            self.ask_approval(draft, id, approval, now);
            return Ok(());
        }
        let asked = tool
            .inputs
            .iter()
            .find(|(name, _)| !given.iter().any(|g| **g == **name));
        if let Some((parameter, question)) = asked {
            draft.hold(NewHold {
                effect: id,
                why: Why::Input,
                digest: self.digest(id),
                by: vec!["user".into()],
                ask: Some(question),
                due: None,
                about: Some(About::Parameter(parameter.clone())),
            });
            self.d.effects.holds(id);
            return Ok(());
        }
        self.begin(draft, id)
    }

    /// Returns true if a person is still to be asked before it begins, for an approval or a secret.
    fn is_to_be_asked(&self, id: Id) -> bool {
        let out = &self.d.effects.outs()[&id];
        let given = |name: &Name| out.inputs.iter().any(|(given, _)| given == name);
        out.tool().is_some_and(|tool| {
            let asks = tool.inputs.iter().any(|(name, _)| !given(name));
            asks || tool.next_approval(&out.approved).is_some()
        })
    }

    /// Begins an attempt with this line if a slot is free, otherwise when one becomes free. Barred effects do not begin.
    pub(super) fn begin(&mut self, draft: &mut Draft, id: Id) -> Result<(), Stop> {
        if self.is_barred(id) {
            self.bar(id);
            return Ok(());
        }
        if self.waits_for_go(id) {
            return Ok(());
        }
        self.begin_now(draft, id)
    }

    /// Begins an attempt like [`Job::begin`], after bars and stepping were checked; the repeat guard is checked here.
    pub(super) fn begin_now(&mut self, draft: &mut Draft, id: Id) -> Result<(), Stop> {
        if self.is_halted() {
            // An effect that has not begun has no attempt: it begins when the session goes on.
            self.d.effects.tries_now(id, self.seen.now);
            return Ok(());
        }
        if self.passes_guard(draft, id)? {
            return Ok(());
        }
        if self.is_to_be_asked(id) {
            // It waited for an equal effect before a person was asked.
            return self.gate(draft, id);
        }
        if let Err(full) = self.slot(id) {
            self.d.effects.waits_for_slot(id);
            match full {
                Full::Room => self.seen.permits.give_slot(id),
                Full::Slots => self.await_slot(id),
            }
            return Ok(());
        }
        let (epoch, sealer) = (self.d.who.claim().epoch, self.seen.engine.sealer());
        if self.await_turn(id) {
            return Ok(());
        }
        let free = |tool: &ToolWork| tool.class.is_free();
        if self.d.effects.outs()[&id].tool().is_none_or(free) {
            self.d.effects.readies(id);
            draft.ready.push(id);
            return Ok(());
        }
        let attempt = self.d.effects.starts_with(id, draft.n);
        let out = &self.d.effects.outs()[&id];
        draft.urgent = true;
        draft.begins_unsafe |= out.tool().is_none_or(|tool| tool.class == Class::Unsafe);
        draft.ledger.push(LedgerEntry::Started {
            effect: id,
            attempt,
            epoch,
            digest: out.digest(sealer),
            class: out.tool().map_or(Class::Unsafe, |tool| tool.class),
        });
        draft.then.push(OnDisk::Start(id, attempt));
        Ok(())
    }

    /// Takes a slot of the tool in this process, if the exchange has room, unless the effect has one.
    fn slot(&self, id: Id) -> Result<(), Full> {
        self.room_for(id)?;
        let out = &self.d.effects.outs()[&id];
        let Some(tool) = out.tool() else {
            return Ok(());
        };
        let granted = self.seen.permits.slot(id, self.network(), &tool.tool);
        granted.then_some(()).ok_or(Full::Slots)
    }

    /// Checks that the exchange of an effect has room for it.
    fn room_for(&self, id: Id) -> Result<(), Full> {
        let out = &self.d.effects.outs()[&id];
        if out.tool().is_none() {
            return Ok(());
        }
        let snapshot = &self.d.branches.live()[&out.branch].snapshot;
        let agent = snapshot.agent(out.wish.agent);
        let room = self.network().limits_of(agent).parallel as usize;
        let beside = self
            .d
            .effects
            .outs()
            .values()
            .filter(|o| o.wish.agent == out.wish.agent && o.wish.id != id && o.takes_room())
            .take(room.max(1))
            .count();
        if beside >= room.max(1) {
            return Err(Full::Room);
        }
        Ok(())
    }

    /// Something ended: the first waiting effect of each agent is checked again. Each end frees one slot, so one effect per
    /// agent is enough.
    pub(super) fn retry_queued(&mut self) {
        self.d.effects.retry_short();
        let first: Vec<Id> = self.d.effects.first_queued().collect();
        for id in first {
            let Some(out) = self.d.effects.out(id) else {
                continue;
            };
            let is_free = |tool: &ToolWork| self.seen.permits.is_free(self.network(), &tool.tool);
            if self.room_for(id).is_ok() && out.tool().is_none_or(is_free) {
                self.d.effects.wakes(id);
            }
        }
    }

    /// The slot or the turn that an effect waited for has come, or the turn will not come soon. While nothing may begin in the
    /// session, a slot is given back; the effect asks again when the session goes on.
    pub(super) fn permit_came(&mut self, id: Id, turn: Result<(), Refused>) -> Result<(), Stop> {
        let waits = self.d.effects.out(id);
        let waits = waits.is_some_and(|out| matches!(out.state, OutState::Queued));
        if !waits {
            self.seen.permits.refuse(id);
            return Ok(());
        }
        match turn {
            Ok(()) => {
                self.seen.permits.accept(id);
                if self.d.ledger.paused || self.d.course.is_stopping() {
                    self.seen.permits.give_slot(id);
                }
                self.d.effects.wakes(id);
                Ok(())
            }
            Err(Refused::Long(millis) | Refused::Open(millis)) => {
                let at = self.seen.now.plus(millis);
                let mut draft = self.draft(self.d.effects.outs()[&id].branch);
                self.again_later(&mut draft, id, at);
                self.write(draft)
            }
        }
    }

    /// Gives back slots of effects that have not begun.
    pub(super) fn give_back_slots(&mut self) {
        for (id, out) in self.d.effects.outs() {
            if matches!(out.state, OutState::Queued) {
                self.seen.permits.give_slot(*id);
            }
        }
    }

    /// Waits for a slot of the tool. It is handed over directly: a slot that was given back would go to the next waiter, in any
    /// session, and slots with many waiters are never free.
    fn await_slot(&mut self, id: Id) {
        let Some(tool) = self.d.effects.out(id).and_then(Out::tool) else {
            return;
        };
        let (network, tool) = (self.network().clone(), tool.tool.clone());
        self.out.orders.push(Do::Slot {
            effect: id,
            network,
            tool,
        });
    }

    /// Waits for the turn of a tool at a place that has a rate. Returns true if it has to wait: `Started` is not written before,
    /// so that an effect that only waited is never in doubt.
    fn await_turn(&mut self, id: Id) -> bool {
        if self.seen.permits.has_turn(id) {
            return false;
        }
        let Some(tool) = self.d.effects.outs()[&id].tool() else {
            return false;
        };
        let run = || self.tool_run(id, tool, self.scope(id, None));
        let Some((limiter, ask)) = self.place_of(&tool.tool, run) else {
            return false;
        };
        self.d.effects.waits_for_turn(id);
        self.out.orders.push(Do::Turn {
            effect: id,
            limiter,
            ask,
        });
        true
    }

    /// Returns the limiter of the place that a tool asks, if the place has a rate.
    pub(super) fn place_of(
        &self,
        tool: &Name,
        run: impl FnOnce() -> ToolRun,
    ) -> Option<(Arc<Limiter>, Ask)> {
        let rated =
            |def: &ToolDef| matches!(&def.source, Source::Http(http) if http.rate.is_some());
        self.tool_def(tool).filter(|def| rated(def))?;
        let toolset = self.seen.engine.toolset(self.network(), tool)?;
        let (place, rate) = toolset.place(&run())?;
        let limiters = &self.seen.engine.0.options.limiters;
        let ask = Ask {
            session: self.d.who.session().clone(),
            rate: Some(rate),
            unbroken: true,
            ..Ask::default()
        };
        let limiter = limiters.of(&["tools", &place], &**self.seen.engine.clock());
        Some((limiter, ask))
    }

    /// Answers a call that was not run with a fault.
    pub(super) fn answer_fault(&mut self, id: Id, code: Code, message: &str) {
        self.answer_raw(id, Raw::NotPerformed(Fault::new(code, message)), Vec::new());
    }

    /// Offers a raw outcome to the branch of its effect.
    pub(super) fn answer_raw(&mut self, id: Id, raw: Raw, notes: Vec<Note>) {
        let Some((branch, attempt)) = self.d.effects.offers_outcome(id) else {
            return;
        };
        self.seen.permits.give_slot(id);
        let what = What::Raw {
            effect: id,
            attempt,
            raw,
            by: None,
            simulated: false,
        };
        let mut offer = Offer::new(what);
        offer.notes = notes;
        self.offer(branch, offer);
    }

    pub(super) fn tool_def(&self, name: &str) -> Option<&ToolDef> {
        self.network().tools.get(name)
    }

    /// Ends a hold of an effect that may go on, and checks its next gate.
    pub(super) fn pass(
        &mut self,
        draft: &mut Draft,
        id: Id,
        why: Why,
        by: Decider,
        text: Option<String>,
    ) -> Result<(), Stop> {
        if let (Why::Approval, Decider::Person(by)) = (why, &by) {
            self.approves_repetition(draft, id, by);
        }
        draft.note(Note::Released {
            effect: id,
            why,
            how: Release::Go,
            by,
            text,
        });
        let open = self.d.ledger.effect(id).and_then(Record::open_hold);
        let (at, asked) = open.map(|(at, hold)| (at, hold.by.clone())).unzip();
        match why {
            Why::Repeat => self.d.effects.may_repeat(id, at),
            Why::Approval => self.d.effects.approves(id, asked.unwrap_or_default()),
            Why::Input | Why::Doubt | Why::Budget | Why::Outage | Why::Wait | Why::Elicited => {}
        }
        self.gate(draft, id)
    }

    /// Returns the digest of tool and arguments of an outstanding effect.
    pub(super) fn digest(&self, id: Id) -> Digest {
        self.d.effects.outs()[&id].digest(self.seen.engine.sealer())
    }

    /// Returns true if an effect has begun and its end is not known.
    pub(super) fn is_in_doubt(&self, id: Id) -> bool {
        self.d.ledger.effect(id).is_some_and(Record::in_doubt)
    }
}

/// The resource that is missing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Full {
    /// Room in the exchange: another effect of this session has to end first.
    Room,
    /// Slots of the tool in this process.
    Slots,
}

/// Returns true if a tool only writes state, so that nothing is run.
pub(super) fn only_writes(tool: &ToolDef) -> bool {
    matches!(tool.source, Source::State)
}

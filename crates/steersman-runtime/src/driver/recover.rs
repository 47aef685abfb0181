//! Takeover of a session: loads it, takes up the effects that its last owner left outstanding, and continues. The class of an effect
//! that the dead owner had started decides whether it runs again.

use super::draft::{Draft, Note};
use super::{Answered, Heard, Job, Stop, Want};
use crate::bind;
use crate::engine::EngineError;
use crate::ledger::{Progress, Record};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::commit::{About, Binding, LedgerEntry, Why};
use steersman_machine::stored::ids::{Bodies, Id, Line, Name};
use steersman_machine::stored::interaction::Class;
use steersman_machine::stored::outcome::Outcome;
use steersman_machine::tick;
use steersman_machine::tick::effect::{Wish, Work};
use steersman_machine::tick::{branch, wait};

impl Job<'_, '_> {
    /// Loads a branch into memory, so that it can tick. A branch without a commit of its own is skipped.
    pub(super) fn load_branch(&mut self, id: Id) -> Result<(), Stop> {
        let known = self.d.ledger.branch(id).cloned().unwrap_or_default();
        if id != Id::MAIN && known.commit == known.from.map_or(Line::NONE, |(_, at)| at) {
            // The branch was announced, but its first line was not written. The request that opens it is repeated later.
            return Ok(());
        }
        let Answered::Snapshot(loaded) = self.wants(Want::Branch(known.head))? else {
            unreachable!("an answer is of the kind that was asked for");
        };
        let loaded = loaded.clone();
        let base = match known.from {
            Some((_, at)) => match self.wants(Want::Snapshot(at))? {
                Answered::Snapshot(base) => Some(base.snapshot.clone()),
                _ => unreachable!("an answer is of the kind that was asked for"),
            },
            None => None,
        };
        let label = known.opening.as_ref().and_then(|o| o.label.clone());
        let at = (loaded.at, loaded.hash);
        self.d
            .branches
            .begins(id, loaded.snapshot, at, label, base, loaded.since);
        Ok(())
    }

    /// Loads the network and the values of a binding into the driver.
    pub(super) fn bind(&mut self, binding: &Binding, values: &str) -> Result<(), Stop> {
        let session = self.d.who.session().clone();
        let manifest = bind::manifest(&session, binding, values)?;
        let network = self.network_of(binding.source, manifest)?;
        let values = bind::open(&session, &network, binding, values)?;
        let key = (binding.source, manifest);
        let network = self.seen.engine.with_natives(network, &values, key);
        let network = network.map_err(EngineError::from)?;
        self.d.bound.begins(network, values);
        Ok(())
    }

    /// Loads the binding that all branches have.
    pub(super) fn load_binding(&mut self) -> Result<(), Stop> {
        let snapshots = self
            .d
            .branches
            .live()
            .iter()
            .map(|(id, b)| (*id, &b.snapshot));
        let binding = bind::common(self.d.who.session(), snapshots)?;
        let Some(binding) = binding.cloned() else {
            return Ok(());
        };
        let values = self.values_of(&binding)?;
        self.bind(&binding, &values)
    }

    /// Takes up the outstanding effects of all branches: questions wait again, an `unsafe` tool call that had started is in doubt, and
    /// all other effects begin, unless a hold keeps them.
    pub(super) fn recover(&mut self) -> Result<(), Stop> {
        if self.d.bound.network().is_none() {
            return Ok(());
        }
        let mut draft = self.draft(self.d.ledger.current);
        if !self.d.who.has_claimed() {
            self.settle_earlier(&mut draft);
        }
        self.find_searches();
        let ids: Vec<Id> = self.d.branches.live().keys().copied().collect();
        let mut wishes = Vec::new();
        for id in &ids {
            wishes.extend(self.wished_on(*id)?);
        }
        let current = self.d.ledger.current;
        self.take_up_all(draft, current, wishes)?;
        let mut left = self.draft(current);
        self.find_left(&mut left)?;
        self.write(left)?;
        self.know_left()?;
        for id in ids.into_iter().rev() {
            self.d.course.hears_first(Heard::Ask(id));
        }
        Ok(())
    }

    /// Takes up the effects of a branch that was superseded and is driven again.
    pub(super) fn take_up_branch(&mut self, id: Id) -> Result<(), Stop> {
        let wishes = self.wished_on(id)?;
        self.take_up_all(self.draft(id), id, wishes)?;
        self.d.course.hears_first(Heard::Ask(id));
        Ok(())
    }

    /// Writes the draft unless it is empty. The effects that it lists as ready begin in both cases.
    fn write_ready(&mut self, draft: Draft) -> Result<(), Stop> {
        for id in &draft.ready {
            self.d.effects.wakes(*id);
        }
        self.write(draft)
    }

    pub(super) fn wished_on(&self, id: Id) -> Result<Vec<(Id, Wish)>, Stop> {
        let snapshot = self.d.branches.live()[&id].snapshot.clone();
        let wishes = self.ask(|cx| tick::wishes(cx, &snapshot))?;
        Ok(wishes.into_iter().map(|wish| (id, wish)).collect())
    }

    /// Takes up effects in two groups: first the unsafe effects that had already started, then all others. If the second group has
    /// an unsafe effect too, the first group gets a line of its own: the later effect may be equal to a started one, and must find
    /// that one in doubt.
    fn take_up_all(
        &mut self,
        mut draft: Draft,
        branch: Id,
        wishes: Vec<(Id, Wish)>,
    ) -> Result<(), Stop> {
        let is_unsafe =
            |wish: &Wish| matches!(&wish.work, Work::Tool(tool) if tool.class == Class::Unsafe);
        let has_begun = |(_, wish): &(Id, Wish)| {
            let record = self.d.ledger.effect(wish.id);
            record.is_some_and(|record| record.class == Some(Class::Unsafe))
        };
        let (begun, rest): (Vec<_>, Vec<_>) = wishes.into_iter().partition(has_begun);
        let apart = !begun.is_empty() && rest.iter().any(|(_, wish)| is_unsafe(wish));
        for (id, wish) in begun {
            self.take_up(&mut draft, id, wish)?;
        }
        if apart {
            self.write_ready(draft)?;
            draft = self.draft(branch);
        }
        for (id, wish) in rest {
            self.take_up(&mut draft, id, wish)?;
        }
        self.write_ready(draft)
    }

    /// Repeats the requests that a branch made and that the former owner did not carry out.
    pub(super) fn ask_again(&mut self, id: Id) -> Result<(), Stop> {
        if !self.d.branches.live().contains_key(&id) {
            return Ok(());
        }
        self.deadline(id)?;
        let snapshot = self.d.branches.live()[&id].snapshot.clone();
        let requests = self.ask(|cx| branch::requests(cx, &snapshot))?;
        let mut draft = self.draft(id);
        for request in requests {
            self.take_request(&mut draft, id, request);
        }
        self.write(draft)?;
        self.d.branches.may_have_ended();
        Ok(())
    }

    fn take_up(&mut self, draft: &mut Draft, branch: Id, wish: Wish) -> Result<(), Stop> {
        let effect = wish.id;
        if wish.work == Work::Model && self.is_searched(draft, branch, &wish)? {
            self.put_out(draft, branch, wish)?;
            self.d.effects.awaits_search(effect);
            return Ok(());
        }
        let Some(record) = self.d.ledger.effect(effect).cloned() else {
            self.take_wish(draft, branch, wish)?;
            return Ok(());
        };
        let due = wish.due;
        self.adopt_out(draft, branch, wish, &record)?;
        let work = self.d.effects.outs()[&effect].wish.work.clone();
        if self
            .d
            .effects
            .at_work()
            .contains_key(&(effect, record.attempt))
        {
            // The branch was superseded and is driven again. Meanwhile the attempt went on, so its outcome counts.
            self.d.effects.runs_on(effect);
            return Ok(());
        }
        if let Some(at) = record.again {
            self.d.effects.waits_until(effect, at);
            return Ok(());
        }
        let Work::Tool(tool) = &work else {
            match work {
                Work::Ask { .. } | Work::Event { .. } | Work::Timer => {
                    self.d.effects.waits_outside(effect);
                }
                _ if record.holds.is_empty() => draft.ready.push(effect),
                // The place is asked again when the call is about to begin.
                _ if record.holds.values().all(|h| h.why == Why::Outage) => {
                    draft.ready.push(effect);
                }
                _ => self.d.effects.holds(effect),
            }
            return Ok(());
        };
        if let Some(due) = due.filter(|due| *due > self.now(branch)) {
            self.d.effects.waits_until(effect, due);
            return Ok(());
        }
        if record.holds.values().any(|hold| hold.why == Why::Wait) {
            self.d.effects.holds(effect);
            return Ok(());
        }
        let asks = record.holds.values().any(|hold| hold.why == Why::Elicited);
        if asks && (tool.class != Class::Unsafe || self.goes_on_after_steps(effect)) {
            self.d.effects.holds(effect);
            return Ok(());
        }
        let is_doubted = record.holds.values().any(|hold| hold.why == Why::Doubt);
        match (record.progress, tool.class) {
            (Progress::Started { .. } | Progress::Unknown { .. }, Class::Unsafe)
                if !is_doubted && self.goes_on_after_steps(effect) =>
            {
                self.begin(draft, effect)?;
            }
            (Progress::Started { .. }, Class::Unsafe) => {
                draft.note(Note::Unknown(effect, record.attempt));
                if let Some(left) = self.question_left(effect) {
                    draft.note(left);
                }
                let reason = "its owner died before the outcome was known";
                self.way_out(draft, effect, reason);
            }
            (Progress::Unknown { .. }, Class::Unsafe) => self.doubt_again(draft, effect, &record),
            (Progress::Wished | Progress::NotPerformed, _) if !record.holds.is_empty() => {
                self.d.effects.holds(effect);
            }
            (Progress::Wished, _) => self.gate(draft, effect)?,
            (Progress::Started { .. } | Progress::Unknown { .. } | Progress::NotPerformed, _) => {
                self.begin(draft, effect)?;
            }
            (Progress::Done { .. } | Progress::GivenUp { .. }, _) => {
                // The ledger knows the outcome and this branch has not taken it: the branch was superseded, and is current again.
                if let Some(mapped) = self.recorded(effect)? {
                    let outcome = Outcome::Mapped(mapped);
                    self.answer_outcome(effect, outcome, Vec::new());
                } else {
                    let fault =
                        steersman_machine::view::mapping::Fault::new(Code::InDoubt, "nobody knows");
                    let raw = steersman_machine::view::mapping::Raw::Unknown(fault);
                    self.answer_raw(effect, raw, Vec::new());
                }
            }
        }
        Ok(())
    }

    fn doubt_again(&mut self, draft: &mut Draft, effect: Id, record: &Record) {
        if record.holds.values().any(|h| h.why == Why::Doubt) {
            self.d.effects.holds(effect);
        } else {
            self.way_out(draft, effect, "its outcome is not known");
        }
    }

    /// Registers an effect as outstanding again, with the approvals and inputs that the ledger has for it.
    pub(super) fn adopt_out(
        &mut self,
        draft: &Draft,
        branch: Id,
        wish: Wish,
        record: &Record,
    ) -> Result<(), Stop> {
        let effect = wish.id;
        self.put_out(draft, branch, wish)?;
        let given = if record.ended.iter().any(|(why, _)| *why == Why::Input) {
            self.inputs_given(effect, record.since)?
        } else {
            Vec::new()
        };
        self.d.effects.known(effect, record, given);
        Ok(())
    }

    /// Reads the sealed secrets that were given for an effect, by parameter. They are only in the log.
    pub(super) fn inputs_given(
        &mut self,
        effect: Id,
        since: Line,
    ) -> Result<Vec<(Name, String)>, Stop> {
        let mut given = Vec::new();
        let Answered::Since(lines) = self.wants(Want::Since(since))? else {
            unreachable!("an answer is of the kind that was asked for");
        };
        {
            for line in lines.clone() {
                for entry in &line.ledger {
                    match entry {
                        LedgerEntry::Released {
                            effect: of,
                            why: Why::Input,
                            about: Some(About::Parameter(parameter)),
                            body: Some(body),
                            ..
                        } if *of == effect => {
                            let text = self.seen.past.text(*body).to_string();
                            given.push((parameter.clone(), text));
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(given)
    }

    /// Asks the machine for the next time at which this branch must be offered the clock, and stores it.
    pub(super) fn deadline(&mut self, id: Id) -> Result<(), Stop> {
        if self.d.bound.network().is_none() {
            return Ok(());
        }
        let snapshot = &self.d.branches.live()[&id].snapshot;
        let deadline = self.ask(|cx| wait::deadline(cx, snapshot))?;
        self.d.branches.waits_until(id, deadline);
        Ok(())
    }
}

//! Takeover of a session: loads it, takes up the effects that its last owner left outstanding, and continues. The class of an effect
//! that the dead owner had started decides whether it runs again.

use super::draft::{Draft, Note};
use super::{Branch, Driver, OutState};
use crate::bind;
use crate::engine::EngineError;
use crate::ledger::{Progress, Record};
use crate::load::Since;
use std::collections::HashMap;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::commit::{About, Binding, LedgerEntry, Why};
use steersman_machine::stored::ids::{Bodies, Id, Line, Name};
use steersman_machine::stored::interaction::Class;
use steersman_machine::stored::outcome::Outcome;
use steersman_machine::tick;
use steersman_machine::tick::effect::{Wish, Work};
use steersman_machine::tick::{branch, wait};

impl Driver {
    /// Loads a branch into memory, so that it can tick. A branch without a commit of its own is skipped.
    pub(super) async fn load_branch(&mut self, id: Id) -> Result<(), EngineError> {
        let known = self.ledger.branch(id).cloned().unwrap_or_default();
        if id != Id::MAIN && known.commit == known.from.map_or(Line::NONE, |(_, at)| at) {
            // The branch was announced, but its first line was not written. The request that opens it is repeated later.
            return Ok(());
        }
        let loaded = self.load.snapshot(known.head).await?;
        for line in &loaded.lines {
            self.past.add(line.clone());
        }
        self.past.warm(&loaded.snapshot, WARM).await?;
        let base = match known.from {
            Some((_, at)) => Some(self.load.snapshot(at).await?.snapshot),
            None => None,
        };
        let label = known.opening.as_ref().and_then(|o| o.label.clone());
        self.add_branch(id, loaded.snapshot, label, base, loaded.since);
        if let Some(branch) = self.branches.get_mut(&id) {
            (branch.prev, branch.hash) = (loaded.at, loaded.hash);
        }
        Ok(())
    }

    pub(super) fn add_branch(
        &mut self,
        id: Id,
        snapshot: Snapshot,
        label: Option<Name>,
        base: Option<Snapshot>,
        since: Since,
    ) {
        let branch = Branch {
            prev: Line::NONE,
            hash: [0; 32],
            snapshot,
            offers: Vec::new(),
            caches: HashMap::new(),
            label,
            base,
            since,
            deadline: None,
        };
        self.branches.insert(id, branch);
    }

    /// Loads the network and the values of a binding into the driver.
    pub(super) async fn bind(
        &mut self,
        binding: &Binding,
        values: &str,
    ) -> Result<(), EngineError> {
        let network = self.engine.network_of(&self.session, binding, values);
        let network = network.await?;
        self.values = bind::open(&self.session, &network, binding, values)?;
        let manifest = bind::manifest(&self.session, binding, values)?;
        let key = (binding.source, manifest);
        let network = self.engine.with_natives(network, &self.values, key)?;
        self.network = Some(network);
        self.needs_told = false;
        Ok(())
    }

    /// Takes up the outstanding effects of all branches: questions wait again, an `unsafe` tool call that had started is in doubt, and
    /// all other effects begin, unless a hold keeps them.
    pub(super) async fn recover(&mut self) -> Result<(), EngineError> {
        if self.network.is_none() {
            return Ok(());
        }
        let mut draft = self.draft(self.ledger.current);
        if !self.claimed {
            self.settle_earlier(&mut draft);
        }
        self.find_searches();
        let ids: Vec<Id> = self.branches.keys().copied().collect();
        let mut wishes = Vec::new();
        for id in &ids {
            wishes.extend(self.wished_on(*id)?);
        }
        let current = self.ledger.current;
        self.take_up_all(draft, current, wishes).await?;
        let mut left = self.draft(current);
        self.find_left(&mut left).await?;
        self.write(left).await?;
        self.know_left().await?;
        for id in ids {
            self.ask_again(id).await?;
        }
        Ok(())
    }

    /// Takes up the effects of a branch that was superseded and is driven again.
    pub(super) async fn take_up_branch(&mut self, id: Id) -> Result<(), EngineError> {
        let wishes = self.wished_on(id)?;
        self.take_up_all(self.draft(id), id, wishes).await?;
        self.ask_again(id).await
    }

    /// Writes the draft unless it is empty. The effects that it lists as ready begin in both cases.
    async fn write_ready(&mut self, draft: Draft) -> Result<(), EngineError> {
        self.to_start.extend(draft.ready.iter().copied());
        self.write(draft).await
    }

    fn wished_on(&self, id: Id) -> Result<Vec<(Id, Wish)>, EngineError> {
        let snapshot = self.branches[&id].snapshot.clone();
        let wishes = self.ask(|cx| tick::wishes(cx, &snapshot))?;
        Ok(wishes.into_iter().map(|wish| (id, wish)).collect())
    }

    /// Takes up effects in two groups: first the unsafe effects that had already started, then all others. If the second group has
    /// an unsafe effect too, the first group gets a line of its own: the later effect may be equal to a started one, and must find
    /// that one in doubt.
    async fn take_up_all(
        &mut self,
        mut draft: Draft,
        branch: Id,
        wishes: Vec<(Id, Wish)>,
    ) -> Result<(), EngineError> {
        let is_unsafe =
            |wish: &Wish| matches!(&wish.work, Work::Tool(tool) if tool.class == Class::Unsafe);
        let has_begun = |(_, wish): &(Id, Wish)| {
            let record = self.ledger.effect(wish.id);
            record.is_some_and(|record| record.class == Some(Class::Unsafe))
        };
        let (begun, rest): (Vec<_>, Vec<_>) = wishes.into_iter().partition(has_begun);
        let apart = !begun.is_empty() && rest.iter().any(|(_, wish)| is_unsafe(wish));
        for (id, wish) in begun {
            self.take_up(&mut draft, id, wish).await?;
        }
        if apart {
            self.write_ready(draft).await?;
            draft = self.draft(branch);
        }
        for (id, wish) in rest {
            self.take_up(&mut draft, id, wish).await?;
        }
        self.write_ready(draft).await
    }

    /// Repeats the requests that a branch made and that the former owner did not carry out.
    async fn ask_again(&mut self, id: Id) -> Result<(), EngineError> {
        self.deadline(id)?;
        let snapshot = self.branches[&id].snapshot.clone();
        let requests = self.ask(|cx| branch::requests(cx, &snapshot))?;
        let mut draft = self.draft(id);
        for request in requests {
            self.take_request(&mut draft, id, request);
        }
        self.write(draft).await?;
        self.leave_behind().await?;
        self.settle_requests().await?;
        self.offer_ends().await
    }

    async fn take_up(
        &mut self,
        draft: &mut Draft,
        branch: Id,
        wish: Wish,
    ) -> Result<(), EngineError> {
        let effect = wish.id;
        if wish.work == Work::Model && self.is_searched(draft, branch, &wish)? {
            self.put_out(branch, wish);
            self.state(effect, OutState::Stands);
            return Ok(());
        }
        let Some(record) = self.ledger.effect(effect).cloned() else {
            self.take_wish(draft, branch, wish)?;
            return Ok(());
        };
        let due = wish.due;
        self.adopt_out(branch, wish, &record).await?;
        let work = self.outs[&effect].wish.work.clone();
        if let Some(attempt) = self.at_work.get(&(effect, record.attempt)) {
            // The branch was superseded and is driven again. Meanwhile the attempt went on, so its outcome counts.
            let running = OutState::Running(attempt.cancel.clone());
            self.state(effect, running);
            return Ok(());
        }
        if let Some(at) = record.again {
            self.state(effect, OutState::Later(at));
            return Ok(());
        }
        let Work::Tool(tool) = &work else {
            match work {
                Work::Ask { .. } | Work::Event { .. } | Work::Timer => {
                    self.state(effect, OutState::Waits);
                }
                _ if record.holds.is_empty() => draft.ready.push(effect),
                // The place is asked again when the call is about to begin.
                _ if record.holds.values().all(|h| h.why == Why::Outage) => {
                    draft.ready.push(effect);
                }
                _ => self.state(effect, OutState::Held),
            }
            return Ok(());
        };
        if let Some(due) = due.filter(|due| *due > self.now(branch)) {
            self.state(effect, OutState::Later(due));
            return Ok(());
        }
        match (record.progress, tool.class) {
            (Progress::Started { .. }, Class::Unsafe) => {
                draft.note(Note::Unknown(effect, record.attempt));
                let reason = "its owner died before the outcome was known";
                self.way_out(draft, effect, reason);
            }
            (Progress::Unknown { .. }, Class::Unsafe) => self.doubt_again(draft, effect, &record),
            (Progress::Wished | Progress::NotPerformed, _) if !record.holds.is_empty() => {
                self.state(effect, OutState::Held);
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
            self.state(effect, OutState::Held);
        } else {
            self.way_out(draft, effect, "its outcome is not known");
        }
    }

    /// Registers an effect as outstanding again, with the approvals and inputs that the ledger has for it.
    async fn adopt_out(
        &mut self,
        branch: Id,
        wish: Wish,
        record: &Record,
    ) -> Result<(), EngineError> {
        let effect = wish.id;
        self.put_out(branch, wish);
        let given = if record.ended.iter().any(|(why, _)| *why == Why::Input) {
            self.inputs_given(effect, record.since).await?
        } else {
            Vec::new()
        };
        if let Some(out) = self.outs.get_mut(&effect) {
            out.inputs = given;
            out.approved.clone_from(&record.approved);
            out.word = record.word;
        }
        Ok(())
    }

    /// Reads the sealed secrets that were given for an effect, by parameter. They are only in the log.
    pub(super) async fn inputs_given(
        &mut self,
        effect: Id,
        since: Line,
    ) -> Result<Vec<(Name, String)>, EngineError> {
        let mut given = Vec::new();
        let mut from = since;
        loop {
            let rows = self
                .engine
                .store()
                .rows(&self.session, from, Line::MAX, 256)
                .await?;
            let Some(last) = rows.last() else { break };
            from = last.n.next();
            for row in &rows {
                let line = self.past.check(row).await?;
                for entry in &line.ledger {
                    match entry {
                        LedgerEntry::Released {
                            effect: of,
                            why: Why::Input,
                            about: Some(About::Parameter(parameter)),
                            body: Some(body),
                            ..
                        } if *of == effect => {
                            let text = self.past.text(*body).to_string();
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
    pub(super) fn deadline(&mut self, id: Id) -> Result<(), EngineError> {
        if self.network.is_none() {
            return Ok(());
        }
        let snapshot = &self.branches[&id].snapshot;
        let deadline = self.ask(|cx| wait::deadline(cx, snapshot))?;
        if let Some(branch) = self.branches.get_mut(&id) {
            branch.deadline = deadline;
        }
        Ok(())
    }
}

/// Number of interactions that are read ahead for each agent that acts.
const WARM: usize = 64;

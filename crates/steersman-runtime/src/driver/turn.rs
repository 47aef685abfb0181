//! A turn of the driver on a branch (not a turn of an agent): one tick over the waiting offers, and the line with its result.

use super::draft::{Draft, Note, Offer};
use super::{Driver, OnDisk, OutState, What};
use crate::engine::EngineError;
use crate::load::Since;
use crate::session::{Fate, Receipt};
use crate::store::{self, Batch, Checkpoint, CheckpointOf, Row, StoreAccepted};
use crate::tools::artifact::store_made;
use std::collections::BTreeSet;
use std::sync::Arc;
use steersman_machine::snapshot::checkpoint;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::stored::bounds::MAX_LINE;
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::codec;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::commit::{Commit, LedgerEntry, LogLine, Release, Why};
use steersman_machine::stored::ids::{Bodies, Id, Line, Name, Time};
use steersman_machine::stored::interaction::How;
use steersman_machine::stored::outcome::{Failure, Outcome};
use steersman_machine::tick::effect::{OfferKind, Offered, Step, Until};
use steersman_machine::tick::tick;

impl Driver {
    /// Offers a branch everything that arrived, and writes the resulting line, if there is one.
    pub(super) async fn turn(&mut self, id: Id) -> Result<(), EngineError> {
        let now = self.now(id);
        self.fresh.remove(&id);
        // Until the first line is written, only the message that starts the session is read. Read the others now.
        self.inbox.look |= self.is_to_begin();
        let Some(branch) = self.branches.get_mut(&id) else {
            return Ok(());
        };
        let offers = std::mem::take(&mut branch.offers);
        // Outcomes of effects that are no longer open are removed: a branch takes no outcome twice.
        let open = &branch.snapshot.effects;
        let (mut offers, gone): (Vec<Offer>, Vec<Offer>) =
            offers.into_iter().partition(|offer| match &offer.what {
                What::Raw { effect, .. } => open.contains_key(effect),
                _ => true,
            });
        for offer in gone {
            let mut draft = self.draft(id);
            self.left_over(&mut draft, offer).await?;
            self.write(draft).await?;
        }
        offers.sort_by_key(|offer| offer.what.kind());
        let mut offered = self.in_machine_terms(id, &offers)?;
        for offered in &mut offered {
            if let Offered::Outcome {
                outcome: Outcome::Mapped(mapped),
                ..
            } = offered
            {
                super::recorded::store_contents(&**self.engine.store(), mapped).await?;
            }
        }
        match self.step_that_fits(id, now, &mut offers, &mut offered)? {
            Ok(step) => self.take_step(id, step, offers, offered).await,
            Err(why) => {
                let mut draft = self.draft(id);
                for offer in offers {
                    self.refused(&mut draft, offer, why.clone());
                }
                self.write(draft).await
            }
        }
    }

    /// Makes a tick whose line can be stored; its size is measured before anything is changed. If the line of all offers is too
    /// long, some of them wait for the next tick. A single outcome that is too large becomes a failure. For a single message,
    /// the inner error is the reason why it is refused.
    fn step_that_fits(
        &mut self,
        id: Id,
        now: Time,
        offers: &mut Vec<Offer>,
        offered: &mut Vec<Offered>,
    ) -> Result<Result<Step, String>, EngineError> {
        let line = self.next;
        loop {
            let before = self.branches[&id].snapshot.clone();
            let mut step = self.ask(|cx| tick(cx, before, line, now, offered))?;
            let size = measured(line, id, &mut step, offers.len());
            if size <= MAX_LINE {
                return Ok(Ok(step));
            }
            if offers.len() > 1 {
                let half = offers.len() / 2;
                offered.truncate(half);
                if let Some(branch) = self.branches.get_mut(&id) {
                    branch.offers.extend(offers.drain(half..));
                }
                self.fresh.insert(id);
                continue;
            }
            let why = format!("its line would have {size} bytes; a line has at most {MAX_LINE}");
            match &mut offered[..] {
                [Offered::Outcome { outcome, .. }] if !matches!(outcome, Outcome::Failed(_)) => {
                    *outcome = Outcome::Failed(Failure::new(FailureCode::Misfit, why));
                }
                _ if offers.iter().all(|offer| offer.message.is_some()) => return Ok(Err(why)),
                _ => {
                    let what = || format!("line {line} of session `{}`", self.session);
                    store::within(what, size)?;
                }
            }
        }
    }

    async fn take_step(
        &mut self,
        id: Id,
        mut step: Step,
        offers: Vec<Offer>,
        offered: Vec<Offered>,
    ) -> Result<(), EngineError> {
        let moved = step.commit.is_some();
        let mut draft = Draft::of(self.next, id, &mut step);
        if let Some(branch) = self.branches.get_mut(&id) {
            branch.snapshot = step.snapshot.clone();
        }
        let mut left = std::mem::take(&mut step.left);
        let mut again = false;
        for (index, (offer, offered)) in offers.into_iter().zip(offered).enumerate() {
            let until = left
                .iter()
                .position(|(i, _)| *i == index)
                .map(|at| left.swap_remove(at).1);
            match until {
                None => self.taken(&mut draft, offer),
                // This cancel has nothing to end on this branch, but it also ends other branches or drops messages.
                Some(Until::Refused(_)) if offer.ends_others || !offer.drops.is_empty() => {
                    self.taken(&mut draft, offer);
                }
                Some(Until::Stale) => self.stale(&mut draft, offer, &offered).await?,
                Some(Until::Refused(why)) => self.refused(&mut draft, offer, why.to_owned()),
                Some(until) => {
                    again |= until == Until::Again;
                    self.keep(id, offer, until);
                }
            }
        }
        self.finish_step(id, step, draft).await?;
        // Offers that were left may be taken after something moved.
        let left = self.branches.get(&id).is_some_and(|b| !b.offers.is_empty());
        if left && (again || moved) {
            self.fresh.insert(id);
        }
        Ok(())
    }

    fn taken(&mut self, draft: &mut Draft, offer: Offer) {
        // A fork call may request an adoption. If nothing was adopted, the offer is taken too, because it closes the call with the
        // reason. Only the note of an adoption is left out.
        let adopted = draft.commit.as_ref().is_some_and(|c| c.adoption.is_some());
        for note in offer.notes {
            if adopted || !matches!(note, Note::Adopted(..)) {
                draft.note(note);
            }
        }
        if let Some(effect) = offer.what.effect() {
            self.forget(draft, effect);
        }
        if let Some(event) = offer.event {
            draft.events_taken.push(event);
        }
        if let Some(message) = offer.message {
            draft.accept(&message);
            self.receipt(draft, &message.id, Fate::Taken(draft.n));
        }
        self.drop_unheard(draft, offer.drops);
    }

    fn refused(&mut self, draft: &mut Draft, offer: Offer, why: String) {
        if let What::Offer(offered) = &offer.what
            && let Offered::Adopt { call: None, .. } = &**offered
            && offer.message.is_none()
        {
            self.not_adopted(draft.branch, &why);
        }
        self.keep_unheard(draft.branch, offer.drops);
        if let Some(message) = offer.message {
            draft.refuse(&message, &why);
            self.receipt(draft, &message.id, Fate::Refused(why));
        }
    }

    /// Keeps an offer that the machine left: it is offered again with the next offer to its branch.
    fn keep(&mut self, branch: Id, mut offer: Offer, until: Until) {
        if let Some(message) = &offer.message
            && let Some(reply) = self.inbox.replies.remove(&message.id)
        {
            let receipt = Receipt {
                id: message.id.clone(),
                fate: Fate::Waits(self.waits_for(branch, until)),
            };
            // The message is in the inbox, so this is already on disk.
            reply.send(receipt).ok();
        }
        offer.waits = Some(until);
        if let Some(branch) = self.branches.get_mut(&branch) {
            branch.offers.push(offer);
        }
    }

    fn waits_for(&self, branch: Id, until: Until) -> String {
        let name = |agent: Id| {
            let snapshot = &self.branches[&branch].snapshot;
            snapshot
                .agents
                .get(&agent)
                .map_or("?", |a| &*a.def)
                .to_owned()
        };
        match until {
            Until::Exchange(agent) => format!("`{}` has calls open", name(agent)),
            Until::Answered(agent) => format!("`{}` is being asked", name(agent)),
            Until::Rests(agent) => format!("`{}` is at work", name(agent)),
            Until::Again => "the next tick".to_owned(),
            Until::Stale => "nothing".to_owned(),
            Until::Refused(why) => why.to_owned(),
        }
    }

    /// Sends the receipt of a message to its sender, once the line is on disk.
    pub(super) fn receipt(&mut self, draft: &mut Draft, id: &Name, fate: Fate) {
        self.inbox.known.remove(id);
        let reply = self.inbox.replies.remove(id);
        // A sender that does not wait for the receipt yet may do so soon.
        match &reply {
            Some(_) => draft.urgent = true,
            None => drop(self.inbox.soon.insert(id.clone())),
        }
        let id = id.clone();
        let then = OnDisk::Receipt(reply, Receipt { id, fate });
        draft.then.push(then);
    }

    /// Removes an effect that is over for its branch: frees its slot, its timer and its wait.
    pub(super) fn forget(&mut self, draft: &mut Draft, effect: Id) {
        let Some(out) = self.outs.remove(&effect) else {
            return;
        };
        // A hold by an outage ends with the effect, even if the place was not asked again.
        if self.is_out(effect) && !draft.releases(effect, Why::Outage) {
            draft.note(Self::released(
                effect,
                Why::Outage,
                Release::Cancelled,
                Decider::Rule,
            ));
        }
        self.unqueue(effect, out.wish.agent);
        Self::quit_waiting(draft, &out);
        drop(out.permit);
        self.retry_queued();
    }

    /// Stops an effect that its branch no longer wants.
    pub(super) fn stop_effect(&mut self, draft: &mut Draft, effect: Id) {
        self.end_effect(draft, effect, true);
    }

    /// Removes an effect that no branch waits for any more. A running attempt that may change the world is cancelled only if `cuts`
    /// is true; any other one always.
    pub(super) fn end_effect(&mut self, draft: &mut Draft, effect: Id, cuts: bool) {
        if let Some(record) = self.ledger.effect(effect) {
            let whys: Vec<Why> = record.holds.values().map(|h| h.why).collect();
            for why in whys {
                // If this line ended the call, it has ended the hold, too. A doubt outlives its call.
                if draft.releases(effect, why) || why == Why::Doubt {
                    continue;
                }
                draft.note(Self::released(
                    effect,
                    why,
                    Release::Cancelled,
                    Decider::Rule,
                ));
            }
        }
        let Some(mut out) = self.outs.remove(&effect) else {
            return;
        };
        self.unqueue(effect, out.wish.agent);
        Self::quit_waiting(draft, &out);
        let world = out.touches_world();
        let runs = matches!(out.state, OutState::Running(_));
        match &out.state {
            OutState::Running(cancel) if cuts || !world => {
                cancel.cancel();
                if world {
                    draft.note(Note::Unknown(effect, out.attempt));
                } else if out.is_model() {
                    super::budget::abandon_spend(draft, &mut out);
                    self.withdraw(effect, out.attempt, &out);
                }
            }
            // The line of its attempt is on its way to the disk, and the attempt never begins.
            OutState::Starting(_) if world => {
                draft.note(Note::NotPerformed(effect, out.attempt));
            }
            _ => {}
        }
        // An effect that runs is not given up before it has reported its end.
        if let Some(tool) = out.tool()
            && (!runs || self.asks_about(&tool.tool))
        {
            self.leaves_in_doubt(draft, effect, &tool.tool);
        }
        drop(out.permit);
        self.retry_queued();
    }

    /// Writes a line, unless it is empty.
    pub(super) async fn write(&mut self, draft: Draft) -> Result<(), EngineError> {
        if draft.is_empty() {
            return Ok(());
        }
        self.write_together(vec![draft]).await
    }

    /// Writes lines of several branches in one batch: all of them are stored, or none.
    pub(super) async fn write_together(&mut self, drafts: Vec<Draft>) -> Result<(), EngineError> {
        let (mut all, mut then, mut last) = (Batch::default(), Vec::new(), self.next);
        for draft in drafts {
            last = draft.n;
            let (batch, follows) = self.prepared(draft).await?;
            all.rows.extend(batch.rows);
            all.consumed.extend(batch.consumed);
            all.events_taken.extend(batch.events_taken);
            all.waits.extend(batch.waits);
            all.needs = batch.needs.or(all.needs);
            all.labels.extend(batch.labels);
            all.info = batch.info.or(all.info);
            all.checkpoints.extend(batch.checkpoints);
            all.begins_unsafe |= batch.begins_unsafe;
            all.tells_accepted |= batch.tells_accepted;
            all.urgent |= batch.urgent;
            then.extend(follows);
        }
        let bytes = all.rows.iter().map(|r| r.bytes.len()).sum();
        self.room(all.rows.len() as u64, bytes).await?;
        self.writer.append(last, all);
        for then in then {
            self.writer.when_durable(last, then);
        }
        Ok(())
    }

    /// Encodes a line for the store and folds it into the owner's state. Returns the batch, and the actions to take when it is
    /// on disk.
    async fn prepared(&mut self, mut draft: Draft) -> Result<(Batch, Vec<OnDisk>), EngineError> {
        let mut tells_accepted = false;
        if !self.claimed {
            self.claimed = true;
            let process = &self.engine.0.options.process;
            let claimed = process.claimed(self.claim.epoch, self.mark);
            let accepted = self.claim.accepted.take();
            tells_accepted = accepted.is_some();
            let accepted =
                accepted.map(|StoreAccepted { at, was }| LedgerEntry::StoreAccepted { at, was });
            draft
                .ledger
                .splice(0..0, [claimed].into_iter().chain(accepted));
        }
        let id = draft.branch.expect("a draft names its branch");
        let now = self.now(id);
        self.name_holds(&mut draft);
        self.take_back_waits(&mut draft);
        let branch = self
            .branches
            .get_mut(&id)
            .expect("only a branch that has ticks is written to");
        let mut line = LogLine {
            n: draft.n,
            at: draft.at.unwrap_or(now),
            prev: branch.prev,
            branch: id,
            commit: draft.commit,
            ledger: draft.ledger,
            bodies: draft.bodies,
        };
        let blobs = codec::spill(&mut line);
        let (bytes, hash) = codec::encode(&line, &branch.hash, &self.claim.salt);
        let what = || format!("line {} of session `{}`", line.n, self.session);
        store::within(what, bytes.len())?;
        store_made(&**self.engine.store(), draft.contents).await?;
        for (hash, text) in blobs {
            self.past.add_blob(hash, text.clone());
            let bytes: Arc<[u8]> = text.as_bytes().into();
            self.engine.store().put_blob(hash, bytes).await?;
        }
        (branch.prev, branch.hash) = (line.n, hash);
        if draft.folds {
            branch.snapshot = fold(branch.snapshot.clone(), &line);
        }
        self.ledger.fold(&line, &hash);
        self.made_line(&line);
        self.look_behind();
        let line = Arc::new(line);
        self.past.add(line.clone());
        self.next = line.n.next();
        let mut batch = Batch {
            rows: vec![Row {
                n: line.n,
                bytes: bytes.into(),
            }],
            consumed: draft.consumed,
            dropped: Vec::new(),
            events_taken: draft.events_taken,
            waits: draft.waits,
            labels: self.labels(&line),
            info: None,
            needs: self.changed_needs(),
            checkpoints: Vec::new(),
            begins_unsafe: draft.begins_unsafe,
            tells_accepted,
            urgent: draft.urgent || self.is_step(),
        };
        for id in &draft.ready {
            self.to_start.insert(*id);
        }
        self.know_left().await?;
        batch.info = self.changed_info(now);
        self.add_checkpoints(&mut batch, id, line.n);
        Ok((batch, draft.then))
    }

    /// Copies the subject of each hold into the entry that ends it, so that readers of the log need not look for the hold.
    fn name_holds(&self, draft: &mut Draft) {
        for entry in &mut draft.ledger {
            if let LedgerEntry::Released {
                effect, why, about, ..
            } = entry
                && let Some(hold) = self.ledger.hold(*effect, *why)
            {
                about.clone_from(&hold.about);
            }
        }
    }

    /// Adds the checkpoints that are due: of the ledger, and of the branch that was written to.
    fn add_checkpoints(&mut self, batch: &mut Batch, id: Id, at: Line) {
        let bytes: usize = batch.rows.iter().map(|r| r.bytes.len()).sum();
        let salt = self.claim.salt;
        let mut add = |of, since: &mut Since, make: &dyn Fn() -> Vec<u8>| {
            since.wrote(bytes);
            if !since.is_due() {
                return;
            }
            let bytes = make();
            if since.made(bytes.len()) {
                let bytes = bytes.into();
                batch.checkpoints.push((of, Checkpoint { at, bytes }));
            }
        };
        let ledger = &self.ledger;
        add(CheckpointOf::Ledger, &mut self.since, &|| {
            ledger.encode(&salt)
        });
        let branch = self.branches.get_mut(&id).expect("it was written to");
        let (snapshot, hash) = (&branch.snapshot, &branch.hash);
        add(CheckpointOf::Branch(id), &mut branch.since, &|| {
            checkpoint::encode_snapshot(snapshot, at, hash, &salt)
        });
    }

    /// Returns the labels that this line changed, as the store keeps them: only those of the current branch. If another branch
    /// becomes current, returns all of its labels.
    fn labels(&self, line: &LogLine) -> Vec<(Name, Option<Arc<str>>)> {
        let becomes = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Current(_));
        let current = self.branches.get(&self.ledger.current);
        if let (true, Some(current)) = (line.ledger.iter().any(becomes), current) {
            let known = self.branches.values();
            let known = known.flat_map(|branch| branch.snapshot.labels.keys());
            let names: BTreeSet<&Name> = known.chain(self.network().labels.keys()).collect();
            let now = |name: &Name| {
                current
                    .snapshot
                    .labels
                    .get(name)
                    .map(|b| self.past.text(*b))
            };
            return names
                .into_iter()
                .map(|name| (name.clone(), now(name)))
                .collect();
        }
        if line.branch != self.ledger.current {
            return Vec::new();
        }
        let changed = line.commit.iter().flat_map(Commit::labels);
        changed
            .map(|(name, body)| (name.clone(), body.map(|b| self.past.text(b))))
            .collect()
    }

    /// Translates offers into the machine's terms: raw outcomes are mapped and sealed, and the ledger's facts are added.
    fn in_machine_terms(&self, id: Id, offers: &[Offer]) -> Result<Vec<Offered>, EngineError> {
        let mut offered = Vec::with_capacity(offers.len());
        for offer in offers {
            offered.push(match &offer.what {
                What::Offer(offered) => (**offered).clone(),
                What::Interrupt(said) => Offered::Interrupt {
                    message: said.clone(),
                    known: self.known(id)?,
                    shown: self.shown(id),
                },
                What::Cancel(what, by) => Offered::Cancel {
                    what: what.clone(),
                    by: by.clone(),
                    known: self.known(id)?,
                    shown: self.shown(id),
                },
                What::Raw {
                    effect,
                    attempt,
                    raw,
                    by,
                    simulated,
                } => {
                    let snapshot = &self.branches[&id].snapshot;
                    let mut mapped = self.mapped_in(snapshot, *effect, raw, None)?;
                    if let Some(by) = by {
                        mapped.by = Some(by.clone().into());
                    }
                    mapped.artifacts.extend(offer.came.iter().cloned());
                    if *simulated && mapped.how == How::Done {
                        mapped.how = How::Simulated;
                    }
                    Offered::Outcome {
                        effect: *effect,
                        attempt: *attempt,
                        outcome: Outcome::Mapped(mapped),
                    }
                }
            });
        }
        Ok(offered)
    }
}

/// Returns the estimated size of a step's line in bytes. All texts that can be blobs count as moved out of the line. The ledger
/// entries are estimated: one for each offer (its end), and one for each wish (a hold or a start).
fn measured(line: Line, branch: Id, step: &mut Step, offers: usize) -> usize {
    const NOTES: usize = 4 << 10;
    const NOTE: usize = 256;
    if step.commit.is_none() {
        return 0;
    }
    let made = LogLine {
        n: line,
        at: Time(0),
        prev: Line::NONE,
        branch,
        commit: step.commit.take(),
        ledger: Vec::new(),
        bodies: std::mem::take(&mut step.bodies),
    };
    let size = codec::least(&made) + NOTES + NOTE * (offers + step.wishes.len() + step.stop.len());
    (step.commit, step.bodies) = (made.commit, made.bodies);
    size
}

impl What {
    /// Returns the effect whose outcome this is.
    pub(super) fn effect(&self) -> Option<Id> {
        match self {
            Self::Raw { effect, .. } => Some(*effect),
            Self::Offer(offered) => match &**offered {
                Offered::Outcome { effect, .. } | Offered::Edited { effect, .. } => Some(*effect),
                _ => None,
            },
            Self::Interrupt(_) | Self::Cancel(..) => None,
        }
    }

    /// Returns the kind of the offer that this becomes.
    fn kind(&self) -> OfferKind {
        match self {
            Self::Raw { .. } => OfferKind::Outcome,
            Self::Interrupt(_) => OfferKind::Interrupt,
            Self::Cancel(..) => OfferKind::Cancel,
            Self::Offer(offered) => offered.kind(),
        }
    }
}

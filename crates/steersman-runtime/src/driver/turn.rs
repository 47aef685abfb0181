//! A turn of the driver on a branch (not a turn of an agent): one tick over the waiting offers, and the line with its result.

use super::draft::{Draft, Note, Offer};
use super::{Do, Job, OnDisk, OutState, Stop, What};
use crate::session::Fate;
use crate::store::{self, Batch, Checkpoint, CheckpointOf, Row, StoreAccepted};
use std::collections::BTreeSet;
use std::sync::Arc;
use steersman_machine::snapshot::{Snapshot, checkpoint};
use steersman_machine::stored::bounds::MAX_LINE;
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::codec;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::commit::{Commit, LedgerEntry, LogLine, Release, Why};
use steersman_machine::stored::ids::{Bodies, Id, Line, Name, Time};
use steersman_machine::stored::interaction::{How, Interaction, Target};
use steersman_machine::stored::outcome::{Failure, Outcome};
use steersman_machine::tick::effect::{OfferKind, Offered, Step, Until, Wish, Work};
use steersman_machine::tick::hooks::before_models;
use steersman_machine::tick::tick;

impl Job<'_, '_> {
    /// Offers a branch everything that arrived, and writes the resulting line, if there is one.
    pub(super) fn turn(&mut self, id: Id) -> Result<(), Stop> {
        let now = self.now(id);
        // Until the first line is written, only the message that starts the session is read. Read the others now.
        if self.is_to_begin() {
            self.d.mail.look();
        }
        let Some(mut offers) = self.d.branches.take_offers(id) else {
            return Ok(());
        };
        offers.sort_by_key(|offer| offer.what.kind());
        let mut offered = self.in_machine_terms(id, &offers)?;
        for offered in &mut offered {
            if let Offered::Outcome {
                outcome: Outcome::Mapped(mapped),
                ..
            } = offered
            {
                self.store_contents(mapped);
            }
        }
        match self.step_that_fits(id, now, &mut offers, &mut offered)? {
            Ok(step) if self.in_place && (may_want(&step, &offers) || self.may_repeat(&step)) => {
                self.d.branches.puts_back(id, offers);
                Err(Stop::Copy)
            }
            Ok(step) => self.take_step(id, step, offers, offered),
            Err(why) => {
                let mut draft = self.draft(id);
                for offer in offers {
                    self.refused(&mut draft, offer, why.clone());
                }
                self.write(draft)
            }
        }
    }

    /// Makes a tick, and asks the hooks before the model calls that it wishes.
    pub(super) fn ticked(
        &self,
        before: Snapshot,
        line: Line,
        now: Time,
        offered: &[Offered],
    ) -> Result<Step, Stop> {
        self.ask(|cx| {
            let mut step = tick(cx, before, line, now, offered);
            before_models(cx, &*self.seen.past, line, &mut step);
            step
        })
    }

    /// Returns true if a wish of a step may repeat an effect that may not be repeated. It is then answered with what the first
    /// one gave, which may be an artifact.
    fn may_repeat(&self, step: &Step) -> bool {
        let world = |wish: &Wish| matches!(&wish.work, Work::Tool(tool) if !tool.class.is_free());
        !self.seen.engine.0.options.user_reachable && step.wishes.iter().any(world)
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
    ) -> Result<Result<Step, String>, Stop> {
        let line = self.d.who.next();
        loop {
            let before = self.d.branches.live()[&id].snapshot.clone();
            let mut step = self.ticked(before, line, now, offered)?;
            let size = measured(line, id, &mut step, offers.len());
            if size <= MAX_LINE {
                return Ok(Ok(step));
            }
            if offers.len() > 1 {
                let half = offers.len() / 2;
                offered.truncate(half);
                self.d.branches.puts_back(id, offers.split_off(half));
                continue;
            }
            let why = format!("its line would have {size} bytes; a line has at most {MAX_LINE}");
            match &mut offered[..] {
                [Offered::Outcome { outcome, .. }] if !matches!(outcome, Outcome::Failed(_)) => {
                    *outcome = Outcome::Failed(Failure::new(FailureCode::Misfit, why));
                }
                _ if offers.iter().all(|offer| offer.message.is_some()) => return Ok(Err(why)),
                _ => {
                    let what = || format!("line {line} of session `{}`", self.d.who.session());
                    store::within(what, size)?;
                }
            }
        }
    }

    /// Finishes a step whose draft was begun by the caller.
    pub(super) fn finish_step(&mut self, id: Id, step: Step, mut draft: Draft) -> Result<(), Stop> {
        // Only these can make a wait for branches begin or end.
        let changes = draft
            .commit
            .as_ref()
            .is_some_and(|c| !c.calls.is_empty() || c.adoption.is_some() || c.opening.is_some());
        let waits = draft.commit.as_ref().is_some_and(|c| {
            c.pushes
                .iter()
                .any(|p| matches!(&p.what, Interaction::Call(call) if call.target == Target::Wait))
        });
        if changes || step.ended.is_some() || waits {
            self.d.branches.may_have_ended();
        }
        for effect in step.stop {
            self.stop_effect(&mut draft, effect);
        }
        for wish in step.wishes {
            self.take_wish(&mut draft, id, wish)?;
        }
        for request in step.requests {
            self.take_request(&mut draft, id, request);
        }
        if step.ended.is_some() {
            self.ended(&mut draft, id);
        }
        self.give_back_unused(&mut draft);
        self.write(draft)?;
        self.deadline(id)
    }

    fn take_step(
        &mut self,
        id: Id,
        mut step: Step,
        offers: Vec<Offer>,
        offered: Vec<Offered>,
    ) -> Result<(), Stop> {
        let moved = step.commit.is_some();
        let mut draft = Draft::of(self.d.who.next(), id, &mut step);
        self.d.branches.ticked(id, step.snapshot.clone());
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
                Some(Until::Stale) => self.stale(&mut draft, offer, &offered)?,
                Some(Until::Refused(why)) => self.refused(&mut draft, offer, why.into_owned()),
                Some(until) => {
                    again |= until == Until::Again;
                    self.keep(id, offer, until);
                }
            }
        }
        self.finish_step(id, step, draft)?;
        if again || moved {
            self.d.branches.moved(id);
        }
        Ok(())
    }

    fn taken(&mut self, draft: &mut Draft, offer: Offer) {
        let again = self.wished_again(draft, &offer);
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
        match (offer.message, offer.changed) {
            (Some(message), Some(changed)) => {
                let why = draft.asks_anew(again, &changed);
                draft.refuse(&message, &why);
                self.receipt(draft, &message.id, Fate::Refused(why));
            }
            (Some(message), None) => {
                draft.accept(&message);
                self.receipt(draft, &message.id, Fate::Taken(draft.n));
            }
            (None, _) => {}
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
    fn keep(&mut self, branch: Id, offer: Offer, until: Until) {
        if let Some(message) = &offer.message {
            let why = self.waits_for(branch, until);
            self.waits(message.id.clone(), why);
        }
        self.d.branches.keeps(branch, offer);
    }

    fn waits_for(&self, branch: Id, until: Until) -> String {
        let name = |agent: Id| {
            let snapshot = &self.d.branches.live()[&branch].snapshot;
            snapshot
                .agents
                .get(&agent)
                .map_or("?", |a| &*a.def)
                .to_owned()
        };
        match until {
            Until::Exchange(agent) => format!("`{}` has calls open", name(agent)),
            Until::Answered(agent) => format!("`{}` is being asked", name(agent)),
            Until::Again => "the next tick".to_owned(),
            Until::Stale => "nothing".to_owned(),
            Until::Refused(why) => why.into_owned(),
        }
    }

    /// Sends the receipt of a message to its sender, once the line is on disk.
    pub(super) fn receipt(&mut self, draft: &mut Draft, id: &Name, fate: Fate) {
        self.d.mail.accepts(id);
        draft.urgent |= self.seen.permits.is_awaited(id);
        draft.then.push(OnDisk::Receipt(id.clone(), fate));
    }

    /// Removes an effect that is over for its branch: frees its slot, its timer and its wait.
    pub(super) fn forget(&mut self, draft: &mut Draft, effect: Id) {
        let Some(out) = self.d.effects.ended(effect) else {
            return;
        };
        // A hold by an outage ends with the effect, even if the place was not asked again.
        if self.waits_for_its_place(effect) && !draft.releases(effect, Why::Outage) {
            draft.note(Self::released(
                effect,
                Why::Outage,
                Release::Cancelled,
                Decider::Rule,
            ));
        }
        Self::quit_waiting(draft, &out);
        self.gives_back(effect);
        self.retry_queued();
    }

    /// Gives back the slot and the turn of an effect that has not begun.
    fn gives_back(&mut self, effect: Id) {
        self.seen.permits.give_slot(effect);
        self.seen.permits.give_turn(effect);
    }

    /// Stops an effect that its branch no longer wants.
    pub(super) fn stop_effect(&mut self, draft: &mut Draft, effect: Id) {
        self.end_effect(draft, effect, true);
    }

    /// Removes an effect that no branch waits for any more. A running attempt that may change the world is cancelled only if `cuts`
    /// is true; any other one always.
    pub(super) fn end_effect(&mut self, draft: &mut Draft, effect: Id, cuts: bool) {
        if let Some(record) = self.d.ledger.effect(effect) {
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
        // Nobody can answer its question any more.
        let asks = self.d.effects.is_asking(effect);
        let Some(out) = self.d.effects.ended(effect) else {
            return;
        };
        Self::quit_waiting(draft, &out);
        let world = out.touches_world();
        let runs = asks || matches!(out.state, OutState::Running);
        match out.state {
            OutState::Running | OutState::Held if runs && (asks || cuts || !world) => {
                let attempt = out.attempt;
                self.out.orders.push(Do::Cut { effect, attempt });
                if world {
                    draft.note(Note::Unknown(effect, out.attempt));
                } else if out.is_model() {
                    self.abandon_spend(draft, &out);
                    self.withdraw(effect, out.attempt, (out.branch, out.wish.agent));
                }
            }
            // The line of its attempt is on its way to the disk, and the attempt never begins.
            OutState::Starting(_) if world => {
                draft.note(Note::NotPerformed(effect, out.attempt));
            }
            // Between two attempts, of which the first did steps.
            OutState::Held | OutState::Soon(_) if world && self.has_begun_steps(effect) => {
                draft.note(Note::Unknown(effect, out.attempt));
            }
            _ => {}
        }
        // An effect that runs is not given up before it has reported its end.
        if let Some(tool) = out.tool()
            && (!runs || self.asks_about(&tool.tool))
        {
            self.leaves_in_doubt(draft, effect, &tool.tool);
        }
        self.gives_back(effect);
        self.retry_queued();
    }

    /// Writes a line, unless it is empty.
    pub(super) fn write(&mut self, draft: Draft) -> Result<(), Stop> {
        if draft.is_empty() {
            return Ok(());
        }
        self.write_together(vec![draft])
    }

    /// Writes lines of several branches in one batch: all of them are stored, or none.
    pub(super) fn write_together(&mut self, drafts: Vec<Draft>) -> Result<(), Stop> {
        let (mut all, mut then, mut last) = (Batch::default(), Vec::new(), self.d.who.next());
        for draft in drafts {
            last = draft.n;
            let (batch, follows) = self.prepared(draft)?;
            all.rows.extend(batch.rows);
            all.blobs.extend(batch.blobs);
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
        self.append(last, all)?;
        for then in then {
            self.d.course.when_durable(last, then);
        }
        Ok(())
    }

    /// Queues a batch whose last row is `last`, as soon as it has room.
    fn append(&mut self, last: Line, mut batch: Batch) -> Result<(), Stop> {
        let lines = batch.rows.len() as u64;
        let bytes: usize = batch.rows.iter().map(|r| r.bytes.len()).sum();
        // A job in place has room for the two largest lines.
        debug_assert!(
            !self.in_place || self.out.batches.len() < self.made + 2,
            "a third line in place"
        );
        if !self.in_place && !self.has_room(lines, bytes) {
            return Err(Stop::Room);
        }
        batch.urgent = self.d.course.appends(lines, bytes, batch.urgent);
        // Contents that the job made before its lines
        batch.blobs.append(&mut self.out.blobs);
        self.seen.past.coming().add(last, &batch.blobs);
        self.out.batches.push((last, batch));
        Ok(())
    }

    /// Stores the contents that a job made and no line of it took along.
    pub(super) fn append_contents(&mut self) {
        if self.out.blobs.is_empty() {
            return;
        }
        let blobs = std::mem::take(&mut self.out.blobs);
        self.seen.past.coming().add(self.d.who.next(), &blobs);
        let batch = Batch {
            blobs,
            urgent: true,
            ..Batch::default()
        };
        self.out.batches.push((self.d.who.last(), batch));
    }

    /// Encodes a line for the store and folds it into the owner's state. Returns the batch, and the actions to take when it is
    /// on disk.
    fn prepared(&mut self, mut draft: Draft) -> Result<(Batch, Vec<OnDisk>), Stop> {
        let mut tells_accepted = false;
        if !self.d.who.has_claimed() {
            let accepted = self.d.who.claims();
            let process = &self.seen.engine.0.options.process;
            let claimed = process.claimed(self.d.who.claim().epoch, self.d.who.mark());
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
            .d
            .branches
            .live()
            .get(&id)
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
        let (bytes, hash) = codec::encode(&line, &branch.hash, &self.d.who.claim().salt);
        let what = || format!("line {} of session `{}`", line.n, self.d.who.session());
        store::within(what, bytes.len())?;
        let contents = draft.contents.into_iter().map(|content| {
            let hash = *blake3::hash(&content.bytes).as_bytes();
            (hash, content.bytes)
        });
        let mut contents: Vec<_> = contents.collect();
        for (hash, text) in blobs {
            contents.push((hash, text.as_bytes().into()));
            self.seen.past.add_blob(hash, text);
        }
        self.d.branches.wrote(&line, hash, draft.folds);
        self.d.ledger.fold(&line, &hash);
        if line.commit.is_some() {
            self.d.course.made_commit();
        }
        self.d.effects.look_behind();
        let line = Arc::new(line);
        self.seen.past.add(line.clone());
        self.d.who.wrote(line.n);
        let mut batch = Batch {
            rows: vec![Row {
                n: line.n,
                bytes: bytes.into(),
            }],
            rewritten: Vec::new(),
            blobs: contents,
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
            self.d.effects.wakes(*id);
        }
        self.know_left()?;
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
                && let Some(hold) = self.d.ledger.hold(*effect, *why)
            {
                about.clone_from(&hold.about);
            }
        }
    }

    /// Adds the checkpoints that are due: of the ledger, and of the branch that was written to.
    fn add_checkpoints(&mut self, batch: &mut Batch, id: Id, at: Line) {
        let bytes: usize = batch.rows.iter().map(|r| r.bytes.len()).sum();
        let (salt, ledger) = (self.d.who.claim().salt, &self.d.ledger);
        let of_ledger = self.d.who.checkpoint(bytes, || ledger.encode(&salt));
        let of_branch = self.d.branches.checkpoint(id, bytes, |snapshot, hash| {
            checkpoint::encode_snapshot(snapshot, at, hash, &salt)
        });
        let of_ledger = of_ledger.map(|bytes| (CheckpointOf::Ledger, bytes));
        let of_branch = of_branch.map(|bytes| (CheckpointOf::Branch(id), bytes));
        for (of, bytes) in of_ledger.into_iter().chain(of_branch) {
            let bytes = bytes.into();
            batch.checkpoints.push((of, Checkpoint { at, bytes }));
        }
    }

    /// Returns the labels that this line changed, as the store keeps them: only those of the current branch. If another branch
    /// becomes current, returns all of its labels.
    fn labels(&self, line: &LogLine) -> Vec<(Name, Option<Arc<str>>)> {
        let becomes = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Current(_));
        let current = self.d.branches.live().get(&self.d.ledger.current);
        if let (true, Some(current)) = (line.ledger.iter().any(becomes), current) {
            let known = self.d.branches.live().values();
            let known = known.flat_map(|branch| branch.snapshot.labels.keys());
            let names: BTreeSet<&Name> = known.chain(self.network().labels.keys()).collect();
            let now = |name: &Name| {
                current
                    .snapshot
                    .labels
                    .get(name)
                    .map(|b| self.seen.past.text(*b))
            };
            return names
                .into_iter()
                .map(|name| (name.clone(), now(name)))
                .collect();
        }
        if line.branch != self.d.ledger.current {
            return Vec::new();
        }
        let changed = line.commit.iter().flat_map(Commit::labels);
        changed
            .map(|(name, body)| (name.clone(), body.map(|b| self.seen.past.text(b))))
            .collect()
    }

    /// Translates offers into the machine's terms: raw outcomes are mapped and sealed, and the ledger's facts are added.
    fn in_machine_terms(&self, id: Id, offers: &[Offer]) -> Result<Vec<Offered>, Stop> {
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
                    let snapshot = &self.d.branches.live()[&id].snapshot;
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

/// Returns true if more than lines in memory may be needed to take a step: an outcome came too late, or an effect is stopped whose
/// outcome the step did not take.
fn may_want(step: &Step, offers: &[Offer]) -> bool {
    let is_left = |index| step.left.iter().any(|(left, _)| *left == index);
    let is_over = |effect| {
        let mut offers = offers.iter().enumerate();
        offers.any(|(index, offer)| offer.what.effect() == Some(effect) && !is_left(index))
    };
    let mut left = step.left.iter();
    step.stop.iter().any(|effect| !is_over(*effect))
        || left.any(|(_, until)| *until == Until::Stale)
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
                Offered::Outcome { effect, .. }
                | Offered::Edited { effect, .. }
                | Offered::Anew { effect, .. } => Some(*effect),
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

//! A place that does not answer: calls of its models are held, and made when it answers again.
//!
//! The hold is written once and stays open while the place is tried. A try writes only its possible cost, and only if spending is
//! limited. In memory a held call has a seat at the limiter of its place ([`Limiter::wait`]), also while its session is parked.
//! After a takeover the call takes a new seat, with the start time from the log.

use super::draft::{Draft, NewHold, Note};
use super::{Job, OutState, Stop};
use crate::limiter::{Ask, Limiter};
use crate::retry;
use std::sync::Arc;
use steersman_machine::context::Request;
use steersman_machine::network::{ANYBODY, ModelRetry, SCRIPTED};
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::codes::{FailureCode, PlaceState};
use steersman_machine::stored::commit::{About, Hold, LedgerEntry, Release, Why};
use steersman_machine::stored::ids::{Digest, Id, Name};
use steersman_machine::stored::outcome::{Failure, Outcome, Retry};

/// Returns true if a failure means that the place does not answer and that waiting may help. `held`: the call waits for its place
/// already.
fn is_outage(failure: &Failure, held: bool) -> bool {
    let mended = match failure.retry {
        Retry::Never => false,
        Retry::Policy => true,
        Retry::After(asked) => asked <= retry::LONGEST,
    };
    mended
        && match failure.place() {
            PlaceState::Down => true,
            PlaceState::Broken => held,
            PlaceState::Busy | PlaceState::Answers | PlaceState::Unknown => false,
        }
}

impl Job<'_, '_> {
    /// Returns true if a call is held because its place does not answer.
    pub(super) fn waits_for_its_place(&self, id: Id) -> bool {
        self.d.ledger.hold(id, Why::Outage).is_some()
    }

    /// Returns the retry settings of the model that the agent asks or, with `of_rung`, of the model in its chain that is asked
    /// now.
    pub(super) fn model_retry(&self, id: Id, of_rung: bool) -> ModelRetry {
        let network = self.network();
        let out = self.d.effects.out(id);
        let asked = out.and_then(|out| {
            let chain = network.chain(out.asked.as_ref()?);
            chain.get(if of_rung { out.rung } else { 0 }).copied()
        });
        let def = asked.and_then(|name| network.models.get(name));
        def.map_or_else(ModelRetry::default, |def| def.retry)
    }

    /// Notes the place if a failure means that it does not answer. Scripted models have no place.
    pub(super) fn notes_outage(&mut self, id: Id, failure: &Failure) -> bool {
        if !is_outage(failure, self.waits_for_its_place(id)) {
            return false;
        }
        let bound = self.bound_of(id).filter(|b| *b.provider != *SCRIPTED);
        let models = &self.network().models;
        let Some(place) = bound.map(|bound| bound.place(models.get(&bound.name))) else {
            return false;
        };
        self.d.effects.goes_down(id, place, failure);
        true
    }

    /// Handles a call for which the whole chain was asked. If one of its places did not answer, the call waits for that place;
    /// returns false if the call fails.
    pub(super) fn waits_for_place(&mut self, id: Id, lost: Option<Note>) -> Result<bool, Stop> {
        let Some((place, failure)) = self.d.effects.pass_is_over(id) else {
            return Ok(false);
        };
        let now = self.seen.now;
        // A rerun skips waits, and a place that does not answer now does not answer after a skip either.
        let within = match self.seen.engine.0.recorded {
            Some(_) => 0,
            None => self.model_retry(id, false).outage,
        };
        let held = self.d.ledger.hold(id, Why::Outage);
        let (is_held, until) = match held {
            Some(hold) => (true, hold.due),
            None => (false, Some(now.plus(within))),
        };
        if !is_held && within == 0 {
            return Ok(false);
        }
        let mut draft = self.draft(self.d.effects.outs()[&id].branch);
        if let Some(lost) = lost {
            draft.note(lost);
        }
        self.d.effects.asks_first_model(id);
        self.d.effects.holds(id);
        self.seen.permits.give_slot(id);
        self.give_back_reserved(&mut draft);
        if is_held && until.is_some_and(|until| until <= now) {
            self.write(draft)?;
            self.outage_expired(id);
            return Ok(true);
        }
        if !is_held {
            let Failure { code, message, .. } = &failure;
            let ask = format!("`{place}` does not answer ({code}: {message})");
            draft.ledger.push(LedgerEntry::Outage {
                effect: id,
                since: now,
            });
            draft.hold(NewHold {
                effect: id,
                why: Why::Outage,
                digest: Digest::of(place.as_bytes()),
                by: vec![ANYBODY.into()],
                ask: Some(&ask),
                due: until,
                about: Some(About::Place(place)),
            });
        }
        self.d.effects.waits_for_place(id, is_held, now);
        self.retry_queued();
        self.write(draft)?;
        // The call takes its seat when it is started ([`Job::takes_seat`]).
        self.d.effects.tries_now(id, now);
        Ok(true)
    }

    /// Gives back drawn escrow if no model call is under way.
    pub(super) fn give_back_reserved(&mut self, draft: &mut Draft) {
        let under_way = self
            .d
            .effects
            .outs()
            .values()
            .filter(|out| out.is_model())
            .any(|out| {
                !matches!(
                    out.state,
                    OutState::Held | OutState::AwaitsSearch | OutState::Over
                )
            });
        if !under_way && !self.d.ledger.slice.is_zero() {
            self.settle(draft);
        }
    }

    /// Returns true if a call that is about to begin has to wait for its place; it then has a seat there.
    pub(super) fn takes_seat(
        &mut self,
        id: Id,
        request: &Request,
        place: impl FnOnce(&Self, &Request) -> Result<(Arc<Limiter>, Ask), String>,
    ) -> bool {
        let is_next = self.seen.permits.has_turn(id);
        if !self.waits_for_its_place(id) || is_next || self.d.effects.passes_outage(id) {
            return false;
        }
        if !self.seen.permits.is_seated(id) {
            // The error is reported when the call begins.
            let Ok((limiter, ask)) = place(self, request) else {
                return false;
            };
            let parked = self.d.ledger.effect(id).and_then(|record| record.down);
            let parked = parked.unwrap_or(self.d.effects.outs()[&id].since);
            self.d.effects.asks_for_seat(id, limiter, ask, parked);
        }
        let seat = self.d.effects.seat(id);
        if seat.is_none_or(|seat| self.seen.permits.seat(seat)) {
            return false;
        }
        self.d.effects.holds(id);
        true
    }

    /// Gives seats to all calls that wait for their places. While nothing may begin, all seats and turns are given up: a call
    /// that gets its turn has to use it.
    pub(crate) fn before_wait(&mut self) {
        let ledger = &self.d.ledger;
        let held = |id| ledger.hold(id, Why::Outage).is_some();
        self.d.effects.keep_outages(held);
        let leaves = self.seen.permits;
        if self.is_halted() || self.is_between_steps() {
            leaves.keep_seats(&|_| false);
            for (id, out) in self.d.effects.outs() {
                if out.is_model() {
                    leaves.give_turn(*id);
                }
            }
            return;
        }
        leaves.keep_seats(&|id| self.d.effects.is_in_outage(id));
        for (id, out) in self.d.effects.outs() {
            if out.state == OutState::Held
                && let Some(seat) = self.d.effects.seat(*id)
            {
                leaves.sit(seat);
            }
        }
    }

    /// Returns a place for which calls wait.
    pub(super) fn place_out(&self) -> Option<Name> {
        let mut held = self
            .d
            .effects
            .outs()
            .iter()
            .filter_map(|(id, out)| match out.state {
                OutState::Held => place_of(self.d.ledger.hold(*id, Why::Outage)?),
                _ => None,
            });
        held.next()
    }

    /// Lets a held call begin: its place answers, or this call is the one that tries the place.
    pub(super) fn place_calls(&mut self, id: Id) {
        let now = self.seen.now;
        let out = self.d.effects.out(id);
        if out.is_none_or(|out| out.state == OutState::Over) {
            self.seen.permits.refuse(id);
            return;
        }
        self.d.effects.tries_now(id, now);
        self.seen.permits.accept(id);
        self.busy();
    }

    /// Returns the note that ends the hold of a call that was answered, or that failed for another reason.
    pub(super) fn outage_over(&mut self, id: Id) -> Option<Note> {
        self.d.effects.outage_ends(id);
        let held = self.waits_for_its_place(id);
        held.then(|| Self::released(id, Why::Outage, Release::Go, Decider::Place))
    }

    /// Gives up the turn of a call that its own session does not let begin. If the call has another hold, the hold for its place
    /// ends.
    pub(super) fn leave_seat(&mut self, id: Id) -> Result<(), Stop> {
        self.seen.permits.give_turn(id);
        if self.d.effects.outs()[&id].state != OutState::Held {
            return Ok(());
        }
        let Some(note) = self.outage_over(id) else {
            return Ok(());
        };
        let mut draft = self.draft(self.d.effects.outs()[&id].branch);
        draft.note(note);
        self.write(draft)
    }

    /// Fails a call whose place did not answer within its waiting time.
    pub(super) fn outage_expired(&mut self, id: Id) {
        let now = self.seen.now;
        let hold = self.d.ledger.hold(id, Why::Outage);
        let place = hold.and_then(place_of);
        let place = place.unwrap_or_else(|| "its place".into());
        let since = self.d.ledger.effect(id).and_then(|record| record.down);
        let since = since.unwrap_or(now);
        let said = hold.and_then(|hold| hold.ask);
        let said =
            said.map(|said| steersman_machine::stored::ids::Bodies::text(&*self.seen.past, said));
        // The timer rings a little after its time.
        let over = hold.and_then(|hold| hold.due).unwrap_or(now);
        let waited = u64::try_from(over.0.saturating_sub(since.0)).unwrap_or(0);
        let message = format!(
            "no answer since {}, for {}: as long as its `retry.for` says. First: {}",
            crate::beside::shown(since),
            span(waited),
            said.as_deref().unwrap_or(&place),
        );
        let failure = Failure::new(FailureCode::Outage, message);
        self.d.effects.outage_ends(id);
        let note = Self::released(id, Why::Outage, Release::Expired, Decider::Timeout);
        self.answer_outcome(id, Outcome::Failed(failure), vec![note]);
    }

    /// Returns the calls that wait for a place that does not answer: this one, or all.
    pub(super) fn held_by_places(&self, effect: Option<Id>) -> Vec<Id> {
        let selected =
            |id: &Id| effect.is_none_or(|wanted| wanted == *id) && self.waits_for_its_place(*id);
        self.d
            .effects
            .outs()
            .keys()
            .copied()
            .filter(selected)
            .collect()
    }

    /// Tries held calls now, on request of a person: as soon as the circuit breaker lets one through.
    pub(super) fn try_places(&mut self, held: Vec<Id>) {
        let now = self.seen.now;
        for id in held {
            self.d.effects.tries_place(id);
            self.seen.permits.leave_seat(id);
            if matches!(self.d.effects.outs()[&id].state, OutState::Held) {
                self.d.effects.tries_now(id, now);
            }
        }
    }
}

/// Returns the place that a hold waits for.
fn place_of(hold: &Hold) -> Option<Name> {
    hold.about.as_ref()?.place().cloned()
}

/// Formats a duration as `24 h`, `90 min` or `40 s`: in the largest unit that gives a whole number, otherwise in seconds.
pub(super) fn span(millis: u64) -> String {
    let seconds = millis.div_ceil(1_000);
    match seconds {
        s if s > 0 && s.is_multiple_of(3_600) => format!("{} h", s / 3_600),
        s if s > 0 && s.is_multiple_of(60) => format!("{} min", s / 60),
        s => format!("{s} s"),
    }
}

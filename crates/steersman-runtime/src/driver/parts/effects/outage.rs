//! Model calls whose places do not answer, and the seats where they wait.

use super::{Effects, Id, Name, Time};
use crate::limiter::{Ask, Limiter, OPEN, OPEN_MAX, Since};
use std::sync::Arc;
use steersman_machine::stored::outcome::Failure;

/// Data of a call whose place does not answer, or did not answer a moment ago.
#[derive(Clone, Default)]
pub(super) struct Outage {
    /// First place that did not answer in the present pass through the chain, with its failure.
    down: Option<(Name, Failure)>,
    /// Number of tries since the call is held.
    tries: u32,
    /// Earliest time of the next try. Needed if the place answers other calls: then its circuit breaker is closed and lets every
    /// call through.
    pause: Option<Time>,
    /// The limiter where the call waits, its request there, and the time since when it waits.
    gate: Option<(Arc<Limiter>, Ask, Time)>,
}

/// A seat that a held model call wants at the limiter of its place.
pub(crate) struct Seat {
    pub(crate) effect: Id,
    pub(crate) limiter: Arc<Limiter>,
    pub(crate) ask: Ask,
    pub(crate) since: Since,
    /// The seat is taken at this time, not before.
    pub(crate) pause: Option<Time>,
}

/// Places that do not answer.
impl Effects {
    fn outage(&self, id: Id) -> Option<&Outage> {
        self.out(id)?.outage.as_deref()
    }

    /// Returns the outage of a call, which begins if it had none.
    fn in_outage(&mut self, id: Id) -> &mut Outage {
        self.get_mut(id).outage.get_or_insert_default()
    }

    /// Returns true if the place of a call does not answer, or did not answer a moment ago.
    pub(crate) fn is_in_outage(&self, id: Id) -> bool {
        self.outage(id).is_some()
    }

    /// Returns true if a place did not answer in the present pass of a call through its chain.
    pub(crate) fn passes_outage(&self, id: Id) -> bool {
        self.outage(id).is_some_and(|outage| outage.down.is_some())
    }

    /// Returns the seat that a call wants, if it was about to begin.
    pub(crate) fn seat(&self, id: Id) -> Option<Seat> {
        let outage = self.outage(id)?;
        let (limiter, ask, parked) = outage.gate.clone()?;
        let tries = outage.tries;
        Some(Seat {
            effect: id,
            limiter,
            ask,
            since: Since { parked, tries },
            pause: outage.pause,
        })
    }

    /// A place did not answer a call. The first failure of a pass is the one to tell.
    pub(crate) fn goes_down(&mut self, id: Id, place: Name, failure: &Failure) {
        let outage = self.in_outage(id);
        outage.down.get_or_insert_with(|| (place, failure.clone()));
    }

    /// The pass of a call through its chain is over. Returns the first place that did not answer, with its failure.
    pub(crate) fn pass_is_over(&mut self, id: Id) -> Option<(Name, Failure)> {
        self.get_mut(id).outage.as_mut()?.down.take()
    }

    /// A call waits for its place until the next try. `again`: it was held before, and this try failed.
    pub(crate) fn waits_for_place(&mut self, id: Id, again: bool, now: Time) {
        let outage = self.in_outage(id);
        outage.gate = None;
        outage.tries += u32::from(again);
        outage.pause = Some(now.plus(pause(outage.tries)));
    }

    /// A held call that is about to begin asks for a seat.
    pub(crate) fn asks_for_seat(&mut self, id: Id, limiter: Arc<Limiter>, ask: Ask, since: Time) {
        let outage = self.in_outage(id);
        if limiter.is_open() {
            outage.pause = None;
        }
        outage.gate = Some((limiter, ask, since));
    }

    /// A person wants the place of a call to be tried now.
    pub(crate) fn tries_place(&mut self, id: Id) {
        let outage = self.in_outage(id);
        (outage.pause, outage.tries) = (None, 0);
    }

    /// The outage of a call is over: it was answered, or failed for good.
    pub(crate) fn outage_ends(&mut self, id: Id) {
        if let Some(out) = self.outs.get_mut(&id) {
            out.outage = None;
        }
    }

    /// Forgets the outages of calls that do not wait for their places any more. `held`: the call is held for its place.
    pub(crate) fn keep_outages(&mut self, held: impl Fn(Id) -> bool) {
        for (id, out) in &mut self.outs {
            let over = |outage: &mut Box<Outage>| outage.down.is_none() && !held(*id);
            out.outage.take_if(over);
        }
    }
}

/// Returns the time between two tries at a place where other calls are answered, in milliseconds.
fn pause(tries: u32) -> u64 {
    OPEN.saturating_mul(1 << tries.min(16)).min(OPEN_MAX)
}

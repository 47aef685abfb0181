//! Model calls whose places do not answer, and the seats where they wait.

use crate::limiter::{Ask, Limiter, OPEN, OPEN_MAX, Since};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Name, Time};
use steersman_machine::stored::outcome::Failure;

/// Calls whose places do not answer, or did not answer a moment ago.
///
/// Invariant: before the executor waits ([`Outages::keep`]), each call is out, and is held for its place or tries the models of its
/// chain. Between two waits a call may be here that was answered or cancelled meanwhile.
#[derive(Clone, Default)]
pub(crate) struct Outages(BTreeMap<Id, Outage>);

/// A call whose place does not answer.
#[derive(Clone, Default)]
struct Outage {
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

impl Outages {
    /// Returns true if a place did not answer in the present pass of a call through its chain.
    pub(crate) fn is_under_way(&self, id: Id) -> bool {
        self.0.get(&id).is_some_and(|outage| outage.down.is_some())
    }

    /// Returns the seat that a call wants, if it was about to begin.
    pub(crate) fn seat(&self, id: Id) -> Option<Seat> {
        let outage = self.0.get(&id)?;
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

    pub(crate) fn contains(&self, id: Id) -> bool {
        self.0.contains_key(&id)
    }

    /// Returns all calls, by id.
    pub(crate) fn calls(&self) -> impl Iterator<Item = Id> {
        self.0.keys().copied()
    }

    /// A place did not answer a call. The first failure of a pass is the one to tell.
    pub(crate) fn goes_down(&mut self, id: Id, place: Name, failure: &Failure) {
        let outage = self.0.entry(id).or_default();
        outage.down.get_or_insert_with(|| (place, failure.clone()));
    }

    /// The pass of a call through its chain is over. Returns the first place that did not answer, with its failure.
    pub(crate) fn pass_is_over(&mut self, id: Id) -> Option<(Name, Failure)> {
        self.0.get_mut(&id)?.down.take()
    }

    /// A call waits for its place until the next try. `again`: it was held before, and this try failed.
    pub(crate) fn waits(&mut self, id: Id, again: bool, now: Time) {
        let outage = self.0.entry(id).or_default();
        outage.gate = None;
        outage.tries += u32::from(again);
        outage.pause = Some(now.plus(pause(outage.tries)));
    }

    /// A held call that is about to begin asks for a seat.
    pub(crate) fn asks(&mut self, id: Id, limiter: Arc<Limiter>, ask: Ask, since: Time) {
        let outage = self.0.entry(id).or_default();
        if limiter.is_open() {
            outage.pause = None;
        }
        outage.gate = Some((limiter, ask, since));
    }

    /// A person wants a call to be tried now.
    pub(crate) fn tries_now(&mut self, id: Id) {
        let outage = self.0.entry(id).or_default();
        (outage.pause, outage.tries) = (None, 0);
    }

    /// The outage of a call is over: it was answered, or failed for good.
    pub(crate) fn ends(&mut self, id: Id) {
        self.0.remove(&id);
    }

    /// Forgets calls that do not wait for a place any more. `waits`: the call is out, with true if it is held for its place.
    pub(crate) fn keep(&mut self, waits: impl Fn(Id) -> Option<bool>) {
        self.0
            .retain(|id, outage| waits(*id).is_some_and(|held| held || outage.down.is_some()));
    }
}

/// Returns the time between two tries at a place where other calls are answered, in milliseconds.
fn pause(tries: u32) -> u64 {
    OPEN.saturating_mul(1 << tries.min(16)).min(OPEN_MAX)
}

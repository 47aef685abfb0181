//! The quotas port: how much of a limit several workers have used together.

use super::StoreError;
use crate::Boxed;
use steersman_machine::stored::ids::{Name, Time};

/// Limits that all workers of a store share: calls of a place in a span of time, or money of a tenant. A worker draws a part of a
/// limit before it uses it, and asks the store again when the part is used up.
pub trait Quotas: Send + Sync + 'static {
    /// Draws at most `wanted` units, in one step for all workers: together they never draw more than the limit.
    fn draw<'a>(
        &'a self,
        limit: &'a Limit,
        wanted: u64,
        now: Time,
    ) -> Boxed<'a, Result<Drawn, StoreError>>;

    /// Returns the units that are drawn in the window that is open at a time. Nothing is drawn for it.
    fn drawn<'a>(&'a self, limit: &'a Limit, now: Time) -> Boxed<'a, Result<u64, StoreError>>;

    /// Returns units that were drawn and not used, if the window that they were drawn from ([`Drawn::opens`]) is still open.
    fn give_back<'a>(&'a self, limit: &'a Limit, drawn: Drawn)
    -> Boxed<'a, Result<(), StoreError>>;

    /// Makes a pause known to all workers: a place wants no calls of a model until a time. A pause that is known already and ends
    /// later stays.
    fn pause(&self, pause: Pause) -> Boxed<'_, Result<(), StoreError>>;

    /// Returns the pauses that are not over, by place and model.
    fn pauses(&self, now: Time) -> Boxed<'_, Result<Vec<Pause>, StoreError>>;
}

/// A limit that workers share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Digest of what is limited: a place of models or tools, or a tenant and the name of its budget.
    pub place: [u8; 32],
    /// Name of the limit at this place, such as `requests` or `tokens`.
    pub rate: Name,
    /// Maximum number of units of a window.
    pub most: u64,
    /// Length of a window in milliseconds. `None` means that the limit has one window without an end.
    pub within: Option<u64>,
}

impl Limit {
    /// Returns true if a window that opened at a time is over. A window that opens more than its length in the future is over too:
    /// the clock was set back. One that opens sooner is not, so that two workers whose clocks differ do not open it again and
    /// again.
    pub fn is_over(&self, opens: Time, now: Time) -> bool {
        let open = |within| opens <= now.plus(within) && now < opens.plus(within);
        self.within.is_some_and(|within| !open(within))
    }
}

/// Units that a worker may use.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Number of units; 0 if the window is used up.
    pub units: u64,
    /// Time at which the window opened.
    pub opens: Time,
}

/// A place that wants no calls of a model for a while.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pause {
    /// Digest of the place.
    pub place: [u8; 32],
    /// Name of the model; empty for all calls.
    pub model: Name,
    /// Time until which no call is wanted.
    pub until: Time,
}

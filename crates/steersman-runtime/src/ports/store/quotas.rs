//! The quotas port: how much of a limit several workers have used together.

use super::StoreError;
use crate::Boxed;
use steersman_machine::stored::ids::{Name, Time};

/// Limits that all workers of a store share: calls of a place in a span of time, or money of a tenant. A worker draws a part of a
/// limit before it uses it, and asks the store again when the part is used up.
///
/// Each limit has windows, such as the days of a budget. The time at which a window opens names it, so the clock of a worker, which may
/// jump, decides only which window is meant. What was drawn from a window stays known while others are drawn from: a store keeps the
/// last [`WINDOWS`] windows of each limit.
pub trait Quotas: Send + Sync + 'static {
    /// Draws at most `wanted` units of the window that opens at a time, in one step for all workers: together they never draw more
    /// from it than the limit.
    fn draw<'a>(
        &'a self,
        limit: &'a Limit,
        wanted: u64,
        opens: Time,
    ) -> Boxed<'a, Result<Drawn, StoreError>>;

    /// Returns the units that are drawn of the window that opens at a time. Nothing is drawn for it.
    fn drawn<'a>(&'a self, limit: &'a Limit, opens: Time) -> Boxed<'a, Result<u64, StoreError>>;

    /// Returns units that were drawn and not used to the window that they were drawn from ([`Drawn::opens`]), if it is still known.
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
}

/// Number of windows of a limit that a store keeps: the one that was drawn from last, and those before it. A clock that is wrong for a
/// while opens one more window in each period, so what was drawn of the right one is known when the clock is right again.
pub const WINDOWS: usize = 8;

/// Units that a worker may use.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Number of units; 0 if the window is used up.
    pub units: u64,
    /// Time at which the window opens.
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

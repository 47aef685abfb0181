//! The schedules port: definitions that begin sessions at times.

use super::StoreError;
use crate::Boxed;
use steersman_machine::stored::ids::{Name, Time};

/// Schedules of networks. A worker that finds a due schedule begins a session with the occasion as its key, and then moves the
/// schedule to its next time.
pub trait Schedules: Send + Sync + 'static {
    /// Stores a schedule, in place of the one with its id. If that one has the same digest, it stays as it is. Returns true if
    /// anything changed.
    fn put_schedule(&self, schedule: Schedule) -> Boxed<'_, Result<bool, StoreError>>;

    /// Deletes a schedule. Returns false if there is none.
    fn drop_schedule<'a>(&'a self, id: &'a ScheduleId) -> Boxed<'a, Result<bool, StoreError>>;

    /// Returns at most `limit` schedules whose next time is at or before `by`, those that are due first come first. `None` means
    /// all schedules, by id.
    fn schedules(
        &self,
        by: Option<Time>,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Schedule>, StoreError>>;

    /// Moves a schedule on when an occasion is over: from its next time `at` to `next`. `missed` occasions between them began no
    /// session. Returns false, and changes nothing, if the schedule is gone or `at` is not its next time.
    fn move_schedule<'a>(
        &'a self,
        id: &'a ScheduleId,
        at: Time,
        next: Option<Time>,
        missed: u64,
    ) -> Boxed<'a, Result<bool, StoreError>>;
}

/// The identity of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScheduleId {
    /// The tenant of the sessions that begin.
    pub tenant: Name,
    /// Name of the network that they run.
    pub network: Name,
    /// Name of the schedule in the definition of the network.
    pub name: Name,
}

/// A schedule of a network: its times, and how many of them were missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Tenant, network and name.
    pub id: ScheduleId,
    /// Digest of what the definition says about it. A schedule with another digest starts again.
    pub digest: [u8; 32],
    /// Time of the next occasion. `None` means that there is none.
    pub next: Option<Time>,
    /// Time of the last occasion, if there was one.
    pub last: Option<Time>,
    /// Number of occasions in its life that began no session, because no process ran.
    pub missed: u64,
}

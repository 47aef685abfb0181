//! The clock port. Time reaches the machine only as the recorded time of a commit.

use crate::Boxed;
use steersman_machine::ids::Time;

/// Tells the time and waits for it.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Time;
    /// Ends at or after that time by this clock (a clock that jumps forward ends it early).
    fn sleep_until(&self, until: Time) -> Boxed<'static, ()>;
}

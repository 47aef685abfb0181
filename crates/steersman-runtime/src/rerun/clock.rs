//! The clock of a rerun: it begins at the time of the recording and runs as fast as the engine's clock; waits are skipped.

use crate::Boxed;
use crate::clock::Clock;
use std::sync::{Arc, Mutex, PoisonError};
use steersman_machine::stored::ids::Time;
use tokio::sync::Notify;

#[derive(Clone)]
pub(crate) struct RerunClock(Arc<State>);

struct State {
    below: Arc<dyn Clock>,
    /// Milliseconds added to the time of the clock below.
    ahead: Mutex<i64>,
    jumped: Notify,
}

/// Longest sleep, in milliseconds, before the remaining time is computed again.
const LOOK_AGAIN: u64 = 1_000;

impl RerunClock {
    pub(crate) fn at(below: Arc<dyn Clock>, now: Time) -> Self {
        let ahead = now.0.saturating_sub(below.now().0);
        Self(Arc::new(State {
            below,
            ahead: Mutex::new(ahead),
            jumped: Notify::new(),
        }))
    }

    /// Moves the clock forward to this time, if it is in the future.
    pub(crate) fn skip_to(&self, time: Time) {
        let left = time.0.saturating_sub(self.now().0);
        if left > 0 {
            *self.0.ahead.lock().unwrap_or_else(PoisonError::into_inner) += left;
            self.0.jumped.notify_waiters();
        }
    }
}

impl Clock for RerunClock {
    fn now(&self) -> Time {
        let ahead = *self.0.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        Time(self.0.below.now().0.saturating_add(ahead))
    }

    fn sleep_until(&self, until: Time) -> Boxed<'static, ()> {
        let clock = self.clone();
        Box::pin(async move {
            loop {
                let jumped = clock.0.jumped.notified();
                tokio::pin!(jumped);
                // Registered before the check, so that a jump between them is not missed.
                jumped.as_mut().enable();
                let left = u64::try_from(until.0.saturating_sub(clock.now().0)).unwrap_or(0);
                if left == 0 {
                    return;
                }
                tokio::select! {
                    () = jumped => {}
                    () = clock.0.below.sleep(left.min(LOOK_AGAIN)) => {}
                }
            }
        })
    }

    fn sleep(&self, millis: u64) -> Boxed<'static, ()> {
        self.0.below.sleep(millis)
    }
}

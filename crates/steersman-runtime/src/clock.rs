//! The clock port. Time reaches the machine only as the recorded time of a commit.

use crate::Boxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steersman_machine::ids::Time;
use tokio::sync::Notify;

/// Tells the time and waits for it.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Time;
    /// Ends at or after that time by this clock (a clock that jumps forward ends it early).
    fn sleep_until(&self, until: Time) -> Boxed<'static, ()>;
    /// Ends after so many milliseconds have passed, however the clock is set meanwhile.
    fn sleep(&self, millis: u64) -> Boxed<'static, ()>;
}

/// The clock of the operating system.
#[derive(Copy, Clone, Debug, Default)]
pub struct System;

/// A wall clock may be set at any time, so a long sleep looks again this often.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Clock for System {
    fn now(&self) -> Time {
        Time(jiff::Timestamp::now().as_millisecond())
    }

    fn sleep_until(&self, until: Time) -> Boxed<'static, ()> {
        Box::pin(async move {
            loop {
                let left = until.0.saturating_sub(System.now().0);
                let Ok(left) = u64::try_from(left) else {
                    return;
                };
                if left == 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(left).min(LOOK_AGAIN)).await;
            }
        })
    }

    fn sleep(&self, millis: u64) -> Boxed<'static, ()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(millis)))
    }
}

/// A clock that stands still until it is told to move: for tests.
#[derive(Clone, Debug)]
pub struct Virtual(Arc<State>);

#[derive(Debug)]
struct State {
    /// The time shown, and the milliseconds that have passed.
    at: Mutex<(Time, u64)>,
    moved: Notify,
}

impl Virtual {
    /// Shows this time.
    pub fn at(now: Time) -> Self {
        Self(Arc::new(State {
            at: Mutex::new((now, 0)),
            moved: Notify::new(),
        }))
    }

    /// Time passes.
    pub fn advance(&self, millis: u64) {
        {
            let mut at = self.lock();
            at.0 = at.0.plus(millis);
            at.1 += millis;
        }
        self.0.moved.notify_waiters();
    }

    /// Somebody sets the clock: it shows another time, and no time has passed.
    pub fn set(&self, now: Time) {
        self.lock().0 = now;
        self.0.moved.notify_waiters();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Time, u64)> {
        self.0.at.lock().expect("nobody panics while holding it")
    }
}

impl Clock for Virtual {
    fn now(&self) -> Time {
        self.lock().0
    }

    fn sleep_until(&self, until: Time) -> Boxed<'static, ()> {
        let clock = self.clone();
        Box::pin(async move { clock.until(|at| at.0 >= until).await })
    }

    fn sleep(&self, millis: u64) -> Boxed<'static, ()> {
        let clock = self.clone();
        let end = self.lock().1.saturating_add(millis);
        Box::pin(async move { clock.until(|at| at.1 >= end).await })
    }
}

impl Virtual {
    async fn until(&self, done: impl Fn(&(Time, u64)) -> bool) {
        loop {
            let moved = self.0.moved.notified();
            tokio::pin!(moved);
            // Registered before looking, so a move in between is not missed.
            moved.as_mut().enable();
            if done(&self.lock()) {
                return;
            }
            moved.await;
        }
    }
}

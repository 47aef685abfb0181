//! The clock port. Time reaches the machine only as the recorded time of a commit.

use crate::Boxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steersman_machine::stored::ids::Time;
use tokio::sync::Notify;

/// A source of time that can also wait.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> Time;
    /// Completes at or after that time by this clock. If the clock is set forward, it completes early.
    fn sleep_until(&self, until: Time) -> Boxed<'static, ()>;
    /// Completes after this many milliseconds, even if the clock is set in the meantime.
    fn sleep(&self, millis: u64) -> Boxed<'static, ()>;
}

/// The clock of the operating system.
#[derive(Copy, Clone, Debug, Default)]
pub struct System;

/// Longest single sleep. A wall clock may be set at any time, so a long sleep checks it again this often.
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

/// A clock for tests. It stands still until a test moves it.
#[derive(Clone, Debug)]
pub struct Virtual(Arc<State>);

#[derive(Debug)]
struct State {
    /// The time that the clock shows, and the milliseconds that have passed since it was made.
    at: Mutex<(Time, u64)>,
    moved: Notify,
}

impl Virtual {
    /// Creates a clock that shows this time.
    pub fn at(now: Time) -> Self {
        Self(Arc::new(State {
            at: Mutex::new((now, 0)),
            moved: Notify::new(),
        }))
    }

    /// Lets this many milliseconds pass.
    pub fn advance(&self, millis: u64) {
        {
            let mut at = self.lock();
            at.0 = at.0.plus(millis);
            at.1 += millis;
        }
        self.0.moved.notify_waiters();
    }

    /// Sets the clock to another time. No time passes.
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
            // Registered before the check, so that a move between the check and the wait is not missed.
            moved.as_mut().enable();
            if done(&self.lock()) {
                return;
            }
            moved.await;
        }
    }
}

//! The place where calls of a tool run: the task of their session, or tasks of their own.
//!
//! A task of its own costs a call several times what a quick closure costs. But the task of a session does nothing else while a
//! closure keeps it, so calls that compute for long go on side by side, each in a task of its own.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The longest time for which a closure may keep the task of a session.
const LONG: Duration = Duration::from_micros(100);
/// Number of quick calls in a row after a slow one, before calls are in the task of the session again.
const WARY: u8 = 8;

/// Number of quick calls of a tool that are missing before its closure counts as quick.
#[derive(Debug)]
pub(super) struct Pace(AtomicU8);

impl Default for Pace {
    fn default() -> Self {
        Self(AtomicU8::new(1))
    }
}

impl Pace {
    /// Returns true if the closure of the tool has kept no thread for long lately.
    pub(super) fn is_quick(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    fn was(&self, slow: bool) {
        let missing = self.0.load(Ordering::Relaxed);
        let now = if slow {
            WARY
        } else {
            missing.saturating_sub(1)
        };
        if now != missing {
            self.0.store(now, Ordering::Relaxed);
        }
    }
}

/// A call whose pace is measured.
pub(super) struct Measured<F> {
    call: Pin<Box<F>>,
    pace: Arc<Pace>,
    /// True once the call has kept its thread for long.
    slow: bool,
}

impl<F: Future> Measured<F> {
    pub(super) fn new(call: F, pace: Arc<Pace>) -> Self {
        Self {
            call: Box::pin(call),
            pace,
            slow: false,
        }
    }
}

impl<F: Future> Future for Measured<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let began = Instant::now();
        let poll = self.call.as_mut().poll(cx);
        self.slow |= began.elapsed() > LONG;
        if poll.is_ready() {
            self.pace.was(self.slow);
        }
        poll
    }
}

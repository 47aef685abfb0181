//! A queue whose reader takes everything that waits as one group, so that one sync carries many batches.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Many writers, one reader that takes groups.
///
/// It has no bound of its own: an owner is at most [`super::AHEAD_LINES`] lines ahead of the disk and waits then.
pub struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: Vec<T>,
    /// Somebody waits for one of these.
    urgent: bool,
    /// When the first of these came.
    since: Option<Instant>,
    closed: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                waiting: Vec::new(),
                urgent: false,
                since: None,
                closed: false,
            }),
            changed: Condvar::new(),
        }
    }
}

impl<T> Queue<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something behind all that waits. Gives it back once the queue is closed.
    pub fn push(&self, item: T, urgent: bool) -> Result<(), T> {
        let mut state = self.lock();
        if state.closed {
            return Err(item);
        }
        state.waiting.push(item);
        let first = state.since.is_none();
        if first {
            state.since = Some(Instant::now());
        }
        let wake = first || (urgent && !state.urgent);
        state.urgent |= urgent;
        drop(state);
        if wake {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Takes all that waits: at once if any of it is urgent, else when the first of it has waited for `company`.
    /// Blocks while there is nothing; none once the queue is closed and empty.
    pub fn group(&self, company: Duration) -> Option<Vec<T>> {
        let mut state = self.lock();
        loop {
            let Some(since) = state.since else {
                if state.closed {
                    return None;
                }
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = company.saturating_sub(since.elapsed());
            if state.urgent || state.closed || left.is_zero() {
                state.since = None;
                state.urgent = false;
                return Some(std::mem::take(&mut state.waiting));
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Nothing more comes in; the reader ends when it has taken what is there.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

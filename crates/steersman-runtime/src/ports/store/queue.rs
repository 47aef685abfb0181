//! A queue whose reader takes all waiting items as one group, so that one sync writes many batches.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A queue with many writers and one reader that takes groups.
///
/// The queue has no bound. Each owner bounds itself: it waits once it is [`super::AHEAD_LINES`] lines ahead of the disk.
pub struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: Vec<T>,
    /// True if somebody waits for one of the items.
    urgent: bool,
    /// Time at which the first of the items came.
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

    /// Puts an item at the end of the queue. Gives the item back if the queue is closed.
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

    /// Takes all waiting items: immediately if one is urgent, otherwise once the first has waited for `company`. Blocks while the
    /// queue is empty. Returns `None` once the queue is closed and empty.
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

    /// Closes the queue. The reader ends after it has taken the remaining items.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

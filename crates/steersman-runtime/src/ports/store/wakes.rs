//! Hints that a store in this process rings for its workers.

use super::Wake;
use futures::stream::{BoxStream, StreamExt, unfold};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Hints for one worker that were not read yet. Equal hints are kept once.
#[derive(Debug, Default)]
pub struct Bell {
    waiting: Mutex<BTreeSet<Wake>>,
    rung: Notify,
}

impl Bell {
    /// Adds a hint and wakes the reader.
    pub fn ring(&self, wake: Wake) {
        self.lock().insert(wake);
        self.rung.notify_one();
    }

    /// Takes the most urgent hint.
    fn next(&self) -> Option<Wake> {
        self.lock().pop_first()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<Wake>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the hints that were not read yet and all later ones. The stream never ends: if the store is gone, it waits for ever.
    pub fn wakes(bell: &Arc<Self>) -> BoxStream<'static, Wake> {
        unfold(bell.clone(), |bell| async move {
            loop {
                if let Some(wake) = bell.next() {
                    return Some((wake, bell));
                }
                bell.rung.notified().await;
            }
        })
        .boxed()
    }
}

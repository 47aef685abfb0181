//! A store whose process dies after a line, for `kill` in tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use steersman_machine::stored::ids::Line;
use steersman_runtime::Boxed;
use steersman_runtime::store::layer::Layer;
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{Batch, Claim, Log as _, Store, StoreError};

/// A memory store that refuses all lines after a given one.
pub(super) struct Mortal {
    inner: MemoryStore,
    last: AtomicU64,
}

impl Mortal {
    pub(super) fn new() -> Self {
        Self {
            inner: MemoryStore::new(),
            last: AtomicU64::new(u64::MAX),
        }
    }

    /// Refuses all lines after this one from now on; `None` allows all lines again.
    pub(super) fn dies_after(&self, line: Option<Line>) {
        self.last
            .store(line.map_or(u64::MAX, |l| l.0), Ordering::SeqCst);
    }
}

impl Layer for Mortal {
    fn below(&self) -> &dyn Store {
        &self.inner
    }

    fn append(&self, claim: &Claim, batch: Batch) -> Boxed<'static, Result<(), StoreError>> {
        let last = self.last.load(Ordering::SeqCst);
        if batch.rows.last().is_some_and(|row| row.n.0 > last) {
            return Box::pin(async move {
                Err(StoreError::Io {
                    place: "the test".into(),
                    source: Arc::new(std::io::Error::other("the process was killed")),
                })
            });
        }
        self.inner.append(claim, batch)
    }
}

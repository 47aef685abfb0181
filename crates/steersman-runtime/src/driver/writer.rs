//! Lines on their way to the disk: how far the session is ahead of it, and what waits for which line.

use crate::store::{AHEAD_BYTES, AHEAD_LINES, Batch, Claim, Store, StoreError};
use futures::stream::{FuturesOrdered, StreamExt};
use std::collections::VecDeque;
use std::sync::Arc;
use steersman_machine::stored::ids::Line;

/// A batch on its way to the disk: its last line, and its size in lines and bytes.
type Flying = crate::Boxed<'static, Result<(Line, u64, usize), StoreError>>;

/// Appends batches in order and tracks which lines are on disk.
pub(crate) struct Writer<T> {
    store: Arc<dyn Store>,
    claim: Claim,
    flying: FuturesOrdered<Flying>,
    /// The last line that is on disk.
    pub(crate) durable: Line,
    /// The last line that was appended.
    pub(crate) appended: Line,
    /// Number of lines on their way to the disk.
    lines: u64,
    /// Number of bytes of these lines.
    bytes: usize,
    /// Numbers of lines and bytes in the batches after the last urgent one. The store may sync these batches later.
    unhurried: (u64, usize),
    /// Actions to take once a line is on disk, in the order of lines.
    waiting: VecDeque<(Line, T)>,
}

impl<T> Writer<T> {
    pub(crate) fn new(store: Arc<dyn Store>, claim: Claim) -> Self {
        Self {
            durable: claim.head,
            appended: claim.head,
            store,
            claim,
            flying: FuturesOrdered::new(),
            lines: 0,
            bytes: 0,
            unhurried: (0, 0),
            waiting: VecDeque::new(),
        }
    }

    /// Queues a batch whose last row is `last`. When the batches that are not urgent reach half of the bound, the batch becomes
    /// urgent. So the disk syncs the first half while the session writes the second, and a fast disk keeps the session from
    /// reaching the bound.
    pub(crate) fn append(&mut self, last: Line, mut batch: Batch) {
        let lines = batch.rows.len() as u64;
        let bytes: usize = batch.rows.iter().map(|r| r.bytes.len()).sum();
        let behind = (self.unhurried.0 + lines, self.unhurried.1 + bytes);
        batch.urgent |= behind.0 >= AHEAD_LINES / 2 || behind.1 >= AHEAD_BYTES / 2;
        self.unhurried = if batch.urgent { (0, 0) } else { behind };
        self.lines += lines;
        self.bytes += bytes;
        self.appended = last;
        let written = self.store.append(&self.claim, batch);
        self.flying.push_back(Box::pin(async move {
            written.await.map(|()| (last, lines, bytes))
        }));
    }

    /// Schedules an action for the time when this line is on disk.
    pub(crate) fn when_durable(&mut self, line: Line, what: T) {
        let at = self.waiting.partition_point(|(before, _)| *before <= line);
        self.waiting.insert(at, (line, what));
    }

    /// Returns true if no action is ready.
    pub(crate) fn take_ready_is_empty(&self) -> bool {
        self.waiting
            .front()
            .is_none_or(|(line, _)| *line > self.durable)
    }

    /// Returns the actions whose lines are on disk.
    pub(crate) fn take_ready(&mut self) -> Vec<T> {
        let ready = self
            .waiting
            .iter()
            .take_while(|(line, _)| *line <= self.durable)
            .count();
        self.waiting.drain(..ready).map(|(_, what)| what).collect()
    }

    /// Returns true if a batch of this size may be appended before another reaches the disk. A batch of any size may be appended
    /// if none is on its way; with `step` (the session stops after each line), only then.
    pub(crate) fn has_room(&self, lines: u64, bytes: usize, step: bool) -> bool {
        let fits = self.lines + lines <= AHEAD_LINES && self.bytes + bytes < AHEAD_BYTES;
        self.is_idle() || !step && fits
    }

    /// Returns true if everything is on disk.
    pub(crate) fn is_idle(&self) -> bool {
        self.flying.is_empty()
    }

    /// Waits until the next batch is on disk; for ever if none is on its way.
    pub(crate) async fn written(&mut self) -> Result<(), StoreError> {
        match self.flying.next().await {
            None => futures::future::pending().await,
            Some(Ok((line, lines, bytes))) => {
                self.durable = line;
                self.lines -= lines;
                self.bytes -= bytes;
                Ok(())
            }
            Some(Err(error)) => Err(error),
        }
    }
}

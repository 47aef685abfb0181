//! Lines on their way to the disk: how far the session is ahead of it.

use crate::driver::Room;
use crate::engine::Durability;
use crate::feed::OnDisk;
use crate::store::{AHEAD_BYTES, AHEAD_LINES, Batch, Claim, Row, Store, StoreError};
use futures::stream::{FuturesOrdered, StreamExt};
use std::collections::VecDeque;
use std::sync::Arc;
use steersman_machine::stored::ids::Line;

/// A batch on its way to the disk: its last line, its rows, and its size in bytes.
type Flying = crate::Boxed<'static, Result<Landed, StoreError>>;
type Landed = (Line, Arc<[Row]>, usize);

/// Appends batches in order and tracks which lines are on disk.
pub(super) struct Tail {
    store: Arc<dyn Store>,
    claim: Claim,
    flying: FuturesOrdered<Flying>,
    /// Batches that are on disk, which the driver has not heard yet.
    landed: VecDeque<Landed>,
    /// Rows that are on disk, which no follower was told of.
    untold: Vec<OnDisk>,
    /// Batches that wait until those before them are on disk, if every line is synced before the next one.
    queued: VecDeque<(Line, Batch)>,
    durability: Durability,
    /// The last line that is on disk.
    pub(super) durable: Line,
    /// Number of lines on their way to the disk.
    lines: u64,
    /// Number of bytes of these lines.
    bytes: usize,
}

impl Tail {
    pub(super) fn new(store: Arc<dyn Store>, claim: Claim, durability: Durability) -> Self {
        Self {
            durable: claim.head,
            store,
            claim,
            flying: FuturesOrdered::new(),
            landed: VecDeque::new(),
            untold: Vec::new(),
            queued: VecDeque::new(),
            durability,
            lines: 0,
            bytes: 0,
        }
    }

    /// Queues a batch whose last row is `last`.
    pub(super) fn append(&mut self, last: Line, batch: Batch) {
        let (lines, bytes) = size(&batch);
        self.lines += lines;
        self.bytes += bytes;
        if self.durability == Durability::Step && !self.flying.is_empty() {
            self.queued.push_back((last, batch));
            return;
        }
        self.submit(last, batch);
    }

    fn submit(&mut self, last: Line, batch: Batch) {
        let (_, bytes) = size(&batch);
        let rows: Arc<[Row]> = batch.rows.as_slice().into();
        let written = self.store.append(&self.claim, batch);
        self.flying.push_back(Box::pin(async move {
            written.await.map(|()| (last, rows, bytes))
        }));
    }

    /// Returns the lines and bytes that may be appended before another batch reaches the disk.
    pub(super) fn room(&self) -> Room {
        Room {
            lines: AHEAD_LINES.saturating_sub(self.lines),
            bytes: AHEAD_BYTES.saturating_sub(self.bytes),
            idle: self.is_idle(),
        }
    }

    /// Returns true if everything is on disk.
    pub(super) fn is_idle(&self) -> bool {
        self.flying.is_empty() && self.landed.is_empty() && self.queued.is_empty()
    }

    /// Waits until every batch is on disk. The driver hears it when it would have heard it.
    pub(super) async fn lands(&mut self) -> Result<(), StoreError> {
        while let Some(written) = self.flying.next().await {
            self.landed.push_back(written?);
        }
        Ok(())
    }

    /// Waits until the next batch is on disk; for ever if none is on its way.
    pub(super) async fn written(&mut self) -> Result<(), StoreError> {
        let written = match self.landed.pop_front() {
            Some(landed) => Some(Ok(landed)),
            None => self.flying.next().await,
        };
        match written {
            None => futures::future::pending().await,
            Some(Ok((line, rows, bytes))) => {
                self.lines -= rows.len() as u64;
                let after = std::mem::replace(&mut self.durable, line);
                self.untold.push(OnDisk { after, rows });
                self.bytes -= bytes;
                if let Some((last, batch)) = self.queued.pop_front() {
                    self.submit(last, batch);
                }
                Ok(())
            }
            Some(Err(error)) => Err(error),
        }
    }

    /// Returns the rows that came to the disk since the last call.
    pub(super) fn on_disk(&mut self) -> impl Iterator<Item = OnDisk> + '_ {
        self.untold.drain(..)
    }
}

/// Returns the number of lines of a batch, and of bytes of its lines and contents.
fn size(batch: &Batch) -> (u64, usize) {
    let rows = batch.rows.iter().map(|row| row.bytes.len());
    let blobs = batch.blobs.iter().map(|(_, bytes)| bytes.len());
    (batch.rows.len() as u64, rows.chain(blobs).sum())
}

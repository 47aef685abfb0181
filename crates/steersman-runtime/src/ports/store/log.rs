//! The log port: sessions, their owners, and the rows that owners append.

use super::{
    Appended, InboxMessage, Left, Needs, SaidHash, Scope, SessionId, SessionState, StoreError,
    Worker, within,
};
use crate::Boxed;
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::stored::interaction::Doubtful;

/// Maximum number of lines that a session may be ahead of the disk. At this number its owner waits. One batch may have more
/// lines, one for each branch; then nothing else is ahead, and nothing leaves the process before the batch is on disk.
pub const AHEAD_LINES: u64 = 64;

/// Maximum number of bytes that a session may be ahead of the disk. At this number its owner waits.
pub const AHEAD_BYTES: usize = 1024 * 1024;

/// The logs of sessions, and the claims of their owners.
pub trait Log: Send + Sync + 'static {
    /// Creates a session with an empty log, together with the message that begins it: both or neither. Fails with `Conflict` if
    /// the id exists, or if another session of this network has the key; the error names that session. A session beyond a bound
    /// ([`bounds::session`](super::bounds::session)) is refused.
    fn create(&self, session: NewSession) -> Boxed<'_, Result<(), StoreError>>;

    /// Makes the worker the owner, unless the session was moved (`Moved`). The claim has a new epoch and the first line number
    /// that the owner may use: the next hundred above all numbers that may have been used. Refused (`Owned`) while another living
    /// owner holds the session. Granted immediately when that owner is gone, where the store can know it, otherwise when the
    /// lease of its worker is over.
    fn claim<'a>(
        &'a self,
        session: &'a str,
        by: &'a Worker,
    ) -> Boxed<'a, Result<Claim, StoreError>>;

    /// Queues a batch after all batches queued before, during the call itself. The future ends when the batch is on disk,
    /// atomically: all of it or nothing. Fails with `Fenced` if the epoch is not the newest. After an error, nothing that was
    /// queued later under the same claim is written either.
    fn append(&self, claim: &Claim, batch: Batch) -> Appended;

    /// Returns at most `limit` rows with `from <= n <= to`, ascending. While a batch is written, rows above [`Log::head`] may
    /// be visible; they do not count yet.
    fn rows<'a>(
        &'a self,
        session: &'a str,
        from: Line,
        to: Line,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Row>, StoreError>>;

    /// Returns one row, or `None` if the line does not exist, also if no line can have this number.
    fn row<'a>(&'a self, session: &'a str, n: Line) -> Boxed<'a, Result<Option<Row>, StoreError>>;

    /// Reads one row synchronously in the calling thread. For old texts that a template reads, never for the hot path. A store
    /// across a network may take long here.
    fn row_now(&self, session: &str, n: Line) -> Result<Option<Row>, StoreError>;

    /// Returns a number that is another one once something in the store has changed, whichever process changed it: what was read after a
    /// number was returned holds as long as the same number is returned. `None` if the store cannot tell that at once and without
    /// blocking.
    fn version(&self) -> Option<u64> {
        None
    }

    /// Returns the last line on disk, or `Line::NONE` if there is none.
    fn head<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Line, StoreError>>;

    /// Deletes all checkpoints of a session.
    fn drop_checkpoints<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<(), StoreError>>;

    /// Returns the newest checkpoint of a kind at or before a line. Checkpoints are a cache: losing one loses no data.
    fn checkpoint<'a>(
        &'a self,
        session: &'a str,
        of: CheckpointOf,
        at: Line,
    ) -> Boxed<'a, Result<Option<Checkpoint>, StoreError>>;
}

/// A session to create.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Id of the session.
    pub id: SessionId,
    /// Name of its network, for lists and events.
    pub network: Name,
    /// The tenant and the subject that the session belongs to.
    pub scope: Scope,
    /// Key by which events find the session, if it has one. It is unique among the sessions of this network and tenant.
    pub key: Option<Name>,
    /// Salt of the hashes of its bodies.
    pub salt: [u8; 16],
    /// Time of creation.
    pub created: Time,
    /// Message that is in the inbox from the beginning.
    pub first: Option<InboxMessage>,
    /// Hash by which the store recognizes that message, if it is not the hash of the message itself: for an event that begins a
    /// session, the hash of the event.
    pub said: Option<SaidHash>,
    /// Requirements for a program that drives the session.
    pub needs: Needs,
}

/// Ownership of a session. [`Lists::release`](super::Lists::release) ends it and says when the session is wanted again. If the
/// last clone is dropped instead, the session is free and wanted immediately.
#[derive(Clone)]
pub struct Claim {
    /// Id of the session.
    pub session: SessionId,
    /// The store's own number of the session.
    pub number: u64,
    /// Number that grows by one with each claim.
    pub epoch: u64,
    /// The first line this owner may use.
    pub first: Line,
    /// The last line on disk.
    pub head: Line,
    /// Salt of the hashes of the session's bodies.
    pub salt: [u8; 16],
    /// The tenant and the subject that the session belongs to.
    pub scope: Scope,
    /// Number of messages that were ever delivered to the session, at the time of the claim.
    pub mail: u64,
    /// State that the last owner left.
    pub before: Left,
    /// Set if a person accepted the store and no line of the session says so yet. The owner's first line says it.
    pub accepted: Option<StoreAccepted>,
    /// Keeps the lock for as long as any clone lives.
    pub lock: Arc<dyn std::any::Any + Send + Sync>,
}

/// A person accepted a store that must not be driven without acceptance.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StoreAccepted {
    /// Time of the acceptance.
    pub at: Time,
    /// The reason for which the store was in doubt.
    pub was: Doubtful,
}

/// One atomic unit of changes to a session.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Rows, ascending and above all rows written before.
    pub rows: Vec<Row>,
    /// Rows in place of those that were written under the same numbers, to erase texts. If there is one, all checkpoints of the
    /// session are deleted. A number without a row is refused (`Corrupt`).
    pub rewritten: Vec<Row>,
    /// Contents that the rows name, by their blake3 hash. A content may be in the store already.
    pub blobs: Vec<([u8; 32], Arc<[u8]>)>,
    /// Inbox messages consumed, by id. Their ids stay known.
    pub consumed: Vec<Name>,
    /// Inbox messages that are erased with their session, by id. No line took them, and their ids are forgotten.
    pub dropped: Vec<Name>,
    /// Events taken out of the event box, by id.
    pub events_taken: Vec<Name>,
    /// Waits for events that opened or closed.
    pub waits: Vec<WaitChange>,
    /// Labels that changed. `None` removes a label.
    pub labels: Vec<(Name, Option<Arc<str>>)>,
    /// The state that lists show, if it changed.
    pub info: Option<SessionState>,
    /// The needs of a program that drives the session, if they may have changed. An owner says it with its first line.
    pub needs: Option<Needs>,
    /// Checkpoints that are due.
    pub checkpoints: Vec<(CheckpointOf, Checkpoint)>,
    /// True if an effect of class `unsafe` begins once this batch is on disk. A store whose log can lose its end without a trace
    /// (a file) also records this in another place before the append ends, so that it can detect the loss when it is opened
    /// again.
    pub begins_unsafe: bool,
    /// True if the first row says that the store was accepted ([`Claim::accepted`]).
    pub tells_accepted: bool,
    /// True if somebody waits for this batch: it is flushed immediately. Otherwise it may be delayed up to 20 ms
    /// ([`COMPANY`](super::COMPANY)).
    pub urgent: bool,
}

/// One row of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Number of the line.
    pub n: Line,
    /// The encoded line, opaque to the store.
    pub bytes: Arc<[u8]>,
}

/// Subject of a checkpoint.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum CheckpointOf {
    /// The ledger of the session.
    Ledger,
    /// The snapshot of a branch.
    Branch(Id),
}

/// A stored snapshot or ledger. Checkpoints are a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last line that the checkpoint contains.
    pub at: Line,
    /// Bytes that [`steersman_machine::stored::codec`] encodes and checks.
    pub bytes: Arc<[u8]>,
}

/// A change of the events that an effect waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitChange {
    /// The effect that waits.
    pub effect: Id,
    /// Event names and match keys, any of which ends the wait. They replace those before. Empty if the wait is closed.
    pub open: Vec<(Name, Arc<str>)>,
}

/// Returns the first line of a claim: the next multiple of [`Line::EPOCH_STEP`] above all lines that the previous owner may
/// have used, on disk or ahead of it. `before` is that owner's first line, and `head` the last line on disk. Without a
/// previous owner it is the line after `head`.
pub fn first_line(before: Option<Line>, head: Line) -> Line {
    match before {
        None => head.next(),
        Some(before) => {
            let used = head.0.max(before.0.saturating_sub(1)) + AHEAD_LINES;
            Line((used / Line::EPOCH_STEP + 1) * Line::EPOCH_STEP)
        }
    }
}

/// Refuses a batch that no store may take: values over [`MAX_VALUE`](super::MAX_VALUE), lines out of order or above
/// [`Line::MAX`]. `last` is the last line written or queued under the claim.
pub fn check(session: &SessionId, last: Line, batch: &Batch) -> Result<(), StoreError> {
    let fits = |row: &Row| {
        let place = || format!("line {} of session `{session}`", row.n);
        within(place, row.bytes.len())
    };
    batch.rewritten.iter().try_for_each(fits)?;
    let mut before = last;
    for row in &batch.rows {
        fits(row)?;
        if row.n <= before || row.n > Line::MAX {
            return Err(StoreError::Order {
                session: session.clone(),
                line: row.n,
                last: before,
            });
        }
        before = row.n;
    }
    for (name, value) in &batch.labels {
        let len = value.as_ref().map_or(0, |v| v.len());
        within(|| format!("label `{name}` of session `{session}`"), len)?;
    }
    for wait in &batch.waits {
        let len = wait.open.iter().map(|(_, key)| key.len()).sum();
        within(|| format!("the match key of wait {}", wait.effect), len)?;
    }
    if let Some(info) = &batch.info {
        let len = info.waits.len() + info.outcome.len() + info.last.len();
        within(|| format!("what lists show of session `{session}`"), len)?;
    }
    Ok(())
}

/// Returns the error for a rewritten row that was never written.
pub fn never_written(session: &str, n: Line) -> StoreError {
    StoreError::Corrupt {
        place: format!("session `{session}` line {n}"),
        what: "there is no such line to rewrite".to_owned(),
    }
}

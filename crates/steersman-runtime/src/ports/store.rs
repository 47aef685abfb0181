//! The store port: the operations that sessions need from a database. Every store passes the same conformance suite.
//!
//! Rows are opaque to a store: [`steersman_machine::codec`] encodes and checks them. A session has one owner with one epoch.
//! An append under any other epoch never succeeds.

pub mod awkward;
pub mod bounds;
pub mod layer;
pub mod memories;
pub mod memory;
pub mod queue;
mod tables;

use crate::Boxed;
pub use memories::{Memory, MemoryQuery, NewMemory, Rated};
use std::sync::Arc;
use std::time::Duration;
use steersman_machine::ids::{Id, Line, Name, Time};
use steersman_machine::interaction::Doubtful;
use steersman_machine::wait;

/// Most bytes of a row, inbox message, event or label. Blobs and checkpoints may be longer: a store whose values are small
/// splits them.
pub const MAX_VALUE: usize = steersman_machine::bounds::MAX_LINE;

/// Most lines that a session may be ahead of the disk. At this number its owner waits.
pub const AHEAD_LINES: u64 = 64;

/// Most bytes that a session may be ahead of the disk. At this number its owner waits.
pub const AHEAD_BYTES: usize = 1024 * 1024;

/// Longest time that a batch for which nobody waits may be delayed, so that it shares its sync with others.
pub const COMPANY: Duration = Duration::from_millis(20);

/// Id of a session. A random id has 16 characters of base 32, lower case; [`bounds::session_id`] says which others are valid.
pub type SessionId = Arc<str>;

/// A timer: its session, its effect, and the time when it is due.
pub type DueTimer = (SessionId, Id, Time);

/// A call that waits for a place which does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceWait {
    /// The place that does not answer ([`BoundModel::place`](crate::model::BoundModel::place)).
    pub place: Name,
    /// The time since when the call waits.
    pub since: Time,
    /// The session of the call.
    pub session: SessionId,
    /// The effect of the call.
    pub effect: Id,
}

/// A database of sessions.
pub trait Store: Send + Sync + 'static {
    /// Creates a session with an empty log, together with the message that begins it: both or neither. Fails with `Conflict` if
    /// the id exists, or if another session of this network has the key; the error names that session. A session beyond a bound
    /// ([`bounds::session`]) is refused.
    fn create(&self, session: NewSession) -> Boxed<'_, Result<(), StoreError>>;

    /// Makes the caller the owner. The claim has a new epoch and the first line number that the owner may use: the next hundred
    /// above all numbers that may have been used. Refused (`Owned`) while another living owner holds the session. Granted
    /// immediately when that owner is gone.
    fn claim<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Claim, StoreError>>;

    /// Queues a batch after all batches queued before, during the call itself. The future ends when the batch is on disk,
    /// atomically: all of it or nothing. Fails with `Fenced` if the epoch is not the newest. After an error, nothing that was
    /// queued later under the same claim is written either.
    fn append(&self, claim: &Claim, batch: Batch) -> Boxed<'static, Result<(), StoreError>>;

    /// Returns at most `limit` rows with `from <= n <= to`, ascending. While a batch is written, rows above [`Store::head`] may
    /// be visible; they do not count yet.
    fn rows<'a>(
        &'a self,
        session: &'a str,
        from: Line,
        to: Line,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Row>, StoreError>>;

    /// Returns one row, or `None` if the line does not exist.
    fn row<'a>(&'a self, session: &'a str, n: Line) -> Boxed<'a, Result<Option<Row>, StoreError>>;

    /// Reads one row synchronously in the calling thread. For old texts that a template reads, never for the hot path. A store
    /// across a network may take long here.
    fn row_now(&self, session: &str, n: Line) -> Result<Option<Row>, StoreError>;

    /// Reads a blob synchronously in the calling thread, and checks it as [`Store::blob`] does.
    fn blob_now(&self, hash: &[u8; 32]) -> Result<Option<Arc<[u8]>>, StoreError>;

    /// Returns the last line on disk, or `Line::NONE` if there is none.
    fn head<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Line, StoreError>>;

    /// Replaces a row's bytes, to erase texts. Deletes the session's checkpoints in the same transaction.
    fn rewrite<'a>(&'a self, claim: &'a Claim, row: Row) -> Boxed<'a, Result<(), StoreError>>;

    /// Deletes all checkpoints of a session.
    fn drop_checkpoints<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<(), StoreError>>;

    /// Returns the newest checkpoint of a kind at or before a line. Checkpoints are a cache: losing one loses no data.
    fn checkpoint<'a>(
        &'a self,
        session: &'a str,
        of: CheckpointOf,
        at: Line,
    ) -> Boxed<'a, Result<Option<Checkpoint>, StoreError>>;

    /// Stores a blob under its blake3 hash. Call this before the line that names it. Storing a blob again is no error.
    fn put_blob(&self, hash: [u8; 32], bytes: Arc<[u8]>) -> Boxed<'_, Result<(), StoreError>>;

    /// Returns a blob after checking it against its hash. Fails with `Corrupt` if it does not match.
    fn blob<'a>(&'a self, hash: &'a [u8; 32]) -> Boxed<'a, Result<Option<Arc<[u8]>>, StoreError>>;

    /// Puts a message into a session's inbox, durably. Returns false if its id was accepted before, at any time. Fails with
    /// `Repeated` if the id was accepted with another message ([`SaidHash`]), and with `Full` if there is no room
    /// ([`bounds::most_waiting`]). A message beyond a bound ([`bounds::message`]) is refused.
    fn deliver<'a>(
        &'a self,
        session: &'a str,
        message: InboxMessage,
    ) -> Boxed<'a, Result<bool, StoreError>>;

    /// Returns the messages in a session's inbox, oldest first. A store with late duplicates may return a consumed message again:
    /// the accepted ids of the ledger decide. A damaged message comes without its bytes, so that decoding it reports the damage
    /// and the other messages are not held back.
    fn inbox<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Vec<InboxMessage>, StoreError>>;

    /// Returns a number that grows whenever any process puts a message into an inbox of this store. It never grows before the
    /// message can be read.
    fn inbox_version(&self) -> Boxed<'_, Result<u64, StoreError>>;

    /// Offers an event that names no session to the waits of its network whose key it matches, or else puts it into the event
    /// box. Returns false if its id was accepted before and is still remembered ([`bounds::SEEN`]). Fails with `Repeated` if the
    /// id was accepted with another event. Fails with `Full` if there is no room in the box or in any inbox that it is for; then
    /// it was not delivered, and may be sent again. An event beyond a bound ([`bounds::event`]) is refused.
    fn deliver_event(&self, event: BoxedEvent) -> Boxed<'_, Result<bool, StoreError>>;

    /// Returns the events in the box that match a wait which opens. A damaged event is left there.
    fn boxed_events<'a>(
        &'a self,
        network: &'a str,
        event: &'a str,
        key: &'a str,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>>;

    /// Returns at most `limit` events in the box that are not past their time, oldest first. Changes nothing: an event past its
    /// time is dropped when another event needs room. A damaged event comes without its message.
    fn event_box(&self, now: Time, limit: usize) -> Boxed<'_, Result<Vec<BoxedEvent>, StoreError>>;

    /// Returns the sessions that match, newest first.
    fn sessions<'a>(
        &'a self,
        query: &'a SessionQuery,
    ) -> Boxed<'a, Result<Vec<SessionInfo>, StoreError>>;

    /// Returns at most `limit` timers that are due at `until`, over all sessions, soonest first.
    fn timers(&self, until: Time, limit: usize) -> Boxed<'_, Result<Vec<DueTimer>, StoreError>>;

    /// Returns the calls that wait for places which do not answer, by name of the place: at most `each` for a place, those that
    /// have waited longest first.
    fn outages(&self, each: usize) -> Boxed<'_, Result<Vec<PlaceWait>, StoreError>>;

    /// Describes damage of the lists by which sessions are found (inboxes, timers and waits among them). From then on this handle
    /// returns everything that can be read without the damaged parts, and leaves out the rest.
    fn damaged_lists(&self) -> Boxed<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Stores a memory and its content in one step, and returns its number. If the key is known, nothing changes, and the number
    /// of the known memory is returned. A memory beyond a bound ([`bounds::memory`]) is refused. Memories that are past their
    /// time at `new.at` are dropped.
    fn remember(&self, new: NewMemory) -> Boxed<'_, Result<u64, StoreError>>;

    /// Returns the memories that match, newest first.
    fn memories(&self, query: MemoryQuery) -> Boxed<'_, Result<Vec<Memory>, StoreError>>;

    /// Rates a memory, as a person or as an agent. The last rating of each counts. Returns false if there is no such memory.
    fn rate_memory(
        &self,
        id: u64,
        rated: Rated,
        by_person: bool,
    ) -> Boxed<'_, Result<bool, StoreError>>;

    /// Deletes memories, and returns how many existed. Their contents remain as blobs, which may have no other reference.
    fn forget_memories(&self, ids: Vec<u64>) -> Boxed<'_, Result<u64, StoreError>>;
}

/// A session that is to be created.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Id of the session.
    pub id: SessionId,
    /// Name of its network, for lists and events.
    pub network: Name,
    /// Key by which events find the session, if it has one.
    pub key: Option<Name>,
    /// Salt of the hashes of its bodies.
    pub salt: [u8; 16],
    /// Time of creation.
    pub created: Time,
    /// Message that is in the inbox from the beginning.
    pub first: Option<InboxMessage>,
    /// Hash for the id of that message, if it is not the hash of the message itself: for an event that begins a session.
    pub said: Option<SaidHash>,
}

/// Hash of the bytes of the message that an id was accepted with. A store keeps the hash as long as the id.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SaidHash(pub [u8; 16]);

impl SaidHash {
    /// Returns the hash of a stored message.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
        Self(hash)
    }
}

/// Ownership of a session. Dropping the last clone releases the lock.
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
    /// Inbox messages consumed, by id. Their ids stay known.
    pub consumed: Vec<Name>,
    /// Inbox messages that are erased with their session, by id. No line took them, and their ids are forgotten.
    pub dropped: Vec<Name>,
    /// Events taken out of the event box, by id.
    pub events_taken: Vec<Name>,
    /// Waits for events that opened or closed.
    pub waits: Vec<WaitChange>,
    /// Timers by effect: `Some` sets a timer, `None` clears it.
    pub timers: Vec<(Id, Option<Time>)>,
    /// Waits for places, by effect: `Some` holds the place and the time since when the call waits, `None` ends the wait.
    pub outages: Vec<(Id, Option<(Name, Time)>)>,
    /// Labels that changed. `None` removes a label.
    pub labels: Vec<(Name, Option<Arc<str>>)>,
    /// The state that lists show, if it changed.
    pub info: Option<SessionState>,
    /// Checkpoints that are due.
    pub checkpoints: Vec<(CheckpointOf, Checkpoint)>,
    /// True if an effect of class `unsafe` begins once this batch is on disk. A store whose log can lose its end without a trace
    /// (a file) also records this in another place before the append ends, so that it can detect the loss when it is opened
    /// again.
    pub begins_unsafe: bool,
    /// True if the first row says that the store was accepted ([`Claim::accepted`]).
    pub tells_accepted: bool,
    /// True if somebody waits for this batch: it is flushed immediately. Otherwise it may be delayed up to 20 ms ([`COMPANY`]).
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
    /// Bytes that [`steersman_machine::codec`] encodes and checks.
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

/// A message to a session, from outside its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxMessage {
    /// Id of the message, accepted once in the life of the session.
    pub id: Name,
    /// Time of arrival.
    pub at: Time,
    /// The message, encoded by the driver ([`crate::inbox`]).
    pub bytes: Arc<[u8]>,
}

/// An event that names no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxedEvent {
    /// Id of the event, rendered from its fields.
    pub id: Name,
    /// The network that the event is for.
    pub network: Name,
    /// Name of the event.
    pub event: Name,
    /// The encoded message that a matching session finds in its inbox, under this id.
    pub message: Arc<[u8]>,
    /// Canonical JSON of all fields. The key of a wait is canonical JSON of some of them. It matches if each of these is equal.
    pub fields: Arc<str>,
    /// Time of arrival.
    pub at: Time,
    /// Time after which the event is dropped if no wait took it.
    pub until: Time,
}

/// The state of a session that lists show without loading it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionState {
    /// One of `running`, `answered`, `waits`, `doubt`, `limit`, `failed`, `cancelled`, `paused`.
    pub status: Name,
    /// Time of the last commit.
    pub updated: Time,
    /// Short digest of its definition.
    pub definition: Name,
    /// Money spent, in millionths of the currency.
    pub micros: u64,
    /// Number of tokens spent.
    pub tokens: u64,
    /// Number of model calls made.
    pub model_calls: u64,
    /// Everything that it waits for on any branch, while nothing in it runs. [`crate::pending::read`] parses this.
    pub waits: Arc<str>,
    /// JSON object of the definition's `outcome:`.
    pub outcome: Arc<str>,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Id of the session.
    pub id: SessionId,
    /// Name of its network.
    pub network: Name,
    /// Key by which events find it, if it has one.
    pub key: Option<Name>,
    /// Time of creation.
    pub created: Time,
    /// Salt of the hashes of its bodies, for readers that verify lines without owning the session.
    pub salt: [u8; 16],
    /// The last line on disk.
    pub head: Line,
    /// State as of its last batch.
    pub state: SessionState,
    /// Names and values of its labels.
    pub labels: Vec<(Name, Arc<str>)>,
    /// The process that owns it now, if any.
    pub owner: Option<String>,
}

/// Conditions on sessions. All of them must be met.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
    /// Beginning of the session's id.
    pub prefix: Option<String>,
    /// Name of the network.
    pub network: Option<Name>,
    /// Key of the session.
    pub key: Option<Name>,
    /// Name and value of a label.
    pub label: Option<(Name, Arc<str>)>,
    /// Statuses, one of which the session has. Empty means any.
    pub status: Vec<Name>,
    /// Time at or after which the session was updated.
    pub since: Option<Time>,
    /// True if only sessions with a message in their inbox match.
    pub inbox: bool,
    /// Most sessions to return. `None` means all.
    pub limit: Option<usize>,
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

/// Refuses a batch that no store may take: values over [`MAX_VALUE`], lines out of order or above [`Line::MAX`].
/// `last` is the last line written or queued under the claim.
pub fn check(session: &SessionId, last: Line, batch: &Batch) -> Result<(), StoreError> {
    let mut before = last;
    for row in &batch.rows {
        within(
            || format!("line {} of session `{session}`", row.n),
            row.bytes.len(),
        )?;
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
        let len = info.waits.len() + info.outcome.len();
        within(|| format!("what lists show of session `{session}`"), len)?;
    }
    Ok(())
}

/// Refuses a value over [`MAX_VALUE`].
pub fn within(what: impl FnOnce() -> String, size: usize) -> Result<(), StoreError> {
    if size <= MAX_VALUE {
        return Ok(());
    }
    Err(StoreError::TooLarge {
        what: what(),
        size: size as u64,
        max: MAX_VALUE as u64,
    })
}

/// Returns true if an event's fields match a wait's key: each field of the key is present and equal. A key or fields that are
/// not JSON objects match nothing.
pub fn meets(key: &str, fields: &str) -> bool {
    let fields = serde_json::from_str(fields);
    fields.is_ok_and(|fields| wait::is_met(key, &fields))
}

/// Errors of a store, as far as callers treat them differently.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// No session in this store has this id.
    #[error("no session `{0}` in this store")]
    NoSession(SessionId),
    /// The session exists already, or a session has the wanted key. Holds the id of the existing session.
    #[error("a session `{0}` exists already")]
    Conflict(SessionId),
    /// An id was accepted before with another message or event. Nothing happened.
    #[error("`{0}` was accepted before, and said something else then; nothing was done")]
    Repeated(Name),
    /// A living process owns the session.
    #[error("session `{session}` is owned by process {process}")]
    Owned {
        /// Id of the session.
        session: SessionId,
        /// Process id, and host if it is known.
        process: String,
    },
    /// Another owner claimed the session after this one.
    #[error("epoch {epoch} of session `{session}` is over: another owner has taken it")]
    Fenced {
        /// Id of the session.
        session: SessionId,
        /// The epoch of the refused claim.
        epoch: u64,
    },
    /// The lines of a batch are not in the order of their numbers.
    #[error("line {line} of session `{session}` does not follow line {last}")]
    Order {
        /// Id of the session.
        session: SessionId,
        /// The line that is out of order.
        line: Line,
        /// The last line before it.
        last: Line,
    },
    /// Stored data does not verify. Nothing was changed.
    #[error("{place}: {what}; nothing was changed")]
    Corrupt {
        /// File, session or line that is damaged.
        place: String,
        /// Description of the damage.
        what: String,
    },
    /// The store opens for reading only until a person accepts it: effects of class `unsafe` may have happened that its logs do
    /// not contain. Nothing was changed.
    #[error("{place} opens for reading only: {why}")]
    Unaccepted {
        /// The file of the store.
        place: String,
        /// The reason, in words for people.
        why: String,
        /// The same reason, in the form in which a line stores it after the acceptance.
        was: Doubtful,
    },
    /// A newer version of this program wrote the data. The data is not damaged.
    #[error("{place} was written by a newer version of this program ({what}); nothing was changed")]
    Newer {
        /// File, session or line that is newer.
        place: String,
        /// The part that this version does not know.
        what: String,
    },
    /// A value is longer than its bound.
    #[error("{what} is {size} bytes, more than the {max} a store takes")]
    TooLarge {
        /// Description of the value.
        what: String,
        /// Size of the value, in bytes.
        size: u64,
        /// The bound, in bytes.
        max: u64,
    },
    /// An id or a key that no store accepts ([`bounds`]). Nothing happened.
    #[error("the {what} `{id}` is not taken: {why}; nothing was done")]
    BadId {
        /// Kind of the id, such as `session id`.
        what: &'static str,
        /// The beginning of the id.
        id: String,
        /// Description of valid ids.
        why: String,
    },
    /// There is no room for one more ([`bounds`]). Nothing happened, and the request may be repeated.
    #[error(
        "{what} is full: {most} lie there; nothing was done, and the same may be sent again once some of them were taken"
    )]
    Full {
        /// The inbox or box that is full.
        what: String,
        /// The most that it may hold.
        most: u64,
    },
    /// Data could not be read or written (disk full, read-only, locked).
    #[error("{place}: {source}")]
    Io {
        /// File or other place of the data.
        place: String,
        /// The underlying error.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

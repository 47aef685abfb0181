//! The store port: the operations that sessions need from a database, as small traits. Every store passes the same conformance
//! suite.
//!
//! Rows are opaque to a store: [`steersman_machine::stored::codec`] encodes and checks them. A session has one owner with one epoch.
//! An append under any other epoch never succeeds.

mod accounts;
pub mod awkward;
mod blobs;
pub mod bounds;
mod credentials;
mod inbox;
pub mod layer;
mod lists;
mod log;
pub mod memories;
pub mod memory;
pub mod queue;
mod quotas;
mod registers;
mod schedules;
mod scoped;
mod session_id;
mod tables;
mod wakes;
mod windows;

pub use accounts::{
    Accounts, CONVERSATION, Conversation, Delivered, Holdings, Token, Webhook, WebhookId,
};
pub use blobs::Blobs;
pub(crate) use blobs::Coming;
pub use credentials::{Credential, CredentialOf, Credentials};
pub use inbox::{BoxedEvent, Inbox, InboxMessage, SaidHash, meets};
pub use lists::{
    IMMEDIATELY, LAST, Lease, Left, Lists, Needs, NewWorker, Room, Scope, SessionInfo,
    SessionQuery, SessionState, Taken, Trouble, Unlimited, Wake, Worker,
};
pub use log::{
    AHEAD_BYTES, AHEAD_LINES, Batch, Checkpoint, CheckpointOf, Claim, Log, NewSession, Row,
    StoreAccepted, WaitChange, check, first_line, never_written,
};
pub use memories::{Memories, Memory, MemoryQuery, NewMemory, Rated};
pub use quotas::{Drawn, Limit, Pause, Quotas, WINDOWS};
pub use schedules::{Schedule, ScheduleId, Schedules};
pub use scoped::Scoped;
pub use session_id::{SessionId, StoreCode, session_id};
pub(crate) use session_id::{base32, random_session_id};
pub use wakes::Bell;

use crate::Boxed;
use std::sync::Arc;
use std::time::Duration;
use steersman_machine::stored::ids::{Line, Name};
use steersman_machine::stored::interaction::Doubtful;

/// Maximum number of bytes of a row, inbox message, event or label. Blobs and checkpoints may be longer: a store whose values are
/// small splits them.
pub const MAX_VALUE: usize = steersman_machine::stored::bounds::MAX_LINE;

/// Longest time that a batch for which nobody waits may be delayed, so that it shares its sync with others.
pub const COMPANY: Duration = Duration::from_millis(20);

/// A write that was queued. The future ends when it is on disk.
pub type Appended = Boxed<'static, Result<(), StoreError>>;

/// A database of sessions: all ports of the store together.
pub trait Store:
    Log + Inbox + Lists + Blobs + Memories + Quotas + Accounts + Credentials + Schedules
{
}

impl<S> Store for S where
    S: Log + Inbox + Lists + Blobs + Memories + Quotas + Accounts + Credentials + Schedules
{
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

/// Errors of a store, with one variant for each reaction of callers.
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
    /// The session was moved to another store. Nothing happened.
    #[error("session `{session}` was moved to {to}")]
    Moved {
        /// Id of the session.
        session: SessionId,
        /// Address of the store that has it now.
        to: Name,
    },
    /// A living process owns the session.
    #[error("session `{session}` is owned by process {process}")]
    Owned {
        /// Id of the session.
        session: SessionId,
        /// Process id, and host if it is known.
        process: String,
    },
    /// Another owner claimed the session after this one, or an earlier batch under the same claim failed.
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
    /// A secret in clear: a store takes sealed ones only. Nothing happened.
    #[error("{0} is not sealed, and a store keeps no secret in clear; nothing was done")]
    Unsealed(String),
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

//! How large and how many everything may be that comes into a store from outside, beside what lines hold
//! ([`steersman_machine::bounds`]): every store asks here. `docs/reference/input.md` has the same as a table.
//!
//! What was stored before there was a bound is read as it was.

use super::{BoxedEvent, InboxMessage, NewMemory, NewSession, StoreError, within};
use crate::inbox::Message;

/// Most bytes of a session's id. It names a file where a store has its locks in files.
pub const SESSION_ID: usize = 128;

/// Most bytes of a session's key, and of the id of a message or an event.
pub const ID: usize = 1024;

/// Most messages and events that wait in one inbox.
pub const WAITING: u64 = 10_000;

/// Most of all that waits in one inbox: where people and programs said as much as it takes, there is still room for answers,
/// decisions and orders, which may be what the session waits for.
pub const WAITING_ORDERS: u64 = WAITING + 1_000;

/// Most events in the box of a store.
pub const BOXED: u64 = 10_000;

/// At least so many ids of events are remembered whatever time it is. Beyond that now and then those go whose time is past by the clock of an
/// event that comes, the ones that end first, no more than are too many: one absurd clock makes no id new that is still remembered.
pub const SEEN: u64 = 100_000;

/// Most characters of the name of a branch.
pub const BRANCH_LABEL: usize = 40;

/// Refuses an id of a session that no store takes.
///
/// It is a part of a path, of what is typed at shells and of the program's addresses, which know one case: two ids that
/// differ in nothing else are one file on some disks.
///
/// # Errors
/// [`StoreError::BadId`].
pub fn session_id(id: &str) -> Result<(), StoreError> {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [id.as_bytes().first(), id.as_bytes().last()];
    let fits = id.len() <= SESSION_ID
        && ends.iter().all(|end| end.is_some_and(plain))
        && id.bytes().all(|b| plain(&b) || b"-_.".contains(&b));
    if fits {
        return Ok(());
    }
    Err(bad(
        "session id",
        id,
        format!(
            "it has 1 to {SESSION_ID} of the characters a-z, 0-9, `-`, `_` and `.`, and begins and ends with a letter or a digit"
        ),
    ))
}

/// Refuses any other id, or a key, that no store takes; `what` it is.
///
/// # Errors
/// [`StoreError::BadId`].
pub fn id(what: &'static str, id: &str) -> Result<(), StoreError> {
    if (1..=ID).contains(&id.len()) {
        return Ok(());
    }
    let why = format!("it has 1 to {ID} bytes, and this one {}", id.len());
    Err(bad(what, id, why))
}

fn bad(what: &'static str, id: &str, why: String) -> StoreError {
    const SHOWN: usize = 40;
    let mut shown: String = id
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if id.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    StoreError::BadId {
        what,
        id: shown,
        why,
    }
}

/// Refuses a session that no store takes.
///
/// # Errors
/// [`StoreError::BadId`], [`StoreError::TooLarge`].
pub fn session(new: &NewSession) -> Result<(), StoreError> {
    session_id(&new.id)?;
    if let Some(key) = &new.key {
        id("session key", key)?;
    }
    new.first.as_ref().map_or(Ok(()), message)
}

/// Refuses a message that no store takes.
///
/// # Errors
/// [`StoreError::BadId`], [`StoreError::TooLarge`].
pub fn message(message: &InboxMessage) -> Result<(), StoreError> {
    id("message id", &message.id)?;
    within(|| format!("message `{}`", message.id), message.bytes.len())
}

/// Refuses an event that no store takes.
///
/// # Errors
/// [`StoreError::BadId`], [`StoreError::TooLarge`].
pub fn event(event: &BoxedEvent) -> Result<(), StoreError> {
    id("event id", &event.id)?;
    let what = || format!("event `{}`", event.id);
    within(what, event.fields.len()).and(within(what, event.message.len()))
}

/// Refuses a memory that no store takes.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub fn memory(new: &NewMemory) -> Result<(), StoreError> {
    let tags: usize = new.tags.iter().map(|tag| tag.len() + 4).sum();
    let size = new.key.len() + new.scope.len() + new.name.len() + new.media.len() + tags;
    within(|| format!("what is said of memory `{}`", new.key), size)
}

/// How many may wait in an inbox when this comes, at most, itself among them.
pub fn most_waiting(message: &InboxMessage) -> u64 {
    match Message::decode(message) {
        Ok(
            Message::Say { .. }
            | Message::Sent { .. }
            | Message::Interrupt { .. }
            | Message::Event { .. }
            | Message::With { .. },
        )
        | Err(_) => WAITING,
        Ok(_) => WAITING_ORDERS,
    }
}

/// An inbox has no room for one more.
pub fn full_inbox(session: &str, most: u64) -> StoreError {
    StoreError::Full {
        what: format!("the inbox of session `{session}`"),
        most,
    }
}

/// The box has no room for one more event.
pub fn full_box() -> StoreError {
    StoreError::Full {
        what: "the box of events that nobody waits for".to_owned(),
        most: BOXED,
    }
}

/// Why a branch cannot be called so, if it cannot.
pub fn unfit_label(label: &str) -> Option<String> {
    let plain = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let is_name = label.starts_with(char::is_alphabetic) && label.chars().all(plain);
    let fits = is_name && label.chars().count() <= BRANCH_LABEL && label != "main";
    (!fits).then(|| {
        format!(
            "a name of a branch begins with a letter and has letters, digits, - and _, {BRANCH_LABEL} at most; `main` is taken"
        )
    })
}

//! Inboxes of sessions.

use super::append::name;
use super::lists::Trust;
use super::seen::MessageHash;
use super::sum::Sum;
use super::writer::Said;
use rusqlite::{Connection, OptionalExtension, params};
use std::sync::Arc;
use steersman_machine::stored::ids::{Name, Time};
use steersman_runtime::store::{InboxMessage, SaidHash, SessionId, StoreError, bounds};

/// Returns a checksum of a message, so that a damaged message is not taken for another one.
fn sum(message: &InboxMessage) -> [u8; 8] {
    let sum = Sum::of(&[message.id.as_bytes()]);
    sum.and(&message.at.0.to_le_bytes())
        .and(&message.bytes)
        .first()
}

/// Returns the stored form of a content hash: keyed, so that erased contents cannot be guessed by their hash.
fn salted(salt: &[u8], said: SaidHash) -> [u8; 16] {
    Sum::default().and(salt).and(&said.0).first()
}

/// Compares a message with the one that was accepted first under its id. Returns `Ok(false)` (not new) if the contents are the same or
/// the first ones are not known, and an error if they differ.
pub(super) fn not_new(id: &Name, before: MessageHash, now: [u8; 16]) -> Result<bool, StoreError> {
    match before {
        Some(before) if before != now => Err(StoreError::Repeated(id.clone())),
        _ => Ok(false),
    }
}

/// A session: its number, the salt of its hashes, its id.
pub(super) type Recipient = (i64, [u8; 16], SessionId);

/// Puts a message into an inbox. `said` is the hash with which its id is accepted, if that is not the hash of the message.
/// Returns false if the id is known.
pub(super) fn deliver(
    conn: &Connection,
    (no, salt, id): &Recipient,
    message: &InboxMessage,
    said: Option<SaidHash>,
) -> Said<bool> {
    let said = said.unwrap_or_else(|| SaidHash::of(&message.id, &message.bytes));
    let most = bounds::most_waiting(message);
    let said = salted(salt, said);
    let new = conn
        .prepare_cached(
            "INSERT INTO accepted (no, id, said) SELECT ?1, ?2, ?3
             WHERE (SELECT count(*) FROM inbox WHERE no = ?1) < ?4 ON CONFLICT (no, id) DO NOTHING",
        )?
        .execute(params![no, &*message.id, said, most as i64])?
        == 1;
    if new {
        conn.prepare_cached(
            "INSERT INTO inbox (no, id, at, bytes, sum) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            no,
            &*message.id,
            message.at.0,
            &*message.bytes,
            sum(message)
        ])?;
        super::seat::mailed(conn, *no, message.at)?;
        return Ok(Ok(true));
    }
    Ok(match before(conn, *no, &message.id)? {
        Some(before) => not_new(&message.id, before, said),
        None => Err(bounds::full_inbox(id, most)),
    })
}

/// Returns the hash with which a message was accepted; `None` if it was not accepted.
fn before(conn: &Connection, no: i64, id: &str) -> rusqlite::Result<Option<MessageHash>> {
    conn.prepare_cached("SELECT said FROM accepted WHERE no = ?1 AND id = ?2")?
        .query_row(params![no, id], |row| row.get(0))
        .optional()
}

/// Returns the error with which [`deliver`] would refuse a message.
pub(super) fn refused(
    conn: &Connection,
    (no, salt, id): &Recipient,
    message: &InboxMessage,
) -> rusqlite::Result<Option<StoreError>> {
    if let Some(before) = before(conn, *no, &message.id)? {
        let said = salted(salt, SaidHash::of(&message.id, &message.bytes));
        return Ok(not_new(&message.id, before, said).err());
    }
    let most = bounds::most_waiting(message);
    let there: i64 = conn
        .prepare_cached("SELECT count(*) FROM inbox WHERE no = ?1")?
        .query_row([no], |row| row.get(0))?;
    Ok((there as u64 >= most).then(|| bounds::full_inbox(id, most)))
}

/// Returns the number of messages that were ever delivered, and the messages of an inbox; a damaged message has no bytes.
pub(super) fn messages(
    conn: &Connection,
    no: i64,
    trust: Trust,
) -> rusqlite::Result<(u64, Vec<InboxMessage>)> {
    // One transaction, so that the number and the messages belong together.
    let moment = conn.unchecked_transaction()?;
    let conn = &moment;
    let mail: Option<i64> = conn
        .prepare_cached("SELECT mail FROM seat WHERE no = ?1")?
        .query_row([no], |row| row.get(0))
        .optional()?;
    let mut statement = conn.prepare_cached(&format!(
        "SELECT id, at, bytes, sum FROM inbox {} WHERE no = ?1 ORDER BY seq",
        trust.index()
    ))?;
    let mut rows = statement.query([no])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        let mut message = InboxMessage {
            id: name(row, 0)?,
            at: Time(row.get(1)?),
            bytes: row.get_ref(2)?.as_blob()?.into(),
        };
        if row.get_ref(3)?.as_blob()? != sum(&message) {
            message.bytes = Arc::default();
        }
        messages.push(message);
    }
    Ok((mail.unwrap_or_default() as u64, messages))
}

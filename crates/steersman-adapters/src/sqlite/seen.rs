//! Ids of accepted events, by which an event that comes again is recognized.
//!
//! Damage of a row must not make an accepted event new again. So a row has a checksum, and is found by two indexes: by its id
//! and by a hash of it. A row that is missing in one of them, or does not match its checksum, is damaged.

use super::sum::Sum;
use rusqlite::{Connection, OptionalExtension, Row, params};
use steersman_machine::stored::ids::Time;
use steersman_runtime::store::{StoreError, bounds};

/// The stored hash of a message with which an id was accepted; `None` if it is not known.
pub(super) type MessageHash = Option<[u8; 16]>;

fn hash(parts: &[&[u8]]) -> [u8; 8] {
    Sum::of(parts).first()
}

fn sum(tenant: &[u8], id: &[u8], until: i64, said: &[u8]) -> [u8; 8] {
    hash(&[tenant, id, &until.to_le_bytes(), said])
}

const ALL: &str = "SELECT id, until, said, sum, hash, tenant FROM event_seen";

/// Returns the hash in a row of [`ALL`]; the outer `None` means that the row is damaged.
fn verified(row: &Row<'_>) -> rusqlite::Result<Option<MessageHash>> {
    let bytes = |column: usize| row.get_ref(column);
    let said = bytes(2)?.as_blob_or_null().ok().flatten();
    let stored = (bytes(3)?.as_blob_or_null(), bytes(4)?.as_blob_or_null());
    let is_whole = match stored {
        (Ok(Some(stored_sum)), Ok(Some(stored_hash))) => {
            let (tenant, id) = (bytes(5)?.as_bytes(), bytes(0)?.as_bytes());
            match (tenant, id, bytes(1)?.as_i64()) {
                (Ok(tenant), Ok(id), Ok(until)) => {
                    let sum = sum(tenant, id, until, said.unwrap_or_default());
                    sum == *stored_sum && hash(&[tenant, id]) == *stored_hash
                }
                _ => false,
            }
        }
        _ => false,
    };
    let said = said.map(<[u8; 16]>::try_from);
    Ok(match said {
        _ if !is_whole => None,
        None => Some(None),
        Some(said) => said.ok().map(Some),
    })
}

/// Returns the hash with which an id was accepted; the outer `None` means that the id is new. Returns an error if its row is
/// damaged.
pub(super) fn find(
    conn: &Connection,
    tenant: &str,
    id: &str,
) -> rusqlite::Result<Result<Option<MessageHash>, StoreError>> {
    let by_id = conn
        .prepare_cached(&format!("{ALL} WHERE tenant = ?1 AND id = ?2"))?
        .query_row([tenant, id], verified)
        .optional()?;
    if let Some(Some(said)) = by_id {
        return Ok(Ok(Some(said)));
    }
    let by_hash = conn
        .prepare_cached(&format!("{ALL} INDEXED BY event_seen_hash WHERE hash = ?1"))?
        .exists([hash(&[tenant.as_bytes(), id.as_bytes()])])?;
    if by_id.is_none() && !by_hash {
        return Ok(Ok(None));
    }
    Ok(Err(StoreError::Corrupt {
        place: format!("event `{id}`"),
        what: "its row in the store is damaged, so it is not known whether the event was accepted before; `steersman fsck` says \
               more"
            .to_owned(),
    }))
}

pub(super) fn remember(
    conn: &Connection,
    tenant: &str,
    id: &str,
    until: Time,
    said: [u8; 16],
) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO event_seen (id, until, said, sum, hash, tenant) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        id,
        until.0,
        said,
        sum(tenant.as_bytes(), id.as_bytes(), until.0, &said),
        hash(&[tenant.as_bytes(), id.as_bytes()]),
        tenant
    ])
    .map(drop)
}

/// Deletes expired rows while there are more than [`bounds::SEEN`], those that expired first before others. Damaged rows stay.
pub(super) fn forget(conn: &Connection, now: Time) -> rusqlite::Result<()> {
    let there: i64 = conn
        .prepare_cached("SELECT count(*) FROM event_seen INDEXED BY event_seen_until")?
        .query_row([], |row| row.get(0))?;
    let over = there - bounds::SEEN as i64;
    if over <= 0 {
        return Ok(());
    }
    let mut past = Vec::new();
    let mut first = conn.prepare_cached(&format!(
        "{ALL} INDEXED BY event_seen_until WHERE until < ?1 ORDER BY until LIMIT ?2"
    ))?;
    let mut rows = first.query([now.0, over])?;
    while let Some(row) = rows.next()? {
        if verified(row)?.is_some() {
            past.push([row.get::<_, String>(5)?, row.get(0)?]);
        }
    }
    for key in past {
        conn.prepare_cached("DELETE FROM event_seen WHERE tenant = ?1 AND id = ?2")?
            .execute(key)?;
    }
    Ok(())
}

/// Returns a sentence for each damaged row.
pub(super) fn damaged(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut all = conn.prepare(&format!("{ALL} NOT INDEXED"))?;
    let mut rows = all.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if verified(row)?.is_none() {
            let id = String::from_utf8_lossy(row.get_ref(0)?.as_bytes().unwrap_or_default());
            found.push(format!("the row of the accepted event `{id}` is damaged"));
        }
    }
    Ok(found)
}

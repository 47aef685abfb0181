//! Contents by their hashes.

use rusqlite::{Connection, OptionalExtension, params};
use std::sync::Arc;
use steersman_runtime::store::StoreError;

/// Returns the bytes of a blob, not checked against its hash; see [`checked`].
pub(super) fn bytes(conn: &Connection, hash: &[u8; 32]) -> rusqlite::Result<Option<Vec<u8>>> {
    conn.prepare_cached("SELECT bytes FROM blob WHERE hash = ?1")?
        .query_row([hash], |r| r.get(0))
        .optional()
}

/// Stores a blob, unless it is there.
pub(super) fn put(conn: &Connection, hash: &[u8; 32], bytes: &[u8]) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT INTO blob (hash, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute(params![hash, bytes])
        .map(drop)
}

/// Refuses a blob that does not match its hash.
pub(super) fn checked(
    place: &str,
    hash: &[u8; 32],
    bytes: Vec<u8>,
) -> Result<Arc<[u8]>, StoreError> {
    if blake3::hash(&bytes) == *hash {
        return Ok(bytes.into());
    }
    Err(StoreError::Corrupt {
        place: format!("{place}: blob {}", blake3::Hash::from(*hash).to_hex()),
        what: "its content does not fit its hash".to_owned(),
    })
}

//! The statements of a batch: a guarded insert of its first line, an insert for each further line, and one statement for each
//! other change.

use super::blob;
use super::owner::OwnerLock;
use super::writer::{Said, State};
use super::{effect_no, field_names};
use rusqlite::{Connection, OptionalExtension, params};
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::values::types::canonical;
use steersman_runtime::store::{
    Batch, CheckpointOf, Claim, Row, SessionState, StoreError, WaitChange, check, never_written,
};

/// Returns the integer key of a line.
pub(super) fn key(no: i64, n: Line) -> i64 {
    no << 28 | n.0 as i64
}

/// Returns true if the claim's epoch is the newest.
fn guarded(conn: &Connection, claim: &Claim) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT 1 FROM seat WHERE no = ?1 AND epoch = ?2")?
        .exists(params![claim.number as i64, claim.epoch as i64])
}

fn fenced(claim: &Claim) -> StoreError {
    StoreError::Fenced {
        session: claim.session.clone(),
        epoch: claim.epoch,
    }
}

/// Writes a batch. If it is refused, nothing was written: the first insert checks the epoch for everything that follows.
pub(super) fn append(
    conn: &Connection,
    state: &mut State,
    claim: &Claim,
    batch: &Batch,
) -> Said<()> {
    let no = claim.number as i64;
    let Some((last, known)) = state.may_write(no, claim.epoch) else {
        return Ok(Err(fenced(claim)));
    };
    if let Err(e) = check(&claim.session, last, batch) {
        state.fail(no, claim.epoch);
        return Ok(Err(e));
    }
    for row in &batch.rewritten {
        let mut there = conn.prepare_cached("SELECT 1 FROM line WHERE key = ?1")?;
        if !there.exists([key(no, row.n)])? {
            state.fail(no, claim.epoch);
            return Ok(Err(never_written(&claim.session, row.n)));
        }
    }
    let mut rows = batch.rows.iter();
    // Without its lock file the owner is invisible to others: another process may own the session at any moment.
    let lock = claim.lock.downcast_ref::<OwnerLock>();
    if !known && lock.is_some_and(|lock| !state.is_locked(no, lock)) {
        state.fail(no, claim.epoch);
        return Ok(Err(fenced(claim)));
    }
    let first = match rows.next() {
        Some(row) if known => insert(conn, no, row)? == 1,
        Some(row) => {
            conn.prepare_cached(
                "INSERT INTO line (key, bytes) SELECT ?1, ?2 FROM seat WHERE no = ?3 AND epoch = ?4",
            )?
            .execute(params![key(no, row.n), &*row.bytes, no, claim.epoch as i64])?
                == 1
        }
        None => known || guarded(conn, claim)?,
    };
    if !first {
        state.fail(no, claim.epoch);
        return Ok(Err(fenced(claim)));
    }
    for row in rows {
        insert(conn, no, row)?;
    }
    state.wrote(no, claim.epoch, batch.rows.last().map(|row| row.n));
    if batch.begins_unsafe {
        state.begins_unsafe();
    }
    if batch.tells_accepted {
        conn.execute("DELETE FROM store_accepted WHERE no = ?1", [no])?;
    }
    for row in &batch.rewritten {
        conn.prepare_cached("UPDATE line SET bytes = ?2 WHERE key = ?1")?
            .execute(params![key(no, row.n), &*row.bytes])?;
    }
    if !batch.rewritten.is_empty() {
        conn.prepare_cached("DELETE FROM checkpoint WHERE no = ?1")?
            .execute([no])?;
    }
    for (hash, bytes) in &batch.blobs {
        blob::put(conn, hash, bytes)?;
    }
    beside(conn, claim, batch)?;
    Ok(Ok(()))
}

fn insert(conn: &Connection, no: i64, row: &Row) -> rusqlite::Result<usize> {
    conn.prepare_cached("INSERT INTO line (key, bytes) VALUES (?1, ?2)")?
        .execute(params![key(no, row.n), &*row.bytes])
}

/// Writes the other changes of a batch than its lines: inbox, event box, waits, needs, labels, the session's row, checkpoints.
fn beside(conn: &Connection, claim: &Claim, batch: &Batch) -> rusqlite::Result<()> {
    let no = claim.number as i64;
    for id in &batch.consumed {
        conn.prepare_cached(
            "INSERT INTO accepted (no, id) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        )?
        .execute(params![no, &**id])?;
    }
    for id in &batch.dropped {
        conn.prepare_cached("DELETE FROM accepted WHERE no = ?1 AND id = ?2")?
            .execute(params![no, &**id])?;
    }
    for id in batch.consumed.iter().chain(&batch.dropped) {
        conn.prepare_cached("DELETE FROM inbox WHERE no = ?1 AND id = ?2")?
            .execute(params![no, &**id])?;
    }
    for id in &batch.events_taken {
        conn.prepare_cached("DELETE FROM event WHERE tenant = ?1 AND id = ?2")?
            .execute([&*claim.scope.tenant, &**id])?;
    }
    for change in &batch.waits {
        wait(conn, no, change)?;
    }
    if let Some(needs) = &batch.needs {
        super::seat::needs(conn, no, needs)?;
    }
    for (name, value) in &batch.labels {
        match value {
            Some(value) => conn
                .prepare_cached(
                    "INSERT OR REPLACE INTO label (no, name, value) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![no, &**name, &**value])?,
            None => conn
                .prepare_cached("DELETE FROM label WHERE no = ?1 AND name = ?2")?
                .execute(params![no, &**name])?,
        };
    }
    if let Some(state) = &batch.info {
        info(conn, no, state)?;
    }
    for (of, checkpoint) in &batch.checkpoints {
        conn.prepare_cached(
            "INSERT OR REPLACE INTO checkpoint (no, of, at, bytes) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            no,
            of_no(*of),
            checkpoint.at.0 as i64,
            &*checkpoint.bytes
        ])?;
    }
    Ok(())
}

/// Returns a checkpoint's kind as a number: the branch, or 0 for the ledger.
pub(super) fn of_no(of: CheckpointOf) -> i64 {
    match of {
        CheckpointOf::Ledger => 0,
        CheckpointOf::Branch(id) => effect_no(id),
    }
}

/// Converts a sum for SQLite: larger numbers become the largest signed one instead of negative.
fn integer(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Replaces the events that an effect waits for.
fn wait(conn: &Connection, no: i64, change: &WaitChange) -> rusqlite::Result<()> {
    let effect = effect_no(change.effect);
    conn.prepare_cached("DELETE FROM wait WHERE no = ?1 AND effect = ?2")?
        .execute(params![no, effect])?;
    for (event, key) in &change.open {
        // A key that is not a JSON object matches no event.
        let Ok(key) = serde_json::from_str(key) else {
            continue;
        };
        conn.prepare_cached(
            "INSERT OR REPLACE INTO wait (no, effect, network, event, fields, key)
             SELECT ?1, ?2, network, ?3, ?4, ?5 FROM session WHERE no = ?1",
        )?
        .execute(params![
            no,
            effect,
            &**event,
            field_names(&key),
            canonical(&key).to_string()
        ])?;
    }
    Ok(())
}

fn info(conn: &Connection, no: i64, state: &SessionState) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "UPDATE session SET status = ?2, updated = ?3, definition = ?4, micros = ?5, tokens = ?6,
         model_calls = ?7, waits = ?8, outcome = ?9, last = ?10, moved = ?11 WHERE no = ?1",
    )?
    .execute(params![
        no,
        &*state.status,
        state.updated.0,
        &*state.definition,
        integer(state.micros),
        integer(state.tokens),
        integer(state.model_calls),
        &*state.waits,
        &*state.outcome,
        &*state.last,
        state.moved.as_deref(),
    ])?;
    Ok(())
}

/// Returns the number of a session and the salt of its hashes.
pub(super) fn find(conn: &Connection, session: &str) -> rusqlite::Result<Option<(i64, [u8; 16])>> {
    conn.prepare_cached("SELECT no, salt FROM session WHERE id = ?1")?
        .query_row([session], |r| Ok((r.get(0)?, r.get(1)?)))
        .optional()
}

/// Returns the last line of a session.
pub(super) fn head(conn: &Connection, no: i64) -> rusqlite::Result<Line> {
    let last: Option<i64> = conn
        .prepare_cached(
            "SELECT key FROM line WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1",
        )?
        .query_row([key(no, Line::NONE), key(no, Line::MAX)], |r| r.get(0))
        .optional()?;
    Ok(last.map_or(Line::NONE, |k| Line(k as u64 & Line::MAX.0)))
}

/// Decodes the number of an effect; `None` if it is invalid.
pub(super) fn effect_of(no: i64) -> Option<Id> {
    let no = u64::try_from(no).ok()?;
    if no == 1 {
        return Some(Id::MAIN);
    }
    let (line, k) = (Line(no >> 20), (no & 0xf_ffff) as u32);
    (line.is_some() && line <= Line::MAX).then(|| Id::new(line, k))
}

/// Reads a name from a column.
pub(super) fn name(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Name> {
    Ok(row.get_ref(column)?.as_str()?.into())
}

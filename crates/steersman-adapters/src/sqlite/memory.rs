//! Memories, which agents keep across sessions.

use super::append::{effect_of, name};
use super::effect_no;
use super::writer::Said;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::sync::Arc;
use steersman_machine::stored::ids::Time;
use steersman_runtime::store::{Memory, MemoryQuery, NewMemory, Rated, bounds};

/// Deletes expired memories and stores a memory. Returns its id. If a memory of the tenant has this key already, stores nothing and
/// returns the id of that memory.
pub(super) fn remember(conn: &Connection, new: &NewMemory) -> Said<u64> {
    if let Err(e) = bounds::memory(new) {
        return Ok(Err(e));
    }
    conn.prepare_cached(
        "DELETE FROM memory_rating WHERE id IN (SELECT id FROM memory WHERE until < ?1)",
    )?
    .execute([new.at.0])?;
    conn.prepare_cached("DELETE FROM memory WHERE until < ?1")?
        .execute([new.at.0])?;
    let known: Option<i64> = conn
        .prepare_cached("SELECT id FROM memory WHERE tenant = ?1 AND key = ?2")?
        .query_row([&*new.part.tenant, &*new.key], |r| r.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(Ok(id as u64));
    }
    let hash = *blake3::hash(&new.content).as_bytes();
    super::blob::put(conn, &hash, &new.content)?;
    let tags: Vec<&str> = new.tags.iter().map(|tag| &**tag).collect();
    let id = conn
        .prepare_cached(
            "INSERT INTO memory (key, scope, name, tags, media, len, hash, session, effect, network, by, at, until, tenant, subject)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?
        .insert(params![
            &*new.key,
            &*new.scope,
            &*new.name,
            serde_json::Value::from(tags).to_string(),
            &*new.media,
            new.content.len() as i64,
            hash,
            new.session.as_deref(),
            new.effect.map(effect_no),
            &*new.network,
            &*new.by,
            new.at.0,
            new.until.map(|until| until.0),
            &*new.part.tenant,
            new.part.subject.as_deref(),
        ])?;
    for of in &new.replaces {
        conn.prepare_cached(
            "UPDATE memory SET replaced = ?2 WHERE id = ?1 AND tenant = ?3 AND subject IS ?4 AND scope = ?5",
        )?
        .execute(params![
            memory_no(*of),
            id,
            &*new.part.tenant,
            new.part.subject.as_deref(),
            &*new.scope
        ])?;
    }
    Ok(Ok(id as u64))
}

pub(super) fn memories(conn: &Connection, query: &MemoryQuery) -> rusqlite::Result<Vec<Memory>> {
    let part = query.part.as_ref();
    conn.prepare_cached(
        "SELECT m.id, m.scope, m.name, m.tags, m.media, m.len, m.hash, m.session, m.effect, m.network, m.by, m.at, m.until,
                a.rating, a.reason, a.by, p.rating, p.reason, p.by, m.tenant, m.subject, b.id
         FROM memory m
         LEFT JOIN memory_rating a ON a.id = m.id AND a.person = 0
         LEFT JOIN memory_rating p ON p.id = m.id AND p.person = 1
         LEFT JOIN memory b ON b.id = m.replaced AND (b.until IS NULL OR b.until >= ?4)
         WHERE (?1 IS NULL OR m.scope = ?1) AND (?2 IS NULL OR m.id = ?2) AND (?3 IS NULL OR m.session = ?3)
               AND (m.until IS NULL OR m.until >= ?4)
               AND (?5 IS NULL OR m.tenant = ?5) AND (?6 IS NULL OR m.subject = ?6)
               AND (NOT ?7 OR b.id IS NULL)
         ORDER BY m.at DESC, m.id DESC",
    )?
    .query_map(
        params![
            query.scope.as_deref(),
            query.id.map(memory_no),
            query.session.as_deref(),
            query.now.0,
            part.map(|part| &*part.tenant),
            part.and_then(|part| part.subject.as_deref()),
            query.current
        ],
        memory,
    )?
    .collect()
}

/// Returns the number of a memory in its tables. An id that is too large has -1, the number of no memory.
fn memory_no(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(-1)
}

fn memory(row: &Row<'_>) -> rusqlite::Result<Memory> {
    let tags: Vec<String> = serde_json::from_str(&row.get::<_, String>(3)?).unwrap_or_default();
    Ok(Memory {
        id: row.get::<_, i64>(0)? as u64,
        part: super::accounts::scope(row, 19)?,
        scope: row.get::<_, Arc<str>>(1)?,
        name: row.get::<_, Arc<str>>(2)?,
        tags: tags.into_iter().map(Arc::from).collect(),
        media: name(row, 4)?,
        len: row.get::<_, i64>(5)? as u64,
        hash: row.get(6)?,
        session: row.get::<_, Option<Arc<str>>>(7)?,
        effect: row.get::<_, Option<i64>>(8)?.and_then(effect_of),
        network: name(row, 9)?,
        by: name(row, 10)?,
        at: Time(row.get(11)?),
        until: row.get::<_, Option<i64>>(12)?.map(Time),
        replaced: row.get::<_, Option<i64>>(21)?.map(|id| id as u64),
        by_agents: rated(row, 13)?,
        by_people: rated(row, 16)?,
    })
}

fn rated(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Rated>> {
    let Some(rating) = row.get::<_, Option<u8>>(at)? else {
        return Ok(None);
    };
    Ok(Some(Rated {
        rating,
        reason: row.get::<_, Option<Arc<str>>>(at + 1)?,
        by: name(row, at + 2)?,
    }))
}

/// Stores the newest rating of a memory by agents or by people. Returns false if there is no such memory.
pub(super) fn rate(conn: &Connection, id: u64, rated: &Rated, by_person: bool) -> Said<bool> {
    let made = conn
        .prepare_cached(
            "INSERT OR REPLACE INTO memory_rating (id, person, rating, reason, by)
             SELECT id, ?2, ?3, ?4, ?5 FROM memory WHERE id = ?1",
        )?
        .execute(params![
            memory_no(id),
            by_person,
            rated.rating,
            rated.reason.as_deref(),
            &*rated.by
        ])?;
    Ok(Ok(made > 0))
}

pub(super) fn forget(conn: &Connection, ids: &[u64]) -> Said<u64> {
    let mut gone = 0;
    for id in ids {
        let id = memory_no(*id);
        conn.prepare_cached("DELETE FROM memory_rating WHERE id = ?1")?
            .execute([id])?;
        gone += conn
            .prepare_cached("DELETE FROM memory WHERE id = ?1")?
            .execute([id])?;
    }
    Ok(Ok(gone as u64))
}

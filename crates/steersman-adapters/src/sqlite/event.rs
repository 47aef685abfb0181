//! Events: those that waits take, and the box for those that no wait has taken yet.

use super::append::name;
use super::inbox::{self, Recipient, not_new, refused};
use super::lists::Trust;
use super::seen;
use super::sum::Sum;
use super::writer::{Said, State};
use rusqlite::{Connection, params};
use std::sync::Arc;
use steersman_machine::stored::ids::{Name, Time};
use steersman_machine::values::types::canonical;
use steersman_runtime::store::{BoxedEvent, InboxMessage, SaidHash, Scope, bounds, meets};

/// Returns a checksum of an event.
fn sum(event: &BoxedEvent) -> [u8; 8] {
    let subject = event.scope.subject.as_deref();
    let texts = Sum::of(&[
        event.scope.tenant.as_bytes(),
        subject.unwrap_or_default().as_bytes(),
        event.id.as_bytes(),
        event.network.as_bytes(),
        event.event.as_bytes(),
        event.fields.as_bytes(),
        &event.message,
    ]);
    let times = [event.at, event.until].map(|at| at.0.to_le_bytes());
    texts.and(&times[0]).and(&times[1]).first()
}

/// Returns true if the box has no room for another event, even after expired ones were dropped.
fn is_full_box(conn: &Connection, now: Time) -> rusqlite::Result<bool> {
    let is_full = || -> rusqlite::Result<bool> {
        let there: i64 = conn
            .prepare_cached("SELECT count(*) FROM event")?
            .query_row([], |row| row.get(0))?;
        Ok(there as u64 >= bounds::BOXED)
    };
    if !is_full()? {
        return Ok(false);
    }
    drop_past(conn, now)?;
    is_full()
}

/// Reads an event; a damaged one has no message.
fn event(row: &rusqlite::Row<'_>) -> rusqlite::Result<BoxedEvent> {
    let text = |column: usize| -> rusqlite::Result<Name> {
        Ok(row.get_ref(column)?.as_str().unwrap_or_default().into())
    };
    let message = row.get_ref(4)?.as_blob().unwrap_or_default();
    let mut event = BoxedEvent {
        id: text(0)?,
        scope: Scope {
            tenant: text(9)?,
            subject: row
                .get_ref(10)?
                .as_str_or_null()
                .ok()
                .flatten()
                .map(Into::into),
        },
        network: text(1)?,
        event: text(2)?,
        fields: text(3)?,
        message: message.into(),
        at: Time(row.get_ref(5)?.as_i64().unwrap_or_default()),
        until: Time(row.get_ref(6)?.as_i64().unwrap_or_default()),
    };
    let stored = row.get_ref(7)?.as_blob();
    if stored.is_ok_and(|stored| stored == sum(&event)) {
        return Ok(event);
    }
    event.message = Arc::default();
    Ok(event)
}

/// Delivers an event to the waits that it matches, or puts it into the box. Returns false if its id is known.
pub(super) fn deliver(conn: &Connection, state: &mut State, event: &BoxedEvent) -> Said<bool> {
    let said = SaidHash::of(&event.id, &event.message).0;
    let tenant = &event.scope.tenant;
    match seen::find(conn, tenant, &event.id)? {
        Ok(None) => {}
        Ok(Some(before)) => return Ok(not_new(&event.id, before, said)),
        Err(damaged) => return Ok(Err(damaged)),
    }
    let waiting = waiting(conn, event)?;
    let message = InboxMessage {
        id: event.id.clone(),
        at: event.at,
        bytes: event.message.clone(),
    };
    // Refused before anything is written: a transaction cannot be rolled back in part.
    for session in &waiting {
        if let Some(refused) = refused(conn, session, &message)? {
            return Ok(Err(refused));
        }
    }
    if waiting.is_empty() && is_full_box(conn, event.at)? {
        return Ok(Err(bounds::full_box()));
    }
    seen::remember(conn, tenant, &event.id, event.until, said)?;
    if state.counts_events() {
        seen::forget(conn, event.at)?;
    }
    for session in &waiting {
        // A session that has the message already gets nothing new.
        inbox::deliver(conn, session, &message, None)?
            .expect("no session refuses it, as asked above");
    }
    if waiting.is_empty() {
        conn.prepare_cached(
            "INSERT OR REPLACE INTO event (id, network, event, fields, message, at, until, sum, tenant, subject)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            &*event.id,
            &*event.network,
            &*event.event,
            &*event.fields,
            &*event.message,
            event.at.0,
            event.until.0,
            sum(event),
            &**tenant,
            event.scope.subject.as_deref()
        ])?;
    }
    Ok(Ok(true))
}

/// Returns the sessions with a wait that the event matches, with one index lookup for each distinct list of field names.
fn waiting(conn: &Connection, event: &BoxedEvent) -> rusqlite::Result<Vec<Recipient>> {
    type Object = serde_json::Map<String, serde_json::Value>;
    let Ok(fields) = serde_json::from_str::<Object>(&event.fields) else {
        return Ok(Vec::new());
    };
    let lists: Vec<String> = conn
        .prepare_cached("SELECT DISTINCT fields FROM wait WHERE network = ?1 AND event = ?2")?
        .query_map([&*event.network, &*event.event], |r| r.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut found = Vec::new();
    for list in lists {
        let names: Vec<String> = serde_json::from_str(&list).unwrap_or_default();
        let part: Option<Object> = names
            .iter()
            .map(|n| Some((n.clone(), fields.get(n)?.clone())))
            .collect();
        let Some(part) = part else { continue };
        let mut statement = conn.prepare_cached(
            "SELECT DISTINCT no, salt, id FROM wait JOIN session USING (no)
             WHERE wait.network = ?1 AND event = ?2 AND fields = ?3 AND wait.key = ?4
                   AND tenant = ?5 AND (?6 IS NULL OR subject = ?6) AND moved IS NULL",
        )?;
        let key = canonical(&part.into()).to_string();
        let sessions = statement.query_map(
            params![
                &*event.network,
                &*event.event,
                list,
                key,
                &*event.scope.tenant,
                event.scope.subject.as_deref()
            ],
            |r| Ok((r.get(0)?, r.get(1)?, name(r, 2)?)),
        )?;
        found.extend(sessions.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

const EVENT: &str =
    "SELECT id, network, event, fields, message, at, until, sum, seq, tenant, subject FROM event";

/// Returns the events in the box that a wait with this key takes, if its session has the scope `of`.
pub(super) fn boxed(
    conn: &Connection,
    of: &Scope,
    [network, name]: [&str; 2],
    key: &str,
    trust: Trust,
) -> rusqlite::Result<Vec<BoxedEvent>> {
    let mut found = Vec::new();
    let mut read = || -> rusqlite::Result<()> {
        let index = trust.index();
        let mut all = conn.prepare_cached(&format!(
            "{EVENT} {index} WHERE network = ?1 AND event = ?2 ORDER BY seq"
        ))?;
        let mut rows = all.query([network, name])?;
        while let Some(row) = rows.next()? {
            found.push(event(row)?);
        }
        Ok(())
    };
    match (read(), trust) {
        // Events on unreadable pages were already reported.
        (Ok(()), _) | (Err(_), Trust::Damaged) => {}
        (Err(error), Trust::Whole) => return Err(error),
    }
    found.retain(|event| {
        !event.message.is_empty() && event.scope.includes(of) && meets(key, &event.fields)
    });
    Ok(found)
}

/// Returns a sentence for each damaged event in the box.
pub(super) fn damaged(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut all = conn.prepare(&format!("{EVENT} ORDER BY seq"))?;
    let mut rows = all.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let event = event(row)?;
        if event.message.is_empty() {
            found.push(format!("event `{}` in the box is damaged", event.id));
        }
    }
    Ok(found)
}

/// Drops expired events. A damaged event stays, since its time may be wrong.
fn drop_past(conn: &Connection, now: Time) -> rusqlite::Result<()> {
    let mut past = Vec::new();
    let mut all = conn.prepare_cached(&format!("{EVENT} WHERE until < ?1"))?;
    let mut rows = all.query([now.0])?;
    while let Some(row) = rows.next()? {
        if !event(row)?.message.is_empty() {
            past.push(row.get::<_, i64>(8)?);
        }
    }
    for seq in past {
        conn.prepare_cached("DELETE FROM event WHERE seq = ?1")?
            .execute([seq])?;
    }
    Ok(())
}

/// Returns the events that are not expired, and damaged events, whose time may be wrong.
pub(super) fn in_box(
    conn: &Connection,
    of: Option<&Scope>,
    now: Time,
    limit: usize,
) -> rusqlite::Result<Vec<BoxedEvent>> {
    let mut all = conn.prepare_cached(&format!("{EVENT} ORDER BY seq"))?;
    let events = all.query_map([], event)?;
    let is_shown = |event: &rusqlite::Result<BoxedEvent>| {
        event.as_ref().map_or(true, |event| {
            let is_of = of.is_none_or(|of| of.includes(&event.scope));
            is_of && (event.until >= now || event.message.is_empty())
        })
    };
    events.filter(is_shown).take(limit).collect()
}

//! Reading and writing of inboxes and events, and reading of lists of sessions.

use super::append::name;
use super::seen;
use super::writer::{Said, State};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use std::fmt::Write as _;
use std::sync::Arc;
use steersman_machine::stored::ids::{Name, Time};
use steersman_machine::values::types::canonical;
use steersman_runtime::store::{
    BoxedEvent, InboxMessage, NewSession, SaidHash, Scope, SessionId, SessionInfo, SessionQuery,
    SessionState, StoreError, bounds, meets,
};

/// State of the lists by which sessions are found: trusted, or damaged
/// ([`Store::damaged_lists`](steersman_runtime::store::Store::damaged_lists)) and read with care.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    Whole,
    /// Something is damaged: tables are read without their indexes, and unreadable rows are left out.
    Damaged,
}

impl Trust {
    /// Returns the SQL that follows a table's name to choose an index.
    pub(super) fn index(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Damaged => "NOT INDEXED",
        }
    }
    /// Like `index`, for a table without row ids, which is stored in an index itself.
    fn index_of(self, table: &str) -> String {
        match self {
            Self::Whole => String::new(),
            Self::Damaged => format!("INDEXED BY sqlite_autoindex_{table}_1"),
        }
    }
}

/// Returns an eight-byte checksum of a message, so that a damaged message is not taken for another one.
pub(super) fn sum(message: &InboxMessage) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(message.id.len() as u64).to_le_bytes());
    hasher.update(message.id.as_bytes());
    hasher.update(&message.at.0.to_le_bytes());
    hasher.update(&message.bytes);
    let mut sum = [0; 8];
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    sum
}

/// Returns an eight-byte checksum of an event in the box, which holds the events that no wait has taken yet.
fn sum_of_event(event: &BoxedEvent) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    let subject = event.scope.subject.as_deref();
    for part in [
        event.scope.tenant.as_bytes(),
        subject.unwrap_or_default().as_bytes(),
        event.id.as_bytes(),
        event.network.as_bytes(),
        event.event.as_bytes(),
        event.fields.as_bytes(),
        &event.message,
    ] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.update(&event.at.0.to_le_bytes());
    hasher.update(&event.until.0.to_le_bytes());
    let mut sum = [0; 8];
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    sum
}

/// Returns a session that prevents a new one: the session with the same id, otherwise the one of the same tenant and network with
/// the same key.
pub(super) fn rival(conn: &Connection, new: &NewSession) -> rusqlite::Result<Option<SessionId>> {
    conn.prepare_cached(
        "SELECT id FROM session WHERE id = ?1 UNION ALL
         SELECT id FROM session WHERE network = ?2 AND key = ?3 AND tenant = ?4 LIMIT 1",
    )?
    .query_row(
        params![
            &*new.id,
            &*new.network,
            new.key.as_deref(),
            &*new.scope.tenant
        ],
        |row| name(row, 0),
    )
    .optional()
}

/// Returns the stored form of a content hash: keyed, so that erased contents cannot be guessed by their hash.
fn salted(salt: &[u8], said: SaidHash) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(salt);
    hasher.update(&said.0);
    let mut hash = [0; 16];
    hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    hash
}

/// Hash of the contents with which an id was accepted; `None` if it is not known.
struct Before(Option<[u8; 16]>);

/// Compares a message with the one that was accepted first under its id. Returns `Ok(false)` (not new) if the contents are the same or
/// the first ones are not known, and an error if they differ.
fn not_new(id: &Name, before: &Before, now: [u8; 16]) -> Result<bool, StoreError> {
    match before.0 {
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
    let said = said.unwrap_or_else(|| SaidHash::of(&message.bytes));
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
        Some(before) => not_new(&message.id, &before, said),
        None => Err(bounds::full_inbox(id, most)),
    })
}

/// Returns the hash with which a message was accepted; `None` if it was not accepted.
fn before(conn: &Connection, no: i64, id: &str) -> rusqlite::Result<Option<Before>> {
    conn.prepare_cached("SELECT said FROM accepted WHERE no = ?1 AND id = ?2")?
        .query_row(params![no, id], |row| row.get(0).map(Before))
        .optional()
}

/// Returns the error with which [`deliver`] would refuse a message.
fn refused(
    conn: &Connection,
    (no, salt, id): &Recipient,
    message: &InboxMessage,
) -> rusqlite::Result<Option<StoreError>> {
    if let Some(before) = before(conn, *no, &message.id)? {
        let said = salted(salt, SaidHash::of(&message.bytes));
        return Ok(not_new(&message.id, &before, said).err());
    }
    let most = bounds::most_waiting(message);
    let there: i64 = conn
        .prepare_cached("SELECT count(*) FROM inbox WHERE no = ?1")?
        .query_row([no], |row| row.get(0))?;
    Ok((there as u64 >= most).then(|| bounds::full_inbox(id, most)))
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

/// Returns the number of messages that were ever delivered, and the messages of an inbox; a damaged message has no bytes.
pub(super) fn inbox(
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
    let sum = row.get_ref(7)?.as_blob();
    if sum.is_ok_and(|sum| sum == sum_of_event(&event)) {
        return Ok(event);
    }
    event.message = Arc::default();
    Ok(event)
}

/// Delivers an event to the waits that it matches, or puts it into the box. Returns false if its id is known.
pub(super) fn deliver_event(
    conn: &Connection,
    state: &mut State,
    event: &BoxedEvent,
) -> Said<bool> {
    let said = SaidHash::of(&event.message).0;
    let tenant = &event.scope.tenant;
    match seen::find(conn, tenant, &event.id)? {
        Ok(None) => {}
        Ok(Some(before)) => return Ok(not_new(&event.id, &Before(before), said)),
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
        deliver(conn, session, &message, None)?.expect("no session refuses it, as asked above");
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
            sum_of_event(event),
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
pub(super) fn boxed_events(
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
pub(super) fn damaged_events(conn: &Connection) -> rusqlite::Result<Vec<String>> {
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
pub(super) fn event_box(
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

pub(super) fn sessions(
    conn: &Connection,
    query: &SessionQuery,
    trust: Trust,
) -> rusqlite::Result<Vec<SessionInfo>> {
    let index = trust.index();
    let mut filter = String::from("1");
    let mut values: Vec<Value> = Vec::new();
    let text = |t: &str| Value::Text(t.to_owned());
    if let Some(prefix) = &query.prefix {
        // the bounds let the index be used: the last Unicode character sorts after all others
        filter += " AND id BETWEEN ? AND ? AND substr(id, 1, length(?)) = ?";
        let last = format!("{prefix}{}", char::MAX);
        values.extend([text(prefix), Value::Text(last), text(prefix), text(prefix)]);
    }
    if let Some(network) = &query.network {
        filter += " AND network = ?";
        values.push(text(network));
    }
    if let Some(key) = &query.key {
        filter += " AND key = ?";
        values.push(text(key));
    }
    if let Some((name, value)) = &query.label {
        let _ = write!(
            filter,
            " AND no IN (SELECT no FROM label {} WHERE name = ? AND value = ?)",
            trust.index_of("label")
        );
        values.extend([text(name), text(value)]);
    }
    if !query.status.is_empty() {
        let marks = vec!["?"; query.status.len()].join(", ");
        let _ = write!(filter, " AND status IN ({marks})");
        values.extend(query.status.iter().map(|s| text(s)));
    }
    if query.inbox {
        let _ = write!(filter, " AND no IN (SELECT no FROM inbox {index})");
    }
    if let Some(since) = query.since {
        filter += " AND updated >= ?";
        values.push(Value::Integer(since.0));
    }
    if let Some(scope) = &query.scope {
        filter += " AND tenant = ?";
        values.push(text(&scope.tenant));
        if let Some(subject) = &scope.subject {
            filter += " AND subject = ?";
            values.push(text(subject));
        }
    }
    if let Some(worker) = query.worker {
        let _ = write!(
            filter,
            " AND no IN (SELECT no FROM seat {index} WHERE worker = ?)"
        );
        values.push(Value::Integer(worker as i64));
    }
    if let Some((updated, id)) = &query.after {
        filter += " AND (updated, no) < (?, (SELECT no FROM session WHERE id = ?))";
        values.extend([Value::Integer(updated.0), text(id)]);
    }
    values.push(Value::Integer(
        query.limit.map_or(-1, |l| i64::try_from(l).unwrap_or(-1)),
    ));
    let mut statement = conn.prepare_cached(&format!(
        "SELECT no, id, network, key, created, status, updated, definition, micros, tokens, model_calls, waits, outcome,
         salt, tenant, subject, last, moved FROM session {index} WHERE {filter} ORDER BY updated DESC, no DESC LIMIT ?"
    ))?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match info(conn, row) {
            Ok(info) => found.push(info),
            Err(_) if trust == Trust::Damaged => {}
            Err(e) => return Err(e),
        }
    }
    Ok(found)
}

fn info(conn: &Connection, row: &rusqlite::Row<'_>) -> rusqlite::Result<SessionInfo> {
    let no: i64 = row.get(0)?;
    Ok(SessionInfo {
        id: name(row, 1)?,
        network: name(row, 2)?,
        scope: super::accounts::scope(row, 14)?,
        key: row.get::<_, Option<String>>(3)?.map(Into::into),
        salt: row.get(13)?,
        created: Time(row.get(4)?),
        head: super::append::head(conn, no)?,
        state: SessionState {
            status: name(row, 5)?,
            updated: Time(row.get(6)?),
            definition: name(row, 7)?,
            micros: row.get::<_, i64>(8)? as u64,
            tokens: row.get::<_, i64>(9)? as u64,
            model_calls: row.get::<_, i64>(10)? as u64,
            waits: name(row, 11)?,
            outcome: name(row, 12)?,
            last: name(row, 16)?,
            moved: row.get::<_, Option<Name>>(17)?,
        },
        labels: conn
            .prepare_cached("SELECT name, value FROM label WHERE no = ?1 ORDER BY name")?
            .query_map([no], |r| Ok((name(r, 0)?, name(r, 1)?)))?
            .collect::<rusqlite::Result<_>>()?,
        owner: None,
        left: super::seat::left(conn, no)?,
    })
}

/// Returns the bytes of a blob, not checked against its hash; see [`checked`].
pub(super) fn blob(conn: &Connection, hash: &[u8; 32]) -> rusqlite::Result<Option<Vec<u8>>> {
    conn.prepare_cached("SELECT bytes FROM blob WHERE hash = ?1")?
        .query_row([hash], |r| r.get(0))
        .optional()
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

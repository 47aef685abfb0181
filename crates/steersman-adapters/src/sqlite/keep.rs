//! Maintenance of a store: copies, removal of blobs without references, and traces of missing data.

use super::append::{effect_of, find, key, name};
use super::error::{io, sql};
use super::file::one_name;
use super::open::{For, alone, entered, open};
use super::part::Part;
use super::seen;
use super::{SqliteStore, blob, event};
use crate::stores::{Beside, ErasedContents, Forgot, Garbage, Ids, Passed, SealedWith};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use steersman_machine::stored::ids::{Line, hex};
use steersman_runtime::beside::Kept;
use steersman_runtime::store::{SessionId, StoreError};
use steersman_runtime::{Boxed, seal};

impl SqliteStore {
    /// Copies the store into a new file while it is in use: a complete state as of one moment. No writer is blocked. The key
    /// that seals secrets is not in the store, and so not in the copy. The copy of a store that a person has to accept
    /// ([`Self::doubt`]) has to be accepted as well.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the file exists or cannot be written; then nothing of the copy is left.
    pub fn backup(&self, to: &Path) -> Boxed<'static, Result<u64, StoreError>> {
        let (from, to) = (self.path().to_owned(), to.to_owned());
        let copied = tokio::task::spawn_blocking(move || copy(&from, &to));
        let path = self.path().to_owned();
        Box::pin(async move { copied.await.unwrap_or_else(|_| Err(Self::gone(&path))) })
    }

    /// Returns the keys that the store needs, with the number of texts that each of them sealed. Reads the whole store.
    pub fn sealed_with(&self) -> Boxed<'static, Result<SealedWith, StoreError>> {
        self.read(sealed_with)
    }

    /// Returns the numbers of all sessions with their ids, or a description of the damage because of which a session is not
    /// found by its id.
    pub fn ids(&self) -> Boxed<'static, Result<Ids, StoreError>> {
        self.read(ids)
    }

    /// Returns the data that is kept about a session apart from its log.
    pub fn beside(&self, session: &str) -> Boxed<'static, Result<Beside, StoreError>> {
        let id: SessionId = session.into();
        let wanted = id.clone();
        let read = self.read(move |conn| match find(conn, &wanted)? {
            Some((no, _)) => beside(conn, no).map(Some),
            None => Ok(None),
        });
        Box::pin(async move { read.await?.ok_or(StoreError::NoSession(id)) })
    }
}

/// Moves the journal's contents into the file and empties the journal, so that overwritten data is in neither. Returns false if a
/// reader keeps a part of it in the journal until the next call.
pub fn flush(path: &Path) -> Result<bool, StoreError> {
    let failed = |e| sql(path, e);
    let opened = open(path, For::Writing)?;
    let conn = &opened.conn;
    let busy: i64 = conn
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |r| r.get(0))
        .map_err(failed)?;
    Ok(busy == 0)
}

fn sealed_with(conn: &Connection) -> rusqlite::Result<SealedWith> {
    let mut found = SealedWith::new();
    for (column, table) in [
        ("sealed", "credential"),
        ("secrets", "webhook"),
        ("bytes", "inbox"),
        ("bytes", "line"),
        ("bytes", "blob"),
    ] {
        let mut statement = conn.prepare(&format!("SELECT {column} FROM {table}"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for key in seal::keys_in(row.get_ref(0)?.as_bytes()?) {
                *found.entry(key).or_default() += 1;
            }
        }
    }
    Ok(found)
}

fn ids(conn: &Connection) -> rusqlite::Result<Ids> {
    let mut all = conn.prepare("SELECT no, id FROM session NOT INDEXED ORDER BY no")?;
    let mut rows = all.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let no: i64 = row.get(0)?;
        let Ok(id) = row.get_ref(1)?.as_str() else {
            found.push((no, Err("its id is no text".to_owned())));
            continue;
        };
        let is_found = find(conn, id)?.is_some_and(|(at, _)| at == no);
        let id = is_found.then(|| SessionId::from(id)).ok_or_else(|| {
            format!(
                "its id reads `{id}`, and it is not found by that: the id or its index is damaged"
            )
        });
        found.push((no, id));
    }
    Ok(found)
}

/// Returns the damage of lists by which sessions are found, in words.
pub(super) fn damaged_lists(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    let tables = [
        "session",
        "seat",
        "need",
        "inbox",
        "accepted",
        "label",
        "wait",
        "event",
        "event_seen",
    ];
    for table in tables {
        let checked = conn
            .prepare(&format!("PRAGMA integrity_check({table})"))
            .and_then(|mut check| {
                let lines = check.query_map([], |r| r.get::<_, String>(0))?;
                lines.collect::<rusqlite::Result<Vec<_>>>()
            })
            .unwrap_or_else(|e| vec![e.to_string()]);
        let damaged = checked.into_iter().filter(|line| line != "ok");
        found.extend(damaged.map(|line| format!("table {table}: {line}")));
    }
    match event::damaged(conn) {
        Ok(events) => found.extend(events),
        // The damage of the whole table was already reported.
        Err(_) if found.iter().any(|what| what.starts_with("table event:")) => {}
        Err(error) => return Err(error),
    }
    match seen::damaged(conn) {
        Ok(seen) => found.extend(seen),
        Err(_)
            if found
                .iter()
                .any(|what| what.starts_with("table event_seen")) => {}
        Err(error) => return Err(error),
    }
    let seats = "SELECT no FROM session NOT INDEXED WHERE no NOT IN (SELECT no FROM seat NOT INDEXED) ORDER BY no";
    let mut seats = conn.prepare(seats)?;
    for no in seats.query_map([], |r| r.get::<_, i64>(0))? {
        found.push(format!("session number {} has no seat", no?));
    }
    let numbered = ids(conn)?;
    let nameless = numbered
        .into_iter()
        .filter_map(|(no, id)| Some((no, id.err()?)));
    found.extend(nameless.map(|(no, why)| format!("session number {no}: {why}")));
    Ok(found)
}

/// Returns rows that belong to no existing session, in words.
pub(super) fn orphans(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    for (what, no, table) in [
        ("lines of a log", "key >> 28", "line"),
        ("messages of an inbox", "no", "inbox"),
        ("checkpoints", "no", "checkpoint"),
        ("ids of messages", "no", "accepted"),
        ("a seat", "no", "seat"),
        ("waits", "no", "wait"),
        ("labels", "no", "label"),
        ("positions of webhooks", "no", "delivered"),
    ] {
        let query = format!(
            "SELECT DISTINCT {no} FROM {table} WHERE {no} NOT IN (SELECT no FROM session) ORDER BY 1"
        );
        let mut statement = conn.prepare(&query)?;
        for no in statement.query_map([], |r| r.get::<_, i64>(0))? {
            let no = no?;
            found.push(format!("{what} of session number {no}, which is missing"));
        }
    }
    Ok(found)
}

fn beside(conn: &Connection, no: i64) -> rusqlite::Result<Beside> {
    let consumed = conn
        .prepare("SELECT id FROM accepted WHERE no = ?1 AND id NOT IN (SELECT id FROM inbox WHERE no = ?1)")?
        .query_map([no], |r| name(r, 0))?
        .collect::<rusqlite::Result<_>>()?;
    let head = super::append::head(conn, no)?;
    let mut beyond = Vec::new();
    let of_effect = |effect: i64| Line(effect as u64 >> 20);
    for (what, query) in [
        (
            "a checkpoint",
            "SELECT max(at) FROM checkpoint WHERE no = ?1",
        ),
        ("a wait", "SELECT max(effect) FROM wait WHERE no = ?1"),
    ] {
        let found: Option<i64> = conn.query_row(query, [no], |r| r.get(0))?;
        let line = found.map(|found| match what {
            "a checkpoint" => Line(found as u64),
            _ => of_effect(found),
        });
        beyond.extend(line.filter(|line| *line > head).map(|line| (what, line)));
    }
    Ok(Beside {
        consumed,
        beyond,
        kept: kept(conn, no)?,
    })
}

fn kept(conn: &Connection, no: i64) -> rusqlite::Result<Kept> {
    let left = super::seat::left(conn, no)?;
    let mut kept = Kept {
        wants: left.wants,
        place: left.place,
        ..Kept::default()
    };
    let mut waits = conn.prepare("SELECT effect, event, key FROM wait WHERE no = ?1")?;
    let mut rows = waits.query([no])?;
    while let Some(row) = rows.next()? {
        if let Some(effect) = effect_of(row.get(0)?) {
            kept.waits.insert((effect, name(row, 1)?, name(row, 2)?));
        }
    }
    kept.ids = conn
        .prepare("SELECT id FROM accepted WHERE no = ?1")?
        .query_map([no], |r| name(r, 0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(kept)
}

/// Copies a store. A single backup step takes the whole file as of one moment; the journal keeps what others write meanwhile. A
/// file that is read without locks has no journal that could do so: then no process enters until the copy is made, as far as
/// this process can tell, and a change of the file is an error.
fn copy(from: &Path, to: &Path) -> Result<u64, StoreError> {
    if to.exists() {
        return Err(io(to, std::io::ErrorKind::AlreadyExists.into()));
    }
    let (source, entry) = entered(from, For::Reading)?;
    one_name(&source.path)?;
    let _entry = source.unlocked.is_some().then_some(entry);
    let (part, file) = Part::of(to).map_err(|e| io(to, e))?;
    drop(file);
    let aside = &part.path(to);
    let failed = |e| sql(aside, e);
    let mut target = Connection::open(aside).map_err(failed)?;
    {
        let backup = Backup::new(&source.conn, &mut target).map_err(failed)?;
        if backup.step(-1).map_err(failed)? != StepResult::Done {
            return Err(io(from, std::io::Error::other("somebody has it locked")));
        }
    }
    if let Some(unlocked) = &source.unlocked {
        unlocked.is_still(&source.path)?;
    }
    if source.doubt.is_some() {
        // A copy has no mark, so it is not driven if it says that it needs one.
        let says = "UPDATE store SET id = randomblob(16), begun = 1";
        target.execute(says, []).map_err(failed)?;
    }
    // The copy is a single file without a journal.
    target
        .pragma_update(None, "journal_mode", "DELETE")
        .map_err(failed)?;
    target.close().map_err(|(_, e)| failed(e))?;
    let file = std::fs::File::open(aside).map_err(|e| io(aside, e))?;
    file.sync_all().map_err(|e| io(aside, e))?;
    let bytes = file.metadata().map_err(|e| io(aside, e))?.len();
    drop(file);
    part.put().map_err(|e| io(to, e))?;
    Ok(bytes)
}

/// Finds blobs without references, and deletes them if `delete` is set. Anything that looks like a blob's hash is a reference:
/// in a line, in a message that was not taken yet, in an event, in a schedule, or in a blob that is itself referenced. Contents of
/// artifacts that only erased lines name count as without references.
///
/// # Errors
/// [`StoreError::Io`] if blobs are to be deleted while another process has the store open: it may be about to refer to one.
pub fn collect_garbage(
    path: &Path,
    delete: bool,
    erased: &ErasedContents,
) -> Result<Garbage, StoreError> {
    let failed = |e| sql(path, e);
    if !delete {
        let opened = open(path, For::Reading)?;
        return Ok(garbage(&opened.conn, erased).map_err(failed)?.0);
    }
    let alone = alone(path)?;
    let conn = &alone.conn;
    let (garbage, unnamed) = garbage(conn, erased).map_err(failed)?;
    for hash in &unnamed {
        conn.execute("DELETE FROM blob WHERE hash = ?1", [hash])
            .map_err(failed)?;
    }
    alone.commit()?;
    if garbage.blobs > 0 {
        conn.execute_batch("VACUUM").map_err(failed)?;
    }
    Ok(garbage)
}

/// Finds blobs without references, and those that only erased lines refer to.
fn garbage(conn: &Connection, erased: &ErasedContents) -> rusqlite::Result<(Garbage, Vec<Hash>)> {
    let (mut garbage, mut found) = unnamed(conn, None, &BTreeSet::new())?;
    if erased.contents.is_empty() {
        return Ok((garbage, found));
    }
    let (_, passed) = unnamed(conn, None, &keys(conn, &erased.lines)?)?;
    let known: BTreeSet<Hash> = found.iter().copied().collect();
    let passed: BTreeSet<Hash> = passed.into_iter().collect();
    for hash in erased.contents.difference(&known) {
        let Some(bytes) = blob::bytes(conn, hash)? else {
            continue;
        };
        if passed.contains(hash) {
            garbage.blobs += 1;
            garbage.bytes += bytes.len() as u64;
            garbage.kept -= 1;
            found.push(*hash);
        } else {
            garbage.shared += 1;
        }
    }
    Ok((garbage, found))
}

/// Returns the keys of these lines.
fn keys(conn: &Connection, lines: &Passed) -> rusqlite::Result<BTreeSet<i64>> {
    let mut keys = BTreeSet::new();
    for (session, lines) in lines {
        if let Some((no, _)) = find(conn, session)? {
            keys.extend(lines.iter().map(|line| key(no, *line)));
        }
    }
    Ok(keys)
}

/// Deletes blobs that one session refers to, unless another session, a message that was not taken yet or an event refers to them.
/// `passed` are erased lines of other sessions.
///
/// # Errors
/// [`StoreError::Io`] while another process has the store open: it may be about to refer to one.
pub fn forget(
    path: &Path,
    session: &str,
    blobs: &[[u8; 32]],
    passed: &Passed,
) -> Result<Forgot, StoreError> {
    if blobs.is_empty() {
        return Ok(Forgot::default());
    }
    let alone = alone(path)?;
    let conn = &alone.conn;
    let failed = |e| sql(path, e);
    conn.pragma_update(None, "secure_delete", "ON")
        .map_err(failed)?;
    let found = find(conn, session).map_err(failed)?;
    let number = found.map(|(no, _)| no);
    let but = keys(conn, passed).map_err(failed)?;
    let (_, unnamed) = unnamed(conn, number, &but).map_err(failed)?;
    let unnamed: BTreeSet<Hash> = unnamed.into_iter().collect();
    let mut forgot = Forgot::default();
    for hash in blobs {
        if unnamed.contains(hash) {
            let gone = conn.execute("DELETE FROM blob WHERE hash = ?1", [hash]);
            forgot.deleted += gone.map_err(failed)? as u64;
        } else if blob::bytes(conn, hash).map_err(failed)?.is_some() {
            forgot.shared += 1;
        }
    }
    alone.commit()?;
    Ok(forgot)
}

type Hash = [u8; 32];

/// Finds blobs without references. References of the session `but` and of the lines `passed` do not count.
fn unnamed(
    conn: &Connection,
    but: Option<i64>,
    passed: &BTreeSet<i64>,
) -> rusqlite::Result<(Garbage, Vec<Hash>)> {
    let blobs: BTreeMap<Hash, u64> = conn
        .prepare("SELECT hash, length(bytes) FROM blob")?
        .query_map([], |r| Ok((r.get(0)?, r.get::<_, i64>(1)? as u64)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut search = Search::of(blobs.keys().copied());
    for query in [
        "SELECT bytes, key FROM line WHERE key >> 28 IS NOT ?1",
        "SELECT bytes, 0 FROM inbox WHERE no IS NOT ?1",
        "SELECT message, 0 FROM event WHERE ?1 IS ?1",
        // A memory outlives the session that saved it.
        "SELECT hash, -1 FROM memory WHERE ?1 IS ?1",
        "SELECT digest, -1 FROM schedule WHERE ?1 IS ?1",
    ] {
        let mut statement = conn.prepare(query)?;
        let mut rows = statement.query([but])?;
        while let Some(row) = rows.next()? {
            if !passed.contains(&row.get(1)?) {
                search.read(row.get_ref(0)?.as_blob()?);
            }
        }
    }
    while let Some(hash) = search.next.pop() {
        if let Some(bytes) = blob::bytes(conn, &hash)? {
            search.read(&bytes);
        }
    }
    let mut garbage = Garbage {
        kept: search.named.len() as u64,
        ..Garbage::default()
    };
    let mut unnamed = Vec::new();
    for (hash, bytes) in blobs {
        if !search.named.contains(&hash) {
            garbage.blobs += 1;
            garbage.bytes += bytes;
            unnamed.push(hash);
        }
    }
    Ok((garbage, unnamed))
}

/// Written forms of hashes, each with its hash.
type Forms = Vec<(Arc<[u8]>, Hash)>;

/// Search for hashes of blobs in bytes, in binary or hexadecimal form.
struct Search {
    /// Forms by their first four bytes.
    wanted: BTreeMap<[u8; 4], Forms>,
    named: BTreeSet<Hash>,
    /// Referenced blobs whose own contents were not searched yet.
    next: Vec<Hash>,
}

impl Search {
    fn of(hashes: impl Iterator<Item = Hash>) -> Self {
        let mut wanted: BTreeMap<[u8; 4], Forms> = BTreeMap::new();
        for hash in hashes {
            for form in [hash.to_vec(), hex(&hash).into_bytes()] {
                let start = [form[0], form[1], form[2], form[3]];
                wanted.entry(start).or_default().push((form.into(), hash));
            }
        }
        Self {
            wanted,
            named: BTreeSet::new(),
            next: Vec::new(),
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        for (at, start) in bytes.windows(4).enumerate() {
            let start = [start[0], start[1], start[2], start[3]];
            let Some(forms) = self.wanted.get(&start) else {
                continue;
            };
            for (form, hash) in forms {
                if bytes[at..].starts_with(form) && self.named.insert(*hash) {
                    self.next.push(*hash);
                }
            }
        }
    }
}

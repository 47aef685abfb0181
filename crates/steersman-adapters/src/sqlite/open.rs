//! How a store is opened: the one way, whoever opens it and for whatever.
//!
//! First it is judged by its first bytes, then by what its journal and its mark say. What is not ours is not touched. What may
//! know less than what happened is opened for reading only, until a person accepts it.

use super::append::key;
use super::error::{io, sql};
use super::file::{FileId, Held, real};
use super::mark::{self, Marker, Witness};
use super::{schema, wal};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use steersman_machine::ids::{Line, Time};
use steersman_machine::interaction::Doubtful;
use steersman_runtime::store::StoreError;

/// What a store is opened for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// Looking at what is there.
    Reading,
    /// Changing what is there.
    Writing,
    /// The same; it is made if it is not there.
    Making,
}

/// A store that is open.
pub(super) struct Opened {
    pub(super) conn: Connection,
    /// The path to which no symlink leads: what lies beside the store lies beside this.
    pub(super) path: PathBuf,
    /// Why it is not to be written; only where it was opened for reading.
    pub(super) doubt: Option<StoreError>,
    /// Whether its mark is there and fits.
    is_marked: bool,
    /// The last to go: closing a descriptor of a file takes all its locks from SQLite.
    pub(super) held: Arc<Held>,
}

/// Opens a store.
///
/// # Errors
/// `Corrupt` if it is no store of ours, `Newer` if a newer version wrote it; for writing also `Unaccepted` if a person has to
/// accept it first. Nothing was touched then.
pub(super) fn open(asked: &Path, to: For) -> Result<Opened, StoreError> {
    let mut opened = judged(asked, to)?;
    if to == For::Reading {
        return Ok(opened);
    }
    if let Some(doubt) = opened.doubt.take() {
        return Err(doubt);
    }
    schema::migrate(&mut opened.conn, &opened.path)?;
    keep_journal(&opened.conn, &opened.path, false)?;
    Ok(opened)
}

impl Opened {
    /// What marks a store that is open for writing, and whether an effect that must not happen twice ever began in it.
    pub(super) fn marker(&self) -> Result<(Marker, bool), StoreError> {
        let store = schema::store(&self.conn).map_err(|e| sql(&self.path, e))?;
        let (id, begun) = store.ok_or_else(|| nameless(&self.path))?;
        Ok((Marker::new(&self.path, id, self.is_marked)?, begun))
    }
}

fn nameless(path: &Path) -> StoreError {
    StoreError::Corrupt {
        place: path.display().to_string(),
        what: "it does not say which store it is".to_owned(),
    }
}

/// Opens what lies there without changing anything, and finds out whether it may be written.
fn judged(asked: &Path, to: For) -> Result<Opened, StoreError> {
    let path = real(asked)?;
    let writes = to != For::Reading;
    let held = Held::open(&path, writes, to == For::Making)?;
    schema::look(&path, held.beginning())?;
    let journal = wal::damage(&path).map_err(|e| io(&path, e))?;
    if writes {
        held.write()?;
    }
    let conn = if writes {
        connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(|e| sql(&path, e))?
    } else {
        reader(&path, true).map_err(|e| sql(&path, e))?
    };
    // Closing what is refused must not move its journal into the file.
    keep_journal(&conn, &path, true)?;
    let is_empty = schema::is_empty(&conn, &path)?;
    let compared = compared(&conn, &path, is_empty)?;
    let (doubt, is_marked) = match (journal, compared) {
        (Some(why), _) => (Some(unaccepted(&path, Doubtful::Lost, why)), false),
        (None, Compared::Doubt(was, why)) => (Some(unaccepted(&path, was, why)), false),
        (None, Compared::Unmarked) => (None, false),
        (None, Compared::Marked) => (None, true),
    };
    if is_empty && !writes {
        let nothing = || io(&path, std::io::Error::other("there is nothing in it yet"));
        return Err(doubt.unwrap_or_else(nothing));
    }
    Ok(Opened {
        conn,
        path,
        doubt,
        is_marked,
        held,
    })
}

fn unaccepted(path: &Path, was: Doubtful, why: String) -> StoreError {
    StoreError::Unaccepted {
        place: path.display().to_string(),
        why,
        was,
    }
}

fn keep_journal(conn: &Connection, path: &Path, keep: bool) -> Result<(), StoreError> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)
        .map(drop)
        .map_err(|e| sql(path, e))
}

/// A connection to a file that is there.
fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    settings(&conn)?;
    Ok(conn)
}

/// What every connection is told.
fn settings(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(Duration::from_secs(10))?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", "OFF")
}

/// Another connection to a store that is open, which only reads. On a disk that cannot be written SQLite refuses a store that
/// was closed well, since it has no journal beside it and none can be made; nobody can write such a file either, so it is
/// read as it is.
pub(super) fn reader(path: &Path, may_be_frozen: bool) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let open = |name: &Path, flags: OpenFlags| {
        let conn = connect(name, flags)?;
        // Opening alone reads nothing.
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(conn)
    };
    let opened = open(path, flags);
    let (Err(e), Some(name)) = (&opened, path.to_str()) else {
        return opened;
    };
    let cannot = e.sqlite_error_code() == Some(ErrorCode::CannotOpen);
    if !may_be_frozen || !cannot || super::file::beside(path, "-wal").exists() {
        return opened;
    }
    let name = name
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    let uri = format!("file:{name}?immutable=1");
    open(Path::new(&uri), flags | OpenFlags::SQLITE_OPEN_URI)
}

/// What comes of comparing a store with its mark.
enum Compared {
    /// It needs none.
    Unmarked,
    /// It fits.
    Marked,
    /// It does not.
    Doubt(Doubtful, String),
}

fn compared(conn: &Connection, path: &Path, is_empty: bool) -> Result<Compared, StoreError> {
    let failed = |e| sql(path, e);
    let is_this = |mark: &mark::Mark| -> Result<bool, StoreError> {
        let file = FileId::of(path).map_err(|e| io(path, e))?;
        Ok(mark.file.is(&file))
    };
    let mark = mark::read(path);
    if is_empty {
        return Ok(match mark {
            Ok(Some(mark)) if is_this(&mark)? => Compared::Doubt(
                Doubtful::Lost,
                "all that was written to it is missing, and effects of class `unsafe` began in it"
                    .to_owned(),
            ),
            _ => Compared::Unmarked,
        });
    }
    // One of a format without a name was never marked.
    let Some((id, begun)) = schema::store(conn).map_err(failed)? else {
        return Ok(Compared::Unmarked);
    };
    let copied = |why: &str| {
        Compared::Doubt(
            Doubtful::Copied,
            format!(
                "{why}: it is a copy, was moved, or was restored from a backup, and effects of class `unsafe` may have \
                 happened that are not in its logs"
            ),
        )
    };
    Ok(match mark {
        Ok(Some(mark)) if mark.store == id => {
            if !is_this(&mark)? {
                copied("its mark names another file")
            } else if let Some(lost) = missing(conn, mark.holds).map_err(failed)? {
                Compared::Doubt(Doubtful::Lost, lost)
            } else {
                Compared::Marked
            }
        }
        // Nothing ever began in it that must not happen twice.
        Ok(_) | Err(_) if !begun => Compared::Unmarked,
        Ok(Some(_)) => copied("the mark beside it is of another store"),
        Ok(None) => copied("it has no mark beside it"),
        Err(why) => Compared::Doubt(
            Doubtful::Lost,
            format!("{why}, so nobody knows whether its logs are whole"),
        ),
    })
}

/// What a store acknowledged and does not hold any more, in words.
fn missing(conn: &Connection, holds: Witness) -> rusqlite::Result<Option<String>> {
    if let Some(wanted) = holds.line {
        let is_there = conn
            .prepare("SELECT 1 FROM line WHERE key = ?1")?
            .exists([wanted])
            // What cannot be read is not there.
            .unwrap_or(false);
        if !is_there {
            let (no, line) = (wanted >> 40, Line(wanted as u64 & Line::MAX.0));
            let session = conn
                .query_row("SELECT id FROM session WHERE no = ?1", [no], |r| r.get(0))
                .optional()
                .unwrap_or_default()
                .unwrap_or_else(|| format!("number {no}"));
            let last = conn
                .query_row(
                    "SELECT max(key) FROM line WHERE key BETWEEN ?1 AND ?2",
                    params![key(no, Line::NONE), key(no, Line::MAX)],
                    |r| r.get::<_, Option<i64>>(0),
                )
                .unwrap_or_default();
            let last = last.map_or(0, |key| key as u64 & Line::MAX.0);
            return Ok(Some(format!(
                "it lost lines that it had acknowledged: line {line} of session `{session}` was on disk, and its log ends \
                 at line {last}; lines of other sessions may be missing too"
            )));
        }
    }
    let inbox: i64 = conn
        .query_row("SELECT value FROM counter WHERE name = 'inbox'", [], |r| {
            r.get(0)
        })
        .unwrap_or(0);
    Ok((inbox < holds.inbox).then(|| {
        format!(
            "it lost messages that it had acknowledged: {} were put into its inboxes, and it knows of {inbox}",
            holds.inbox
        )
    }))
}

/// A store with nobody else in it, in a transaction.
pub(super) struct Alone {
    pub(super) conn: Connection,
    pub(super) path: PathBuf,
    _held: Arc<Held>,
}

/// Opens a store for writing while no other process has it open.
pub(super) fn alone(asked: &Path) -> Result<Alone, StoreError> {
    by_itself(open(asked, For::Writing)?)
}

fn by_itself(opened: Opened) -> Result<Alone, StoreError> {
    let Opened {
        conn, path, held, ..
    } = opened;
    // A connection is alone if it asks for that before it reads anything.
    drop(conn);
    let failed = |e| sql(&path, e);
    let conn = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    keep_journal(&conn, &path, true)?;
    conn.busy_timeout(Duration::from_millis(500))
        .map_err(failed)?;
    conn.pragma_update(None, "locking_mode", "EXCLUSIVE")
        .map_err(failed)?;
    let alone = |e: rusqlite::Error| match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => io(
            &path,
            std::io::Error::other(
                "another process has it open, and may be about to name what nothing names yet",
            ),
        ),
        _ => sql(&path, e),
    };
    conn.execute_batch("BEGIN EXCLUSIVE").map_err(alone)?;
    keep_journal(&conn, &path, false)?;
    Ok(Alone {
        conn,
        path,
        _held: held,
    })
}

/// Accepts a store as it is, on a person's word: what is the matter with it is over, its mark is made anew, and the next line of
/// each of its sessions says so. None if nothing is the matter.
///
/// # Errors
/// [`StoreError::Io`] while another process has the store open.
pub fn accept(asked: &Path, at: Time) -> Result<Option<StoreError>, StoreError> {
    let mut opened = judged(asked, For::Writing)?;
    let Some(doubt) = opened.doubt.take() else {
        // It is only looked at: what lies in its journal belongs into the file as ever.
        keep_journal(&opened.conn, &opened.path, false)?;
        return Ok(None);
    };
    let was = match &doubt {
        StoreError::Unaccepted { was, .. } => *was,
        _ => Doubtful::Lost,
    };
    let mut alone = by_itself(opened)?;
    let (conn, path) = (&mut alone.conn, &alone.path);
    let failed = |e| sql(path, e);
    conn.execute_batch("COMMIT").map_err(failed)?;
    schema::migrate(conn, path)?;
    let tx = conn.transaction().map_err(failed)?;
    tx.execute("UPDATE store SET id = randomblob(16), begun = 1", [])
        .map_err(failed)?;
    tx.execute(
        "INSERT OR REPLACE INTO accepted (no, at, was) SELECT no, ?1, ?2 FROM session",
        params![at.0, was_no(was)],
    )
    .map_err(failed)?;
    tx.commit().map_err(failed)?;
    // What was damaged in the journal is gone with it.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .map_err(failed)?;
    let (id, _) = schema::store(conn)
        .map_err(failed)?
        .ok_or_else(|| nameless(path))?;
    let inbox = conn
        .query_row("SELECT value FROM counter WHERE name = 'inbox'", [], |r| {
            r.get(0)
        })
        .map_err(failed)?;
    mark::anew(path, &id, Witness { line: None, inbox })?;
    Ok(Some(doubt))
}

/// **Stored**: what was the matter, as a number.
fn was_no(was: Doubtful) -> i64 {
    match was {
        Doubtful::Copied => 0,
        Doubtful::Lost => 1,
    }
}

pub(super) fn was_of(no: i64) -> Doubtful {
    match no {
        0 => Doubtful::Copied,
        _ => Doubtful::Lost,
    }
}

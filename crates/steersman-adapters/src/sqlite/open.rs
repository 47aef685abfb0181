//! The only way to open a store, for every purpose.
//!
//! The file is checked by its first bytes, then by its journal and its mark. Foreign files are not touched. A store that may lack
//! effects that happened is opened for reading only, until a person accepts it.

use super::enter::{Entry, Guard, Journal, before_all};
use super::error::{io, sql};
use super::file::{FileId, Held, Unlocked, beside, put_aside, real};
use super::part::Part;
use super::stamp::{Newest, stamp, stray};
use super::{mark, schema, shape, wal};
use crate::regular;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, params};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use steersman_machine::stored::ids::Time;
use steersman_machine::stored::interaction::Doubtful;
use steersman_runtime::store::StoreError;

/// Purpose of opening a store.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// Read an existing store.
    Reading,
    /// Write to an existing store.
    Writing,
    /// Write to a store, which is made if it does not exist.
    Making,
}

/// A store that is open.
pub(super) struct Opened {
    pub(super) conn: Connection,
    /// Path without symlinks; companion files are next to it.
    pub(super) path: PathBuf,
    /// Reason why it must not be written; set only if it was opened for reading.
    pub(super) doubt: Option<StoreError>,
    /// Sources from which other connections read.
    pub(super) reads: Reads,
    /// State of the file if it is read without locks.
    pub(super) unlocked: Option<Unlocked>,
    /// The journal that the connection has open.
    pub(super) journal: Journal,
    /// Set if it is open for writing.
    pub(super) guard: Option<Arc<Guard>>,
    /// Its newest transaction when it was opened for writing.
    pub(super) newest: Option<Newest>,
    /// Dropped last: closing a descriptor of a file releases all of SQLite's locks on it.
    pub(super) held: Arc<Held>,
}

/// Opens a store for reading or writing.
///
/// # Errors
/// `Corrupt` if it is not a store of this program, `Newer` if a newer version wrote it; for writing also `Unaccepted` if a person
/// has to accept it first. In these cases nothing was changed.
pub(super) fn open(asked: &Path, to: For) -> Result<Opened, StoreError> {
    let (mut opened, entry) = entered(asked, to)?;
    if to != For::Reading {
        opened.guard = Some(Arc::new(entry.guard()?));
        opened.journal = Journal::of(&opened.path);
    }
    Ok(opened)
}

/// Opens a store. Other processes cannot enter as long as the returned entry lives.
pub(super) fn entered(asked: &Path, to: For) -> Result<(Opened, Entry), StoreError> {
    let (mut opened, entry) = judged(asked, to)?;
    if to == For::Reading {
        return Ok((opened, entry));
    }
    if let Some(doubt) = opened.doubt.take() {
        return Err(doubt);
    }
    let drawn = announced(&opened.conn, &opened.path)?;
    schema::complete(&mut opened.conn, &opened.path, drawn.as_deref())?;
    let newest = schema::newest(&opened.conn).map_err(|e| sql(&opened.path, e))?;
    let newest = newest.ok_or_else(|| nameless(&opened.path))?;
    if drawn.is_some() {
        mark::begin(&opened.path, &newest.store, newest.written)?;
    }
    opened.newest = Some(newest);
    keep_journal(&opened.conn, &opened.path, false)?;
    Ok((opened, entry))
}

/// Draws the id of a new store next to the mark of a removed one, and writes a mark with this id before the store gets its tables.
/// So any file that is put in its place later counts as another store, also a copy of the removed one. Returns `None` if the store
/// is not new or has no mark next to it. The caller has entered, so no other process makes the tables meanwhile.
fn announced(conn: &Connection, path: &Path) -> Result<Option<String>, StoreError> {
    if !matches!(mark::read(path), Ok(Some(_))) || !schema::is_empty(conn, path)? {
        return Ok(None);
    }
    let id = mark::draw(path)?;
    mark::begin(path, &id, 0)?;
    Ok(Some(id))
}

/// Makes the file of a store next to the mark of a removed one. Its own mark is made before the file gets its name: an empty
/// file next to a foreign mark would look like a store that was emptied.
fn make_beside_a_mark(path: &Path) -> Result<(), StoreError> {
    let failed = |e| io(path, e);
    let is_there = || std::fs::symlink_metadata(path).is_ok();
    if is_there() || !matches!(mark::read(path), Ok(Some(_))) {
        return Ok(());
    }
    // A journal with transactions belongs to the file that is gone, and so does the mark. Then both stay as they are.
    refuse_journal(path)?;
    before_all(path, || {
        if is_there() {
            return Ok(());
        }
        let (part, file) = Part::of(path).map_err(failed)?;
        let id = FileId::of_open(&file).map_err(failed)?;
        // Once others have opened it, closing it would release their locks.
        drop(file);
        mark::begin_of(path, id, &mark::draw(path)?, 0)?;
        part.put().map_err(failed)
    })
}

fn nameless(path: &Path) -> StoreError {
    StoreError::Corrupt {
        place: path.display().to_string(),
        what: "it does not say which store it is".to_owned(),
    }
}

/// Opens a store without changing anything, and finds out if it may be written.
fn judged(asked: &Path, to: For) -> Result<(Opened, Entry), StoreError> {
    let path = real(asked)?;
    let writes = to != For::Reading;
    if to == For::Making {
        make_beside_a_mark(&path)?;
    }
    for ending in ["", "-wal", "-shm", "-journal"] {
        let file = beside(&path, ending);
        regular::look(&file).map_err(|e| io(&file, e))?;
    }
    let held = Held::open(&path, writes, to == For::Making)?;
    schema::look(&path, held.beginning())?;
    let journal = wal::damage(&path).map_err(|e| io(&path, e))?;
    emptied(&path)?;
    let (entry, mut conn, mut unlocked, is_empty) = loop {
        let entry = if writes {
            Entry::write(&held)?
        } else {
            Entry::read(&held)?
        };
        let (conn, unlocked) = if writes {
            connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map(|conn| (conn, None))
        } else {
            reader(&path, Reads::Frozen)
        }
        .map_err(|e| sql(&path, e))?;
        let is_empty = schema::is_empty(&conn, &path)?;
        if entry.is_journal_unchanged() {
            break (entry, conn, unlocked, is_empty);
        }
    };
    let beside = Journal::of(&path);
    let mut reads = if writes { Reads::Live } else { Reads::Frozen };
    let mut doubt = journal.map(|why| unaccepted(&path, Doubtful::Lost, why));
    if doubt.is_none()
        && !is_empty
        && let Some(why) = stray(&conn, &held).map_err(|e| io(&path, e))?
    {
        doubt = Some(unaccepted(&path, Doubtful::Lost, why));
        reads = Reads::FileAlone;
        (conn, unlocked) = reader(&path, reads).map_err(|e| sql(&path, e))?;
    }
    if doubt.is_none() {
        let mut found = compared(&conn, &path, is_empty)?;
        if found.is_some() {
            // Another process may have written between the reads of the mark and of the store, so only a repeated result counts.
            found = compared(&conn, &path, is_empty)?;
        }
        doubt = found.map(|(was, why)| unaccepted(&path, was, why));
    }
    if !is_empty {
        shape::check(&conn, &path)?;
    }
    if is_empty && !writes {
        let nothing = || io(&path, std::io::Error::other("there is nothing in it yet"));
        return Err(doubt.unwrap_or_else(nothing));
    }
    let opened = Opened {
        conn,
        path,
        doubt,
        reads,
        unlocked,
        journal: beside,
        guard: None,
        newest: None,
        held,
    };
    Ok((opened, entry))
}

/// Refuses an empty file next to a journal with transactions: SQLite would delete the journal.
fn emptied(path: &Path) -> Result<(), StoreError> {
    match std::fs::metadata(path).map_err(|e| io(path, e))?.len() {
        0 => refuse_journal(path),
        _ => Ok(()),
    }
}

/// Refuses a journal with transactions next to a file that is empty or gone.
fn refuse_journal(path: &Path) -> Result<(), StoreError> {
    let journal = wal::read(path).map_err(|e| io(path, e))?;
    if wal::Journal::of(&journal.unwrap_or_default()).size == 0 {
        return Ok(());
    }
    Err(StoreError::Corrupt {
        place: path.display().to_string(),
        what: format!(
            "it is empty or gone, and its journal {} is not: put the file back that belongs to the journal, or move the journal away",
            beside(path, "-wal").display()
        ),
    })
}

pub(super) fn unaccepted(path: &Path, was: Doubtful, why: String) -> StoreError {
    StoreError::Unaccepted {
        place: path.display().to_string(),
        why,
        was,
    }
}

/// Sets whether closing the connection leaves the journal as it is. Otherwise SQLite moves it into the file.
pub(super) fn keep_journal(conn: &Connection, path: &Path, keep: bool) -> Result<(), StoreError> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)
        .map(drop)
        .map_err(|e| sql(path, e))
}

/// Opens a connection to an existing file. Closing it leaves the journal as it is, until [`keep_journal`] says otherwise.
fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    // This must be the first call. Each later one may read the file and fail, and closing the connection then must not move a
    // journal into a file that it does not belong to.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    settings(&conn)?;
    Ok(conn)
}

/// Longest time that a connection waits for a lock of another process.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Settings of every connection.
fn settings(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(PATIENCE)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", "OFF")?;
    // Triggers and views of other programs do not run: a store has none (`shape`).
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)
        .map(drop)
}

/// Sources of a connection that only reads.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// The file and its journal.
    Live,
    /// The file and its journal. On a read-only disk SQLite refuses a store that was closed in an orderly way, since it has no
    /// journal and none can be made. Such a file is read without locks ([`Unlocked`]).
    Frozen,
    /// The file without the journal next to it.
    FileAlone,
}

/// Opens another connection to a store, which only reads. Returns the state of the file if it is read without locks and may be
/// changed from elsewhere.
pub(super) fn reader(
    path: &Path,
    reads: Reads,
) -> rusqlite::Result<(Connection, Option<Unlocked>)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let open = |name: &Path, flags: OpenFlags| {
        let conn = connect(name, flags)?;
        // Opening alone reads nothing.
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(conn)
    };
    let alone = || {
        let name = path
            .to_str()
            .ok_or(rusqlite::Error::InvalidPath(path.to_owned()))?;
        let name = name
            .replace('%', "%25")
            .replace('?', "%3f")
            .replace('#', "%23");
        let uri = format!("file:{name}?immutable=1");
        open(Path::new(&uri), flags | OpenFlags::SQLITE_OPEN_URI)
    };
    if reads == Reads::FileAlone {
        return Ok((alone()?, None));
    }
    let unlocked = Unlocked::of(path);
    let opened = open(path, flags);
    let cannot = |e: &rusqlite::Error| e.sqlite_error_code() == Some(ErrorCode::CannotOpen);
    match unlocked {
        Ok(unlocked)
            if reads == Reads::Frozen
                && opened.as_ref().is_err_and(cannot)
                && !unlocked.has_journal() =>
        {
            Ok((alone()?, Some(unlocked)))
        }
        _ => Ok((opened?, None)),
    }
}

/// Compares a store with its mark. Returns the kind of doubt with its reason; `None` if there is no doubt, or if the store needs
/// no mark.
pub(super) fn compared(
    conn: &Connection,
    path: &Path,
    is_empty: bool,
) -> Result<Option<(Doubtful, String)>, StoreError> {
    let is_this = |mark: &mark::Mark| -> Result<bool, StoreError> {
        let file = FileId::of(path).map_err(|e| io(path, e))?;
        Ok(mark.names(&file))
    };
    let lost = |why: String| Ok(Some((Doubtful::Lost, why)));
    let copied = |why: &str| {
        let why = format!(
            "{why}: it is a copy, was moved, or was restored from a backup, and effects of class `unsafe` may have \
             happened that are not in its logs"
        );
        Ok(Some((Doubtful::Copied, why)))
    };
    let mark = match mark::read(path) {
        Ok(mark) => mark,
        Err(why) => {
            return lost(format!(
                "{why}, so it is not known whether its logs are complete"
            ));
        }
    };
    if is_empty {
        return match mark {
            // This includes marks that name other files, because an emptied copy lost its content, too. A new store has its own
            // mark before its file.
            Some(mark) if mark.written > 0 => lost(
                "all that was written to it is missing, and effects of class `unsafe` began in it"
                    .to_owned(),
            ),
            _ => Ok(None),
        };
    }
    let newest = schema::newest(conn).map_err(|e| sql(path, e))?;
    let begun = newest.as_ref().is_some_and(|newest| newest.begun);
    let Some(mark) = mark else {
        return if begun {
            copied("it has no mark beside it")
        } else {
            Ok(None)
        };
    };
    // A store gets a new id with its first effect of class `unsafe`. Before that transaction, the new id and the old one are
    // written into the mark, because the transaction may never be committed. The mark counts the transaction before the effect
    // begins.
    let is_announced =
        |newest: &Newest| mark.written == 0 && !begun && mark.announces(&newest.store);
    let is_announced = newest.as_ref().is_some_and(is_announced);
    let same_store = newest.filter(|newest| newest.store == mark.store);
    if same_store.is_none() && !is_announced {
        return copied("the mark beside it is of another store");
    }
    if !is_this(&mark)? {
        return copied("its mark names another file");
    }
    if mark.is_copy {
        return copied("the mark beside it is a copy that was put there");
    }
    match same_store {
        Some(newest) if newest.written < mark.written => lost(format!(
            "it lost what it had acknowledged: {} transactions were on disk, and it knows of {}",
            mark.written, newest.written
        )),
        _ => Ok(None),
    }
}

/// A store that no other process has open, in a transaction.
pub(super) struct Alone {
    pub(super) conn: Connection,
    pub(super) path: PathBuf,
    held: Arc<Held>,
    /// Keeps other processes from entering.
    entry: Entry,
}

/// Opens a store for writing while no other process has it open.
pub(super) fn alone(asked: &Path) -> Result<Alone, StoreError> {
    let (opened, entry) = entered(asked, For::Writing)?;
    lock_exclusively(opened, entry)
}

fn lock_exclusively(opened: Opened, entry: Entry) -> Result<Alone, StoreError> {
    let Opened {
        conn, path, held, ..
    } = opened;
    // A connection must set exclusive locking before it reads anything, so another one is opened.
    drop(conn);
    let failed = |e| sql(&path, e);
    let conn = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    conn.busy_timeout(Duration::from_millis(500))
        .map_err(failed)?;
    conn.pragma_update(None, "locking_mode", "EXCLUSIVE")
        .map_err(failed)?;
    let alone = |e: rusqlite::Error| match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => io(
            &path,
            std::io::Error::other(
                "another process has it open, and may be about to use contents that no line names yet",
            ),
        ),
        _ => sql(&path, e),
    };
    conn.execute_batch("BEGIN EXCLUSIVE").map_err(alone)?;
    keep_journal(&conn, &path, false)?;
    Ok(Alone {
        conn,
        path,
        held,
        entry,
    })
}

impl Alone {
    /// Reopens the store without a journal that does not belong to it; the journal is kept under another name.
    fn without_journal(self) -> Result<Self, StoreError> {
        let Self {
            conn,
            path,
            held,
            entry,
        } = self;
        keep_journal(&conn, &path, true)?;
        drop(conn);
        put_aside(&path, "-wal").map_err(|e| io(&path, e))?;
        let (conn, unlocked) = reader(&path, Reads::FileAlone).map_err(|e| sql(&path, e))?;
        let opened = Opened {
            conn,
            path,
            doubt: None,
            reads: Reads::Live,
            unlocked,
            journal: Journal::default(),
            guard: None,
            newest: None,
            held,
        };
        lock_exclusively(opened, entry)
    }

    /// Commits the changes.
    pub(super) fn commit(&self) -> Result<(), StoreError> {
        let failed = |e| sql(&self.path, e);
        let newest = stamp(&self.conn, false).map_err(failed)?;
        self.conn.execute_batch("COMMIT").map_err(failed)?;
        if newest.begun {
            mark::record(self.held.path(), &newest.store, newest.written, false)?;
        }
        Ok(())
    }
}

/// Accepts a store as it is, on a person's word: the doubt is settled, a new mark is made, and the next line of each of its
/// sessions records this. Returns the doubt; `None` if there was none.
///
/// # Errors
/// [`StoreError::Io`] while another process has the store open.
pub fn accept(asked: &Path, at: Time) -> Result<Option<StoreError>, StoreError> {
    let (mut opened, entry) = judged(asked, For::Writing)?;
    let Some(doubt) = opened.doubt.take() else {
        // The store was only inspected: its journal goes into the file as usual.
        keep_journal(&opened.conn, &opened.path, false)?;
        return Ok(None);
    };
    let was = match &doubt {
        StoreError::Unaccepted { was, .. } => *was,
        _ => Doubtful::Lost,
    };
    let reads = opened.reads;
    let mut alone = lock_exclusively(opened, entry)?;
    if reads == Reads::FileAlone {
        if matches!(mark::read(&alone.path), Ok(None)) {
            // This mark keeps the doubt if the process is killed after the journal is gone and before the end.
            mark::begin(&alone.path, "", 1)?;
        }
        alone = alone.without_journal()?;
    }
    let (conn, path) = (&mut alone.conn, &alone.path);
    let failed = |e| sql(path, e);
    conn.execute_batch("COMMIT").map_err(failed)?;
    schema::complete(conn, path, None)?;
    let tx = conn.transaction().map_err(failed)?;
    tx.execute("UPDATE store SET id = randomblob(16), begun = 1", [])
        .map_err(failed)?;
    tx.execute(
        "INSERT INTO store_accepted (no, at, was) SELECT no, ?1, ?2 FROM session WHERE true
         ON CONFLICT (no) DO UPDATE SET at = excluded.at, was = max(was, excluded.was)",
        params![at.0, was_no(was)],
    )
    .map_err(failed)?;
    let newest = stamp(&tx, true).map_err(failed)?;
    tx.commit().map_err(failed)?;
    // Damaged parts of the journal are removed with it.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .map_err(failed)?;
    if mark::read(path).is_err() {
        // It may belong to another program.
        put_aside(path, ".mark").map_err(|e| io(path, e))?;
    }
    mark::begin(path, &newest.store, newest.written)?;
    Ok(Some(doubt))
}

/// **Stored**: the kind of doubt, as a number.
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

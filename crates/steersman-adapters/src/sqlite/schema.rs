//! The tables, their versions, and what is refused before anything is touched.

use super::error::io;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use steersman_runtime::store::StoreError;

/// Marks a file as ours: `STRM`.
const APPLICATION: u32 = 0x5354_524d;

/// Each entry carries a store from the version of its index to the next one. **Stored**: entries never change.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE session (
        no INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        network TEXT NOT NULL,
        key TEXT,
        salt BLOB NOT NULL,
        created INTEGER NOT NULL,
        status TEXT NOT NULL,
        updated INTEGER NOT NULL,
        definition TEXT NOT NULL,
        micros INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        model_calls INTEGER NOT NULL,
        waits TEXT NOT NULL,
        outcome TEXT NOT NULL
    );
    CREATE INDEX session_updated ON session (updated);
    CREATE INDEX session_network ON session (network, key);
    -- Epoch and first line of the newest owner.
    CREATE TABLE owner (no INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, first INTEGER NOT NULL);
    -- The log: key is the session's number << 40 | line.
    CREATE TABLE line (key INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
    CREATE TABLE checkpoint (
        no INTEGER NOT NULL, of INTEGER NOT NULL, at INTEGER NOT NULL, bytes BLOB NOT NULL, UNIQUE (no, of, at)
    );
    CREATE TABLE blob (hash BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL);
    -- A message without bytes was consumed; its id stays known.
    CREATE TABLE inbox (
        seq INTEGER PRIMARY KEY, no INTEGER NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, bytes BLOB, sum BLOB,
        UNIQUE (no, id)
    );
    CREATE INDEX inbox_waiting ON inbox (no, seq) WHERE bytes IS NOT NULL;
    -- fields: the names in the match key; so an event finds its waits by one look for each such list.
    CREATE TABLE wait (
        no INTEGER NOT NULL, effect INTEGER NOT NULL, network TEXT NOT NULL, event TEXT NOT NULL,
        fields TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (no, effect, event, fields, key)
    ) WITHOUT ROWID;
    CREATE INDEX wait_key ON wait (network, event, fields, key);
    CREATE TABLE event (
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, network TEXT NOT NULL, event TEXT NOT NULL,
        fields TEXT NOT NULL, message BLOB NOT NULL, at INTEGER NOT NULL, until INTEGER NOT NULL
    );
    CREATE INDEX event_name ON event (network, event);
    CREATE TABLE event_seen (id TEXT PRIMARY KEY, until INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE timer (
        no INTEGER NOT NULL, effect INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (no, effect)
    ) WITHOUT ROWID;
    CREATE INDEX timer_at ON timer (at);
    CREATE TABLE label (no INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (no, name)) WITHOUT ROWID;
    CREATE INDEX label_value ON label (name, value);
    CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO counter VALUES ('inbox', 0);
",
"
    -- What an id was accepted with; none: not known. Of an inbox keyed with the session's salt.
    ALTER TABLE inbox ADD COLUMN said BLOB;
    ALTER TABLE event_seen ADD COLUMN said BLOB;
",
"
    -- Memory of agents over sessions. key: accepted once. Numbers are never used again.
    CREATE TABLE memory (
        id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, scope TEXT NOT NULL, name TEXT NOT NULL,
        tags TEXT NOT NULL, media TEXT NOT NULL, len INTEGER NOT NULL, hash BLOB NOT NULL, session TEXT, effect INTEGER,
        network TEXT NOT NULL, by TEXT NOT NULL, at INTEGER NOT NULL, until INTEGER
    );
    CREATE INDEX memory_scope ON memory (scope, at);
    CREATE INDEX memory_session ON memory (session) WHERE session IS NOT NULL;
    CREATE INDEX memory_until ON memory (until) WHERE until IS NOT NULL;
    -- The last rating of an agent (person 0) and of a person (1).
    CREATE TABLE memory_rating (
        id INTEGER NOT NULL, person INTEGER NOT NULL, rating INTEGER NOT NULL, reason TEXT, by TEXT NOT NULL,
        PRIMARY KEY (id, person)
    ) WITHOUT ROWID;
"];

/// The newest format that this program knows.
pub(super) fn known() -> u32 {
    MIGRATIONS.len() as u32
}

/// Refuses what is not ours or newer than we are, by looking at the file's first bytes alone.
pub(super) fn look(path: &Path) -> Result<(), StoreError> {
    let mut head = [0_u8; 100];
    let corrupt = |what: &str| StoreError::Corrupt {
        place: path.display().to_string(),
        what: what.to_owned(),
    };
    // A pipe would be waited for, a device might never end.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(corrupt("it is no file"));
    }
    let read = std::fs::File::open(path).and_then(|mut f| {
        let len = f.metadata()?.len();
        if len == 0 {
            return Ok(false);
        }
        f.read_exact(&mut head).map(|()| true)
    });
    match read {
        Ok(true) => {}
        Ok(false) => return Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            return Err(corrupt("it is too short for a store"));
        }
        Err(e) => return Err(io(path, e)),
    }
    if !head.starts_with(b"SQLite format 3\0") {
        return Err(corrupt(
            "it is no SQLite file, or its first bytes are damaged",
        ));
    }
    let number =
        |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    refuse(path, number(68), number(60))
}

fn refuse(path: &Path, application: u32, version: u32) -> Result<(), StoreError> {
    if application != APPLICATION && (application, version) != (0, 0) {
        return Err(StoreError::Corrupt {
            place: path.display().to_string(),
            what: "it is a SQLite file of another program".to_owned(),
        });
    }
    if (application, version) == (APPLICATION, 0) {
        return Err(StoreError::Corrupt {
            place: path.display().to_string(),
            what: "it is a store, but the number of its format is gone".to_owned(),
        });
    }
    if version > known() {
        return Err(StoreError::Newer {
            place: path.display().to_string(),
            what: format!("format {version}, this one knows up to {}", known()),
        });
    }
    Ok(())
}

/// What every connection is told.
pub(super) fn settings(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(Duration::from_secs(10))?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", "OFF")
}

/// Whether the store lies on a disk that nobody can write.
pub(super) fn frozen(path: &Path) -> bool {
    let opened = std::fs::OpenOptions::new().append(true).open(path);
    opened.is_err_and(|e| e.kind() == std::io::ErrorKind::ReadOnlyFilesystem)
}

/// A connection that only reads. On a disk that cannot be written SQLite refuses a store that was closed well, since
/// it has no journal beside it and none can be made; nobody can write such a file either, so it is read as it is.
pub(super) fn reader(path: &Path, may_be_frozen: bool) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = |name: &Path, flags: OpenFlags| {
        let conn = Connection::open_with_flags(name, flags)?;
        settings(&conn)?;
        // Opening alone reads nothing.
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(conn)
    };
    let opened = open(path, flags);
    let (Err(e), Some(name)) = (&opened, path.to_str()) else {
        return opened;
    };
    let cannot = e.sqlite_error_code() == Some(ErrorCode::CannotOpen);
    if !may_be_frozen || !cannot || Path::new(&format!("{name}-wal")).exists() {
        return opened;
    }
    let name = name
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    let uri = format!("file:{name}?immutable=1");
    open(Path::new(&uri), flags | OpenFlags::SQLITE_OPEN_URI)
}

/// Brings the store to our format. One that is newer (known only to its journal so far) is left as it is.
pub(super) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let sql = |e| super::error::sql(path, e);
    let version = |conn: &Connection| -> rusqlite::Result<(u32, u32)> {
        Ok((
            conn.pragma_query_value(None, "application_id", |r| r.get(0))?,
            conn.pragma_query_value(None, "user_version", |r| r.get(0))?,
        ))
    };
    let (application, found) = version(conn).map_err(sql)?;
    if let Err(e) = refuse(path, application, found) {
        // Closing must not move the journal into the file either.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .map_err(sql)?;
        return Err(e);
    }
    if found == known() {
        return Ok(());
    }
    if found == 0 {
        let tables: u32 = conn
            .query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0))
            .map_err(sql)?;
        if tables > 0 && application != APPLICATION {
            return refuse(path, 1, 0);
        }
    }
    conn.pragma_update(None, "journal_mode", "WAL")
        .map_err(sql)?;
    let tx = conn
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(sql)?;
    // Another process may have been quicker.
    let (_, found) = version(&tx).map_err(sql)?;
    for migration in MIGRATIONS.iter().skip(found as usize) {
        tx.execute_batch(migration).map_err(sql)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION)
        .map_err(sql)?;
    tx.pragma_update(None, "user_version", known())
        .map_err(sql)?;
    tx.commit().map_err(sql)
}

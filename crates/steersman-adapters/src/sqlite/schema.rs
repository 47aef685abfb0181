//! The tables, their versions, and the files that are refused before anything is touched.

use super::stamp::{self, Newest, stamp};
use rusqlite::{Connection, OptionalExtension};
use std::path::Path;
use steersman_runtime::store::StoreError;

/// Marks a file as a store of this program: `STRM`.
const APPLICATION: u32 = 0x5354_524d;

/// Each entry migrates a store from the version of its index to the next one. **Stored**: entries never change.
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
",
"
    -- Which store it is, and whether an effect of class `unsafe` ever began in it.
    CREATE TABLE store (id BLOB NOT NULL, begun INTEGER NOT NULL);
    INSERT INTO store VALUES (randomblob(16), 0);
    -- Sessions whose next line says that a person accepted the store, and what was the matter (0: a copy, 1: it lost lines).
    CREATE TABLE accepted (no INTEGER PRIMARY KEY, at INTEGER NOT NULL, was INTEGER NOT NULL);
",
"
    -- Calls that wait for a place which does not answer.
    CREATE TABLE outage (
        no INTEGER NOT NULL, effect INTEGER NOT NULL, place TEXT NOT NULL, since INTEGER NOT NULL, PRIMARY KEY (no, effect)
    ) WITHOUT ROWID;
    CREATE INDEX outage_place ON outage (place, since, effect, no);
",
"
    -- How many transactions were written to it, and which one was the newest (stamp.rs).
    ALTER TABLE store ADD COLUMN written INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE store ADD COLUMN stamp BLOB NOT NULL DEFAULT x'';
",
"
    -- Over all that an event says; none: not known.
    ALTER TABLE event ADD COLUMN sum BLOB;
",
"
    -- Over all that is remembered of an event, and over its id, by which it is found where the id itself is damaged; none: not known.
    ALTER TABLE event_seen ADD COLUMN sum BLOB;
    ALTER TABLE event_seen ADD COLUMN hash BLOB;
    CREATE INDEX event_seen_hash ON event_seen (hash, until, said, sum);
    CREATE INDEX event_seen_until ON event_seen (until);
"];

/// The first format in which a store has an id.
const NAMED: u32 = 4;

/// The first format in which a store counts its transactions.
const COUNTED: u32 = 6;

/// The newest format that this program knows.
pub(super) fn known() -> u32 {
    MIGRATIONS.len() as u32
}

/// Bytes of a file by which it is judged: SQLite's header, and the beginning of its table tree.
pub(super) const BEGINNING: usize = 108;

/// Refuses foreign files and newer formats by the file's first bytes alone. `beginning` is shorter than [`BEGINNING`] only if
/// the file is.
pub(super) fn look(path: &Path, beginning: &[u8]) -> Result<(), StoreError> {
    let corrupt = |what: &str| StoreError::Corrupt {
        place: path.display().to_string(),
        what: what.to_owned(),
    };
    if beginning.is_empty() {
        return Ok(());
    }
    if beginning.len() < BEGINNING {
        return Err(corrupt("it is too short for a store"));
    }
    if !beginning.starts_with(b"SQLite format 3\0") {
        return Err(corrupt(
            "it is no SQLite file, or its first bytes are damaged",
        ));
    }
    let number = |at: usize| {
        let four = [0, 1, 2, 3].map(|k| beginning[at + k]);
        u32::from_be_bytes(four)
    };
    let application = number(68);
    // The first page has the application id from the moment when it lists tables: both are written together.
    let lists_tables = beginning[100] == 5 || beginning[103..105] != [0, 0];
    if application == 0 && lists_tables {
        return Err(foreign(path));
    }
    refuse(path, application, number(60))
}

fn foreign(path: &Path) -> StoreError {
    StoreError::Corrupt {
        place: path.display().to_string(),
        what: "it is a SQLite file of another program".to_owned(),
    }
}

fn refuse(path: &Path, application: u32, version: u32) -> Result<(), StoreError> {
    if application != APPLICATION && (application, version) != (0, 0) {
        return Err(foreign(path));
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

/// Returns true if nothing was ever written to the store. Refuses foreign and newer files, also if only the journal shows that.
pub(super) fn is_empty(conn: &Connection, path: &Path) -> Result<bool, StoreError> {
    let sql = |e| super::error::sql(path, e);
    let (application, found) = version(conn).map_err(sql)?;
    refuse(path, application, found)?;
    if application == APPLICATION {
        return Ok(false);
    }
    let tables: u32 = conn
        .query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0))
        .map_err(sql)?;
    if tables > 0 {
        return Err(foreign(path));
    }
    Ok(true)
}

/// The format number in the file.
pub(super) fn format(conn: &Connection) -> rusqlite::Result<u32> {
    version(conn).map(|(_, format)| format)
}

/// Makes the tables and indexes of a format in an empty file.
pub(super) fn make(conn: &Connection, format: u32) -> rusqlite::Result<()> {
    carry(conn, 0, format)
}

/// Migrates tables and indexes from one format to another.
fn carry(conn: &Connection, from: u32, to: u32) -> rusqlite::Result<()> {
    let all = MIGRATIONS.iter().take(to as usize);
    let mut all = all.skip(from as usize);
    all.try_for_each(|migration| conn.execute_batch(migration))
}

/// The application id and the format number in the file.
fn version(conn: &Connection) -> rusqlite::Result<(u32, u32)> {
    Ok((
        conn.pragma_query_value(None, "application_id", |r| r.get(0))?,
        conn.pragma_query_value(None, "user_version", |r| r.get(0))?,
    ))
}

/// Returns what a store says about itself; `None` if its format does not record it.
pub(super) fn newest(conn: &Connection) -> rusqlite::Result<Option<Newest>> {
    let query = match version(conn)?.1 {
        ..NAMED => return Ok(None),
        NAMED..COUNTED => "SELECT lower(hex(id)), begun, 0 FROM store",
        COUNTED.. => "SELECT lower(hex(id)), begun, written FROM store",
    };
    conn.query_row(query, [], stamp::newest).optional()
}

/// Migrates a store that was judged to the newest format. A new store gets the id `drawn`, if one is given.
pub(super) fn migrate(
    conn: &mut Connection,
    path: &Path,
    drawn: Option<&str>,
) -> Result<(), StoreError> {
    let sql = |e| super::error::sql(path, e);
    // A copy made by `backup` is a single file, and needs no journal before it is written.
    conn.pragma_update(None, "journal_mode", "WAL")
        .map_err(sql)?;
    if version(conn).map_err(sql)?.1 == known() {
        return Ok(());
    }
    let tx = conn
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(sql)?;
    // Another process may have been faster.
    let (_, found) = version(&tx).map_err(sql)?;
    carry(&tx, found, known()).map_err(sql)?;
    if found == 0 && drawn.is_some() {
        tx.execute("UPDATE store SET id = unhex(?1)", [drawn])
            .map_err(sql)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION)
        .map_err(sql)?;
    tx.pragma_update(None, "user_version", known())
        .map_err(sql)?;
    stamp(&tx, false).map_err(sql)?;
    tx.commit().map_err(sql)?;
    if found > 0 {
        // From here on the file has a stamp to which a journal can refer.
        conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
            .map_err(sql)?;
    }
    Ok(())
}

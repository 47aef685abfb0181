//! The tables of a store, and the checks that refuse other files before anything in them is changed.

use super::stamp::{self, Newest, stamp};
use rusqlite::{Connection, OptionalExtension};
use std::path::Path;
use steersman_runtime::store::StoreError;

/// Marks a file as a store of this program: `STRM`.
const APPLICATION: u32 = 0x5354_524d;

/// Number of the format. Versions before the first release wrote formats up to 8. **Stored**.
pub(super) const FORMAT: u32 = 10;

/// Size of a page of a new store, in bytes. A small transaction touches a dozen pages, each of which is written whole: with pages
/// of 4 KiB, which older stores have, it writes 1.6 times as much. With pages of 1 KiB each row of a few hundred bytes
/// would have a page of its own.
const PAGE: u32 = 2_048;

/// The tables and indexes of the format. **Stored**: tables and columns may be added, with a new number.
pub(super) const TABLES: &str = "
    CREATE TABLE session (
        no INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        tenant TEXT NOT NULL,
        subject TEXT,
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
        outcome TEXT NOT NULL,
        last TEXT NOT NULL,
        moved TEXT
    );
    CREATE INDEX session_updated ON session (tenant, updated);
    CREATE UNIQUE INDEX session_key ON session (network, key, tenant);
    -- Owners of sessions. first: the first line of the newest owner; 0 if there was none. mail: number of messages that were ever
    -- delivered; mail_seen: number of those that the last owner read. wants: the time from which on a worker should own the session;
    -- 0: now. need: the row of `need` that a program must meet to drive it.
    CREATE TABLE seat (
        no INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, worker INTEGER, first INTEGER NOT NULL, mail INTEGER NOT NULL,
        mail_seen INTEGER NOT NULL, wants INTEGER, place TEXT, need INTEGER NOT NULL, trouble TEXT
    );
    CREATE INDEX seat_wants ON seat (wants) WHERE worker IS NULL AND wants IS NOT NULL;
    CREATE INDEX seat_worker ON seat (worker, no) WHERE worker IS NOT NULL;
    CREATE INDEX seat_place ON seat (place, wants) WHERE place IS NOT NULL;
    -- Processes that own sessions now, or died while they did.
    CREATE TABLE worker (no INTEGER PRIMARY KEY, name TEXT NOT NULL, address TEXT, build TEXT NOT NULL, revision INTEGER NOT NULL);
    -- natives: a JSON list.
    CREATE TABLE need (no INTEGER PRIMARY KEY, revision INTEGER NOT NULL, natives TEXT NOT NULL, UNIQUE (revision, natives));
    -- The log: key is the session's number << 28 | line.
    CREATE TABLE line (key INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
    CREATE TABLE checkpoint (
        no INTEGER NOT NULL, of INTEGER NOT NULL, at INTEGER NOT NULL, bytes BLOB NOT NULL, UNIQUE (no, of, at)
    );
    CREATE TABLE blob (hash BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL);
    -- Messages that no line took yet. A seq is never used again, so the greatest one so far counts all messages.
    CREATE TABLE inbox (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, no INTEGER NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, bytes BLOB NOT NULL,
        sum BLOB NOT NULL, UNIQUE (no, id)
    );
    CREATE INDEX inbox_waiting ON inbox (no, seq);
    -- Ids of messages, as long as the session exists. said: hash of the message with which the id was accepted, keyed with the
    -- session's salt; null: not known.
    CREATE TABLE accepted (no INTEGER NOT NULL, id TEXT NOT NULL, said BLOB, PRIMARY KEY (no, id)) WITHOUT ROWID;
    -- fields: the names in the match key. An event finds its waits with one query for each such list.
    CREATE TABLE wait (
        no INTEGER NOT NULL, effect INTEGER NOT NULL, network TEXT NOT NULL, event TEXT NOT NULL,
        fields TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (no, effect, event, fields, key)
    ) WITHOUT ROWID;
    CREATE INDEX wait_key ON wait (network, event, fields, key);
    -- sum: a checksum over the event.
    CREATE TABLE event (
        seq INTEGER PRIMARY KEY, tenant TEXT NOT NULL, subject TEXT, id TEXT NOT NULL, network TEXT NOT NULL, event TEXT NOT NULL,
        fields TEXT NOT NULL, message BLOB NOT NULL, at INTEGER NOT NULL, until INTEGER NOT NULL, sum BLOB NOT NULL,
        UNIQUE (tenant, id)
    );
    CREATE INDEX event_name ON event (network, event);
    -- sum: a checksum over the row. hash: of tenant and id, by which a row is found whose id is damaged.
    CREATE TABLE event_seen (
        tenant TEXT NOT NULL, id TEXT NOT NULL, until INTEGER NOT NULL, said BLOB NOT NULL, sum BLOB NOT NULL, hash BLOB NOT NULL,
        PRIMARY KEY (tenant, id)
    ) WITHOUT ROWID;
    CREATE INDEX event_seen_hash ON event_seen (hash, until, said, sum);
    CREATE INDEX event_seen_until ON event_seen (until);
    CREATE TABLE label (no INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (no, name)) WITHOUT ROWID;
    CREATE INDEX label_value ON label (name, value);
    -- Memory of agents over sessions. key: accepted once. Numbers are never used again. replaced: the memory that stands in its place.
    CREATE TABLE memory (
        id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, subject TEXT, key TEXT NOT NULL, scope TEXT NOT NULL,
        name TEXT NOT NULL, tags TEXT NOT NULL, media TEXT NOT NULL, len INTEGER NOT NULL, hash BLOB NOT NULL, session TEXT,
        effect INTEGER, network TEXT NOT NULL, by TEXT NOT NULL, at INTEGER NOT NULL, until INTEGER, replaced INTEGER, UNIQUE (tenant, key)
    );
    CREATE INDEX memory_scope ON memory (scope, at);
    CREATE INDEX memory_session ON memory (session) WHERE session IS NOT NULL;
    CREATE INDEX memory_until ON memory (until) WHERE until IS NOT NULL;
    -- The last rating by an agent (person 0) and by a person (person 1).
    CREATE TABLE memory_rating (
        id INTEGER NOT NULL, person INTEGER NOT NULL, rating INTEGER NOT NULL, reason TEXT, by TEXT NOT NULL,
        PRIMARY KEY (id, person)
    ) WITHOUT ROWID;
    -- Limits that workers share. used: in the window that began at opens. In a row with the rate `pause MODEL`, opens is the end of a pause.
    CREATE TABLE quota (
        place BLOB NOT NULL, rate TEXT NOT NULL, opens INTEGER NOT NULL, used INTEGER NOT NULL, PRIMARY KEY (place, rate)
    ) WITHOUT ROWID;
    -- Clients of a server over the store. allows, roles, definitions, kinds, secrets: JSON lists. A secret of a webhook is sealed.
    CREATE TABLE token (
        name TEXT PRIMARY KEY, hash BLOB NOT NULL, tenant TEXT NOT NULL, subject TEXT, allows TEXT NOT NULL, roles TEXT NOT NULL,
        definitions TEXT NOT NULL, made INTEGER NOT NULL, expires INTEGER, revoked INTEGER, used INTEGER, note TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX token_tenant ON token (tenant, name);
    CREATE TABLE webhook (
        no INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, url TEXT NOT NULL, kinds TEXT NOT NULL, only TEXT,
        secrets TEXT NOT NULL, made INTEGER NOT NULL, failing TEXT, UNIQUE (tenant, name)
    );
    -- Position of a webhook in a session: it was sent all events of the lines before `line`, and the first `events` ones of that line.
    CREATE TABLE delivered (
        hook INTEGER NOT NULL, no INTEGER NOT NULL, line INTEGER NOT NULL, events INTEGER NOT NULL, PRIMARY KEY (hook, no)
    ) WITHOUT ROWID;
    -- Heads of conversations that clients name by a digest of their messages.
    CREATE TABLE conversation (
        tenant TEXT NOT NULL, digest BLOB NOT NULL, session TEXT NOT NULL, line INTEGER NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (tenant, digest)
    ) WITHOUT ROWID;
    CREATE INDEX conversation_at ON conversation (at);
    -- Sealed credentials for servers.
    CREATE TABLE credential (
        server TEXT NOT NULL, tenant TEXT NOT NULL, subject TEXT, version INTEGER NOT NULL, sealed TEXT NOT NULL, until INTEGER
    );
    CREATE INDEX credential_of ON credential (server, tenant, subject);
    CREATE TABLE schedule (
        tenant TEXT NOT NULL, network TEXT NOT NULL, name TEXT NOT NULL, digest BLOB NOT NULL, next INTEGER, last INTEGER,
        missed INTEGER NOT NULL, PRIMARY KEY (tenant, network, name)
    ) WITHOUT ROWID;
    CREATE INDEX schedule_next ON schedule (next) WHERE next IS NOT NULL;
    -- Which store it is, whether an effect of class `unsafe` ever began in it, how many transactions were written to it, and which
    -- one was the newest (stamp.rs). key: random, for digests.
    CREATE TABLE store (id BLOB NOT NULL, begun INTEGER NOT NULL, written INTEGER NOT NULL, stamp BLOB NOT NULL, key BLOB NOT NULL);
    INSERT INTO store VALUES (randomblob(16), 0, 0, x'', randomblob(32));
    -- Sessions whose next line says that a person accepted the store. was: the doubt about the store (0: a copy, 1: it lost lines).
    CREATE TABLE store_accepted (no INTEGER PRIMARY KEY, at INTEGER NOT NULL, was INTEGER NOT NULL);
";

/// Number of bytes at the beginning of a file that [`look`] reads: SQLite's header, and the header of the schema table.
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
    // A store writes its application id in the transaction that makes its first tables. So a file with tables and without the id
    // is foreign.
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
    if version > FORMAT {
        return Err(StoreError::Newer {
            place: path.display().to_string(),
            what: format!("format {version}, this one knows up to {FORMAT}"),
        });
    }
    if version < FORMAT && application == APPLICATION {
        return Err(StoreError::Corrupt {
            place: path.display().to_string(),
            what: format!(
                "it has format {version}, which a version before the first release wrote; this one reads format {FORMAT}"
            ),
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

/// Makes the tables and indexes in an empty file.
pub(super) fn make(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(TABLES)
}

/// Returns the application id and the format number in the file.
fn version(conn: &Connection) -> rusqlite::Result<(u32, u32)> {
    Ok((
        conn.pragma_query_value(None, "application_id", |r| r.get(0))?,
        conn.pragma_query_value(None, "user_version", |r| r.get(0))?,
    ))
}

/// Returns the id of a store and its counters; `None` if it has no tables yet, or if they have no such row.
pub(super) fn newest(conn: &Connection) -> rusqlite::Result<Option<Newest>> {
    if version(conn)?.1 == 0 {
        return Ok(None);
    }
    conn.query_row(
        "SELECT lower(hex(id)), begun, written FROM store",
        [],
        stamp::newest,
    )
    .optional()
}

/// Makes the tables of a store, if it has none yet. The caller has checked the file. A new store gets the id `drawn`, if one is
/// given.
pub(super) fn complete(
    conn: &mut Connection,
    path: &Path,
    drawn: Option<&str>,
) -> Result<(), StoreError> {
    let sql = |e| super::error::sql(path, e);
    // Has no effect on a file that is not empty.
    conn.pragma_update(None, "page_size", PAGE).map_err(sql)?;
    // A copy made by `backup` has no journal yet: it gets one when it is opened for writing the first time.
    conn.pragma_update(None, "journal_mode", "WAL")
        .map_err(sql)?;
    if version(conn).map_err(sql)?.1 == FORMAT {
        return Ok(());
    }
    let tx = conn
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(sql)?;
    // Another process may have been faster.
    if version(&tx).map_err(sql)?.1 == FORMAT {
        return Ok(());
    }
    make(&tx).map_err(sql)?;
    if drawn.is_some() {
        tx.execute("UPDATE store SET id = unhex(?1)", [drawn])
            .map_err(sql)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION)
        .map_err(sql)?;
    tx.pragma_update(None, "user_version", FORMAT)
        .map_err(sql)?;
    stamp(&tx, false).map_err(sql)?;
    tx.commit().map_err(sql)
}

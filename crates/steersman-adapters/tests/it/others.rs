//! Other programs replace a store or its files, or change its tables.

use crate::marked::begins;
use crate::sqlite::{Folder, Other, batch, message, session};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use steersman_adapters::secrets::sealer;
use steersman_adapters::sqlite::{SqliteOptions, SqliteStore, accept};
use steersman_machine::stored::ids::{Line, Time};
use steersman_runtime::store::{Inbox as _, Log as _};
use steersman_runtime::store::{StoreError, Worker};

fn looks() -> SqliteOptions {
    SqliteOptions {
        read_only: true,
        ..SqliteOptions::default()
    }
}

/// Returns the files of a folder and of the folders in it, with their content. The file of SQLite's locks is left out.
fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(content(&path));
        } else if !path.ends_with("sessions.db-shm") {
            found.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

async fn lines(file: &Path) -> Vec<u64> {
    let store = SqliteStore::open(file).unwrap();
    let rows = store.rows("a", Line(1), Line::MAX, 9).await.unwrap();
    rows.iter().map(|row| row.n.0).collect()
}

/// A closed store in which an unsafe effect began, and a message waits.
async fn marked() -> Folder {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    store.append(&claim, begins(1)).await.unwrap();
    store.deliver("a", message("m1")).await.unwrap();
    drop((store, claim));
    folder
}

/// A folder that is removed with the test.
struct Moved(PathBuf);

impl Drop for Moved {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process writes a store while the folder of the store gets another name, and another store takes its place.
#[tokio::test]
async fn no_journal_is_put_beside_the_store_that_stands_in_the_place_of_a_moved_one() {
    for (removed, is_killed) in [
        (&[][..], true),
        (&[], false),
        (&["-wal", "-shm"], true),
        (&["-wal"], false),
    ] {
        for journal in [None, Some("")] {
            let folder = Folder::new();
            folder.store().create(session("a")).await.unwrap();
            let mut owner = Other::start(&folder.file());
            owner.says("claimed");
            assert_eq!(owner.write(1), "written");
            let moved = Moved(folder.0.with_extension("moved"));
            std::fs::rename(&folder.0, &moved.0).unwrap();
            let other = marked().await;
            std::fs::rename(&other.0, &folder.0).unwrap();
            if let Some(journal) = journal {
                std::fs::write(folder.0.join("sessions.db-wal"), journal).unwrap();
            }
            let before = content(&folder.0);
            for ending in removed {
                std::fs::remove_file(moved.0.join(format!("sessions.db{ending}"))).unwrap();
            }
            assert_eq!(owner.write(2), "refused");
            assert_eq!(content(&folder.0), before);
            if is_killed {
                owner.child.kill().unwrap();
            } else {
                drop(owner.child.stdin.take());
            }
            owner.child.wait().unwrap();
            assert_eq!(content(&folder.0), before);
            // Each has what was written to it, and nobody has to accept either.
            assert_eq!(lines(&moved.0.join("sessions.db")).await, [1]);
            assert_eq!(lines(&folder.file()).await, [1]);
            let store = folder.store();
            assert_eq!(store.inbox("a").await.unwrap().1.len(), 1);
        }
    }
}

/// The file, alone or with its journal, is moved to a place that only the system knows, and another store takes its place.
#[tokio::test]
async fn a_journal_follows_its_file_wherever_that_was_moved() {
    for names in [&[""][..], &["", "-wal", "-shm"]] {
        let folder = Folder::new();
        let store = folder.store();
        store.create(session("a")).await.unwrap();
        let claim = store.claim("a", &Worker::nameless()).await.unwrap();
        store.append(&claim, batch(1, b"one", true)).await.unwrap();
        let away = folder.0.join("away");
        std::fs::create_dir(&away).unwrap();
        let beside = |ending: &str| folder.0.join(format!("sessions.db{ending}"));
        for name in names {
            std::fs::rename(beside(name), away.join(format!("sessions.db{name}"))).unwrap();
        }
        for ending in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(beside(ending));
        }
        let other = marked().await;
        std::fs::copy(other.file(), folder.file()).unwrap();
        let failed = store.append(&claim, batch(2, b"two", true)).await;
        let failed = failed.unwrap_err().to_string();
        assert!(failed.contains("the file was moved to"), "{failed}");
        assert!(failed.contains("away/sessions.db"), "{failed}");
        assert!(!beside("-wal").exists(), "{names:?}");
        // The files as a kill would leave them.
        let left = Folder::new();
        for ending in ["", "-wal"] {
            let name = format!("sessions.db{ending}");
            std::fs::copy(away.join(&name), left.0.join(&name)).unwrap();
        }
        assert_eq!(lines(&left.file()).await, [1]);
        drop((store, claim));
        assert!(!beside("-wal").exists(), "{names:?}");
        assert_eq!(lines(&away.join("sessions.db")).await, [1]);
    }
    // A file that was removed has no place.
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    std::fs::remove_file(folder.file()).unwrap();
    std::fs::remove_file(folder.0.join("sessions.db-wal")).unwrap();
    let failed = store.create(session("b")).await.unwrap_err().to_string();
    assert!(
        failed.contains("not copied next to another file"),
        "{failed}"
    );
    drop(store);
    assert!(!folder.0.join("sessions.db-wal").exists());
}

/// Runs something that must not block.
fn at_once<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::sync_channel(1);
    std::thread::spawn(move || done.send(run()));
    result
        .recv_timeout(Duration::from_secs(20))
        .expect("it blocks")
}

fn pipe(at: &Path) {
    let _ = std::fs::remove_file(at);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, at, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

/// Opening a pipe blocks until somebody writes into it.
#[tokio::test]
async fn a_pipe_in_the_place_of_any_file_of_a_store_is_refused_at_once() {
    let mut places: Vec<PathBuf> = [
        "",
        "-wal",
        "-shm",
        "-journal",
        ".owners/.open",
        ".owners/.gate",
    ]
    .iter()
    .map(|ending| format!("sessions.db{ending}").into())
    .collect();
    places.push("mark".into());
    for place in places {
        let folder = marked().await;
        let at = if place == Path::new("mark") {
            folder.mark().unwrap()
        } else {
            folder.0.join(&place)
        };
        let whole = std::fs::read(&at).ok();
        pipe(&at);
        for read_only in [true, false] {
            let file = folder.file();
            let opened = at_once(move || {
                let options = SqliteOptions {
                    read_only,
                    ..SqliteOptions::default()
                };
                let opened = SqliteStore::open_with(file, &options)?;
                opened.doubt().cloned().map_or(Ok(()), Err)
            });
            let refused = opened.unwrap_err().to_string();
            assert!(
                refused.contains("it is a pipe and no plain file"),
                "{place:?}: {refused}"
            );
            assert!(refused.contains("move it away"), "{place:?}: {refused}");
        }
        std::fs::remove_file(&at).unwrap();
        if let Some(whole) = whole.filter(|_| place != Path::new("mark")) {
            std::fs::write(&at, whole).unwrap();
        }
    }
    // The lock of a session.
    let folder = marked().await;
    pipe(&folder.0.join("sessions.db.owners/a"));
    let store = folder.store();
    let by = Worker::nameless();
    let claimed = store.claim("a", &by);
    let claimed = tokio::time::timeout(Duration::from_secs(20), claimed).await;
    let refused = claimed.unwrap().err().unwrap().to_string();
    assert!(
        refused.contains("it is a pipe and no plain file"),
        "{refused}"
    );
    // The key that seals secrets.
    let folder = Folder::new();
    pipe(&folder.0.join("key"));
    let place = folder.0.clone();
    let env: steersman_runtime::Env = std::sync::Arc::new(|_: &str| None);
    let refused = at_once(move || sealer(&place, &env));
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("it is a pipe and no plain file"),
        "{refused}"
    );
}

/// An empty file next to a mark that counts transactions is not taken for a new store.
#[tokio::test]
async fn an_emptied_store_is_refused_also_where_it_is_a_copy() {
    for is_copy in [false, true] {
        let folder = marked().await;
        if is_copy {
            let whole = std::fs::read(folder.file()).unwrap();
            std::fs::remove_file(folder.file()).unwrap();
            std::fs::write(folder.0.join("other"), whole).unwrap();
            std::fs::rename(folder.0.join("other"), folder.file()).unwrap();
        }
        std::fs::write(folder.file(), "").unwrap();
        for _ in 0..2 {
            for refused in [
                SqliteStore::open(folder.file()).err(),
                SqliteStore::open_with(folder.file(), &looks()).err(),
            ] {
                assert!(
                    matches!(&refused, Some(StoreError::Unaccepted { why, .. }) if why.contains("is missing")),
                    "{is_copy}: {refused:?}"
                );
            }
        }
        assert!(accept(&folder.file(), Time(7)).unwrap().is_some());
        let store = folder.store();
        store.create(session("b")).await.unwrap();
    }
}

/// In the place of a store that was removed another one begins, and only one if many processes do that at once.
#[tokio::test]
async fn processes_that_begin_a_store_beside_an_old_mark_begin_one() {
    for _ in 0..8 {
        let folder = marked().await;
        std::fs::remove_file(folder.file()).unwrap();
        let opened: Vec<_> = (0..4)
            .map(|_| {
                let file = folder.file();
                std::thread::spawn(move || SqliteStore::open(file))
            })
            .collect();
        let mut stores = opened
            .into_iter()
            .map(|opened| opened.join().unwrap().unwrap());
        let store = stores.next().unwrap();
        store.create(session("b")).await.unwrap();
        assert!(stores.all(|store| store.doubt().is_none()));
        drop((store, stores));
        assert!(SqliteStore::open(folder.file()).is_ok());
        assert!(folder.mark().is_some());
    }
}

fn changes(file: &Path, sql: &str) {
    let conn = rusqlite::Connection::open(file).unwrap();
    conn.execute_batch(sql).unwrap();
}

/// A trigger would run in the transactions of our writers.
#[tokio::test]
async fn a_store_with_a_trigger_or_a_view_or_changed_tables_is_not_opened() {
    let trigger = "CREATE TRIGGER t AFTER INSERT ON line BEGIN DELETE FROM line; END";
    for (change, back, told) in [
        (trigger, "DROP TRIGGER t", "a trigger `t` on `line`"),
        (
            "CREATE TABLE mine (x); CREATE TRIGGER t AFTER INSERT ON mine BEGIN DELETE FROM line; END",
            "DROP TABLE mine",
            "a trigger `t` on `mine`",
        ),
        ("CREATE VIEW v AS SELECT 1", "DROP VIEW v", "a view `v`"),
        (
            "CREATE UNIQUE INDEX i ON inbox (at)",
            "DROP INDEX i",
            "an index `i` on `inbox`",
        ),
        (
            "DROP INDEX event_name",
            "CREATE INDEX event_name ON event (network, event)",
            "its index `event_name` is missing",
        ),
        (
            "DROP INDEX event_name; CREATE UNIQUE INDEX event_name ON event (network, event)",
            "DROP INDEX event_name; CREATE INDEX event_name ON event (network, event)",
            "its index `event_name` is not as",
        ),
        (
            "ALTER TABLE line RENAME TO was; CREATE TABLE line (key INTEGER PRIMARY KEY, bytes BLOB NOT NULL CHECK (key > 0)); INSERT INTO line SELECT * FROM was",
            "DROP TABLE line; ALTER TABLE was RENAME TO line",
            "its table `line` is not as",
        ),
    ] {
        let folder = marked().await;
        changes(&folder.file(), change);
        let before = std::fs::read(folder.file()).unwrap();
        for refused in [
            SqliteStore::open(folder.file()).err(),
            SqliteStore::open_with(folder.file(), &looks()).err(),
            accept(&folder.file(), Time(7)).err(),
        ] {
            assert!(
                matches!(&refused, Some(StoreError::Corrupt { what, .. }) if what.contains(told)),
                "{change}: {refused:?}"
            );
        }
        assert_eq!(std::fs::read(folder.file()).unwrap(), before);
        if told.contains("`line` is not") {
            // SQLite keeps the new text of a table that was renamed.
            continue;
        }
        changes(&folder.file(), back);
        assert_eq!(lines(&folder.file()).await, [1], "{change}");
    }
    // A table of another program does nothing.
    let folder = marked().await;
    changes(
        &folder.file(),
        "CREATE TABLE mine (x); CREATE INDEX i ON mine (x); ANALYZE",
    );
    assert_eq!(lines(&folder.file()).await, [1]);
    // A trigger that is made while the store is open does nothing either.
    let folder = marked().await;
    let store = folder.store();
    changes(&folder.file(), trigger);
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    let next = batch(claim.first.0, b"two", true);
    store.append(&claim, next).await.unwrap();
    let rows = store.rows("a", Line(1), Line::MAX, 9).await.unwrap();
    assert_eq!(rows.len(), 2);
}

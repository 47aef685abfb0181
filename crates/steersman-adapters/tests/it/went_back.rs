//! Stores that lose their end while they are open, and the files next to a store that is refused.

use crate::marked::{PAGE, begins};
use crate::sqlite::{Folder, Other, batch, session};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use steersman_adapters::sqlite::{SqliteStore, accept};
use steersman_machine::stored::ids::{Line, Time};
use steersman_runtime::store::{Claim, Inbox as _, Log as _, StoreError, Worker};

/// Restores an older state into the file of a store that others have open, as the shell of SQLite does.
fn restored(file: &Path, from: &Path) {
    let from = rusqlite::Connection::open(from).unwrap();
    let mut into = rusqlite::Connection::open(file).unwrap();
    let backup = rusqlite::backup::Backup::new(&from, &mut into).unwrap();
    let all = backup.run_to_completion(1_000, std::time::Duration::ZERO, None);
    all.unwrap();
}

/// A backup from before the first effect of class `unsafe`, and the store and claim that began this effect.
async fn backed_up(folder: &Folder) -> (PathBuf, SqliteStore, Claim) {
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let old = folder.0.join("old");
    store.backup(&old).await.unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    store.append(&claim, begins(1)).await.unwrap();
    (old, store, claim)
}

fn is_doubt<T>(result: Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Unaccepted { .. }))
}

fn marked(folder: &Folder) -> Vec<u8> {
    std::fs::read(folder.mark().unwrap()).unwrap()
}

/// An older state is restored under a process that has the store open: neither this process nor the next one drives the store.
#[tokio::test]
async fn a_store_that_goes_back_while_it_is_open_is_not_driven() {
    for begun_before in [false, true] {
        let folder = Folder::new();
        let store = folder.store();
        for id in ["a", "b"] {
            store.create(session(id)).await.unwrap();
        }
        let claim = store.claim("a", &Worker::nameless()).await.unwrap();
        let mut n = 1;
        if begun_before {
            store.append(&claim, begins(n)).await.unwrap();
            n += 1;
        }
        let old = folder.0.join("old");
        store.backup(&old).await.unwrap();
        for n in n..n + 4 {
            store.append(&claim, begins(n)).await.unwrap();
        }
        let told = marked(&folder);
        restored(&folder.file(), &old);
        // A session that is claimed now would be loaded without the effects that it began.
        assert!(
            is_doubt(store.claim("b", &Worker::nameless()).await),
            "{begun_before}"
        );
        assert!(is_doubt(store.append(&claim, begins(9)).await));
        assert!(is_doubt(
            store.deliver("a", crate::sqlite::message("m")).await
        ));
        assert_eq!(marked(&folder), told, "what was counted stays counted");
        drop((store, claim));
        assert!(is_doubt(SqliteStore::open(folder.file()).map(drop)));
        assert!(accept(&folder.file(), Time(7)).unwrap().is_some());
        drop(folder.store());
    }
}

/// A store in which nothing `unsafe` began does not become one in which something did, unless it has the mark for that.
#[tokio::test]
async fn a_backup_that_needs_a_mark_is_not_driven_in_the_place_of_a_store_that_needs_none() {
    let (other, folder) = (Folder::new(), Folder::new());
    let theirs = other.store();
    theirs.create(session("a")).await.unwrap();
    let claim = theirs.claim("a", &Worker::nameless()).await.unwrap();
    theirs.append(&claim, begins(1)).await.unwrap();
    let old = folder.0.join("old");
    theirs.backup(&old).await.unwrap();
    let store = folder.store();
    store.create(session("b")).await.unwrap();
    restored(&folder.file(), &old);
    assert!(is_doubt(store.claim("a", &Worker::nameless()).await));
    drop(store);
    assert!(is_doubt(SqliteStore::open(folder.file()).map(drop)));
}

/// Another process may begin the first effect of class `unsafe`, and may drive on: both processes go on.
#[tokio::test]
async fn a_store_that_goes_on_elsewhere_is_driven() {
    let folder = Folder::new();
    let (one, two) = (folder.store(), folder.store());
    for id in ["a", "b"] {
        one.create(session(id)).await.unwrap();
    }
    let a = one.claim("a", &Worker::nameless()).await.unwrap();
    let b = two.claim("b", &Worker::nameless()).await.unwrap();
    for n in 1..5 {
        one.append(&a, begins(n)).await.unwrap();
        two.append(&b, batch(n, b"b", true)).await.unwrap();
    }
    two.append(&b, begins(5)).await.unwrap();
    one.append(&a, batch(5, b"a", true)).await.unwrap();
}

/// The file of a killed process is removed, its journal and mark are not. A refusal touches neither, so that another file in its
/// place is not taken for it.
#[tokio::test]
async fn a_refused_store_keeps_its_mark() {
    let folder = Folder::new();
    let (old, store, claim) = backed_up(&folder).await;
    let journal = folder.file().with_extension("db-wal");
    let (bytes, told) = (std::fs::read(&journal).unwrap(), marked(&folder));
    drop((store, claim));
    let newest = std::fs::read(folder.file()).unwrap();
    std::fs::write(folder.mark().unwrap(), &told).unwrap();
    std::fs::write(&journal, &bytes).unwrap();
    std::fs::remove_file(folder.file()).unwrap();
    for _ in 0..2 {
        let refused = SqliteStore::open(folder.file()).map(drop);
        assert!(
            matches!(refused, Err(StoreError::Corrupt { .. })),
            "{refused:?}"
        );
        assert_eq!(marked(&folder), told);
        assert!(!folder.file().exists());
    }
    // The journal is moved away, as the message says. A backup from before the first effect does not belong to the mark.
    std::fs::remove_file(&journal).unwrap();
    std::fs::copy(&old, folder.file()).unwrap();
    assert!(is_doubt(SqliteStore::open(folder.file()).map(drop)));
    std::fs::write(folder.file(), newest).unwrap();
    assert!(is_doubt(SqliteStore::open(folder.file()).map(drop)));
}

/// A mark of an empty file belongs to no other file, and a kill after it is made does no harm.
#[tokio::test]
async fn a_mark_of_an_empty_store_is_of_no_other_one() {
    let folder = Folder::new();
    let (old, store, claim) = backed_up(&folder).await;
    drop((store, claim));
    std::fs::remove_file(folder.file()).unwrap();
    // The tables cannot be made: the file stays empty, with its mark.
    let blocked = folder.file().with_extension("db-wal");
    std::fs::create_dir(&blocked).unwrap();
    assert!(SqliteStore::open(folder.file()).is_err());
    std::fs::remove_dir(&blocked).unwrap();
    if let Ok(mut file) = std::fs::OpenOptions::new().write(true).open(folder.file()) {
        use std::io::Write;
        file.write_all(&std::fs::read(&old).unwrap()).unwrap();
    } else {
        std::fs::copy(&old, folder.file()).unwrap();
    }
    assert!(is_doubt(SqliteStore::open(folder.file()).map(drop)));
}

/// Returns the page with the leaf of the table that lists the tables.
fn schema_leaf(file: &Path) -> usize {
    let bytes = std::fs::read(file).unwrap();
    assert_eq!(bytes[100], 5, "the table of tables has more than one page");
    let page = [0, 1, 2, 3].map(|k| bytes[108 + k]);
    u32::from_be_bytes(page) as usize
}

/// A connection that fails before the store is judged leaves the journal, since another file may need it.
#[tokio::test]
async fn a_store_that_cannot_be_read_keeps_its_journal() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    drop(store);
    let mut owner = Other::start(&folder.file());
    owner.says("claimed");
    assert!(owner.write(101).contains("written"));
    let _ = owner.child.kill();
    let _ = owner.child.wait();
    let journal = folder.file().with_extension("db-wal");
    let kept = std::fs::read(&journal).unwrap();
    let leaf = schema_leaf(&folder.file());
    let mut file = std::fs::read(folder.file()).unwrap();
    file[(leaf - 1) * PAGE..leaf * PAGE].fill(7);
    std::fs::write(folder.file(), &file).unwrap();
    for _ in 0..2 {
        assert!(SqliteStore::open(folder.file()).is_err());
        assert_eq!(std::fs::read(&journal).unwrap(), kept);
        assert_eq!(std::fs::read(folder.file()).unwrap(), file);
    }
}

/// A living process writes into a file that no longer has the name. The next process does not take the journal of that file
/// for the journal of the file that has the name now.
#[cfg(unix)]
#[tokio::test]
async fn nobody_enters_beside_an_owner_whose_file_was_replaced() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let old: PathBuf = folder.0.join("old");
    store.backup(&old).await.unwrap();
    drop(store);
    let mut owner = Other::start(&folder.file());
    owner.says("claimed");
    std::fs::rename(&old, folder.file()).unwrap();
    let refused = SqliteStore::open(folder.file()).map(drop).unwrap_err();
    assert!(refused.to_string().contains("replaced"), "{refused}");
}

/// The folder with the locks is removed while two processes have the store open. A second handle of one of them, which is
/// refused, does not release the lock of the first one.
#[cfg(unix)]
#[tokio::test]
async fn a_handle_that_is_refused_leaves_the_lock_of_another_one() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let mut owner = Other::start(&folder.file());
    owner.says("claimed");
    std::fs::remove_dir_all(folder.file().with_extension("db.owners")).unwrap();
    assert!(SqliteStore::open(folder.file()).is_err());
    let _ = owner.child.kill();
    let _ = owner.child.wait();
    let mut next = Other::start(&folder.file());
    let ended = next.child.wait().unwrap();
    assert!(
        !ended.success(),
        "it opened the store next to a living handle"
    );
    drop(store);
}

/// Lines that were written under the other name may be in a journal there, and a copy would lack them.
#[cfg(unix)]
#[tokio::test]
async fn a_store_is_not_backed_up_by_another_name() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    drop(store);
    let link = folder.0.join("link.db");
    std::fs::hard_link(folder.file(), &link).unwrap();
    let looks = steersman_adapters::sqlite::SqliteOptions {
        read_only: true,
        ..Default::default()
    };
    let linked = SqliteStore::open_with(&link, &looks).unwrap();
    let copy = folder.0.join("copy");
    let refused = linked.backup(&copy).await.unwrap_err();
    assert!(refused.to_string().contains("hard links"), "{refused}");
    assert!(!copy.exists());
    let rows = linked.rows("a", Line(1), Line::MAX, 9).await.unwrap();
    assert!(rows.is_empty());
}

/// The mark of the first effect cannot be written, after its transaction was committed. The effect does not begin, and everything
/// that is written later is stamped all the same.
#[cfg(unix)]
#[tokio::test]
async fn a_store_knows_its_first_effect_although_the_mark_failed() {
    for _ in 0..99 {
        let folder = Folder::new();
        let store = folder.store();
        for id in ["a", "b"] {
            store.create(session(id)).await.unwrap();
        }
        let a = store.claim("a", &Worker::nameless()).await.unwrap();
        let b = store.claim("b", &Worker::nameless()).await.unwrap();
        let marks = folder.marks();
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = is_over.clone();
        // Another program locks the mark as soon as it has its name.
        let locks = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let all = std::fs::read_dir(&marks).into_iter().flatten().flatten();
                let mut marks = all.filter(|entry| entry.file_name().len() == 16);
                let mark = marks.find_map(|entry| std::fs::File::open(entry.path()).ok());
                if let Some(mark) = mark.filter(|mark| mark.try_lock().is_ok()) {
                    return Some(mark);
                }
            }
            None
        });
        let begun = store.append(&a, begins(1)).await;
        is_over.store(true, Ordering::Relaxed);
        let locked = locks.join().unwrap();
        if begun.is_ok() {
            continue;
        }
        drop(locked);
        let stamp = || {
            let conn = rusqlite::Connection::open(folder.file()).unwrap();
            let stamp = "SELECT begun, written FROM store";
            conn.query_row(stamp, [], |row| {
                Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(1)?))
            })
            .unwrap()
        };
        let (begun, written) = stamp();
        assert!(begun);
        store.append(&b, batch(1, b"b", true)).await.unwrap();
        assert_eq!(stamp(), (true, written + 1));
        return;
    }
    panic!("the mark was never locked in time");
}

//! Stores whose journal was removed while they were open, or whose pages have another size.

use crate::sqlite::{Folder, Other, batch, message, session};
use futures::StreamExt;
use std::path::{Path, PathBuf};
use steersman_adapters::sqlite::{SqliteOptions, SqliteStore};
use steersman_machine::stored::ids::Line;
use steersman_runtime::store::{Inbox as _, Lists as _, Log as _};
use steersman_runtime::store::{StoreError, Worker};

fn store_file(folder: &Folder, ending: &str) -> PathBuf {
    folder.0.join(format!("sessions.db{ending}"))
}

async fn lines(file: &Path) -> Vec<u64> {
    let store = SqliteStore::open(file).unwrap();
    let rows = store.rows("a", Line(1), Line::MAX, 9).await.unwrap();
    rows.iter().map(|row| row.n.0).collect()
}

/// Returns a store, and another process that owns its session and has its first line on disk.
async fn owned() -> (Folder, Other) {
    let folder = Folder::new();
    folder.store().create(session("a")).await.unwrap();
    let mut owner = Other::start(&folder.file());
    owner.says("claimed");
    assert_eq!(owner.write(1), "written");
    (folder, owner)
}

fn killed(mut owner: Other) {
    owner.child.kill().unwrap();
    owner.child.wait().unwrap();
}

fn ended(mut owner: Other) {
    drop(owner.child.stdin.take());
    assert!(owner.child.wait().unwrap().success());
}

fn is_refused(folder: &Folder) {
    for read_only in [true, false] {
        let options = SqliteOptions {
            read_only,
            ..SqliteOptions::default()
        };
        let refused = SqliteStore::open_with(folder.file(), &options).err();
        let why = refused.map(|e| e.to_string()).unwrap_or_default();
        assert!(why.contains("while another process has it open"), "{why}");
    }
}

const REMOVED: [&[&str]; 3] = [&["-wal", "-shm"], &["-wal"], &["-shm"]];

#[tokio::test]
async fn an_owner_whose_journal_was_removed_writes_nothing_more_and_a_kill_loses_nothing() {
    for removed in REMOVED {
        let (folder, mut owner) = owned().await;
        for ending in removed {
            std::fs::remove_file(store_file(&folder, ending)).unwrap();
        }
        is_refused(&folder);
        for ending in removed {
            assert!(
                !store_file(&folder, ending).exists(),
                "{removed:?}: {ending}"
            );
        }
        assert_eq!(owner.write(2), "refused", "{removed:?}");
        assert!(store_file(&folder, "-wal").exists(), "{removed:?}");
        is_refused(&folder);
        assert_eq!(owner.write(2), "refused", "{removed:?}");
        killed(owner);
        assert_eq!(lines(&folder.file()).await, [1], "{removed:?}");
    }
}

#[tokio::test]
async fn an_owner_whose_journal_was_removed_and_that_ends_loses_nothing() {
    for removed in REMOVED {
        let (folder, owner) = owned().await;
        for ending in removed {
            std::fs::remove_file(store_file(&folder, ending)).unwrap();
        }
        ended(owner);
        assert_eq!(lines(&folder.file()).await, [1], "{removed:?}");
    }
}

/// An owner that waits for messages and writes nothing notices it as well.
#[tokio::test]
async fn a_journal_that_was_removed_is_put_back_by_an_owner_that_waits() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    store.append(&claim, batch(1, b"one", true)).await.unwrap();
    for ending in ["-wal", "-shm"] {
        std::fs::remove_file(store_file(&folder, ending)).unwrap();
    }
    let mut wakes = store.wakes(&Worker::nameless());
    let woken = tokio::time::timeout(std::time::Duration::from_millis(200), wakes.next());
    assert!(woken.await.is_err(), "there is no wake");
    let failed = store.deliver("a", message("m1")).await;
    let failed = failed.unwrap_err().to_string();
    assert!(failed.contains("nothing more is written"), "{failed}");
    assert!(failed.contains("all that was acknowledged is"), "{failed}");
    assert!(store.claim("a", &Worker::nameless()).await.is_err());
    // The files as a kill would leave them.
    let left = Folder::new();
    for ending in ["", "-wal"] {
        std::fs::copy(store_file(&folder, ending), store_file(&left, ending)).unwrap();
    }
    drop((store, claim));
    assert_eq!(lines(&left.file()).await, [1]);
    assert_eq!(lines(&folder.file()).await, [1]);
}

/// A program that only looked leaves an empty journal, which is replaced. A journal that another program wrote is kept.
#[tokio::test]
async fn the_journal_of_another_program_in_the_place_of_one_that_was_removed_is_kept() {
    for (foreign, kept) in [("", false), ("somebody's", true)] {
        let (folder, mut owner) = owned().await;
        let journal = store_file(&folder, "-wal");
        std::fs::remove_file(&journal).unwrap();
        std::fs::write(&journal, foreign).unwrap();
        is_refused(&folder);
        assert_eq!(owner.write(2), "refused");
        let there = std::fs::read(&journal).unwrap();
        assert_eq!(there == foreign.as_bytes(), kept);
        if kept {
            std::fs::remove_file(&journal).unwrap();
        }
        ended(owner);
        assert_eq!(lines(&folder.file()).await, [1]);
    }
}

/// The handles of a process have one journal, also those that are opened later, and none of them writes without it.
#[tokio::test]
async fn no_handle_writes_behind_a_journal_that_was_removed() {
    let folder = Folder::new();
    let (store, other) = (folder.store(), folder.store());
    store.create(session("a")).await.unwrap();
    other.create(session("b")).await.unwrap();
    std::fs::remove_file(store_file(&folder, "-wal")).unwrap();
    for store in [&store, &other] {
        let failed = store.create(session("c")).await.unwrap_err();
        assert!(matches!(failed, StoreError::Io { .. }), "{failed}");
    }
    is_refused(&folder);
    drop((store, other));
    let store = folder.store();
    for (id, is_there) in [("a", true), ("b", true), ("c", false)] {
        assert_eq!(store.head(id).await.is_ok(), is_there, "{id}");
    }
}

/// The file alone is moved into a new folder of the old name. Its journal is still in the other folder.
#[tokio::test]
async fn a_file_that_was_moved_away_from_its_journal_takes_nothing() {
    let folder = Folder::new();
    let (here, old) = (folder.0.join("d"), folder.0.join("d.old"));
    std::fs::create_dir(&here).unwrap();
    let file = here.join("sessions.db");
    let store = SqliteStore::open(&file).unwrap();
    store.create(session("a")).await.unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    store.append(&claim, batch(1, b"x", true)).await.unwrap();
    std::fs::rename(&here, &old).unwrap();
    std::fs::create_dir(&here).unwrap();
    std::fs::rename(old.join("sessions.db"), &file).unwrap();
    let refused = store.append(&claim, batch(2, b"y", true)).await;
    assert!(matches!(refused, Err(StoreError::Io { .. })), "{refused:?}");
    drop((claim, store));
    assert_eq!(lines(&file).await, [1]);
}

/// A folder further up is renamed, and a copy of the store takes the old path. The folder of the store itself does not
/// change.
#[tokio::test]
async fn a_store_that_took_the_place_of_one_further_up_gets_nothing() {
    let folder = Folder::new();
    let (here, moved) = (folder.0.join("g/p"), folder.0.join("g2"));
    std::fs::create_dir_all(&here).unwrap();
    let file = here.join("sessions.db");
    let store = SqliteStore::open(&file).unwrap();
    store.create(session("a")).await.unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    store.append(&claim, batch(1, b"x", true)).await.unwrap();
    let backup = folder.0.join("backup.db");
    store.backup(&backup).await.unwrap();
    std::fs::rename(folder.0.join("g"), &moved).unwrap();
    std::fs::create_dir_all(&here).unwrap();
    std::fs::copy(&backup, &file).unwrap();
    let refused = store.append(&claim, batch(2, b"y", true)).await;
    assert!(matches!(refused, Err(StoreError::Io { .. })), "{refused:?}");
    drop((claim, store));
    assert_eq!(lines(&file).await, [1]);
    assert_eq!(lines(&moved.join("p/sessions.db")).await.first(), Some(&1));
}

/// Stores had pages of 4 KiB before new ones got smaller ones.
#[tokio::test]
async fn a_store_with_larger_pages_is_driven_as_it_is() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    store.append(&claim, batch(1, b"old", true)).await.unwrap();
    drop((store, claim));
    let page_size = |after: &str| -> u32 {
        let conn = rusqlite::Connection::open(folder.file()).unwrap();
        conn.execute_batch(after).unwrap();
        let size = "PRAGMA page_size";
        conn.query_row(size, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(page_size(""), 2_048);
    let larger =
        "PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM; PRAGMA journal_mode = WAL;";
    assert_eq!(page_size(larger), 4_096);
    for n in [100, 200] {
        let store = folder.store();
        let claim = store.claim("a", &Worker::nameless()).await.unwrap();
        store.append(&claim, batch(n, b"new", true)).await.unwrap();
        assert!(store.check_structure().await.unwrap().is_empty());
    }
    let rows = folder.store().rows("a", Line(1), Line::MAX, 9).await;
    let rows: Vec<u64> = rows.unwrap().iter().map(|row| row.n.0).collect();
    assert_eq!(rows, [1, 100, 200]);
    assert_eq!(page_size(""), 4_096, "it stays as it is");
}

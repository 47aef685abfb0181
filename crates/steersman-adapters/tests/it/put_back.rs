//! What becomes of a store in whose place old files were put, and of its mark in whose place others are.

use crate::marked::begins;
use crate::sqlite::{Folder, session};
#[cfg(unix)]
use std::path::PathBuf;
use steersman_adapters::sqlite::{SqliteStore, accept};
use steersman_machine::ids::{Line, Time};
use steersman_runtime::store::Store;
#[cfg(unix)]
use steersman_runtime::store::StoreError;

/// A store in which something waits that must not happen twice, and what its folder held then.
#[cfg(unix)]
async fn waits() -> (Folder, Vec<(PathBuf, Vec<u8>)>) {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let claim = store.claim("a").await.unwrap();
    store.append(&claim, begins(1)).await.unwrap();
    drop((store, claim));
    let parent = folder.file().parent().unwrap().to_owned();
    let files = std::fs::read_dir(parent).unwrap().map(Result::unwrap);
    let files = files.filter(|entry| entry.path().is_file());
    let files = files.map(|entry| (entry.path(), std::fs::read(entry.path()).unwrap()));
    let kept = files.collect();
    (folder, kept)
}

#[cfg(unix)]
fn refused(folder: &Folder) -> String {
    match SqliteStore::open(folder.file()) {
        Err(StoreError::Unaccepted { why, .. }) => why,
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("it was opened"),
    }
}

/// Whoever writes all files over what is there leaves inodes and the times at which files were made as they are.
#[cfg(unix)]
#[tokio::test]
async fn a_folder_whose_files_were_written_over_is_not_driven() {
    let (folder, kept) = waits().await;
    // Opening, reading and writing is no reason.
    for n in 2..4 {
        let store = folder.store();
        let claim = store.claim("a").await.unwrap();
        store.append(&claim, begins(n)).await.unwrap();
    }
    for round in 1..3 {
        for (path, bytes) in &kept {
            std::fs::write(path, bytes).unwrap();
        }
        let why = refused(&folder);
        assert!(why.contains(".witness, which nothing"), "{round}: {why}");
        assert!(accept(&folder.file(), Time(77)).unwrap().is_some());
        assert!(accept(&folder.file(), Time(78)).unwrap().is_none());
        drop(folder.store());
    }
    let witness = folder.file().with_extension("db.witness");
    std::fs::remove_file(witness).unwrap();
    assert!(refused(&folder).contains(".witness, which nothing"));
}

/// Renaming the folder touches no file in it.
#[cfg(unix)]
#[tokio::test]
async fn a_folder_that_was_renamed_is_driven() {
    let (folder, _) = waits().await;
    let parent = folder.file().parent().unwrap().to_owned();
    let renamed = parent.with_extension("renamed");
    std::fs::rename(&parent, &renamed).unwrap();
    let opened = SqliteStore::open(renamed.join(folder.file().file_name().unwrap()));
    assert!(opened.is_ok());
    drop(opened);
    std::fs::rename(&renamed, &parent).unwrap();
    drop(folder.store());
}

/// It says of itself that nothing began in it; the mark beside it says otherwise.
#[cfg(unix)]
#[tokio::test]
async fn a_backup_from_before_the_first_effect_is_refused_in_place_of_a_store_with_a_mark() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let backup = folder.file().with_extension("backup");
    store.backup(&backup).await.unwrap();
    let claim = store.claim("a").await.unwrap();
    store.append(&claim, begins(1)).await.unwrap();
    drop((store, claim));
    let put_back = || {
        let part = folder.file().with_extension("part");
        std::fs::copy(&backup, &part).unwrap();
        std::fs::rename(&part, folder.file()).unwrap();
    };
    put_back();
    assert!(refused(&folder).contains("of another store"));
    // Who removes the store begins another one, in which nothing is in doubt, also not when it is opened again.
    for begun in [false, true] {
        std::fs::remove_file(folder.file()).unwrap();
        for _ in 0..2 {
            drop(folder.store());
        }
        let store = folder.store();
        store.create(session("b")).await.unwrap();
        let claim = store.claim("b").await.unwrap();
        if begun {
            store.append(&claim, begins(1)).await.unwrap();
        }
        drop((store, claim));
        drop(folder.store());
        // The backup belongs to neither, moved into its place or written over it.
        let kept = std::fs::read(folder.file()).unwrap();
        std::fs::write(folder.file(), std::fs::read(&backup).unwrap()).unwrap();
        assert!(refused(&folder).contains("of another store"), "{begun}");
        std::fs::write(folder.file(), kept).unwrap();
        drop(folder.store());
        put_back();
        assert!(refused(&folder).contains("of another store"), "{begun}");
    }
    assert!(accept(&folder.file(), Time(77)).unwrap().is_some());
    drop(folder.store());
}

#[tokio::test]
async fn a_file_of_another_program_in_the_place_of_the_mark_is_kept() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let claim = store.claim("a").await.unwrap();
    let mark = folder.file().with_extension("db.mark");
    let foreign = [7; 3_000];
    std::fs::write(&mark, foreign).unwrap();
    let failed = store.append(&claim, begins(1)).await.unwrap_err();
    assert!(failed.to_string().contains("move it away"), "{failed}");
    drop((store, claim));
    assert_eq!(std::fs::read(&mark).unwrap(), foreign);
    let failed = SqliteStore::open(folder.file()).err().unwrap();
    assert!(failed.to_string().contains("move it away"), "{failed}");
    assert!(accept(&folder.file(), Time(77)).unwrap().is_some());
    let kept = folder.file().with_extension("db.mark.stray-1");
    assert_eq!(std::fs::read(kept).unwrap(), foreign);
    let store = folder.store();
    assert_eq!(store.head("a").await.unwrap(), Line(0));
}

#[tokio::test]
async fn a_mark_that_stays_locked_is_not_waited_for_without_end() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let claim = store.claim("a").await.unwrap();
    store.append(&claim, begins(1)).await.unwrap();
    let mark = std::fs::File::open(folder.file().with_extension("db.mark")).unwrap();
    mark.lock().unwrap();
    let failed = store.append(&claim, begins(2)).await.unwrap_err();
    assert!(failed.to_string().contains("kept it locked"), "{failed}");
    mark.unlock().unwrap();
    drop((store, claim));
    drop(folder.store());
}

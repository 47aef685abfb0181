//! Stores whose file or mark is replaced by an old one, or by a file of another program.

use crate::marked::begins;
use crate::sqlite::{Folder, Other, session};
use std::path::{Path, PathBuf};
use steersman_adapters::sqlite::{SqliteOptions, SqliteStore, accept};
use steersman_machine::stored::ids::{Line, Time};
use steersman_runtime::store::Log as _;
use steersman_runtime::store::{StoreError, Worker};

/// The files of a store and of its mark, with their content.
struct Kept(Vec<(PathBuf, Vec<u8>)>);

impl Kept {
    fn of(folder: &Folder) -> Self {
        let files = |folder: &Path| {
            let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
            let files = entries.filter(|entry| entry.path().is_file());
            files.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let paths = [files(&folder.0), files(&folder.marks())].concat();
        let read = |path: PathBuf| (path.clone(), std::fs::read(path).unwrap());
        Self(paths.into_iter().map(read).collect())
    }

    /// Writes into the files that are there, as `cp -a` does, so that they stay the same files.
    fn put_back(&self) {
        for (path, bytes) in &self.0 {
            std::fs::write(path, bytes).unwrap();
        }
    }
}

/// Returns a closed store in which an unsafe effect began, and its files at that time.
async fn waits() -> (Folder, Kept) {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    store.append(&claim, begins(1)).await.unwrap();
    drop((store, claim));
    let kept = Kept::of(&folder);
    (folder, kept)
}

async fn goes_on(folder: &Folder) {
    let store = folder.store();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    let next = begins(claim.first.0);
    store.append(&claim, next).await.unwrap();
}

fn refused(folder: &Folder) -> String {
    match SqliteStore::open(folder.file()) {
        Err(StoreError::Unaccepted { why, .. }) => why,
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("it was opened"),
    }
}

fn is_driven_once_accepted(folder: &Folder) {
    assert!(accept(&folder.file(), Time(77)).unwrap().is_some());
    assert!(accept(&folder.file(), Time(78)).unwrap().is_none());
    drop(folder.store());
}

#[tokio::test]
async fn a_folder_whose_files_were_written_over_is_not_driven() {
    let (folder, kept) = waits().await;
    // As long as nothing was written since, the files are the same.
    kept.put_back();
    drop(folder.store());
    for _ in 0..2 {
        goes_on(&folder).await;
    }
    for round in 1..3 {
        kept.put_back();
        let why = refused(&folder);
        assert!(
            why.contains("there are 2 files of it where one belongs"),
            "{round}: {why}"
        );
        is_driven_once_accepted(&folder);
        // The files of the mark are kept.
        let stray = folder.marks().with_extension(format!("mark.stray-{round}"));
        assert_eq!(std::fs::read_dir(stray).unwrap().count(), 2);
    }
}

/// Programs that mirror a folder remove what is not in the copy. The older mark is alone there then, as another file.
#[cfg(unix)]
#[tokio::test]
async fn a_folder_that_was_made_what_it_was_is_not_driven() {
    let (folder, kept) = waits().await;
    goes_on(&folder).await;
    std::fs::remove_file(folder.mark().unwrap()).unwrap();
    kept.put_back();
    let why = refused(&folder);
    assert!(why.contains("the mark beside it is a copy"), "{why}");
    is_driven_once_accepted(&folder);
}

/// Owner, rights and times of files do not matter: each start of a container may set them.
#[cfg(unix)]
#[tokio::test]
async fn a_store_whose_files_were_touched_is_driven() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let (folder, kept) = waits().await;
    let touch = |path: &Path| {
        let found = path.metadata().unwrap();
        chown(path, Some(found.uid()), Some(found.gid())).unwrap();
        let mode = found.permissions().mode();
        let set = |mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        set(mode | 0o070);
        set(mode);
        let times = std::fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
        let file = std::fs::File::open(path).unwrap();
        file.set_times(times).unwrap();
        found.ctime_nsec() != path.metadata().unwrap().ctime_nsec()
    };
    let paths = kept.0.iter().map(|(path, _)| path.clone());
    for path in paths.chain([folder.marks(), folder.0.clone()]) {
        assert!(touch(&path), "{}", path.display());
    }
    std::fs::hard_link(folder.mark().unwrap(), folder.0.join("link")).unwrap();
    for _ in 0..2 {
        goes_on(&folder).await;
    }
}

/// A power cut may leave the name of one moment and the bytes of another. A kill may leave a file that never became the
/// mark, and another program may leave any file.
#[tokio::test]
async fn what_a_cut_leaves_beside_the_mark_is_no_doubt() {
    let (folder, _) = waits().await;
    let older = folder.marks().join("0123456789abcdef");
    std::fs::rename(folder.mark().unwrap(), &older).unwrap();
    goes_on(&folder).await;
    assert!(!older.exists(), "it has a name of its own again");
    let others = ["fedcba9876543210.part", ".DS_Store"].map(|name| folder.marks().join(name));
    for other in &others {
        std::fs::write(other, "theirs").unwrap();
    }
    for _ in 0..2 {
        goes_on(&folder).await;
    }
    for other in others {
        assert_eq!(std::fs::read(other).unwrap(), b"theirs");
    }
    assert_eq!(std::fs::read_dir(folder.marks()).unwrap().count(), 3);
    // Killed while the first mark was made: no effect had begun.
    let folder = Folder::new();
    folder.store().create(session("a")).await.unwrap();
    std::fs::create_dir(folder.marks()).unwrap();
    goes_on(&folder).await;
    goes_on(&folder).await;
    // Without a file of ours there is no mark.
    std::fs::remove_file(folder.mark().unwrap()).unwrap();
    assert!(refused(&folder).contains("it has no mark beside it"));
}

/// A process that looks at the store meanwhile finds nothing to accept.
#[tokio::test]
async fn processes_that_write_to_one_store_keep_one_mark() {
    const LINES: u64 = 60;
    let (folder, _) = waits().await;
    let store = folder.store();
    store.create(session("b")).await.unwrap();
    let claim = store.claim("b", &Worker::nameless()).await.unwrap();
    let mut other = Other::start(&folder.file());
    other.says("claimed");
    let writes = std::thread::spawn(move || {
        for n in 2..2 + LINES {
            assert_eq!(other.write(n), "written");
        }
        other
    });
    let looks = SqliteOptions {
        read_only: true,
        ..SqliteOptions::default()
    };
    let looks = || SqliteStore::open_with(folder.file(), &looks).unwrap();
    for n in 1..=LINES {
        let written = store.append(&claim, begins(n));
        assert!(looks().doubt().is_none());
        written.await.unwrap();
    }
    let other = writes.join().unwrap();
    drop((store, claim, other));
    assert!(folder.mark().is_some());
    let told = std::fs::read_to_string(folder.mark().unwrap()).unwrap();
    drop(folder.store());
    // Each transaction has a number: of the lines of both processes, and of the claims.
    let numbers = told.split("\"number\":").skip(1);
    let numbers = numbers.map(|rest| rest.split(',').next().unwrap().parse::<u64>().unwrap());
    assert!(numbers.max().unwrap() > 2 * LINES, "{told}");
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

/// The backup says that no unsafe effect began in it, and the mark next to it says otherwise.
#[cfg(unix)]
#[tokio::test]
async fn a_backup_from_before_the_first_effect_is_refused_in_place_of_a_store_with_a_mark() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let backup = folder.file().with_extension("backup");
    store.backup(&backup).await.unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    store.append(&claim, begins(1)).await.unwrap();
    drop((store, claim));
    let put_back = || {
        let part = folder.file().with_extension("part");
        std::fs::copy(&backup, &part).unwrap();
        std::fs::rename(&part, folder.file()).unwrap();
    };
    put_back();
    assert!(refused(&folder).contains("of another store"));
    // In the place of a store that is removed another one begins, in which nothing is in doubt, also when it is opened
    // again.
    for begun in [false, true] {
        std::fs::remove_file(folder.file()).unwrap();
        for _ in 0..2 {
            drop(folder.store());
        }
        let store = folder.store();
        store.create(session("b")).await.unwrap();
        let claim = store.claim("b", &Worker::nameless()).await.unwrap();
        if begun {
            store.append(&claim, begins(1)).await.unwrap();
        }
        drop((store, claim));
        drop(folder.store());
        // The backup belongs to neither store, whether it is moved into the place of one or written over it.
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
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    let mark = folder.marks();
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
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    store.append(&claim, begins(1)).await.unwrap();
    let mark = std::fs::File::open(folder.mark().unwrap()).unwrap();
    mark.lock().unwrap();
    let failed = store.append(&claim, begins(2)).await.unwrap_err();
    assert!(failed.to_string().contains("kept it locked"), "{failed}");
    mark.unlock().unwrap();
    drop((store, claim));
    drop(folder.store());
}

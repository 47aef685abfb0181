//! The mark of a store, which is kept outside its log, and what a store finds out by it when it is opened again.

use crate::sqlite::{Folder, Other, batch, event, message, session};
use std::path::PathBuf;
use steersman_adapters::sqlite::{SqliteOptions, SqliteStore, accept};
use steersman_machine::stored::ids::{Line, Time};
use steersman_machine::stored::interaction::Doubtful;
use steersman_runtime::store::{Batch, SessionQuery, StoreAccepted, StoreError, Worker};
use steersman_runtime::store::{Inbox as _, Lists as _, Log as _};

fn journal(folder: &Folder) -> PathBuf {
    folder.file().with_extension("db-wal")
}

pub(crate) fn begins(n: u64) -> Batch {
    Batch {
        begins_unsafe: true,
        ..batch(n, &[n as u8; 700], true)
    }
}

/// The files of a store whose process was killed, to be put back into their places. The mark gets the bytes of that moment,
/// and its file stays the same one.
struct Left<'a> {
    folder: &'a Folder,
    file: Vec<u8>,
    journal: Vec<u8>,
    mark: Option<Vec<u8>>,
}

impl<'a> Left<'a> {
    fn by(folder: &'a Folder) -> Self {
        let bytes = |path: PathBuf| std::fs::read(path).unwrap();
        Self {
            folder,
            file: bytes(folder.file()),
            journal: bytes(journal(folder)),
            mark: folder.mark().map(bytes),
        }
    }

    fn put_back(&self, with: &[u8]) {
        let _ = std::fs::remove_file(self.folder.file().with_extension("db-shm"));
        std::fs::write(self.folder.file(), &self.file).unwrap();
        std::fs::write(journal(self.folder), with).unwrap();
        if let Some(mark) = &self.mark {
            std::fs::write(self.folder.mark().unwrap(), mark).unwrap();
        }
    }

    /// Returns the number of lines of the session, of messages that were ever put into its inbox, and of events in the box.
    /// `None` means that the store is not driven.
    async fn holds(&self) -> Option<(usize, u64, usize)> {
        let store = match SqliteStore::open(self.folder.file()) {
            Ok(store) => store,
            Err(StoreError::Unaccepted { .. } | StoreError::Corrupt { .. }) => return None,
            Err(e) => panic!("{e}"),
        };
        let rows = store.rows("a", Line(1), Line::MAX, 999).await;
        let Ok(rows) = rows else { return None };
        let events = store.event_box(None, Time(1), 99).await.unwrap();
        Some((rows.len(), store.inbox("a").await.unwrap().0, events.len()))
    }
}

/// A store in which unsafe effects began, with other writes between and after them.
async fn written() -> (Folder, (usize, u64, usize)) {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    for n in 1..=24 {
        let batch = match n % 4 {
            2 => begins(n),
            _ => batch(n, &[n as u8; 700], true),
        };
        store.append(&claim, batch).await.unwrap();
        if n % 7 == 0 {
            store.deliver("a", message(&format!("m{n}"))).await.unwrap();
        }
    }
    store.deliver("a", message("last")).await.unwrap();
    store.deliver_event(event("mail")).await.unwrap();
    let left = Left::by(&folder);
    drop((store, claim));
    left.put_back(&left.journal);
    drop(left);
    (folder, (24, 4, 1))
}

/// Size of a page of a new store, in bytes.
pub(crate) const PAGE: usize = 2_048;
const FRAME: usize = 24 + PAGE;

#[tokio::test]
async fn wherever_the_journal_is_cut_what_was_acknowledged_is_there_or_missed() {
    let (folder, whole) = written().await;
    let left = Left::by(&folder);
    let journal = &left.journal;
    let frames = journal.len() / FRAME;
    assert!(frames > 40, "{frames}");
    for frame in 0..=frames {
        let cut = if frame == 0 { 0 } else { 32 + frame * FRAME };
        left.put_back(&journal[..cut.min(journal.len())]);
        let holds = left.holds().await;
        assert!(
            holds.is_none_or(|holds| holds == whole),
            "{frame}: {holds:?}"
        );
        assert_eq!(holds.is_some(), frame == frames, "{frame}");
    }
}

#[tokio::test]
async fn whichever_bit_of_the_journal_is_flipped_what_was_acknowledged_is_there_or_missed() {
    let (folder, whole) = written().await;
    let left = Left::by(&folder);
    let bits = left.journal.len() * 8;
    let mut missed = 0;
    for bit in (0..256).chain((0..bits).step_by(bits / 400)) {
        let mut journal = left.journal.clone();
        journal[bit / 8] ^= 1 << (bit % 8);
        left.put_back(&journal);
        let holds = left.holds().await;
        missed += u32::from(holds.is_none());
        assert!(holds.is_none_or(|holds| holds == whole), "{bit}: {holds:?}");
    }
    assert!(missed > 300, "{missed}");
    left.put_back(&left.journal);
    assert_eq!(left.holds().await, Some(whole));
}

/// This needs no mark: synced transactions follow the damaged one in the journal.
#[tokio::test]
async fn a_damaged_journal_is_missed_where_nothing_unsafe_ever_began() {
    let folder = Folder::new();
    folder.store().create(session("a")).await.unwrap();
    let store = folder.store();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    for n in 1..=9 {
        store
            .append(&claim, batch(n, &[7; 700], true))
            .await
            .unwrap();
    }
    assert!(!folder.marks().exists());
    let left = Left::by(&folder);
    drop((store, claim));
    let mut journal = left.journal.clone();
    let middle = journal.len() / 2;
    journal[middle] ^= 4;
    left.put_back(&journal);
    let before = std::fs::read(self::journal(&folder)).unwrap();
    let refused = SqliteStore::open(folder.file()).err().unwrap();
    assert!(
        matches!(&refused, StoreError::Unaccepted { why, was: Doubtful::Lost, .. } if why.contains("does not verify")),
        "{refused}"
    );
    let options = SqliteOptions {
        read_only: true,
        ..SqliteOptions::default()
    };
    let looked = SqliteStore::open_with(folder.file(), &options).unwrap();
    assert!(looked.doubt().is_some());
    assert!(looked.head("a").await.unwrap() < Line(9));
    drop(looked);
    assert_eq!(
        std::fs::read(self::journal(&folder)).unwrap(),
        before,
        "nothing is touched"
    );
}

#[tokio::test]
async fn what_a_person_accepts_is_told_to_each_session_once() {
    let (folder, _) = written().await;
    let left = Left::by(&folder);
    left.put_back(&[]);
    assert!(left.holds().await.is_none());
    let doubt = accept(&folder.file(), Time(77)).unwrap().unwrap();
    assert!(
        matches!(
            doubt,
            StoreError::Unaccepted {
                was: Doubtful::Lost,
                ..
            }
        ),
        "{doubt}"
    );
    assert!(accept(&folder.file(), Time(78)).unwrap().is_none());
    let store = folder.store();
    let told = Some(StoreAccepted {
        at: Time(77),
        was: Doubtful::Lost,
    });
    // Each owner is told until a line says it.
    for _ in 0..2 {
        let claim = store.claim("a", &Worker::nameless()).await.unwrap();
        assert_eq!(claim.accepted, told);
    }
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    let says = Batch {
        tells_accepted: true,
        ..begins(claim.first.0)
    };
    store.append(&claim, says).await.unwrap();
    drop(claim);
    assert_eq!(
        store
            .claim("a", &Worker::nameless())
            .await
            .unwrap()
            .accepted,
        None
    );
    let refused = accept(&folder.file(), Time(79));
    assert!(
        matches!(refused, Ok(None)),
        "there is nothing to accept: {refused:?}"
    );
}

/// Closing a file releases the locks that SQLite holds on it in the same process. The next program that closes the store
/// would then remove the journal while others write.
#[tokio::test]
async fn a_second_handle_leaves_the_first_one_its_journal() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    store.create(session("b")).await.unwrap();
    drop(folder.store());
    let again = folder.store();
    let mut other = Other::start(&folder.file());
    other.says("claimed");
    assert_eq!(other.write(1), "written");
    // The other process ends by itself, and closes the store.
    drop(other.child.stdin.take());
    assert!(other.child.wait().unwrap().success());
    let claim = store.claim("b", &Worker::nameless()).await.unwrap();
    store.append(&claim, batch(1, b"ours", true)).await.unwrap();
    assert!(folder.file().with_extension("db-wal").exists());
    assert_eq!(again.head("b").await.unwrap(), Line(1));
    let seen = rusqlite::Connection::open(folder.file()).unwrap();
    let lines: i64 = seen
        .query_row("SELECT count(*) FROM line", [], |r| r.get(0))
        .unwrap();
    assert_eq!(lines, 2);
    assert_eq!(
        store
            .sessions(&SessionQuery::default())
            .await
            .unwrap()
            .len(),
        2
    );
}

/// The other process of a test: it looks at the store by SQLite alone, and closes it.
#[test]
#[ignore = "the other process of a test"]
fn looks() {
    let Ok(file) = std::env::var("STEERSMAN_TEST_STORE") else {
        return;
    };
    let conn = rusqlite::Connection::open(file).unwrap();
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = conn.query_row(tables, [], |r| r.get(0)).unwrap();
    assert!(tables > 0);
}

fn looked_at_by_another_program(file: &std::path::Path) {
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "marked::looks", "--ignored", "-q"])
        .env("STEERSMAN_TEST_STORE", file)
        .status();
    assert!(status.unwrap().success());
}

/// SQLite's lock says that the store is open. Without it another program that closes the store takes itself for the last
/// one, and removes the journal.
#[cfg(unix)]
#[tokio::test]
async fn a_store_that_was_opened_over_a_journal_holds_its_locks() {
    let (folder, whole) = written().await;
    let store = folder.store();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    let journal = folder.file().with_extension("db-wal");
    let refused = [
        SqliteStore::open(folder.0.join("none/there.db")).err(),
        SqliteStore::open(&folder.0).err(),
    ];
    assert!(refused.iter().all(Option::is_some));
    for n in 0..3 {
        if cfg!(target_os = "linux") {
            let inode = inode(&folder.file());
            let locks = std::fs::read_to_string("/proc/locks").unwrap();
            let held = locks.lines().find(|line| {
                line.contains(" POSIX ")
                    && line.contains(&format!(":{inode} "))
                    && line.ends_with("1073741826 1073742335")
            });
            assert!(held.is_some(), "{n}: {locks}");
        }
        looked_at_by_another_program(&folder.file());
        assert!(journal.exists(), "{n}");
        let line = batch(claim.first.0 + n, b"ours", true);
        store.append(&claim, line).await.unwrap();
        // Other uses of the store in this process.
        match n {
            0 => drop(folder.store()),
            1 => drop(store.backup(&folder.0.join("copy")).await.unwrap()),
            _ => {}
        }
    }
    looked_at_by_another_program(&folder.file());
    let seen = rusqlite::Connection::open(folder.file()).unwrap();
    let lines = "SELECT count(*) FROM line";
    let lines: i64 = seen.query_row(lines, [], |r| r.get(0)).unwrap();
    assert_eq!(lines, whole.0 as i64 + 3);
}

#[cfg(unix)]
fn inode(file: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    file.metadata().unwrap().ino()
}

/// A second descriptor of the file would release the locks when it is closed.
#[cfg(unix)]
#[tokio::test]
async fn a_file_that_is_open_is_not_opened_under_another_name() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let other = folder.0.join("other.db");
    std::fs::hard_link(folder.file(), &other).unwrap();
    for read_only in [true, false] {
        let options = SqliteOptions {
            read_only,
            ..SqliteOptions::default()
        };
        let refused = SqliteStore::open_with(&other, &options).err().unwrap();
        let why = refused.to_string();
        assert!(why.contains("open under another name"), "{why}");
    }
    std::fs::remove_file(&other).unwrap();
    looked_at_by_another_program(&folder.file());
    assert!(folder.file().with_extension("db-wal").exists());
}

/// The file says that a copy of it needs a mark. That gets into the file once nobody reads its earlier state.
#[tokio::test]
async fn a_reader_does_not_keep_the_file_from_saying_that_it_needs_a_mark() {
    for by_another in [false, true] {
        let folder = Folder::new();
        folder.store().create(session("a")).await.unwrap();
        let (store, another) = (folder.store(), folder.store());
        let claim = store.claim("a", &Worker::nameless()).await.unwrap();
        let reader = rusqlite::Connection::open(folder.file()).unwrap();
        let reads = "BEGIN; SELECT count(*) FROM session";
        reader.execute_batch(reads).unwrap();
        store.append(&claim, begins(1)).await.unwrap();
        drop(reader);
        if by_another {
            another.deliver("a", message("m")).await.unwrap();
        } else {
            store.append(&claim, batch(2, b"next", true)).await.unwrap();
        }
        let copy = Folder::new();
        std::fs::copy(folder.file(), copy.file()).unwrap();
        let refused = SqliteStore::open(copy.file()).err();
        assert!(
            matches!(refused, Some(StoreError::Unaccepted { .. })),
            "{by_another}: {refused:?}"
        );
    }
}

/// Lines that are missing in a store are missing in its backup, too.
#[tokio::test]
async fn a_backup_of_a_store_that_is_not_driven_is_not_driven() {
    let life = Life::new(1).await;
    let (journal, backup) = (&life.moments[15].1, &life.moments[9].2);
    assert_eq!(life.lines(backup, journal).await, None);
    let looks = SqliteOptions {
        read_only: true,
        ..SqliteOptions::default()
    };
    let looked = SqliteStore::open_with(life.folder.file(), &looks).unwrap();
    assert!(looked.doubt().is_some());
    let copy = Folder::new();
    looked.backup(&copy.file()).await.unwrap();
    let refused = SqliteStore::open(copy.file()).err();
    assert!(
        matches!(refused, Some(StoreError::Unaccepted { .. })),
        "{refused:?}"
    );
    accept(&copy.file(), Time(7)).unwrap().unwrap();
    let claim = copy.store().claim("a", &Worker::nameless()).await.unwrap();
    assert!(claim.accepted.is_some());
}

/// Effects that begin together cost one more sync, not one each.
#[tokio::test]
async fn many_effects_that_begin_together_share_a_mark() {
    let folder = Folder::new();
    let store = folder.store();
    let mut claims = Vec::new();
    for i in 0..20 {
        let id = format!("s{i}");
        store.create(session(&id)).await.unwrap();
        claims.push(store.claim(&id, &Worker::nameless()).await.unwrap());
    }
    let before = store.transactions();
    let written: Vec<_> = claims.iter().map(|c| store.append(c, begins(1))).collect();
    for written in written {
        written.await.unwrap();
    }
    let marked = std::fs::read_to_string(folder.mark().unwrap()).unwrap();
    let numbers = marked.split("\"number\":").skip(1);
    let numbers = numbers.map(|rest| rest.split(',').next().unwrap().parse::<u64>().unwrap());
    // The first mark is written when its file is made.
    let used = store.transactions() - before;
    assert_eq!(numbers.max().unwrap(), used + 1);
    assert!(used < 20, "{used}");
}

/// The files of a store at each moment of a life over several journals, and backups, to be put together in all ways.
struct Life {
    folder: Folder,
    /// The file, its journal and a backup after each transaction.
    moments: Vec<(Vec<u8>, Vec<u8>, Vec<u8>)>,
}

const TRANSACTIONS: u64 = 16;

impl Life {
    /// Writes a store in which unsafe effects begin from this transaction on.
    async fn new(unsafe_from: u64) -> Self {
        let folder = Folder::new();
        let mut moments = Vec::new();
        let mut open = None;
        for n in 1..=TRANSACTIONS {
            let (store, claim) = if let Some(open) = open.take() {
                open
            } else {
                let store = folder.store();
                if n == 1 {
                    store.create(session("a")).await.unwrap();
                }
                let claim = store.claim("a", &Worker::nameless()).await.unwrap();
                (store, claim)
            };
            let mut next = batch(n + 1_000 * claim.epoch, &[n as u8; 700], true);
            next.begins_unsafe = n >= unsafe_from && n % 3 == 0;
            // Bytes that are not written in this journal are in pages of their own.
            next.rows[0].bytes = vec![n as u8; 5_000].into();
            store.append(&claim, next).await.unwrap();
            let backup = folder.0.join(format!("backup-{n}"));
            store.backup(&backup).await.unwrap();
            let bytes = |path: PathBuf| std::fs::read(path).unwrap_or_default();
            moments.push((
                bytes(folder.file()),
                bytes(folder.file().with_extension("db-wal")),
                bytes(backup),
            ));
            match n % 8 {
                // The journal is emptied and begins again.
                3 => {
                    let conn = rusqlite::Connection::open(folder.file()).unwrap();
                    conn.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()))
                        .unwrap();
                    open = Some((store, claim));
                }
                // The journal is removed with the last handle.
                6 => drop((store, claim)),
                _ => open = Some((store, claim)),
            }
        }
        // The files at the end are those that a killed process leaves.
        let mark = folder.mark().map(|mark| std::fs::read(mark).unwrap());
        drop(open);
        if let Some(mark) = mark {
            std::fs::write(folder.mark().unwrap(), mark).unwrap();
        }
        Self { folder, moments }
    }

    /// Opens the store over this file and this journal. Returns the number of its lines, each checked. `None` means that the
    /// store is not driven.
    async fn lines(&self, file: &[u8], journal: &[u8]) -> Option<usize> {
        let beside = |ending: &str| self.folder.file().with_extension(ending);
        let _ = std::fs::remove_file(beside("db-shm"));
        std::fs::write(self.folder.file(), file).unwrap();
        std::fs::write(beside("db-wal"), journal).unwrap();
        let mark = self.folder.mark().map(|mark| std::fs::read(mark).unwrap());
        let store = match SqliteStore::open(self.folder.file()) {
            Ok(store) => store,
            Err(StoreError::Unaccepted { .. } | StoreError::Corrupt { .. }) => return None,
            Err(e) => panic!("{e}"),
        };
        let rows = store.rows("a", Line(1), Line::MAX, 999).await.unwrap();
        for (k, row) in rows.iter().enumerate() {
            assert_eq!(
                *row.bytes,
                [k as u8 + 1; 5_000],
                "nothing is missing before"
            );
        }
        assert!(store.check_structure().await.unwrap().is_empty());
        drop(store);
        if let Some(mark) = mark {
            std::fs::write(self.folder.mark().unwrap(), mark).unwrap();
        }
        Some(rows.len())
    }
}

/// A file and a journal of different moments are put together: the store is complete, or it is not driven.
#[tokio::test]
async fn a_file_that_was_put_before_a_journal_is_not_driven_unless_nothing_is_missing() {
    let life = Life::new(5).await;
    let last = life.moments.len() - 1;
    let (mut driven, mut refused) = (0, 0);
    for at in 0..=last {
        let (file, journal, backup) = &life.moments[at];
        for (file, journal) in [
            (backup, &life.moments[last].1),
            (file, &life.moments[last].1),
            (&life.moments[last].0, journal),
            (backup, journal),
            (file, journal),
        ] {
            let lines = life.lines(file, journal).await;
            assert!(
                lines.is_none_or(|lines| lines == last + 1),
                "{at}: {lines:?}"
            );
            driven += u32::from(lines.is_some());
            refused += u32::from(lines.is_none());
        }
    }
    assert!(driven > 3 && refused > 40, "{driven} {refused}");
}

/// A kill while the journal is moved into the file leaves any number of pages written. The journal has all that is needed.
#[tokio::test]
async fn a_kill_while_the_journal_is_moved_into_the_file_loses_nothing() {
    let life = Life::new(5).await;
    let last = life.moments.last().unwrap();
    assert_eq!(life.lines(&last.0, &last.1).await, Some(16));
    let moved = std::fs::read(life.folder.file()).unwrap();
    let pages = moved.len() / PAGE;
    for upto in 0..=pages {
        let mut file = last.0.clone();
        file.resize(file.len().max(upto * PAGE), 0);
        file[..upto * PAGE].copy_from_slice(&moved[..upto * PAGE]);
        // Closing the store wrote only what was in the journal.
        assert_eq!(life.lines(&file, &last.1).await, Some(16), "{upto}");
    }
}

/// A store with a journal that is not its own is read as the file alone. When a person accepts it, the journal is kept under
/// another name.
#[tokio::test]
async fn a_backup_that_was_put_before_a_journal_is_driven_once_a_person_says_so() {
    let life = Life::new(1).await;
    let (journal, backup) = (&life.moments[15].1, &life.moments[9].2);
    assert_eq!(life.lines(backup, journal).await, None);
    let refused = SqliteStore::open(life.folder.file()).err().unwrap();
    assert!(
        matches!(&refused, StoreError::Unaccepted { why, was: Doubtful::Lost, .. } if why.contains("was not written behind this file")),
        "{refused}"
    );
    let looks = SqliteOptions {
        read_only: true,
        ..SqliteOptions::default()
    };
    let looked = SqliteStore::open_with(life.folder.file(), &looks).unwrap();
    assert!(looked.doubt().is_some());
    let lines = |rows: Vec<_>| rows.len();
    assert_eq!(
        looked
            .rows("a", Line(1), Line::MAX, 99)
            .await
            .map(lines)
            .unwrap(),
        10
    );
    drop(looked);
    accept(&life.folder.file(), Time(7)).unwrap().unwrap();
    let stray = life.folder.file().with_extension("db-wal.stray-1");
    assert_eq!(&std::fs::read(stray).unwrap(), journal);
    let store = life.folder.store();
    assert_eq!(
        store
            .rows("a", Line(1), Line::MAX, 99)
            .await
            .map(lines)
            .unwrap(),
        10
    );
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    assert!(claim.accepted.is_some());
    store
        .append(&claim, batch(claim.first.0, b"on", true))
        .await
        .unwrap();
    assert!(life.folder.file().with_extension("db-wal").exists());
}

/// SQLite deletes the journal of an empty file.
#[tokio::test]
async fn an_emptied_file_does_not_take_its_journal_along() {
    let (folder, whole) = written().await;
    let left = Left::by(&folder);
    std::fs::write(folder.file(), "").unwrap();
    for read_only in [true, false] {
        let options = SqliteOptions {
            read_only,
            ..SqliteOptions::default()
        };
        let refused = SqliteStore::open_with(folder.file(), &options)
            .err()
            .unwrap();
        assert!(
            refused.to_string().contains("move the journal away"),
            "{refused}"
        );
    }
    assert_eq!(std::fs::read(journal(&folder)).unwrap(), left.journal);
    left.put_back(&left.journal);
    assert_eq!(left.holds().await, Some(whole));
}

/// A handle that was open before another one made the mark: what it acknowledges since is missed, too.
#[tokio::test]
async fn a_mark_that_another_handle_made_is_kept_by_all() {
    let folder = Folder::new();
    folder.store().create(session("a")).await.unwrap();
    let (before, store) = (folder.store(), folder.store());
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    store.append(&claim, begins(1)).await.unwrap();
    // The first of them begins the journal again.
    before.deliver("a", message("m1")).await.unwrap();
    let cut = Left::by(&folder).journal.len();
    before.deliver("a", message("m2")).await.unwrap();
    let left = Left::by(&folder);
    drop((before, store, claim));
    left.put_back(&left.journal[..cut]);
    assert_eq!(left.holds().await, None);
    left.put_back(&left.journal);
    assert_eq!(left.holds().await, Some((1, 2, 0)));
}

/// A copy from before the first unsafe effect, in which other unsafe effects began since, is another store.
#[tokio::test]
async fn a_copy_that_went_its_own_way_is_not_taken_for_the_store() {
    let (ours, theirs) = (Folder::new(), Folder::new());
    ours.store().create(session("a")).await.unwrap();
    std::fs::copy(ours.file(), theirs.file()).unwrap();
    for (folder, lines) in [(&ours, 3), (&theirs, 9)] {
        let store = folder.store();
        let claim = store.claim("a", &Worker::nameless()).await.unwrap();
        for n in 1..=lines {
            store.append(&claim, begins(n)).await.unwrap();
        }
    }
    let copied = std::fs::read(theirs.file()).unwrap();
    std::fs::write(ours.file(), copied).unwrap();
    let refused = SqliteStore::open(ours.file()).err().unwrap();
    assert!(
        matches!(refused, StoreError::Unaccepted { .. }),
        "{refused}"
    );
}

/// The other process of the next test: it writes until the disk is full, then something small.
#[tokio::test]
#[ignore = "the other process of a test"]
async fn child() {
    let Ok(file) = std::env::var("STEERSMAN_TEST_STORE") else {
        return;
    };
    let store = SqliteStore::open(file).unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    store.append(&claim, begins(1)).await.unwrap();
    let mut written = 1;
    let large = |n| batch(n, &vec![7; 160_000], true);
    while store.append(&claim, large(written + 1)).await.is_ok() {
        written += 1;
    }
    store.deliver("a", message("small")).await.unwrap();
    println!("written {written}");
    // The process is killed before the journal is moved into the file.
    std::process::abort();
}

#[cfg(unix)]
#[tokio::test]
async fn a_line_that_the_disk_had_no_room_for_is_not_missed() {
    let folder = Folder::new();
    folder.store().create(session("a")).await.unwrap();
    // Limits the size of files, and makes a write beyond it an error.
    let limited = "ulimit -c 0; ulimit -f 2048; trap '' XFSZ; exec \"$0\" \"$@\"";
    let child = std::process::Command::new("sh")
        .args(["-c", limited])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "marked::child", "--ignored", "--nocapture", "-q"])
        .env("STEERSMAN_TEST_STORE", folder.file())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    let written = said.split("written ").nth(1);
    let written: u64 = written
        .unwrap_or_else(|| panic!("{child:?}"))
        .trim()
        .parse()
        .unwrap();
    assert!(written > 1);
    let store = folder.store();
    assert_eq!(store.head("a").await.unwrap(), Line(written));
    assert_eq!(store.inbox("a").await.unwrap().1.len(), 1);
}

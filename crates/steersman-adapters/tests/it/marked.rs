//! What a store notes outside its log, and what it finds out by that when it is opened again.

use crate::sqlite::{Folder, Other, batch, message, session};
use std::path::PathBuf;
use steersman_adapters::sqlite::{SqliteOptions, SqliteStore, accept};
use steersman_machine::ids::{Line, Time};
use steersman_machine::interaction::Doubtful;
use steersman_runtime::store::{Batch, SessionQuery, Store, StoreAccepted, StoreError};

fn begins(n: u64) -> Batch {
    Batch {
        begins_unsafe: true,
        ..batch(n, &[n as u8; 700], true)
    }
}

/// The files of a store whose process was killed, put back into their places.
struct Left {
    file: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Left {
    fn by(folder: &Folder) -> Self {
        let beside = |ending: &str| {
            let mut name = folder.file().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        let files = ["", "-wal", ".mark"].map(|ending| {
            let path = beside(ending);
            let bytes = std::fs::read(&path).unwrap();
            (path, bytes)
        });
        Self {
            file: folder.file(),
            files: files.into(),
        }
    }

    fn journal(&self) -> &[u8] {
        &self.files[1].1
    }

    fn put_back(&self, journal: &[u8]) {
        let _ = std::fs::remove_file(self.file.with_extension("db-shm"));
        for (path, bytes) in &self.files {
            std::fs::write(path, bytes).unwrap();
        }
        std::fs::write(&self.files[1].0, journal).unwrap();
    }

    /// What is there: lines of the session, and how often something was put into an inbox. None: it is not driven.
    async fn holds(&self) -> Option<(usize, u64)> {
        let store = match SqliteStore::open(&self.file) {
            Ok(store) => store,
            Err(StoreError::Unaccepted { .. } | StoreError::Corrupt { .. }) => return None,
            Err(e) => panic!("{e}"),
        };
        let rows = store.rows("a", Line(1), Line::MAX, 999).await;
        let Ok(rows) = rows else { return None };
        Some((rows.len(), store.inbox_version().await.unwrap()))
    }
}

/// A store with effects that must not happen twice, and other things between and behind them.
async fn written() -> (Folder, (usize, u64)) {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let claim = store.claim("a").await.unwrap();
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
    let left = Left::by(&folder);
    drop((store, claim));
    left.put_back(left.journal());
    (folder, (24, 4))
}

const FRAME: usize = 24 + 4_096;

#[tokio::test]
async fn wherever_the_journal_is_cut_what_was_acknowledged_is_there_or_missed() {
    let (folder, whole) = written().await;
    let left = Left::by(&folder);
    let journal = left.journal();
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
    let bits = left.journal().len() * 8;
    let mut missed = 0;
    for bit in (0..256).chain((0..bits).step_by(bits / 400)) {
        let mut journal = left.journal().to_vec();
        journal[bit / 8] ^= 1 << (bit % 8);
        left.put_back(&journal);
        let holds = left.holds().await;
        missed += u32::from(holds.is_none());
        assert!(holds.is_none_or(|holds| holds == whole), "{bit}: {holds:?}");
    }
    assert!(missed > 300, "{missed}");
    left.put_back(left.journal());
    assert_eq!(left.holds().await, Some(whole));
}

/// No mark is needed for that: transactions that were synced lie behind the damaged one.
#[tokio::test]
async fn a_damaged_journal_is_missed_where_nothing_unsafe_ever_began() {
    let folder = Folder::new();
    folder.store().create(session("a")).await.unwrap();
    let store = folder.store();
    let claim = store.claim("a").await.unwrap();
    for n in 1..=9 {
        store
            .append(&claim, batch(n, &[7; 700], true))
            .await
            .unwrap();
    }
    let mark = folder.file().with_extension("db.mark");
    assert!(!mark.exists());
    std::fs::write(&mark, "").unwrap();
    let left = Left::by(&folder);
    std::fs::remove_file(&mark).unwrap();
    drop((store, claim));
    let mut journal = left.journal().to_vec();
    let middle = journal.len() / 2;
    journal[middle] ^= 4;
    left.put_back(&journal);
    std::fs::remove_file(&mark).unwrap();
    let before = std::fs::read(&left.files[1].0).unwrap();
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
        std::fs::read(&left.files[1].0).unwrap(),
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
    // It is told until a line says it.
    for _ in 0..2 {
        let claim = store.claim("a").await.unwrap();
        assert_eq!(claim.accepted, told);
    }
    let claim = store.claim("a").await.unwrap();
    let says = Batch {
        tells_accepted: true,
        ..begins(claim.first.0)
    };
    store.append(&claim, says).await.unwrap();
    drop(claim);
    assert_eq!(store.claim("a").await.unwrap().accepted, None);
    let refused = accept(&folder.file(), Time(79));
    assert!(
        matches!(refused, Ok(None)),
        "nothing is the matter: {refused:?}"
    );
}

/// Closing a file lets go of the locks that SQLite holds on it in the same process: the next one that closes it would move
/// the journal away under those who write.
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
    // It ends by itself, and closes the store.
    drop(other.child.stdin.take());
    assert!(other.child.wait().unwrap().success());
    let claim = store.claim("b").await.unwrap();
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

/// One sync more for all that begins together.
#[tokio::test]
async fn many_effects_that_begin_together_share_a_mark() {
    let folder = Folder::new();
    let store = folder.store();
    let mut claims = Vec::new();
    for i in 0..20 {
        let id = format!("s{i}");
        store.create(session(&id)).await.unwrap();
        claims.push(store.claim(&id).await.unwrap());
    }
    let before = store.transactions();
    let written: Vec<_> = claims.iter().map(|c| store.append(c, begins(1))).collect();
    for written in written {
        written.await.unwrap();
    }
    let marked = std::fs::read_to_string(folder.file().with_extension("db.mark")).unwrap();
    let numbers = marked.split("\"number\":").skip(1);
    let numbers = numbers.map(|rest| rest.split(',').next().unwrap().parse::<u64>().unwrap());
    // The first one is written when it is made.
    let used = store.transactions() - before;
    assert_eq!(numbers.max().unwrap(), used + 1);
    assert!(used < 20, "{used}");
}

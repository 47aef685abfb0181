//! The store in a file: the suite that every store passes, and what holds for files and processes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use steersman_adapters::sqlite::{SqliteOptions, SqliteStore};
use steersman_machine::stored::ids::{Line, Time};
use steersman_runtime::conformance::{Place, SALT, story, suite};
use steersman_runtime::inbox::{DecodeError, Message};
use steersman_runtime::load::Load;
use steersman_runtime::store::{
    Batch, BoxedEvent, CheckpointOf, InboxMessage, Left, Needs, NewSession, Room, Row, Scope,
    SessionQuery, Store, StoreError, Worker,
};
use steersman_runtime::store::{Inbox as _, Lists as _, Log as _};

/// A temporary folder, which is removed when this is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sqlite-{}-{n}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("sessions.db")
    }

    pub(crate) fn store(&self) -> SqliteStore {
        SqliteStore::open(self.file()).unwrap()
    }

    /// The path at which the mark of the store is kept.
    pub(crate) fn marks(&self) -> PathBuf {
        self.file().with_extension("db.mark")
    }

    /// The file of the mark, if there is one. Panics if there are more.
    pub(crate) fn mark(&self) -> Option<PathBuf> {
        let entries = std::fs::read_dir(self.marks()).ok()?;
        let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        assert!(all.len() < 2, "{all:?}");
        all.pop()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Place for Folder {
    fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(SqliteStore::open(self.file())?))
    }

    fn damage(&self, session: &str, n: Line, byte: usize) -> bool {
        let conn = rusqlite::Connection::open(self.file()).unwrap();
        let no: i64 = conn
            .query_row("SELECT no FROM session WHERE id = ?1", [session], |r| {
                r.get(0)
            })
            .unwrap();
        let key = no << 28 | n.0 as i64;
        let mut bytes: Vec<u8> = conn
            .query_row("SELECT bytes FROM line WHERE key = ?1", [key], |r| r.get(0))
            .unwrap();
        bytes[byte] ^= 1;
        let set = "UPDATE line SET bytes = ?2 WHERE key = ?1";
        conn.execute(set, rusqlite::params![key, bytes]).unwrap() == 1
    }

    fn make_newer(&self) -> bool {
        let conn = rusqlite::Connection::open(self.file()).unwrap();
        conn.pragma_update(None, "user_version", 99).unwrap();
        true
    }
}

pub(crate) fn session(id: &str) -> NewSession {
    NewSession {
        id: id.into(),
        network: "desk".into(),
        key: None,
        salt: SALT,
        created: Time(1),
        scope: Scope::default(),
        first: None,
        said: None,
        needs: Needs::default(),
    }
}

pub(crate) fn batch(n: u64, bytes: &[u8], urgent: bool) -> Batch {
    Batch {
        rows: vec![Row {
            n: Line(n),
            bytes: bytes.into(),
        }],
        urgent,
        ..Batch::default()
    }
}

pub(crate) fn message(id: &str) -> InboxMessage {
    InboxMessage {
        id: id.into(),
        at: Time(1),
        bytes: id.as_bytes().into(),
    }
}

pub(crate) fn event(id: &str) -> BoxedEvent {
    BoxedEvent {
        id: id.into(),
        scope: Scope::default(),
        network: "desk".into(),
        event: "mail".into(),
        message: id.as_bytes().into(),
        fields: "{}".into(),
        at: Time(1),
        until: Time(9),
    }
}

#[tokio::test]
async fn it_does_what_every_store_must() {
    suite(Folder::new).await;
}

/// The other process of a test: it claims session `a`, writes the lines that it is told to write, and stays.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    let Ok(file) = std::env::var("STEERSMAN_TEST_STORE") else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(async {
        let store = SqliteStore::open(file).unwrap();
        let claim = store.claim("a", &Worker::nameless()).await.unwrap();
        println!("claimed {} {}", claim.epoch, claim.first);
        for line in std::io::stdin().lines() {
            let n: u64 = line.unwrap().parse().unwrap();
            let written = store.append(&claim, batch(n, b"child", true)).await;
            println!(
                "{}",
                if written.is_ok() {
                    "written"
                } else {
                    "refused"
                }
            );
        }
    });
}

pub(crate) struct Other {
    pub(crate) child: Child,
    said: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Other {
    pub(crate) fn start(file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sqlite::child", "--ignored", "--nocapture", "-q"])
            .env("STEERSMAN_TEST_STORE", file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, said }
    }

    /// Returns the next line from where it begins like this. Lines of the test harness are skipped.
    pub(crate) fn says(&mut self, beginning: &str) -> String {
        let mut lines = self.said.by_ref().map(Result::unwrap);
        lines
            .find_map(|l| Some(l[l.find(beginning)?..].to_owned()))
            .unwrap()
    }

    pub(crate) fn write(&mut self, n: u64) -> String {
        writeln!(self.child.stdin.as_mut().unwrap(), "{n}").unwrap();
        self.said.next().unwrap().unwrap()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_claim_is_granted_at_once_when_its_owner_was_killed() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let mut other = Other::start(&folder.file());
    assert_eq!(other.says("claimed"), "claimed 1 1");
    assert_eq!(other.write(1), "written");
    let refused = store.claim("a", &Worker::nameless()).await.err().unwrap();
    let pid = other.child.id().to_string();
    assert!(
        matches!(&refused, StoreError::Owned { process, .. } if *process == pid),
        "{refused}"
    );
    let listed = store.sessions(&SessionQuery::default()).await.unwrap();
    assert_eq!(listed[0].owner.as_deref(), Some(&*pid));
    // The owner is not asked: it gets SIGKILL.
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    assert_eq!(
        (claim.epoch, claim.head, claim.first),
        (2, Line(1), Line(100))
    );
    store
        .append(&claim, batch(100, b"ours", true))
        .await
        .unwrap();
}

/// A process whose lock file was deleted is fenced by the epoch.
#[tokio::test]
async fn two_processes_never_both_write() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let mut other = Other::start(&folder.file());
    other.says("claimed");
    assert_eq!(other.write(1), "written");
    std::fs::remove_file(folder.0.join("sessions.db.owners").join("a")).unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    assert_eq!(other.write(2), "refused");
    store
        .append(&claim, batch(100, b"ours", true))
        .await
        .unwrap();
    assert_eq!(other.write(101), "refused");
    let rows = store.rows("a", Line(1), Line::MAX, 9).await.unwrap();
    let lines: Vec<u64> = rows.iter().map(|r| r.n.0).collect();
    assert_eq!(lines, [1, 100]);
    drop(store);
}

#[tokio::test]
async fn inboxes_are_shared_between_processes_and_handles() {
    let folder = Folder::new();
    let (store, other) = (folder.store(), folder.store());
    store.create(session("a")).await.unwrap();
    assert!(other.deliver("a", message("m1")).await.unwrap());
    assert_eq!(store.inbox("a").await.unwrap().0, 1);
    assert!(!store.deliver("a", message("m1")).await.unwrap());
    assert_eq!(store.inbox("a").await.unwrap().1, [message("m1")]);
}

#[tokio::test]
async fn many_sessions_share_a_transaction() {
    let folder = Folder::new();
    let store = folder.store();
    let mut claims = Vec::new();
    for i in 0..50 {
        let id = format!("s{i}");
        store.create(session(&id)).await.unwrap();
        claims.push(store.claim(&id, &Worker::nameless()).await.unwrap());
    }
    let before = store.transactions();
    let calm: Vec<_> = claims
        .iter()
        .map(|c| store.append(c, batch(1, b"x", false)))
        .collect();
    let urgent = store.append(&claims[0], batch(2, b"x", true));
    urgent.await.unwrap();
    for written in calm {
        written.await.unwrap();
    }
    let used = store.transactions() - before;
    assert!(used <= 5, "51 batches took {used} transactions");
}

#[tokio::test]
async fn a_message_that_was_damaged_is_told_and_keeps_no_other_back() {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    store.deliver("a", message("m1")).await.unwrap();
    store.deliver("a", message("m2")).await.unwrap();
    let conn = rusqlite::Connection::open(folder.file()).unwrap();
    let damage = "UPDATE inbox SET bytes = CAST('mi' AS BLOB) WHERE id = 'm1'";
    conn.execute(damage, []).unwrap();
    let inbox = store.inbox("a").await.unwrap().1;
    let damaged = InboxMessage {
        bytes: Arc::default(),
        ..message("m1")
    };
    assert_eq!(inbox, [damaged.clone(), message("m2")]);
    assert_eq!(
        Message::decode(&damaged),
        Err(DecodeError::Corrupt("m1".into()))
    );
}

/// Returns the files of the folder, with their content.
fn content(folder: &Folder) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(&folder.0).unwrap();
    let mut files: Vec<_> = entries
        .map(|e| e.unwrap().path())
        .filter(|p| p.is_file())
        .map(|p| (p.clone(), std::fs::read(p).unwrap()))
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn what_it_does_not_understand_it_does_not_touch() {
    let newer = Folder::new();
    drop(newer.store());
    newer.make_newer();
    let foreign = Folder::new();
    let conn = rusqlite::Connection::open(foreign.file()).unwrap();
    conn.execute_batch("CREATE TABLE mine (x); INSERT INTO mine VALUES (1)")
        .unwrap();
    drop(conn);
    let versioned = Folder::new();
    let conn = rusqlite::Connection::open(versioned.file()).unwrap();
    conn.execute_batch("CREATE TABLE mine (x); PRAGMA user_version = 1")
        .unwrap();
    drop(conn);
    let text = Folder::new();
    std::fs::write(
        text.file(),
        "a shopping list, longer than a hundred bytes. ".repeat(9),
    )
    .unwrap();
    let short = Folder::new();
    std::fs::write(short.file(), "short").unwrap();
    let unnumbered = Folder::new();
    drop(unnumbered.store());
    let conn = rusqlite::Connection::open(unnumbered.file()).unwrap();
    conn.execute_batch("PRAGMA user_version = 0").unwrap();
    drop(conn);
    for (folder, what) in [
        (newer, "format 99"),
        (unnumbered, "number of its format is gone"),
        (foreign, "another program"),
        (versioned, "another program"),
        (text, "no SQLite file"),
        (short, "too short"),
    ] {
        let before = content(&folder);
        let refused = SqliteStore::open(folder.file()).err().unwrap();
        assert!(refused.to_string().contains(what), "{refused}");
        assert_eq!(content(&folder), before, "{what}");
    }
}

/// Only the journal has the newer version, since the writer died.
#[tokio::test]
async fn a_newer_version_in_the_journal_is_refused_too() {
    let folder = Folder::new();
    drop(folder.store());
    let live = rusqlite::Connection::open(folder.file()).unwrap();
    live.pragma_update(None, "user_version", 99).unwrap();
    let died = Folder::new();
    for (path, bytes) in content(&folder) {
        std::fs::write(died.0.join(path.file_name().unwrap()), bytes).unwrap();
    }
    let journal = died.0.join("sessions.db-wal");
    let before = (
        std::fs::read(died.file()).unwrap(),
        std::fs::read(&journal).unwrap(),
    );
    assert!(!before.1.is_empty());
    let refused = SqliteStore::open(died.file()).err().unwrap();
    assert!(
        matches!(&refused, StoreError::Newer { what, .. } if what.contains("99")),
        "{refused}"
    );
    let after = (
        std::fs::read(died.file()).unwrap(),
        std::fs::read(&journal).unwrap(),
    );
    assert_eq!(before, after);
}

#[tokio::test]
async fn a_store_for_reading_only_refuses_to_write() {
    let folder = Folder::new();
    let none = SqliteOptions {
        read_only: true,
        ..SqliteOptions::default()
    };
    assert!(
        SqliteStore::open_with(folder.file(), &none).is_err(),
        "there is no store"
    );
    {
        let store = folder.store();
        store.create(session("a")).await.unwrap();
        let claim = store.claim("a", &Worker::nameless()).await.unwrap();
        store.append(&claim, batch(1, b"one", true)).await.unwrap();
    }
    let store = SqliteStore::open_with(folder.file(), &none).unwrap();
    assert_eq!(store.head("a").await.unwrap(), Line(1));
    let refused = [
        store.create(session("b")).await.unwrap_err(),
        store.claim("a", &Worker::nameless()).await.err().unwrap(),
        store.deliver("a", message("m1")).await.unwrap_err(),
    ];
    for refused in refused {
        assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
    }
}

#[tokio::test]
async fn a_full_disk_is_an_error_and_nothing_is_half_written() {
    let folder = Folder::new();
    let options = SqliteOptions {
        max_pages: Some(60),
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open_with(folder.file(), &options).unwrap();
    store.create(session("a")).await.unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    let mut written = 0;
    let refused = loop {
        let mut next = batch(2 * written + 1, &[7; 9_000], true);
        next.rows.push(Row {
            n: Line(2 * written + 2),
            bytes: [7; 9_000].as_slice().into(),
        });
        match store.append(&claim, next).await {
            Ok(()) => written += 1,
            Err(e) => break e,
        }
    };
    assert!(
        matches!(&refused, StoreError::Io { place, .. } if place.contains("sessions.db")),
        "{refused}"
    );
    assert!(refused.to_string().contains("full"), "{refused}");
    assert_eq!(store.head("a").await.unwrap(), Line(2 * written));
    let behind = store
        .append(&claim, batch(900, b"small", true))
        .await
        .unwrap_err();
    assert!(matches!(behind, StoreError::Fenced { .. }), "{behind}");
    drop((store, claim));
    let store = folder.store();
    assert_eq!(store.head("a").await.unwrap(), Line(2 * written));
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    store
        .append(&claim, batch(claim.first.0, b"goes on", true))
        .await
        .unwrap();
}

pub(crate) fn room(now: i64) -> Room {
    Room {
        now: Time(now),
        sessions: 9,
        each: 9,
        waiting: BTreeMap::new(),
        can: Arc::new(|_| true),
    }
}

/// Reads a session in all ways. The result is an answer or an error, and never a panic.
async fn read_all(store: &SqliteStore) -> Result<(), StoreError> {
    store.sessions(&SessionQuery::default()).await?;
    store.inbox("a").await?;
    store
        .checkpoint("a", CheckpointOf::Ledger, Line::MAX)
        .await?;
    let head = store.head("a").await?;
    let load = Load::new(Arc::new(store.clone()), "a".into(), SALT);
    let report = load.inspect().await?;
    let loaded = load.snapshot(head).await.map(|_| ());
    let structure = store.check_structure().await?;
    if report.damaged.is_empty() && structure.is_empty() {
        return loaded;
    }
    Err(StoreError::Corrupt {
        place: "file".to_owned(),
        what: format!("{report:?} {structure:?}"),
    })
}

/// Returns a closed store with a story in it, and the bytes of its only file.
async fn full(lines: u64) -> (Folder, Vec<u8>) {
    let folder = Folder::new();
    let store = folder.store();
    store.create(session("a")).await.unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    for (line, bytes) in story(lines, Some(lines / 2)) {
        store
            .append(&claim, batch(line.n.0, &bytes, true))
            .await
            .unwrap();
    }
    store.deliver("a", message("m1")).await.unwrap();
    drop((store, claim));
    let bytes = std::fs::read(folder.file()).unwrap();
    (folder, bytes)
}

/// Bits are flipped all over the file: nothing panics, and what is read without an error is what was written.
#[tokio::test]
async fn a_flipped_bit_is_an_error_or_harmless() {
    let (folder, good) = full(200).await;
    let told = story(200, Some(100));
    let mut found = 0;
    for at in (0..good.len()).step_by(good.len() / 70) {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(folder.file(), &bytes).unwrap();
        let result = match SqliteStore::open(folder.file()) {
            Ok(store) => match read_all(&store).await {
                Ok(()) => {
                    for row in store.rows("a", Line(1), Line::MAX, 999).await.unwrap() {
                        let told = told.iter().find(|(l, _)| l.n == row.n);
                        assert_eq!(told.unwrap().1, &*row.bytes, "byte {at}");
                    }
                    Ok(())
                }
                Err(e) => Err(e),
            },
            Err(e) => Err(e),
        };
        found += u32::from(result.is_err());
        for beside in ["sessions.db-wal", "sessions.db-shm"] {
            let _ = std::fs::remove_file(folder.0.join(beside));
        }
    }
    assert!(found > 10, "a good part of the file is rows: {found}");
}

/// Returns the range of the bytes of a table or index that has one page.
pub(crate) fn page(folder: &Folder, name: &str) -> std::ops::Range<usize> {
    let conn = rusqlite::Connection::open(folder.file()).unwrap();
    let root = "SELECT rootpage FROM sqlite_master WHERE name = ?1";
    let root: u32 = conn.query_row(root, [name], |r| r.get(0)).unwrap();
    let size: u32 = conn
        .query_row("PRAGMA page_size", [], |r| r.get(0))
        .unwrap();
    let end = root as usize * size as usize;
    end - size as usize..end
}

pub(crate) fn flipped(folder: &Folder, good: &[u8], bit: usize) {
    let mut bytes = good.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    std::fs::write(folder.file(), &bytes).unwrap();
    for beside in ["sessions.db-wal", "sessions.db-shm"] {
        let _ = std::fs::remove_file(folder.0.join(beside));
    }
}

/// Returns a store in which a message and an event wait and a session is wanted later, and the bytes of its file.
pub(crate) async fn waiting() -> (Folder, Vec<u8>) {
    let (folder, _) = full(4).await;
    let store = folder.store();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    let timed = batch(claim.first.0, b"timed", true);
    store.append(&claim, timed).await.unwrap();
    let left = Left {
        mail: claim.mail,
        wants: Some(Time(70)),
        ..Left::default()
    };
    store.release(claim, left).await.unwrap();
    store.deliver_event(event("mail")).await.unwrap();
    drop(store);
    let bytes = std::fs::read(folder.file()).unwrap();
    (folder, bytes)
}

/// A damaged index hides rows of its table. The damage is found, whichever bit it is, and then nothing is hidden.
#[tokio::test]
async fn an_index_that_hides_a_message_is_found_and_passed_over() {
    let (folder, good) = waiting().await;
    let mut hidden = 0;
    for index in ["inbox_waiting", "seat_wants"] {
        let page = page(&folder, index);
        for bit in (page.end - 4) * 8..page.end * 8 {
            flipped(&folder, &good, bit);
            let Ok(store) = SqliteStore::open(folder.file()) else {
                continue;
            };
            let all = async || -> Result<(usize, Vec<Arc<str>>), StoreError> {
                let inbox = store.inbox("a").await?.1;
                let taken = store.take(&Worker::nameless(), room(99)).await?;
                // A session whose seat cannot be written is reported, and not hidden.
                let claims = taken.claims.iter().map(|claim| claim.session.clone());
                let refused = taken.refused.into_iter().map(|(id, _)| id);
                Ok((inbox.len(), claims.chain(refused).collect()))
            };
            let meant = (1, vec!["a".into()]);
            let lists = all().await.is_ok_and(|found| found == meant);
            hidden += u32::from(!lists);
            let structure = store.check_structure().await;
            assert!(
                lists || !structure.is_ok_and(|found| found.is_empty()),
                "bit {bit} of {index} hides something"
            );
            let damaged = store.damaged_lists().await.unwrap();
            assert!(lists || !damaged.is_empty(), "bit {bit} of {index}");
            assert_eq!(all().await.unwrap(), meant, "bit {bit} of {index}");
        }
    }
    assert!(hidden > 10, "{hidden}");
}

/// An event in the box is as it was written, or it is reported as damaged.
#[tokio::test]
async fn an_event_that_was_damaged_in_the_box_is_told_and_ends_no_wait() {
    let (folder, good) = waiting().await;
    let page = page(&folder, "event");
    let (mut found, told) = (0, event("mail"));
    for bit in (page.end - 60) * 8..page.end * 8 {
        flipped(&folder, &good, bit);
        let Ok(store) = SqliteStore::open(folder.file()) else {
            continue;
        };
        let Ok(events) = store.event_box(None, Time(1), 9).await else {
            found += 1;
            continue;
        };
        let is_whole = events == [told.clone()];
        let taken = store
            .boxed_events(&Scope::default(), "desk", "mail", "{}")
            .await;
        let taken = taken.unwrap_or_default();
        assert!(taken.iter().all(|e| *e == told), "{bit} {taken:?}");
        let structure = store.check_structure().await.unwrap();
        assert!(
            is_whole || !structure.is_empty(),
            "{bit} {events:?} {structure:?}"
        );
        assert!(
            is_whole || events.iter().all(|e| e.message.is_empty()),
            "{bit}"
        );
        found += u32::from(!is_whole);
    }
    assert!(found > 300, "{found}");
}

/// Whichever bit breaks the structure of the box's page, the damage is reported, and then waits read what can be read.
#[tokio::test]
async fn a_box_that_cannot_be_read_is_told_and_passed_over() {
    let (folder, good) = waiting().await;
    let page = page(&folder, "event");
    let mut broken = 0;
    for bit in page.start * 8..(page.start + 10) * 8 {
        flipped(&folder, &good, bit);
        let Ok(store) = SqliteStore::open(folder.file()) else {
            continue;
        };
        let boxed = store
            .boxed_events(&Scope::default(), "desk", "mail", "{}")
            .await;
        broken += u32::from(boxed.is_err());
        let damaged = store.damaged_lists().await.unwrap();
        assert!(boxed.is_ok() || !damaged.is_empty(), "bit {bit}");
        let boxed = store
            .boxed_events(&Scope::default(), "desk", "mail", "{}")
            .await
            .unwrap();
        assert!(boxed.iter().all(|e| *e == event("mail")), "bit {bit}");
    }
    assert!(broken > 10, "{broken}");
}

#[tokio::test]
async fn a_truncated_file_is_an_error() {
    let (folder, good) = full(60).await;
    for part in 1..16 {
        let len = good.len() * part / 16;
        let file = std::fs::File::options()
            .write(true)
            .truncate(true)
            .open(folder.file());
        let mut file = file.unwrap();
        file.write_all(&good[..len]).unwrap();
        drop(file);
        let result = match SqliteStore::open(folder.file()) {
            Ok(store) => read_all(&store).await,
            Err(e) => Err(e),
        };
        let refused = result.expect_err("it is too short");
        assert!(
            matches!(
                refused,
                StoreError::Corrupt { .. } | StoreError::Io { .. } | StoreError::NoSession(_)
            ),
            "{refused}"
        );
        for beside in ["sessions.db-wal", "sessions.db-shm"] {
            let _ = std::fs::remove_file(folder.0.join(beside));
        }
    }
}

/// The writer died, and its journal is cut at any place: what was synced before the cut is there, in order.
#[tokio::test]
async fn a_cut_journal_loses_only_its_end() {
    let folder = Folder::new();
    folder.store().create(session("a")).await.unwrap();
    let store = folder.store();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    let told = story(20, None);
    for (line, bytes) in &told {
        store
            .append(&claim, batch(line.n.0, bytes, true))
            .await
            .unwrap();
    }
    let journal = std::fs::read(folder.0.join("sessions.db-wal")).unwrap();
    let file = std::fs::read(folder.file()).unwrap();
    let mut before = 0;
    for part in 8..=16 {
        let died = Folder::new();
        std::fs::write(died.file(), &file).unwrap();
        let len = journal.len() * part / 16;
        std::fs::write(died.0.join("sessions.db-wal"), &journal[..len]).unwrap();
        let store = died.store();
        let head = store.head("a").await.unwrap();
        let load = Load::new(Arc::new(store.clone()), "a".into(), SALT);
        load.snapshot(head).await.unwrap();
        assert!(head.0 >= before);
        before = head.0;
    }
    assert_eq!(before, 20);
}

#[tokio::test]
async fn the_file_is_marked_as_ours() {
    let folder = Folder::new();
    drop(folder.store());
    let mut file = std::fs::File::open(folder.file()).unwrap();
    file.seek(SeekFrom::Start(68)).unwrap();
    let mut mark = [0; 4];
    file.read_exact(&mut mark).unwrap();
    assert_eq!(&mark, b"STRM");
}

/// Formats from before the first release are neither read nor touched.
#[tokio::test]
async fn a_store_of_an_earlier_format_is_refused() {
    let folder = Folder::new();
    folder.store().create(session("s")).await.unwrap();
    let conn = rusqlite::Connection::open(folder.file()).unwrap();
    conn.pragma_update(None, "user_version", 8).unwrap();
    drop(conn);
    let before = content(&folder);
    let looks = SqliteOptions {
        read_only: true,
        ..SqliteOptions::default()
    };
    for refused in [
        SqliteStore::open(folder.file()).err(),
        SqliteStore::open_with(folder.file(), &looks).err(),
    ] {
        let refused = refused.unwrap();
        assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
        assert!(refused.to_string().contains("it has format 8"), "{refused}");
    }
    assert_eq!(content(&folder), before);
}

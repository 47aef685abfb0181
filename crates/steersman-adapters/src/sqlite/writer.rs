//! The one thread that writes: it takes all that waits and puts it into one transaction, so that one sync carries the
//! lines of many sessions.

use super::enter::Guard;
use super::error::sql;
use super::mark;
use super::open::{Reads, reader};
use super::owner::OwnerLock;
use super::stamp::{Newest, begun, stamp};
use super::watch::Watch;
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use steersman_machine::ids::Line;
use steersman_runtime::store::queue::Queue;
use steersman_runtime::store::{COMPANY, StoreError};
use tokio::sync::oneshot;

/// Result of a task: an answer, or a refusal *before it wrote anything*. An error of SQLite fails the whole group.
pub(super) type Said<T> = rusqlite::Result<Result<T, StoreError>>;

/// Something to be written.
trait Task: Send {
    fn run(&mut self, conn: &Connection, state: &mut State) -> rusqlite::Result<()>;
    /// The transaction was committed, or not.
    fn finish(self: Box<Self>, state: &mut State, committed: Result<(), StoreError>);
}

struct OneTask<T, F> {
    run: Option<F>,
    said: Option<Result<T, StoreError>>,
    done: oneshot::Sender<Result<T, StoreError>>,
    /// Session and epoch under which it writes; a failure ends them.
    claim: Option<(i64, u64)>,
}

impl<T: Send, F> Task for OneTask<T, F>
where
    F: FnOnce(&Connection, &mut State) -> Said<T> + Send,
{
    fn run(&mut self, conn: &Connection, state: &mut State) -> rusqlite::Result<()> {
        if let Some(run) = self.run.take() {
            self.said = Some(run(conn, state)?);
        }
        Ok(())
    }

    fn finish(self: Box<Self>, state: &mut State, committed: Result<(), StoreError>) {
        let Self {
            said, done, claim, ..
        } = *self;
        let result = committed.and_then(|()| said.expect("what was committed was run"));
        if let (Err(_), Some((no, epoch))) = (&result, claim) {
            state.fail(no, epoch);
        }
        // Who does not wait any more has dropped its end.
        let _ = done.send(result);
    }
}

/// State of the writer: the sessions that are claimed through it, and facts about the present transaction.
pub(super) struct State {
    sessions: std::collections::HashMap<i64, Claimed>,
    /// The number of the transaction.
    transaction: u64,
    path: PathBuf,
    guard: Arc<Guard>,
    /// An effect of class `unsafe` begins with this transaction.
    begins: bool,
    /// The file says without its journal that it needs a mark.
    is_told: bool,
    /// Events that this process accepted.
    events: u64,
    watch: Watch,
    /// Number of changes in the folders of the store that were reported. The result of a look is valid while it stays the same.
    changes: u64,
    /// All guarded files were in their places after so many changes.
    in_place: Option<u64>,
    /// After so many changes the store had no mark, and nothing `unsafe` had begun.
    unmarked: Option<u64>,
}

/// Ids of events are counted with the first event of a process and with each one behind so many more: to count them takes as long
/// as there are many.
const COUNTS: u64 = 1024;

#[derive(Default)]
struct Claimed {
    last: u64,
    failed: Option<u64>,
    /// Transaction in which this epoch was found to be the newest.
    newest: Option<(u64, u64)>,
    /// The owner's lock was in its place after so many changes.
    locked: Option<u64>,
}

impl State {
    pub(super) fn new(guard: Arc<Guard>) -> Self {
        let watch = Watch::begin(guard.path());
        Self {
            sessions: std::collections::HashMap::new(),
            transaction: 0,
            path: guard.path().to_owned(),
            guard,
            begins: false,
            is_told: false,
            events: 0,
            watch,
            changes: 0,
            in_place: None,
            unmarked: None,
        }
    }
    /// Another event was accepted: whether all that are remembered are to be counted now.
    pub(super) fn counts_events(&mut self) -> bool {
        self.events += 1;
        self.events % COUNTS == 1
    }
    /// A transaction begins.
    fn begin(&mut self) {
        self.transaction += 1;
        self.begins = false;
    }
    /// An effect of class `unsafe` begins when this transaction is on disk.
    pub(super) fn begins_unsafe(&mut self) {
        self.begins = true;
    }
    /// The transaction that is open wrote something and is about to be committed. Before a store says that it has a mark it has
    /// one. None: the transaction has no stamp.
    fn commits(&mut self, conn: &Connection) -> Result<Option<Newest>, StoreError> {
        let begun = self.begun(conn).map_err(|e| sql(&self.path, e))?;
        let failed = |e| sql(&self.path, e);
        if !(begun || self.begins) {
            return Ok(None);
        }
        let newest = stamp(conn, self.begins).map_err(failed)?;
        if self.begins && !begun {
            // The mark is made by the path: what lies there has to be this store.
            self.guard.still()?;
            mark::make(&self.path, &newest.store)?;
        }
        Ok(Some(newest))
    }
    /// The transaction is on disk. Before an effect of class `unsafe` begins the mark is, too.
    fn committed(&mut self, conn: &Connection, now: Option<Newest>) -> Result<(), StoreError> {
        let Some(now) = now else {
            return Ok(());
        };
        mark::tell(&self.path, &now.store, now.written, self.begins)?;
        if self.is_told {
            return Ok(());
        }
        self.is_told = self.tells();
        // A copy of the file alone is to say that it needs a mark. While somebody reads what was there before, the journal stays
        // where it is, and the next transaction tries again.
        if !self.is_told {
            conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
                .map_err(|e| sql(&self.path, e))?;
            self.is_told = self.tells();
        }
        Ok(())
    }
    /// Returns true once an effect of class `unsafe` began in the store. The process that begins the first makes the mark before.
    fn begun(&mut self, conn: &Connection) -> rusqlite::Result<bool> {
        if self.unmarked == Some(self.changes) {
            return Ok(false);
        }
        let begun = begun(conn)?;
        let unmarked = !begun && !mark::is_there(&self.path);
        self.unmarked = unmarked.then_some(self.changes);
        Ok(begun)
    }
    /// Refuses to go on if the store's files are not in their places: others would not find what is written here. In a store that has
    /// a mark all of them are looked up each time. In others the file is, and the rest once the system reported a change: nobody
    /// else may write then, and a tenth of a transaction is saved.
    fn look(&mut self) -> Result<(), StoreError> {
        if !self.watch.is_quiet() {
            self.changes += 1;
        }
        if self.unmarked == Some(self.changes) && self.in_place == Some(self.changes) {
            return self.guard.is_there();
        }
        self.guard.still()?;
        self.in_place = Some(self.changes);
        Ok(())
    }
    /// Returns true if the owner's lock of a session is where others look for it.
    pub(super) fn is_locked(&mut self, no: i64, lock: &OwnerLock) -> bool {
        let is_marked = self.unmarked.is_none();
        let found = &mut self.sessions.entry(no).or_default().locked;
        if is_marked || *found != Some(self.changes) {
            *found = lock.still().then_some(self.changes);
        }
        found.is_some()
    }
    /// Returns true if the file without its journal says that the store needs a mark. A file that is being written may be unreadable.
    fn tells(&self) -> bool {
        let alone = reader(&self.path, Reads::FileAlone);
        let begun = alone.and_then(|alone| {
            let begun = "SELECT begun FROM store";
            alone.query_row(begun, [], |r| r.get(0))
        });
        begun.unwrap_or(false)
    }
    /// Returns true if this transaction already found this epoch to be the newest. Nobody else writes while it is open, and a claim
    /// within it resets this.
    pub(super) fn is_newest(&self, no: i64, epoch: u64) -> bool {
        let found = self.sessions.get(&no).and_then(|s| s.newest);
        found == Some((self.transaction, epoch))
    }
    /// This epoch is the newest.
    pub(super) fn newest(&mut self, no: i64, epoch: u64) {
        let found = Some((self.transaction, epoch));
        self.sessions.entry(no).or_default().newest = found;
    }
    /// A session was claimed; its last line.
    pub(super) fn claimed(&mut self, no: i64, head: u64) {
        self.sessions.insert(
            no,
            Claimed {
                last: head,
                ..Claimed::default()
            },
        );
    }
    /// The last line that was written or is in the group.
    pub(super) fn last(&self, no: i64) -> u64 {
        self.sessions.get(&no).map_or(0, |s| s.last)
    }
    pub(super) fn wrote(&mut self, no: i64, line: Line) {
        self.sessions.entry(no).or_default().last = line.0;
    }
    /// Returns true if a write of this epoch failed; nothing after it is written.
    pub(super) fn failed(&self, no: i64, epoch: u64) -> bool {
        self.sessions
            .get(&no)
            .is_some_and(|s| s.failed == Some(epoch))
    }
    /// Nothing of this epoch is written any more.
    pub(super) fn fail(&mut self, no: i64, epoch: u64) {
        self.sessions.entry(no).or_default().failed = Some(epoch);
    }
}

/// A handle to the thread.
pub(super) struct Writer {
    queue: Arc<Queue<Box<dyn Task>>>,
    thread: Option<JoinHandle<()>>,
    transactions: Arc<AtomicU64>,
}

impl Writer {
    pub(super) fn start(conn: Connection, mut state: State) -> std::io::Result<Self> {
        let queue = Arc::<Queue<Box<dyn Task>>>::default();
        let tasks = queue.clone();
        let transactions = Arc::<AtomicU64>::default();
        let made = transactions.clone();
        let thread = std::thread::Builder::new()
            .name("steersman-writer".to_owned())
            .spawn(move || {
                while let Some(mut group) = tasks.group(COMPANY) {
                    made.fetch_add(1, Ordering::Relaxed);
                    let result = write(&conn, &mut state, &mut group);
                    for task in group {
                        task.finish(&mut state, result.clone());
                    }
                }
                state.guard.ends(&conn);
            })?;
        Ok(Self {
            queue,
            thread: Some(thread),
            transactions,
        })
    }

    /// Returns the number of groups that were written or tried.
    pub(super) fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }

    /// Queues a task behind all others. The receiver hears of it when it is on disk.
    pub(super) fn queue<T: Send + 'static>(
        &self,
        urgent: bool,
        claim: Option<(i64, u64)>,
        run: impl FnOnce(&Connection, &mut State) -> Said<T> + Send + 'static,
    ) -> oneshot::Receiver<Result<T, StoreError>> {
        let (done, result) = oneshot::channel();
        let task = OneTask {
            run: Some(run),
            said: None,
            done,
            claim,
        };
        // A queue that is closed drops the task, and the receiver hears that.
        let _ = self.queue.push(Box::new(task), urgent);
        result
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // A panic there has been heard by whoever waited.
            let _ = thread.join();
        }
    }
}

fn write(
    conn: &Connection,
    state: &mut State,
    group: &mut [Box<dyn Task>],
) -> Result<(), StoreError> {
    state.begin();
    let run = || -> Result<(), StoreError> {
        let guard = state.guard.clone();
        let failed = |e| sql(guard.path(), e);
        let simple = |statement: &str| conn.prepare_cached(statement)?.execute([]);
        simple("BEGIN IMMEDIATE").map_err(failed)?;
        state.look()?;
        let before = conn.total_changes();
        for task in group {
            task.run(conn, state).map_err(failed)?;
        }
        if conn.total_changes() == before {
            return simple("COMMIT").map(drop).map_err(failed);
        }
        let commits = state.commits(conn)?;
        simple("COMMIT").map_err(failed)?;
        // What lies in a journal that nobody finds is not acknowledged.
        state.look()?;
        state.committed(conn, commits)
    };
    let result = run();
    if result.is_err() && !conn.is_autocommit() {
        // What fails here fails because nothing is open any more.
        let _ = conn.execute_batch("ROLLBACK");
    }
    if result.is_err() && !state.guard.has_journal() {
        return Err(state.guard.put_back(conn));
    }
    result
}

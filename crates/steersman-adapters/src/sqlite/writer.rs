//! The connection that writes to the store. It puts all queued tasks into one transaction, so that one sync carries the lines of
//! many sessions.

use super::combine::{Combiner, Disk, Wrote};
use super::enter::Guard;
use super::error::{io, sql};
use super::mark;
use super::open::{PATIENCE, Reads, compared, reader, unaccepted};
use super::owner::OwnerLock;
use super::stamp::{self, Newest, stamp};
use super::watch::Watch;
use rusqlite::{Connection, ErrorCode};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use steersman_machine::stored::ids::Line;
use steersman_runtime::store::StoreError;
use tokio::sync::oneshot;

/// Result of a task: an answer, or a refusal *before it wrote anything*. An error of SQLite fails the task alone if the task had
/// written nothing, and otherwise the whole group.
pub(super) type Said<T> = rusqlite::Result<Result<T, StoreError>>;

/// A queued write.
trait Task: Send {
    fn run(&mut self, conn: &Connection, state: &mut State) -> rusqlite::Result<()>;
    /// Replaces the result of a task that wrote nothing.
    fn fail(&mut self, why: StoreError);
    /// Reports to the caller that the transaction was committed, or why it was not.
    fn finish(self: Box<Self>, state: &mut State, committed: Result<(), StoreError>);
}

struct OneTask<T, F> {
    run: Option<F>,
    said: Option<Result<T, StoreError>>,
    done: oneshot::Sender<Result<T, StoreError>>,
    /// Session and epoch under which the task writes. If the task fails, nothing more of this epoch is written.
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

    fn fail(&mut self, why: StoreError) {
        self.said = Some(Err(why));
    }

    fn finish(self: Box<Self>, state: &mut State, committed: Result<(), StoreError>) {
        let Self {
            said, done, claim, ..
        } = *self;
        let result = committed.and_then(|()| said.expect("what was committed was run"));
        if let (Err(_), Some((no, epoch))) = (&result, claim) {
            state.fail(no, epoch);
        }
        // The send fails if the caller no longer waits.
        let _ = done.send(result);
    }
}

/// State of the writer: the sessions that are claimed through it, and facts about the current transaction.
pub(super) struct State {
    sessions: std::collections::HashMap<i64, Claimed>,
    /// Number of the current transaction, counted from the start of this writer.
    transaction: u64,
    path: PathBuf,
    guard: Arc<Guard>,
    /// An effect of class `unsafe` begins with this transaction.
    begins: bool,
    /// True once the file alone, without its journal, has the flag that the store needs a mark.
    is_flag_in_file: bool,
    /// Number of events that this writer accepted.
    events: u64,
    watch: Watch,
    /// Number of times that the watch reported changes in the folders of the store. A check of the files is valid while this
    /// number is the same.
    changes: u64,
    /// Value of `changes` at which all guarded files were last found in their places.
    in_place: Option<u64>,
    /// Value of `changes` at which the store had no mark and nothing `unsafe` had begun; `None` if it has a mark or was not
    /// checked.
    unmarked: Option<u64>,
    /// The newest transaction of the store, as this writer knows it.
    newest: Newest,
    /// Value of `PRAGMA data_version` at the last check. It changes when another connection commits.
    seen: Option<i64>,
    /// Reason why nothing more is written: an older state was restored while the store was open.
    doubt: Option<StoreError>,
}

/// Number of events between two counts of the remembered event ids. The first event of a writer causes a count too. A count takes
/// longer the more ids there are.
const COUNTS: u64 = 1024;

#[derive(Default)]
struct Claimed {
    /// The last line that was written or is in the group.
    last: u64,
    /// The epoch of a write that failed.
    failed: Option<u64>,
    /// A transaction, and the epoch that was found to be the newest in it.
    newest: Option<(u64, u64)>,
    /// Value of `changes` at which the owner's lock was last found in its place.
    locked: Option<u64>,
}

impl State {
    pub(super) fn new(guard: Arc<Guard>, newest: Newest) -> Self {
        let watch = Watch::begin(guard.path());
        Self {
            sessions: std::collections::HashMap::new(),
            transaction: 0,
            path: guard.path().to_owned(),
            guard,
            begins: false,
            is_flag_in_file: false,
            events: 0,
            watch,
            changes: 0,
            in_place: None,
            unmarked: None,
            newest,
            seen: None,
            doubt: None,
        }
    }
    /// Counts an accepted event. Returns true if it is time to count the remembered event ids.
    pub(super) fn counts_events(&mut self) -> bool {
        self.events += 1;
        self.events % COUNTS == 1
    }
    /// Resets the facts about the transaction; called when one begins.
    fn begin(&mut self) {
        self.transaction += 1;
        self.begins = false;
    }
    /// Records that an effect of class `unsafe` begins when this transaction is on disk.
    pub(super) fn begins_unsafe(&mut self) {
        self.begins = true;
    }
    /// Returns an error if the store does not continue the state that this writer knows: an older state may have been restored
    /// into the file while it was open, and effects that happened are missing then. Called in each transaction, before anything is
    /// written.
    fn follows(&mut self, conn: &Connection) -> Result<(), StoreError> {
        if let Some(doubt) = &self.doubt {
            return Err(doubt.clone());
        }
        let failed = |e| sql(&self.path, e);
        let version = conn
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut version| version.query_row([], |row| row.get(0)))
            .map_err(failed)?;
        if self.seen == Some(version) {
            return Ok(());
        }
        let newest = stamp::of(conn).map_err(failed)?;
        let before = &self.newest;
        let follows = newest.store == before.store
            && newest.begun == before.begun
            && newest.written >= before.written;
        // Another process may have begun the first effect of class `unsafe`; then the store has another id, and a mark.
        if !follows && let Some((was, why)) = compared(conn, &self.path, false)? {
            let doubt = unaccepted(&self.path, was, why);
            self.doubt = Some(doubt.clone());
            return Err(doubt);
        }
        if newest.begun {
            self.unmarked = None;
        }
        self.newest = newest;
        self.seen = Some(version);
        Ok(())
    }
    /// Stamps the open transaction, which wrote something and is about to be committed; returns `None` if it needs no stamp. The
    /// mark is made before the first commit that sets the store's flag, so that no crash leaves a flag without a mark.
    fn commits(&mut self, conn: &Connection) -> Result<Option<Newest>, StoreError> {
        let begun = self.newest.begun;
        if self.unmarked != Some(self.changes) {
            let is_unmarked = !begun && !mark::is_there(&self.path);
            self.unmarked = is_unmarked.then_some(self.changes);
        }
        if !(begun || self.begins) {
            return Ok(None);
        }
        let newest = stamp(conn, self.begins).map_err(|e| sql(&self.path, e))?;
        if self.begins && !begun {
            // The mark is made by path, so the file at the path has to be this store.
            self.guard.still()?;
            mark::make(&self.path, &newest.store, &self.newest.store)?;
        }
        Ok(Some(newest))
    }
    /// Writes the mark after the commit of a transaction with a stamp. If an effect of class `unsafe` begins with the transaction,
    /// the mark is synced too.
    fn committed(&mut self, conn: &Connection) -> Result<(), StoreError> {
        let now = &self.newest;
        mark::record(&self.path, &now.store, now.written, self.begins)?;
        if self.is_flag_in_file {
            return Ok(());
        }
        self.is_flag_in_file = self.file_has_flag();
        // A copy of the file alone has to carry the flag, so the journal is moved into the file. While a reader uses the older
        // state, SQLite does not move it, and the next transaction tries again.
        if !self.is_flag_in_file {
            conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
                .map_err(|e| sql(&self.path, e))?;
            self.is_flag_in_file = self.file_has_flag();
        }
        Ok(())
    }
    /// Returns an error if the store's files are not in their places: other processes would not find the lines written here. In a
    /// store with a mark, all files are looked up each time. In other stores the file is looked up each time, and the rest only
    /// after the system reported a change, which saves a tenth of a transaction.
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
    /// Returns true if the owner's lock of a session is at the path where other processes look for it.
    pub(super) fn is_locked(&mut self, no: i64, lock: &OwnerLock) -> bool {
        let is_marked = self.unmarked.is_none();
        let found = &mut self.sessions.entry(no).or_default().locked;
        if is_marked || *found != Some(self.changes) {
            *found = lock.still().then_some(self.changes);
        }
        found.is_some()
    }
    /// Returns true if the file without its journal has the flag that the store needs a mark. Returns false if the file cannot be
    /// read, which may happen while it is being written.
    fn file_has_flag(&self) -> bool {
        let alone = reader(&self.path, Reads::FileAlone);
        let begun = alone.and_then(|(alone, _)| {
            let begun = "SELECT begun FROM store";
            alone.query_row(begun, [], |r| r.get(0))
        });
        begun.unwrap_or(false)
    }
    /// Returns what an owner may write to a session: nothing if a write of its epoch failed; otherwise the last line that was
    /// written or is in the group (0 if the session is not known here), and true if this transaction already found the epoch to
    /// be the newest. No other process writes while the transaction is open, and a claim within it resets the result.
    pub(super) fn may_write(&self, no: i64, epoch: u64) -> Option<(Line, bool)> {
        let Some(session) = self.sessions.get(&no) else {
            return Some((Line::NONE, false));
        };
        let is_newest = session.newest == Some((self.transaction, epoch));
        (session.failed != Some(epoch)).then_some((Line(session.last), is_newest))
    }
    /// Records that a session was claimed; `head` is its last line.
    pub(super) fn claimed(&mut self, no: i64, head: u64) {
        self.sessions.insert(
            no,
            Claimed {
                last: head,
                ..Claimed::default()
            },
        );
    }
    /// Records that this transaction found the epoch to be the newest, and the last line that it wrote.
    pub(super) fn wrote(&mut self, no: i64, epoch: u64, last: Option<Line>) {
        let newest = Some((self.transaction, epoch));
        let session = self.sessions.entry(no).or_default();
        session.newest = newest;
        if let Some(last) = last {
            session.last = last.0;
        }
    }
    /// Records that a write of this epoch failed.
    pub(super) fn fail(&mut self, no: i64, epoch: u64) {
        self.sessions.entry(no).or_default().failed = Some(epoch);
    }
}

/// The writer of a store. Dropping it writes what is queued, and closes the connection.
pub(super) struct Writer {
    disk: Combiner<Journaled>,
    transactions: Arc<AtomicU64>,
}

impl Writer {
    pub(super) fn start(conn: Connection, state: State) -> std::io::Result<Self> {
        let transactions = Arc::<AtomicU64>::default();
        let disk = Journaled {
            conn,
            state,
            patient: None,
            transactions: transactions.clone(),
        };
        Ok(Self {
            disk: Combiner::start(disk, "steersman-writer")?,
            transactions,
        })
    }

    /// Returns the number of groups that were written or tried.
    pub(super) fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }

    /// Queues a task after all others. The receiver gets the result once the transaction is on disk, or failed.
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
        self.disk.push(Box::new(task), urgent);
        result
    }

    /// Called by somebody who begins to wait for an urgent task: writes it if nobody else does.
    pub(super) fn help(&self) {
        self.disk.help();
    }

    /// Called instead of [`Self::help`] if nobody waits for an urgent task any more.
    pub(super) fn call(&self) {
        self.disk.call();
    }
}

/// The connection that writes, and what is known of the store.
struct Journaled {
    conn: Connection,
    state: State,
    /// True if the connection waits for locks of other processes; `None` if that was not set yet.
    patient: Option<bool>,
    transactions: Arc<AtomicU64>,
}

impl Disk for Journaled {
    type Task = Box<dyn Task>;

    fn write(&mut self, mut group: Vec<Self::Task>, patient: bool) -> Wrote<Self::Task> {
        self.transactions.fetch_add(1, Ordering::Relaxed);
        let began = self.begin(patient);
        if !patient && began.as_ref().is_err_and(is_busy) {
            return Wrote::Busy(group);
        }
        let (conn, state) = (&self.conn, &mut self.state);
        let path = state.path.clone();
        let result = began.map_err(|e| sql(&path, e)).and_then(|()| {
            let written = AssertUnwindSafe(|| write(conn, state, &mut group));
            catch_unwind(written).unwrap_or_else(|_| {
                // Nothing is known of the transaction: the next one reads again what the store says of itself.
                state.seen = None;
                let why = "a panic while it was written; nothing of the transaction counts";
                Err(io(&path, std::io::Error::other(why)))
            })
        });
        let result = self.rolled_back(result);
        let (result, commit) = match result {
            Ok(commit) => (Ok(()), commit),
            Err(why) => (Err(why), None),
        };
        for task in group {
            task.finish(&mut self.state, result.clone());
        }
        Wrote::Done(commit)
    }

    fn ends(self) {
        self.state.guard.ends(&self.conn);
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Executes a statement that returns nothing.
fn simple(conn: &Connection, statement: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(statement)?.execute([]).map(drop)
}

impl Journaled {
    /// Begins a transaction.
    fn begin(&mut self, patient: bool) -> rusqlite::Result<()> {
        if self.patient != Some(patient) {
            let wait = if patient { PATIENCE } else { Duration::ZERO };
            self.conn.busy_timeout(wait)?;
            self.patient = Some(patient);
        }
        simple(&self.conn, "BEGIN IMMEDIATE")
    }

    /// After a failure, ends the transaction that is open.
    fn rolled_back<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        let (conn, guard) = (&self.conn, &self.state.guard);
        if result.is_err() && !conn.is_autocommit() {
            // The rollback can fail only if no transaction is open any more.
            let _ = conn.execute_batch("ROLLBACK");
        }
        if result.is_err() && !guard.has_journal() {
            return Err(guard.put_back(conn));
        }
        result
    }
}

/// Runs the tasks in the open transaction and commits it. Returns the time that the commit took, if anything was written.
fn write(
    conn: &Connection,
    state: &mut State,
    group: &mut [Box<dyn Task>],
) -> Result<Option<Duration>, StoreError> {
    state.begin();
    let guard = state.guard.clone();
    let failed = |e| sql(guard.path(), e);
    state.look()?;
    state.follows(conn)?;
    let before = conn.total_changes();
    let mut changes = before;
    for task in group {
        if let Err(e) = task.run(conn, state) {
            // A task that wrote nothing fails alone, unless SQLite ended the transaction.
            if conn.total_changes() != changes || conn.is_autocommit() {
                return Err(failed(e));
            }
            task.fail(failed(e));
        }
        changes = conn.total_changes();
    }
    if changes == before {
        return simple(conn, "COMMIT").map(|()| None).map_err(failed);
    }
    let stamped = state.commits(conn)?;
    let began = Instant::now();
    simple(conn, "COMMIT").map_err(failed)?;
    let commit = began.elapsed();
    let is_stamped = stamped.is_some();
    // The transaction is in the store, even if something fails from here on.
    if let Some(newest) = stamped {
        state.newest = newest;
    }
    // A transaction in a journal that other processes do not find must not be acknowledged.
    state.look()?;
    if is_stamped {
        state.committed(conn)?;
    }
    Ok(Some(commit))
}

#[cfg(test)]
mod tests {
    use crate::sqlite::SqliteStore;
    use steersman_runtime::store::StoreError;

    #[tokio::test]
    async fn a_panic_in_a_transaction_fails_its_group_and_nothing_else() {
        let name = format!("steersman-panic-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let store = SqliteStore::open(folder.join("a.db")).unwrap();
        let need = |revision: i64| {
            store.queued(false, None, move |conn, _| {
                let insert = "INSERT INTO need (revision, natives) VALUES (?1, '')";
                conn.execute(insert, [revision]).map(Ok)
            })
        };
        let beside = need(1);
        let panics = store.write(|_, _| -> super::Said<()> { panic!("on purpose") });
        for refused in [panics.await.err(), beside.await.err()] {
            assert!(
                matches!(refused, Some(StoreError::Io { .. })),
                "{refused:?}"
            );
        }
        assert_eq!(need(2).await.unwrap(), 1);
        // A statement that fails first takes only its own task along.
        let (beside, again) = (need(3), need(2));
        let last = store.write(|_, _| Ok(Ok(())));
        assert!(last.await.is_ok());
        assert!(again.await.is_err());
        assert_eq!(beside.await.unwrap(), 1);
        let there =
            "SELECT group_concat(revision) FROM (SELECT revision FROM need ORDER BY revision)";
        let there = store.read(|conn| conn.query_row(there, [], |row| row.get::<_, String>(0)));
        assert_eq!(there.await.unwrap(), "2,3");
        drop(store);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

//! The store in a SQLite file: the default, which needs no server.
//!
//! It uses WAL and `synchronous=FULL`. One connection writes, and groups the writes of many sessions into one transaction; the
//! caller that waits for a write makes it (`combine.rs`). A few read-only connections read. A line is one row under one integer key (the session's number << 28 | line), inserted by one
//! statement that the owner's epoch guards. Next to the real file (symlinks resolved) is `NAME.owners/` with a locked file for
//! each session that is owned now; it may be deleted while no process has the store open. The file in `NAME.mark/` records a lower
//! bound of the number of transactions in the store, once an effect of class `unsafe` began in it; it belongs to the store.

mod accounts;
mod append;
mod blob;
mod combine;
mod enter;
mod error;
mod event;
mod file;
mod home;
mod inbox;
mod keep;
mod lists;
mod mark;
mod memory;
mod open;
mod owner;
mod part;
mod queued;
mod quota;
mod read;
mod registers;
mod schema;
mod seat;
mod seen;
mod shape;
mod site;
mod stamp;
mod sum;
mod wal;
mod watch;
mod writer;

pub use keep::{collect_garbage, flush, forget};
pub use open::accept;
pub(crate) use site::SqliteSite;

use append::{find, head, key, of_no};
use enter::{Guard, Journal};
use error::sql;
use file::{Held, Unlocked};
use futures::stream::{BoxStream, StreamExt, unfold};
use lists::Trust;
use open::{For, Opened};
use queued::Queued;
use read::Readers;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use steersman_machine::stored::ids::{Id, Line, Time};
use steersman_runtime::Boxed;
use steersman_runtime::store::{
    Appended, Batch, Blobs, BoxedEvent, Checkpoint, CheckpointOf, Claim, Inbox, InboxMessage, Left,
    Lists, Log, Memories, Memory, MemoryQuery, NewMemory, NewSession, NewWorker, Rated, Room, Row,
    Scope, SessionId, SessionInfo, SessionQuery, StoreError, Taken, Wake, Worker, bounds,
};
use tokio::sync::Notify;
use writer::{Said, State, Writer};

/// Upper bound of session numbers, so that number and line fit a signed 64 bit key.
const MAX_SESSIONS: i64 = 1 << 35;

/// Number of read connections, in addition to the one for blocking readers.
const READERS: usize = 2;

/// Size of the journal at which it is moved into the file, in bytes.
const JOURNAL: u64 = 4 << 20;

/// Time between two looks for messages that other processes delivered.
const LOOK: Duration = Duration::from_millis(50);

/// A store in a file. Clones are handles to the same store; it closes with the last one.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    /// Declared before the writer, so that the writer's connection closes last and moves the journal into the file.
    readers: Readers,
    writer: Option<Writer>,
    /// Reason why the store is only read until a person accepts it.
    doubt: Option<StoreError>,
    /// True if lists by which sessions are found are known to be damaged.
    distrusts: AtomicBool,
    /// Notified when this handle may have given workers something to do.
    new_work: Arc<Notify>,
    workers: Mutex<seat::Workers>,
    /// Number of the session after which the next take looks for owners that died. 0: it begins with the first.
    owned_from: AtomicI64,
    /// State of the file if it is read without locks.
    unlocked: Option<Unlocked>,
    /// Set if the store is open for writing.
    guard: Option<Arc<Guard>>,
    /// Declared after all connections, so that it closes last.
    held: Arc<Held>,
}

impl Inner {
    fn whole<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        whole(&self.path, self.unlocked.as_ref(), result)
    }
}

/// Returns what was read, unless the file was read without locks and changed meanwhile.
fn whole<T>(
    path: &Path,
    unlocked: Option<&Unlocked>,
    result: rusqlite::Result<T>,
) -> Result<T, StoreError> {
    unlocked.map_or(Ok(()), |unlocked| unlocked.is_still(path))?;
    result.map_err(|e| sql(path, e))
}

/// Returns true if an operation failed because the disk is read-only.
fn is_frozen(why: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let why = why.downcast_ref::<std::io::Error>();
    why.is_some_and(|why| why.kind() == std::io::ErrorKind::ReadOnlyFilesystem)
}

/// Options for opening a store.
#[derive(Clone, Debug, Default)]
pub struct SqliteOptions {
    /// True if nothing is ever written: each write is refused (`Io`). The file must exist.
    pub read_only: bool,
    /// Maximum size of the file in pages of 4 KiB; a write that exceeds it is refused (`Io`). `None`: only the disk limits it.
    pub max_pages: Option<u32>,
}

impl SqliteStore {
    /// Opens a store, making it if there is none. Refuses a file that is not a store of this program (`Corrupt`) or was written by
    /// a newer version (`Newer`) without touching it. A store on a read-only disk is opened for reading.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, &SqliteOptions::default())
    }

    /// Opens a store with these options.
    pub fn open_with(path: impl AsRef<Path>, options: &SqliteOptions) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let failed = |e| sql(path, e);
        let mut wanted = if options.read_only {
            For::Reading
        } else {
            For::Making
        };
        let opened = match open::open(path, wanted) {
            // The disk is read-only: the store can still be read.
            Err(StoreError::Io { source, .. }) if wanted == For::Making && is_frozen(&*source) => {
                wanted = For::Reading;
                open::open(path, wanted)?
            }
            opened => opened?,
        };
        let reader = || open::reader(&opened.path, opened.reads).map_err(failed);
        let (here, unlocked) = reader()?;
        let unlocked = opened.unlocked.clone().or(unlocked);
        let pool = (0..READERS).map(|_| reader().map(|(conn, _)| conn));
        let pool = pool.collect::<Result<_, _>>()?;
        let readers = Readers::start(pool, here).map_err(|e| error::io(path, e))?;
        let Opened {
            conn,
            doubt,
            guard,
            newest,
            held,
            journal,
            ..
        } = opened;
        if journal != Journal::of(held.path()) {
            let why =
                "its journal was removed or replaced while it was being opened; open it again";
            return Err(error::io(path, std::io::Error::other(why)));
        }
        let writer = match guard.as_ref().zip(newest) {
            None => None,
            Some((guard, newest)) => {
                let page: u32 = conn
                    .pragma_query_value(None, "page_size", |row| row.get(0))
                    .map_err(failed)?;
                let pages_of = |bytes: u64| bytes / u64::from(page.max(1));
                let set = |name: &str, value: u64| {
                    conn.pragma_update_and_check(None, name, value as i64, |_| Ok(()))
                        .map_err(failed)
                };
                if let Some(pages) = options.max_pages {
                    set("max_page_count", pages_of(u64::from(pages) * 4_096))?;
                }
                set("wal_autocheckpoint", pages_of(JOURNAL))?;
                // Contents that are removed from an inbox or erased must not stay readable in reused pages.
                conn.pragma_update(None, "secure_delete", "ON")
                    .map_err(failed)?;
                let state = State::new(guard.clone(), newest);
                Some(Writer::start(conn, state).map_err(|e| error::io(path, e))?)
            }
        };
        let inner = Inner {
            path: path.to_owned(),
            readers,
            writer,
            doubt,
            distrusts: AtomicBool::new(false),
            new_work: Arc::default(),
            workers: Mutex::default(),
            owned_from: AtomicI64::new(0),
            unlocked,
            guard,
            held,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Returns the reason why the store is open for reading only until a person accepts it ([`accept`]), if there is one.
    pub fn doubt(&self) -> Option<&StoreError> {
        self.inner.doubt.as_ref()
    }

    /// Returns true if an effect of class `unsafe` ever began in the store. A copy of such a store is not driven before a person
    /// accepts it.
    pub fn has_begun_unsafe(&self) -> Boxed<'static, Result<bool, StoreError>> {
        self.read(|conn| Ok(schema::newest(conn)?.is_some_and(|newest| newest.begun)))
    }

    /// Checks that the system lets this user write to the store's file.
    pub fn may_be_written(&self) -> std::io::Result<()> {
        self.inner.held.may_be_written()
    }

    /// Returns the path of the store, as it was opened.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Returns the number of transactions that this handle has tried. Each that wrote something took one sync, shared by all its
    /// writes.
    pub fn transactions(&self) -> u64 {
        self.inner.writer.as_ref().map_or(0, Writer::transactions)
    }

    /// Returns the faults that SQLite finds in the file's structure and indexes; if there are none, rows that belong to no
    /// session and damaged events. Empty if nothing is found.
    pub async fn check_structure(&self) -> Result<Vec<String>, StoreError> {
        self.read(|conn| {
            let mut found: Vec<String> = conn
                .prepare("PRAGMA integrity_check")?
                .query_map([], |r| r.get::<_, String>(0))?
                .filter(|line| !matches!(line, Ok(ok) if ok == "ok"))
                .collect::<rusqlite::Result<_>>()?;
            // the other checks rely on indexes, so they are only made if these are undamaged
            if found.is_empty() {
                found = keep::orphans(conn)?;
                found.extend(event::damaged(conn)?);
                found.extend(seen::damaged(conn)?);
            }
            Ok(found)
        })
        .await
    }

    fn gone(path: &Path) -> StoreError {
        let why = std::io::Error::other("the store is closed, or its thread died");
        error::io(path, why)
    }

    /// Reads in a thread of the pool.
    fn read<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Boxed<'static, Result<T, StoreError>> {
        let result = self.inner.readers.read(run);
        let (path, unlocked) = (self.inner.path.clone(), self.inner.unlocked.clone());
        Box::pin(async move {
            let result = result.await.ok_or_else(|| Self::gone(&path))?;
            whole(&path, unlocked.as_ref(), result)
        })
    }

    /// Reads data of one session in a thread of the pool.
    fn read_of<T: Send + 'static>(
        &self,
        session: &str,
        run: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Boxed<'static, Result<T, StoreError>> {
        let id: SessionId = session.into();
        let wanted = id.clone();
        let read = self.read(move |conn| match find(conn, &wanted)? {
            Some((no, _)) => run(conn, no).map(Some),
            None => Ok(None),
        });
        Box::pin(async move { read.await?.ok_or(StoreError::NoSession(id)) })
    }

    /// Writes immediately.
    fn write<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Connection, &mut State) -> Said<T> + Send + 'static,
    ) -> Boxed<'static, Result<T, StoreError>> {
        self.queued(true, None, run)
    }

    /// Queues a write. An urgent one does not wait for others to join its transaction. `claim`: the session and epoch that may
    /// write nothing more if this write fails.
    fn queued<T: Send + 'static>(
        &self,
        urgent: bool,
        claim: Option<(i64, u64)>,
        run: impl FnOnce(&Connection, &mut State) -> Said<T> + Send + 'static,
    ) -> Boxed<'static, Result<T, StoreError>> {
        let Some(writer) = &self.inner.writer else {
            let why = "the store is open for reading only";
            let why = std::io::Error::new(std::io::ErrorKind::ReadOnlyFilesystem, why);
            return Box::pin(std::future::ready(Err(error::io(&self.inner.path, why))));
        };
        let result = writer.queue(urgent, claim, run);
        Box::pin(Queued::new(result, self.inner.clone(), urgent))
    }

    fn trust(&self) -> Trust {
        if self.inner.distrusts.load(Ordering::Relaxed) {
            Trust::Damaged
        } else {
            Trust::Whole
        }
    }

    /// Writes something that may give workers something to do, and notifies those of this handle.
    fn write_work(
        &self,
        run: impl FnOnce(&Connection, &mut State) -> Said<bool> + Send + 'static,
    ) -> Boxed<'static, Result<bool, StoreError>> {
        let (written, new_work) = (self.write(run), self.inner.new_work.clone());
        Box::pin(async move {
            let written = written.await?;
            new_work.notify_waiters();
            Ok(written)
        })
    }

    fn place(&self) -> String {
        self.inner.path.display().to_string()
    }
}

/// Encodes the id of an effect or branch as a number.
fn effect_no(id: Id) -> i64 {
    (id.line().0 << 20 | u64::from(id.k())) as i64
}

/// Returns the names of a JSON object's fields, sorted, as JSON.
fn field_names(key: &serde_json::Value) -> String {
    let mut names: Vec<&str> = key
        .as_object()
        .map(|o| o.keys().map(String::as_str).collect())
        .unwrap_or_default();
    names.sort_unstable();
    serde_json::Value::from(names).to_string()
}

fn row_of(no: i64, row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let key: i64 = row.get(0)?;
    Ok(Row {
        n: Line((key - (no << 28)) as u64),
        bytes: row.get_ref(1)?.as_blob()?.into(),
    })
}

fn one_row(conn: &Connection, no: i64, n: Line) -> rusqlite::Result<Option<Row>> {
    if n > Line::MAX {
        // Its key would be that of a line of another session.
        return Ok(None);
    }
    conn.prepare_cached("SELECT key, bytes FROM line WHERE key = ?1")?
        .query_row([key(no, n)], |r| row_of(no, r))
        .optional()
}

impl Log for SqliteStore {
    fn create(&self, session: NewSession) -> Boxed<'_, Result<(), StoreError>> {
        let made = self.write_work(move |conn, _| {
            if let Err(e) = bounds::session(&session) {
                return Ok(Err(e));
            }
            if let Some(other) = lists::rival(conn, &session)? {
                return Ok(Err(StoreError::Conflict(other)));
            }
            let made = conn
                .prepare_cached(
                    "INSERT INTO session (id, network, key, salt, created, status, updated, definition, micros, tokens,
                     model_calls, waits, outcome, last, tenant, subject)
                     VALUES (?1, ?2, ?3, ?4, ?5, '', ?5, '', 0, 0, 0, '', '', '', ?6, ?7)",
                )?
                .insert(params![
                    &*session.id,
                    &*session.network,
                    session.key.as_deref(),
                    session.salt,
                    session.created.0,
                    &*session.scope.tenant,
                    session.scope.subject.as_deref()
                ])?;
            seat::make(conn, made, &session.needs)?;
            if let Some(first) = &session.first {
                let into = (made, session.salt, session.id.clone());
                inbox::deliver(conn, &into, first, session.said)?.ok();
            }
            Ok(Ok(true))
        });
        Box::pin(async move { made.await.map(drop) })
    }

    fn claim<'a>(
        &'a self,
        session: &'a str,
        by: &'a Worker,
    ) -> Boxed<'a, Result<Claim, StoreError>> {
        let id: SessionId = session.into();
        Box::pin(async move {
            self.read_of(session, |_, _| Ok(())).await?;
            let (held, name) = (self.inner.held.clone(), id.clone());
            let guard = self.inner.guard.clone();
            let locked = self.inner.readers.read(move |_| {
                guard.map_or(Ok(()), |guard| guard.still())?;
                owner::lock(held.path(), &name)
            });
            let lock = locked
                .await
                .unwrap_or_else(|| Err(Self::gone(&self.inner.path)))?;
            let by = self.inner.enrolled(by);
            self.write(move |conn, state| seat::claim(conn, state, id, lock, &by))
                .await
        })
    }

    fn append(&self, claim: &Claim, batch: Batch) -> Appended {
        let claim = claim.clone();
        let place = Some((claim.number as i64, claim.epoch));
        self.queued(batch.urgent, place, move |conn, state| {
            append::append(conn, state, &claim, &batch)
        })
    }

    fn rows<'a>(
        &'a self,
        session: &'a str,
        from: Line,
        to: Line,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Row>, StoreError>> {
        self.read_of(session, move |conn, no| {
            conn.prepare_cached(
                "SELECT key, bytes FROM line WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3",
            )?
            .query_map(
                params![
                    key(no, from.min(Line::MAX)),
                    key(no, to.min(Line::MAX)),
                    i64::try_from(limit).unwrap_or(i64::MAX)
                ],
                |r| row_of(no, r),
            )?
            .collect()
        })
    }

    fn row<'a>(&'a self, session: &'a str, n: Line) -> Boxed<'a, Result<Option<Row>, StoreError>> {
        self.read_of(session, move |conn, no| one_row(conn, no, n))
    }

    fn row_now(&self, session: &str, n: Line) -> Result<Option<Row>, StoreError> {
        let found = self.inner.readers.now(|conn| match find(conn, session)? {
            Some((no, _)) => one_row(conn, no, n).map(Some),
            None => Ok(None),
        });
        self.inner
            .whole(found)?
            .ok_or_else(|| StoreError::NoSession(session.into()))
    }

    fn version(&self) -> Option<u64> {
        // This connection never writes, so the number changes with every commit. It is read from memory that processes share.
        let version = self.inner.readers.now(|conn| {
            let mut asked = conn.prepare_cached("PRAGMA data_version")?;
            asked.query_row([], |row| row.get::<_, i64>(0))
        });
        version.ok().map(|version| version as u64)
    }

    fn head<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<Line, StoreError>> {
        self.read_of(session, head)
    }

    fn drop_checkpoints<'a>(&'a self, session: &'a str) -> Boxed<'a, Result<(), StoreError>> {
        let id: SessionId = session.into();
        self.write(move |conn, _| {
            let Some((no, _)) = find(conn, &id)? else {
                return Ok(Err(StoreError::NoSession(id)));
            };
            conn.execute("DELETE FROM checkpoint WHERE no = ?1", [no])?;
            Ok(Ok(()))
        })
    }

    fn checkpoint<'a>(
        &'a self,
        session: &'a str,
        of: CheckpointOf,
        at: Line,
    ) -> Boxed<'a, Result<Option<Checkpoint>, StoreError>> {
        self.read_of(session, move |conn, no| {
            conn.prepare_cached(
                "SELECT at, bytes FROM checkpoint WHERE no = ?1 AND of = ?2 AND at <= ?3 ORDER BY at DESC LIMIT 1",
            )?
            .query_row(params![no, of_no(of), at.min(Line::MAX).0 as i64], |r| {
                Ok(Checkpoint {
                    at: Line(r.get::<_, i64>(0)? as u64),
                    bytes: r.get_ref(1)?.as_blob()?.into(),
                })
            })
            .optional()
        })
    }
}

impl Inbox for SqliteStore {
    fn deliver<'a>(
        &'a self,
        session: &'a str,
        message: InboxMessage,
    ) -> Boxed<'a, Result<bool, StoreError>> {
        let id: SessionId = session.into();
        self.write_work(move |conn, _| {
            if let Err(e) = bounds::message(&message) {
                return Ok(Err(e));
            }
            let Some((no, salt)) = find(conn, &id)? else {
                return Ok(Err(StoreError::NoSession(id)));
            };
            if let Some(moved) = seat::moved(conn, no, &id)? {
                return Ok(Err(moved));
            }
            inbox::deliver(conn, &(no, salt, id), &message, None)
        })
    }

    fn inbox<'a>(
        &'a self,
        session: &'a str,
    ) -> Boxed<'a, Result<(u64, Vec<InboxMessage>), StoreError>> {
        let trust = self.trust();
        self.read_of(session, move |conn, no| inbox::messages(conn, no, trust))
    }

    fn deliver_event(&self, event: BoxedEvent) -> Boxed<'_, Result<bool, StoreError>> {
        self.write_work(move |conn, state| match bounds::event(&event) {
            Ok(()) => event::deliver(conn, state, &event),
            Err(e) => Ok(Err(e)),
        })
    }

    fn boxed_events<'a>(
        &'a self,
        of: &'a Scope,
        network: &'a str,
        event: &'a str,
        key: &'a str,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>> {
        let [network, event, key] = [network, event, key].map(str::to_owned);
        let (of, trust) = (of.clone(), self.trust());
        self.read(move |conn| event::boxed(conn, &of, [&network, &event], &key, trust))
    }

    fn event_box<'a>(
        &'a self,
        of: Option<&'a Scope>,
        now: Time,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<BoxedEvent>, StoreError>> {
        let of = of.cloned();
        self.read(move |conn| event::in_box(conn, of.as_ref(), now, limit))
    }
}

impl Lists for SqliteStore {
    fn enroll(&self, new: NewWorker) -> Boxed<'_, Result<Worker, StoreError>> {
        Box::pin(self.enrolls(new))
    }

    fn take<'a>(&'a self, by: &'a Worker, room: Room) -> Boxed<'a, Result<Taken, StoreError>> {
        Box::pin(self.takes(by, room))
    }

    fn release(&self, claim: Claim, left: Left) -> Appended {
        let released = claim.clone();
        let released = self.write_work(move |conn, _| seat::release(conn, &released, &left));
        Box::pin(async move {
            let released = released.await;
            // Others may lock the session from here on.
            drop(claim);
            released.map(drop)
        })
    }

    fn wakes(&self, by: &Worker) -> BoxStream<'static, Wake> {
        let looks = Looks {
            of: Arc::downgrade(&self.inner),
            new_work: self.inner.new_work.clone(),
            by: by.no,
            seen: -1,
            wakes: BTreeSet::new(),
        };
        unfold(looks, Looks::next).boxed()
    }

    fn sessions<'a>(
        &'a self,
        query: &'a SessionQuery,
    ) -> Boxed<'a, Result<Vec<SessionInfo>, StoreError>> {
        Box::pin(async move {
            let (wanted, held) = (query.clone(), self.inner.held.clone());
            let trust = self.trust();
            self.read(move |conn| {
                let mut found = lists::sessions(conn, &wanted, trust)?;
                for info in &mut found {
                    info.owner = owner::owner(held.path(), &info.id);
                }
                Ok(found)
            })
            .await
        })
    }

    fn damaged_lists(&self) -> Boxed<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let found = self.read(keep::damaged_lists).await?;
            if !found.is_empty() {
                self.inner.distrusts.store(true, Ordering::Relaxed);
            }
            Ok(found)
        })
    }
}

impl Blobs for SqliteStore {
    fn put_blob(&self, hash: [u8; 32], bytes: Arc<[u8]>) -> Boxed<'_, Result<(), StoreError>> {
        self.write(move |conn, _| {
            blob::put(conn, &hash, &bytes)?;
            Ok(Ok(()))
        })
    }

    fn blob<'a>(&'a self, hash: &'a [u8; 32]) -> Boxed<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        Box::pin(async move {
            let wanted = *hash;
            let found = self.read(move |conn| blob::bytes(conn, &wanted)).await?;
            found
                .map(|bytes| blob::checked(&self.place(), hash, bytes))
                .transpose()
        })
    }

    fn blob_now(&self, hash: &[u8; 32]) -> Result<Option<Arc<[u8]>>, StoreError> {
        let found = self.inner.readers.now(|conn| blob::bytes(conn, hash));
        self.inner
            .whole(found)?
            .map(|bytes| blob::checked(&self.place(), hash, bytes))
            .transpose()
    }

    fn drop_blobs(&self, hashes: Vec<[u8; 32]>) -> Boxed<'_, Result<u64, StoreError>> {
        self.write(move |conn, _| {
            let mut gone = 0;
            for hash in hashes {
                gone += conn
                    .prepare_cached("DELETE FROM blob WHERE hash = ?1")?
                    .execute([hash])?;
            }
            Ok(Ok(gone as u64))
        })
    }
}

impl Memories for SqliteStore {
    fn remember(&self, new: NewMemory) -> Boxed<'_, Result<u64, StoreError>> {
        self.write(move |conn, _| memory::remember(conn, &new))
    }

    fn memories(&self, query: MemoryQuery) -> Boxed<'_, Result<Vec<Memory>, StoreError>> {
        self.read(move |conn| memory::memories(conn, &query))
    }

    fn rate_memory(
        &self,
        id: u64,
        rated: Rated,
        by_person: bool,
    ) -> Boxed<'_, Result<bool, StoreError>> {
        self.write(move |conn, _| memory::rate(conn, id, &rated, by_person))
    }

    fn forget_memories(&self, ids: Vec<u64>) -> Boxed<'_, Result<u64, StoreError>> {
        self.write(move |conn, _| memory::forget(conn, &ids))
    }
}

/// The source of hints for one worker: looks for messages that were delivered. It does not keep the store open while it waits.
struct Looks {
    of: Weak<Inner>,
    new_work: Arc<Notify>,
    by: u64,
    /// Number of the newest message that was seen.
    seen: i64,
    /// Hints that were not read yet.
    wakes: BTreeSet<Wake>,
}

impl Looks {
    /// Returns the next hint; `None` once the store is closed.
    async fn next(mut self) -> Option<(Wake, Self)> {
        let new_work = self.new_work.clone();
        loop {
            let new_work = new_work.notified();
            tokio::pin!(new_work);
            // Registered before the look, so that nothing between the look and the wait is missed.
            new_work.as_mut().enable();
            let store = SqliteStore {
                inner: self.of.upgrade()?,
            };
            // A store that cannot be read now is read again next time. The next write reports the error.
            if let Ok((seen, wakes)) = store.delivered(self.by, self.seen).await {
                self.seen = seen;
                self.wakes.extend(wakes);
            }
            drop(store);
            if let Some(wake) = self.wakes.pop_first() {
                return Some((wake, self));
            }
            // Hints are as late as the disk, which does not depend on the clock of the sessions.
            let _ = tokio::time::timeout(LOOK, new_work).await;
        }
    }
}

impl SqliteStore {
    /// Returns hints about messages after number `after`, and the number of the newest message.
    async fn delivered(&self, by: u64, after: i64) -> Result<(i64, BTreeSet<Wake>), StoreError> {
        let found = self
            .read(move |conn| seat::delivered(conn, by, after))
            .await?;
        // An owner that waits calls this regularly, so a removed journal is noticed here. The empty write makes the writer restore
        // it.
        if let Some(guard) = &self.inner.guard
            && !guard.has_journal()
        {
            self.write(|_, _| Ok(Ok(()))).await?;
        }
        Ok(found)
    }
}

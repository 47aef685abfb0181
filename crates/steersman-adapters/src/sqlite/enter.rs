//! Entry into a store: one process enters at a time, and all writers have the same journal.
//!
//! SQLite finds its journal (`NAME-wal`) and the index of the journal that processes share (`NAME-shm`) by their names. If one of
//! them is removed, a process that has it open continues in a file without a name, and a kill loses its content. The next process
//! to open the store makes another journal, and neither process sees what the other wrote.
//!
//! So the lock file on the name of a store records the journal of the writers. A process that enters while writers live has to
//! find that journal in its place. A writer checks that the journal is in its place before each transaction, and again after it
//! before the transaction is acknowledged. A writer whose journal lost its name restores the name.

use super::error::io;
use super::file::{Held, Inode, beside, inode, inode_of, one_name};
use super::home::{Home, Put};
use super::owner;
use crate::regular;
use rusqlite::Connection;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steersman_runtime::store::StoreError;

/// Lock file in the folder of lock files, held by each handle that has the store open for writing under this name. It records the
/// journal and index of the writers.
const OPEN: &str = ".open";

/// Lock file next to [`OPEN`], held while a process enters. Without it, a process that is about to be refused could be taken for
/// a writer.
const GATE: &str = ".gate";

/// Pause between two tries to enter.
const PAUSE: Duration = Duration::from_millis(2);

/// The files that have the names of a store's journal and its index; `None` means that no file has the name.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Journal {
    file: Option<Inode>,
    index: Option<Inode>,
}

impl Journal {
    pub(super) fn of(store: &Path) -> Self {
        let at = |ending| inode(&beside(store, ending)).ok();
        Self {
            file: at("-wal"),
            index: at("-shm"),
        }
    }

    /// Formats device and inode of the store's file and of both files as in the lock file.
    fn text(self, store: &Path) -> String {
        let says = |file: Option<Inode>| {
            file.map_or_else(
                || "none".to_owned(),
                |(device, inode)| format!("{device}:{inode}"),
            )
        };
        let store = says(inode(store).ok());
        format!(
            "store {store} journal {} index {}\n",
            says(self.file),
            says(self.index)
        )
    }
}

/// Reason why a process cannot enter yet.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Wait {
    /// Another process enters, or works on the store alone.
    Gate,
    /// Another process has the file open under another name, or the lock file or the store's file was replaced meanwhile.
    Name,
    /// Other processes write, and their journal is not in its place. A process that ends removes its journal before it releases
    /// the lock on the name, so this may pass.
    Journal,
}

impl Wait {
    /// Number of tries after which the reason becomes an error, each after a [`PAUSE`].
    fn tries(self) -> u32 {
        match self {
            Self::Gate => 5_000,
            Self::Name => 500,
            Self::Journal => 1_000,
        }
    }

    fn refused(self, path: &Path) -> StoreError {
        let why = match self {
            Self::Gate => "another process is opening it, or works on it alone; try again".to_owned(),
            Self::Name => {
                "another process has this file open under another name, or the folder with its locks was removed \
                 meanwhile; end that process first"
                    .to_owned()
            }
            Self::Journal => format!(
                "the file, its journal {} or the index of that was removed or replaced while another process has it open; end \
                 that process first, but do not kill it: at its end it saves all that was acknowledged",
                beside(path, "-wal").display()
            ),
        };
        io(path, Error::other(why))
    }
}

/// Repeats `run` until it succeeds or fails, or until it was refused too often for the same reason.
fn patiently<T>(
    path: &Path,
    mut run: impl FnMut() -> Result<Result<T, Wait>, StoreError>,
) -> Result<T, StoreError> {
    let mut tries = [0; 3];
    loop {
        let wait = match run()? {
            Ok(done) => return Ok(done),
            Err(wait) => wait,
        };
        tries[wait as usize] += 1;
        if tries[wait as usize] > wait.tries() {
            return Err(wait.refused(path));
        }
        std::thread::sleep(PAUSE);
    }
}

/// The right to enter a store, held by one process at a time until it has the journal open.
pub(super) struct Entry {
    held: Arc<Held>,
    lock: Option<Lock>,
    /// Text of the lock file about the journal of the other writers; `None` means that no other writer is known.
    others: Option<String>,
    /// Lock that keeps others from entering. `None` means that a reader found no gate, may not read it, or that the file system
    /// has no locks.
    _gate: Option<File>,
}

impl Entry {
    /// Enters to write: takes the locks on the file itself and on the name by which it is open.
    pub(super) fn write(held: &Arc<Held>) -> Result<Self, StoreError> {
        let path = held.path();
        let failed = |e| io(path, e);
        one_name(path)?;
        let folder = owner::folder(path);
        // A killed process may have been starting a program. Then its child holds the locks until it executes that program.
        patiently(path, || {
            let Some(gate) = gate(&folder)? else {
                return Ok(Err(Wait::Gate));
            };
            let name = folder.join(OPEN);
            let file = lock_file(&name)?;
            let others = lock_or_read(&file, &folder)?;
            let ours = held.file().map_err(failed)?;
            // A handle of this process has the file open while nobody locks its name: the lock folder was removed. Asking for an
            // exclusive lock would release the shared lock of that handle, so it is not asked for.
            if others.is_none() && (held.has_writers() || !locked(ours, path)?) {
                held.unlock_if_unused();
                return Ok(Err(Wait::Name));
            }
            let place = inode_of(&file).map_err(failed)?;
            if others
                .as_ref()
                .is_some_and(|theirs| !is_there(theirs, path))
            {
                return Ok(Err(Wait::Journal));
            }
            if inode(&name).ok() != Some(place) || !held.is_there() {
                held.unlock_if_unused();
                return Ok(Err(Wait::Name));
            }
            let shared = held.share().and_then(|()| {
                let lock = Lock {
                    held: held.clone(),
                    file,
                    place,
                };
                lock.file.try_lock_shared().map(|()| lock)
            });
            let lock = match shared {
                Ok(lock) => lock,
                Err(TryLockError::WouldBlock) => return Ok(Err(Wait::Name)),
                Err(TryLockError::Error(e)) => return Err(failed(e)),
            };
            Ok(Ok(Self {
                held: held.clone(),
                lock: Some(lock),
                others,
                _gate: Some(gate),
            }))
        })
    }

    /// Enters to read. A user who may not read the locks enters without them, because such a user cannot make a journal either.
    pub(super) fn read(held: &Arc<Held>) -> Result<Self, StoreError> {
        let path = held.path();
        let folder = owner::folder(path);
        let entry = |others, gate| Self {
            held: held.clone(),
            lock: None,
            others,
            _gate: gate,
        };
        patiently(path, || {
            let Some(gate) = lock_to_read(&folder.join(GATE))? else {
                return Ok(Ok(entry(None, None)));
            };
            match gate.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Err(Wait::Gate)),
                // The file system has no locks.
                Err(TryLockError::Error(_)) => return Ok(Ok(entry(None, None))),
            }
            let Some(file) = lock_to_read(&folder.join(OPEN))? else {
                return Ok(Ok(entry(None, Some(gate))));
            };
            let others = lock_or_read(&file, &folder)?;
            if others
                .as_ref()
                .is_some_and(|theirs| !is_there(theirs, path))
            {
                return Ok(Err(Wait::Journal));
            }
            Ok(Ok(entry(others, Some(gate))))
        })
    }

    /// Returns true if the writers' journal is still in its place after the first connection opened the journal, or if no other
    /// writer is known. If false, the last writer may have ended and removed the journal; then the caller enters again.
    pub(super) fn is_journal_unchanged(&self) -> bool {
        let theirs = self.others.as_ref();
        theirs.is_none_or(|theirs| is_there(theirs, self.held.path()))
    }

    /// Lets others enter, and guards the journal that is open now.
    pub(super) fn guard(self) -> Result<Guard, StoreError> {
        let path = self.held.path();
        let failed = |e| io(path, e);
        let journal = Journal::of(path);
        let lock = self
            .lock
            .ok_or_else(|| failed(Error::other("it was not entered for writing")))?;
        let is_first = self.others.is_none();
        let theirs = self.others.unwrap_or_else(|| journal.text(path));
        let file = regular::read(&beside(path, "-wal"));
        if cfg!(unix) {
            let is_ours = |file: &File| inode_of(file).ok() == journal.file;
            if theirs != journal.text(path) || !file.as_ref().is_ok_and(is_ours) {
                return Err(Wait::Journal.refused(path));
            }
            // Only the first writer records its journal. If a kill cuts the write short, no writer is left, and the next one
            // records its own journal.
            if is_first {
                lock.write_journal_ids(&theirs).map_err(failed)?;
            }
        }
        Ok(Guard {
            lock,
            journal,
            file: file.map_err(failed)?,
        })
    }
}

/// Returns the text of the lock file about the journal if another handle has the file locked. Otherwise locks the file and
/// returns `None`.
fn lock_or_read(file: &File, folder: &Path) -> Result<Option<String>, StoreError> {
    if locked(file, folder)? {
        return Ok(None);
    }
    let mut says = String::new();
    if cfg!(unix) {
        let mut file = file;
        let read = file.read_to_string(&mut says);
        read.map_err(|e| io(folder, e))?;
    }
    Ok(Some(says))
}

/// Returns true if the journal that a text of the lock file describes is in its place.
fn is_there(journal: &str, store: &Path) -> bool {
    !cfg!(unix) || Journal::of(store).text(store) == journal
}

fn locked(file: &File, place: &Path) -> Result<bool, StoreError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(e)) => Err(io(place, e)),
    }
}

/// Takes the gate, which keeps others from entering; returns `None` if another process holds it.
fn gate(folder: &Path) -> Result<Option<File>, StoreError> {
    std::fs::create_dir_all(folder).map_err(|e| io(folder, e))?;
    let gate = lock_file(&folder.join(GATE))?;
    Ok(locked(&gate, folder)?.then_some(gate))
}

/// Holds the gate of a store that does not exist yet while `run` runs, so that no other process enters.
pub(super) fn before_all<T>(
    store: &Path,
    run: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let folder = owner::folder(store);
    let gate = patiently(store, || Ok(gate(&folder)?.ok_or(Wait::Gate)))?;
    let done = run();
    drop(gate);
    done
}

/// Opens a lock file for reading; returns `None` if there is none or this user may not read it.
fn lock_to_read(path: &Path) -> Result<Option<File>, StoreError> {
    match regular::read(path) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == ErrorKind::InvalidInput => Err(io(path, e)),
        Err(_) => Ok(None),
    }
}

fn lock_file(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    regular::open(path, &mut options).map_err(|e| io(path, e))
}

/// The locks of one handle that writes.
struct Lock {
    held: Arc<Held>,
    file: File,
    /// Identity of the lock file `.open` when it was locked. Another file at its path means that the lock guards nothing.
    place: Inode,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.held.unshare();
    }
}

impl Lock {
    fn write_journal_ids(&self, journal: &str) -> std::io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(journal.as_bytes())
    }
}

/// The files that a handle has to find in their places as long as it writes. It is dropped after the connections of the handle.
pub(super) struct Guard {
    lock: Lock,
    journal: Journal,
    /// The open journal, which stays readable if its name is removed.
    file: File,
}

impl Guard {
    pub(super) fn path(&self) -> &Path {
        self.lock.held.path()
    }

    /// Returns an error if the file, the lock on its name or its journal is no longer in its place: another process would find
    /// other files there, and lines written here may be lost.
    pub(super) fn still(&self) -> Result<(), StoreError> {
        self.is_there()?;
        if !cfg!(unix) {
            return Ok(());
        }
        let name = owner::folder(self.path()).join(OPEN);
        if inode(&name).ok() != Some(self.lock.place) {
            return Err(self.gone("the folder with its locks"));
        }
        if !self.has_journal() {
            return Err(self.gone("its journal"));
        }
        Ok(())
    }

    /// Returns an error if another file, or none, is at the path of the store.
    pub(super) fn is_there(&self) -> Result<(), StoreError> {
        if self.lock.held.is_there() {
            return Ok(());
        }
        Err(self.gone("the file"))
    }

    fn gone(&self, what: &str) -> StoreError {
        let what =
            format!("{what} was removed or replaced while it was open; nothing more is written");
        io(self.path(), Error::other(what))
    }

    /// Returns true if the journal and its index are at their paths.
    pub(super) fn has_journal(&self) -> bool {
        !cfg!(unix) || Journal::of(self.path()) == self.journal
    }

    /// Restores the name of the journal with a copy of its bytes, so that a kill from then on loses nothing that was
    /// acknowledged. This process writes nothing more, and no other process enters while it lives. The copy is put next to the
    /// file that the journal belongs to, in the folder where that file is now, and never next to another file. Returns the error
    /// to report: the cause, and the result of the copy.
    pub(super) fn put_back(&self, conn: &Connection) -> StoreError {
        let held = &self.lock.held;
        let home = held.home();
        let place = home.as_ref().and_then(Home::path);
        let place = place.unwrap_or_else(|| self.path().to_owned());
        let journal = beside(&place, "-wal");
        let journal = journal.display();
        let became = match self.copy_back(conn, home.as_ref()) {
            Ok(Put::Beside) => "all that was acknowledged is in the file and its journal; end this process before you open \
                                the store again"
                .to_owned(),
            Ok(Put::Taken) => format!(
                "another program made a journal in its place, so what was acknowledged last is in neither: move {journal} \
                 away, and then end this process, which puts its own there"
            ),
            Ok(Put::Nowhere) => "its journal is not copied next to another file, and the file in its place now stays as it is; \
                                 end this process before you open the store again: it moves what was acknowledged last into \
                                 its own file, if that was not deleted"
                .to_owned(),
            Err(e) => format!(
                "it could not be put back ({e}), so a kill of this process loses what was acknowledged last: make room, and \
                 then end the process"
            ),
        };
        let what = if held.is_there() {
            format!("its journal {journal} or the index of it was removed or replaced")
        } else if home.is_some() {
            format!("the file was moved to {}", place.display())
        } else {
            "the file was removed, or moved to where it is not found,".to_owned()
        };
        let what = format!("{what} while it was open; nothing more is written; {became}");
        io(self.path(), Error::other(what))
    }

    fn copy_back(&self, conn: &Connection, home: Option<&Home>) -> std::io::Result<Put> {
        let Some(home) = home else {
            return Ok(Put::Nowhere);
        };
        if home.inode("-wal") == self.journal.file {
            return Ok(Put::Beside);
        }
        // During the copy no process that has the same journal may write to it or restart it.
        let is_ours = conn.is_autocommit();
        if is_ours {
            conn.execute_batch("BEGIN IMMEDIATE")
                .map_err(Error::other)?;
        }
        let copied = self.copy(home);
        if is_ours {
            conn.execute_batch("ROLLBACK").map_err(Error::other)?;
        }
        copied
    }

    fn copy(&self, home: &Home) -> std::io::Result<Put> {
        let mut ours = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut ours)?;
        home.put(self.lock.held.inode(), "-wal", file, &ours)
    }

    /// Called when the last connection of this handle is about to close. If the journal is not in its place, the close neither
    /// moves it into the file, which others may have changed since, nor removes the file that has the journal's name. Exception:
    /// if the journal cannot be put next to the file, it is moved into the file, because its content would be lost otherwise.
    pub(super) fn ends(&self, conn: &Connection) {
        if self.has_journal() {
            return;
        }
        let _ = super::open::keep_journal(conn, self.path(), true);
        let put = self.copy_back(conn, self.lock.held.home().as_ref());
        if matches!(put, Ok(Put::Nowhere) | Err(_)) {
            let _ = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    }
}

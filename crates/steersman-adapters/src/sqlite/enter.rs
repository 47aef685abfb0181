//! The way into a store: one process enters at a time, and all writers have the same journal.
//!
//! SQLite finds its journal (`NAME-wal`) and the index of the journal that processes share (`NAME-shm`) by their names. Where one
//! of them is removed, a process that has them open goes on in a file without a name, which a kill loses; the next one to open the
//! store makes another, and neither knows what the other wrote. So the lock file on the name of a store says which journal
//! those that write have. Who enters while they live has to find that one there. Who writes looks whether it is there before each
//! transaction, and behind it before anybody is told, and gives a journal that lost its name its name back.

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

/// In the folder of lock files: held by everybody who has the store open for writing by this name. It says which journal.
const OPEN: &str = ".open";

/// Beside it: held while one enters, so that nobody takes who is refused for one who has it open.
const GATE: &str = ".gate";

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// The files in which a store's journal and its index lie; none: there is none.
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

    /// As the lock file says it: device and inode of each.
    fn text(self) -> String {
        let says = |file: Option<Inode>| {
            file.map_or_else(
                || "none".to_owned(),
                |(device, inode)| format!("{device}:{inode}"),
            )
        };
        format!("journal {} index {}\n", says(self.file), says(self.index))
    }
}

/// A reason to wait ahead of the way in.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Wait {
    /// Somebody enters, or works on the store alone.
    Gate,
    /// Others have the file open, and not by this name.
    Name,
    /// Others write, and their journal is not there. One that ends removes its journal before it lets go of the name.
    Journal,
}

impl Wait {
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
                "its journal {} or the index of it was removed or replaced while another process has it open; end that \
                 process first: unless it is killed, it leaves all that was acknowledged",
                beside(path, "-wal").display()
            ),
        };
        io(path, Error::other(why))
    }
}

/// Tries until it is done or one reason lasts too long.
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

/// Being in the way that one at a time goes: held until the journal is open.
pub(super) struct Entry {
    held: Arc<Held>,
    lock: Option<Lock>,
    /// The journal of the others that write; none: nobody does.
    others: Option<String>,
    /// None where nobody ever wrote, or this user may not know who does.
    _gate: Option<File>,
}

impl Entry {
    /// Enters to write: takes the locks on the file itself and on the name by which it is open.
    pub(super) fn write(held: &Arc<Held>) -> Result<Self, StoreError> {
        let path = held.path();
        let failed = |e| io(path, e);
        one_name(path)?;
        let folder = owner::folder(path);
        // A process that was killed may have been starting a program, which holds its locks until it has become that.
        patiently(path, || {
            let Some(gate) = gate(&folder)? else {
                return Ok(Err(Wait::Gate));
            };
            let name = folder.join(OPEN);
            let file = lock_file(&name)?;
            let others = others(&file, &folder)?;
            let ours = held.file().map_err(failed)?;
            if others.is_none() && !locked(ours, path)? {
                held.let_go();
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
                held.let_go();
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

    /// Enters to read. Who may not look into the folder of locks cannot make a journal either.
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
                // A file system without locks.
                Err(TryLockError::Error(_)) => return Ok(Ok(entry(None, None))),
            }
            let Some(file) = lock_to_read(&folder.join(OPEN))? else {
                return Ok(Ok(entry(None, Some(gate))));
            };
            let others = others(&file, &folder)?;
            if others
                .as_ref()
                .is_some_and(|theirs| !is_there(theirs, path))
            {
                return Ok(Err(Wait::Journal));
            }
            Ok(Ok(entry(others, Some(gate))))
        })
    }

    /// Returns true if the journal that the first connection opened is that of the writers. The last writer may have ended meanwhile,
    /// and its journal with it; then the caller enters again.
    pub(super) fn is_right(&self) -> bool {
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
        let theirs = self.others.unwrap_or_else(|| journal.text());
        let file = regular::read(&beside(path, "-wal"));
        if cfg!(unix) {
            let is_ours = |file: &File| inode_of(file).ok() == journal.file;
            if theirs != journal.text() || !file.as_ref().is_ok_and(is_ours) {
                return Err(Wait::Journal.refused(path));
            }
            // Only the first of them writes it: nobody is there yet who would be taken for one without a journal if that is cut.
            if is_first {
                lock.says(&theirs).map_err(failed)?;
            }
        }
        Ok(Guard {
            lock,
            journal,
            file: file.map_err(failed)?,
        })
    }
}

/// The journal that the lock file names while somebody has it locked; none: nobody has.
fn others(file: &File, folder: &Path) -> Result<Option<String>, StoreError> {
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

fn is_there(journal: &str, store: &Path) -> bool {
    !cfg!(unix) || Journal::of(store).text() == journal
}

fn locked(file: &File, place: &Path) -> Result<bool, StoreError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(e)) => Err(io(place, e)),
    }
}

/// Nobody else enters while it is held; none: somebody does.
fn gate(folder: &Path) -> Result<Option<File>, StoreError> {
    std::fs::create_dir_all(folder).map_err(|e| io(folder, e))?;
    let gate = lock_file(&folder.join(GATE))?;
    Ok(locked(&gate, folder)?.then_some(gate))
}

/// Does something with a store that is not there yet while nobody enters.
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

/// None where there is none, or this user may not read it.
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
    /// The file on whose name it is.
    place: Inode,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.held.unshare();
    }
}

impl Lock {
    fn says(&self, journal: &str) -> std::io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(journal.as_bytes())
    }
}

/// The files that a handle has to find in their places as long as it writes. It is dropped behind its connections.
pub(super) struct Guard {
    lock: Lock,
    journal: Journal,
    /// The journal, whatever became of its name.
    file: File,
}

impl Guard {
    pub(super) fn path(&self) -> &Path {
        self.lock.held.path()
    }

    /// Refuses to go on if the file, the lock on its name or its journal is no longer in its place: another process would find
    /// other files there, and what is written here may be lost.
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

    /// Refuses to go on if another file, or none, is at the path of the store.
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

    /// Gives the journal its name back, as a copy: whoever is killed from here on leaves all that was acknowledged. Nothing more is
    /// written by this process, and no other enters while it lives. The copy lies beside the file that the journal belongs to, wherever
    /// that is now, and never beside another one. Says what was the matter, and what became of it.
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
            Ok(Put::Nowhere) => "its journal is put beside no other file, and what lies in its place now is left as it is; \
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
        // Nobody who has the same journal writes meanwhile, or begins it anew.
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

    /// The last connection of this handle is about to close. One whose journal is not in its place neither moves it into the
    /// file, which others may have changed since, nor removes what has the name. Only where the journal cannot be put beside the file,
    /// what is in it would be lost otherwise.
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

//! Owners of sessions. An owner holds an operating-system lock on a file next to the store. The lock ends with the process,
//! however that ends, so the next claim is granted immediately.

use super::error::io;
use super::file::{Inode, beside, inode, inode_of};
use crate::regular;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use steersman_runtime::store::{StoreError, bounds};

/// Lock on a session, held as long as the owner lives. Dropping it removes the lock file. A lock file that a killed process left
/// is reused by the next owner.
pub(super) struct OwnerLock {
    file: File,
    place: Inode,
    path: PathBuf,
}

impl Drop for OwnerLock {
    fn drop(&mut self) {
        // The file is removed while it is still locked, so a process that opened it meanwhile finds it out of its place. Another
        // file at the path belongs to another process and stays.
        if self.still() {
            let _ = std::fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

impl OwnerLock {
    /// Returns true if the lock file is still at its path. Otherwise another process can take the session.
    pub(super) fn still(&self) -> bool {
        inode(&self.path).is_ok_and(|there| there == self.place)
    }
}

/// Returns the folder of lock files of a store.
pub(super) fn folder(store: &Path) -> PathBuf {
    beside(store, ".owners")
}

/// Returns the lock file of a session. An id that is empty, too long or could lead out of the folder is replaced by its hash;
/// stores made before ids were bounded may hold such ids.
fn file_of(folder: &Path, session: &str) -> PathBuf {
    let leads_out = session.starts_with('.') || session.contains(['/', '\\', '\0']);
    if leads_out || session.is_empty() || session.len() > bounds::SESSION_ID {
        return folder.join(blake3::hash(session.as_bytes()).to_hex().as_str());
    }
    folder.join(session)
}

/// Takes the lock of a session. If another process holds it, returns [`StoreError::Owned`] with the id of that process, or
/// `unknown`.
pub(super) fn lock(store: &Path, session: &str) -> Result<OwnerLock, StoreError> {
    let folder = folder(store);
    std::fs::create_dir_all(&folder).map_err(|e| io(&folder, e))?;
    let path = file_of(&folder, session);
    // A process that lists sessions holds each lock for a moment, to see if the session has an owner.
    let mut tries = 5;
    // A killed owner may have been starting a program. Then its child holds the lock until it executes that program.
    let mut tries_of_the_dead = 500;
    loop {
        let (mut file, locked) = open_and_lock(&path)?;
        match locked {
            Ok(()) if in_place(&file, &path) => return owned(file, path),
            // The file was removed between opening and locking.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if tries > 0 => {
                tries -= 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                let process = process(&mut file);
                if tries_of_the_dead == 0 || lives(&process) {
                    return Err(StoreError::Owned {
                        session: session.into(),
                        process,
                    });
                }
                tries_of_the_dead -= 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::Error(e)) => return Err(io(&path, e)),
        }
    }
}

/// Takes the lock of a session, or returns `None` if it is held.
pub(super) fn try_lock(store: &Path, session: &str) -> Result<Option<OwnerLock>, StoreError> {
    let folder = folder(store);
    std::fs::create_dir_all(&folder).map_err(|e| io(&folder, e))?;
    let path = file_of(&folder, session);
    let (file, locked) = open_and_lock(&path)?;
    match locked {
        Ok(()) if in_place(&file, &path) => owned(file, path).map(Some),
        Ok(()) | Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(io(&path, e)),
    }
}

/// Opens a lock file and tries to lock it.
fn open_and_lock(path: &Path) -> Result<(File, Result<(), TryLockError>), StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = regular::open(path, &mut options).map_err(|e| io(path, e))?;
    let locked = file.try_lock();
    Ok((file, locked))
}

/// Writes the id of this process into a file that it has locked.
fn owned(mut file: File, path: PathBuf) -> Result<OwnerLock, StoreError> {
    let written = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(|e| io(&path, e))?;
    let place = inode_of(&file).map_err(|e| io(&path, e))?;
    Ok(OwnerLock { file, place, path })
}

fn process(file: &mut File) -> String {
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => "unknown".to_owned(),
    }
}

/// Returns true if the process with this id is alive, as far as this computer reports it.
#[cfg(unix)]
fn lives(process: &str) -> bool {
    let id = process
        .parse()
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    // a process of another user cannot be signalled, but it is alive
    id.is_none_or(|id| rustix::process::test_kill_process(id) != Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
fn lives(_: &str) -> bool {
    true
}

/// Returns true if the file at a path is this open file.
pub(super) fn in_place(file: &File, path: &Path) -> bool {
    inode_of(file).is_ok_and(|ours| inode(path).is_ok_and(|there| ours == there))
}

/// Returns the id of the process that owns a session now; `None` if the session has no owner or its lock file cannot be read.
/// Looks at this session only: a process may own thousands.
pub(super) fn owner(store: &Path, session: &str) -> Option<String> {
    let mut file = regular::read(&file_of(&folder(store), session)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(process(&mut file)),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

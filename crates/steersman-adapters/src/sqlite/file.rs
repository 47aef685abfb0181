//! Identity of a store's file under any name, and the rule that a file is open under only one name at a time.
//!
//! SQLite keeps a journal next to the *name* of a file. Two names of one file (hard links, bind mounts of a file, a file
//! renamed while it is open) mean two journals, and lines that were acknowledged under one name are not seen under the other.
//! So a writer holds a lock on the file itself, and is refused while another process holds it under another name.

use super::error::io;
use super::home::Home;
use super::schema::BEGINNING;
use crate::regular;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use steersman_runtime::store::StoreError;

/// Device and inode: identity of a file while its file system is mounted.
pub(super) type Inode = (u64, u64);

/// Identity of a file over reboots and remounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileId {
    inode: u64,
    /// Id of the file system as it reports it; 0 for systems that report the device number, which may change with a mount.
    system: u64,
    /// UUID of the file system, if available.
    uuid: Option<String>,
    /// Creation time of the file in nanoseconds, if known: inode numbers are reused.
    born: Option<u64>,
}

impl FileId {
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        let system = system(
            &rustix::fs::statfs(path)?,
            rustix::fs::statvfs(path)?.f_fsid,
        );
        Ok(Self::of_metadata(&std::fs::metadata(path)?, system))
    }

    #[cfg(unix)]
    pub(super) fn of_open(file: &File) -> std::io::Result<Self> {
        let system = system(
            &rustix::fs::fstatfs(file)?,
            rustix::fs::fstatvfs(file)?.f_fsid,
        );
        Ok(Self::of_metadata(&file.metadata()?, system))
    }

    #[cfg(unix)]
    fn of_metadata(found: &std::fs::Metadata, system: u64) -> Self {
        use std::os::unix::fs::MetadataExt;
        let born = found.created().ok();
        let born = born.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        Self {
            inode: found.ino(),
            system,
            uuid: uuid(found.dev()),
            born: born.map(|since| since.as_nanos() as u64),
        }
    }

    #[cfg(not(unix))]
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        std::fs::metadata(path).map(|_| Self::default())
    }

    #[cfg(not(unix))]
    pub(super) fn of_open(_: &File) -> std::io::Result<Self> {
        Ok(Self::default())
    }

    /// Returns true if both identify the same file.
    pub(super) fn is(&self, other: &Self) -> bool {
        let made_together = self.born.zip(other.born).is_none_or(|(a, b)| a == b);
        let uuids = self.uuid.as_ref().zip(other.uuid.as_ref());
        let on_one_system = match uuids.map(|(a, b)| a == b) {
            Some(true) => true,
            Some(false) if self.system == 0 => false,
            _ => self.system == other.system,
        };
        self.inode == other.inode && made_together && on_one_system
    }
}

/// Returns the id that a file system reports; 0 for XFS and F2FS, which report the number of the device.
#[cfg(target_os = "linux")]
fn system(of: &rustix::fs::StatFs, reported: u64) -> u64 {
    const XFS: i64 = 0x5846_5342;
    const F2FS: i64 = 0xf2f5_2010;
    #[expect(
        clippy::unnecessary_cast,
        reason = "the type differs between architectures"
    )]
    match of.f_type as i64 {
        XFS | F2FS => 0,
        _ => reported,
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn system(_: &rustix::fs::StatFs, reported: u64) -> u64 {
    reported
}

/// Returns the UUID of the file system on a device.
#[cfg(unix)]
fn uuid(device: u64) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let all = std::fs::read_dir("/dev/disk/by-uuid").ok()?;
    let mut all = all.filter_map(Result::ok);
    let found = all.find(|entry| {
        let disk = std::fs::metadata(entry.path());
        disk.is_ok_and(|disk| disk.rdev() == device)
    });
    found.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// Size and times of a file that SQLite reads without locks, because it is on a disk that is read-only here. Another system, or
/// another mount of the same disk, may still write to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unlocked {
    len: u64,
    changed: Option<(i64, i64)>,
    modified: Option<std::time::SystemTime>,
    has_journal: bool,
}

impl Unlocked {
    pub(super) fn of(store: &Path) -> std::io::Result<Self> {
        let found = std::fs::metadata(store)?;
        #[cfg(unix)]
        let changed = {
            use std::os::unix::fs::MetadataExt;
            Some((found.ctime(), found.ctime_nsec()))
        };
        #[cfg(not(unix))]
        let changed = None;
        Ok(Self {
            len: found.len(),
            changed,
            modified: found.modified().ok(),
            has_journal: beside(store, "-wal").exists(),
        })
    }

    pub(super) fn has_journal(&self) -> bool {
        self.has_journal
    }

    /// Returns an error if the file changed since this was made: data that was read meanwhile may mix two states.
    pub(super) fn is_still(&self, store: &Path) -> Result<(), StoreError> {
        if Self::of(store).map_err(|e| io(store, e))? == *self {
            return Ok(());
        }
        let why = "it is on a disk that is read-only here, and was changed from elsewhere while it was read; open it again";
        Err(io(store, Error::other(why)))
    }
}

/// Returns the inode of the file at a path.
#[cfg(unix)]
pub(super) fn inode(path: &Path) -> std::io::Result<Inode> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

#[cfg(unix)]
pub(super) fn inode_of(file: &File) -> std::io::Result<Inode> {
    use std::os::unix::fs::MetadataExt;
    file.metadata().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
pub(super) fn inode(path: &Path) -> std::io::Result<Inode> {
    std::fs::metadata(path).map(|_| (0, 0))
}

#[cfg(not(unix))]
pub(super) fn inode_of(_: &File) -> std::io::Result<Inode> {
    Ok((0, 0))
}

/// Resolves symlinks of a path, also if the file does not exist yet.
pub(super) fn real(path: &Path) -> Result<PathBuf, StoreError> {
    match std::fs::canonicalize(path) {
        Ok(real) => return Ok(real),
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(io(path, e)),
        Err(_) => {}
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = std::fs::canonicalize(folder).map_err(|e| io(path, e))?;
    let name = path
        .file_name()
        .ok_or_else(|| io(path, ErrorKind::InvalidInput.into()))?;
    Ok(folder.join(name))
}

/// Returns the path of a file next to the store, named after it.
pub(super) fn beside(store: &Path, ending: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Moves a file that is in the way to an unused name next to the store.
pub(super) fn put_aside(store: &Path, ending: &str) -> std::io::Result<()> {
    let names = (1..).map(|n| beside(store, &format!("{ending}.stray-{n}")));
    let mut free = names.filter(|name| std::fs::symlink_metadata(name).is_err());
    match free.next() {
        Some(free) => std::fs::rename(beside(store, ending), free),
        None => Ok(()),
    }
}

/// A store's file while this process has it open, shared by all its handles.
///
/// It is opened once and closed last: closing any descriptor of a file releases all locks that SQLite holds on it in the same
/// process. So nothing else here opens a store's file, and its bytes are read through this ([`Held::read`]).
pub(super) struct Held {
    /// Set until it is dropped.
    file: Option<File>,
    path: PathBuf,
    /// The folder of the file when it was opened; `None` if this user may not read it.
    home: Option<Home>,
    inode: Inode,
    /// The first [`BEGINNING`] bytes of the file when it was opened.
    beginning: Vec<u8>,
    /// Number of handles of this process that write.
    writers: Mutex<usize>,
}

/// All files that are open or being closed.
static ALL: Mutex<BTreeMap<Inode, Weak<Held>>> = Mutex::new(BTreeMap::new());

/// Notified when a file was closed.
static CLOSED: Condvar = Condvar::new();

impl Drop for Held {
    fn drop(&mut self) {
        // The next opener waits until the file is closed: closing this descriptor would release its locks.
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        self.file = None;
        all.remove(&self.inode);
        drop(all);
        CLOSED.notify_all();
    }
}

impl Held {
    /// Opens the file at a path without symlinks.
    pub(super) fn open(path: &Path, write: bool, make: bool) -> Result<Arc<Self>, StoreError> {
        let failed = |e| io(path, e);
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        while cfg!(unix)
            && let Ok(inode) = inode(path)
            && let Some(held) = all.get(&inode)
        {
            let Some(held) = held.upgrade() else {
                all = CLOSED.wait(all).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(all);
            if held.path == path {
                return Ok(held);
            }
            return Err(failed(Error::other(format!(
                "this process has the file open under another name, {}; close that first",
                held.path.display()
            ))));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(write).create(write && make);
        let file = regular::open(path, &mut options).map_err(failed)?;
        let inode = inode_of(&file).map_err(failed)?;
        if cfg!(unix) && all.contains_key(&inode) {
            // The descriptor stays open until the process ends: closing it would release the other handles' locks on the file.
            std::mem::forget(file);
            return Err(failed(Error::other(
                "another store was put into its place meanwhile; open it again",
            )));
        }
        let mut beginning = Vec::with_capacity(BEGINNING);
        let mut first = (&file).take(BEGINNING as u64);
        first.read_to_end(&mut beginning).map_err(failed)?;
        let held = Arc::new(Self {
            file: Some(file),
            path: path.to_owned(),
            home: Home::of(path).ok().filter(|home| home.holds(inode)),
            inode,
            beginning,
            writers: Mutex::default(),
        });
        all.insert(inode, Arc::downgrade(&held));
        Ok(held)
    }

    pub(super) fn file(&self) -> std::io::Result<&File> {
        self.file
            .as_ref()
            .ok_or_else(|| Error::other("it is closed"))
    }

    /// Reads bytes of the file from an offset; fewer at its end.
    #[cfg(unix)]
    pub(super) fn read(&self, from: u64, len: usize) -> std::io::Result<Vec<u8>> {
        use std::os::unix::fs::FileExt;
        let mut bytes = vec![0; len];
        let mut there = 0;
        while there < len {
            match self
                .file()?
                .read_at(&mut bytes[there..], from + there as u64)
            {
                Ok(0) => break,
                Ok(more) => there += more,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        bytes.truncate(there);
        Ok(bytes)
    }

    /// Reads bytes of the file from an offset. On these systems locks belong to a descriptor, not to the process.
    #[cfg(not(unix))]
    pub(super) fn read(&self, from: u64, len: usize) -> std::io::Result<Vec<u8>> {
        use std::io::{Seek, SeekFrom};
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(len as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[cfg(unix)]
    pub(super) fn may_be_written(&self) -> std::io::Result<()> {
        Ok(rustix::fs::access(
            &self.path,
            rustix::fs::Access::WRITE_OK,
        )?)
    }

    #[cfg(not(unix))]
    pub(super) fn may_be_written(&self) -> std::io::Result<()> {
        OpenOptions::new().append(true).open(&self.path).map(drop)
    }

    /// Returns the path of the file, without symlinks.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the first bytes of the file, as they were when this process opened it.
    pub(super) fn beginning(&self) -> &[u8] {
        &self.beginning
    }

    /// Returns true if this file is still at its path.
    pub(super) fn is_there(&self) -> bool {
        !cfg!(unix) || inode(&self.path).ok() == Some(self.inode)
    }

    /// Returns the present folder and name of the file; `None` if it is not found.
    pub(super) fn home(&self) -> Option<Home> {
        let found = || Home::found(self.file().ok()?);
        let is_home = |home: &Home| home.holds(self.inode);
        self.home
            .clone()
            .filter(is_home)
            .or_else(|| found().filter(is_home))
    }

    pub(super) fn inode(&self) -> Inode {
        self.inode
    }

    /// Adds a writing handle of this process; all of them share the lock on the file.
    pub(super) fn share(&self) -> Result<(), TryLockError> {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let file = self.file().map_err(TryLockError::Error)?;
        file.try_lock_shared()?;
        *writers += 1;
        Ok(())
    }

    /// Returns true if a handle of this process writes.
    pub(super) fn has_writers(&self) -> bool {
        *self.writers.lock().unwrap_or_else(PoisonError::into_inner) > 0
    }

    /// Removes a writing handle.
    pub(super) fn unshare(&self) {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        *writers -= 1;
        drop(writers);
        self.unlock_if_unused();
    }

    /// Releases the lock on the file if no handle of this process writes.
    pub(super) fn unlock_if_unused(&self) {
        let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        if *writers == 0
            && let Ok(file) = self.file()
        {
            // If this fails, closing the file releases the lock.
            let _ = file.unlock();
        }
    }
}

/// Refuses a file that has other names than this one: a journal next to another name would not be read.
#[cfg(unix)]
pub(super) fn one_name(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::MetadataExt;
    let links = std::fs::metadata(path).map_err(|e| io(path, e))?.nlink();
    let refused = |what: String| {
        Err(io(
            path,
            Error::other(format!(
                "{what}, and what was written under another name may be in a journal next to that name"
            )),
        ))
    };
    if links > 1 {
        return refused(format!(
            "the file has {links} names (hard links): remove the others, or work on a copy made by `steersman backup`"
        ));
    }
    if is_bound(path) {
        return refused(
            "the file alone is bound to this place (a bind mount): bind its folder instead"
                .to_owned(),
        );
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn one_name(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

/// Returns true if the file is a mount of its own.
#[cfg(target_os = "linux")]
fn is_bound(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let mount = |path: &Path| {
        let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
        // Old kernels do not report the mount id.
        (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id)
    };
    let folder = path.parent().and_then(mount);
    folder
        .zip(mount(path))
        .is_some_and(|(folder, file)| folder != file)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn is_bound(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::FileId;

    fn id(system: u64, uuid: Option<&str>, born: u64) -> FileId {
        FileId {
            inode: 7,
            system,
            uuid: uuid.map(str::to_owned),
            born: Some(born),
        }
    }

    /// A file system that reports its device number as its id has another id after a remount. A container may not see the UUID.
    #[test]
    fn a_file_is_the_same_after_a_remount_and_another_one_on_another_system() {
        let same = |a: &FileId, b: &FileId| a.is(b) && b.is(a);
        assert!(same(&id(0, None, 1), &id(0, Some("a"), 1)));
        assert!(same(&id(5, Some("a"), 1), &id(6, Some("a"), 1)));
        assert!(same(&id(5, None, 1), &id(5, Some("a"), 1)));
        assert!(!same(&id(0, Some("a"), 1), &id(0, Some("b"), 1)));
        assert!(!same(&id(0, None, 1), &id(0, None, 2)));
        // A snapshot of a volume has the inodes and times of the original, and an id of its own.
        assert!(!same(&id(5, None, 1), &id(6, None, 1)));
    }
}

//! The private folder of an attempt: the files that its program reads, and the one that it writes.
//!
//! All folders of a user are below one folder that nobody else may read. Next to each is a lock, held by the process that made it
//! and, as standard input, by the program. So a folder without a holder of its lock was left by a dead process whose program is
//! gone, too, and the next attempt that makes a folder removes it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ending of the names of locks.
const LOCK: &str = "lock";

/// The number of the next folder of this process.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A private folder. It is removed when this is dropped.
pub(super) struct Folder {
    path: PathBuf,
    lock: File,
}

impl Folder {
    /// Makes a folder, after those of dead processes were removed.
    pub(super) fn new(temporary: &Path) -> io::Result<Self> {
        let all = temporary.join(format!("steersman-{}", rustix::process::getuid().as_raw()));
        match DirBuilder::new().mode(0o700).create(&all) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let found = fs::symlink_metadata(&all)?;
        let is_ours = found.uid() == rustix::process::getuid().as_raw();
        if !found.is_dir() || !is_ours || found.mode() & 0o077 != 0 {
            let why = format!(
                "`{}` is no folder that only you may read: remove it",
                all.display()
            );
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        sweep(&all);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = all.join(format!("{}-{number}", std::process::id()));
            if let Some(lock) = locked(&path.with_extension(LOCK))? {
                let folder = Self { path, lock };
                DirBuilder::new().mode(0o700).create(&folder.path)?;
                return Ok(folder);
            }
        }
    }

    /// Writes a file for the program: the content of the artifact that it gets as this parameter.
    pub(super) fn give(&self, parameter: &str, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let folder = self.path.join("in").join(parameter);
        fs::create_dir_all(&folder)?;
        let path = folder.join(last_part(name));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(content)?;
        Ok(path)
    }

    /// Returns the path of the file that the program writes, in a folder that exists.
    pub(super) fn wanted(&self, name: &str) -> io::Result<PathBuf> {
        let folder = self.path.join("out");
        fs::create_dir_all(&folder)?;
        Ok(folder.join(last_part(name)))
    }

    /// Returns an empty standard input for the program, which holds the lock as long as the program has it.
    pub(super) fn input(&self) -> io::Result<Stdio> {
        Ok(self.lock.try_clone()?.into())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If a program that was killed still writes, the folder is left to the next one who sweeps.
        remove(&self.path);
    }
}

/// Reads a file that a program wrote. An error says what is wrong with it.
pub(super) fn written(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).expect("flags of the system fit");
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| match error.kind() {
        ErrorKind::NotFound => "it wrote no file at `{{ save }}`".to_owned(),
        _ => format!("the file that it wrote cannot be read: {error}"),
    })?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("what it made at `{{ save }}` is no file".to_owned());
    }
    let mut bytes = Vec::new();
    let read = file.take(most as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("the file that it wrote cannot be read: {error}"))?;
    if bytes.len() > most {
        let size = found.len().max(bytes.len() as u64);
        return Err(too_large("the file that it wrote", size, most));
    }
    Ok(bytes)
}

/// Says that a content is too large for an artifact.
pub(super) fn too_large(what: &str, size: u64, most: usize) -> String {
    format!("{what} has {size} bytes, more than {} MiB", most >> 20)
}

/// Returns the name of a file for an artifact of this name, which is a checked path of plain names.
fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Makes a lock and takes it. `None` if it exists already, or if a sweep has removed it meanwhile.
fn locked(path: &Path) -> io::Result<Option<File>> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
        made => drop(made?),
    }
    Ok(hold(path))
}

/// Takes the lock at this path, if nobody has it.
fn hold(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    file.try_lock().ok()?;
    let (ours, there) = (file.metadata().ok()?, fs::metadata(path).ok()?);
    ((ours.dev(), ours.ino()) == (there.dev(), there.ino())).then_some(file)
}

/// Removes the folders whose locks nobody has. What cannot be removed is left to the next sweep.
fn sweep(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let lock = entry.path();
        if lock.extension().is_some_and(|ending| ending == LOCK)
            && let Some(_held) = hold(&lock)
        {
            remove(&lock.with_extension(""));
        }
    }
}

/// Removes a folder, and then its lock.
fn remove(path: &Path) {
    let is_gone = match fs::remove_dir_all(path) {
        Ok(()) => true,
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    if is_gone {
        let _ = fs::remove_file(path.with_extension(LOCK));
    }
}

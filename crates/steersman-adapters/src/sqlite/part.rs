//! Files that are written completely before they get their name.

use rustix::fs::{AtFlags, Mode, OFlags, linkat, openat, renameat, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file in its final folder under a unique temporary name. It is deleted unless it is put in place. Its folder is held open,
/// so the file stays in that folder even if the folder is renamed.
pub(super) struct Part {
    folder: Arc<File>,
    /// The temporary name.
    aside: OsString,
    name: OsString,
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = unlinkat(&self.folder, &self.aside, AtFlags::empty());
    }
}

impl Part {
    /// Makes an empty file that is to be put at `place`.
    pub(super) fn of(place: &Path) -> Result<(Self, File)> {
        let name = place.file_name().ok_or(ErrorKind::InvalidInput)?;
        Self::within(&Arc::new(File::open(folder_of(place))?), name)
    }

    /// Makes an empty file in a folder that is open.
    pub(super) fn within(folder: &Arc<File>, name: &OsStr) -> Result<(Self, File)> {
        loop {
            let random = getrandom::u64().map_err(Error::other)?;
            let mut aside = name.to_owned();
            aside.push(format!(".part-{random:016x}"));
            match new(folder, &aside) {
                Ok(file) => {
                    let (folder, name) = (folder.clone(), name.to_owned());
                    return Ok((
                        Self {
                            folder,
                            aside,
                            name,
                        },
                        file,
                    ));
                }
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Returns the temporary path, in the folder of `place`.
    pub(super) fn path(&self, place: &Path) -> PathBuf {
        place.with_file_name(&self.aside)
    }

    /// Puts the file in its place, unless a file is there, also one that was put there meanwhile. The result survives a power
    /// cut.
    pub(super) fn put(self) -> Result<()> {
        let (folder, none) = (&self.folder, AtFlags::empty());
        // A kill between making a link and removing the temporary name would leave a file with two names.
        #[cfg(target_os = "linux")]
        match rustix::fs::renameat_with(
            folder,
            &self.aside,
            folder,
            &self.name,
            rustix::fs::RenameFlags::NOREPLACE,
        )
        .map_err(Error::from)
        {
            Ok(()) => return folder.sync_all(),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Err(e),
            // A file system that cannot do this.
            Err(_) => {}
        }
        match linkat(folder, &self.aside, folder, &self.name, none).map_err(Error::from) {
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::Unsupported
                ) =>
            {
                // A file system without hard links, such as FAT: the name is reserved first.
                new(folder, &self.name)?;
                self.replace()
            }
            linked => linked.and_then(|()| folder.sync_all()),
        }
    }

    /// Puts the file in its place, replacing any file there. The result survives a power cut.
    pub(super) fn replace(self) -> Result<()> {
        renameat(&self.folder, &self.aside, &self.folder, &self.name)?;
        self.folder.sync_all()
    }
}

/// Makes a file that must not exist yet.
fn new(folder: &File, name: &OsStr) -> Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::from_raw_mode(0o666))?.into())
}

/// Returns the folder part of a path.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Syncs a folder, so that names in it survive a power cut.
pub(super) fn sync(folder: &Path) -> Result<()> {
    File::open(folder)?.sync_all()
}

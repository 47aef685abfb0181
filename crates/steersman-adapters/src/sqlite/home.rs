//! Access to the folder of a store's file, also after the folder or the file was moved.
//!
//! A process opens its store by a path. While the store is open, its folder may be renamed, and another store may take its
//! place. So files that belong next to the store's file are not written by path. The folder is kept open as long as the file,
//! and files are put into that folder, even if it was moved, and only while it holds the store's file.

use super::file::Inode;
use super::part::{Part, folder_of};
use crate::regular;
use rustix::fs::{AtFlags, Mode, OFlags, openat, statat, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder that is open, and the name of a store's file in it.
#[derive(Clone)]
pub(super) struct Home {
    folder: Arc<File>,
    name: OsString,
}

/// Result of putting a file next to the store's file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// The file is in its place.
    Beside,
    /// A file of another program has the name, and stays.
    Taken,
    /// The store's file is not in the folder, or was not found, so nothing was put next to it.
    Nowhere,
}

impl Home {
    pub(super) fn of(path: &Path) -> Result<Self> {
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        Ok(Self {
            folder: Arc::new(File::open(folder_of(path))?),
            name: name.to_owned(),
        })
    }

    /// Returns the folder and name that the system reports for an open file.
    pub(super) fn found(file: &File) -> Option<Self> {
        Self::of(&reported_path(file)?).ok()
    }

    /// Returns true if the store's file is in the folder.
    pub(super) fn holds(&self, file: Inode) -> bool {
        self.inode("") == Some(file)
    }

    /// Returns the identity of the file that has the store's name with this ending; `None` if no file can be found under it.
    pub(super) fn inode(&self, ending: &str) -> Option<Inode> {
        let found = statat(&self.folder, self.named(ending), AtFlags::empty()).ok()?;
        Some((found.st_dev as u64, found.st_ino as u64))
    }

    /// Returns the present path of the store's file, if the system reports it.
    pub(super) fn path(&self) -> Option<PathBuf> {
        reported_path(&self.folder).map(|folder| folder.join(&self.name))
    }

    fn named(&self, ending: &str) -> OsString {
        let mut name = self.name.clone();
        name.push(ending);
        name
    }

    /// Reads a file next to the store's file; returns `None` if there is none.
    fn read(&self, name: &OsStr) -> Result<Option<Vec<u8>>> {
        // Without `NONBLOCK`, opening a named pipe would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let mut file = match openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        regular::judge(Path::new(name), &file.metadata()?)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Puts a copy of an open file next to the store's file `of`: its content is `bytes`, its permissions are those of `original`. An
    /// empty file in its place is replaced: a program that opened the store without writing made it. Any other file stays.
    pub(super) fn put(
        &self,
        of: Inode,
        ending: &str,
        original: &File,
        bytes: &[u8],
    ) -> Result<Put> {
        let name = self.named(ending);
        let is_empty = match self.read(&name)? {
            None => false,
            Some(there) if there.is_empty() => true,
            Some(there) if there == bytes => return Ok(Put::Beside),
            Some(_) => return Ok(Put::Taken),
        };
        let (part, mut copy) = Part::within(&self.folder, &name)?;
        copy.set_permissions(original.metadata()?.permissions())?;
        copy.write_all(bytes)?;
        copy.sync_all()?;
        // Another file may get the store's name meanwhile, so the store's file is checked right before and again after.
        if !self.holds(of) {
            return Ok(Put::Nowhere);
        }
        match if is_empty { part.replace() } else { part.put() } {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(Put::Taken),
            put => put?,
        }
        if self.holds(of) {
            return Ok(Put::Beside);
        }
        if self.inode(ending) == super::file::inode_of(&copy).ok() {
            unlinkat(&self.folder, name, AtFlags::empty()).map_err(Error::from)?;
        }
        Ok(Put::Nowhere)
    }
}

/// Returns the path that the system reports for an open file. If the file was deleted, nothing is at the reported path.
fn reported_path(file: &File) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

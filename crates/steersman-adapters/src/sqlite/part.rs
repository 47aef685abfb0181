//! Files that are written as a whole before they get their name.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A file beside the place where it is to lie, under a name that nobody else has. It goes unless it is put there.
pub(super) struct Part {
    path: PathBuf,
    place: PathBuf,
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Part {
    /// Makes it, empty.
    pub(super) fn of(place: &Path) -> std::io::Result<(Self, File)> {
        loop {
            let random = getrandom::u64().map_err(std::io::Error::other)?;
            let path = super::file::beside(place, &format!(".part-{random:016x}"));
            let mut options = OpenOptions::new();
            match options.read(true).write(true).create_new(true).open(&path) {
                Ok(file) => {
                    let place = place.to_owned();
                    return Ok((Self { path, place }, file));
                }
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it into its place if nothing lies there, also nothing that came meanwhile. It lies there behind a power cut, too.
    pub(super) fn put(self) -> std::io::Result<()> {
        match std::fs::hard_link(&self.path, &self.place) {
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::Unsupported
                ) =>
            {
                // A file system without links, FAT say: the name is taken first.
                File::create_new(&self.place)?;
                self.replace()
            }
            linked => linked.and_then(|()| sync(self.folder())),
        }
    }

    /// Puts it into its place, whatever lies there. It lies there behind a power cut, too.
    pub(super) fn replace(self) -> std::io::Result<()> {
        std::fs::rename(&self.path, &self.place)?;
        sync(self.folder())
    }

    fn folder(&self) -> &Path {
        match self.place.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }
}

/// Syncs a folder: names in it outlive a power cut.
pub(super) fn sync(folder: &Path) -> std::io::Result<()> {
    // Elsewhere a folder cannot be opened.
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

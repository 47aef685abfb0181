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

    /// Puts it into its place if nothing lies there, also nothing that came meanwhile.
    pub(super) fn put(self) -> std::io::Result<()> {
        std::fs::hard_link(&self.path, &self.place)
    }

    /// Puts it into its place, whatever lies there.
    pub(super) fn replace(self) -> std::io::Result<()> {
        std::fs::rename(&self.path, &self.place)
    }
}

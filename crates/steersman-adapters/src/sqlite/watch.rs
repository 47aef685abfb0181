//! Watches the folders of a store, so that a transaction looks up the files in them only after a change there.
//!
//! A lookup is several system calls on paths, which cost a tenth of a transaction. The system reports each file that is made,
//! removed or renamed in a watched folder before the call that did it returns, and asking for reports is one call.

use std::path::Path;

/// A watch over the folder of a store and the folder of its locks.
#[cfg(target_os = "linux")]
pub(super) struct Watch {
    folders: [std::path::PathBuf; 2],
    reports: Option<std::os::fd::OwnedFd>,
    /// True if both folders are watched.
    is_whole: bool,
}

#[cfg(target_os = "linux")]
impl Watch {
    /// Starts a watch. If the system grants none, [`Watch::is_quiet`] returns false each time.
    pub(super) fn begin(store: &Path) -> Self {
        use rustix::fs::inotify::{CreateFlags, init};
        let folder = super::part::folder_of(store);
        let mut watch = Self {
            folders: [folder.to_owned(), super::owner::folder(store)],
            reports: init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok(),
            is_whole: false,
        };
        watch.renew();
        watch
    }

    /// Watches the folders that have these names now. A watch is on a folder and not on its name, so another folder may have the
    /// name by now. Folders that are watched already stay watched.
    fn renew(&mut self) {
        use rustix::fs::inotify::{WatchFlags, add_watch};
        let of = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        let mut folders = self.folders.iter();
        self.is_whole = self
            .reports
            .as_ref()
            .is_some_and(|reports| folders.all(|folder| add_watch(reports, folder, of).is_ok()));
    }

    /// Returns true if nothing was reported since the last call, and consumes the reports. Returns false each time if the system
    /// grants no watch; each user has a limited number of them.
    pub(super) fn is_quiet(&mut self) -> bool {
        let is_quiet = self.is_whole && self.has_no_report();
        if !is_quiet {
            self.renew();
        }
        is_quiet
    }

    fn has_no_report(&self) -> bool {
        let Some(reports) = &self.reports else {
            return false;
        };
        let mut taken = [0_u8; 4096];
        let mut has_none = true;
        loop {
            match rustix::io::read(reports, &mut taken) {
                Err(rustix::io::Errno::AGAIN) => return has_none,
                Err(rustix::io::Errno::INTR) => {}
                Ok(1..) => has_none = false,
                Ok(0) | Err(_) => return false,
            }
        }
    }
}

/// No watch on this system, so each transaction looks up the files.
#[cfg(not(target_os = "linux"))]
pub(super) struct Watch;

#[cfg(not(target_os = "linux"))]
impl Watch {
    pub(super) fn begin(_: &Path) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the other system's watch has a state")]
    pub(super) fn is_quiet(&mut self) -> bool {
        false
    }
}

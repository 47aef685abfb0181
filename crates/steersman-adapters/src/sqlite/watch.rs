//! Watches the folders of a store, so that a transaction looks at the files in them only after something there changed.
//!
//! A look is several system calls on paths, which cost a tenth of a transaction. The system reports each file that is made, removed
//! or renamed in a watched folder before the call that did it returns, and asking for reports is one call.

use super::owner;
use super::part::folder_of;
use std::path::Path;

/// A watch over the folder of a store and the folder of its locks.
pub(super) struct Watch {
    #[cfg(target_os = "linux")]
    reports: Option<std::os::fd::OwnedFd>,
}

#[cfg(target_os = "linux")]
impl Watch {
    /// Begins to watch. Where the system grants no watch (each user has a limited number), nothing counts as quiet.
    pub(super) fn begin(store: &Path) -> Self {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let watched = || {
            let reports = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            let of = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF;
            for folder in [folder_of(store), &owner::folder(store)] {
                add_watch(&reports, folder, of)?;
            }
            rustix::io::Result::Ok(reports)
        };
        Self {
            reports: watched().ok(),
        }
    }

    /// Returns true if nothing was reported since the last call. Takes the reports.
    pub(super) fn is_quiet(&self) -> bool {
        let Some(reports) = &self.reports else {
            return false;
        };
        let mut taken = [0_u8; 4096];
        let mut is_quiet = true;
        loop {
            match rustix::io::read(reports, &mut taken) {
                Err(rustix::io::Errno::AGAIN) => return is_quiet,
                Err(rustix::io::Errno::INTR) => {}
                Ok(1..) => is_quiet = false,
                Ok(0) | Err(_) => return false,
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Watch {
    pub(super) fn begin(_: &Path) -> Self {
        Self {}
    }

    pub(super) fn is_quiet(&self) -> bool {
        false
    }
}

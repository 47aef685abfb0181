//! The place of the store. Only this module of the program opens one by itself.

use crate::error::CommandError;
use crate::locate;
use crate::printer::{Printer, yellow};
use crate::words::count;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steersman::runtime::store::StoreError;
use steersman_adapters::stores::Forgot;
use steersman_adapters::stores::{self, KeptStore, Site};
pub(crate) use steersman_adapters::stores::{ErasedContents, Garbage, Passed};

/// An open store with everything that its maintenance needs.
pub(crate) type Kept = Arc<dyn KeptStore>;

/// Returns the place of a store.
pub(crate) fn site(place: &Path) -> Result<Arc<dyn Site>, CommandError> {
    let site = stores::at(place);
    site.map_err(|unknown| {
        CommandError::usage(unknown.to_string()).hint("name another: --store FILE")
    })
}

/// Opens the store for reading: nothing is repaired, no key is needed.
pub(crate) fn look(place: &Path) -> Result<Kept, CommandError> {
    Ok(site(place)?.open(true)?)
}

/// Runs an operation that waits for disks and locks on a blocking thread.
async fn apart<T: Send + 'static>(
    place: &Path,
    run: impl FnOnce(&dyn Site) -> T + Send + 'static,
) -> Result<T, CommandError> {
    let site = site(place)?;
    let done = tokio::task::spawn_blocking(move || run(&*site)).await;
    done.map_err(|e| CommandError::store(e.to_string()))
}

/// Finds data that is no longer referenced, and deletes it if `delete` is true.
pub(crate) async fn garbage(
    place: &Path,
    delete: bool,
    erased: ErasedContents,
) -> Result<Result<Garbage, StoreError>, CommandError> {
    apart(place, move |site| site.collect_garbage(delete, &erased)).await
}

/// Deletes everything that nothing names any more, if there is anything. Then removes overwritten data from the journal.
pub(crate) async fn sweep(place: &Path, erased: ErasedContents) -> Result<Forgotten, CommandError> {
    apart(place, move |site| {
        // Only a deletion needs the store alone.
        let found = site.collect_garbage(false, &erased);
        let done = match found {
            Ok(found) if found.blobs > 0 => site.collect_garbage(true, &erased),
            found => found,
        };
        Forgotten {
            forgot: done.map(|done| Forgot {
                deleted: done.blobs,
                shared: done.shared,
            }),
            flushed: site.flush(),
        }
    })
    .await
}

/// Deletes contents that a session names, unless something else names them. Then removes overwritten data from the journal.
pub(crate) async fn forget(
    place: &Path,
    session: &str,
    contents: Vec<[u8; 32]>,
    passed: Passed,
) -> Result<Forgotten, CommandError> {
    let session = session.to_owned();
    apart(place, move |site| Forgotten {
        forgot: site.forget(&session, &contents, &passed),
        flushed: site.flush(),
    })
    .await
}

/// The results of [`forget`].
pub(crate) struct Forgotten {
    forgot: Result<Forgot, StoreError>,
    /// True if nothing that was overwritten is left in the journal.
    flushed: Result<bool, StoreError>,
}

impl Forgotten {
    /// Returns the number of deleted contents.
    pub(crate) fn deleted(&self) -> u64 {
        self.forgot.as_ref().map_or(0, |forgot| forgot.deleted)
    }

    /// Returns the number of contents that something else names, too.
    pub(crate) fn shared(&self) -> u64 {
        self.forgot.as_ref().map_or(0, |forgot| forgot.shared)
    }

    /// Tells what is still in the store. `again` is the command that deletes contents that are left.
    ///
    /// # Errors
    /// The contents were not deleted, or data that was overwritten may be left in the journal.
    pub(crate) fn tell(
        self,
        place: &Path,
        again: &str,
        printer: &Printer,
    ) -> Result<(), CommandError> {
        if let Ok(false) = self.flushed {
            printer.talk(yellow(&format!(
                "Another process reads {}: the overwritten texts leave its journal when that process ends.",
                locate::shown(place)
            )));
        }
        let left = |error: StoreError, left: &str| {
            CommandError::from(error).hint(format!("{left}; once the cause is gone: {again}"))
        };
        let forgot = self
            .forgot
            .map_err(|e| left(e, "contents are still there"))?;
        let journal = "overwritten texts may still be in the journal";
        self.flushed.map_err(|e| left(e, journal))?;
        if forgot.shared > 0 {
            let verb = if forgot.shared == 1 { "stays" } else { "stay" };
            printer.talk(format!(
                "{} {verb}, because another session or a memory has the same.",
                count(forgot.shared, "content")
            ));
        }
        Ok(())
    }
}

/// Returns the folder of the store; `None` if nothing of it outlives the process.
pub(crate) fn folder(place: &Path) -> Result<Option<PathBuf>, CommandError> {
    Ok(site(place)?.folder())
}

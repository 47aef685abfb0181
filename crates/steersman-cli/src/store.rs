//! The place of the store. Only this module of the program opens one by itself.

use crate::error::CommandError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steersman::runtime::store::StoreError;
use steersman_adapters::stores::{self, KeptStore, Site};
pub(crate) use steersman_adapters::stores::{Forgot, Garbage, Passed};

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
) -> Result<Result<Garbage, StoreError>, CommandError> {
    apart(place, move |site| site.collect_garbage(delete)).await
}

/// Deletes contents that a session names, unless something else names them. Then removes overwritten data from the journal.
/// Returns both results.
pub(crate) async fn forgotten(
    place: &Path,
    session: &str,
    contents: Vec<[u8; 32]>,
    passed: Passed,
) -> Result<(Result<Forgot, StoreError>, Result<bool, StoreError>), CommandError> {
    let session = session.to_owned();
    apart(place, move |site| {
        let forgot = site.forget(&session, &contents, &passed);
        (forgot, site.flush())
    })
    .await
}

/// Returns the folder of the store; `None` if nothing of it outlives the process.
pub(crate) fn folder(place: &Path) -> Result<Option<PathBuf>, CommandError> {
    Ok(site(place)?.folder())
}

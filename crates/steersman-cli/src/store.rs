//! The file of the store. Only this module of the program knows the kind of store.

use crate::error::CommandError;
use std::path::{Path, PathBuf};
use steersman::runtime::store::StoreError;
pub(crate) use steersman_adapters::sqlite::{Forgot, Garbage, Passed, SqliteStore as File};
use steersman_adapters::sqlite::{SqliteOptions, collect_garbage, flush, forget};

/// Opens the store for reading: nothing is repaired, no key is needed.
pub(crate) fn look(file: &Path) -> Result<File, StoreError> {
    let options = SqliteOptions {
        read_only: true,
        ..SqliteOptions::default()
    };
    File::open_with(file, &options)
}

/// Runs an operation that waits for disks and locks on a blocking thread.
async fn apart<T: Send + 'static>(
    file: &Path,
    run: impl FnOnce(&Path) -> T + Send + 'static,
) -> Result<T, CommandError> {
    let file: PathBuf = file.to_owned();
    let done = tokio::task::spawn_blocking(move || run(&file)).await;
    done.map_err(|e| CommandError::store(e.to_string()))
}

/// Finds data that is no longer referenced, and deletes it if `delete` is true.
pub(crate) async fn garbage(
    file: &Path,
    delete: bool,
) -> Result<Result<Garbage, StoreError>, CommandError> {
    apart(file, move |file| collect_garbage(file, delete)).await
}

/// Deletes contents that a session names, unless something else names them, and then overwritten data. Returns both
/// results.
pub(crate) async fn forgotten(
    file: &Path,
    session: &str,
    contents: Vec<[u8; 32]>,
    passed: Passed,
) -> Result<(Result<Forgot, StoreError>, Result<bool, StoreError>), CommandError> {
    let session = session.to_owned();
    apart(file, move |file| {
        let forgot = forget(file, &session, &contents, &passed);
        (forgot, flush(file))
    })
    .await
}

//! The book of a service: what it booked, in order. It survives a restart of the service if it is a file.

use axum::http::{HeaderMap, StatusCode};
use serde_json::Value as Json;
use std::io::{Error, ErrorKind, Result, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use steersman_runtime::files;

/// A response that refuses a request.
pub(crate) type Refused = (StatusCode, &'static str);

pub(crate) struct Book {
    entries: Mutex<Vec<Json>>,
    file: Option<PathBuf>,
}

impl Book {
    /// Opens a book, which is empty if its file does not exist. A line that is not JSON is an error.
    pub(crate) fn open(file: Option<PathBuf>) -> Result<Self> {
        let entries = file.as_deref().map_or(Ok(Vec::new()), read)?;
        Ok(Self {
            entries: Mutex::new(entries),
            file,
        })
    }

    pub(crate) fn entries(&self) -> MutexGuard<'_, Vec<Json>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry to the file, then to `entries`, which are those of the book.
    pub(crate) fn enter(
        &self,
        entries: &mut Vec<Json>,
        entry: Json,
    ) -> std::result::Result<Json, Refused> {
        if let Some(file) = &self.file {
            append(file, &entry)
                .map_err(|_| (StatusCode::SERVICE_UNAVAILABLE, "the book is closed"))?;
        }
        entries.push(entry.clone());
        Ok(entry)
    }
}

/// Returns the idempotency key of a request.
pub(crate) fn key(headers: &HeaderMap) -> Option<&str> {
    headers.get("idempotency-key")?.to_str().ok()
}

fn read(file: &Path) -> Result<Vec<Json>> {
    let text = match files::plain(file, crate::LARGEST).and_then(files::text) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let entry = |(at, line)| {
        serde_json::from_str(line).map_err(|e| {
            let place = format!("{}:{}", file.display(), at + 1);
            Error::new(
                ErrorKind::InvalidData,
                format!("{place}: not an entry: {e}"),
            )
        })
    };
    text.lines().enumerate().map(entry).collect()
}

fn append(file: &Path, entry: &Json) -> Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)?;
    // One write per line, so that concurrent readers see whole lines.
    file.write_all(format!("{entry}\n").as_bytes())
}

//! `--clock FILE`: reads the time from a file, for tests.

use crate::error::CommandError;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use steersman_machine::stored::ids::Time;
use steersman_runtime::clock::Clock;
use steersman_runtime::{Boxed, files};

/// Maximum size of the file in bytes.
const LONGEST: usize = 1 << 10;
/// Interval between two reads of the file.
const LOOK: Duration = Duration::from_millis(20);

/// A clock that reads the time from a file: milliseconds since 1970, or a time by RFC 3339.
pub(crate) struct FileClock {
    file: PathBuf,
    /// The last valid time, used while the file is being rewritten.
    last: AtomicI64,
}

impl FileClock {
    pub(crate) fn new(file: &Path) -> Result<Self, CommandError> {
        let now = read(file).ok_or_else(|| {
            CommandError::usage(format!("`{}` holds no time", file.display()))
                .hint("milliseconds since 1970, or a time such as 2026-11-21T08:00:00Z")
        })?;
        Ok(Self {
            file: file.to_owned(),
            last: AtomicI64::new(now),
        })
    }
}

fn read(file: &Path) -> Option<i64> {
    // The file is read repeatedly, so only a regular file is accepted.
    let text = files::plain(file, LONGEST).and_then(files::text).ok()?;
    let text = text.trim();
    text.parse().ok().or_else(|| {
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(jiff::Timestamp::as_millisecond)
    })
}

impl Clock for FileClock {
    fn now(&self) -> Time {
        if let Some(now) = read(&self.file) {
            self.last.store(now, Ordering::Relaxed);
        }
        Time(self.last.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, until: Time) -> Boxed<'static, ()> {
        let file = self.file.clone();
        Box::pin(async move {
            while read(&file).is_none_or(|now| now < until.0) {
                tokio::time::sleep(LOOK).await;
            }
        })
    }

    fn sleep(&self, millis: u64) -> Boxed<'static, ()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(millis)))
    }
}

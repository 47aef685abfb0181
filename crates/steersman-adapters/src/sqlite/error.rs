//! Translates errors of SQLite and the file system for callers of the store.

use rusqlite::ErrorCode;
use std::path::Path;
use std::sync::Arc;
use steersman_runtime::store::StoreError;

/// Makes the error for a failure of the file system.
pub(super) fn io(path: &Path, e: std::io::Error) -> StoreError {
    StoreError::Io {
        place: path.display().to_string(),
        source: Arc::new(e),
    }
}

/// Makes the error for a failure of SQLite: damage, or a file that could not be read or written.
pub(super) fn sql(path: &Path, e: rusqlite::Error) -> StoreError {
    let place = path.display().to_string();
    let damaged = match &e {
        rusqlite::Error::SqliteFailure(failure, _) => matches!(
            failure.code,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase
        ),
        // A stored value of another type than the one that was written.
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => true,
        _ => false,
    };
    if damaged {
        StoreError::Corrupt {
            place,
            what: e.to_string(),
        }
    } else {
        StoreError::Io {
            place,
            source: Arc::new(e),
        }
    }
}

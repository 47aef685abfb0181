//! The loop: offers in, a tick, a line, effects.

use crate::engine::{Engine, EngineError, Inspection};
use crate::session::Session;
use crate::store::{Row, SessionId, StoreError};
use steersman_machine::commit::LogLine;
use tokio_util::sync::CancellationToken;

/// Owns a session and drives it in a task of its own.
pub(crate) async fn spawn(_engine: &Engine, _id: &str) -> Result<Session, EngineError> {
    Err(EngineError::Stopped)
}

/// Looks at a session without owning it.
pub(crate) async fn inspect(_engine: &Engine, _id: &str) -> Result<Inspection, EngineError> {
    Err(EngineError::Stopped)
}

/// Owns and drives all sessions that have something to do.
pub(crate) async fn run_all(_engine: &Engine, stop: CancellationToken) -> Result<(), EngineError> {
    stop.cancelled().await;
    Ok(())
}

/// Decodes a row.
pub(crate) fn decode(session: &SessionId, row: &Row) -> Result<LogLine, StoreError> {
    Err(StoreError::Corrupt {
        place: format!("session {session}, line {}", row.n),
        what: "rows cannot be decoded yet".to_owned(),
    })
}

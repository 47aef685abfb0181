//! Reasons for which a session cannot be read or driven.

use crate::bind::BindError;
use crate::inbox::DecodeError;
use crate::store::{SessionId, StoreError};
use std::sync::Arc;

/// Reasons for which an engine refuses a request or stops driving a session.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The session cannot be bound here.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The message that begins the session cannot be read.
    #[error(transparent)]
    Inbox(#[from] DecodeError),
    /// The definition that the session is bound to, or the manifest of its MCP servers, cannot be read or compiled here.
    #[error("session `{session}` is bound to a definition that this version does not take: {why}")]
    Definition {
        /// Id of the session.
        session: SessionId,
        /// Description of the misfit.
        why: String,
    },
    /// Stored data does not fit together. Nothing was changed.
    #[error("session `{session}`: {what}; nothing was changed")]
    Broken {
        /// Id of the session.
        session: SessionId,
        /// Description of the misfit.
        what: String,
    },
    /// The session is not driven any more, for this reason.
    #[error("the session is not driven any more: {0}")]
    Gone(Arc<EngineError>),
    /// The session refuses the request, for this reason. Nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// The session was stopped.
    #[error("it was stopped")]
    Stopped,
}

//! Errors, in the kinds that a caller branches on.

use std::fmt;
use std::path::PathBuf;
use steersman_definition::{Diagnostic, Shown};
use steersman_runtime::engine::EngineError;
use steersman_runtime::store::StoreError;
use steersman_views::record::NoTest;
use steersman_views::turn::AnswerError;

/// Error of an operation on a store, session or network. Nothing that was stored is lost.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The definition has errors, or what is registered in Rust does not fit it.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// A file could not be read.
    #[error("`{path}`: {source}", path = path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The store refused the operation or cannot be reached.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine refused the operation or stopped.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The session refused the request; the text says why.
    #[error("{0}")]
    Refused(String),
    /// The key that seals secrets cannot be read or made.
    #[error("the key that seals secrets: {0}")]
    Key(String),
}

impl Error {
    /// Returns the kind of error, which a service maps to its response.
    ///
    /// ```
    /// use steersman::{Error, ErrorKind};
    ///
    /// fn status(error: &Error) -> u16 {
    ///     match error.kind() {
    ///         ErrorKind::NotFound => 404,
    ///         ErrorKind::Conflict => 409,
    ///         ErrorKind::Refused => 422,
    ///         ErrorKind::Busy | ErrorKind::Stopping | ErrorKind::Full | ErrorKind::Unavailable => 503,
    ///         _ => 500,
    ///     }
    /// }
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Definition(_) => ErrorKind::Definition,
            Self::Read { .. } | Self::Key(_) => ErrorKind::Unavailable,
            Self::Store(error) => of_store(error),
            Self::Engine(error) => of_engine(error),
            Self::Refused(_) => ErrorKind::Refused,
        }
    }
}

impl From<NoTest> for Error {
    fn from(error: NoTest) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<AnswerError> for Error {
    fn from(error: AnswerError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// Kinds of errors, by what a caller does about them. More may be added.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such session.
    NotFound,
    /// A session of this id or key exists already, or the id was accepted with different content.
    Conflict,
    /// The session refused the request, says why, and is unchanged.
    Refused,
    /// Another process drives the session. Messages put into its inbox reach it there.
    Busy,
    /// This process is shutting down.
    Stopping,
    /// The definition has errors, or does not fit what is registered in Rust.
    Definition,
    /// Something that the session needs is missing in this process: a value of `config`, a model, a tool or net in Rust, a
    /// server.
    Unbound,
    /// The stored data is damaged or was written by a newer version. Nothing was changed.
    Unreadable,
    /// An inbox or the box of events is full. Send the same message again once something was taken from it.
    Full,
    /// A file or the store cannot be read or written now.
    Unavailable,
}

fn of_store(error: &StoreError) -> ErrorKind {
    match error {
        StoreError::NoSession(_) | StoreError::Moved { .. } => ErrorKind::NotFound,
        StoreError::Conflict(_) | StoreError::Repeated(_) => ErrorKind::Conflict,
        StoreError::Owned { .. } | StoreError::Fenced { .. } => ErrorKind::Busy,
        StoreError::TooLarge { .. } | StoreError::BadId { .. } | StoreError::Unsealed(_) => {
            ErrorKind::Refused
        }
        StoreError::Full { .. } => ErrorKind::Full,
        StoreError::Corrupt { .. } | StoreError::Newer { .. } | StoreError::Order { .. } => {
            ErrorKind::Unreadable
        }
        StoreError::Io { .. } | StoreError::Unaccepted { .. } => ErrorKind::Unavailable,
    }
}

fn of_engine(error: &EngineError) -> ErrorKind {
    match error {
        EngineError::Store(error) => of_store(error),
        EngineError::Bind(_) => ErrorKind::Unbound,
        EngineError::Refused(_) => ErrorKind::Refused,
        EngineError::Gone(why) => of_engine(why),
        EngineError::Stopped => ErrorKind::Stopping,
        EngineError::Inbox(_) | EngineError::Definition { .. } | EngineError::Broken { .. } => {
            ErrorKind::Unreadable
        }
    }
}

/// Everything that is wrong with a definition. Displays as `steersman check` prints it.
#[derive(Debug, Clone, Default)]
pub struct DefinitionError {
    /// Errors and warnings with their positions.
    pub diagnostics: Vec<Diagnostic>,
    /// Messages about tools, nets, routers and keys in Rust that do not fit the definition.
    pub in_rust: Vec<String>,
}

impl std::error::Error for DefinitionError {}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        let mut part = |f: &mut fmt::Formatter<'_>, text: &dyn fmt::Display| {
            if !std::mem::take(&mut first) {
                f.write_str("\n\n")?;
            }
            text.fmt(f)
        };
        let shown = Shown::of(&self.diagnostics);
        for diagnostic in shown.first {
            part(f, diagnostic)?;
        }
        if let Some(rest) = shown.rest() {
            part(f, &rest)?;
        }
        for misfit in &self.in_rust {
            part(f, &format_args!("error: {misfit}"))?;
        }
        Ok(())
    }
}

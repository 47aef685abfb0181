//! What goes wrong, in the kinds that a caller branches on.

use std::fmt;
use std::path::PathBuf;
use steersman_definition::{Diagnostic, Shown};
use steersman_runtime::engine::EngineError;
use steersman_runtime::store::StoreError;

/// Why something could not be done. Nothing was lost.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The definition has errors, or does not fit the tools registered for it.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// A file could not be read.
    #[error("`{path}`: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The store refused or cannot be had.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine refused or stopped.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The session refused what was wanted, and says why.
    #[error("{0}")]
    Refused(String),
    /// The key that seals secrets cannot be had.
    #[error("the key that seals secrets: {0}")]
    Key(String),
}

impl Error {
    /// What kind of trouble it is: what a service answers with.
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

/// Kinds of trouble, by what whoever meets them does. More may come.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such session.
    NotFound,
    /// There is one of this id or key already, or the id was accepted with something else.
    Conflict,
    /// The session does not take this, says why, and is as it was.
    Refused,
    /// Another process drives the session. What is put into its inbox reaches it there.
    Busy,
    /// This process is letting go.
    Stopping,
    /// The definition has errors, or does not fit what is registered in Rust.
    Definition,
    /// Something that the session needs is not here: a value of `config`, a model, a tool or net in Rust, a server.
    Unbound,
    /// What is stored is damaged, or was written by a newer version. Nothing was changed.
    Unreadable,
    /// An inbox or the box of events has no room for this now. The same may come again once something was taken.
    Full,
    /// A file or the store cannot be read or written now.
    Unavailable,
}

fn of_store(error: &StoreError) -> ErrorKind {
    match error {
        StoreError::NoSession(_) => ErrorKind::NotFound,
        StoreError::Conflict(_) | StoreError::Repeated(_) => ErrorKind::Conflict,
        StoreError::Owned { .. } | StoreError::Fenced { .. } => ErrorKind::Busy,
        StoreError::TooLarge { .. } | StoreError::BadId { .. } => ErrorKind::Refused,
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

/// All that is wrong with a definition, at once. Displays as `steersman check` prints it.
#[derive(Debug, Clone, Default)]
pub struct DefinitionError {
    /// Errors and warnings with their places.
    pub diagnostics: Vec<Diagnostic>,
    /// Tools in Rust that do not fit what the definition declares.
    pub tools: Vec<String>,
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
        for tool in &self.tools {
            part(f, &format_args!("error: {tool}"))?;
        }
        Ok(())
    }
}

//! What goes wrong, in the kinds that a caller branches on.

use std::fmt;
use std::path::PathBuf;
use steersman_machine::definition::Diagnostic;
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
        for diagnostic in &self.diagnostics {
            part(f, diagnostic)?;
        }
        for tool in &self.tools {
            part(f, &format_args!("error: {tool}"))?;
        }
        Ok(())
    }
}

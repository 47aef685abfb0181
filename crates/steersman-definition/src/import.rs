//! Imports files of other programs: takes their text, returns YAML and warnings. Performs no I/O.

pub mod aiwaves;
mod write;

use std::fmt;

/// A definition made from files of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The definition, with comments on decisions of the importer. Equal input gives equal bytes.
    pub yaml: String,
    /// Differences from the original, in the order in which they were found.
    pub warnings: Vec<Warning>,
}

/// A part of the original that is not carried over unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Path within the imported file: `states.Debate.controller.max_chat_nums`.
    pub path: String,
    /// Kind of the difference, one of the importer's codes.
    pub code: &'static str,
    /// Its effect in the original and its effect here, in a sentence without a full stop.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Error of an import that gave no definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// Path within the file; empty for the whole file.
    pub path: String,
    /// The problem, in a sentence without a full stop.
    pub message: String,
    /// Advice on how to fix the problem.
    pub help: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}
impl std::error::Error for ImportError {}

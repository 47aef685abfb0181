//! Definitions made from what other programs read: their text in, YAML and warnings out. Nothing is read or written here.

pub mod aiwaves;
mod write;

use std::fmt;

/// A definition that was made from something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The definition, with comments where something was decided. The same for the same text, byte for byte.
    pub yaml: String,
    /// What is not as it was, in the order in which it was found.
    pub warnings: Vec<Warning>,
}

/// Something that is not carried over as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where in what was imported: `states.Debate.controller.max_chat_nums`.
    pub path: String,
    /// What kind of thing, one of the importer's codes.
    pub code: &'static str,
    /// What it did there and what becomes of it here, in a sentence without a full stop.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Why nothing was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// Where in what was to be imported; empty: all of it.
    pub path: String,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
    /// What to do about it.
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

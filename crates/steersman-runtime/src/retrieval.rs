//! The retrieval port, and what is searched with it: passages of transcripts and of documents, found for a query.
//!
//! ```text
//!    notes_search --> what was said (from the log) ----+--> passages --> Index: full text --+--> the best, as the result
//!                     documents (from their folder) ---+            --> Model::embed -------+
//! ```
//!
//! What is indexed is derived and lies in memory: of a transcript for as long as one owner has the session, of documents
//! until they change. Nothing of it is stored; what was found is, as the result of the call.

mod corpus;
mod documents;
pub(crate) mod remembered;
mod search;
mod split;

pub(crate) use corpus::Kept;
pub use documents::unreadable;
pub(crate) use search::{Embedder, Search};

use std::fmt;

/// Makes indexes for full text.
pub trait Retrieval: Send + Sync + 'static {
    /// An empty one.
    ///
    /// # Errors
    /// It cannot be made.
    fn index(&self) -> Result<Box<dyn Index>, IndexError>;
}

/// Texts by number, found by their words. Any text is a query: nothing in it has a meaning beyond its words.
pub trait Index: Send {
    /// Adds texts under numbers that are not in use.
    ///
    /// # Errors
    /// They cannot be added.
    fn add(&mut self, texts: &[(u64, &str)]) -> Result<(), IndexError>;

    /// Takes texts out.
    ///
    /// # Errors
    /// They cannot be taken out.
    fn remove(&mut self, numbers: &[u64]) -> Result<(), IndexError>;

    /// Those that fit a query best, with a score that is higher the better they fit; at most `most`, and none of those that
    /// `without` names. What has none of the rarer words of the query does not fit.
    ///
    /// # Errors
    /// It cannot be searched.
    fn find(
        &mut self,
        query: &str,
        most: usize,
        without: &dyn Fn(u64) -> bool,
    ) -> Result<Vec<(u64, f64)>, IndexError>;

    /// How much of a query each text covers: the summed inverse document frequency of the words that it has, as a share of
    /// that of all words of the query, from 0 to 1. Those that have none are left out.
    ///
    /// # Errors
    /// It cannot be searched.
    fn coverage(&mut self, query: &str) -> Result<Vec<(u64, f64)>, IndexError>;
}

/// An index is out of order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexError(
    /// What happened.
    pub String,
);

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the index for full text: {}", self.0)
    }
}

impl std::error::Error for IndexError {}

//! The retrieval port: indexes for full text.

use std::fmt;

/// Creates indexes for full text.
pub trait Retrieval: Send + Sync + 'static {
    /// Returns an empty index.
    ///
    /// # Errors
    /// The index cannot be created.
    fn index(&self) -> Result<Box<dyn Index>, IndexError>;
}

/// Numbered texts that are found by their words. Any text is a valid query: there is no query syntax.
pub trait Index: Send {
    /// Adds texts under numbers that are not in use.
    ///
    /// # Errors
    /// The texts cannot be added.
    fn add(&mut self, texts: &[(u64, &str)]) -> Result<(), IndexError>;

    /// Removes texts by their numbers.
    ///
    /// # Errors
    /// The texts cannot be removed.
    fn remove(&mut self, numbers: &[u64]) -> Result<(), IndexError>;

    /// Returns the texts that match a query best, each with a score that is higher for a better match. Returns at most `most`
    /// texts, and none for which `without` is true. A text that has none of the query's rarer words does not match.
    ///
    /// # Errors
    /// The index cannot be searched.
    fn find(
        &mut self,
        query: &str,
        most: usize,
        without: &dyn Fn(u64) -> bool,
    ) -> Result<Vec<(u64, f64)>, IndexError>;

    /// Returns how much of a query each text covers: the sum of the inverse document frequencies of the words that it has,
    /// divided by the sum for all words of the query, from 0 to 1. Texts with none of the words are left out.
    ///
    /// # Errors
    /// The index cannot be searched.
    fn coverage(&mut self, query: &str) -> Result<Vec<(u64, f64)>, IndexError>;
}

/// An index cannot be made, changed or searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexError(
    /// The cause, in words.
    pub String,
);

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the index for full text: {}", self.0)
    }
}

impl std::error::Error for IndexError {}

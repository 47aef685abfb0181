//! The search of transcripts and documents: passages that match a query.
//!
//! ```text
//!    notes_search --> what was said (from the log) ----+--> passages --> Index: full text --+--> the best, as the result
//!                     documents (from their folder) ---+            --> Model::embed -------+
//! ```
//!
//! Indexes are derived and kept in memory: the index of a transcript as long as one owner has the session, the index of
//! documents until they change. No index is stored; found passages are, as the result of the call.

mod corpus;
mod documents;
pub(crate) mod remembered;
mod search;
mod split;

pub(crate) use corpus::Kept;
pub use documents::unreadable;
pub(crate) use search::{Embedder, Search};

use crate::retrieval::{Index, IndexError, Retrieval};

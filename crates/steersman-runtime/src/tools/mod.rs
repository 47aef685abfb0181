//! Tools that every network may use: artifacts, and the search of transcripts and documents.

pub(crate) mod artifact;
pub(crate) mod retrieval;

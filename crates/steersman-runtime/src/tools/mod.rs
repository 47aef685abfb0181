//! Tools that every network may use: artifacts, memory, and the search of transcripts and documents.

pub mod artifact;
pub mod files;
pub mod memory;
pub mod retrieval;

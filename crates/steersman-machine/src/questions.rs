//! The questions that the engine asks a model for itself.

pub mod extract;

//! Definitions: YAML or the Rust builder in, a checked [`crate::network::Network`] or diagnostics out.

pub mod test;

//! Decides: `(network, snapshot, what came in) -> commit + wishes`. No async, clock, I/O or randomness.

#![warn(missing_docs)]

pub mod commit;
pub mod context;
pub mod definition;
pub mod effect;
pub mod expression;
pub mod fold;
pub mod ids;
pub mod interaction;
pub mod limits;
pub mod mapping;
pub mod network;
pub mod snapshot;
pub mod trace;

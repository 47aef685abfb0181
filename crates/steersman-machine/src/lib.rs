//! Decides: `(network, snapshot, what came in) -> commit + wishes`. No async, clock, I/O or randomness.

#![warn(missing_docs)]

pub mod branch;
mod call;
pub mod codec;
pub mod commit;
pub mod context;
pub mod definition;
pub mod effect;
pub mod expression;
mod finish;
pub mod fold;
pub mod ids;
pub mod interaction;
pub mod limits;
pub mod mapping;
pub mod nets;
pub mod network;
pub mod route;
pub mod snapshot;
mod state;
pub mod table;
mod take;
pub mod testing;
pub mod tick;
pub mod trace;
pub mod types;
pub mod view;
pub mod wait;

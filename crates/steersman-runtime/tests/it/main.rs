//! Tests of the runtime, one module per topic.

mod crash;
mod effects;
mod ledger;
mod plain;
mod store;
mod spy;
mod transfer;
mod world;

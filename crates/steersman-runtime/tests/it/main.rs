//! Tests of the runtime, one module per topic.

mod branches;
mod crash;
mod effects;
mod feed;
mod ledger;
mod plain;
mod spy;
mod store;
mod transfer;
mod world;

//! Tests of the runtime, one module per topic.

mod ledger;
mod plain;
mod store;
mod world;

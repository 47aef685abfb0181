//! Tests of the runtime, one module per topic.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests panic with what they found"
)]

mod below;
mod bound;
mod bounds;
mod branches;
mod budgets;
mod crash;
mod doubts;
mod durable;
mod effects;
mod equals;
mod feed;
mod follow;
mod golden;
mod heard;
mod hot;
mod judges;
mod large;
mod late;
mod leases;
mod ledger;
mod left;
mod memory;
mod models;
mod orders;
mod outages;
mod panics;
mod parked;
mod past;
mod places;
mod plain;
mod probes;
mod recorded;
mod redefine;
mod refused;
mod repeats;
mod search;
mod sequences;
mod spy;
mod store;
mod stored;
mod takeover;
mod tapped;
mod transfer;
mod wakes;
mod ways_out;
mod world;

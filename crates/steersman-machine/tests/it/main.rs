//! Tests of the machine from outside.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests panic with what they found"
)]

mod cases;
mod codec;
mod context;
mod definition;
mod expression;
mod log;
mod mapping;
mod nets;
mod random;
mod table;
mod traces;
mod view;

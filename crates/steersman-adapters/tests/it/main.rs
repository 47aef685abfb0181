//! Tests of the adapters against servers and programs: one binary, a module for each topic.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests panic with what they found, and skipped tests say so"
)]

mod aimock;
mod catalog;
mod chat;
mod command;
mod http;
mod listener;
mod real;
mod request;
mod schema;
mod secrets;
mod sqlite;
mod structured;
mod tools;
mod whole;
mod wire;

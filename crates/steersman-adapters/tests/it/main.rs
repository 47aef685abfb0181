//! Tests of the adapters against servers and programs: one binary, a module for each topic.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests panic with what they found"
)]

mod aimock;
mod azure;
mod bedrock;
mod bounds;
mod catalog;
mod chat;
mod command;
mod command_files;
mod cuts;
mod embeddings;
mod files;
mod gemini;
mod http;
#[cfg(unix)]
mod journal;
mod listener;
mod marked;
mod mcp;
mod messages;
#[cfg(unix)]
mod others;
mod owners;
mod pairing;
mod pieces;
mod provider_sdks;
mod put_back;
mod quirks;
mod real;
mod redirects;
mod reference;
mod request;
mod responses;
mod schema;
mod secrets;
mod seen;
mod sqlite;
mod structured;
mod tools;
mod verdict;
mod went_back;
mod whole;
mod wire;

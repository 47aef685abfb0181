//! The library as people use it.

#![expect(clippy::unwrap_used, reason = "a test says where it failed")]

mod approvals;
mod artifacts;
mod cases;
mod event;
mod f19;
mod folder;
mod models;
mod mcp;
mod network;
mod tool;

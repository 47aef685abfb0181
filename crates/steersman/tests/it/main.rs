//! Tests of the library through its public interface.

#![expect(clippy::unwrap_used, reason = "a test says where it failed")]

mod acts;
mod approvals;
mod arguments;
mod artifacts;
mod asks;
mod branches;
mod built;
mod cases;
mod desk;
mod erased;
mod event;
mod folder;
mod follow;
mod guide;
mod histories;
mod hooks;
mod kept;
mod knowledge;
mod ledger_cases;
mod mcp;
mod mcp_asks;
mod memory;
mod models;
mod modes;
mod nets;
mod network;
mod payments;
mod repeats;
mod rerun;
mod schedules;
mod scopes;
mod service;
mod settles;
mod signed;
mod simulation;
mod states;
mod steps;
mod steps_elsewhere;
mod tool;
mod writes;
mod written_tests;

//! Tests that spawn the program, and check its exit codes, standard output and standard error.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says where it failed, and which seed it had"
)]

mod act;
mod advice;
mod answered;
mod approved;
mod artifacts;
mod atwork;
mod bank;
mod blocks;
mod branches;
mod budgets;
mod changed;
mod check;
mod coder;
mod contexts;
mod cost;
mod crash;
mod demo;
mod disk;
mod docs;
mod doubts;
mod drafted;
mod edit;
mod examples;
mod files;
mod floor;
mod frozen;
mod graded;
mod help;
mod histories;
mod hooked;
mod hostile;
mod import;
mod joins;
mod keep;
mod keys;
mod killed;
mod left;
mod limits;
mod listed;
mod look;
mod mcp;
mod mcp_clients;
mod mcp_server;
mod memory;
mod nasty;
mod network;
mod nightly;
mod office;
mod openai_clients;
mod opentelemetry;
mod operating;
mod orders;
mod outages;
mod people;
mod pytest_lsp;
mod python;
mod readme;
mod real;
mod reasons;
mod recorded;
mod rerun;
mod reruns;
mod run;
mod running;
mod schedules;
mod scripts;
mod sealed;
mod search;
mod secrets;
mod served;
mod shared;
mod simulate;
mod steps;
mod store;
mod suites;
mod timeline;
mod told;
mod traces;
mod unchanged;
mod world;

//! The program as people meet it: spawned, with its exit codes, stdout and stderr.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says where it failed, which seed it had and what it skipped"
)]

mod act;
mod check;
mod crash;
mod demo;
mod disk;
mod docs;
mod examples;
mod hostile;
mod nasty;
mod readme;
mod run;
mod secrets;
mod shared;
mod world;

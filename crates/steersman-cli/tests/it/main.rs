//! The program as people meet it: spawned, with its exit codes, stdout and stderr.

mod act;
mod check;
mod crash;
mod demo;
mod disk;
mod examples;
mod readme;
mod secrets;
mod shared;
mod world;

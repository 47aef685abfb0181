//! Talks to the server as an editor does: messages in, messages out. The files are in memory.

#![expect(clippy::unwrap_used, reason = "a test says where it failed")]

mod cases;
mod client;
mod protocol;
mod rename;
mod typing;

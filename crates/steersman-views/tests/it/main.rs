//! Views of whole sessions: what a log says is data, the same from wherever one begins to read.

#![expect(clippy::unwrap_used, reason = "a test says where it failed")]

mod events;
mod pages;
mod parts;
mod world;

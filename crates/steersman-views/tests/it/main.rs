//! Views of whole sessions. A log gives the same data from every position at which a reader begins.

#![expect(clippy::unwrap_used, reason = "a test says where it failed")]

mod events;
mod pages;
mod parts;
mod spans;
mod timeline;
mod top;
mod world;

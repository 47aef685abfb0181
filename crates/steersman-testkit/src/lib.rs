//! Tests of machines: a driver with a store in memory, case files, random sessions and replay.
//!
//! Nothing here does I/O, and the caller reads the files; but for [`library`], which is a server.

pub mod case;
mod judged;
pub mod library;
pub mod log;
mod modes;
pub mod net;
pub mod random;
pub mod replay;
pub mod schema;
pub mod states;
pub mod story;
pub mod world;

//! The commands, one file each: from what was typed to an exit code.

pub(crate) mod act;
pub(crate) mod answer;
pub(crate) mod approve;
pub(crate) mod artifacts;
pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod context;
pub(crate) mod demo;
pub(crate) mod effects;
pub(crate) mod example_service;
pub(crate) mod explain;
pub(crate) mod log;
pub(crate) mod new;
pub(crate) mod pending;
pub(crate) mod reject;
pub(crate) mod resolve;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod send;
mod servers;
pub(crate) mod sessions;
pub(crate) mod show;
pub(crate) mod test;

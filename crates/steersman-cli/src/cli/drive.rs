//! Options for driving a session, shared by all commands.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// How a session is driven.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Drive {
    /// Answers of models that the definition calls `scripted`, from a file. The session remembers it.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Answers of all models from a file, whatever the definition says. The session remembers it.
    #[arg(long, value_name = "FILE", conflicts_with = "script")]
    pub(crate) script_all: Option<PathBuf>,
    /// When a line must be on disk: before what depends on it leaves the process, or before anything goes on.
    #[arg(long, value_name = "WHEN", default_value = "output")]
    pub(crate) durability: Durability,
    /// Take the time from this file (milliseconds since 1970, or RFC 3339), for tests.
    #[arg(long, value_name = "FILE")]
    pub(crate) clock: Option<PathBuf>,
    /// How long to stay while a model does not answer [default: 60s at a terminal, else 0s].
    #[arg(long, value_name = "DURATION", value_parser = crate::words::duration)]
    pub(crate) wait: Option<std::time::Duration>,
}

/// When a line must be on disk.
#[derive(Copy, Clone, Debug, Default, ValueEnum)]
pub(crate) enum Durability {
    /// Before what depends on it leaves the process.
    #[default]
    Output,
    /// Before anything goes on.
    Step,
}

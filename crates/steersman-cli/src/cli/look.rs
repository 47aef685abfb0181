//! What `graph` and `why` take.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Graph {
    /// A definition (a file, or a folder with a steersman.yaml), or SESSION[:BRANCH][@LINE] [default: the definition here].
    #[arg(value_name = "DEFINITION|SESSION")]
    pub(crate) target: Option<String>,
    /// As what.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Write it into this file; its ending says as what: .svg, .mmd, or .md with the diagram in it.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// As what something is drawn.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For a terminal.
    Terminal,
    /// For pages that draw Mermaid: GitHub, GitLab, most wikis.
    Mermaid,
    /// A picture of its own.
    Svg,
}

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// SESSION[:BRANCH][@LINE]: as in `show`; with a line the last that was done there, else the newest act.
    #[arg(default_value = "last")]
    pub(crate) address: String,
    /// A call, an effect or an agent (of an agent its newest act), by its id `21.1`.
    pub(crate) id: Option<String>,
}

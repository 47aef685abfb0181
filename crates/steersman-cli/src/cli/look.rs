//! Arguments of `graph`, `why`, `context`, `artifacts` and `memory`.

use super::Act;
use clap::{Args, Subcommand, ValueEnum};
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

#[derive(Debug, Args)]
pub(crate) struct Context {
    /// SESSION[:BRANCH][@LINE]: as in `show`; with a line the model call there, else the newest that was answered.
    #[arg(default_value = "last")]
    pub(crate) address: String,
    /// Of the model calls this one, by its id `21.1`, or those of this agent, by its name; `AGENT#compact` and the like: what was
    /// asked beside its own answers.
    #[arg(value_name = "CALL|AGENT", conflicts_with = "cache")]
    pub(crate) whose: Option<String>,
    /// Say of each part where it comes from, and what is not there and why.
    #[arg(long, conflicts_with_all = ["diff", "cache"])]
    pub(crate) why: bool,
    /// Say what changed since this agent's call before, how much stayed the same, and what broke that.
    #[arg(long, conflicts_with = "cache")]
    pub(crate) diff: bool,
    /// Say of each model call how much of it was as in the call before, what its provider had cached, and what broke it.
    #[arg(long)]
    pub(crate) cache: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Artifacts {
    /// SESSION[:BRANCH][@LINE]; with a line those that there were then.
    #[arg(default_value = "last")]
    pub(crate) address: String,
    /// Print this one.
    pub(crate) name: Option<String>,
    /// This version of it, from 1 [default: the newest].
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<usize>,
    /// Write it into this file or folder; without a name all of them into this folder. Overwrites nothing.
    #[arg(long, value_name = "PATH")]
    pub(crate) save: Option<PathBuf>,
    /// Rate it, from 1 to 5. What a person says outranks what agents say.
    #[arg(long, value_name = "1-5", requires = "name", conflicts_with = "save",
          value_parser = clap::value_parser!(u8).range(1..=5))]
    pub(crate) rate: Option<u8>,
    /// Why.
    #[arg(long, value_name = "TEXT", requires = "rate")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) act: Act,
}

#[derive(Debug, Args)]
pub(crate) struct Memory {
    #[command(subcommand)]
    pub(crate) act: Option<MemoryAct>,
    /// Only of this scope.
    #[arg(long, value_name = "SCOPE", global = true)]
    pub(crate) scope: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryAct {
    /// List what is remembered, newest first.
    List {
        /// Only what this session saved.
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
        /// All of it, not the first twenty.
        #[arg(long)]
        all: bool,
    },
    /// Find what fits these words, as agents of the scope would.
    Search {
        /// The words.
        #[arg(required = true)]
        query: Vec<String>,
        /// At most so many.
        #[arg(long, value_name = "N", default_value_t = 10)]
        most: usize,
    },
    /// Print one.
    Show {
        /// Its number.
        id: u64,
    },
    /// Rate one, from 1 to 5. What a person says outranks what agents say.
    Rate {
        /// Its number.
        id: u64,
        /// The rating.
        #[arg(value_parser = clap::value_parser!(u8).range(1..=5))]
        rating: u8,
        /// Why.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// The role in which you act.
        #[arg(long = "as", value_name = "ROLE")]
        role: Option<String>,
    },
    /// Forget some: by number, of a session, or all of a scope. Tells what it would do unless --yes.
    Forget {
        /// Their numbers.
        ids: Vec<u64>,
        /// All that this session saved.
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
        /// Do it. It cannot be undone.
        #[arg(long)]
        yes: bool,
    },
}

//! The tool port: runs one tool once. What it returns is raw; the machine maps it.

use crate::Boxed;
use crate::artifact::Artifacts;
use std::path::Path;
use std::sync::Arc;
use steersman_machine::effect::ToolWork;
use steersman_machine::expression::Scope;
use steersman_machine::ids::{Id, Name};
use steersman_machine::manifest::Listing;
use steersman_machine::mapping::{Fault, Raw};
use steersman_machine::network::Network;
use steersman_machine::rate::Rate;
use tokio_util::sync::CancellationToken;

/// Runs tools of some source (HTTP, command, Rust, MCP).
pub trait Toolset: Send + Sync + 'static {
    /// Whether it runs this tool of this network.
    fn has(&self, network: &Network, tool: &str) -> bool;

    /// Whether an attempt is cut when the time is over that its definition gives it. What plays tools may say no.
    fn is_timed(&self) -> bool {
        true
    }

    /// The place that an attempt asks, where the definition says how often that may be at most: what names the place, and
    /// the rate. The attempt begins when its turn has come.
    fn place(&self, run: &ToolRun) -> Option<(String, Rate)> {
        let _ = run;
        None
    }

    /// What an MCP server offers now, if this reaches servers. Asked when a session starts, and where its list may have
    /// changed that is followed. Ends within the server's `timeout`.
    fn list<'a>(&'a self, ask: &'a ServerAsk) -> Boxed<'a, Asked> {
        let _ = ask;
        Box::pin(std::future::ready(Asked::Elsewhere))
    }

    /// How the list of a server stands as far as that is known without asking: as long as it is equal, the list is, too.
    /// None where there is no connection. Answers at once.
    fn mark(&self, ask: &ServerAsk) -> Option<ListMark> {
        let _ = ask;
        None
    }

    /// Runs a tool as [`run`](Self::run) does, telling of its progress meanwhile where its source does.
    fn run_heard<'a>(
        &'a self,
        run: &'a ToolRun,
        cancel: &'a CancellationToken,
        hear: Hear,
    ) -> Boxed<'a, Raw> {
        drop(hear);
        self.run(run, cancel)
    }

    /// Runs it once. Never panics on any argument; what it may have done when it is cut is in the [`Raw`].
    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw>;
}

/// Who hears of the progress of an attempt. Provisional: nothing of it is kept.
pub type Hear = Arc<dyn Fn(Progress) + Send + Sync>;

/// How far an attempt has come, in whatever unit its source counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Done so far.
    pub done: f64,
    /// Of so much, if it is known.
    pub total: Option<f64>,
    /// What it does now, for people.
    pub message: Option<String>,
}

/// One attempt of a tool.
#[derive(Clone)]
pub struct ToolRun {
    /// The network that declares it.
    pub network: Arc<Network>,
    /// The session, for keys.
    pub session: Arc<str>,
    /// The random mark of the owner that wished it: with session and effect the key is unique in the world.
    pub mark: u64,
    /// Its effect id.
    pub effect: Id,
    /// Attempt, from 1.
    pub attempt: u32,
    /// Tool, class, arguments (secret parameters absent).
    pub work: ToolWork,
    /// The folder of the definition: what its relative paths mean, and where its commands run.
    pub folder: Arc<Path>,
    /// The artifacts that its agent sees.
    pub artifacts: Artifacts,
    /// Names that its templates read, secrets and sealed state opened. Never stored, never logged.
    pub scope: Arc<dyn Scope + Send + Sync>,
}

/// A question to a server: what it offers.
#[derive(Clone)]
pub struct ServerAsk {
    /// The network that declares it.
    pub network: Arc<Network>,
    /// Its name there.
    pub server: Name,
    /// The folder of the definition: where its command runs.
    pub folder: Arc<Path>,
    /// `config` and `secrets`, opened. Never stored, never logged.
    pub scope: Arc<dyn Scope + Send + Sync>,
}

/// Of which connection a server's list is, and how often the server said on it that the list changed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ListMark {
    /// Unique in this process.
    pub connection: u64,
    /// Counted since the connection was made.
    pub changes: u64,
}

/// What came of asking a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// This does not reach servers.
    Elsewhere,
    /// Its tools are played here: nobody was asked, and those that are named take any arguments.
    Played,
    /// What it offers; tools that the definition does not take are left out.
    Offers(Listing),
    /// It cannot be asked, or its answer cannot be used.
    Failed(Fault),
}

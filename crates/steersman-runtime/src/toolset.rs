//! The tool port: runs one tool once. What it returns is raw; the machine maps it.

use crate::Boxed;
use crate::artifact::Artifacts;
use std::path::Path;
use std::sync::Arc;
use steersman_machine::effect::ToolWork;
use steersman_machine::ids::Id;
use steersman_machine::mapping::Raw;
use steersman_machine::network::Network;
use steersman_machine::rate::Rate;
use tokio_util::sync::CancellationToken;

/// Runs tools of some source (HTTP, command, Rust, later MCP).
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

    /// Runs it once. Never panics on any argument; what it may have done when it is cut is in the [`Raw`].
    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw>;
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
    pub scope: Arc<dyn steersman_machine::expression::Scope + Send + Sync>,
}

//! Options of an engine.

use crate::limiter::Limiters;
use crate::past::DEFAULT_BOUND;
use crate::retrieval::Retrieval;
use crate::tap::Tap;
use crate::{Boxed, Env};
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_machine::stored::bounds;
use steersman_machine::stored::codec::REVISION;
use steersman_machine::stored::commit::LedgerEntry;
use steersman_machine::stored::ids::Name;

/// Options of an engine: its ports that may be absent, and its limits.
#[derive(Clone)]
pub struct Options {
    /// The rule by which lines are synced to disk.
    pub durability: Durability,
    /// Source of the values of `config` and `secrets`.
    pub env: Env,
    /// True if a person can be asked as `user`. Doubts of tools without `on_doubt`, and calls that repeat an equal effect, are
    /// then put to a person; otherwise the doubts are given up and the calls are refused.
    pub user_reachable: bool,
    /// Timeouts of model calls, in milliseconds.
    pub model_timeouts: Timeouts,
    /// Finds passages of transcripts and documents; comes from an adapter. `None` means that `notes_search` fails with a message.
    pub retrieval: Option<Arc<dyn Retrieval>>,
    /// Checks JSON against JSON Schema files; comes from an adapter. `None` means that such files are not checked.
    pub judge: Option<Arc<dyn Judge>>,
    /// Limits how often places are asked. Engines of one process that ask the same places should share one.
    pub limiters: Limiters,
    /// Name and version under which the engine owns sessions.
    pub process: Process,
    /// Bound of the past that the owner of a session keeps in memory, in bytes. Older lines are read from the store when a
    /// session needs them. Lines that are not on disk yet are kept above this bound.
    pub past_bytes: usize,
    /// Keeps nothing of a session in memory between two events but what no store holds: the session is read again for each event.
    /// Sessions store the same in both cases. It is slow, and is for tests.
    pub cold: bool,
    /// Observes all sessions that the engine drives.
    pub tap: Option<Arc<dyn Tap>>,
    /// True if the spans of sessions go to a tracing tool: calls of models and tools then carry the trace to their servers.
    pub is_traced: bool,
}

/// A process that owns sessions, as their logs name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Name of the process. Logs keep its first 128 bytes.
    pub owner: Name,
    /// Version of its program.
    pub build: Name,
}

impl Process {
    /// Returns the ledger entry that a new owner writes first.
    pub(crate) fn claimed(&self, epoch: u64, mark: u64) -> LedgerEntry {
        LedgerEntry::Claimed {
            epoch,
            mark,
            owner: bounds::name(&self.owner),
            build: bounds::name(&self.build),
            revision: REVISION,
        }
    }
}

impl Default for Process {
    /// Returns the host and id of this process, and the version of this crate.
    fn default() -> Self {
        let system = rustix::system::uname();
        let host = system.nodename().to_string_lossy();
        let owner = format!("{host}:{}", std::process::id());
        Self {
            owner: owner.into(),
            build: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// Checks JSON against a JSON Schema, for parameters and outputs that a schema file describes.
pub trait Judge: Send + Sync + 'static {
    /// Returns the first misfit in words that help a model to correct it, or `None` if the JSON fits. `schema` is the text of the
    /// file. Only the calling session waits for the result. An implementation runs the check on another thread and bounds its
    /// time.
    fn misfit<'a>(&'a self, schema: &'a Arc<str>, json: Json) -> Boxed<'a, Option<String>>;
}

/// Timeouts of one attempt, in milliseconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Time until the first token.
    pub first: u64,
    /// Time between two tokens.
    pub idle: u64,
    /// Time of the whole attempt.
    pub total: u64,
}

/// Rule by which lines are synced to disk. No level syncs less than [`Durability::Commit`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Output-commit rule: a line is on disk before anything outside can see its effect.
    #[default]
    Commit,
    /// Every line is on disk before the next begins.
    Step,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Commit,
            env: crate::process_env(),
            user_reachable: true,
            model_timeouts: Timeouts {
                first: 120_000,
                idle: 60_000,
                total: 600_000,
            },
            retrieval: None,
            judge: None,
            limiters: Limiters::default(),
            process: Process::default(),
            past_bytes: DEFAULT_BOUND,
            cold: false,
            tap: None,
            is_traced: false,
        }
    }
}

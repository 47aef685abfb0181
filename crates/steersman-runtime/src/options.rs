//! How an engine behaves.

use crate::limiter::Limiters;
use crate::retrieval::Retrieval;
use crate::{Boxed, Env};
use serde_json::Value as Json;
use std::sync::Arc;

/// How an engine behaves.
#[derive(Clone)]
pub struct Options {
    /// When lines are synced.
    pub durability: Durability,
    /// Where `config` and `secrets` are read.
    pub env: Env,
    /// Whether somebody can be asked as `user`: decides the way out of a doubt that declares none.
    pub user_reachable: bool,
    /// How long a model may take, in milliseconds.
    pub model_timeouts: Timeouts,
    /// Finds passages of transcripts and documents; an adapter's. None: `notes_search` fails, and says so.
    pub retrieval: Option<Arc<dyn Retrieval>>,
    /// Judges JSON by JSON Schema files; an adapter's. None: such files are taken at their word.
    pub judge: Option<Arc<dyn Judge>>,
    /// How often places are asked. Engines of one process that ask the same places share one.
    pub limiters: Limiters,
}

/// Judges JSON by a JSON Schema, for parameters and outputs that a file describes.
pub trait Judge: Send + Sync + 'static {
    /// What does not fit, in words that help a model to mend it; none if it fits. `schema` is the file's text. The session
    /// that asks waits for it, and nothing else: whatever takes long, or longer than it may, is done elsewhere.
    fn misfit<'a>(&'a self, schema: &'a Arc<str>, json: Json) -> Boxed<'a, Option<String>>;
}

/// How long an attempt may take, in milliseconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the first token.
    pub first: u64,
    /// Between tokens.
    pub idle: u64,
    /// All in all.
    pub total: u64,
}

/// When lines are synced. There is no third level.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// By the output-commit rule: what others could see is on disk before they see it.
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
        }
    }
}

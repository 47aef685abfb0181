//! What a tool in Rust may know of the call that it runs for, and say while it runs.

use super::ToolError;
use serde_json::Value as Json;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use steersman_machine::artifact::Content;
use steersman_machine::ids::Id;
use steersman_machine::interaction::Class;
use steersman_runtime::artifact::Artifacts;
use steersman_runtime::toolset::{Hear, Progress, ToolRun};
use tokio_util::sync::CancellationToken;

/// The call that a tool runs for: see [`tool_with`](crate::tool_with). Cloning shares it.
#[derive(Clone)]
pub struct ToolContext {
    run: Arc<ToolRun>,
    cancel: CancellationToken,
    hear: Hear,
    made: Arc<Mutex<Vec<Content>>>,
    mode: Arc<Mutex<Option<String>>>,
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("session", &self.session())
            .field("effect", &self.effect())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}

impl ToolContext {
    pub(super) fn new(run: &ToolRun, cancel: &CancellationToken, hear: Hear) -> Self {
        Self {
            run: Arc::new(run.clone()),
            cancel: cancel.clone(),
            hear,
            made: Arc::default(),
            mode: Arc::default(),
        }
    }

    /// The session's id.
    pub fn session(&self) -> &str {
        &self.run.session
    }

    /// The effect's id within the session.
    pub fn effect(&self) -> Id {
        self.run.effect
    }

    /// The idempotency key: the same for every attempt of this call, and of no other call in the world. What is handed on
    /// with it may be repeated: so a tool with [`idempotent`](crate::Tool::idempotent) keeps its word.
    pub fn key(&self) -> String {
        format!(
            "{}.{:x}.{}",
            self.run.session, self.run.mark, self.run.effect
        )
    }

    /// Which attempt it is, from 1.
    pub fn attempt(&self) -> u32 {
        self.run.attempt
    }

    /// The effect class that the definition gives it.
    pub fn class(&self) -> Class {
        self.run.work.class
    }

    /// Cancelled when nobody waits for it any more, or its time is over. Whoever hears of it has two seconds to say what
    /// became of it; then it is cut, and an `unsafe` tool is in doubt.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Tells how far it has come, in any unit. Shown to whoever follows, kept nowhere.
    pub fn progress(
        &self,
        done: f64,
        total: Option<f64>,
        message: impl Into<Option<&'static str>>,
    ) {
        (self.hear)(Progress {
            done,
            total,
            message: message.into().map(str::to_owned),
        });
    }

    /// Makes an artifact, or a new version of one, when the tool is done; if it fails there is none. An artifact is named
    /// like a file, `plots/april.png`; a name that does not do is made one that does.
    pub fn artifact(&self, name: &str, media: &str, bytes: impl Into<Arc<[u8]>>) {
        let content = Content {
            name: name.to_owned(),
            media: media.to_owned(),
            bytes: bytes.into(),
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.push(content);
    }

    /// The agent that called it is in this mode next, when the tool is done and the other calls of the same answer are, too; if
    /// the tool fails nothing changes. The last word counts. It says more than `mode` of the tool's definition does. An agent without modes goes on as it
    /// is; a mode that it has not makes the call fail, and the model is told.
    pub fn mode(&self, mode: impl Into<String>) {
        let mut said = self.mode.lock().unwrap_or_else(PoisonError::into_inner);
        *said = Some(mode.into());
    }

    /// The artifacts that its agent sees.
    pub fn artifacts(&self) -> &Artifacts {
        &self.run.artifacts
    }

    /// A secret of the definition's `secrets:`, as it is now. It is taken out of whatever the tool gives back.
    ///
    /// # Errors
    /// Not performed, if the definition declares none of this name or it is not set.
    pub fn secret(&self, name: &str) -> Result<String, ToolError> {
        let value = self.value(&["secrets", name]);
        let text = value.as_ref().and_then(Json::as_str);
        let text = text.map(str::to_owned);
        text.ok_or_else(|| {
            ToolError::not_performed(format!("the secret `{name}` is not set")).code("secret")
        })
    }

    /// What expressions of the tool's definition would read: `["config", "limit"]`, `["state", "customer"]`.
    pub fn value(&self, path: &[&str]) -> Option<Json> {
        let (root, rest) = path.split_first()?;
        let (mut value, taken) = self.run.scope.path(root, rest)?;
        for name in rest.get(taken..)? {
            value = value.get_attr(name).ok()?;
        }
        serde_json::to_value(value).ok().filter(|v| !v.is_null())
    }

    pub(super) fn take_mode(&self) -> Option<String> {
        let mut said = self.mode.lock().unwrap_or_else(PoisonError::into_inner);
        said.take()
    }

    pub(super) fn take_made(&self) -> Vec<Content> {
        std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

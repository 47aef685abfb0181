//! The context of a call, as a tool in Rust sees it.

use super::ToolError;
use serde_json::Value as Json;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use steersman_machine::stored::ids::Id;
use steersman_machine::stored::interaction::Class;
use steersman_machine::view::artifact::Content;
use steersman_runtime::artifact::Artifacts;
use steersman_runtime::toolset::{Hear, Progress, ToolRun};
use tokio_util::sync::CancellationToken;

/// The context of one call of a tool in Rust ([`tool_with`](crate::tool_with)). Clones are of the same call.
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

    /// Returns the session's id.
    pub fn session(&self) -> &str {
        &self.run.session
    }

    /// Returns the effect's id within the session.
    pub fn effect(&self) -> Id {
        self.run.effect
    }

    /// Returns the idempotency key: the same for every attempt of this call, and different from that of any other call in
    /// the world. An [`idempotent`](crate::Tool::idempotent) tool passes it on, so that the other side can recognise
    /// repeated requests.
    pub fn key(&self) -> String {
        format!(
            "{}.{:x}.{}",
            self.run.session, self.run.mark, self.run.effect
        )
    }

    /// Returns the number of the attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.run.attempt
    }

    /// Returns the effect class that the definition gives the tool.
    pub fn class(&self) -> Class {
        self.run.work.class
    }

    /// Returns a token that is cancelled when the call is no longer awaited or its time is over. The tool then has two
    /// seconds to return its result; after that it is aborted, and an `unsafe` tool is in doubt.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Reports progress, in any unit. Readers of the session's events see it; it is not stored.
    pub fn progress<'a>(&self, done: f64, total: Option<f64>, message: impl Into<Option<&'a str>>) {
        (self.hear)(Progress {
            done,
            total,
            message: message.into().map(str::to_owned),
        });
    }

    /// Makes an artifact, or a new version of one, when the tool succeeds; if the tool fails, nothing is made. An artifact
    /// is named like a file, `plots/april.png`; an unsuitable name is changed into a suitable one.
    pub fn artifact(&self, name: &str, media: &str, bytes: impl Into<Arc<[u8]>>) {
        let content = Content {
            name: name.to_owned(),
            media: media.to_owned(),
            bytes: bytes.into(),
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.push(content);
    }

    /// Sets the next mode of the agent that called the tool. The mode changes when the tool and the other calls of the same
    /// answer are done; if the tool fails, nothing changes. The last call of this method counts, and it overrides `mode` in
    /// the tool's definition. An agent without modes ignores it; a mode that the agent does not have fails the call, and
    /// the model sees the error.
    pub fn mode(&self, mode: impl Into<String>) {
        let mut said = self.mode.lock().unwrap_or_else(PoisonError::into_inner);
        *said = Some(mode.into());
    }

    /// Returns the artifacts that the calling agent sees.
    pub fn artifacts(&self) -> &Artifacts {
        &self.run.artifacts
    }

    /// Returns the current value of a secret from the definition's `secrets:`. The value is masked in everything that the
    /// tool returns.
    ///
    /// # Errors
    /// [`ToolError::not_performed`], if the definition does not declare the secret or it is not set.
    pub fn secret(&self, name: &str) -> Result<String, ToolError> {
        let value = self.value(&["secrets", name]);
        let text = value.as_ref().and_then(Json::as_str);
        let text = text.map(str::to_owned);
        text.ok_or_else(|| {
            ToolError::not_performed(format!("the secret `{name}` is not set")).code("secret")
        })
    }

    /// Returns the value that an expression of the tool's definition would read: `["config", "limit"]`,
    /// `["state", "customer"]`.
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

//! The context of a call, as a tool in Rust sees it.

use super::ToolError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use steersman_machine::stored::bounds::{self, NAME};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::stored::interaction::Class;
use steersman_machine::view::artifact::Content;
use steersman_runtime::artifact::Artifacts;
use steersman_runtime::toolset::{Hear, Heard, Leave, Progress, STEP_RESULT, STEPS, ToolRun};
use tokio_util::sync::CancellationToken;

/// The context of one call of a tool in Rust ([`tool_with`](crate::tool_with)). Clones are of the same call.
#[derive(Clone)]
pub struct ToolContext {
    run: Arc<ToolRun>,
    cancel: CancellationToken,
    hear: Hear,
    made: Arc<Mutex<Vec<Content>>>,
    mode: Arc<Mutex<Option<String>>>,
    writes: Arc<Mutex<Vec<(String, Json)>>>,
    /// Names of the steps and waits of this attempt.
    steps: Arc<Mutex<BTreeSet<String>>>,
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
            writes: Arc::default(),
            steps: Arc::default(),
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
        (self.hear)(Heard::Progress(Progress {
            done,
            total,
            message: message.into().map(str::to_owned),
        }));
    }

    /// Shows a piece of the text that the call will give, as a model shows its answer while it writes. Readers of the session's
    /// events get it as [`EventKind::Piece`](crate::EventKind::Piece). It is not stored, and is taken back if the attempt fails.
    pub fn say(&self, piece: impl Into<String>) {
        (self.hear)(Heard::Text(piece.into()));
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

    /// Writes an entry of state, as `set` in the tool's definition does: the write is part of the call's result. It is on disk
    /// with that result, in one line, and takes effect when the tool and the other calls of the same answer are done. If the
    /// tool fails, nothing is written. A repeated attempt begins without writes, so nothing is written twice.
    ///
    /// The entry is the nearest one of this name: of the calling agent, of its caller, and so on. `None` unsets it. An entry
    /// with `reduce` joins the value to what it has. Writes of this method follow those of `set`; of two values of one entry
    /// the last one stays. [`value`](Self::value) reads the state from before the call. A value of a `secret` entry is sealed;
    /// do not return it as well. All values of a call together have at most 96 KiB as JSON.
    ///
    /// ```
    /// # use schemars::JsonSchema;
    /// # use serde::Deserialize;
    /// # use steersman::{ToolError, tool_with};
    /// # #[derive(Deserialize, JsonSchema)]
    /// # struct Order { item: String, cents: u64 }
    /// # async fn charge(_: u64) -> Result<String, ToolError> { Ok("r-1".into()) }
    /// let order = tool_with("order", 1, |order: Order, cx| async move {
    ///     let receipt = cx.step("charge", charge(order.cents)).await?;
    ///     cx.set("receipt", &receipt)?;
    ///     Ok::<_, ToolError>(receipt)
    /// });
    /// # let _ = order;
    /// ```
    ///
    /// # Errors
    /// No entry of this name is declared where the tool is called, or the value does not fit it. Nothing is written then, and the
    /// tool may go on. By `?` the call fails with the code `misfit`; an `unsafe` tool is in doubt, as with any error by `?`.
    pub fn set(&self, name: &str, value: impl Serialize) -> Result<(), ToolError> {
        let refused = |why: String| ToolError::no_write(name, &why);
        let value = serde_json::to_value(value).map_err(|e| refused(e.to_string()))?;
        let Some(state) = &self.run.writes else {
            return Err(refused(
                "a tool that the engine runs for itself writes no state".to_owned(),
            ));
        };
        let checked = state.check(name, &value);
        checked.map_err(|fault| refused(fault.message))?;
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let all = writes.iter().map(|(_, value)| bounds::size(value));
        let bytes = all.sum::<usize>() + bounds::size(&value);
        if bytes > bounds::VALUES {
            let most = bounds::VALUES >> 10;
            return Err(refused(format!(
                "the call writes {bytes} bytes, more than {most} KiB"
            )));
        }
        writes.push((name.to_owned(), value));
        Ok(())
    }

    /// Runs a step of the tool once in the session's life, and records its end. If an earlier attempt of the call finished the
    /// step, returns what it gave then, and the future is dropped without being polled. The end is on disk before this method
    /// returns.
    ///
    /// The name identifies the step in all attempts of the call, so it follows from the call's arguments and from results of
    /// steps: `charge`, `mail 3`. The result is stored as JSON, at most 256 KiB; larger results are [artifacts](Self::artifact).
    /// A call has at most 1,000 steps and waits.
    ///
    /// All that touches the world belongs in steps then: what stands around them runs again in a later attempt, in an
    /// [`unsafe`](crate::Tool::unsafe_) tool, too, once it has recorded a step. If it is not known how a step of an `unsafe` tool
    /// ended, the tool is in doubt, and the question names the step; in any other tool the next attempt runs the step again.
    ///
    /// ```
    /// # use schemars::JsonSchema;
    /// # use serde::Deserialize;
    /// # use steersman::{ToolError, tool_with};
    /// # use std::time::Duration;
    /// # #[derive(Deserialize, JsonSchema)]
    /// # struct Order { item: String, cents: u64 }
    /// # async fn reserve(_: &str) -> Result<u64, ToolError> { Ok(1) }
    /// # async fn charge(_: u64, _: u64) -> Result<String, ToolError> { Ok("r-1".into()) }
    /// # async fn remind(_: &str) -> Result<(), ToolError> { Ok(()) }
    /// let order = tool_with("order", 1, |order: Order, cx| async move {
    ///     let number = cx.step("reserve", reserve(&order.item)).await?;
    ///     let receipt = cx.step("charge", charge(number, order.cents)).await?;
    ///     cx.wait("before the reminder", Duration::from_secs(24 * 3600)).await?;
    ///     cx.step("remind", remind(&receipt)).await?;
    ///     Ok::<_, ToolError>(receipt)
    /// });
    /// # let _ = order;
    /// ```
    ///
    /// # Errors
    /// The error of the step. One that says that the step did not happen or failed is recorded, and later attempts get it as
    /// [`ToolError::failed`]; with [`retry_after`](ToolError::retry_after) the next attempt runs the step again. Also an error
    /// if the attempt had a step of this name, if the call does not run any more, or if the recorded result is not a `T`; the
    /// future does not run then. A result that is too large counts as failed.
    pub async fn step<T, E>(
        &self,
        name: &str,
        run: impl Future<Output = Result<T, E>>,
    ) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<ToolError>,
    {
        let named = self.next_step(name)?;
        let Some(steps) = &self.run.steps else {
            return run.await.map_err(Into::into);
        };
        let begun = match steps.clone().begin(named).await {
            Leave::Begin(begun) => begun,
            Leave::Ended(Ok(json)) => {
                return serde_json::from_str(&json).map_err(|e| {
                    let message = format!("the recorded result of step `{name}`: {e}");
                    ToolError::failed(message).code(Code::Misfit.text())
                });
            }
            Leave::Ended(Err(fault)) => {
                return Err(ToolError::failed(fault.message).code(&fault.code));
            }
            Leave::Refused(fault) => return Err(ToolError::refused_step(name, fault)),
        };
        let ended = match run.await.map_err(Into::into) {
            Ok(result) => step_json(name, &result).map(|json| (result, json)),
            Err(error) => Err(error),
        };
        let (end, ended) = match ended {
            Ok((result, json)) => (Ok(json), Ok(result)),
            // Its end is unknown, and dropping it says so.
            Err(error) if error.may_have_happened(self.class()) => return Err(error),
            Err(error) => (Err(error.fault()), Err(error)),
        };
        let recorded = begun.end(end).await;
        recorded.map_err(|fault| ToolError::refused_step(name, fault))?;
        ended
    }

    /// Waits inside of a call, however long. The time counts from the first attempt that asks, and is in the log. Unless it is
    /// over, the attempt ends here: the closure of the tool is dropped, its slot is free, and the session may leave memory. When
    /// the time has come, another attempt runs the tool from its start; steps that are recorded and waits that are over are
    /// passed at once. The name identifies the wait, as that of a [step](Self::step) does.
    ///
    /// # Errors
    /// The attempt had a step or wait of this name, or the call does not run any more.
    pub async fn wait(&self, name: &str, time: Duration) -> Result<(), ToolError> {
        let named = self.next_step(name)?;
        let Some(steps) = &self.run.steps else {
            let message = "a tool that the engine runs for itself cannot wait";
            return Err(ToolError::not_performed(message));
        };
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let waited = steps.clone().wait(named, millis).await;
        waited.map_err(|fault| ToolError::refused_step(name, fault))
    }

    /// Checks the name of the next step or wait.
    fn next_step(&self, name: &str) -> Result<Name, ToolError> {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let why = if name.is_empty() || name.len() > NAME {
            format!("the name of a step has 1 to {NAME} bytes")
        } else if steps.len() >= STEPS as usize {
            format!("a call has at most {STEPS} steps")
        } else if !steps.insert(name.to_owned()) {
            "this attempt had a step of this name".to_owned()
        } else {
            return Ok(name.into());
        };
        Err(ToolError::no_step(name, &why))
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
    /// `["state", "customer"]`. State is as of the line that asked for the call, in every attempt.
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

    pub(super) fn take_writes(&self) -> Vec<(String, Json)> {
        std::mem::take(&mut *self.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn take_made(&self) -> Vec<Content> {
        std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the result of a step as JSON. The step was run, so an error says that it failed.
fn step_json<T: Serialize>(name: &str, result: &T) -> Result<String, ToolError> {
    let json = serde_json::to_string(result)
        .map_err(|e| ToolError::failed(format!("the result of step `{name}` is not JSON: {e}")))?;
    if json.len() <= STEP_RESULT {
        return Ok(json);
    }
    let message = format!(
        "step `{name}` is done, but its result has {} bytes: a recorded result has at most {STEP_RESULT}",
        json.len()
    );
    Err(ToolError::failed(message).code("too_large"))
}

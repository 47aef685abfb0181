//! Tools written in Rust: a name, a version, and an async closure with a typed argument.

use futures::FutureExt;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError, RwLock};
use steersman_machine::network::{Network as Checked, Source};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::interaction::Class;
use steersman_machine::tick::effect::ToolWork;
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::Boxed;
use steersman_runtime::toolset::{Hear, ToolRun, Toolset};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

mod context;
mod pace;

use crate::build::Keys;
pub use context::ToolContext;
use pace::{Measured, Pace};

type Run = Arc<dyn Fn(Json, ToolContext) -> Boxed<'static, Result<Json, ToolError>> + Send + Sync>;

/// A tool written in Rust. Created by [`tool`] or [`tool_with`].
#[derive(Clone)]
pub struct Tool {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) class: Class,
    pub(crate) class_given: bool,
    /// JSON Schema of the argument.
    pub(crate) schema: Json,
    /// Keys of the definition's `tools.NAME`, for networks built in Rust.
    pub(crate) keys: serde_json::Map<String, Json>,
    run: Run,
    /// True if the closure can react to a cancel and report how the call ended.
    hears: bool,
    pace: Arc<Pace>,
}

/// Creates a tool from a name, a version and an async closure. The closure's argument type, a struct, defines the
/// parameters that are shown to the model and checked. The version is part of the network's digest, so raise it when the
/// tool would do something else with the same argument.
///
/// The default class is [`Tool::unsafe_`]: if it is not known whether a call happened, the call is not repeated without a
/// person or a probe.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// let add = steersman::tool("add", 1, |Add { a, b }| async move { Ok::<_, String>(a + b) }).pure();
/// # let _ = add;
/// ```
pub fn tool<A, F, Fut, T, E>(name: &str, version: impl fmt::Display, run: F) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Serialize,
    E: Into<ToolError>,
{
    let tool = tool_with(name, version, move |args, _| run(args));
    Tool {
        hears: false,
        ..tool
    }
}

/// Creates a tool whose closure also receives a [`ToolContext`]: the idempotency key, the cancel, secrets, artifacts,
/// progress.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use steersman::{ToolError, tool_with};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Post { invoice: String, cents: u64 }
///
/// # async fn post(_: &Post, _: &str, _: &str) -> Result<u64, std::io::Error> { Ok(1) }
/// let post_invoice = tool_with("post_invoice", 1, |invoice: Post, cx| async move {
///     let token = cx.secret("ledger_token")?;
///     cx.progress(0.0, Some(1.0), "posts");
///     // the key is the same in each attempt, and the ledger posts once for each key
///     let number = post(&invoice, &cx.key(), &token)
///         .await
///         .map_err(|e| ToolError::unknown(e.to_string()))?;
///     cx.artifact("receipt.txt", "text/plain", format!("posted as {number}").into_bytes());
///     Ok::<_, ToolError>(number)
/// })
/// .idempotent();
/// # let _ = post_invoice;
/// ```
pub fn tool_with<A, F, Fut, T, E>(name: &str, version: impl fmt::Display, run: F) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Serialize,
    E: Into<ToolError>,
{
    let mut settings = schemars::generate::SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<A>();
    let run: Run = Arc::new(move |args, cx| {
        let args = serde_json::from_value::<A>(args);
        let started = args.map(|args| run(args, cx));
        Box::pin(async move {
            let ended = match started {
                Ok(running) => running.await.map_err(Into::into)?,
                Err(e) => {
                    return Err(ToolError::not_performed(e.to_string()).code(Code::Misfit.text()));
                }
            };
            serde_json::to_value(ended)
                .map_err(|e| ToolError::unknown(format!("its result is not JSON: {e}")))
        })
    });
    Tool {
        name: name.to_owned(),
        version: version.to_string(),
        class: Class::Unsafe,
        class_given: false,
        schema: schema.to_value(),
        keys: serde_json::Map::new(),
        run,
        hears: true,
        pace: Arc::default(),
    }
}

/// Runs a closure that blocks its thread (files, a synchronous database driver, long computation) on a separate thread, and waits
/// for it. The closure cannot be stopped: if the call is cancelled meanwhile, the session continues and the closure runs to its
/// end.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use steersman::{blocking, tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Read { path: String }
///
/// let read = tool("read", 1, |read: Read| blocking(move || std::fs::read_to_string(read.path))).read();
/// # let _ = read;
/// ```
///
/// # Errors
/// Returns the error of the closure.
pub async fn blocking<T, E>(
    run: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, ToolError>
where
    T: Send + 'static,
    E: Into<ToolError> + Send + 'static,
{
    match tokio::task::spawn_blocking(run).await {
        Ok(ended) => ended.map_err(Into::into),
        // Resume the panic, so that it becomes an outcome of the tool.
        Err(e) if e.is_panic() => std::panic::resume_unwind(e.into_panic()),
        Err(_) => Err(ToolError::unknown("it was cut off")),
    }
}

impl Tool {
    /// Sets the class `pure`: the tool depends on nothing outside and changes nothing outside.
    pub fn pure(self) -> Self {
        self.class(Class::Pure)
    }
    /// Sets the class `read`: the tool changes nothing outside.
    pub fn read(self) -> Self {
        self.class(Class::Read)
    }
    /// Sets the class `idempotent`: two calls with the same key have the effect of one, so the tool may be repeated.
    pub fn idempotent(self) -> Self {
        self.class(Class::Idempotent)
    }
    /// Sets the class `unsafe`, the default: a call must not be repeated while it is not known whether it happened.
    pub fn unsafe_(self) -> Self {
        self.class(Class::Unsafe)
    }
    fn class(mut self, class: Class) -> Self {
        self.class = class;
        self.class_given = true;
        self
    }

    /// Sets any key that a tool may have in a definition (*Tool* in the reference).
    pub fn key(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.keys.insert(key.to_owned(), value.into());
        self
    }

    /// Returns the tool's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Keys for Tool {
    fn put(self, key: &'static str, value: Json) -> Self {
        self.key(key, value)
    }
    fn at(&mut self, key: &'static str) -> Option<&mut Json> {
        self.keys.get_mut(key)
    }
}

/// A tool of a network that is built in Rust which is no Rust itself: a request, a command, a question, a wait, or writes of state.
/// Created by [`declare`].
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a tool does nothing until it is added to a network"]
pub struct Declared {
    name: String,
    keys: serde_json::Map<String, Json>,
}

/// Declares a tool of this name, for [`Builder::declare`](crate::Builder::declare).
///
/// ```
/// use steersman::declare;
///
/// let plan = declare("plan").describe("Notes the plan.").parameter("text", "string").set("plan", "{{ args.text }}");
/// assert_eq!(plan.name(), "plan");
/// ```
pub fn declare(name: &str) -> Declared {
    Declared {
        name: name.to_owned(),
        keys: serde_json::Map::new(),
    }
}

impl Declared {
    /// Returns the tool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn into_parts(self) -> (String, serde_json::Map<String, Json>) {
        (self.name, self.keys)
    }
}

impl Keys for Declared {
    fn put(mut self, key: &'static str, value: Json) -> Self {
        self.keys.insert(key.to_owned(), value);
        self
    }
    fn at(&mut self, key: &'static str) -> Option<&mut Json> {
        self.keys.get_mut(key)
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

/// Error of a tool: the message that the model sees, and whether the effect may have happened.
///
/// | constructor | meaning | consequence |
/// |---|---|---|
/// | [`not_performed`](Self::not_performed) | it did not happen | the call failed; with `retry_after` it is tried again |
/// | [`failed`](Self::failed) | it ran to its end, without success | the call failed; nothing is in doubt |
/// | [`unknown`](Self::unknown) | it may have happened | an `idempotent` tool is retried; an `unsafe` one is in doubt |
/// | from an error, by `?` | it depends on the class | as `unknown` for an `unsafe` tool, else as `not_performed` |
///
/// A retry uses the same idempotency key. A doubt is resolved by a probe or a person.
///
/// A panic counts as `unknown`, with the code `panicked`; in a `pure` or `read` tool as `not_performed`.
///
/// ```
/// use steersman::ToolError;
///
/// let closed = ToolError::not_performed("the ledger is closed for the night").code("closed").retry_after(60_000);
/// assert_eq!(closed.to_string(), "the ledger is closed for the night");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    code: String,
    message: String,
    happened: Happened,
    again: Option<u64>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Happened {
    /// It certainly did not happen.
    No,
    /// It ran to its end and failed, so nothing is in doubt.
    Over,
    /// It may have happened.
    Unknown,
    /// The class decides: a failed `unsafe` tool may have happened.
    AsItsClass,
}

impl ToolError {
    /// The effect certainly did not happen. The call fails; it is tried again only with [`retry_after`](Self::retry_after).
    pub fn not_performed(message: impl Into<String>) -> Self {
        Self {
            code: Code::Failed.text().to_owned(),
            message: message.into(),
            happened: Happened::No,
            again: None,
        }
    }
    /// The tool ran to its end and failed. The message describes what it did; nothing is in doubt.
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            happened: Happened::Over,
            ..Self::not_performed(message)
        }
    }
    /// The effect may have happened; an `unsafe` tool is then in doubt.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self {
            happened: Happened::Unknown,
            ..Self::not_performed(message)
        }
    }
    /// Sets the code that `on_error` sees; the default is `failed`.
    pub fn code(mut self, code: &str) -> Self {
        code.clone_into(&mut self.code);
        self
    }

    /// Allows another attempt, after at least this many milliseconds. The definition's `retry` sets the number of attempts.
    pub fn retry_after(mut self, millis: u64) -> Self {
        self.again = Some(millis);
        self
    }

    /// A step that did not begin.
    fn no_step(step: &str, why: &str) -> Self {
        Self {
            happened: Happened::AsItsClass,
            ..Self::not_performed(format!("step `{step}`: {why}"))
        }
    }

    /// A write that does not fit.
    fn no_write(entry: &str, why: &str) -> Self {
        Self {
            happened: Happened::AsItsClass,
            ..Self::not_performed(format!("set `{entry}`: {why}")).code(Code::Misfit.text())
        }
    }

    /// The session refused a step.
    fn refused_step(step: &str, fault: Fault) -> Self {
        Self::no_step(step, &fault.message).code(&fault.code)
    }

    /// Returns true if what failed in a tool of this class may have happened.
    fn may_have_happened(&self, class: Class) -> bool {
        match self.happened {
            Happened::No | Happened::Over => false,
            Happened::Unknown => true,
            Happened::AsItsClass => class == Class::Unsafe,
        }
    }

    fn fault(&self) -> Fault {
        Fault {
            code: self.code.clone(),
            message: self.message.clone(),
            status: None,
            again: self.again,
        }
    }

    fn raw(self, class: Class) -> Raw {
        let fault = self.fault();
        match self.happened {
            Happened::Over => Raw::Failed(fault),
            Happened::No | Happened::Unknown | Happened::AsItsClass => {
                if self.may_have_happened(class) {
                    Raw::Unknown(fault)
                } else {
                    Raw::NotPerformed(fault)
                }
            }
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

macro_rules! from_error {
    ($($ty:ty),* $(,)?) => {$(
        /// The effect of a failed `unsafe` tool may have happened; that of any other tool counts as not performed.
        impl From<$ty> for ToolError {
            fn from(error: $ty) -> Self {
                Self {
                    happened: Happened::AsItsClass,
                    ..Self::not_performed(error.to_string())
                }
            }
        }
    )*};
}
from_error!(
    String,
    &str,
    std::io::Error,
    fmt::Error,
    serde_json::Error,
    Box<dyn std::error::Error + Send + Sync>,
    std::convert::Infallible,
);

/// The registered tools of a program, by name, then by version.
#[derive(Default)]
pub(crate) struct RustTools(RwLock<BTreeMap<String, BTreeMap<String, Arc<Tool>>>>);

impl RustTools {
    /// Registers tools. A tool replaces an earlier one of the same name and version.
    pub(crate) fn add<'a>(&self, tools: impl Iterator<Item = &'a Tool>) {
        let mut registered = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for tool in tools {
            let versions = registered.entry(tool.name.clone()).or_default();
            versions.insert(tool.version.clone(), Arc::new(tool.clone()));
        }
    }

    fn find(&self, name: &str, version: &str) -> Option<Arc<Tool>> {
        let registered = self.0.read().unwrap_or_else(PoisonError::into_inner);
        registered.get(name)?.get(version).cloned()
    }

    fn get(&self, network: &Checked, tool: &str) -> Option<Arc<Tool>> {
        let Source::Native { version } = &network.tools.get(tool)?.source else {
            return None;
        };
        self.find(tool, version)
    }
}

impl Toolset for RustTools {
    fn has(&self, network: &Checked, tool: &str) -> bool {
        self.get(network, tool).is_some()
    }

    fn has_native(&self, name: &str, version: &str) -> bool {
        self.find(name, version).is_some()
    }

    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        self.run_heard(run, cancel, Arc::new(|_| ()))
    }

    fn run_heard<'a>(
        &'a self,
        run: &'a ToolRun,
        cancel: &'a CancellationToken,
        hear: Hear,
    ) -> Boxed<'a, Raw> {
        Box::pin(async move {
            let ToolWork { tool, class, .. } = &run.work;
            let Some(registered) = self.get(&run.network, tool) else {
                return ToolError::not_performed("it is not registered in this program")
                    .raw(*class);
            };
            let args = match arguments(run) {
                Ok(args) => args,
                Err(e) => return ToolError::not_performed(e.to_string()).raw(*class),
            };
            let cx = ToolContext::new(run, cancel, hear);
            let (run, its) = (registered.run.clone(), cx.clone());
            let call = AssertUnwindSafe(async move { run(args, its).await });
            let mut call = registered.begins(call.catch_unwind());
            let ended = tokio::select! {
                biased;
                ended = &mut call => ended,
                () = cancel.cancelled() => {
                    if !registered.hears {
                        return ToolError::unknown("it was cut off").code(Code::Cancelled.text()).raw(*class);
                    }
                    call.await
                }
            };
            match ended {
                Ok(Ok(result)) => match (cx.take_made(), cx.take_writes(), cx.take_mode()) {
                    (made, writes, None) if made.is_empty() && writes.is_empty() => {
                        Raw::Done(result)
                    }
                    (made, writes, mode) => Raw::Made {
                        result,
                        made,
                        writes,
                        mode,
                    },
                },
                Ok(Err(error)) => error.raw(*class),
                // A tool without effects would panic again, so it is not retried.
                Err(panic) => ToolError {
                    happened: if class.is_free() {
                        Happened::No
                    } else {
                        Happened::Unknown
                    },
                    ..ToolError::not_performed(panic_message(panic)).code("panicked")
                }
                .raw(*class),
            }
        })
    }
}

/// The result of a call, or the payload of its panic.
type Ended = Result<Result<Json, ToolError>, Box<dyn std::any::Any + Send>>;

impl Tool {
    /// Begins a call: in the caller's task if the tool is quick, otherwise in a task of its own, which is aborted when the call is
    /// dropped.
    fn begins(&self, call: impl Future<Output = Ended> + Send + 'static) -> Boxed<'static, Ended> {
        let call = Measured::new(call, self.pace.clone());
        if self.pace.is_quick() {
            return Box::pin(call);
        }
        let task = AbortOnDropHandle::new(tokio::spawn(call));
        Box::pin(async move {
            let cut = |_| Ok(Err(ToolError::unknown("it was cut off")));
            task.await.unwrap_or_else(cut)
        })
    }
}

/// Returns the arguments of a call. Secret arguments are opened only here.
fn arguments(run: &ToolRun) -> serde_json::Result<Json> {
    match run.scope.root("args") {
        Some(args) => serde_json::to_value(args),
        None => serde_json::from_str(&run.work.args),
    }
}

pub(crate) fn panic_message(panic: Box<dyn std::any::Any + Send>) -> String {
    let said = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    match said {
        Some(said) => format!("it panicked: {said}"),
        None => "it panicked".into(),
    }
}

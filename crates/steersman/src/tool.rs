//! Tools written in Rust: a name, a version, and an async closure with a typed argument.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};
use steersman_machine::effect::ToolWork;
use steersman_machine::interaction::Class;
use steersman_machine::mapping::{Fault, Raw};
use steersman_machine::network::{Network as Checked, Source};
use steersman_runtime::Boxed;
use steersman_runtime::toolset::{ToolRun, Toolset};
use tokio_util::sync::CancellationToken;

type Run = Arc<dyn Fn(Json) -> Boxed<'static, Result<Json, ToolError>> + Send + Sync>;

/// A tool written in Rust. Made by [`tool`].
#[derive(Clone)]
pub struct Tool {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) class: Class,
    pub(crate) class_given: bool,
    /// JSON Schema of its argument.
    pub(crate) schema: Json,
    /// Keys of the definition's `tools.NAME`, for networks built in Rust.
    pub(crate) keys: serde_json::Map<String, Json>,
    run: Run,
}

/// A tool of this name and version. The argument's type, a struct, gives the parameters that the model is told of
/// (its fields) and checked against; the version is part of the network's digest, so raise it when the tool would do
/// something else with the same argument.
///
/// It is [`Tool::unsafe_`] unless something else is said: started once, and never repeated by anybody on its own when
/// it is not known whether it happened.
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
    let mut settings = schemars::generate::SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<A>();
    let run: Run = Arc::new(move |args| {
        let args = serde_json::from_value::<A>(args);
        let started = args.map(&run);
        Box::pin(async move {
            let ended = match started {
                Ok(running) => running.await.map_err(Into::into)?,
                Err(e) => {
                    return Err(ToolError::not_performed(e.to_string()).code("misfit"));
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
    }
}

impl Tool {
    /// It depends on nothing outside and changes nothing outside.
    pub fn pure(self) -> Self {
        self.class(Class::Pure)
    }
    /// It changes nothing outside.
    pub fn read(self) -> Self {
        self.class(Class::Read)
    }
    /// It may be repeated: doing it twice with the same key is doing it once.
    pub fn idempotent(self) -> Self {
        self.class(Class::Idempotent)
    }
    /// It must not be repeated when nobody knows whether it happened. The default.
    pub fn unsafe_(self) -> Self {
        self.class(Class::Unsafe)
    }
    fn class(mut self, class: Class) -> Self {
        self.class = class;
        self.class_given = true;
        self
    }

    /// What the model is told it does. For networks built in Rust; in YAML it stands at the tool.
    pub fn describe(self, description: &str) -> Self {
        self.key("description", description)
    }
    /// An expression that must hold before it runs: `args.cents <= state.balance`. May be called more than once.
    pub fn requires(mut self, expression: &str) -> Self {
        let all = self
            .keys
            .entry("requires")
            .or_insert_with(|| Json::Array(Vec::new()));
        if let Json::Array(all) = all {
            all.push(expression.into());
        }
        self
    }
    /// An expression: when it holds, a person decides first, on exactly these arguments.
    pub fn approve(self, expression: &str) -> Self {
        self.key("approve", expression)
    }
    /// A state entry that it writes when it is done, with a template over `args` and `result`.
    pub fn set(mut self, entry: &str, template: &str) -> Self {
        let set = self
            .keys
            .entry("set")
            .or_insert_with(|| Json::Object(serde_json::Map::new()));
        if let Json::Object(set) = set {
            set.insert(entry.to_owned(), template.into());
        }
        self
    }
    /// Any key of the definition format's *Tool*.
    pub fn key(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.keys.insert(key.to_owned(), value.into());
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
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

/// Why a tool did not give a result, and whether it may have had its effect all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    code: String,
    message: String,
    happened: Happened,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Happened {
    /// Proved not to have happened.
    No,
    /// Nobody knows.
    Unknown,
    /// As its class says: an `unsafe` tool that fails may have happened.
    AsItsClass,
}

impl ToolError {
    /// It is proved not to have happened: it may run again.
    pub fn not_performed(message: impl Into<String>) -> Self {
        Self {
            code: "failed".into(),
            message: message.into(),
            happened: Happened::No,
        }
    }
    /// It may have happened: an `unsafe` tool is in doubt then.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self {
            happened: Happened::Unknown,
            ..Self::not_performed(message)
        }
    }
    /// The code that `on_error` sees, instead of `failed`.
    pub fn code(mut self, code: &str) -> Self {
        code.clone_into(&mut self.code);
        self
    }

    fn raw(self, class: Class) -> Raw {
        let fault = Fault {
            code: self.code,
            message: self.message,
            status: None,
            again: None,
        };
        match self.happened {
            Happened::Unknown => Raw::Unknown(fault),
            Happened::AsItsClass if class == Class::Unsafe => Raw::Unknown(fault),
            Happened::No | Happened::AsItsClass => Raw::NotPerformed(fault),
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
        /// An `unsafe` tool that fails so may have happened; any other is taken not to have.
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

/// The registered tools of a program, by name and version, as the runtime runs them.
#[derive(Default)]
pub(crate) struct RustTools(RwLock<BTreeMap<(String, String), Tool>>);

impl RustTools {
    /// Registers tools; one of the same name and version takes the place of the one before.
    pub(crate) fn add<'a>(&self, tools: impl Iterator<Item = &'a Tool>) {
        let mut registered = self.0.write().unwrap_or_else(PoisonError::into_inner);
        registered.extend(tools.map(|t| ((t.name.clone(), t.version.clone()), t.clone())));
    }

    fn get(&self, network: &Checked, tool: &str) -> Option<Tool> {
        let Source::Native { version } = &network.tools.get(tool)?.source else {
            return None;
        };
        let registered = self.0.read().unwrap_or_else(PoisonError::into_inner);
        registered.get(&(tool.to_owned(), version.clone())).cloned()
    }
}

impl Toolset for RustTools {
    fn has(&self, network: &Checked, tool: &str) -> bool {
        self.get(network, tool).is_some()
    }

    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
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
            // a task of its own: a panic in it is an outcome, and it can be dropped when it is cut
            let mut task = tokio::spawn((registered.run)(args));
            tokio::select! {
                ended = &mut task => match ended {
                    Ok(Ok(result)) => Raw::Done(result),
                    Ok(Err(error)) => error.raw(*class),
                    // what touches nothing would panic again, so it is not tried again
                    Err(e) if e.is_panic() => ToolError {
                        happened: if class.is_free() {
                            Happened::No
                        } else {
                            Happened::Unknown
                        },
                        ..ToolError::not_performed(panic_message(e.into_panic())).code("panicked")
                    }
                    .raw(*class),
                    Err(_) => ToolError::unknown("it was cut off").raw(*class),
                },
                () = cancel.cancelled() => {
                    task.abort();
                    ToolError::unknown("it was cut off").code("cancelled").raw(*class)
                }
            }
        })
    }
}

/// Its arguments; secret ones are opened here and nowhere before.
fn arguments(run: &ToolRun) -> serde_json::Result<Json> {
    match run.scope.root("args") {
        Some(args) => serde_json::to_value(args),
        None => serde_json::from_str(&run.work.args),
    }
}

fn panic_message(panic: Box<dyn std::any::Any + Send>) -> String {
    let said = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    match said {
        Some(said) => format!("it panicked: {said}"),
        None => "it panicked".into(),
    }
}

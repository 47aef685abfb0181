//! Hooks in Rust around the life of agents.

use crate::tool::panic_message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use steersman_machine::network::hooks;
use steersman_machine::network::hooks::{
    Answer as HookAnswer, At as HookAt, Request as HookRequest,
};
use steersman_machine::stored::commit::Moment;

type Run = Arc<dyn Fn(&HookAt, Json) -> Result<Json, String> + Send + Sync>;

/// A hook: closures that see what goes to an agent's model and tools and what comes back, and may change it. Created by [`hook`].
#[derive(Clone)]
#[must_use = "a hook does nothing until it is added to a network"]
pub struct Hook {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Keys of the definition's `hooks.NAME`, for networks built in Rust.
    pub(crate) keys: Map<String, Json>,
    runs: BTreeMap<Moment, Run>,
}

/// Creates a hook from a name and a version, for [`Builder::hook`](crate::Builder::hook). The version is part of the network's digest,
/// so raise it when the hook would do something else.
///
/// A closure is a pure function: no clock, no I/O, no memory of its own. It may be asked more than once for one line of the log, and
/// the session waits for it. The line records what it changed, before a request leaves and before an answer is used. So a takeover
/// does not ask it again. Work that touches the world belongs into a tool.
///
/// It sees what the log has: secrets are handles. An error or a panic fails the model call, the call or the answer with the code
/// `hook`, and so does a closure that takes longer than `timeout`, which is 1 second if the definition does not say.
///
/// ```
/// use steersman::{Network, Steersman, Turn, hook};
///
/// const DEFINITION: &str = "
/// agents: { desk: { system: You settle complaints. } }
/// hooks: { redact: { native: 1 } }
/// ";
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), steersman::Error> {
/// let redact = hook("redact", 1)
///     .before_model(|_, request| {
///         for said in request.texts_mut() {
///             said.text = said.text.replace("4111 1111", "[card]");
///         }
///         Ok(())
///     })
///     .on_finish(|at, answer| {
///         answer.push_str(&format!(" -- {}", at.agent));
///         Ok(())
///     });
/// let network = Network::from_yaml(DEFINITION).hook(redact).build()?;
/// let steersman = Steersman::options().script_all("desk: [ We pay it back. ]").in_memory();
/// let session = steersman.start(&network).await?;
/// let Turn::Answer(answer) = session.ask("You charged 4111 1111 twice.").await? else { panic!("it answers") };
/// assert_eq!(answer.text(), "We pay it back. -- desk");
/// # Ok(())
/// # }
/// ```
pub fn hook(name: &str, version: impl fmt::Display) -> Hook {
    Hook {
        name: name.to_owned(),
        version: version.to_string(),
        keys: Map::new(),
        runs: BTreeMap::new(),
    }
}

impl Hook {
    /// Changes the request of a model call of an agent before it leaves. Questions that the engine asks for itself (decisions of a
    /// router, summaries, extractions) have none.
    pub fn before_model<F>(self, run: F) -> Self
    where
        F: Fn(&HookAt, &mut HookRequest) -> Result<(), String> + Send + Sync + 'static,
    {
        self.at(Moment::BeforeModel, run)
    }

    /// Changes the answer of a model before it is used: its text, the arguments of its calls, or which calls are made. While an agent
    /// has such a hook, pieces of its answers are not streamed.
    pub fn after_model<F>(self, run: F) -> Self
    where
        F: Fn(&HookAt, &mut HookAnswer) -> Result<(), String> + Send + Sync + 'static,
    {
        self.at(Moment::AfterModel, run)
    }

    /// Changes the arguments of a call of a tool or agent, before guards and people judge it.
    pub fn before_call<F>(self, run: F) -> Self
    where
        F: Fn(&HookAt, &mut Map<String, Json>) -> Result<(), String> + Send + Sync + 'static,
    {
        self.at(Moment::BeforeCall, run)
    }

    /// Changes the result of a call before its caller gets it. State that the call wrote stays. If it fails, the call was made all
    /// the same, and the caller learns that it does not see the result.
    pub fn after_call<F>(self, run: F) -> Self
    where
        F: Fn(&HookAt, &mut String) -> Result<(), String> + Send + Sync + 'static,
    {
        self.at(Moment::AfterCall, run)
    }

    /// Changes the answer that ends a turn or task of an agent, before its type is checked and before a reviewer reads it. While an
    /// agent has such a hook, pieces of its answers are not streamed.
    pub fn on_finish<F>(self, run: F) -> Self
    where
        F: Fn(&HookAt, &mut String) -> Result<(), String> + Send + Sync + 'static,
    {
        self.at(Moment::Finish, run)
    }

    /// Sets any key of the definition format's *Hook*, for networks built in Rust.
    pub fn key(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.keys.insert(key.to_owned(), value.into());
        self
    }

    fn at<T, F>(mut self, moment: Moment, run: F) -> Self
    where
        T: Serialize + DeserializeOwned,
        F: Fn(&HookAt, &mut T) -> Result<(), String> + Send + Sync + 'static,
    {
        let run = move |at: &HookAt, value: Json| {
            let mut value: T = serde_json::from_value(value).map_err(|e| e.to_string())?;
            run(at, &mut value)?;
            serde_json::to_value(value).map_err(|e| e.to_string())
        };
        self.runs.insert(moment, Arc::new(run));
        self
    }

    /// Returns the hook as the machine asks it.
    pub(crate) fn registered(&self) -> Arc<dyn hooks::Hook> {
        Arc::new(Registered {
            name: self.name.clone(),
            version: self.version.clone(),
            moments: self.runs.keys().copied().collect(),
            runs: self.runs.clone(),
        })
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("moments", &self.runs.keys())
            .finish_non_exhaustive()
    }
}

impl crate::build::Keys for Hook {
    fn put(self, key: &'static str, value: Json) -> Self {
        self.key(key, value)
    }
    fn at(&mut self, key: &'static str) -> Option<&mut Json> {
        self.keys.get_mut(key)
    }
}

/// A hook as the machine asks it. Each question runs in a thread of its own, so that a closure that does not end keeps no session
/// for longer than its time.
struct Registered {
    name: String,
    version: String,
    moments: Vec<Moment>,
    runs: BTreeMap<Moment, Run>,
}

impl hooks::Hook for Registered {
    fn version(&self) -> String {
        self.version.clone()
    }

    fn moments(&self) -> &[Moment] {
        &self.moments
    }

    fn run(&self, at: &HookAt, timeout: u64, value: Json) -> Result<Json, String> {
        let Some(run) = self.runs.get(&at.moment).cloned() else {
            return Ok(value);
        };
        let (said, hears) = sync_channel(1);
        let at = at.clone();
        let thread = std::thread::Builder::new().name(format!("hook {}", self.name));
        let begun = thread.spawn(move || {
            let ran = catch_unwind(AssertUnwindSafe(|| run(&at, value)));
            // Nobody listens any more if the time is over.
            let _ = said.send(ran.unwrap_or_else(|panic| Err(panic_message(panic))));
        });
        begun.map_err(|e| format!("no thread for it: {e}"))?;
        match hears.recv_timeout(Duration::from_millis(timeout)) {
            Ok(said) => said,
            Err(RecvTimeoutError::Timeout) => Err(format!("it took longer than {timeout} ms")),
            Err(RecvTimeoutError::Disconnected) => Err("it ended without a result".to_owned()),
        }
    }
}

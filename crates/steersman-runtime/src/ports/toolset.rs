//! The tool port: runs one tool once. The result is raw; the machine maps it.

use crate::Boxed;
use crate::artifact::Artifacts;
use crate::store::Scope;
use crate::trace::TraceParent;
use std::path::Path;
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::network::manifest::Listing;
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::tick::effect::ToolWork;
use steersman_machine::values::expression::Scope as Names;
use steersman_machine::values::rate::Rate;
use steersman_machine::view::mapping::{Fault, Raw};
use tokio_util::sync::CancellationToken;

/// Runs the tools of one kind of source (HTTP, command, Rust, MCP).
pub trait Toolset: Send + Sync + 'static {
    /// Returns true if this toolset runs this tool of this network.
    fn has(&self, network: &Network, tool: &str) -> bool;

    /// Returns true if this toolset has a tool in Rust of this name and version, for any network. A worker takes a session only
    /// if it has all of its tools in Rust.
    fn has_native(&self, name: &str, version: &str) -> bool {
        let _ = (name, version);
        false
    }

    /// Returns true if an attempt is cancelled when its timeout is over. A toolset that simulates tools may return false.
    fn is_timed(&self) -> bool {
        true
    }

    /// Returns the place that an attempt asks, and the rate at which the definition allows to ask it. `None` if the definition
    /// sets no rate. The attempt begins when the limiter of the place gives it a turn.
    fn place(&self, run: &ToolRun) -> Option<(String, Rate)> {
        let _ = run;
        None
    }

    /// Returns the milliseconds that what runs the tool may need to start. The time limit of the attempt begins after that.
    fn starts_within(&self, run: &ToolRun) -> u64 {
        let _ = run;
        0
    }

    /// Asks an MCP server for its tools, if this toolset reaches servers. Called when a session starts or gets another definition,
    /// when a list that a session follows may have changed, and for checks. Ends within the server's `start_timeout` and `timeout`.
    fn list<'a>(&'a self, ask: &'a ServerAsk) -> Boxed<'a, Asked> {
        let _ = ask;
        Box::pin(std::future::ready(Asked::Elsewhere))
    }

    /// Returns the state of a server's list without asking the server: as long as the mark is equal, the list is the same. `None`
    /// means that there is no connection. Must not block.
    fn mark(&self, ask: &ServerAsk) -> Option<ListMark> {
        let _ = ask;
        None
    }

    /// Runs a tool as [`run`](Self::run) does, and tells `hear` its progress and pieces of its text, if the source has any.
    fn run_heard<'a>(
        &'a self,
        run: &'a ToolRun,
        cancel: &'a CancellationToken,
        hear: Hear,
    ) -> Boxed<'a, Raw> {
        drop(hear);
        self.run(run, cancel)
    }

    /// Runs a tool once. Never panics, for any arguments. If the run is cancelled, the [`Raw`] says what may have happened.
    ///
    /// Until its first await that is pending, the run is in the task of its session, which does nothing else meanwhile. Work that
    /// blocks or computes for long belongs in a task of its own.
    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw>;
}

/// Receiver of the things that an attempt tells while it runs. They are provisional and never stored.
pub type Hear = Arc<dyn Fn(Heard) + Send + Sync>;

/// A thing that an attempt tells while it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// Progress.
    Progress(Progress),
    /// A piece of the text that the attempt will give.
    Text(String),
}

/// Progress of an attempt, in the unit that its source counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Amount that is done so far.
    pub done: f64,
    /// Total amount, if it is known.
    pub total: Option<f64>,
    /// Current activity, in words for people.
    pub message: Option<String>,
}

/// One attempt of a tool.
#[derive(Clone)]
pub struct ToolRun {
    /// The network that declares the tool.
    pub network: Arc<Network>,
    /// Id of the session; a part of idempotency keys.
    pub session: Arc<str>,
    /// The tenant and the subject of the session.
    pub part: Scope,
    /// Random mark of the owner that recorded the wish. With session and effect it makes a key that is unique in the world.
    pub mark: u64,
    /// The effect that this attempt is of.
    pub effect: Id,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Tool, class and arguments. Secret parameters are absent.
    pub work: ToolWork,
    /// Folder of the definition. Relative paths start there, and commands run there.
    pub folder: Arc<Path>,
    /// The artifacts that the calling agent sees.
    pub artifacts: Artifacts,
    /// Names that the tool's templates read, with secrets and sealed state opened. Never stored, never logged.
    pub scope: Arc<dyn Names + Send + Sync>,
    /// Records the steps of the attempt. `None` for tools that the engine runs for itself: their steps are not recorded.
    pub steps: Option<Arc<dyn Steps>>,
    /// Checks what the attempt writes to state. `None` for tools that the engine runs for itself: they write nothing.
    pub writes: Option<Arc<dyn Writes>>,
    /// The span of the call, for the server that the tool asks. `None` if nobody gets the spans.
    pub trace: Option<TraceParent>,
}

/// Checks the writes of an attempt before it reports them with its result.
pub trait Writes: Send + Sync + 'static {
    /// Checks that the calling agent sees an entry of this name, and that the value fits it. A null unsets the entry.
    ///
    /// # Errors
    /// The reason why the write would be a misfit.
    fn check(&self, name: &str, value: &serde_json::Value) -> Result<(), Fault>;
}

/// Maximum size, in bytes, of the result of a step as JSON.
pub const STEP_RESULT: usize = 256 << 10;
/// Maximum number of steps and waits of one call. The ledger of a session has them in memory until the call is over.
pub const STEPS: u32 = 1_000;

/// Records the steps and waits of one attempt. The name identifies a step in all attempts of a call; an attempt uses a name once.
pub trait Steps: Send + Sync + 'static {
    /// Asks to begin a step. The answer comes when everything that it depends on is on disk. It never comes if the attempt is
    /// to end here: the attempt is then dropped, and another one follows.
    fn begin(self: Arc<Self>, name: Name) -> Boxed<'static, Leave>;

    /// Waits for this many milliseconds, counted from the first attempt that asks. Unless they are over, the attempt is dropped
    /// here, and another one follows when they are.
    ///
    /// # Errors
    /// The attempt does not run any more, or an earlier attempt had a step of this name.
    fn wait(self: Arc<Self>, name: Name, millis: u64) -> Boxed<'static, Result<(), Fault>>;

    /// Asks a person what the server of the tool wants to know. If an earlier attempt of the call asked the same and it was
    /// answered, returns that answer. While the question is open the time of the attempt stands still.
    ///
    /// # Errors
    /// The question is over without an answer: the attempt does not run any more, or its session is being stopped.
    fn ask(self: Arc<Self>, question: Question) -> Boxed<'static, Result<Given, Fault>>;
}

/// A question that the server of a tool asks while the tool runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The words of the server, for people; at most [`MESSAGE`](crate::fields::MESSAGE) bytes.
    pub message: String,
    /// The JSON Schema of the fields that it wants ([`Fields`](crate::fields::Fields)).
    pub schema: String,
    /// True if nothing of the attempt goes on while the question is open. The attempt is then dropped here, and another one follows
    /// that gets the answer.
    pub parks: bool,
    /// The reason why no person is asked, as a sentence. The question is then in the log as refused, and declined.
    pub declined: Option<String>,
}

/// The answer of a person to a [`Question`].
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// The fields, as an object that fits the schema.
    Fields(serde_json::Value),
    /// The person declines.
    Declined,
}

impl Given {
    /// Returns the stored form: JSON.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Fields(fields) => serde_json::json!({ "given": fields }),
            Self::Declined => serde_json::json!({ "declined": true }),
        }
        .to_string()
    }

    /// Reads the stored form. A text that was erased counts as declined.
    pub(crate) fn read(text: &str) -> Self {
        let mut json: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        match json.get_mut("given").map(serde_json::Value::take) {
            Some(fields) => Self::Fields(fields),
            None => Self::Declined,
        }
    }
}

/// A step that has begun. Dropping it means that its end is unknown.
pub trait StepBegun: Send {
    /// Records the end of the step. Returns when it is on disk.
    ///
    /// # Errors
    /// The attempt does not run any more, and nothing was recorded.
    fn end(self: Box<Self>, end: StepEnd) -> Boxed<'static, Result<(), Fault>>;
}

/// The end of a step: JSON of its result, or its error.
pub type StepEnd = Result<String, Fault>;

/// The answer to an attempt that asks to begin a step.
pub enum Leave {
    /// It begins now.
    Begin(Box<dyn StepBegun>),
    /// An earlier attempt ran it, and it ended in this way.
    Ended(StepEnd),
    /// It does not begin.
    Refused(Fault),
}

/// A request to an MCP server for the list of its tools.
#[derive(Clone)]
pub struct ServerAsk {
    /// The network that declares the server.
    pub network: Arc<Network>,
    /// Name of the server in that network.
    pub server: Name,
    /// Folder of the definition, in which the server's command runs.
    pub folder: Arc<Path>,
    /// The tenant and the subject on whose behalf the server is asked.
    pub part: Scope,
    /// `config` and `secrets`, opened. Never stored, never logged.
    pub scope: Arc<dyn Names + Send + Sync>,
}

/// A connection, and the number of times that the server reported a changed list on it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ListMark {
    /// Number of the connection, unique in this process.
    pub connection: u64,
    /// Reported changes since the connection was made.
    pub changes: u64,
}

/// Result of asking an MCP server for its tools.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// This toolset does not reach servers.
    Elsewhere,
    /// The server's tools are simulated. Nobody was asked, and the tools that the definition names take any arguments.
    Played,
    /// The tools that the server offers, without those that the definition does not take.
    Offers(Listing),
    /// The server cannot be asked, or its answer cannot be used.
    Failed(Fault),
}

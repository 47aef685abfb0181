//! Where sessions are kept and driven: a store, models and tools behind one handle.

use crate::models::{OwnModels, Script, Scripted};
use crate::session::Session;
use crate::tool::RustTools;
use crate::{Error, Network};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steersman_adapters::catalog::Catalog;
use steersman_adapters::command::CommandTools;
use steersman_adapters::http::HttpTools;
use steersman_adapters::mcp::McpTools;
use steersman_adapters::schema::Schemas;
use steersman_adapters::secrets::sealing_key;
use steersman_adapters::sqlite::{SqliteOptions, SqliteStore};
use steersman_runtime::clock::{Clock, System};
use steersman_runtime::engine::{
    Durability, Engine, EngineError, Inspection, Options, Parts, StartOptions,
};
use steersman_runtime::limiter::Limiters;
use steersman_runtime::model::{Model, Models};
use steersman_runtime::process_env;
use steersman_runtime::seal::Sealer;
use steersman_runtime::servers::{self, Answer};
use steersman_runtime::session::Fate;
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{Store, StoreError};
use steersman_runtime::toolset::Toolset;
use tokio_util::sync::CancellationToken;

/// Keeps and drives sessions. Cloning shares it.
#[derive(Clone)]
pub struct Steersman {
    engine: Engine,
    tools: Arc<RustTools>,
}

impl std::fmt::Debug for Steersman {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Steersman").finish_non_exhaustive()
    }
}

impl Steersman {
    /// With sessions in this SQLite file, made if it is not there. Secrets are sealed with the key of this machine
    /// and user (`STEERSMAN_KEY`, else a file of mode 0600 in the configuration folder).
    ///
    /// # Errors
    /// [`Error::Store`] if the file cannot be had, was written by a newer version or is damaged; [`Error::Key`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().open(path).await
    }

    /// With sessions that end with the process.
    pub fn in_memory() -> Self {
        Self::options().in_memory()
    }

    /// What is not the default: a script instead of models, a clock, durability.
    pub fn options() -> Setup {
        Setup::default()
    }

    /// Starts a session of a network. Nothing is said yet.
    pub async fn start(&self, network: &Network) -> Result<Session, Error> {
        self.start_with(network, StartOptions::default()).await
    }

    /// Starts a session with arguments, a first message, an entry, a seed.
    pub async fn start_with(
        &self,
        network: &Network,
        options: StartOptions,
    ) -> Result<Session, Error> {
        self.register(network);
        let mut options = options;
        if options.folder.is_none() {
            options.folder = network.folder().map(|f| f.display().to_string());
        }
        let session = self
            .engine
            .start(network.checked().clone(), options)
            .await?;
        Ok(Session(session))
    }

    /// Goes on with a session of this store, whichever process drove it before. Tools in Rust that its definition
    /// names must be [`Steersman::register`]ed first.
    pub async fn session(&self, id: &str) -> Result<Session, Error> {
        Ok(Session(self.engine.open(id).await?))
    }

    /// The same for the sake of something that was put into its inbox before: also what becomes of that.
    pub async fn session_for(
        &self,
        id: &str,
        message: &Arc<str>,
    ) -> Result<(Session, Fate), Error> {
        let (session, fate) = self.engine.open_for(id, message).await?;
        Ok((Session(session), fate))
    }

    /// Owns and drives every session of the store that has something to do, until `stop`: messages, events, timers, and
    /// what a dead process left. What settles is let go of, and costs nothing until something wakes it.
    pub async fn run_all(&self, stop: CancellationToken) -> Result<(), Error> {
        Ok(self.engine.run_all(stop).await?)
    }

    /// Looks at a session without owning it: its branches, state, ledger, and what waits.
    pub async fn inspect(&self, id: &str) -> Result<Inspection, Error> {
        Ok(self.engine.inspect(id).await?)
    }

    /// Makes the tools in Rust of a network known, for sessions that were started by another process.
    pub fn register(&self, network: &Network) {
        self.tools.add(network.tools());
    }

    /// What the MCP servers of a network answer now, all at once: which tools they offer of those that it takes, or why that
    /// cannot be known. Nothing is written; processes are started where nobody started them yet.
    ///
    /// # Errors
    /// [`Error::Engine`] if a `config` value is missing.
    pub async fn servers(&self, network: &Network) -> Result<Vec<Answer>, Error> {
        let folder = network.folder().unwrap_or(Path::new("."));
        let config = std::collections::BTreeMap::new();
        let answers = servers::look(&self.engine, network.checked(), &config, folder).await;
        Ok(answers.map_err(EngineError::Bind)?)
    }

    /// The engine, with all that the paved path leaves out.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}

/// What is not the default of a [`Steersman`].
#[derive(Clone, Default)]
#[must_use = "a setup does nothing until `open` or `in_memory`"]
pub struct Setup {
    script: Option<Script>,
    clock: Option<Arc<dyn Clock>>,
    durability: Durability,
    user_absent: bool,
    hears: Option<Hears>,
    own: OwnModels,
    limiters: Limiters,
    store: SqliteOptions,
}

/// Who is told what was found out about models.
type Hears = Arc<dyn Fn(&str) + Send + Sync>;

impl Setup {
    /// Every model answers from this script instead: YAML, answers by agent.
    pub fn script(mut self, text: impl Into<Arc<str>>) -> Self {
        self.script = Some(Script::Text(text.into()));
        self
    }
    /// The same from a file. Its sessions remember it.
    pub fn script_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.script = Some(Script::File(path.into()));
        self
    }
    /// Takes the time from here.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }
    /// When a line must be on disk.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }
    /// Nobody can be asked as `user`: a doubt without a way out goes to the model.
    pub fn user_absent(mut self) -> Self {
        self.user_absent = true;
        self
    }

    /// Who is told, in one sentence each, which model `auto` took and why, and what a server cannot do. Nobody by default.
    pub fn heard_by(mut self, hears: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.hears = Some(Arc::new(hears));
        self
    }

    /// The model of this name in definitions is this one. Whoever brings one brings all that its definitions ask. Retries,
    /// `fallback`, `rate`, the circuit breaker and what it costs are the engine's, as for any other; the `price` is the
    /// definition's.
    pub fn model(mut self, name: impl Into<Arc<str>>, model: impl Model) -> Self {
        self.own.0.insert(name.into(), Arc::new(model));
        self
    }

    /// Shares the limiters of another [`Steersman`] of this process, which asks the same servers.
    pub fn limiters(mut self, limiters: &Limiters) -> Self {
        self.limiters = limiters.clone();
        self
    }

    fn models(&self) -> Arc<dyn Models> {
        if self.own.0.is_empty() {
            Arc::new(Scripted::over(self.catalog(), self.script.clone()))
        } else {
            Arc::new(Scripted::over(self.own.clone(), self.script.clone()))
        }
    }

    fn catalog(&self) -> Catalog {
        match self.hears.clone() {
            None => Catalog::default(),
            Some(hears) => Catalog::default().heard_by(move |sentence| hears(sentence)),
        }
    }

    /// What is overwritten or deleted is made unreadable in the file as well: for erasing.
    pub fn scrubbing(mut self) -> Self {
        self.store.scrub = true;
        self
    }

    /// With sessions in this SQLite file, to look at them: where it cannot be written, or its key cannot be had, it is
    /// opened for reading alone, and what is sealed stays sealed.
    ///
    /// # Errors
    /// [`Error::Store`] if the file cannot be read.
    pub async fn open_to_look(self, path: impl AsRef<Path>) -> Result<Steersman, Error> {
        let path = path.as_ref();
        match self.clone().open(path).await {
            Err(Error::Key(_) | Error::Store(StoreError::Io { .. })) => {}
            opened => return opened,
        }
        let options = SqliteOptions {
            read_only: true,
            ..self.store.clone()
        };
        let store = opened(path, options).await?;
        let models = Scripted::over(self.catalog(), self.script.clone());
        Ok(self.with(Arc::new(store), Arc::new(models), None, Sealer::ephemeral()))
    }

    /// With sessions in this SQLite file.
    ///
    /// # Errors
    /// As [`Steersman::open`].
    pub async fn open(self, path: impl AsRef<Path>) -> Result<Steersman, Error> {
        let path = path.as_ref();
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let key = sealing_key(folder, &process_env()).map_err(|e| Error::Key(e.to_string()))?;
        let store = opened(path, self.store.clone()).await?;
        let models = self.models();
        Ok(self.with(Arc::new(store), models, None, Sealer::new(&key)))
    }

    /// With sessions that end with the process.
    pub fn in_memory(self) -> Steersman {
        let models = self.models();
        self.with(
            Arc::new(MemoryStore::new()),
            models,
            None,
            Sealer::ephemeral(),
        )
    }

    /// A process of a test: everything that outlives a kill comes from outside, every line is on disk at once.
    pub(crate) fn for_tests(
        self,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        models: Arc<dyn Models>,
        tools: Arc<dyn Toolset>,
        sealer: Sealer,
    ) -> Steersman {
        self.clock(clock)
            .durability(Durability::Step)
            .with(store, models, Some(tools), sealer)
    }

    fn with(
        self,
        store: Arc<dyn Store>,
        models: Arc<dyn Models>,
        first: Option<Arc<dyn Toolset>>,
        sealer: Sealer,
    ) -> Steersman {
        let tools = Arc::new(RustTools::default());
        let mut toolsets: Vec<Arc<dyn Toolset>> = Vec::from_iter(first);
        toolsets.push(tools.clone());
        toolsets.push(Arc::new(HttpTools::default()));
        toolsets.push(Arc::new(CommandTools::default()));
        toolsets.push(Arc::new(McpTools::default()));
        let engine = Engine::new(Parts {
            store,
            clock: self.clock.unwrap_or_else(|| Arc::new(System)),
            models,
            toolsets,
            sealer,
            options: Options {
                durability: self.durability,
                user_reachable: !self.user_absent,
                limiters: self.limiters,
                judge: Some(Arc::new(Schemas::default())),
                ..Options::default()
            },
        });
        Steersman { engine, tools }
    }
}

/// Opening reads and locks files: that is not for a thread that others wait for.
async fn opened(path: &Path, options: SqliteOptions) -> Result<SqliteStore, Error> {
    let file = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open_with(file, &options));
    let opened = opened.await.map_err(|e| Error::Read {
        path: path.to_owned(),
        source: std::io::Error::other(e.to_string()),
    })?;
    Ok(opened?)
}

//! A store, models and tools in one handle that stores and drives sessions.

use crate::models::{Given, OwnModels, Script, Scripted};
use crate::session::Session;
use crate::tool::RustTools;
use crate::{Cursor, Events};
use crate::{Error, Network, Question, Rerun};
use futures::FutureExt as _;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use steersman_adapters::catalog::Catalog;
use steersman_adapters::command::CommandTools;
use steersman_adapters::fts::FullText;
use steersman_adapters::http::HttpTools;
use steersman_adapters::mcp::McpTools;
use steersman_adapters::schema::Schemas;
use steersman_adapters::secrets::{KEY_FILE, KeyError, sealer, would_be_made};
use steersman_adapters::stores::{self, KeptStore, Site};
use steersman_machine::snapshot::Snapshot;
use steersman_runtime::Env;
use steersman_runtime::artifact::Artifacts;
use steersman_runtime::clock::{Clock, System};
use steersman_runtime::engine::{
    Durability, Engine, Happened, Inspection, Options, Parts, StartOptions, Timeouts,
};
use steersman_runtime::limiter::Limiters;
use steersman_runtime::load::{Load, Report as Verified};
use steersman_runtime::model::{Model, Models};
use steersman_runtime::process_env;
use steersman_runtime::redefine::Redefine;
use steersman_runtime::rerun::Rerunned;
use steersman_runtime::seal::{KeyId, Sealer};
use steersman_runtime::session::{Fate, Session as Driven, Settled};
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{Schedule, Scope, SessionInfo, SessionQuery, Store, StoreError};
use steersman_runtime::tap::Tap;
use steersman_runtime::toolset::Toolset;
use tokio_util::sync::CancellationToken;

/// Interval between two checks for sessions that have nothing to do, in milliseconds.
const IDLE: u64 = 5_000;

/// Stores and drives sessions. Clones share the same engine.
#[derive(Clone)]
pub struct Steersman {
    engine: Engine,
    tools: Arc<RustTools>,
    pub(crate) mcp: Arc<McpTools>,
    stopping: Arc<AtomicBool>,
    /// The store, if it is kept in a file; [`Steersman::backup`] copies it.
    kept: Option<Arc<dyn KeptStore>>,
}

impl std::fmt::Debug for Steersman {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Steersman").finish_non_exhaustive()
    }
}

impl Steersman {
    /// Opens the store at an address, and creates it if it does not exist: `sqlite:FILE`, `memory:`, or the path of a
    /// SQLite file ([`stores`]). Secrets are sealed with the key of this machine and user (`STEERSMAN_KEY`, otherwise a
    /// file of mode 0600 in the folder of the store).
    ///
    /// # Errors
    /// [`Error::Store`] if the file cannot be opened, was written by a newer version or is damaged; [`Error::Key`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().open(path).await
    }

    /// Stores sessions in memory; they end with the process.
    pub fn in_memory() -> Self {
        Self::options().in_memory()
    }

    /// Returns a [`Setup`] for everything that is not the default: a script instead of models, a clock, durability.
    pub fn options() -> Setup {
        Setup::default()
    }

    /// Starts a session of a network, without a first message.
    pub async fn start(&self, network: &Network) -> Result<Session, Error> {
        self.start_with(network, StartOptions::default()).await
    }

    /// Starts a session with options: arguments, a first message, an entry agent, a seed.
    pub async fn start_with(
        &self,
        network: &Network,
        options: StartOptions,
    ) -> Result<Session, Error> {
        let id = self.create(network, options).await?;
        Ok(self.handle(self.engine.open(&id).await?))
    }

    /// Starts a session that stops after each line of its log: after the first line nothing begins until [`Session::go`] is
    /// called.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), steersman::Error> {
    /// use steersman::{Go, Network, StartOptions, Steersman, Stood};
    ///
    /// let network = Network::from_yaml("agents: { desk: { system: You answer. } }").build()?;
    /// let steersman = Steersman::options().script_all("desk: [ It boils water. ]").in_memory();
    /// let options = StartOptions { say: Some("What is a kettle?".into()), ..StartOptions::default() };
    /// let session = steersman.start_stepping(&network, options).await?;
    ///
    /// let mut lines = 0;
    /// while let Stood::At(_) = session.stood().await? {
    ///     lines += 1;
    ///     session.go(Go::Line).await?;
    /// }
    /// assert_eq!(lines, 1); // one stop, after the question; after the answer the session has settled
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start_stepping(
        &self,
        network: &Network,
        options: StartOptions,
    ) -> Result<Session, Error> {
        let id = self.create(network, options).await?;
        Ok(self.handle(self.engine.open_stepping(&id).await?))
    }

    /// Like [`Steersman::session`], but the session stops after each line: nothing begins until [`Session::go`] is called.
    pub async fn session_stepping(&self, id: &str) -> Result<Session, Error> {
        Ok(self.handle(self.engine.open_stepping(id).await?))
    }

    /// Returns a `Steersman` for which only what belongs to a scope exists: [`Engine::scoped`]. It takes no work from the store by
    /// itself; the one that it was made from drives its sessions.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), steersman::Error> {
    /// use steersman::{ErrorKind, Network, Scope, StartOptions, Steersman};
    ///
    /// let network = Network::from_yaml("agents: { desk: { system: You answer. } }").build()?;
    /// let steersman = Steersman::options().script_all("desk: [ Yes. ]").in_memory();
    /// let of = |tenant: &str| steersman.scoped(Scope { tenant: tenant.into(), subject: None });
    /// let id = of("acme").create(&network, StartOptions::default()).await?;
    ///
    /// assert!(of("acme").info(&id).await.is_ok());
    /// assert_eq!(of("other").info(&id).await.unwrap_err().kind(), ErrorKind::NotFound);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scoped(&self, scope: Scope) -> Self {
        Self {
            engine: self.engine.scoped(scope),
            ..self.clone()
        }
    }

    /// Creates a session without driving it, and returns its id. The next process that drives the store runs it.
    ///
    /// # Errors
    /// As [`Steersman::start_with`].
    pub async fn create(
        &self,
        network: &Network,
        mut options: StartOptions,
    ) -> Result<Arc<str>, Error> {
        self.register(network);
        if options.folder.is_none() {
            options.folder = network.folder().map(|f| f.display().to_string());
            options.file = network.file().map(str::to_owned);
        }
        let network = network.checked().clone();
        Ok(self.engine.create(network, options).await?)
    }

    fn handle(&self, driven: Driven) -> Session {
        Session::new(self.engine.clone(), driven, self.stopping.clone())
    }

    /// Continues a session of this store, whichever process drove it before. Tools and nets in Rust that its definition
    /// names must be [`Steersman::register`]ed first.
    ///
    /// # Errors
    /// Of kind [`NotFound`](crate::ErrorKind::NotFound); [`Busy`](crate::ErrorKind::Busy) while another process drives it;
    /// [`Unbound`](crate::ErrorKind::Unbound) if something that it needs is missing in this process.
    pub async fn session(&self, id: &str) -> Result<Session, Error> {
        Ok(self.handle(self.engine.open(id).await?))
    }

    /// Binds a session to another definition. This is possible only while nothing of the session is open: work that began
    /// under one definition ends under it. The same definition at another place is possible at any time: relative paths start,
    /// and commands run, there from then on. The session does not run for the change. Values of `config` and models that both
    /// definitions declare alike stay bound; everything else is bound as at the start of a session.
    ///
    /// # Errors
    /// As at a start, if something that the definition needs is not available here; of kind
    /// [`Refused`](crate::ErrorKind::Refused) if something of the session is open, or if it has an agent or state that the
    /// definition does not declare.
    pub async fn redefine(&self, id: &str, network: &Network, by: &str) -> Result<(), Error> {
        self.register(network);
        let wanted = Redefine {
            network: network.checked().clone(),
            folder: network.folder().map(|f| f.display().to_string()),
            file: network.file().map(str::to_owned),
            by: by.into(),
            models: BTreeMap::new(),
            config: BTreeMap::new(),
        };
        match self.engine.redefine(id, wanted).await?.fate {
            Fate::Refused(why) => Err(Error::Refused(why)),
            // If another process drives the session, that process takes the message from the inbox.
            Fate::Taken(_) | Fate::Waits(_) | Fate::Known | Fate::Lies => Ok(()),
        }
    }

    /// Reruns a session with something changed, as a new session of this store: see [`rerun`](steersman_runtime::rerun).
    /// The rerun is dry unless `live` is set. If the definition is another one, [`Steersman::register`] its tools and nets
    /// in Rust first.
    ///
    /// # Errors
    /// Of kind [`NotFound`](crate::ErrorKind::NotFound); [`Refused`](crate::ErrorKind::Refused) if the line or the
    /// definition does not fit the session; as at a start, if something that the definition needs is not available here.
    pub async fn rerun(&self, id: &str, changes: Rerun) -> Result<Rerunned, Error> {
        let mut ran = Box::pin(self.engine.rerun(id, changes.lowered(self))).await?;
        // Reports quote these reasons, so secrets are masked in them.
        if ran.leaf.is_some() || ran.diverged.is_some() {
            let known = self.engine.secrets_of(&ran.session).await?;
            ran.leaf = ran.leaf.map(|leaf| known.masked(&leaf));
            if let Some(left) = &mut ran.diverged {
                left.why = known.masked(&left.why);
            }
        }
        Ok(ran)
    }

    /// Returns the sessions that match, newest first, without driving any.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), steersman::Error> {
    /// # let steersman = steersman::Steersman::in_memory();
    /// use steersman::SessionQuery;
    ///
    /// let parked = SessionQuery { status: vec!["waits".into()], ..SessionQuery::default() };
    /// for session in steersman.sessions(&parked).await? {
    ///     println!("{}: {} of {}", session.id, session.state.status, session.network);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sessions(&self, query: &SessionQuery) -> Result<Vec<SessionInfo>, Error> {
        Ok(self.engine.store().sessions(query).await?)
    }

    /// Returns the summary of one session that lists show, by its whole id.
    ///
    /// # Errors
    /// Of kind [`NotFound`](crate::ErrorKind::NotFound) if there is no such session.
    pub async fn info(&self, id: &str) -> Result<SessionInfo, Error> {
        let query = SessionQuery {
            prefix: Some(id.to_owned()),
            ..SessionQuery::default()
        };
        let found = self.engine.store().sessions(&query).await?;
        let found = found.into_iter().find(|info| &*info.id == id);
        found.ok_or_else(|| StoreError::NoSession(id.into()).into())
    }

    /// Follows the events of a session from a position on, whichever process drives it. See [`Events`].
    pub fn events(&self, id: &str, from: impl Into<Cursor>) -> Events {
        Events::new(self.engine.clone(), id.into(), from.into())
    }

    /// Returns everything that a session waits for (people, events and time) on all branches, without driving it.
    pub async fn pending(&self, id: &str) -> Result<Vec<Question>, Error> {
        let seen = self.engine.inspect(id).await?;
        Ok(seen.pending.into_iter().map(Question::from).collect())
    }

    /// Returns the artifacts of a session as of the newest line on disk, without driving it.
    pub async fn artifacts(&self, id: &str) -> Result<Artifacts, Error> {
        let seen = self.engine.inspect(id).await?;
        let snapshot = seen.current_branch().map(|branch| branch.snapshot.clone());
        let snapshot = snapshot.unwrap_or_else(Snapshot::empty);
        Ok(Artifacts::new(self.engine.store().clone(), snapshot, None))
    }

    /// Reads every line of a session and checks its hash and its link to the lines before it.
    pub async fn verify(&self, id: &str) -> Result<Verified, Error> {
        let info = self.info(id).await?;
        let load = Load::new(self.engine.store().clone(), info.id, info.salt);
        Ok(load.inspect().await?)
    }

    /// Copies the store's file to a new file, also while the store is in use. Returns the size of the copy in bytes. The
    /// copy holds no key.
    ///
    /// # Errors
    /// [`Error::Refused`] if the store is not an SQLite file, or the target exists.
    pub async fn backup(&self, to: impl AsRef<Path>) -> Result<u64, Error> {
        let to = to.as_ref();
        let Some(kept) = &self.kept else {
            return Err(Error::Refused(
                "its store is not a file: copy it with the tools of its database".to_owned(),
            ));
        };
        if to.exists() {
            let to = to.display();
            return Err(Error::Refused(format!(
                "`{to}` is there already; a backup replaces nothing"
            )));
        }
        Ok(kept.backup(to).await?)
    }

    /// Like [`Steersman::session`], for a message that was put into the session's inbox; also returns the fate of that
    /// message.
    pub async fn session_for(
        &self,
        id: &str,
        message: &Arc<str>,
    ) -> Result<(Session, Fate), Error> {
        let (session, fate) = self.engine.open_for(id, message).await?;
        Ok((self.handle(session), fate))
    }

    /// Owns and drives every session of the store that has something to do, until `stop`: messages, events, timers, and
    /// work that a dead process left. A session that settles is released; it costs nothing until something wakes it. A
    /// session opened by [`Steersman::start`] or [`Steersman::session`] is released too, once it has had nothing to do for
    /// some seconds; its handles open it again when they are used.
    ///
    /// # Errors
    /// If the store cannot be read or written. A session that cannot be driven does not block the others; its status names
    /// the error.
    pub async fn run_all(&self, stop: CancellationToken) -> Result<(), Error> {
        self.run_all_told(stop, |_| {}).await
    }

    /// Does the same as [`Steersman::run_all`], and calls `told` with everything that happens. `told` is called between two reads of
    /// the store, so it must be quick.
    ///
    /// # Errors
    /// As [`Steersman::run_all`].
    pub async fn run_all_told(
        &self,
        stop: CancellationToken,
        told: impl Fn(Happened) + Send + Sync,
    ) -> Result<(), Error> {
        let idle = self.let_go_of_idle();
        tokio::select! {
            done = self.engine.run_all_told(stop, told) => Ok(done?),
            never = idle => match never {},
        }
    }

    /// Puts the schedules of a network into the store, in place of those that it had there, and returns them. From then on
    /// [`Steersman::run_all`] begins their sessions, in whichever process it runs. A schedule whose times are the same goes on where
    /// it was; any other one begins with its next time after now.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub async fn schedule(&self, network: &Network) -> Result<Vec<Schedule>, Error> {
        self.register(network);
        let folder = network.folder().map(|folder| folder.display().to_string());
        let file = network.file().map(str::to_owned);
        Ok(self
            .engine
            .schedule(network.checked(), folder, file)
            .await?)
    }

    /// Deletes the schedules of a network from the store. Sessions that they began go on. Returns their number.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub async fn unschedule(&self, network: &str) -> Result<usize, Error> {
        Ok(self.engine.unschedule(network).await?)
    }

    /// Returns all schedules of the store, by network and name.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn schedules(&self) -> Result<Vec<Schedule>, Error> {
        Ok(self.engine.store().schedules(None, usize::MAX).await?)
    }

    /// Releases sessions that have been idle for a whole round.
    async fn let_go_of_idle(&self) -> Infallible {
        let mut before: BTreeMap<Arc<str>, Arc<Settled>> = BTreeMap::new();
        loop {
            self.engine.clock().sleep(IDLE).await;
            let mut settled = BTreeMap::new();
            for session in self.engine.all_driven() {
                let Some(Ok(how)) = session.settled().now_or_never() else {
                    continue;
                };
                let outside = session.outside().now_or_never();
                if !matches!(outside, Some(Ok(outside)) if outside.running == 0) {
                    continue;
                }
                let id: Arc<str> = session.id().into();
                match before.get(&id) {
                    // Nothing happened since the last round.
                    Some(known) if Arc::ptr_eq(known, &how) => session.stop().await,
                    _ => drop(settled.insert(id, how)),
                }
            }
            before = settled;
        }
    }

    /// Releases all sessions in an orderly way: effects that may be repeated are cut off, those that must not be repeated
    /// are awaited within their time limit, and all lines reach the disk. Afterwards, handles take no session up again.
    pub async fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.engine.stop().await;
    }

    /// Reads a session without owning it: its branches, state, ledger, and what it waits for.
    pub async fn inspect(&self, id: &str) -> Result<Inspection, Error> {
        Ok(self.engine.inspect(id).await?)
    }

    /// Registers the tools, nets and routers in Rust of a network, for sessions that another process started.
    pub fn register(&self, network: &Network) {
        self.tools.add(network.tools());
        self.engine.register(network.checked());
    }

    /// Returns the reason if the store is read-only until a person accepts it (`steersman doctor --accept-store`): it is a
    /// copy, was moved or restored, or lost lines, and effects of class `unsafe` began in it. `None` means that it may be
    /// driven.
    pub fn doubt(&self) -> Option<&StoreError> {
        self.kept.as_ref().and_then(|kept| kept.doubt())
    }

    /// Accepts the store in this file as it is, on a person's word. Returns the doubt that was accepted
    /// ([`Steersman::doubt`]), if there was one. The next line of each of its sessions records it. No process may have the
    /// store open.
    ///
    /// # Errors
    /// [`Error::Store`] if there is no store, another process has it open, or it cannot be written.
    pub async fn accept_store(path: impl AsRef<Path>) -> Result<Option<StoreError>, Error> {
        let path = path.as_ref().to_owned();
        let site = site(&path)?;
        let now = System.now();
        let accepted = tokio::task::spawn_blocking(move || site.accept(now)).await;
        let accepted = accepted.map_err(|e| Error::Read {
            path,
            source: std::io::Error::other(e.to_string()),
        })?;
        Ok(accepted?)
    }

    /// Returns the engine, with everything that this facade leaves out.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}

/// Settings of a [`Steersman`] that differ from the default.
#[derive(Clone, Default)]
#[must_use = "a setup does nothing until `open` or `in_memory`"]
pub struct Setup {
    script: Option<Given>,
    clock: Option<Arc<dyn Clock>>,
    durability: Durability,
    user_absent: bool,
    /// Sessions are read again from the store for each event.
    cold: bool,
    hears: Option<Hears>,
    own: OwnModels,
    limiters: Limiters,
    toolsets: Vec<Arc<dyn Toolset>>,
    env: Option<Env>,
    timeouts: Option<Timeouts>,
    taps: Vec<Arc<dyn Tap>>,
    is_traced: bool,
}

/// Callback that receives what was found out about models.
type Hears = Arc<dyn Fn(&str) + Send + Sync>;

impl Setup {
    /// Models of the provider `scripted` answer from this script: YAML, answers by agent. Sessions that began with another script
    /// take this one here, and keep theirs.
    pub fn script(self, text: impl Into<Arc<str>>) -> Self {
        self.given(Script::Text(text.into()), false)
    }
    /// Like [`Setup::script`], from a file. Sessions store the path.
    pub fn script_file(self, path: impl Into<PathBuf>) -> Self {
        self.given(Script::File(path.into()), false)
    }
    /// Every model answers from this script, whatever the definition names, or a session began with.
    pub fn script_all(self, text: impl Into<Arc<str>>) -> Self {
        self.given(Script::Text(text.into()), true)
    }
    /// Like [`Setup::script_all`], from a file. Sessions store the path.
    pub fn script_all_file(self, path: impl Into<PathBuf>) -> Self {
        self.given(Script::File(path.into()), true)
    }

    fn given(mut self, script: Script, all: bool) -> Self {
        self.script = Some(Given {
            script,
            all,
            beside: Vec::new(),
        });
        self
    }
    /// The script may have answers for the agents of any of these definitions, not only of the one that a session begins with.
    ///
    /// # Errors
    /// The script cannot be read, or has answers for an agent that no definition has.
    pub fn answers_for(mut self, networks: &[Network]) -> Result<Self, Error> {
        if let Some(given) = &mut self.script {
            given.answers_for(networks)?;
        }
        Ok(self)
    }
    /// Sets the clock; the default is the system clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }
    /// Tells a tap what happens to all sessions that are driven here, for metrics and traces. Several may be given.
    pub fn tap(mut self, tap: Arc<dyn Tap>) -> Self {
        self.taps.push(tap);
        self
    }
    /// Calls of models and tools carry the trace of their turn to their servers: for a program whose tap sends spans.
    pub fn traced(mut self) -> Self {
        self.is_traced = true;
        self
    }
    /// Sets when a line must be on disk.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }
    /// Declares that nobody can be asked as `user`: a doubt that nothing else can resolve is reported to the model.
    pub fn user_absent(mut self) -> Self {
        self.user_absent = true;
        self
    }

    /// Sets a callback that receives, in one sentence each, which model `auto` chose and why, and features that a server
    /// lacks. The default is none.
    pub fn heard_by(mut self, hears: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.hears = Some(Arc::new(hears));
        self
    }

    /// Adds a model of the program under the name that definitions give it. If a program adds one model, it must add every
    /// model that its definitions use. The engine handles retries, `fallback`, `rate`, the circuit breaker and costs as for
    /// any other model; the definition sets the `price`.
    pub fn model(mut self, name: impl Into<Arc<str>>, model: impl Model) -> Self {
        self.own.0.insert(name.into(), Arc::new(model));
        self
    }

    /// Adds a toolset. Toolsets that are added here are asked before the built-in ones whether they have a tool.
    pub fn toolset(mut self, toolset: impl Toolset) -> Self {
        self.toolsets.push(Arc::new(toolset));
        self
    }

    /// Reads `config` and `secrets` from this function instead of from the environment of the process.
    pub fn env(mut self, env: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        self.env = Some(Arc::new(env));
        self
    }

    /// Sets the time limits of model calls.
    pub fn model_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = Some(timeouts);
        self
    }

    /// Shares the limiters of another [`Steersman`] of this process that asks the same servers.
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

    /// Opens the store at this address for inspection. It is opened read-only if it cannot be written, if a person has to accept
    /// it first ([`Steersman::doubt`]), or if its key is missing; sealed values then stay sealed.
    ///
    /// # Errors
    /// [`Error::Store`] if the store cannot be read.
    pub async fn open_to_look(self, path: impl AsRef<Path>) -> Result<Steersman, Error> {
        let path = path.as_ref();
        match self.clone().open(path).await {
            Err(
                Error::Key(_) | Error::Store(StoreError::Io { .. } | StoreError::Unaccepted { .. }),
            ) => {}
            opened => return opened,
        }
        let kept = opened(path, site(path)?, true).await?;
        let models = Scripted::over(self.catalog(), self.script.clone());
        let opened = self.with(
            kept.clone(),
            Arc::new(models),
            Vec::new(),
            Sealer::ephemeral(),
        );
        Ok(Steersman {
            kept: Some(kept),
            ..opened
        })
    }

    /// Stores sessions in the store at this address, as [`Steersman::open`] does.
    ///
    /// # Errors
    /// As [`Steersman::open`].
    pub async fn open(self, path: impl AsRef<Path>) -> Result<Steersman, Error> {
        let path = path.as_ref();
        let site = site(path)?;
        let Some(folder) = site.folder() else {
            let store = opened(path, site, false).await?;
            let models = self.models();
            return Ok(self.with(store, models, Vec::new(), Sealer::ephemeral()));
        };
        let failed = |error: KeyError| Error::Key(error.to_string());
        let env = process_env();
        // A new key would hide the loss of the old one until something sealed is needed.
        let is_new = would_be_made(&folder, &env);
        let known = if is_new {
            None
        } else {
            Some(sealer(&folder, &env).map_err(failed)?)
        };
        let kept = opened(path, site, false).await?;
        let sealer = if let Some(sealer) = known {
            sealer
        } else {
            let wanted: Vec<KeyId> = kept.sealed_with().await?.into_keys().collect();
            if !wanted.is_empty() {
                let path = folder.join(KEY_FILE);
                return Err(failed(KeyError::Lost { path, wanted }));
            }
            sealer(&folder, &env).map_err(failed)?
        };
        let models = self.models();
        let opened = self.with(kept.clone(), models, Vec::new(), sealer);
        Ok(Steersman {
            kept: Some(kept),
            ..opened
        })
    }

    /// Stores sessions in your own store, which must pass [`conformance`](steersman_runtime::conformance). Secrets are
    /// sealed with this key. After a change of keys, give a sealer that opens with the older ones, too.
    ///
    /// ```
    /// use steersman::Steersman;
    /// use steersman::runtime::seal::Sealer;
    /// use steersman::runtime::store::memory::MemoryStore;
    ///
    /// let (old, new) = ([7; 32], [8; 32]);
    /// let before = Steersman::options().over(MemoryStore::new(), &old);
    /// let after = Steersman::options().over(MemoryStore::new(), Sealer::new(&new).opening(&old));
    /// # let _ = (before, after);
    /// ```
    pub fn over(self, store: impl Store, keys: impl Into<Sealer>) -> Steersman {
        self.over_shared(Arc::new(store), keys)
    }

    /// Stores sessions in a store that others use too, as [`Setup::over`] does.
    pub fn over_shared(self, store: Arc<dyn Store>, keys: impl Into<Sealer>) -> Steersman {
        let models = self.models();
        self.with(store, models, Vec::new(), keys.into())
    }

    /// Stores sessions in memory; they end with the process.
    pub fn in_memory(self) -> Steersman {
        let models = self.models();
        self.with(
            Arc::new(MemoryStore::new()),
            models,
            Vec::new(),
            Sealer::ephemeral(),
        )
    }

    /// Returns the `Steersman` of one process of a test. The caller passes in everything that outlives a kill. Every line is on
    /// disk immediately. `cold`: sessions are read again from the store for each event.
    pub(crate) fn for_tests(
        self,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        models: Arc<dyn Models>,
        tools: Vec<Arc<dyn Toolset>>,
        sealer: Sealer,
        cold: bool,
    ) -> Steersman {
        let setup = self.clock(clock).durability(Durability::Step);
        Self { cold, ..setup }.with(store, models, tools, sealer)
    }

    fn with(
        self,
        store: Arc<dyn Store>,
        models: Arc<dyn Models>,
        first: Vec<Arc<dyn Toolset>>,
        sealer: Sealer,
    ) -> Steersman {
        let tools = Arc::new(RustTools::default());
        let mut toolsets = first;
        toolsets.extend(self.toolsets);
        toolsets.push(tools.clone());
        toolsets.push(Arc::new(HttpTools::default()));
        toolsets.push(Arc::new(CommandTools::default()));
        let mcp = McpTools::default().keeping(store.clone(), sealer.clone());
        let mcp = Arc::new(mcp);
        toolsets.push(mcp.clone());
        let standard = Options::default();
        let tap: Option<Arc<dyn Tap>> = match self.taps.len() {
            0 => None,
            1 => self.taps.into_iter().next(),
            _ => Some(Arc::new(self.taps)),
        };
        let engine = Engine::new(Parts {
            store,
            clock: self.clock.unwrap_or_else(|| Arc::new(System)),
            models,
            toolsets,
            sealer,
            options: Options {
                durability: self.durability,
                user_reachable: !self.user_absent,
                cold: self.cold,
                tap,
                is_traced: self.is_traced,
                limiters: self.limiters,
                retrieval: Some(Arc::new(FullText)),
                judge: Some(Arc::new(Schemas::default())),
                env: self.env.unwrap_or(standard.env),
                model_timeouts: self.timeouts.unwrap_or(standard.model_timeouts),
                ..standard
            },
        });
        Steersman {
            engine,
            tools,
            mcp,
            stopping: Arc::default(),
            kept: None,
        }
    }
}

/// Returns the place of a store.
fn site(address: &Path) -> Result<Arc<dyn Site>, Error> {
    stores::at(address).map_err(|unknown| Error::Refused(unknown.to_string()))
}

/// Opens the store on a blocking thread, because this reads and locks files.
async fn opened(
    path: &Path,
    site: Arc<dyn Site>,
    read_only: bool,
) -> Result<Arc<dyn KeptStore>, Error> {
    let opened = tokio::task::spawn_blocking(move || site.open(read_only));
    let opened = opened.await.map_err(|e| Error::Read {
        path: path.to_owned(),
        source: std::io::Error::other(e.to_string()),
    })?;
    Ok(opened?)
}

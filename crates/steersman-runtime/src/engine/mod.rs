//! The engine: starts, opens, inspects and drives sessions of one store.

mod awaited;
pub mod erase;
pub mod known;
mod mail;
pub mod memory;
pub(crate) mod natives;
mod options;
pub(crate) mod recorded;
pub mod redefine;
pub mod schedule;
pub mod servers;
pub mod session;
pub mod step;

pub use crate::log::error::EngineError;
pub use crate::log::inspection::{BranchView, Inspection};
pub use options::{Durability, Judge, Options, Process, Timeouts};

use crate::bind::{self, BindError, ManifestHash, Values};
use crate::clock::Clock;
use crate::feed::{Feed, Follower};
use crate::inbox::{Begin, Message, Occasion, Wanted, random_id};
use crate::model::Models;
use crate::seal::Sealer;
use crate::session::{Fate, Receipt, Session, Settled, ToDriver};
use crate::store::{
    BoxedEvent, NewSession, NewWorker, SaidHash, ScheduleId, Scope, Scoped, SessionId, Store,
    StoreError, Worker, bounds, random_session_id,
};
use crate::tools::artifact::ArtifactTools;
use crate::tools::retrieval::Kept;
use crate::toolset::Toolset;
use crate::trace::TraceParent;
use awaited::{Awaited, Here};
use mail::Mail;
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use steersman_definition as definition;
use steersman_machine::network::Network;
use steersman_machine::network::manifest::Manifest;
use steersman_machine::stored::commit::Binding;
use steersman_machine::stored::ids::{Digest, Line, Name, Time};
use steersman_machine::tick::history::ChatHistory;
use steersman_machine::values::types::{argument_in_clear, arguments_misfit};
use steersman_machine::view::artifact;
use steersman_machine::view::artifact::Content;
use tokio_util::sync::CancellationToken;

/// Maximum number of networks that an engine remembers in addition to those in use.
const NETWORKS: usize = 64;

/// Number of locks for opening sessions. At most this many sessions are opened at the same time.
const OPENING: usize = 64;

/// The parts from which an engine is built.
pub struct Parts {
    /// The store that keeps the sessions.
    pub store: Arc<dyn Store>,
    /// Source of time for everything that the engine does.
    pub clock: Arc<dyn Clock>,
    /// Resolves the names of models and calls them.
    pub models: Arc<dyn Models>,
    /// The toolsets. A tool is run by the first toolset that has it.
    pub toolsets: Vec<Arc<dyn Toolset>>,
    /// Seals and opens secrets.
    pub sealer: Sealer,
    /// Further options.
    pub options: Options,
}

/// Key of a network: the hash of its definition's source, and the hash of the manifest that it was completed with.
pub(crate) type NetworkKey = ([u8; 32], Option<ManifestHash>);

/// Options of a new session.
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    /// Id of the session. `None` means a random id.
    pub id: Option<SessionId>,
    /// The root agent. `None` means the first agent of `entry`.
    pub agent: Option<Name>,
    /// Arguments for the agent's parameters: a JSON object.
    pub args: Option<Json>,
    /// Text of the first message.
    pub say: Option<String>,
    /// A conversation that was held elsewhere and precedes the session. The root agent has it ahead of the first message.
    pub history: ChatHistory,
    /// Id of the first message, accepted once. `None` means a random id.
    pub message_id: Option<Name>,
    /// The event that begins the session. Its id is `message_id`; a later event with this id is compared with it.
    pub event: Option<Message>,
    /// Role of the speaker, if it is not the user.
    pub by: Option<Name>,
    /// The trace of the request that starts the session.
    pub trace: Option<TraceParent>,
    /// Contents that come with the arguments or, if there are none, with the first message. They are artifacts from the
    /// beginning.
    pub files: Vec<Content>,
    /// Values of `config` that take precedence over the environment.
    pub config: BTreeMap<Name, Json>,
    /// Names of models at their providers that take precedence over those of the definition, by the name in the definition.
    pub models: BTreeMap<Name, String>,
    /// The occurrence of a schedule that begins the session.
    pub occasion: Option<Occasion>,
    /// Key by which events find the session. Only one session of a network can have it.
    pub key: Option<Name>,
    /// Seed of all randomness. `None` means a random seed.
    pub seed: Option<u64>,
    /// Folder of the definition. Relative paths start there, and commands run there.
    pub folder: Option<String>,
    /// File of the definition in that folder, if it is not `steersman.yaml`.
    pub file: Option<String>,
}

/// Starts, opens, inspects and drives sessions. A clone shares the same engine.
///
/// The second field is the view of an engine that [`Engine::scoped`] made. Sessions are driven by the engine without it.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>, pub(crate) Option<Arc<View>>);

/// The part of a store that an engine shows.
pub(crate) struct View {
    scope: Scope,
    store: Arc<dyn Store>,
    /// The view of the engine that this one was made from.
    of: Option<Arc<Self>>,
}

impl View {
    /// Returns true if something of a scope belongs to the part.
    fn includes(&self, scope: &Scope) -> bool {
        let of = self.of.as_ref();
        self.scope.includes(scope) && of.is_none_or(|of| of.includes(scope))
    }
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) models: Arc<dyn Models>,
    pub(crate) toolsets: Vec<Arc<dyn Toolset>>,
    pub(crate) sealer: Sealer,
    pub(crate) options: Options,
    /// Sessions that this process drives.
    driven: Mutex<HashMap<SessionId, Session>>,
    /// Followers of sessions that this process does not drive.
    awaited: Awaited,
    pub(crate) mail: Mail,
    /// Locks for opening sessions. If two callers open the same session, the second one gets the handle of the first.
    opening: [tokio::sync::Mutex<()>; OPENING],
    /// Networks that were passed in or compiled. Networks with tools in Rust come from `start`.
    networks: Mutex<HashMap<NetworkKey, Arc<Network>>>,
    /// Nets and routers in Rust that this program has.
    pub(crate) natives: Arc<natives::Registered>,
    /// Permits for tools, by network and tool: they limit how many calls run at the same time in this process.
    pub(crate) slots: Mutex<HashMap<(Digest, Name), Arc<tokio::sync::Semaphore>>>,
    /// Indexes of transcripts and documents. Derived, and kept in memory only.
    pub(crate) indexed: Arc<Kept>,
    /// Answers from a recording, if this engine reruns a session.
    pub(crate) recorded: Option<Arc<recorded::Recorded>>,
    /// This process as a worker of the store, once it has owned a session.
    worker: tokio::sync::OnceCell<Worker>,
    /// Held while sessions are taken, until their handles are in `driven`.
    pub(crate) taking: tokio::sync::Mutex<()>,
    /// Cancelled by [`Engine::kill`].
    pub(crate) alive: CancellationToken,
}

impl Inner {
    /// Removes the handles of sessions whose driver has ended, which would keep the engine alive. Returns true if none is left.
    pub(crate) fn removes_ended(&self) -> bool {
        let mut driven = self.driven.lock().expect("nobody panics while holding it");
        driven.retain(|_, session| !session.to.is_closed());
        driven.is_empty()
    }

    /// Drops all sessions, because the lease of this worker is over.
    fn loses_all(&self) {
        let mut driven = self.driven.lock().expect("nobody panics while holding it");
        for (_, session) in driven.drain() {
            // A driver whose channel is full begins nothing more either, because it checks the lease. Its next write is refused
            // once another worker owns the session.
            let _ = session.to.try_send(ToDriver::Lost);
        }
    }

    /// Returns the handle of a session whose driver lives, and removes that of one whose driver has ended.
    pub(crate) fn living(&self, id: &str) -> Option<Session> {
        let mut driven = self.driven.lock().expect("nobody panics while holding it");
        let session = driven.get(id)?;
        if session.to.is_closed() {
            driven.remove(id);
            return None;
        }
        Some(session.clone())
    }
}

impl Engine {
    /// Builds an engine. Nothing runs until a session is started or opened; that needs a tokio runtime.
    pub fn new(parts: Parts) -> Self {
        Self(
            Arc::new(Inner {
                store: parts.store,
                clock: parts.clock,
                models: parts.models,
                toolsets: parts
                    .toolsets
                    .into_iter()
                    .chain([Arc::new(ArtifactTools) as Arc<dyn Toolset>])
                    .collect(),
                sealer: parts.sealer,
                options: parts.options,
                driven: Mutex::default(),
                awaited: Awaited::default(),
                mail: Mail::default(),
                opening: std::array::from_fn(|_| tokio::sync::Mutex::default()),
                networks: Mutex::default(),
                natives: Arc::default(),
                slots: Mutex::default(),
                indexed: Arc::default(),
                recorded: None,
                worker: tokio::sync::OnceCell::new(),
                taking: tokio::sync::Mutex::default(),
                alive: CancellationToken::new(),
            }),
            None,
        )
    }

    /// Returns an engine with the ports of this one, but another store and clock. If there is a recording, its sessions are
    /// answered from the recording first.
    pub(crate) fn beside(
        &self,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        recorded: Option<Arc<recorded::Recorded>>,
    ) -> Self {
        let inner = &self.0;
        Self(
            Arc::new(Inner {
                store,
                clock,
                models: inner.models.clone(),
                toolsets: inner.toolsets.clone(),
                sealer: inner.sealer.clone(),
                options: inner.options.clone(),
                driven: Mutex::default(),
                awaited: Awaited::default(),
                mail: Mail::default(),
                opening: std::array::from_fn(|_| tokio::sync::Mutex::default()),
                networks: Mutex::default(),
                natives: inner.natives.clone(),
                slots: Mutex::default(),
                indexed: Arc::default(),
                recorded,
                worker: tokio::sync::OnceCell::new(),
                taking: tokio::sync::Mutex::default(),
                alive: CancellationToken::new(),
            }),
            None,
        )
    }

    /// Returns an engine for which only what belongs to a scope exists: sessions, events and memories of others are answered like
    /// those that do not exist, and sessions that it creates belong to the scope. It shares the driven sessions, networks and
    /// limiters with this engine, and takes no work from the store by itself ([`Engine::run_all`]).
    ///
    /// Make one for each request: it remembers which sessions it has found. A scope that this engine does not include has nothing.
    #[must_use]
    pub fn scoped(&self, scope: Scope) -> Self {
        let store = Arc::new(Scoped::new(self.store().clone(), scope.clone()));
        let of = self.1.clone();
        Self(self.0.clone(), Some(Arc::new(View { scope, store, of })))
    }

    /// Returns the scope of an engine that [`Engine::scoped`] made. `None` means that everything in the store exists.
    pub fn scope(&self) -> Option<&Scope> {
        self.1.as_ref().map(|view| &view.scope)
    }

    /// Returns the engine over the whole store, which drives sessions.
    pub(crate) fn whole(&self) -> Self {
        Self(self.0.clone(), None)
    }

    /// Returns the store of this engine.
    pub fn store(&self) -> &Arc<dyn Store> {
        match &self.1 {
            Some(view) => &view.store,
            None => &self.0.store,
        }
    }

    /// Returns this process as a worker of the store. It is enrolled when it first owns a session.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn worker(&self) -> Result<&Worker, StoreError> {
        let enrolled = self.0.worker.get_or_try_init(|| {
            self.0.store.enroll(NewWorker {
                name: std::process::id().to_string().into(),
                address: None,
                build: env!("CARGO_PKG_VERSION").into(),
                revision: steersman_machine::stored::codec::REVISION,
            })
        });
        enrolled.await
    }

    /// Returns false if other workers may own the sessions of this one.
    pub(crate) fn is_live(&self) -> bool {
        let worker = self.0.worker.get();
        worker.is_none_or(|worker| worker.lease.is_live())
    }

    /// Returns the clock of this engine.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    /// Returns the sealer of this engine.
    pub fn sealer(&self) -> &Sealer {
        &self.0.sealer
    }

    /// Starts a session: binds it, stores its definition, makes it durable, owns it and drives it.
    ///
    /// A session is stored together with the message that begins it. A caller that chose the id or key may therefore try again
    /// after any failure: [`StoreError::Conflict`] means that the session exists, and names it.
    pub async fn start(
        &self,
        network: Arc<Network>,
        options: StartOptions,
    ) -> Result<Session, EngineError> {
        let id = self.create(network, options).await?;
        self.open(&id).await
    }

    /// Creates a session as [`Engine::start`] does, without driving it. It is driven once somebody opens it.
    pub async fn create(
        &self,
        network: Arc<Network>,
        options: StartOptions,
    ) -> Result<SessionId, EngineError> {
        let inner = &self.0;
        let scope = self.scope().cloned().unwrap_or_default();
        let nets = self.nets(&network)?;
        check_begin(&network, &options).map_err(EngineError::Refused)?;
        let mut seed = [0_u8; 8];
        getrandom::fill(&mut seed).expect("the operating system gives random bytes");
        let mut values = Values {
            config: bind::config(&network, &inner.options.env, &options.config)?,
            models: Vec::new(),
            // Kept below 2^53, so that every JSON reader returns it unchanged.
            seed: options.seed.unwrap_or(u64::from_le_bytes(seed) >> 11),
            folder: options.folder,
            file: options.file,
            manifest: None,
            nets,
        };
        let folder = values.folder();
        let entry = options
            .agent
            .clone()
            .or_else(|| network.entry.first().cloned())
            .expect("a network has an entry");
        // Models that no agent reachable from this entry uses need not exist.
        let begun = network.beginning_with(&entry);
        let begun = bind::named_models(&begun, &values.config, &options.models)?;
        let models = inner.models.resolve(&begun, &inner.options.env, &folder);
        values.models = models.await.map_err(BindError::Model)?;
        bind::prices(&begun, &mut values.models)?;
        let asked = servers::ask(self, &network, (&values, &scope), Manifest::default()).await?;
        let (bound, manifest) = servers::bound(&network, asked)?;
        values.manifest = manifest.as_ref().map(|text| ManifestHash::of(text));
        let binding = bind::binding(&network, entry, &values);
        let id = options.id.unwrap_or_else(random_session_id);
        let mut salt = [0_u8; 16];
        getrandom::fill(&mut salt).expect("the operating system gives random bytes");
        let source: Arc<[u8]> = network.source.as_bytes().into();
        let source_hash = binding.source;
        let mut begin = Wanted::Start(Box::new(Begin {
            binding,
            values: serde_json::to_string(&values).expect("values are JSON"),
            agent: options.agent,
            args: options.args.map(|a| a.to_string()),
            say: options.say,
            history: (!options.history.is_empty()).then(|| options.history.stored()),
            state: Vec::new(),
            scope: scope.clone(),
            occasion: options.occasion,
        }))
        .by(options.by)
        .with(&options.files);
        begin.parent = options.trace.map(|trace| trace.to_string().into());
        let message = options.message_id.unwrap_or_else(random_id);
        // Everything is checked before anything is stored: a session that cannot begin is not created.
        let said = options.event.as_ref().map(|event| {
            let event = event.encode(message.clone(), Time::default());
            SaidHash::of(&event.id, &event.bytes)
        });
        let new = NewSession {
            id: id.clone(),
            network: network.name.clone(),
            scope,
            key: options.key,
            salt,
            created: inner.clock.now(),
            first: Some(begin.encode(message, inner.clock.now())),
            said,
            needs: natives::needs(&network),
        };
        bounds::session(&new)?;
        self.store().put_blob(source_hash, source).await?;
        self.keep(&options.files).await?;
        if let (Some(hash), Some(text)) = (values.manifest, manifest) {
            self.store()
                .put_blob(hash.0, text.as_bytes().into())
                .await?;
            self.remember((source_hash, Some(hash)), bound);
        }
        self.store().create(new).await?;
        self.remember((source_hash, None), network);
        Ok(id)
    }

    /// Puts contents into the store. Call this before a message names them ([`Message::with`]).
    ///
    /// # Errors
    /// [`EngineError::Refused`] if a content may not be an artifact. Then none is stored.
    pub async fn keep(&self, contents: &[Content]) -> Result<(), EngineError> {
        if let Some(why) = artifact::unfit(contents) {
            return Err(EngineError::Refused(why));
        }
        for content in contents {
            let hash = content.version().hash;
            self.store().put_blob(hash, content.bytes.clone()).await?;
        }
        Ok(())
    }

    pub(crate) fn opening(&self, id: &str) -> &tokio::sync::Mutex<()> {
        &self.0.opening[usize::from(blake3::hash(id.as_bytes()).as_bytes()[0]) % OPENING]
    }

    pub(crate) fn drives(&self, session: &Session) {
        self.0
            .driven
            .lock()
            .expect("nobody panics while holding it")
            .insert(session.id.clone(), session.clone());
        self.0.awaited.begins(&session.id);
        self.0.mail.is_carried(&self.0);
    }

    /// Returns the handle of a session that this process drives.
    pub fn driven(&self, id: &str) -> Option<Session> {
        self.0.living(id).filter(|session| self.shows(session))
    }

    /// Returns true if a driven session exists for this engine.
    fn shows(&self, session: &Session) -> bool {
        let view = self.1.as_ref();
        view.is_none_or(|view| view.includes(&session.scope))
    }

    /// Returns handles to all sessions that this process drives.
    pub fn all_driven(&self) -> Vec<Session> {
        let driven = self.0.driven.lock();
        let driven = driven.expect("nobody panics while holding it");
        let driven = driven.values().filter(|session| self.shows(session));
        driven.cloned().collect()
    }

    /// Puts a message into a session's inbox, durably. If this process owns the session, its driver is woken.
    /// Otherwise the receipt says `Lies`: an owner in another process gets a hint from the store; if nobody owns the session, open
    /// it to have it driven.
    pub async fn deliver(&self, id: &str, message: Message) -> Result<Receipt, EngineError> {
        self.deliver_as(id, random_id(), message).await
    }

    /// Delivers a message under an id of the caller. The id is accepted once in the life of the session.
    pub async fn deliver_as(
        &self,
        id: &str,
        name: Name,
        message: Message,
    ) -> Result<Receipt, EngineError> {
        if let Some(session) = self.driven(id) {
            return session.send_as(name, message).await;
        }
        let fate = if self.put(id, name.clone(), &message).await? {
            Fate::Lies
        } else {
            Fate::Known
        };
        Ok(Receipt { id: name, fate })
    }

    /// Offers an event that names no session to the waits of a network. Returns false if its id was accepted before.
    pub async fn deliver_event(&self, event: BoxedEvent) -> Result<bool, EngineError> {
        Ok(self.store().deliver_event(event).await?)
    }

    /// Follows a session from a cursor on, also if another process drives it. Streamed items come only if this process drives it.
    pub fn feed(&self, id: &str, cursor: Line) -> Feed {
        let live = self.driven(id).map(|s| s.follower());
        self.feed_of(id.into(), cursor, live)
    }

    /// Stops all sessions that this process drives, as [`Session::stop`] does.
    pub async fn stop(&self) {
        let sessions: Vec<Session> = {
            let mut driven = self
                .0
                .driven
                .lock()
                .expect("nobody panics while holding it");
            let stopped = driven.extract_if(|_, session| self.shows(session));
            stopped.map(|(_, session)| session).collect()
        };
        futures::future::join_all(sessions.into_iter().map(Session::stop)).await;
    }

    /// Drops all sessions immediately and writes nothing more, as if the process had died. For tests of recovery.
    pub async fn kill(&self) {
        self.0.alive.cancel();
        let sessions: Vec<Session> = {
            let mut driven = self
                .0
                .driven
                .lock()
                .expect("nobody panics while holding it");
            driven.drain().map(|(_, s)| s).collect()
        };
        for session in sessions {
            session.to.closed().await;
        }
    }

    pub(crate) fn feed_of(&self, session: SessionId, cursor: Line, live: Option<Follower>) -> Feed {
        Feed::new(
            self.store().clone(),
            self.0.clock.clone(),
            session,
            cursor,
            (
                live,
                Arc::new(Here(Arc::downgrade(&self.0), self.1.clone())),
            ),
        )
    }

    pub(crate) async fn put(
        &self,
        session: &str,
        id: Name,
        message: &Message,
    ) -> Result<bool, EngineError> {
        let encoded = message.encode(id, self.0.clock.now());
        Ok(self.store().deliver(session, encoded).await?)
    }

    /// Returns the toolset that runs a tool.
    pub(crate) fn toolset(&self, network: &Network, tool: &str) -> Option<&Arc<dyn Toolset>> {
        self.0.toolsets.iter().find(|t| t.has(network, tool))
    }

    pub(crate) fn remember(&self, key: NetworkKey, network: Arc<Network>) {
        let mut networks = self
            .0
            .networks
            .lock()
            .expect("nobody panics while holding it");
        // Networks that nothing uses are dropped. They are compiled again from the store when needed.
        if networks.len() >= NETWORKS && !networks.contains_key(&key) {
            networks.retain(|_, network| Arc::strong_count(network) > 1);
        }
        networks.insert(key, network);
    }

    /// Returns the network that a session is bound to. The definition is one that this engine remembers, or is compiled from the
    /// store. It is completed with the stored manifest. No server is asked.
    pub(crate) async fn bound_network(
        &self,
        session: &SessionId,
        source: &[u8; 32],
        manifest: Option<ManifestHash>,
    ) -> Result<Arc<Network>, EngineError> {
        if let Some(network) = self.network(&(*source, manifest)) {
            return Ok(network);
        }
        let unfit = |why: String| EngineError::Definition {
            session: session.clone(),
            why,
        };
        let definition = if let Some(network) = self.network(&(*source, None)) {
            network
        } else {
            let text = self.blob_text(source, "its definition").await;
            let network = definition::compile_stored(&text?.map_err(unfit)?);
            let network = network.map_err(unfit)?.network;
            let network = Arc::new(network);
            self.remember((*source, None), network.clone());
            network
        };
        let Some(hash) = manifest else {
            return Ok(definition);
        };
        let manifest = self.manifest(session, hash).await?;
        let network = definition
            .with_manifest(&manifest)
            .map_err(|wrong| unfit(wrong.join("; ")))?;
        let network = Arc::new(network);
        self.remember((*source, Some(hash)), network.clone());
        Ok(network)
    }

    /// Returns the network of a binding that a session has or had. `values` is the stored text of its values. No server is asked.
    ///
    /// # Errors
    /// The stored data cannot be read, or a newer program wrote it.
    pub async fn network_of(
        &self,
        session: &SessionId,
        binding: &Binding,
        values: &str,
    ) -> Result<Arc<Network>, EngineError> {
        let manifest = bind::manifest(session, binding, values)?;
        self.bound_network(session, &binding.source, manifest).await
    }

    /// Reads a stored manifest.
    pub(crate) async fn manifest(
        &self,
        session: &SessionId,
        hash: ManifestHash,
    ) -> Result<Manifest, EngineError> {
        let text = self
            .blob_text(&hash.0, "the manifest of its MCP servers")
            .await?;
        let manifest = text.and_then(|text| Manifest::read(&text));
        manifest.map_err(|why| EngineError::Definition {
            session: session.clone(),
            why,
        })
    }

    /// Reads a stored text. The inner error is a message that says why there is no text.
    async fn blob_text(
        &self,
        hash: &[u8; 32],
        what: &str,
    ) -> Result<Result<String, String>, EngineError> {
        let Some(bytes) = self.store().blob(hash).await? else {
            return Ok(Err(format!("{what} is not in the store")));
        };
        let text = std::str::from_utf8(&bytes).map(str::to_owned);
        Ok(text.map_err(|e| e.to_string()))
    }

    fn network(&self, key: &NetworkKey) -> Option<Arc<Network>> {
        self.0
            .networks
            .lock()
            .expect("nobody panics while holding it")
            .get(key)
            .cloned()
    }
}

/// Checks that a session can begin with these options: its arguments fit, and the artifacts that they name come with them.
fn check_begin(network: &Network, options: &StartOptions) -> Result<(), String> {
    if let Some(why) = artifact::unfit(&options.files) {
        return Err(why);
    }
    let name = options.agent.as_ref().or_else(|| network.entry.first());
    let def = name.and_then(|name| network.agents.get(name));
    let (Some(def), Some(args)) = (def, &options.args) else {
        return Ok(());
    };
    let Some(args) = args.as_object() else {
        return Err("the arguments are no JSON object".to_owned());
    };
    let misfit = arguments_misfit(&def.parameters, args);
    if let Some(misfit) = misfit.or_else(|| argument_in_clear(&def.parameters, args)) {
        return Err(misfit.under("args").to_string());
    }
    let attached: Vec<&str> = options.files.iter().map(|file| &*file.name).collect();
    artifact::missing(&def.parameters, args, &attached).map_or(Ok(()), Err)
}

/// Events that [`Engine::run_all_told`] reports.
#[derive(Clone)]
pub enum Happened {
    /// The session is owned and driven from now on.
    Taken(Session),
    /// The session has settled and was released.
    Settled(Session, Arc<Settled>),
    /// The session cannot be driven, or is not driven any more. Other sessions go on.
    Failed(SessionId, Arc<EngineError>),
    /// The session is a rerun that is not live, and its process is gone. It was released again and is not driven: it cannot follow its
    /// recording any more, and only a message to it continues it.
    Left(SessionId),
    /// The texts of these sessions were erased, because the time for which their definition keeps them after their end is over.
    Erased(Vec<SessionId>),
    /// An occurrence of a schedule began a session.
    Scheduled(ScheduleId, SessionId, Occasion),
    /// The session of an occurrence cannot begin. It is tried again until the next one is due.
    Unscheduled(ScheduleId, Arc<EngineError>),
    /// A list by which sessions are found is damaged, so some may not be found. Other sessions go on.
    Damaged(String),
    /// No session of the store has anything to do now: each rests, or waits for a person, an event, a later time, or a place that
    /// does not answer. It is told again each time that this is found, so a listener may miss one.
    Idle,
}

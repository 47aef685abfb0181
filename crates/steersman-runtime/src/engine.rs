//! The engine: starts, opens, inspects and drives sessions of one store.

pub use crate::options::{Durability, Judge, Options, Timeouts};

use crate::artifact::ArtifactTools;
use crate::bind::{self, BindError, ManifestHash, Values};
use crate::clock::Clock;
use crate::feed::{Feed, Notice};
use crate::inbox::{Begin, DecodeError, Message, random_id};
use crate::ledger::Ledger;
use crate::mail::Mail;
use crate::model::Models;
use crate::pending::Pending;
use crate::retrieval::Kept;
use crate::seal::Sealer;
use crate::servers;
use crate::session::{Fate, Receipt, Session, Settled, ToDriver};
use crate::store::{
    BoxedEvent, InboxMessage, NewSession, SaidHash, SessionId, SessionInfo, Store, StoreError,
    bounds,
};
use crate::toolset::Toolset;
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use steersman_definition as definition;
use steersman_machine::artifact::{self, Content};
use steersman_machine::commit::Binding;
use steersman_machine::context::History;
use steersman_machine::ids::{Digest, Id, Line, Name, Time};
use steersman_machine::interaction::Interaction;
use steersman_machine::manifest::Manifest;
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::types::arguments_misfit;
use tokio::sync::{broadcast, oneshot};
use tokio_util::sync::CancellationToken;

/// Networks that an engine remembers beside those in use.
const NETWORKS: usize = 64;

/// So many sessions are taken up at once.
const OPENING: usize = 64;

/// What an engine is put together from.
pub struct Parts {
    /// Where sessions are kept.
    pub store: Arc<dyn Store>,
    /// What tells the time.
    pub clock: Arc<dyn Clock>,
    /// Who knows models.
    pub models: Arc<dyn Models>,
    /// Who runs tools; the first that has one runs it.
    pub toolsets: Vec<Arc<dyn Toolset>>,
    /// Seals secrets.
    pub sealer: Sealer,
    /// How it behaves.
    pub options: Options,
}

/// A network by the hash of its definition's source and of the manifest that it was completed with.
pub(crate) type NetworkKey = ([u8; 32], Option<ManifestHash>);

/// How a session starts.
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    /// Its id; none: a random one.
    pub id: Option<SessionId>,
    /// The agent that talks first; none: the first of `entry`.
    pub agent: Option<Name>,
    /// Arguments for its parameters: a JSON object.
    pub args: Option<Json>,
    /// The first message.
    pub say: Option<String>,
    /// The id of the first message, accepted once; none: a random one.
    pub message_id: Option<Name>,
    /// The event that begins it, which has that id: what comes under the id again is compared with it.
    pub event: Option<Message>,
    /// The speaker's role, if it is not the user.
    pub by: Option<Name>,
    /// Contents that come with the arguments or, without any, with the first message: they are artifacts from the
    /// beginning.
    pub files: Vec<Content>,
    /// `config` values that go before the environment.
    pub config: BTreeMap<Name, Json>,
    /// Key by which events find it: one session of a network has it.
    pub key: Option<Name>,
    /// Seed of all that is random; none: a random one.
    pub seed: Option<u64>,
    /// The folder of the definition: what its relative paths mean, and where its commands run.
    pub folder: Option<String>,
    /// The file of the definition in that folder, where it is not `steersman.yaml`.
    pub file: Option<String>,
}

/// Why an engine refuses or stopped.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The session cannot be bound here.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The message that begins the session cannot be read.
    #[error(transparent)]
    Inbox(#[from] DecodeError),
    /// The definition that the session is bound to cannot be compiled by this version.
    #[error("session `{session}` is bound to a definition that this version does not take: {why}")]
    Definition {
        /// The session.
        session: SessionId,
        /// What does not fit.
        why: String,
    },
    /// What is stored does not fit together; nothing was changed.
    #[error("session `{session}`: {what}; nothing was changed")]
    Broken {
        /// The session.
        session: SessionId,
        /// What does not fit.
        what: String,
    },
    /// The session is not driven any more, for this reason.
    #[error("the session is not driven any more: {0}")]
    Gone(Arc<EngineError>),
    /// The session does not take what was wanted, for this reason. Nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// It was stopped.
    #[error("it was stopped")]
    Stopped,
}

/// Starts, opens, inspects and drives sessions. Cloning shares it.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) models: Arc<dyn Models>,
    pub(crate) toolsets: Vec<Arc<dyn Toolset>>,
    pub(crate) sealer: Sealer,
    pub(crate) options: Options,
    /// Sessions that this process drives.
    driven: Mutex<HashMap<SessionId, Session>>,
    pub(crate) mail: Mail,
    /// Held by whoever takes a session up: of two who want the same one, the second gets the first one's handle.
    opening: [tokio::sync::Mutex<()>; OPENING],
    /// Networks as handed in or compiled: those with tools in Rust come from `start`.
    networks: Mutex<HashMap<NetworkKey, Arc<Network>>>,
    /// States and routers in Rust that this program has.
    pub(crate) natives: Arc<crate::natives::Registered>,
    /// Slots of tools, by network and tool: how many run at once in this process.
    pub(crate) slots: Mutex<HashMap<(Digest, Name), Arc<tokio::sync::Semaphore>>>,
    /// What was indexed of transcripts and documents: derived, in memory only.
    pub(crate) indexed: Kept,
    /// What answers in the world's place, where this engine reruns a session.
    pub(crate) recorded: Option<Arc<crate::rerun::Recorded>>,
    /// Cancelled by [`Engine::kill`].
    pub(crate) alive: CancellationToken,
}

impl Inner {
    /// Whether this process drives no session.
    pub(crate) fn drives_nothing(&self) -> bool {
        let mut driven = self.driven.lock().expect("nobody panics while holding it");
        driven.retain(|_, session| !session.to.is_closed());
        driven.is_empty()
    }

    pub(crate) fn driven(&self, id: &str) -> Option<Session> {
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
    /// Puts an engine together. Nothing runs until a session is started or opened; needs a tokio runtime then.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner {
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
            mail: Mail::default(),
            opening: std::array::from_fn(|_| tokio::sync::Mutex::default()),
            networks: Mutex::default(),
            natives: Arc::default(),
            slots: Mutex::default(),
            indexed: Kept::default(),
            recorded: None,
            alive: CancellationToken::new(),
        }))
    }

    /// An engine beside this one over the same ports, whose sessions are answered from a recording first.
    pub(crate) fn beside(
        &self,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        recorded: Option<Arc<crate::rerun::Recorded>>,
    ) -> Self {
        let inner = &self.0;
        Self(Arc::new(Inner {
            store,
            clock,
            models: inner.models.clone(),
            toolsets: inner.toolsets.clone(),
            sealer: inner.sealer.clone(),
            options: inner.options.clone(),
            driven: Mutex::default(),
            mail: Mail::default(),
            opening: std::array::from_fn(|_| tokio::sync::Mutex::default()),
            networks: Mutex::default(),
            natives: inner.natives.clone(),
            slots: Mutex::default(),
            indexed: Kept::default(),
            recorded,
            alive: CancellationToken::new(),
        }))
    }

    /// Its store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// Its clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    /// What seals its secrets.
    pub fn sealer(&self) -> &Sealer {
        &self.0.sealer
    }

    /// Starts a session: binds it, stores its definition, makes it durable, owns it and drives it.
    ///
    /// A session is made together with the message that begins it. So whoever starts one under an id or key of its own
    /// may try again after whatever failed: [`StoreError::Conflict`] says that it was begun, and names it.
    pub async fn start(
        &self,
        network: Arc<Network>,
        options: StartOptions,
    ) -> Result<Session, EngineError> {
        let id = self.create(network, options).await?;
        self.open(&id).await
    }

    /// The same without driving it: whoever opens it next does.
    pub async fn create(
        &self,
        network: Arc<Network>,
        options: StartOptions,
    ) -> Result<SessionId, EngineError> {
        let inner = &self.0;
        let nets = self.nets(&network)?;
        begins(&network, &options).map_err(EngineError::Refused)?;
        let mut seed = [0_u8; 8];
        getrandom::fill(&mut seed).expect("the operating system gives random bytes");
        let mut values = Values {
            config: bind::config(&network, &inner.options.env, &options.config)?,
            models: Vec::new(),
            // Kept below 2^53, so that every JSON reader gives it back as it was.
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
        // What no agent uses to whom this entry leads need not be there.
        let begun = network.beginning_with(&entry);
        let models = inner.models.resolve(&begun, &inner.options.env, &folder);
        values.models = models.await.map_err(BindError::Model)?;
        bind::prices(&begun, &mut values.models)?;
        let asked = servers::ask(self, &network, &values).await?;
        let (bound, manifest) = servers::bound(&network, asked)?;
        values.manifest = manifest.as_ref().map(|text| ManifestHash::of(text));
        let binding = bind::binding(&network, entry, &values);
        let id = options.id.unwrap_or_else(random_id);
        let mut salt = [0_u8; 16];
        getrandom::fill(&mut salt).expect("the operating system gives random bytes");
        let source: Arc<[u8]> = network.source.as_bytes().into();
        let source_hash = binding.source;
        let begin = Message::Start(Box::new(Begin {
            binding,
            values: serde_json::to_string(&values).expect("values are JSON"),
            agent: options.agent,
            args: options.args.map(|a| a.to_string()),
            say: options.say,
            by: options.by,
        }))
        .with(&options.files);
        let message = options.message_id.unwrap_or_else(random_id);
        // Looked at first: a session that cannot begin is not made.
        let said = options.event.as_ref().map(|event| {
            let event = event.encode(message.clone(), Time::default());
            SaidHash::of(&event.bytes)
        });
        let new = NewSession {
            id: id.clone(),
            network: network.name.clone(),
            key: options.key,
            salt,
            created: inner.clock.now(),
            first: Some(begin.encode(message, inner.clock.now())),
            said,
        };
        bounds::session(&new)?;
        inner.store.put_blob(source_hash, source).await?;
        self.keep(&options.files).await?;
        if let (Some(hash), Some(text)) = (values.manifest, manifest) {
            inner.store.put_blob(hash.0, text.as_bytes().into()).await?;
            self.remember((source_hash, Some(hash)), bound);
        }
        inner.store.create(new).await?;
        self.remember((source_hash, None), network);
        Ok(id)
    }

    /// Puts contents into the store, before anything names them: what comes with a message ([`Message::with`]).
    ///
    /// # Errors
    /// [`EngineError::Refused`] if one may not be an artifact: then none is stored.
    pub async fn keep(&self, contents: &[Content]) -> Result<(), EngineError> {
        if let Some(why) = artifact::unfit(contents) {
            return Err(EngineError::Refused(why));
        }
        for content in contents {
            let hash = content.version().hash;
            self.0.store.put_blob(hash, content.bytes.clone()).await?;
        }
        Ok(())
    }

    /// Owns a session and drives it; a handle to it if this process does already. What a dead owner left in doubt is
    /// settled as its tools declare.
    pub async fn open(&self, id: &str) -> Result<Session, EngineError> {
        self.opened(id, false).await
    }

    /// The same of a session that stands after each line ([`crate::step`]): nothing begins before somebody lets it
    /// [`go`](Session::go) on. One that has not begun makes its first line before it stands. A session that this process
    /// drives already goes on as it does.
    pub async fn open_stepping(&self, id: &str) -> Result<Session, EngineError> {
        self.opened(id, true).await
    }

    async fn opened(&self, id: &str, steps: bool) -> Result<Session, EngineError> {
        if let Some(session) = self.driven(id) {
            return Ok(session);
        }
        let _opening = self.opening(id).lock().await;
        if let Some(session) = self.driven(id) {
            return Ok(session);
        }
        let session = crate::driver::spawn(self, id, Vec::new(), steps).await?;
        self.drives(&session);
        Ok(session)
    }

    fn opening(&self, id: &str) -> &tokio::sync::Mutex<()> {
        &self.0.opening[usize::from(blake3::hash(id.as_bytes()).as_bytes()[0]) % OPENING]
    }

    /// The same for the sake of something that was put into its inbox: also what becomes of that, once it is taken,
    /// waits visibly or is refused.
    pub async fn open_for(&self, id: &str, message: &Name) -> Result<(Session, Fate), EngineError> {
        let opening = self.opening(id).lock().await;
        if let Some(session) = self.driven(id) {
            drop(opening);
            let fate = session.fate_of(message).await;
            return Ok((session, fate));
        }
        let (reply, answer) = oneshot::channel();
        let told = vec![ToDriver::Inbox(message.clone(), reply)];
        let session = crate::driver::spawn(self, id, told, false).await?;
        self.drives(&session);
        drop(opening);
        let fate = answer.await.map_or(Fate::Lies, |receipt| receipt.fate);
        Ok((session, fate))
    }

    fn drives(&self, session: &Session) {
        self.0
            .driven
            .lock()
            .expect("nobody panics while holding it")
            .insert(session.id.clone(), session.clone());
        self.0.mail.is_carried(&self.0);
    }

    /// The handle of a session that this process drives.
    pub fn driven(&self, id: &str) -> Option<Session> {
        self.0.driven(id)
    }

    /// Handles to all sessions that this process drives.
    pub fn all_driven(&self) -> Vec<Session> {
        let driven = self.0.driven.lock();
        let driven = driven.expect("nobody panics while holding it");
        driven.values().cloned().collect()
    }

    /// Puts something into a session's inbox, durably, and wakes its owner if it is this process. If nobody owns the
    /// session the receipt says `Lies`: open it to have it driven.
    pub async fn deliver(&self, id: &str, message: Message) -> Result<Receipt, EngineError> {
        self.deliver_as(id, random_id(), message).await
    }

    /// The same under an id of the caller's, accepted once for as long as the session lives.
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

    /// Offers an event that names no session to the waits of a network. False if its id was accepted before.
    pub async fn deliver_event(&self, event: BoxedEvent) -> Result<bool, EngineError> {
        let accepted = self.0.store.deliver_event(event).await?;
        self.0.mail.look();
        Ok(accepted)
    }

    /// Looks at a session without owning it: whoever drives it is not disturbed.
    pub async fn inspect(&self, id: &str) -> Result<Inspection, EngineError> {
        crate::driver::inspect(self, id).await
    }

    /// Follows a session from a cursor on, whoever drives it; streamed pieces only if this process does.
    pub fn feed(&self, id: &str, cursor: Line) -> Feed {
        let live = self.driven(id).map(|s| s.live.subscribe());
        self.feed_of(id.into(), cursor, live)
    }

    /// Owns and drives every session of the store that has something to do (inbox, timers, events), until `stop`.
    pub async fn run_all(&self, stop: CancellationToken) -> Result<(), EngineError> {
        self.run_all_told(stop, |_| {}).await
    }

    /// The same, and whoever wants to know is told what happens. `told` is called between two looks at the store: it is
    /// to be quick.
    pub async fn run_all_told(
        &self,
        stop: CancellationToken,
        told: impl Fn(Happened) + Send + Sync,
    ) -> Result<(), EngineError> {
        crate::driver::run_all(self, stop, &told).await
    }

    /// Puts something into a session's inbox that is to take effect at once and to begin nothing: an order. If nobody
    /// owns the session it is taken here, read as far as its inbox goes, and let go of again; nothing of it runs
    /// meanwhile. A process that owns it takes it by itself: then the receipt says `Lies`.
    pub async fn order(&self, id: &str, message: Message) -> Result<Receipt, EngineError> {
        if let Some(session) = self.driven(id) {
            return session.send(message).await;
        }
        let name = random_id();
        self.put(id, name.clone(), &message).await?;
        let (reply, answer) = oneshot::channel();
        let (done, ended) = oneshot::channel();
        let told = vec![ToDriver::Inbox(name.clone(), reply), ToDriver::Stop(done)];
        let opening = self.opening(id).lock().await;
        if let Some(session) = self.driven(id) {
            drop(opening);
            let fate = session.fate_of(&name).await;
            return Ok(Receipt { id: name, fate });
        }
        let fate = match crate::driver::spawn(self, id, told, false).await {
            Ok(_) => {
                let fate = answer.await.map_or(Fate::Lies, |receipt| receipt.fate);
                let _ = ended.await;
                fate
            }
            Err(EngineError::Store(StoreError::Owned { .. })) => Fate::Lies,
            Err(error) => return Err(error),
        };
        Ok(Receipt { id: name, fate })
    }

    /// Lets go of all sessions in order.
    pub async fn stop(&self) {
        let sessions: Vec<Session> = {
            let mut driven = self
                .0
                .driven
                .lock()
                .expect("nobody panics while holding it");
            driven.drain().map(|(_, s)| s).collect()
        };
        futures::future::join_all(sessions.into_iter().map(Session::stop)).await;
    }

    /// Drops all sessions at once and writes nothing more, as if the process had died. For tests of what is left then.
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

    pub(crate) fn feed_of(
        &self,
        session: SessionId,
        cursor: Line,
        live: Option<broadcast::Receiver<Notice>>,
    ) -> Feed {
        Feed::new(
            self.0.store.clone(),
            self.0.clock.clone(),
            session,
            cursor,
            live,
        )
    }

    pub(crate) async fn put(
        &self,
        session: &str,
        id: Name,
        message: &Message,
    ) -> Result<bool, EngineError> {
        let encoded = message.encode(id, self.0.clock.now());
        match self.0.store.deliver(session, encoded).await {
            // What is sealed is another text each time.
            Err(StoreError::Repeated(_)) if matches!(message, Message::Answer { .. }) => Ok(false),
            delivered => Ok(delivered?),
        }
    }

    /// The toolset that runs a tool.
    pub(crate) fn toolset(&self, network: &Network, tool: &str) -> Option<&Arc<dyn Toolset>> {
        self.0.toolsets.iter().find(|t| t.has(network, tool))
    }

    pub(crate) fn remember(&self, key: NetworkKey, network: Arc<Network>) {
        let mut networks = self
            .0
            .networks
            .lock()
            .expect("nobody panics while holding it");
        // One that nobody uses is compiled again from what is stored.
        if networks.len() >= NETWORKS && !networks.contains_key(&key) {
            networks.retain(|_, network| Arc::strong_count(network) > 1);
        }
        networks.insert(key, network);
    }

    /// The network that a session is bound to: its definition, handed in by its owner, else compiled from what is stored; with
    /// what its servers offered when it was bound. No server is asked.
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
            let network = definition::compile_stored(&text?.map_err(unfit)?).map_err(unfit)?;
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

    /// The network that is meant by a binding that a session has or had; `values` is the stored text of its values. No
    /// server is asked.
    ///
    /// # Errors
    /// What is stored cannot be read, or a newer program wrote it.
    pub async fn network_of(
        &self,
        session: &SessionId,
        binding: &Binding,
        values: &str,
    ) -> Result<Arc<Network>, EngineError> {
        let manifest = bind::manifest(session, binding, values)?;
        self.bound_network(session, &binding.source, manifest).await
    }

    /// A stored manifest.
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

    /// A stored text; in words why it cannot be had.
    async fn blob_text(
        &self,
        hash: &[u8; 32],
        what: &str,
    ) -> Result<Result<String, String>, EngineError> {
        let Some(bytes) = self.0.store.blob(hash).await? else {
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

/// Whether a session can begin so: its arguments fit, and the artifacts that they name come with them.
fn begins(network: &Network, options: &StartOptions) -> Result<(), String> {
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
    if let Some(misfit) = arguments_misfit(&def.parameters, args) {
        return Err(misfit.under("args").to_string());
    }
    let there: Vec<&str> = options.files.iter().map(|file| &*file.name).collect();
    artifact::missing(&def.parameters, args, &there).map_or(Ok(()), Err)
}

/// What happens while all sessions of a store are driven.
#[derive(Clone)]
pub enum Happened {
    /// It is owned and driven from here on.
    Taken(Session),
    /// Nothing of it goes on by itself any more, and it was let go of.
    Settled(Session, Arc<Settled>),
    /// It cannot be driven, or is not any more. Others go on.
    Failed(SessionId, Arc<EngineError>),
    /// Something by which sessions are found is damaged: some may not be found. Others go on.
    Damaged(String),
}

/// A session as it is on disk, read without owning it.
pub struct Inspection {
    /// What lists show of it.
    pub info: SessionInfo,
    /// The network that it is bound to; none before its first line.
    pub network: Option<Arc<Network>>,
    /// The values that it is bound to.
    pub values: Values,
    /// Its branches in the order in which they were opened, `main` first.
    pub branches: Vec<BranchView>,
    /// The branch that what names none goes to.
    pub current: Id,
    /// What it waits for, on all branches, oldest first.
    pub pending: Vec<Pending>,
    /// What the log says of the world.
    pub ledger: Ledger,
    /// What lies in its inbox, oldest first.
    pub inbox: Vec<InboxMessage>,
    /// Those of them that this program cannot read, and why. They stay, and nothing waits for them.
    pub unread: Vec<DecodeError>,
    /// How things stand, as far as the log tells.
    pub settled: Settled,
    /// Reads stacks and texts of any branch.
    pub history: Arc<dyn History + Send + Sync>,
}

/// A branch as it is on disk.
#[derive(Clone, Debug)]
pub struct BranchView {
    /// Its id.
    pub id: Id,
    /// What people call it.
    pub label: Option<Name>,
    /// The branch and line where it began; none: `main`.
    pub from: Option<(Id, Line)>,
    /// Its last line.
    pub head: Line,
    /// Its top agent rests.
    pub ended: bool,
    /// It has no more ticks.
    pub superseded: bool,
    /// Where it stands.
    pub snapshot: Snapshot,
}

impl Inspection {
    /// The branch that what names none goes to.
    pub fn current_branch(&self) -> Option<&BranchView> {
        self.branches.iter().find(|b| b.id == self.current)
    }

    /// How one branch stands, as far as the log tells. Of the current one: [`Inspection::settled`].
    pub fn settled_on(&self, branch: &BranchView) -> Settled {
        crate::driver::settled_on(self, branch)
    }

    /// The stack of an agent on a branch, oldest first, with the line of each push.
    pub fn stack(&self, branch: &BranchView, agent: Id) -> Vec<(Line, Interaction)> {
        let mut stack = Vec::new();
        let mut at = branch
            .snapshot
            .agents
            .get(&agent)
            .map_or(Line::NONE, |a| a.last);
        while at.is_some() {
            let (pushes, before) = self.history.pushes(agent, at);
            stack.extend(pushes.iter().rev().map(|p| (at, p.clone())));
            at = before;
        }
        stack.reverse();
        stack
    }
}

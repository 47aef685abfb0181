//! Serves the sessions of a store over HTTP: REST with an OpenAPI document, and one stream of events whose cursors outlive any
//! process.
//!
//! ```text
//!   request --> guard --> Caller --> handler --> Act --> inbox of the session        (a request never claims a session)
//!               host,     token,        |                     |
//!               limits    scope         +--> views      Server::drive: takes up whatever has something to do
//! ```
//!
//! A [`Server`] is the state; [`Server::router`] is an axum router for a program of your own, and [`serve`] is a complete server
//! around a listener. A program that embeds the router also calls [`Server::drive`], or lets another process drive the
//! store, and [`Server::deliver`] for webhooks.
//!
//! ```no_run
//! use steersman::{Network, Steersman};
//! use steersman_server::{Options, router};
//!
//! # async fn f() -> Result<(), Box<dyn std::error::Error>> {
//! let steersman = Steersman::open("sessions.db").await?;
//! let definitions = vec![Network::from_path("desk")?.build()?];
//! let app = axum::Router::new()
//!     .route("/about", axum::routing::get(|| async { "my own page" }))
//!     .merge(router(steersman, Options { definitions, ..Options::default() }));
//! # let _ = app; Ok(()) }
//! ```
//!
//! **Who sees what.** Every request names a token. Its scope (a tenant, and perhaps a subject) is below the engine
//! ([`Steersman::scoped`]): whatever does not belong to it is answered like what does not exist.

#![warn(missing_docs)]

mod act;
mod ask;
mod caller;
mod codes;
mod console;
mod conversation;
mod fresh;
mod guard;
mod held;
mod jobs;
mod limits;
mod metrics;
mod openapi;
mod permission;
mod problem;
mod protocol;
mod routes;
mod schemas;
mod serve;
mod sight;
mod stream;
mod token;
mod watch;
mod webhooks;

pub use console::Console;
pub use limits::Limits;
pub use metrics::{Metrics, serve_metrics};
pub use openapi::document as openapi;
pub use permission::Permission;
pub use routes::mcp::serve_mcp;
pub use serve::serve;
pub use token::{NewToken, make_token};

use crate::limits::Used;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use steersman::adapters::webhook::{Poster, Reach};
use steersman::machine::stored::ids::Name;
use steersman::{Error, Happened, Network, Steersman};
use tokio::sync::watch::Sender;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

/// Options of a server.
#[derive(Clone)]
pub struct Options {
    /// The definitions whose sessions may be started.
    pub definitions: Vec<Network>,
    /// Names under which the server is reached, without a port. Names and addresses of this computer always are.
    pub hosts: Vec<String>,
    /// Web pages that may send requests, as browsers name them: `https://desk.example`.
    pub origins: Vec<String>,
    /// The limits.
    pub limits: Limits,
    /// Maximum time for which a request waits until the session has taken, refused or put aside its message.
    pub patience: Duration,
    /// Receives one line of JSON for each request, without texts, queries and bodies.
    pub log: Option<Log>,
    /// Networks that webhooks may reach although they are not public, such as one of a company.
    pub webhooks_may_reach: Reach,
    /// Counts requests, streams and deliveries. Give the same to [`Setup::tap`](steersman::Setup::tap), so that it counts what sessions do, too.
    pub metrics: Option<Arc<Metrics>>,
    /// The console: a page at `/`, and its files below `/console/`. Without it these paths are free for pages of your own.
    pub console: Option<Console>,
}

/// Receives the log of requests.
pub type Log = Arc<dyn Fn(&serde_json::Value) + Send + Sync>;

impl Default for Options {
    fn default() -> Self {
        Self {
            definitions: Vec::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            limits: Limits::default(),
            patience: Duration::from_secs(2),
            log: None,
            webhooks_may_reach: Reach::default(),
            metrics: None,
            console: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}

/// A server over a store. Clones are the same server.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    steersman: Steersman,
    options: Options,
    definitions: RwLock<Definitions>,
    used: Arc<Used>,
    fresh: fresh::Fresh,
    looks: fresh::Looks,
    numbers: guard::Numbers,
    codes: codes::Codes,
    mcp: routes::mcp::Connections,
    watch: watch::Watch,
    jobs: jobs::Jobs,
    checking: Arc<Semaphore>,
    looking: Arc<Semaphore>,
    poster: Poster,
    /// Wakes the sender of webhooks.
    bell: Notify,
    driving: Sender<bool>,
    stopping: CancellationToken,
}

/// Maximum number of definitions of clients that are checked at once. A check keeps a core busy.
const CHECKS: usize = 2;
/// Maximum number of requests that have a whole log, or the rows of all sessions, in memory at once.
const LOOKS: usize = 16;

/// Definitions by name.
type Definitions = BTreeMap<Name, Network>;

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Server {
    /// Makes a server. It drives nothing before [`Server::drive`].
    pub fn new(steersman: Steersman, mut options: Options) -> Self {
        let definitions = std::mem::take(&mut options.definitions);
        let poster = Poster::new(options.webhooks_may_reach.clone());
        let server = Self(Arc::new(Inner {
            steersman,
            options,
            definitions: RwLock::default(),
            used: Arc::default(),
            fresh: fresh::Fresh::default(),
            looks: fresh::Looks::default(),
            numbers: guard::Numbers::new(),
            codes: codes::Codes::default(),
            mcp: routes::mcp::Connections::default(),
            watch: watch::Watch::default(),
            jobs: jobs::Jobs::default(),
            checking: Arc::new(Semaphore::new(CHECKS)),
            looking: Arc::new(Semaphore::new(LOOKS)),
            poster,
            bell: Notify::new(),
            driving: Sender::new(false),
            stopping: CancellationToken::new(),
        }));
        server.define(definitions);
        server
    }

    /// Replaces the definitions whose sessions may be started. Sessions keep the one that they began under.
    pub fn define(&self, definitions: Vec<Network>) {
        let mut named = Definitions::new();
        for network in definitions {
            self.0.steersman.register(&network);
            named.insert(network.name().into(), network);
        }
        let all = self.0.definitions.write();
        *all.unwrap_or_else(PoisonError::into_inner) = named;
    }

    /// Owns and drives every session of the store that has something to do, until the server stops, and calls `told` with
    /// everything that happens.
    ///
    /// # Errors
    /// As [`Steersman::run_all`].
    pub async fn drive(&self, told: impl Fn(Happened) + Send + Sync) -> Result<(), Error> {
        self.0.driving.send_replace(true);
        let stop = self.0.stopping.clone();
        let told = |what| {
            if matches!(what, Happened::Settled(..)) {
                self.0.bell.notify_one();
            }
            told(what);
        };
        let driven = self.0.steersman.run_all_told(stop, told).await;
        self.0.driving.send_replace(false);
        driven
    }

    /// Stops the server: it is not ready any more, streams end, and requests that wait are answered with what is known. Sessions
    /// that it drives are let go of by [`Server::drive`]. Nothing is lost.
    pub fn stop(&self) {
        self.0.stopping.cancel();
    }

    /// Returns a token that is cancelled when the server stops.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Returns a code that `POST /v1/token/exchange` turns into this token, once and within 60 seconds: an address may have it where it
    /// must not have the token. `None` if too many codes wait to be exchanged.
    pub fn code_for(&self, token: &str) -> Option<String> {
        let now = self.steersman().engine().clock().now();
        self.0.codes.make(token, now)
    }

    /// Returns all routes, as an axum router.
    pub fn router(&self) -> axum::Router {
        let (mut routes, _) = routes::all(&self.0.options.limits).split_for_parts();
        if self.0.options.console.is_some() {
            routes = routes.merge(console::routes());
        }
        guard::around(routes, self).with_state(self.clone())
    }

    fn steersman(&self) -> &Steersman {
        &self.0.steersman
    }

    fn options(&self) -> &Options {
        &self.0.options
    }

    fn used(&self) -> &Arc<Used> {
        &self.0.used
    }

    fn fresh(&self) -> &fresh::Fresh {
        &self.0.fresh
    }

    /// Returns the version of the store as of now or later, if the store tells it.
    async fn version(&self) -> Option<u64> {
        let store = self.steersman().engine().store();
        self.0.looks.now(|| store.version()).await
    }

    fn numbers(&self) -> &guard::Numbers {
        &self.0.numbers
    }

    fn codes(&self) -> &codes::Codes {
        &self.0.codes
    }

    fn mcp(&self) -> &routes::mcp::Connections {
        &self.0.mcp
    }

    fn poster(&self) -> &Poster {
        &self.0.poster
    }

    fn bell(&self) -> &Notify {
        &self.0.bell
    }

    fn driving(&self) -> &Sender<bool> {
        &self.0.driving
    }

    fn watching(&self) -> &watch::Watch {
        &self.0.watch
    }

    fn jobs(&self) -> &jobs::Jobs {
        &self.0.jobs
    }

    /// Returns the places for definitions that are checked.
    fn checking(&self) -> Arc<Semaphore> {
        self.0.checking.clone()
    }

    /// Returns the places for requests that have much of the store in memory.
    fn looking(&self) -> Arc<Semaphore> {
        self.0.looking.clone()
    }

    fn is_driving(&self) -> bool {
        *self.0.driving.borrow()
    }

    fn is_stopping(&self) -> bool {
        self.0.stopping.is_cancelled()
    }

    /// Returns the definitions, by name.
    fn definitions(&self) -> Vec<Network> {
        let all = self.0.definitions.read();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        all.values().cloned().collect()
    }
}

/// Returns the routes of a server as an axum router, for a program that has its own listener. The program also drives the store:
/// use [`Server`] for that.
pub fn router(steersman: Steersman, options: Options) -> axum::Router {
    Server::new(steersman, options).router()
}

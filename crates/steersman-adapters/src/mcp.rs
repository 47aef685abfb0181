//! Tools of MCP servers, over standard input and output or streamable HTTP.
//!
//! A connection is identified by its program or address, environment and headers, with their secrets opened. All sessions of a
//! process with the same identity share it, and no others do. It is made when it is first needed, and again after it has ended;
//! a connection that fails repeatedly is not tried for a while. Nothing here repeats a call, but one that a server refused before it did
//! anything, because it wants a sign-in.
//!
//! Everything that a server may send has a bound: a message 16 MiB, its list of tools as in [`manifest`], a call its timeout.
//! Requests of the server are answered: there are no roots here and no model for it, and a person is asked.

mod access;
mod asks;
mod client;
mod connect;
mod content;
mod files;
mod linked;
mod login;
mod outcome;
mod pipe;
mod rounds;
mod stream;

use crate::masked::Mask;
use crate::schema::Schemas;
use crate::transport::{Clients, Redirects};
use access::{Access, Grant, Lack, SignIns};
use asks::Asker;
use client::{Client, Hears};
use connect::Place;
pub use login::{SignIn, SignedIn};
use outcome::not_performed;
use pipe::Said;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, PaginatedRequestParams, PingRequest, Tool};
use rmcp::service::{PeerRequestOptions, RunningService, ServiceError};
use rounds::Call;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use steersman_machine::network::manifest;
use steersman_machine::network::manifest::{Listed, Listing};
use steersman_machine::network::{McpAt, McpDef, Network, Source, ToolDef};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::interaction::Class;
use steersman_machine::values::expression::Scope;
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::seal::Sealer;
use steersman_runtime::store::Credentials;
use steersman_runtime::toolset::{Asked, Hear, Heard, ListMark, ServerAsk, ToolRun, Toolset};
use steersman_runtime::{Boxed, Env, process_env};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Time limit for an HTTP connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Time limit for an HTTP server to confirm that it still knows the session.
const ALIVE: Duration = Duration::from_secs(5);
/// Maximum number of connections that are kept.
const KEPT: usize = 64;
/// Maximum number of pages of a list of tools.
const PAGES: usize = 64;
/// Pause after a connection that brought no answer; doubled after each further one.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Message of a call that was cancelled after it was sent. What the server printed may follow.
const ON_THE_WAY: &str = "cancelled on the way";
/// Name of the idempotency key in the `_meta` of a call of an `idempotent` tool.
pub const KEY: &str = "dev.steersman/idempotency-key";

/// Runs the tools of MCP servers.
pub struct McpTools {
    env: Env,
    clients: Clients,
    schemas: Schemas,
    places: Mutex<HashMap<Place, Arc<Slot>>>,
    signs: Arc<SignIns>,
}

impl Default for McpTools {
    fn default() -> Self {
        Self {
            env: process_env(),
            clients: Clients::new(CONNECT, Redirects::Never),
            schemas: Schemas::default(),
            places: Mutex::default(),
            signs: Arc::default(),
        }
    }
}

/// The connection to one place, if there is one. The state is locked while a connection is made; the second field gives the newest
/// connection without that lock; the third has the sign-in, once it was needed.
#[derive(Default)]
struct Slot(
    tokio::sync::Mutex<State>,
    Mutex<Weak<Live>>,
    OnceLock<Arc<Access>>,
);

#[derive(Default)]
struct State {
    live: Option<Arc<Live>>,
    /// Number of connections made since the last answer.
    unanswered: u32,
    /// Time of the last attempt to connect.
    last: Option<Instant>,
}

/// An open connection.
struct Live {
    service: RunningService<RoleClient, Client>,
    said: Said,
    /// Number of the connection, unique in this process.
    number: u64,
    /// Number of times that the server announced a change of its list of tools.
    changes: Arc<AtomicU64>,
    /// The sign-in whose tokens it uses.
    access: Option<Arc<Access>>,
}

impl Live {
    /// Returns what the server wants, if this request failed because of the sign-in.
    fn lack(&self, error: &ServiceError) -> Option<Lack> {
        outcome::lack(error, self.access.as_deref())
    }

    fn has_ended(&self) -> bool {
        self.service.is_closed() || self.service.is_transport_closed()
    }

    /// Returns true if each request stands alone: there is no session that a server could forget, and a result may ask for input.
    fn has_rounds(&self) -> bool {
        let info = self.service.peer().peer_info();
        info.is_some_and(|info| !info.protocol_version.has_initialize())
    }

    /// Returns true if the server still knows the session, or does not say.
    async fn is_known(&self) -> bool {
        if self.has_rounds() {
            return true;
        }
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let options = PeerRequestOptions::with_timeout(ALIVE);
        let asked = self.service.peer().send_request_with_option(ping, options);
        let said = match asked.await {
            Ok(asked) => asked.await_response().await,
            Err(error) => Err(error),
        };
        !said.is_err_and(|error| outcome::is_expired(&error))
    }
}

impl Slot {
    fn newest(&self) -> Option<u64> {
        let live = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        live.upgrade().map(|live| live.number)
    }

    /// Returns the sign-in of the place. `None` if it has none.
    fn access(&self, place: &Place, signs: &Arc<SignIns>) -> Result<Option<Arc<Access>>, String> {
        let Place::Http {
            url,
            grant: Some(grant),
            ..
        } = place
        else {
            return Ok(None);
        };
        if let Some(access) = self.2.get() {
            return Ok(Some(access.clone()));
        }
        let access = Arc::new(Access::new(signs.clone(), url, grant.clone())?);
        Ok(Some(self.2.get_or_init(|| access).clone()))
    }

    /// Drops a connection that the server no longer knows; the next call makes another one.
    async fn forget(&self, gone: &Live) {
        let mut state = self.0.lock().await;
        state.live.take_if(|live| live.number == gone.number);
    }
}

/// Reason why there is no connection: nothing was sent.
struct NoConnection {
    message: String,
    /// Time after which another attempt may help, in milliseconds from now.
    again: Option<u64>,
    code: Code,
}

impl NoConnection {
    /// Returns the outcome of a call: nothing was sent.
    fn raw(self) -> Raw {
        Raw::NotPerformed(Fault {
            again: self.again,
            ..Fault::new(self.code, self.message)
        })
    }
}

impl McpTools {
    /// Keeps sign-ins at servers in this store, sealed, instead of in memory.
    #[must_use]
    pub fn keeping(self, store: Arc<dyn Credentials>, sealer: Sealer) -> Self {
        let signs = Arc::new(SignIns::new(store, sealer));
        Self { signs, ..self }
    }

    /// Sets the environment from which `PATH` and other passed variables are read, instead of the process environment.
    pub fn with_env(self, env: Env) -> Self {
        Self { env, ..self }
    }

    fn slot(&self, place: &Place) -> Arc<Slot> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = places.get(place) {
            return slot.clone();
        }
        if places.len() >= KEPT {
            // Connections that nobody uses now are made again on demand.
            places.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        places.entry(place.clone()).or_default().clone()
    }

    /// Returns the connection to a place, and makes it if there is none.
    async fn connected(
        &self,
        place: &Place,
        slot: &Slot,
        (limit, mask): (Duration, &Mask),
    ) -> Result<Arc<Live>, NoConnection> {
        let mut state = slot.0.lock().await;
        if let Some(live) = state.live.as_ref().filter(|live| !live.has_ended()) {
            return Ok(live.clone());
        }
        state.live = None;
        if let (Some(last), unanswered @ 1..) = (state.last, state.unanswered) {
            let pause = PAUSE
                .saturating_mul(1 << (unanswered - 1).min(10))
                .min(PAUSE_MAX);
            let left = pause.saturating_sub(last.elapsed());
            if !left.is_zero() {
                return Err(NoConnection {
                    message: format!(
                        "the connection ended {unanswered} times before anything was answered, so the server is left alone for {}",
                        words(left)
                    ),
                    again: Some(left.as_millis() as u64),
                    code: Code::Failed,
                });
            }
        }
        state.unanswered = state.unanswered.saturating_add(1);
        state.last = Some(Instant::now());
        let access = slot.access(place, &self.signs);
        let access = access.map_err(|message| NoConnection {
            message,
            again: None,
            code: Code::Failed,
        })?;
        let connected = place.connect((&self.clients, access), limit, mask).await;
        if connected
            .as_ref()
            .is_err_and(|none| none.code == Code::SignIn)
        {
            // The server answered, and is asked at once when somebody has signed in.
            state.unanswered = 0;
        }
        let live = Arc::new(connected?);
        *slot.1.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&live);
        state.live = Some(live.clone());
        Ok(live)
    }

    /// Returns a connection whose server still knows the session: for an older connection over HTTP, the server is asked. Calls
    /// that must not be in doubt need this, and requests that are not repeated.
    async fn asked(
        &self,
        place: &Place,
        slot: &Slot,
        server: &McpDef,
        mask: &Mask,
    ) -> Result<Arc<Live>, NoConnection> {
        let (before, limit) = (slot.newest(), starts_within(server));
        let live = self.connected(place, slot, (limit, mask)).await?;
        if !is_http(server) || before != Some(live.number) || live.is_known().await {
            return Ok(live);
        }
        slot.forget(&live).await;
        self.connected(place, slot, (limit, mask)).await
    }

    /// Makes one call of a tool. `sends` is told when there is a connection. If the server wants a sign-in, a person is asked for it, and
    /// the call is made when it is done.
    async fn call(
        &self,
        run: &ToolRun,
        (server, tool): (&McpDef, &ToolDef),
        (cancel, mask): (&CancellationToken, &Mask),
        (sends, hears): (&Notify, Hears),
        asker: &Arc<Asker>,
    ) -> Raw {
        let (of, told) = ((server, tool), (sends, hears.clone()));
        let raw = self
            .called(run, of, (cancel, mask), told, (asker, false))
            .await;
        let is_sign_in = |raw: &Raw| match raw {
            Raw::NotPerformed(fault) => fault.code == Code::SignIn.text(),
            _ => false,
        };
        if !is_sign_in(&raw) || cancel.is_cancelled() {
            return raw;
        }
        let Some(oauth) = server.oauth() else {
            return raw;
        };
        let scope = (&*run.scope as &dyn Scope, &run.part);
        let Ok(grant) = Grant::of(&server.name, oauth, scope) else {
            return raw;
        };
        // Always the same words, so that the next attempt finds the answer.
        let question = format!(
            "The server `{}` wants a sign-in. Sign in, then approve: {}",
            server.name,
            grant.command()
        );
        if !asker.waits_for(&question).await {
            return raw;
        }
        let told = (sends, hears);
        Box::pin(self.called(run, of, (cancel, mask), told, (asker, true))).await
    }

    /// Makes one call of a tool. `signed`: a person was asked for a sign-in before.
    async fn called(
        &self,
        run: &ToolRun,
        (server, tool): (&McpDef, &ToolDef),
        (cancel, mask): (&CancellationToken, &Mask),
        (sends, hears): (&Notify, Hears),
        (asker, signed): (&Arc<Asker>, bool),
    ) -> Raw {
        let Source::Mcp {
            tool: name, output, ..
        } = &tool.source
        else {
            return not_performed("this is not a tool of a server", None);
        };
        let of = (&*run.scope as &dyn Scope, &run.part);
        let place = match Place::of(server, of, &run.folder, &self.env) {
            Ok(place) => place,
            Err(message) => return not_performed(message, None),
        };
        let slot = self.slot(&place);
        let connected = async {
            match run.work.class {
                Class::Unsafe => self.asked(&place, &slot, server, mask).await,
                Class::Pure | Class::Read | Class::Idempotent => {
                    let limit = starts_within(server);
                    self.connected(&place, &slot, (limit, mask)).await
                }
            }
        };
        let connected = Box::pin(connected);
        let live = match cancel.run_until_cancelled(connected).await {
            Some(Ok(live)) => live,
            Some(Err(none)) => return none.raw(),
            None => return cancelled_before(),
        };
        if let Some(access) = &live.access {
            asker.hides(Mask::of(access.texts()));
        }
        sends.notify_one();
        let call = Call {
            run,
            name,
            output: output.as_ref(),
            is_http: is_http(server),
            live: &live,
            slot: &slot,
            cancel,
            mask,
            hears,
            asker,
            signed,
        };
        let raw = Box::pin(self.sent(&call)).await;
        match &live.access {
            Some(access) => outcome::masked(raw, &Mask::of(access.texts())),
            None => raw,
        }
    }

    async fn listing(
        &self,
        ask: &ServerAsk,
        server: &McpDef,
        mask: &Mask,
    ) -> Result<Listing, NoConnection> {
        let none = |message: String| NoConnection {
            message,
            again: None,
            code: Code::Failed,
        };
        let of = (&*ask.scope as &dyn Scope, &ask.part);
        let place = Place::of(server, of, &ask.folder, &self.env).map_err(none)?;
        let slot = self.slot(&place);
        let live = self.asked(&place, &slot, server, mask).await?;
        let peer = live.service.peer();
        let mut listing = Listing {
            about: peer.peer_info().map_or_else(String::new, |info| {
                info.server_info.as_ref().map_or_else(String::new, |about| {
                    mask.first(&format!("{} {}", about.name, about.version), 200)
                })
            }),
            tools: Vec::new(),
        };
        let mut cursor = None;
        for _ in 0..PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = match peer.list_tools(Some(page)).await {
                Ok(page) => page,
                Err(error) => {
                    if let Some(lack) = live.lack(&error) {
                        return Err(NoConnection {
                            code: lack.code(),
                            again: None,
                            message: lack.message,
                        });
                    }
                    let tail = match &error {
                        ServiceError::McpError(_) => String::new(),
                        _ => live.said.last_words(mask).await,
                    };
                    let why = outcome::words(outcome::fault(error, &tail, mask));
                    return Err(none(format!("it does not say what it offers: {why}")));
                }
            };
            for tool in page
                .tools
                .into_iter()
                .filter(|tool| server.takes(&tool.name))
            {
                listing.tools.push(listed(tool, mask).await.map_err(none)?);
            }
            if listing.tools.len() > manifest::TOOLS_MAX {
                return Err(none(format!(
                    "it offers more than {} tools: take fewer with `tools` of the server",
                    manifest::TOOLS_MAX
                )));
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                slot.0.lock().await.unanswered = 0;
                return Ok(listing);
            }
        }
        Err(none(format!(
            "its list of tools has more than {PAGES} pages"
        )))
    }
}

/// Returns the time within which a server has to greet.
fn starts_within(server: &McpDef) -> Duration {
    Duration::from_millis(server.start_timeout.max(1))
}

/// Returns a length of time in words.
fn words(length: Duration) -> String {
    match length.as_secs_f64().round() {
        seconds if seconds >= 1.0 => format!("{seconds} s"),
        _ => "less than a second".to_owned(),
    }
}

fn cancelled_before() -> Raw {
    Raw::NotPerformed(Fault::new(Code::Cancelled, "cancelled before it was sent"))
}

/// Checks the size and the schemas of a listed tool, and returns the part that is kept.
async fn listed(tool: Tool, mask: &Mask) -> Result<Listed, String> {
    let hints = tool.annotations.unwrap_or_default();
    let listed = Listed {
        name: tool.name.into_owned(),
        description: tool.description.map(Cow::into_owned).unwrap_or_default(),
        input: Json::Object((*tool.input_schema).clone()),
        output: tool
            .output_schema
            .map(|schema| Json::Object((*schema).clone())),
        reads: hints.read_only_hint == Some(true),
        idempotent: hints.idempotent_hint == Some(true),
    };
    let bytes = serde_json::to_vec(&listed).map_or(0, |bytes| bytes.len());
    if bytes > manifest::TOOL_MAX {
        return Err(format!(
            "the description of its tool `{}` has {bytes} bytes, at most {} are allowed: leave it out in `tools` of the server",
            mask.first(&listed.name, manifest::NAME_MAX),
            manifest::TOOL_MAX
        ));
    }
    let schemas = [
        ("arguments", Some(&listed.input)),
        ("results", listed.output.as_ref()),
    ];
    for (of, schema) in schemas {
        let Some(schema) = schema else {
            continue;
        };
        if let Some(why) = crate::schema::problem(schema.clone()).await {
            return Err(format!(
                "the schema of the {of} of its tool `{}` cannot be used: {why}; leave it out in `tools` of the server",
                mask.first(&listed.name, manifest::NAME_MAX)
            ));
        }
    }
    Ok(listed)
}

fn is_http(server: &McpDef) -> bool {
    matches!(server.at, McpAt::Http { .. })
}

fn server_of<'a>(network: &'a Network, tool: &str) -> Option<(&'a McpDef, &'a ToolDef)> {
    let tool = network.tools.get(tool)?;
    let Source::Mcp { server, .. } = &tool.source else {
        return None;
    };
    Some((network.mcp.get(server)?, tool))
}

impl Toolset for McpTools {
    fn has(&self, network: &Network, tool: &str) -> bool {
        server_of(network, tool).is_some()
    }

    fn starts_within(&self, run: &ToolRun) -> u64 {
        let server = server_of(&run.network, &run.work.tool);
        server.map_or(0, |(server, _)| server.start_timeout)
    }

    fn list<'a>(&'a self, ask: &'a ServerAsk) -> Boxed<'a, Asked> {
        Box::pin(async move {
            let Some(server) = ask.network.mcp.get(&ask.server) else {
                return Asked::Elsewhere;
            };
            let limit = Duration::from_millis(server.timeout.max(1));
            // A connection is made at most twice, each time within its own limit.
            let whole = (starts_within(server) * 2).saturating_add(limit);
            let mask = mask(&ask.network, "", &*ask.scope);
            let asked =
                tokio::time::timeout(whole, Box::pin(self.listing(ask, server, &mask))).await;
            match asked {
                Ok(Ok(listing)) => Asked::Offers(listing),
                Ok(Err(none)) => Asked::Failed(Fault {
                    again: none.again,
                    ..Fault::new(none.code, mask.all(&none.message))
                }),
                Err(_) => Asked::Failed(Fault::new(
                    Code::Timeout,
                    format!("it did not say what it offers within {limit:?}"),
                )),
            }
        })
    }

    fn mark(&self, ask: &ServerAsk) -> Option<ListMark> {
        let server = ask.network.mcp.get(&ask.server)?;
        let of = (&*ask.scope as &dyn Scope, &ask.part);
        let place = Place::of(server, of, &ask.folder, &self.env).ok()?;
        let slot = self.slot(&place);
        let live = slot.1.lock().unwrap_or_else(PoisonError::into_inner);
        let live = live.upgrade().filter(|live| !live.has_ended())?;
        Some(ListMark {
            connection: live.number,
            changes: live.changes.load(Ordering::Acquire),
        })
    }

    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        self.run_heard(run, cancel, Arc::new(drop))
    }

    fn run_heard<'a>(
        &'a self,
        run: &'a ToolRun,
        cancel: &'a CancellationToken,
        hear: Hear,
    ) -> Boxed<'a, Raw> {
        Box::pin(async move {
            let Some((server, tool)) = server_of(&run.network, &run.work.tool) else {
                return not_performed("this is not a tool of a server", None);
            };
            if cancel.is_cancelled() {
                return cancelled_before();
            }
            let filled = match files::filled(run, tool).await {
                Ok(filled) => filled,
                Err(fault) => return Raw::NotPerformed(fault),
            };
            let run = filled.as_ref().unwrap_or(run);
            // Real time, as everywhere in these adapters: a server does not know a test's clock. The session limits the call by
            // its own clock, too; this limit ends calls that the session does not end.
            let limit = Duration::from_millis(tool.timeout.max(1));
            let late = CancellationToken::new();
            let ends = late.clone();
            let mask = mask(&run.network, &run.work.tool, &*run.scope);
            let hears: Hears = Arc::new(move |progress| hear(Heard::Progress(progress)));
            // The start of a server has a limit of its own.
            let sends = Notify::new();
            let asker = Asker::new(run.steps.clone(), mask.clone());
            let is_late = async {
                sends.notified().await;
                asker.time_passes(limit).await;
            };
            let parts = ((&ends, &mask), (&sends, hears));
            let call = Box::pin(self.call(run, (server, tool), parts.0, parts.1, &asker));
            tokio::pin!(call);
            // After a cancel the call informs the server and reports what is known.
            let raw = tokio::select! {
                biased;
                raw = &mut call => raw,
                () = cancel.cancelled() => {
                    late.cancel();
                    call.await
                }
                () = is_late => {
                    late.cancel();
                    call.await.map_fault(|fault| match Code::named(&fault.code) {
                        Some(Code::Cancelled) => {
                            let printed = fault.message.strip_prefix(ON_THE_WAY).unwrap_or_default();
                            let message = format!("no answer within {limit:?}{printed}");
                            Fault { again: Some(0), ..Fault::new(Code::Timeout, message) }
                        }
                        _ => fault,
                    })
                }
            };
            raw.map_fault(|fault| Fault {
                message: mask.all(&fault.message),
                ..fault
            })
        })
    }
}

fn mask(network: &Network, tool: &str, scope: &dyn Scope) -> Mask {
    Mask::of(steersman_runtime::secrets::texts(network, tool, scope))
}

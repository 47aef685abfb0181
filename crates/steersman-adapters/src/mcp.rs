//! Tools of MCP servers, over standard input and output or streamable HTTP.
//!
//! A connection is identified by its program or address, environment and headers, with their secrets opened. All sessions of a
//! process with the same identity share it, and no others do. It is made when it is first needed, and again after it has ended;
//! a connection that fails repeatedly is not tried for a while. Nothing here repeats a call.
//!
//! Everything that a server may send has a bound: a message 16 MiB, its list of tools as in [`manifest`], a call its timeout.
//! Requests of the server are answered: there are no roots here and no model for it, and a person is asked ([`asks`]).

mod asks;
mod client;
mod connect;
mod content;
mod files;
mod linked;
mod outcome;
mod pipe;
mod stream;

use crate::masked::Mask;
use crate::schema::Schemas;
use crate::transport::{Clients, Redirects};
use crate::wire::TRACE;
use asks::Asker;
use client::{Client, Hears};
use connect::Place;
use outcome::{not_performed, unknown};
use pipe::Said;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, InputRequiredResult, InputResponses,
    JsonObject, PaginatedRequestParams, PingRequest, RequestMetaObject, ServerResult, Tool,
};
use rmcp::service::{PeerRequestOptions, RunningService, ServiceError};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use steersman_machine::network::manifest;
use steersman_machine::network::manifest::{Listed, Listing};
use steersman_machine::network::{McpAt, McpDef, Network, Source, ToolDef};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::interaction::Class;
use steersman_machine::values::expression::Scope;
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::toolset::{
    Asked, Hear, Heard, Leave, ListMark, STEP_RESULT, ServerAsk, ToolRun, Toolset,
};
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
/// Maximum number of requests of one call, each but the last of which is answered by a request for input.
const ROUNDS: u32 = 10;
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
}

impl Default for McpTools {
    fn default() -> Self {
        Self {
            env: process_env(),
            clients: Clients::new(CONNECT, Redirects::Never),
            schemas: Schemas::default(),
            places: Mutex::default(),
        }
    }
}

/// The connection to one place, if there is one. The state is locked while a connection is made; the second field gives the newest
/// connection without that lock.
#[derive(Default)]
struct Slot(tokio::sync::Mutex<State>, Mutex<Weak<Live>>);

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
}

impl Live {
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
}

impl McpTools {
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
                });
            }
        }
        state.unanswered = state.unanswered.saturating_add(1);
        state.last = Some(Instant::now());
        let live = Arc::new(place.connect(&self.clients, limit, mask).await?);
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

    /// Makes one call of a tool. `sends` is told when there is a connection.
    async fn call(
        &self,
        run: &ToolRun,
        (server, tool): (&McpDef, &ToolDef),
        (cancel, mask): (&CancellationToken, &Mask),
        (sends, hears): (&Notify, Hears),
        asker: &Arc<Asker>,
    ) -> Raw {
        let Source::Mcp {
            tool: name, output, ..
        } = &tool.source
        else {
            return not_performed("this is not a tool of a server", None);
        };
        let place = match Place::of(server, &*run.scope, &run.folder, &self.env) {
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
            Some(Err(none)) => return not_performed(none.message, none.again),
            None => return cancelled_before(),
        };
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
        };
        if live.has_rounds() {
            return Box::pin(self.rounds(&call)).await;
        }
        match self.round(&call, More::default()).await {
            Round::Over(raw) => raw,
            // The server may have done a part of its work before it asked, and the answer does not say whether it did.
            Round::Asks(_) => unknown(
                Code::Failed,
                "the server asks for more input in a way that this version of the protocol does not have, and what it did before is not known",
            ),
        }
    }

    /// Makes a call as requests that each stand alone: a result may ask for input, and the next request brings it. Each request is a
    /// step of the call, so a later attempt goes on after the last one that was answered.
    async fn rounds(&self, call: &Call<'_>) -> Raw {
        let mut more = More::default();
        for n in 1..=ROUNDS {
            let leave = match &call.run.steps {
                Some(steps) => Some(steps.clone().begin(format!("request {n}").into()).await),
                None => None,
            };
            let asks = match leave {
                Some(Leave::Ended(Ok(json))) => match serde_json::from_str(&json) {
                    Ok(asks) => asks,
                    Err(error) => {
                        let message = format!("the recorded answer to request {n}: {error}");
                        return unknown(Code::Misfit, message);
                    }
                },
                Some(Leave::Ended(Err(fault))) => return of_round(n, Raw::NotPerformed(fault)),
                Some(Leave::Refused(fault)) => return Raw::Unknown(fault),
                Some(Leave::Begin(begun)) => match self.round(call, more).await {
                    Round::Over(raw) => {
                        if let Raw::NotPerformed(fault) = &raw {
                            // If it is not recorded, the next attempt does not know, and that is so in any case.
                            let _ = begun.end(Err(fault.clone())).await;
                        }
                        return of_round(n, raw);
                    }
                    Round::Asks(asks) => {
                        let json = serde_json::to_string(&asks).unwrap_or_default();
                        if json.len() > STEP_RESULT {
                            let message =
                                format!("the server asks in more than {STEP_RESULT} bytes");
                            return unknown(Code::Failed, message);
                        }
                        if let Err(fault) = begun.end(Ok(json)).await {
                            return Raw::Unknown(fault);
                        }
                        *asks
                    }
                },
                None => match self.round(call, more).await {
                    Round::Over(raw) => return of_round(n, raw),
                    Round::Asks(asks) => *asks,
                },
            };
            let (state, has_questions) =
                (asks.request_state.clone(), asks.input_requests.is_some());
            more = match call.asker.answers(asks).await {
                Ok(given) => More {
                    given: has_questions.then_some(given),
                    state,
                },
                Err(why) => return unknown(Code::Failed, format!("the server {why}")),
            };
        }
        let message = format!("the server asked for more input {ROUNDS} times");
        unknown(Code::Failed, message)
    }

    /// Sends one request of a call, and waits for its answer.
    async fn round(&self, call: &Call<'_>, more: More) -> Round {
        let Call {
            run,
            live,
            cancel,
            mask,
            asker,
            ..
        } = *call;
        let request = request(run, call.name, more);
        let client = live.service.service();
        let may_ask = client.asking().sends(asker);
        let peer = live.service.peer();
        let sent = peer.send_request_with_option(request.0, request.1).await;
        let Ok(mut sent) = sent else {
            let tail = live.said.last_words(mask).await;
            let message = format!("the connection has just ended{tail}");
            return Round::Over(not_performed(message, Some(0)));
        };
        may_ask.was_sent(&sent.id);
        let following = client.follow(sent.progress_token.clone(), call.hears.clone());
        let answer = cancel.run_until_cancelled(&mut sent.rx).await;
        drop((following, may_ask));
        let Some(answer) = answer else {
            // A server that reads no more messages notices the cancel when the connection ends.
            let told = sent.cancel(Some("cancelled".to_owned()));
            let _ = tokio::time::timeout(Duration::from_secs(1), told).await;
            let printed = live.said.printed(mask);
            let cancelled = unknown(Code::Cancelled, format!("{ON_THE_WAY}{printed}"));
            return Round::Over(cancelled);
        };
        let raw = match answer {
            Ok(Ok(ServerResult::CallToolResult(result))) => {
                let linked = linked::read(live, &result, cancel, mask).await;
                let schema = call.output.map(|schema| (schema, &self.schemas));
                let how = (call.is_http, linked);
                outcome::result(result, schema, how, &run.work.makes, mask).await
            }
            Ok(Ok(ServerResult::InputRequiredResult(asks))) => {
                call.slot.0.lock().await.unanswered = 0;
                return Round::Asks(Box::new(asks));
            }
            Ok(Ok(_)) => unknown(Code::Failed, "its answer is not a result of a call"),
            Ok(Err(ServiceError::McpError(error))) => {
                outcome::fault(ServiceError::McpError(error), "", mask)
            }
            Ok(Err(error)) => {
                if outcome::is_expired(&error) {
                    call.slot.forget(live).await;
                }
                outcome::fault(error, &live.said.last_words(mask).await, mask)
            }
            Err(_) => {
                let tail = live.said.last_words(mask).await;
                outcome::fault(ServiceError::TransportClosed, &tail, mask)
            }
        };
        if !live.has_ended() {
            call.slot.0.lock().await.unanswered = 0;
        }
        Round::Over(raw)
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
        };
        let place = Place::of(server, &*ask.scope, &ask.folder, &self.env).map_err(none)?;
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

/// A call on a connection.
struct Call<'a> {
    run: &'a ToolRun,
    /// Name of the tool, as the server knows it.
    name: &'a Arc<str>,
    /// The schema of its results.
    output: Option<&'a Arc<str>>,
    is_http: bool,
    live: &'a Live,
    slot: &'a Slot,
    cancel: &'a CancellationToken,
    mask: &'a Mask,
    hears: Hears,
    asker: &'a Arc<Asker>,
}

/// The input that a request of a call brings, after the server asked for it.
#[derive(Default)]
struct More {
    given: Option<InputResponses>,
    /// Text that the server wants back unchanged.
    state: Option<String>,
}

/// The answer to a request of a call.
enum Round {
    Over(Raw),
    Asks(Box<InputRequiredResult>),
}

/// Returns the outcome of a call whose n-th request ended so. What the server did before it asked is not known, so a call with several
/// requests is not proved not to have happened.
fn of_round(n: u32, raw: Raw) -> Raw {
    match raw {
        Raw::NotPerformed(fault) if n > 1 => Raw::Unknown(Fault {
            message: format!(
                "{}; the server had asked for input before, and what it did until then is not known",
                fault.message
            ),
            ..fault
        }),
        raw => raw,
    }
}

fn request(run: &ToolRun, tool: &Arc<str>, more: More) -> (ClientRequest, PeerRequestOptions) {
    let arguments = serde_json::from_str::<JsonObject>(&run.work.args).unwrap_or_default();
    let mut params = CallToolRequestParams::new(tool.to_string()).with_arguments(arguments);
    params.input_responses = more.given;
    params.request_state = more.state;
    let mut options = PeerRequestOptions::no_options();
    let mut meta = RequestMetaObject::new();
    if run.work.class == Class::Idempotent {
        let key = format!("{}.{:x}.{}", run.session, run.mark, run.effect);
        meta.0.0.insert(KEY.to_owned(), key.into());
    }
    if let Some(trace) = run.trace {
        meta.0.0.insert(TRACE.to_owned(), trace.to_string().into());
    }
    if !meta.0.0.is_empty() {
        options = options.with_meta(meta);
    }
    (
        ClientRequest::CallToolRequest(CallToolRequest::new(params)),
        options,
    )
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
                    ..Fault::new(Code::Failed, mask.all(&none.message))
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
        let place = Place::of(server, &*ask.scope, &ask.folder, &self.env).ok()?;
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

//! The Model Context Protocol: the entries of the definitions as tools, over streamable HTTP and over a pair of streams.
//!
//! Clients of version 2026-07-28 send requests that stand alone. Older ones open a connection (`Mcp-Session-Id`), through which the server
//! can ask the user. A connection lives in this process and holds nothing of a session: a client whose connection is gone opens another
//! one and goes on with the same session.

mod call;
mod tools;

use super::views;
use crate::ask::has_few_values;
use crate::caller::Caller;
use crate::problem::{Code, Problem};
use crate::{Permission, Server};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError, serve_server_with_ct};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use steersman::Scope;
use steersman::machine::stored::ids::Name;
use steersman::runtime::store::Token;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;

/// The header that names a connection.
const CONNECTION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Maximum number of connections of one token. Clients often leave them open, so the oldest one gives way.
const CONNECTIONS: usize = 64;
/// Time after which a connection that is not used ends.
const IDLE: Duration = Duration::from_hours(1);
/// Milliseconds for which a client may keep the list of tools.
const FRESH: u64 = 60_000;
/// The beginning of the addresses of artifacts.
const ARTIFACT: &str = "steersman://";

/// Returns the routes. The protocol describes its messages itself, so they are not in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().route("/mcp", post(answer).delete(answer))
}

/// The connections of older clients.
pub(crate) struct Connections {
    manager: Arc<LocalSessionManager>,
    /// Connections and the tokens that opened them, oldest first.
    opened: Mutex<VecDeque<(Arc<str>, Name)>>,
    closing: CancellationToken,
}

impl Default for Connections {
    fn default() -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        manager.session_config.sse_retry = None;
        Self {
            manager: Arc::new(manager),
            opened: Mutex::default(),
            closing: CancellationToken::new(),
        }
    }
}

impl Connections {
    /// Ends all connections.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    fn opened(&self) -> MutexGuard<'_, VecDeque<(Arc<str>, Name)>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if this token opened the connection.
    fn belongs(&self, id: &str, token: &str) -> bool {
        let opened = self.opened();
        let mut opened = opened.iter();
        opened.any(|(known, owner)| **known == *id && **owner == *token)
    }

    /// Remembers which token opened a connection. If the token has too many, its oldest one ends.
    async fn open(&self, id: &str, token: &Name) {
        let oldest = {
            let mut opened = self.opened();
            opened.push_back((id.into(), token.clone()));
            let own = |(_, owner): &(Arc<str>, Name)| owner == token;
            let too_many = opened.iter().filter(|one| own(one)).count() > CONNECTIONS;
            let oldest = opened.iter().position(own).filter(|_| too_many);
            oldest.and_then(|at| opened.remove(at))
        };
        if let Some((oldest, _)) = oldest {
            // It may have ended by itself.
            self.manager.close_session(&oldest).await.ok();
        }
    }

    fn forget(&self, id: &str) {
        self.opened().retain(|(known, _)| **known != *id);
    }
}

/// Answers a request of a client. Hosts and origins were checked before, as for each route.
async fn answer(
    State(server): State<Server>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let limits = &server.options().limits;
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, limits.body).await.map_err(|_| {
        let why = format!(
            "the body cannot be read, or is longer than {} bytes",
            limits.body
        );
        Problem::new(Code::TooLarge, why)
    })?;
    has_few_values(&body)?;
    let mut request = Request::from_parts(parts, Body::from(body));
    let token = caller.token.name.clone();
    let is_delete = request.method() == axum::http::Method::DELETE;
    let named = connection(request.headers());
    let connections = server.mcp();
    if let Some(id) = &named
        && !connections.belongs(id, &token)
    {
        let why = "there is no such connection; it may have ended";
        return Err(Problem::new(Code::Path, why)
            .help("open another one with `initialize`; sessions are not affected"));
    }
    request.extensions_mut().insert(Arc::new(caller));
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_sse_retry(None)
        .with_cancellation_token(connections.closing.clone());
    let handler = Handler {
        server: server.clone(),
        local: None,
    };
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        connections.manager.clone(),
        config,
    );
    let response = service.handle(request).await.map(Body::new);
    match (named, connection(response.headers())) {
        (None, Some(opened)) => connections.open(&opened, &token).await,
        (Some(id), _) if is_delete => connections.forget(&id),
        _ => {}
    }
    Ok(response)
}

fn connection(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(CONNECTION)?.to_str().ok()?;
    Some(id.to_owned())
}

/// Serves the tools to one client over a pair of streams, such as standard input and output, until the client closes them or the server
/// stops. The client needs no token: it acts in these roles, or as the user if there are none.
///
/// # Errors
/// The client did not begin with a message of the protocol.
pub async fn serve_mcp(
    server: &Server,
    roles: Vec<Name>,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    let clock = server.steersman().engine().clock().clone();
    let allows = [Permission::Read, Permission::Write, Permission::Decide];
    let token = Token {
        name: "mcp".into(),
        hash: [0; 32],
        scope: Scope::default(),
        allows: allows.iter().map(|one| one.word().into()).collect(),
        roles,
        definitions: Vec::new(),
        made: clock.now(),
        expires: None,
        revoked: None,
        used: None,
        note: "the process that started this one".into(),
    };
    let handler = Handler {
        server: server.clone(),
        local: Some(Arc::new(token)),
    };
    // The end of the client is not that of the server.
    let stopping = server.stopping().child_token();
    let running = match Box::pin(serve_server_with_ct(handler, (input, output), stopping)).await {
        Ok(running) => running,
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    };
    running.waiting().await.map_err(io::Error::other)?;
    Ok(())
}

/// Answers the requests of the protocol.
#[derive(Clone)]
struct Handler {
    server: Server,
    /// The token of a client that needs none.
    local: Option<Arc<Token>>,
}

impl Handler {
    /// Returns the caller of a request.
    fn caller(&self, cx: &RequestContext<RoleServer>) -> Result<Arc<Caller>, Problem> {
        if let Some(token) = &self.local {
            return Ok(Arc::new(Caller::local(&self.server, token.clone())?));
        }
        let parts = cx.extensions.get::<Parts>();
        let caller = parts.and_then(|parts| parts.extensions.get::<Arc<Caller>>());
        caller
            .cloned()
            .ok_or_else(|| Problem::new(Code::Token, "the request names no token"))
    }

    /// Makes a request over HTTP a stream.
    fn streams(&self, caller: &Caller) -> Result<(), Problem> {
        if self.local.is_some() {
            return Ok(());
        }
        caller.streams()
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        let own = Implementation::new("steersman", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(own)
            .with_instructions(ABOUT)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&cx).map_err(|problem| error(&problem))?;
        let needs = caller.needs(Permission::Read);
        needs.map_err(|problem| error(&problem))?;
        let mut list = ListToolsResult::with_all_items(tools::all(&caller));
        if cx.protocol_version() >= Some(ProtocolVersion::V_2026_07_28) {
            list.ttl_ms = Some(FRESH);
            list.cache_scope = Some(rmcp::model::CacheScope::Private);
        }
        Ok(list)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let refused = |problem: Problem| {
            let text = ContentBlock::text(problem.sentence());
            CallToolResult::error(vec![text]).into()
        };
        let caller = match self.caller(&cx) {
            Ok(caller) => caller,
            Err(problem) => return Ok(refused(problem)),
        };
        let Some((network, entry)) = tools::named(&caller, &params.name) else {
            let why = "there is no such tool; `tools/list` lists them";
            return Err(ErrorData::invalid_params(why, None));
        };
        if let Err(problem) = self.streams(&caller) {
            return Ok(refused(problem));
        }
        let called = call::call(&caller, network, entry, params, &cx).await;
        Ok(called.unwrap_or_else(refused))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let place = params.uri.strip_prefix(ARTIFACT);
        let Some((session, name)) = place.and_then(|place| place.split_once('/')) else {
            let why = format!("an artifact has the address `{ARTIFACT}SESSION/NAME`");
            return Err(ErrorData::resource_not_found(why, None));
        };
        let read = async {
            let caller = self.caller(&cx)?;
            views::content(&caller, session, None, name, None).await
        };
        let (version, content) = read
            .await
            .map_err(|problem| ErrorData::resource_not_found(problem.sentence(), None))?;
        let content = match String::from_utf8(content) {
            Ok(text) => ResourceContents::text(text, &params.uri),
            Err(bytes) => ResourceContents::blob(STANDARD.encode(bytes.as_bytes()), &params.uri),
        };
        let content = content.with_mime_type(&*version.media);
        Ok(ReadResourceResult::new(vec![content]).into())
    }
}

/// The text that tells models what the server is.
const ABOUT: &str = "Each tool talks with a system of agents. The first call begins a session, and its result names it. Pass `session` to say \
    something more to the same session, or, without `message`, to wait for what it does. Sessions are kept: a call that ended early has \
    lost nothing. What a person has to decide is never decided by `message`, unless the result asks for it.";

/// Returns the error of a request that no tool answers.
fn error(problem: &Problem) -> ErrorData {
    ErrorData::invalid_request(problem.sentence(), None)
}

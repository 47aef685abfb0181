//! The guard around all routes: hosts, origins, times, sizes, headers, and the log of requests.

use crate::Server;
use crate::caller::{length, named};
use crate::held::Held;
use crate::problem::{Code, Problem, Told};
use crate::serve::HEAD;
use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures::FutureExt as _;
use serde_json::json;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Puts the guard around routes.
pub(crate) fn around(routes: Router<Server>, server: &Server) -> Router<Server> {
    routes
        .fallback(nowhere)
        .method_not_allowed_fallback(|| async {
            Problem::new(Code::Method, "the path does not have this method")
                .help("GET /v1/openapi.json lists the methods of each path")
        })
        .layer(DefaultBodyLimit::max(server.options().limits.body))
        .layer(from_fn_with_state(server.clone(), guarded))
}

/// Paths of OpenAI's API under a base that is not ours.
const OF_OPENAI: &[&str] = &[
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/models",
    "/chat/completions",
    "/responses",
    "/models",
];

/// Answers a request for a path that is not there. A client of OpenAI reads only errors of its form.
async fn nowhere(uri: Uri) -> Response {
    let problem = Problem::new(Code::Path, "there is no such path");
    if OF_OPENAI.contains(&uri.path()) {
        let base = "the base URL of a client of OpenAI ends with `/openai/v1`";
        return problem.help(base).openai_response();
    }
    let all = "GET /v1/openapi.json lists all";
    problem.help(all).into_response()
}

/// Gives requests their ids: each is another one, and none tells how many there were.
#[derive(Debug)]
pub(crate) struct Numbers {
    given: AtomicU64,
    times: u64,
    turned: u64,
}

impl Numbers {
    pub(crate) fn new() -> Self {
        let draw = || getrandom::u64().expect("the operating system gives random bytes");
        Self {
            given: AtomicU64::new(draw()),
            // Counts that differ give ids that differ, because the factor is odd.
            times: draw() | 1,
            turned: draw(),
        }
    }

    pub(crate) fn next(&self) -> String {
        let n = self.given.fetch_add(1, Ordering::Relaxed);
        format!("{:016x}", n.wrapping_mul(self.times) ^ self.turned)
    }
}

/// Returns the length of the path and the headers of a request, in bytes.
fn head_len(request: &Request) -> usize {
    let path = request.uri().path_and_query();
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len());
    path.map_or(0, |path| path.as_str().len()) + headers.sum::<usize>()
}

/// Checks a request, carries it out within its time, and adds the headers that all responses have.
async fn guarded(
    State(server): State<Server>,
    path: Option<MatchedPath>,
    mut request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let id = server.numbers().next();
    // Nothing but tokens, and what they see, depends on the version.
    let version = match named(request.headers()) {
        Some(_) => AssertUnwindSafe(server.version()).catch_unwind().await,
        None => Ok(None),
    };
    let held = Held::new(version.unwrap_or_default());
    request.extensions_mut().insert(held.clone());
    let method = request.method().clone();
    let origin = request.headers().get(header::ORIGIN).cloned();
    let is_openai = request.uri().path().starts_with("/openai/");
    // The buffer of a connection bounds only what it reads at once, so a head may be longer than that.
    let mut response = if head_len(&request) > HEAD {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response()
    } else {
        answered(&server, &held, request, next).await
    };
    if is_openai && let Some(Told(problem)) = response.extensions().get().cloned() {
        let told = std::mem::take(response.extensions_mut());
        response = problem.openai_response();
        *response.extensions_mut() = told;
    }
    let headers = response.headers_mut();
    let fixed = [
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        let value = HeaderValue::from_static(value);
        headers.entry(name).or_insert(value);
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(HeaderName::from_static("x-request-id"), id);
    }
    if let Some(origin) = origin.filter(|origin| allowed(&server, origin)) {
        cross_origin(headers, origin);
    }
    if let Some(metrics) = &server.options().metrics {
        let route = path.as_ref().map(MatchedPath::as_str);
        metrics.request(route, response.status(), began.elapsed());
    }
    if let Some(log) = &server.options().log {
        // No texts, no queries, no bodies.
        log(&json!({
            "request": id,
            "method": method.as_str(),
            "route": path.as_ref().map(MatchedPath::as_str),
            "status": response.status().as_u16(),
            "code": response.extensions().get::<Told>().map(|told| told.0.code()),
            "token": held.token().map(|token| &*token.name),
            "ms": began.elapsed().as_millis() as u64,
        }));
    }
    response
}

/// Carries out a request within its time, and for as long as its token is valid.
async fn answered(server: &Server, held: &Held, request: Request, next: Next) -> Response {
    if let Err(problem) = checked(server, &request) {
        return problem.into_response();
    }
    if request.method() == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let limits = &server.options().limits;
    if length(request.headers()).is_some_and(|len| len > limits.files) {
        let why = format!("a body has at most {} bytes", limits.files);
        return Problem::new(Code::TooLarge, why).into_response();
    }
    // A request that meets a fault is answered like all others, and no other request notices it.
    let carried_out = held.clone().during(server, next.run(request));
    let carried_out = AssertUnwindSafe(carried_out).catch_unwind();
    match tokio::time::timeout(limits.request, carried_out).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            let why = "the request met a fault of the server, which its standard error describes";
            Problem::new(Code::Internal, why).into_response()
        }
        Err(_) => {
            let seconds = limits.request.as_secs();
            let why = format!("the request was not answered within {seconds} s");
            Problem::new(Code::Late, why).into_response()
        }
    }
}

/// Refuses requests to a host that is not served, and from web pages that may not send them.
fn checked(server: &Server, request: &Request) -> Result<(), Problem> {
    let mut in_head = request.headers().get_all(header::HOST).iter();
    let (first, second) = (in_head.next(), in_head.next());
    let first = first.map(|host| host.to_str().unwrap_or_default());
    let in_line = request.uri().authority().map(Authority::as_str);
    // A proxy may have gone by either of two names, so each name is checked, and two headers are none.
    let names: Vec<&str> = first.into_iter().chain(in_line).collect();
    let is_named = !names.is_empty() && second.is_none();
    if !(is_named && names.iter().all(|name| is_served(server, name))) {
        let why = "the server is not reached under this host";
        return Err(Problem::new(Code::Host, why).help("name the host with `--host`"));
    }
    let mut origins = request.headers().get_all(header::ORIGIN).iter();
    if origins.all(|origin| is_own(origin, &names) || allowed(server, origin)) {
        return Ok(());
    }
    let why = "web pages of this origin may not send requests";
    Err(Problem::new(Code::Origin, why).help("name the origin with `--origin`"))
}

/// Returns true for a name or address of this computer, and for a host that the options name.
fn is_served(server: &Server, host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority
        .host()
        .trim_start_matches('[')
        .trim_end_matches(']');
    let is_here = name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    let mut hosts = server.options().hosts.iter();
    is_here || hosts.any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns true for a page of this server: its origin is the host that was asked, which has been checked. Whether it came over TLS only
/// a proxy knows.
fn is_own(origin: &HeaderValue, hosts: &[&str]) -> bool {
    let origin = origin.to_str().ok();
    let origin = origin.and_then(|origin| {
        origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
    });
    origin.is_some_and(|origin| hosts.iter().any(|host| origin.eq_ignore_ascii_case(host)))
}

/// Returns true for a page of another origin that the options name.
fn allowed(server: &Server, origin: &HeaderValue) -> bool {
    let mut origins = server.options().origins.iter();
    origins.any(|known| known.as_bytes() == origin.as_bytes())
}

/// Lets a web page of another origin read the response. Credentials of browsers are never allowed.
fn cross_origin(headers: &mut HeaderMap, origin: HeaderValue) {
    let fixed = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "a2a-version, authorization, content-type, idempotency-key, if-match, if-none-match, last-event-id, mcp-method, mcp-name, mcp-protocol-version, \
             mcp-session-id, prefer, x-steersman-session, \
             x-stainless-arch, x-stainless-helper-method, x-stainless-lang, x-stainless-os, x-stainless-package-version, \
             x-stainless-retry-count, x-stainless-runtime, x-stainless-runtime-version, x-stainless-timeout",
        ),
        (
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            "etag, idempotent-replay, location, mcp-session-id, x-request-id, x-steersman-session",
        ),
        (header::VARY, "origin"),
    ];
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let name = HeaderName::from_static("cross-origin-resource-policy");
    headers.insert(name, HeaderValue::from_static("cross-origin"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use axum::body::{Body, to_bytes};
    use axum::routing::get;
    use std::sync::Arc;
    use steersman::Steersman;
    use steersman::runtime::seal::Sealer;
    use steersman::runtime::store::memory::MemoryStore;
    use tower::ServiceExt as _;

    async fn panics() -> &'static str {
        panic!("a fault that the test made")
    }

    #[tokio::test]
    async fn a_request_that_meets_a_fault_is_answered() {
        let sealer = Sealer::new(&[7; 32]);
        let steersman = Steersman::options().over_shared(Arc::new(MemoryStore::new()), sealer);
        let server = Server::new(steersman, Options::default());
        let routes = Router::new().route("/panics", get(panics));
        let app = around(routes, &server).with_state(server);
        let request = axum::http::Request::builder().uri("/panics");
        let request = request.header("host", "localhost").body(Body::empty());
        let response = app.oneshot(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), 500);
        assert!(response.headers().contains_key("x-request-id"));
        let body = to_bytes(response.into_body(), 10_000).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["code"], "internal");
        assert!(!body.to_string().contains("that the test made"), "{body}");
    }
}

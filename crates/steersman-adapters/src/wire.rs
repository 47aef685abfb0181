//! Common parts of all model protocols: one POST, an answer that streams or comes whole, and a time limit for each part.
//!
//! A protocol encodes a neutral request and decodes events ([`Decode`]), both without I/O; `exchange` sends, waits and gives
//! up. A call is made once: the caller decides about another attempt, by the failure's `retry`.

pub(crate) mod answer;
pub(crate) mod fault;
pub(crate) mod files;
pub mod frames;
mod left;
mod reading;
pub mod sse;
pub(crate) mod styled;

pub use reading::{Framing, Reading};

use crate::masked::Mask;
use crate::structured;
use crate::transport::{self, BodyError};
use reqwest::{RequestBuilder, Url};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use steersman_machine::context::{RENDER_VERSION, Request};
use steersman_machine::network::ToolChoice;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::commit::Usage;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::model::{Delta, ModelCall, Report, Sink};
use steersman_runtime::trace::TraceParent;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// Header of the place in a trace, and name of the same in the `_meta` of a call of an MCP tool.
pub(crate) const TRACE: &str = "traceparent";
/// Maximum number of bytes of an error's body that are read.
const ERROR_BODY_MAX: usize = 256 << 10;
/// Maximum number of bytes of an answer, streamed or whole, including everything around its text.
const BODY_MAX: usize = 64 << 20;
/// Time to wait for usage after the server said that the answer ended.
const TAIL: Duration = Duration::from_secs(5);
/// Maximum number of bytes that are read after the end of an answer; usage takes less.
const TAIL_MAX: usize = 256 << 10;
/// Maximum number of kept connections that may turn out to be closed, one after the other.
const STALE: usize = 3;
/// Time within which a closed connection is noticed.
const AT_ONCE: Duration = Duration::from_millis(500);
/// Maximum number of bytes of a failure's message.
const TOLD_MAX: usize = 2000;
/// Time that a complete answer waits for the end of its body.
const END: Duration = Duration::from_millis(20);

/// Time limits for a model call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection is made.
    pub connect: Duration,
    /// Until the first event: a local server may load the model first, then read a long prompt.
    pub first: Duration,
    /// Between two events.
    pub idle: Duration,
    /// For the whole call.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first: Duration::from_mins(5),
            idle: Duration::from_mins(2),
            total: Duration::from_mins(30),
        }
    }
}

/// Builds an answer from what a server sends, without I/O.
pub trait Decode {
    /// Returns the form in which the events of a stream come.
    fn framing(&self) -> Framing {
        Framing::Events
    }
    /// Takes the data of the next event.
    fn event(&mut self, data: &str, sink: &dyn Sink) -> Result<(), Failure>;
    /// Takes a whole answer, from a server that does not stream.
    fn whole(&mut self, body: &str, sink: &dyn Sink) -> Result<(), Failure>;
    /// Returns true if the answer is complete: nothing more needs to be read.
    fn is_done(&self) -> bool;
    /// Returns true if the server said how the answer ended; only usage may follow.
    fn has_ended(&self) -> bool;
    /// Returns the answer, or the reason why there is none. A stream that just stops is not an answer.
    fn finish(self) -> Result<Answer, Failure>;
}

/// Adds a body of JSON to a request.
pub(crate) fn with_json(post: RequestBuilder, body: Vec<u8>) -> RequestBuilder {
    post.header("content-type", "application/json").body(body)
}

/// Adds the trace of a call to its request, if there is one.
pub(crate) fn traced(post: RequestBuilder, trace: Option<TraceParent>) -> RequestBuilder {
    match trace {
        Some(trace) => post.header(TRACE, trace.to_string()),
        None => post,
    }
}

/// Sends the request and reads the answer. `kept`: a connection may have been kept from an earlier call.
pub(crate) async fn exchange(
    post: RequestBuilder,
    times: Timeouts,
    mut decoder: impl Decode,
    sink: &dyn Sink,
    kept: &AtomicBool,
) -> Result<Answer, Failure> {
    let start = Instant::now();
    let end = start + times.total;
    let mut deadline = (start + times.first).min(end);
    let mut tail = None;
    let post = post.header("accept", decoder.framing().accept());
    let mut response = match timeout_at(deadline, sent(post, kept)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(not_sent(error)),
        Err(_) => return Err(late(&times, start, "no answer began")),
    };
    let report = left::report(response.headers(), jiff::Timestamp::now());
    if report != Report::default() {
        sink.report(report);
    }
    let status = response.status();
    if !status.is_success() {
        let body = timeout_at(deadline, transport::head(&mut response, ERROR_BODY_MAX)).await;
        let body = body.unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        return Err(fault::of_status(status.as_u16(), response.headers(), &body));
    }
    if is(&response, "text/html") {
        let page = timeout_at(deadline, transport::head(&mut response, 200)).await;
        let page = String::from_utf8_lossy(&page.unwrap_or_default()).into_owned();
        let message = format!("a web page came instead of an answer: {page}");
        return Err(Failure::new(FailureCode::BadResponse, message));
    }
    if is(&response, "application/json") {
        let body = match timeout_at(end, transport::body(&mut response, BODY_MAX)).await {
            Ok(Ok(body)) => body,
            Ok(Err(error)) => return Err(broken(error)),
            Err(_) => return Err(late(&times, start, "the answer did not end")),
        };
        kept.store(true, Ordering::Relaxed);
        decoder.whole(&String::from_utf8_lossy(&body), sink)?;
        return decoder.finish();
    }
    let mut reading = Reading::new(decoder);
    while !reading.is_done() {
        match timeout_at(deadline, response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                // Comments keep a connection open; only events show that the model is still at work.
                if reading.push(&bytes, sink)? {
                    deadline = (Instant::now() + times.idle).min(end);
                }
                if reading.has_ended() {
                    let (until, most) =
                        *tail.get_or_insert((Instant::now() + TAIL, reading.size() + TAIL_MAX));
                    deadline = deadline.min(until);
                    if reading.size() > most {
                        break;
                    }
                }
            }
            Ok(Ok(None)) => {
                kept.store(true, Ordering::Relaxed);
                reading.end(sink);
                break;
            }
            Ok(Err(_)) | Err(_) if reading.has_ended() => break,
            Ok(Err(error)) => {
                let message = format!("the stream broke off: {}", transport::describe(error));
                return Err(Failure::new(FailureCode::Truncated, message));
            }
            Err(_) => return Err(late(&times, start, "no further event came")),
        }
    }
    if reading.is_done() {
        drain(response).await;
        kept.store(true, Ordering::Relaxed);
    }
    reading.finish()
}

/// Sends the request. Its server may have closed a kept connection just before, often without notice. That shows quickly, and the
/// server has read nothing: so the request is sent over another connection, which does not count as a second attempt. If a
/// connection breaks later, the error is returned.
async fn sent(post: RequestBuilder, kept: &AtomicBool) -> reqwest::Result<reqwest::Response> {
    let most = if kept.load(Ordering::Relaxed) {
        STALE
    } else {
        0
    };
    for _ in 0..most {
        let Some(same) = post.try_clone() else { break };
        let begun = Instant::now();
        match same.send().await {
            Err(error)
                if error.is_request()
                    && !error.is_connect()
                    && !error.is_timeout()
                    && begun.elapsed() < AT_ONCE => {}
            ended => return ended,
        }
    }
    post.send().await
}

/// Reads the end of a body whose content is known, so that its connection can carry the next call: dropping a body before its end
/// closes the connection. Usually the end is there already; otherwise a separate task waits for it.
async fn drain(mut response: reqwest::Response) {
    async fn end(response: &mut reqwest::Response) {
        while let Ok(Some(_)) = response.chunk().await {}
    }
    if timeout(END, end(&mut response)).await.is_err() {
        tokio::spawn(async move { timeout(TAIL, end(&mut response)).await });
    }
}

/// Parses a base address: without a path it gets `/v1`, and a full address of the endpoint is cut to its base.
pub(crate) fn base_url(base: &str) -> Result<Url, String> {
    let mut url = based(base, "/v1")?;
    let path = url.path();
    let cut = ["/chat/completions", "/messages", "/responses"];
    let cut = cut.into_iter().find_map(|end| path.strip_suffix(end));
    let path = cut.unwrap_or(path).to_owned();
    url.set_path(if path.is_empty() { "/v1" } else { &path });
    Ok(url)
}

/// Parses an address, without a slash at its end; without a path it gets this one.
pub(crate) fn based(base: &str, version: &str) -> Result<Url, String> {
    let mut url = Url::parse(base.trim())
        .map_err(|error| format!("the base address is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("the base address begins with neither http:// nor https://".to_owned());
    }
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(if path.is_empty() { version } else { &path });
    Ok(url)
}

/// Returns an address below the base.
pub(crate) fn endpoint(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

/// Returns true if the answer is of this media type.
fn is(response: &reqwest::Response, wanted: &str) -> bool {
    let kind = response.headers().get(reqwest::header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase().starts_with(wanted)
}

fn not_sent(error: reqwest::Error) -> Failure {
    let (code, what) = if error.is_timeout() && error.is_connect() {
        (FailureCode::Timeout, "no connection in time")
    } else if error.is_connect() {
        (FailureCode::Unreachable, "no connection to the server")
    } else if error.is_builder() {
        return Failure::new(FailureCode::InvalidRequest, transport::describe(error));
    } else {
        (
            FailureCode::Disconnected,
            "the connection ended before an answer",
        )
    };
    Failure::new(code, format!("{what}: {}", transport::describe(error)))
}

fn broken(error: BodyError) -> Failure {
    match error {
        BodyError::TooLarge => {
            Failure::new(FailureCode::TooLarge, "the answer is larger than 64 MiB")
        }
        BodyError::Broken(why) => Failure::new(
            FailureCode::Truncated,
            format!("the answer broke off: {why}"),
        ),
    }
}

fn late(times: &Timeouts, start: Instant, what: &str) -> Failure {
    let spent = start.elapsed();
    let bound = if spent >= times.total {
        "in all"
    } else {
        "of waiting"
    };
    let message = format!("{what} after {:.1} s {bound}", spent.as_secs_f64());
    Failure::new(FailureCode::Timeout, message)
}

/// Text of the user where a protocol requires the conversation to begin with the user.
pub(crate) const BEGIN: &str = "Begin.";
/// Text of the user where a protocol requires one between or after messages of the model.
pub(crate) const GO_ON: &str = "Go on.";

/// A sink that drops everything, for callers that want only the answer.
#[derive(Copy, Clone, Debug, Default)]
pub struct Quiet;

impl Sink for Quiet {
    fn delta(&self, _: Delta) {}
}

/// Adds the facts about the call to the answer's usage.
fn stamped(answer: Answer, call: &ModelCall, label: Name) -> Answer {
    let usage = Usage {
        effect: Some(call.effect),
        model: Some(label),
        request: Some(call.request.digest),
        render: RENDER_VERSION,
        prefix: call.request.prefix,
        broke: call.request.broke.clone(),
        ..answer.usage
    };
    Answer { usage, ..answer }
}

/// Waits for the answer, unless the call is cancelled first. Failures do not contain the key.
pub(crate) async fn until_cancelled(
    answer: impl Future<Output = Result<Answer, Failure>> + Send,
    call: &ModelCall,
    cancel: &CancellationToken,
) -> Result<Answer, Failure> {
    let answer = cancel.run_until_cancelled(answer).await;
    let answer = answer.unwrap_or_else(|| {
        Err(Failure::new(
            FailureCode::Cancelled,
            "the call was cancelled",
        ))
    });
    answer.map_err(|failure| told(failure, call.transport.key.as_deref()))
}

/// Masks keys in a failure and limits its message. Only this function shortens texts of a server: until then they are whole, so that a
/// key is always found. So all keys are masked at once.
pub(crate) fn told<'a>(failure: Failure, keys: impl IntoIterator<Item = &'a str>) -> Failure {
    Failure {
        message: Mask::of_keys(keys).first(&failure.message, TOLD_MAX),
        ..failure
    }
}

/// Restores names of offered tools: some models put a module's name in front, a mark of their template at the end, or blanks
/// around them. An unknown name stays as it is: the machine tells the model.
fn mend_names(request: &Request, answer: &mut Answer) {
    let offered = |name: &str| structured::tools(request).any(|tool| *tool.name == *name);
    for ask in &mut answer.asks {
        if offered(&ask.name) {
            continue;
        }
        let name = ask.name.split("<|").next().unwrap_or_default().trim();
        let last = name.rsplit(['.', ':', '/']).next().unwrap_or_default();
        let meant = [name, last].into_iter().find(|name| offered(name));
        if let Some(meant) = meant {
            ask.name = meant.to_owned();
        }
    }
}

/// Returns the reason why an answer is not what was requested: some servers answer 200 and ignore `tool_choice`.
fn missed(request: &Request, answer: &Answer) -> Option<String> {
    structured::tools(request).next()?;
    match &request.choice {
        ToolChoice::Any if answer.asks.is_empty() => {
            Some("a tool had to be called, and the answer calls none".to_owned())
        }
        ToolChoice::Tool(name) if !answer.asks.iter().any(|ask| *ask.name == **name) => Some(
            format!("the tool `{name}` had to be called, and the answer does not call it"),
        ),
        ToolChoice::Auto | ToolChoice::Any | ToolChoice::None | ToolChoice::Tool(_) => None,
    }
}

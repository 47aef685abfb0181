//! Chat completions, as OpenAI made them and everybody else serves them: any base address, streamed.
//!
//! [`encode`] makes the JSON, [`sse`] cuts the stream, [`stream`] puts the answer together, all without I/O; this file
//! sends, waits and gives up. A call is made once: whether to try again is the caller's decision, from the failure's
//! `retry`.

pub mod encode;
pub(crate) mod fault;
pub mod sse;
pub mod stream;

use crate::structured::{self, Style};
use crate::transport::{self, BodyError, Clients, Redirects};
use encode::Dialect;
use fault::{NO_TOOLS, failure};
use reqwest::Url;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use steersman_machine::commit::Usage;
use steersman_machine::context::{RENDER_VERSION, Request};
use steersman_machine::effect::{Answer, Failure, Retry};
use steersman_machine::ids::Name;
use steersman_machine::network::{CallStyle, ToolChoice};
use steersman_runtime::Boxed;
use steersman_runtime::model::{Delta, Model, ModelCall, Sink};
use stream::Decoder;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// Bytes of an answer that says what went wrong.
const ERROR_BODY_MAX: usize = 256 << 10;
/// Bytes of an answer, streamed or whole, with all that stands around its text.
const BODY_MAX: usize = 64 << 20;
/// How long usage is waited for once the server has said that the answer ended.
const TAIL: Duration = Duration::from_secs(5);

/// How long a model may take.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until there is a connection.
    pub connect: Duration,
    /// Until the first event: a local server may load the model first, then read a long prompt.
    pub first: Duration,
    /// Between two events.
    pub idle: Duration,
    /// All in all.
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

/// Which server, and how it likes to be spoken to.
#[derive(Clone, Debug)]
pub struct Server {
    /// For people and usage records: `openai/gpt-5-mini`.
    pub label: Name,
    /// Base address, with the version in it (`https://api.openai.com/v1`); without a path `/v1` is added.
    pub url: String,
    /// Name of the model at the server.
    pub model: String,
    /// How it is spoken to.
    pub dialect: Dialect,
    /// How long it may take.
    pub timeouts: Timeouts,
}

/// A model behind chat completions.
pub struct Chat {
    server: Server,
    clients: Clients,
    /// Whether a server and model can call tools, where it said so.
    tools: Mutex<BTreeMap<(String, String), bool>>,
}

impl Chat {
    /// A model at this server. Nothing is sent before it is called.
    pub fn new(server: Server) -> Self {
        let clients = Clients::new(server.timeouts.connect, Redirects::Never);
        Self {
            server,
            clients,
            tools: Mutex::default(),
        }
    }

    async fn answer(&self, call: &ModelCall, sink: &dyn Sink) -> Result<Answer, Failure> {
        let base = call.transport.url.as_deref().unwrap_or(&self.server.url);
        let model = call
            .transport
            .model
            .as_deref()
            .unwrap_or(&self.server.model);
        let base =
            base_url(base).map_err(|error| failure("invalid_request", error, Retry::Never))?;
        let mut native = match call.request.calls {
            CallStyle::Native => true,
            CallStyle::Structured | CallStyle::Text => false,
            CallStyle::Auto => self.has_tools(&call.request, &base, model).await,
        };
        loop {
            let style = match call.request.calls {
                CallStyle::Text => Style::Text,
                CallStyle::Auto | CallStyle::Native | CallStyle::Structured => Style::Structured,
            };
            let style = (!native).then_some(style);
            let result = self.once(call, &base, model, style, sink).await;
            // A server that refuses tools did nothing yet, so asking it another way repeats nothing.
            match result {
                Err(failure)
                    if failure.code == NO_TOOLS
                        && call.request.calls == CallStyle::Auto
                        && native =>
                {
                    self.learn(&base, model, false);
                    native = false;
                }
                other => return other,
            }
        }
    }

    /// Whether tools may be sent: unless the server says that it has none. Servers that have none answer 200 and drop
    /// them, so the answer itself proves nothing.
    async fn has_tools(&self, request: &Request, base: &Url, model: &str) -> bool {
        if self.server.dialect.openai || structured::tools(request).next().is_none() {
            return true;
        }
        let key = (base.to_string(), model.to_owned());
        let known = {
            let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            tools.get(&key).copied()
        };
        if let Some(known) = known {
            return known;
        }
        let said = crate::capabilities::ask(&self.clients, base, model).await;
        if let Some(tools) = said.tools {
            self.learn(base, model, tools);
        }
        said.tools.unwrap_or(true)
    }

    fn learn(&self, base: &Url, model: &str, tools: bool) {
        let key = (base.to_string(), model.to_owned());
        let mut known = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key, tools);
    }

    async fn once(
        &self,
        call: &ModelCall,
        base: &Url,
        model: &str,
        style: Option<Style>,
        sink: &dyn Sink,
    ) -> Result<Answer, Failure> {
        let told = style.map(|style| structured::tell(&call.request, style));
        let request = told.as_ref().unwrap_or(&call.request);
        if request.prefill.is_some() && self.server.dialect.openai {
            let message = "this provider cannot begin an answer for the model: leave out `prefill`";
            return Err(failure("not_supported", message, Retry::Never));
        }
        let body = encode::encode(request, model, &self.server.dialect);
        // What streams inside a constrained answer is JSON; people want to see the text in it.
        let constrained = style == Some(Style::Structured)
            && structured::tools(&call.request).next().is_some()
            && call.request.choice != ToolChoice::None;
        let answer = if constrained {
            let peek = structured::Peek::new(sink);
            self.exchange(call, base, &body, &peek).await?
        } else {
            self.exchange(call, base, &body, sink).await?
        };
        let answer = begun(answer, request.prefill.as_deref());
        let mut answer = match style {
            Some(style) => structured::read(answer, &call.request, style),
            None => answer,
        };
        if answer.misfit.is_none() {
            answer.misfit = missed(&call.request, &answer);
        }
        answer.usage = Usage {
            effect: Some(call.effect),
            model: Some(self.label()),
            request: Some(call.request.digest),
            render: RENDER_VERSION,
            prefix: call.request.prefix,
            broke: call.request.broke.clone(),
            ..answer.usage
        };
        Ok(answer)
    }

    /// Sends the request and reads what comes.
    async fn exchange(
        &self,
        call: &ModelCall,
        base: &Url,
        body: &Json,
        sink: &dyn Sink,
    ) -> Result<Answer, Failure> {
        let times = self.server.timeouts;
        let start = Instant::now();
        let end = start + times.total;
        let mut deadline = (start + times.first).min(end);
        let client = self
            .clients
            .of(base)
            .map_err(|error| failure("tls", error, Retry::Never))?;
        let mut post = client.post(endpoint(base, "chat/completions")).json(body);
        post = post.header("accept", "text/event-stream, application/json");
        if let Some(key) = &call.transport.key {
            post = post.bearer_auth(key);
        }
        let mut response = match timeout_at(deadline, post.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(not_sent(error)),
            Err(_) => return Err(late(&times, start, "no answer began")),
        };
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
            return Err(failure("bad_response", message, Retry::Policy));
        }
        let mut decoder = Decoder::default();
        if is(&response, "application/json") {
            let body = match timeout_at(end, transport::body(&mut response, BODY_MAX)).await {
                Ok(Ok(body)) => body,
                Ok(Err(error)) => return Err(broken(error)),
                Err(_) => return Err(late(&times, start, "the answer did not end")),
            };
            decoder.whole(&String::from_utf8_lossy(&body), sink)?;
            return decoder.finish();
        }
        let mut events = sse::Events::default();
        let mut size = 0;
        while !decoder.is_done() {
            match timeout_at(deadline, response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    size += bytes.len();
                    let cut = events.push(&bytes);
                    let cut = cut.ok().filter(|_| size <= BODY_MAX);
                    let cut = cut.ok_or_else(|| broken(BodyError::TooLarge))?;
                    // Comments keep a connection open; only events show that the model goes on.
                    if !cut.is_empty() {
                        deadline = (Instant::now() + times.idle).min(end);
                    }
                    for event in cut {
                        decoder.event(&event, sink)?;
                    }
                    if decoder.has_ended() {
                        deadline = deadline.min(Instant::now() + TAIL);
                    }
                }
                Ok(Ok(None)) => {
                    if let Some(event) = std::mem::take(&mut events).finish() {
                        // Half an event at the end of a stream says nothing but that it was cut.
                        drop(decoder.event(&event, sink));
                    }
                    break;
                }
                Ok(Err(_)) | Err(_) if decoder.has_ended() => break,
                Ok(Err(error)) => {
                    let message = format!("the stream broke off: {}", transport::describe(error));
                    return Err(failure("truncated", message, Retry::Policy));
                }
                Err(_) => return Err(late(&times, start, "the stream stands still")),
            }
        }
        decoder.finish()
    }
}

impl Model for Chat {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let answer: std::pin::Pin<Box<dyn Future<Output = _> + Send>> =
                Box::pin(self.answer(call, sink));
            let answer = cancel.run_until_cancelled(answer).await;
            let answer = answer.unwrap_or_else(|| {
                Err(failure("cancelled", "the call was cancelled", Retry::Never))
            });
            answer.map_err(|failure| Failure {
                message: transport::redact(failure.message, call.transport.key.as_deref()),
                ..failure
            })
        })
    }

    fn label(&self) -> Name {
        self.server.label.clone()
    }
}

/// The answer with the text that began it: some servers give it back, some give what follows, llama.cpp does both.
fn begun(mut answer: Answer, prefill: Option<&str>) -> Answer {
    if let (Some(prefill), Some(text)) = (prefill, &mut answer.text)
        && !text.starts_with(prefill)
    {
        text.insert_str(0, prefill);
    }
    answer
}

/// Why an answer is not what was asked for: servers answer 200 to a `tool_choice` that they do not know.
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

/// The base address: without a path it gets `/v1`, a full address of the endpoint is cut to its base.
pub(crate) fn base_url(base: &str) -> Result<Url, String> {
    let mut url =
        Url::parse(base.trim()).map_err(|error| format!("the base address is no URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("the base address begins with neither http:// nor https://".to_owned());
    }
    let path = url.path().trim_end_matches('/');
    let path = path
        .strip_suffix("/chat/completions")
        .unwrap_or(path)
        .to_owned();
    url.set_path(if path.is_empty() { "/v1" } else { &path });
    Ok(url)
}

/// An address below the base.
pub(crate) fn endpoint(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

/// Whether the answer says that it is of this type.
fn is(response: &reqwest::Response, wanted: &str) -> bool {
    let kind = response.headers().get(reqwest::header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase().starts_with(wanted)
}

fn not_sent(error: reqwest::Error) -> Failure {
    let (code, what) = if error.is_timeout() && error.is_connect() {
        ("timeout", "no connection in time")
    } else if error.is_connect() {
        ("unreachable", "no connection to the server")
    } else if error.is_builder() {
        return failure("invalid_request", transport::describe(error), Retry::Never);
    } else {
        ("disconnected", "the connection ended before an answer")
    };
    failure(
        code,
        format!("{what}: {}", transport::describe(error)),
        Retry::Policy,
    )
}

fn broken(error: BodyError) -> Failure {
    match error {
        BodyError::TooLarge => failure(
            "too_large",
            "the answer is larger than 64 MiB",
            Retry::Never,
        ),
        BodyError::Broken(why) => failure(
            "truncated",
            format!("the answer broke off: {why}"),
            Retry::Policy,
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
    failure("timeout", message, Retry::Policy)
}

/// Drops what it gets: for callers that want the answer alone.
#[derive(Copy, Clone, Debug, Default)]
pub struct Quiet;

impl Sink for Quiet {
    fn delta(&self, _: Delta) {}
}

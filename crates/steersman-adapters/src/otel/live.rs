//! Sends spans to a collector while sessions run.
//!
//! The tap of the process says which sessions have new lines on disk. A task of its own reads these lines from the store, derives spans and
//! sends them. So a session never waits for the collector, and nothing has to be kept for it: what a process has not sent when it dies, an export
//! of the session makes again.

use super::form;
use crate::transport::{self, Clients, Redirects};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Line, unhex};
use steersman_runtime::Env;
use steersman_runtime::engine::{Engine, EngineError};
use steersman_runtime::store::SessionId;
use steersman_runtime::tap::Tap;
use steersman_views::reader::{PAGE, Reader, Stored};
use steersman_views::spans::{Span, Tracer};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// Time for which spans are collected before they are sent.
const GATHER: Duration = Duration::from_millis(500);
/// Maximum number of spans of one request.
const AT_ONCE: usize = 512;
/// Maximum number of spans that wait for a collector that does not answer. The oldest are dropped first.
const WAITING: usize = 8_192;
/// Maximum number of sessions whose open spans are kept in memory. Those of another session are derived from its log again.
const TRACED: usize = 256;
/// First and longest pause after a request that failed.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// A collector, and how to send spans to it.
#[derive(Clone, Debug)]
pub struct Target {
    url: Url,
    headers: HeaderMap,
    timeout: Duration,
    service: String,
    with_texts: bool,
}

/// An environment variable that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {why}")]
pub struct TargetError {
    /// Name of the variable.
    pub variable: &'static str,
    /// The reason, and what to write instead.
    pub why: String,
}

/// Returns the name of the program for spans: `OTEL_SERVICE_NAME`, otherwise `steersman`.
#[must_use]
pub fn service(env: &Env) -> String {
    let named = env("OTEL_SERVICE_NAME").filter(|name| !name.is_empty());
    named.unwrap_or_else(|| "steersman".to_owned())
}

/// Returns the collector that the standard variables name (`OTEL_EXPORTER_OTLP_ENDPOINT` and its like). `None` if they name none.
///
/// # Errors
/// A variable that cannot be used.
pub fn target(env: &Env) -> Result<Option<Target>, TargetError> {
    const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    const OF_TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    let given = |name| env(name).filter(|value: &String| !value.trim().is_empty());
    if given("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let (variable, url) = match (given(OF_TRACES), given(ENDPOINT)) {
        (Some(url), _) => (OF_TRACES, url),
        (None, Some(base)) => (
            ENDPOINT,
            format!("{}/v1/traces", base.trim_end_matches('/')),
        ),
        (None, None) => return Ok(None),
    };
    let url = Url::parse(&url).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or_else(|| TargetError {
        variable,
        why: "it is not an address; write `http://127.0.0.1:4318`".to_owned(),
    })?;
    for variable in [
        "OTEL_EXPORTER_OTLP_PROTOCOL",
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    ] {
        if let Some(protocol) = given(variable).filter(|given| given != "http/protobuf") {
            let why = format!("`{protocol}` is not sent; `http/protobuf` is");
            return Err(TargetError { variable, why });
        }
    }
    let mut headers = HeaderMap::new();
    for variable in [
        "OTEL_EXPORTER_OTLP_HEADERS",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    ] {
        let all = given(variable).unwrap_or_default();
        for pair in all
            .split(',')
            .map(str::trim)
            .filter(|pair| !pair.is_empty())
        {
            let (name, value) = header(pair).ok_or_else(|| TargetError {
                variable,
                // The value may be a key.
                why: "it is not of the form `name=value,name=value`".to_owned(),
            })?;
            headers.insert(name, value);
        }
    }
    let variable = "OTEL_EXPORTER_OTLP_TIMEOUT";
    let millis = given(variable).map(|text| text.trim().parse::<u64>());
    let millis = millis.unwrap_or(Ok(10_000)).map_err(|_| TargetError {
        variable,
        why: "it is not a number of milliseconds".to_owned(),
    })?;
    Ok(Some(Target {
        url,
        headers,
        timeout: Duration::from_millis(millis),
        service: service(env),
        with_texts: false,
    }))
}

fn header(pair: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = pair.split_once('=')?;
    let name = HeaderName::try_from(name.trim()).ok()?;
    let mut value = HeaderValue::from_bytes(&percent_decoded(value.trim())?).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

/// Decodes `%41`. `None` if a percent sign is followed by something else than two hexadecimal digits.
fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.extend(unhex(part.get(..2)?)?);
        bytes.extend(&part.as_bytes()[2..]);
    }
    Some(bytes)
}

impl Target {
    /// Sends the texts of messages, calls and results, too; secrets that a session knows are masked.
    #[must_use]
    pub fn with_texts(self, with_texts: bool) -> Self {
        Self { with_texts, ..self }
    }
}

/// The tap of an exporter: remembers which sessions have new lines.
#[derive(Debug, Default)]
pub struct Feed {
    /// The first new line of each session.
    new: Mutex<BTreeMap<SessionId, Line>>,
    bell: Notify,
}

impl Feed {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Line>> {
        self.new.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tap for Feed {
    fn line(&self, session: &SessionId, line: &Arc<LogLine>, _took: u64) {
        let mut new = self.lock();
        if !new.contains_key(session) {
            new.insert(session.clone(), line.n);
            drop(new);
            self.bell.notify_one();
        }
    }
}

/// Sends the spans of all sessions that a process drives.
#[derive(Debug)]
pub struct Exporter {
    target: Target,
    feed: Arc<Feed>,
    clients: Clients,
}

impl Exporter {
    /// Creates an exporter to a collector. It sends nothing before [`Exporter::run`].
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            feed: Arc::default(),
            clients: Clients::new(Duration::from_secs(10), Redirects::Never),
        }
    }

    /// Returns the tap that the engine has to tell.
    #[must_use]
    pub fn feed(&self) -> Arc<Feed> {
        self.feed.clone()
    }

    /// Sends spans until `stop`, then what is left; if the collector does not take it, once more after a second. `told` gets a sentence when the collector ceases to take spans, and when it takes
    /// them again.
    pub async fn run(
        self,
        engine: Engine,
        stop: CancellationToken,
        told: impl Fn(String) + Send + Sync,
    ) {
        let mut sending = Sending::default();
        let mut traced = Traced::default();
        loop {
            let ring = self.feed.bell.notified();
            let again = sending.again;
            let later = async {
                match again {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = ring => {}
                () = later => {}
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(GATHER) => {}
            }
            self.gather(&engine, &mut traced, &mut sending, &told).await;
            if sending.again.is_none_or(|at| at <= Instant::now()) {
                self.send(&mut sending, &told).await;
            }
        }
        self.gather(&engine, &mut traced, &mut sending, &told).await;
        self.send(&mut sending, &told).await;
        if sending.again.is_some() {
            sleep(PAUSE.0).await;
            self.send(&mut sending, &told).await;
        }
    }

    /// Derives the spans of the lines that are new.
    async fn gather(
        &self,
        engine: &Engine,
        traced: &mut Traced,
        sending: &mut Sending,
        told: &(impl Fn(String) + Send + Sync),
    ) {
        let new = std::mem::take(&mut *self.feed.lock());
        for (session, first) in new {
            let mut one = traced.take(engine, &session, self.target.with_texts);
            match one.spans(first).await {
                Ok(spans) => {
                    sending.add(spans);
                    traced.keep(session, one);
                }
                Err(error) => told(format!("session {session} is not traced: {error}")),
            }
        }
    }

    async fn send(&self, sending: &mut Sending, told: &(impl Fn(String) + Send + Sync)) {
        while !sending.waiting.is_empty() {
            let most = sending.waiting.len().min(AT_ONCE);
            let batch = &sending.waiting.make_contiguous()[..most];
            let body = form::protobuf(batch, &self.target.service);
            match self.post(body).await {
                Ok(()) => {
                    sending.waiting.drain(..most);
                    if std::mem::take(&mut sending.failed) > 0 {
                        told(format!("the collector takes spans again{}", sending.lost()));
                    }
                    sending.again = None;
                }
                Err(Refused::Now(why)) => {
                    let pause = PAUSE.0 * 2_u32.pow(sending.failed.min(5));
                    sending.again = Some(Instant::now() + pause.min(PAUSE.1));
                    if sending.failed == 0 {
                        told(format!("the collector does not take spans: {why}"));
                    }
                    sending.failed += 1;
                    return;
                }
                Err(Refused::These(why)) => {
                    sending.waiting.drain(..most);
                    sending.dropped += most as u64;
                    told(format!("the collector refused {most} spans: {why}"));
                }
            }
        }
    }

    async fn post(&self, body: Vec<u8>) -> Result<(), Refused> {
        let client = self.clients.of(&self.target.url).map_err(Refused::Now)?;
        let post = client
            .post(self.target.url.clone())
            .headers(self.target.headers.clone())
            .header("content-type", "application/x-protobuf")
            .body(body);
        let response = match timeout(self.target.timeout, post.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(Refused::Now(transport::describe(error))),
            Err(_) => {
                let millis = self.target.timeout.as_millis();
                return Err(Refused::Now(format!("no answer within {millis} ms")));
            }
        };
        let status = response.status();
        match status.as_u16() {
            200..300 => Ok(()),
            429 | 502 | 503 | 504 => Err(Refused::Now(format!("it answers {status}"))),
            _ => Err(Refused::These(format!("it answers {status}"))),
        }
    }
}

/// The reason why a request did not deliver its spans.
enum Refused {
    /// The same request may be taken later.
    Now(String),
    /// These spans will not be taken.
    These(String),
}

/// Spans on their way to the collector.
#[derive(Default)]
struct Sending {
    waiting: VecDeque<Span>,
    /// Number of requests in a row that failed.
    failed: u32,
    dropped: u64,
    again: Option<Instant>,
}

impl Sending {
    fn add(&mut self, spans: Vec<Span>) {
        self.waiting.extend(spans);
        let most = self.waiting.len().saturating_sub(WAITING);
        self.waiting.drain(..most);
        self.dropped += most as u64;
    }

    /// Says how many spans were lost meanwhile.
    fn lost(&mut self) -> String {
        match std::mem::take(&mut self.dropped) {
            0 => String::new(),
            dropped => {
                format!("; {dropped} spans were dropped, an export of the sessions has them")
            }
        }
    }
}

/// The sessions whose open spans are in memory.
#[derive(Default)]
struct Traced {
    kept: BTreeMap<SessionId, One>,
    /// Sessions in the order in which they were used.
    order: VecDeque<SessionId>,
}

impl Traced {
    fn take(&mut self, engine: &Engine, session: &SessionId, with_texts: bool) -> One {
        self.order.retain(|other| other != session);
        self.kept.remove(session).unwrap_or_else(|| {
            let reader: Arc<dyn Reader> = Arc::new(Stored::masked(engine, session));
            One {
                tracer: Tracer::new(reader.clone(), session, with_texts),
                reader,
                at: Line::NONE,
            }
        })
    }

    fn keep(&mut self, session: SessionId, one: One) {
        self.kept.insert(session.clone(), one);
        self.order.push_back(session);
        if self.order.len() > TRACED
            && let Some(oldest) = self.order.pop_front()
        {
            self.kept.remove(&oldest);
        }
    }
}

/// A session and the position up to which it was read.
struct One {
    reader: Arc<dyn Reader>,
    tracer: Tracer,
    at: Line,
}

impl One {
    /// Reads the lines on disk. Returns the spans that ended in `first` or later: another process has sent those before.
    async fn spans(&mut self, first: Line) -> Result<Vec<Span>, EngineError> {
        let mut spans = Vec::new();
        loop {
            let lines = self.reader.lines(self.at, PAGE).await?;
            if lines.is_empty() {
                return Ok(spans);
            }
            for line in &lines {
                self.at = line.n;
                let ended = self.tracer.line(line).await?;
                if line.n >= first {
                    spans.extend(ended);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        let pairs: BTreeMap<String, String> = (pairs.iter())
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Arc::new(move |name| pairs.get(name).cloned())
    }

    #[test]
    fn the_standard_variables_name_the_collector() {
        assert!(target(&env(&[])).unwrap().is_none());
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");
        let found = target(&env(&[base])).unwrap().unwrap();
        assert_eq!(found.url.as_str(), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(found.service, "steersman");
        let exact = (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "https://c.example/otlp?x=1",
        );
        let found = target(&env(&[base, exact])).unwrap().unwrap();
        assert_eq!(found.url.as_str(), "https://c.example/otlp?x=1");
        let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, x-team=desk");
        let found = target(&env(&[base, headers, ("OTEL_SERVICE_NAME", "desk")]));
        let found = found.unwrap().unwrap();
        assert_eq!(found.headers["x-key"], "a b");
        assert_eq!(found.headers["x-team"], "desk");
        assert_eq!(found.service, "desk");
        assert!(!format!("{found:?}").contains("a b"), "values may be keys");
        assert!(
            target(&env(&[base, ("OTEL_SDK_DISABLED", "true")]))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn a_variable_that_cannot_be_used_is_an_error_with_its_name() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "key"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "key=%4"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ] {
            let error = target(&env(&[base, (name, value)])).unwrap_err();
            assert_eq!(error.variable, name);
        }
    }
}

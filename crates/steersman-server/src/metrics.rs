//! Metrics of the process in the OpenMetrics format: what its sessions do, what waits in the store, and what clients ask.
//!
//! Counters come from the tap of the engine and from the routes. What the store holds is read when somebody asks for the metrics.
//! Each label has at most [`VALUES`] values; further ones are counted as `other`.

use crate::serve::answers;
use crate::{Limits, Server};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use steersman::machine::stored::commit::LogLine;
use steersman::machine::stored::ids::Time;
use steersman::runtime::pending;
use steersman::runtime::store::SessionId;
use steersman::runtime::tap::{Attempted, Owned, Tap, Worked};
use steersman::views::list::status;
use steersman::views::top::Fleet;
use steersman::{Error, PendingKind, SessionQuery, Steersman};
use tokio::net::TcpListener;

/// Maximum number of values of a label.
const VALUES: usize = 200;
/// Maximum number of bytes of a value of a label.
const VALUE: usize = 128;
/// Time after which all sessions are read again: no query finds those that were erased, or whose owner died.
const ALL: Duration = Duration::from_mins(1);
/// Maximum number of connections of collectors.
const COLLECTORS: usize = 64;
/// Upper bounds of durations, in seconds.
const SECONDS: [f64; 14] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0,
];

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;
type Gauges = Family<Labels, Gauge>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

/// The metrics of a process. It is the tap of the engine whose sessions it counts.
pub struct Metrics {
    registry: Registry,
    values: Mutex<BTreeMap<&'static str, BTreeSet<String>>>,
    fleet: tokio::sync::Mutex<(Fleet, Option<Instant>)>,
    owned: Mutex<BTreeSet<SessionId>>,
    sessions: Gauges,
    driven: Gauge,
    questions: Gauges,
    oldest_question: Gauge<f64, std::sync::atomic::AtomicU64>,
    doubts: Gauge,
    timers_late: Gauge<f64, std::sync::atomic::AtomicU64>,
    lines: Counter,
    sync: Histogram,
    model_calls: Counters,
    model_seconds: Histograms,
    tokens: Counters,
    cost_micros: Counters,
    tool_attempts: Counters,
    limiter_wait: Histogram,
    takeovers: Counter,
    fenced: Counter,
    http_requests: Counters,
    http_seconds: Histograms,
    streams: Gauge,
    stream_skipped: Counter,
    webhook_deliveries: Counters,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Makes metrics that have counted nothing.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let histograms = || Histograms::new_with_constructor(seconds as fn() -> Histogram);
        let mut metrics = Self {
            registry: Registry::with_prefix("steersman"),
            values: Mutex::default(),
            fleet: tokio::sync::Mutex::default(),
            owned: Mutex::default(),
            sessions: Gauges::default(),
            driven: Gauge::default(),
            questions: Gauges::default(),
            oldest_question: Gauge::default(),
            doubts: Gauge::default(),
            timers_late: Gauge::default(),
            lines: Counter::default(),
            sync: seconds(),
            model_calls: Counters::default(),
            model_seconds: histograms(),
            tokens: Counters::default(),
            cost_micros: Counters::default(),
            tool_attempts: Counters::default(),
            limiter_wait: seconds(),
            takeovers: Counter::default(),
            fenced: Counter::default(),
            http_requests: Counters::default(),
            http_seconds: histograms(),
            streams: Gauge::default(),
            stream_skipped: Counter::default(),
            webhook_deliveries: Counters::default(),
        };
        metrics.register();
        Arc::new(metrics)
    }

    fn register(&mut self) {
        macro_rules! all {
            ($($field:ident, $name:literal, $help:literal;)*) => {
                $(self.registry.register($name, $help, self.$field.clone());)*
            };
        }
        // A counter gets `_total` at the end of its name.
        all! {
            sessions, "sessions", "Sessions of the store by status";
            driven, "driven", "Sessions that this process owns";
            questions, "questions", "What waits for somebody, by kind and role";
            oldest_question, "oldest_question_seconds", "Time for which the oldest question has waited";
            doubts, "doubts", "Effects in doubt that wait for somebody";
            timers_late, "timers_late_seconds", "Time by which the latest session is overdue that nobody owns";
            lines, "lines", "Lines that this process wrote";
            sync, "sync_seconds", "Time from a line until it is on disk";
            model_calls, "model_calls", "Attempts of model calls by model and result";
            model_seconds, "model_seconds", "Duration of attempts of model calls";
            tokens, "tokens", "Tokens by model and kind";
            cost_micros, "cost_micros", "Cost in millionths of the currency, by definition";
            tool_attempts, "tool_attempts", "Attempts of tools by tool and outcome";
            limiter_wait, "limiter_wait_seconds", "Time for which limits of places kept attempts back";
            takeovers, "takeovers", "Times that this process took up a session that had an owner before";
            fenced, "fenced", "Sessions that this process lost to another owner";
            http_requests, "http_requests", "Requests by route and status";
            http_seconds, "http_seconds", "Time until a request is answered, by route";
            streams, "streams", "Open streams of events";
            stream_skipped, "stream_skipped", "Streamed pieces that slow readers missed";
            webhook_deliveries, "webhook_deliveries", "Attempts to send a message to a webhook, by result";
        }
    }

    /// Returns a value of a label within its bounds.
    fn value(&self, label: &'static str, value: &str) -> (&'static str, String) {
        let value = &value[..value.floor_char_boundary(VALUE)];
        let mut all = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(label).or_default();
        if known.contains(value) {
            return (label, value.to_owned());
        }
        if known.len() >= VALUES {
            return (label, "other".to_owned());
        }
        known.insert(value.to_owned());
        (label, value.to_owned())
    }

    /// Counts a request. `route`: its pattern; `None` if it met none.
    pub(crate) fn request(&self, route: Option<&str>, status: StatusCode, took: Duration) {
        let route = self.value("route", route.unwrap_or("none"));
        let status = ("status", status.as_u16().to_string());
        self.http_requests
            .get_or_create(&vec![route.clone(), status])
            .inc();
        self.http_seconds
            .get_or_create(&vec![route])
            .observe(took.as_secs_f64());
    }

    /// Counts an open stream until it is dropped.
    pub(crate) fn stream(self: &Arc<Self>) -> OpenStream {
        self.streams.inc();
        OpenStream(self.clone())
    }

    /// Counts pieces that a slow reader missed.
    pub(crate) fn skipped(&self, count: u64) {
        self.stream_skipped.inc_by(count);
    }

    /// Counts an attempt to send a message to a webhook.
    pub(crate) fn webhook(&self, result: &'static str) {
        let labels = vec![("result", result.to_owned())];
        self.webhook_deliveries.get_or_create(&labels).inc();
    }

    /// Returns all metrics as text.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn text(&self, steersman: &Steersman) -> Result<String, Error> {
        // Held until the text is made, so that another collector does not clear what is being written.
        let mut kept = self.fleet.lock().await;
        self.look(&mut kept, steersman).await?;
        let owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        self.driven.set(owned.len() as i64);
        drop(owned);
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        Ok(text)
    }

    /// Reads what the store holds: what changed, and now and then everything.
    async fn look(
        &self,
        (fleet, read): &mut (Fleet, Option<Instant>),
        steersman: &Steersman,
    ) -> Result<(), Error> {
        let is_new = read.is_some_and(|read| read.elapsed() < ALL);
        if let Some(queries) = fleet.changed().filter(|_| is_new) {
            for query in queries {
                fleet.update(steersman.sessions(&query).await?);
            }
        } else {
            fleet.replace(steersman.sessions(&SessionQuery::default()).await?);
            *read = Some(Instant::now());
        }
        let now = steersman.engine().clock().now();
        self.sessions.clear();
        self.questions.clear();
        let (mut oldest, mut late, mut doubts) = (0, 0, 0);
        for info in fleet.sessions() {
            let label = self.value("status", status(info));
            self.sessions.get_or_create(&vec![label]).inc();
            if info.owner.is_none()
                && let Some(wants) = info.left.wants.filter(|wants| *wants > Time(0))
            {
                late = late.max(wants.until(now));
            }
            for waits in pending::read(&info.state.waits).unwrap_or_default() {
                doubts += i64::from(waits.kind == PendingKind::Doubt);
                if !waits.roles.is_empty() {
                    oldest = oldest.max(waits.since.until(now));
                }
                for role in &waits.roles {
                    let labels = [("kind", waits.kind.word()), ("role", &**role)];
                    let labels = labels.map(|(label, value)| self.value(label, value));
                    self.questions.get_or_create(&labels.to_vec()).inc();
                }
            }
        }
        self.doubts.set(doubts);
        self.oldest_question.set(in_seconds(oldest));
        self.timers_late.set(in_seconds(late));
        Ok(())
    }
}

fn in_seconds(millis: u64) -> f64 {
    millis as f64 / 1_000.0
}

/// A stream of events that is open.
#[derive(Debug)]
pub(crate) struct OpenStream(Arc<Metrics>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.dec();
    }
}

impl Tap for Metrics {
    fn line(&self, _session: &SessionId, _line: &Arc<LogLine>, took: u64) {
        self.lines.inc();
        self.sync.observe(in_seconds(took));
    }

    fn attempt(&self, of: &Attempted<'_>) {
        if of.waited > 0 {
            self.limiter_wait.observe(in_seconds(of.waited));
        }
        match of.what {
            Worked::Model(model) => {
                let model = self.value("model", model);
                let result = self.value("result", of.code.unwrap_or(of.outcome));
                self.model_calls
                    .get_or_create(&vec![model.clone(), result])
                    .inc();
                self.model_seconds
                    .get_or_create(&vec![model.clone()])
                    .observe(in_seconds(of.began.until(of.ended)));
                let Some(usage) = of.usage else { return };
                for (kind, tokens) in [
                    ("input", usage.input),
                    ("output", usage.output),
                    ("cached", usage.cached),
                ] {
                    let labels = vec![model.clone(), ("kind", kind.to_owned())];
                    self.tokens.get_or_create(&labels).inc_by(tokens);
                }
                let definition = self.value("definition", of.definition);
                self.cost_micros
                    .get_or_create(&vec![definition])
                    .inc_by(usage.micros.unwrap_or(0));
            }
            Worked::Tool(tool) => {
                let tool = self.value("tool", tool);
                let outcome = ("outcome", of.outcome.to_owned());
                self.tool_attempts.get_or_create(&vec![tool, outcome]).inc();
            }
        }
    }

    fn owner(&self, session: &SessionId, owned: Owned) {
        let mut all = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        match owned {
            Owned::Claimed(epoch) => {
                all.insert(session.clone());
                self.takeovers.inc_by(u64::from(epoch > 1));
            }
            Owned::Released => {
                all.remove(session);
            }
            Owned::Fenced => {
                all.remove(session);
                self.fenced.inc();
            }
        }
    }
}

/// Answers `GET /metrics` at a listener of its own until the server stops. There is no token: the address should be one that only the
/// collector of metrics reaches.
///
/// # Errors
/// Errors of the listener.
pub async fn serve_metrics(
    server: &Server,
    metrics: Arc<Metrics>,
    listener: TcpListener,
) -> io::Result<()> {
    let state = (server.clone(), metrics);
    let router = Router::new()
        .route("/metrics", get(shown))
        .with_state(state);
    let limits = Limits {
        connections: COLLECTORS,
        ..Limits::default()
    };
    answers(
        router,
        &limits,
        listener,
        (server.stopping(), Duration::ZERO),
    )
    .await;
    Ok(())
}

async fn shown(State((server, metrics)): State<(Server, Arc<Metrics>)>) -> Response {
    const FORM: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match metrics.text(server.steersman()).await {
        Ok(text) => ([(header::CONTENT_TYPE, FORM)], text).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_at_most_so_many_values() {
        let metrics = Metrics::new();
        for n in 0..VALUES {
            let tool = format!("tool-{n}");
            assert_eq!(metrics.value("tool", &tool).1, tool);
        }
        assert_eq!(metrics.value("tool", "one more").1, "other");
        assert_eq!(metrics.value("tool", "tool-0").1, "tool-0");
        assert_eq!(metrics.value("model", "one more").1, "one more");
        let long = "ä".repeat(VALUE);
        assert_eq!(metrics.value("model", &long).1, "ä".repeat(VALUE / 2));
    }
}

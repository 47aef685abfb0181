//! Sends spans and metrics to a collector while sessions run.
//!
//! The tap of the process says which sessions have new lines on disk. A task of its own reads these lines from the store, derives spans and
//! sends them. So a session never waits for the collector, and nothing has to be kept for it: what a process has not sent when it dies, an export
//! of the session makes again. Metrics are sums since the process began, so a report that is not taken loses nothing.

use super::form;
use super::measures::Measures;
use super::target::{Place, Refused, Target};
use crate::transport::{Clients, Redirects};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Line, hex};
use steersman_runtime::engine::{Engine, EngineError};
use steersman_runtime::store::SessionId;
use steersman_runtime::tap::{Attempted, Tap};
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

/// The tap of an exporter: remembers which sessions have new lines, and measures attempts.
#[derive(Debug)]
pub struct Feed {
    /// The first new line of each session.
    new: Mutex<BTreeMap<SessionId, Line>>,
    bell: Notify,
    has_spans: bool,
    measures: Option<Measures>,
}

impl Feed {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Line>> {
        self.new.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tap for Feed {
    fn line(&self, session: &SessionId, line: &Arc<LogLine>, _took: u64) {
        if !self.has_spans {
            return;
        }
        let mut new = self.lock();
        if !new.contains_key(session) {
            new.insert(session.clone(), line.n);
            drop(new);
            self.bell.notify_one();
        }
    }

    fn attempt(&self, attempt: &Attempted<'_>) {
        if let Some(measures) = &self.measures {
            measures.add(attempt);
        }
    }
}

/// Sends the spans of all sessions that a process drives, and metrics of their attempts.
#[derive(Debug)]
pub struct Exporter {
    target: Target,
    /// Tells the sums of this exporter from those of others.
    instance: String,
    feed: Arc<Feed>,
    clients: Clients,
}

impl Exporter {
    /// Creates an exporter to a collector. It sends nothing before [`Exporter::run`].
    #[must_use]
    pub fn new(target: Target) -> Self {
        let feed = Feed {
            new: Mutex::default(),
            bell: Notify::new(),
            has_spans: target.has_spans(),
            measures: target.metrics.is_some().then(Measures::default),
        };
        let mut instance = [0; 16];
        getrandom::fill(&mut instance).expect("the operating system gives random bytes");
        Self {
            target,
            instance: hex(&instance),
            feed: Arc::new(feed),
            clients: Clients::new(Duration::from_secs(10), Redirects::Never),
        }
    }

    /// Returns true if spans are sent, and not only metrics.
    #[must_use]
    pub fn has_spans(&self) -> bool {
        self.target.has_spans()
    }

    /// Returns the tap that the engine has to tell.
    #[must_use]
    pub fn feed(&self) -> Arc<Feed> {
        self.feed.clone()
    }

    /// Sends spans and metrics until `stop`, then what is left; if the collector does not take it, once more after a second. `told` gets a sentence
    /// when the collector ceases to take them, and when it takes them again.
    pub async fn run(
        self,
        engine: Engine,
        stop: CancellationToken,
        told: impl Fn(String) + Send + Sync,
    ) {
        let spans = async {
            if let Some(place) = &self.target.spans {
                self.spans(place, &engine, &stop, &told).await;
            }
        };
        let metrics = async {
            if let (Some(place), Some(measures)) = (&self.target.metrics, &self.feed.measures) {
                self.metrics((place, measures), &engine, &stop, &told).await;
            }
        };
        futures::future::join(spans, metrics).await;
    }

    async fn spans(
        &self,
        place: &Place,
        engine: &Engine,
        stop: &CancellationToken,
        told: &(impl Fn(String) + Send + Sync),
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
            self.gather(engine, &mut traced, &mut sending, told).await;
            if sending.again.is_none_or(|at| at <= Instant::now()) {
                self.send(place, &mut sending, told).await;
            }
        }
        self.gather(engine, &mut traced, &mut sending, told).await;
        self.send(place, &mut sending, told).await;
        if sending.again.is_some() {
            sleep(PAUSE.0).await;
            self.send(place, &mut sending, told).await;
        }
    }

    /// Reports what was measured, again and again.
    async fn metrics(
        &self,
        (place, measures): (&Place, &Measures),
        engine: &Engine,
        stop: &CancellationToken,
        told: &(impl Fn(String) + Send + Sync),
    ) {
        let began = engine.clock().now();
        let mut fails = false;
        // Returns false if the same report may be taken later.
        let mut report = async || {
            let during = (began, engine.clock().now());
            let Some(body) = measures.protobuf(&self.target.service, &self.instance, during) else {
                return true;
            };
            let refused = place.post(&self.clients, body).await.err();
            let (is_final, told_before) = (
                !matches!(refused, Some(Refused::Now(_))),
                std::mem::replace(&mut fails, refused.is_some()),
            );
            match refused {
                None if told_before => told("the collector takes metrics again".to_owned()),
                Some(Refused::Now(why)) if !told_before => {
                    told(format!("the collector does not take metrics: {why}"));
                }
                Some(Refused::These(why)) if !told_before => told(format!(
                    "the collector does not take metrics: {why}; OTEL_METRICS_EXPORTER=none sends none"
                )),
                _ => {}
            }
            is_final
        };
        while timeout(self.target.interval, stop.cancelled())
            .await
            .is_err()
        {
            report().await;
        }
        if !report().await {
            sleep(PAUSE.0).await;
            report().await;
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

    async fn send(
        &self,
        place: &Place,
        sending: &mut Sending,
        told: &(impl Fn(String) + Send + Sync),
    ) {
        while !sending.waiting.is_empty() {
            let most = sending.waiting.len().min(AT_ONCE);
            let batch = &sending.waiting.make_contiguous()[..most];
            let body = form::protobuf(batch, &self.target.service);
            match place.post(&self.clients, body).await {
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

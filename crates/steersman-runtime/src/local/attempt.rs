//! One attempt of a model or tool. It runs in the task of its session ([`super::running`]). A cancel or a timeout ends it, and
//! its panics are caught. It never repeats anything: the driver decides about retries ([`crate::retry`]).

use super::steps::{Recorder, Recording};
use crate::Boxed;
use crate::budgets::Used;
use crate::clock::Clock;
use crate::driver::{Aside, AskModel, Came, Event, RunAside, RunTool, Told};
use crate::engine::{Engine, Judge, Timeouts};
use crate::feed::FeedItem;
use crate::limiter::{Ask, Ended, Limiter, Permit, Refused};
use crate::model::{Delta, Report, Sink};
use crate::store::StoreError;
use crate::toolset::{Hear, Heard, ToolRun, Toolset};
use futures::FutureExt;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use steersman_machine::stored::codes::{Code, FailureCode, PlaceState};
use steersman_machine::stored::ids::{Id, Name, Time};
use steersman_machine::stored::interaction::Class;
use steersman_machine::stored::outcome::{Answer, Failure, Retry};
use steersman_machine::view::mapping::{Fault, Raw};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Milliseconds that a tool has to report its outcome after it was cancelled.
const GRACE: u64 = 2_000;

/// Channel from tasks to the driver. Messages are boxed: each session has one channel, which allocates room for many in advance.
pub(super) type Tell = mpsc::Sender<Box<FromTask>>;

/// Messages of tasks to the owner of a session.
pub(super) enum FromTask {
    /// An event for the driver.
    Event(Event),
    /// A step of an attempt, by effect, attempt and name: the event for the driver, and where its answer goes.
    Step((Id, u32, Name), Event, oneshot::Sender<Told>),
    /// Pieces of a model's answer were streamed and can be taken from here.
    Deltas(Id, u32, Arc<Pieces>),
    /// An attempt of a tool tells its followers something.
    Shows(Id, u32, Box<FeedItem>),
    /// An attempt of a tool has pieces of its text, which can be taken from here.
    Said(Arc<ToolSays>),
    /// The slot that this effect waited for.
    Slot(Id, OwnedSemaphorePermit),
    /// The limiter let the call of this effect through, or will not do so soon.
    Turn(Id, Result<Permit, Refused>),
}

/// Returns a future that runs `work` and sends its result, if any, to the owner of the session. A panic is sent as a result
/// too, wherever it comes from: without an answer the session would wait for this attempt for ever.
pub(super) fn answering(
    to: Tell,
    panicked: impl FnOnce(&str) -> FromTask + Send + 'static,
    work: impl Future<Output = Option<FromTask>> + Send + 'static,
) -> Boxed<'static, ()> {
    Box::pin(async move {
        // Sent before the panic's payload is dropped: its destructor is foreign code, too.
        let (told, _panic) = match AssertUnwindSafe(work).catch_unwind().await {
            Ok(told) => (told, None),
            Err(panic) => (Some(panicked(panic_text(&*panic))), Some(panic)),
        };
        if let Some(told) = told {
            tell(&to, told).await;
        }
    })
}

/// Sends a message to the owner of a session. If the channel has room, this takes nothing of the operations that the session's
/// task may do in one turn. An owner that is gone needs no answer.
async fn tell(to: &Tell, told: FromTask) {
    if let Err(TrySendError::Full(told)) = to.try_send(Box::new(told)) {
        let _ = to.send(told).await;
    }
}

/// An attempt, and the owner of its session.
pub(super) struct At {
    pub(super) effect: Id,
    pub(super) attempt: u32,
    pub(super) agent: Id,
    pub(super) branch: Id,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tasks: Tell,
}

fn ended(effect: Id, attempt: u32, came: Came) -> FromTask {
    FromTask::Event(Event::Ended {
        effect,
        attempt,
        came,
    })
}

/// Calls a model once, when the limiter of its place lets it through. `turn`: the permit of a call that already waited there.
/// `judge` checks the parts of the answer that a schema describes.
pub(super) fn ask_model(
    at: At,
    asks: AskModel,
    turn: Option<Permit>,
    judge: Option<Arc<dyn Judge>>,
    timeouts: Timeouts,
    cancel: CancellationToken,
) -> Boxed<'static, ()> {
    let At {
        effect,
        attempt,
        clock,
        tasks: to,
        ..
    } = at;
    let AskModel {
        model,
        mut call,
        files,
        limiter,
        ask,
        shares,
        bill,
        judged,
        waited,
        ..
    } = asks;
    let answered = move |result| ended(effect, attempt, Came::Model(Box::new(result)));
    let panicked = move |text: &str| {
        let message = format!("the model's adapter panicked: {text}");
        let failure = Failure::new(FailureCode::Failed, message);
        answered(Err(failure))
    };
    answering(to.clone(), panicked, async move {
        if let Some(files) = files {
            call.request = match files.filled(&call.request).await {
                Ok(request) => request,
                Err(error) => return Some(answered(Err(unread(&error)))),
            };
        }
        let taken = match shares.take(clock.now()).await {
            Ok(taken) => taken,
            Err(failure) => return Some(answered(Err(failure))),
        };
        let asked = waited.map(|waited| (clock.now(), waited));
        let let_through = async {
            match turn {
                Some(permit) => Ok(permit),
                None => limiter.acquire(ask, &*clock).await,
            }
        };
        let let_through = tokio::select! {
            biased;
            let_through = let_through => Some(let_through),
            () = cancel.cancelled() => None,
        };
        let permit = match let_through {
            Some(Ok(permit)) => permit,
            not => {
                shares.settle(taken, Used::default()).await;
                return Some(answered(Err(refused(not?.err()?))));
            }
        };
        let began = clock.now();
        if let Some((asked, waited)) = asked {
            waited.store(asked.until(began), Ordering::Relaxed);
        }
        let relay = Relay {
            permit,
            clock: clock.clone(),
            effect,
            attempt,
            began,
            first: OnceLock::new(),
            piece: Notify::new(),
            pieces: Arc::default(),
            came: AtomicU64::new(0),
            to: to.clone(),
        };
        let result = tokio::select! {
            biased;
            answer = model.call(&call, &relay, &cancel) => Some(answer),
            failure = silence(&relay, timeouts, &*clock) => {
                cancel.cancel();
                Some(Err(failure))
            }
            () = cancel.cancelled() => None,
        };
        let came = relay.came.load(Ordering::Relaxed);
        let used = bill.used(result.as_ref(), came, shares.most());
        shares.settle(taken, used).await;
        let mut result = result?;
        if relay.pieces.are_left() {
            let rest = FromTask::Deltas(effect, attempt, relay.pieces.clone());
            tell(&to, rest).await;
        }
        if let Ok(answer) = &mut result {
            answer.usage.took = relay.began.until(clock.now());
            answer.usage.first = relay.first.get().map(|first| relay.began.until(*first));
        }
        if let Some(ended) = as_its_place_sees(&result) {
            relay.permit.end(clock.now(), ended);
        }
        if let (Ok(answer), Some(judge), Some(judged)) = (&mut result, judge, judged) {
            check(&*judge, judged(answer), answer).await;
        }
        Some(answered(result))
    })
}

/// Runs a tool once.
pub(super) fn run(
    at: At,
    runs: RunTool,
    engine: &Engine,
    cancel: CancellationToken,
) -> Boxed<'static, ()> {
    let At {
        effect,
        attempt,
        agent,
        branch,
        clock,
        tasks,
    } = at;
    let (told, class) = (tasks.clone(), runs.run.work.class);
    let steps = Recorder::new((effect, attempt), &tasks, engine, &runs.run);
    let ended = move |raw| ended(effect, attempt, Came::Tool(raw));
    let died = move |text: &str| ended(panicked(class, text));
    answering(tasks, died, async move {
        let says = Arc::new(ToolSays {
            effect,
            attempt,
            agent,
            branch,
            pieces: Pieces::default(),
            said: AtomicBool::new(false),
        });
        let (heard, to) = (says.clone(), told.clone());
        let hear: Hear = Arc::new(move |what| heard.clone().hear(what, &to));
        let RunTool {
            toolset,
            mut run,
            scope,
            timeout,
            locked,
        } = runs;
        if let Some(fault) = locked {
            return Some(ended(scope.explains(Raw::NotPerformed(fault))));
        }
        run.steps = Some(steps.clone());
        run.writes = Some(scope.clone());
        let recording = Recording(steps);
        let allowed = Allowed::ButForQuestions(&recording.0, timeout);
        tokio::select! {
            biased;
            raw = run_tool(toolset, run, allowed, clock, cancel, hear) => {
                let stands = matches!(raw, Raw::Done(_) | Raw::Made { .. });
                says.end(stands, &told).await;
                Some(ended(scope.explains(raw)))
            }
            () = recording.0.parks() => {
                says.end(false, &told).await;
                Some(FromTask::Event(Event::Ended {
                    effect,
                    attempt,
                    came: Came::Parked,
                }))
            }
        }
    })
}

/// The things that an attempt of a tool tells while it runs.
pub(super) struct ToolSays {
    pub(super) effect: Id,
    pub(super) attempt: u32,
    agent: Id,
    branch: Id,
    pieces: Pieces,
    /// True once it said a piece of its text.
    said: AtomicBool,
}

impl ToolSays {
    fn hear(self: Arc<Self>, heard: Heard, to: &Tell) {
        let (effect, attempt) = (self.effect, self.attempt);
        match heard {
            // Progress is dropped if the channel is full; the next report follows.
            Heard::Progress(progress) => {
                let item = Box::new(FeedItem::Progress {
                    effect,
                    attempt,
                    agent: self.agent,
                    branch: self.branch,
                    progress,
                });
                let _ = to.try_send(Box::new(FromTask::Shows(effect, attempt, item)));
            }
            Heard::Text(text) => {
                self.said.store(true, Ordering::Relaxed);
                let told = self.pieces.add(Delta::Text(text));
                if told && to.try_send(Box::new(FromTask::Said(self.clone()))).is_err() {
                    self.pieces.untold();
                }
            }
        }
    }

    /// Takes the pieces that were said since it was last asked, as items for followers.
    pub(super) fn take(&self) -> impl Iterator<Item = FeedItem> + use<> {
        let (effect, attempt, agent, branch) = (self.effect, self.attempt, self.agent, self.branch);
        let pieces = self.pieces.take().into_iter();
        pieces.map(move |delta| FeedItem::Delta {
            effect,
            attempt,
            agent,
            branch,
            delta,
        })
    }

    /// Tells the last pieces. If the text does not stand, because the attempt gave none, takes all pieces back.
    async fn end(self: Arc<Self>, stands: bool, to: &Tell) {
        if !self.said.load(Ordering::Relaxed) {
            return;
        }
        let (effect, attempt) = (self.effect, self.attempt);
        let (agent, branch) = (self.agent, self.branch);
        let last = if stands {
            FromTask::Said(self)
        } else {
            let item = Box::new(FeedItem::Withdrawn {
                effect,
                attempt,
                agent,
                branch,
            });
            FromTask::Shows(effect, attempt, item)
        };
        tell(to, last).await;
    }
}

/// Runs a tool of the driver's own once. `judges`: the token that cancels all judges of its search, and the slots of the tool.
pub(super) fn run_aside(
    at: At,
    aside: RunAside,
    judges: Option<(CancellationToken, Option<Arc<Semaphore>>)>,
) -> Boxed<'static, ()> {
    let At {
        effect,
        attempt,
        clock,
        tasks,
        ..
    } = at;
    let RunAside {
        kind,
        class,
        run,
        toolset,
        place,
    } = aside;
    let ended = move |raw| {
        let came = match kind {
            Aside::Probe(of) => Came::Probe(of, raw),
            Aside::Reach => Came::Reach(raw),
            Aside::Judge(of) => Came::Judge(of, raw),
        };
        ended(effect, attempt, came)
    };
    let died = move |text: &str| ended(panicked(class, text));
    answering(tasks, died, async move {
        let (run, timeout) = match run {
            Ok(run) => run,
            Err(fault) => return Some(ended(Raw::NotPerformed(fault))),
        };
        let hear = Arc::new(drop);
        if let Some((all, slots)) = judges {
            let slot = tokio::select! {
                biased;
                () = all.cancelled() => return None,
                slot = let_through(slots, place, &*clock) => slot,
            };
            let cut = all.child_token();
            let raw = run_tool(toolset, run, Allowed::All(timeout), clock, cut, hear).await;
            drop(slot);
            return Some(ended(raw));
        }
        let turn = match place {
            Some((limiter, ask)) => limiter.acquire(ask, &*clock).await.map(Some),
            None => Ok(None),
        };
        if turn.is_err() {
            let why = match kind {
                Aside::Reach => "the rate limit of its place would delay it for too long",
                Aside::Probe(_) | Aside::Judge(_) => "its rate lets the probe through too late",
            };
            return Some(ended(Raw::NotPerformed(Fault::new(Code::Failed, why))));
        }
        let cancel = CancellationToken::new();
        Some(ended(
            run_tool(toolset, run, Allowed::All(timeout), clock, cancel, hear).await,
        ))
    })
}

/// Waits for a slot of a judging tool and for a turn at its place, however long the limiter says: a node that is not judged
/// because of a rate would wrongly count as the worst one.
async fn let_through(
    slots: Option<Arc<Semaphore>>,
    place: Option<(Arc<Limiter>, Ask)>,
    clock: &dyn Clock,
) -> Option<OwnedSemaphorePermit> {
    let slot = match slots {
        Some(slots) => slots.acquire_owned().await.ok(),
        None => None,
    };
    let Some((limiter, ask)) = place else {
        return slot;
    };
    while let Err(Refused::Long(millis) | Refused::Open(millis)) =
        limiter.acquire(ask.clone(), clock).await
    {
        clock.sleep(millis).await;
    }
    slot
}

/// Returns the failure of a call whose files cannot be read.
fn unread(error: &StoreError) -> Failure {
    let message = format!("a file of the request cannot be read from the store: {error}");
    Failure::new(FailureCode::Failed, message)
}

/// Returns the failure of a call that the limiter did not let through.
fn refused(why: Refused) -> Failure {
    let seconds = |millis: u64| millis.div_ceil(1_000);
    let (code, message, millis) = match why {
        Refused::Long(millis) => (
            FailureCode::Limited,
            format!(
                "its rate, or the rest that its server reports, lets it through in {} s",
                seconds(millis)
            ),
            millis,
        ),
        Refused::Open(millis) => (
            FailureCode::CircuitOpen,
            format!(
                "earlier calls did not get through, so its server gets no calls for {} s more",
                seconds(millis)
            ),
            millis,
        ),
    };
    Failure {
        retry: Retry::After(millis),
        ..Failure::new(code, message)
    }
}

/// Translates the end of a call into a report for the limiter of its place; `None` if it says nothing about the place.
fn as_its_place_sees(result: &Result<Answer, Failure>) -> Option<Ended> {
    let failure = match result {
        Ok(answer) => {
            let tokens = answer.usage.tokens();
            return Some(Ended::Answered((tokens > 0).then_some(tokens)));
        }
        Err(failure) => failure,
    };
    match (failure.place(), failure.retry) {
        (PlaceState::Busy, Retry::After(millis)) => Some(Ended::Pause(millis)),
        (PlaceState::Down | PlaceState::Broken, _) => Some(Ended::Failed),
        (PlaceState::Busy | PlaceState::Answers, _) => Some(Ended::Answered(Some(0))),
        (PlaceState::Unknown, _) => None,
    }
}

/// The milliseconds that a tool may take.
pub(super) enum Allowed<'a> {
    /// In all.
    All(u64),
    /// Without the time in which a person answers a question of its server.
    ButForQuestions(&'a Recorder, u64),
}

impl Allowed<'_> {
    fn millis(&self) -> u64 {
        match self {
            Self::All(millis) | Self::ButForQuestions(_, millis) => *millis,
        }
    }

    /// Waits until the time is over. `ahead`: milliseconds that are allowed in addition.
    async fn passes(&self, clock: &dyn Clock, ahead: u64) {
        let millis = self.millis().saturating_add(ahead);
        match self {
            Self::All(_) => clock.sleep(millis).await,
            Self::ButForQuestions(steps, _) => steps.time_passes(clock, millis).await,
        }
    }
}

/// Runs a tool once, for the time that it is allowed. A panic passes through to [`answering`].
pub(super) async fn run_tool(
    toolset: Option<Arc<dyn Toolset>>,
    run: ToolRun,
    allowed: Allowed<'_>,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
    hear: Hear,
) -> Raw {
    let Some(toolset) = toolset else {
        return Raw::NotPerformed(Fault::new(
            Code::Failed,
            format!("nothing here runs the tool `{}`", run.work.tool),
        ));
    };
    let class = run.work.class;
    let timeout = allowed.millis();
    let ahead = toolset.starts_within(&run);
    let running = toolset.run_heard(&run, &cancel, hear);
    tokio::pin!(running);
    let late = tokio::select! {
        biased;
        raw = &mut running => return raw,
        () = allowed.passes(&*clock, ahead), if toolset.is_timed() => Code::Timeout,
        () = cancel.cancelled() => Code::Cancelled,
    };
    // A cancelled tool may still report its outcome: a known outcome is worth a short wait.
    cancel.cancel();
    tokio::select! {
        biased;
        raw = &mut running => told_why(raw, late, timeout),
        () = clock.sleep(GRACE) => {
            let message = match late {
                Code::Timeout => format!("no answer within {timeout} ms"),
                _ => "it was cut".to_owned(),
            };
            unknown(class, Fault::new(late, message))
        }
    }
}

/// Replaces the code `cancelled` by `timeout` if time was up: the tool only knows that it was cancelled.
fn told_why(raw: Raw, late: Code, timeout: u64) -> Raw {
    let why = |told: Fault| match Code::named(&told.code) {
        Some(Code::Cancelled) if late == Code::Timeout => Fault {
            code: late.text().to_owned(),
            message: format!("no answer within {timeout} ms"),
            ..told
        },
        _ => told,
    };
    raw.map_fault(why)
}

/// Returns the outcome of an attempt that panicked, for a tool of this class.
pub(super) fn panicked(class: Class, text: &str) -> Raw {
    let message = format!("the tool panicked: {text}");
    unknown(class, Fault::new(Code::Failed, message))
}

/// Returns the outcome of an attempt that panicked or was cancelled: unknown, because nothing is proved about the world. A `pure`
/// tool changes and reads nothing outside, so it just failed.
fn unknown(class: Class, fault: Fault) -> Raw {
    match class {
        Class::Pure => Raw::NotPerformed(fault),
        Class::Read | Class::Idempotent | Class::Unsafe => Raw::Unknown(fault),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// Pieces that were streamed and that the driver has not taken yet. The driver is notified once; later pieces are joined to the
/// waiting ones. So a stream costs the driver few turns, and needs no more memory than the answer.
#[derive(Default)]
pub(super) struct Pieces(Mutex<Streamed>);

#[derive(Default)]
struct Streamed {
    pieces: VecDeque<Delta>,
    /// The driver was notified and has not taken the pieces yet.
    told: bool,
}

impl Pieces {
    fn streamed(&self) -> MutexGuard<'_, Streamed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a piece. Returns true if the driver has to be notified.
    fn add(&self, delta: Delta) -> bool {
        let mut streamed = self.streamed();
        keep(&mut streamed.pieces, delta);
        !std::mem::replace(&mut streamed.told, true)
    }

    /// Records that the driver could not be notified.
    fn untold(&self) {
        self.streamed().told = false;
    }

    fn are_left(&self) -> bool {
        !self.streamed().pieces.is_empty()
    }

    /// Takes all pieces out.
    pub(super) fn take(&self) -> VecDeque<Delta> {
        std::mem::take(&mut *self.streamed()).pieces
    }
}

/// Passes on what a model streams.
struct Relay {
    permit: Permit,
    clock: Arc<dyn Clock>,
    effect: Id,
    attempt: u32,
    /// Time at which the attempt began.
    began: Time,
    /// Time of the first piece.
    first: OnceLock<Time>,
    /// Notified when something was streamed.
    piece: Notify,
    pieces: Arc<Pieces>,
    /// Bytes that were streamed.
    came: AtomicU64,
    to: Tell,
}

impl Sink for Relay {
    fn report(&self, report: Report) {
        if report.requests.is_some() || report.tokens.is_some() {
            let now = self.clock.now();
            self.permit.told(now, report.requests, report.tokens);
        }
    }

    fn delta(&self, delta: Delta) {
        self.first.get_or_init(|| self.clock.now());
        self.piece.notify_one();
        self.came.fetch_add(delta.len(), Ordering::Relaxed);
        if self.pieces.add(delta) {
            let pieces = self.pieces.clone();
            let told = Box::new(FromTask::Deltas(self.effect, self.attempt, pieces));
            if self.to.try_send(told).is_err() {
                self.pieces.untold();
            }
        }
    }
}

/// Joins a piece to the last one if both are of the same kind or call, otherwise appends it.
fn keep(kept: &mut VecDeque<Delta>, delta: Delta) {
    match (kept.back_mut(), delta) {
        (Some(Delta::Text(before)), Delta::Text(text))
        | (Some(Delta::Reasoning(before)), Delta::Reasoning(text)) => before.push_str(&text),
        (Some(Delta::Call(at, _, before)), Delta::Call(index, None, text)) if *at == index => {
            before.push_str(&text);
        }
        (_, delta) => kept.push_back(delta),
    }
}

/// Ends when a model has been silent for too long, or takes too long in total.
async fn silence(relay: &Relay, timeouts: Timeouts, clock: &dyn Clock) -> Failure {
    let idle = async {
        loop {
            let (limit, what) = if relay.first.get().is_some() {
                (timeouts.idle, "the next token")
            } else {
                (timeouts.first, "the first token")
            };
            tokio::select! {
                biased;
                () = relay.piece.notified() => {}
                () = clock.sleep(limit) => return format!("{what} did not come within {limit} ms"),
            }
        }
    };
    let message = tokio::select! {
        message = idle => message,
        () = clock.sleep(timeouts.total) => format!("no answer within {} ms", timeouts.total),
    };
    Failure::new(FailureCode::Timeout, message)
}

/// Marks the parts of an answer that do not fit their schema, as the adapter judges them.
async fn check(judge: &dyn Judge, asked: Vec<(Option<usize>, Arc<str>)>, answer: &mut Answer) {
    for (call, schema) in asked {
        let text = match call {
            Some(n) => Some(&answer.asks[n].args),
            None => answer.text.as_ref(),
        };
        let Some(text) = text else {
            continue;
        };
        let misfit = match steersman_machine::values::json::read(text) {
            Ok(json) => judge.misfit(&schema, json).await,
            Err(e) => Some(e.to_string()),
        };
        match call {
            Some(n) => answer.asks[n].misfit = misfit,
            None => answer.misfit = misfit,
        }
    }
}

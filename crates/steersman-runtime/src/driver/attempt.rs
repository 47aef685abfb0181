//! One attempt of a model or tool. It begins in the task of its session, and moves to a task of its own if it waits. A cancel or
//! a timeout ends it, and its panics are caught. It never repeats anything: the driver decides about retries ([`crate::retry`]).

use crate::clock::Clock;
use crate::engine::Timeouts;
use crate::limiter::{Ask, Ended, Limiter, Permit, Refused};
use crate::model::{Delta, Model, ModelCall, Report, Sink};
use crate::toolset::{Hear, Progress, ToolRun, Toolset};
use futures::FutureExt;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use steersman_machine::stored::codes::{Code, FailureCode, PlaceState};
use steersman_machine::stored::ids::{Id, Time};
use steersman_machine::stored::interaction::Class;
use steersman_machine::stored::outcome::{Answer, Failure, Retry};
use steersman_machine::view::mapping::{Fault, Raw};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;

/// Milliseconds that a tool has to report its outcome after it was cancelled.
const GRACE: u64 = 2_000;

/// Channel from tasks to the driver. Messages are boxed: each session has one channel, which allocates room for many in advance.
pub(crate) type Tell = mpsc::Sender<Box<FromTask>>;

/// Messages of tasks to the driver.
pub(crate) enum FromTask {
    /// A model answered or failed: effect, attempt, answer.
    Model(Id, u32, Result<Answer, Failure>),
    /// An attempt of a tool ended: effect, attempt, result.
    Tool(Id, u32, Raw),
    /// An attempt of a probe for an effect in doubt ended: the probe, the effect, the attempt.
    Probe(Id, Id, u32, Raw),
    /// An attempt to notify a person ended.
    Reached(Id, u32, Raw),
    /// The delay before the next attempt to notify a person is over.
    ReachAgain(Id),
    /// Pieces of a model's answer were streamed and can be taken from here.
    Deltas(Id, u32, Arc<Pieces>),
    /// A tool reported progress.
    Progress(Id, u32, Progress),
    /// The delay before the next attempt is over.
    Again(Id, u32),
    /// The slot that this effect waited for.
    Slot(Id, OwnedSemaphorePermit),
    /// Servers listed their tools.
    Listed(Vec<crate::servers::Listed>),
    /// The limiter let the call of this effect through, or will not do so soon.
    Turn(Id, Result<Permit, Refused>),
    /// A tool scored a node of a search.
    Judged(Id, (Id, steersman_machine::stored::ids::Line), Raw),
}

/// Runs `work` and sends its result, if any, to the driver. It is begun in the caller's task, and gets a task of its own if it
/// is not ready at once: a model in this process that answers without waiting wakes no other worker. A panic is sent as a
/// result too, wherever it comes from: without an answer the session would wait for this attempt for ever.
pub(crate) fn spawn(
    to: Tell,
    panicked: impl FnOnce(&str) -> FromTask + Send + 'static,
    work: impl Future<Output = Option<FromTask>> + Send + 'static,
) {
    let mut attempt = Box::pin(async move {
        // Sent before the panic's payload is dropped: its destructor is foreign code, too.
        let (told, _panic) = match AssertUnwindSafe(work).catch_unwind().await {
            Ok(told) => (told, None),
            Err(panic) => (Some(panicked(panic_text(&*panic))), Some(panic)),
        };
        if let Some(told) = told {
            // An owner that is gone needs no answer.
            let _ = to.send(Box::new(told)).await;
        }
    });
    match std::panic::catch_unwind(AssertUnwindSafe(|| attempt.as_mut().now_or_never())) {
        Ok(Some(())) => {}
        Ok(None) => drop(tokio::spawn(attempt)),
        // Only a destructor can panic here, after the result was sent. The panic's payload is not dropped: its destructor may
        // panic, too.
        Err(panic) => std::mem::forget(panic),
    }
}

/// Calls a model once, when the limiter of its place lets it through. `gate`: the limiter, the request to it, and the permit of a
/// call that already waited there.
pub(crate) fn call_model(
    model: Arc<dyn Model>,
    call: ModelCall,
    gate: (Arc<Limiter>, Ask, Option<Permit>),
    timeouts: Timeouts,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
    to: Tell,
) {
    let (effect, attempt) = (call.effect, call.attempt);
    let panicked = move |text: &str| {
        let message = format!("the model's adapter panicked: {text}");
        let failure = Failure::new(FailureCode::Failed, message);
        FromTask::Model(effect, attempt, Err(failure))
    };
    spawn(to.clone(), panicked, async move {
        let (limiter, ask, granted) = gate;
        let let_through = async {
            match granted {
                Some(permit) => Ok(permit),
                None => limiter.acquire(ask, &*clock).await,
            }
        };
        let let_through = tokio::select! {
            biased;
            let_through = let_through => let_through,
            () = cancel.cancelled() => return None,
        };
        let permit = match let_through {
            Ok(permit) => permit,
            Err(why) => {
                let told = Err(refused(why));
                return Some(FromTask::Model(effect, attempt, told));
            }
        };
        let relay = Relay {
            permit,
            clock: clock.clone(),
            effect,
            attempt,
            began: clock.now(),
            first: OnceLock::new(),
            piece: Notify::new(),
            pieces: Arc::default(),
            to: to.clone(),
        };
        let mut result = tokio::select! {
            biased;
            answer = model.call(&call, &relay, &cancel) => answer,
            failure = silence(&relay, timeouts, &*clock) => {
                cancel.cancel();
                Err(failure)
            }
            () = cancel.cancelled() => return None,
        };
        let _ = to
            .send(Box::new(FromTask::Deltas(
                effect,
                attempt,
                relay.pieces.clone(),
            )))
            .await;
        if let Ok(answer) = &mut result {
            answer.usage.took = relay.began.until(clock.now());
            answer.usage.first = relay.first.get().map(|first| relay.began.until(*first));
        }
        if let Some(ended) = as_its_place_sees(&result) {
            relay.permit.end(clock.now(), ended);
        }
        Some(FromTask::Model(effect, attempt, result))
    });
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

/// Runs a tool once, for at most `timeout` milliseconds. A panic passes through to [`spawn`], which runs this.
pub(crate) async fn run_tool(
    toolset: Option<Arc<dyn Toolset>>,
    run: ToolRun,
    timeout: u64,
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
    let running = toolset.run_heard(&run, &cancel, hear);
    tokio::pin!(running);
    let late = tokio::select! {
        biased;
        raw = &mut running => return raw,
        () = clock.sleep(timeout), if toolset.is_timed() => Code::Timeout,
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
pub(crate) fn panicked(class: Class, text: &str) -> Raw {
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
pub(crate) struct Pieces(Mutex<Streamed>);

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

    /// Takes all pieces out.
    pub(crate) fn take(&self) -> VecDeque<Delta> {
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

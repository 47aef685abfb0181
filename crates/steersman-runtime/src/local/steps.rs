//! The steps and waits of one attempt of a tool: what it asks goes to the driver of its session, and the answer comes back when the
//! disk has what it depends on.

use super::attempt::{FromTask, Tell};
use crate::Boxed;
use crate::clock::Clock;
use crate::driver::{Asks, Event, Told};
use crate::engine::Engine;
use crate::ledger::answer_name;
use crate::seal::is_sealed_text;
use crate::secrets::{mask_text, readable};
use crate::toolset::{Given, Leave, Question, StepBegun, StepEnd, Steps, ToolRun};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steersman_machine::network::Network;
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::values::expression::Scope;
use steersman_machine::view::mapping::Fault;
use tokio::sync::mpsc::WeakSender;
use tokio::sync::{Notify, oneshot};

/// Records the steps of one attempt.
pub(super) struct Recorder {
    effect: Id,
    attempt: u32,
    /// Weak: a tool may keep its context for longer than its session is driven.
    tasks: WeakSender<Box<FromTask>>,
    engine: Engine,
    network: Arc<Network>,
    tool: Name,
    scope: Arc<dyn Scope + Send + Sync>,
    course: Mutex<Course>,
    changed: Notify,
}

#[derive(Default)]
struct Course {
    /// Number of steps that were asked for and have not ended.
    busy: u32,
    /// The attempt ends as soon as none of its steps runs.
    parks: bool,
    /// The attempt is over.
    over: bool,
    /// Number of questions that a person has not answered yet.
    open: u32,
    /// Number of questions that were asked.
    asked: u32,
    /// Names of the answers that came.
    answers: BTreeSet<Name>,
}

/// Maximum number of questions that a server may ask in one attempt.
const QUESTIONS: u32 = 64;

/// A step that was asked for; it counts as busy until this is dropped.
struct Busy(Arc<Recorder>, Name);

/// A question that is open until this is dropped.
struct Open<'a>(&'a Recorder);

/// Dropped with its attempt: no step begins any more.
pub(super) struct Recording(pub(super) Arc<Recorder>);

impl Recorder {
    pub(super) fn new(
        (effect, attempt): (Id, u32),
        tasks: &Tell,
        engine: &Engine,
        run: &ToolRun,
    ) -> Arc<Self> {
        Arc::new(Self {
            effect,
            attempt,
            tasks: tasks.downgrade(),
            engine: engine.clone(),
            network: run.network.clone(),
            tool: run.work.tool.clone(),
            scope: run.scope.clone(),
            course: Mutex::default(),
            changed: Notify::new(),
        })
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changes(&self, change: impl FnOnce(&mut Course)) {
        change(&mut self.course());
        self.changed.notify_waiters();
    }

    async fn until(&self, is_so: impl Fn(&Course) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if is_so(&self.course()) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until the attempt has to end between two steps.
    pub(super) async fn parks(&self) {
        self.until(|course| course.parks && course.busy == 0).await;
    }

    /// Waits until a person is asked, or until nobody is.
    async fn until_asks(&self, asks: bool) {
        self.until(|course| (course.open > 0) == asks).await;
    }

    /// Ends after this time, but for the time in which a person is asked: after each answer the whole time begins again.
    pub(super) async fn time_passes(&self, clock: &dyn Clock, millis: u64) {
        loop {
            self.until_asks(false).await;
            tokio::select! {
                biased;
                () = self.until_asks(true) => {}
                () = clock.sleep(millis) => return,
            }
        }
    }

    /// Counts a question. Returns the name of its answer; `None` if the server asked too often.
    fn counts(&self, question: &Question) -> Option<Name> {
        let mut course = self.course();
        course.asked += 1;
        let mut names =
            (0..QUESTIONS as usize).map(|n| answer_name(&question.message, &question.schema, n));
        let name = names.find(|name| !course.answers.contains(name));
        name.filter(|_| course.asked <= QUESTIONS)
    }

    /// Sends an event, and waits for the answer of the driver.
    async fn told(&self, name: Name, event: Event) -> Told {
        let answered = async {
            let (reply, answer) = oneshot::channel();
            let key = (self.effect, self.attempt, name);
            let told = Box::new(FromTask::Step(key, event, reply));
            if let Some(tasks) = self.tasks.upgrade() {
                // An owner that is gone does not answer, and the attempt is cut.
                let _ = tasks.send(told).await;
            }
            match answer.await {
                Ok(told) => told,
                Err(_) => std::future::pending().await,
            }
        };
        let told = tokio::select! {
            biased;
            told = answered => told,
            () = self.until(|course| course.over) => {
                Told::Refused(Fault::new(Code::Cancelled, "its call does not run any more"))
            }
        };
        if told == Told::Park {
            self.changes(|course| course.parks = true);
        }
        told
    }

    async fn asks(&self, name: Name, asks: Asks) -> Told {
        let event = Event::Step {
            effect: self.effect,
            attempt: self.attempt,
            name: name.clone(),
            asks,
        };
        self.told(name, event).await
    }

    /// Returns the end of a step as the log may have it: a result with a secret in it is sealed, an error is masked.
    fn stored(&self, end: StepEnd) -> StepEnd {
        let secrets = readable(&self.network, &self.tool, &*self.scope);
        if secrets.is_empty() {
            return end;
        }
        match end {
            Ok(json) => {
                let mut masked = json.clone();
                mask_text(&mut masked, &secrets);
                Ok(if masked == json {
                    json
                } else {
                    self.engine.sealer().seal_text(&json)
                })
            }
            Err(mut fault) => {
                mask_text(&mut fault.message, &secrets);
                Err(fault)
            }
        }
    }

    fn opened(&self, json: String) -> Result<String, Fault> {
        if !is_sealed_text(&json) {
            return Ok(json);
        }
        let opened = self.engine.sealer().open_text(&json);
        opened
            .map(|json| json.to_string())
            .map_err(|e| Fault::new(Code::Sealed, e.to_string()))
    }
}

impl Steps for Recorder {
    fn begin(self: Arc<Self>, name: Name) -> Boxed<'static, Leave> {
        Box::pin(async move {
            self.changes(|course| course.busy += 1);
            let busy = Box::new(Busy(self.clone(), name.clone()));
            match self.asks(name, Asks::Begin).await {
                Told::Begin => Leave::Begin(busy),
                Told::Ended(Ok(json)) => match self.opened(json) {
                    Ok(json) => Leave::Ended(Ok(json)),
                    Err(fault) => Leave::Refused(fault),
                },
                Told::Ended(Err(fault)) => Leave::Ended(Err(fault)),
                Told::Refused(fault) => Leave::Refused(fault),
                Told::Park | Told::Over => {
                    drop(busy);
                    std::future::pending().await
                }
            }
        })
    }

    fn wait(self: Arc<Self>, name: Name, millis: u64) -> Boxed<'static, Result<(), Fault>> {
        Box::pin(async move {
            match self.asks(name, Asks::Wait(millis)).await {
                Told::Over => Ok(()),
                Told::Refused(fault) => Err(fault),
                Told::Park | Told::Begin | Told::Ended(_) => std::future::pending().await,
            }
        })
    }

    fn ask(self: Arc<Self>, question: Question) -> Boxed<'static, Result<Given, Fault>> {
        Box::pin(self.asks_person(question))
    }
}

impl Recorder {
    async fn asks_person(self: Arc<Self>, question: Question) -> Result<Given, Fault> {
        let Some(name) = self.counts(&question) else {
            let message = format!("its server asked more than {QUESTIONS} questions");
            return Err(Fault::new(Code::Failed, message));
        };
        self.changes(|course| course.open += 1);
        let open = Open(&self);
        let asks = Asks::Person(Box::new(question));
        let told = self.asks(name.clone(), asks).await;
        drop(open);
        match told {
            Told::Ended(Ok(text)) => {
                self.changes(|course| _ = course.answers.insert(name));
                Ok(Given::read(&text))
            }
            Told::Over => Ok(Given::Declined),
            Told::Refused(fault) | Told::Ended(Err(fault)) => Err(fault),
            Told::Park | Told::Begin => std::future::pending().await,
        }
    }
}

impl StepBegun for Busy {
    fn end(self: Box<Self>, end: StepEnd) -> Boxed<'static, Result<(), Fault>> {
        Box::pin(async move {
            let Self(recorder, name) = &*self;
            let event = Event::Stepped {
                effect: recorder.effect,
                attempt: recorder.attempt,
                name: name.clone(),
                end: recorder.stored(end),
            };
            match recorder.told(name.clone(), event).await {
                Told::Refused(fault) => Err(fault),
                _ => Ok(()),
            }
        })
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.changes(|course| course.busy -= 1);
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.changes(|course| course.open -= 1);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.0.changes(|course| course.over = true);
    }
}

//! The timeouts of a model call: until its first token, between tokens, and in total.

use crate::spy::Spy;
use crate::world::{NOON, answered, network};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use steersman_machine::network::Network;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Failure, Retry};
use steersman_runtime::clock::{Clock, Virtual};
use steersman_runtime::engine::{Engine, Options, Parts, StartOptions, Timeouts};
use steersman_runtime::model::{BoundModel, Delta, Model, ModelCall, Models, ModelsError, Sink};
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::Session;
use steersman_runtime::{Boxed, Env};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

/// The next action of a model.
enum Next {
    Piece,
    Breaks(&'static str),
    Answers(&'static str),
}

/// A model that does what a test tells it.
#[derive(Clone)]
struct Told {
    next: Arc<Mutex<mpsc::Receiver<Next>>>,
    running: Arc<AtomicUsize>,
}

/// Counts a call as running until it ends or is dropped.
struct Runs(Arc<AtomicUsize>);

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Model for Told {
    fn call<'a>(
        &'a self,
        _call: &'a ModelCall,
        sink: &'a dyn Sink,
        _cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            self.running.fetch_add(1, Ordering::SeqCst);
            let _runs = Runs(self.running.clone());
            loop {
                let next = self.next.lock().await.recv().await;
                match next.expect("the test goes on") {
                    Next::Piece => sink.delta(Delta::Text("and ".into())),
                    Next::Breaks(code) => {
                        return Err(Failure {
                            code: code.into(),
                            message: "it broke".into(),
                            retry: Retry::Never,
                        });
                    }
                    Next::Answers(text) => {
                        return Ok(Answer {
                            text: Some(text.into()),
                            ..Answer::default()
                        });
                    }
                }
            }
        })
    }

    fn label(&self) -> Name {
        "told".into()
    }
}

impl Models for Told {
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        _env: &'a Env,
        _folder: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>> {
        let names = network.models.keys();
        let bound = names.map(|name| BoundModel {
            name: name.clone(),
            provider: "scripted".into(),
            ..BoundModel::default()
        });
        Box::pin(std::future::ready(Ok(bound.collect())))
    }

    fn model(&self, _bound: &BoundModel) -> Result<Arc<dyn Model>, ModelsError> {
        Ok(Arc::new(self.clone()))
    }
}

const LIMITS: Timeouts = Timeouts {
    first: 1_000,
    idle: 500,
    total: 3_000,
};

struct Stage {
    session: Session,
    clock: Virtual,
    tell: mpsc::Sender<Next>,
    running: Arc<AtomicUsize>,
    engine: Engine,
}

impl Stage {
    async fn set() -> Self {
        let clock = Virtual::at(NOON);
        let (tell, next) = mpsc::channel(8);
        let running = Arc::new(AtomicUsize::new(0));
        let model = Told {
            next: Arc::new(Mutex::new(next)),
            running: running.clone(),
        };
        let engine = Engine::new(Parts {
            store: Arc::new(Spy::default()),
            clock: Arc::new(clock.clone()),
            models: Arc::new(model),
            toolsets: Vec::new(),
            sealer: Sealer::new(&[7; 32]),
            options: Options {
                env: Arc::new(|_| None),
                model_timeouts: LIMITS,
                ..Options::default()
            },
        });
        let options = StartOptions {
            say: Some("Go.".into()),
            ..StartOptions::default()
        };
        let network = network("agents: { main: { system: You talk. } }");
        let session = engine.start(network, options).await.unwrap();
        let stage = Self {
            session,
            clock,
            tell,
            running,
            engine,
        };
        stage.until(1).await;
        stage
    }

    /// Waits until this number of calls run.
    async fn until(&self, running: usize) {
        while self.running.load(Ordering::SeqCst) != running {
            tokio::task::yield_now().await;
        }
        go_on().await;
    }

    async fn tell(&self, next: Next) {
        self.tell.send(next).await.unwrap();
        go_on().await;
    }

    /// Advances the clock. Returns true if the call still runs.
    async fn runs_after(&self, millis: u64) -> bool {
        self.clock.advance(millis);
        go_on().await;
        self.running.load(Ordering::SeqCst) == 1
    }

    /// Checks that the call was cut: the next attempt begins after its delay, and answers.
    async fn answers_then(&self) {
        let due = loop {
            let outside = self.session.outside().await.unwrap();
            if let (0, Some(due)) = (outside.running, outside.due) {
                break due;
            }
            tokio::task::yield_now().await;
        };
        let delay = u64::try_from(due.0 - self.clock.now().0).unwrap();
        self.clock.advance(delay);
        self.until(1).await;
        self.tell(Next::Answers("Here.")).await;
        assert_eq!(answered(&self.session.settled().await.unwrap()), "Here.");
    }
}

async fn go_on() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_first_token_has_its_time() {
    let stage = Stage::set().await;
    assert!(stage.runs_after(LIMITS.first - 1).await);
    assert!(!stage.runs_after(1).await);
    stage.answers_then().await;
}

#[tokio::test]
async fn each_token_has_its_time_from_the_one_before() {
    let stage = Stage::set().await;
    assert!(stage.runs_after(100).await);
    for _ in 0..2 {
        stage.tell(Next::Piece).await;
        assert!(stage.runs_after(LIMITS.idle - 1).await);
    }
    assert!(!stage.runs_after(1).await);
    stage.answers_then().await;
}

#[tokio::test]
async fn all_tokens_together_have_their_time() {
    let stage = Stage::set().await;
    for _ in 0..9 {
        stage.tell(Next::Piece).await;
        assert!(stage.runs_after(300).await);
    }
    stage.tell(Next::Piece).await;
    assert!(stage.runs_after(299).await);
    assert!(!stage.runs_after(1).await);
    stage.answers_then().await;
}

/// Returns the tokens that a session has spent whose only call did this.
async fn spent(tell: Vec<Next>) -> u64 {
    let stage = Stage::set().await;
    for next in tell {
        stage.tell.send(next).await.unwrap();
    }
    stage.session.settled().await.unwrap();
    let seen = stage.engine.inspect(stage.session.id()).await.unwrap();
    seen.ledger.spent.tokens
}

#[tokio::test]
async fn what_nobody_tells_the_cost_of_is_estimated() {
    let sent = spent(vec![Next::Breaks("timeout")]).await;
    assert!(sent > 0, "a request that was sent may have to be paid");
    assert_eq!(spent(vec![Next::Breaks("unreachable")]).await, 0);
    assert_eq!(spent(vec![Next::Breaks("rate_limited")]).await, 0);
    // The estimate of 4 bytes is 2 tokens: a token has at most 3.
    let broken = vec![Next::Piece, Next::Breaks("provider_error")];
    assert_eq!(spent(broken).await, sent + 2);
    // A server that reports no usage.
    assert_eq!(spent(vec![Next::Answers("Fine.")]).await, sent + 2);
}

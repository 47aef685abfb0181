//! An engine whose model and tool answer at once, inside this process.

use crate::desk::{found, look, network};
use crate::measure::{Took, Watch, cpu};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use steersman_machine::network::Network;
use steersman_machine::stored::commit::Usage;
use steersman_machine::stored::ids::{Line, Name};
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_machine::view::mapping::Raw;
use steersman_runtime::clock::System;
use steersman_runtime::engine::{Durability, Engine, Options, Parts, StartOptions};
use steersman_runtime::model::{BoundModel, Model, ModelCall, Models, ModelsError, Sink};
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::{Session, Settled};
use steersman_runtime::store::Store;
use steersman_runtime::toolset::{ToolRun, Toolset};
use steersman_runtime::{Boxed, Env};
use tokio_util::sync::CancellationToken;

/// A model that calls `look` in each of so many turns, and then answers.
#[derive(Clone, Default)]
pub(crate) struct Looker(Arc<State>);

#[derive(Default)]
struct State {
    turns: AtomicU64,
    /// CPU time of the process at the n-th model call.
    marks: Mutex<BTreeMap<u64, f64>>,
}

impl Looker {
    /// A model that calls `look` so often.
    pub(crate) fn of(turns: u64) -> Self {
        let looker = Self::default();
        looker.ask(turns);
        looker
    }

    /// Sets how often it calls `look`.
    pub(crate) fn ask(&self, turns: u64) {
        self.0.turns.store(turns, Ordering::Relaxed);
    }

    /// Records the CPU time at these model calls.
    pub(crate) fn mark(&self, turns: &[u64]) {
        let mut marks = self.0.marks.lock().unwrap_or_else(PoisonError::into_inner);
        *marks = turns.iter().map(|n| (*n, 0.0)).collect();
    }

    /// Seconds of CPU between two marks.
    pub(crate) fn between(&self, from: u64, to: u64) -> f64 {
        let marks = self.0.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks[&to] - marks[&from]
    }
}

impl Model for Looker {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        _sink: &'a dyn Sink,
        _cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        let turn = u64::from(call.position);
        let mut marks = self.0.marks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mark) = marks.get_mut(&turn) {
            *mark = cpu();
        }
        drop(marks);
        let mut answer = Answer {
            usage: Usage {
                input: 1_000,
                output: 20,
                ..Usage::default()
            },
            ..Answer::default()
        };
        if turn < self.0.turns.load(Ordering::Relaxed) {
            answer.asks.push(look(turn));
        } else {
            answer.text = Some("The lamp is green.".to_owned());
        }
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn label(&self) -> Name {
        "scripted".into()
    }
}

/// Gives the same model for every model of a definition.
pub(crate) struct Only<M>(pub(crate) M);

impl<M: Model + Clone + 'static> Models for Only<M> {
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        _env: &'a Env,
        _folder: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>> {
        let bound = network.models.keys().map(|name| BoundModel {
            name: name.clone(),
            provider: "scripted".into(),
            ..BoundModel::default()
        });
        Box::pin(std::future::ready(Ok(bound.collect())))
    }

    fn model(&self, _bound: &BoundModel) -> Result<Arc<dyn Model>, ModelsError> {
        Ok(Arc::new(self.0.clone()))
    }
}

/// Every tool, always with the same result.
struct Found(Json);

impl Toolset for Found {
    fn has(&self, _network: &Network, _tool: &str) -> bool {
        true
    }

    fn run<'a>(&'a self, _run: &'a ToolRun, _cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        Box::pin(std::future::ready(Raw::Done(self.0.clone())))
    }
}

/// An engine over a store, with this model and one result for all tools.
pub(crate) fn engine(store: Arc<dyn Store>, durability: Durability, model: &Looker) -> Engine {
    Engine::new(Parts {
        store,
        clock: Arc::new(System),
        models: Arc::new(Only(model.clone())),
        toolsets: vec![Arc::new(Found(found().into()))],
        sealer: Sealer::ephemeral(),
        options: Options {
            durability,
            env: Arc::new(|_| None),
            ..Options::default()
        },
    })
}

/// A runtime like that of the program.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Starts a session with a message.
pub(crate) async fn start(engine: &Engine, network: Arc<Network>, id: &str) -> Session {
    let options = StartOptions {
        id: Some(id.into()),
        say: Some("Please look it up.".to_owned()),
        ..StartOptions::default()
    };
    engine.start(network, options).await.expect("it starts")
}

/// Drives a session from its first message to its answer.
pub(crate) async fn answered(session: &Session) {
    let settled = session.settled().await.expect("it is driven");
    let done = matches!(&*settled, Settled::Answered { .. });
    assert!(done, "{settled:?}");
}

/// Runs so many sessions together to their answers. Returns the number of their lines and the time that it took.
pub(crate) async fn run(engine: &Engine, sessions: usize) -> (u64, Took) {
    let network = network();
    let watch = Watch::start();
    let mut started = Vec::new();
    for n in 0..sessions {
        started.push(start(engine, network.clone(), &format!("session{n}")).await);
    }
    for session in &started {
        answered(session).await;
    }
    let took = watch.took();
    let mut lines = 0;
    for session in started {
        let head = engine.store().head(session.id()).await;
        lines += head.expect("it is there").0;
    }
    engine.stop().await;
    (lines, took)
}

/// All rows of a session.
pub(crate) async fn rows(store: &dyn Store, id: &str) -> Vec<Vec<u8>> {
    let all = store.rows(id, Line(1), Line::MAX, usize::MAX >> 1).await;
    let all = all.expect("they are there").into_iter();
    all.map(|row| row.bytes.to_vec()).collect()
}

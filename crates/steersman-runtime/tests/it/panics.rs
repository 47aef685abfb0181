//! Models and tools in Rust that panic: wherever they do, their attempt ends, and the session goes on.

use crate::places::network;
use crate::spy::Spy;
use crate::world::NOON;
use serde_json::json;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use steersman_machine::network::Network;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_machine::view::mapping::Raw;
use steersman_runtime::clock::Virtual;
use steersman_runtime::engine::{Engine, Options, Parts, StartOptions};
use steersman_runtime::model::scripted::{Script, ScriptedModel};
use steersman_runtime::model::{BoundModel, Delta, Model, ModelCall, Models, ModelsError, Sink};
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::Settled;
use steersman_runtime::toolset::{ToolRun, Toolset};
use steersman_runtime::{Boxed, Env};
use tokio_util::sync::CancellationToken;

/// Places at which the code of a model or tool panics.
#[derive(Copy, Clone, Debug)]
enum At {
    /// In the call itself, before there is a future.
    Call,
    /// In a poll of the future.
    Poll,
    /// In a poll of the future, after the first streamed piece.
    Stream,
    /// In the drop of the future, after it has answered.
    Answered,
    /// In the drop of a future that did not answer in time.
    Cut,
    /// In a poll of the future, with a payload that panics when it is dropped.
    Carried,
}

/// Answers at once or never, and panics when it is dropped.
struct Bomb<T>(Option<T>);

impl<T: Unpin> Future for Bomb<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        self.0.take().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T> Drop for Bomb<T> {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "boom");
    }
}

impl At {
    fn run<'a, T: Send + Unpin + 'a>(
        self,
        piece: impl Fn() + Send + 'a,
        answer: T,
    ) -> Boxed<'a, T> {
        match self {
            Self::Call => panic!("boom"),
            Self::Poll => Box::pin(async { panic!("boom") }),
            Self::Stream => Box::pin(async move {
                piece();
                tokio::task::yield_now().await;
                panic!("boom")
            }),
            Self::Answered => Box::pin(Bomb(Some(answer))),
            Self::Cut => Box::pin(Bomb(None)),
            Self::Carried => Box::pin(async {
                std::panic::panic_any(Bomb::<()>(None));
            }),
        }
    }
}

struct Broken(At);

impl Model for Broken {
    fn call<'a>(
        &'a self,
        _: &'a ModelCall,
        sink: &'a dyn Sink,
        _: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        let piece = || sink.delta(Delta::Text("I a".to_owned()));
        self.0.run(piece, Ok(Answer::default()))
    }

    fn label(&self) -> Name {
        "broken".into()
    }
}

impl Models for Broken {
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        _: &'a Env,
        _: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>> {
        let bound = network.models.keys().map(|name| BoundModel {
            name: name.clone(),
            provider: "broken".into(),
            ..BoundModel::default()
        });
        Box::pin(std::future::ready(Ok(bound.collect())))
    }

    fn model(&self, _: &BoundModel) -> Result<Arc<dyn Model>, ModelsError> {
        Ok(Arc::new(Self(self.0)))
    }
}

impl Toolset for Broken {
    fn has(&self, _: &Network, _: &str) -> bool {
        true
    }

    fn run<'a>(&'a self, _: &'a ToolRun, _: &'a CancellationToken) -> Boxed<'a, Raw> {
        self.0.run(|| {}, Raw::Done(json!("done")))
    }
}

/// Runs a session with these models, and with tools that panic at `at`. Returns how it settles.
async fn settled(models: Arc<dyn Models>, at: At, definition: &str) -> Settled {
    let clock = Virtual::at(NOON);
    let engine = Engine::new(Parts {
        store: Arc::new(Spy::default()),
        clock: Arc::new(clock.clone()),
        models,
        toolsets: vec![Arc::new(Broken(at))],
        sealer: Sealer::new(&[7; 32]),
        options: Options {
            env: Arc::new(|_| None),
            ..Options::default()
        },
    });
    let options = StartOptions {
        say: Some("Go.".into()),
        seed: Some(7),
        ..StartOptions::default()
    };
    let session = engine.start(network(definition), options).await.unwrap();
    for _ in 0..1_000 {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        if session.outside().await.unwrap().running == 0 {
            return (*session.settled().await.unwrap()).clone();
        }
        clock.advance(1_000);
    }
    panic!("{at:?}: the attempt does not end");
}

#[tokio::test]
async fn a_model_that_panics_anywhere_is_a_call_that_failed() {
    const ALONE: &str = "agents: { main: { system: You talk. } }\nentry: main\n";
    use At::{Answered, Call, Carried, Cut, Poll, Stream};
    for at in [Call, Poll, Stream, Answered, Cut, Carried] {
        let settled = settled(Arc::new(Broken(at)), at, ALONE).await;
        let Settled::Failed { code, message } = &settled else {
            panic!("{at:?}: {settled:?}");
        };
        assert_eq!(&**code, "failed", "{at:?}");
        assert!(message.contains("panicked: "), "{at:?}: {message}");
    }
}

#[tokio::test]
async fn a_tool_that_panics_anywhere_has_an_outcome() {
    use At::{Answered, Call, Carried, Cut, Poll, Stream};
    for class in ["pure", "read", "idempotent", "unsafe"] {
        for at in [Call, Poll, Stream, Answered, Cut, Carried] {
            let definition = format!(
                "tools: {{ act: {{ description: Acts., effect: {class}, timeout: 10s, retry: 0, native: 1 }} }}\n\
                 agents: {{ main: {{ system: You act., tools: [act] }} }}\nentry: main\n"
            );
            let script = json!({ "main": [{ "call": { "act": {} } }, "So be it."] });
            let model = ScriptedModel::new(Script::parse(&script).unwrap());
            let settled = settled(Arc::new(model), at, &definition).await;
            // Only an unsafe effect may have changed something for good, so a person must say whether it did.
            let meant = if class == "unsafe" {
                "doubt"
            } else {
                "answered"
            };
            assert_eq!(settled.word(), meant, "{class} {at:?}: {settled:?}");
        }
    }
}

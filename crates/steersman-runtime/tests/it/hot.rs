//! Attempts that end without waiting follow each other in the task of their session. The session must still react to time.

use crate::places::network;
use crate::spy::Spy;
use crate::world::{NOON, answered};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Line, Name};
use steersman_machine::stored::interaction::Interaction;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_machine::view::mapping::Raw;
use steersman_runtime::clock::Virtual;
use steersman_runtime::engine::{Engine, Options, Parts, StartOptions};
use steersman_runtime::model::scripted::{Script, ScriptedModel};
use steersman_runtime::model::{BoundModel, Model, ModelCall, Models, ModelsError, Sink};
use steersman_runtime::seal::Sealer;
use steersman_runtime::toolset::{ToolRun, Toolset};
use steersman_runtime::{Boxed, Env};
use tokio_util::sync::CancellationToken;

const DEFINITION: &str = r#"
events: { post: { fields: { from: string }, id: "{{ event.from }}" } }
tools:
  look: { description: Looks., effect: pure, native: 1 }
  await_post: { description: Waits., parameters: { from: string }, wait: { event: post, match: { from: "{{ args.from }}" }, timeout: 60s, on_timeout: Nothing came. } }
agents:
  clerk: { description: Looks often., system: You look., tools: [look], limits: { model_calls: 1000, ticks: 10000, same_call: 1000 } }
  main: { system: You talk., tools: [await_post, clerk] }
entry: main
"#;

/// A scripted model that answers at once. Each call advances the clock by a second.
#[derive(Clone)]
struct Ticking(Arc<ScriptedModel>, Virtual);

impl Model for Ticking {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        self.1.advance(1_000);
        Model::call(&*self.0, call, sink, cancel)
    }

    fn label(&self) -> Name {
        "ticking".into()
    }
}

impl Models for Ticking {
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        env: &'a Env,
        folder: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>> {
        self.0.resolve(network, env, folder)
    }

    fn model(&self, _: &BoundModel) -> Result<Arc<dyn Model>, ModelsError> {
        Ok(Arc::new(self.clone()))
    }
}

struct Looks;

impl Toolset for Looks {
    fn has(&self, _: &Network, _: &str) -> bool {
        true
    }

    fn run<'a>(&'a self, _: &'a ToolRun, _: &'a CancellationToken) -> Boxed<'a, Raw> {
        Box::pin(std::future::ready(Raw::Done(json!("nothing"))))
    }
}

#[tokio::test]
async fn time_is_heard_while_attempts_end_at_once() {
    let looks = (0..500).map(|_| json!({ "call": { "look": {} } }));
    let clerk: Vec<Json> = looks.chain([json!("Nothing.")]).collect();
    let both =
        json!({ "call": { "await_post": { "from": "anyone" }, "clerk": { "message": "Look." } } });
    let script = json!({ "main": [both, "So be it."], "clerk": clerk });
    let clock = Virtual::at(NOON);
    let model = ScriptedModel::new(Script::parse(&script).unwrap());
    let engine = Engine::new(Parts {
        store: Arc::new(Spy::default()),
        clock: Arc::new(clock.clone()),
        models: Arc::new(Ticking(Arc::new(model), clock)),
        toolsets: vec![Arc::new(Looks)],
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
    let session = engine.start(network(DEFINITION), options).await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    let lines = engine.feed(session.id(), Line::NONE).lines().await.unwrap();
    let at = |is: &dyn Fn(&Interaction) -> bool| {
        let pushes = |line: &LogLine| line.commit.as_ref().map(|commit| commit.pushes.clone());
        let does = |line: &Arc<LogLine>| {
            pushes(line).is_some_and(|all| all.iter().any(|push| is(&push.what)))
        };
        lines.iter().position(does).unwrap()
    };
    let begun = at(&|what| matches!(what, Interaction::Call(call) if &*call.name == "await_post"));
    let waited = at(
        &|what| matches!(what, Interaction::Result(result) if result.call.line() == lines[begun].n),
    );
    // The wait ends after a minute of the clerk's calls, and not after all 500.
    assert!(waited < lines.len() / 2, "line {waited} of {}", lines.len());
}

//! The tap of an engine: it hears each line on disk once and in order, the end of each attempt, and who owns what. The trace of a turn goes
//! out with its calls.

use crate::spy::Spy;
use crate::world::{Does, NOON, Tools, World, answered, asked, network};
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex};
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::Line;
use steersman_machine::view::mapping::Fault;
use steersman_runtime::clock::Virtual;
use steersman_runtime::engine::{Engine, Options, Parts, StartOptions};
use steersman_runtime::model::scripted::{Script, ScriptedModel};
use steersman_runtime::seal::Sealer;
use steersman_runtime::store::SessionId;
use steersman_runtime::tap::{Attempted, Owned, Tap, Worked};

const DESK: &str = "
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, native: 1 }
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, approve: true, native: 1 }
agents:
  desk: { system: You settle., tools: [look, pay] }
entry: desk
";

fn script() -> Json {
    json!({ "desk": [
        { "call": { "look": { "what": "order" } } },
        { "call": { "pay": { "cents": 5 } } },
        "Paid.",
    ] })
}

/// The calls that a tap got.
#[derive(Default)]
struct Heard {
    lines: Mutex<Vec<Line>>,
    attempts: Mutex<Vec<String>>,
    owners: Mutex<Vec<Owned>>,
}

impl Tap for Heard {
    fn line(&self, session: &SessionId, line: &Arc<LogLine>, _took: u64) {
        assert_eq!(&**session, "session");
        self.lines.lock().unwrap().push(line.n);
    }

    fn attempt(&self, of: &Attempted<'_>) {
        let what = match of.what {
            Worked::Model(model) => format!("model {model}"),
            Worked::Tool(tool) => format!("tool {tool}"),
        };
        assert!(of.began <= of.ended);
        assert_eq!(&**of.definition, "test");
        let is_paid = of.usage.is_some();
        assert_eq!(is_paid, what.starts_with("model") && of.outcome == "done");
        let code = of.code.map_or_else(String::new, |code| format!(" {code}"));
        let told = format!("{what} {} {}{code}", of.attempt, of.outcome);
        self.attempts.lock().unwrap().push(told);
    }

    fn owner(&self, _session: &SessionId, owned: Owned) {
        self.owners.lock().unwrap().push(owned);
    }
}

fn tapped(store: &Spy, tools: &Arc<Tools>, tap: &Arc<Heard>) -> Engine {
    Engine::new(Parts {
        store: Arc::new(store.clone()),
        clock: Arc::new(Virtual::at(NOON)),
        models: Arc::new(ScriptedModel::new(Script::parse(&script()).unwrap())),
        toolsets: vec![tools.clone()],
        sealer: Sealer::new(&[7; 32]),
        options: Options {
            env: Arc::new(|_| None),
            tap: Some(tap.clone()),
            ..Options::default()
        },
    })
}

fn options() -> StartOptions {
    StartOptions {
        id: Some("session".into()),
        say: Some("Settle it.".into()),
        ..StartOptions::default()
    }
}

#[tokio::test]
async fn a_tap_hears_every_line_once_and_in_order_over_two_processes() {
    let (store, tools) = (Spy::default(), Arc::<Tools>::default());
    let (first, second) = (Arc::<Heard>::default(), Arc::<Heard>::default());
    tools.will("look", Does::NotPerformed(Fault::new("http_404", "gone")));
    let engine = tapped(&store, &tools, &first);
    let session = engine.start(network(DESK), options()).await.unwrap();
    let question = asked(&session.settled().await.unwrap());
    session.stop().await;
    let engine = tapped(&store, &tools, &second);
    let session = engine.open("session").await.unwrap();
    let before = session.settled().await.unwrap();
    session.approve(question, "user").await.unwrap();
    let settled = session.settled_otherwise(&before).await.unwrap();
    assert_eq!(answered(&settled), "Paid.");
    session.stop().await;

    let mut heard = first.lines.lock().unwrap().clone();
    heard.extend(second.lines.lock().unwrap().iter());
    let lines = engine.feed("session", Line::NONE).lines().await.unwrap();
    let written: Vec<Line> = lines.iter().map(|line| line.n).collect();
    assert_eq!(heard, written);
    assert_eq!(
        *first.attempts.lock().unwrap(),
        [
            "model scripted 1 done",
            "tool look 1 not_performed http_404",
            "model scripted 1 done",
        ]
    );
    assert_eq!(
        *second.attempts.lock().unwrap(),
        ["tool pay 1 done", "model scripted 1 done"]
    );
    assert_eq!(
        *first.owners.lock().unwrap(),
        [Owned::Claimed(1), Owned::Released]
    );
    assert_eq!(
        *second.owners.lock().unwrap(),
        [Owned::Claimed(2), Owned::Released]
    );
}

#[tokio::test]
async fn a_session_stores_the_same_with_a_tap_and_without() {
    let world = World::new(script());
    let session = world.start(DESK, "Settle it.").await;
    let _ = session.settled().await.unwrap();
    let without = world.lines().await;
    let (store, tools) = (Spy::default(), Arc::<Tools>::default());
    let engine = tapped(&store, &tools, &Arc::default());
    let session = engine.start(network(DESK), options()).await.unwrap();
    let _ = session.settled().await.unwrap();
    let with = engine.feed("session", Line::NONE).lines().await.unwrap();
    let shape = |lines: &[Arc<LogLine>]| -> Vec<(Line, usize)> {
        lines
            .iter()
            .map(|line| (line.n, line.ledger.len()))
            .collect()
    };
    assert_eq!(shape(&with), shape(&without));
}

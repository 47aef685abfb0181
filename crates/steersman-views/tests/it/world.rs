//! Sessions in memory, driven by scripts.

use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_definition::{Files, compile};
use steersman_machine::network::Network;
use steersman_machine::stored::ids::Line;
use steersman_runtime::clock::System;
use steersman_runtime::engine::{Engine, Options, Parts, Process, StartOptions};
use steersman_runtime::model::scripted::{Script, ScriptedModel};
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::{Fork, Session};
use steersman_runtime::store::Store;
use steersman_runtime::store::memory::MemoryStore;

/// A desk that notes texts, pays with an approval, and has a secret.
const DESK: &str = "
steersman: 1
name: desk
models: { default: scripted }
secrets: { pin: { env: PIN } }
state: { noted: { type: string, default: '' }, paid: { type: integer, default: 0 } }
tools:
  note: { description: Notes a text., parameters: { text: string }, set: { noted: '{{ args.text }}' } }
  pay:
    description: Pays.
    parameters: { cents: integer }
    approve: args.cents > 10
    set: { paid: '{{ state.paid + args.cents }}' }
agents: { desk: { description: Pays., system: You pay., tools: [note, pay] } }
entry: desk
";

pub(crate) const SECRET: &str = "PLANTED-4711";

fn said() -> Json {
    json!({ "desk": [
        { "text": "I note it.", "call": { "note": { "text": "fifty" } } },
        { "call": { "pay": { "cents": 50 } } },
        "Paid.",
        "You are welcome.",
        { "call": { "pay": { "cents": 5 } } },
        "Paid a little more.",
    ] })
}

pub(crate) fn engine() -> Engine {
    scripted(&said())
}

/// An engine as [`engine`] gives it, over a store that another one has used.
pub(crate) fn over(store: Arc<dyn Store>) -> Engine {
    made(&said(), Sealer::ephemeral(), store)
}

/// The network of [`paid`].
pub(crate) fn desk() -> Arc<Network> {
    network(DESK)
}

pub(crate) fn scripted(script: &Json) -> Engine {
    sealing(script, Sealer::ephemeral())
}

/// An engine that opens what this sealer sealed.
pub(crate) fn sealing(script: &Json, sealer: Sealer) -> Engine {
    made(script, sealer, Arc::new(MemoryStore::new()))
}

fn made(script: &Json, sealer: Sealer, store: Arc<dyn Store>) -> Engine {
    let script = Script::parse(script).unwrap();
    Engine::new(Parts {
        store,
        clock: Arc::new(System),
        models: Arc::new(ScriptedModel::new(script)),
        toolsets: Vec::new(),
        sealer,
        options: Options {
            env: Arc::new(|name| (name == "PIN").then(|| SECRET.to_owned())),
            process: Process {
                owner: "web-1:4711".into(),
                build: "0.1.0".into(),
            },
            ..Options::default()
        },
    })
}

pub(crate) fn network(definition: &str) -> Arc<Network> {
    let (network, diagnostics) = compile(&Files::new("desk.yaml", definition));
    Arc::new(network.unwrap_or_else(|| panic!("{diagnostics:?}")))
}

/// A session with an approval, a second message, a fork and an adoption. The first message holds the secret as plain
/// text.
pub(crate) async fn paid(engine: &Engine) -> Session {
    let network = desk();
    let say = Some(format!("Pay fifty, my pin is {SECRET}."));
    let options = StartOptions {
        say,
        ..StartOptions::default()
    };
    let session = engine.start(network, options).await.unwrap();
    let asked = session.settled().await.unwrap();
    let inspection = session.inspect().await.unwrap();
    session
        .approve(inspection.pending[0].id(), "user")
        .await
        .unwrap();
    session.settled_otherwise(&asked).await.unwrap();
    session.say("Thank you.").await.unwrap();
    session.settled().await.unwrap();
    let fork = Fork {
        label: Some("more".into()),
        say: Some("A little more.".to_owned()),
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    session.settled().await.unwrap();
    let seen = session.inspect().await.unwrap();
    let branch = seen.branches.last().unwrap().id;
    session.adopt(branch, None).await.unwrap();
    session.settled().await.unwrap();
    session
}

pub(crate) async fn last(engine: &Engine, id: &str) -> Line {
    engine.store().head(id).await.unwrap()
}

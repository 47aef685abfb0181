//! Models get the same requests whichever process drives the session, and wherever the last owner died: no name, number or position in
//! a request comes from a line of the log.

use crate::crash::to_the_end;
use crate::spy::{Behind, Spy};
use crate::world::{Does, NOON, Tools, network};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use steersman_machine::context::Content;
use steersman_machine::network::Network;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_machine::view::mapping::Raw;
use steersman_runtime::clock::Virtual;
use steersman_runtime::engine::{Engine, Options, Parts, StartOptions};
use steersman_runtime::model::scripted::{Script, ScriptedModel};
use steersman_runtime::model::{BoundModel, Model, ModelCall, Models, ModelsError, Sink};
use steersman_runtime::retrieval::{Index, IndexError, Retrieval};
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::Session;
use steersman_runtime::toolset::{ToolRun, Toolset};
use steersman_runtime::{Boxed, Env};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

const DESK: &str = r#"
state: { seen: { type: [integer], default: [], reduce: append } }
tools:
  read_part: { description: Reads., parameters: { n: integer }, effect: read, set: { seen: "{{ args.n }}" }, then: { tool: weigh, args: { of: "{{ args.n }}" } }, native: 1 }
  weigh: { description: Weighs., parameters: { of: integer }, effect: read, native: 1 }
  note: { description: Notes., parameters: { text: string }, effect: idempotent, native: 1 }
  pay:
    description: Pays.
    parameters: { cents: integer }
    effect: unsafe
    approve: { by: user, ask: "Pay {{ args.cents }}?" }
    native: 1
agents:
  desk: { context: { keep_exchanges: 1 }, system: "You are a desk; {{ branch.name }}.", tools: [read_part, note, pay, notes, memory, artifacts, fork, helper] }
  helper: { description: Helps., system: You help., tools: [read_part] }
entry: desk
"#;

fn long(what: &str) -> String {
    let rows = (0..2_000).map(|n| format!("{what}, row {n}: a walrus\n"));
    rows.collect::<Vec<_>>().concat()
}

fn script() -> Json {
    json!({
        "desk": [
            { "call": [{ "read_part": { "n": 1 } }, { "helper": { "message": "part 2" } }, { "note": { "text": "a walrus" } }] },
            { "text": "I look for a walrus.", "call": [
                { "memory_save": { "name": "walrus", "content": "Walruses eat clams." } },
                { "read_part": { "n": 3 } },
            ] },
            { "call": [{ "memory_search": { "query": "clams" } }, { "artifact_list": {} }, { "pay": { "cents": 500 } }] },
            { "call": { "artifact_read": { "name": "weigh-1_1.txt", "lines": 2 } } },
            { "call": { "notes_search": { "query": "walrus", "source": "transcript", "most": 20 } } },
            { "call": { "fork": { "instructions": ["Say one.", "Say two."] } } },
            "Done.",
        ],
        "desk@1": ["One."],
        "desk@2": ["Two."],
        "helper": [{ "call": { "read_part": { "n": 2 } } }, long("the helper")],
    })
}

/// Retrieval by words in common, for a handful of texts.
struct Words;

impl Retrieval for Words {
    fn index(&self) -> Result<Box<dyn Index>, IndexError> {
        Ok(Box::new(Counted::default()))
    }
}

#[derive(Default)]
struct Counted(BTreeMap<u64, String>);

impl Index for Counted {
    fn add(&mut self, texts: &[(u64, &str)]) -> Result<(), IndexError> {
        let texts = texts.iter().map(|(n, text)| (*n, text.to_lowercase()));
        self.0.extend(texts);
        Ok(())
    }

    fn remove(&mut self, numbers: &[u64]) -> Result<(), IndexError> {
        self.0.retain(|n, _| !numbers.contains(n));
        Ok(())
    }

    fn find(
        &mut self,
        query: &str,
        _most: usize,
        without: &dyn Fn(u64) -> bool,
    ) -> Result<Vec<(u64, f64)>, IndexError> {
        let has = |text: &str| query.split(' ').any(|word| text.contains(word));
        let found = self.0.iter().filter(|(n, text)| !without(**n) && has(text));
        Ok(found.map(|(n, _)| (*n, 1.0)).collect())
    }

    fn coverage(&mut self, query: &str) -> Result<Vec<(u64, f64)>, IndexError> {
        self.find(query, usize::MAX, &|_| false)
    }
}

type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// Records the requests to a scripted model, with the agent and the position in its script.
#[derive(Clone)]
struct Noted(ScriptedModel, Asked);

impl Models for Noted {
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        env: &'a Env,
        folder: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>> {
        self.0.resolve(network, env, folder)
    }

    fn model(&self, bound: &BoundModel) -> Result<Arc<dyn Model>, ModelsError> {
        let model = self.0.model(bound)?;
        Ok(Arc::new(Listens(model, self.1.clone())))
    }
}

struct Listens(Arc<dyn Model>, Asked);

impl Model for Listens {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        let asks = format!("{} {:?} {}", call.agent, call.index, call.position);
        let contents = call.request.segments.iter().map(|s| &s.content);
        let contents: Vec<&Content> = contents.collect();
        self.1
            .lock()
            .unwrap()
            .push((asks, format!("{contents:#?}")));
        Box::pin(async move {
            let mut answer = self.0.call(call, sink, cancel).await?;
            // Like a server that gives its calls no ids: the ids of the engine take their place.
            answer.asks.iter_mut().for_each(|ask| ask.label = None);
            Ok(answer)
        })
    }

    fn label(&self) -> Arc<str> {
        self.0.label()
    }
}

/// The native tools of the test. Built-in tools run as they do elsewhere.
struct Own(Arc<Tools>);

impl Toolset for Own {
    fn has(&self, _: &Network, tool: &str) -> bool {
        ["read_part", "weigh", "note", "pay", "look"].contains(&tool)
    }

    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        self.0.run(run, cancel)
    }
}

/// One process over the store.
struct Process {
    engine: Engine,
    store: Spy,
    models: Noted,
    tools: Arc<Tools>,
    clock: Virtual,
}

impl Process {
    fn first(script: &Json) -> Self {
        let model = ScriptedModel::new(Script::parse(script).unwrap());
        let (store, clock) = (Spy::default(), Virtual::at(NOON));
        Self::of(store, Noted(model, Asked::default()), Arc::default(), clock)
    }

    fn of(store: Spy, models: Noted, tools: Arc<Tools>, clock: Virtual) -> Self {
        tools.always("read_part", json!(long("the part")));
        tools.always("weigh", json!(long("the weight")));
        let engine = Engine::new(Parts {
            store: Arc::new(store.clone()),
            clock: Arc::new(clock.clone()),
            models: Arc::new(models.clone()),
            toolsets: vec![Arc::new(Own(tools.clone()))],
            sealer: Sealer::new(&[7; 32]),
            options: Options {
                env: Arc::new(|_| None),
                retrieval: Some(Arc::new(Words)),
                ..Options::default()
            },
        });
        Self {
            engine,
            store,
            models,
            tools,
            clock,
        }
    }

    async fn killed(self) -> Self {
        self.engine.kill().await;
        self.store.mend();
        Self::of(self.store, self.models, self.tools, self.clock)
    }

    async fn start(&self, definition: &str) -> Session {
        let options = StartOptions {
            id: Some("session".into()),
            say: Some("Read.".to_owned()),
            message_id: Some("m1".into()),
            seed: Some(1),
            ..StartOptions::default()
        };
        self.engine
            .start(network(definition), options)
            .await
            .unwrap()
    }

    /// Returns the requests so far, sorted, each once.
    fn asked(&self) -> Vec<(String, String)> {
        let mut asked = self.models.1.lock().unwrap().clone();
        asked.sort();
        asked.dedup();
        asked
    }
}

#[tokio::test]
async fn every_request_is_the_same_wherever_the_process_died() {
    let calm = Process::first(&script());
    to_the_end(&calm.start(DESK).await).await;
    let undisturbed = calm.asked();
    let lines = calm.store.lines();
    let all: String = undisturbed.iter().map(|(_, text)| &**text).collect();
    for told in [
        "`read_part-1.txt`",
        "`weigh-1_1.txt`",
        "`helper-2.txt`",
        "`weigh-1.1_1.txt`",
        "desk, message 2",
        "helper, call 2",
        "memory 1, walrus",
        "call.3",
        "One.",
    ] {
        assert!(all.contains(told), "no request has {told}");
    }
    for kept in 0..lines {
        let process = Process::first(&script());
        process.store.write_only(kept, Behind::Silence);
        let session = process.start(DESK).await;
        tokio::select! {
            () = to_the_end(&session) => {}
            () = async {
                for _ in 0..2_000 {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
        drop(session);
        let process = process.killed().await;
        let session = process.engine.open("session").await.unwrap();
        to_the_end(&session).await;
        let asked = process.asked();
        let differs = asked.iter().find(|asked| !undisturbed.contains(asked));
        assert_eq!(differs, None, "killed after line {kept} of {lines}");
        assert_eq!(asked.len(), undisturbed.len(), "killed after line {kept}");
    }
}

const FINDERS: &str = r#"
state: { found: { type: [string], default: [], reduce: append }, last: optional string }
tools:
  look: { description: Looks., effect: read, native: 1 }
agents:
  desk: { system: "You are a desk that knows {{ state.found }}, {{ state.last }}.", tools: [ann, ben, quick] }
  ann: { description: Finds., system: You find., tools: [look], set: { found: "{{ result }}", last: "{{ result }}" } }
  ben: { description: Finds., system: You find., tools: [look], set: { found: "{{ result }}", last: "{{ result }}" } }
  quick: { description: Finds at once., system: You find., set: { found: "{{ result }}", last: "{{ result }}" } }
entry: desk
"#;

/// Plays an answer that calls three agents, where the tool of the agent `first` ends first. Returns what the agents write at
/// their ends, and the requests of their caller.
async fn found(first: usize) -> (String, Vec<(String, String)>) {
    let process = Process::first(&json!({
        "desk": [
            { "call": [{ "ann": { "message": "one" } }, { "ben": { "message": "two" } }, { "quick": { "message": "three" } }] },
            "Done.",
        ],
        "ann": [{ "call": { "look": {} } }, "One."],
        "ben": [{ "call": { "look": {} } }, "Two."],
        "quick": ["Three."],
    }));
    let gates = [0, 1].map(|_| Arc::new(Semaphore::new(0)));
    for (gate, gives) in gates.iter().zip(["a", "b"]) {
        let does = Does::Gate(gate.clone(), json!(gives));
        process.tools.will("look", does);
    }
    let session = process.start(FINDERS).await;
    while process.tools.count("look") < 2 {
        tokio::task::yield_now().await;
    }
    let before = process.asked().len();
    gates[first].add_permits(1);
    // The agent of that tool has its result, and its model is called again.
    while process.asked().len() == before {
        tokio::task::yield_now().await;
    }
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    gates[1 - first].add_permits(1);
    to_the_end(&session).await;
    let seen = process.engine.inspect("session").await.unwrap();
    let state = &seen.current_branch().unwrap().snapshot.state;
    let state = state
        .iter()
        .map(|((_, name), cell)| format!("{name} = {}\n", cell.value.0));
    let mut asked = process.asked();
    asked.retain(|(who, _)| who.starts_with("desk "));
    (state.collect::<Vec<_>>().concat(), asked)
}

#[tokio::test]
async fn what_agents_of_one_answer_write_stands_in_the_order_of_their_calls() {
    let slow = found(0).await;
    assert_eq!(found(1).await, slow);
    let written = "found = [\"One.\",\"Two.\",\"Three.\"]\nlast = \"Three.\"\n";
    assert_eq!(slow.0, written);
}

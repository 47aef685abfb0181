//! Runs as data: events in, messages out, checked by the rules of the protocol and read as a client reads them.

use super::super::tests::{LINE, accepted, event, events, id, piece, said, streamed};
use super::super::turn::{Speakers, Turn};
use super::{Agui, Form, client_id, message_id, resume_id, resumed};
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman::machine::network::Network as Checked;
use steersman::machine::snapshot::{Agent, Snapshot};
use steersman::machine::stored::ids::{Id, Line};
use steersman::runtime::session::Settled;
use steersman::runtime::store::memory::MemoryStore;
use steersman::views::event::Teller;
use steersman::views::log::Log;
use steersman::views::reader::Stored;
use steersman::{Called, EventKind, How, Network, Steersman};
use steersman_testkit::random::played;

#[path = "../../../tests/it/written.rs"]
mod written;

fn network() -> Arc<Checked> {
    let text = "
agents:
  desk: { system: You answer., tools: [look, helper] }
  helper: { description: Helps., system: You help. }
tools:
  look: { description: Looks., parameters: { at: string, how: { type: string, optional: true } }, effect: read, command: [echo] }
entry: desk
";
    let network = Network::from_yaml(text).build().unwrap();
    network.checked().clone()
}

fn run_of(network: &Arc<Checked>, root: Id, line: Line, attached: bool) -> Agui {
    let speakers = Speakers::of(network, root);
    let form = Form {
        session: "s".into(),
        line,
        thread: "t".to_owned(),
        run: "r".to_owned(),
        parent: None,
        network: network.clone(),
        roles: vec!["user".into()],
        page: None,
        attached,
    };
    Agui::new(form, Turn::new(line, speakers.clone()), speakers)
}

fn run(attached: bool) -> Agui {
    run_of(&network(), id("1.0"), LINE, attached)
}

/// The copy of a client: its messages and its state.
#[derive(Debug, Default, PartialEq)]
struct Client {
    messages: Vec<Json>,
    state: Json,
}

/// Checks the rules of the protocol for the messages of one run, and reads them as a client does.
#[derive(Debug, Default)]
struct Rules {
    client: Client,
    is_begun: bool,
    is_over: bool,
    open: BTreeSet<(String, String)>,
    owners: BTreeMap<(String, String), Json>,
    subagents: BTreeSet<String>,
    closed: BTreeSet<String>,
}

impl Rules {
    fn all(messages: &[Json]) -> Self {
        let mut rules = Self::default();
        for message in messages {
            rules.hear(message);
        }
        rules
    }

    fn opens(&mut self, what: &str, message: &Json, id: &str) {
        let key = (what.to_owned(), message[id].as_str().unwrap().to_owned());
        let owner = &message["subagentRunId"];
        let before = self.owners.entry(key.clone()).or_insert(owner.clone());
        assert_eq!(before, owner, "{message}");
        assert!(self.open.insert(key), "it is open already: {message}");
    }

    fn goes_on(&mut self, what: &str, message: &Json, id: &str, closes: bool) {
        let key = (what.to_owned(), message[id].as_str().unwrap().to_owned());
        assert!(self.open.contains(&key), "it is not open: {message}");
        assert_eq!(self.owners[&key], message["subagentRunId"], "{message}");
        if closes {
            self.open.remove(&key);
        }
    }

    fn message(&mut self, id: &Json) -> Option<&mut Json> {
        self.client.messages.iter_mut().find(|own| own["id"] == *id)
    }

    fn hear(&mut self, message: &Json) {
        assert!(!self.is_over, "after the end: {message}");
        let kind = message["type"].as_str().unwrap();
        assert_eq!(self.is_begun, kind != "RUN_STARTED", "{message}");
        match kind {
            "RUN_STARTED" => self.is_begun = true,
            "TEXT_MESSAGE_START" => {
                self.opens("text", message, "messageId");
                if self.message(&message["messageId"]).is_none() {
                    let new = json!({ "id": message["messageId"], "role": message["role"], "content": "" });
                    self.client.messages.push(new);
                }
            }
            "TEXT_MESSAGE_CONTENT" => {
                self.goes_on("text", message, "messageId", false);
                let own = self.message(&message["messageId"]).unwrap();
                let text = format!(
                    "{}{}",
                    own["content"].as_str().unwrap(),
                    message["delta"].as_str().unwrap()
                );
                own["content"] = text.into();
            }
            "TEXT_MESSAGE_END" => self.goes_on("text", message, "messageId", true),
            "REASONING_START" => self.opens("span", message, "messageId"),
            "REASONING_MESSAGE_START" => self.opens("thought", message, "messageId"),
            "REASONING_MESSAGE_CONTENT" => self.goes_on("thought", message, "messageId", false),
            "REASONING_MESSAGE_END" => self.goes_on("thought", message, "messageId", true),
            "REASONING_END" => self.goes_on("span", message, "messageId", true),
            "TOOL_CALL_START" => {
                self.opens("call", message, "toolCallId");
                let call = json!({ "id": message["toolCallId"], "name": message["toolCallName"], "arguments": "" });
                if self.message(&message["parentMessageId"]).is_none() {
                    let new = json!({ "id": message["parentMessageId"], "role": "assistant" });
                    self.client.messages.push(new);
                }
                let own = self.message(&message["parentMessageId"]).unwrap();
                match own["toolCalls"].as_array_mut() {
                    Some(calls) => calls.push(call),
                    None => own["toolCalls"] = json!([call]),
                }
            }
            "TOOL_CALL_ARGS" => self.goes_on("call", message, "toolCallId", false),
            "TOOL_CALL_END" => self.goes_on("call", message, "toolCallId", true),
            "TOOL_CALL_RESULT" => {
                let new = json!({ "id": message["messageId"], "role": "tool", "content": message["content"] });
                self.client.messages.push(new);
            }
            "STEP_STARTED" => {
                let step = format!("{} {}", message["subagentRunId"], message["stepName"]);
                assert!(self.open.insert(("step".to_owned(), step)), "{message}");
            }
            "STEP_FINISHED" => {
                let step = format!("{} {}", message["subagentRunId"], message["stepName"]);
                assert!(self.open.remove(&("step".to_owned(), step)), "{message}");
            }
            "SUBAGENT_STARTED" => {
                let run = message["subagentRunId"].as_str().unwrap();
                assert!(!self.closed.contains(run), "{message}");
                if let Some(parent) = message["parentSubagentRunId"].as_str() {
                    let is_there = self.subagents.contains(parent) || self.closed.contains(parent);
                    assert!(is_there, "{message}");
                }
                assert!(self.subagents.insert(run.to_owned()), "{message}");
            }
            "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => {
                let run = message["subagentRunId"].as_str().unwrap();
                assert!(self.subagents.remove(run), "{message}");
                self.closed.insert(run.to_owned());
            }
            "STATE_SNAPSHOT" => self.client.state = message["snapshot"].clone(),
            "STATE_DELTA" => self.patch(&message["delta"]),
            "MESSAGES_SNAPSHOT" => {
                self.client.messages = message["messages"].as_array().unwrap().clone();
            }
            "ACTIVITY_SNAPSHOT" => assert!(message["content"].is_object()),
            "RUN_FINISHED" => {
                assert!(self.open.is_empty(), "{:?} at the end", self.open);
                assert!(self.subagents.is_empty(), "{:?} at the end", self.subagents);
                self.is_over = true;
            }
            "RUN_ERROR" => self.is_over = true,
            other => panic!("the protocol has no `{other}`"),
        }
    }

    fn patch(&mut self, delta: &Json) {
        let state = self.client.state.as_object_mut().unwrap();
        for change in delta.as_array().unwrap() {
            let path = change["path"].as_str().unwrap().strip_prefix('/').unwrap();
            let name = path.replace("~1", "/").replace("~0", "~");
            let before = match change["op"].as_str().unwrap() {
                "remove" => state.remove(&name),
                _ => state.insert(name, change["value"].clone()),
            };
            assert_eq!(before.is_none(), change["op"] == "add", "{change}");
        }
    }
}

fn kinds(messages: &[Json]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| message["type"].as_str().unwrap())
        .collect()
}

fn told(run: &mut Agui, events: &[steersman::Event]) -> Vec<Json> {
    events.iter().flat_map(|event| run.event(event)).collect()
}

#[test]
fn a_turn_is_a_run() {
    let messages = told(&mut run(false), &events());
    assert_eq!(
        kinds(&messages),
        [
            "RUN_STARTED",
            "STATE_SNAPSHOT",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED",
        ]
    );
    assert_eq!(messages[0]["threadId"], "t");
    // The call belongs to the message that the agent said with it.
    assert_eq!(messages[5]["parentMessageId"], messages[2]["messageId"]);
    let last = messages.last().unwrap();
    assert_eq!(last["outcome"], json!({ "type": "success" }));
    assert_eq!(last["result"]["answer"], "It boils.");
    assert_eq!(last["usage"][0]["cachedInputTokens"], 4);
    Rules::all(&messages);
}

/// The messages that complete something, without those that a streamed piece makes.
fn durable(messages: &[Json]) -> Vec<&Json> {
    let pieces = |message: &&Json| {
        let kind = message["type"].as_str().unwrap();
        let is_early = matches!(kind, "TEXT_MESSAGE_START" | "TEXT_MESSAGE_CONTENT");
        let is_void = kind == "MESSAGES_SNAPSHOT" || message["timestamp"].is_null();
        !(is_early || is_void && kind != "RUN_FINISHED")
    };
    messages.iter().filter(pieces).collect()
}

#[test]
fn what_is_told_live_is_what_is_told_later() {
    let later = told(&mut run(false), &events());
    let then = Rules::all(&later).client;
    for void in 0..3 {
        for cut in 0..=9 {
            let live = told(&mut run(false), &streamed(cut, void));
            let mut now = Rules::all(&live).client;
            // A snapshot tells the client's own message, which it has already.
            now.messages.retain(|message| message["role"] != "user");
            let texts = |client: &Client| -> Vec<String> {
                let texts = client.messages.iter().map(|own| own["content"].to_string());
                texts.collect()
            };
            assert_eq!(texts(&now), texts(&then), "cut {cut}, void {void}");
            assert_eq!(durable(&live), durable(&later), "cut {cut}, void {void}");
        }
    }
}

#[test]
fn reasoning_is_told_and_ends_with_the_answer() {
    let thought = |attempt, text: &str| {
        piece(EventKind::Reasoning {
            effect: id("3.0"),
            attempt,
            text: text.to_owned(),
        })
    };
    let mut live = events();
    let at = live
        .iter()
        .position(|event| event.line == Some(Line(4)))
        .unwrap();
    let void = EventKind::Withdrawn {
        effect: id("3.0"),
        attempt: 1,
    };
    for (n, event) in [
        thought(1, "Hm"),
        piece(void),
        thought(2, "Ah"),
        thought(2, "!"),
    ]
    .into_iter()
    .enumerate()
    {
        live.insert(at + n, event);
    }
    let messages = told(&mut run(false), &live);
    Rules::all(&messages);
    let deltas = messages
        .iter()
        .filter(|one| one["type"] == "REASONING_MESSAGE_CONTENT");
    let deltas: Vec<&Json> = deltas.map(|one| &one["delta"]).collect();
    assert_eq!(deltas, ["Hm", "Ah", "!"]);
    let rest = messages
        .iter()
        .filter(|one| !one["type"].as_str().unwrap().starts_with("REASONING"));
    let rest: Vec<&Json> = rest.collect();
    assert_eq!(
        rest,
        told(&mut run(false), &events()).iter().collect::<Vec<_>>()
    );
}

/// The agents of a session whose helper serves a call.
fn helped(serving: Option<&str>) -> Snapshot {
    let mut snapshot = Snapshot::empty();
    let world = played(0, 24).unwrap();
    let any = world.at(Id::MAIN).agents.values().next().unwrap();
    for (name, of, parent) in [("desk", "1.0", None), ("helper", "4.9", Some("1.0"))] {
        let mut agent = Agent::clone(any);
        agent.id = id(of);
        agent.def = name.into();
        agent.family.parent = parent.map(id);
        agent.input.serving = serving.filter(|_| parent.is_some()).map(id);
        snapshot.agents.insert(agent.id, Arc::new(agent));
    }
    snapshot.root = Some(id("1.0"));
    snapshot
}

#[test]
fn the_work_of_a_sub_agent_carries_its_run_and_goes_on_in_the_next() {
    let by_helper = |cursor: &str, kind| steersman::Event {
        agent: Some("helper".into()),
        agent_id: Some(id("4.9")),
        ..event(cursor, kind)
    };
    let called = EventKind::Called {
        call: id("4.1"),
        name: "helper".into(),
        target: Called::Agent,
        arguments: json!({}),
    };
    let used = |call: &str| EventKind::Called {
        call: id(call),
        name: "look".into(),
        target: Called::Tool,
        arguments: json!({ "at": "kettle" }),
    };
    let ended = |call: &str, name: &str| EventKind::Ended {
        call: id(call),
        name: name.into(),
        how: How::Done,
        code: None,
        text: "hot".into(),
        parts: Vec::new(),
        by: None,
        who: None,
    };
    let entered = EventKind::Entered {
        state: "action".into(),
    };
    let first = [
        event("3.1", accepted("agui/message/1")),
        event("4.1", called),
        by_helper("5.1", said("4.2", "I look.")),
        by_helper("5.2", used("5.9")),
        by_helper("5.3", entered),
    ];
    let waits = steersman::Turn::from(&Settled::Empty);
    let mut run = run(false);
    run.line(helped(Some("4.1")), Map::new());
    let mut messages = told(&mut run, &first);
    messages.extend(run.event(&piece(EventKind::Settled(waits))));
    Rules::all(&messages);
    let of =
        |kind: &str| -> Vec<&Json> { messages.iter().filter(|one| one["type"] == kind).collect() };
    assert_eq!(of("SUBAGENT_STARTED")[0]["name"], "helper");
    assert_eq!(of("SUBAGENT_STARTED")[0]["description"], "Helps.");
    for kind in ["TEXT_MESSAGE_START", "TOOL_CALL_START", "STEP_STARTED"] {
        assert_eq!(of(kind)[0]["subagentRunId"], "s/4.1", "{kind}");
    }
    assert_eq!(of("SUBAGENT_FINISHED")[0]["outcome"]["type"], "suspended");
    assert_eq!(of("RUN_FINISHED")[0]["result"]["turn"], "waits");

    // The next run goes on with the same sub-agent.
    let mut next = run_of(&network(), id("1.0"), Line(8), false);
    next.line(helped(Some("4.1")), Map::new());
    for event in &first {
        next.past(event);
    }
    next.line(helped(None), Map::new());
    let messages = told(
        &mut next,
        &[
            event("8.1", accepted("agui/message/2")),
            by_helper("8.2", ended("5.9", "look")),
            event("8.3", ended("4.1", "helper")),
        ],
    );
    Rules::all(&messages);
    assert_eq!(
        kinds(&messages),
        [
            "RUN_STARTED",
            "STATE_SNAPSHOT",
            "SUBAGENT_STARTED",
            "TOOL_CALL_RESULT",
            "SUBAGENT_FINISHED"
        ]
    );
    assert_eq!(messages[3]["subagentRunId"], "s/4.1");
    assert_eq!(messages[4]["result"], "hot");
}

#[test]
fn a_client_that_comes_back_gets_the_conversation_first() {
    let mut run = run(true);
    for event in &events()[..1] {
        run.past(event);
    }
    let messages = told(&mut run, &events());
    let rules = Rules::all(&messages);
    let texts: Vec<&Json> = rules
        .client
        .messages
        .iter()
        .map(|own| &own["content"])
        .collect();
    assert_eq!(texts, ["Before.", "Hello.", "I look.", "hot", "It boils."]);
}

#[test]
fn ids_of_clients_are_kept_or_replaced() {
    let plain = message_id("2f1c-9");
    assert_eq!(client_id(&plain), Some("2f1c-9"));
    for id in ["a/b", "", &"x".repeat(65), "~x"] {
        let id = message_id(id);
        assert!(id.len() <= 64 && client_id(&id).is_none(), "{id}");
    }
    assert_ne!(message_id("a/b"), message_id("a/c"));
    let question = "12.3@14".parse().unwrap();
    let id = resume_id(question, "x");
    assert_eq!((resumed(&id), resumed(&plain)), (Some(question), None));
    assert_ne!(id, resume_id(question, "y"));
}

#[tokio::test]
async fn runs_of_random_sessions_keep_the_rules() {
    let store = Arc::new(MemoryStore::new());
    let sealer = steersman::runtime::seal::Sealer::new(&[7; 32]);
    let steersman = Steersman::options()
        .script_all("")
        .over_shared(store.clone(), sealer);
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..200 {
        let world = played(seed, 40).unwrap();
        let session = format!("random-{seed}");
        written::written(&store, &session, world.lines()).await;
        let reader = Arc::new(Stored::plain(steersman.engine(), &session));
        let log = Log::read(&*reader).await.unwrap();
        let root = world.at(Id::MAIN).root.unwrap();
        let head = world.branch(world.current()).head;
        let path = log.up_to(head);
        let first = seed as usize * 7 % path.len();
        let mut run = run_of(&world.network, root, path[first].n, seed % 2 == 0);
        let mut teller = Teller::new(reader.clone());
        let mut messages = Vec::new();
        for (n, line) in path.iter().enumerate() {
            let snapshot = world.after(line.n);
            let state = steersman::views::page::state(&snapshot);
            run.line(snapshot, state);
            for event in &teller.line(line).await.unwrap() {
                if n < first {
                    run.past(event);
                } else {
                    messages.extend(run.event(event));
                }
            }
        }
        let settled = steersman::Turn::from(&Settled::Empty);
        messages.extend(run.event(&piece(EventKind::Settled(settled))));
        if messages.is_empty() {
            // No line from there on has an event on its branch.
            continue;
        }
        let rules = Rules::all(&messages);
        assert!(rules.is_over, "seed {seed}");
        for kind in kinds(&messages) {
            *seen.entry(kind.to_owned()).or_default() += 1;
        }
    }
    for kind in [
        "TEXT_MESSAGE_START",
        "TOOL_CALL_RESULT",
        "SUBAGENT_STARTED",
        "SUBAGENT_ERROR",
        "STATE_DELTA",
        "STEP_FINISHED",
    ] {
        assert!(seen.contains_key(kind), "{kind} never came: {seen:?}");
    }
}

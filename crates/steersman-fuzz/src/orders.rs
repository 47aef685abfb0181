//! Orders: the messages of an inbox. For any bytes:
//!
//! * they decode to a message or are refused, without a panic; a message is read as it was written, and refused with more bytes
//!   behind it;
//! * as a sequence of orders they break no session: each gets a receipt or is refused, the session settles after it, a new owner
//!   can drive the session afterwards, and the log has no damage.
//!
//! An input that begins with the version of messages is one stored message without its hash. Any other is a sequence: the first
//! byte chooses the seed of the session, and each order is its length and the encoding of a message.

use crate::{Target, seeds};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};
use steersman_definition::{Files, compile};
use steersman_machine::network::Network;
use steersman_machine::network::search::{Method, Plan};
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::Boxed;
use steersman_runtime::clock::Virtual;
use steersman_runtime::engine::{Engine, EngineError, Options, Parts, StartOptions};
use steersman_runtime::inbox::{CancelWhat, Message, Wanted};
use steersman_runtime::load::Load;
use steersman_runtime::model::scripted::{Script, ScriptedModel};
use steersman_runtime::pending::PendingId;
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::Session;
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{InboxMessage, SessionQuery};
use steersman_runtime::toolset::{ToolRun, Toolset};
use tokio_util::sync::CancellationToken;

pub(crate) const TARGET: Target = Target {
    name: "orders",
    check,
    seeds,
    words: &[
        "\u{0}",
        "\u{1}",
        "\u{2}",
        "{}",
        "null",
        "state.sum",
        "all",
        "any",
        "pay",
        "mood",
        "\"sad\"",
        "Go.",
    ],
    mutations: 100,
};

/// The first byte of a stored message.
const VERSION: u8 = 1;
/// Maximum number of orders of a sequence.
const ORDERS: usize = 12;
/// Number of turns of the runtime within which everything must happen that needs nothing from outside.
const TURNS: usize = 20_000;

const DESK: &str = r#"
steersman: 1
name: desk
models: { default: scripted }
events: { paid: { fields: { nr: string }, id: "{{ event.nr }}" } }
state: { sum: { type: integer, default: 0, reduce: sum }, mood: { type: string, default: calm } }
tools:
  look: { description: Looks., effect: read, native: 1 }
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, simulate: pretended, native: 1 }
  pay_asked: { description: Pays., parameters: { cents: integer }, effect: unsafe, approve: { when: true, by: user, edit: [cents] }, native: 1 }
  roll: { description: Rolls., parameters: { eyes: integer }, set: { sum: "{{ args.eyes }}" } }
  nap: { description: Naps., wait: { time: 10m }, result: Rested. }
  hear: { description: Waits for an event., wait: { event: paid, match: { nr: "1" } }, result: Heard. }
agents:
  desk:
    system: You lead.
    tools: [look, pay, pay_asked, roll, nap, hear, helper, { tool: fork, as: race, join: any }]
  helper: { description: Helps., system: You help., tools: [look, pay, roll] }
entry: desk
"#;

static NETWORK: LazyLock<Arc<Network>> = LazyLock::new(|| {
    let (network, found) = compile(&Files::new("desk.yaml", DESK));
    Arc::new(network.unwrap_or_else(|| panic!("{found:?}")))
});

static SCRIPT: LazyLock<Json> = LazyLock::new(|| {
    let call = |tool: &str, args: Json| json!({ "call": { tool: args } });
    let desk = json!({ "any": [
        "Well.", call("look", json!({})), call("pay", json!({ "cents": 1 })), call("pay", json!({ "cents": 2 })),
        call("pay_asked", json!({ "cents": 3 })), call("roll", json!({ "eyes": 4 })), call("nap", json!({})),
        call("hear", json!({})), call("helper", json!({ "message": "Help." })),
        call("race", json!({ "instructions": ["Be quick.", "Be good."] })),
    ] });
    let helper =
        json!({ "any": ["Helped.", call("look", json!({})), call("pay", json!({ "cents": 5 }))] });
    json!({ "desk": vec![desk; 60], "helper": vec![helper; 60] })
});

/// Tools that are done, except that nobody knows of every payment of an even amount.
struct Tools;

impl Toolset for Tools {
    fn has(&self, _: &Network, _: &str) -> bool {
        true
    }
    fn has_native(&self, _: &str, _: &str) -> bool {
        true
    }
    fn run<'a>(&'a self, run: &'a ToolRun, _: &'a CancellationToken) -> Boxed<'a, Raw> {
        let args = serde_json::from_str::<Json>(&run.work.args).unwrap_or_default();
        let is_even = args["cents"].as_i64().is_some_and(|cents| cents % 2 == 0);
        let raw = if is_even {
            Raw::Unknown(Fault::new("failed", "the line broke"))
        } else {
            Raw::Done(json!("done"))
        };
        Box::pin(std::future::ready(raw))
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let kept = seeds::files("crates/steersman-runtime/tests/compat", "hex");
    let kept = kept
        .iter()
        .flat_map(|file| file.split(|byte| *byte == b'\n'));
    let kept: Vec<Vec<u8>> = kept
        .map(seeds::unhex)
        .filter(|bytes| bytes.len() > 8)
        .collect();
    let mut all: Vec<Vec<u8>> = kept
        .iter()
        .map(|bytes| bytes[..bytes.len() - 8].to_vec())
        .collect();
    // each kept message as an order, and orders that follow each other
    for (n, bytes) in (2..).zip(&kept) {
        all.push(sequence(n, &[&bytes[1..bytes.len() - 8]]));
    }
    for seed in 2..22 {
        let orders = orders(u64::from(seed));
        let orders = orders
            .iter()
            .map(|order| postcard::to_allocvec(&Message::from(order.clone())));
        let orders: Vec<Vec<u8>> = orders
            .collect::<Result<_, _>>()
            .expect("a message is written");
        let orders: Vec<&[u8]> = orders.iter().map(Vec::as_slice).collect();
        all.push(sequence(seed, &orders));
    }
    all
}

/// Returns the bytes of a sequence.
fn sequence(seed: u8, orders: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![seed];
    for order in orders.iter().filter(|order| order.len() < 256) {
        bytes.push(order.len() as u8);
        bytes.extend_from_slice(order);
    }
    bytes
}

/// Returns some orders that may mean something to a session.
fn orders(seed: u64) -> Vec<Wanted> {
    let line = Line(1 + seed % 9);
    let branch = Id::new(Line(2 + seed % 7), 1);
    let of = PendingId {
        effect: Id::new(Line(2 + seed % 5), 1),
        hold: Some(line),
    };
    let say = |text: &str| Wanted::Say {
        text: text.to_owned(),
        to: None,
    };
    let (label, live) = (None, seed.is_multiple_of(2));
    let fork = Wanted::Fork {
        at: Some(line),
        label: Some("side".into()),
        say: Some("And this.".to_owned()),
        live,
    };
    let rewind = Wanted::Rewind {
        at: line,
        label,
        say: Some("Again.".to_owned()),
    };
    let plan = Plan::of(Method::BestOf, 2).to_json().to_string();
    let search = Wanted::Search {
        at: None,
        say: Some("Seek.".to_owned()),
        plan,
    };
    let event = Wanted::Event {
        event: "paid".into(),
        fields: r#"{"nr": "1"}"#.to_owned(),
    };
    let join = Wanted::Join {
        branches: vec![branch, Id::MAIN],
        on: "any".to_owned(),
        then: Some("roll".into()),
        args: Some(r#"{"eyes": 1}"#.to_owned()),
    };
    let all = [
        say("Go on."),
        fork,
        Wanted::Approve { of, args: None },
        Wanted::Adopt { branch, at: None },
        search,
        Wanted::Cancel(CancelWhat::Branch),
        Wanted::Current(branch),
        event,
        Wanted::Pause(true),
        Wanted::Edit(vec![("mood".into(), Some("\"sad\"".to_owned()))]),
        rewind,
        Wanted::Retry(None),
        Wanted::Pause(false),
        join,
        Wanted::Hold {
            tool: None,
            held: live,
        },
        Wanted::Interrupt("Stop.".to_owned()),
    ];
    let count = all.len();
    let mut drawn = all.into_iter().cycle().skip(seed as usize * 5 % count);
    (0..6)
        .filter_map(|_| drawn.by_ref().step_by(1 + seed as usize % 3).next())
        .collect()
}

fn check(data: &[u8]) {
    message(data);
    if let Some((seed, rest)) = data.split_first().filter(|(first, _)| **first != VERSION) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        let runtime = runtime.expect("a runtime can be made");
        runtime.block_on(play(u64::from(*seed), rest));
    }
}

/// Reads the bytes as a stored message.
fn message(data: &[u8]) {
    let stored = |bytes: &[u8]| InboxMessage {
        id: "m".into(),
        at: Time(5),
        bytes: bytes.into(),
    };
    let _ = Message::decode(&stored(data));
    let summed = |data: &[u8]| stored(&[data, &sum("m", data)].concat());
    let Ok(message) = Message::decode(&summed(data)) else {
        return;
    };
    let written = message.encode("m".into(), Time(5));
    assert_eq!(Message::decode(&written), Ok(message), "as it was written");
    let longer = [data, &[0]].concat();
    assert!(
        Message::decode(&summed(&longer)).is_err(),
        "with a byte behind it"
    );
}

/// The hash that ends a stored message.
fn sum(id: &str, hashed: &[u8]) -> [u8; 8] {
    let mut over = blake3::Hasher::new();
    over.update(&(id.len() as u64).to_le_bytes());
    over.update(id.as_bytes());
    over.update(hashed);
    *over.finalize().as_bytes().first_chunk().expect("32 bytes")
}

/// The orders of a session so far, for the report of a failure.
struct Play {
    engine: Engine,
    session: Session,
    told: String,
}

fn engine(store: MemoryStore, clock: &Virtual, model: &ScriptedModel) -> Engine {
    Engine::new(Parts {
        store: Arc::new(store),
        clock: Arc::new(clock.clone()),
        models: Arc::new(model.clone()),
        toolsets: vec![Arc::new(Tools)],
        sealer: Sealer::new(&[7; 32]),
        options: Options {
            env: Arc::new(|_| None),
            ..Options::default()
        },
    })
}

async fn play(seed: u64, mut rest: &[u8]) {
    let (store, clock) = (MemoryStore::new(), Virtual::at(Time(1_767_614_400_000)));
    let model = ScriptedModel::new(Script::parse(&SCRIPT).expect("the script is right"));
    let first = engine(store.clone(), &clock, &model);
    let options = StartOptions {
        id: Some("session".into()),
        say: Some("Go.".to_owned()),
        message_id: Some("m0".into()),
        seed: Some(seed),
        ..StartOptions::default()
    };
    let session = first.start(NETWORK.clone(), options).await;
    let mut play = Play {
        session: session.expect("a session starts"),
        engine: first,
        told: String::new(),
    };
    play.settles().await;
    for n in 0..ORDERS {
        let Some((len, more)) = rest.split_first() else {
            break;
        };
        let (order, more) = more.split_at(more.len().min(usize::from(*len)));
        rest = more;
        let Ok(message) = postcard::from_bytes::<Message>(order) else {
            continue;
        };
        let _ = writeln!(play.told, "{message:?}");
        play.order(format!("order-{n}").into(), message).await;
        if len.is_multiple_of(3) {
            clock.advance(11 * 60_000);
        }
    }
    let killed = play.within(play.engine.kill()).await;
    killed.unwrap_or_else(|| panic!("the killed engine does not end\n{}", play.told));
    play.engine = engine(store, &clock, &model);
    let opened = play.within(play.engine.open("session")).await;
    let opened = opened.unwrap_or_else(|| panic!("it does not open\n{}", play.told));
    play.session = opened.unwrap_or_else(|why| panic!("it cannot be opened: {why}\n{}", play.told));
    play.settles().await;
    play.is_whole().await;
}

impl Play {
    /// Waits a number of turns of the runtime. `None` means that the future did not end.
    async fn within<T>(&self, wanted: impl Future<Output = T>) -> Option<T> {
        let turns = async {
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            came = wanted => Some(came),
            () = turns => None,
        }
    }

    /// Sends an order. A message beyond the bounds of the store is refused.
    async fn order(&mut self, id: Name, message: Message) {
        let receipt = self.within(self.session.send_as(id, message)).await;
        let receipt = receipt.unwrap_or_else(|| panic!("there is no receipt\n{}", self.told));
        match receipt {
            Ok(receipt) => {
                let _ = writeln!(self.told, "  {:?}", receipt.fate);
            }
            Err(EngineError::Gone(why)) => panic!("it ended: {why}\n{}", self.told),
            Err(why) => {
                let _ = writeln!(self.told, "  {why}");
            }
        }
        self.settles().await;
    }

    async fn settles(&self) {
        match self.within(self.session.settled()).await {
            Some(Ok(_)) => {}
            Some(Err(why)) => panic!("it ended: {why}\n{}", self.told),
            None => panic!("it does not settle\n{}", self.told),
        }
    }

    /// Checks the log as `fsck` does.
    async fn is_whole(&self) {
        let store = self.engine.store();
        let query = SessionQuery {
            prefix: Some("session".to_owned()),
            ..SessionQuery::default()
        };
        let info = store.sessions(&query).await.expect("a store in memory");
        let info = &info[0];
        let load = Load::new(store.clone(), info.id.clone(), info.salt);
        let report = load.inspect().await;
        let report = report.unwrap_or_else(|why| panic!("{why}\n{}", self.told));
        assert!(report.damaged.is_empty(), "{report:?}\n{}", self.told);
        let stale = load.stale_checkpoints().await.expect("a store in memory");
        assert!(stale.is_empty(), "{stale:?}\n{}", self.told);
    }
}

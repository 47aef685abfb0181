//! Webhooks: what is sent, under which ids, what happens if a receiver does not take it, and who may make them.

use crate::receiver::{Got, Receiver};
use crate::world::{Caller, Nothing, SCRIPT, World, desk, scope, whole};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use steersman::adapters::webhook::Reach;
use steersman::machine::stored::ids::Time;
use steersman::runtime::clock::Virtual;
use steersman::runtime::store::memory::MemoryStore;
use steersman::runtime::store::{Accounts as _, WebhookId};
use steersman::{By, CancelWhat, Network, Session, StartOptions, Steersman, ToolError, tool_with};
use steersman_server::{Metrics, NewToken, Options, Permission};
use tokio::task::JoinHandle;

/// Interval of looks for sessions that changed, in milliseconds.
const LOOK: u64 = 500;
/// Longest pauses before the next attempts, in milliseconds.
const PAUSES: [u64; 7] = [
    6_000,
    36_000,
    144_000,
    720_000,
    4_320_000,
    25_920_000,
    103_680_000,
];

fn loopback() -> Reach {
    ["127.0.0.0/8"]
        .iter()
        .map(|net| net.parse().unwrap())
        .collect()
}

/// A server whose clock stands still until the test moves it, and which drives nothing by itself.
struct Desk {
    world: World,
    clock: Virtual,
    store: Arc<MemoryStore>,
    metrics: Arc<Metrics>,
    told: Arc<Mutex<Vec<String>>>,
    delivering: JoinHandle<()>,
}

impl Desk {
    async fn new() -> Self {
        let clock = Virtual::at(Time(1_796_000_000_000));
        Self::over(Arc::new(MemoryStore::new()), clock, loopback()).await
    }

    async fn over(store: Arc<MemoryStore>, clock: Virtual, reach: Reach) -> Self {
        let setup = Steersman::options().script_all(SCRIPT);
        let setup = setup.clock(Arc::new(clock.clone()));
        let metrics = Metrics::new();
        let options = Options {
            webhooks_may_reach: reach,
            metrics: Some(metrics.clone()),
            ..Options::default()
        };
        let world = World::of(setup, store.clone(), options).await;
        let told = Arc::<Mutex<Vec<String>>>::default();
        let (server, hears) = (world.server.clone(), told.clone());
        let delivering = tokio::spawn(async move {
            server
                .deliver(|sentence| hears.lock().unwrap().push(sentence))
                .await;
        });
        Self {
            world,
            clock,
            store,
            metrics,
            told,
            delivering,
        }
    }

    /// Starts a session that asks a manager.
    async fn asks(&self, tenant: &str) -> Session {
        let scope = scope(tenant, None);
        let id = self
            .world
            .steersman
            .scoped(scope)
            .create(&desk(), StartOptions::default())
            .await
            .unwrap();
        let session = self.world.steersman.session(&id).await.unwrap();
        let turn = session.ask("My kettle is broken.").await.unwrap();
        assert_eq!(turn.questions().len(), 1);
        session
    }

    /// Approves what a session asks. It answers.
    async fn approved(&self, session: &Session) {
        let pending = self.world.steersman.pending(session.id()).await.unwrap();
        let by = By::role("manager");
        session.approve(&pending[0], by).await.unwrap();
        let turn = session.settled().await.unwrap();
        assert_eq!(turn.answer().unwrap().text(), "Paid.");
    }

    /// Lets the sender look.
    fn looks(&self) {
        self.clock.advance(LOOK);
    }

    /// Stops the server, lets it send what is left, and returns what it told.
    async fn ends(self) -> Vec<String> {
        self.world.server.stop();
        self.delivering.await.unwrap();
        std::mem::take(&mut *self.told.lock().unwrap())
    }

    async fn counted(&self, result: &str) -> u64 {
        counted(&self.metrics, &self.world.steersman, result).await
    }

    /// Waits until all cursors are at the ends of the logs.
    async fn rests(&self) {
        for hook in self.store.all_webhooks(None, 99).await.unwrap() {
            while !self.store.behind(&hook.id, 1).await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        }
    }
}

/// The number of attempts that a metric counts.
async fn counted(metrics: &Metrics, steersman: &Steersman, result: &str) -> u64 {
    let text = metrics.text(steersman).await.unwrap();
    let line = format!("steersman_webhook_deliveries_total{{result=\"{result}\"}} ");
    let mut lines = text.lines();
    let found = lines.find_map(|text| text.strip_prefix(&line));
    found.map_or(0, |count| count.parse().unwrap())
}

/// Makes a webhook, and returns its name and its secret.
async fn made(all: &Caller<'_>, body: Json) -> (String, String) {
    let made = all.post("/v1/webhooks", body).await.is(201);
    let text = |field: &str| made[field].as_str().unwrap().to_owned();
    (text("name"), text("secret"))
}

async fn listed(all: &Caller<'_>) -> Vec<Json> {
    let list = all.get("/v1/webhooks").await.is(200);
    list["items"].as_array().unwrap().clone()
}

async fn deletes(all: &Caller<'_>, path: &str) -> u16 {
    let deleted = all.request(Method::DELETE, path).send().await.unwrap();
    deleted.status().as_u16()
}

#[tokio::test]
async fn what_happens_is_sent_signed_and_in_order() {
    let mut receiver = Receiver::new().await;
    let options = Options {
        webhooks_may_reach: loopback(),
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), SCRIPT, options).await;
    let server = world.server.clone();
    let delivering = tokio::spawn(async move { server.deliver(|_| {}).await });
    let all = world.all("").await;
    let (_, secret) = made(&all, json!({ "url": receiver.url })).await;
    let session = all.start("My kettle is broken.").await;
    let asked = receiver.takes("question.asked").await;
    let question = all.question(&session).await;
    let data = asked.data();
    assert_eq!(
        (
            &data["session"],
            &data["question"],
            &data["kind"],
            &data["by"]
        ),
        (
            &json!(session),
            &json!(question),
            &json!("approval"),
            &json!(["manager"])
        )
    );
    assert_eq!(
        (&data["definition"], &data["agent"]),
        (&json!("desk"), &json!("desk"))
    );
    let settled = receiver.takes("session.settled").await;
    assert_eq!(settled.data()["status"], "asks");
    assert_eq!(settled.data()["open"][0]["question"], question);
    let approve = format!("/v1/sessions/{session}/questions/{question}/approve");
    all.post(&approve, json!({ "as": "manager" })).await.is(202);
    let artifact = receiver.takes("artifact.made").await;
    assert_eq!(
        (&artifact.data()["artifact"], &artifact.data()["len"]),
        (&json!("receipt.txt"), &json!(4))
    );
    let answered = receiver.takes("session.settled").await;
    assert_eq!(answered.data()["status"], "answered");
    world.server.stop();
    delivering.await.unwrap();
    receiver.gets_nothing();

    let messages = [asked, settled, artifact, answered];
    let ids: BTreeSet<String> = messages.iter().map(Got::id).collect();
    assert_eq!(ids.len(), messages.len());
    for message in &messages {
        assert_eq!(message.is_signed(&secret), (true, 1));
        let start = format!("{session}-");
        assert!(message.id().starts_with(&start) && !message.id().contains('.'));
        assert_eq!(message.field("content-type"), "application/json");
        assert!(message.json()["timestamp"].as_str().unwrap().ends_with('Z'));
        // A message says what happened, and not what was said.
        assert!(!message.body.contains("kettle") && !message.body.contains("Paid"));
        assert!(message.body.len() < 20_000);
    }
    let lines: Vec<u64> = messages
        .iter()
        .map(|message| {
            let cursor = message.data()["cursor"].as_str().unwrap().to_owned();
            cursor.split('.').next().unwrap().parse().unwrap()
        })
        .collect();
    assert!(lines.is_sorted(), "{lines:?}");
}

#[tokio::test]
async fn a_webhook_is_told_what_happens_from_its_making_on() {
    let mut receiver = Receiver::new().await;
    let desk = Desk::new().await;
    let old = desk.asks("").await;
    let older = desk.asks("").await;
    desk.clock.advance(1_000);
    let all = desk.world.all("").await;
    made(&all, json!({ "url": receiver.url })).await;
    desk.clock.advance(1_000);
    desk.approved(&old).await;
    desk.looks();
    let artifact = receiver.takes("artifact.made").await;
    assert_eq!(artifact.data()["session"], old.id());
    let answered = receiver.takes("session.settled").await;
    assert_eq!(answered.data()["status"], "answered");
    let store = desk.store.clone();
    let (metrics, steersman) = (desk.metrics.clone(), desk.world.steersman.clone());
    assert_eq!(desk.ends().await, [""; 0]);
    receiver.gets_nothing();
    assert_eq!(counted(&metrics, &steersman, "delivered").await, 2);
    // Messages that were there before count as delivered.
    let hook = store.webhooks("").await.unwrap().remove(0);
    assert_eq!(
        store.behind(&hook.id, 9).await.unwrap().len(),
        0,
        "{}",
        older.id()
    );
}

#[tokio::test]
async fn what_is_not_taken_comes_again_under_the_same_id() {
    let (mut receiver, mut elsewhere) = (Receiver::new().await, Receiver::new().await);
    let desk = Desk::new().await;
    let all = desk.world.all("").await;
    let (_, secret) = made(&all, json!({ "url": receiver.url })).await;
    let _session = desk.asks("").await;
    desk.looks();
    let mut first = receiver.next().await;
    first.answers(500);
    let mut attempts = vec![first];
    for (n, pause) in PAUSES.into_iter().enumerate().take(4) {
        // The failure is told once its pause is known.
        while desk.told.lock().unwrap().len() <= n {
            tokio::task::yield_now().await;
        }
        desk.clock.advance(pause);
        let mut next = receiver.next().await;
        match n {
            // It is slow.
            0 => desk.clock.advance(15_000),
            // It dies.
            1 => {
                let Got { head, body, .. } = &next;
                let kept = (head.clone(), body.clone());
                drop(next);
                assert!(kept.0.contains(&attempts[0].id()) && kept.1 == attempts[0].body);
                continue;
            }
            2 => next.answers_with(302, &format!("location: {}\r\n", elsewhere.url)),
            _ => next.answers(204),
        }
        attempts.push(next);
    }
    let settled = receiver.takes("session.settled").await;
    for attempt in &attempts {
        assert_eq!(
            (attempt.id(), &attempt.body),
            (attempts[0].id(), &attempts[0].body)
        );
        assert_eq!(attempt.is_signed(&secret), (true, 1));
    }
    let times: BTreeSet<&str> = attempts
        .iter()
        .map(|attempt| attempt.field("webhook-timestamp"))
        .collect();
    assert_eq!(times.len(), attempts.len(), "each attempt has its own time");
    assert_ne!(settled.id(), attempts[0].id());
    assert_eq!(desk.counted("failed").await, 3);
    assert_eq!(desk.counted("timeout").await, 1);
    let told = desk.ends().await;
    let whys = [
        "it answers 500",
        "no answer within 15 s",
        "",
        "it answers 302",
    ];
    assert_eq!(told.len(), whys.len(), "{told:?}");
    for (told, why) in told.iter().zip(whys) {
        assert!(told.contains(why), "{told}");
        assert!(
            !told.contains("127.0.0.1"),
            "the address may hold a secret: {told}"
        );
    }
    receiver.gets_nothing();
    elsewhere.gets_nothing();
}

#[tokio::test]
async fn after_the_last_attempt_the_webhook_fails_and_goes_on_where_it_stopped() {
    let mut receiver = Receiver::new().await;
    let desk = Desk::new().await;
    let all = desk.world.all("").await;
    let (name, _) = made(&all, json!({ "url": receiver.url })).await;
    let session = desk.asks("").await;
    desk.looks();
    let mut first = receiver.next().await;
    first.answers(503);
    for (n, pause) in PAUSES.into_iter().enumerate() {
        while desk.told.lock().unwrap().len() <= n {
            tokio::task::yield_now().await;
        }
        desk.clock.advance(pause);
        let mut next = receiver.next().await;
        assert_eq!(next.id(), first.id());
        next.answers(503);
    }
    while desk.told.lock().unwrap().len() <= PAUSES.len() {
        tokio::task::yield_now().await;
    }
    let row = &listed(&all).await[0];
    assert_eq!(
        row["failing"],
        "8 attempts failed; the last: it answers 503"
    );
    // It gets nothing, whatever happens.
    desk.approved(&session).await;
    desk.looks();
    let resumed = all
        .post(&format!("/v1/webhooks/{name}/resume"), json!({}))
        .await;
    resumed.is(204);
    let again = receiver.takes("question.asked").await;
    assert_eq!((again.id(), &again.body), (first.id(), &first.body));
    assert_eq!(
        receiver.takes("session.settled").await.data()["status"],
        "asks"
    );
    receiver.takes("artifact.made").await;
    let last = receiver.takes("session.settled").await;
    assert_eq!(last.data()["status"], "answered");
    assert_eq!(listed(&all).await[0]["failing"], Json::Null);
    desk.ends().await;
    receiver.gets_nothing();
}

#[tokio::test]
async fn an_answer_410_ends_the_webhook() {
    let mut receiver = Receiver::new().await;
    let desk = Desk::new().await;
    let all = desk.world.all("").await;
    made(&all, json!({ "url": receiver.url })).await;
    let _session = desk.asks("").await;
    desk.looks();
    receiver.next().await.answers(410);
    while desk.told.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        listed(&all).await[0]["failing"],
        "the receiver answered 410"
    );
    assert_eq!(desk.counted("gone").await, 1);
    desk.clock.advance(PAUSES[6]);
    desk.ends().await;
    receiver.gets_nothing();
}

#[tokio::test]
async fn a_server_that_ends_before_the_cursor_moved_loses_nothing() {
    let mut receiver = Receiver::new().await;
    let desk = Desk::new().await;
    let all = desk.world.all("").await;
    made(&all, json!({ "url": receiver.url })).await;
    let session = desk.asks("").await;
    desk.looks();
    let mut first = receiver.next().await;
    // The receiver has it, and the server dies before it knows.
    desk.delivering.abort();
    first.answers(200);
    desk.world.steersman.stop().await;
    drop(session);
    let next = Desk::over(desk.store.clone(), desk.clock.clone(), loopback()).await;
    next.looks();
    let again = receiver.takes("question.asked").await;
    assert_eq!((again.id(), &again.body), (first.id(), &first.body));
    let settled = receiver.takes("session.settled").await;
    assert_eq!(settled.data()["status"], "asks");
    next.ends().await;
    receiver.gets_nothing();
}

#[tokio::test]
async fn two_servers_over_one_store_send_everything_under_the_same_ids() {
    let mut receiver = Receiver::new().await;
    let one = Desk::new().await;
    let two = Desk::over(one.store.clone(), one.clock.clone(), loopback()).await;
    let all = one.world.all("").await;
    made(&all, json!({ "url": receiver.url })).await;
    let session = one.asks("").await;
    one.looks();
    // The server that owns the session sends at once; the other one would later.
    let asked = receiver.takes("question.asked").await;
    let settled = receiver.takes("session.settled").await;
    one.rests().await;
    one.clock.advance(20_000);
    // The first server sends nothing any more. After a while the other one does.
    one.delivering.abort();
    one.approved(&session).await;
    one.world.steersman.stop().await;
    two.clock.advance(20_000);
    let artifact = receiver.takes("artifact.made").await;
    let answered = receiver.takes("session.settled").await;
    assert_eq!(answered.data()["status"], "answered");
    let all: Vec<String> = [asked, settled, artifact, answered]
        .iter()
        .map(Got::id)
        .collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 4, "{all:?}");
    let hook = two.store.webhooks("").await.unwrap().remove(0);
    let store = two.store.clone();
    two.ends().await;
    receiver.gets_nothing();
    assert!(store.behind(&hook.id, 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn tenants_are_kept_apart() {
    let (mut acme, mut other) = (Receiver::new().await, Receiver::new().await);
    let desk = Desk::new().await;
    let of_acme = desk.world.all("acme").await;
    let of_other = desk.world.all("other").await;
    let (name, _) = made(&of_acme, json!({ "url": acme.url })).await;
    made(&of_other, json!({ "url": other.url })).await;
    for (receiver, tenant) in [(&mut acme, "acme"), (&mut other, "other")] {
        let session = desk.asks(tenant).await;
        desk.looks();
        for kind in ["question.asked", "session.settled"] {
            let got = receiver.takes(kind).await;
            assert_eq!(got.data()["session"], session.id());
        }
    }
    assert_eq!(listed(&of_other).await.len(), 1);
    for path in ["", "/rotation"] {
        let path = format!("/v1/webhooks/{name}{path}");
        assert_eq!(deletes(&of_other, &path).await, 404, "{path}");
    }
    for act in ["rotation", "resume"] {
        let path = format!("/v1/webhooks/{name}/{act}");
        of_other.post(&path, json!({})).await.fails(404, "webhook");
    }
    assert_eq!(
        deletes(&of_acme, &format!("/v1/webhooks/{name}")).await,
        204
    );
    let _session = desk.asks("acme").await;
    desk.looks();
    assert_eq!(desk.ends().await, [""; 0]);
    acme.gets_nothing();
    other.gets_nothing();
}

#[tokio::test]
async fn only_an_administrator_of_a_whole_tenant_makes_webhooks() {
    let desk = Desk::new().await;
    let body = json!({ "url": "https://desk.example/told" });
    let reader = NewToken {
        allows: vec![Permission::Read, Permission::Write],
        ..whole("")
    };
    let of_ann = NewToken {
        scope: scope("", Some("ann")),
        ..whole("")
    };
    for new in [reader, of_ann] {
        let caller = desk.world.with(desk.world.token(new).await);
        caller.get("/v1/webhooks").await.fails(403, "scope");
        caller
            .post("/v1/webhooks", body.clone())
            .await
            .fails(403, "scope");
    }
    let all = desk.world.all("").await;
    for wrong in [
        json!({}),
        json!({ "url": "desk" }),
        json!({ "url": "https://desk.example", "kinds": ["session.began"] }),
        json!({ "url": "https://desk.example", "where": "status=waits" }),
        json!({ "url": "https://desk.example", "secret": "mine" }),
    ] {
        all.post("/v1/webhooks", wrong).await.fails(400, "body");
    }
    for _ in 0..32 {
        made(&all, body.clone()).await;
    }
    all.post("/v1/webhooks", body).await.fails(413, "too_large");
}

#[tokio::test]
async fn an_address_that_is_not_public_is_not_reached() {
    let mut receiver = Receiver::new().await;
    let clock = Virtual::at(Time(1_796_000_000_000));
    let desk = Desk::over(Arc::new(MemoryStore::new()), clock, Reach::default()).await;
    let all = desk.world.all("").await;
    for url in [
        receiver.url.as_str(),
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://10.0.0.7/",
        "https://169.254.169.254/latest",
        "https://2130706433/",
        "http://desk.example/",
    ] {
        let why = all.post("/v1/webhooks", json!({ "url": url })).await;
        let why = why.fails(400, "body");
        assert!(why.contains("--webhooks-may-reach"), "{why}");
    }
    // A name is resolved when something is sent.
    let port = receiver.url.rsplit(':').next().unwrap();
    let url = format!("https://localhost:{port}");
    made(&all, json!({ "url": url })).await;
    let _session = desk.asks("").await;
    desk.looks();
    while desk.told.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(desk.counted("refused").await, 1);
    let told = desk.ends().await;
    assert!(told[0].contains("not public"), "{told:?}");
    receiver.gets_nothing();
}

#[tokio::test]
async fn two_secrets_sign_until_the_exchange_is_ended() {
    let mut receiver = Receiver::new().await;
    let desk = Desk::new().await;
    let all = desk.world.all("").await;
    let (name, old) = made(&all, json!({ "url": receiver.url })).await;
    let place = format!("/v1/webhooks/{name}/rotation");
    // A secret that got lost is replaced by another one.
    let lost = all.post(&place, json!({})).await.is(201);
    let new = all.post(&place, json!({})).await.is(201);
    let secret = |made: &Json| made["secret"].as_str().unwrap().to_owned();
    let (lost, new) = (secret(&lost), secret(&new));
    let shown = listed(&all).await;
    assert_eq!(shown[0]["secrets"], 2);
    let session = desk.asks("").await;
    desk.looks();
    for kind in ["question.asked", "session.settled"] {
        let got = receiver.takes(kind).await;
        assert_eq!(got.is_signed(&new), (true, 2));
        assert_eq!(got.is_signed(&old), (true, 2));
        assert_eq!(got.is_signed(&lost), (false, 2));
    }
    desk.rests().await;
    assert_eq!(deletes(&all, &place).await, 204);
    desk.looks();
    desk.approved(&session).await;
    desk.looks();
    for kind in ["artifact.made", "session.settled"] {
        let got = receiver.takes(kind).await;
        assert_eq!(got.is_signed(&new), (true, 1));
        assert_eq!(got.is_signed(&old), (false, 1));
    }
    // The store holds them sealed, and no list shows them.
    let hook = desk.store.webhooks("").await.unwrap().remove(0);
    let stored = format!("{hook:?} {shown:?}");
    for secret in [&old, &lost, &new] {
        assert!(!stored.contains(&**secret), "{stored}");
    }
    assert_eq!(desk.ends().await, [""; 0]);
}

#[tokio::test]
async fn a_webhook_gets_the_kinds_and_sessions_that_it_wants() {
    let (mut some, mut none) = (Receiver::new().await, Receiver::new().await);
    let desk = Desk::new().await;
    let all = desk.world.all("").await;
    let kinds = json!({ "url": some.url, "kinds": ["artifact.made"], "where": "definition=desk" });
    made(&all, kinds).await;
    made(
        &all,
        json!({ "url": none.url, "where": "definition=other" }),
    )
    .await;
    let session = desk.asks("").await;
    desk.looks();
    desk.approved(&session).await;
    desk.looks();
    some.takes("artifact.made").await;
    let store = desk.store.clone();
    assert_eq!(desk.ends().await, [""; 0]);
    some.gets_nothing();
    none.gets_nothing();
    for hook in store.webhooks("").await.unwrap() {
        assert!(store.behind(&hook.id, 9).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn what_is_left_is_sent_when_the_server_stops() {
    let mut receiver = Receiver::new().await;
    let desk = Desk::new().await;
    let all = desk.world.all("").await;
    made(&all, json!({ "url": receiver.url })).await;
    // The clock stands, so the server does not look again before it stops.
    let _session = desk.asks("").await;
    let ending = tokio::spawn(desk.ends());
    receiver.takes("question.asked").await;
    receiver.takes("session.settled").await;
    assert_eq!(ending.await.unwrap(), [""; 0]);
    receiver.gets_nothing();
}

const DOUBTS: &str = "
name: bank
tools:
  pay: { native: 1, description: Pays., parameters: {}, effect: unsafe }
agents: { desk: { system: You pay., tools: [pay] } }
entry: desk
";

#[tokio::test]
async fn doubts_and_sessions_that_stop_are_told() {
    let mut receiver = Receiver::new().await;
    let clock = Virtual::at(Time(1_796_000_000_000));
    let setup = Steersman::options().script_all("desk: [ call: { pay: {} } ]");
    let setup = setup.clock(Arc::new(clock.clone()));
    let options = Options {
        webhooks_may_reach: loopback(),
        ..Options::default()
    };
    let store = Arc::new(MemoryStore::new());
    let world = World::of(setup, store.clone(), options).await;
    let server = world.server.clone();
    let delivering = tokio::spawn(async move { server.deliver(|_| {}).await });
    let all = world.all("").await;
    let (name, _) = made(&all, json!({ "url": receiver.url })).await;
    let pay = tool_with("pay", 1, |_: Nothing, _| async move {
        Err::<String, _>(ToolError::unknown("the line broke"))
    });
    let network = Network::from_yaml(DOUBTS).tool(pay).build().unwrap();
    let session = world.steersman.start(&network).await.unwrap();
    let turn = session.ask("Pay.").await.unwrap();
    assert_eq!(turn.questions().len(), 1);
    clock.advance(LOOK);
    let mut came = BTreeSet::new();
    for _ in 0..2 {
        let mut got = receiver.next().await;
        let kind = got.json()["type"].as_str().unwrap().to_owned();
        let data = got.data();
        if kind == "effect.in_doubt" {
            assert_eq!(data["attempt"], 1);
        } else {
            assert_eq!(data["kind"], "doubt");
        }
        came.insert(kind);
        got.answers(200);
    }
    assert_eq!(
        came.into_iter().collect::<Vec<_>>(),
        ["effect.in_doubt", "question.asked"]
    );
    let settled = receiver.takes("session.settled").await;
    assert_eq!(settled.data()["status"], "doubt");
    session
        .cancel(CancelWhat::Session, By::user())
        .await
        .unwrap();
    drop(session.settled().await.unwrap());
    clock.advance(LOOK);
    let stopped = receiver.takes("session.failed").await;
    assert_eq!(stopped.data()["status"], "cancelled");
    world.server.stop();
    delivering.await.unwrap();
    receiver.gets_nothing();
    let id = WebhookId {
        tenant: "".into(),
        name: name.into(),
    };
    assert!(store.behind(&id, 9).await.unwrap().is_empty());
}

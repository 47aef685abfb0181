//! `kill -9` of a server at random moments under 50 clients, each of which starts a session, says things, approves and follows, comes back
//! with its last id, and sends again under the same key what was not answered.
//!
//! In the end each client has exactly the events of the log; everything that was acknowledged is in it once; the shop, which is no part of
//! the server, has each payment once; and a key that is sent again gives the answer of the first time.
//!
//! `STEERSMAN_SERVE_KILLS=200` makes a long campaign; `STEERSMAN_SEED` is as in [`crate::crash`].

use crate::crash::{Random, count};
use crate::killed::{answer, request};
use crate::served::{Served, is_the_log, provider, told};
use crate::world::World;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{self, timeout};

const DESK: &str = r#"
steersman: 1
name: desk
config:
  shop_url: { type: string, env: SHOP_URL, live: true }
tools:
  find_payment:
    description: Looks up whether something was paid.
    parameters: { to: string }
    effect: read
    http: { url: "{{ config.shop_url }}/payments", query: { to: "{{ args.to }}" } }
  pay:
    description: Pays. Amounts are in cents.
    parameters: { to: string, cents: integer }
    effect: unsafe
    approve: { when: args.cents > 1000, by: supervisor }
    http: { method: POST, url: "{{ config.shop_url }}/payments", json: "{{ args }}" }
    on_doubt: { probe: find_payment, args: { to: "{{ args.to }}" }, done: result.found == true, else: ask }
agents:
  supervisor: { person: { role: supervisor } }
  desk: { system: You pay., tools: [pay] }
entry: desk
"#;

/// Number of clients.
const CLIENTS: usize = 50;
/// Maximum number of things that a client says. The script has an answer to each.
const MOST: usize = 2_000;
/// The answer of the desk after a payment.
const DONE: &str = "Done.";
/// Pause before a client sends again.
const AGAIN: Duration = Duration::from_millis(40);
/// Time after the last kill in which each client comes to its end.
const PATIENCE: Duration = Duration::from_mins(4);

/// A shop in the test's own process: it books payments, and knows what it has booked.
struct Shop {
    url: String,
    booked: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Shop {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let booked: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let book = booked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let book = book.clone();
                std::thread::spawn(move || {
                    let (first, body) = request(&stream);
                    if let Some((_, rest)) = first.split_once("?to=") {
                        let to = rest.split(' ').next().unwrap();
                        let found = book.lock().unwrap().contains_key(to);
                        answer(stream, &json!({ "found": found }).to_string());
                    } else if let Ok(payment) = serde_json::from_slice::<Json>(&body) {
                        let to = payment["to"].as_str().unwrap().to_owned();
                        *book.lock().unwrap().entry(to).or_default() += 1;
                        answer(stream, &json!({ "found": true }).to_string());
                    }
                });
            }
        });
        Self { url, booked }
    }
}

/// Something that a client said, under its key.
struct Said {
    text: String,
    key: String,
    /// The first answer.
    answer: Json,
}

/// A client with a token of its own.
struct Talker {
    n: usize,
    at: String,
    token: String,
    http: Client,
    booked: Arc<Mutex<BTreeMap<String, usize>>>,
    session: String,
    /// The events on disk that it was told, with their ids, over all connections.
    seen: Vec<(String, Json)>,
    said: Vec<Said>,
    /// Number of connections that broke, and of requests that were not answered.
    broken: usize,
}

impl Talker {
    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.at));
        request.bearer_auth(&self.token)
    }

    /// Sends a request until it is answered. The server may have carried it out, and died before the answer. Returns the status, the
    /// body, and true if the server says that it is a repetition.
    async fn sends(
        &mut self,
        path: &str,
        key: Option<&str>,
        body: Option<&Json>,
    ) -> (StatusCode, Json, bool) {
        loop {
            let method = if body.is_some() {
                Method::POST
            } else {
                Method::GET
            };
            let mut request = self.request(method, path);
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            if let Some(body) = body {
                request = request.json(body);
            }
            if let Ok(response) = request.send().await {
                let status = response.status();
                let is_replay = response.headers().contains_key("idempotent-replay");
                if !matches!(status.as_u16(), 429 | 503)
                    && let Ok(json) = response.json().await
                {
                    return (status, json, is_replay);
                }
            }
            self.broken += 1;
            time::sleep(AGAIN).await;
        }
    }

    /// Follows the session until it has settled, from its last id, over as many connections as that takes.
    async fn follows(&mut self) {
        loop {
            let path = format!("/v1/sessions/{}/events?until=settled", self.session);
            let mut request = self.request(Method::GET, &path);
            if let Some((last, _)) = self.seen.last() {
                request = request.header("last-event-id", last);
            }
            if let Ok(response) = request.send().await
                && response.status() == 200
                && told(response, usize::MAX, &mut self.seen).await
            {
                return;
            }
            self.broken += 1;
            time::sleep(AGAIN).await;
        }
    }

    /// Number of payments that the desk says are done.
    fn done(&self) -> usize {
        let said = |(_, event): &&(String, Json)| event["event"] == "said" && event["text"] == DONE;
        self.seen.iter().filter(said).count()
    }

    /// Says something, approves what follows from it, and waits until it is done.
    async fn talks(&mut self) {
        let round = self.said.len();
        let text = format!("c{}-{round}", self.n);
        let said = self.says(&text, &text.clone()).await;
        if round == 0 {
            said["session"]
                .as_str()
                .unwrap()
                .clone_into(&mut self.session);
        }
        self.said.push(Said {
            key: text.clone(),
            text,
            answer: said,
        });
        loop {
            self.follows().await;
            if self.done() > round {
                return;
            }
            self.decides().await;
            time::sleep(AGAIN).await;
        }
    }

    /// Says something under a key: the first thing starts the session.
    async fn says(&mut self, text: &str, key: &str) -> Json {
        let (path, body) = self.saying(text);
        let (status, answer, _) = self.sends(&path, Some(key), Some(&body)).await;
        assert!(matches!(status.as_u16(), 201 | 202), "{status}: {answer:#}");
        answer
    }

    fn saying(&self, text: &str) -> (String, Json) {
        if text.ends_with("-0") {
            let body = json!({ "definition": "desk", "message": text });
            return ("/v1/sessions".to_owned(), body);
        }
        let path = format!("/v1/sessions/{}/messages", self.session);
        (path, json!({ "text": text }))
    }

    /// Decides what is asked. A doubt is settled by what the shop has booked.
    async fn decides(&mut self) {
        let path = format!("/v1/sessions/{}/questions", self.session);
        let (status, found, _) = self.sends(&path, None, None).await;
        assert_eq!(status, 200, "{found:#}");
        for question in found["items"].as_array().unwrap() {
            let id = question["id"].as_str().unwrap();
            let to = question["args"]["to"].as_str().unwrap_or_default();
            let booked = self.booked.lock().unwrap().contains_key(to);
            let (act, body) = match question["kind"].as_str().unwrap() {
                "approval" => ("approve", json!({ "as": "supervisor" })),
                "doubt" if booked => {
                    let result = json!({ "found": true });
                    let role = &question["for"][0];
                    (
                        "resolve",
                        json!({ "as": role, "how": "done", "result": result }),
                    )
                }
                "doubt" => {
                    let role = &question["for"][0];
                    ("resolve", json!({ "as": role, "how": "not_performed" }))
                }
                // It goes on by itself.
                _ => continue,
            };
            let path = format!("{path}/{}/{act}", id.replace('@', "%40"));
            let key = format!("{}-{id}", self.n);
            let (status, answer, _) = self.sends(&path, Some(&*key), Some(&body)).await;
            // The process that died before its answer has carried it out, or the probe was faster.
            assert!(
                matches!(status.as_u16(), 202 | 404 | 422),
                "{status}: {answer:#}"
            );
        }
    }

    /// Talks until the kills are over, and at least twice.
    async fn lives(mut self, over: watch::Receiver<bool>) -> Self {
        while self.said.len() < 2 || (self.said.len() < MOST && !*over.borrow()) {
            self.talks().await;
            if self.said.len().is_multiple_of(3) {
                self.repeats(self.said.len() - 1).await;
            }
        }
        for n in 0..self.said.len() {
            self.repeats(n).await;
        }
        self.says_something_else().await;
        self
    }

    /// Sends again what was answered: the answer is the same, and says that it is a repetition.
    async fn repeats(&mut self, n: usize) {
        let (text, key) = (self.said[n].text.clone(), self.said[n].key.clone());
        let (path, body) = self.saying(&text);
        let (status, again, is_replay) = self.sends(&path, Some(&*key), Some(&body)).await;
        let first = &self.said[n].answer;
        assert!(is_replay, "{status}: {again:#}");
        assert_eq!(again["session"], first["session"]);
        assert_eq!(again["message"], first["message"]);
        if !first["line"].is_null() {
            assert_eq!(again["line"], first["line"]);
        }
    }

    /// Something else under a key that was used is refused.
    async fn says_something_else(&mut self) {
        let path = format!("/v1/sessions/{}/messages", self.session);
        let key = self.said[1].key.clone();
        let body = json!({ "text": "Something else." });
        let (status, answer, _) = self.sends(&path, Some(&*key), Some(&body)).await;
        assert_eq!(
            (status.as_u16(), &answer["code"]),
            (409, &json!("repeated")),
            "{answer:#}"
        );
    }

    /// Checks what the client was told, and what it said, against the log of the store.
    fn is_right(&self, world: &World) {
        let ids: BTreeSet<&String> = self.seen.iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), self.seen.len(), "an event came twice");
        let told: Vec<&Json> = self.seen.iter().map(|(_, event)| event).collect();
        let log = is_the_log(world, &self.session, &told);
        let heard = log.iter().filter(|event| event["event"] == "heard");
        let heard: Vec<&str> = heard.map(|event| event["text"].as_str().unwrap()).collect();
        let said: Vec<&str> = self.said.iter().map(|said| &*said.text).collect();
        assert_eq!(heard, said, "each acknowledged message is in the log, once");
    }
}

/// A token for each client, so that the limits of one token are those of one client.
async fn tokens(served: &Served) -> Vec<String> {
    let http = Client::builder().no_proxy().build().unwrap();
    let mut tokens = Vec::with_capacity(CLIENTS);
    let new = json!({ "allows": ["read", "write", "decide"], "roles": ["user", "supervisor"] });
    for _ in 0..CLIENTS {
        let request = http.post(format!("{}/v1/tokens", served.at)).json(&new);
        let made = request.bearer_auth(served.token()).send().await.unwrap();
        let made: Json = made.json().await.unwrap();
        tokens.push(made["token"].as_str().unwrap().to_owned());
    }
    tokens
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_a_server_that_is_killed_miss_nothing_and_do_nothing_twice() {
    provider();
    let shop = Shop::open();
    let mut world = World::new();
    world.set("SHOP_URL", &shop.url);
    world.write("steersman.yaml", DESK);
    let pair = format!(
        "  - call: {{ pay: {{ to: \"{{{{ request.last }}}}\", cents: 15000 }} }}\n  - {DONE}\n"
    );
    world.write("script.yaml", &format!("desk:\n{}", pair.repeat(MOST)));
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = free.local_addr().unwrap().to_string();
    drop(free);
    let mut served = Served::listening(&world, &listen);
    let (over, waits) = watch::channel(false);
    let mut talkers = Vec::with_capacity(CLIENTS);
    for (n, token) in tokens(&served).await.into_iter().enumerate() {
        let talker = Talker {
            n,
            at: served.at.clone(),
            token,
            http: Client::builder().no_proxy().build().unwrap(),
            booked: shop.booked.clone(),
            session: String::new(),
            seen: Vec::new(),
            said: Vec::new(),
            broken: 0,
        };
        talkers.push(tokio::spawn(talker.lives(waits.clone())));
    }
    let (mut random, kills) = (Random::seeded(), count("STEERSMAN_SERVE_KILLS", 4));
    for _ in 0..kills {
        time::sleep(Duration::from_millis(50 + random.below(700))).await;
        served.kill();
        served = Served::listening(&world, &listen);
    }
    over.send_replace(true);
    let mut all = Vec::with_capacity(CLIENTS);
    for talker in talkers {
        let lived = timeout(PATIENCE, talker).await;
        all.push(lived.expect("a client does not come to its end").unwrap());
    }
    served.stops();
    for talker in &all {
        talker.is_right(&world);
    }
    let said: BTreeSet<&String> = all
        .iter()
        .flat_map(|t| t.said.iter().map(|s| &s.text))
        .collect();
    let booked = shop.booked.lock().unwrap().clone();
    assert_eq!(booked.keys().collect::<BTreeSet<_>>(), said);
    let twice: Vec<_> = booked.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "paid twice: {twice:?}");
    let broken: usize = all.iter().map(|talker| talker.broken).sum();
    let events: usize = all.iter().map(|talker| talker.seen.len()).sum();
    println!(
        "{kills} kills, {CLIENTS} clients: {} messages and as many payments, {events} events, {broken} connections and requests that broke",
        said.len()
    );
}

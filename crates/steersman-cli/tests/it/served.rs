//! `serve` and `token`: the built program as a server in a process of its own, which is killed and started again.

use crate::docs::{Block, blocks};
use crate::world::{self, World};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

const DESK: &str = "
steersman: 1
name: desk
agents: { desk: { system: You answer. } }
entry: desk
";

/// A server in a process of its own.
pub(crate) struct Served {
    child: Child,
    pub(crate) at: String,
    /// The address of its metrics, if they are shown.
    pub(crate) metrics: Option<String>,
    token: String,
    client: Client,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Served {
    pub(crate) fn start(world: &World) -> Self {
        Self::listening(world, "127.0.0.1:0")
    }

    pub(crate) fn listening(world: &World, listen: &str) -> Self {
        Self::with(
            world,
            &["--quiet", "--listen", listen, "--script-all", "script.yaml"],
        )
    }

    /// Starts a server with these arguments. The file `errors.txt` has what it says on standard error.
    pub(crate) fn with(world: &World, args: &[&str]) -> Self {
        let errors = world.folder.join("errors.txt");
        let into = File::options().create(true).append(true).open(&errors);
        let mut command = world.command(&[&["serve", "--json"][..], args].concat());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(into.unwrap())
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut first)
            .unwrap();
        let Ok(first) = serde_json::from_str::<Json>(&first) else {
            let why = std::fs::read_to_string(errors).unwrap();
            panic!("it does not serve: {why}");
        };
        assert_eq!(first["status"], "serving");
        let file = world.folder.join(".steersman/server.token");
        Self {
            child,
            at: first["address"].as_str().unwrap().to_owned(),
            metrics: first["metrics"].as_str().map(str::to_owned),
            token: std::fs::read_to_string(file).unwrap().trim().to_owned(),
            client: Client::builder().no_proxy().build().unwrap(),
        }
    }

    /// Kills the process without a warning.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The token that may do everything.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.at));
        request.bearer_auth(&self.token)
    }

    pub(crate) async fn json(
        &self,
        method: Method,
        path: &str,
        body: Option<Json>,
    ) -> (StatusCode, Json) {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        (status, response.json().await.unwrap())
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets the process end in order.
    pub(crate) fn stops(&mut self) {
        self.signal(rustix::process::Signal::TERM);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

pub(crate) fn provider() {
    drop(rustls::crypto::ring::default_provider().install_default());
}

fn world(script: &str) -> World {
    provider();
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", script);
    world
}

/// Reads a stream until `most` events on disk have come, or it breaks. Adds them to `into`.
async fn follow(served: &Served, path: &str, most: usize, into: &mut Vec<(String, Json)>) {
    let mut request = served.request(Method::GET, path);
    if let Some((last, _)) = into.last() {
        request = request.header("last-event-id", last);
    }
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    told(response, most, into).await;
}

/// Reads a stream until `most` events on disk have come, the session has settled, or it breaks. Adds the events with their ids. Returns true
/// if the session has settled.
pub(crate) async fn told(
    mut response: Response,
    most: usize,
    into: &mut Vec<(String, Json)>,
) -> bool {
    let (mut text, mut count) = (String::new(), 0);
    while count < most {
        let Ok(Some(chunk)) = response.chunk().await else {
            return false;
        };
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        while let Some(end) = text.find("\n\n") {
            let frame = text[..end].to_owned();
            text.drain(..end + 2);
            let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
            if let (Some(id), Some(data)) = (field("id: "), field("data: ")) {
                into.push((id.to_owned(), serde_json::from_str(data).unwrap()));
                count += 1;
            }
            if field("event: ") == Some("settled") {
                return true;
            }
        }
    }
    false
}

/// Checks that the events on disk that a client was told are those of the log, in the same order: no one is missing, none came twice.
/// Returns those of the log.
#[track_caller]
pub(crate) fn is_the_log(world: &World, session: &str, told: &[&Json]) -> Vec<Json> {
    let log = world.run(&["log", session, "--json"]);
    assert_eq!(log.code, Some(0), "{}", log.err);
    let log: Vec<Json> = (log.out.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let both = told.len().min(log.len());
    for (told, logged) in told.iter().zip(&log) {
        assert_eq!(*told, logged);
    }
    // A process that looks into the session once more is an event of its own.
    let looked = |event: &Json| event["event"] == "owner";
    assert!(
        told[both..].iter().all(|event| looked(event)),
        "{:?}",
        &told[both..]
    );
    assert!(log[both..].iter().all(looked), "{:?}", &log[both..]);
    log
}

#[tokio::test]
async fn a_client_comes_back_after_a_kill_and_misses_nothing() {
    let world = world("desk: [ One two three., Four., Five., Six., Seven., Eight. ]");
    let mut served = Served::start(&world);
    let start = Some(json!({ "definition": "desk", "message": "Hello." }));
    let (status, started) = served.json(Method::POST, "/v1/sessions", start).await;
    assert_eq!(status, 201, "{started}");
    let session = started["session"].as_str().unwrap().to_owned();
    let place = format!("/v1/sessions/{session}");
    let stream = format!("{place}/events?until=settled");
    let mut seen: Vec<(String, Json)> = Vec::new();
    for round in 0..5_usize {
        // The process dies after some events, before or after it has answered.
        follow(&served, &stream, 3 + 2 * round, &mut seen).await;
        let said = json!({ "text": format!("More {round}.") });
        let key = format!("round-{round}");
        let say = |served: &Served| {
            let request = served.request(Method::POST, &format!("{place}/messages"));
            request.header("idempotency-key", &key).json(&said).send()
        };
        let said_before = round % 2 == 0;
        if said_before {
            assert_eq!(say(&served).await.unwrap().status(), 202);
        }
        served.kill();
        served = Served::start(&world);
        // The client does not know if its message arrived, and sends it again.
        let again = say(&served).await.unwrap();
        assert_eq!(again.status(), 202);
        assert_eq!(
            again.headers().contains_key("idempotent-replay"),
            said_before
        );
    }
    // From here on nobody dies: the session takes all that was said.
    loop {
        follow(&served, &stream, usize::MAX, &mut seen).await;
        let heard = seen
            .iter()
            .filter(|(_, data)| data["event"] == "heard")
            .count();
        if heard == 6 {
            break;
        }
    }
    let mut whole = Vec::new();
    follow(&served, &stream, usize::MAX, &mut whole).await;
    follow(&served, &stream, usize::MAX, &mut seen).await;
    // Between both the server may look into the session once more, which is an event of its own.
    let both = seen.len().min(whole.len());
    assert_eq!(seen[..both], whole[..both]);
    let looked = |(_, data): &(String, Json)| data["event"] == "owner";
    assert!(seen[both..].iter().all(looked), "{seen:?}");
    assert!(whole[both..].iter().all(looked), "{whole:?}");
    let heard = whole.iter().filter(|(_, data)| data["event"] == "heard");
    let heard: Vec<&str> = heard
        .map(|(_, data)| data["text"].as_str().unwrap())
        .collect();
    assert_eq!(
        heard,
        [
            "Hello.", "More 0.", "More 1.", "More 2.", "More 3.", "More 4."
        ]
    );
}

#[tokio::test]
async fn signals_stop_it_in_order_and_read_definitions_again() {
    use rustix::process::Signal;
    let world = world("desk: [ One. ]");
    let mut served = Served::start(&world);
    let token = world.folder.join(".steersman/server.token");
    let mode = std::fs::metadata(&token).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    world.write(
        "steersman.yaml",
        &DESK.replace("You answer.", "You answer in verse."),
    );
    let (_, before) = served.json(Method::GET, "/v1/definitions/desk", None).await;
    served.signal(Signal::HUP);
    loop {
        let (_, now) = served.json(Method::GET, "/v1/definitions/desk", None).await;
        if now["digest"] != before["digest"] {
            break;
        }
    }
    // A faulty file changes nothing.
    world.write("steersman.yaml", "steersman: 1\nname: desk\n");
    served.signal(Signal::HUP);
    let (status, _) = served.json(Method::GET, "/v1/definitions/desk", None).await;
    assert_eq!(status, 200);
    let stream = served
        .request(Method::GET, "/v1/sessions")
        .send()
        .await
        .unwrap();
    assert_eq!(stream.status(), 200);
    served.stops();
}

#[tokio::test]
async fn tokens_are_made_listed_and_revoked() {
    let world = world("desk: [ One. ]");
    let served = Served::start(&world);
    let new = [
        "token", "new", "--allow", "read", "--tenant", "acme", "--role", "manager",
    ];
    let (code, made) = world.json(&new);
    assert_eq!(code, Some(0));
    let me = served
        .client
        .get(format!("{}/v1/me", served.at))
        .bearer_auth(made["token"].as_str().unwrap());
    let me: Json = me.send().await.unwrap().json().await.unwrap();
    assert_eq!(
        (&me["tenant"], &me["allows"], &me["roles"]),
        (&json!("acme"), &json!(["read"]), &json!(["manager"]))
    );
    let listed = world.run(&["token", "list", "--tenant", "acme"]);
    assert!(
        listed.out.contains(made["name"].as_str().unwrap()),
        "{}",
        listed.out
    );
    assert!(!listed.out.contains(made["token"].as_str().unwrap()));
    let name = made["name"].as_str().unwrap();
    assert_eq!(
        world.run(&["token", "revoke", name]).code,
        Some(2),
        "it is of a tenant"
    );
    assert_eq!(
        world
            .run(&["token", "revoke", name, "--tenant", "acme"])
            .code,
        Some(0)
    );
    let gone = served
        .client
        .get(format!("{}/v1/me", served.at))
        .bearer_auth(made["token"].as_str().unwrap());
    assert_eq!(gone.send().await.unwrap().status(), 401);
    let wrong = world.run(&["token", "new", "--allow", "fly"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.err.contains("`fly` is no permission"),
        "{}",
        wrong.err
    );
}

#[test]
fn a_public_address_needs_a_name_and_a_faulty_definition_is_not_served() {
    let world = world("desk: [ One. ]");
    let open = world.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(open.code, Some(2));
    assert!(open.err.contains("--host"), "{}", open.err);
    let reach = world.run(&["serve", "--webhooks-may-reach", "10.1"]);
    assert_eq!(reach.code, Some(2));
    assert!(reach.err.contains("10.1.0.0/16"), "{}", reach.err);
    world.write("steersman.yaml", "steersman: 1\nname: desk\n");
    assert_eq!(
        world.run(&["serve", "--listen", "127.0.0.1:0"]).code,
        Some(3)
    );
}

#[tokio::test]
async fn a_page_is_unchanged_until_any_process_changes_its_session() {
    let world = world("desk: [ One., Two., Three. ]");
    let served = Served::start(&world);
    let start = Some(json!({ "definition": "desk", "message": "Hello." }));
    let (_, started) = served.json(Method::POST, "/v1/sessions", start).await;
    let session = started["session"].as_str().unwrap();
    let place = format!("/v1/sessions/{session}");
    let stream = format!("{place}/events?until=settled");
    let get = async |tag: &str| {
        let request = served.request(Method::GET, &place);
        let answer = request.header("if-none-match", tag).send().await.unwrap();
        let tag = answer.headers()["etag"].to_str().unwrap().to_owned();
        (answer.status().as_u16(), tag)
    };
    let mut known = String::new();
    for said in ["More.", "And more."] {
        follow(&served, &stream, usize::MAX, &mut Vec::new()).await;
        let mut unchanged = 0;
        while unchanged < 3 {
            let (status, tag) = get(&known).await;
            unchanged = if status == 304 { unchanged + 1 } else { 0 };
            known = tag;
        }
        // Another process puts the message into the inbox.
        let sent = world.run(&["send", session, said]);
        assert_eq!(sent.code, Some(0), "{sent:?}");
        follow(&served, &stream, usize::MAX, &mut Vec::new()).await;
        let (status, tag) = get(&known).await;
        assert_eq!(status, 200, "{known} and {tag}");
    }
}

#[test]
fn a_script_is_checked_against_all_definitions_before_anything_is_served() {
    let world = World::new();
    world.write(
        "a.yaml",
        "name: a\nagents: { ann: { system: You help. } }\n",
    );
    world.write(
        "b.yaml",
        "name: b\nagents: { ben: { system: You help. } }\n",
    );
    let args = ["a.yaml", "b.yaml", "--script-all", "script.yaml"];
    let serve = |script: &str| {
        world.write("script.yaml", script);
        world.run(
            &[
                &["serve", "--listen", "192.0.2.1:0", "--host", "x"],
                &args[..],
            ]
            .concat(),
        )
    };
    let ran = serve("ann: [ One. ]\nbenn: [ Two. ]\n");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("the script answers for `benn`"), "{ran:?}");
    let ran = serve("ann: [ { fails: now } ]\n");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("answer 1"), "{ran:?}");
    // This script is right, so the first fault is the address, which is not one of this computer.
    let ran = serve("ann: [ One. ]\nben: [ Two. ]\n");
    assert!(ran.err.contains("192.0.2.1"), "{ran:?}");
}

/// A request of the guide: method and path, headers, body.
fn request(text: &str) -> (Method, String, Vec<(String, String)>, Option<Json>) {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, path) = lines.next().unwrap().split_once(' ').unwrap();
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_owned(), value.to_owned())
    });
    let body = (!body.trim().is_empty()).then(|| serde_json::from_str(body).unwrap());
    (
        method.parse().unwrap(),
        path.to_owned(),
        headers.collect(),
        body,
    )
}

/// Returns true if an answer has at least what the guide shows. `..` stands for any value.
fn shows(shown: &Json, real: &Json) -> bool {
    match (shown, real) {
        (Json::String(any), _) if any == ".." => !real.is_null(),
        (Json::Object(shown), Json::Object(real)) => shown
            .iter()
            .all(|(name, shown)| real.get(name).is_some_and(|real| shows(shown, real))),
        (Json::Array(shown), Json::Array(real)) => {
            shown.len() == real.len()
                && shown
                    .iter()
                    .zip(real)
                    .all(|(shown, real)| shows(shown, real))
        }
        (shown, real) => shown == real,
    }
}

/// The names for which a guide to serving has a word in capitals, and where an answer tells their values.
const TOLD: [(&str, &[&str]); 5] = [
    ("SESSION", &["/session"]),
    (
        "QUESTION",
        &[
            "/items/0/id",
            "/result/task/status/message/parts/1/data/question",
        ],
    ),
    ("TASK", &["/result/task/id"]),
    ("JOB", &["/job"]),
    ("CONTEXT", &["/result/task/contextId"]),
];

/// Sends the requests of a guide, and compares the answers with what it shows. Returns its blocks, and the number of requests.
async fn plays(page: &str, world: &World) -> (Served, Vec<Block>, usize) {
    provider();
    let guide = std::fs::read_to_string(world::root().join("docs/guides").join(page)).unwrap();
    let all = blocks(&guide);
    for block in all.iter().filter(|block| block.fence == "yaml") {
        world.write(block.file.as_ref().unwrap(), &block.text);
    }
    let served = Served::start(world);
    let (mut told, mut asked) = (BTreeMap::<&str, String>::new(), 0);
    for pair in all.windows(2).filter(|pair| pair[0].fence == "http") {
        let mut text = pair[0].text.clone();
        for (name, value) in &told {
            text = text.replace(name, value);
        }
        let (method, path, headers, body) = request(&text);
        let mut sent = served.request(method, &path);
        for (name, value) in headers {
            sent = sent.header(name, value);
        }
        if let Some(body) = body {
            sent = sent.json(&body);
        }
        let answer: Json = sent.send().await.unwrap().json().await.unwrap();
        let shown: Json = serde_json::from_str(&pair[1].text).unwrap();
        assert!(
            shows(&shown, &answer),
            "{path}: {answer:#}\ninstead of\n{shown:#}"
        );
        for (name, places) in TOLD {
            let mut values = places
                .iter()
                .filter_map(|place| answer.pointer(place)?.as_str());
            if let Some(value) = values.next() {
                told.insert(name, value.to_owned());
            }
        }
        asked += 1;
    }
    (served, all, asked)
}

#[tokio::test]
async fn the_guide_to_agents_is_true() {
    let world = World::new();
    let (_served, _, asked) = plays("serving-a2a.md", &world).await;
    assert_eq!(asked, 4);
}

#[tokio::test]
async fn the_guide_to_operating_over_http_is_true() {
    let world = World::new();
    let (_served, _, asked) = plays("serving-operating.md", &world).await;
    assert_eq!(asked, 7);
}

#[tokio::test]
async fn the_guide_to_serving_is_true() {
    let world = World::new();
    let (served, all, asked) = plays("serving.md", &world).await;
    assert_eq!(asked, 6);
    for block in all.iter().filter(|block| block.fence == "sh") {
        for line in block
            .text
            .lines()
            .filter(|line| !line.starts_with("steersman serve"))
        {
            let ran = world.shell(&line.replace("http://127.0.0.1:7410", &served.at));
            assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
        }
    }
}

/// Clients cannot set what the definition reads from the environment of the server.
#[tokio::test]
async fn a_value_that_is_missing_is_told_when_the_server_starts() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "steersman: 1\nname: shop\nconfig: { shop: { type: string, env: SHOP_URL } }\nagents: { desk: { system: \"{{ config.shop }}\" } }\n",
    );
    world.write("script.yaml", "desk: [ Yes. ]");
    let mut served = Served::start(&world);
    served.stops();
    let errors = std::fs::read_to_string(world.folder.join("errors.txt")).unwrap();
    let told = "no session of `shop` can begin, because `config.shop` has no value: set SHOP_URL";
    assert!(errors.contains(told), "{errors}");
}

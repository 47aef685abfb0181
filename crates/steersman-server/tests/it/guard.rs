//! Requests that are refused before anything is done: a status, a code, and a sentence that says what to do.

use crate::world::{Answer, World, desk, whole};
use reqwest::Method;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steersman::machine::stored::ids::Time;
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::{Limits, NewToken, Options};

#[tokio::test]
async fn a_request_names_a_valid_token() {
    let limits = Limits {
        failures: 1_000,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), "desk: [ One. ]", options).await;
    let get = |token: Option<&str>| {
        let request = world.client.get(format!("{}/v1/me", world.at));
        match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    };
    let none = Answer::of(get(None)).await;
    assert_eq!(none.headers["www-authenticate"], "Bearer");
    none.fails(401, "token");
    let all = world.all("").await;
    let me = Answer::of(get(Some(&all.token))).await.is(200);
    assert!(all.token.contains(me["name"].as_str().unwrap()));
    let mut wrong = all.token.clone();
    wrong.pop();
    for text in [
        &*wrong,
        &format!("{wrong}0"),
        &format!("{wrong}1"),
        "stm_",
        "",
    ] {
        if text != all.token {
            Answer::of(get(Some(text))).await.fails(401, "token");
        }
    }
    let over = world
        .token(NewToken {
            expires: Some(Time(1)),
            ..whole("")
        })
        .await;
    Answer::of(get(Some(&over))).await.fails(401, "token");
    let gone = world.token(whole("")).await;
    let name = gone.split('_').nth(1).unwrap();
    let revoke = all.request(Method::DELETE, &format!("/v1/tokens/{name}"));
    assert_eq!(Answer::of(revoke).await.status, 204);
    Answer::of(get(Some(&gone))).await.fails(401, "token");
    // Its use is recorded by the hour.
    let listed = all.get("/v1/tokens").await.is(200);
    let own = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == me["name"]);
    assert!(own.unwrap()["used"].is_string(), "{listed:#}");
    assert!(
        !listed.to_string().contains(&all.token[13..]),
        "no secret is listed"
    );
}

#[tokio::test]
async fn an_address_that_guesses_tokens_is_slowed_down() {
    let world = World::new("desk: [ One. ]").await;
    let guess = || {
        Answer::of(
            world
                .client
                .get(format!("{}/v1/me", world.at))
                .bearer_auth("stm_guess"),
        )
    };
    for _ in 0..5 {
        guess().await.fails(401, "token");
    }
    let slowed = guess().await;
    assert_eq!(slowed.headers["retry-after"], "1");
    slowed.fails(429, "rate");
}

#[tokio::test]
async fn a_token_has_a_rate() {
    let limits = Limits {
        rate: 0,
        burst: 2,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), "desk: [ One. ]", options).await;
    let all = world.all("").await;
    all.get("/v1/me").await.is(200);
    all.get("/v1/me").await.is(200);
    all.get("/v1/me").await.fails(429, "rate");
}

#[tokio::test]
async fn hosts_and_origins_are_checked() {
    let options = Options {
        hosts: vec!["desk.example".to_owned()],
        origins: vec!["https://front.example".to_owned()],
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), "desk: [ One. ]", options).await;
    let all = world.all("").await;
    let with = |name: &'static str, value: &'static str| {
        Answer::of(all.request(Method::GET, "/v1/me").header(name, value))
    };
    with("host", "desk.example:443").await.is(200);
    with("host", "localhost").await.is(200);
    with("host", "evil.example").await.fails(403, "host");
    with("host", "127.0.0.1.evil.example")
        .await
        .fails(403, "host");
    with("origin", "https://evil.example")
        .await
        .fails(403, "origin");
    with("origin", "null").await.fails(403, "origin");
    // A page of this server, and one of another server on this computer.
    let own = all
        .request(Method::GET, "/v1/me")
        .header("origin", &world.at);
    Answer::of(own).await.is(200);
    with("origin", "http://127.0.0.1:9")
        .await
        .fails(403, "origin");
    let behind_a_proxy = (all
        .request(Method::GET, "/v1/me")
        .header("host", "desk.example"))
    .header("origin", "https://desk.example");
    Answer::of(behind_a_proxy).await.is(200);
    let read = with("origin", "https://front.example").await;
    assert_eq!(
        read.headers["access-control-allow-origin"],
        "https://front.example"
    );
    assert!(
        !read
            .headers
            .contains_key("access-control-allow-credentials")
    );
    read.is(200);
    let asks = world
        .client
        .request(Method::OPTIONS, format!("{}/v1/sessions", world.at));
    let asks = Answer::of(asks.header("origin", "https://front.example")).await;
    assert_eq!(asks.status, 204);
    assert!(
        asks.headers["access-control-allow-headers"]
            .to_str()
            .unwrap()
            .contains("authorization")
    );
}

#[tokio::test]
async fn bodies_and_queries_that_do_not_fit_are_refused_with_a_sentence() {
    let limits = Limits {
        body: 1_000,
        files: 3_000,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), "desk: [ One. ]", options).await;
    let all = world.all("").await;
    let send = |path: &str, media: &str, body: String| {
        let request = all
            .request(Method::POST, path)
            .header("content-type", media);
        Answer::of(request.body(body))
    };
    let json = "application/json";
    let why = send("/v1/sessions", json, "{".into())
        .await
        .fails(400, "body");
    assert!(why.contains("EOF"), "{why}");
    let why = send(
        "/v1/sessions",
        json,
        r#"{"definition":"desk","x":1}"#.into(),
    )
    .await
    .fails(400, "body");
    assert!(why.contains("unknown field `x`"), "{why}");
    send("/v1/sessions", "text/plain", "{}".into())
        .await
        .fails(415, "media");
    send("/v1/sessions", json, "x".repeat(4_000))
        .await
        .fails(413, "too_large");
    send("/v1/tokens", json, "x".repeat(2_000))
        .await
        .fails(413, "too_large");
    // A body without a declared length is cut off at the limit, too.
    let chunks = futures::stream::iter((0..9).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 500])));
    let body = reqwest::Body::wrap_stream(chunks);
    let request = all
        .request(Method::POST, "/v1/sessions")
        .header("content-type", json);
    Answer::of(request.body(body)).await.fails(413, "too_large");

    all.get("/v1/sessions?limit=0").await.fails(400, "query");
    all.get("/v1/sessions?limit=x").await.fails(400, "query");
    all.get("/v1/sessions?unknown=1").await.fails(400, "query");
    all.get("/v1/sessions?after=x").await.fails(400, "query");
    all.get("/v1/nothing").await.fails(404, "path");
    all.post("/v1/me", json!({})).await.fails(405, "method");
    let session = all.start("Hello.").await;
    let place = format!("/v1/sessions/{session}");
    all.get(&format!("{place}/why/x")).await.fails(400, "id");
    all.get(&format!("{place}/lines/x")).await.fails(400, "id");
    all.post(&format!("{place}/questions/x/approve"), json!({}))
        .await
        .fails(400, "id");
    all.get(&format!("{place}/artifacts/..%2f..%2fetc%2fpasswd"))
        .await
        .fails(404, "artifact");
    all.post(&format!("{place}/messages"), json!({ "text": "" }))
        .await
        .fails(400, "body");
}

#[tokio::test]
async fn the_log_of_requests_has_no_texts() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let into = told.clone();
    let options = Options {
        log: Some(Arc::new(move |line| {
            into.lock().unwrap().push(line.clone());
        })),
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), "desk: [ One. ]", options).await;
    let all = world.all("").await;
    let session = all.start("My secret complaint.").await;
    let token = all.get("/v1/me").await.is(200)["name"].clone();
    let page = all
        .get(&format!("/v1/sessions/{session}?branch=nothing"))
        .await;
    let id = page.headers["x-request-id"].to_str().unwrap().to_owned();
    page.fails(404, "branch");
    let nobody = world.client.get(format!("{}/livez", world.at));
    Answer::of(nobody).await.is(200);
    let mut told = told.lock().unwrap().clone();
    assert_eq!(told.pop().unwrap()["token"], json!(null));
    let last = told.last().unwrap();
    assert_eq!(last["request"], id);
    assert_eq!(last["token"], token);
    assert_eq!(last["route"], "/v1/sessions/{session}");
    assert_eq!(
        (&last["status"], &last["code"]),
        (&json!(404), &json!("branch"))
    );
    let text = serde_json::to_string(&told).unwrap();
    assert!(
        !text.contains("complaint") && !text.contains(&session) && !text.contains("nothing"),
        "{text}"
    );
}

#[tokio::test]
async fn health_needs_no_token_and_says_when_the_server_stops() {
    let world = World::new("desk: [ One. ]").await;
    let get = |path: &str| Answer::of(world.client.get(format!("{}{path}", world.at)));
    get("/livez").await.is(200);
    // Driving begins in a task of its own.
    while get("/readyz").await.status == 503 {
        tokio::task::yield_now().await;
    }
    get("/readyz").await.is(200);
    assert_eq!(get("/v1/openapi.json").await.is(200)["openapi"], "3.1.0");
    // The program has the listener, so the routes still answer after the server was stopped.
    let embedded = steersman_server::Server::new(world.steersman.clone(), Options::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let app = embedded.router();
    tokio::spawn(async move { axum::serve(listener, app).await });
    let ready = || Answer::of(world.client.get(format!("{at}/readyz")));
    ready().await.fails(503, "store");
    embedded.stop();
    ready().await.fails(503, "stopping");
}

#[tokio::test]
async fn definitions_are_replaced_while_the_server_runs() {
    let world = World::new("desk: [ One. ]").await;
    let all = world.all("").await;
    let found = all.get("/v1/definitions/desk").await.is(200);
    assert_eq!(found["entries"][0]["name"], "desk");
    assert_eq!(
        found["events"][0]["fields"]["properties"]["order"]["type"],
        "string"
    );
    world.server.define(Vec::new());
    all.get("/v1/definitions/desk")
        .await
        .fails(404, "definition");
    world.server.define(vec![desk()]);
    all.get("/v1/definitions/desk/graph").await.is(200);
}

#[tokio::test]
async fn a_slow_request_head_is_cut_off() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let limits = Limits {
        head: Duration::from_millis(50),
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), "desk: [ One. ]", options).await;
    let mut slow = tokio::net::TcpStream::connect(world.at.trim_start_matches("http://"))
        .await
        .unwrap();
    slow.write_all(b"GET /livez HTTP/1.1\r\nhost: loc")
        .await
        .unwrap();
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).await.unwrap();
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
}

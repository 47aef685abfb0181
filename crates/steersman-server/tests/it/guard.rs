//! Requests that are refused before anything is done: a status, a code, and a sentence that says what to do.

use crate::world::{Answer, World, desk, unlimited, whole};
use reqwest::Method;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steersman::Network;
use steersman::machine::stored::ids::Time;
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::{Limits, NewToken, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

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
    // Behind a proxy everybody has one address, so a valid token is answered all the same.
    world.all("").await.get("/v1/me").await.is(200);
}

#[tokio::test]
async fn a_token_has_few_requests_with_large_bodies_at_once() {
    let limits = Limits {
        body: 1_000,
        large_each: 1,
        ..unlimited()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), "desk: [ One. ]", options).await;
    let all = world.all("").await;
    // A client that declares a large body and sends the half of it.
    let mut slow = connected(&world).await;
    let head = format!(
        "POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 2000\r\n\r\n{{",
        all.token
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    let large = json!({ "definition": "desk", "message": "x".repeat(1_500) });
    let send = || all.post("/v1/sessions", large.clone());
    // The server reads both connections in tasks of their own.
    let mut refused = send().await;
    while refused.status == 201 {
        refused = send().await;
    }
    let why = refused.fails(429, "rate");
    assert!(why.contains("longer than 1000 bytes"), "{why}");
    // Others, and small bodies, go on.
    let other = world.all("other").await;
    other.post("/v1/sessions", large.clone()).await.is(201);
    all.start("Hello.").await;
    drop(slow);
    while send().await.status == 429 {}
}

#[tokio::test]
async fn a_stream_ends_once_its_token_is_revoked_or_has_expired() {
    let limits = Limits {
        recheck: Duration::from_millis(10),
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), "desk: [ One. ]", options).await;
    let all = world.all("").await;
    let session = all.start("Hello.").await;
    let now = world.steersman.engine().clock().now();
    let soon = NewToken {
        expires: Some(now.plus(500)),
        ..whole("")
    };
    let (revoked, expires) = (world.all("").await, world.with(world.token(soon).await));
    let mut kept = all.stream("/v1/events/stream", None).await;
    assert_eq!(kept.next().await.unwrap().event, "hello");
    let path = format!("/v1/sessions/{session}/events");
    let mut ends = [
        revoked.stream(&path, None).await,
        revoked.stream("/v1/events/stream", None).await,
        expires.stream(&path, None).await,
    ];
    let name = revoked.token.split('_').nth(1).unwrap();
    let revoke = all.request(Method::DELETE, &format!("/v1/tokens/{name}"));
    assert_eq!(Answer::of(revoke).await.status, 204);
    for stream in &mut ends {
        stream.rest().await;
    }
    Answer::of(revoked.request(Method::GET, &path))
        .await
        .fails(401, "token");
    // Another token's stream goes on.
    let other = all.start("Once more.").await;
    loop {
        let frame = kept.next().await.unwrap();
        if frame.data["session"] == json!(other) {
            break;
        }
    }
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
    // Two names are none, and each name is checked.
    let twice = all
        .request(Method::GET, "/v1/me")
        .header("host", "localhost");
    Answer::of(twice.header("host", "localhost"))
        .await
        .fails(403, "host");
    let origins = all
        .request(Method::GET, "/v1/me")
        .header("origin", "https://front.example");
    Answer::of(origins.header("origin", "https://evil.example"))
        .await
        .fails(403, "origin");
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

/// Mistakes that would otherwise be carried out as something else, or wait for ever.
#[tokio::test]
async fn mistakes_are_told_in_the_words_of_the_client() {
    let world = World::new("desk: [ One. ]").await;
    let all = world.all("").await;
    let session = all.start("Hello.").await;
    let place = format!("/v1/sessions/{session}");
    let asks: &[(&str, &str, &str)] = &[
        (
            "/v1/sessions?status=anwsered",
            "query",
            "no session has the status `anwsered`",
        ),
        (
            "PLACE/events?kinds=sayd",
            "query",
            "there are no events of kind `sayd`",
        ),
        (
            "PLACE/events?from=9999.9&until=settled",
            "cursor",
            "behind the end of the session",
        ),
        ("/v1/sessions?limit=x", "query", "limit: invalid digit"),
    ];
    for (path, code, why) in asks {
        let answer = all.get(&path.replace("PLACE", &place)).await;
        let told = answer.fails(400, code);
        assert!(
            told.contains(why) && !told.contains("deserialize"),
            "{path}: {told}"
        );
    }
    let acts = [
        (
            "/v1/sessions",
            json!(["desk", null, "Hello."]),
            "the body is a list",
        ),
        ("/v1/sessions", json!([]), "the body is a list"),
        ("/v1/sessions", json!({}), "`definition` is missing"),
        (
            "/v1/sessions",
            json!({ "definition": "desk", "message": "" }),
            "`message` is empty",
        ),
        ("/v1/sessions", json!("desk"), "expected an object"),
        ("PLACE/messages", json!(["Hello."]), "the body is a list"),
    ];
    for (path, body, why) in acts {
        let answer = all.post(&path.replace("PLACE", &place), body.clone()).await;
        let told = answer.fails(400, "body");
        assert!(
            told.contains(why) && !told.contains("struct"),
            "{body}: {told}"
        );
    }
    let begun = all.get("/v1/sessions").await.is(200);
    assert_eq!(begun["items"].as_array().unwrap().len(), 1, "{begun:#}");
    // A path has a whole id, and who has only its beginning is told how to find it.
    let short = all.get(&format!("/v1/sessions/{}", &session[..6])).await;
    let help = short.json["help"].as_str().unwrap().to_owned();
    short.fails(404, "session");
    assert!(help.contains("?prefix="), "{help}");
    // A client of OpenAI with another base reads an error of its own form.
    let slip = all.post("/v1/chat/completions", json!({})).await;
    assert_eq!(slip.status, 404);
    let why = slip.json["error"]["message"].as_str().unwrap();
    assert!(why.contains("ends with `/openai/v1`"), "{why}");
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
    let limits = Limits {
        head: Duration::from_millis(50),
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), "desk: [ One. ]", options).await;
    let mut slow = connected(&world).await;
    slow.write_all(b"GET /livez HTTP/1.1\r\nhost: loc")
        .await
        .unwrap();
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).await.unwrap();
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
}

/// A connection to the server.
async fn connected(world: &World) -> TcpStream {
    let at = world.at.trim_start_matches("http://");
    TcpStream::connect(at).await.unwrap()
}

#[tokio::test]
async fn a_slow_body_is_answered_and_cut_off() {
    let limits = Limits {
        request: Duration::from_millis(100),
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), "desk: [ One. ]", options).await;
    let all = world.all("").await;
    let mut slow = connected(&world).await;
    let head = format!(
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 100\r\n\r\n{{",
        all.token
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("\"code\":\"late\""), "{answer}");
}

#[tokio::test]
async fn a_reader_that_never_reads_is_cut_off_and_gives_back_its_stream() {
    let limits = Limits {
        stalled: Duration::from_millis(50),
        streams_each: 1,
        ..unlimited()
    };
    let loud =
        "name: loud\nlimits: { tokens: 1000000000 }\nagents: { desk: { system: You repeat. } }\n";
    let options = Options {
        limits,
        definitions: vec![Network::from_yaml(loud).build().unwrap()],
        ..Options::default()
    };
    let script = format!("desk: [ {} ]", vec!["'{{ request.last }}'"; 50].join(", "));
    let world = World::over(Arc::new(MemoryStore::new()), &script, options).await;
    let all = world.all("").await;
    let start = json!({ "definition": "loud", "message": "Hello." });
    let request = all.request(Method::POST, "/v1/sessions").json(&start);
    let turn = Answer::of(request.header("prefer", "wait=30"))
        .await
        .is(200);
    let session = turn["session"].as_str().unwrap();
    // More than the buffers of a connection hold.
    let text = "x".repeat(40_000);
    for _ in 0..49 {
        all.say(session, &text).await;
    }
    let path = format!("/v1/sessions/{session}/events?until=settled");
    let whole = all.get(&path).await.json.as_str().unwrap().len();
    let ask = format!(
        "GET /v1/sessions/{session}/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
        all.token
    );
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8_192).unwrap();
    let at = world.at.trim_start_matches("http://").parse().unwrap();
    let mut greedy = socket.connect(at).await.unwrap();
    greedy.write_all(ask.as_bytes()).await.unwrap();
    // It holds the only stream of the token until it is cut off.
    loop {
        let response = all.request(Method::GET, &path).send().await.unwrap();
        if response.status() == 200 {
            break;
        }
        assert_eq!(response.status(), 429);
    }
    let mut came = Vec::new();
    // The connection was closed, with or without what was not sent any more.
    greedy.read_to_end(&mut came).await.ok();
    assert!(came.len() < whole, "{} bytes", came.len());
}

//! A request uses places of its token, and the token itself, until its answer has been sent.

use crate::world::{Answer, Caller, World, unlimited};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::{Limits, Options};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// More than the buffers of a connection hold.
const MUCH: usize = 16 << 20;

async fn world(limits: Limits, script: &str) -> World {
    let options = Options {
        limits,
        ..Options::default()
    };
    World::over(Arc::new(MemoryStore::new()), script, options).await
}

/// Starts a session with a file of many bytes. Returns the path of the artifact.
async fn large(all: &Caller<'_>) -> String {
    let file = json!({ "name": "much.txt", "text": "x".repeat(MUCH) });
    let start = json!({ "definition": "desk", "message": "Keep this.", "files": [file] });
    let request = all.request(Method::POST, "/v1/sessions").json(&start);
    let turn = Answer::of(request.header("prefer", "wait=30")).await;
    let turn = turn.is(200);
    let session = turn["session"].as_str().unwrap();
    format!("/v1/sessions/{session}/artifacts/much.txt")
}

/// Asks for a path, and reads no more than the head of the answer, whose status is returned.
async fn asks(all: &Caller<'_>, path: &str) -> (TcpStream, String) {
    let ask = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
        all.token
    );
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8_192).unwrap();
    let at = all.world.at.trim_start_matches("http://");
    let mut stream = socket.connect(at.parse().unwrap()).await.unwrap();
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    (stream, String::from_utf8_lossy(&status[9..]).into_owned())
}

#[tokio::test]
async fn an_answer_that_is_not_read_keeps_the_places_of_its_token() {
    let limits = Limits {
        at_once: 4,
        answers_each: 2,
        ..unlimited()
    };
    let world = world(limits, "desk: [ Kept. ]").await;
    let all = world.all("").await;
    let path = large(&all).await;
    let (first, status) = asks(&all, &path).await;
    assert_eq!(status, "200");
    let (second, status) = asks(&all, &path).await;
    assert_eq!(status, "200");
    let why = all.get(&path).await.fails(429, "rate");
    assert!(why.contains("2 answers under way"), "{why}");
    // Short requests, and those of another token, are answered all the same.
    all.get("/v1/me").await.is(200);
    let other = world.all("").await;
    let (third, status) = asks(&other, &path).await;
    assert_eq!(status, "200");
    drop((first, second));
    // A connection that is gone gives its places back, and so does an answer that was read.
    let whole = loop {
        let answer = all.get(&path).await;
        if answer.status == 200 {
            break answer;
        }
    };
    let Json::String(text) = whole.json else {
        panic!("{}", whole.json)
    };
    assert_eq!(text.len(), MUCH);
    for _ in 0..5 {
        all.get(&path).await.is(200);
    }
    drop(third);
}

#[tokio::test]
async fn the_requests_of_a_token_that_are_not_read_are_counted() {
    let limits = Limits {
        at_once: 2,
        answers_each: 100,
        ..unlimited()
    };
    let world = world(limits, "desk: [ Kept. ]").await;
    let all = world.all("").await;
    let path = large(&all).await;
    let (first, _) = asks(&all, &path).await;
    let (second, _) = asks(&all, &path).await;
    let why = all.get("/v1/me").await.fails(429, "rate");
    assert!(why.contains("2 requests at once"), "{why}");
    drop((first, second));
    while all.get("/v1/me").await.status == 429 {}
}

#[tokio::test]
async fn a_request_that_waits_ends_once_its_token_is_revoked() {
    let limits = Limits {
        recheck: Duration::from_millis(10),
        ..unlimited()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    // Nobody drives the session, so it does not settle within the minute.
    let world = World::undriven(Arc::new(MemoryStore::new()), "desk: [ Kept. ]", options).await;
    let (all, gone) = (world.all("").await, world.all("").await);
    let start = json!({ "definition": "desk", "message": "Hello." });
    let waits = gone.request(Method::POST, "/v1/sessions").json(&start);
    let waits = waits.header("prefer", "wait=60");
    let waiting = tokio::spawn(Answer::of(waits));
    let has_begun = |page: &Json| !page["items"].as_array().unwrap().is_empty();
    while !has_begun(&all.get("/v1/sessions").await.is(200)) {}
    let name = gone.token.split('_').nth(1).unwrap();
    let revoke = all.request(Method::DELETE, &format!("/v1/tokens/{name}"));
    assert_eq!(Answer::of(revoke).await.status, 204);
    let why = waiting.await.unwrap().fails(401, "token");
    assert!(why.contains("revoked"), "{why}");
}

//! OpenAI responses: turns that have ids, and are followed, continued, gone back to and cancelled by them.

use crate::world::{Answer, Caller, Frame, World, scope, whole};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::Steersman;
use steersman::machine::stored::outcome::{Answer as Said, Failure};
use steersman::runtime::Boxed;
use steersman::runtime::model::{Delta, Model, ModelCall, Sink};
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::{NewToken, Options, Permission};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const RESPONSES: &str = "/openai/v1/responses";

const SCRIPT: &str = r#"
desk:
  - call: { refund: { cents: 3990 } }
  - Paid.
  - "To: {{ request.last }}"
  - Still here.
"#;

async fn create(caller: &Caller<'_>, body: Json) -> Json {
    caller.post(RESPONSES, body).await.is(200)
}

fn kinds(response: &Json) -> Vec<&str> {
    let output = response["output"].as_array().unwrap().iter();
    output.map(|item| item["type"].as_str().unwrap()).collect()
}

/// The text of the last message of a response.
fn text(response: &Json) -> &str {
    let mut output = response["output"].as_array().unwrap().iter().rev();
    let message = output.find(|item| item["type"] == "message").unwrap();
    message["content"][0]["text"].as_str().unwrap()
}

fn session(response: &Json) -> String {
    let id = response["conversation"]["id"].as_str().unwrap();
    id.strip_prefix("conv_").unwrap().to_owned()
}

#[track_caller]
fn fails(answer: &Answer, status: u16, code: &str) -> String {
    assert_eq!(answer.status, status, "{:#}", answer.json);
    assert_eq!(answer.json["error"]["code"], code, "{:#}", answer.json);
    answer.json["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_approval_is_an_item_and_the_next_response_decides_it() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let asks = create(
        &all,
        json!({ "model": "desk", "input": "My kettle is broken." }),
    )
    .await;
    assert_eq!(
        (&asks["object"], &asks["status"]),
        (&json!("response"), &json!("completed"))
    );
    assert_eq!(kinds(&asks), ["mcp_call", "mcp_approval_request"]);
    assert!(asks["usage"]["total_tokens"].as_u64().unwrap() > 0);
    let [call, asked] = &asks["output"].as_array().unwrap()[..] else {
        panic!("{asks:#}")
    };
    assert_eq!(
        (&call["name"], &call["status"]),
        (&json!("refund"), &json!("in_progress"))
    );
    assert_eq!(
        (&asked["name"], &asked["arguments"]),
        (&json!("refund"), &json!("{\"cents\":3990}"))
    );
    assert_eq!(asked["server_label"], "desk");
    let path = format!("{RESPONSES}/{}", asks["id"].as_str().unwrap());
    assert_eq!(all.get(&path).await.is(200), asks);

    let approves = json!({
        "model": "desk", "previous_response_id": asks["id"],
        "input": [{ "type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": true }],
    });
    // Without the permission to decide, the approval is text, and nothing is decided.
    let clerk = NewToken {
        allows: vec![Permission::Read, Permission::Write],
        ..whole("")
    };
    let clerk = world.with(world.token(clerk).await);
    assert_eq!(
        kinds(&clerk.get(&path).await.is(200)),
        ["mcp_call", "message"]
    );
    fails(&clerk.post(RESPONSES, approves.clone()).await, 403, "scope");

    let paid = create(&all, approves.clone()).await;
    assert_eq!((text(&paid), session(&paid)), ("Paid.", session(&asks)));
    assert_ne!(paid["id"], asks["id"]);
    // The first response ended where the second began.
    assert_eq!(all.get(&path).await.is(200)["output"], asks["output"]);
    // A decided question is not decided again.
    fails(&all.post(RESPONSES, approves).await, 404, "question");

    let next = create(
        &all,
        json!({ "model": "desk", "previous_response_id": paid["id"], "input": "And now?" }),
    )
    .await;
    assert_eq!(
        (text(&next), session(&next)),
        ("To: And now?", session(&asks))
    );
    // A response after one that is not the last goes back.
    let back =
        json!({ "model": "desk", "previous_response_id": paid["id"], "input": "And what now?" });
    fails(&clerk.post(RESPONSES, back.clone()).await, 403, "scope");
    let back = create(&all, back).await;
    assert_eq!(
        (text(&back), session(&back)),
        ("To: And what now?", session(&asks))
    );
    let branches = all
        .get(&format!("/v1/sessions/{}/branches", session(&asks)))
        .await
        .is(200);
    assert_eq!(branches["items"].as_array().unwrap().len(), 2);
    let path = format!("{RESPONSES}/{}", next["id"].as_str().unwrap());
    assert_eq!(
        all.get(&path).await.is(200)["output"],
        next["output"],
        "what was left stays readable"
    );
    let on = json!({ "model": "desk", "conversation": { "id": back["conversation"]["id"] }, "input": "Go on." });
    assert_eq!(text(&create(&all, on).await), "Still here.");
}

#[tokio::test]
async fn a_stream_is_followed_again_from_any_number_on() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let request = all.request(Method::POST, RESPONSES);
    let body = json!({ "model": "desk", "input": "My kettle is broken.", "stream": true });
    let text = request
        .json(&body)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let told = frames(&text);
    let kinds: Vec<&str> = told.iter().map(|frame| &*frame.event).collect();
    assert_eq!(kinds[..2], ["response.created", "response.in_progress"]);
    assert_eq!(*kinds.last().unwrap(), "response.completed");
    assert!(
        kinds.contains(&"response.mcp_call_arguments.done"),
        "{kinds:?}"
    );
    let numbers: Vec<u64> = told
        .iter()
        .map(|frame| frame.data["sequence_number"].as_u64().unwrap())
        .collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let response = &told.last().unwrap().data["response"];
    let path = format!("{RESPONSES}/{}", response["id"].as_str().unwrap());
    assert_eq!(all.get(&path).await.is(200), *response);
    for (n, after) in numbers.iter().enumerate() {
        let rest = all.request(
            Method::GET,
            &format!("{path}?stream=true&starting_after={after}"),
        );
        let rest = rest.send().await.unwrap().text().await.unwrap();
        assert_eq!(frames(&rest), told[n + 1..], "after {after}");
    }
    fails(
        &all.get(&format!("{path}?starting_after=x")).await,
        400,
        "query",
    );
}

fn frames(text: &str) -> Vec<Frame> {
    let frames = text.split("\n\n").filter(|frame| frame.contains("data: "));
    let read = frames.map(|frame| {
        let field = |name: &str| {
            frame
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap()
        };
        Frame {
            id: None,
            event: field("event: ").to_owned(),
            data: serde_json::from_str(field("data: ")).unwrap(),
        }
    });
    read.collect()
}

/// A model that streams its answer when it is told to, and ends when it is told to.
#[derive(Clone, Default)]
pub(crate) struct Slow {
    pub(crate) begins: Arc<Notify>,
    pub(crate) ends: Arc<Notify>,
}

impl Model for Slow {
    fn label(&self) -> Arc<str> {
        "slow".into()
    }

    fn call<'a>(
        &'a self,
        _: &'a ModelCall,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Said, Failure>> {
        let streams = async move {
            self.begins.notified().await;
            for piece in ["It boils ", "water."] {
                sink.delta(Delta::Text(piece.to_owned()));
            }
            self.ends.notified().await;
        };
        Box::pin(async move {
            tokio::select! {
                () = streams => {}
                () = cancel.cancelled() => {}
            }
            Ok(Said {
                text: Some("It boils water.".to_owned()),
                ..Said::default()
            })
        })
    }
}

pub(crate) async fn slow() -> (World, Slow) {
    let model = Slow::default();
    let setup = Steersman::options().model("default", model.clone());
    let world = World::of(setup, Arc::new(MemoryStore::new()), Options::default()).await;
    let driving = world.server.clone();
    tokio::spawn(async move { driving.drive(|_| {}).await });
    (world, model)
}

#[tokio::test]
async fn a_response_in_the_background_is_cancelled_or_polled() {
    let (world, model) = slow().await;
    let all = world.all("").await;
    let begun = create(
        &all,
        json!({ "model": "desk", "input": "What is it?", "background": true }),
    )
    .await;
    assert_eq!(begun["status"], "in_progress", "{begun:#}");
    let path = format!("{RESPONSES}/{}", begun["id"].as_str().unwrap());
    let cancelled = all.post(&format!("{path}/cancel"), json!({})).await.is(200);
    assert_eq!(cancelled["status"], "cancelled", "{cancelled:#}");
    assert_eq!(all.get(&path).await.is(200)["status"], "cancelled");

    let begun = create(
        &all,
        json!({ "model": "desk", "input": "What is it?", "background": true }),
    )
    .await;
    let path = format!("{RESPONSES}/{}", begun["id"].as_str().unwrap());
    model.begins.notify_one();
    model.ends.notify_one();
    let mut now = all.get(&path).await.is(200);
    while now["status"] == "in_progress" {
        now = all.get(&path).await.is(200);
    }
    assert_eq!(
        (&now["status"], text(&now)),
        (&json!("completed"), "It boils water.")
    );
    // A response that is over is not cancelled any more.
    let over = all.post(&format!("{path}/cancel"), json!({})).await.is(200);
    assert_eq!(over, now);
}

#[tokio::test]
async fn pieces_are_told_as_they_come() {
    let (world, model) = slow().await;
    let all = world.all("").await;
    for body in [
        json!({ "model": "desk", "input": "What is it?", "stream": true }),
        json!({ "model": "desk", "messages": [{ "role": "user", "content": "What is it?" }], "stream": true }),
    ] {
        let path = if body["input"].is_string() {
            RESPONSES
        } else {
            "/openai/v1/chat/completions"
        };
        let mut response = all
            .request(Method::POST, path)
            .json(&body)
            .send()
            .await
            .unwrap();
        let mut text = String::new();
        // The stream is open when its first event comes. The model ends only once its pieces have arrived.
        let (mut is_open, mut is_told) = (false, false);
        while let Some(chunk) = response.chunk().await.unwrap() {
            text.push_str(std::str::from_utf8(&chunk).unwrap());
            if !is_open {
                is_open = true;
                model.begins.notify_one();
            }
            if !is_told && text.contains("water.") {
                assert!(
                    !text.contains("response.completed") && !text.contains("[DONE]"),
                    "{text}"
                );
                is_told = true;
                model.ends.notify_one();
            }
        }
        assert!(is_told, "{text}");
        // The client gets it once as pieces; the events that complete a response repeat the whole.
        let pieces = text
            .lines()
            .filter(|line| line.contains("delta\"") && line.contains("It boils "));
        assert_eq!(pieces.count(), 1, "{text}");
    }
}

#[tokio::test]
async fn a_client_that_keeps_the_conversation_itself_continues_it() {
    let world = World::new("desk: [ One., Two., Three. ]").await;
    let all = world.all("").await;
    let hello = json!({ "role": "user", "content": [{ "type": "input_text", "text": "Hello." }] });
    let first = create(&all, json!({ "model": "desk", "input": [hello] })).await;
    let mut input = vec![hello];
    input.extend(first["output"].as_array().unwrap().iter().cloned());
    input.push(json!({ "role": "user", "content": "And?" }));
    let second = create(&all, json!({ "model": "desk", "input": input })).await;
    assert_eq!((session(&second), text(&second)), (session(&first), "Two."));
    let request = all
        .request(Method::POST, RESPONSES)
        .json(&json!({ "model": "desk", "input": input }));
    let again = Answer::of(request.header("x-stainless-retry-count", "1"))
        .await
        .is(200);
    assert_eq!(again, second);
}

#[tokio::test]
async fn responses_of_others_and_of_no_message_do_not_exist() {
    let world = World::new("desk: [ One., Two. ]").await;
    let all = world.all("").await;
    let made = create(&all, json!({ "model": "desk", "input": "Hello." })).await;
    let id = made["id"].as_str().unwrap();
    let (of, line) = id.rsplit_once('_').unwrap();
    let line: u64 = line.parse().unwrap();
    let body = |id: &str| json!({ "model": "desk", "input": "x", "previous_response_id": id });
    let absent = format!("resp_aa0000000000zzzz_{line}");
    for stranger in [
        whole("other"),
        NewToken {
            scope: scope("", Some("bob")),
            ..whole("")
        },
    ] {
        let stranger = world.with(world.token(stranger).await);
        for id in [id, &absent] {
            let told = fails(
                &stranger.get(&format!("{RESPONSES}/{id}")).await,
                404,
                "response",
            );
            assert!(told.contains(id), "{told}");
            fails(&stranger.post(RESPONSES, body(id)).await, 404, "response");
            fails(
                &stranger
                    .post(&format!("{RESPONSES}/{id}/cancel"), json!({}))
                    .await,
                404,
                "response",
            );
        }
        let conversation =
            json!({ "model": "desk", "input": "x", "conversation": made["conversation"]["id"] });
        fails(
            &stranger.post(RESPONSES, conversation).await,
            404,
            "session",
        );
    }
    for id in [
        format!("{of}_{}", line + 1),
        format!("{of}_0"),
        format!("{of}_x"),
        "resp".to_owned(),
        format!("{of}_{}", u64::MAX),
    ] {
        fails(
            &all.get(&format!("{RESPONSES}/{id}")).await,
            404,
            "response",
        );
    }
    for (more, says) in [
        (json!({ "store": false }), "`store`"),
        (json!({ "instructions": "Be rude." }), "`instructions`"),
        (json!({ "tools": [{ "type": "web_search" }] }), "`tools`"),
        (
            json!({ "text": { "format": { "type": "json_schema" } } }),
            "`output`",
        ),
        (json!({ "input": [] }), "nothing new"),
        (json!({ "input": 7 }), "`input`"),
        (
            json!({ "input": [{ "type": "item_reference", "id": "x" }] }),
            "`input[0]`",
        ),
        (
            json!({ "previous_response_id": id, "conversation": "conv_x" }),
            "two places",
        ),
    ] {
        let mut body = json!({ "model": "desk", "input": "Hello." });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let why = fails(&all.post(RESPONSES, body).await, 400, "body");
        assert!(why.contains(says), "{more}: {why}");
    }
}

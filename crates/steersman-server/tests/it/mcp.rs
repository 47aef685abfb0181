//! The Model Context Protocol, as clients of both kinds see it: those with a connection (2025-11-25), and those whose requests stand alone
//! (2026-07-28).

mod client;

use crate::world::{Answer, Caller, Nothing, SCRIPT, World, names, scope, unlimited, whole};
use client::{Client, NEW, OLD, forms};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use steersman::runtime::store::memory::MemoryStore;
use steersman::{Network, tool_with};
use steersman_server::{Limits, NewToken, Options, Permission, serve_mcp};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::Notify;

/// A definition with two entries. One asks the user, the other has parameters.
fn office() -> Network {
    let text = "
steersman: 1
name: office
description: An office.
tools:
  customer: { description: Ask the customer., parameters: { question: string }, ask: user }
agents:
  asker: { system: You ask., tools: [customer] }
  clerk:
    description: Files a paper.
    system: You file.
    parameters: { paper: string, copies: { type: integer, default: 1 }, session: { type: string, optional: true } }
entry: [clerk, asker]
";
    Network::from_yaml(text).build().unwrap()
}

/// A definition whose tool waits until it is told to go on.
fn slow(gate: &Arc<Notify>) -> Network {
    let gate = gate.clone();
    let wait = tool_with("wait", 1, move |_: Nothing, cx| {
        let gate = gate.clone();
        async move {
            cx.progress(1.0, None, Some("waiting"));
            gate.notified().await;
            Ok::<_, String>("over")
        }
    });
    let text = "
steersman: 1
name: slow
tools: { wait: { native: 1, description: Waits., parameters: {}, effect: read } }
agents: { desk: { system: You wait., tools: [wait] } }
";
    Network::from_yaml(text).tool(wait).build().unwrap()
}

async fn world(script: &str) -> World {
    let options = Options {
        definitions: vec![office()],
        ..Options::default()
    };
    World::over(Arc::new(MemoryStore::new()), script, options).await
}

async fn approve(caller: &Caller<'_>, session: &str) {
    let question = caller.question(session).await;
    let path = format!("/v1/sessions/{session}/questions/{question}/approve");
    caller.post(&path, json!({ "as": "manager" })).await.is(202);
}

async fn sessions(caller: &Caller<'_>) -> usize {
    let list = caller.get("/v1/sessions").await.is(200);
    list["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn entries_are_tools() {
    let world = world(SCRIPT).await;
    let all = world.all("").await;
    for client in [
        Client::open(&all, json!({})).await,
        Client::alone(&all, json!({})),
    ] {
        let got = client.ask("tools/list", json!({})).await;
        let list = got.result();
        let tools = list["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|t| t["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["desk", "office.asker", "office.clerk"]);
        assert_eq!(tools[0]["description"], "Settles complaints.");
        let own = &tools[0]["inputSchema"]["properties"];
        assert_eq!(own["message"]["type"], "string", "{own:#}");
        assert!(
            own["session"]["description"]
                .as_str()
                .unwrap()
                .contains("needs `message`")
        );
        assert_eq!(tools[2]["description"], "Files a paper.");
        // An entry may have a parameter with the name of our own.
        let own = &tools[2]["inputSchema"]["properties"];
        assert!(
            own["paper"].is_object() && own["session"].is_object(),
            "{own:#}"
        );
        assert!(
            own["_session"]["description"]
                .as_str()
                .unwrap()
                .contains("needs: paper.")
        );
        assert_eq!(tools[2]["outputSchema"]["type"], "object");
        let fresh = (client.version == NEW).then_some(60_000);
        assert_eq!(list["ttlMs"], json!(fresh));
    }
    let new = NewToken {
        definitions: names(&["desk"]),
        ..whole("")
    };
    let one = world.with(world.token(new).await);
    let client = Client::alone(&one, json!({}));
    let list = client.ask("tools/list", json!({})).await;
    assert_eq!(list.result()["tools"].as_array().unwrap().len(), 1);
    let other = client.call("office.clerk", json!({ "paper": "a" })).await;
    assert_eq!(other.answer["error"]["code"], -32602, "{:#}", other.answer);
    let new = NewToken {
        allows: vec![Permission::Read],
        ..whole("")
    };
    let reader = world.with(world.token(new).await);
    let reader = Client::alone(&reader, json!({}));
    let refused = reader.call("desk", json!({ "message": "Hello." })).await;
    assert!(refused.fails().contains("`write`"));
    assert_eq!(sessions(&all).await, 0);
}

#[tokio::test]
async fn a_call_is_a_session_and_a_person_decides_elsewhere() {
    let world = world(SCRIPT).await;
    let all = world.all("").await;
    let client = Client::open(&all, json!({})).await;
    let params = json!({
        "name": "desk",
        "arguments": { "message": "My kettle is broken." },
        "_meta": { "progressToken": 7 },
    });
    let asks = client.ask("tools/call", params).await;
    let turn = asks.turn();
    let id = asks.session().to_owned();
    let question = all.question(&id).await;
    let decide = format!("steersman approve {id} {question} --as manager");
    assert_eq!(turn["turn"], "asks", "{turn:#}");
    assert_eq!(turn["questions"][0]["decide"], json!(decide));
    assert_eq!(turn["questions"][0]["arguments"], json!({ "cents": 3990 }));
    assert!(asks.text().contains(&decide), "{turn:#}");
    let handle = &asks.result()["content"][1]["text"];
    assert_eq!(handle, &json!(format!("session: {id} (turn: asks)")));
    let told: Vec<(&Json, &Json)> = asks
        .before
        .iter()
        .map(|one| (&one["params"]["progressToken"], &one["params"]["message"]))
        .collect();
    assert_eq!(told, [(&json!(7), &json!("refund is called"))]);

    // Words do not approve. They wait.
    let waits = client
        .call("desk", json!({ "session": id, "message": "Approved!" }))
        .await;
    assert!(
        waits.text().starts_with("The message waits"),
        "{}",
        waits.text()
    );
    assert_eq!(waits.turn()["questions"][0]["decide"], json!(decide));
    approve(&all, &id).await;
    let paid = client.call("desk", json!({ "session": id })).await;
    assert_eq!(paid.turn()["turn"], "answered", "{:#}", paid.turn());
    assert_eq!(paid.session(), id);
    // The artifacts of the turn can be read.
    let got = client
        .call("desk", json!({ "session": id, "message": "Thank you." }))
        .await;
    assert_eq!(got.turn()["turn"], "answered");
    assert_eq!(sessions(&all).await, 1);
}

#[tokio::test]
async fn artifacts_are_links_that_can_be_read() {
    let world = world(SCRIPT).await;
    let all = world.all("").await;
    for client in [
        Client::open(&all, forms()).await,
        Client::alone(&all, json!({})),
    ] {
        let asks = client
            .call_with("desk", json!({ "message": "My kettle is broken." }), |_| {
                Some(json!({ "action": "cancel" }))
            })
            .await;
        let id = asks.session();
        approve(&all, id).await;
        let paid = client.call("desk", json!({ "session": id })).await;
        let content = paid.result()["content"].as_array().unwrap();
        let link = content.last().unwrap();
        let uri = format!("steersman://{id}/receipt.txt");
        assert_eq!(
            (
                &link["type"],
                &link["uri"],
                &link["mimeType"],
                &link["size"]
            ),
            (
                &json!("resource_link"),
                &json!(uri),
                &json!("text/plain"),
                &json!(4)
            ),
            "{content:#?}"
        );
        let read = client.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(read.result()["contents"][0]["text"], "paid");
        for missing in ["steersman://none/a", "file:///etc/passwd"] {
            let read = client
                .ask("resources/read", json!({ "uri": missing }))
                .await;
            assert!(read.answer["error"]["code"].is_i64(), "{:#}", read.answer);
        }
    }
}

#[tokio::test]
async fn a_person_at_the_client_decides_with_a_form() {
    let world = world(SCRIPT).await;
    let all = world.all("").await;
    let client = Client::open(&all, forms()).await;
    let message = json!({ "message": "My kettle is broken." });
    let paid = client
        .call_with("desk", message.clone(), |asked| {
            assert_eq!(asked["mode"], "form", "{asked:#}");
            let text = asked["message"].as_str().unwrap();
            assert!(text.contains(r#"refund: {"cents":3990}"#), "{text}");
            assert_eq!(asked["requestedSchema"]["required"], json!(["approve"]));
            Some(json!({ "action": "accept", "content": { "approve": true } }))
        })
        .await;
    assert_eq!(paid.turn()["turn"], "answered", "{:#}", paid.turn());
    assert_eq!(paid.text(), "Paid.");
    assert_eq!(paid.before.len(), 1);
    let path = format!("/v1/sessions/{}/artifacts", paid.session());
    let made = all.get(&path).await.is(200);
    assert_eq!(made["items"].as_array().unwrap().len(), 1);

    // A refusal, in each of its forms.
    for refusal in [
        json!({ "action": "accept", "content": { "approve": false, "reason": "Too much." } }),
        json!({ "action": "decline" }),
    ] {
        let refused = client
            .call_with("desk", message.clone(), |_| Some(refusal.clone()))
            .await;
        assert_eq!(refused.turn()["turn"], "answered");
        let path = format!("/v1/sessions/{}/artifacts", refused.session());
        let made = all.get(&path).await.is(200);
        assert_eq!(made["items"], json!([]), "nothing was paid");
    }
    // A form that is closed decides nothing, and nobody is asked twice.
    let open = client
        .call_with("desk", message.clone(), |_| {
            Some(json!({ "action": "cancel" }))
        })
        .await;
    assert_eq!(
        (&open.turn()["turn"], open.before.len()),
        (&json!("asks"), 1)
    );
    // A token that may not decide shows no form.
    let clerk = NewToken {
        allows: vec![Permission::Read, Permission::Write],
        ..whole("")
    };
    let clerk = world.with(world.token(clerk).await);
    let client = Client::open(&clerk, forms()).await;
    let asks = client.call("desk", message).await;
    assert_eq!(
        (&asks.turn()["turn"], asks.before.len()),
        (&json!("asks"), 0)
    );
}

#[tokio::test]
async fn a_request_that_stands_alone_is_sent_again_with_the_form() {
    let world = world(SCRIPT).await;
    let all = world.all("").await;
    let client = Client::alone(&all, forms());
    let params = json!({ "name": "desk", "arguments": { "message": "My kettle is broken." } });
    let wants = client.ask("tools/call", params.clone()).await;
    let wanted = wants.result();
    assert_eq!(wanted["resultType"], "input_required", "{wanted:#}");
    let (id, form) = wanted["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    assert_eq!(form["method"], "elicitation/create");
    let again = |state: &Json, given: Json| {
        let mut params = params.clone();
        params["inputResponses"] = json!({ id: given });
        params["requestState"] = state.clone();
        params
    };
    let yes = json!({ "action": "accept", "content": { "approve": true } });
    // The state belongs to this call alone.
    let state = wanted["requestState"].as_str().unwrap();
    let mut forged = state.to_owned();
    forged.pop();
    for state in [forged, "x".to_owned(), format!("{state}/1")] {
        let refused = client
            .ask("tools/call", again(&json!(state), yes.clone()))
            .await;
        assert!(
            refused.fails().contains("requestState"),
            "{}",
            refused.fails()
        );
    }
    let mut other = again(&wanted["requestState"], yes.clone());
    other["arguments"]["message"] = "Something else.".into();
    client.ask("tools/call", other).await.fails();
    // Without a decision the question stays, and is told.
    let cancel = json!({ "action": "cancel" });
    let open = client
        .ask("tools/call", again(&wanted["requestState"], cancel))
        .await;
    assert_eq!(open.turn()["turn"], "asks");
    let session = open.session().to_owned();
    let paid = client
        .ask("tools/call", again(&wanted["requestState"], yes.clone()))
        .await;
    assert_eq!((paid.text(), paid.session()), ("Paid.", &*session));
    // The same once more decides nothing more, and has the same answer.
    let same = client
        .ask("tools/call", again(&wanted["requestState"], yes))
        .await;
    assert_eq!((same.text(), same.session()), ("Paid.", &*session));
    assert_eq!(sessions(&all).await, 1);
}

#[tokio::test]
async fn a_question_to_the_user_is_answered_by_message_or_form() {
    let script = "asker: [ { call: { customer: { question: To which account? } } }, 'To: {{ request.last }}' ]";
    let world = world(script).await;
    let all = world.all("").await;
    let client = Client::open(&all, json!({})).await;
    let begin = json!({ "message": "Send 150." });
    let asks = client.call("office.asker", begin.clone()).await;
    assert!(
        asks.text().starts_with("To which account?"),
        "{}",
        asks.text()
    );
    let answer = json!({ "session": asks.session(), "message": "NO93" });
    let sent = client.call("office.asker", answer).await;
    assert_eq!((sent.text(), sent.session()), ("To: NO93", asks.session()));
    let client = Client::open(&all, forms()).await;
    let sent = client
        .call_with("office.asker", begin, |asked| {
            assert_eq!(asked["message"], "To which account?");
            Some(json!({ "action": "accept", "content": { "answer": "NO94" } }))
        })
        .await;
    assert_eq!(sent.text(), "To: NO94");
}

#[tokio::test]
async fn parameters_of_an_entry_are_arguments() {
    let world = world("clerk: [ 'Filed {{ request.last }}', Again. ]").await;
    let all = world.all("").await;
    let client = Client::alone(&all, json!({}));
    let filed = client
        .call(
            "office.clerk",
            json!({ "paper": "Invoice 7", "session": "morning" }),
        )
        .await;
    assert!(filed.text().contains("Invoice 7"), "{}", filed.text());
    let more = json!({ "_session": filed.session(), "message": "Once more." });
    assert_eq!(client.call("office.clerk", more).await.text(), "Again.");
    // Arguments that do not fit are answered with a sentence.
    let missing = client.call("office.clerk", json!({ "copies": 2 })).await;
    assert!(missing.fails().contains("paper"), "{}", missing.fails());
    let both = json!({ "_session": filed.session(), "paper": "b" });
    let both = client.call("office.clerk", both).await;
    assert!(both.fails().contains("takes no paper"), "{}", both.fails());
    let nothing = client.call("desk", json!({ "message": " " })).await;
    assert!(nothing.fails().contains("`message` is missing"));
    let number = client.call("desk", json!({ "message": 7 })).await;
    assert!(number.fails().contains("`message` is a text"));
    // A session of another definition is none of this tool's.
    let other = json!({ "session": filed.session(), "message": "Hello." });
    let other = client.call("desk", other).await;
    assert!(other.fails().contains("there is no session"));
}

#[tokio::test]
async fn a_call_waits_for_a_while_and_the_session_goes_on() {
    let gate = Arc::new(Notify::new());
    let options = Options {
        definitions: vec![slow(&gate)],
        limits: Limits {
            request: Duration::from_secs(3),
            ..Limits::default()
        },
        ..Options::default()
    };
    let script = "desk: [ { call: { wait: {} } }, It is over. ]";
    let world = World::over(Arc::new(MemoryStore::new()), script, options).await;
    let all = world.all("").await;
    for client in [
        Client::open(&all, json!({})).await,
        Client::alone(&all, json!({})),
    ] {
        let params = json!({
            "name": "slow",
            "arguments": { "message": "Go." },
            "_meta": { "progressToken": "p" },
        });
        let works = client.ask("tools/call", params).await;
        assert_eq!(works.turn()["turn"], "working", "{:#}", works.turn());
        let told = works.before.iter().map(|one| &one["params"]["progress"]);
        let told: Vec<f64> = told.map(|one| one.as_f64().unwrap()).collect();
        assert!(
            told.contains(&1.0) && told.is_sorted_by(|a, b| a < b),
            "{told:?}"
        );
        let id = works.session();
        // A client that goes away ends the waiting alone.
        let params = json!({
            "name": "slow",
            "arguments": { "session": id },
            "_meta": { "progressToken": "p" },
        });
        drop(client.send(&client.body("tools/call", params)).await);
        gate.notify_one();
        let over = client.call("slow", json!({ "session": id })).await;
        assert_eq!((over.text(), over.session()), ("It is over.", id));
    }
}

#[tokio::test]
async fn a_call_under_a_key_is_one_call() {
    let world = world("desk: [ One., Two., Three. ]").await;
    let all = world.all("").await;
    let client = Client::alone(&all, json!({}));
    let call = |arguments: Json, key: &str| {
        let meta = json!({ "dev.steersman/idempotency-key": key });
        client.ask(
            "tools/call",
            json!({ "name": "desk", "arguments": arguments, "_meta": meta }),
        )
    };
    let one = call(json!({ "message": "Hello." }), "k1").await;
    let same = call(json!({ "message": "Hello." }), "k1").await;
    assert_eq!((one.text(), one.session()), (same.text(), same.session()));
    let more = json!({ "session": one.session(), "message": "More." });
    let two = call(more.clone(), "k2").await;
    let same = call(more, "k2").await;
    assert_eq!((two.text(), same.text()), ("Two.", "Two."));
    assert_eq!(sessions(&all).await, 1);
    let other = call(json!({ "message": "Goodbye." }), "k1").await;
    assert!(other.fails().contains("key"), "{}", other.fails());
    assert!(
        call(json!({ "message": "Hello." }), "")
            .await
            .fails()
            .contains("1 to 128")
    );
}

#[tokio::test]
async fn the_server_is_guarded_and_a_connection_belongs_to_its_token() {
    let world = world("desk: [ One., Two. ]").await;
    let all = world.all("").await;
    let client = Client::open(&all, json!({})).await;
    let one = client.call("desk", json!({ "message": "Hello." })).await;
    let id = one.session().to_owned();
    let request = |token: Option<&str>| {
        let request = all.world.client.post(format!("{}/mcp", world.at));
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.json(&client.body("tools/list", json!({})));
        match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    };
    Answer::of(request(None)).await.fails(401, "token");
    let origin = request(Some(&all.token)).header("origin", "https://evil.example");
    Answer::of(origin).await.fails(403, "origin");
    let host = request(Some(&all.token)).header("host", "evil.example");
    Answer::of(host).await.fails(403, "host");
    all.get("/mcp").await.fails(405, "method");

    // Another token has neither the connection nor, in another tenant, the session.
    let other = world.all("other").await;
    let stolen = Client {
        caller: &other,
        connection: client.connection.clone(),
        ..Client::alone(&other, json!({}))
    };
    let stolen = Client {
        version: OLD,
        ..stolen
    };
    let refused = stolen.send(&stolen.body("tools/list", json!({}))).await;
    assert_eq!(refused.status(), 404);
    let own = Client::open(&other, json!({})).await;
    let none = own
        .call("desk", json!({ "session": id, "message": "Hello." }))
        .await;
    assert!(none.fails().contains("there is no session"));
    let ann = NewToken {
        scope: scope("", Some("ann")),
        ..whole("")
    };
    let ann = world.with(world.token(ann).await);
    let none = Client::alone(&ann, json!({}))
        .call("desk", json!({ "session": id }))
        .await;
    assert!(none.fails().contains("there is no session"));

    // A client whose connection is gone opens another one, and goes on with the same session.
    let gone = all.request(Method::DELETE, "/mcp");
    let gone = gone.header("mcp-session-id", client.connection.clone().unwrap());
    assert_eq!(gone.send().await.unwrap().status(), 202);
    let body = client.body("tools/list", json!({}));
    assert_eq!(client.send(&body).await.status(), 404);
    let client = Client::open(&all, json!({})).await;
    let two = client
        .call("desk", json!({ "session": id, "message": "More." }))
        .await;
    assert_eq!((two.text(), two.session()), ("Two.", &*id));
}

#[tokio::test]
async fn a_token_has_a_limited_number_of_connections() {
    let limits = Limits {
        burst: 10_000,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), SCRIPT, options).await;
    let all = world.all("").await;
    let first = Client::open(&all, json!({})).await;
    let second = Client::open(&all, json!({})).await;
    for _ in 0..63 {
        Client::open(&all, json!({})).await;
    }
    let list = first.body("tools/list", json!({}));
    assert_eq!(first.send(&list).await.status(), 404);
    second.ask("tools/list", json!({})).await.result();
}

#[tokio::test]
async fn a_session_outlives_the_server() {
    let store = Arc::new(MemoryStore::new());
    let first = World::over(store.clone(), SCRIPT, Options::default()).await;
    let all = first.all("").await;
    let client = Client::open(&all, json!({})).await;
    let asks = client
        .call("desk", json!({ "message": "My kettle is broken." }))
        .await;
    let id = asks.session().to_owned();
    first.server.stop();
    first.steersman.stop().await;

    let second = World::over(store, SCRIPT, Options::default()).await;
    let again = second.with(all.token.clone());
    // The connection was a matter of the process; the session is not.
    let client = Client {
        caller: &again,
        ..client
    };
    let body = client.body("tools/list", json!({}));
    assert_eq!(client.send(&body).await.status(), 404);
    let client = Client::open(&again, forms()).await;
    let paid = client
        .call_with("desk", json!({ "session": id }), |_| {
            Some(json!({ "action": "accept", "content": { "approve": true } }))
        })
        .await;
    assert_eq!((paid.text(), paid.session()), ("Paid.", &*id));
}

#[tokio::test]
async fn what_nobody_took_so_far_is_waited_for() {
    for (script, says, then) in [
        (SCRIPT, None, "Paid."),
        ("desk: [ One., Two. ]", Some("More."), "Two."),
    ] {
        let store = Arc::new(MemoryStore::new());
        let first = World::over(store.clone(), script, Options::default()).await;
        let all = first.all("").await;
        let before = Client::alone(&all, json!({}))
            .call("desk", json!({ "message": "My kettle is broken." }))
            .await;
        let id = before.session().to_owned();
        first.server.stop();
        first.steersman.stop().await;

        let options = Options {
            limits: Limits {
                request: Duration::from_secs(1),
                ..unlimited()
            },
            patience: Duration::from_millis(100),
            ..Options::default()
        };
        let second = World::undriven(store, script, options).await;
        let all = second.with(all.token.clone());
        match says {
            None => approve(&all, &id).await,
            Some(text) => {
                let path = format!("/v1/sessions/{id}/messages");
                all.post(&path, json!({ "text": text })).await.is(202);
            }
        }
        let client = Client::alone(&all, json!({}));
        let again = async || client.call("desk", json!({ "session": id })).await;
        assert_eq!(again().await.turn()["turn"], "working");
        let driving = second.server.clone();
        tokio::spawn(async move { driving.drive(|_| {}).await });
        // A busy computer may take longer than a call waits.
        let over = loop {
            let over = again().await;
            if over.turn()["turn"] != "working" {
                break over;
            }
        };
        assert_eq!(over.text(), then);
    }
}

#[tokio::test]
async fn a_call_waits_for_no_message_that_the_session_leaves() {
    let world = world("desk: [ One., Two. ]").await;
    let all = world.all("").await;
    let client = Client::alone(&all, json!({}));
    let one = client.call("desk", json!({ "message": "Hello." })).await;
    let id = one.session().to_owned();
    let again = async || client.call("desk", json!({ "session": id })).await;
    // Nothing waits for this event.
    let event = json!({ "definition": "desk", "event": "parcel", "fields": { "order": "1" }, "session": id });
    all.post("/v1/events", event).await.is(202);
    assert_eq!(again().await.text(), "One.");

    let order = async |name: &str| {
        all.post(&format!("/v1/sessions/{id}/{name}"), json!({}))
            .await
            .is(202)
    };
    order("pause").await;
    let waits = client
        .call("desk", json!({ "session": id, "message": "More." }))
        .await;
    assert_eq!(waits.turn()["turn"], "waits");
    assert!(waits.text().contains("resumes it"), "{}", waits.text());
    assert_eq!(again().await.turn()["turn"], "waits");
    order("resume").await;
    assert_eq!(again().await.text(), "Two.");
}

#[tokio::test]
async fn a_client_over_a_pair_of_streams_needs_no_token() {
    let world = world(SCRIPT).await;
    let (near, far) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(far);
    let server = world.server.clone();
    let serving = tokio::spawn(async move {
        serve_mcp(&server, names(&["user", "manager"]), input, output).await
    });
    let (read, mut write) = tokio::io::split(near);
    let mut lines = BufReader::new(read).lines();
    let mut send = async |message: Json| {
        let line = format!("{message}\n");
        write.write_all(line.as_bytes()).await.unwrap();
    };
    let params = json!({
        "protocolVersion": OLD,
        "capabilities": forms(),
        "clientInfo": { "name": "test", "version": "1" },
    });
    send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })).await;
    let hello: Json = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    assert_eq!(hello["result"]["protocolVersion"], OLD, "{hello:#}");
    send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    let params = json!({ "name": "desk", "arguments": { "message": "My kettle is broken." } });
    send(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })).await;
    let answer = loop {
        let line = lines.next_line().await.unwrap().unwrap();
        let message: Json = serde_json::from_str(&line).unwrap();
        if message["method"] == "elicitation/create" {
            let given = json!({ "action": "accept", "content": { "approve": true } });
            send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": given })).await;
        } else if message["id"] == 2 {
            break message;
        }
    };
    let turn = &answer["result"]["structuredContent"];
    assert_eq!(
        (&turn["turn"], &turn["text"]),
        (&json!("answered"), &json!("Paid."))
    );
    // The client goes away.
    drop(lines);
    drop(write);
    serving.await.unwrap().unwrap();
    let all = world.all("").await;
    let events = format!(
        "/v1/sessions/{}/events?kinds=accepted&until=settled",
        turn["session"].as_str().unwrap()
    );
    let who = all.stream(&events, None).await.rest().await;
    let who: Vec<&Json> = who.iter().map(|frame| &frame.data["who"]).collect();
    assert!(who.contains(&&json!("stm_mcp")), "{who:?}");
}

#[tokio::test]
async fn a_call_ends_once_its_token_is_revoked() {
    let options = Options {
        limits: Limits {
            recheck: Duration::from_millis(10),
            ..unlimited()
        },
        ..Options::default()
    };
    // Nobody drives the session, so the call waits.
    let world = World::undriven(Arc::new(MemoryStore::new()), SCRIPT, options).await;
    let all = world.all("").await;
    for (begun, is_old) in [(1, false), (2, true)] {
        let gone = world.all("").await;
        let client = if is_old {
            Client::open(&gone, json!({})).await
        } else {
            Client::alone(&gone, json!({}))
        };
        let params = json!({ "name": "desk", "arguments": { "message": "Hello." } });
        let call = client.body("tools/call", params);
        let revokes = async {
            let count = |page: &Json| page["items"].as_array().unwrap().len();
            while count(&all.get("/v1/sessions").await.is(200)) < begun {}
            let name = gone.token.split('_').nth(1).unwrap();
            let revoke = all.request(Method::DELETE, &format!("/v1/tokens/{name}"));
            assert_eq!(Answer::of(revoke).await.status, 204);
        };
        let (mut response, ()) = tokio::join!(client.send(&call), revokes);
        if response.status() == 401 {
            continue;
        }
        let got = client.read(&mut response, &mut |_| None).await;
        assert!(got.is_none(), "{:#}", got.unwrap().answer);
    }
}

#[tokio::test]
async fn a_message_has_a_bounded_number_of_values() {
    let world = World::new(SCRIPT).await;
    let all = world.all("").await;
    let many = vec![0; 250_000];
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "many": many } });
    let why = all.post("/mcp", body).await.fails(413, "too_large");
    assert!(why.contains("200000 values"), "{why}");
    let long = json!({ "jsonrpc": "2.0", "id": 1, "method": "x".repeat(2_000_000) });
    assert_eq!(all.post("/mcp", long).await.status, 413);
}

//! The Agent2Agent protocol, as another agent sees it.

use crate::world::{Answer, Caller, SCRIPT, World, scope, whole};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::Network;
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::{NewToken, Options, Permission};

/// A definition that asks the user, and one entry with parameters.
fn office() -> Network {
    let text = "
steersman: 1
name: office
description: An office.
tools:
  customer: { description: Ask the customer., parameters: { question: string }, ask: user }
agents:
  asker: { system: You ask., tools: [customer] }
  clerk: { description: Files a paper., system: You file., parameters: { paper: string } }
entry: [asker, clerk]
";
    Network::from_yaml(text).build().unwrap()
}

async fn world(script: &str) -> World {
    let options = Options {
        definitions: vec![office()],
        ..Options::default()
    };
    World::over(Arc::new(MemoryStore::new()), script, options).await
}

/// A client of an agent.
struct Client<'w> {
    caller: &'w Caller<'w>,
    agent: &'static str,
}

impl Client<'_> {
    fn request(&self, method: &str, params: &Json) -> reqwest::RequestBuilder {
        let body = json!({ "jsonrpc": "2.0", "id": "one", "method": method, "params": params });
        let path = format!("/a2a/{}", self.agent);
        let request = self.caller.request(Method::POST, &path).json(&body);
        request.header("a2a-version", "1.0")
    }

    /// The answer to a call.
    async fn answer(&self, method: &str, params: Json) -> Json {
        let answer = Answer::of(self.request(method, &params)).await.is(200);
        assert_eq!(
            (&answer["jsonrpc"], &answer["id"]),
            (&json!("2.0"), &json!("one"))
        );
        answer
    }

    /// The result of a call.
    async fn ask(&self, method: &str, params: Json) -> Json {
        let answer = self.answer(method, params).await;
        assert!(answer["error"].is_null(), "{answer:#}");
        answer["result"].clone()
    }

    /// The sentence of a call that fails with this code.
    async fn fails(&self, method: &str, params: Json, code: i32) -> String {
        let answer = self.answer(method, params).await;
        assert_eq!(answer["error"]["code"], code, "{answer:#}");
        if code > -32_100 {
            let info = &answer["error"]["data"][0];
            assert_eq!(
                info["@type"], "type.googleapis.com/google.rpc.ErrorInfo",
                "{answer:#}"
            );
        }
        answer["error"]["message"].as_str().unwrap().to_owned()
    }

    /// The task of a message.
    async fn send(&self, message: Json) -> Json {
        self.ask("SendMessage", json!({ "message": message })).await["task"].clone()
    }

    /// All updates of a stream.
    async fn stream(&self, method: &str, params: Json) -> Vec<Json> {
        let response = self.request(method, &params).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let text = response.text().await.unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let updates = data.map(|data| serde_json::from_str::<Json>(data).unwrap());
        updates.map(|update| update["result"].clone()).collect()
    }
}

/// A message with text.
fn text(id: &str, text: &str) -> Json {
    json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] })
}

/// A message with data, to a task.
fn reply(id: &str, task: &Json, data: &Json) -> Json {
    json!({
        "messageId": id, "role": "ROLE_USER", "taskId": task["id"], "contextId": task["contextId"],
        "parts": [{ "data": data }],
    })
}

fn state(task: &Json) -> &str {
    task["status"]["state"].as_str().unwrap()
}

/// The last text of a task.
fn said(task: &Json) -> &str {
    let artifacts = task["artifacts"].as_array().unwrap();
    artifacts.last().unwrap()["parts"][0]["text"]
        .as_str()
        .unwrap()
}

/// The data of the question that a task asks.
fn asked(task: &Json) -> &Json {
    &task["status"]["message"]["parts"][1]["data"]
}

#[tokio::test]
async fn a_definition_has_a_card() {
    let world = world(SCRIPT).await;
    let all = world.all("").await;
    let card = all
        .get("/a2a/office/.well-known/agent-card.json")
        .await
        .is(200);
    let interface = &card["supportedInterfaces"][0];
    assert_eq!(interface["url"], format!("{}/a2a/office", world.at));
    assert_eq!(
        (&interface["protocolBinding"], &interface["protocolVersion"]),
        (&json!("JSONRPC"), &json!("1.0"))
    );
    let skills = card["skills"].as_array().unwrap();
    let skills: Vec<(&Json, &Json)> = skills
        .iter()
        .map(|s| (&s["id"], &s["description"]))
        .collect();
    assert_eq!(
        skills,
        [
            (&json!("asker"), &json!("An office.")),
            (&json!("clerk"), &json!("Files a paper."))
        ]
    );
    let secure = all.request(Method::GET, "/a2a/office/.well-known/agent-card.json");
    let secure = Answer::of(secure.header("x-forwarded-proto", "https"))
        .await
        .is(200);
    let url = secure["supportedInterfaces"][0]["url"].as_str().unwrap();
    assert!(url.starts_with("https://"), "{url}");
    let first = all.get("/.well-known/agent-card.json").await.is(200);
    assert_eq!(first["name"], "desk");
    all.get("/a2a/other/.well-known/agent-card.json")
        .await
        .fails(404, "definition");
    let nobody = world
        .client
        .get(format!("{}/.well-known/agent-card.json", world.at));
    Answer::of(nobody).await.fails(401, "token");
}

#[tokio::test]
async fn a_message_is_a_task_and_data_approves() {
    let world = world(SCRIPT).await;
    let all = world.all("").await;
    let desk = Client {
        caller: &all,
        agent: "desk",
    };
    let task = desk.send(text("m1", "My kettle is broken.")).await;
    assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED", "{task:#}");
    let question = asked(&task);
    assert_eq!(
        (&question["arguments"], &question["reply"]),
        (&json!({ "cents": 3990 }), &json!("approve"))
    );
    // The same message again is the same task.
    let same = desk.send(text("m1", "My kettle is broken.")).await;
    assert_eq!(same, task);
    let why = desk.fails(
        "SendMessage",
        json!({ "message": text("m1", "Another.") }),
        -32602,
    );
    assert!(why.await.contains("another request"));
    // Words approve nothing, and a message to the context has to wait.
    let mut words = reply("m2", &task, &json!({}));
    words["parts"] = json!([{ "text": "Approved!" }]);
    let why = desk
        .fails("SendMessage", json!({ "message": words }), -32602)
        .await;
    assert!(why.contains("approve"), "{why}");
    let mut more = text("m3", "Is it done?");
    more["contextId"] = task["contextId"].clone();
    let why = desk
        .fails("SendMessage", json!({ "message": more }), -32004)
        .await;
    assert!(why.contains("asks something first"), "{why}");
    for wrong in [
        json!({ "question": "9.9", "approve": true }),
        json!({ "question": question["question"], "answer": "Yes." }),
        json!({ "question": question["question"] }),
        json!({ "approve": true }),
    ] {
        let message = reply("m4", &task, &wrong);
        desk.fails("SendMessage", json!({ "message": message }), -32602)
            .await;
    }
    let yes = json!({ "question": question["question"], "approve": true });
    let paid = desk.send(reply("m5", &task, &yes)).await;
    assert_eq!(
        (state(&paid), &paid["id"]),
        ("TASK_STATE_COMPLETED", &task["id"])
    );
    let artifacts = paid["artifacts"].as_array().unwrap();
    let file = artifacts
        .iter()
        .find(|one| one["name"] == "receipt.txt")
        .unwrap();
    let url = file["parts"][0]["url"].as_str().unwrap();
    let content = all.get(url.strip_prefix(&world.at).unwrap()).await.is(200);
    assert_eq!(content, "paid");
    // The decision again decides nothing more; another one is too late.
    assert_eq!(desk.send(reply("m5", &task, &yes)).await, paid);
    let late = reply("m6", &task, &yes);
    desk.fails("SendMessage", json!({ "message": late }), -32004)
        .await;
    // The context goes on with a new task.
    let mut more = text("m3", "And now?");
    more["contextId"] = task["contextId"].clone();
    let next = desk.send(more).await;
    assert_eq!(
        (&next["contextId"], said(&next)),
        (&task["contextId"], "Once more?")
    );
    assert_ne!(next["id"], task["id"]);
    // The first task stays as it was.
    let first = desk.ask("GetTask", json!({ "id": task["id"] })).await;
    assert_eq!(first, paid);
}

#[tokio::test]
async fn a_stream_tells_the_task_and_another_one_goes_on_with_it() {
    let world = world(SCRIPT).await;
    let all = world.all("").await;
    let desk = Client {
        caller: &all,
        agent: "desk",
    };
    let params = json!({ "message": text("m1", "My kettle is broken.") });
    let updates = desk.stream("SendStreamingMessage", params).await;
    let task = updates[0]["task"].clone();
    assert_eq!(state(&task), "TASK_STATE_WORKING");
    let end = &updates.last().unwrap()["statusUpdate"];
    assert_eq!(state(end), "TASK_STATE_INPUT_REQUIRED", "{updates:#?}");
    assert_eq!(end["taskId"], task["id"]);

    // A client that may not decide reads where it is decided, and hears what becomes of it.
    let clerk = NewToken {
        allows: vec![Permission::Read, Permission::Write],
        ..whole("")
    };
    let clerk = world.with(world.token(clerk).await);
    let reader = Client {
        caller: &clerk,
        agent: "desk",
    };
    let seen = reader.ask("GetTask", json!({ "id": task["id"] })).await;
    assert_eq!(state(&seen), "TASK_STATE_AUTH_REQUIRED");
    let decide = asked(&seen)["decide"].as_str().unwrap();
    assert!(decide.ends_with("--as manager"), "{decide}");
    let params = json!({ "id": task["id"] });
    let follows = reader.stream("SubscribeToTask", params.clone());
    let decides = async {
        let session = task["contextId"].as_str().unwrap();
        let question = all.question(session).await;
        let path = format!("/v1/sessions/{session}/questions/{question}/approve");
        all.post(&path, json!({ "as": "manager" })).await.is(202);
    };
    let (updates, ()) = tokio::join!(follows, decides);
    // The decision may come before the stream.
    let first = state(&updates[0]["task"]);
    assert!(
        ["TASK_STATE_AUTH_REQUIRED", "TASK_STATE_WORKING"].contains(&first),
        "{first}"
    );
    let end = &updates.last().unwrap()["statusUpdate"];
    assert_eq!(state(end), "TASK_STATE_COMPLETED", "{updates:#?}");
    let texts = updates
        .iter()
        .map(|one| &one["artifactUpdate"]["artifact"]["parts"][0]["text"]);
    assert!(texts.clone().any(|text| text == "Paid."), "{updates:#?}");
    let why = desk.fails("SubscribeToTask", params, -32004).await;
    assert!(why.contains("GetTask"), "{why}");
}

#[tokio::test]
async fn text_answers_the_only_question_and_a_task_is_cancelled() {
    let script = "asker: [ { call: { customer: { question: To which account? } } }, 'To: {{ request.last }}' ]";
    let world = world(script).await;
    let all = world.all("").await;
    let office = Client {
        caller: &all,
        agent: "office",
    };
    let task = office.send(text("m1", "Send 150.")).await;
    assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(
        task["status"]["message"]["parts"][0]["text"],
        "To which account?"
    );
    let mut answer = text("m2", "NO93");
    answer["taskId"] = task["id"].clone();
    let sent = office.send(answer).await;
    assert_eq!((said(&sent), &sent["id"]), ("To: NO93", &task["id"]));

    let params = json!({
        "message": text("m3", "Send 250."),
        "configuration": { "returnImmediately": true },
    });
    let task = office.ask("SendMessage", params).await["task"].clone();
    let cancelled = office.ask("CancelTask", json!({ "id": task["id"] })).await;
    assert_eq!(state(&cancelled), "TASK_STATE_CANCELED", "{cancelled:#}");
    let why = office
        .fails("CancelTask", json!({ "id": task["id"] }), -32002)
        .await;
    assert!(why.contains("over"), "{why}");
}

#[tokio::test]
async fn entries_are_named_in_the_metadata_and_data_is_their_arguments() {
    let world = world("clerk: [ 'Filed {{ request.last }}' ]").await;
    let all = world.all("").await;
    let office = Client {
        caller: &all,
        agent: "office",
    };
    let message = json!({
        "messageId": "m1", "role": "ROLE_USER", "parts": [{ "data": { "paper": "Invoice 7" } }],
        "metadata": { "entry": "clerk" },
    });
    let filed = office.send(message.clone()).await;
    assert!(said(&filed).contains("Invoice 7"), "{filed:#}");
    for (name, value) in [
        ("metadata", json!({ "entry": "nobody" })),
        ("parts", json!([{ "data": {} }])),
        ("parts", json!([])),
        ("parts", json!([{ "data": 7 }])),
        ("role", json!("ROLE_AGENT")),
        ("messageId", json!("")),
        ("contextId", json!("none")),
    ] {
        let mut message = message.clone();
        message["messageId"] = "m2".into();
        message[name] = value;
        office
            .fails("SendMessage", json!({ "message": message }), -32602)
            .await;
    }
    let mut file = message.clone();
    file["parts"] = json!([{ "raw": "cGFpZA==", "mediaType": "text/plain" }]);
    office
        .fails("SendMessage", json!({ "message": file }), -32005)
        .await;
    let pushed = json!({ "message": message, "configuration": { "taskPushNotificationConfig": { "url": "http://x" } } });
    office.fails("SendMessage", pushed, -32003).await;
}

#[tokio::test]
async fn tasks_are_listed_in_pages() {
    let world = world("desk: [ One., Two., Three. ]").await;
    let all = world.all("").await;
    let desk = Client {
        caller: &all,
        agent: "desk",
    };
    let first = desk.send(text("m1", "Hello.")).await;
    for n in 2..4 {
        let mut more = text(&format!("m{n}"), "More.");
        more["contextId"] = first["contextId"].clone();
        desk.send(more).await;
    }
    desk.send(text("m9", "Hello.")).await;
    // A session that another protocol began has no tasks.
    all.start("Hello.").await;
    let whole = desk
        .ask("ListTasks", json!({ "includeArtifacts": true }))
        .await;
    assert_eq!(
        (&whole["totalSize"], &whole["nextPageToken"]),
        (&json!(4), &json!(""))
    );
    let ids = |list: &Json| -> Vec<Json> {
        list["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["id"].clone())
            .collect()
    };
    let mut paged = Vec::new();
    let mut token = json!("");
    loop {
        let page = desk
            .ask("ListTasks", json!({ "pageSize": 3, "pageToken": token }))
            .await;
        assert!(page["tasks"][0]["artifacts"].is_null());
        paged.extend(ids(&page));
        token = page["nextPageToken"].clone();
        if token == "" {
            break;
        }
    }
    assert_eq!(paged, ids(&whole));
    assert!(whole["tasks"][0]["artifacts"].is_array());
    let of = desk
        .ask("ListTasks", json!({ "contextId": first["contextId"] }))
        .await;
    assert_eq!(of["totalSize"], 3);
    let working = desk
        .ask("ListTasks", json!({ "status": "TASK_STATE_WORKING" }))
        .await;
    assert_eq!(working["totalSize"], 0);
    let later = desk.ask(
        "ListTasks",
        json!({ "statusTimestampAfter": "2100-01-01T00:00:00Z" }),
    );
    assert_eq!(later.await["totalSize"], 0);
    for wrong in [
        json!({ "pageSize": 1000 }),
        json!({ "pageToken": "x" }),
        json!({ "statusTimestampAfter": "soon" }),
    ] {
        desk.fails("ListTasks", wrong, -32602).await;
    }
}

#[tokio::test]
async fn what_does_not_fit_is_refused_and_strangers_see_no_task() {
    let world = world("desk: [ One., Two. ]").await;
    let all = world.all("").await;
    let desk = Client {
        caller: &all,
        agent: "desk",
    };
    let task = desk.send(text("m1", "Hello.")).await;
    let id = json!({ "id": task["id"] });
    // Versions.
    for version in [None, Some(""), Some("0.3"), Some("2.0")] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": id });
        let mut request = all.request(Method::POST, "/a2a/desk").json(&body);
        if let Some(version) = version {
            request = request.header("a2a-version", version);
        }
        let answer = Answer::of(request).await.is(200);
        assert_eq!(answer["error"]["code"], -32009, "{answer:#}");
    }
    // Forms.
    for (body, code) in [
        ("{", -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"{ "id": 1, "method": "GetTask" }"#, -32600),
        (r#"{ "jsonrpc": "2.0", "id": 1 }"#, -32600),
        (
            r#"{ "jsonrpc": "2.0", "id": 1, "method": "message/send" }"#,
            -32601,
        ),
        (
            r#"{ "jsonrpc": "2.0", "id": 1, "method": "SendMessage" }"#,
            -32602,
        ),
        (
            r#"{ "jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard" }"#,
            -32007,
        ),
        (
            r#"{ "jsonrpc": "2.0", "id": 1, "method": "ListTaskPushNotificationConfigs" }"#,
            -32003,
        ),
    ] {
        let request = all.request(Method::POST, "/a2a/desk").body(body);
        let request = request.header("content-type", "application/json");
        let answer = Answer::of(request.header("a2a-version", "1.0"))
            .await
            .is(200);
        assert_eq!(answer["error"]["code"], code, "{body}: {answer:#}");
    }
    let missing = desk
        .fails("GetTask", json!({ "id": "none-1" }), -32001)
        .await;
    for none in [
        "x",
        "",
        "none-1-2",
        &format!("{}-999", task["contextId"].as_str().unwrap()),
    ] {
        desk.fails("GetTask", json!({ "id": none }), -32001).await;
    }
    // Strangers.
    for new in [
        whole("other"),
        NewToken {
            scope: scope("", Some("ann")),
            ..whole("")
        },
    ] {
        let stranger = world.with(world.token(new).await);
        let stranger = Client {
            caller: &stranger,
            agent: "desk",
        };
        for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
            let why = stranger.fails(method, id.clone(), -32001).await;
            assert_eq!(why.replace(task["id"].as_str().unwrap(), "none-1"), missing);
        }
        assert_eq!(stranger.ask("ListTasks", json!({})).await["totalSize"], 0);
    }
    // Another agent has other tasks, and a token without the permission none.
    let office = Client {
        caller: &all,
        agent: "office",
    };
    office.fails("GetTask", id.clone(), -32001).await;
    let new = NewToken {
        allows: vec![Permission::Read],
        ..whole("")
    };
    let reader = world.with(world.token(new).await);
    let reader = Client {
        caller: &reader,
        agent: "desk",
    };
    let params = json!({ "message": text("m2", "Hello.") });
    Answer::of(reader.request("SendMessage", &params))
        .await
        .fails(403, "scope");
    reader.ask("GetTask", id).await;
}

#[tokio::test]
async fn a_task_outlives_the_server() {
    let store = Arc::new(MemoryStore::new());
    let first = World::over(store.clone(), SCRIPT, Options::default()).await;
    let all = first.all("").await;
    let desk = Client {
        caller: &all,
        agent: "desk",
    };
    let task = desk.send(text("m1", "My kettle is broken.")).await;
    first.server.stop();
    first.steersman.stop().await;

    let second = World::over(store, SCRIPT, Options::default()).await;
    let again = second.with(all.token.clone());
    let desk = Client {
        caller: &again,
        agent: "desk",
    };
    let mut seen = desk.ask("GetTask", json!({ "id": task["id"] })).await;
    assert_eq!(seen["status"], task["status"]);
    // The message again finds its task, in another process too.
    seen = desk.send(text("m1", "My kettle is broken.")).await;
    assert_eq!(seen["id"], task["id"]);
    let yes = json!({ "question": asked(&task)["question"], "approve": true });
    let paid = desk.send(reply("m2", &task, &yes)).await;
    assert_eq!(
        (state(&paid), &paid["id"]),
        ("TASK_STATE_COMPLETED", &task["id"])
    );
}

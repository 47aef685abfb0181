//! AG-UI: runs of threads, as a client sees them that reads the protocol from a stream.

use crate::responses::slow;
use crate::world::{Caller, World, durable, scope, whole};
use reqwest::{Method, StatusCode};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::runtime::store::memory::MemoryStore;
use steersman::{Network, tool_with};
use steersman_server::{NewToken, Options, Permission};

/// A definition with a refund that a manager may change, a sub-agent, a question to the user, and state of both sides.
const FRONT: &str = "
steersman: 1
name: front
description: Serves a web page.
state:
  theme: { type: string, default: light, by: user }
  context: { type: any, optional: true, by: user }
  paid: { type: integer, default: 0 }
tools:
  refund:
    native: 1
    description: Pays money back.
    parameters: { cents: integer, order: string }
    effect: unsafe
    approve: { when: args.cents > 1000, by: manager, ask: 'Refund {{ args.cents }}?', edit: [cents] }
    set: { paid: '{{ result }}' }
  customer: { description: Ask the customer., parameters: { question: string }, ask: user }
agents:
  manager: { person: { role: manager } }
  helper: { description: Looks things up., system: You look things up. }
  front: { system: You serve a page., tools: [refund, customer, helper] }
entry: front
";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Refund {
    cents: u64,
    #[expect(dead_code, reason = "only the approver reads it")]
    order: String,
}

pub(crate) fn front() -> Network {
    let refund = tool_with("refund", 1, |refund: Refund, cx| async move {
        cx.artifact("receipt.txt", "text/plain", *b"paid");
        Ok::<_, String>(refund.cents)
    });
    Network::from_yaml(FRONT).tool(refund).build().unwrap()
}

async fn world(script: &str) -> World {
    let options = Options {
        definitions: vec![front()],
        ..Options::default()
    };
    World::over(Arc::new(MemoryStore::new()), script, options).await
}

/// The messages of a run, and the session.
#[derive(Debug)]
struct Run {
    messages: Vec<Json>,
    session: String,
}

impl Run {
    fn of(&self, kind: &str) -> Vec<&Json> {
        let all = self.messages.iter();
        all.filter(|message| message["type"] == kind).collect()
    }

    fn kinds(&self) -> Vec<&str> {
        let all = self.messages.iter();
        all.map(|message| message["type"].as_str().unwrap())
            .collect()
    }

    fn last(&self) -> &Json {
        self.messages.last().unwrap()
    }

    /// The texts of the run, each as one.
    fn texts(&self) -> Vec<String> {
        let ids = self.of("TEXT_MESSAGE_START");
        let text = |id: &Json| {
            let pieces = self.of("TEXT_MESSAGE_CONTENT").into_iter();
            let pieces = pieces.filter(|piece| piece["messageId"] == *id);
            pieces
                .map(|piece| piece["delta"].as_str().unwrap())
                .collect()
        };
        ids.iter().map(|start| text(&start["messageId"])).collect()
    }

    /// The only interrupt.
    #[track_caller]
    fn interrupt(&self) -> &Json {
        let all = self.last()["outcome"]["interrupts"].as_array();
        let all = all.unwrap_or_else(|| panic!("{:#?}", self.messages));
        assert_eq!(all.len(), 1, "{all:#?}");
        &all[0]
    }

    #[track_caller]
    fn fails(&self, code: &str) -> String {
        assert_eq!(self.kinds(), ["RUN_ERROR"], "{:#?}", self.messages);
        assert_eq!(self.last()["code"], code, "{:#?}", self.messages);
        self.last()["message"].as_str().unwrap().to_owned()
    }
}

fn input(thread: &str, messages: &Json, more: &Json) -> Json {
    let mut input = json!({
        "threadId": thread, "runId": "r", "protocolVersion": "1.0", "messages": messages,
        "tools": [], "context": [], "state": {}, "forwardedProps": {},
    });
    let fields = input.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    input
}

async fn sent(caller: &Caller<'_>, definition: &str, body: &Json) -> Run {
    let request = caller.request(Method::POST, &format!("/agui/{definition}"));
    let response = request.json(body).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let session = response.headers()["x-steersman-session"].to_str().unwrap();
    let session = session.to_owned();
    let text = response.text().await.unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let messages = data.map(|data| serde_json::from_str(data).unwrap());
    Run {
        messages: messages.collect(),
        session,
    }
}

async fn run(caller: &Caller<'_>, thread: &str, messages: Json, more: Json) -> Run {
    sent(caller, "front", &input(thread, &messages, &more)).await
}

fn user(id: &str, text: &str) -> Json {
    json!({ "id": id, "role": "user", "content": text })
}

fn resume(interrupt: &Json, payload: Json) -> Json {
    json!({ "resume": [{ "interruptId": interrupt["id"], "status": "resolved", "payload": payload }] })
}

#[tokio::test]
async fn a_thread_is_a_session_and_its_history_may_be_sent_for_ever() {
    let world = world("front: [ One., Two., Three. ]").await;
    let all = world.all("").await;
    let first = run(&all, "t", json!([user("u1", "Hello.")]), json!({})).await;
    assert_eq!(
        first.kinds(),
        [
            "RUN_STARTED",
            "STATE_SNAPSHOT",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED"
        ]
    );
    let started = &first.messages[0];
    assert_eq!(
        (
            &started["threadId"],
            &started["runId"],
            &started["protocolVersion"]
        ),
        (&json!("t"), &json!("r"), &json!("1.0"))
    );
    assert_eq!(
        started["metadata"]["steersman"]["session"],
        first.session.as_str()
    );
    assert_eq!(
        first.last()["result"],
        json!({ "turn": "answered", "answer": "One." })
    );
    assert!(first.last()["usage"][0]["totalTokens"].as_u64().unwrap() > 0);
    let answer =
        json!({ "id": first.messages[2]["messageId"], "role": "assistant", "content": "One." });
    // The message is known, so it is not said again.
    let whole = json!([user("u1", "Hello."), answer, user("u2", "And?")]);
    let second = run(&all, "t", whole, json!({})).await;
    assert_eq!(
        (second.texts(), &second.session),
        (vec!["Two.".to_owned()], &first.session)
    );
    let heard = all
        .stream(
            &format!(
                "/v1/sessions/{}/events?kinds=heard,settled&until=settled",
                first.session
            ),
            None,
        )
        .await
        .rest()
        .await;
    let heard: Vec<&Json> = heard
        .iter()
        .filter(|one| one.event == "heard")
        .map(|one| &one.data["text"])
        .collect();
    assert_eq!(heard, ["Hello.", "And?"]);
    // The same request again, after a lost answer, tells the run again. Several new messages are one.
    let tail = json!([user("u3", "One more."), user("u4", "And another.")]);
    let third = run(&all, "t", tail.clone(), json!({})).await;
    let again = run(&all, "t", tail, json!({})).await;
    assert_eq!(
        (third.texts(), again.texts()),
        (vec!["Three.".to_owned()], vec!["Three.".to_owned()])
    );
    assert!(third.of("MESSAGES_SNAPSHOT").is_empty());
    let known = again.of("MESSAGES_SNAPSHOT");
    let known = known.last().unwrap()["messages"].as_array().unwrap();
    let ids: Vec<&Json> = known.iter().map(|message| &message["id"]).collect();
    assert_eq!(
        (ids[0], ids[2], ids[4]),
        (&json!("u1"), &json!("u2"), &json!("u4"))
    );
    assert_eq!(known[4]["content"], "One more.\n\nAnd another.");
    // Another thread, another definition, another tenant: another session.
    let other = world.all("other").await;
    let elsewhere = run(&other, "t", json!([user("u1", "Hello.")]), json!({})).await;
    assert_ne!(elsewhere.session, first.session);
    let absent = run(&other, "none", json!([]), json!({})).await;
    absent.fails("nothing_new");
}

#[tokio::test]
async fn an_approval_is_an_interrupt_and_the_next_run_decides_it_with_edits() {
    let world = world(
        "front: [ { text: I pay., call: { refund: { cents: 3990, order: '4711' } } }, Paid. ]",
    )
    .await;
    let all = world.all("").await;
    let asks = run(&all, "t", json!([user("u1", "It is broken.")]), json!({})).await;
    let kinds = asks.kinds();
    assert_eq!(
        kinds[kinds.len() - 3..],
        ["STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    );
    let call = asks.of("TOOL_CALL_START")[0];
    assert_eq!(
        call["parentMessageId"],
        asks.of("TEXT_MESSAGE_START")[0]["messageId"]
    );
    let interrupt = asks.interrupt();
    assert_eq!(
        (
            &interrupt["reason"],
            &interrupt["toolCallId"],
            &interrupt["message"]
        ),
        (
            &json!("tool_call"),
            &call["toolCallId"],
            &json!("Refund 3990?")
        )
    );
    let schema = &interrupt["responseSchema"]["properties"];
    assert_eq!(schema["approved"]["type"], "boolean");
    let edits = &schema["editedArgs"]["properties"];
    assert_eq!(edits["cents"]["type"], "integer");
    assert!(edits["order"].is_null(), "{edits}");
    assert_eq!(
        interrupt["metadata"]["steersman"]["arguments"]["order"],
        "4711"
    );

    let none = json!([]);
    let approves = resume(
        interrupt,
        json!({ "approved": true, "editedArgs": { "cents": 2990, "order": "4711" } }),
    );
    let paid = run(&all, "t", none.clone(), approves.clone()).await;
    assert!(
        paid.of("TOOL_CALL_START").is_empty(),
        "the call is not told again"
    );
    let result = paid.of("TOOL_CALL_RESULT")[0];
    assert_eq!(result["toolCallId"], call["toolCallId"]);
    let content = result["content"].as_str().unwrap();
    assert!(content.starts_with("2990"), "{content}");
    assert_eq!(paid.texts(), ["Paid."]);
    let delta = paid.of("STATE_DELTA")[0];
    assert_eq!(
        delta["delta"],
        json!([{ "op": "replace", "path": "/paid", "value": 2990 }])
    );
    let artifact = paid.of("ACTIVITY_SNAPSHOT")[0];
    assert_eq!(artifact["activityType"], "ARTIFACT");
    let url = artifact["content"]["url"].as_str().unwrap();
    assert_eq!(all.get(url).await.is(200), "paid");
    // The same answer again is safe, and so is one that comes too late.
    let again = run(&all, "t", none.clone(), approves).await;
    assert_eq!(
        (again.texts(), again.last()["outcome"].clone()),
        (vec!["Paid.".to_owned()], json!({ "type": "success" }))
    );
    let late = run(
        &all,
        "t",
        none,
        resume(interrupt, json!({ "approved": false })),
    )
    .await;
    assert_eq!(late.texts(), ["Paid."]);
}

#[tokio::test]
async fn what_does_not_answer_an_interrupt_decides_nothing() {
    let world = world(
        "front: [ { text: I pay., call: { refund: { cents: 3990, order: '4711' } } }, Paid. ]",
    )
    .await;
    let all = world.all("").await;
    let asks = run(&all, "t", json!([user("u1", "It is broken.")]), json!({})).await;
    let interrupt = asks.interrupt();
    let path = format!("/v1/sessions/{}/events?until=settled", asks.session);
    let before = durable(&all.stream(&path, None).await.rest().await);
    let none = json!([]);
    let unanswered = run(&all, "t", json!([user("u2", "Hm.")]), json!({})).await;
    assert!(
        unanswered
            .fails("resume_required")
            .contains(interrupt["id"].as_str().unwrap())
    );
    let strange = json!({ "resume": [{ "interruptId": "99.1@99", "status": "resolved" }] });
    run(&all, "t", none.clone(), strange)
        .await
        .fails("unknown_interrupt");
    for (payload, says) in [
        (json!("yes"), "payload"),
        (
            json!({ "approved": true, "editedArgs": { "order": "4712" } }),
            "payload",
        ),
        (json!({ "approve": true }), "payload"),
    ] {
        run(&all, "t", none.clone(), resume(interrupt, payload))
            .await
            .fails(says);
    }
    // A client that may not decide gets no interrupt, and decides nothing.
    let clerk = NewToken {
        allows: vec![Permission::Read, Permission::Write],
        ..whole("")
    };
    let clerk = world.with(world.token(clerk).await);
    let sees = run(&clerk, "t", none.clone(), json!({})).await;
    assert_eq!(sees.last()["result"], json!({ "turn": "waits" }));
    let waiting = sees.of("ACTIVITY_SNAPSHOT");
    let item = &waiting.last().unwrap()["content"]["items"][0];
    assert!(
        item["command"].as_str().unwrap().contains("--as manager"),
        "{item}"
    );
    let approves = resume(
        interrupt,
        json!({ "approved": true, "editedArgs": { "cents": 2990, "order": "4711" } }),
    );
    run(&clerk, "t", none.clone(), approves.clone())
        .await
        .fails("role_not_yours");
    let now = durable(&all.stream(&path, None).await.rest().await);
    assert_eq!(now, before, "nothing of this reached the session");
}

#[tokio::test]
async fn a_question_is_answered_or_given_up() {
    let script = "front: [ { call: { customer: { question: 'Which one?' } } }, 'So {{ request.last }}.', { call: { customer: { question: 'Sure?' } } }, Well. ]";
    let world = world(script).await;
    let all = world.all("").await;
    let asks = run(&all, "t", json!([user("u1", "Send it.")]), json!({})).await;
    let interrupt = asks.interrupt();
    assert_eq!(
        (&interrupt["reason"], &interrupt["message"]),
        (&json!("input_required"), &json!("Which one?"))
    );
    assert_eq!(interrupt["responseSchema"]["required"], json!(["answer"]));
    // An answer and a message in one request are one run.
    let more = resume(interrupt, json!({ "answer": "The red one" }));
    let answered = run(&all, "t", json!([]), more).await;
    assert_eq!(answered.texts(), ["So The red one."]);
    let asks = run(&all, "t", json!([user("u2", "And this.")]), json!({})).await;
    let gives_up =
        json!({ "resume": [{ "interruptId": asks.interrupt()["id"], "status": "cancelled" }] });
    let over = run(&all, "t", json!([]), gives_up).await;
    assert_eq!(
        (over.texts(), &over.last()["outcome"]),
        (vec!["Well.".to_owned()], &json!({ "type": "success" }))
    );
}

#[tokio::test]
async fn answers_and_a_message_in_one_request_are_one_run() {
    let script = "front: [ { call: [ { refund: { cents: 2000, order: a } }, { refund: { cents: 3000, order: b } } ] }, Both., More. ]";
    let world = world(script).await;
    let all = world.all("").await;
    let asks = run(&all, "t", json!([user("u1", "Two of them.")]), json!({})).await;
    let interrupts = asks.last()["outcome"]["interrupts"].as_array().unwrap();
    assert_eq!(interrupts.len(), 2, "{interrupts:#?}");
    let one = resume(&interrupts[0], json!(true));
    let why = run(&all, "t", json!([]), one.clone())
        .await
        .fails("partial_resume");
    assert!(why.contains(interrupts[1]["id"].as_str().unwrap()), "{why}");
    let mut both = one;
    let second = json!({ "interruptId": interrupts[1]["id"], "status": "resolved", "payload": { "approved": false, "reason": "Too much." } });
    both["resume"].as_array_mut().unwrap().push(second);
    let done = run(&all, "t", json!([user("u2", "Thanks.")]), both).await;
    let results = done.of("TOOL_CALL_RESULT");
    assert_eq!(results.len(), 2, "{results:?}");
    let paid = |result: &&&Json| result["content"].as_str().unwrap().starts_with("2000");
    assert_eq!(results.iter().filter(paid).count(), 1, "{results:?}");
    assert_eq!(done.last()["outcome"]["type"], "success");
    // The whole run is told again, with both answers.
    let again = run(&all, "t", json!([]), json!({})).await;
    assert_eq!(
        (again.of("TOOL_CALL_RESULT").len(), again.texts()),
        (2, done.texts())
    );
}

#[tokio::test]
async fn a_sub_agent_is_told_with_its_run() {
    let script = "
front: [ { call: { helper: { message: Look. } } }, 'It says: {{ request.last }}' ]
helper: [ Nothing there. ]
";
    let world = world(script).await;
    let all = world.all("").await;
    let told = run(&all, "t", json!([user("u1", "What is there?")]), json!({})).await;
    let started = told.of("SUBAGENT_STARTED")[0];
    assert_eq!(
        (&started["name"], &started["description"]),
        (&json!("helper"), &json!("Looks things up."))
    );
    let finished = told.of("SUBAGENT_FINISHED")[0];
    assert_eq!(
        (&finished["subagentRunId"], &finished["result"]),
        (&started["subagentRunId"], &json!("Nothing there."))
    );
    let texts = told.of("TEXT_MESSAGE_START");
    assert_eq!(texts[0]["subagentRunId"], started["subagentRunId"]);
    assert!(texts[1]["subagentRunId"].is_null());
    assert_eq!(told.texts(), ["Nothing there.", "It says: Nothing there."]);
}

#[tokio::test]
async fn a_client_changes_the_state_that_is_its_own() {
    let world = world("front: [ One., Two., Three. ]").await;
    let all = world.all("").await;
    let state = json!({
        "state": { "theme": "dark", "paid": 9, "unknown": 1 },
        "context": [{ "description": "page", "value": "cart" }],
    });
    let first = run(&all, "t", json!([user("u1", "Hello.")]), state).await;
    let told = &first.of("STATE_SNAPSHOT")[0]["snapshot"];
    assert_eq!((&told["theme"], &told["paid"]), (&json!("dark"), &json!(0)));
    assert_eq!(told["context"][0]["value"], "cart");
    // A value that the client sends back unchanged is no change.
    let unchanged = json!({ "state": told });
    let second = run(&all, "t", json!([user("u2", "And?")]), unchanged).await;
    assert_eq!(&second.of("STATE_SNAPSHOT")[0]["snapshot"], told);
    let events = all
        .stream(
            &format!(
                "/v1/sessions/{}/events?kinds=state,settled&until=settled",
                first.session
            ),
            None,
        )
        .await
        .rest()
        .await;
    assert_eq!(events.iter().filter(|one| one.event == "state").count(), 1);
    // The session refuses a value of another type, and says why.
    let wrong = json!({ "state": { "theme": 7 } });
    let why = run(&all, "t", json!([user("u3", "Hm.")]), wrong)
        .await
        .fails("refused");
    assert!(why.contains("theme"), "{why}");
    // The thread goes on after it.
    let third = run(
        &all,
        "t",
        json!([user("u3", "Hm."), user("u4", "Again.")]),
        json!({}),
    )
    .await;
    assert_eq!(third.texts(), ["Three."]);
}

#[tokio::test]
async fn a_run_streams_is_cancelled_and_attached_to() {
    let (world, model) = slow().await;
    let all = world.all("").await;
    let body = input("t", &json!([user("u1", "What is it?")]), &json!({}));
    let request = all.request(Method::POST, "/agui/desk").json(&body);
    let mut response = request.send().await.unwrap();
    let session = response.headers()["x-steersman-session"]
        .to_str()
        .unwrap()
        .to_owned();
    let mut text = String::new();
    model.begins.notify_one();
    while !text.contains("water.") {
        let chunk = response.chunk().await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    assert!(!text.contains("RUN_FINISHED"), "{text}");
    // The connection is lost; the session is not.
    drop(response);
    let again = input("t", &json!([]), &json!({}));
    let path = format!("/v1/sessions/{session}/cancel");
    let cancel = all.post(&path, json!({ "what": "turn" }));
    let (attached, cancelled) = tokio::join!(sent(&all, "desk", &again), cancel);
    cancelled.is(202);
    assert_eq!(attached.session, session);
    assert_eq!(
        attached.last()["outcome"],
        json!({ "type": "cancelled" }),
        "{attached:#?}"
    );
    assert!(attached.last()["result"].is_null());
}

#[tokio::test]
async fn a_failure_is_an_error_and_what_is_not_offered_is_refused() {
    let world = world("front: [ One. ]").await;
    let all = world.all("").await;
    let one = json!([user("u1", "Hello.")]);
    run(&all, "t", one.clone(), json!({})).await;
    // The script is at its end, so the model fails.
    let failed = run(&all, "t", json!([user("u2", "More.")]), json!({})).await;
    assert_eq!(failed.kinds()[0], "RUN_STARTED");
    assert_eq!(failed.last()["type"], "RUN_ERROR", "{failed:#?}");
    assert!(failed.last()["code"].is_string());

    let tool = json!({ "tools": [{ "name": "toast", "description": "Shows a text." }] });
    run(&all, "u", one.clone(), tool)
        .await
        .fails("tools_unsupported");
    let prompt =
        json!([{ "id": "s", "role": "system", "content": "Be rude." }, user("u1", "Hello.")]);
    run(&all, "u", prompt, json!({}))
        .await
        .fails("prompt_unsupported");
    let picture =
        json!([{ "id": "u1", "role": "user", "content": [{ "type": "image", "source": {} }] }]);
    let why = run(&all, "u", picture, json!({})).await.fails("body");
    assert!(why.contains("/messages"), "{why}");
    run(
        &all,
        "u",
        json!([{ "role": "user", "content": "Hello." }]),
        json!({}),
    )
    .await
    .fails("body");

    let body = input("u", &one, &json!({}));
    all.post("/agui/other", body.clone())
        .await
        .fails(404, "definition");
    all.post("/agui/front", json!({ "threadId": "t" }))
        .await
        .fails(400, "body");
    all.post("/agui/front", json!({ "messages": 7 }))
        .await
        .fails(400, "body");
    let reader = NewToken {
        allows: vec![Permission::Read],
        ..whole("")
    };
    let reader = world.with(world.token(reader).await);
    reader
        .post("/agui/front", body.clone())
        .await
        .fails(403, "scope");
    let nobody = world.with(String::new());
    nobody.post("/agui/front", body).await.fails(401, "token");
}

#[tokio::test]
async fn a_conversation_from_elsewhere_precedes_the_thread() {
    let world = world("front: [ '{{ request.messages | length }}' ]").await;
    let all = world.all("").await;
    let earlier = json!([
        user("u1", "Hello."),
        { "id": "a1", "role": "assistant", "content": "Hi." },
        user("u2", "How many?"),
    ]);
    let told = run(&all, "t", earlier, json!({})).await;
    assert_eq!(told.texts(), ["3"], "{told:#?}");
}

#[tokio::test]
async fn threads_of_others_are_not_continued() {
    let world = world("front: [ One., Two., Three. ]").await;
    let ann = NewToken {
        scope: scope("acme", Some("ann")),
        ..whole("")
    };
    let ann = world.with(world.token(ann).await);
    let mine = run(&ann, "t", json!([user("u1", "My secret.")]), json!({})).await;
    for stranger in [
        scope("acme", Some("bob")),
        scope("acme", None),
        scope("", None),
    ] {
        let new = NewToken {
            scope: stranger,
            ..whole("")
        };
        let stranger = world.with(world.token(new).await);
        let told = run(&stranger, "t", json!([]), json!({})).await;
        told.fails("nothing_new");
        assert_ne!(told.session, mine.session);
    }
}

#[tokio::test]
async fn capabilities_are_those_of_the_definition() {
    let world = world("front: [ One. ]").await;
    let all = world.all("").await;
    let can = all.get("/agui/front/capabilities").await.is(200);
    assert_eq!(
        (&can["identity"]["name"], &can["tools"]["clientProvided"]),
        (&json!("front"), &json!(false))
    );
    let tools = can["tools"]["items"].as_array().unwrap().iter();
    let tools: Vec<&Json> = tools.map(|tool| &tool["name"]).collect();
    assert!(tools.contains(&&json!("refund")), "{tools:?}");
    assert_eq!(can["humanInTheLoop"]["approveWithEdits"], true);
    assert_eq!(can["multiAgent"]["subagents"][0]["name"], "helper");
    all.get("/agui/other/capabilities")
        .await
        .fails(404, "definition");
}

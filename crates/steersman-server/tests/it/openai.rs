//! OpenAI chat completions, as a client sees them that sends the whole conversation each time.

use crate::world::{Answer, Caller, World, scope, whole};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::Network;
use steersman::machine::stored::commit::LedgerEntry;
use steersman::machine::stored::ids::Line;
use steersman::runtime::store::memory::MemoryStore;
use steersman::views::reader::{Reader as _, Stored};
use steersman_server::{NewToken, Options, Permission};

const CHAT: &str = "/openai/v1/chat/completions";

const SCRIPT: &str = r#"
desk:
  - call: { refund: { cents: 3990 } }
  - Paid.
  - "To: {{ request.last }}"
  - Still here.
"#;

/// A definition whose agent asks the user.
fn asker() -> Network {
    let text = "
steersman: 1
name: asker
tools:
  customer: { description: Ask the customer., parameters: { question: string }, ask: user }
agents: { desk: { system: You ask., tools: [customer] } }
entry: desk
";
    Network::from_yaml(text).build().unwrap()
}

async fn world(script: &str) -> World {
    let options = Options {
        definitions: vec![asker()],
        ..Options::default()
    };
    World::over(Arc::new(MemoryStore::new()), script, options).await
}

/// A client with its conversation.
struct Client<'w> {
    caller: &'w Caller<'w>,
    model: &'static str,
    messages: Vec<Json>,
    tools: Json,
}

impl<'w> Client<'w> {
    fn new(caller: &'w Caller<'w>) -> Self {
        Self {
            caller,
            model: "desk",
            messages: Vec::new(),
            tools: json!([]),
        }
    }

    fn body(&self) -> Json {
        json!({ "model": self.model, "messages": self.messages, "tools": self.tools })
    }

    async fn send(&self, headers: &[(&str, &str)]) -> Answer {
        let mut request = self.caller.request(Method::POST, CHAT).json(&self.body());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request).await
    }

    /// Says something, adds the answer to the conversation, and returns it.
    async fn say(&mut self, text: &str) -> Json {
        self.messages
            .push(json!({ "role": "user", "content": text }));
        self.answer().await
    }

    async fn answer(&mut self) -> Json {
        let answer = self.send(&[]).await.is(200);
        self.messages.push(answer["choices"][0]["message"].clone());
        answer
    }
}

fn text(answer: &Json) -> &str {
    answer["choices"][0]["message"]["content"]
        .as_str()
        .unwrap_or_default()
}

/// The session of a completion.
fn session(answer: &Json) -> &str {
    let id = answer["id"]
        .as_str()
        .unwrap()
        .strip_prefix("chatcmpl-")
        .unwrap();
    id.rsplit_once('-').unwrap().0
}

#[track_caller]
fn fails(answer: &Answer, status: u16, code: &str) -> String {
    assert_eq!(answer.status, status, "{:#}", answer.json);
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.json["error"]["code"], code, "{:#}", answer.json);
    answer.json["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn definitions_are_models() {
    let world = world(SCRIPT).await;
    let all = world.all("").await;
    let listed = all.get("/openai/v1/models").await.is(200);
    let ids: Vec<&Json> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| &m["id"])
        .collect();
    assert_eq!(ids, [&json!("asker"), &json!("desk")]);
    let one = all.get("/openai/v1/models/desk").await.is(200);
    assert_eq!(
        (&one["object"], &one["id"]),
        (&json!("model"), &json!("desk"))
    );
    let named = all.get("/openai/v1/models/desk%2Fdesk").await.is(200);
    assert_eq!(named["id"], "desk/desk");
    fails(&all.get("/openai/v1/models/other").await, 404, "definition");
    fails(
        &all.get("/openai/v1/models/desk%2Fother").await,
        404,
        "definition",
    );
}

#[tokio::test]
async fn a_conversation_is_one_session_and_an_earlier_message_goes_back() {
    let world = world(SCRIPT).await;
    let all = world.all("").await;
    let mut client = Client::new(&all);
    let asks = client.say("My kettle is broken.").await;
    assert_eq!(asks["object"], "chat.completion");
    assert_eq!(asks["choices"][0]["finish_reason"], "stop");
    assert!(
        asks["usage"]["prompt_tokens"].as_u64().unwrap() > 0,
        "{asks:#}"
    );
    let id = session(&asks).to_owned();
    let question = all.question(&id).await;
    let address = format!("steersman approve {id} {question} --as manager");
    assert!(text(&asks).contains(&address), "{}", text(&asks));
    assert!(
        text(&asks).contains(r#"refund: {"cents":3990}"#),
        "{}",
        text(&asks)
    );

    // Meanwhile a message waits, and nothing goes back when the manager has decided.
    let waits = client.say("Is it done?").await;
    assert!(
        text(&waits).starts_with("Your message waits: "),
        "{}",
        text(&waits)
    );
    assert!(text(&waits).contains(&address));
    let place = format!("/v1/sessions/{id}/questions/{question}/approve");
    all.post(&place, json!({ "as": "manager" })).await.is(202);
    let path = format!("/v1/sessions/{id}/events?kinds=settled&until=settled");
    let mut last = all.stream(&path, None).await.rest().await;
    // The agent reads the message that waited with the result of the call.
    while last.pop().unwrap().data["answer"] != "Paid." {
        last = all.stream(&path, None).await.rest().await;
    }
    let next = client.say("And now?").await;
    assert_eq!(session(&next), id);
    assert_eq!(branches(&all, &id).await, 1);

    // The last answer again: the session goes back to the line before.
    assert_eq!(text(&next), "To: And now?");
    client.messages.pop();
    let again = client.answer().await;
    assert_eq!((session(&again), text(&again)), (&*id, "To: And now?"));
    assert_ne!(again["id"], next["id"]);
    assert_eq!(branches(&all, &id).await, 2);
    // An edited message does so, too.
    let more = client.say("More?").await;
    assert_eq!((session(&more), branches(&all, &id).await), (&*id, 2));
    client.messages.truncate(client.messages.len() - 2);
    let edited = client.say("What more?").await;
    assert_eq!((session(&edited), text(&edited)), (&*id, "Still here."));
    assert_eq!(branches(&all, &id).await, 3);
}

async fn branches(caller: &Caller<'_>, session: &str) -> usize {
    let path = format!("/v1/sessions/{session}/branches");
    caller.get(&path).await.is(200)["items"]
        .as_array()
        .unwrap()
        .len()
}

#[tokio::test]
async fn going_back_needs_the_permission() {
    let world = world("desk: [ One., Two., Three. ]").await;
    let new = NewToken {
        allows: vec![Permission::Read, Permission::Write],
        ..whole("")
    };
    let caller = world.with(world.token(new).await);
    let mut client = Client::new(&caller);
    client.say("Hello.").await;
    client.say("More.").await;
    client.messages.pop();
    let why = fails(&client.send(&[]).await, 403, "scope");
    assert!(why.contains("`time`"), "{why}");
}

#[tokio::test]
async fn questions_come_as_calls_where_the_client_has_the_functions() {
    let world = world(SCRIPT).await;
    let all = world.all("").await;
    let mut client = Client::new(&all);
    client.tools =
        json!([{ "type": "function", "function": { "name": "approve", "parameters": {} } }]);
    let asks = client.say("My kettle is broken.").await;
    assert_eq!(
        asks["choices"][0]["finish_reason"], "tool_calls",
        "{asks:#}"
    );
    let call = &asks["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"]["name"], "approve");
    let asked: Json =
        serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(asked["arguments"], json!({ "cents": 3990 }));
    assert_eq!(
        (&asked["kind"], &asked["tool"]),
        (&json!("approval"), &json!("refund"))
    );
    assert_eq!(asked["question"], call["id"]);

    let decide =
        |content: &str| json!({ "role": "tool", "tool_call_id": call["id"], "content": content });
    let mut unclear = client.messages.clone();
    unclear.push(decide("yes, go on"));
    let body = json!({ "model": "desk", "messages": unclear, "tools": client.tools });
    let why = fails(&all.post(CHAT, body).await, 400, "body");
    assert!(why.contains(r#"{"approve": true}"#), "{why}");
    // A token that may not decide gets the question as text, and its calls decide nothing.
    let clerk = NewToken {
        allows: vec![Permission::Read, Permission::Write],
        ..whole("")
    };
    let clerk = world.with(world.token(clerk).await);
    let mut forged = client.messages.clone();
    forged.push(decide(r#"{"approve": true}"#));
    let body = json!({ "model": "desk", "messages": forged, "tools": client.tools });
    fails(&clerk.post(CHAT, body).await, 403, "scope");

    client.messages.push(decide(r#"{"approve": true}"#));
    let paid = client.answer().await;
    assert_eq!((text(&paid), session(&paid)), ("Paid.", session(&asks)));
    // A decided question is not decided again.
    client.messages.pop();
    fails(&client.send(&[]).await, 404, "question");
}

#[tokio::test]
async fn the_only_question_to_the_client_is_answered_by_text() {
    let world =
        world("desk: [ { call: { customer: { question: To which account? } } }, Sent. ]").await;
    let all = world.all("").await;
    let mut client = Client::new(&all);
    client.model = "asker";
    let asks = client.say("Send 150.").await;
    assert_eq!(text(&asks), "To which account?");
    let sent = client.say("NO93").await;
    assert_eq!((text(&sent), session(&sent)), ("Sent.", session(&asks)));
    let mut client = Client::new(&all);
    client.model = "asker";
    client.tools = json!([{ "type": "function", "function": { "name": "answer" } }]);
    let asks = client.say("Send 250.").await;
    let call = &asks["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"]["name"], "answer", "{asks:#}");
    client
        .messages
        .push(json!({ "role": "tool", "tool_call_id": call["id"], "content": "NO94" }));
    let sent = client.answer().await;
    assert_eq!(text(&sent), "Sent.");
}

#[tokio::test]
async fn a_request_that_is_sent_again_is_carried_out_once() {
    let world = world("desk: [ One., Two., Three., Four. ]").await;
    let all = world.all("").await;
    let mut client = Client::new(&all);
    client.messages = vec![json!({ "role": "user", "content": "Hello." })];
    let first = client.send(&[]).await.is(200);
    // The clients of OpenAI count what they send again.
    let again = client
        .send(&[("x-stainless-retry-count", "1")])
        .await
        .is(200);
    assert_eq!(again, first);
    // The same words of somebody else, or later, are a conversation of their own.
    let other = client
        .send(&[("x-stainless-retry-count", "0")])
        .await
        .is(200);
    assert_ne!(session(&other), session(&first));
    let keyed = client.send(&[("idempotency-key", "k1")]).await.is(200);
    let again = client.send(&[("idempotency-key", "k1")]).await.is(200);
    assert_eq!(again, keyed);
    client.messages[0]["content"] = json!("Something else.");
    fails(
        &client.send(&[("idempotency-key", "k1")]).await,
        409,
        "repeated",
    );
    let refused = client.send(&[("idempotency-key", "k1")]).await;
    assert_eq!(refused.headers["x-should-retry"], "false");
}

#[tokio::test]
async fn a_session_is_named_or_begins_with_what_was_said_elsewhere() {
    let world = world("desk: [ One., Two., Three. ]").await;
    let all = world.all("").await;
    let mut client = Client::new(&all);
    client.messages = vec![
        json!({ "role": "user", "content": "My name is Anna." }),
        json!({ "role": "assistant", "content": "Hello Anna." }),
        json!({ "role": "user", "content": [{ "type": "text", "text": "Who am I?" }] }),
    ];
    let begun = client.send(&[]).await;
    let named = begun.headers["x-steersman-session"]
        .to_str()
        .unwrap()
        .to_owned();
    let begun = begun.is(200);
    assert_eq!(session(&begun), named);
    let path = format!("/v1/sessions/{named}/events?kinds=earlier,heard,settled&until=settled");
    let told = all.stream(&path, None).await.rest().await;
    let told: Vec<&Json> = told
        .iter()
        .map(|f| &f.data["text"])
        .filter(|t| t.is_string())
        .collect();
    assert_eq!(
        told,
        [
            &json!("My name is Anna."),
            &json!("Hello Anna."),
            &json!("Who am I?")
        ]
    );

    client.messages = vec![json!({ "role": "user", "content": "Go on." })];
    let on = client
        .send(&[("x-steersman-session", &named)])
        .await
        .is(200);
    assert_eq!((session(&on), text(&on)), (&*named, "Two."));
    let body =
        json!({ "model": "desk", "messages": client.messages, "metadata": { "session": named } });
    let on = all.post(CHAT, body).await.is(200);
    assert_eq!((session(&on), text(&on)), (&*named, "Three."));
    // A session of another definition, tenant or subject does not exist.
    let asker =
        json!({ "model": "asker", "messages": client.messages, "metadata": { "session": named } });
    fails(&all.post(CHAT, asker).await, 404, "session");
    for stranger in [
        whole("other"),
        NewToken {
            scope: scope("", Some("bob")),
            ..whole("")
        },
    ] {
        let stranger = world.with(world.token(stranger).await);
        let mut other = Client::new(&stranger);
        other.messages.clone_from(&client.messages);
        fails(
            &other.send(&[("x-steersman-session", &named)]).await,
            404,
            "session",
        );
    }
}

#[tokio::test]
async fn conversations_of_others_are_not_continued() {
    let world = world("desk: [ One., Two., Three., Four. ]").await;
    let of = |subject: &'static str| NewToken {
        scope: scope("acme", Some(subject)),
        ..whole("")
    };
    let ann = world.with(world.token(of("ann")).await);
    let mut client = Client::new(&ann);
    let id = session(&client.say("Hello.").await).to_owned();
    // The words of Ann, sent by Bob, are told to a session of Bob.
    let bob = world.with(world.token(of("bob")).await);
    let mut client = Client::new(&bob);
    client.messages = vec![
        json!({ "role": "user", "content": "Hello." }),
        json!({ "role": "assistant", "content": "One." }),
    ];
    let on = client.say("And?").await;
    assert_ne!(session(&on), id);
    // Sent by Ann, they go on in her session.
    let mut client = Client {
        caller: &ann,
        ..client
    };
    client.messages.truncate(2);
    assert_eq!(session(&client.say("And?").await), id);
    // One token for several people: `user` keeps them apart.
    let service = world.all("acme").await;
    let body = |user: &str| json!({ "model": "desk", "user": user, "messages": [{ "role": "user", "content": "Hello." }] });
    let one = service.post(CHAT, body("1")).await.is(200);
    let retry = service.request(Method::POST, CHAT).json(&body("2"));
    let two = Answer::of(retry.header("x-stainless-retry-count", "1")).await;
    assert_ne!(session(&one), session(&two.json));
}

#[tokio::test]
async fn a_stream_tells_what_a_completion_tells() {
    let world = world(SCRIPT).await;
    let all = world.all("").await;
    let mut body = json!({
        "model": "desk", "stream": true, "stream_options": { "include_usage": true },
        "messages": [{ "role": "user", "content": "My kettle is broken." }],
        "tools": [{ "type": "function", "function": { "name": "approve" } }],
    });
    let chunks = stream(&all, &body).await;
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk["object"] == "chat.completion.chunk"
                && chunk["id"] == chunks[0]["id"])
    );
    let call = chunks
        .iter()
        .find_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].get(0))
        .unwrap();
    assert_eq!(call["index"], 0);
    let [.., end, usage] = &chunks[..] else {
        panic!("{chunks:#?}")
    };
    assert_eq!(end["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(usage["choices"], json!([]));
    assert!(usage["usage"]["total_tokens"].as_u64().unwrap() > 0);

    let messages = body["messages"].as_array_mut().unwrap();
    let mut made = call.clone();
    made.as_object_mut().unwrap().remove("index");
    messages.push(json!({ "role": "assistant", "content": "", "tool_calls": [made] }));
    messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": r#"{"approve": false, "reason": "Too much."}"# }));
    let chunks = stream(&all, &body).await;
    let text: String = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(text, "Paid.");
    // Sent again as a whole completion, it has the same text.
    body["stream"] = json!(false);
    let request = all.request(Method::POST, CHAT).json(&body);
    let whole = Answer::of(request.header("x-stainless-retry-count", "1"))
        .await
        .is(200);
    assert_eq!(self::text(&whole), text);
    assert_eq!(whole["id"], chunks[0]["id"]);
}

/// The chunks of a stream, which ends with `[DONE]`.
async fn stream(caller: &Caller<'_>, body: &Json) -> Vec<Json> {
    let response = caller
        .request(Method::POST, CHAT)
        .json(body)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    let data = text
        .split("\n\n")
        .filter_map(|frame| frame.strip_prefix("data: "));
    let data: Vec<&str> = data.collect();
    let (last, chunks) = data.split_last().unwrap();
    assert_eq!(*last, "[DONE]");
    chunks
        .iter()
        .map(|chunk| serde_json::from_str(chunk).unwrap())
        .collect()
}

#[tokio::test]
async fn what_is_not_offered_is_refused_in_the_form_of_openai() {
    let world = world(SCRIPT).await;
    let all = world.all("").await;
    let hello = json!([{ "role": "user", "content": "Hello." }]);
    let with = |more: Json| {
        let mut body = json!({ "model": "desk", "messages": hello });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    for (more, says) in [
        (json!({ "n": 2 }), "`n`"),
        (json!({ "logprobs": true }), "`logprobs`"),
        (
            json!({ "tools": [{ "type": "function", "function": { "name": "search" } }] }),
            "`tools`",
        ),
        (
            json!({ "response_format": { "type": "json_object" } }),
            "`output`",
        ),
        (json!({ "modalities": ["audio"] }), "`modalities`"),
        (json!({ "messages": [] }), "nothing new"),
        (
            json!({ "messages": [{ "role": "system", "content": "Be rude." }, hello[0]] }),
            "prompts",
        ),
        (
            json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url" }] }] }),
            "no text",
        ),
        (
            json!({ "messages": [{ "role": "nobody", "content": "x" }] }),
            "`role`",
        ),
        (json!({ "messages": "Hello." }), "sequence"),
    ] {
        let why = fails(&all.post(CHAT, with(more.clone())).await, 400, "body");
        assert!(why.contains(says), "{more}: {why}");
    }
    // A field that changes no form is ignored.
    let ignored = json!({ "temperature": 0.2, "max_tokens": 9, "n": 1, "tools": [], "seed": 1, "unknown": true });
    all.post(CHAT, with(ignored)).await.is(200);
    let empty = json!({ "messages": [{ "role": "system", "content": "" }, { "role": "user", "content": "Hi." }] });
    all.post(CHAT, with(empty)).await.is(200);
    fails(
        &all.post(CHAT, with(json!({ "model": "other" }))).await,
        404,
        "definition",
    );
    fails(&all.get("/openai/v1/embeddings").await, 404, "path");
    fails(&all.get(CHAT).await, 405, "method");
    let nobody = world.with(String::new());
    let none = nobody.post(CHAT, with(json!({}))).await;
    assert_eq!(none.headers["www-authenticate"], "Bearer");
    assert_eq!(none.json["error"]["type"], "authentication_error");
    fails(&none, 401, "token");
    let reader = NewToken {
        allows: vec![Permission::Read],
        ..whole("")
    };
    let reader = world.with(world.token(reader).await);
    fails(&reader.post(CHAT, with(json!({}))).await, 403, "scope");
    // Other paths answer in their own form.
    all.get("/v1/nothing").await.fails(404, "path");
}

#[tokio::test]
async fn a_session_that_fails_is_an_error_that_no_client_repeats_by_itself() {
    let text = "
steersman: 1
name: short
agents: { desk: { system: You answer., limits: { model_calls: 1 }, tools: [look] } }
tools: { look: { native: 1, description: Looks., parameters: {}, effect: pure } }
entry: desk
";
    let look = steersman::tool_with("look", 1, |_: crate::world::Nothing, _| async move {
        Ok::<_, String>("x")
    });
    let network = Network::from_yaml(text).tool(look).build().unwrap();
    let options = Options {
        definitions: vec![network],
        ..Options::default()
    };
    let script = "desk: [ { call: { look: {} } }, Never. ]";
    let world = World::over(Arc::new(MemoryStore::new()), script, options).await;
    let all = world.all("").await;
    let body = json!({ "model": "short", "messages": [{ "role": "user", "content": "Look." }] });
    let failed = all.post(CHAT, body.clone()).await;
    assert_eq!(failed.headers["x-should-retry"], "false");
    assert_eq!(failed.json["error"]["type"], "server_error");
    let why = fails(&failed, 500, "model_calls");
    assert!(why.contains("model_calls"), "{why}");
    let mut streamed = body;
    streamed["stream"] = json!(true);
    let chunks = stream(&all, &streamed).await;
    assert_eq!(
        chunks.last().unwrap()["error"]["code"],
        "model_calls",
        "{chunks:#?}"
    );
}

/// The trace of a client's request is with the message, whether it begins a session or continues one.
#[tokio::test]
async fn a_request_with_a_trace_gives_it_to_the_message() {
    let world = world("desk: [ One., Two. ]").await;
    let caller = world.all("").await;
    let mut client = Client::new(&caller);
    let traces = [
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ];
    let mut session = String::new();
    for (n, trace) in traces.iter().enumerate() {
        client
            .messages
            .push(json!({ "role": "user", "content": format!("Number {n}.") }));
        let answer = client.send(&[("traceparent", trace)]).await;
        let named = answer.headers["x-steersman-session"].to_str();
        session = named.unwrap().to_owned();
        let answer = answer.is(200);
        client
            .messages
            .push(answer["choices"][0]["message"].clone());
    }
    let reader = Stored::plain(world.steersman.engine(), &session);
    let lines = reader.lines(Line::NONE, 100).await.unwrap();
    let entries = lines.iter().flat_map(|line| &line.ledger);
    let parents: Vec<&str> = entries
        .filter_map(|entry| match entry {
            LedgerEntry::Accepted { parent, .. } => parent.as_deref(),
            _ => None,
        })
        .collect();
    assert_eq!(parents, traces);
}

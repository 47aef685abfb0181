//! Sessions over the whole chain: definition, engine, chat completions and tools, with servers on the loopback at the
//! other ends.

use crate::listener::{Frame, Listener, Reply};
use crate::tools::{env, network};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_adapters::catalog::Catalog;
use steersman_adapters::command::CommandTools;
use steersman_adapters::http::HttpTools;
use steersman_adapters::schema::Schemas;
use steersman_definition::{Files, compile};
use steersman_machine::stored::commit::LedgerEntry;
use steersman_machine::stored::ids::{Line, Time};
use steersman_machine::trace;
use steersman_runtime::Env;
use steersman_runtime::clock::{System, Virtual};
use steersman_runtime::engine::{Engine, Options, Parts, StartOptions};
use steersman_runtime::feed::FeedItem;
use steersman_runtime::model::scripted::{Script, ScriptedModel};
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::{Session, Settled};
use steersman_runtime::store::SessionQuery;
use steersman_runtime::store::memory::MemoryStore;

/// An engine of real parts, except for its store, which is in memory.
pub(crate) fn engine(env: Env) -> Engine {
    Engine::new(Parts {
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(System),
        models: Arc::new(Catalog::default()),
        toolsets: vec![
            Arc::new(HttpTools::default()),
            Arc::new(CommandTools::default()),
        ],
        sealer: Sealer::ephemeral(),
        options: Options {
            env,
            judge: Some(Arc::new(Schemas::default())),
            ..Options::default()
        },
    })
}

/// Starts a session of this definition with this message.
pub(crate) async fn start(engine: &Engine, yaml: &str, say: &str) -> Session {
    let options = StartOptions {
        say: Some(say.to_owned()),
        ..StartOptions::default()
    };
    engine.start(network(yaml), options).await.unwrap()
}

/// Letters of the root's stack.
pub(crate) async fn letters(engine: &Engine, session: &Session) -> String {
    let seen = engine.inspect(session.id()).await.unwrap();
    let branch = seen.current_branch().unwrap();
    let root = branch.snapshot.agents.keys().next().copied().unwrap();
    let stack = seen.stack(branch, root);
    trace::letters(stack.iter().map(|(_, interaction): &(Line, _)| interaction))
}

fn text(text: &str) -> Reply {
    let event = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }],
                        "usage": { "prompt_tokens": 10, "completion_tokens": 5 } });
    Reply::stream(&[&format!("data: {event}\n\n"), "data: [DONE]\n\n"])
}

fn calls(list: &[(&str, Json)]) -> Reply {
    let calls = list.iter().enumerate().map(|(index, (name, args))| {
        json!({ "index": index, "id": format!("call_{index}"), "type": "function",
                "function": { "name": name, "arguments": args.to_string() } })
    });
    let calls = calls.collect::<Vec<_>>();
    let event =
        json!({ "choices": [{ "delta": { "tool_calls": calls }, "finish_reason": "tool_calls" }] });
    Reply::stream(&[&format!("data: {event}\n\n"), "data: [DONE]\n\n"])
}

fn answered(settled: &Settled) -> &str {
    let Settled::Answered { text, .. } = settled else {
        panic!("{settled:?}")
    };
    text
}

/// A model server that does not say what it can do, and then gives these replies.
async fn model(replies: Vec<Reply>) -> Listener {
    let silent = vec![Reply::with(404, &[], ""); 2];
    Listener::new([silent, replies].concat()).await
}

/// Returns the requests for answers, without the two that ask what the server can do.
fn asked(model: &Listener) -> Vec<crate::listener::Recorded> {
    model.requests().split_off(2)
}

const DESK: &str = r#"
secrets: { model_key: { env: MODEL_KEY }, bank_key: { env: BANK_KEY } }
config: { model_url: { type: string, env: MODEL_URL, live: true }, bank_url: { type: string, env: BANK_URL, live: true } }
models: { default: { url: "{{ config.model_url }}", model: m, key: "{{ secrets.model_key }}", calls: native } }
state: { token: { type: secret, optional: true }, balance: optional integer }
tools:
  login:
    description: Logs in.
    parameters: { user: string }
    effect: read
    http: { method: POST, url: "{{ config.bank_url }}/login", json: "{{ args }}", headers: { x-key: "{{ secrets.bank_key }}" } }
    set: { token: "{{ result.token }}" }
    result: Logged in.
  balance:
    description: The balance.
    effect: read
    requires: state.token is not none
    http: { url: "{{ config.bank_url }}/balance", headers: { authorization: "Bearer {{ state.token }}" } }
    set: { balance: "{{ result.cents }}" }
  double:
    description: Doubles a number.
    parameters: { n: integer }
    effect: pure
    command: [sh, -c, "echo $(( $1 * 2 ))", sh, "{{ args.n }}"]
agents:
  desk: { system: You are a desk., tools: [login, balance, double] }
"#;

#[tokio::test]
async fn a_desk_works_over_http_and_programs_and_keeps_its_secrets() {
    let model = model(vec![
        calls(&[("login", json!({ "user": "ann" }))]),
        calls(&[("balance", json!({})), ("double", json!({ "n": 21 }))]),
        text("You have 9.00."),
    ])
    .await;
    let bank = Listener::new(vec![
        Reply::json(200, r#"{"token":"tok-plain-secret"}"#),
        Reply::json(200, r#"{"cents":900}"#),
    ])
    .await;
    let engine = engine(env(&[
        ("MODEL_URL", &model.url),
        ("MODEL_KEY", "sk-model-secret"),
        ("BANK_URL", &bank.url),
        ("BANK_KEY", "bk-bank-secret"),
    ]));
    let session = start(&engine, DESK, "How much have I got?").await;
    let settled = session.settled().await.unwrap();
    assert_eq!(answered(&settled), "You have 9.00.");
    assert_eq!(
        letters(&engine, &session).await,
        "U A TC TR A TC TC TR TR A F"
    );

    let banked = bank.requests();
    assert_eq!(banked[0].body, r#"{"user":"ann"}"#);
    assert_eq!(banked[0].header("x-key"), Some("bk-bank-secret"));
    assert_eq!(
        banked[1].header("authorization"),
        Some("Bearer tok-plain-secret")
    );

    let requests = asked(&model);
    assert_eq!(
        requests[0].header("authorization"),
        Some("Bearer sk-model-secret")
    );
    let messages = requests[2].json()["messages"].clone();
    insta::assert_snapshot!(serde_json::to_string_pretty(&messages).unwrap());
    assert_eq!(
        model.connections(),
        2,
        "one to look around, one for all calls"
    );
    let told = requests
        .iter()
        .map(|request| request.body.clone())
        .collect::<String>();
    let store = engine.store();
    let head = store.head(session.id()).await.unwrap();
    let rows = (1..=head.0).filter_map(|n| store.row_now(session.id(), Line(n)).unwrap());
    let stored = rows.flat_map(|row| row.bytes.to_vec()).collect::<Vec<_>>();
    let stored = String::from_utf8_lossy(&stored).into_owned();
    assert!(stored.contains("Logged in."), "rows have texts in clear");
    for secret in ["tok-plain-secret", "sk-model-secret", "bk-bank-secret"] {
        assert!(!told.contains(secret), "{secret} went to the model");
        assert!(!stored.contains(secret), "{secret} is in the store");
    }
}

#[tokio::test]
async fn a_server_without_tools_serves_the_same_desk() {
    let props = Reply::json(
        200,
        r#"{"chat_template":"x","chat_template_caps":{"supports_tools":false}}"#,
    );
    // The server is asked when the session begins, and not again before the calls.
    let model = Listener::new(vec![
        props,
        text(r#"{"tool": "double", "arguments": {"n": 4}}"#),
        text(r#"{"answer": "It is 8."}"#),
    ])
    .await;
    let vars = env(&[
        ("MODEL_URL", &model.url),
        ("MODEL_KEY", "k"),
        ("BANK_URL", "http://127.0.0.1:1"),
        ("BANK_KEY", "k"),
    ]);
    let engine = engine(vars);
    let yaml = DESK.replace("calls: native", "calls: auto");
    let session = start(&engine, &yaml, "Twice four?").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "It is 8.");
    assert_eq!(letters(&engine, &session).await, "U A TC TR A F");
    let last = model.requests().last().unwrap().json();
    assert_eq!(last["messages"][3]["content"], "Result of double: 8");
    assert!(last.get("tools").is_none());
}

#[tokio::test]
async fn failures_of_a_provider_end_a_session_by_their_names() {
    for (reply, code) in [
        (
            Reply::json(
                401,
                r#"{"error":{"message":"bad key k-secret","type":"auth"}}"#,
            ),
            "unauthorized",
        ),
        (
            Reply::json(
                400,
                r#"{"error":{"type":"exceed_context_size_error","message":"too long","code":400}}"#,
            ),
            "context_overflow",
        ),
    ] {
        let model = model(vec![reply]).await;
        let vars = env(&[
            ("MODEL_URL", &model.url),
            ("MODEL_KEY", "k-secret"),
            ("BANK_URL", "-"),
            ("BANK_KEY", "-"),
        ]);
        let engine = engine(vars);
        let session = start(&engine, DESK, "Hello?").await;
        let Settled::Failed { code: got, message } = (*session.settled().await.unwrap()).clone()
        else {
            panic!()
        };
        assert_eq!(&*got, code);
        assert!(!message.contains("k-secret"), "{message}");
        assert_eq!(asked(&model).len(), 1, "it would fail again");
    }
}

/// Whole numbers that 64 bits do not hold: no digit is lost anywhere, and a tool that takes a number refuses them.
#[tokio::test]
async fn no_digit_of_a_number_is_lost_on_the_way() {
    let wide = "12345678901234567890123";
    let asks = r#"{"user":12345678901234567890123}"#;
    let event = json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "id": "c", "type": "function",
        "function": { "name": "login", "arguments": asks } }] }, "finish_reason": "tool_calls" }] });
    let asks = Reply::stream(&[&format!("data: {event}\n\n"), "data: [DONE]\n\n"]);
    let double = event
        .to_string()
        .replace("login", "double")
        .replace("user", "n");
    let double = Reply::stream(&[&format!("data: {double}\n\n"), "data: [DONE]\n\n"]);
    let model = model(vec![asks, double, text("So.")]).await;
    let bank = Listener::new(vec![Reply::json(
        200,
        r#"{"token":98765432109876543210987}"#,
    )])
    .await;
    let vars = env(&[
        ("MODEL_URL", &model.url),
        ("MODEL_KEY", "k"),
        ("BANK_URL", &bank.url),
        ("BANK_KEY", "-"),
    ]);
    let desk = DESK
        .replace(
            "result: Logged in.",
            "result: \"It is {{ result.shown }}.\"",
        )
        .replace("state.token is not none", "true");
    let desk = desk.replace("{{ result.shown }}", "{{ args.user }}");
    let engine = engine(vars);
    let session = start(&engine, &desk, "Go.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "So.");
    assert_eq!(bank.requests()[0].json(), json!({ "user": wide }));
    let messages = asked(&model).last().unwrap().json()["messages"].clone();
    assert_eq!(messages[3]["content"], format!("It is {wide}."));
    let refused = messages[5]["content"].as_str().unwrap();
    assert!(
        refused.contains(&format!(
            "is {wide}: 64 bits do not hold that, so it can only be text"
        )),
        "{refused}"
    );
}

#[tokio::test]
async fn a_key_that_is_revoked_in_the_middle_ends_the_turn_and_loses_nothing() {
    let refused = || {
        Reply::json(
            401,
            r#"{"error":{"message":"this key was revoked","type":"auth"}}"#,
        )
    };
    let call = calls(&[("login", json!({ "user": "ann" }))]);
    let model = model(vec![call, refused(), text("You are in.")]).await;
    let bank = Listener::new(vec![Reply::json(200, r#"{"token":"t"}"#)]).await;
    let vars = env(&[
        ("MODEL_URL", &model.url),
        ("MODEL_KEY", "k-secret"),
        ("BANK_URL", &bank.url),
        ("BANK_KEY", "-"),
    ]);
    let engine = engine(vars);
    let session = start(&engine, DESK, "Hello?").await;
    let Settled::Failed { code, message } = (*session.settled().await.unwrap()).clone() else {
        panic!()
    };
    assert_eq!(&*code, "unauthorized");
    assert!(message.contains("this key was revoked"), "{message}");
    // The login is not done again: with a good key the session goes on where it failed.
    session.retry(None, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "You are in.");
    assert_eq!(bank.requests().len(), 1);
}

#[tokio::test]
async fn a_broken_stream_is_asked_for_again_and_a_bad_answer_corrected() {
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"Half an\"}}]}\n\n";
    let model = model(vec![
        Reply::open(&[half]).then(Frame::Cut),
        calls(&[("double", json!({ "n": "four" }))]),
        calls(&[("nonsense", json!({}))]),
        text("Whole."),
    ])
    .await;
    let vars = env(&[
        ("MODEL_URL", &model.url),
        ("MODEL_KEY", "k"),
        ("BANK_URL", "-"),
        ("BANK_KEY", "-"),
    ]);
    let engine = engine(vars);
    let session = start(&engine, DESK, "Hello?").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Whole.");
    let messages = asked(&model).last().unwrap().json()["messages"].clone();
    insta::assert_snapshot!(serde_json::to_string_pretty(&messages).unwrap());
}

/// The code is the same whether the tool or its driver notices first that the time is up.
#[tokio::test]
async fn a_tool_whose_time_is_up_has_timed_out() {
    let model = model(vec![
        calls(&[("slow", json!({})), ("hang", json!({}))]),
        text("Too slow."),
    ])
    .await;
    let bank = Listener::new(vec![Reply(vec![Frame::Stall])]).await;
    let yaml = r#"
config: { model_url: { type: string, env: MODEL_URL, live: true }, bank_url: { type: string, env: BANK_URL, live: true } }
models: { default: { url: "{{ config.model_url }}", model: m, calls: native } }
tools:
  slow: { description: Slow., effect: read, timeout: 100ms, retry: 0, http: { url: "{{ config.bank_url }}/" } }
  hang: { description: Hangs., effect: read, timeout: 100ms, retry: 0, command: [sleep, "1000"] }
agents: { desk: { system: You are a desk., tools: [slow, hang] } }
"#;
    let engine = engine(env(&[("MODEL_URL", &model.url), ("BANK_URL", &bank.url)]));
    let session = start(&engine, yaml, "Go.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Too slow.");
    let messages = asked(&model)[1].json()["messages"].clone();
    for result in [&messages[3], &messages[4]] {
        let content = result["content"].as_str().unwrap();
        assert!(content.starts_with("Error: timeout: "), "{content}");
    }
}

/// An answer without the call that it had to make is corrected, and so is a value that a schema file refuses.
#[tokio::test]
async fn what_was_not_asked_for_is_corrected() {
    let model = model(vec![
        text("I would rather talk."),
        calls(&[("order", json!({ "lines": [] }))]),
        calls(&[("order", json!({ "lines": [{ "cents": 5 }] }))]),
        calls(&[("finish", json!({ "result": "ordered" }))]),
    ])
    .await;
    let yaml = r#"
config: { model_url: { type: string, env: MODEL_URL, live: true } }
models: { default: { url: "{{ config.model_url }}", model: m, calls: native } }
tools:
  order: { description: Orders., parameters: order.json, effect: pure, command: [echo, ordered] }
agents: { clerk: { system: You order., tools: [order, finish], tool_choice: any } }
"#;
    let schema = r#"{ "type": "object", "required": ["lines"], "properties": { "lines": { "type": "array", "minItems": 1 } } }"#;
    let files = Files::new("clerk.yaml", yaml).with("order.json", schema);
    let (network, diagnostics) = compile(&files);
    let network = network.unwrap_or_else(|| panic!("{diagnostics:?}"));
    let engine = engine(env(&[("MODEL_URL", &model.url)]));
    let options = StartOptions {
        say: Some("Order it.".to_owned()),
        ..StartOptions::default()
    };
    let session = engine.start(Arc::new(network), options).await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "ordered");
    let requests = asked(&model);
    assert_eq!(requests[0].json()["tool_choice"], "required");
    let last = requests[3].json()["messages"].clone();
    insta::assert_snapshot!(serde_json::to_string_pretty(&last).unwrap());
}

/// A stop cuts a model off. That is no failure of the model.
#[tokio::test]
async fn a_session_that_is_left_while_a_model_speaks_goes_on() {
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"Half an\"}}]}\n\n";
    let model = model(vec![
        Reply::open(&[half]).then(Frame::Stall),
        text("Whole."),
    ])
    .await;
    let engine = engine(env(&[
        ("MODEL_URL", &model.url),
        ("MODEL_KEY", "k"),
        ("BANK_URL", "-"),
        ("BANK_KEY", "-"),
    ]));
    let session = start(&engine, DESK, "Hello?").await;
    let id = session.id().to_owned();
    let mut feed = session.feed(Line::NONE);
    while !matches!(feed.next().await.unwrap(), FeedItem::Delta { .. }) {}
    session.stop().await;
    let session = engine.open(&id).await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Whole.");
}

#[tokio::test]
async fn what_a_server_claims_to_have_used_breaks_nothing() {
    let most = u64::MAX;
    let event = json!({ "choices": [{ "delta": { "content": "Yes." }, "finish_reason": "stop" }],
                        "usage": { "prompt_tokens": most, "completion_tokens": most } });
    let reply = Reply::stream(&[&format!("data: {event}\n\n"), "data: [DONE]\n\n"]);
    let model = model(vec![reply]).await;
    let engine = engine(env(&[
        ("MODEL_URL", &model.url),
        ("MODEL_KEY", "k"),
        ("BANK_URL", "-"),
        ("BANK_KEY", "-"),
    ]));
    let session = start(&engine, DESK, "Hello?").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Yes.");
    let seen = engine.inspect(session.id()).await.unwrap();
    // No answer has so many tokens: the bound of the call counts, in lists, too.
    let spent = seen.ledger.spent.tokens;
    assert!((8_192..10_000).contains(&spent), "{spent}");
    assert_eq!(seen.ledger.unbelievable, 1);
    let all = engine.store().sessions(&SessionQuery::default()).await;
    assert_eq!(all.unwrap()[0].state.tokens, spent);
}

#[tokio::test]
async fn no_field_of_a_usage_that_is_absurd_breaks_anything() {
    let most = u64::MAX.to_string();
    let beyond = format!("{most}0");
    let fields = [
        r#""prompt_tokens": MANY"#,
        r#""completion_tokens": MANY"#,
        r#""cached_tokens": MANY"#,
        r#""prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": { "cached_tokens": MANY }"#,
        r#""input_tokens": MANY, "output_tokens": MANY"#,
    ];
    for (field, many) in fields
        .iter()
        .flat_map(|field| [(field, &most), (field, &beyond)])
    {
        let usage = field.replace("MANY", many);
        let event = format!(
            r#"data: {{"choices":[{{"delta":{{"content":"Yes."}},"finish_reason":"stop"}}],"usage":{{{usage}}}}}"#
        );
        let reply = || Reply::stream(&[&format!("{event}\n\n"), "data: [DONE]\n\n"]);
        let model = model(vec![reply(), reply(), reply()]).await;
        let engine = engine(env(&[
            ("MODEL_URL", &model.url),
            ("MODEL_KEY", "k"),
            ("BANK_URL", "-"),
            ("BANK_KEY", "-"),
        ]));
        let session = start(&engine, DESK, "Hello?").await;
        for _ in 0..2 {
            assert_eq!(
                answered(&session.settled().await.unwrap()),
                "Yes.",
                "{usage}"
            );
            session.say("And?").await.unwrap();
        }
        assert_eq!(
            answered(&session.settled().await.unwrap()),
            "Yes.",
            "{usage}"
        );
        let seen = engine.inspect(session.id()).await.unwrap();
        let spent = seen.ledger.spent.tokens;
        assert!(spent < 30_000, "{usage}: {spent}");
    }
}

/// Tools that ask one host at one rate share a limiter, whatever their paths. The time is the engine's clock, and a call
/// that waits for its turn has not started.
#[tokio::test]
async fn a_rate_holds_for_a_host_and_nothing_is_started_while_it_waits() {
    let server = Listener::new(vec![Reply::json(200, "1"), Reply::json(200, "2")]).await;
    let definition = r#"
models: { default: scripted }
config: { shop: { type: string, env: SHOP, live: true } }
tools:
  post:
    description: Posts.
    effect: unsafe
    parameters: { n: integer }
    http: { url: "{{ config.shop }}/post", json: "{{ args }}", rate: 1/h }
  look:
    description: Looks.
    effect: read
    parameters: { n: integer }
    http: { url: "{{ config.shop }}/look", rate: 1/h }
agents: { clerk: { system: S., tools: [post, look] } }
"#;
    let script = json!({ "clerk": [
        { "call": { "look": { "n": 1 } } },
        { "call": { "post": { "n": 2 } } },
        "Done.",
    ] });
    let clock = Virtual::at(Time(1_767_614_400_000));
    let engine = Engine::new(Parts {
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(clock.clone()),
        models: Arc::new(ScriptedModel::new(Script::parse(&script).unwrap())),
        toolsets: vec![Arc::new(HttpTools::default())],
        sealer: Sealer::ephemeral(),
        options: Options {
            env: env(&[("SHOP", &server.url)]),
            ..Options::default()
        },
    });
    let session = start(&engine, definition, "Go.").await;
    let settled = session.settled().await.unwrap();
    assert!(matches!(&*settled, Settled::Waits(_)), "{settled:?}");
    assert_eq!(server.requests().len(), 1);
    let started = async || {
        let mut feed = engine.feed(session.id(), Line::NONE);
        let lines = feed.lines().await.unwrap();
        let entries = lines.iter().flat_map(|line| line.ledger.clone());
        entries
            .filter(|entry| matches!(entry, LedgerEntry::Started { .. }))
            .count()
    };
    assert_eq!(started().await, 0);
    clock.advance(3_600_000);
    loop {
        match &*session.settled().await.unwrap() {
            // The session has not looked at the clock yet.
            Settled::Waits(_) => tokio::task::yield_now().await,
            settled => break assert_eq!(answered(settled), "Done."),
        }
    }
    assert_eq!(server.requests()[1].line, "POST /post HTTP/1.1");
    assert_eq!(started().await, 1);
}

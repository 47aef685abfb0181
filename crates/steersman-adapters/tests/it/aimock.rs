//! All wires of models against a mock server of another project: start it with `scripts/mock-server.sh`, set
//! `STEERSMAN_MOCK_SERVER=http://127.0.0.1:18096/v1`, and run the tests with `--ignored`.

use crate::azure::azure;
use crate::bedrock::bedrock_as;
use crate::gemini::{gemini, vertex};
use crate::messages::messages;
use crate::request::{
    Seen, ask, ask_seen, assistant, chat, request, result, shown, two_tools, user,
};
use crate::responses::responses;
use steersman_machine::context::Request;
use steersman_machine::network::CallStyle;
use steersman_runtime::model::{Delta, Model};

/// The mock server over all wires.
fn server() -> [Box<dyn Model>; 8] {
    let url = std::env::var("STEERSMAN_MOCK_SERVER");
    let url = url.expect("STEERSMAN_MOCK_SERVER is set: scripts/mock-server.sh");
    let root = url.trim_end_matches("/v1");
    [
        Box::new(chat(&url)),
        Box::new(messages(&url)),
        Box::new(responses(&url)),
        Box::new(gemini(root)),
        Box::new(vertex(root)),
        Box::new(azure(root)),
        Box::new(azure(&format!("{root}?api-version=2024-10-21"))),
        // The mock server knows no points of a cache, so its model is one that keeps nothing.
        Box::new(bedrock_as(
            &format!("{root}?region=eu-central-1"),
            "mock.model",
        )),
    ]
}

async fn say(chat: &dyn Model, text: &str) -> String {
    let got = ask(chat, request(vec![two_tools(), user(text)])).await;
    let text = shown(&got);
    // The mock server counts tokens in its own way, and makes reasoning that is sent back.
    let kept = text
        .lines()
        .filter(|line| !line.starts_with("usage") && !line.starts_with("opaque"));
    kept.map(str::trim).collect::<Vec<_>>().join("; ")
}

#[tokio::test]
#[ignore = "needs STEERSMAN_MOCK_SERVER: scripts/mock-server.sh"]
async fn answers_calls_and_results() {
    for model in server() {
        answers(&*model).await;
    }
}

async fn answers(chat: &dyn Model) {
    let seen = Seen::default();
    let answer = ask_seen(chat, request(vec![user("say hello")]), &seen)
        .await
        .unwrap();
    assert_eq!(
        answer.text.as_deref(),
        Some("Hello! How can I help you today, in a few more words than one chunk?")
    );
    assert_eq!(seen.text(), answer.text.unwrap());
    assert!(seen.0.lock().unwrap().len() > 1, "it streams");
    // Over the other wires the mock server counts nothing.
    if chat.label().starts_with("compatible") {
        assert!(answer.usage.input > 0 && answer.usage.output > 0);
    }

    assert_eq!(
        say(chat, "weather and sum").await,
        "text  \"Let me look.\"; call  get_weather {\"city\":\"Bern\"} as Some(\"call_w\"); \
         call  add {\"a\":1,\"b\":2} as Some(\"call_s\")"
    );
    let turn = request(vec![
        two_tools(),
        user("weather and sum"),
        assistant(
            None,
            &[("call_w", "get_weather", "{}"), ("call_s", "add", "{}")],
            None,
        ),
        result("call_w", "get_weather", "rain", false),
        result("call_s", "add", "3", false),
    ]);
    assert_eq!(
        ask(chat, turn).await.unwrap().text.as_deref(),
        Some("Rain, and 3.")
    );
    let (asked, seen) = (request(vec![user("think first")]), Seen::default());
    let thought = ask_seen(chat, asked, &seen).await.unwrap();
    assert_eq!(thought.text.as_deref(), Some("42"));
    let pieces = seen.0.into_inner().unwrap().into_iter();
    let reasoning = pieces.filter_map(|delta| match delta {
        Delta::Reasoning(piece) => Some(piece),
        Delta::Text(_) | Delta::Call(..) => None,
    });
    assert_eq!(reasoning.collect::<String>(), "Six times seven is 42.");
    // Google keeps thoughts in signatures, which the mock server does not make.
    let is_kept = !chat.label().starts_with("gemini") && !chat.label().starts_with("vertex");
    let opaque = thought.opaque.unwrap_or_default();
    assert_eq!(opaque.contains("Six times seven"), is_kept, "{opaque}");
    assert_eq!(say(chat, "slow").await, "text  \"Slowly, but surely.\"");
}

#[tokio::test]
#[ignore = "needs STEERSMAN_MOCK_SERVER: scripts/mock-server.sh"]
async fn structured_output_stands_in_for_tools() {
    let [chat, ..] = server();
    let request = Request {
        calls: CallStyle::Structured,
        ..request(vec![two_tools(), user("structured")])
    };
    let answer = ask(&*chat, request).await.unwrap();
    assert_eq!(
        (answer.asks[0].name.as_str(), answer.asks[0].args.as_str()),
        ("add", r#"{"a":1,"b":2}"#)
    );
}

#[tokio::test]
#[ignore = "needs STEERSMAN_MOCK_SERVER: scripts/mock-server.sh"]
async fn every_kind_of_failure_keeps_its_class() {
    for model in server() {
        fails(&*model).await;
    }
}

async fn fails(chat: &dyn Model) {
    let mut got = Vec::new();
    for text in [
        "rate limited",
        "overloaded",
        "no key",
        "nobody wrote a fixture for this",
        "cut short",
        "chaos drop",
        "chaos malformed",
        "chaos disconnect",
        "chaos limit",
    ] {
        let said = say(chat, text).await;
        // A socket that is destroyed may lose what was written to it.
        let said = said.replace("disconnected", "truncated");
        got.push(format!("{text}: {}", said.split(';').next().unwrap()));
    }
    let expected = [
        "rate limited: failure rate_limited After(1000)",
        "overloaded: failure provider_overloaded Policy",
        "no key: failure unauthorized Never",
        "nobody wrote a fixture for this: failure model_not_found Never",
        "cut short: failure truncated Policy",
        "chaos drop: failure provider_error Policy",
        "chaos malformed: failure bad_response Policy",
        "chaos disconnect: failure truncated Policy",
        "chaos limit: failure rate_limited After(1000)",
    ];
    assert_eq!(got, expected);
}

/// The key is refused, or the model is unknown: the last fallback answers, and the usage names it.
#[tokio::test]
#[ignore = "needs STEERSMAN_MOCK_SERVER: scripts/mock-server.sh"]
async fn another_model_stands_in_over_real_connections() {
    use crate::listener::{Listener, Reply};
    let mock = std::env::var("STEERSMAN_MOCK_SERVER").expect("STEERSMAN_MOCK_SERVER is set");
    let event = serde_json::json!({
        "choices": [{ "delta": { "content": "I stand in." }, "finish_reason": "stop" }],
    });
    let answer = Reply::stream(&[&format!("data: {event}\n\n"), "data: [DONE]\n\n"]);
    let silent = Reply::with(404, &[], "");
    // The first two requests ask what the server can do, and it does not say.
    let each = [silent.clone(), silent, answer];
    let spare = Listener::new([each.clone(), each].concat()).await;
    let url = &spare.url;
    let definition = format!(
        "
models:
  default: {{ provider: compatible, url: \"{mock}\", model: m, calls: native, fallback: [other] }}
  other:   {{ provider: anthropic, url: \"{mock}\", model: m, fallback: [spare] }}
  spare:   {{ provider: compatible, url: \"{url}\", model: s, calls: native }}
agents: {{ clerk: {{ system: You help. }} }}
"
    );
    for fault in ["no key", "nobody wrote a fixture for this"] {
        let engine = crate::whole::engine(crate::tools::env(&[]));
        let session = crate::whole::start(&engine, &definition, fault).await;
        let settled = session.settled().await.unwrap();
        assert_eq!(settled.word(), "answered", "{fault}: {settled:?}");
        let mut feed = engine.feed(session.id(), steersman_machine::stored::ids::Line::NONE);
        let lines = feed.lines().await.unwrap();
        let commits = lines.iter().filter_map(|line| line.commit.as_ref());
        let asked: Vec<_> = commits.flat_map(|commit| &commit.usage).collect();
        assert_eq!(asked[0].model.as_deref(), Some("compatible/s"), "{fault}");
    }
}

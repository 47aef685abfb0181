//! Anthropic Messages: the requests, the streams, and servers over a connection.

use crate::listener::{Listener, Reply};
use crate::request::{
    Seen, ask, ask_seen, assistant, params, request, result, shown, system, two_tools, user,
};
use crate::wire::{decode, deltas};
use serde_json::{Value as Json, json};
use steersman_adapters::messages::encode::encode;
use steersman_adapters::messages::stream::Decoder;
use steersman_adapters::messages::{Messages, Server};
use steersman_adapters::wire::Timeouts;
use steersman_machine::context::{Content, Request};
use steersman_machine::network::{CallStyle, ToolChoice};

pub(crate) fn messages(url: &str) -> Messages {
    Messages::new(Server {
        label: "anthropic/test".into(),
        url: url.to_owned(),
        model: "test".to_owned(),
        timeouts: Timeouts::default(),
    })
}

#[test]
fn streams() {
    insta::glob!("messages/*.sse", |path| {
        let bytes = std::fs::read(path).unwrap();
        let seen = Seen::default();
        let answer = decode(&bytes, bytes.len(), Decoder::default(), &seen);
        for step in [1, 7, 100] {
            let again = decode(&bytes, step, Decoder::default(), &Seen::default());
            assert_eq!(again, answer, "cut every {step} bytes");
        }
        insta::assert_snapshot!(format!("{}{}", deltas(&seen), shown(&answer)));
    });
}

/// An answer goes back block by block as it came, in its own order.
#[test]
fn what_came_goes_back_as_it_came() {
    for name in [
        "thinking",
        "redacted",
        "text_behind_calls",
        "parallel_calls",
        "text",
    ] {
        let path = format!(
            "{}/tests/it/messages/{name}.sse",
            env!("CARGO_MANIFEST_DIR")
        );
        let bytes = std::fs::read(path).unwrap();
        let answer = decode(&bytes, 100, Decoder::default(), &Seen::default()).unwrap();
        let calls: Vec<_> = answer
            .asks
            .iter()
            .map(|a| (a.label.as_deref().unwrap(), &*a.name, &*a.args))
            .collect();
        let content = assistant(answer.text.as_deref(), &calls, answer.opaque.as_deref());
        let body = encode(&request(vec![user("Go."), content]), "m");
        let mut came = Vec::new();
        for event in String::from_utf8(bytes)
            .unwrap()
            .lines()
            .filter_map(|l| l.strip_prefix("data: "))
        {
            let event: Json = serde_json::from_str(event).unwrap();
            match event["type"].as_str().unwrap() {
                "content_block_start" => came.push(event["content_block"].clone()),
                "content_block_delta" => {
                    let block: &mut Json = came.last_mut().unwrap();
                    for (key, piece) in event["delta"].as_object().unwrap() {
                        match key.as_str() {
                            "type" => {}
                            "partial_json" => {
                                let so_far = block["args"].as_str().unwrap_or_default();
                                block["args"] =
                                    json!(format!("{so_far}{}", piece.as_str().unwrap()));
                            }
                            key => {
                                let so_far = block[key].as_str().unwrap_or_default();
                                block[key] = json!(format!("{so_far}{}", piece.as_str().unwrap()));
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        for block in &mut came {
            if let Some(args) = block.as_object_mut().unwrap().remove("args") {
                block["input"] = serde_json::from_str(args.as_str().unwrap()).unwrap();
            }
        }
        let mut sent = body["messages"][1]["content"].clone();
        for block in sent.as_array_mut().unwrap() {
            block.as_object_mut().unwrap().remove("cache_control");
        }
        assert_eq!(sent, Json::Array(came), "{name}");
    }
}

/// A conversation with every kind of content.
fn long() -> Request {
    Request {
        params: params(&[
            ("max_tokens", json!(64)),
            ("stop", json!(["END"])),
            ("temperature", json!(0.0)),
        ]),
        ..request(vec![
            system("You help."),
            two_tools(),
            user("What is the weather in Bern, and 1 + 2?"),
            assistant(
                Some("Let me look."),
                &[
                    ("3.1", "get_weather", "{\"city\":\"Bern\"}"),
                    ("call_b", "add", "{\"a\": 1, b}"),
                ],
                Some(r#"{"reasoning_content":"of another wire"}"#),
            ),
            result("3.1", "get_weather", "", false),
            result("call_b", "add", "the arguments are not JSON", true),
            user("And now?"),
            assistant(None, &[], None),
            user("Now is 12:00."),
            system("Be short."),
        ])
    }
}

fn pretty(body: &Json) -> String {
    serde_json::to_string_pretty(body).unwrap()
}

#[test]
fn a_conversation_is_encoded() {
    insta::assert_snapshot!(pretty(&encode(&long(), "claude-haiku-4-5")));
}

#[test]
fn choices_outputs_and_parameters_are_encoded() {
    let body = |request: Request| {
        let mut body = encode(&request, "m");
        for key in ["messages", "tools", "model", "stream"] {
            body.as_object_mut().unwrap().shift_remove(key);
        }
        body.to_string()
    };
    let with = |choice| {
        body(Request {
            choice,
            ..request(vec![two_tools(), user("Go.")])
        })
    };
    assert_eq!(with(ToolChoice::Auto), r#"{"max_tokens":8192}"#);
    assert_eq!(
        with(ToolChoice::Any),
        r#"{"max_tokens":8192,"tool_choice":{"type":"any"}}"#
    );
    assert_eq!(
        with(ToolChoice::None),
        r#"{"max_tokens":8192,"tool_choice":{"type":"none"}}"#
    );
    assert_eq!(
        with(ToolChoice::Tool("add".into())),
        r#"{"max_tokens":8192,"tool_choice":{"type":"tool","name":"add"}}"#
    );
    let schema = json!({ "type": "object", "required": ["minimum"], "properties": {
        "minimum": { "type": "integer", "minimum": 3 },
        "list": { "type": "array", "maxItems": 2, "items": { "anyOf": [{ "type": "object", "properties": {} }] } },
    } });
    let output = Request {
        output: Some(schema.to_string().into()),
        params: params(&[
            ("output_config", json!({ "effort": "low" })),
            ("thinking", json!({ "type": "adaptive" })),
        ]),
        ..request(vec![user("Go.")])
    };
    insta::assert_snapshot!(body(output));
    let began = Request {
        prefill: Some("{ ".into()),
        ..request(vec![Content::System("S".into())])
    };
    assert_eq!(
        encode(&began, "m")["messages"].to_string(),
        r#"[{"role":"user","content":[{"type":"text","text":"Begin."}]},{"role":"assistant","content":[{"type":"text","text":"{"}]}]"#
    );
}

fn marks(body: &Json) -> usize {
    body.to_string().matches("cache_control").count()
}

#[test]
fn never_more_than_four_marks_and_those_on_what_stays() {
    let body = encode(&long(), "m");
    assert_eq!(
        marks(&body),
        4,
        "tools, system, history, and the history of the call before"
    );
    let blocks = |body: &Json| body["messages"].as_array().unwrap().len();
    assert!(blocks(&body) >= 3);
    let thought = assistant(
        None,
        &[],
        Some(r#"{"blocks":[{"type":"thinking","thinking":"x","signature":"s"}]}"#),
    );
    let body = encode(&request(vec![user("Go."), thought]), "m");
    assert_eq!(marks(&body), 1);
    assert_eq!(marks(&body["messages"][0]), 1, "thinking carries none");
}

#[tokio::test]
async fn a_call_is_sent_and_its_answer_read() {
    let text = include_str!("messages/text.sse");
    let server = Listener::new(vec![Reply::stream(&[text])]).await;
    let seen = Seen::default();
    let answer = ask_seen(&messages(&server.url), request(vec![user("Hi")]), &seen)
        .await
        .unwrap();
    assert_eq!(
        (answer.text.as_deref(), seen.text().as_str()),
        (Some("Hello, ä"), "Hello, ä")
    );
    assert_eq!(
        (answer.usage.input, answer.usage.cached, answer.usage.output),
        (132, 100, 15)
    );
    assert_eq!(answer.usage.model.as_deref(), Some("anthropic/test"));
    let sent = server.request();
    assert_eq!(sent.line, "POST /v1/messages HTTP/1.1");
    assert_eq!(sent.header("x-api-key"), Some("sk-test-key"));
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(sent.header("authorization"), None);
    assert_eq!(sent.json()["stream"], true);
}

/// An answer that does not stream.
pub(crate) fn whole() -> Json {
    json!({ "type": "message", "role": "assistant", "stop_reason": "end_turn",
        "content": [{ "type": "text", "text": "All at once." }], "usage": { "input_tokens": 3, "output_tokens": 4 } })
}

#[tokio::test]
async fn failures_keep_their_class() {
    let error = |kind: &str, message: &str| {
        json!({ "type": "error", "error": { "type": kind, "message": message } }).to_string()
    };
    let mut got = String::new();
    for (status, headers, body) in [
        (529, vec![], error("overloaded_error", "Overloaded")),
        (
            429,
            vec![("retry-after", "3600")],
            error("rate_limit_error", "Too many tokens"),
        ),
        (
            401,
            vec![],
            error("authentication_error", "invalid x-api-key sk-test-key"),
        ),
        (
            400,
            vec![],
            error(
                "invalid_request_error",
                "prompt is too long: 213000 tokens > 200000 maximum",
            ),
        ),
        (
            413,
            vec![],
            error("request_too_large", "Request exceeds the maximum size"),
        ),
        (404, vec![], error("not_found_error", "model: claude-0")),
        (500, vec![], "<html>no</html>".to_owned()),
    ] {
        let server = Listener::new(vec![Reply::with(status, &headers, body)]).await;
        got.push_str(&shown(
            &ask(&messages(&server.url), request(vec![user("Hi")])).await,
        ));
    }
    assert!(!got.contains("sk-test-key"), "{got}");
    insta::assert_snapshot!(got);
    let server = Listener::new(vec![
        Reply::json(200, &whole().to_string()),
        Reply::json(200, "{}"),
    ])
    .await;
    let model = messages(&server.url);
    assert_eq!(
        ask(&model, request(vec![user("Hi")]))
            .await
            .unwrap()
            .text
            .as_deref(),
        Some("All at once.")
    );
    assert_eq!(
        ask(&model, request(vec![user("Hi")]))
            .await
            .unwrap_err()
            .code,
        "bad_response"
    );
}

#[tokio::test]
async fn structured_output_stands_in_for_tools() {
    let wanted = json!({ "tool": "add", "arguments": { "a": 1, "b": 2 } }).to_string();
    let whole = json!({ "type": "message", "stop_reason": "end_turn", "content": [{ "type": "text", "text": wanted }] });
    let server = Listener::new(vec![Reply::json(200, &whole.to_string())]).await;
    let asked = Request {
        calls: CallStyle::Structured,
        ..request(vec![two_tools(), user("1 + 2?")])
    };
    let answer = ask(&messages(&server.url), asked).await.unwrap();
    assert_eq!(
        (&*answer.asks[0].name, &*answer.asks[0].args),
        ("add", r#"{"a":1,"b":2}"#)
    );
    let sent = server.request().json();
    assert!(
        sent.get("tools").is_none() && sent["output_config"]["format"]["type"] == "json_schema",
        "{sent}"
    );
}

//! OpenAI Responses: the requests, the streams, and servers over a connection.

use crate::listener::{Listener, Reply};
use crate::request::{
    Seen, ask, ask_seen, assistant, params, request, result, shown, system, two_tools, user,
};
use crate::wire::{decode, deltas};
use serde_json::{Value as Json, json};
use steersman_adapters::responses::encode::encode;
use steersman_adapters::responses::stream::Decoder;
use steersman_adapters::responses::{Responses, Server};
use steersman_adapters::wire::Timeouts;
use steersman_machine::context::Request;
use steersman_machine::network::{CallStyle, ToolChoice};

pub(crate) fn responses(url: &str) -> Responses {
    Responses::new(Server {
        label: "responses/test".into(),
        url: url.to_owned(),
        model: "test".to_owned(),
        timeouts: Timeouts::default(),
    })
}

#[test]
fn streams() {
    insta::glob!("responses/*.sse", |path| {
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

/// Returns the items of the answer in a stream, as the last event tells them.
fn items(stream: &str) -> Vec<Json> {
    let mut events = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let last: Json = serde_json::from_str(events.next_back().unwrap()).unwrap();
    last["response"]["output"].as_array().unwrap().clone()
}

/// An answer goes back item by item as it came, in its own order. Messages and calls lose the ids of the provider, which stored nothing.
#[test]
fn what_came_goes_back_as_it_came() {
    for name in ["text", "reasoning", "parallel_calls"] {
        let path = format!(
            "{}/tests/it/responses/{name}.sse",
            env!("CARGO_MANIFEST_DIR")
        );
        let stream = std::fs::read_to_string(path).unwrap();
        let answer = decode(stream.as_bytes(), 100, Decoder::default(), &Seen::default()).unwrap();
        let calls: Vec<_> = answer
            .asks
            .iter()
            .map(|a| (a.label.as_deref().unwrap(), &*a.name, &*a.args))
            .collect();
        let content = assistant(answer.text.as_deref(), &calls, answer.opaque.as_deref());
        let body = encode(&request(vec![user("Go."), content]), "m", true);
        let came: Vec<Json> = items(&stream)
            .into_iter()
            .map(|mut item| {
                let fields = item.as_object_mut().unwrap();
                fields.remove("status");
                if fields["type"] == "message" {
                    fields.remove("id");
                    fields.remove("type");
                    fields["content"] = fields["content"][0]["text"].clone();
                } else if fields["type"] == "function_call" {
                    fields.remove("id");
                }
                item
            })
            .collect();
        assert_eq!(body["input"].as_array().unwrap()[1..], came, "{name}");
    }
}

/// Reasoning is refused without what it led to: a context policy may have left that out.
#[test]
fn reasoning_goes_back_only_with_what_it_led_to() {
    let thought =
        json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" });
    let opaque = json!({ "items": [thought, 3, "call"] }).to_string();
    let sent = |text, calls: &[(&str, &str, &str)]| {
        let body = encode(
            &request(vec![user("Go."), assistant(text, calls, Some(&opaque))]),
            "m",
            true,
        );
        body["input"].to_string().contains("rs_1")
    };
    assert!(sent(Some("Hi."), &[("c", "add", "{}")]));
    assert!(!sent(Some("Hi."), &[]));
    assert!(!sent(Some("Another"), &[("c", "add", "{}")]));
    let last = json!({ "items": [3, thought] }).to_string();
    let body = encode(
        &request(vec![user("Go."), assistant(Some("Hi."), &[], Some(&last))]),
        "m",
        true,
    );
    assert!(
        !body["input"].to_string().contains("rs_1"),
        "not at the end"
    );
}

/// A conversation with every kind of content.
fn long() -> Request {
    Request {
        params: params(&[
            ("max_tokens", json!(64)),
            ("temperature", json!(0.0)),
            ("reasoning_effort", json!("low")),
            ("reasoning", json!({ "summary": "auto" })),
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
                Some(r#"{"blocks":[{"type":"thinking","thinking":"of another wire"}]}"#),
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

#[test]
fn a_conversation_is_encoded() {
    let body = encode(&long(), "gpt-5-mini", true);
    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap());
}

#[test]
fn choices_outputs_and_parameters_are_encoded() {
    let body = |request: Request| {
        let mut body = encode(&request, "m", false);
        for key in ["input", "tools", "model", "stream", "store"] {
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
    assert_eq!(with(ToolChoice::Auto), "{}");
    assert_eq!(with(ToolChoice::Any), r#"{"tool_choice":"required"}"#);
    assert_eq!(with(ToolChoice::None), r#"{"tool_choice":"none"}"#);
    assert_eq!(
        with(ToolChoice::Tool("add".into())),
        r#"{"tool_choice":{"type":"function","name":"add"}}"#
    );
    let schema = json!({ "type": "object", "required": ["a"], "additionalProperties": false, "properties": {
        "a": { "type": "integer", "minimum": 3 }, "b": { "type": "string" } } });
    let output = Request {
        output: Some(schema.to_string().into()),
        params: params(&[
            ("text", json!({ "verbosity": "low" })),
            ("store", json!(true)),
            ("stream", Json::Null),
        ]),
        ..request(vec![user("Go.")])
    };
    assert_eq!(encode(&output, "m", false)["store"], true);
    assert_eq!(encode(&output, "m", false).get("stream"), None);
    insta::assert_snapshot!(body(output));
}

/// Ids of other providers may be too long, or the same in two answers.
#[test]
fn ids_are_unique_and_not_too_long() {
    let long = "x".repeat(200);
    let call = |label: &str| assistant(None, &[(label, "add", "{}")], None);
    let mut contents = vec![user("Go.")];
    for label in ["call_1", &long, "call_1"] {
        contents.push(call(label));
        contents.push(result(label, "add", "3", false));
    }
    let body = encode(&request(contents), "m", true);
    let ids: Vec<&str> = body["input"].as_array().unwrap()[1..]
        .iter()
        .map(|item| item["call_id"].as_str().unwrap())
        .collect();
    for pair in ids.chunks(2) {
        assert_eq!(pair[0], pair[1]);
        assert!(pair[0].len() <= 64, "{}", pair[0]);
    }
    assert_ne!(ids[0], ids[4]);
}

#[tokio::test]
async fn a_call_is_sent_and_its_answer_read() {
    let text = include_str!("responses/text.sse");
    let server = Listener::new(vec![Reply::stream(&[text])]).await;
    let seen = Seen::default();
    let answer = ask_seen(&responses(&server.url), request(vec![user("Hi")]), &seen)
        .await
        .unwrap();
    assert_eq!(
        (answer.text.as_deref(), seen.text().as_str()),
        (Some("Hello, ä"), "Hello, ä")
    );
    let usage = &answer.usage;
    assert_eq!(
        (
            usage.input,
            usage.cached,
            usage.cache_write,
            usage.output,
            usage.reasoning
        ),
        (132, 100, 8, 15, 6)
    );
    assert_eq!(usage.model.as_deref(), Some("responses/test"));
    assert_eq!(usage.served.as_deref(), Some("gpt-5-mini-2025-08-07"));
    let sent = server.request();
    assert_eq!(sent.line, "POST /v1/responses HTTP/1.1");
    assert_eq!(sent.header("authorization"), Some("Bearer sk-test-key"));
    let body = sent.json();
    assert_eq!(
        (&body["stream"], &body["store"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
}

/// A model without reasoning refuses to give it. That is learned once.
#[tokio::test]
async fn a_model_without_reasoning_is_asked_without_it() {
    let refused = json!({ "error": { "message": "Encrypted content is not supported with this model.",
        "type": "invalid_request_error", "param": "include", "code": null } });
    let text = include_str!("responses/text.sse");
    let (refused, answer) = (
        Reply::json(400, &refused.to_string()),
        Reply::stream(&[text]),
    );
    let server = Listener::new(vec![refused.clone(), answer.clone(), answer, refused]).await;
    let model = responses(&server.url);
    for _ in 0..2 {
        ask(&model, request(vec![user("Hi")])).await.unwrap();
    }
    let asked = server.requests();
    let asked: Vec<_> = asked
        .iter()
        .map(|sent| sent.json().get("include").is_some())
        .collect();
    assert_eq!(asked, [true, false, false]);
    let failed = ask(&model, request(vec![user("Hi")])).await.unwrap_err();
    assert_eq!(
        failed.code, "invalid_request",
        "it is not asked again for ever"
    );
}

#[tokio::test]
async fn a_whole_answer_is_read_and_failures_keep_their_class() {
    let part = json!({ "type": "output_text", "text": "All at once.", "annotations": [] });
    let whole = json!({ "object": "response", "status": "completed", "error": null, "model": "m",
        "output": [{ "type": "message", "role": "assistant", "content": [part] }],
        "usage": { "input_tokens": 3, "output_tokens": 4 } });
    let failed = json!({ "object": "response", "status": "failed", "output": [],
        "error": { "code": "server_error", "message": "The model failed" } });
    let error = json!({ "error": { "message": "Incorrect API key provided: sk-test-key", "code": "invalid_api_key" } });
    let mut got = String::new();
    for reply in [
        Reply::json(200, &whole.to_string()),
        Reply::json(200, &failed.to_string()),
        Reply::json(200, "{}"),
        Reply::json(401, &error.to_string()),
        Reply::json(
            200,
            &json!({ "status": "cancelled", "output": [] }).to_string(),
        ),
    ] {
        let server = Listener::new(vec![reply]).await;
        got.push_str(&shown(
            &ask(&responses(&server.url), request(vec![user("Hi")])).await,
        ));
    }
    assert!(!got.contains("sk-test-key"), "{got}");
    insta::assert_snapshot!(got);
    let begun = Request {
        prefill: Some("{".into()),
        ..request(vec![user("Hi")])
    };
    let refused = ask(&responses("http://127.0.0.1:9"), begun)
        .await
        .unwrap_err();
    assert_eq!(refused.code, "not_supported");
}

#[tokio::test]
async fn structured_output_stands_in_for_tools() {
    let wanted = json!({ "tool": "add", "arguments": { "a": 1, "b": 2 } }).to_string();
    let part = json!({ "type": "output_text", "text": wanted });
    let whole =
        json!({ "status": "completed", "output": [{ "type": "message", "content": [part] }] });
    let server = Listener::new(vec![Reply::json(200, &whole.to_string())]).await;
    let asked = Request {
        calls: CallStyle::Structured,
        ..request(vec![two_tools(), user("1 + 2?")])
    };
    let answer = ask(&responses(&server.url), asked).await.unwrap();
    assert_eq!(
        (&*answer.asks[0].name, &*answer.asks[0].args),
        ("add", r#"{"a":1,"b":2}"#)
    );
    let sent = server.request().json();
    let format = &sent["text"]["format"]["type"];
    assert!(
        sent.get("tools").is_none() && format == "json_schema",
        "{sent}"
    );
}

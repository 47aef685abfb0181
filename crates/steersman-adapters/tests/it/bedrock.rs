//! Bedrock's Converse: the requests, their signatures, the streams and their framing, and servers over a connection. Signatures and
//! streams are those of botocore (`scripts/aws-vectors.py`).

use crate::listener::{Listener, Reply};
use crate::request::{
    Seen, ask, ask_seen, assistant, call_of, params, request, result, shown, system, two_tools,
    user,
};
use crate::wire::deltas;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use steersman_adapters::bedrock::encode::encode;
use steersman_adapters::bedrock::sign::{Keys, Post, authorization};
use steersman_adapters::bedrock::stream::Decoder;
use steersman_adapters::bedrock::{Bedrock, Server};
use steersman_adapters::wire::frames::{Broken, Frames};
use steersman_adapters::wire::{Quiet, Reading, Timeouts};
use steersman_machine::context::Request;
use steersman_machine::network::{CallStyle, ToolChoice};
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::model::{Model as _, Sink};
use tokio_util::sync::CancellationToken;

pub(crate) const CLAUDE: &str = "eu.anthropic.claude-haiku-4-5-20251001-v1:0";

pub(crate) fn bedrock(url: &str) -> Bedrock {
    bedrock_as(url, CLAUDE)
}

pub(crate) fn bedrock_as(url: &str, model: &str) -> Bedrock {
    Bedrock::new(Server {
        label: "bedrock/test".into(),
        url: url.to_owned(),
        model: model.to_owned(),
        timeouts: Timeouts::default(),
    })
}

/// A row of `signatures.json`.
#[derive(Deserialize)]
pub(crate) struct Signed {
    host: String,
    path: String,
    content_type: String,
    body: String,
    id: String,
    secret: String,
    token: Option<String>,
    region: String,
    service: String,
    time: String,
    authorization: String,
}

pub(crate) const SIGNATURES: &str = include_str!("bedrock/signatures.json");

#[test]
fn signatures_are_those_of_botocore() {
    signs_alike(
        "kept",
        &serde_json::from_str::<Vec<Signed>>(SIGNATURES).unwrap(),
    );
}

pub(crate) fn signs_alike(from: &str, rows: &[Signed]) {
    assert_eq!(rows.len(), 50);
    for row in rows {
        let post = Post {
            host: &row.host,
            path: &row.path,
            content_type: &row.content_type,
            body: row.body.as_bytes(),
        };
        let keys = Keys {
            id: &row.id,
            secret: &row.secret,
            token: row.token.as_deref(),
        };
        let made = authorization(post, keys, &row.region, &row.service, &row.time);
        assert_eq!(made, row.authorization, "{from}: {}", row.path);
    }
}

/// A message as botocore's decoder reads it.
#[derive(Deserialize)]
struct Message {
    headers: std::collections::BTreeMap<String, String>,
    payload: String,
}

/// A row of `frames.json`.
#[derive(Deserialize)]
struct Framed {
    hex: String,
    messages: Option<Vec<Message>>,
    refused: Option<String>,
}

/// Returns the JSON that a message becomes.
fn told(message: &Message) -> Json {
    let header = |name: &str| message.headers[name].clone();
    let payload = serde_json::from_str::<Json>(&message.payload).unwrap_or_else(|_| json!({}));
    match &*header(":message-type") {
        "event" => json!({ header(":event-type"): payload }),
        "error" => {
            json!({ "error": { "type": header(":error-code"), "message": header(":error-message") } })
        }
        _ => {
            json!({ "error": { "type": header(":exception-type"), "message": payload["message"] } })
        }
    }
}

#[test]
fn frames_are_read_and_refused_as_botocore_does() {
    let rows: Vec<Framed> = serde_json::from_str(include_str!("bedrock/frames.json")).unwrap();
    let mut refused = 0;
    for row in &rows {
        let digits: Vec<u8> = row
            .hex
            .bytes()
            .map(|c| char::from(c).to_digit(16).unwrap() as u8)
            .collect();
        let bytes: Vec<u8> = digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect();
        for step in [1, 5, bytes.len()] {
            let (mut frames, mut got) = (Frames::default(), Vec::new());
            let read = bytes
                .chunks(step)
                .try_for_each(|piece| frames.push(piece, &mut got));
            let Some(messages) = &row.messages else {
                let expected = match row.refused.as_deref() {
                    Some("InvalidPayloadLength") => read == Err(Broken::TooLarge),
                    _ => matches!(read, Err(Broken::Corrupt(_))),
                };
                assert!(expected, "{read:?}: {:?}", row.refused);
                refused += 1;
                continue;
            };
            assert_eq!(read, Ok(()), "{}", row.hex);
            let got: Vec<Json> = got
                .iter()
                .map(|text| serde_json::from_str(text).unwrap())
                .collect();
            assert_eq!(got, messages.iter().map(told).collect::<Vec<_>>());
        }
    }
    assert_eq!(refused, 3 * 8);
}

/// Messages before a broken one count, wherever the bytes were cut. A broken one behind the end of an answer does no harm.
#[test]
fn messages_before_a_broken_one_are_read() {
    let broken = include_bytes!("bedrock/corrupt.frames");
    let whole = include_bytes!("bedrock/text.frames");
    let before = [&whole[..whole.len() - 1], b"x"].concat();
    let behind = [whole, &broken[..]].concat();
    for step in [1, 7, 10_000] {
        let seen = Seen::default();
        assert_eq!(read(&before, step, &seen).unwrap_err().code, "bad_response");
        assert_eq!(seen.text(), "Hello, ä");
        let answer = read(&behind, step, &Seen::default()).unwrap();
        assert_eq!(answer.text.as_deref(), Some("Hello, ä"));
    }
}

/// Lengths that cannot be, with a checksum that is right: the checksum alone does not make a message.
#[test]
fn impossible_lengths_and_headers_are_refused() {
    let whole = |all: u32, headers: u32, rest: &[u8]| {
        let mut bytes = [all.to_be_bytes(), headers.to_be_bytes()].concat();
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes.extend_from_slice(rest);
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        let mut events = Vec::new();
        Frames::default().push(&bytes, &mut events).map(|()| events)
    };
    for (all, headers) in [(0, 0), (15, 0), (16, 1), (20, u32::MAX), (40, 25)] {
        let read = whole(all, headers, &[0; 40]);
        assert!(
            matches!(read, Err(Broken::Corrupt(_))),
            "{all} {headers}: {read:?}"
        );
    }
    assert_eq!(whole(16, 0, &[]), Ok(Vec::new()));
    for wrong in [
        &[9, b'a'][..],
        &[1, b'a', 10],
        &[1, b'a', 7, 0, 9, b'x'],
        &[1, 0xff, 0],
    ] {
        let len = wrong.len() as u32;
        let read = whole(16 + len, len, wrong);
        assert!(
            matches!(read, Err(Broken::Corrupt(_))),
            "{wrong:?}: {read:?}"
        );
    }
    let large = (4_u32 << 20) + 1;
    assert_eq!(whole(large, 0, &[]), Err(Broken::TooLarge));
}

pub(crate) fn read(bytes: &[u8], step: usize, sink: &dyn Sink) -> Result<Answer, Failure> {
    let mut reading = Reading::new(Decoder::default());
    for piece in bytes.chunks(step) {
        if reading.is_done() {
            break;
        }
        reading.push(piece, sink)?;
    }
    reading.end(sink);
    reading.finish()
}

#[test]
fn streams() {
    insta::glob!("bedrock/*.frames", |path| {
        let bytes = std::fs::read(path).unwrap();
        let seen = Seen::default();
        let answer = read(&bytes, bytes.len(), &seen);
        for step in [1, 7, 100] {
            assert_eq!(read(&bytes, step, &Quiet), answer, "cut every {step} bytes");
        }
        insta::assert_snapshot!(format!("{}{}", deltas(&seen), shown(&answer)));
    });
}

/// Reasoning goes back with its signature, in front of what it led to, also over the wire of Anthropic.
#[test]
fn what_came_goes_back_as_it_came() {
    for (name, expected) in [
        (
            "thinking",
            json!([{ "reasoningContent": { "reasoningText": { "text": "Six times seven.", "signature": "c2ln" } } }, { "text": "42" }]),
        ),
        (
            "redacted",
            json!([{ "reasoningContent": { "redactedContent": "cmVk" } }, { "text": "42" }]),
        ),
        (
            "calls",
            json!([{ "text": "Let me look." },
                { "toolUse": { "toolUseId": "tooluse_a", "name": "get_weather", "input": { "city": "Bern" } } },
                { "toolUse": { "toolUseId": "tooluse_b", "name": "add", "input": {} } }]),
        ),
    ] {
        let path = format!(
            "{}/tests/it/bedrock/{name}.frames",
            env!("CARGO_MANIFEST_DIR")
        );
        let answer = read(&std::fs::read(path).unwrap(), 100, &Quiet).unwrap();
        let calls: Vec<_> = answer
            .asks
            .iter()
            .map(|a| (a.label.as_deref().unwrap(), &*a.name, &*a.args))
            .collect();
        let content = assistant(answer.text.as_deref(), &calls, answer.opaque.as_deref());
        let said = || request(vec![user("Go."), content.clone()]);
        // A model that keeps nothing: marks are left out.
        let body = encode(&said(), "meta.llama3");
        assert_eq!(body["messages"][1]["content"], expected, "{name}");
        let body = steersman_adapters::messages::encode::encode(&said(), "m");
        let kinds = body["messages"][1]["content"].as_array().unwrap().iter();
        let kinds: Vec<_> = kinds.map(|block| block["type"].as_str().unwrap()).collect();
        assert_eq!(kinds.len(), expected.as_array().unwrap().len(), "{kinds:?}");
    }
}

/// A conversation with every kind of content.
pub(crate) fn long() -> Request {
    Request {
        params: params(&[
            ("max_tokens", json!(64)),
            ("stop", json!("END")),
            ("temperature", json!(0.0)),
            (
                "thinking",
                json!({ "type": "enabled", "budget_tokens": 1024 }),
            ),
            ("serviceTier", json!({ "type": "flex" })),
            ("inferenceConfig", json!({ "topP": 0.5 })),
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
                None,
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
    let body = encode(&long(), CLAUDE);
    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap());
}

/// A model that knows neither marks for a cache nor the status of a result refuses a request with them.
#[test]
fn other_models_get_only_what_they_take() {
    let body = encode(&long(), "mistral.mistral-large-2407-v1:0").to_string();
    assert!(
        !body.contains("cachePoint") && !body.contains("\"status\""),
        "{body}"
    );
    assert!(body.contains("Error: the arguments are not JSON"), "{body}");
    let nova = encode(&long(), "amazon.nova-lite-v1:0");
    assert!(
        nova["messages"].to_string().contains("cachePoint"),
        "{nova}"
    );
    assert!(
        !nova["toolConfig"].to_string().contains("cachePoint"),
        "{nova}"
    );
    let old = encode(&long(), "anthropic.claude-3-haiku-20240307-v1:0").to_string();
    assert!(
        !old.contains("cachePoint") && old.contains("\"status\""),
        "{old}"
    );
    // Reasoning without a signature is that of a model that does not take it back.
    let thought = json!({ "blocks": [{ "type": "thinking", "thinking": "hm" }, 2] }).to_string();
    let body = encode(
        &request(vec![
            user("Go."),
            assistant(Some("Hi"), &[], Some(&thought)),
        ]),
        "deepseek.r1-v1:0",
    );
    assert_eq!(body["messages"][1]["content"], json!([{ "text": "Hi" }]));
}

#[test]
fn choices_and_outputs_are_encoded() {
    let with = |choice| {
        let asked = Request {
            choice,
            ..request(vec![two_tools(), user("Go.")])
        };
        encode(&asked, "m")
    };
    let choice = |choice| with(choice)["toolConfig"]["toolChoice"].clone();
    assert_eq!(choice(ToolChoice::Auto), Json::Null);
    assert_eq!(choice(ToolChoice::Any), json!({ "any": {} }));
    assert_eq!(
        choice(ToolChoice::Tool("add".into())),
        json!({ "tool": { "name": "add" } })
    );
    assert_eq!(choice(ToolChoice::None), Json::Null);
    let told = with(ToolChoice::None)["system"].to_string();
    assert!(told.contains("call no tool"), "{told}");
    let schema =
        json!({ "type": "object", "properties": { "a": { "type": "integer", "minimum": 3 } } });
    let output = Request {
        output: Some(schema.to_string().into()),
        ..request(vec![user("Go.")])
    };
    let format = encode(&output, "m")["outputConfig"]["textFormat"].clone();
    assert_eq!(format["type"], "json_schema");
    let schema = format["structure"]["jsonSchema"]["schema"]
        .as_str()
        .unwrap();
    let schema: Json = serde_json::from_str(schema).unwrap();
    assert_eq!(schema["properties"]["a"], json!({ "type": "integer" }));
    // A long id is the same for a call and its result.
    let long = "x".repeat(200);
    let call = assistant(None, &[(&long, "add", "{}")], None);
    let body = encode(
        &request(vec![user("Go."), call, result(&long, "add", "3", false)]),
        "m",
    );
    let id = &body["messages"][1]["content"][0]["toolUse"]["toolUseId"];
    assert_eq!(
        *id,
        body["messages"][2]["content"][0]["toolResult"]["toolUseId"]
    );
    assert!(id.as_str().unwrap().len() <= 64);
}

/// A stream of Amazon's messages with its proper end.
pub(crate) fn frames(bytes: &[u8]) -> Reply {
    let kind = [("content-type", "application/vnd.amazon.eventstream")];
    Reply::with(200, &kind, bytes)
}

const KEYS: &str = "AKIDEXAMPLE wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY token-of-a-session";

#[tokio::test]
async fn a_signed_call_is_sent_and_its_answer_read() {
    let server = Listener::new(vec![frames(include_bytes!("bedrock/text.frames"))]).await;
    let model = bedrock(&format!("{}?region=eu-central-1", server.url));
    let call = call_of(request(vec![user("Hi")]), Some(KEYS));
    let seen = Seen::default();
    let answer = model
        .call(&call, &seen, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        (answer.text.as_deref(), seen.text().as_str()),
        (Some("Hello, ä"), "Hello, ä")
    );
    let usage = &answer.usage;
    assert_eq!(
        (usage.input, usage.cached, usage.cache_write, usage.output),
        (132, 100, 12, 15)
    );
    assert_eq!(usage.model.as_deref(), Some("bedrock/test"));
    let sent = server.request();
    let path = "/model/eu.anthropic.claude-haiku-4-5-20251001-v1%3A0/converse-stream";
    assert_eq!(sent.line, format!("POST {path} HTTP/1.1"));
    assert_eq!(
        sent.header("x-amz-security-token"),
        Some("token-of-a-session")
    );
    // The server signs what it got, with the keys that it knows.
    let keys = Keys {
        id: "AKIDEXAMPLE",
        secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        token: Some("token-of-a-session"),
    };
    let post = Post {
        host: sent.header("host").unwrap(),
        path,
        content_type: sent.header("content-type").unwrap(),
        body: sent.body.as_bytes(),
    };
    let time = sent.header("x-amz-date").unwrap();
    let expected = authorization(post, keys, "eu-central-1", "bedrock", time);
    assert_eq!(sent.header("authorization"), Some(&*expected));
    assert!(!sent.body.contains("wJalr"));
}

pub(crate) fn whole() -> Json {
    json!({ "output": { "message": { "role": "assistant", "content": [
        { "reasoningContent": { "reasoningText": { "text": "hm", "signature": "s" } } }, { "text": "All at once." },
        { "toolUse": { "toolUseId": "a", "name": "add", "input": { "a": 1 } } }] } },
        "stopReason": "tool_use", "usage": { "inputTokens": 3, "outputTokens": 4, "totalTokens": 7 } })
}

#[tokio::test]
async fn an_api_key_is_sent_alone_and_a_whole_answer_read() {
    let server = Listener::new(vec![
        Reply::json(200, &whole().to_string()),
        Reply::json(200, "{}"),
    ])
    .await;
    let model = bedrock(&server.url);
    let asked = || Request {
        params: params(&[("stream", json!(false))]),
        ..request(vec![two_tools(), user("Hi")])
    };
    let answer = ask(&model, asked()).await;
    insta::assert_snapshot!(shown(&answer));
    let sent = server.request();
    assert!(sent.line.ends_with("/converse HTTP/1.1"), "{}", sent.line);
    assert_eq!(sent.header("authorization"), Some("Bearer sk-test-key"));
    assert_eq!(sent.json().get("stream"), None);
    assert_eq!(ask(&model, asked()).await.unwrap_err().code, "bad_response");
}

#[tokio::test]
async fn failures_keep_their_class_and_tell_no_key() {
    let error = |status, kind: &str, message: &str| {
        let body = json!({ "message": message }).to_string();
        Reply::with(status, &[("x-amzn-errortype", kind)], body)
    };
    let mut got = String::new();
    for reply in [
        error(
            403,
            "UnrecognizedClientException",
            "The security token token-of-a-session is invalid: AKIDEXAMPLE",
        ),
        error(
            429,
            "ThrottlingException:http://internal.amazon.com/",
            "Too many requests",
        ),
        error(
            400,
            "ValidationException",
            "Input is too long for requested model.",
        ),
        error(400, "ServiceQuotaExceededException", "The quota is used up"),
        error(
            404,
            "ResourceNotFoundException",
            "Could not resolve the foundation model",
        ),
        error(424, "ModelErrorException", "The model failed"),
        error(503, "ServiceUnavailableException", "Busy"),
        frames(include_bytes!("bedrock/throttled.frames")),
        frames(include_bytes!("bedrock/corrupt.frames")),
        frames(include_bytes!("bedrock/truncated.frames")),
    ] {
        let server = Listener::new(vec![reply]).await;
        let model = bedrock(&format!("{}?region=eu-central-1", server.url));
        let call = call_of(request(vec![user("Hi")]), Some(KEYS));
        let answer = model.call(&call, &Quiet, &CancellationToken::new()).await;
        got.push_str(&shown(&answer));
    }
    assert!(!got.contains("token-of") && !got.contains("AKID"), "{got}");
    insta::assert_snapshot!(got);
    let call = call_of(request(vec![user("Hi")]), Some(KEYS));
    let without = bedrock("http://127.0.0.1:9");
    let refused = without
        .call(&call, &Quiet, &CancellationToken::new())
        .await
        .unwrap_err();
    assert!(
        refused.message.contains("add `?region=`"),
        "{}",
        refused.message
    );
}

#[tokio::test]
async fn structured_output_stands_in_for_tools() {
    let wanted = json!({ "tool": "add", "arguments": { "a": 1, "b": 2 } }).to_string();
    let whole = json!({ "output": { "message": { "content": [{ "text": wanted }] } }, "stopReason": "end_turn" });
    let server = Listener::new(vec![Reply::json(200, &whole.to_string())]).await;
    let asked = Request {
        calls: CallStyle::Structured,
        ..request(vec![two_tools(), user("1 + 2?")])
    };
    let answer = ask_seen(&bedrock(&server.url), asked, &Seen::default())
        .await
        .unwrap();
    assert_eq!(
        (&*answer.asks[0].name, &*answer.asks[0].args),
        ("add", r#"{"a":1,"b":2}"#)
    );
    let sent = server.request().json();
    assert!(
        sent.get("toolConfig").is_none() && sent["outputConfig"].is_object(),
        "{sent}"
    );
}

//! Gemini's wire: the requests, the streams, and servers over a connection, with a key and with access tokens.

use crate::listener::{Listener, Reply};
use crate::request::{
    Seen, ask, ask_seen, assistant, call_of, params, request, result, shown, system, two_tools,
    user,
};
use crate::wire::{decode, deltas};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value as Json, json};
use steersman_adapters::gemini::encode::encode;
use steersman_adapters::gemini::stream::Decoder;
use steersman_adapters::gemini::{Gemini, Server, Site};
use steersman_adapters::wire::Timeouts;
use steersman_machine::context::Request;
use steersman_machine::network::{CallStyle, ToolChoice};
use steersman_runtime::model::Model as _;
use tokio_util::sync::CancellationToken;

pub(crate) fn gemini(url: &str) -> Gemini {
    at(url, Site::Gemini)
}

pub(crate) fn vertex(url: &str) -> Gemini {
    at(&format!("{url}/v1/projects/p/locations/eu"), Site::Vertex)
}

fn at(url: &str, site: Site) -> Gemini {
    let name = match site {
        Site::Gemini => "gemini",
        Site::Vertex => "vertex",
    };
    Gemini::new(Server {
        label: format!("{name}/test").into(),
        url: url.to_owned(),
        model: "gemini-test".to_owned(),
        site,
        timeouts: Timeouts::default(),
    })
}

#[test]
fn streams() {
    insta::glob!("gemini/*.sse", |path| {
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

/// An answer goes back part by part as it came, with its signatures, and without thoughts. Neighbouring texts without signatures are one
/// part.
#[test]
fn what_came_goes_back_as_it_came() {
    for name in [
        "text",
        "thinking",
        "parallel_calls",
        "calls_without_ids",
        "signed_texts",
    ] {
        let path = format!("{}/tests/it/gemini/{name}.sse", env!("CARGO_MANIFEST_DIR"));
        let stream = std::fs::read_to_string(path).unwrap();
        let answer = decode(stream.as_bytes(), 100, Decoder::default(), &Seen::default()).unwrap();
        let labels = ["1", "2"];
        let calls: Vec<_> = answer
            .asks
            .iter()
            .zip(labels)
            .map(|(a, label)| (a.label.as_deref().unwrap_or(label), &*a.name, &*a.args))
            .collect();
        let content = assistant(answer.text.as_deref(), &calls, answer.opaque.as_deref());
        let body = encode(&request(vec![user("Go."), content]), "gemini-2.5-flash");
        let mut came: Vec<Json> = Vec::new();
        let chunks = stream
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        for chunk in chunks {
            let chunk: Json = serde_json::from_str(chunk).unwrap();
            for part in chunk["candidates"][0]["content"]["parts"]
                .as_array()
                .unwrap()
            {
                let mut part = part.clone();
                if part["thought"] == true {
                    continue;
                }
                if part["functionCall"].is_object() && part["functionCall"].get("args").is_none() {
                    part["functionCall"]["args"] = json!({});
                }
                let is_plain = |part: &Json| {
                    part.get("text").is_some() && part.get("thoughtSignature").is_none()
                };
                match came
                    .last_mut()
                    .filter(|last| is_plain(last) && is_plain(&part))
                {
                    Some(last) => {
                        let both = [
                            last["text"].as_str().unwrap(),
                            part["text"].as_str().unwrap(),
                        ];
                        last["text"] = json!(both.concat());
                    }
                    None => came.push(part),
                }
            }
        }
        assert_eq!(body["contents"][1]["parts"], Json::Array(came), "{name}");
    }
}

/// A conversation with every kind of content.
fn long() -> Request {
    Request {
        params: params(&[
            ("max_tokens", json!(64)),
            ("stop", json!("END")),
            ("temperature", json!(0.0)),
            ("reasoning_effort", json!("low")),
            ("generationConfig", json!({ "candidateCount": 1 })),
            ("safetySettings", json!([])),
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
    let body = encode(&long(), "gemini-3.8-flash");
    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap());
}

/// A newer model refuses a call without a signature: one of another model gets the sign that says so.
#[test]
fn a_call_of_another_model_is_marked_for_models_that_sign() {
    let marked = |model: &str, opaque: Option<&str>| {
        let calls = [("a", "add", "{}"), ("b", "add", "{}")];
        let body = encode(
            &request(vec![user("Go."), assistant(None, &calls, opaque)]),
            model,
        );
        let parts = body["contents"][1]["parts"].as_array().unwrap().clone();
        let marks = parts
            .iter()
            .map(|part| part.get("thoughtSignature").cloned());
        marks.collect::<Vec<_>>()
    };
    let skip = Some(json!("skip_thought_signature_validator"));
    for model in [
        "gemini-3.8-flash",
        "gemini-flash-latest",
        "publishers/google/models/gemini-3-pro",
    ] {
        assert_eq!(marked(model, None), [skip.clone(), None], "{model}");
    }
    for model in ["gemini-2.5-flash", "gemma-3"] {
        assert_eq!(marked(model, None), [None, None], "{model}");
    }
    let signed =
        json!({ "parts": ["call", { "call": { "thoughtSignature": "c2ln" } }] }).to_string();
    let signature = Some(json!("c2ln"));
    assert_eq!(marked("gemini-3-flash", Some(&signed)), [None, signature]);
}

#[test]
fn choices_outputs_and_parameters_are_encoded() {
    let body = |request: Request, model: &str| {
        let mut body = encode(&request, model);
        for key in ["contents", "tools"] {
            body.as_object_mut().unwrap().shift_remove(key);
        }
        body.to_string()
    };
    let with = |choice| {
        body(
            Request {
                choice,
                ..request(vec![two_tools(), user("Go.")])
            },
            "gemini-3-flash",
        )
    };
    let config = |config: &str| format!(r#"{{"toolConfig":{{"functionCallingConfig":{config}}}}}"#);
    assert_eq!(with(ToolChoice::Auto), "{}");
    assert_eq!(with(ToolChoice::Any), config(r#"{"mode":"ANY"}"#));
    assert_eq!(with(ToolChoice::None), config(r#"{"mode":"NONE"}"#));
    assert_eq!(
        with(ToolChoice::Tool("add".into())),
        config(r#"{"mode":"ANY","allowedFunctionNames":["add"]}"#)
    );
    let schema =
        json!({ "type": "object", "properties": { "a": { "type": "integer", "minimum": 3 } } });
    let output = |contents| Request {
        output: Some(schema.to_string().into()),
        ..request(contents)
    };
    let wanted = format!(
        r#"{{"generationConfig":{{"responseMimeType":"application/json","responseJsonSchema":{schema}}}}}"#
    );
    assert_eq!(body(output(vec![user("Go.")]), "gemini-2.5-flash"), wanted);
    let both = || output(vec![two_tools(), user("Go.")]);
    assert_eq!(body(both(), "gemini-3-flash"), wanted);
    // An older model does not take both; it is told in words.
    let told = body(both(), "gemini-2.5-flash");
    assert!(
        told.starts_with(r#"{"systemInstruction""#) && !told.contains("responseJsonSchema"),
        "{told}"
    );
    assert!(told.contains("fits this JSON Schema"), "{told}");
}

#[tokio::test]
async fn a_call_is_sent_and_its_answer_read() {
    let text = include_str!("gemini/text.sse");
    let server = Listener::new(vec![Reply::stream(&[text])]).await;
    let seen = Seen::default();
    let answer = ask_seen(&gemini(&server.url), request(vec![user("Hi")]), &seen)
        .await
        .unwrap();
    assert_eq!(
        (answer.text.as_deref(), seen.text().as_str()),
        (Some("Hello, ä"), "Hello, ä")
    );
    let usage = &answer.usage;
    assert_eq!(
        (usage.input, usage.cached, usage.output, usage.reasoning),
        (132, 100, 15, 6)
    );
    assert_eq!(usage.model.as_deref(), Some("gemini/test"));
    assert_eq!(usage.served.as_deref(), Some("gemini-3.8-flash"));
    let sent = server.request();
    assert_eq!(
        sent.line,
        "POST /v1beta/models/gemini-test:streamGenerateContent?alt=sse HTTP/1.1"
    );
    assert_eq!(sent.header("x-goog-api-key"), Some("sk-test-key"));
    assert_eq!(sent.header("authorization"), None);
}

#[tokio::test]
async fn a_whole_answer_is_read_and_failures_keep_their_class() {
    let whole = json!({ "candidates": [{ "content": { "parts": [{ "text": "All at once." }], "role": "model" },
        "finishReason": "STOP" }], "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 4 } });
    let error = |code: u16, status: &str, message: &str| {
        Reply::json(
            code,
            &json!({ "error": { "code": code, "message": message, "status": status } }).to_string(),
        )
    };
    let mut got = String::new();
    for reply in [
        Reply::json(200, &whole.to_string()),
        Reply::json(200, "{}"),
        error(400, "INVALID_ARGUMENT", "API key not valid: sk-test-key"),
        error(403, "PERMISSION_DENIED", "no"),
        error(404, "NOT_FOUND", "models/gemini-0 is not found"),
        error(429, "RESOURCE_EXHAUSTED", "slow down"),
        error(503, "UNAVAILABLE", "The model is overloaded."),
    ] {
        let server = Listener::new(vec![reply]).await;
        let asked = Request {
            params: params(&[("stream", json!(false))]),
            ..request(vec![user("Hi")])
        };
        got.push_str(&shown(&ask(&gemini(&server.url), asked).await));
        let line = server.request().line;
        assert_eq!(
            line,
            "POST /v1beta/models/gemini-test:generateContent HTTP/1.1"
        );
        assert_eq!(server.request().json().get("stream"), None);
    }
    assert!(!got.contains("sk-test-key"), "{got}");
    insta::assert_snapshot!(got);
}

#[tokio::test]
async fn structured_output_stands_in_for_tools() {
    let wanted = json!({ "tool": "add", "arguments": { "a": 1, "b": 2 } }).to_string();
    let whole = json!({ "candidates": [{ "content": { "parts": [{ "text": wanted }] }, "finishReason": "STOP" }] });
    let server = Listener::new(vec![Reply::json(200, &whole.to_string())]).await;
    let asked = Request {
        calls: CallStyle::Structured,
        ..request(vec![two_tools(), user("1 + 2?")])
    };
    let answer = ask(&gemini(&server.url), asked).await.unwrap();
    assert_eq!(
        (&*answer.asks[0].name, &*answer.asks[0].args),
        ("add", r#"{"a":1,"b":2}"#)
    );
    let sent = server.request().json();
    let schema = &sent["generationConfig"]["responseJsonSchema"];
    assert!(sent.get("tools").is_none() && schema.is_object(), "{sent}");
}

/// The credentials of a service account. The key was made for this test, and opens nothing.
pub(crate) fn account(tokens: &str) -> String {
    let der = STANDARD.encode(include_bytes!("gemini/account.der"));
    let lines: Vec<&str> = der
        .as_bytes()
        .chunks(64)
        .map(|l| std::str::from_utf8(l).unwrap())
        .collect();
    let kind = "PRIVATE KEY";
    let pem = format!(
        "-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n",
        lines.join("\n")
    );
    json!({ "type": "service_account", "project_id": "p", "private_key_id": "k1", "private_key": pem,
        "client_email": "desk@p.iam.gserviceaccount.com", "token_uri": format!("{tokens}/token") })
    .to_string()
}

pub(crate) async fn ask_with(model: &Gemini, key: &str) -> Result<String, String> {
    let call = call_of(request(vec![user("Hi")]), Some(key));
    let (seen, cancel) = (Seen::default(), CancellationToken::new());
    let answer = model.call(&call, &seen, &cancel).await;
    match answer {
        Ok(answer) => Ok(answer.text.unwrap()),
        Err(failure) => Err(format!("{}: {}", failure.code, failure.message)),
    }
}

pub(crate) fn hello() -> Reply {
    Reply::stream(&[include_str!("gemini/text.sse")])
}

pub(crate) fn token(token: &str, seconds: u64) -> Reply {
    let got = json!({ "access_token": token, "expires_in": seconds, "token_type": "Bearer" });
    Reply::json(200, &got.to_string())
}

/// Reads the fields of a form.
pub(crate) fn form(body: &str) -> std::collections::BTreeMap<String, String> {
    let url = reqwest::Url::parse(&format!("http://form/?{body}")).unwrap();
    url.query_pairs()
        .map(|(k, v)| (k.into_owned(), v.into_owned()))
        .collect()
}

#[tokio::test]
async fn a_service_account_gets_a_token_and_keeps_it() {
    let tokens = Listener::new(vec![token("ya29.first", 3600), token("ya29.second", 3600)]).await;
    let server = Listener::new(vec![hello(), hello(), hello()]).await;
    let (model, key) = (vertex(&server.url), account(&tokens.url));
    for _ in 0..2 {
        assert_eq!(ask_with(&model, &key).await.unwrap(), "Hello, ä");
    }
    let sent = server.requests();
    assert_eq!(
        sent[0].line,
        "POST /v1/projects/p/locations/eu/publishers/google/models/gemini-test:streamGenerateContent?alt=sse HTTP/1.1"
    );
    for sent in sent {
        assert_eq!(sent.header("authorization"), Some("Bearer ya29.first"));
        assert_eq!(sent.header("x-goog-api-key"), None);
    }
    let asked = tokens.requests();
    assert_eq!(asked.len(), 1, "the token is kept");
    assert_eq!(asked[0].line, "POST /token HTTP/1.1");
    let fields = form(&asked[0].body);
    assert_eq!(
        fields["grant_type"],
        "urn:ietf:params:oauth:grant-type:jwt-bearer"
    );
    // The claim is signed with the account's key.
    let (signed, signature) = fields["assertion"].rsplit_once('.').unwrap();
    let pair = RsaKeyPair::from_pkcs8(include_bytes!("gemini/account.der")).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    public
        .verify(signed.as_bytes(), &signature)
        .expect("it is signed");
    let (header, claims) = signed.split_once('.').unwrap();
    let read = |part: &str| {
        serde_json::from_slice::<Json>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    assert_eq!(
        read(header),
        json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" })
    );
    let claims = read(claims);
    assert_eq!(claims["iss"], "desk@p.iam.gserviceaccount.com");
    assert_eq!(claims["aud"], format!("{}/token", tokens.url));
    assert_eq!(
        claims["scope"],
        "https://www.googleapis.com/auth/cloud-platform"
    );
    assert_eq!(
        claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(),
        3600
    );
    // Another account has a token of its own.
    let other = key.replace("\"k1\"", "\"k2\"");
    ask_with(&model, &other).await.unwrap();
    assert_eq!(
        server.requests()[2].header("authorization"),
        Some("Bearer ya29.second")
    );
}

#[tokio::test]
async fn credentials_come_from_a_file_a_login_or_as_a_token() {
    // A token that lives no longer than its margin is got again.
    let tokens = Listener::new(vec![token("ya29.a", 200), token("ya29.b", 200)]).await;
    let server = Listener::new(vec![hello(), hello(), hello()]).await;
    let model = vertex(&server.url);
    let path = std::env::temp_dir().join(format!("steersman-account-{}.json", std::process::id()));
    std::fs::write(&path, account(&tokens.url)).unwrap();
    ask_with(&model, path.to_str().unwrap()).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    let login = json!({ "type": "authorized_user", "client_id": "id", "client_secret": "s&s", "refresh_token": "1//r",
        "token_uri": format!("{}/token", tokens.url) });
    ask_with(&model, &login.to_string()).await.unwrap();
    ask_with(&model, "ya29.own").await.unwrap();
    let sent = server.requests();
    let sent: Vec<_> = sent
        .iter()
        .map(|sent| sent.header("authorization").unwrap())
        .collect();
    assert_eq!(sent, ["Bearer ya29.a", "Bearer ya29.b", "Bearer ya29.own"]);
    let fields = form(&tokens.requests()[1].body);
    assert_eq!(
        [
            &fields["grant_type"],
            &fields["client_secret"],
            &fields["refresh_token"]
        ],
        ["refresh_token", "s&s", "1//r"]
    );
    let gone = ask_with(&model, path.to_str().unwrap()).await.unwrap_err();
    assert!(
        gone.starts_with("unauthorized: the file of the credentials cannot be read"),
        "{gone}"
    );
}

#[tokio::test]
async fn credentials_that_get_no_token_say_why_and_tell_no_secret() {
    let said = json!({ "error": "invalid_grant", "error_description": "Invalid JWT Signature." });
    let busy = json!({ "error": { "code": 503, "message": "busy", "status": "UNAVAILABLE" } });
    let tokens = Listener::new(vec![
        Reply::json(400, &said.to_string()),
        Reply::json(503, &busy.to_string()),
        Reply::json(200, "{}"),
    ])
    .await;
    let model = vertex("http://127.0.0.1:9");
    let key = account(&tokens.url);
    let mut got = String::new();
    let broken = key.replace("PRIVATE KEY", "PUBLIC KEY");
    let external = json!({ "type": "external_account" }).to_string();
    for key in [&*key, &key, &key, &broken, "{ no JSON", &external] {
        let failed = ask_with(&model, key).await.unwrap_err();
        got.push_str(&failed);
        got.push('\n');
    }
    assert!(!got.contains("MII"), "{got}");
    insta::assert_snapshot!(got);
    let nowhere = at("http://127.0.0.1:9/v1", Site::Vertex);
    let refused = ask_with(&nowhere, "ya29.own").await.unwrap_err();
    assert!(
        refused.starts_with("invalid_request: the address names no project"),
        "{refused}"
    );
}

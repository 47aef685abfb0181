//! The SDKs that providers publish for Python (`scripts/provider-sdks.sh`). They read the answers that these tests replay, and send the same
//! conversations as our adapters: what they make of both is compared. `tests/provider_sdks/driver.py` calls them.

use crate::azure::azure;
use crate::bedrock::{
    self, CLAUDE, SIGNATURES, Signed, bedrock, bedrock_as, frames, long, signs_alike,
};
use crate::chat::WHOLE;
use crate::gemini::{account, ask_with, form, gemini, hello, token, vertex};
use crate::listener::{Listener, Recorded, Reply};
use crate::messages::{self, messages};
use crate::request::{
    Seen, ask, ask_seen, assistant, chat_with, params, request, result, system, two_tools, user,
};
use crate::responses::responses;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use steersman_adapters::bedrock::encode::encode;
use steersman_adapters::chat::encode::Dialect;
use steersman_adapters::wire::Timeouts;
use steersman_machine::context::{Content, Request};
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::model::Model;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Does these jobs with the SDKs, and returns what came of each.
async fn run(jobs: &[Json]) -> Vec<Json> {
    let place = std::env::var("STEERSMAN_PROVIDER_SDKS").expect("the folder of the SDKs");
    let mut child = Command::new(Path::new(&place).join("bin/python"))
        // no files of Python in the repository
        .arg("-B")
        .arg(tests().join("provider_sdks/driver.py"))
        .env("NO_PROXY", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    to.write_all(json!(jobs).to_string().as_bytes())
        .await
        .unwrap();
    drop(to);
    let out = timeout(Duration::from_mins(2), child.wait_with_output()).await;
    let out = out.expect("the SDKs do not end").unwrap();
    let wrong = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{wrong}");
    serde_json::from_slice(&out.stdout).unwrap()
}

// ---- answers --------------------------------------------------------------------------------------------------------

/// A recorded or written answer.
struct Recording {
    /// Protocol and name, and `whole` if it does not stream.
    name: String,
    of: &'static str,
    stream: bool,
    reply: Reply,
}

/// Returns all answers of the tests of the protocols that have an SDK here.
fn recordings() -> Vec<Recording> {
    let mut all = Vec::new();
    for (of, folder) in [
        ("chat", "wire"),
        ("responses", "responses"),
        ("messages", "messages"),
        ("gemini", "gemini"),
        ("bedrock", "bedrock"),
    ] {
        let files = std::fs::read_dir(tests().join("it").join(folder)).unwrap();
        let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let recording = |end: &str, stream, reply| Recording {
                name: format!("{of}/{stem}{end}"),
                of,
                stream,
                reply,
            };
            match path.extension().and_then(|end| end.to_str()) {
                Some("frames") => {
                    let bytes = std::fs::read(&path).unwrap();
                    all.push(recording("", true, frames(&bytes)));
                }
                Some("sse") => {
                    let text = stream_of(&path);
                    all.push(recording("", true, Reply::stream(&[&text])));
                    if let Some(whole) = whole_of(of, &text) {
                        all.push(recording(" whole", false, Reply::json(200, &whole)));
                    }
                }
                _ => {}
            }
        }
    }
    for (of, whole) in [
        ("chat", WHOLE.to_owned()),
        ("messages", messages::whole().to_string()),
        ("bedrock", bedrock::whole().to_string()),
    ] {
        all.push(Recording {
            name: format!("{of}/whole"),
            of,
            stream: false,
            reply: Reply::json(200, &whole),
        });
    }
    all
}

/// Reads a stream. The first line says what it is, as a comment of the stream, which the SDK of Google does not know: Google sends none.
fn stream_of(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let title = text.strip_prefix(": ");
    let stream = title.and_then(|title| title.split_once("\n\n"));
    stream.map_or(text.clone(), |(_, stream)| stream.to_owned())
}

/// Returns the whole answer that a stream has in its last event, if there is one.
fn whole_of(of: &str, stream: &str) -> Option<String> {
    let mut events = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let last: Json = serde_json::from_str(events.next_back()?).ok()?;
    match of {
        "responses" => {
            let response = last.get("response")?;
            (response["status"] != "in_progress").then(|| response.to_string())
        }
        "gemini" => events.next().is_none().then(|| last.to_string()),
        _ => None,
    }
}

fn model(of: &str, url: &str) -> Box<dyn Model> {
    match of {
        "chat" => Box::new(chat_with(url, Dialect::OPENAI, Timeouts::default())),
        "azure" => Box::new(azure(url)),
        "responses" => Box::new(responses(url)),
        "messages" => Box::new(messages(url)),
        "gemini" => Box::new(gemini(url)),
        "vertex" => Box::new(vertex(url)),
        "bedrock" => Box::new(bedrock_as(&format!("{url}?region=eu-central-1"), "test")),
        other => panic!("{other} is no protocol"),
    }
}

/// Returns an answer in the words of `driver.py`.
fn told(answer: &Result<Answer, Failure>, streamed: Option<String>) -> Json {
    let answer = match answer {
        Ok(answer) => answer,
        Err(failure) => return json!({ "failed": failure.code }),
    };
    let calls = answer.asks.iter().map(|ask| {
        let read = serde_json::from_str::<Json>(&ask.args);
        let args = read.unwrap_or_else(|_| json!(ask.args));
        json!([ask.label, ask.name, args])
    });
    let usage = &answer.usage;
    json!({
        "text": answer.text, "streamed": streamed.filter(|text| !text.is_empty()), "calls": calls.collect::<Vec<_>>(),
        "usage": [usage.input, usage.cached, usage.output, usage.reasoning], "finish": usage.finish.as_deref(),
        "model": usage.served.as_deref(),
    })
}

async fn read(recording: &Recording) -> Json {
    let server = Listener::new(vec![recording.reply.clone()]).await;
    let asked = Request {
        params: params(&[("stream", json!(recording.stream))]),
        ..request(vec![user("Hi")])
    };
    let seen = Seen::default();
    let answer = ask_seen(&*model(recording.of, &server.url), asked, &seen).await;
    told(&answer, recording.stream.then(|| seen.text()))
}

/// Each answer gives the same text, pieces, calls, tokens, reason and model as the SDK of its provider reads. `differences.tsv` names the others,
/// with what the SDK reads instead and the reason.
#[tokio::test]
#[ignore = "needs the SDKs: STEERSMAN_PROVIDER_SDKS=$(scripts/provider-sdks.sh)"]
async fn answers_are_read_as_the_sdks_read_them() {
    let all = recordings();
    let (mut servers, mut jobs) = (Vec::new(), Vec::new());
    for one in &all {
        let server = Listener::new(vec![one.reply.clone()]).await;
        jobs.push(json!({ "do": "read", "of": one.of, "stream": one.stream, "url": server.url }));
        servers.push(server);
    }
    let theirs = run(&jobs).await;
    let stated = std::fs::read_to_string(tests().join("provider_sdks/differences.tsv")).unwrap();
    let mut stated: BTreeMap<&str, Json> = stated
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut fields = line.split('\t');
            let [name, told, why] = std::array::from_fn(|_| fields.next().unwrap());
            assert!(!why.is_empty(), "{name}");
            (name, serde_json::from_str(told).unwrap())
        })
        .collect();
    let (mut same, mut faults) = (0, Vec::new());
    for (one, theirs) in all.iter().zip(theirs) {
        let ours = read(one).await;
        let stated = stated.remove(&*one.name);
        if stated.is_none() && ours == theirs {
            same += 1;
        } else if ours == theirs {
            faults.push(format!("{}: both read the same", one.name));
        } else if stated.as_ref() != Some(&theirs) {
            faults.push(format!("{}\t{theirs}\tours: {ours}", one.name));
        }
    }
    faults.extend(stated.keys().map(|name| format!("{name}: there is none")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(same > 30, "{same} are the same");
}

// ---- requests -------------------------------------------------------------------------------------------------------

const SYSTEM: &str = "You help.";
const USER: &str = "What is the weather in Bern, and 1 + 2?";
const RESULTS: [&str; 2] = ["rain", "3"];

/// Schema of the last answer.
fn schema() -> Json {
    json!({ "type": "object", "properties": { "city": { "type": "string" }, "sum": { "type": "integer" } },
        "required": ["city", "sum"], "additionalProperties": false })
}

/// Asks, and sends the results of the two calls of the answer, with the schema of the next one.
async fn talk(model: &dyn Model) {
    let settings = || vec![("max_tokens", json!(64)), ("temperature", json!(0.5))];
    let mut contents = vec![system(SYSTEM), two_tools(), user(USER)];
    let first = Request {
        params: params(&settings()),
        ..request(contents.clone())
    };
    let answer = ask(model, first).await.unwrap();
    let calls: Vec<(&str, &str, &str)> = answer
        .asks
        .iter()
        .map(|ask| (ask.label.as_deref().unwrap(), &*ask.name, &*ask.args))
        .collect();
    let opaque = answer.opaque.as_deref();
    contents.push(assistant(answer.text.as_deref(), &calls, opaque));
    for ((label, name, _), text) in calls.iter().zip(RESULTS) {
        contents.push(result(label, name, text, false));
    }
    let mut last = settings();
    last.push(("stream", json!(false)));
    let last = Request {
        params: params(&last),
        output: Some(schema().to_string().into()),
        ..request(contents)
    };
    ask(model, last).await.unwrap();
}

/// The same conversation as a job for an SDK.
fn job(of: &str, url: &str, more: &Json) -> Json {
    let Content::Tools(tools) = two_tools() else {
        panic!("they are tools")
    };
    let tools = tools.iter().map(|tool| {
        let parameters: Json = serde_json::from_str(&tool.parameters).unwrap();
        json!({ "name": tool.name, "description": tool.description, "parameters": parameters })
    });
    let mut job = json!({
        "do": "talk", "of": of, "url": url, "system": SYSTEM, "user": USER, "tools": tools.collect::<Vec<_>>(),
        "results": RESULTS, "max_tokens": 64, "temperature": 0.5, "output": schema(),
    });
    let fields = job.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    job
}

/// Fields that only the requests of an SDK have: protocol, place in the body, reason. `*` is any element.
const THEIRS: &[Stated] = &[
    (
        "chat",
        "response_format/json_schema/schema/title",
        "a class of pydantic has its name as a title",
    ),
    (
        "chat",
        "response_format/json_schema/schema/properties/*/title",
        "a field of pydantic, too",
    ),
    (
        "azure",
        "response_format/json_schema/schema/title",
        "as in `chat`",
    ),
    (
        "azure",
        "response_format/json_schema/schema/properties/*/title",
        "as in `chat`",
    ),
    ("responses", "text/format/schema/title", "as in `chat`"),
    (
        "responses",
        "text/format/schema/properties/*/title",
        "as in `chat`",
    ),
    (
        "gemini",
        "systemInstruction/role",
        "the SDK calls the system prompt the user's; the protocol ignores the role",
    ),
    ("vertex", "systemInstruction/role", "as in `gemini`"),
];

/// Fields that only our requests have.
const OURS: &[Stated] = &[
    (
        "messages",
        "system/*/cache_control",
        "we mark what the next request begins with, so that it costs less",
    ),
    ("messages", "tools/*/cache_control", "likewise"),
    ("messages", "messages/*/content/*/cache_control", "likewise"),
];

/// Removes a field of a body. Returns true if there was one.
fn removed(body: &mut Json, place: &[&str]) -> bool {
    match (place, body) {
        ([last], Json::Object(fields)) => fields.shift_remove(*last).is_some(),
        (["*", rest @ ..], Json::Array(list)) => {
            let all = list.iter_mut().map(|one| removed(one, rest));
            all.fold(false, |any, one| any | one)
        }
        (["*", rest @ ..], Json::Object(fields)) => {
            let all = fields.values_mut().map(|one| removed(one, rest));
            all.fold(false, |any, one| any | one)
        }
        ([name, rest @ ..], Json::Object(fields)) => fields
            .get_mut(*name)
            .is_some_and(|inner| removed(inner, rest)),
        _ => false,
    }
}

/// A stated difference: protocol, place in the body, reason.
type Stated = (&'static str, &'static str, &'static str);

/// Removes the stated fields from a body. Returns those that it had. The other side must not have them.
fn stated(rows: &[Stated], of: &str, body: &mut Json, other: &Json) -> Vec<Stated> {
    let mut had = Vec::new();
    for row in rows.iter().filter(|row| row.0 == of) {
        let place: Vec<&str> = row.1.split('/').collect();
        assert!(!removed(&mut other.clone(), &place), "both have {row:?}");
        if removed(body, &place) {
            had.push(*row);
        }
    }
    had
}

/// Removes what the SDK of OpenAI sends back besides an answer: that there was no sound, refusal or note, and the place of each call in the stream.
fn without_nothing(body: &mut Json) {
    for name in ["refusal", "annotations", "audio", "function_call"] {
        removed(body, &["messages", "*", name]);
    }
    let call = ["messages", "*", "tool_calls", "*"];
    removed(body, &[&call[..], &["index"]].concat());
    removed(
        body,
        &[&call[..], &["function", "parsed_arguments"]].concat(),
    );
}

/// Writes the name of a field in the form that the protocol of Google documents: its SDK writes it in the form of Python, and the protocol takes both.
fn documented(body: &mut Json) {
    let tools = body.pointer_mut("/tools/0/functionDeclarations");
    for tool in tools.and_then(Json::as_array_mut).into_iter().flatten() {
        tool["parametersJsonSchema"] = tool["parameters_json_schema"].take();
        removed(tool, &["parameters_json_schema"]);
    }
}

/// Writes what the SDK of Responses sends back of an answer as we do. Messages and calls have no id, because the provider stored nothing that an id
/// could name, and no status, because they are complete. A message is its text: the provider takes that as it takes a list with one text.
fn as_new(body: &mut Json) {
    let items = body.get_mut("input").and_then(Json::as_array_mut);
    for item in items.into_iter().flatten() {
        if item["type"] == "message" || item["type"] == "function_call" {
            removed(item, &["id"]);
            removed(item, &["status"]);
        }
        if item["type"] == "message" {
            let text = item["content"][0]["text"].take();
            item["content"] = text;
            removed(item, &["type"]);
        }
    }
}

/// Returns the address, the key and the body of a request.
fn shown(sent: &Recorded) -> (String, [Option<String>; 4], Json) {
    let keys = ["authorization", "api-key", "x-goog-api-key", "x-api-key"];
    let keys = keys.map(|name| sent.header(name).map(str::to_owned));
    (sent.line.clone(), keys, sent.json())
}

fn recorded(path: &str) -> Reply {
    let path = tests().join("it").join(path);
    match path.extension().and_then(|end| end.to_str()) {
        Some("frames") => frames(&std::fs::read(&path).unwrap()),
        _ => Reply::stream(&[&stream_of(&path)]),
    }
}

/// Returns the recording as a whole answer.
fn whole(of: &str, path: &str) -> String {
    whole_of(of, &stream_of(&tests().join("it").join(path))).unwrap()
}

/// Both requests of a conversation have the same method, address, key and body.
#[tokio::test]
#[ignore = "needs the SDKs: STEERSMAN_PROVIDER_SDKS=$(scripts/provider-sdks.sh)"]
async fn requests_are_those_of_the_sdks() {
    let calls = || recorded("wire/openai_parallel_calls.sse");
    let chat = || vec![calls(), Reply::json(200, WHOLE)];
    let google = || {
        let last = whole("gemini", "gemini/calls_without_ids.sse");
        let last = Reply::json(200, &last);
        vec![recorded("gemini/parallel_calls.sse"), last]
    };
    // The SDK reads the last answer as a value of the schema.
    let fits = r#"{\"city\":\"Bern\",\"sum\":3}"#;
    let fitting = whole("responses", "responses/text.sse").replace("Hello, ä", fits);
    let talks = [
        ("chat", "", json!({}), chat()),
        ("azure", "", json!({ "folder": "/openai/v1" }), chat()),
        (
            "azure",
            "?api-version=2024-10-21",
            json!({ "version": "2024-10-21" }),
            chat(),
        ),
        (
            "responses",
            "",
            json!({}),
            vec![
                recorded("responses/parallel_calls.sse"),
                Reply::json(200, &fitting),
            ],
        ),
        (
            "messages",
            "",
            json!({}),
            vec![
                recorded("messages/parallel_calls.sse"),
                Reply::json(200, &messages::whole().to_string()),
            ],
        ),
        ("gemini", "", json!({}), google()),
        ("vertex", "", json!({}), google()),
        (
            "bedrock",
            "",
            json!({}),
            vec![
                recorded("bedrock/calls.frames"),
                Reply::json(200, &bedrock::whole().to_string()),
            ],
        ),
    ];
    let (mut sdks, mut jobs) = (Vec::new(), Vec::new());
    for (of, _, more, replies) in &talks {
        let server = Listener::new(replies.clone()).await;
        jobs.push(job(of, &server.url, more));
        sdks.push(server);
    }
    run(&jobs).await;
    let mut used = BTreeSet::new();
    for ((of, end, more, replies), sdk) in talks.into_iter().zip(sdks) {
        let server = Listener::new(replies).await;
        talk(&*model(of, &format!("{}{end}", server.url))).await;
        let (ours, theirs) = (server.requests(), sdk.requests());
        assert_eq!((ours.len(), theirs.len()), (2, 2), "{of}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let (line, keys, mut body) = shown(ours);
            let (their_line, their_keys, mut theirs) = shown(theirs);
            assert_eq!(line, their_line);
            // Amazon's SDK signs, which other tests compare. The SDK of OpenAI does not know that it talks to Azure, which takes both. The SDK
            // of Anthropic sends its key as a bearer token since its version 2; the documented header is ours.
            let is_other = ["bedrock", "messages"].contains(&of) || more.get("folder").is_some();
            assert!(
                is_other || keys == their_keys,
                "{of}: {keys:?}, {their_keys:?}"
            );
            as_new(&mut theirs);
            match of {
                "chat" | "azure" => without_nothing(&mut theirs),
                "gemini" | "vertex" => documented(&mut theirs),
                _ => {}
            }
            used.extend(stated(THEIRS, of, &mut theirs, &body));
            used.extend(stated(OURS, of, &mut body, &theirs));
            assert_eq!(body, theirs, "{of}: ours is the first");
        }
    }
    let unused = [THEIRS, OURS].concat();
    let unused: Vec<_> = unused.iter().filter(|row| !used.contains(*row)).collect();
    assert!(unused.is_empty(), "no request has these: {unused:?}");
}

/// The client of Amazon checks the names and types of all fields. It takes a conversation with every kind of content as we send it.
#[tokio::test]
#[ignore = "needs the SDKs: STEERSMAN_PROVIDER_SDKS=$(scripts/provider-sdks.sh)"]
async fn botocore_takes_our_bodies() {
    let body = encode(&long(), CLAUDE);
    let reply = Reply::json(200, &bedrock::whole().to_string());
    let server = Listener::new(vec![reply.clone(), reply]).await;
    let job = json!({ "do": "take", "of": "bedrock", "url": server.url, "stream": false, "model": CLAUDE, "body": body });
    run(&[job]).await;
    let asked = Request {
        params: params(&[("stream", json!(false))]),
        ..request(vec![user("Hi")])
    };
    ask(&bedrock(&server.url), asked).await.unwrap();
    let sent = server.requests();
    assert_eq!(sent[0].json(), body);
    assert_eq!(sent[0].line, sent[1].line);
}

// ---- keys -----------------------------------------------------------------------------------------------------------

/// Signatures that botocore makes now, and those that it made for the other tests.
#[tokio::test]
#[ignore = "needs the SDKs: STEERSMAN_PROVIDER_SDKS=$(scripts/provider-sdks.sh)"]
async fn signatures_of_botocore_are_made_alike() {
    let seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let script = tests().join("../../../scripts/aws-vectors.py");
    let sign = |seed: u64| json!({ "do": "sign", "of": "bedrock", "script": script, "seed": seed });
    let made = run(&[sign(seed), sign(4711)]).await;
    let [new, kept] = <[Json; 2]>::try_from(made).unwrap();
    assert_eq!(kept, serde_json::from_str::<Json>(SIGNATURES).unwrap());
    assert_ne!(new, kept);
    let new: Vec<Signed> = serde_json::from_value(new).unwrap();
    signs_alike(&format!("seed {seed}"), &new);
}

/// Header and claims of a signed text.
fn claimed(assertion: &str) -> [Json; 2] {
    let mut parts = assertion.split('.');
    std::array::from_fn(|_| {
        let bytes = URL_SAFE_NO_PAD.decode(parts.next().unwrap()).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    })
}

#[tokio::test]
#[ignore = "needs the SDKs: STEERSMAN_PROVIDER_SDKS=$(scripts/provider-sdks.sh)"]
async fn access_tokens_are_asked_for_as_google_auth_does() {
    let tokens = Listener::new(vec![token("ya29.own", 3600); 4]).await;
    let service: Json = serde_json::from_str(&account(&tokens.url)).unwrap();
    let person = json!({ "type": "authorized_user", "client_id": "id", "client_secret": "s&s", "refresh_token": "1//r",
        "token_uri": format!("{}/token", tokens.url) });
    let jobs = [
        json!({ "do": "token", "of": "vertex", "account": service }),
        json!({ "do": "login", "of": "vertex", "account": person }),
    ];
    assert_eq!(run(&jobs).await, ["ya29.own", "ya29.own"]);
    let server = Listener::new(vec![hello(), hello()]).await;
    let model = vertex(&server.url);
    for key in [service, person] {
        ask_with(&model, &key.to_string()).await.unwrap();
    }
    let asked = tokens.requests();
    for (theirs, ours) in asked[..2].iter().zip(&asked[2..]) {
        assert_eq!(ours.line, theirs.line);
        let kind = |sent: &Recorded| sent.header("content-type").map(str::to_owned);
        assert_eq!(kind(ours), kind(theirs));
        let (mut ours, mut theirs) = (form(&ours.body), form(&theirs.body));
        let both = [ours.remove("assertion"), theirs.remove("assertion")];
        assert_eq!(ours, theirs);
        let [Some(ours), Some(theirs)] = &both else {
            assert_eq!(both, [None, None]);
            continue;
        };
        let ([head, mut claims], [their_head, mut their_claims]) = (claimed(ours), claimed(theirs));
        assert_eq!(head, their_head);
        let times =
            |claims: &mut Json| ["iat", "exp"].map(|name| claims[name].take().as_i64().unwrap());
        let ([begin, end], [their_begin, their_end]) =
            (times(&mut claims), times(&mut their_claims));
        assert_eq!(end - begin, their_end - their_begin);
        assert!((0..300).contains(&(begin - their_begin)), "{begin}");
        // google-auth always names Google's own address, which each key file names, too.
        assert_eq!(
            their_claims["aud"].take(),
            "https://oauth2.googleapis.com/token"
        );
        assert_eq!(claims["aud"].take(), format!("{}/token", tokens.url));
        assert_eq!(claims, their_claims);
    }
}

//! Chat completions over a connection: the requests, and all that can go wrong with their answers.

use crate::listener::{Frame, Listener, Reply};
use crate::request::{
    Seen, ask, ask_seen, assistant, call_of, chat, chat_with, params, request, result, shown,
    system, two_tools, user,
};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use steersman_adapters::chat::Chat;
use steersman_adapters::chat::encode::{Dialect, encode};
use steersman_adapters::wire::Timeouts;
use steersman_machine::context::Request;
use steersman_machine::network::{CallStyle, ToolChoice};
use steersman_machine::stored::outcome::Retry;
use steersman_runtime::model::{Model, Transport};
use steersman_runtime::trace::TraceParent;
use tokio_util::sync::CancellationToken;

const HELLO: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"},\"finish_reason\":null}]}\n\n";
const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn hello() -> Request {
    request(vec![user("Hi")])
}

/// A conversation with every kind of content.
fn long() -> Request {
    Request {
        params: params(&[
            ("max_tokens", json!(64)),
            ("temperature", json!(0.0)),
            ("seed", json!(7)),
        ]),
        ..request(vec![
            system("You help."),
            two_tools(),
            user("What is the weather in Bern, and 1 + 2?"),
            assistant(
                Some("Let me look."),
                &[
                    ("call_a", "get_weather", "{\"city\":\"Bern\"}"),
                    ("call_b", "add", "{\"a\": 1, b}"),
                ],
                Some(
                    r#"{"reasoning_content":"two calls","tool_calls":[{"extra_content":{"s":"x"}},{}]}"#,
                ),
            ),
            result("call_a", "get_weather", "rain", false),
            result("call_b", "add", "the arguments are not JSON", true),
            assistant(Some("Rain."), &[], Some(r#"{"reasoning_content":"done"}"#)),
            user("And now?"),
            user("Now is 12:00."),
            system("Be short."),
        ])
    }
}

fn pretty(body: &Json) -> String {
    serde_json::to_string_pretty(body).unwrap()
}

#[test]
fn a_conversation_is_encoded_for_openai() {
    insta::assert_snapshot!(pretty(&encode(&long(), "gpt-5-mini", &Dialect::OPENAI)));
}

#[test]
fn a_conversation_is_encoded_for_other_servers() {
    insta::assert_snapshot!(pretty(&encode(&long(), "qwen", &Dialect::COMPATIBLE)));
}

#[test]
fn choices_outputs_and_parameters_are_encoded() {
    let body = |request: &Request, dialect: &Dialect| {
        let mut body = encode(request, "m", dialect);
        body.as_object_mut().unwrap().retain(|key, _| {
            !matches!(
                key.as_str(),
                "model" | "messages" | "tools" | "stream" | "stream_options"
            )
        });
        body.to_string()
    };
    let with = |choice: ToolChoice| Request {
        choice,
        ..request(vec![two_tools(), user("x")])
    };
    let (openai, other) = (&Dialect::OPENAI, &Dialect::COMPATIBLE);
    assert_eq!(body(&with(ToolChoice::Auto), openai), "{}");
    assert_eq!(
        body(&with(ToolChoice::Any), openai),
        r#"{"tool_choice":"required"}"#
    );
    assert_eq!(
        body(&with(ToolChoice::None), openai),
        r#"{"tool_choice":"none"}"#
    );
    assert_eq!(
        body(&with(ToolChoice::Tool("add".into())), openai),
        r#"{"tool_choice":{"type":"function","function":{"name":"add"}}}"#
    );
    let without_tools = Request {
        choice: ToolChoice::Any,
        ..hello()
    };
    assert_eq!(body(&without_tools, openai), "{}");

    let output = |schema: Json| Request {
        output: Some(schema.to_string().into()),
        ..hello()
    };
    let strict = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"],
                         "additionalProperties": false });
    let loose = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "additionalProperties": false });
    let is_strict = |request: &Request, dialect: &Dialect| {
        encode(request, "m", dialect)["response_format"]["json_schema"]["strict"].clone()
    };
    assert_eq!(is_strict(&output(strict.clone()), openai), json!(true));
    // OpenAI requires every property, so an optional one may be `null`.
    assert_eq!(is_strict(&output(loose.clone()), openai), json!(true));
    let wide =
        encode(&output(loose.clone()), "m", openai)["response_format"]["json_schema"]["schema"]
            .clone();
    let a = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
    assert_eq!(
        (&wide["required"], &wide["properties"]["a"]),
        (&json!(["a"]), &a)
    );
    let open = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    assert_eq!(is_strict(&output(open), openai), json!(false));
    assert_eq!(is_strict(&output(loose), other), json!(true));
    insta::assert_snapshot!(body(&output(strict), openai));

    let tuned = Request {
        params: params(&[
            ("max_tokens", json!(9)),
            ("parallel_tool_calls", json!(false)),
            ("stream", json!(false)),
        ]),
        ..hello()
    };
    assert_eq!(
        body(&tuned, openai),
        r#"{"max_completion_tokens":9,"parallel_tool_calls":false}"#
    );
    let sent = encode(&tuned, "m", other);
    assert_eq!(
        (sent["stream"].clone(), sent.get("stream_options")),
        (json!(false), None)
    );
    let silent = Request {
        params: params(&[("stream_options", Json::Null)]),
        ..hello()
    };
    let sent = encode(&silent, "m", other);
    assert_eq!(
        (sent["stream"].clone(), sent.get("stream_options")),
        (json!(true), None)
    );
}

#[tokio::test]
async fn an_answer_streams() {
    let server = Listener::new(vec![Reply::stream(&[HELLO, STOP, USAGE, DONE])]).await;
    let seen = Seen::default();
    let answer = ask_seen(&chat(&server.url), hello(), &seen).await;
    assert_eq!(
        shown(&answer),
        "text  \"Hello\"\nusage 5 in (0 cached), 2 out\n"
    );
    assert_eq!(seen.text(), "Hello");
    let usage = answer.unwrap().usage;
    assert_eq!(usage.model.as_deref(), Some("compatible/test"));
    assert_eq!(usage.effect.unwrap().to_string(), "1.1");
    assert_eq!(usage.request, Some(hello().digest));

    let request = server.request();
    assert_eq!(request.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(request.header("authorization"), Some("Bearer sk-test-key"));
    assert_eq!(
        request.json(),
        encode(&hello(), "test", &Dialect::COMPATIBLE)
    );
}

#[tokio::test]
async fn an_answer_that_was_begun_has_its_begin_once() {
    let server = Listener::new(vec![Reply::stream(&[HELLO, STOP, DONE]); 2]).await;
    let chat = chat(&server.url);
    let begun = |prefill: &str| Request {
        prefill: Some(prefill.into()),
        ..hello()
    };
    let text = async |prefill| ask(&chat, begun(prefill)).await.unwrap().text.unwrap();
    assert_eq!(text("Well: ").await, "Well: Hello");
    assert_eq!(text("Hel").await, "Hello");
    let last = server.requests()[0].json()["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(last, json!({ "role": "assistant", "content": "Well: " }));
    let openai = chat_with(&server.url, Dialect::OPENAI, Timeouts::default());
    let failure = ask(&openai, begun("x")).await.unwrap_err();
    assert_eq!(
        (failure.code.as_str(), failure.retry),
        ("not_supported", Retry::Never)
    );
}

/// The span of a call.
const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test]
async fn the_call_may_name_another_address_and_model() {
    let server = Listener::new(vec![Reply::stream(&[HELLO, STOP, DONE])]).await;
    let mut call = call_of(hello(), None);
    call.transport = Transport {
        url: Some(format!("{}/api/v3/", server.url)),
        model: Some("other".to_owned()),
        key: None,
    };
    call.trace = TraceParent::parse(TRACE);
    let chat = chat("http://127.0.0.1:1");
    chat.call(&call, &Seen::default(), &CancellationToken::new())
        .await
        .unwrap();
    let request = server.request();
    assert_eq!(request.line, "POST /api/v3/chat/completions HTTP/1.1");
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.header("traceparent"), Some(TRACE));
    assert_eq!(request.json()["model"], "other");
}

/// An answer that does not stream.
pub(crate) const WHOLE: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi","tool_calls":[
    {"id":"a","type":"function","function":{"name":"add","arguments":"{}"}}]},"finish_reason":"tool_calls"}],
    "usage":{"prompt_tokens":3,"completion_tokens":1}}"#;

#[tokio::test]
async fn a_whole_answer_is_taken_where_a_stream_was_asked_for() {
    let nonsense = [
        "[]",
        "nonsense",
        r#"{"choices":[]}"#,
        r#"{"error":{"message":"busy","code":503}}"#,
    ];
    let mut replies = vec![Reply::json(200, WHOLE)];
    replies.extend(nonsense.iter().map(|body| Reply::json(200, body)));
    let server = Listener::new(replies).await;
    let chat = chat(&server.url);
    let mut text = shown(&ask(&chat, hello()).await);
    for _ in nonsense {
        text.push_str(&shown(&ask(&chat, hello()).await));
    }
    insta::assert_snapshot!(text);
    assert_eq!(server.connections(), 1, "the connection is used again");
}

/// A new connection for each call would cost as many round trips to a far server as the call itself.
#[tokio::test]
async fn streamed_answers_leave_their_connection_to_the_next() {
    let said = r#"{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    let said = format!("data: {said}\n\n");
    let reply = Reply::at_once(&[&said, "data: [DONE]\n\n"]);
    let server = Listener::new(vec![reply; 5]).await;
    let chat = chat(&server.url);
    for _ in 0..5 {
        ask(&chat, hello()).await.expect("an answer");
    }
    assert_eq!(server.connections(), 1);
}

/// Many servers close a connection after an answer without having said so.
#[tokio::test]
async fn a_kept_connection_that_was_closed_meanwhile_is_no_failure() {
    let said = r#"{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    let said = format!("data: {said}\n\n");
    let reply = Reply::at_once(&[&said, "data: [DONE]\n\n"]).then(Frame::Cut);
    let server = Listener::new(vec![reply; 20]).await;
    let chat = chat(&server.url);
    for _ in 0..20 {
        ask(&chat, hello()).await.expect("an answer");
    }
}

#[tokio::test]
async fn a_web_page_is_no_answer() {
    let page = Reply::with(
        200,
        &[("content-type", "text/html; charset=utf-8")],
        "<html>Log in</html>",
    );
    let server = Listener::new(vec![page]).await;
    let failure = ask(&chat(&server.url), hello()).await.unwrap_err();
    assert_eq!(
        (failure.code.as_str(), failure.retry),
        ("bad_response", Retry::Policy)
    );
    assert!(failure.message.contains("Log in"), "{failure:?}");
}

/// After the end of the answer comes more than any answer may have. The answer is read all the same.
#[tokio::test]
async fn what_is_sent_behind_the_end_of_an_answer_is_not_waited_for() {
    let more = format!(": {}\n\n", "x".repeat(1 << 20));
    let mut sent = vec![HELLO, STOP];
    sent.extend(std::iter::repeat_n(&*more, 80));
    let server = Listener::new(vec![Reply::stream(&sent)]).await;
    let answer = ask(&chat(&server.url), hello()).await;
    assert_eq!(answer.unwrap().text.as_deref(), Some("Hello"));
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_no_answer() {
    let cut_at_once = Reply(vec![Frame::Cut]);
    let no_chunks = Reply::open(&[]).then(Frame::Cut);
    let in_text = Reply::open(&[HELLO]).then(Frame::Cut);
    let ended_early = Reply::stream(&[HELLO]);
    let after_end = Reply::open(&[HELLO, STOP]).then(Frame::Cut);
    let server = Listener::new(vec![
        cut_at_once,
        no_chunks,
        in_text,
        ended_early,
        after_end,
    ])
    .await;
    let chat = chat(&server.url);
    let mut got = Vec::new();
    for _ in 0..5 {
        got.push(match ask(&chat, hello()).await {
            Ok(answer) => answer.text.unwrap(),
            Err(failure) => format!("{} {:?}", failure.code, failure.retry),
        });
    }
    assert_eq!(
        got,
        [
            "disconnected Policy",
            "truncated Policy",
            "truncated Policy",
            "truncated Policy",
            "Hello"
        ]
    );
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let server = Listener::new(Vec::new()).await;
    let url = server.url.clone();
    drop(server);
    tokio::task::yield_now().await;
    let failure = ask(&chat(&url), hello()).await.unwrap_err();
    assert_eq!(
        (failure.code.as_str(), failure.retry),
        ("unreachable", Retry::Policy)
    );
    let failure = ask(&chat("ftp://x"), hello()).await.unwrap_err();
    assert_eq!(
        (failure.code.as_str(), failure.retry),
        ("invalid_request", Retry::Never)
    );
    let failure = ask(&chat(""), hello()).await.unwrap_err();
    assert_eq!(
        (failure.code.as_str(), failure.retry),
        ("invalid_request", Retry::Never)
    );
}

#[tokio::test]
async fn statuses_become_failures_with_their_pause() {
    let error =
        |message: &str| format!(r#"{{"error":{{"message":"{message}","type":"t","code":null}}}}"#);
    let server = Listener::new(vec![
        Reply::with(429, &[("retry-after", "3600")], error("slow down")),
        Reply::with(503, &[("retry-after", "Wed, 21 Oct 2015 07:28:10 GMT"), ("date", "Wed, 21 Oct 2015 07:28:00 GMT")], ""),
        Reply::with(500, &[], error("oops sk-test-key oops")),
        Reply::json(400, r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"too long","n_ctx":512}}"#),
        Reply::with(307, &[("location", "http://127.0.0.1:1/elsewhere")], ""),
        Reply::with(400, &[], vec![b'x'; 1 << 20]),
    ])
    .await;
    let chat = chat(&server.url);
    let mut text = String::new();
    for _ in 0..6 {
        let failure = ask(&chat, hello()).await.unwrap_err();
        text += &[
            failure.code,
            format!("{:?}", failure.retry),
            failure.message,
        ]
        .join(" ");
        text.push('\n');
    }
    insta::assert_snapshot!(text);
}

fn hasty(change: impl FnOnce(&mut Timeouts)) -> Timeouts {
    let mut timeouts = Timeouts::default();
    change(&mut timeouts);
    timeouts
}

#[tokio::test]
async fn time_runs_out_in_each_of_its_ways() {
    const SOON: Duration = Duration::from_millis(50);
    let comments = Frame::Bytes(b"5\r\n: x\n\n\r\n".repeat(3));
    let cases = [
        (hasty(|t| t.first = SOON), Reply(vec![Frame::Stall])),
        (
            hasty(|t| t.first = SOON),
            Reply::open(&[]).then(comments).then(Frame::Stall),
        ),
        (
            hasty(|t| t.idle = SOON),
            Reply::open(&[HELLO]).then(Frame::Stall),
        ),
        (
            hasty(|t| t.total = SOON),
            Reply::open(&[HELLO]).then(Frame::Stall),
        ),
    ];
    for (timeouts, reply) in cases {
        let server = Listener::new(vec![reply]).await;
        let chat = chat_with(&server.url, Dialect::COMPATIBLE, timeouts);
        let failure = ask(&chat, hello()).await.unwrap_err();
        assert_eq!(
            (failure.code.as_str(), failure.retry),
            ("timeout", Retry::Policy),
            "{timeouts:?}"
        );
    }
    // Once the server has said how the answer ended, only usage is waited for, and not for long.
    let server = Listener::new(vec![Reply::open(&[HELLO, STOP]).then(Frame::Stall)]).await;
    let chat = chat_with(&server.url, Dialect::COMPATIBLE, hasty(|t| t.idle = SOON));
    assert_eq!(
        ask(&chat, hello()).await.unwrap().text.as_deref(),
        Some("Hello")
    );
}

#[tokio::test]
async fn a_call_ends_when_it_is_cancelled() {
    let server = Listener::new(vec![Reply::open(&[HELLO]).then(Frame::Stall)]).await;
    let chat = Arc::new(chat(&server.url));
    let (cancel, seen) = (CancellationToken::new(), Arc::new(Seen::default()));
    let task = tokio::spawn({
        let (cancel, seen) = (cancel.clone(), seen.clone());
        async move { chat.call(&call_of(hello(), None), &*seen, &cancel).await }
    });
    while seen.text().is_empty() {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    let failure = task.await.unwrap().unwrap_err();
    assert_eq!(
        (failure.code.as_str(), failure.retry),
        ("cancelled", Retry::Never)
    );
}

#[tokio::test]
async fn an_answer_without_end_is_bounded() {
    let piece = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "x".repeat(1 << 20)
    );
    let pieces = vec![piece.as_str(); 20];
    let server = Listener::new(vec![Reply::stream(&pieces)]).await;
    let failure = ask(&chat(&server.url), hello()).await.unwrap_err();
    assert_eq!(
        (failure.code.as_str(), failure.retry),
        ("too_large", Retry::Never)
    );
}

#[tokio::test]
async fn a_tool_choice_that_is_not_followed_is_said() {
    let server = Listener::new(vec![Reply::stream(&[HELLO, STOP, DONE]); 4]).await;
    let chat: Chat = chat(&server.url);
    let with = |choice: ToolChoice| Request {
        choice,
        ..request(vec![two_tools(), user("x")])
    };
    let misfit = async |choice| ask(&chat, with(choice)).await.unwrap().misfit;
    assert!(
        misfit(ToolChoice::Any)
            .await
            .unwrap()
            .contains("calls none")
    );
    assert!(
        misfit(ToolChoice::Tool("add".into()))
            .await
            .unwrap()
            .contains("`add`")
    );
    assert_eq!(misfit(ToolChoice::Auto).await, None);
    assert_eq!(misfit(ToolChoice::None).await, None);
}

/// A server that ignores tools says so in `/props`. A server that refuses them is called again without them.
#[tokio::test]
async fn without_native_tools_calls_go_through_structured_output() {
    let props = r#"{"chat_template":"x","chat_template_caps":{"supports_tools":false}}"#;
    let call = "data: {\"choices\":[{\"delta\":{\"content\":\"{\\\"tool\\\": \\\"add\\\", \\\"arguments\\\": {\\\"a\\\": 1, \\\"b\\\": 2}}\"},\"finish_reason\":\"stop\"}]}\n\n";
    let auto = Request {
        calls: CallStyle::Auto,
        ..request(vec![system("You add."), two_tools(), user("1 + 2?")])
    };

    let server = Listener::new(vec![
        Reply::json(200, props),
        Reply::stream(&[call, DONE]),
        Reply::stream(&[call, DONE]),
    ])
    .await;
    let chat = chat(&server.url);
    let expected = "call  add {\"a\":1,\"b\":2} as None\nusage 0 in (0 cached), 0 out\n";
    for _ in 0..2 {
        assert_eq!(shown(&ask(&chat, auto.clone()).await), expected);
    }
    let requests = server.requests();
    let lines = requests
        .iter()
        .map(|request| request.line.as_str())
        .collect::<Vec<_>>();
    let post = "POST /v1/chat/completions HTTP/1.1";
    assert_eq!(
        lines,
        ["GET /props HTTP/1.1", post, post],
        "it is asked once"
    );
    insta::assert_snapshot!(pretty(&requests[1].json()));

    let server = Listener::new(vec![
        Reply::with(404, &[], ""),
        Reply::with(404, &[], ""),
        Reply::json(
            400,
            r#"{"error":{"message":"test does not support tools","type":"api_error"}}"#,
        ),
        Reply::stream(&[call, DONE]),
    ])
    .await;
    let chat = crate::request::chat(&server.url);
    assert_eq!(shown(&ask(&chat, auto.clone()).await), expected);
    let requests = server.requests();
    assert!(requests[2].json().get("tools").is_some() && requests[3].json().get("tools").is_none());

    // If the definition insists on native calls, the refusal is the failure of the call.
    let server = Listener::new(vec![Reply::json(
        400,
        r#"{"error":"test does not support tools"}"#,
    )])
    .await;
    let native = Request {
        calls: CallStyle::Native,
        ..auto
    };
    let failure = ask(&crate::request::chat(&server.url), native)
        .await
        .unwrap_err();
    assert_eq!(
        (failure.code.as_str(), failure.retry),
        ("no_tools", Retry::Never)
    );
}

/// Most servers that call themselves compatible know neither question. That is remembered, so later calls are one request. A
/// server that is out of order or cannot be reached has not answered, and is asked again.
#[tokio::test]
async fn what_a_server_cannot_tell_is_not_asked_before_each_call() {
    let auto = Request {
        calls: CallStyle::Auto,
        ..request(vec![two_tools(), user("Hi")])
    };
    let not_found = || Reply::with(404, &[], "");
    let said = || Reply::stream(&[HELLO, STOP, DONE]);
    let cut = || Reply(vec![Frame::Cut]);
    let mut replies = vec![Reply::with(503, &[], ""), said()];
    replies.extend([not_found(), cut(), said()]);
    replies.extend([not_found(), not_found()]);
    replies.extend((0..5).map(|_| said()));
    let server = Listener::new(replies).await;
    let chat = chat(&server.url);
    for _ in 0..7 {
        ask(&chat, auto.clone()).await.unwrap();
    }
    let requests = server.requests();
    let lines = requests.iter().map(|r| &*r.line).collect::<Vec<_>>();
    let (post, props, show) = (
        "POST /v1/chat/completions HTTP/1.1",
        "GET /props HTTP/1.1",
        "POST /api/show HTTP/1.1",
    );
    let expected = [
        vec![props, post],
        vec![props, show, post],
        vec![props, show],
        vec![post; 5],
    ];
    assert_eq!(lines, expected.concat());
}

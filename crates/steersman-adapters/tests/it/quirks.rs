//! Servers that call themselves compatible: a request that they refuse is sent in another form, once, and in that form from
//! then on.

use crate::listener::{Exchange, Listener, Reply};
use crate::request::{Seen, call_of, request};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_adapters::chat::encode::Dialect;
use steersman_adapters::chat::{Chat, Server};
use steersman_adapters::messages::{self, Messages};
use steersman_adapters::wire::Timeouts;
use steersman_machine::context::{Content, Request};
use steersman_machine::network::ToolChoice;
use steersman_machine::questions::ToolSpec;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::model::{Left, Model};
use tokio_util::sync::CancellationToken;

const DONE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn hello() -> Request {
    request(vec![Content::User("Hi".into())])
}

fn chat(url: &str) -> Chat {
    Chat::new(Server {
        label: "compatible/m".into(),
        url: url.to_owned(),
        model: "m".to_owned(),
        dialect: Dialect::COMPATIBLE,
        timeouts: Timeouts::default(),
    })
}

async fn ask(model: &dyn Model, request: Request) -> Result<Answer, Failure> {
    let call = call_of(request, None);
    let cancel = CancellationToken::new();
    model.call(&call, &Seen::default(), &cancel).await
}

fn refused(message: &str) -> Reply {
    Reply::json(
        400,
        &json!({ "error": { "message": message, "type": "invalid_request_error" } }).to_string(),
    )
}

/// The request `hello` on the wire, with these changes.
fn hi(more: Json) -> Json {
    let mut body = json!({
        "model": "m",
        "messages": [{ "role": "user", "content": "Hi" }],
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    for (key, value) in more.as_object().expect("an object") {
        if value.is_null() {
            body.as_object_mut().unwrap().remove(key);
        } else {
            body[key] = value.clone();
        }
    }
    body
}

fn said(answer: &Result<Answer, Failure>) -> &str {
    match answer {
        Ok(answer) => answer.text.as_deref().unwrap_or_default(),
        Err(failure) => &failure.message,
    }
}

#[tokio::test]
async fn what_a_server_refuses_is_left_out_from_then_on() {
    let server = Listener::strict(vec![
        Exchange {
            request: hi(json!({})),
            reply: refused("Unrecognized request argument supplied: stream_options"),
        },
        Exchange {
            request: hi(json!({ "stream_options": null })),
            reply: Reply::stream(&[DONE]),
        },
        Exchange {
            request: hi(json!({ "stream_options": null })),
            reply: Reply::stream(&[DONE]),
        },
    ])
    .await;
    let chat = chat(&server.url);
    for _ in 0..2 {
        assert_eq!(said(&ask(&chat, hello()).await), "Hello");
    }
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn what_a_definition_wrote_is_said_in_other_words() {
    let mut request = hello();
    request.params = Arc::new([("max_tokens".to_owned(), json!(50))]);
    request.output = Some(r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#.into());
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    let format = |strict: Option<bool>| {
        let mut named = json!({ "name": "answer", "schema": schema });
        if let Some(strict) = strict {
            named["strict"] = json!(strict);
        }
        json!({ "type": "json_schema", "json_schema": named })
    };
    let told = format!(
        "Answer with one JSON value alone, without a word around it, that fits this JSON Schema: {schema}"
    );
    let server = Listener::strict(vec![
        Exchange {
            request: hi(json!({ "max_tokens": 50, "response_format": format(Some(true)) })),
            reply: refused("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        },
        Exchange {
            request: hi(json!({ "max_completion_tokens": 50, "response_format": format(Some(true)) })),
            reply: refused("json_schema: unknown field `strict`"),
        },
        Exchange {
            request: hi(json!({ "max_completion_tokens": 50, "response_format": format(None) })),
            reply: refused("response_format of type json_schema is not available"),
        },
        Exchange {
            request: hi(json!({
                "max_completion_tokens": 50,
                "messages": [{ "role": "system", "content": told }, { "role": "user", "content": "Hi" }],
            })),
            reply: refused("System role not supported"),
        },
        Exchange {
            request: hi(json!({
                "max_completion_tokens": 50,
                "messages": [{ "role": "user", "content": format!("{told}\n\nHi") }],
            })),
            reply: Reply::stream(&[DONE]),
        },
    ])
    .await;
    assert_eq!(said(&ask(&chat(&server.url), request).await), "Hello");
}

#[tokio::test]
async fn a_call_that_had_to_be_made_is_missed_where_the_server_takes_no_choice() {
    let tools = vec![ToolSpec {
        name: "add".into(),
        description: "Adds.".into(),
        parameters: r#"{"type":"object"}"#.into(),
    }];
    let mut request = request(vec![Content::Tools(tools), Content::User("Hi".into())]);
    request.choice = ToolChoice::Any;
    request.calls = steersman_machine::network::CallStyle::Native;
    let function =
        json!({ "name": "add", "description": "Adds.", "parameters": { "type": "object" } });
    let tools = json!([{ "type": "function", "function": function }]);
    let named = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\" functions.add<|channel|>commentary\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = Listener::strict(vec![
        Exchange {
            request: hi(json!({ "tools": tools, "tool_choice": "required" })),
            reply: refused("tool_choice is not supported by this model"),
        },
        Exchange {
            request: hi(json!({ "tools": tools })),
            reply: Reply::stream(&[DONE]),
        },
        Exchange {
            request: hi(json!({ "tools": tools })),
            reply: Reply::stream(&[named]),
        },
    ])
    .await;
    let chat = chat(&server.url);
    let answer = ask(&chat, request.clone()).await.unwrap();
    assert!(answer.misfit.unwrap().contains("a tool had to be called"));
    // Some templates leave more around a name.
    let answer = ask(&chat, request).await.unwrap();
    assert_eq!(answer.asks[0].name, "add");
    assert_eq!(answer.misfit, None);
}

#[tokio::test]
async fn what_the_definition_alone_can_mend_is_told() {
    let mut request = hello();
    request.params = Arc::new([("parallel_tool_calls".to_owned(), json!(false))]);
    let refusal = "Unknown parameter: 'parallel_tool_calls'";
    let server = Listener::strict(vec![Exchange {
        request: hi(json!({ "parallel_tool_calls": false })),
        reply: refused(refusal),
    }])
    .await;
    let failure = ask(&chat(&server.url), request).await.unwrap_err();
    assert_eq!(failure.code, "invalid_request");
    assert!(failure.message.contains(refusal), "{failure:?}");
}

#[tokio::test]
async fn a_request_that_differs_is_refused_by_the_fixture() {
    let server = Listener::strict(vec![Exchange {
        request: hi(json!({ "messages": [{ "role": "user", "content": "Ho" }] })),
        reply: Reply::stream(&[DONE]),
    }])
    .await;
    let failure = ask(&chat(&server.url), hello()).await.unwrap_err();
    let differs = r#"/messages/0/content: "Ho" was expected, "Hi" came"#;
    assert!(failure.message.contains(differs), "{failure:?}");
}

#[tokio::test]
async fn what_servers_say_is_left_is_reported_whether_they_answer_or_not() {
    let headers = [
        ("content-type", "text/event-stream"),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "2s"),
    ];
    let server = Listener::new(vec![
        Reply::with(200, &headers, DONE),
        Reply::with(429, &headers, "slow down"),
    ])
    .await;
    let chat = chat(&server.url);
    for _ in 0..2 {
        let (seen, cancel) = (Seen::default(), CancellationToken::new());
        let _ = chat.call(&call_of(hello(), None), &seen, &cancel).await;
        let reports = seen.1.lock().unwrap();
        let left = Left {
            left: 0,
            millis: 2_000,
        };
        assert_eq!(reports[0].requests, Some(left));
    }
    let stream = concat!(
        "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m-2026\",\"usage\":{\"input_tokens\":10,\"cache_creation_input_tokens\":300,\"cache_read_input_tokens\":20,\"output_tokens\":1}}}\n\n",
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hello\"}}\n\n",
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":10,\"cache_creation_input_tokens\":300,\"output_tokens\":4}}\n\n",
        "data: {\"type\":\"message_stop\"}\n\n",
    );
    let server = Listener::new(vec![Reply::stream(&[stream])]).await;
    let messages = Messages::new(messages::Server {
        label: "anthropic/m".into(),
        url: server.url.clone(),
        model: "m".to_owned(),
        timeouts: Timeouts::default(),
    });
    let (seen, cancel) = (Seen::default(), CancellationToken::new());
    let answer = messages.call(&call_of(hello(), None), &seen, &cancel).await;
    let usage = answer.unwrap().usage;
    assert_eq!((usage.input, usage.cached, usage.output), (330, 20, 4));
    assert_eq!(usage.cache_write, 300);
    let said = (usage.served.as_deref(), usage.finish.as_deref());
    assert_eq!(said, (Some("m-2026"), Some("end_turn")));
}

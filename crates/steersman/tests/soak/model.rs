//! A model behind HTTP on the loopback. Its next answer follows from the conversation: the last message of the user names a plan,
//! and the number of answers since then is the step.

use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

/// Serves the model, and a page for the tool `fetch`. Returns the address.
pub(crate) async fn serve() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new()
        .route("/v1/chat/completions", post(answer))
        .route("/page", get(|| async { "x".repeat(20_000) }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    at
}

async fn answer(Json(request): Json<Value>) -> ([(&'static str, &'static str); 1], String) {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let is_user = |message: &Value| message["role"] == "user";
    let last = messages.iter().rposition(is_user).unwrap_or(0);
    let plan = messages[last]["content"].as_str().unwrap_or_default();
    let answers = messages[last..].iter();
    let step = answers
        .filter(|message| message["role"] == "assistant")
        .count();
    let calls = |name: &str, args: Value| {
        json!([{ "index": 0, "id": format!("call_{step}"), "type": "function",
                 "function": { "name": name, "arguments": args.to_string() } }])
    };
    let call = match (plan, step) {
        ("loop", 0 | 2 | 4) => Some(calls("roll", json!({ "eyes": step }))),
        ("loop", 1 | 3) => Some(calls("fetch", json!({}))),
        ("wait", 0) => Some(calls("nap", json!({}))),
        ("event", 0) => Some(calls("hear", json!({}))),
        ("approve", 0) => Some(calls("pay", json!({ "cents": 5 }))),
        ("agents", 0) => Some(calls("helper", json!({ "message": "loop" }))),
        ("race", 0) => Some(calls("race", json!({ "instructions": ["loop", "roll"] }))),
        ("roll", 0) => Some(calls("roll", json!({ "eyes": 1 }))),
        _ => None,
    };
    let (delta, finish) = match call {
        Some(calls) => (json!({ "tool_calls": calls }), "tool_calls"),
        None => (json!({ "content": "Done." }), "stop"),
    };
    let event = json!({ "choices": [{ "delta": delta, "finish_reason": finish }],
                        "usage": { "prompt_tokens": 10, "completion_tokens": 5 } });
    let events = format!("data: {event}\n\ndata: [DONE]\n\n");
    ([("content-type", "text/event-stream")], events)
}

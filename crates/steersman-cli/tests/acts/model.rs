//! The model. It makes the calls that the newest message lists, one step in each answer, and then says that it is done.
//!
//! A message is `m7 do pay:a:12 mail:b:3+big help(pay:c:4,big) fork(pay:d:5|big)`. Spaces separate steps, `+` joins
//! calls of one answer, `help` sends steps to the sub-agent, `fork` makes a branch for each part between `|`.

use serde_json::{Value as Json, json};
use std::fmt::Write;

/// The answer to a request, as a stream of events.
pub(crate) fn answer(request: &Json) -> String {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let asked = messages.iter().rposition(|m| m["role"] == "user");
    let text = asked.map_or_else(String::new, |at| text_of(&messages[at]["content"]));
    let begun = messages
        .iter()
        .skip(asked.map_or(0, |at| at + 1))
        .filter(|m| m["role"] == "assistant" && m["tool_calls"].is_array())
        .count();
    // Earlier messages that got no answer may be in the same text: only the last one counts.
    let (name, steps) = text.rsplit_once(" do").unwrap_or((&text, ""));
    let calls = match steps.split_whitespace().nth(begun) {
        Some(step) => calls(step),
        None => Vec::new(),
    };
    if calls.is_empty() {
        let name = name.split_whitespace().last().unwrap_or("nothing");
        return stream(
            &json!({ "role": "assistant", "content": format!("Done {name}.") }),
            "stop",
        );
    }
    let calls: Vec<Json> = calls
        .iter()
        .enumerate()
        .map(|(index, (name, args))| {
            json!({
                "index": index,
                "id": format!("call_{}_{begun}_{index}", messages.len()),
                "type": "function",
                "function": { "name": name, "arguments": args.to_string() },
            })
        })
        .collect();
    stream(
        &json!({ "role": "assistant", "tool_calls": calls }),
        "tool_calls",
    )
}

fn text_of(content: &Json) -> String {
    match content {
        Json::String(text) => text.clone(),
        Json::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}

/// The calls of a step, joined by `+` outside of brackets.
fn calls(step: &str) -> Vec<(String, Json)> {
    let mut found = Vec::new();
    let mut depth = 0;
    let mut from = 0;
    for (at, c) in step.char_indices().chain([(step.len(), '+')]) {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            '+' if depth == 0 => {
                found.extend(call(&step[from..at]));
                from = at + 1;
            }
            _ => {}
        }
    }
    found
}

fn call(text: &str) -> Option<(String, Json)> {
    if let Some((name, inside)) = text.split_once('(') {
        let inside = inside.strip_suffix(')')?;
        let said = |steps: &str| format!("{name} do {}", steps.replace(',', " "));
        if name == "help" {
            return Some(("helper".to_owned(), json!({ "message": said(inside) })));
        }
        let ways: Vec<String> = inside.split('|').map(said).collect();
        return Some(("fork".to_owned(), json!({ "instructions": ways })));
    }
    let mut parts = text.split(':');
    let tool = parts.next()?.to_owned();
    let args = match (parts.next(), parts.next()) {
        (Some(to), Some(cents)) => json!({ "to": to, "cents": cents.parse::<u64>().ok()? }),
        _ => json!({}),
    };
    Some((tool, args))
}

fn stream(delta: &Json, reason: &str) -> String {
    let chunks = [
        json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }),
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }),
        json!({ "choices": [], "usage": { "prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25 } }),
    ];
    let mut text = String::new();
    for chunk in chunks {
        let _ = write!(text, "data: {chunk}\n\n");
    }
    text.push_str("data: [DONE]\n\n");
    text
}

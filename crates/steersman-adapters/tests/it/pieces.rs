//! Answers in very many small pieces: each reader looks at each piece once.

use crate::request::Seen;
use serde_json::json;
use std::time::{Duration, Instant};
use steersman_adapters::chat;
use steersman_adapters::structured::Peek;
use steersman_adapters::wire::{Decode, Quiet, frames::Frames, sse::Events};
use steersman_adapters::{bedrock, gemini, messages, responses};
use steersman_runtime::model::{Delta, Sink as _};

/// Number of pieces that a reader gets.
const MANY: usize = 200_000;
/// Number of pieces where each is a JSON document, which takes longer to read.
const EVENTS: usize = 100_000;

/// Checks that four times as many pieces take about four times as long. A reader that compares each piece with all before it
/// would take 16 times as long.
fn is_linear(what: &str, pieces: usize, read: impl Fn(usize)) {
    let time = |pieces: usize| {
        let begun = Instant::now();
        read(pieces);
        begun.elapsed()
    };
    let (few, many) = (time(pieces / 4), time(pieces));
    assert!(
        many < few * 9 + Duration::from_secs(2),
        "{what}: a quarter of {pieces} pieces took {few:?}, all took {many:?}"
    );
}

#[test]
fn an_answer_inside_json_is_shown_in_linear_time() {
    for (what, first, piece, last) in [
        ("blanks in front", "", " ", r#"{"answer":"x"}"#),
        ("blanks inside", "{", "\n", r#""answer":"x"}"#),
        ("an answer", r#"{"answer":""#, "x", r#""}"#),
        ("escapes", r#"{"answer":""#, "\\", r#"""#),
        ("a call", r#"{"tool":""#, "x", r#""}"#),
        ("behind it", r#"{"answer":"x"}"#, " ", ""),
    ] {
        is_linear(what, MANY, |pieces| {
            let peek = Peek::new(&Quiet);
            peek.delta(Delta::Text(first.to_owned()));
            for _ in 0..pieces {
                peek.delta(Delta::Text(piece.to_owned()));
            }
            peek.delta(Delta::Text(last.to_owned()));
        });
    }
    // Only blanks are left out of the beginning.
    let seen = Seen::default();
    let peek = Peek::new(&seen);
    for _ in 0..MANY {
        peek.delta(Delta::Text(" ".to_owned()));
    }
    peek.delta(Delta::Text(r#"{"answer": "Hello"}"#.to_owned()));
    assert_eq!(seen.text(), "Hello");
    let seen = Seen::default();
    let peek = Peek::new(&seen);
    for piece in [" {", " \"to", "ol\": \"a\"", "}"] {
        peek.delta(Delta::Text(piece.to_owned()));
    }
    let call: String = seen
        .0
        .lock()
        .unwrap()
        .iter()
        .map(|delta| match delta {
            Delta::Call(0, None, piece) => piece.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(call, r#" { "tool": "a"}"#);
}

/// Feeds a reader one event again and again.
fn decodes(what: &str, begin: &[String], event: &str, make: fn() -> Box<dyn Feed>) {
    is_linear(what, EVENTS, |pieces| {
        let mut decoder = make();
        for event in begin {
            decoder.feed(event);
        }
        for _ in 0..pieces {
            decoder.feed(event);
        }
        decoder.end();
    });
}

trait Feed {
    fn feed(&mut self, event: &str);
    fn end(self: Box<Self>);
}

impl<T: Decode> Feed for T {
    fn feed(&mut self, event: &str) {
        self.event(event, &Quiet).expect("it is an event");
    }
    fn end(self: Box<Self>) {
        drop(self.finish());
    }
}

fn of_chat(what: &str, begin: &[&str], delta: serde_json::Value) {
    let event = |delta: &serde_json::Value| json!({ "choices": [{ "delta": delta }] }).to_string();
    let begin: Vec<String> = begin
        .iter()
        .map(|text| event(&json!({ "content": text })))
        .collect();
    decodes(what, &begin, &event(&delta), || {
        Box::new(chat::stream::Decoder::default())
    });
}

#[test]
fn chat_completions_are_put_together_in_linear_time() {
    of_chat("text", &[], json!({ "content": "x" }));
    of_chat("blanks", &[], json!({ "content": " " }));
    of_chat("inside a tag", &["<think>"], json!({ "content": "<" }));
    of_chat(
        "behind a tag",
        &["<think>x</think>"],
        json!({ "content": "x" }),
    );
}

#[test]
fn calls_and_reasoning_are_put_together_in_linear_time() {
    of_chat(
        "arguments",
        &[],
        json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "x" } }] }),
    );
    of_chat(
        "extra fields",
        &[],
        json!({ "tool_calls": [{ "index": 0, "signature": "x" }] }),
    );
    of_chat("reasoning", &[], json!({ "reasoning_content": "x" }));
    let detail = json!([{ "index": 0, "type": "reasoning.text", "text": "x" }]);
    of_chat("blocks", &[], json!({ "reasoning_details": detail }));
    of_chat(
        "more blocks",
        &[],
        json!({ "reasoning_details": [{ "text": "x" }] }),
    );
}

#[test]
fn messages_are_put_together_in_linear_time() {
    for (kind, field, block) in [
        ("text_delta", "text", "text"),
        ("input_json_delta", "partial_json", "tool_use"),
        ("thinking_delta", "thinking", "thinking"),
        ("signature_delta", "signature", "thinking"),
    ] {
        let begin = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": block } });
        let delta = json!({ "type": kind, field: "x" });
        let event = json!({ "type": "content_block_delta", "index": 0, "delta": delta });
        decodes(kind, &[begin.to_string()], &event.to_string(), || {
            Box::new(messages::stream::Decoder::default())
        });
    }
}

#[test]
fn responses_are_put_together_in_linear_time() {
    for (kind, item) in [
        ("output_text", "message"),
        ("refusal", "message"),
        ("function_call_arguments", "function_call"),
        ("reasoning_summary_text", "reasoning"),
    ] {
        let begin = json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": item } });
        let event =
            json!({ "type": format!("response.{kind}.delta"), "output_index": 0, "delta": "x" });
        decodes(kind, &[begin.to_string()], &event.to_string(), || {
            Box::new(responses::stream::Decoder::default())
        });
    }
}

#[test]
fn chunks_of_gemini_are_put_together_in_linear_time() {
    for (what, part) in [
        ("text", json!({ "text": "x" })),
        ("thought", json!({ "text": "x", "thought": true })),
        ("unknown", json!({ "executableCode": { "code": "x" } })),
    ] {
        let event = json!({ "candidates": [{ "content": { "parts": [part] } }] });
        decodes(what, &[], &event.to_string(), || {
            Box::new(gemini::stream::Decoder::default())
        });
    }
}

#[test]
fn converse_is_put_together_in_linear_time() {
    for (what, delta) in [
        ("text", json!({ "text": "x" })),
        ("arguments", json!({ "toolUse": { "input": "x" } })),
        ("reasoning", json!({ "reasoningContent": { "text": "x" } })),
        (
            "signature",
            json!({ "reasoningContent": { "signature": "x" } }),
        ),
    ] {
        let call = json!({ "toolUse": { "toolUseId": "a", "name": "add" } });
        let begin =
            json!({ "contentBlockStart": { "contentBlockIndex": 0, "start": call } }).to_string();
        let begin = if what == "arguments" {
            vec![begin]
        } else {
            Vec::new()
        };
        let event = json!({ "contentBlockDelta": { "contentBlockIndex": 0, "delta": delta } });
        decodes(what, &begin, &event.to_string(), || {
            Box::new(bedrock::stream::Decoder::default())
        });
    }
}

#[test]
fn frames_are_cut_in_linear_time() {
    /// A message without headers.
    fn message(payload: usize) -> Vec<u8> {
        let mut bytes = [(16 + payload as u32).to_be_bytes(), [0; 4]].concat();
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes.extend(vec![b'x'; payload]);
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }
    is_linear("one message", MANY, |pieces| {
        let mut frames = Frames::default();
        for byte in message(pieces).chunks(1) {
            frames.push(byte, &mut Vec::new()).expect("whole");
        }
    });
    is_linear("messages", MANY, |pieces| {
        let (mut frames, one) = (Frames::default(), message(1));
        for _ in 0..pieces {
            frames.push(&one, &mut Vec::new()).expect("whole");
        }
    });
    is_linear("messages at once", MANY, |pieces| {
        let all = message(1).repeat(pieces);
        let pushed = Frames::default().push(&all, &mut Vec::new());
        pushed.expect("whole");
    });
}

#[test]
fn events_are_cut_in_linear_time() {
    for (what, first, piece) in [
        ("one line", "data: ", "x"),
        ("many lines", "", "data: x\n"),
        ("empty lines of data", "", "data\n"),
        ("comments", "", ":\n"),
        ("events", "", "data: x\n\n"),
        ("line ends", "", "\r\n"),
    ] {
        is_linear(what, MANY, |pieces| {
            let mut events = Events::default();
            events.push(first.as_bytes()).expect("small");
            for _ in 0..pieces {
                events.push(piece.as_bytes()).expect("small");
            }
            drop(events.finish());
        });
    }
}

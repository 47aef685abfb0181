//! Calls that models write as text, with mistakes. For any text of a model:
//!
//! * reading ends without a panic;
//! * valid JSON is read as it is: no repair changes a value or loses a digit;
//! * invalid JSON is read by no reader that does not repair;
//! * a text that is no call is left as it is;
//! * a call that was read can be told to a model in the same style, and is then read as the same call.
//!
//! The first byte of an input selects the style and the choice of tools.

use crate::Target;
use crate::requests::{assistant, request, tools};
use serde::de::IgnoredAny;
use serde_json::Value as Json;
use steersman_adapters::structured::{Style, read, tell};
use steersman_machine::context::{Content, Request};
use steersman_machine::network::ToolChoice;
use steersman_machine::stored::outcome::{Answer, Ask};
use steersman_machine::values::json;

pub(crate) const TARGET: Target = Target {
    name: "arguments",
    check,
    seeds: || {
        let texts = TEXTS
            .iter()
            .flat_map(|text| (0..4).map(move |kind| [&[kind], text.as_bytes()].concat()));
        texts.collect()
    },
    words: &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\\\"",
        "\n",
        "```json\n",
        "```",
        "\"tool\":",
        "\"arguments\":",
        "\"answer\":",
        "\"add\"",
        "null",
        "true",
        "\\u0000",
        "\\ud800",
        "é",
        "18446744073709551616",
        "-9223372036854775809",
        "1e22",
        "1.0",
        "0",
        "'",
        "//",
        " ",
        "\t",
        "{\"tool\": \"add\", \"arguments\": {}}",
    ],
    mutations: 15_000,
};

const TEXTS: [&str; 14] = [
    r#"{"tool": "add", "arguments": {"a": 1, "b": 2}}"#,
    r#"I will add. {"tool": "add", "arguments": {"a": 1,},} And then."#,
    "```json\n{\"tool\": \"look\"}\n```",
    r#"{"answer": "It is 3."}"#,
    r#"{"answer": {"n": [1, 2, {"x": null}]}}"#,
    r#"{"tool": "add", "arguments": {"x": [1, 2"#,
    "{\"answer\": \"two\nlines",
    r#"{"tool": "a", "arguments": {"x": [1}}"#,
    r#"{"answer": "a\""#,
    r#"{"tool": "add", "arguments": {"a": 123456789012345678901234567890}}"#,
    r#"{"tool": "add", "arguments": "{\"a\": 1}"}"#,
    r#"{"x": {"tool": "look", "arguments": [1e22, -0.0, 1.5e3]}}"#,
    r#"{"a": 1}{"b": 2} { {"tool": "look", "arguments": {"path": "C:\\new"}}"#,
    "123456789012345678901234567890",
];

fn check(data: &[u8]) {
    let [kind, text @ ..] = data else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    plain_json(&text);
    let style = if kind & 1 == 0 {
        Style::Structured
    } else {
        Style::Text
    };
    let choice = match kind >> 1 & 3 {
        0 => ToolChoice::Auto,
        1 => ToolChoice::Any,
        2 => ToolChoice::None,
        _ => ToolChoice::Tool("add".into()),
    };
    let request = Request {
        choice: choice.clone(),
        ..request(vec![tools()])
    };
    let answer = Answer {
        text: Some(text.clone().into_owned()),
        cut: kind & 8 != 0,
        ..Answer::default()
    };
    let got = read(answer, &request, style);
    assert!(got.asks.len() <= 1, "one object is one call");
    if got.asks.is_empty() && style == Style::Text && choice != ToolChoice::None {
        assert_eq!(got.text.as_deref(), Some(&*text), "it is left as it is");
    }
    if choice == ToolChoice::None {
        return;
    }
    if let Ok(Json::Object(object)) = json::read::<Json>(&text)
        && let Some(Json::String(name)) = object.get("tool")
    {
        let ask = got.asks.first().expect("an object with `tool` is a call");
        assert_eq!(ask.name, *name);
        if let Some(args @ (Json::Object(_) | Json::Array(_))) = object.get("arguments") {
            assert_eq!(json::read::<Json>(&ask.args).as_ref().ok(), Some(args));
        }
    }
    if let Some(ask) = got.asks.first() {
        is_told(ask, style);
    }
}

/// Tells a model its own call, and reads the told text as its answer.
fn is_told(ask: &Ask, style: Style) {
    let called = Answer {
        asks: vec![ask.clone()],
        ..Answer::default()
    };
    let history = request(vec![tools(), assistant(&called)]);
    let told = tell(&history, style);
    let last = told.segments.last().map(|segment| &segment.content);
    let Some(Content::Assistant {
        text: Some(text), ..
    }) = last
    else {
        panic!("the call is told as a text: {last:?}");
    };
    let again = Answer {
        text: Some(text.clone()),
        ..Answer::default()
    };
    let again = read(again, &history, style);
    let again = again.asks.first().expect("a told call is read");
    assert_eq!(again.name, ask.name);
    // Arguments are compared as values: blanks do not matter.
    let value = |args: &str| json::read::<Json>(args).map_err(|_| args.to_owned());
    assert_eq!(value(&again.args), value(&ask.args), "{text}");
}

/// Readers of JSON that repair nothing.
fn plain_json(text: &str) {
    let (common, exact) = (serde_json::from_str::<Json>(text), json::read::<Json>(text));
    assert!(common.is_err() || exact.is_ok(), "{common:?}, {exact:?}");
    let Ok(exact) = exact else {
        assert!(json::comparable(text).is_err(), "it is no JSON");
        return;
    };
    // A number beyond the range of floating point is read as its digits, so the common reader says only whether it is JSON.
    assert!(serde_json::from_str::<IgnoredAny>(text).is_ok(), "{exact}");
    let written = exact.to_string();
    assert_eq!(
        json::read::<Json>(&written).ok(),
        Some(exact),
        "as it was written"
    );
    assert!(json::comparable(text).is_ok(), "it is JSON");
}

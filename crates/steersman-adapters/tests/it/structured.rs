//! Tools that are described in the prompt, and calls that are read from text.

use crate::request::{Seen, assistant, request, result, system, tool, two_tools, user};
use serde_json::json;
use steersman_adapters::chat::encode::{Dialect, encode};
use steersman_adapters::structured::{Peek, Style, read, tell};
use steersman_machine::context::{Content, Request};
use steersman_machine::network::ToolChoice;
use steersman_machine::stored::outcome::Answer;
use steersman_runtime::model::{Delta, Sink};

fn conversation() -> Request {
    request(vec![
        system("You help."),
        two_tools(),
        user("What is 1 + 2?"),
        assistant(
            None,
            &[("c1", "add", "{\"a\":1,\"b\":2}")],
            Some("{\"reasoning_content\":\"x\"}"),
        ),
        result("c1", "add", "3", false),
        assistant(Some("It is 3."), &[], None),
        user("And the weather in Bern?"),
    ])
}

fn told(request: &Request, style: Style) -> String {
    serde_json::to_string_pretty(&encode(&tell(request, style), "m", &Dialect::COMPATIBLE)).unwrap()
}

#[test]
fn a_conversation_is_told_for_structured_output() {
    insta::assert_snapshot!(told(&conversation(), Style::Structured));
}

#[test]
fn a_conversation_is_told_for_text() {
    insta::assert_snapshot!(told(&conversation(), Style::Text));
}

#[test]
fn the_schema_follows_the_choice_and_the_output() {
    let schema = |request: &Request| {
        tell(request, Style::Structured)
            .output
            .map(|schema| schema.to_string())
    };
    let with = |choice: ToolChoice, output: Option<&str>| Request {
        choice,
        output: output.map(Into::into),
        ..conversation()
    };
    let node = json!({ "$schema": "s", "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } },
                       "$defs": { "node": { "type": "object", "properties": { "of": { "$ref": "#" } } } } });
    let recursive = request(vec![
        Content::Tools(vec![tool("plan", "", node)]),
        user("x"),
    ]);
    let text = [
        with(ToolChoice::Any, None),
        with(ToolChoice::Tool("add".into()), None),
        with(ToolChoice::None, None),
        with(ToolChoice::None, Some(r#"{"type":"object"}"#)),
        with(
            ToolChoice::Auto,
            Some(r##"{"$ref":"#/$defs/x","$defs":{"x":{"type":"integer"}}}"##),
        ),
        recursive,
    ]
    .each_ref()
    .map(|request| schema(request).unwrap_or("no schema".to_owned()))
    .join("\n");
    insta::assert_snapshot!(text);
}

fn answer(text: &str) -> Answer {
    Answer {
        text: Some(text.to_owned()),
        ..Answer::default()
    }
}

fn shown(answer: Answer) -> String {
    crate::request::shown(&Ok(answer))
        .replace("usage 0 in (0 cached), 0 out", "")
        .trim()
        .to_owned()
}

#[test]
fn structured_answers_are_read() {
    let read = |text: &str| shown(read(answer(text), &conversation(), Style::Structured));
    assert_eq!(
        read(r#"{"tool": "add", "arguments": {"a": 1}}"#),
        r#"call  add {"a":1} as None"#
    );
    assert_eq!(read(r#"{"tool": "add"}"#), "call  add {} as None");
    assert_eq!(read(r#"{"answer": "It is 3."}"#), r#"text  "It is 3.""#);
    assert_eq!(read(r#"{"answer": {"n": 3}}"#), r#"text  "{\"n\":3}""#);
    // A server that ignores the schema: what can be read is read, and the rest is a misfit.
    assert_eq!(read("```json\n{\"answer\": \"3\"}\n```"), r#"text  "3""#);
    assert!(read("It is 3.").contains("misfit  \"the answer is not a JSON object"));
    assert!(read(r#"{"other": 1}"#).contains("misfit"));
    // The answer is cut off in the middle.
    let cut = |text: &str| {
        let cut = Answer {
            cut: true,
            ..answer(text)
        };
        shown(read_cut(cut))
    };
    assert_eq!(
        cut(r#"{"answer": "It is \"thr"#),
        "text  \"It is \\\"thr\"\n, cut"
    );
}

#[test]
fn an_answer_that_is_wanted_without_tools_is_no_raw_call() {
    let forced = Request {
        choice: ToolChoice::None,
        ..conversation()
    };
    for style in [Style::Structured, Style::Text] {
        let read = |text: &str| shown(read(answer(text), &forced, style));
        assert_eq!(read(r#"{"answer": "It is 3."}"#), r#"text  "It is 3.""#);
        assert_eq!(read("It is 3."), r#"text  "It is 3.""#);
        // The machine refuses this call, as it does with a model of native tools.
        assert_eq!(
            read(r#"{"tool": "add", "arguments": {"a": 1}}"#),
            r#"call  add {"a":1} as None"#
        );
        assert_eq!(
            read("It is 3, I think. {\"tool\": \"add\", \"arguments\": {}}"),
            "text  \"It is 3, I think.\"\ncall  add {} as None"
        );
        // JSON that belongs to the answer is left alone.
        for text in [
            r#"{"tool": "hammer", "arguments": {}}"#,
            r#"Write {"answer": 42} into the file."#,
            r#"{"sum": 3}"#,
        ] {
            assert_eq!(read(text), format!("text  {text:?}"));
        }
        let formed = Request {
            output: Some(r#"{"type":"object"}"#.into()),
            ..forced.clone()
        };
        let text = r#"{"answer": "It is 3."}"#;
        let kept = read_as(answer(text), &formed, style);
        assert_eq!(shown(kept), format!("text  {text:?}"));
        let plain = Request {
            choice: ToolChoice::None,
            ..request(vec![system("You help."), user("Give JSON.")])
        };
        let kept = read_as(answer(text), &plain, style);
        assert_eq!(shown(kept), format!("text  {text:?}"));
    }
}

fn read_as(answer: Answer, request: &Request, style: Style) -> Answer {
    read(answer, request, style)
}

fn read_cut(answer: Answer) -> Answer {
    read(answer, &conversation(), Style::Structured)
}

#[test]
fn calls_are_found_in_text() {
    let read = |text: &str| shown(read(answer(text), &conversation(), Style::Text));
    assert_eq!(read("It is 3."), r#"text  "It is 3.""#);
    assert_eq!(
        read(
            "I will add.\n```json\n{\"tool\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2,}}\n```\nDone."
        ),
        "text  \"I will add.\"\ncall  add {\"a\":1,\"b\":2} as None"
    );
    assert_eq!(
        read(r#"Set {x} is {"a": 1}. {"tool": "add", "arguments": {"a": [1"#),
        "text  \"Set {x} is {\\\"a\\\": 1}.\"\ncall  add {\"a\":[1]} as None"
    );
    assert_eq!(
        read(r#"{"tool": "add", "arguments": "not an object"}"#),
        "call  add not an object as None"
    );
    let braces = "{".repeat(100_000);
    assert_eq!(shown(read_text(&braces)), format!("text  {braces:?}"));
}

fn read_text(text: &str) -> Answer {
    read(answer(text), &conversation(), Style::Text)
}

#[test]
fn what_streams_inside_the_json_is_shown_as_what_it_is() {
    let streamed = |pieces: &[&str]| {
        let seen = Seen::default();
        let peek = Peek::new(&seen);
        for piece in pieces {
            peek.delta(Delta::Text((*piece).to_owned()));
        }
        seen.0.into_inner().unwrap()
    };
    let text = |piece: &str| Delta::Text(piece.to_owned());
    let call = |piece: &str| Delta::Call(0, None, piece.to_owned());
    assert_eq!(
        streamed(&["{\"ans", "wer\": \"Hel", "lo\\n", "you\"", "}"]),
        [text("Hel"), text("lo\n"), text("you")]
    );
    assert_eq!(
        streamed(&["{\"", "tool\": \"add\"", ", \"arguments\": {}}"]),
        [call("{\"tool\": \"add\""), call(", \"arguments\": {}}")]
    );
}

//! Chat messages of a conversation that was held elsewhere: what is read, and what is refused with line and remedy.

use serde_json::json;
use steersman_machine::tick::history::{ChatHistory, HISTORY, MESSAGES};

fn stored(text: &str) -> String {
    ChatHistory::read(text).map_or_else(|e| format!("{e} -> {}", e.fix), |read| read.stored())
}

#[test]
fn an_array_lines_and_a_request_are_the_same_history() {
    let said = json!([
        { "role": "system", "content": "You are somebody else." },
        { "role": "user", "content": "Where?" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "a", "type": "function", "function": { "name": "look", "arguments": "{\"n\":1}" } },
            { "id": "b", "type": "function", "function": { "name": "look" } },
        ] },
        { "role": "tool", "tool_call_id": "b", "content": [ { "type": "text", "text": "second" } ] },
        { "role": "tool", "tool_call_id": "a", "content": "first" },
        { "role": "assistant", "content": "There." },
    ]);
    let lines: Vec<String> = said
        .as_array()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    let one = ChatHistory::read(&said.to_string()).unwrap();
    assert_eq!(one.left_out(), 1);
    assert_eq!(one.len(), 5, "three messages and two calls");
    let others = [
        serde_json::to_string_pretty(&said).unwrap(),
        format!("\u{feff}{}\n\n", lines.join("\n")),
        json!({ "model": "m", "messages": said }).to_string(),
        one.stored(),
    ];
    for other in others {
        let read = ChatHistory::read(&other).unwrap();
        assert_eq!(read.messages(), one.messages(), "{other}");
    }
    let first = one.stored().find("first").unwrap();
    assert!(
        one.stored()[first..].contains("second"),
        "in the order of the calls"
    );
}

#[test]
fn what_is_no_history_is_refused_with_its_line_and_a_remedy() {
    let cases = [
        ("", "there is no message"),
        ("[{\"role\": \"user\"", "line 1: this is not JSON"),
        ("\"hello\"", "line 1: this is no list of messages"),
        ("[\n 3\n]", "message 1: this is no chat message"),
        (
            "[\n {\"content\": \"x\"}\n]",
            "line 2: message 1: it has no `role`",
        ),
        (
            "{\"role\":\"user\",\"content\":\"x\"}\n{\"role\":\"user\",\"content\":\"y\"\n",
            "line 2: this is not JSON",
        ),
        (
            "{\"role\":\"user\",\"content\":\"x\"}\n\n{\"role\":\"bot\",\"content\":\"y\"}",
            "line 3: message 2: `bot` is no role of a history -> the roles are",
        ),
        (
            "[{\"role\":\"assistant\"}]",
            "line 1: message 1: it has neither `content` nor `tool_calls`",
        ),
        (
            "[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]",
            "its `content` has a part of type `image_url`, which is no text -> say in words",
        ),
        (
            "[\n{\"role\":\"tool\",\"tool_call_id\":\"z\",\"content\":\"r\"}]",
            "line 2: message 1: no open call of the answer before it has the id `z`",
        ),
        (
            "[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"look\"}}]},\n{\"role\":\"user\",\"content\":\"x\"}]",
            "line 2: message 2: the calls of message 1 have no result: `a` -> add {\"role\": \"tool\"",
        ),
        (
            "[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"look\"}}]}]",
            "line 1: message 1: the calls of message 1 have no result: `a`",
        ),
        (
            "[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"look\",\"arguments\":\"[1]\"}}]}]",
            "the `arguments` of `look` are no JSON object",
        ),
    ];
    for (text, wanted) in cases {
        let told = stored(text);
        assert!(told.contains(wanted), "{text}\n{told}");
    }
}

#[test]
fn a_history_has_bounds() {
    let many = vec![json!({ "role": "user", "content": "x" }); MESSAGES + 1];
    let told = ChatHistory::from_messages(many.clone())
        .unwrap_err()
        .to_string();
    assert!(told.contains("there are 501 messages and calls"), "{told}");
    assert!(ChatHistory::from_messages(many.into_iter().skip(1)).is_ok());
    let long = json!({ "role": "user", "content": "x".repeat(HISTORY) });
    let told = ChatHistory::from_messages([long]).unwrap_err().to_string();
    assert!(told.contains("at most 128 KiB"), "{told}");
}

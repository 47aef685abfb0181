//! A definition is typed character by character: each answer comes, whatever the text is at the moment.

use crate::client::{Client, uri};
use serde_json::{Value as Json, json};

const TEXT: &str = include_str!("../cases/references_of_state.yaml");

#[test]
fn every_beginning_of_a_text_is_answered() {
    let text = TEXT.replace('‸', "").replace("Sends", "Sendä 😀");
    let mut client = Client::over("");
    let (mut line, mut column, mut offered) = (0, 0, 0);
    for c in text.chars() {
        let at = json!({ "line": line, "character": column });
        let change = json!([{ "range": { "start": at, "end": at }, "text": c }]);
        client.change("steersman.yaml", change);
        (line, column) = if c == '\n' {
            (line + 1, 0)
        } else {
            (line, column + c.len_utf16())
        };
        let answer = client
            .at(
                "textDocument/completion",
                "steersman.yaml",
                (line, column),
                json!({}),
            )
            .unwrap();
        offered += answer["items"].as_array().map_or(0, Vec::len);
        client
            .at(
                "textDocument/hover",
                "steersman.yaml",
                (line, column),
                json!({}),
            )
            .unwrap();
        client
            .at(
                "textDocument/definition",
                "steersman.yaml",
                (line, column),
                json!({}),
            )
            .unwrap();
    }
    client.settle();
    assert!(
        client.codes("steersman.yaml").is_empty(),
        "{:?}",
        client.diagnostics
    );
    assert!(offered > 1000, "{offered}");
}

/// Cuts a part out of the text and asks at all places around it.
#[test]
fn every_hole_in_a_text_is_answered() {
    let text = TEXT.replace('‸', "");
    let mut client = Client::over(&text);
    for start in (0..text.len()).step_by(7) {
        let end = (start + 23).min(text.len());
        let cut = format!("{}{}", &text[..start], &text[end..]);
        client.change("steersman.yaml", json!([{ "text": cut }]));
        let line = cut[..start].matches('\n').count();
        let column = start - cut[..start].rfind('\n').map_or(0, |n| n + 1);
        for method in ["completion", "hover", "definition", "references"] {
            client
                .at(
                    &format!("textDocument/{method}"),
                    "steersman.yaml",
                    (line, column),
                    json!({}),
                )
                .unwrap();
        }
        let all = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 999, "character": 0 } });
        let document = json!({ "uri": uri("steersman.yaml") });
        let actions = client.ask(
            "textDocument/codeAction",
            json!({ "textDocument": document, "range": all }),
        );
        assert!(matches!(actions, Ok(Json::Array(_))));
    }
}

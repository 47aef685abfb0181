//! Cases: a definition with a mark `‸`, and what the server answers there.
//!
//! The first line names what is asked. A line `--- TEXT` ends the text that was there before; what follows is typed now, so the server
//! has seen the first text valid and the second one perhaps not.

use crate::client::{Client, uri};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;

const MARK: char = '‸';

fn position(text: &str) -> (String, (usize, usize)) {
    let at = text.find(MARK).expect("a case has a mark");
    let before = &text[..at];
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap().encode_utf16().count();
    (text.replace(MARK, ""), (line, column))
}

fn shown(method: &str, answer: &Json) -> String {
    let mut out = String::new();
    match method {
        "completion" => {
            for item in answer["items"].as_array().into_iter().flatten() {
                let (text, detail) = (
                    item["textEdit"]["newText"].as_str().unwrap(),
                    item["detail"].as_str().unwrap(),
                );
                let _ = writeln!(out, "{text:?} {detail}");
            }
        }
        "hover" => {
            let _ = writeln!(
                out,
                "{}",
                answer["contents"]["value"].as_str().unwrap_or("nothing")
            );
            let _ = writeln!(out, "at {}", place(&answer["range"]));
        }
        _ => {
            for at in answer.as_array().into_iter().flatten() {
                let _ = writeln!(
                    out,
                    "{} {}",
                    at["uri"].as_str().unwrap(),
                    place(&at["range"])
                );
            }
        }
    }
    out
}

fn place(range: &Json) -> String {
    let at = |at: &Json| format!("{}:{}", at["line"], at["character"]);
    format!("{}-{}", at(&range["start"]), at(&range["end"]))
}

#[test]
fn answers_at_marks() {
    insta::glob!("../cases", "*.yaml", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let (head, text) = text.split_once('\n').unwrap();
        let method = head.trim_start_matches("# ask: ").trim().to_owned();
        let (before, now) = text
            .split_once("--- typed\n")
            .map_or((None, text), |(before, now)| (Some(before), now));
        let (now, at) = position(now);
        let mut client = Client::over(before.unwrap_or(&now));
        client.change("steersman.yaml", json!([{ "text": now }]));
        if before.is_none() {
            client.settle();
        }
        let more = json!({ "context": { "includeDeclaration": true } });
        let answer = client
            .at(
                &format!("textDocument/{method}"),
                "steersman.yaml",
                at,
                more,
            )
            .unwrap();
        insta::assert_snapshot!(shown(&method, &answer).replace(&uri(""), ""));
    });
}

//! Renames: what is renamed everywhere still means the same.

use crate::client::{Client, apply, uri};
use serde_json::json;

const MAIN: &str = r#"import: [tools.yaml]
state:
  balance: { type: integer, default: 50000 }
agents:
  desk:
    system: desk.md
    tools: [send_money, { agent: auditor, requires: state.balance > 0 }]
  auditor:
    description: Looks again.
    system: "You look at {{ state.balance }} and {{ 'state.balance' }}."
    output: state.balance
  back:
    route:
      tasks:
        auditor: {}
        desk: { after: [auditor] }
entry: [desk, back]
outcome: { moved: calls.send_money.ok > 0, left: state.balance }
tests:
  pays:
    script: { desk: [{ call: { send_money: { cents: 5 } } }, "Done."] }
    tools: { send_money: [ok] }
    steps:
      - say: Send 5
      - approve: send_money
    expect:
      - { call: 1, saw: desk, is: balance }
      - that: state.balance == 49995 and calls.send_money.ok == 1
"#;

const TOOLS: &str = r#"tools:
  send_money:
    description: Sends money.
    parameters: { cents: { type: integer, minimum: 1 } }
    effect: unsafe
    requires: args.cents <= state.balance
    approve: true
    http: { method: POST, url: "http://127.0.0.1:9", json: "{{ args }}" }
    set:
      balance: "{{ state.balance - args.cents }}"
"#;

const PROMPT: &str = "You send money. There are {{ state.balance }} cents. Call send_money.";

fn files() -> [(&'static str, &'static str); 3] {
    [
        ("steersman.yaml", MAIN),
        ("tools.yaml", TOOLS),
        ("desk.md", PROMPT),
    ]
}

/// Renames what is at a place, in all files; returns the new texts.
fn renamed(at: &str, new: &str) -> Vec<(String, String)> {
    let mut client = Client::new(&files());
    client.open("steersman.yaml", MAIN);
    client.settle();
    let before = client.codes("steersman.yaml");
    assert!(
        !before.iter().any(|code| code.starts_with('E')),
        "{before:?}"
    );
    let start = MAIN.find(at).unwrap();
    let line = MAIN[..start].matches('\n').count();
    let column = start - MAIN[..start].rfind('\n').map_or(0, |n| n + 1);
    let prepared = client.at(
        "textDocument/prepareRename",
        "steersman.yaml",
        (line, column),
        json!({}),
    );
    assert_eq!(
        prepared.unwrap()["range"]["start"],
        json!({ "line": line, "character": column })
    );
    let more = json!({ "newName": new });
    let edit = client
        .at(
            "textDocument/rename",
            "steersman.yaml",
            (line, column),
            more,
        )
        .unwrap();
    let mut texts = Vec::new();
    for (path, text) in files() {
        let edits = edit["changes"].get(uri(path));
        let text = edits.map_or(text.to_owned(), |edits| apply(text, edits));
        texts.push((path.to_owned(), text));
    }
    let after: Vec<(&str, &str)> = texts
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let mut client = Client::new(&after);
    client.open("steersman.yaml", &texts[0].1);
    client.settle();
    assert_eq!(client.codes("steersman.yaml"), before, "{}", texts[0].1);
    texts
}

#[test]
fn a_tool_is_renamed_in_lists_expressions_tests_and_scripts() {
    let texts = renamed("send_money, {", "pay_out");
    assert!(!texts[0].1.contains("send_money"), "{}", texts[0].1);
    assert!(!texts[1].1.contains("send_money"));
    // text for a model is no name
    assert_eq!(texts[2].1, PROMPT);
}

#[test]
fn state_is_renamed_in_expressions_of_all_files() {
    let texts = renamed("balance: { type", "funds");
    let left = texts[0].1.matches("balance").count();
    // a text in quotes, and a value of a test
    assert_eq!(left, 2, "{}", texts[0].1);
    assert!(!texts[1].1.contains("balance"), "{}", texts[1].1);
    assert!(texts[2].1.contains("{{ state.funds }}"));
}

#[test]
fn an_agent_takes_the_task_of_its_name_along() {
    let texts = renamed("auditor:\n    description", "checker");
    assert!(!texts[0].1.contains("auditor"), "{}", texts[0].1);
    renamed("desk:\n", "front");
}

#[test]
fn a_rename_that_would_break_something_is_refused() {
    let mut client = Client::new(&files());
    client.open("steersman.yaml", MAIN);
    let at = (7, 3);
    let mut to = |new: &str| {
        let answer = client.at(
            "textDocument/rename",
            "steersman.yaml",
            at,
            json!({ "newName": new }),
        );
        answer.unwrap_err().message
    };
    assert_eq!(to("send_money"), "`send_money` is declared already");
    assert!(to("Two words").contains("is no name"));
    assert_eq!(to("finish"), "the engine uses the name `finish` itself");
    let answer = client.at(
        "textDocument/prepareRename",
        "steersman.yaml",
        (8, 6),
        json!({}),
    );
    assert_eq!(
        answer.unwrap_err().message,
        "no name is here that the definition declares"
    );
    client.open("tools.yaml", "tools: [");
    let answer = client.at(
        "textDocument/prepareRename",
        "steersman.yaml",
        at,
        json!({}),
    );
    assert!(
        answer
            .unwrap_err()
            .message
            .starts_with("`tools.yaml` is not valid YAML")
    );
}

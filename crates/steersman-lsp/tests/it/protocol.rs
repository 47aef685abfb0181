//! The life of a server and of its documents.

use crate::client::{Client, apply, uri};
use lsp_server::{ErrorCode, Request};
use serde_json::{Value as Json, json};

const GOOD: &str = "agents:\n  desk:\n    system: You greet.\n";

#[test]
fn each_method_of_the_capabilities_is_answered_and_no_other() {
    let mut client = Client::over(GOOD);
    let at = json!({ "line": 1, "character": 3 });
    let document = json!({ "uri": uri("steersman.yaml") });
    let place = json!({ "textDocument": document, "position": at, "newName": "other", "context": { "includeDeclaration": true } });
    for method in [
        "completion",
        "hover",
        "definition",
        "references",
        "prepareRename",
        "rename",
    ] {
        let method = format!("textDocument/{method}");
        client.ask(&method, place.clone()).unwrap();
        let refused = client.ask(&method, json!({ "position": 7 })).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidParams as i32, "{method}");
    }
    let range = json!({ "start": at, "end": at });
    let params =
        json!({ "textDocument": document, "range": range, "context": { "diagnostics": [] } });
    assert_eq!(
        client.ask("textDocument/codeAction", params).unwrap(),
        json!([])
    );
    let refused = client
        .ask("textDocument/formatting", json!({}))
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::MethodNotFound as i32);
    // an unknown notification is passed over
    client.tell("$/setTrace", json!({ "value": "off" }));
}

#[test]
fn a_server_lives_from_initialize_to_exit() {
    let mut client = Client::new(&[]);
    let document = json!({ "uri": uri("a.yaml") });
    let params = json!({ "textDocument": document, "position": { "line": 0, "character": 0 } });
    // a document that is not open, or of no definition, has no answers
    assert_eq!(
        client.ask("textDocument/hover", params).unwrap(),
        Json::Null
    );
    assert_eq!(client.ask("shutdown", Json::Null).unwrap(), Json::Null);
    let refused = client.ask("textDocument/hover", json!({})).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidRequest as i32);
    assert_eq!(client.server.over(), None);
    client.tell("exit", Json::Null);
    assert_eq!(client.server.over(), Some(true));

    let mut client = Client::new(&[]);
    client.tell("exit", Json::Null);
    assert_eq!(client.server.over(), Some(false));
}

#[test]
fn nothing_is_answered_before_initialize() {
    struct Empty;
    impl steersman_lsp::Disk for Empty {
        fn text(&self, _: &std::path::Path) -> Option<String> {
            None
        }
        fn yaml_in(&self, _: &std::path::Path) -> Vec<String> {
            Vec::new()
        }
        fn unreadable(&self, _: &std::path::Path, _: &str) -> Option<String> {
            None
        }
    }
    let mut server = steersman_lsp::Server::new(Empty);
    let request = Request::new(1.into(), "textDocument/hover".to_owned(), json!({}));
    let answers = server.handle(request.into());
    let lsp_server::Message::Response(answer) = &answers[0] else {
        panic!("an answer");
    };
    let code = answer.response_result.as_ref().unwrap_err().code;
    assert_eq!(code, ErrorCode::ServerNotInitialized as i32);
}

#[test]
fn diagnostics_follow_the_text() {
    let mut client = Client::over(GOOD);
    assert!(client.codes("steersman.yaml").is_empty());
    // "system" becomes "sytem", in one change of a range
    let range =
        json!({ "start": { "line": 2, "character": 6 }, "end": { "line": 2, "character": 7 } });
    client.change("steersman.yaml", json!([{ "range": range, "text": "" }]));
    client.settle();
    assert_eq!(client.codes("steersman.yaml"), ["E0105"]);
    // and back, in two changes of one message
    let caret =
        json!({ "start": { "line": 2, "character": 6 }, "end": { "line": 2, "character": 6 } });
    let first =
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } });
    let changes = json!([{ "range": caret, "text": "s" }, { "range": first, "text": "# ä\n" }]);
    client.change("steersman.yaml", changes);
    client.settle();
    assert!(client.codes("steersman.yaml").is_empty());
    // the whole text
    client.change("steersman.yaml", json!([{ "text": "agents: [" }]));
    client.settle();
    assert_eq!(client.codes("steersman.yaml"), ["E0101"]);
    // what is closed has no diagnostics
    client.tell(
        "textDocument/didClose",
        json!({ "textDocument": { "uri": uri("steersman.yaml") } }),
    );
    client.settle();
    assert!(client.codes("steersman.yaml").is_empty());
}

#[test]
fn fixes_are_code_actions_that_work() {
    let text = "agents:\n  desk:\n    sytem: You greet.\n";
    let mut client = Client::over(text);
    let at = json!({ "line": 2, "character": 5 });
    let range = json!({ "start": at, "end": at });
    let document = json!({ "uri": uri("steersman.yaml") });
    let params =
        json!({ "textDocument": document, "range": range, "context": { "diagnostics": [] } });
    let actions = client.ask("textDocument/codeAction", params).unwrap();
    let action = &actions[0];
    assert_eq!(action["title"], "did you mean `system`?");
    assert_eq!(action["diagnostics"][0]["code"], "E0105");
    let fixed = apply(text, &action["edit"]["changes"][uri("steersman.yaml")]);
    client.change("steersman.yaml", json!([{ "text": fixed }]));
    client.settle();
    assert!(client.codes("steersman.yaml").is_empty());
}

#[test]
fn files_belong_to_the_definition_that_names_them() {
    let main =
        "import: [tools/pay.yaml]\nagents:\n  desk:\n    system: desk.md\n    tools: [pay]\n";
    let pay = "tools:\n  pay:\n    description: Pays.\n    effect: pure\n    result: paid\n";
    let other = "services:\n  db: { image: postgres }\n";
    let mut client = Client::new(&[
        ("steersman.yaml", main),
        ("tools/pay.yaml", pay),
        ("desk.md", "You pay."),
        ("compose.yaml", other),
    ]);
    // a file that is no definition and belongs to none is left alone
    client.open("compose.yaml", other);
    client.open("tools/pay.yaml", pay);
    client.settle();
    assert!(client.codes("compose.yaml").is_empty());
    assert!(client.codes("tools/pay.yaml").is_empty());
    // an error of the main file is told although only an imported one is open
    let renamed = pay.replace("  pay:", "  pai:");
    client.change("tools/pay.yaml", json!([{ "text": renamed }]));
    client.settle();
    assert_eq!(client.codes("steersman.yaml"), ["E0201"]);
    // the file changes on the disk
    let fixed = main.replace("[pay]", "[pai]");
    client
        .disk
        .borrow_mut()
        .insert("/w/steersman.yaml".into(), fixed);
    client.tell("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    client.settle();
    assert!(client.codes("steersman.yaml").is_empty());
    // a prompt is a file of the definition, too
    client.open("desk.md", "You pay {{ state.nothing }}.");
    client.tell(
        "textDocument/didSave",
        json!({ "textDocument": { "uri": uri("desk.md") } }),
    );
    client.settle();
    assert_eq!(client.codes("desk.md"), ["E0202"]);
}

//! MCP servers from the terminal: what is checked with them and without, and a session that calls one.

use crate::world::{World, root};
use insta::assert_snapshot;

const CLERK: &str = r#"
name: clerk
mcp:
  desk: { command: [sh, server.sh, diary], tools: [echo, structured, "ref*"], effect: annotations }
agents: { clerk: { system: You help., tools: ["desk.*"] } }
"#;

fn world(definition: &str) -> World {
    let world = World::new();
    let script = root().join("crates/steersman-adapters/tests/it/mcp/server.sh");
    std::fs::copy(script, world.folder.join("server.sh")).unwrap();
    world.write("diary", "");
    world.write("steersman.yaml", definition);
    world
}

#[test]
fn check_asks_servers_where_it_is_told_to() {
    let world = world(CLERK);
    let mut pages = vec![world.page(&["check"]), world.page(&["check", "--servers"])];
    // What does not fit, and what does not answer.
    world.write(
        "steersman.yaml",
        &CLERK.replace("\"desk.*\"", "desk.refund"),
    );
    pages.push(world.page(&["check", "--servers"]));
    world.write("server.sh", "echo no licence >&2; exit 1");
    pages.push(world.page(&["check", "--servers"]));
    world.write("script.yaml", "clerk: [ Hello. ]");
    pages.push(world.page(&["run", "--script", "script.yaml", "--input", "hi"]));
    assert_snapshot!(pages.join("\n"));
    let (code, document) = world.json(&["check", "--servers"]);
    assert_eq!((code, &document["ok"]), (Some(2), &false.into()));
}

#[test]
fn a_session_calls_a_server_and_is_shown_without_it() {
    let world = world(CLERK);
    world.write(
        "script.yaml",
        r#"clerk: [ { call: { desk__echo: { x: a } } }, "It says {{ request.last }}." ]"#,
    );
    let mut pages = vec![world.page(&["run", "--script", "script.yaml", "--input", "hi"])];
    std::fs::remove_file(world.folder.join("server.sh")).unwrap();
    pages.push(world.page(&["show", "last"]));
    pages.push(world.page(&["context", "last"]));
    assert_snapshot!(pages.join("\n"));
}

#[test]
fn a_list_that_changed_is_told() {
    let definition = CLERK
        .replace("diary]", "diary, grows]")
        .replace("echo, structured", "change, new_one")
        .replace("annotations", "read, refresh: follow");
    let world = world(&definition);
    world.write(
        "script.yaml",
        r#"clerk: [ { call: { desk__change: {} } }, { call: { desk__new_one: {} } }, "It is {{ request.last }}." ]"#,
    );
    let mut pages = vec![world.page(&["run", "--script", "script.yaml", "--input", "hi"])];
    pages.push(world.page(&["show", "last"]));
    // What was shown to the model when it was asked first, and behind the change.
    pages.push(world.page(&["context", "last@2"]));
    pages.push(world.page(&["context", "last"]));
    assert_snapshot!(pages.join("\n"));
}

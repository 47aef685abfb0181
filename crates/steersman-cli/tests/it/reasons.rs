//! `why` on calls that a guard refused, and on agents and tools by name.

use crate::world::World;

const DESK: &str = r#"name: desk
state: { account: { type: string, optional: true } }
tools:
  login: { description: Opens the account., effect: read, command: ["false"], set: { account: "{{ result }}" } }
  rate: { description: Tells the rate., effect: read, command: ["false"] }
  note: { description: Notes., effect: read, command: ["true"] }
  pay: { description: Pays., effect: unsafe, requires: [ state.account is not none, calls.rate.ok > 0 ], command: ["true"] }
agents: { desk: { system: You settle., tools: [login, rate, note, pay] } }
"#;
const SCRIPT: &str = "desk:
  - call: [ { login: {} }, { rate: {} } ]
  - call: { note: {} }
  - call: { note: {} }
  - call: { pay: {} }
  - Sorry.
";

fn facts(step: &serde_json::Value, word: &str) -> Vec<String> {
    let facts = step["facts"].as_array().unwrap().iter();
    let facts = facts.filter(|fact| fact["word"] == word);
    facts
        .map(|fact| fact["text"].as_str().unwrap().to_owned())
        .collect()
}

/// The calls on which a guard depends may lie far back: the refused call names their ends.
#[test]
fn a_refused_call_names_the_failed_calls_that_its_guards_read() {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", SCRIPT);
    let ran = world.run(&["run", "--input", "Pay.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (code, why) = world.json(&["why", "last@pay"]);
    assert_eq!(code, Some(0));
    let pay = &why["steps"][0];
    assert!(
        pay["text"].as_str().unwrap().contains("called pay"),
        "{pay:#}"
    );
    let guards = facts(pay, "guard");
    let wanted = [
        "asked for: state.account is not none",
        "asked for: calls.rate.ok > 0",
    ];
    assert_eq!(guards, wanted, "{pay:#}");
    let read = facts(pay, "read");
    assert_eq!(read.len(), 2, "{pay:#}");
    for tool in ["login ", "rate "] {
        let told = read.iter().find(|text| text.starts_with(tool));
        assert!(
            told.is_some_and(|text| text.contains(" failed, @")),
            "{read:?}"
        );
    }
}

#[test]
fn an_agent_and_a_tool_are_explained_by_name() {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", SCRIPT);
    let ran = world.run(&["run", "--input", "Pay.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (_, newest) = world.json(&["why", "last"]);
    assert_eq!(
        world.json(&["why", "last", "desk"]).1["steps"],
        newest["steps"]
    );
    let (_, note) = world.json(&["why", "last", "note"]);
    let calls = world.json_lines(&["effects", "last"]);
    let second = calls.iter().filter(|call| call["tool"] == "note").nth(1);
    assert_eq!(
        note["steps"][0]["line"],
        second.unwrap()["line"],
        "{note:#}"
    );
    let ran = world.run(&["why", "last", "nobody"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("no agent and no tool `nobody`"), "{ran:?}");
}

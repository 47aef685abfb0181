//! `run --history`: a session begins with a conversation that was held elsewhere.

use crate::world::World;

const LINES: &str = r#"{"role": "system", "content": "You are somebody else."}
{"role": "user", "content": "Where is 4711?"}
{"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "track", "arguments": "{\"n\": 4711}"}}]}
{"role": "tool", "tool_call_id": "call_1", "content": "on its way"}
{"role": "assistant", "content": "It left yesterday."}
"#;

fn world(history: &str) -> World {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk\nagents: { desk: { description: Helps., system: You help. } }\n",
    );
    world.write("script.yaml", "desk: [ Tomorrow., Surely. ]\n");
    world.write("before.jsonl", history);
    world
}

const RUN: &[&str] = &[
    "run",
    "--script-all",
    "script.yaml",
    "--history",
    "before.jsonl",
    "--input",
    "When?",
];

#[test]
fn a_session_begins_with_a_history_and_shows_it() {
    let world = world(LINES);
    let ran = world.run(RUN);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = "1 system message of `before.jsonl` left out: the definition has the system prompt";
    assert!(ran.err.contains(told), "{ran:?}");
    let shown = world.run(&["show", "last"]).out;
    for told in [
        "before this session",
        "Where is 4711?",
        "It left yesterday.",
    ] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    let context = world.run(&["context", "last"]).out;
    let wanted = [
        "Where is 4711?",
        "on its way",
        "It left yesterday.",
        "When?",
    ];
    let places: Vec<_> = wanted.iter().map(|text| context.find(text)).collect();
    assert!(places.is_sorted() && places[0].is_some(), "{context}");

    let again = [
        "run",
        "--resume",
        "last",
        "--input",
        "Sure?",
        "--script-all",
        "script.yaml",
    ];
    assert_eq!(world.run(&again).code, Some(0));
    let context = world.run(&["context", "last"]).out;
    assert!(
        context.contains("It left yesterday.") && context.contains("Sure?"),
        "{context}"
    );
    let rerun = world.run(&["rerun", "last"]);
    assert_eq!(rerun.code, Some(0), "{rerun:?}");
}

#[test]
fn a_file_that_is_no_history_is_refused_with_its_line_before_anything_begins() {
    let cases = [
        (
            "{\"role\": \"user\", \"content\": \"x\"}\n{\"role\": \"bot\"}\n",
            "`before.jsonl`, line 2: message 2: `bot` is no role of a history",
            "the roles are",
        ),
        (
            "hello",
            "`before.jsonl`, line 1: this is not JSON",
            "a history is a JSON array",
        ),
        (
            "",
            "`before.jsonl`, there is no message",
            "each message has the form",
        ),
    ];
    for (text, why, fix) in cases {
        let world = world(text);
        let ran = world.run(RUN);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains(why) && ran.err.contains(fix), "{ran:?}");
        assert_eq!(world.run(&["sessions"]).code, Some(0));
        assert!(
            !world.run(&["sessions"]).all().contains("desk"),
            "nothing began"
        );
    }
    let ran = world("").run(&["run", "--history", "nowhere.json", "--input", "x"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("`nowhere.json` cannot be read"), "{ran:?}");
}

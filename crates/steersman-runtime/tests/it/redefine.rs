//! A session goes on under another definition: on all of its branches or on none, and never under one that lacks what the
//! session uses.

use crate::world::{World, answered, network};
use serde_json::json;
use std::collections::BTreeMap;
use steersman_machine::stored::ids::Line;
use steersman_runtime::redefine::Redefine;
use steersman_runtime::session::{Fate, Fork, Session};

const DESK: &str = r#"
config: { limit: { type: integer, default: 10 } }
agents:
  main: { system: "You settle up to {{ config.limit }}.", tools: [child] }
  child: { description: Helps., system: You help. }
entry: main
"#;

async fn redefined(world: &World, definition: &str) -> Fate {
    let wanted = Redefine {
        network: network(definition),
        folder: None,
        file: None,
        by: "user".into(),
        models: BTreeMap::new(),
        config: BTreeMap::new(),
    };
    let receipt = world.engine.redefine("session", wanted).await;
    receipt.unwrap().fate
}

fn why(fate: Fate) -> String {
    match fate {
        Fate::Refused(why) => why,
        other => panic!("{other:?}"),
    }
}

async fn settled(session: &Session) -> String {
    answered(&session.settled().await.unwrap())
}

#[tokio::test]
async fn another_definition_is_taken_on_all_branches_and_outlives_the_process() {
    let script = json!({ "main": ["One.", "{{ request.system }}"], "main@b1": ["There.", "{{ request.system }}"] });
    let world = World::new(script);
    let session = world.start(DESK, "Go.").await;
    settled(&session).await;
    let fork = Fork {
        label: Some("b1".into()),
        say: Some("there".into()),
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    settled(&session).await;
    assert!(why(redefined(&world, DESK).await).contains("bound to this definition already"));
    let kind = DESK
        .replace("You settle", "You kindly settle")
        .replace("default: 10", "default: 20");
    assert!(matches!(redefined(&world, &kind).await, Fate::Taken(_)));
    let world = world.killed().await;
    let seen = world.engine.inspect("session").await.unwrap();
    let sources: Vec<_> = seen
        .branches
        .iter()
        .map(|b| b.snapshot.binding.as_ref().unwrap().source)
        .collect();
    assert_eq!(sources, [sources[0]; 2]);
    let session = world.open().await;
    session.say("And now?").await.unwrap();
    // A value that both definitions declare stays as it was bound.
    assert_eq!(settled(&session).await, "You kindly settle up to 10.");
}

#[tokio::test]
async fn what_only_a_branch_that_was_left_has_is_wanted_too() {
    let script = json!({
        "main": [{ "call": { "child": { "message": "help" } } }, "Done.", "Done.", "Done."],
        "child": ["Here."],
    });
    let world = World::new(script);
    let session = world.start(DESK, "Go.").await;
    settled(&session).await;
    session.rewind(Line(1), None).await.unwrap();
    assert_eq!(settled(&session).await, "Done.");
    let alone = DESK
        .replace(", tools: [child]", "")
        .replace("  child: { description: Helps., system: You help. }\n", "");
    let why = why(redefined(&world, &alone).await);
    assert!(why.contains("the agent `child` is not in it"), "{why}");
    let routed = DESK.replace(
        "description: Helps., system: You help.",
        "description: Helps., route: { sequence: [grandchild] } }\n  grandchild: { system: You help.",
    );
    let fate = redefined(&world, &routed).await;
    let Fate::Refused(why) = fate else {
        panic!("{fate:?}");
    };
    assert!(why.contains("was no router, and is one now"), "{why}");
    session.say("Go on.").await.unwrap();
    assert_eq!(settled(&session).await, "Done.");
}

#[tokio::test]
async fn parameters_may_change_under_a_plain_message_but_not_under_arguments() {
    let other = DESK.replace(
        "  main: {",
        "  main: { parameters: { topic: { type: string, optional: true } },",
    );
    for (said, fits) in [("Go.", true), ("{}", false)] {
        let world = World::new(json!({ "main": ["One."] }));
        let session = world.start(DESK, said).await;
        settled(&session).await;
        let fate = redefined(&world, &other).await;
        assert_eq!(matches!(fate, Fate::Taken(_)), fits, "{said}: {fate:?}");
    }
}

//! A result that is too large for a context becomes an artifact with all of its text, wherever it came from.

use crate::world::{Does, World, answered, asked};
use serde_json::json;
use steersman_machine::stored::interaction::Interaction;
use steersman_runtime::inbox::{Resolution, Wanted};
use steersman_runtime::session::Settled;

const DESK: &str = r#"
events: { came: { fields: { of: string, text: string }, id: "{{ event.of }}" } }
tools:
  twice: { description: Says it twice., parameters: { text: string }, set: {}, result: "{{ args.text }}{{ args.text }}" }
  look: { description: Looks., effect: read, native: 1 }
  pay: { description: Pays., effect: unsafe, native: 1 }
  await: { description: Waits., wait: { event: came, match: { of: x } } }
agents:
  desk: { system: You are a desk., tools: [twice, look, pay, await, boss, helper] }
  boss: { person: { role: user }, description: Decides. }
  helper: { description: Helps., system: You help. }
entry: desk
"#;

fn long(who: &str, lines: usize) -> String {
    let rows: Vec<String> = (0..lines).map(|n| format!("{who}, line {n}\n")).collect();
    rows.concat()
}

#[tokio::test]
async fn every_large_result_becomes_an_artifact_whoever_gave_it() {
    let said = long("desk", 2_000);
    let world = World::new(json!({
        "desk": [
            { "call": { "twice": { "text": said } } },
            { "call": { "look": {} } },
            { "call": { "helper": { "message": "tell me all" } } },
            { "call": { "await": {} } },
            { "call": { "pay": {} } },
            { "call": { "boss": { "message": "What is it?" } } },
            "Done.",
        ],
        "helper": [long("helper", 10_000)],
    }));
    world.tools.will(
        "look",
        Does::Done(json!({ "rows": long("look", 2_000).lines().collect::<Vec<_>>() })),
    );
    world.tools.will("pay", Does::Unknown);
    let session = world.start(DESK, "Begin.").await;
    session.settled().await.unwrap();
    let event = json!({ "of": "x", "text": long("event", 2_000) });
    session.event("came", &event).await.unwrap();
    let settled = session.settled().await.unwrap();
    assert!(matches!(*settled, Settled::Doubt(_)), "{settled:?}");
    let done = Resolution::Done {
        result: json!(long("clerk", 2_000)).to_string(),
    };
    session
        .resolve(asked(&settled), done, "user")
        .await
        .unwrap();
    let settled = session.settled().await.unwrap();
    let answer = Wanted::Say {
        text: long("person", 2_000),
        to: Some(asked(&settled).effect),
    }
    .by(Some("user".into()));
    session.send(answer).await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Done.");

    let seen = world.engine.inspect("session").await.unwrap();
    let branch = seen.current_branch().unwrap();
    let results: Vec<String> = seen
        .stack(branch, branch.snapshot.root.unwrap())
        .into_iter()
        .filter_map(|(_, what)| match what {
            Interaction::Result(result) => Some(seen.history.text(result.body?).to_string()),
            _ => None,
        })
        .collect();
    let artifacts = session.artifacts().await.unwrap();
    let kept = [
        ("twice-1.txt", [&*said, &*said].concat()),
        ("helper-3.txt", long("helper", 10_000)),
        ("pay-5.txt", long("clerk", 2_000)),
        ("boss-6.txt", long("person", 2_000)),
    ];
    for (name, whole) in kept {
        let told = results
            .iter()
            .find(|text| text.contains(&format!("`{name}`")));
        let told = told.unwrap_or_else(|| panic!("no result names {name}: {results:#?}"));
        assert!(told.len() < 2_500, "{name}: {} bytes", told.len());
        let version = artifacts.find(name, None).unwrap();
        let content = artifacts.content(&version).await.unwrap();
        assert!(*content == *whole.as_bytes(), "{name} is incomplete");
    }
    for (name, some) in [
        ("look-2.json", "look, line 1999"),
        ("await-4.json", "event, line 1999"),
    ] {
        let version = artifacts.find(name, None).unwrap();
        let content = artifacts.content(&version).await.unwrap();
        let text = std::str::from_utf8(&content).unwrap();
        assert!(text.contains(some), "{name} is incomplete");
    }
}

//! Lists of tools that MCP servers change while sessions run.

use crate::spy::Behind;
use crate::world::{Does, World, answered, asked};
use serde_json::{Value as Json, json};
use steersman_machine::network::manifest::{Listed, Listing};
use steersman_machine::stored::commit::LedgerEntry;
use steersman_machine::view::mapping::Fault;
use steersman_runtime::inbox::Resolution;
use steersman_runtime::session::{Fate, Fork, Session};
use steersman_runtime::toolset::Asked;

/// Tools with these names. `NAME:PROPERTY` is a tool with this parameter; the others have the parameter `x`.
fn tools(names: &[&str]) -> Vec<Listed> {
    let listed = names.iter().map(|name| {
        let (name, property) = name.split_once(':').unwrap_or((name, "x"));
        Listed {
            name: name.to_owned(),
            description: format!("Does {name}."),
            input: json!({ "type": "object", "properties": { property: { "type": "string" } } }),
            ..Listed::default()
        }
    });
    listed.collect()
}

fn offers(names: &[&str]) -> Asked {
    let about = "server 1".to_owned();
    Asked::Offers(Listing {
        about,
        tools: tools(names),
    })
}

const DESK: &str = r#"
mcp: { s: { command: [server], effect: read, refresh: follow } }
agents: { main: { system: You work., tools: ["s.*"] } }
"#;

/// An answer that lists the tools of its request.
const OFFERED: &str = "{{ request.tools | join(' ') }}";

fn world(script: Json, first: &[&str]) -> World {
    let world = World::new(script);
    world.tools.offers(offers(first), true);
    world
}

/// Returns the reasons of the refusals in the ledger, in order.
async fn refused(world: &World) -> Vec<String> {
    let seen = world.engine.inspect("session").await.unwrap();
    let lines = world.lines().await;
    let entries = lines.iter().flat_map(|line| &line.ledger);
    let refused = entries.filter_map(|entry| match entry {
        LedgerEntry::Refused { message, why } => {
            assert_eq!(&**message, "refresh");
            Some(seen.history.text(*why).to_string())
        }
        _ => None,
    });
    refused.collect()
}

/// Returns the number of bindings in the log.
async fn bindings(world: &World) -> usize {
    let lines = world.lines().await;
    let commits = lines.iter().filter_map(|line| line.commit.as_ref());
    commits.filter(|commit| commit.binding.is_some()).count()
}

async fn said(session: &Session, text: &str) -> String {
    session.say(text).await.unwrap();
    answered(&session.settled().await.unwrap())
}

fn grows() -> (Json, World) {
    let script = json!({ "main": [
        { "call": { "s.grow": {} } },
        { "call": { "s.new": { "x": "y" } } },
        OFFERED,
    ]});
    let world = world(script.clone(), &["grow", "old", "other"]);
    world
        .tools
        .will("s.grow", Does::Changes(tools(&["grow", "other:z", "new"])));
    (script, world)
}

#[tokio::test]
async fn a_changed_list_is_taken_over_before_the_model_is_asked_again() {
    let (_, world) = grows();
    let session = world.start(DESK, "Grow.").await;
    let answer = answered(&session.settled().await.unwrap());
    assert_eq!(answer, "s__grow s__other s__new");
    insta::assert_snapshot!(world.printed().await);
    // Once at the start, once by the first owner, once after the server's notice.
    assert_eq!(world.tools.asked(), 3);
    let digest = session_digest(&world).await;
    let world = world.killed().await;
    let _ = world.open().await.settled().await.unwrap();
    assert_eq!(session_digest(&world).await, digest);
}

async fn session_digest(world: &World) -> String {
    let seen = world.engine.inspect("session").await.unwrap();
    let tools = seen
        .network
        .unwrap()
        .tools
        .keys()
        .map(ToString::to_string)
        .collect::<Vec<_>>();
    let branch = seen
        .branches
        .iter()
        .find(|branch| branch.id == seen.current)
        .unwrap();
    format!("{tools:?} {:?}", branch.snapshot.binding)
}

#[tokio::test]
async fn a_kill_behind_every_line_changes_nothing() {
    let (script, world) = grows();
    let session = world.start(DESK, "Grow.").await;
    let _ = session.settled().await.unwrap();
    let (lines, stack) = (world.store.lines(), world.stack("main").await);
    assert!(lines >= 6, "{lines}");
    for kept in 0..=lines {
        let (_, world) = grows();
        world.store.write_only(kept, Behind::Silence);
        let session = world.start(DESK, "Grow.").await;
        let driven = async {
            let _ = session.settled().await;
        };
        tokio::select! {
            () = driven => {}
            () = async {
                for _ in 0..2_000 {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
        drop(session);
        let ran = world.tools.count("s.grow");
        let world = world.killed().await;
        if ran > 0 {
            // The tool runs again if the log does not have its outcome. It has changed its list already.
            world
                .tools
                .will("s.grow", Does::Changes(tools(&["grow", "other:z", "new"])));
        }
        let session = world.open().await;
        let answer = answered(&session.settled().await.unwrap());
        assert_eq!(
            answer, "s__grow s__other s__new",
            "killed after line {kept}"
        );
        assert_eq!(world.stack("main").await, stack, "killed after line {kept}");
        assert_eq!(bindings(&world).await, 2, "killed after line {kept}");
    }
    drop(script);
}

#[tokio::test]
async fn a_list_that_changed_while_nobody_looked_is_found() {
    let world = world(json!({ "main": vec![OFFERED; 4] }), &["one"]);
    let session = world.start(DESK, "Go.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "s__one");
    let asked = world.tools.asked();
    assert_eq!(said(&session, "Again.").await, "s__one");
    assert_eq!(world.tools.asked(), asked, "nothing hints at a change");
    // The server restarted.
    world.tools.offers(offers(&["one", "two"]), true);
    assert_eq!(said(&session, "And now?").await, "s__one s__two");
    // The list also changes while no process owns the session.
    let world = world.killed().await;
    world.tools.offers(offers(&["three"]), false);
    let session = world.open().await;
    assert_eq!(said(&session, "And now?").await, "s__three");
    assert_eq!(bindings(&world).await, 3);
}

#[tokio::test]
async fn what_does_not_fit_is_told_and_stays_as_it_was() {
    let named = r#"
mcp: { s: { command: [server], effect: read, refresh: follow } }
agents: { main: { system: You work., tools: [s.one, "s.*"] } }
"#;
    let long = "x".repeat(80);
    for (definition, changed, why) in [
        (named, offers(&["two"]), "has no tool for `s.one`"),
        (
            DESK,
            offers(&["a-b", "a.b", "a b"]),
            "a model would see both",
        ),
        (DESK, offers(&[&long]), "which has 83 characters"),
        (
            DESK,
            Asked::Failed(Fault::new("failed", "the server ended before it greeted")),
            "the server ended before it greeted; its tools stay as they were",
        ),
    ] {
        let world = world(json!({ "main": ["Hello.", OFFERED, OFFERED] }), &["one"]);
        let session = world.start(definition, "Go.").await;
        let _ = session.settled().await.unwrap();
        world.tools.offers(changed, false);
        assert_eq!(said(&session, "And now?").await, "s__one");
        let told = refused(&world).await;
        assert!(told.len() == 1 && told[0].contains(why), "{told:?}");
        // The same refusal is not recorded twice.
        assert_eq!(said(&session, "And now?").await, "s__one");
        assert_eq!(refused(&world).await.len(), 1);
        assert_eq!(bindings(&world).await, 1);
    }
}

#[tokio::test]
async fn a_pinned_list_stays_as_it_was() {
    let pinned = DESK.replace("follow", "pinned");
    let world = world(json!({ "main": ["Hello.", OFFERED] }), &["one"]);
    let session = world.start(&pinned, "Go.").await;
    let _ = session.settled().await.unwrap();
    world.tools.offers(offers(&["two"]), true);
    let session = {
        drop(session);
        let killed = world.killed().await;
        let session = killed.open().await;
        assert_eq!(said(&session, "And now?").await, "s__one");
        assert_eq!((killed.tools.asked(), bindings(&killed).await), (1, 1));
        session
    };
    drop(session);
}

const TWO: &str = r#"
mcp: { s: { command: [server], effect: unsafe, refresh: follow } }
agents:
  main: { system: You work., tools: [{ tool: s.*, approve: true }, { agent: helper }] }
  helper: { description: Helps., system: You help., tools: ["s.*"] }
entry: main
"#;

/// A call waits for a person while its tool changes: it is carried out as it was asked for, and the tool changes after it.
#[tokio::test]
async fn a_call_that_is_open_keeps_its_tool() {
    let script = json!({
        "main": [
            { "call": [{ "s.pay": { "x": "5" } }, { "helper": { "message": "Change." } }] },
            OFFERED,
        ],
        "helper": [ { "call": { "s.change": {} } }, OFFERED ],
    });
    let world = world(script, &["pay", "change"]);
    world.tools.will(
        "s.change",
        Does::Changes(tools(&["pay:amount", "change", "more"])),
    );
    let session = world.start(TWO, "Pay.").await;
    let settled = session.settled().await.unwrap();
    let seen = world.engine.inspect("session").await.unwrap();
    let pay = &seen.network.as_ref().unwrap().tools["s.pay"];
    assert!(
        format!("{:?}", pay.parameters).contains("\\\"x\\\""),
        "{pay:?}"
    );
    assert!(seen.network.as_ref().unwrap().tools.contains_key("s.more"));
    let world = world.killed().await;
    let session = {
        drop(session);
        world.open().await
    };
    session.approve(asked(&settled), "user").await.unwrap();
    let answer = answered(&session.settled().await.unwrap());
    assert_eq!(answer, "s__pay s__change s__more helper");
    assert_eq!(world.tools.args("s.pay"), [json!({ "x": "5" })]);
    let seen = world.engine.inspect("session").await.unwrap();
    let pay = &seen.network.unwrap().tools["s.pay"];
    assert!(
        format!("{:?}", pay.parameters).contains("amount"),
        "{pay:?}"
    );
}

/// A call in doubt that nobody waits for: its tool stays in the network until a person says how the call ended.
#[tokio::test]
async fn a_doubt_that_was_left_keeps_its_tool() {
    let script = json!({ "main": [
        { "call": { "s.pay": { "x": "5" } } },
        "Well.",
        "So it is.",
    ]});
    let definition = DESK.replace("effect: read", "effect: unsafe");
    let world = world(script, &["pay", "other"]);
    world.tools.will("s.pay", Does::Unknown);
    let session = world.start(&definition, "Pay.").await;
    assert_eq!(session.settled().await.unwrap().word(), "doubt");
    session.interrupt("Stop.").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Well.");
    world.tools.offers(offers(&["other", "more"]), false);
    assert_eq!(said(&session, "And now?").await, "So it is.");
    let seen = world.engine.inspect("session").await.unwrap();
    let network = seen.network.unwrap();
    assert!(
        network.tools.contains_key("s.more"),
        "the list was taken over"
    );
    assert!(network.tools.contains_key("s.pay"), "its call is in doubt");
    let world = world.killed().await;
    drop(session);
    let session = world.open().await;
    let _ = session.settled().await.unwrap();
    let doubt = seen.pending.iter().find(|pending| pending.left).unwrap();
    let fate = session
        .resolve(doubt.id(), Resolution::NotPerformed, "user")
        .await
        .unwrap();
    assert!(matches!(fate.fate, Fate::Taken(_)), "{fate:?}");
}

/// A branch starts where a call of a tool is open that has gone since: the tool is there for that call.
#[tokio::test]
async fn a_rewind_finds_the_tools_of_what_is_open_there() {
    let script = json!({ "main": [
        { "call": { "s.pay": { "x": "5" } } },
        "Paid.",
        "So it is.",
    ]});
    let definition = DESK
        .replace("effect: read", "effect: unsafe")
        .replace("\"s.*\"", "{ tool: s.*, approve: true }");
    let world = world(script, &["pay", "other"]);
    let session = world.start(&definition, "Pay.").await;
    let settled = session.settled().await.unwrap();
    let open = world.lines().await.last().unwrap().n;
    session.approve(asked(&settled), "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    world.tools.offers(offers(&["other"]), false);
    assert_eq!(said(&session, "And now?").await, "So it is.");
    let seen = world.engine.inspect("session").await.unwrap();
    assert!(!seen.network.unwrap().tools.contains_key("s.pay"));
    let fork = Fork {
        at: Some(open),
        label: Some("b1".into()),
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    session.rewind(open, None).await.unwrap();
    let settled = session.settled().await.unwrap();
    // The outcome of the call is known on the new branch, too.
    assert_eq!(answered(&settled), "Paid.");
    let printed = world.printed().await;
    let again = printed.find("`s.pay` is again what it was").unwrap();
    assert!(printed[again..].contains("`s.pay` is gone"), "{printed}");
    let world = world.killed().await;
    drop(session);
    let session = world.open().await;
    let _ = session.settled().await.unwrap();
    assert_eq!(
        world.tools.count("s.pay"),
        1,
        "the payment is not repeated without a question"
    );
}

/// Branches of an agent change a list, and then a branch of a person: all branches run under the changed list, and the
/// person's branch can be adopted.
#[tokio::test]
async fn branches_that_change_a_list_are_taken_over_as_ever() {
    let definition = r#"
mcp: { s: { command: [server], effect: read, refresh: follow } }
agents: { main: { system: You work., tools: ["s.*", fork] } }
"#;
    let script = json!({
        "main": [
            { "call": { "fork": { "instructions": ["One way.", "Another way."] } } },
            "Both: {{ request.last }}",
            OFFERED,
        ],
        "main@1": [{ "call": { "s.change": {} } }, OFFERED],
        "main@2": [OFFERED],
        "main@b1": [{ "call": { "s.change": {} } }, OFFERED],
    });
    let world = world(script, &["change", "old"]);
    world
        .tools
        .will("s.change", Does::Changes(tools(&["change", "new"])));
    world
        .tools
        .will("s.change", Does::Changes(tools(&["change", "newer"])));
    let session = world.start(definition, "Go.").await;
    let settled = session.settled().await.unwrap();
    let both = answered(&settled);
    assert!(both.contains("s__change s__new"), "{both}");
    let fork = Fork {
        label: Some("b1".into()),
        say: Some("Change it there.".into()),
        live: true,
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    let _ = session.settled().await.unwrap();
    let seen = world.engine.inspect("session").await.unwrap();
    let b1 = seen.branches.iter().find(|b| b.label.is_some()).unwrap();
    assert_eq!(answered(&seen.settled_on(b1)), "s__change s__newer fork");
    let fate = session.adopt(b1.id, None).await.unwrap().fate;
    assert!(matches!(fate, Fate::Taken(_)), "{fate:?}");
    let world = world.killed().await;
    drop(session);
    let _ = world.open().await.settled().await.unwrap();
    let seen = world.engine.inspect("session").await.unwrap();
    assert_eq!(seen.current, b1.id);
    assert!(seen.network.unwrap().tools.contains_key("s.newer"));
}

//! Branches of people and agents: fork, join, adopt and rewind, also across crashes.

use crate::world::{World, answered};
use serde_json::{Value as Json, json};
use steersman_machine::network::join::JoinOn;
use steersman_machine::stored::ids::Line;
use steersman_runtime::inbox::{Message, Wanted};
use steersman_runtime::pending::{self, Pending};
use steersman_runtime::session::{Fate, Fork, Session, Settled};

const LOOK: &str = r#"
state: { mood: { type: string, default: calm } }
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, native: 1 }
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, simulate: pretended, native: 1 }
  send: { description: Sends., effect: unsafe, native: 1 }
  feel: { description: Feels., parameters: { mood: string }, set: { mood: "{{ args.mood }}" } }
agents:
  main: { system: You analyse., tools: [look, pay, send, feel] }
"#;

fn forked_and_joined() -> Json {
    json!({
        "main": ["Analysis.", "Joined."],
        "main@b1": [{ "call": { "look": { "what": "why" } } }, "Because."],
        "main@b2": [{ "call": { "look": { "what": "price" } } }, "Cheaper."],
    })
}

fn fork(label: &str, say: &str) -> Fork {
    Fork {
        label: Some(label.into()),
        say: Some(say.to_owned()),
        ..Fork::default()
    }
}

async fn branch_named(world: &World, label: &str) -> steersman_machine::stored::ids::Id {
    let seen = world.engine.inspect("session").await.unwrap();
    let found = seen
        .branches
        .iter()
        .find(|b| b.label.as_deref() == Some(label));
    found.unwrap().id
}

async fn joined(world: &World, session: &Session) {
    session.fork(fork("b1", "why?")).await.unwrap();
    session.settled().await.unwrap();
    session.fork(fork("b2", "cheaper?")).await.unwrap();
    session.settled().await.unwrap();
    let branches = vec![
        branch_named(world, "b1").await,
        branch_named(world, "b2").await,
    ];
    session.join(branches, &JoinOn::All, None).await.unwrap();
}

#[tokio::test]
async fn a_person_forks_and_joins_two_branches_after_the_end() {
    let world = World::new(forked_and_joined());
    let session = world.start(LOOK, "Analyse.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Analysis.");
    joined(&world, &session).await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Joined.");
    assert_eq!(world.stack("main").await, "U A F W WR A F");
    insta::assert_snapshot!(world.printed().await);
}

#[tokio::test]
async fn branches_survive_the_process() {
    let world = World::new(forked_and_joined());
    let session = world.start(LOOK, "Analyse.").await;
    session.settled().await.unwrap();
    session.fork(fork("b1", "why?")).await.unwrap();
    let world = world.killed().await;
    let session = world.open().await;
    session.settled().await.unwrap();
    session.fork(fork("b2", "cheaper?")).await.unwrap();
    session.settled().await.unwrap();
    let branches = vec![
        branch_named(&world, "b1").await,
        branch_named(&world, "b2").await,
    ];
    let world = world.killed().await;
    let session = world.open().await;
    session.join(branches, &JoinOn::All, None).await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Joined.");
}

/// Each owner leaves out numbers of lines that the one before may have used.
#[tokio::test]
async fn a_fork_at_a_line_that_does_not_exist_is_refused() {
    let world = World::new(forked_and_joined());
    let session = world.start(LOOK, "Analyse.").await;
    session.settled().await.unwrap();
    let world = world.killed().await;
    let session = world.open().await;
    let at = |line| Fork {
        at: Some(Line(line)),
        ..Fork::default()
    };
    let refused = |fate: Fate| match fate {
        Fate::Refused(why) => assert!(why.contains("is not on the path"), "{why}"),
        fate => panic!("{fate:?}"),
    };
    refused(session.fork(at(50)).await.unwrap().fate);
    session.fork(fork("b1", "why?")).await.unwrap();
    session.settled().await.unwrap();
    assert!(world.lines().await.last().unwrap().n > Line(100));
    refused(session.fork(at(50)).await.unwrap().fate);
    refused(session.fork(at(100_000)).await.unwrap().fate);
    assert_eq!(answered(&session.settled().await.unwrap()), "Analysis.");
}

#[tokio::test]
async fn a_dry_branch_touches_nothing_and_a_live_one_does() {
    let script = json!({
        "main": ["Ready."],
        "main@dry": [{ "call": { "pay": { "cents": 5 } } }, "Done."],
        "main@live": [{ "call": { "pay": { "cents": 5 } } }, "Done."],
        "main@leaf": [{ "call": { "send": {} } }, "Done."],
    });
    let world = World::new(script);
    let session = world.start(LOOK, "Go.").await;
    session.settled().await.unwrap();
    session.fork(fork("dry", "pay")).await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(world.tools.count("pay"), 0);
    session.fork(fork("leaf", "send")).await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(world.tools.count("send"), 0);
    let live = Fork {
        live: true,
        ..fork("live", "pay")
    };
    session.fork(live).await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(world.tools.count("pay"), 1);
    insta::assert_snapshot!(world.printed().await);
}

#[tokio::test]
async fn a_person_chooses_a_branch_and_comes_back() {
    let script = json!({
        "main": ["One.", "Two.", "Three."],
        "main@b1": ["Elsewhere.", "Still elsewhere."],
    });
    let world = World::new(script);
    let session = world.start(LOOK, "Go.").await;
    session.settled().await.unwrap();
    session.fork(fork("b1", "there")).await.unwrap();
    session.settled().await.unwrap();
    let b1 = branch_named(&world, "b1").await;
    session.make_current(b1).await.unwrap();
    session.say("And there?").await.unwrap();
    assert_eq!(
        answered(&session.settled().await.unwrap()),
        "Still elsewhere."
    );
    session
        .make_current(steersman_machine::stored::ids::Id::MAIN)
        .await
        .unwrap();
    session.say("And here?").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Two.");
}

#[tokio::test]
async fn what_was_left_can_be_made_current_again() {
    let world = World::new(json!({ "main": ["One.", "Two.", "Three.", "Four."] }));
    let session = world.start(LOOK, "Go.").await;
    session.settled().await.unwrap();
    session.say("On.").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Two.");
    session.rewind(Line(2), Some("Otherwise.")).await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Two.");
    assert_eq!(world.stack("main").await, "U A F UR A F");
    let gone = session.rewind(Line(99), None).await.unwrap();
    assert!(matches!(gone.fate, Fate::Refused(_)), "{gone:?}");
    session
        .make_current(steersman_machine::stored::ids::Id::MAIN)
        .await
        .unwrap();
    session.say("Further.").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Three.");
    assert_eq!(world.stack("main").await, "U A F UR A F UR A F");
}

const FORKER: &str = r#"
state: { mood: { type: string, default: calm } }
tools:
  transfer: { description: Pays., parameters: { cents: integer }, effect: unsafe, simulate: pretended, native: 1 }
  feel: { description: Feels., parameters: { mood: string }, set: { mood: "{{ args.mood }}" } }
agents:
  lead: { system: You lead., tools: [a, b] }
  a: { description: Forks., system: You try., tools: [transfer, feel, { tool: fork, max: 2, choose: critic }] }
  b: { description: Waits., system: You wait., tools: [transfer] }
  critic: { description: Chooses., system: You choose. }
entry: lead
"#;

#[tokio::test]
async fn an_agent_forks_and_one_branch_is_adopted() {
    let script = json!({
        "lead": [{ "call": [{ "a": { "message": "try" } }, { "b": { "message": "wait" } }] }, "Both."],
        "b": ["Waited."],
        "a": [{ "call": { "fork": { "instructions": ["one", "two"] } } }, "Nothing.", "Paid."],
        "a@2": [{ "call": { "transfer": { "cents": 5 } } }, "Forecast."],
        "critic": ["2"],
    });
    let world = World::new(script);
    let session = world.start(FORKER, "Go.").await;
    let settled = session.settled().await.unwrap();
    insta::assert_snapshot!(format!("{settled:?}\n{}", world.printed().await));
}

#[tokio::test]
async fn an_unknown_branch_is_refused_in_words() {
    let world = World::new(json!({ "main": ["One."] }));
    let session = world.start(LOOK, "Go.").await;
    session.settled().await.unwrap();
    let nowhere = steersman_machine::stored::ids::Id::new(Line(7), 3);
    let receipt = session.make_current(nowhere).await.unwrap();
    assert_eq!(
        receipt.fate,
        Fate::Refused("there is no branch 7.3".to_owned())
    );
    assert!(matches!(
        &*session.settled().await.unwrap(),
        Settled::Answered { .. }
    ));
}

/// A branch that starts at an open fork gets the ends of the fork's branches, even if they were superseded long ago.
#[tokio::test]
async fn a_branch_of_an_open_fork_gets_the_ends_of_what_is_left_behind() {
    let definition = r"
agents:
  main: { system: You fork., tools: [fork] }
";
    let script = json!({
        "main": [
            { "call": { "fork": { "instructions": ["One.", "Two."] } } },
            "Found.",
            "Both are well.",
        ],
        "main@again": ["Both are well there, too."],
    });
    let world = World::new(script);
    let session = world.start(definition, "Go.").await;
    session.settled().await.unwrap();
    assert_eq!(world.stack("main").await, "U A W WR A F");
    let again = Fork {
        at: Some(Line(2)),
        label: Some("again".into()),
        ..Fork::default()
    };
    session.fork(again).await.unwrap();
    session.settled().await.unwrap();
    let seen = world.printed().await;
    assert!(seen.contains("Both are well there, too."), "{seen}");
}

#[tokio::test]
async fn lists_know_what_waits_on_every_branch() {
    let definition = r"
tools: { pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, approve: { by: boss, edit: [cents] }, native: 1 } }
agents:
  main: { system: You pay., tools: [pay, ask] }
  boss: { person: { role: boss } }
";
    let world = World::new(json!({
        "main": ["Here I am.", { "call": { "ask": { "question": "Red?", "options": ["yes", "no"] } } }],
        "main@b1": [{ "call": { "pay": { "cents": 3 } } }],
    }));
    let session = world.start(definition, "Hello.").await;
    let listed = async || {
        let seen = world.engine.inspect("session").await.unwrap();
        let listed = pending::read(&seen.info.state.waits);
        assert_eq!(listed.as_ref(), Some(&seen.pending));
        let words = |p: &Pending| format!("{} {}", p.kind.word(), p.by.join(" or "));
        let waits: Vec<String> = seen.pending.iter().map(words).collect();
        (seen.info.state.status.to_string(), waits.join(", "))
    };
    session.settled().await.unwrap();
    assert_eq!(listed().await, ("answered".to_owned(), String::new()));
    let live = Fork {
        live: true,
        ..fork("b1", "Pay.")
    };
    session.fork(live).await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(
        listed().await,
        ("answered".to_owned(), "approval boss".to_owned())
    );
    session.say("Which colour?").await.unwrap();
    session.settled().await.unwrap();
    let both = "approval boss, question user".to_owned();
    assert_eq!(listed().await, ("waits".to_owned(), both));
}

/// The answer of a session is the last text of the agent that has the floor. Another agent is at work, but its branches wait
/// for time and ask nobody.
/// An agent rests, and the one that called it has forked. What is said to it waits for the fork, and keeps nobody busy meanwhile.
#[tokio::test]
async fn a_message_to_an_agent_below_an_open_fork_waits_for_the_fork() {
    let definition = r"
tools:
  nap: { description: Naps., wait: { time: 15m } }
agents:
  lead: { system: You lead., tools: [helper, fork, nap] }
  helper: { description: Helps., system: You help. }
entry: lead
";
    let script = json!({
        "lead": [
            { "call": { "helper": { "message": "help" } } },
            { "call": { "fork": { "instructions": ["One."] } } },
            "All is well.",
        ],
        "helper": ["Helped.", "Helped again."],
        "lead@1": [{ "call": { "nap": {} } }],
    });
    let world = World::new(script);
    let session = world.start(definition, "Go.").await;
    session.settled().await.unwrap();
    let seen = world.engine.inspect("session").await.unwrap();
    let snapshot = &seen.current_branch().unwrap().snapshot;
    let helper = snapshot.agents.values().find(|one| &*one.def == "helper");
    let say = Wanted::Say {
        text: "And you?".into(),
        to: Some(helper.unwrap().id),
    };
    let receipt = session.send(Message::from(say)).await.unwrap();
    let Fate::Waits(why) = receipt.fate else {
        panic!("{receipt:?}");
    };
    assert_eq!(why, "`lead` has calls open");
}

#[tokio::test]
async fn the_floor_is_where_the_machine_has_it() {
    let definition = r"
tools:
  nap: { description: Naps., wait: { time: 15m } }
agents:
  lead: { system: You lead., tools: [worker, talker] }
  worker: { description: Works., system: You work., tools: [fork, nap] }
  talker: { description: Talks., system: You talk., turns: dialogue }
entry: lead
";
    let script = json!({
        "lead": [{ "call": [{ "worker": { "message": "work" } }, { "talker": { "message": "talk" } }] }],
        "worker": [{ "call": { "fork": { "instructions": ["One."] } } }],
        "worker@1": [{ "call": { "nap": {} } }],
        "talker": ["What is your name?", "Hello, Ann."],
    });
    let world = World::new(script);
    let session = world.start(definition, "Go.").await;
    let settled = session.settled().await.unwrap();
    assert_eq!(answered(&settled), "What is your name?");
    let seen = world.engine.inspect("session").await.unwrap().settled;
    assert_eq!(answered(&seen), "What is your name?");
    session.say("Ann").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Hello, Ann.");
}

//! Following a session: each stored event comes once and in order, from any position; the status; readers and owners
//! that come and go.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::task::Poll;
use steersman::machine::stored::ids::Line;
use steersman::runtime::inbox::{Wanted, random_id};
use steersman::runtime::seal::Sealer;
use steersman::runtime::session::Fate;
use steersman::runtime::store::memory::MemoryStore;
use steersman::{
    Act, By, Cursor, ErrorKind, EventKind, Events, Fork, Network, SessionQuery, Steersman, Turn,
    tool_with,
};

#[derive(Deserialize, JsonSchema)]
struct Refund {
    cents: u64,
}

const DEFINITION: &str = "
tools:
  refund:
    native: 1
    description: Pays money back.
    parameters: { cents: integer }
    effect: unsafe
    approve: args.cents > 1000
agents:
  desk: { system: You settle complaints., tools: [refund] }
";

const SCRIPT: &str = "
desk:
  - call: { refund: { cents: 3990 } }
  - Paid.
  - Once more?
  - And again.
";

fn network() -> Network {
    Network::from_yaml(DEFINITION)
        .tool(tool_with("refund", 1, |refund: Refund, cx| async move {
            cx.progress(1.0, Some(1.0), "pays");
            cx.artifact("receipt.txt", "text/plain", *b"paid");
            Ok::<_, String>(refund.cents)
        }))
        .build()
        .unwrap()
}

/// The events until the session settles, without provisional ones.
async fn stored(events: &mut Events) -> Vec<Json> {
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        if matches!(event.kind, EventKind::Settled(_)) || !event.is_provisional() {
            all.push(event.to_json());
        }
        if matches!(event.kind, EventKind::Settled(_)) {
            break;
        }
    }
    all
}

#[tokio::test]
async fn what_happens_is_told_and_goes_on_from_any_place() {
    let steersman = Steersman::options().script_all(SCRIPT).in_memory();
    let session = steersman.start(&network()).await.unwrap();
    let mut events = session.events(Cursor::START);
    let Turn::Asks(questions) = session.ask("My kettle is broken.").await.unwrap() else {
        panic!("it asks first");
    };
    assert_eq!(questions[0].tool(), Some("refund"));
    assert_eq!(questions[0].arguments(), json!({ "cents": 3990 }));
    assert_eq!(questions[0].kind().word(), "approval");
    session.approve(&questions[0], By::user()).await.unwrap();
    let turn = session.settled().await.unwrap();
    assert_eq!(turn.answer().map(steersman::Answer::text), Some("Paid."));
    let mut all = stored(&mut events).await;
    if all.last().unwrap()["status"] == "asks" {
        all.extend(stored(&mut events).await);
    }
    let mut shown = all.clone();
    shown.retain(|event| event["status"] != "asks");
    for event in &mut shown {
        let fields = event.as_object_mut().unwrap();
        for time in ["at", "took", "first"] {
            fields.shift_remove(time);
        }
        for random in ["digest", "message", "owner", "build"] {
            if let Some(value) = fields.get_mut(random).filter(|value| value.is_string()) {
                *value = "..".into();
            }
        }
    }
    insta::assert_json_snapshot!(shown);
    // A cursor after any event gives exactly the remaining events.
    let lasting: Vec<&Json> = all.iter().filter(|e| e["event"] != "settled").collect();
    for (k, event) in lasting.iter().enumerate() {
        let cursor: Cursor = event["cursor"].as_str().unwrap().parse().unwrap();
        let rest = stored(&mut steersman.events(session.id(), cursor)).await;
        let rest: Vec<&Json> = rest.iter().filter(|e| e["event"] != "settled").collect();
        assert_eq!(rest, lasting[k + 1..], "from {cursor}");
    }
}

/// A state of a net is an event between the messages and calls, from any position.
#[tokio::test]
async fn states_of_nets_are_told_between_what_happens_in_them() {
    let definition = "
tools: { note: { description: Notes., set: { noted: true } } }
state: { noted: { type: boolean, default: false } }
agents: { desk: { system: You think., net: refact, tools: [todo, note] } }
";
    let script = "desk:
  - { text: Once., call: { note: {} } }
  - { text: It is noted., call: { todo_add: { text: Rest } } }
  - That is all.
  - Noted.";
    let network = Network::from_yaml(definition).build().unwrap();
    let steersman = Steersman::options().script_all(script).in_memory();
    let session = steersman.start(&network).await.unwrap();
    let _ = session.ask("Note it.").await.unwrap();
    let all = stored(&mut session.events(Cursor::START)).await;
    let short: Vec<String> = all
        .iter()
        .filter_map(|event| {
            let word = |key: &str| event[key].as_str();
            match word("event")? {
                "entered" => Some(word("state")?.to_uppercase()),
                "said" => Some(word("text")?.to_owned()),
                "called" => Some(format!("{}()", word("name")?)),
                _ => None,
            }
        })
        .collect();
    assert_eq!(
        short.join(" "),
        "REASONING Once. ACTION note() REFLECTION It is noted. REASONING todo_add() That is all. ANSWER Noted."
    );
    for (k, event) in all.iter().enumerate().take(all.len() - 1) {
        let cursor: Cursor = event["cursor"].as_str().unwrap().parse().unwrap();
        let rest = stored(&mut steersman.events(session.id(), cursor)).await;
        let told = |events: &[Json]| -> Vec<Json> {
            let events = events.iter().filter(|e| e["event"] != "settled");
            events.cloned().collect()
        };
        assert_eq!(told(&rest), told(&all[k + 1..]), "from {cursor}");
    }
}

#[tokio::test]
async fn an_answer_streams_until_it_has_settled() {
    let script = "desk: [ One two three., Four. ]";
    let steersman = Steersman::options().script_all(script).in_memory();
    let session = steersman.start(&network()).await.unwrap();
    for said in ["One two three.", "Four."] {
        let mut events = session.ask_streaming("Count.").await.unwrap();
        let (mut pieces, mut last) = (String::new(), None);
        while let Some(event) = events.next().await {
            match event.unwrap().kind {
                EventKind::Piece { text, .. } => pieces.push_str(&text),
                EventKind::Settled(turn) => last = Some(turn),
                _ => {}
            }
        }
        // The number of pieces is random, but together they begin the answer.
        assert!(said.starts_with(&pieces), "{pieces}");
        assert_eq!(last.unwrap().answer().unwrap().text(), said);
    }
}

#[tokio::test]
async fn a_reader_that_is_slow_loses_nothing_that_is_on_disk() {
    let script: Vec<String> = (0..400).map(|n| format!("\"{n}\"")).collect();
    let script = format!("desk: [ {} ]", script.join(", "));
    let steersman = Steersman::options().script_all(script).in_memory();
    let session = steersman.start(&network()).await.unwrap();
    let mut events = session.events(Cursor::START);
    for _ in 0..400 {
        let _ = session.ask("Next.").await.unwrap();
    }
    let mut said = 0;
    while said < 400 {
        if let EventKind::Said { text, .. } = events.next().await.unwrap().unwrap().kind {
            assert_eq!(*text, *said.to_string());
            said += 1;
        }
    }
}

#[tokio::test]
async fn who_comes_late_is_told_how_it_stands_and_owners_may_change() {
    let steersman = Steersman::options().script_all(SCRIPT).in_memory();
    let session = steersman.start(&network()).await.unwrap();
    let _ = session.ask("My kettle is broken.").await.unwrap();
    let mut late = session.events(Line(u64::MAX >> 24));
    let event = late.next().await.unwrap().unwrap();
    assert!(
        matches!(event.kind, EventKind::Settled(Turn::Asks(_))),
        "{event:?}"
    );

    // The session is stopped, and the handle starts it again. A reader gets the events of both runs.
    let mut events = steersman.events(session.id(), Cursor::START);
    session.clone().stop().await;
    assert!(steersman.engine().driven(session.id()).is_none());
    let question = steersman.pending(session.id()).await.unwrap().remove(0);
    session.approve(&question, By::user()).await.unwrap();
    let turn = session.settled().await.unwrap();
    assert_eq!(turn.answer().unwrap().text(), "Paid.");
    let told = loop {
        let told = stored(&mut events).await;
        if told.last().unwrap()["status"] == "answered" {
            break told;
        }
    };
    assert!(told.iter().any(|e| e["event"] == "said"), "{told:?}");

    steersman.stop().await;
    let gone = session.settled().await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::Stopping, "{gone}");
}

#[tokio::test]
async fn a_reader_that_begins_when_the_owner_has_just_let_go_is_told_how_it_stands() {
    let steersman = Steersman::options().script_all(SCRIPT).in_memory();
    let session = steersman.start(&network()).await.unwrap();
    let _ = session.ask("My kettle is broken.").await.unwrap();
    let same = steersman.session(session.id()).await.unwrap();
    same.stop().await;
    // Nobody tells this reader that the owner has gone: it was told before.
    let told = stored(&mut session.events(Cursor::START)).await;
    assert_eq!(told.last().unwrap()["event"], "settled", "{told:?}");
}

#[tokio::test]
async fn a_decision_that_nobody_has_taken_is_not_asked_for_again() {
    let steersman = Steersman::options().script_all(SCRIPT).in_memory();
    let session = steersman.start(&network()).await.unwrap();
    let _ = session.ask("My kettle is broken.").await.unwrap();
    session.clone().stop().await;
    let question = steersman.pending(session.id()).await.unwrap().remove(0);
    let act = Act::approve(question.id(), By::user());
    let receipt = steersman.deliver(session.id(), act).await.unwrap();
    assert_eq!(receipt.fate, Fate::Lies);

    let mut events = steersman.events(session.id(), Cursor::START);
    let (told, turn) = tokio::join!(stored(&mut events), session.settled());
    assert_eq!(turn.unwrap().answer().unwrap().text(), "Paid.");
    assert_eq!(told.last().unwrap()["status"], "answered", "{told:?}");
}

#[tokio::test]
async fn a_decision_that_the_owner_has_not_read_is_not_asked_for_again() {
    let store = Arc::new(MemoryStore::new());
    let opened = || {
        let setup = Steersman::options().script_all(SCRIPT);
        setup.over_shared(store.clone(), Sealer::new(&[7; 32]))
    };
    let (steersman, elsewhere) = (opened(), opened());
    let session = steersman.start(&network()).await.unwrap();
    let _ = session.ask("My kettle is broken.").await.unwrap();
    let question = elsewhere.pending(session.id()).await.unwrap().remove(0);
    let act = Act::approve(question.id(), By::user());
    elsewhere.deliver(session.id(), act).await.unwrap();
    let told = stored(&mut session.events(Cursor::START)).await;
    assert_eq!(told.last().unwrap()["status"], "answered", "{told:?}");
}

#[tokio::test]
async fn who_stops_waiting_loses_nothing() {
    let folder = std::env::temp_dir().join(format!("steersman-follow-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let setup = Steersman::options().script_all(SCRIPT);
    let steersman = setup.open(folder.join("sessions.db")).await.unwrap();
    let session = steersman.start(&network()).await.unwrap();
    let _ = session.ask("My kettle is broken.").await.unwrap();
    let whole = stored(&mut steersman.events(session.id(), Cursor::START)).await;
    for masked in [false, true] {
        let events = steersman.events(session.id(), Cursor::START);
        let mut events = if masked { events.masked() } else { events };
        let (mut told, mut polls) = (Vec::new(), 1);
        while told.len() < whole.len() {
            // Each wait ends after twice as many polls as the one before it, in the middle of anything.
            let mut next = std::pin::pin!(events.next());
            let mut event = None;
            for _ in 0..polls {
                if let Poll::Ready(come) = futures::poll!(&mut next) {
                    event = come;
                    break;
                }
                tokio::task::yield_now().await;
            }
            polls = if event.is_some() { 1 } else { polls * 2 };
            assert!(polls < 1 << 20, "{told:?}");
            told.extend(event.map(|event| event.unwrap().to_json()));
        }
        assert_eq!(told, whole);
    }
    steersman.stop().await;
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn cursors_are_texts() {
    for text in ["0", "12", "12.3", "268435455.0"] {
        assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
    }
    for text in [
        "",
        ".",
        "12.",
        ".3",
        "-1",
        "1.2.3",
        "268435456",
        "9999999999999999999",
    ] {
        assert!(text.parse::<Cursor>().is_err(), "{text}");
    }
}

#[tokio::test]
async fn branches_have_ids_and_can_be_asked() {
    let steersman = Steersman::options()
        .script_all(SCRIPT)
        .over(MemoryStore::new(), &[1; 32]);
    let session = steersman.start(&network()).await.unwrap();
    let turn = session.ask("My kettle is broken.").await.unwrap();
    let question = turn.questions()[0].clone();
    session
        .reject(question.id(), "Not today.", By::user())
        .await
        .unwrap();
    assert_eq!(
        session.settled().await.unwrap().answer().unwrap().text(),
        "Paid."
    );
    let branch = session.fork(Fork::default()).await.unwrap();
    let turn = session.ask_on(branch, "And?").await.unwrap();
    assert_eq!(turn.answer().unwrap().text(), "Once more?");
    assert_eq!(
        session.settled().await.unwrap().answer().unwrap().text(),
        "Paid."
    );
    session.adopt(branch).await.unwrap();
    assert_eq!(
        session.settled().await.unwrap().answer().unwrap().text(),
        "Once more?"
    );
    let back = session.rewind(Line(1), Some("Anew.")).await.unwrap();
    assert_ne!(back, branch);
    let _ = session.settled().await.unwrap();

    // Reading drives no session.
    let all = steersman.sessions(&SessionQuery::default()).await.unwrap();
    assert_eq!(all.len(), 1);
    assert!(
        steersman
            .verify(session.id())
            .await
            .unwrap()
            .damaged
            .is_empty()
    );
    let missing = steersman.session("nobody").await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let refused = session
        .fork(Fork {
            at: Some(Line(4_000)),
            ..Fork::default()
        })
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    let refused = session
        .approve(question.id(), By::user())
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    let refused = steersman.backup("nowhere.db").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
}

#[tokio::test]
async fn who_comes_at_once_gets_the_same_session_and_who_asks_late_learns_what_was_refused() {
    let folder = std::env::temp_dir().join(format!("steersman-follow-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let options = Steersman::options().script_all(SCRIPT);
    let steersman = options.open(folder.join("sessions.db")).await.unwrap();
    let session = steersman.start(&network()).await.unwrap();
    let turn = session.ask("My kettle is broken.").await.unwrap();
    let of = turn.questions()[0].id();
    for _ in 0..20 {
        session.clone().stop().await;
        let all = (0..8).map(|_| steersman.session(session.id()));
        for opened in futures::future::join_all(all).await {
            opened.unwrap();
        }
        // The act is refused before its fate is asked for.
        let message = Wanted::Approve { of, args: None }.by("nobody");
        let (id, now) = (random_id(), steersman.engine().clock().now());
        let store = steersman.engine().store();
        let put = store.deliver(session.id(), message.encode(id.clone(), now));
        assert!(put.await.unwrap());
        let driven = steersman.engine().driven(session.id()).unwrap();
        while !store.inbox(session.id()).await.unwrap().1.is_empty() {
            tokio::task::yield_now().await;
        }
        let fate = driven.fate_of(&id).await;
        assert!(
            matches!(&fate, Fate::Refused(why) if why.contains("nobody")),
            "{fate:?}"
        );
    }
    steersman.stop().await;
    drop((session, steersman));
    std::fs::remove_dir_all(&folder).unwrap();
}

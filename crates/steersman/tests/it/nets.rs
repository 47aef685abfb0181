//! Nets and routers in Rust: registered by a name, bound by their version.

use std::sync::atomic::{AtomicU32, Ordering};
use steersman::machine::network::nets::{Event, Net, NetView, RouteView, Router, Step};
use steersman::machine::stored::interaction::Choice;
use steersman::{ErrorKind, EventKind, Network, Session, Steersman, Turn, testing};

/// A net with a draft, a check and an answer. The message `No.` is answered at once.
struct Checked(&'static str);

impl Net for Checked {
    fn version(&self) -> String {
        self.0.to_owned()
    }

    fn next(&self, view: &NetView<'_>, event: &Event<'_>) -> Step {
        let limit = view.value(&["config", "rounds"]);
        match event {
            Event::Owes if &*view.message() == "No." => Step::Answer("Nothing then.".to_owned()),
            Event::Answered(answer) if !answer.asks.is_empty() => Step::Take,
            Event::Answered(answer) => {
                let (text, before) = (answer.text.as_deref(), view.said());
                let round = u64::from(view.steps()) + 1;
                match text {
                    _ if round == 1 => Step::Next("Check it.".to_owned()),
                    _ if before.as_deref() == Some("Right.") => Step::Take,
                    Some("Right.") => Step::Next("Answer.".to_owned()),
                    Some("Panic.") => panic!("never heard of"),
                    _ if limit.and_then(|l| l.as_u64()) == Some(round) => {
                        Step::Fail("it was checked too often".to_owned())
                    }
                    _ => Step::Next("Check it again.".to_owned()),
                }
            }
            Event::Owes | Event::Gave(_) => Step::Think,
        }
    }
}

const DEFINITION: &str = "
name: reckoner
config: { rounds: { type: integer, default: 3 } }
agents: { clerk: { system: You reckon., net: checked } }
";

fn network(version: &'static str) -> Network {
    Network::from_yaml(DEFINITION)
        .net("checked", Checked(version))
        .build()
        .unwrap()
}

async fn said(session: &Session) -> Vec<String> {
    let mut events = session.events(steersman::Cursor::START).until_settled();
    let mut said = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::Said { text, .. } = event.unwrap().kind {
            said.push(text.to_string());
        }
    }
    said
}

async fn asked(script: &str, text: &str) -> (Turn, Vec<String>) {
    let steersman = Steersman::options().script_all(script).in_memory();
    let session = steersman.start(&network("1")).await.unwrap();
    let turn = session.ask(text).await.unwrap();
    (turn, said(&session).await)
}

#[tokio::test]
async fn three_states_in_rust() {
    let (turn, said) = asked("clerk: [ It is 41., Right., It is 42. ]", "How much?").await;
    assert_eq!(turn.answer().unwrap().text(), "It is 42.");
    assert_eq!(said, ["It is 41.", "Right.", "It is 42."]);
    let (turn, said) = asked("clerk: []", "No.").await;
    assert_eq!(turn.answer().unwrap().text(), "Nothing then.");
    assert!(said.is_empty());
    let (turn, _) = asked("clerk: [ A., B., C. ]", "How much?").await;
    assert!(
        format!("{turn:?}").contains("checked too often"),
        "{turn:?}"
    );
    let (turn, _) = asked("clerk: [ A., Panic. ]", "How much?").await;
    assert!(format!("{turn:?}").contains("never heard of"), "{turn:?}");
}

#[test]
fn what_is_not_registered_is_named() {
    let error = Network::from_yaml(DEFINITION).build().unwrap_err();
    assert_eq!(
        error.in_rust,
        [
            "an agent names the net `checked`, and there are chat, react, refact: register it with `Builder::net`"
        ]
    );
    let error = Network::from_yaml(DEFINITION)
        .net("checked", Checked("1"))
        .net("checked", Checked("2"))
        .build()
        .unwrap_err();
    let twice = "the net `checked` is registered twice";
    assert_eq!(error.in_rust, [twice]);
    // Faults of the text hide none of those that need no definition.
    let error = Network::from_yaml("steersman: 1\nname: desk\nagents: 7\n")
        .net("checked", Checked("1"))
        .net("checked", Checked("2"))
        .entry("desk")
        .build()
        .unwrap_err();
    assert!(!error.diagnostics.is_empty());
    let misplaced =
        "`entry` is set in Rust on a definition that was read from text: set it in the text";
    assert_eq!(error.in_rust, [twice, misplaced]);
}

#[tokio::test]
async fn a_session_goes_on_only_where_its_net_is() {
    let folder = std::env::temp_dir().join(format!("steersman-nets-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let store = folder.join("sessions.db");
    let script = "clerk: [ It is 41., Right., It is 42., It is 1., Right., It is 2. ]";
    let process = || Steersman::options().script_all(script).open(&store);
    let steersman = process().await.unwrap();
    let session = steersman.start(&network("1")).await.unwrap();
    let _ = session.ask("How much?").await.unwrap();
    let id = session.id().to_owned();
    steersman.stop().await;
    drop((session, steersman));

    let steersman = process().await.unwrap();
    // Reading a session needs no net.
    assert!(steersman.inspect(&id).await.is_ok());
    let refused = steersman.session(&id).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unbound);
    assert!(
        refused
            .to_string()
            .contains("version 1 of the net `checked`, of which this program has none"),
        "{refused}"
    );
    steersman.register(&network("2"));
    let refused = steersman.session(&id).await.unwrap_err();
    assert!(refused.to_string().contains("has version 2"), "{refused}");
    steersman.register(&network("1"));
    let session = steersman.session(&id).await.unwrap();
    let turn = session.ask("And now?").await.unwrap();
    assert_eq!(turn.answer().unwrap().text(), "It is 2.");
    steersman.stop().await;
    drop((session, steersman));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn tests_of_a_definition_run_its_net_also_over_a_crash() {
    let network = Network::from_yaml(format!(
        "{DEFINITION}tests:
  reckons:
    script: {{ clerk: [ It is 41., Right., It is 42. ] }}
    steps: [ {{ say: How much? }}, {{ kill: random }}, {{ resume: true }} ]
    expect: [ {{ answer: It is 42. }} ]
"
    ))
    .net("checked", Checked("1"))
    .build();
    let network = match network {
        Ok(network) => network,
        Err(error) => panic!("{error}"),
    };
    let report = testing::run(&network, "reckons").await;
    assert!(report.failures.is_empty(), "{:?}", report.failures);
}

/// A router that calls each agent in turn, then finishes. It counts its own calls, so it is not pure.
struct Turns(AtomicU32);

impl Router for Turns {
    fn version(&self) -> String {
        "7".to_owned()
    }

    fn route(&self, _view: &RouteView<'_>) -> Result<Choice, String> {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(Choice::to("one")),
            1 => Ok(Choice::to("two")),
            _ => Ok(Choice::Finish),
        }
    }
}

#[tokio::test]
async fn a_router_in_rust_chooses() {
    let definition = "
agents:
  one: { description: First., system: You are one. }
  two: { description: Second., system: You are two. }
  both: { route: { native: 7 } }
entry: both
";
    let error = Network::from_yaml(definition).build().unwrap_err();
    assert!(
        error.to_string().contains("`both` is routed in Rust"),
        "{error}"
    );
    let network = Network::from_yaml(definition)
        .router("both", Turns(AtomicU32::new(0)))
        .build()
        .unwrap();
    let steersman = Steersman::options()
        .script_all("{ one: [ Here. ], two: [ There. ] }")
        .in_memory();
    let session = steersman.start(&network).await.unwrap();
    let turn = session.ask("Go.").await.unwrap();
    assert_eq!(turn.answer().unwrap().text(), "There.");
}

#[tokio::test]
async fn a_router_in_rust_reads_the_newest_message() {
    let network = Network::from_yaml(ROUTED).route("both", 7, |view| {
        Ok(match (view.count(), view.message().contains("two")) {
            (0, false) => Choice::to("one"),
            (0, true) => Choice::to("two"),
            _ => Choice::Finish,
        })
    });
    let steersman = Steersman::options()
        .script_all("{ one: [ Here. ], two: [ There. ] }")
        .in_memory();
    let session = steersman.start(&network.build().unwrap()).await.unwrap();
    for (said, answer) in [("To one.", "Here."), ("To two.", "There.")] {
        let turn = session.ask(said).await.unwrap();
        assert_eq!(turn.answer().unwrap().text(), answer);
    }
}

const ROUTED: &str = "
agents:
  one: { description: First., system: You are one. }
  two: { description: Second., system: You are two. }
  both: { route: { native: 7 } }
entry: both
tests:
  turns:
    script: { one: [ Here. ], two: [ There. ] }
    steps: [ { say: Go. } ]
    expect: [ { speakers: both, is: [one, two] } ]
";

#[tokio::test]
async fn a_replay_finds_a_router_that_is_not_pure() {
    let pure = Network::from_yaml(ROUTED).route("both", 7, |view| {
        Ok(match view.last() {
            None => Choice::to("one"),
            Some((last, Some(gave))) if last == "one" && gave == "Here." => Choice::to("two"),
            Some(_) => Choice::Finish,
        })
    });
    let report = testing::replay(&pure.build().unwrap(), "turns").await;
    assert!(report.failures.is_empty(), "{:?}", report.failures);

    let counts = Network::from_yaml(ROUTED).router("both", Turns(AtomicU32::new(0)));
    let counts = counts.build().unwrap();
    let report = testing::replay(&counts, "turns").await;
    let found = report.failures.iter();
    let found = found.filter(|f| f.contains("the router of `both` is not pure"));
    assert!(found.count() > 0, "{:?}", report.failures);

    // A router that is consistent within a run, but differs in the next run.
    let runs = AtomicU32::new(0);
    let by_run = Network::from_yaml(ROUTED).route("both", 7, move |view| {
        let begins = view.count() == 0;
        let n = if begins {
            runs.fetch_add(1, Ordering::Relaxed) / 2
        } else {
            0
        };
        Ok(match (begins, n) {
            (true, 0) => Choice::Agents(vec!["one".into(), "two".into()]),
            (true, _) => Choice::Agents(vec!["two".into(), "one".into()]),
            (false, _) => Choice::Finish,
        })
    });
    let report = testing::replay(&by_run.build().unwrap(), "turns").await;
    let found = report.failures.iter();
    let found = found.filter(|f| f.contains("otherwise the second time"));
    assert_eq!(found.count(), 1, "{:?}", report.failures);
}

//! A desk with tasks in a program: an answer has all messages of tasks that came before it, once and in order.

use steersman::{Network, Session, Steersman, Turn};

const DESK: &str = "
name: desk
state: { user: optional string, balance: optional integer }
tools:
  login: { description: Notes who it is., parameters: { name: string }, set: { user: '{{ args.name }}' } }
  look_up: { description: Notes the balance., parameters: { cents: integer }, set: { balance: '{{ args.cents }}' } }
agents:
  greet: { description: Greets., system: You greet. }
  prices: { description: Prices., system: You know prices. }
  authenticate: { description: Finds out who it is., system: You ask., tools: [login] }
  balances: { description: Balances., system: You know balances., tools: [look_up] }
  desk:
    route:
      tasks:
        price: { agent: prices }
        authenticate: { done: state.user is not none }
        balance: { agent: balances, after: [authenticate], done: state.balance is not none, clear: [balance] }
      default: greet
  house: { route: { sequence: [desk] } }
entry: [desk, house]
";

/// The messages of an answer: those before it, then its text.
async fn heard(session: &Session, said: &str) -> Vec<String> {
    let Turn::Answer(answer) = session.ask(said).await.unwrap() else {
        panic!("it answers");
    };
    let json = Turn::Answer(answer.clone()).to_json();
    let before: Vec<&str> = answer.before().collect();
    match before.as_slice() {
        [] => assert!(json.get("before").is_none(), "{json}"),
        before => assert_eq!(json["before"], serde_json::json!(before)),
    }
    let all = before.into_iter().chain([answer.text()]);
    all.map(str::to_owned).collect()
}

async fn plays(entry: &str, script: &str, talk: &[(&str, &[&str])]) {
    let network = Network::from_yaml(DESK).build().unwrap();
    let steersman = Steersman::options().script_all(script).in_memory();
    let options = steersman::StartOptions {
        agent: Some(entry.into()),
        ..steersman::StartOptions::default()
    };
    let session = steersman.start_with(&network, options).await.unwrap();
    for (said, wanted) in talk {
        assert_eq!(heard(&session, said).await, *wanted, "after {said}");
    }
}

const TALK: &str = "
SCRIPT: [ greet, balance, balance ]
greet: [ Welcome. ]
authenticate: [ 'Who are you?', { call: { login: { name: anna } } }, Hello anna. ]
balances: [ Which account?, { call: { look_up: { cents: 500 } } }, It is 5.00., { call: { look_up: { cents: 400 } } }, It is 4.00. ]
";

#[tokio::test]
async fn what_ended_in_the_same_breath_is_told_once_and_in_order() {
    for entry in ["desk", "house"] {
        let script = TALK.replace("SCRIPT", "desk");
        let talk: &[(&str, &[&str])] = &[
            ("Hello.", &["Welcome."]),
            ("My balance.", &["Who are you?"]),
            ("Anna.", &["Hello anna.", "Which account?"]),
            ("Checking.", &["It is 5.00."]),
            ("And now?", &["It is 4.00."]),
        ];
        // a house whose only desk ended has ended too: its next answer starts the desk again
        plays(entry, &script, talk).await;
    }
}

#[tokio::test]
async fn an_answer_that_ends_all_has_what_was_told_on_the_way() {
    let script = "
desk: [ balance ]
authenticate: [ { call: { login: { name: anna } } }, Hello anna. ]
balances: [ { call: { look_up: { cents: 500 } } }, It is 5.00. ]
";
    let talk: &[(&str, &[&str])] = &[("Anna. My balance.", &["Hello anna.", "It is 5.00."])];
    plays("desk", script, talk).await;
    plays("house", script, talk).await;
}

/// The answer about the price comes before the task that it interrupted. The handover of the floor is not shown to the
/// user.
#[tokio::test]
async fn what_interrupted_is_told_first() {
    let script = "
desk: [ balance, price ]
authenticate: [ 'Who are you?', { call: { need_help: { request: 'AMD?' } } }, 'And who are you?', { call: { login: { name: anna } } }, Hello anna. ]
prices: [ { text: It is at 120., call: { done: {} } } ]
balances: [ { call: { look_up: { cents: 500 } } }, It is 5.00. ]
";
    let talk: &[(&str, &[&str])] = &[
        ("My balance.", &["Who are you?"]),
        ("What is AMD at?", &["It is at 120.", "And who are you?"]),
        ("Anna.", &["Hello anna.", "It is 5.00."]),
    ];
    plays("desk", script, talk).await;
}

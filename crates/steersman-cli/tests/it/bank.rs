//! The example `bank` at the terminal: the user gets every text that is meant for them, and no secret is printed.

use crate::world::{Service, World};
use serde_json::json;

const SCRIPT: &str = "bank/script.yaml";
const PASSWORD: &str = "monkey";
const TOKEN: &str = "t-seldo-51f3";

/// Starts a session with a first message. An empty script means that of the example.
fn begin(script: &str, said: &str, code: i32) -> (World, Service) {
    let mut world = World::example("bank");
    let service = Service::bank(&mut world);
    world.write("said.yaml", script);
    let script = if script.is_empty() {
        SCRIPT
    } else {
        "said.yaml"
    };
    let ran = world.run(&["run", "bank", "--script-all", script, "--input", said]);
    assert_eq!(ran.code, Some(code), "{ran:?}");
    (world, service)
}

/// A task ends and the next one begins in one turn: the user gets the texts of both in order, also on standard output.
#[test]
fn what_a_task_told_in_the_end_is_heard_ahead_of_what_the_next_one_asks() {
    let (world, _service) = begin("", "Hello", 0);
    for (said, code) in [("Transfer money", 0), ("seldo", 5)] {
        assert_eq!(world.run(&["send", "last", said]).code, Some(code));
    }
    let ran = world.run(&["answer", "last", PASSWORD]);
    assert_eq!(ran.out, "You are logged in, seldo.\nWhich account?\n");
    let (_, told) = world.json(&["send", "last", "Checking"]);
    assert_eq!(told["before"], json!(["Checking holds 1000.00."]));
    assert_eq!(told["answer"], "To which account, and how much?");
    let (_, shown) = world.json(&["show", "last"]);
    assert_eq!(shown["before"], told["before"], "`show` tells it too");
    // It is told once: the next answer does not repeat it.
    let (_, told) = world.json(&["send", "last", "To account ID 1234324"]);
    assert_eq!(
        (&told["before"], &told["answer"]),
        (&json!(null), &json!("And how much?"))
    );
}

/// The user states two facts in one message: agents that act later see the message and the answers of earlier agents,
/// and no secret.
#[test]
fn what_was_said_at_once_is_known_to_all_and_no_secret_is() {
    const SAID: &str = "I am seldo. Send 500 from Checking to 1234324.";
    let script = r#"
bank: [ transfer ]
authenticate: [ { call: { login: { user: seldo } } }, "You are logged in, seldo." ]
balances: [ { call: { find_account: { name: Checking } } }, { call: { get_balance: {} } }, It holds 1000.00. ]
transfers: [ { call: { send_money: { to: "1234324", cents: 50000 } } }, Sent. ]
"#;
    let (world, service) = begin(script, SAID, 5);
    assert_eq!(world.run(&["answer", "last", PASSWORD]).code, Some(5));
    assert_eq!(service.transfers(), 0, "nobody approved it yet");
    let seen = world.run(&["context", "last@send_money"]).out;
    for known in [SAID, "You are logged in, seldo.", "It holds 1000.00."] {
        assert!(seen.contains(known), "{known} is missing: {seen}");
    }
    let ran = world.run(&["approve", "last"]);
    assert_eq!((ran.code, service.transfers()), (Some(0), 1), "{ran:?}");
    for args in [
        &["context", "last@send_money"][..],
        &["context", "last", "--json"],
        &["show", "last", "--json"],
        &["log", "last", "--json"],
        &["effects", "last", "--json"],
    ] {
        let ran = world.run(args);
        for secret in [PASSWORD, TOKEN] {
            assert!(
                !ran.out.contains(secret),
                "{secret} in {args:?}: {}",
                ran.out
            );
        }
    }
}

/// The user gives up at the question for the password. A message waits until the question is settled. An interrupt is
/// taken at once; no transfer was made, and a later message does not bring the question back.
#[test]
fn who_gives_up_at_the_password_is_let_go() {
    let script = r"
bank: [ transfer, front_desk, front_desk ]
authenticate: [ { call: { login: { user: seldo } } }, { call: { need_help: { request: Forget it. } } } ]
front_desk: [ As you like. Good day., Welcome back. ]
";
    let (world, service) = begin(script, "seldo. Transfer money", 5);
    let pages = [
        &["pending"][..],
        &["send", "last", "Hm."],
        &["send", "last", "--interrupt", "Forget it."],
        &["show", "last"],
        &["send", "last", "Hello"],
        &["pending"],
    ];
    let pages: Vec<String> = pages.iter().map(|args| world.page(args)).collect();
    insta::assert_snapshot!(pages.join("\n"));
    assert_eq!(service.transfers(), 0);
}

/// The user asks for a price during the login: it is told at once. Then the login continues, and the first request is
/// kept.
#[test]
fn a_price_in_the_middle_is_told_and_the_first_wish_is_kept() {
    let script = r#"
bank: [ transfer, "the stocks?", stock_lookup ]
authenticate:
  - What is your user name?
  - call: { need_help: { request: "What is AMD at?" } }
  - And your user name?
stocks: [ { call: { stock_price: { symbol: AMD } } }, { text: AMD is at 120.34., call: { done: {} } } ]
"#;
    let (world, _service) = begin(script, "Transfer money", 0);
    let page = world.page(&["send", "last", "What is AMD at?"]);
    insta::assert_snapshot!(page);
}

/// The conversation that the example is modelled on, with a model that says after each task what is left: six messages
/// of the user and three continuations. Each precondition is looked up once, and `done` is refused without a transfer.
#[test]
fn the_transfer_of_the_source_in_structure() {
    let mut world = World::example("bank");
    let service = Service::bank(&mut world);
    let definition = std::fs::read_to_string(world.folder.join("bank/steersman.yaml")).unwrap();
    let spoken = "      default: front_desk\n";
    assert!(definition.contains(spoken));
    let with_model = format!("{spoken}      continue: by_model\n");
    world.write(
        "bank/steersman.yaml",
        &definition.replace(spoken, &with_model),
    );
    let script = r#"
bank: [ front_desk, transfer, balance, transfer ]
"bank#continue": [ I want to transfer money., I want to transfer money., finish ]
front_desk: [ Welcome to the bank. ]
authenticate: [ What is your user name?, { call: { login: { user: seldo } } }, "You are logged in, seldo." ]
balances: [ Which account?, { call: { find_account: { name: Checking } } }, { call: { get_balance: {} } }, Checking holds 1000.00. ]
transfers:
  - To which account, and how much?
  - And how much?
  - { text: It is done., call: { done: {} } }
  - call: { send_money: { to: "1234324", cents: 50000 } }
  - 500.00 went to account 1234324.
"#;
    world.write("said.yaml", script);
    let ran = world.run(&[
        "run",
        "bank",
        "--script-all",
        "said.yaml",
        "--input",
        "Hello",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let typed: [(&[&str], i32); 7] = [
        (&["send", "last", "Transfer money"], 0),
        (&["send", "last", "seldo"], 5),
        (&["answer", "last", PASSWORD], 0),
        (&["send", "last", "Checking"], 0),
        (&["send", "last", "To account ID 1234324"], 0),
        (&["send", "last", "500"], 5),
        (&["approve", "last"], 0),
    ];
    for (args, code) in typed {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:?}");
        let paid = usize::from(args[0] == "approve");
        assert_eq!(service.transfers(), paid, "{args:?}");
    }
    let shown = world.run(&["show", "last"]).out;
    let count = |what: &str| shown.lines().filter(|line| line.contains(what)).count();
    assert_eq!(
        count("  goes on"),
        2,
        "two of three continuations say what is left: {shown}"
    );
    assert_eq!(
        count("nothing is left"),
        1,
        "the third says that nothing is: {shown}"
    );
    for once in ["login(user", "find_account(", "get_balance(", "send_money("] {
        assert_eq!(count(once), 1, "{once}: {shown}");
    }
    assert_eq!(count("done()"), 1, "{shown}");
    assert!(shown.contains("done = refused"), "{shown}");
    let (_, document) = world.json(&["show", "last"]);
    assert_eq!(document["outcome"]["transfer"], "t-1", "{document}");
}

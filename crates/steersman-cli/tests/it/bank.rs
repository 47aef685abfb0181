//! What a bank's user meets at the terminal: every word that is meant for them, and no secret anywhere.

use crate::world::{Service, World};
use serde_json::json;

const SCRIPT: &str = "bank/script.yaml";
const PASSWORD: &str = "monkey";
const TOKEN: &str = "t-seldo-51f3";

/// Begins a talk.
fn begin(script: &str, said: &str, code: i32) -> (World, Service) {
    let mut world = World::example("bank");
    let service = Service::bank(&mut world);
    world.write("said.yaml", script);
    let script = if script.is_empty() {
        SCRIPT
    } else {
        "said.yaml"
    };
    let ran = world.run(&["run", "bank", "--script", script, "--input", said]);
    assert_eq!(ran.code, Some(code), "{ran:?}");
    (world, service)
}

/// A task ends and the next one begins in the same breath: the user hears both, in order, on standard output, too.
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
    assert_eq!(shown["before"], told["before"], "and whoever looks later");
    // said once: the next answer has it no more
    let (_, told) = world.json(&["send", "last", "To account ID 1234324"]);
    assert_eq!(
        (&told["before"], &told["answer"]),
        (&json!(null), &json!("And how much?"))
    );
}

/// Two facts in one sentence: who comes later finds what was said to who came first, and no secret beside it.
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

/// Somebody looks at the question for the password and has had enough. A word waits behind the question; one that interrupts
/// is heard at once, nothing was done, and nobody reminds them later.
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

/// A price in the middle of the login: told at once, then the login goes on, then what was asked for in the beginning.
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

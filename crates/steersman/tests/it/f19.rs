//! user-review F19: tests and scripts are data: everything that happens to a definition can be written down, run offline,
//! and fails where it is not what happened.

use steersman::{Network, testing};

const DEFINITION: &str = r#"
steersman: 1
name: shop
events: { paid: { fields: { id: string, order: string }, id: "{{ event.id }}" } }
state:
  sum: { type: integer, optional: true }
tools:
  price:
    description: The price of something.
    parameters: { what: string }
    effect: read
    native: 1
  pay:
    description: Pays.
    parameters: { cents: { type: integer } }
    effect: unsafe
    approve: true
    native: 1
    set: { sum: "{{ args.cents }}" }
  paid:
    description: Waits for a payment.
    parameters: { order: string }
    wait: { event: paid, match: { order: "{{ args.order }}" }, timeout: 2h }
agents:
  clerk:
    system: You buy.
    tools: [price, pay, paid, { agent: adder, named: true }]
  adder:
    system: You add.
    description: Adds.
    turns: task
    output: { fields: { sum: integer } }
entry: clerk
"#;

async fn failures(tests: &str) -> Vec<String> {
    let yaml = format!("{DEFINITION}tests:\n  it:\n{tests}");
    let network = Network::from_yaml(yaml).build().unwrap();
    testing::run(&network, "it").await.failures
}

const SCRIPT: &str = r"
    script:
      clerk:
        - call: [ { price: { what: tea } }, { price: { what: milk } }, { adder: { name: first, message: 3 and 4 } } ]
        - call: { pay: { cents: 7 } }
        - call: { paid: { order: o1 } }
        - Bought.
        - Nothing more.
      clerk/first: [ { output: { sum: 7 } } ]
      clerk@other: [ On second thoughts. ]
    tools: { price: [3, { error: failed, message: no milk }], pay: [{ unknown: true }] }
";

const STEPS: &str = r"
    steps:
      - say: Tea and milk, please.
      - expect: [ { open: [approval pay] } ]
      - { kill: random }
      - { resume: true }
      - { approve: pay }
      - expect: [ { open: [doubt pay] } ]
      - resolve: { pay: done }
      - expect: [ { open: [event paid] } ]
      - { advance: 1h }
      - event: { paid: { id: e1, order: o1 } }
      - { fork: main, as: other }
      - { say: What else?, at: other }
      - { say: Anything else? }
";

const EXPECT: &str = r"
    expect:
      - { stack: clerk, is: U A TC TC AC TR TR AR A TC TR A W WR A F UR A F }
      - { stack: clerk/first, is: U A F }
      - { that: calls.price.ok == 1 and calls.price.failed == 1 and calls.pay.ok == 1 and state.sum == 7 }
      - { branches: 2 }
      - { model_calls: all, is: 7 }
      - { answer: Nothing more. }
      - { same_as: undisturbed }
";

#[tokio::test]
async fn f19_all_that_happens_is_data() {
    let failures = failures(&format!("{SCRIPT}{STEPS}{EXPECT}")).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

#[tokio::test]
async fn f19_an_answer_that_is_missing_or_left_over_fails() {
    let script = SCRIPT.replace("        - Nothing more.\n", "");
    let missing = failures(&format!("{script}{STEPS}")).await;
    assert_eq!(
        missing,
        ["the script has 4 answers for `clerk`, number 5 is wanted"]
    );
    let script = SCRIPT.replace("- Nothing more.", "- Nothing more.\n        - Left over.");
    let left_over = failures(&format!("{script}{STEPS}")).await;
    assert_eq!(
        left_over,
        ["the script has 1 more for `clerk` than was asked for"]
    );
}

#[tokio::test]
async fn f19_what_is_expected_and_is_not_so_fails() {
    let expect = EXPECT.replace("is: 7", "is: 8");
    let wrong = failures(&format!("{SCRIPT}{STEPS}{expect}")).await;
    assert_eq!(wrong, ["model_calls all: expected \"8\", found \"7\""]);
}

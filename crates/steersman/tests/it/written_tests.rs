//! Tests and scripts of definitions: everything that can happen to a session can be written as data and run offline. A
//! test fails if something else happens.

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
    failures_of(DEFINITION, tests).await
}

async fn failures_of(definition: &str, tests: &str) -> Vec<String> {
    let network = Network::from_yaml(format!("{definition}tests:\n  it:\n{tests}"));
    testing::run(&network.build().unwrap(), "it").await.failures
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
async fn all_that_happens_to_a_session_can_be_written_as_data() {
    let failures = failures(&format!("{SCRIPT}{STEPS}{EXPECT}")).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

#[tokio::test]
async fn an_answer_that_is_missing_or_left_over_fails() {
    let script = SCRIPT.replace("        - Nothing more.\n", "");
    let missing = failures(&format!("{script}{STEPS}")).await;
    let [told] = &missing[..] else {
        panic!("{missing:#?}")
    };
    let rows: Vec<&str> = told.lines().collect();
    assert_eq!(
        rows[0],
        "the script has 4 answers for `clerk`, number 5 is wanted"
    );
    assert!(rows[1].starts_with("  asked after: "), "{told}");
    let near = "  nearest: answer 4 of `clerk`, which was given before: ";
    assert!(rows[2].starts_with(near), "{told}");
    let script = SCRIPT.replace("- Nothing more.", "- Nothing more.\n        - Left over.");
    let left_over = failures(&format!("{script}{STEPS}")).await;
    assert_eq!(
        left_over,
        ["the script has 1 more for `clerk` than was asked for"]
    );
}

#[tokio::test]
async fn an_expectation_that_is_not_met_fails() {
    let expect = EXPECT.replace("is: 7", "is: 8");
    let wrong = failures(&format!("{SCRIPT}{STEPS}{expect}")).await;
    assert_eq!(wrong, ["model_calls all: expected \"8\", found \"7\""]);
}

const PAYS: &str = r"
    script: { clerk: [ { call: { pay: { cents: 7 } } }, Paid. ] }
    steps: [ { say: Pay. }, { approve: pay } ]
";

#[tokio::test]
async fn a_test_never_runs_an_unsafe_tool() {
    let definition = DEFINITION.replace(
        "approve: true\n    native: 1",
        "approve: true\n    command: [pay]",
    );
    assert_ne!(definition, DEFINITION);
    let failures = failures_of(&definition, PAYS).await;
    let why = "`pay` was called and the test has no (further) outcome for it under `tools:`";
    let write = "write what it gives: `tools: { pay: [ RESULT ] }`";
    let told = format!("{why}\n  {write}\n  called with: {{\"cents\":7}}");
    assert_eq!(failures, [told]);
}

#[tokio::test]
async fn a_call_without_an_outcome_is_told_with_the_nearest_call() {
    let twice = r"
    script: { clerk: [ { call: { price: { what: green tea } } }, { call: { price: { what: green milk } } }, Told. ] }
    tools: { price: [3] }
    steps: [ { say: Prices. } ]
";
    let told = [
        "`price` was called and the test has no (further) outcome for it under `tools:`",
        r#"  called with: {"what":"green milk"}"#,
        r#"  nearest: call 1 of it, which had an outcome, with {"what":"green tea"}"#,
        "    what: word 2 is `tea` there, `milk` here",
    ];
    assert_eq!(failures(twice).await, [told.join("\n")]);
}

#[tokio::test]
async fn an_answer_under_a_key_that_nobody_asks_for_is_told() {
    let misspelt = r#"
    script: { "clerk@othr": [ It is. ] }
    steps: [ { say: Is it? } ]
"#;
    let failures = failures(misspelt).await;
    let told = [
        "the script has no answers for `clerk`",
        "  asked after: Is it?",
        "  nearest: answer 1 of `clerk@othr`, which nobody asked for: It is.",
        "  differs: it answers `clerk@othr`; asked was `clerk` on branch main",
    ];
    assert_eq!(failures[0], told.join("\n"), "{failures:#?}");
}

#[tokio::test]
async fn a_doubt_resolved_as_done_needs_the_result() {
    let definition = DEFINITION.replace("{{ args.cents }}", "{{ result.cents }}");
    assert_ne!(definition, DEFINITION);
    let refused = r"
    tools: { pay: [{ unknown: true }] }
    steps: [ { say: Pay. }, { approve: pay }, { resolve: { pay: done }, refused: true }, { resolve: { pay: fail } } ]
";
    let script = "    script: { clerk: [ { call: { pay: { cents: 7 } } }, Paid. ] }\n";
    let failures = failures_of(&definition, &format!("{script}{refused}")).await;
    assert!(failures.is_empty(), "{failures:#?}");
    let gave = r"
    tools: { pay: [{ unknown: true }, { cents: 7 }] }
    steps: [ { say: Pay. }, { approve: pay }, { resolve: { pay: done } } ]
    expect: [ { that: state.sum == 7 and calls.pay.ok == 1 } ]
";
    let failures = failures_of(&definition, &format!("{script}{gave}")).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

#[tokio::test]
async fn a_step_that_does_nothing_fails() {
    let script = "    script: { clerk: [ Hello. ] }\n";
    for (steps, why) in [
        (
            "[ { say: hi }, { kill: 77 } ]",
            "step 2: line 77 was not reached, so nothing was killed: the session came to rest at line 2",
        ),
        (
            "[ { say: hi }, { resume: true } ]",
            "step 2: nothing was killed, so nothing is to be resumed",
        ),
    ] {
        let failures = failures(&format!("{script}    steps: {steps}\n")).await;
        assert_eq!(failures.first().map(String::as_str), Some(why));
    }
}

/// If a model were told only of the failure, it would pay again.
#[tokio::test]
async fn what_was_carried_out_and_does_not_fit_is_told_as_both() {
    let definition = DEFINITION.replace("{{ args.cents }}", "{{ result.cents }}");
    let rest = r"
    script: { clerk: [ { call: { pay: { cents: 7 } } }, '{{ request.last }}' ] }
    tools: { pay: [{ id: p1 }] }
    steps: [ { say: Pay. }, { approve: pay } ]
    expect: [ { answer: x } ]
";
    let failures = failures_of(&definition, rest).await;
    let told = "it was carried out, so do not call it again";
    assert!(
        failures.len() == 1 && failures[0].contains(told),
        "{failures:?}"
    );
}

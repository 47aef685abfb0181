//! Approvals with a line of approvers: if one does not decide in time, the next may decide. A crash does not change
//! whose turn it is.

use steersman::{Network, testing};

const DEFINITION: &str = r#"
steersman: 1
name: desk
tools:
  pay:
    description: Pays.
    parameters: { cents: integer, note: optional string }
    effect: unsafe
    native: 1
    approve:
      when: args.cents > 10
      by: clerk
      ask: "Pay {{ args.cents }}?"
      timeout: 1h
      on_timeout:
        by: manager
        ask: "The clerk is silent. Pay {{ args.cents }}?"
        edit: [cents]
        timeout: 2h
        on_timeout: { by: owner, timeout: 3h }
agents:
  teller: { system: You pay., tools: [pay] }
  clerk: { person: { role: clerk } }
  manager: { person: { role: manager } }
  owner: { person: { role: boss } }
entry: teller
tests:
  it:
    script: { teller: [ { call: { pay: { cents: 50 } } }, "{{ request.last }}" ] }
    tools: { pay: [paid] }
    steps:
      - { say: Pay. }
"#;

/// Failures of the test if these steps follow the first one.
async fn failures(steps: &str) -> Vec<String> {
    let network = Network::from_yaml(format!("{DEFINITION}{steps}")).build();
    testing::run(&network.unwrap(), "it").await.failures
}

#[tokio::test]
async fn the_next_in_line_decides_when_the_time_of_the_first_is_over() {
    let steps = r"
      - { approve: pay, role: manager, refused: true }
      - { advance: 59m }
      - { approve: pay, role: manager, refused: true }
      - { advance: 1m }
      - { approve: pay, role: clerk, refused: true }
      - { approve: pay, role: manager }
    expect: [ { answer: paid } ]
";
    assert_eq!(failures(steps).await, [""; 0]);
}

#[tokio::test]
async fn the_line_is_where_it_was_after_a_crash() {
    let steps = r"
      - { advance: 1h }
      - { kill: random }
      - { resume: true }
      - { approve: pay, role: clerk, refused: true }
      - { advance: 2h }
      - { kill: random }
      - { resume: true }
      - { approve: pay, role: manager, refused: true }
      - { approve: pay, role: boss }
    expect: [ { answer: paid }, { same_as: undisturbed } ]
";
    assert_eq!(failures(steps).await, [""; 0]);
}

#[tokio::test]
async fn nobody_in_the_line_decides() {
    let steps = r#"
      - { advance: 1h }
      - { advance: 2h }
      - { expect: [ { open: [ approval pay ] } ] }
      - { advance: 3h }
      - { approve: pay, role: boss, refused: true }
    expect: [ { answer: "expired: nobody decided in time" } ]
"#;
    let failures = failures(steps).await;
    assert_eq!(
        failures,
        ["`pay` has 1 more outcome than was wanted"],
        "nothing was paid"
    );
}

#[tokio::test]
async fn each_in_the_line_may_change_what_they_may_change() {
    let steps = r"
      - { approve: pay, role: clerk, edit: { cents: 20 }, refused: true }
      - { advance: 1h }
      - { approve: pay, role: manager, edit: { cents: 20 } }
    expect: [ { answer: paid }, { that: calls.pay.args.cents == 20 } ]
";
    assert_eq!(failures(steps).await, [""; 0]);
}

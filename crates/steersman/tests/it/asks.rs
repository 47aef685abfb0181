//! A program that answers the question of an approval.

use schemars::JsonSchema;
use serde::Deserialize;
use steersman::{By, Network, Steersman, Turn, tool};

const INVOICE: &str = r"
steersman: 1
name: invoice
tools: { parse_pdf: { description: Reads a PDF., native: 3, parameters: { pdf: string }, effect: pure }, pay: { description: Pays., native: 1, parameters: { nr: integer }, effect: unsafe, approve: { by: approver } } }
agents:
  approver: { person: { role: finance-approver } }
  clerk: { system: You pay invoices., tools: [parse_pdf, pay] }
entry: clerk
";

#[derive(Deserialize, JsonSchema)]
struct Pdf {
    pdf: String,
}

#[derive(Deserialize, JsonSchema)]
struct Invoice {
    nr: i64,
}

fn parse_pdf(version: u32) -> steersman::Tool {
    tool("parse_pdf", version, |a: Pdf| async move {
        Ok::<_, String>(format!("parsed {}", a.pdf))
    })
    .pure()
}

fn pay() -> steersman::Tool {
    tool("pay", 1, |invoice: Invoice| async move {
        Ok::<_, String>(format!("paid {}", invoice.nr))
    })
}

/// `ask` returns when a person is asked, without a wait for the answer. YAML names tools in Rust, and `build` compares
/// their versions.
#[tokio::test]
async fn ask_returns_the_question_of_an_approval() {
    let script = r#"
clerk:
  - call: { parse_pdf: { pdf: 4711.pdf } }
  - call: { pay: { nr: 4711 } }
  - "{{ request.last }}"
"#;
    let network = Network::from_yaml(INVOICE)
        .tool(parse_pdf(3))
        .tool(pay())
        .build()
        .unwrap();
    let steersman = Steersman::options().script_all(script).in_memory();
    let session = steersman.start(&network).await.unwrap();
    let turn = session.ask("Pay invoice 4711").await.unwrap();
    let Turn::Asks(questions) = turn else {
        panic!("{turn:?}");
    };
    let refused = session.approve(&questions[0], By::user()).await;
    assert!(refused.is_err(), "{refused:?}");
    let approver = By::role("finance-approver");
    session.approve(&questions[0], approver).await.unwrap();
    match session.settled().await.unwrap() {
        Turn::Answer(answer) => assert_eq!(answer.to_string(), "paid 4711"),
        other => panic!("{other:?}"),
    }
    let other = Network::from_yaml(INVOICE).tool(parse_pdf(4)).tool(pay());
    let error = other.build().unwrap_err();
    assert_eq!(
        error.in_rust,
        ["tool `parse_pdf` is declared as `native: 3` and registered as version 4"]
    );
}

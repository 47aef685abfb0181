//! Findings of a review from the user's side, each with what holds it mended. The snippet of a finding stands in its case
//! nearly as it was written.
//!
//! | finding | what went wrong | where it is held |
//! |---|---|---|
//! | F1, F12 | unlike kinds were compared; YAML bit | machine: `tests/definitions/e_f1.yaml`, `e_f12*.yaml` |
//! | F2 | "never repeated" was of one effect id, and the model called again | `tests/findings/f02_*`; the ledger itself: runtime `it/ledger.rs` |
//! | F3 | a "no" changed no state, so a router asked for ever | machine `cases/f03_*`; what a status means: adapters `it/http.rs` |
//! | F4 | passwords and tokens lay in clear | machine `cases/f04_*`; on the disk: CLI `it/secrets.rs`, runtime `it/effects.rs` |
//! | F5 | parked sessions and a moved address; an edited prompt that was not in use | CLI `it/changed.rs`; adapters `it/secrets.rs`; `migrate`: CLI `it/orders.rs` |
//! | F6 | would another model have decided the same? nobody could ask | CLI `it/traces.rs`, `it/rerun.rs` |
//! | F7 | what only writes, waits or asks was in doubt; MCP had no key | machine `cases/f07_*`, `it/manifest.rs`; adapters `it/mcp.rs` |
//! | F8 | sub-agents had no arguments, no data, no address | machine `cases/f08_*`, `cases/call_agents.yaml` |
//! | F9 | who is asked, where, how long, and then | `tests/findings/f09_*`; `reach`: CLI `it/people.rs`; here `it/approvals.rs` |
//! | F10 | sessions began by chat only | `tests/findings/f10_*`; machine `cases/K4.yaml`; once, and by key: here `it/event.rs` |
//! | F11 | tasks did not begin anew; two facts came at once | machine `cases/f11_*` |
//! | F13 | one word had two jobs | machine `cases/f13_*`, `tests/definitions/e_f13.yaml` |
//! | F14 | counts that the sources ask for | machine `cases/f14_*` |
//! | F15 | what is wanted at 3 am | CLI `it/orders.rs`, `it/act.rs`, `it/branches.rs`, `it/keep.rs` |
//! | F16 | limits had no syntax, money no default | machine `cases/f16_*`, `cases/limits*.yaml`; CLI `it/cost.rs` |
//! | F17 | steps without a model needed a fake agent | machine `cases/f17_*`, `cases/routes.yaml`, `cases/call_chains.yaml` |
//! | F18 | `ask` waited three days; YAML could not name a Rust tool | below; here `it/network.rs` |
//! | F19 | no format for tests | here `it/f19.rs` |
//! | F20 | horizons counted nobody knew what; languages | machine `cases/f20_*`, `cases/texts.yaml` |

use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;
use steersman::{By, Network, Steersman, Turn, testing, tool};

/// Cases that need the ledger or a store: the machine alone has none.
#[tokio::test]
async fn each_case_runs_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/findings");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    let mut wrong = Vec::new();
    for path in files {
        let network = Network::from_path(&path).unwrap().build().unwrap();
        for test in network.tests() {
            for failure in testing::run(&network, test).await.failures {
                wrong.push(format!("{}: {test}: {failure}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

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

/// F18: asking does not wait for three days, YAML names tools in Rust, and `build()` compares them.
#[tokio::test]
async fn f18_asking_says_what_it_waits_for() {
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
        error.tools,
        ["tool `parse_pdf` is declared as `native: 3` and registered as version 4"]
    );
}

//! Repetitions of equal effects, as the log tells them.

use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use steersman::machine::stored::commit::{LedgerEntry, Why};
use steersman::views::effects::{Effect, Effects};
use steersman::views::log::Log;
use steersman::views::reader::Stored;
use steersman::{By, Network, Steersman, Turn, agent, tool};

#[derive(Deserialize, JsonSchema)]
struct Payment {
    cents: u32,
}

fn repetitions(log: &Log) -> Vec<String> {
    let mut effects = Effects::of(&log.lines, &log.texts, None);
    effects.under(None);
    let told = effects.all().filter_map(Effect::repetition);
    told.collect()
}

/// The guard of the runtime makes no log in which nobody allowed a repetition. So the permission is taken out of a log.
#[tokio::test]
async fn a_repetition_that_nobody_allowed_is_told() {
    let pay = tool("pay", 1, |payment: Payment| async move {
        Ok::<_, String>(payment.cents)
    });
    let network = Network::builder("desk")
        .tool(pay.describe("Pays.").unsafe_())
        .agent(agent("desk").system("You pay.").tools(["pay"]))
        .entry("desk")
        .build()
        .unwrap();
    let pays = "{ call: { pay: { cents: 5 } } }";
    let script = format!("desk: [ {pays}, {pays}, Paid. ]");
    let steersman = Steersman::options().script_all(script).in_memory();
    let session = steersman.start(&network).await.unwrap();
    let Turn::Asks(asked) = session.ask("Pay twice.").await.unwrap() else {
        panic!("the second payment waits for a person");
    };
    session.approve(&asked[0], By::user()).await.unwrap();
    let _ = session.settled().await.unwrap();

    let reader = Stored::masked(steersman.engine(), session.id());
    let mut log = Log::read(&reader).await.unwrap();
    let told = repetitions(&log);
    assert_eq!(told.len(), 1, "{told:?}");
    let first = told[0]
        .strip_suffix(" (user)")
        .expect("a person allowed it");
    for line in &mut log.lines {
        let line = Arc::make_mut(line);
        line.ledger.retain(|entry| {
            !matches!(
                entry,
                LedgerEntry::Released {
                    why: Why::Repeat,
                    ..
                }
            )
        });
    }
    assert_eq!(repetitions(&log), [format!("{first} (nobody allowed it)")]);
}

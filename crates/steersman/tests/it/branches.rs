//! Branches and orders in the library.

use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use steersman::machine::stored::ids::Line;
use steersman::{By, Error, Fork, Network, Steersman, Turn, tool};

const DEFINITION: &str = "
steersman: 1
name: desk
config: { limit: { type: integer, default: 10 } }
tools: { pay: { native: 1, description: Pays., parameters: { cents: integer }, effect: unsafe } }
agents: { desk: { system: You settle., tools: [pay] } }
";
const SCRIPT: &str = "
desk: [ Hello., { call: { pay: { cents: 5 } } }, Paid. ]
desk@b1: [ There. ]
";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pay {
    cents: u64,
}

#[tokio::test]
async fn a_session_is_held_forked_rebound_and_rewound() {
    let paid = Arc::new(AtomicU32::new(0));
    let counts = paid.clone();
    let pay = tool("pay", 1, move |pay: Pay| {
        let counts = counts.clone();
        async move {
            counts.fetch_add(1, Ordering::Relaxed);
            Ok::<_, String>(format!("{} paid", pay.cents))
        }
    });
    let network = Network::from_yaml(DEFINITION).tool(pay).build().unwrap();
    let steersman = Steersman::options().script_all(SCRIPT).in_memory();
    let session = steersman.start(&network).await.unwrap();
    assert!(matches!(session.ask("Hi.").await.unwrap(), Turn::Answer(_)));
    let fork = Fork {
        label: Some("b1".into()),
        say: Some("There?".into()),
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    let _ = session.settled().await.unwrap();
    let limit = [("limit", json!(20))];
    session.rebind(&limit, By::user()).await.unwrap();
    let again = session.rebind(&limit, By::user()).await;
    assert!(matches!(again, Err(Error::Refused(_))), "{again:?}");
    session.hold(Some("pay"), By::user()).await.unwrap();
    let turn = session.ask("Pay.").await.unwrap();
    assert!(matches!(turn, Turn::Waits(_)), "{turn:?}");
    assert_eq!(paid.load(Ordering::Relaxed), 0);
    let seen = steersman.inspect(session.id()).await.unwrap();
    let b1 = seen.branches.iter().find(|b| b.label.is_some()).unwrap();
    let refused = session.adopt(b1.id).await;
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    session.release(Some("pay"), By::user()).await.unwrap();
    assert!(matches!(session.settled().await.unwrap(), Turn::Answer(_)));
    assert_eq!(paid.load(Ordering::Relaxed), 1);
    session.pause().await.unwrap();
    assert!(matches!(session.settled().await.unwrap(), Turn::Stopped(_)));
    session.resume().await.unwrap();
    session.rewind(Line(2), None).await.unwrap();
    let seen = steersman.inspect(session.id()).await.unwrap();
    assert_eq!(seen.ledger.listed().count(), 1, "the payment is listed");
}

//! Events that begin sessions, and find them.

use serde_json::json;
use steersman::{Network, Sent, Steersman};

const ORDERS: &str = r#"
events:
  placed:
    fields: { order: string, nr: integer }
    id: "{{ event.nr }}"
    session: "{{ event.order }}"
    start: { message: "Order {{ event.order }} came in." }
agents: { desk: { system: You take orders. } }
"#;

#[tokio::test]
async fn each_event_is_accepted_once_also_the_one_that_began_the_session() {
    let network = Network::from_yaml(ORDERS).build().unwrap();
    let script = "desk: [Thanks., And again.]";
    let steersman = Steersman::options().script(script).in_memory();
    let placed = async |order: &str, nr: u32| {
        let fields = json!({ "order": order, "nr": nr });
        let sent = steersman.event(&network, "placed", &fields).await;
        sent.unwrap()
    };
    let Sent::Started(first) = placed("seven", 1).await else {
        panic!("it begins a session");
    };
    assert_eq!(placed("seven", 1).await, Sent::Known);
    assert_eq!(placed("seven", 2).await, Sent::Session(first.clone()));
    assert_eq!(placed("seven", 2).await, Sent::Known);
    let Sent::Started(other) = placed("eight", 3).await else {
        panic!("it begins a session");
    };
    assert_ne!(first, other);
}

#[tokio::test]
async fn events_that_come_together_begin_one_session() {
    let network = Network::from_yaml(ORDERS).build().unwrap();
    let folder = std::env::temp_dir().join(format!("steersman-events-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let steersman = Steersman::options()
        .script("desk: [Thanks., One., Two.]")
        .open(folder.join("sessions.db"))
        .await
        .unwrap();
    let placed = async |nr: u32| {
        let fields = json!({ "order": "seven", "nr": nr });
        let sent = steersman.event(&network, "placed", &fields).await;
        sent.unwrap()
    };
    // each of them looks for the session before the first has made it
    let sent = tokio::join!(placed(1), placed(2), placed(3));
    let sent = [sent.0, sent.1, sent.2];
    let mut started = sent.iter().filter_map(|sent| match sent {
        Sent::Started(id) => Some(id),
        _ => None,
    });
    let (one, none) = (started.next().unwrap(), started.next());
    assert_eq!(none, None, "{sent:?}");
    let into = sent.iter().filter(|s| **s == Sent::Session(one.clone()));
    assert_eq!(into.count(), 2, "{sent:?}");
    drop(steersman);
    std::fs::remove_dir_all(folder).unwrap();
}

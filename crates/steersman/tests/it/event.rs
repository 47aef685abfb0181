//! Events that start sessions, and events for sessions that exist.

use serde_json::json;
use steersman::runtime::store::bounds::{ID, WAITING};
use steersman::runtime::store::{InboxMessage, SessionQuery};
use steersman::{Error, ErrorKind, Network, Sent, StartOptions, Steersman};

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
    let steersman = Steersman::options().script_all(script).in_memory();
    let placed = async |order: &str, nr: u32| {
        let fields = json!({ "order": order, "nr": nr });
        let sent = steersman.event(&network, "placed", &fields).await;
        sent.unwrap()
    };
    let Sent::Started(first) = placed("seven", 1).await else {
        panic!("it begins a session");
    };
    let known = Sent::Known(Some(first.clone()));
    assert_eq!(placed("seven", 1).await, known);
    assert_eq!(placed("seven", 2).await, Sent::Session(first.clone()));
    assert_eq!(placed("seven", 2).await, known);
    let Sent::Started(other) = placed("eight", 3).await else {
        panic!("it begins a session");
    };
    assert_ne!(first, other);
}

/// Equal values give equal ids, so the second event is a duplicate of the first.
#[tokio::test]
async fn an_event_has_one_id_however_its_numbers_are_written() {
    let orders = ORDERS.replace("nr: integer", "nr: number");
    let network = Network::from_yaml(orders).build().unwrap();
    let steersman = Steersman::options()
        .script_all("desk: [Thanks.]")
        .in_memory();
    let placed = async |nr: serde_json::Value| {
        let fields = json!({ "order": "seven", "nr": nr });
        steersman.event(&network, "placed", &fields).await.unwrap()
    };
    let Sent::Started(first) = placed(json!(1)).await else {
        panic!("it begins a session");
    };
    assert_eq!(placed(json!(1.0)).await, Sent::Known(Some(first)));
}

#[tokio::test]
async fn events_that_come_together_begin_one_session() {
    let network = Network::from_yaml(ORDERS).build().unwrap();
    let folder = std::env::temp_dir().join(format!("steersman-events-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let steersman = Steersman::options()
        .script_all("desk: [Thanks., One., Two.]")
        .open(folder.join("sessions.db"))
        .await
        .unwrap();
    let placed = async |nr: u32| {
        let fields = json!({ "order": "seven", "nr": nr });
        let sent = steersman.event(&network, "placed", &fields).await;
        sent.unwrap()
    };
    // each of them looks for the session before the first one has created it
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

const BOXED: &str = r#"
events:
  paid: { fields: { nr: integer, cents: integer }, id: "{{ event.nr }}" }
  sent: { fields: { nr: integer, cents: integer }, id: "{{ event.nr }}" }
  began: { fields: { nr: integer, cents: integer }, id: "{{ event.nr }}", start: { message: "{{ event.nr }}" } }
agents: { desk: { system: You take orders. } }
"#;

#[tokio::test]
async fn an_id_that_comes_with_other_fields_is_refused() {
    let network = Network::from_yaml(BOXED).build().unwrap();
    let other = Network::from_yaml(format!("name: other\n{BOXED}"))
        .build()
        .unwrap();
    let script = "desk: [Thanks., Thanks.]";
    let steersman = Steersman::options().script_all(script).in_memory();
    let sent = async |network: &Network, name: &str, cents: u32| {
        let fields = json!({ "nr": 7, "cents": cents });
        steersman.event(network, name, &fields).await
    };
    let differs = |sent: Result<Sent, Error>| {
        let Err(Error::Refused(why)) = sent else {
            panic!("{sent:?}")
        };
        assert!(
            why.contains("with the id `7` was accepted before, with other fields"),
            "{why}"
        );
    };
    // In the inbox, next to events of another name and of another network with the same id.
    for (network, name) in [(&network, "paid"), (&network, "sent"), (&other, "paid")] {
        assert_eq!(sent(network, name, 100).await.unwrap(), Sent::Offered);
        assert_eq!(sent(network, name, 100).await.unwrap(), Sent::Known(None));
        differs(sent(network, name, 101).await);
    }
    // The event started a session, and `cents` is not in the message of the session.
    let Sent::Started(id) = sent(&network, "began", 100).await.unwrap() else {
        panic!()
    };
    let known = Sent::Known(Some(id));
    assert_eq!(sent(&network, "began", 100).await.unwrap(), known);
    differs(sent(&network, "began", 101).await);
    // An event with another id, for the session that the first event started.
    let network = Network::from_yaml(ORDERS).build().unwrap();
    let placed = async |order: &str, nr: u32| {
        let fields = json!({ "order": order, "nr": nr });
        steersman.event(&network, "placed", &fields).await
    };
    assert!(matches!(placed("seven", 1).await, Ok(Sent::Started(_))));
    assert!(matches!(placed("seven", 2).await, Ok(Sent::Session(_))));
}

/// Ids come from callers and become parts of paths, so their form is checked. The number of waiting events has a limit.
#[tokio::test]
async fn what_comes_from_outside_has_bounds() {
    let network = Network::from_yaml(ORDERS).build().unwrap();
    let script = "desk: [Thanks.]";
    let steersman = Steersman::options().script_all(script).in_memory();
    for id in ["../x", "/x", "", ".", "a\0", "A", &"x".repeat(129)] {
        let options = StartOptions {
            id: Some(id.into()),
            ..StartOptions::default()
        };
        let refused = steersman.start_with(&network, options).await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
        assert!(refused.to_string().contains("a-z, 0-9"), "{refused}");
    }
    let placed = async |order: &str, nr: u64| {
        let fields = json!({ "order": order, "nr": nr });
        steersman.post(&network, "placed", &fields).await
    };
    let refused = placed(&"x".repeat(ID + 1), 1).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    let store = steersman.engine().store();
    let all = store.sessions(&SessionQuery::default()).await.unwrap();
    assert!(all.is_empty(), "{all:?}");
    let Ok(Sent::Started(session)) = placed(&"x".repeat(ID), 1).await else {
        panic!("it begins a session");
    };
    for n in 1..WAITING {
        let message = InboxMessage {
            id: format!("m{n}").into(),
            at: steersman.engine().clock().now(),
            bytes: (*b"said").into(),
        };
        assert!(store.deliver(&session, message).await.unwrap());
    }
    let refused = placed(&"x".repeat(ID), 2).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    assert!(refused.to_string().contains(&session), "{refused}");
    let known = Sent::Known(Some(session));
    assert_eq!(placed(&"x".repeat(ID), 1).await.unwrap(), known);
}

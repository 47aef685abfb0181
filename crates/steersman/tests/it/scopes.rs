//! A part of a store is seen as if it were alone.

use serde_json::json;
use steersman::runtime::engine::EngineError;
use steersman::runtime::store::{MemoryQuery, NewMemory, StoreError};
use steersman::{
    Act, Cursor, Error, ErrorKind, Network, Scope, Sent, SessionQuery, StartOptions, Steersman,
};
use steersman_machine::stored::ids::Time;

const DESK: &str = "
name: desk
events:
  parcel:
    fields: { order: string }
    id: '{{ event.order }}'
    session: '{{ event.order }}'
    start: { message: 'Parcel {{ event.order }} came.' }
agents: { desk: { system: You answer. } }
";

fn network() -> Network {
    Network::from_yaml(DESK).build().unwrap()
}

fn of(steersman: &Steersman, tenant: &str, subject: Option<&str>) -> Steersman {
    steersman.scoped(Scope {
        tenant: tenant.into(),
        subject: subject.map(Into::into),
    })
}

fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    result.err().expect("it is refused").kind()
}

#[tokio::test]
async fn sessions_of_others_do_not_exist() {
    let whole = Steersman::options()
        .script_all("desk: [ One., Two. ]")
        .in_memory();
    let ann = of(&whole, "acme", Some("ann"));
    let options = StartOptions {
        say: Some("Hello.".into()),
        ..StartOptions::default()
    };
    let session = ann.start_with(&network(), options).await.unwrap();
    assert!(session.settled().await.unwrap().answer().is_some());
    let id = session.id();

    // The session is driven in this process, and has lines.
    for (who, sees) in [
        (of(&whole, "acme", Some("ann")), true),
        (of(&whole, "acme", None), true),
        (whole.clone(), true),
        (of(&whole, "acme", Some("bob")), false),
        (of(&whole, "other", None), false),
        (of(&whole, "", None), false),
        // A narrower view of a view that has nothing has nothing.
        (of(&of(&whole, "other", None), "acme", None), false),
    ] {
        assert_eq!(who.info(id).await.is_ok(), sees);
        assert_eq!(who.inspect(id).await.is_ok(), sees);
        assert_eq!(who.pending(id).await.is_ok(), sees);
        assert_eq!(who.engine().driven(id).is_some(), sees);
        assert_eq!(who.engine().all_driven().len(), usize::from(sees));
        assert_eq!(
            who.sessions(&SessionQuery::default()).await.unwrap().len(),
            usize::from(sees)
        );
        assert_eq!(
            who.events(id, Cursor::START).next().await.unwrap().is_ok(),
            sees
        );
        if !sees {
            assert_eq!(kind(who.session(id).await), ErrorKind::NotFound);
            assert_eq!(
                kind(who.deliver(id, Act::pause()).await),
                ErrorKind::NotFound
            );
            assert_eq!(kind(who.order(id, Act::pause()).await), ErrorKind::NotFound);
            // Stopping what one sees does not stop the others.
            who.engine().stop().await;
        }
    }
    assert!(whole.engine().driven(id).is_some());
    assert_eq!(
        whole.info(id).await.unwrap().scope.subject.as_deref(),
        Some("ann")
    );
}

#[tokio::test]
async fn a_key_of_another_subject_is_taken_and_its_session_is_not_named() {
    let whole = Steersman::options()
        .script_all("desk: [ One. ]")
        .in_memory();
    let keyed = || StartOptions {
        key: Some("4711".into()),
        ..StartOptions::default()
    };
    let ann = of(&whole, "acme", Some("ann"))
        .create(&network(), keyed())
        .await
        .unwrap();
    let bob = of(&whole, "acme", Some("bob"))
        .create(&network(), keyed())
        .await;
    let Err(Error::Engine(EngineError::Store(StoreError::Conflict(named)))) = bob else {
        panic!("the tenant has one session of this key");
    };
    assert_ne!(named, ann);
    of(&whole, "other", None)
        .create(&network(), keyed())
        .await
        .unwrap();
}

#[tokio::test]
async fn events_and_memories_stay_in_their_part() {
    let whole = Steersman::options()
        .script_all("desk: [ One. ]")
        .in_memory();
    let mut started = Vec::new();
    for tenant in ["", "acme", "other"] {
        let own = of(&whole, tenant, None);
        let sent = own
            .post(&network(), "parcel", &json!({ "order": "4711" }))
            .await
            .unwrap();
        let Sent::Started(id) = sent else {
            panic!("{tenant} has no session of this key yet: {sent:?}");
        };
        assert_eq!(
            own.sessions(&SessionQuery::default()).await.unwrap().len(),
            1
        );
        started.push(id);
    }
    started.sort_unstable();
    started.dedup();
    assert_eq!(started.len(), 3);

    let acme = of(&whole, "acme", None);
    let memory = |part: &str| NewMemory {
        key: "k".into(),
        part: Scope {
            tenant: part.into(),
            subject: None,
        },
        scope: "customer".into(),
        name: "note".into(),
        tags: Vec::new(),
        media: "text/plain".into(),
        content: (*b"likes tea").into(),
        session: None,
        effect: None,
        network: "desk".into(),
        by: "desk".into(),
        replaces: Vec::new(),
        at: Time(1),
        until: None,
    };
    let id = acme.engine().save_memory(memory("acme")).await.unwrap();
    assert!(acme.engine().save_memory(memory("other")).await.is_err());
    let other = of(&whole, "other", None);
    assert_eq!(
        acme.memories(MemoryQuery::default()).await.unwrap().len(),
        1
    );
    assert!(
        other
            .memories(MemoryQuery::default())
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        other
            .search_memories("customer", "tea", 5)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        acme.search_memories("customer", "tea", 5)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(other.forget_memories(vec![id]).await.unwrap(), 0);
    assert_eq!(acme.forget_memories(vec![id]).await.unwrap(), 1);
}

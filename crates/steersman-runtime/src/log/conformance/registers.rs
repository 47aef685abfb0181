//! Credentials for servers, and schedules of networks.

use super::{Place, open, sealed_text};
use crate::store::{Credential, CredentialOf, MAX_VALUE, Schedule, ScheduleId, Scope, StoreError};
use steersman_machine::stored::ids::Time;

pub(super) async fn credentials_are_renewed_once(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let of = |server: &str, tenant: &str, subject: Option<&str>| CredentialOf {
        server: server.into(),
        scope: Scope {
            tenant: tenant.into(),
            subject: subject.map(Into::into),
        },
    };
    let sealed = |version, nth| Credential {
        version,
        sealed: sealed_text(nth),
        until: Some(Time(50)),
    };
    let (all, ada) = (
        of("https://s", "one", None),
        of("https://s", "one", Some("ada")),
    );
    let first = store.put_credential(&all, 0, sealed(1, 1)).await;
    assert!(first.expect("kept"));
    let lost = other.put_credential(&all, 0, sealed(1, 2)).await;
    assert!(!lost.expect("tried"), "there is one");
    let lost = other.put_credential(&ada, 1, sealed(2, 2)).await;
    assert!(!lost.expect("tried"), "there is none");
    let endless = Credential {
        until: None,
        ..sealed(1, 3)
    };
    let put = other.put_credential(&ada, 0, endless.clone()).await;
    assert!(put.expect("kept"));
    let renewed = store.put_credential(&all, 1, sealed(2, 4)).await;
    assert!(renewed.expect("kept"));
    let late = other.put_credential(&all, 1, sealed(2, 5)).await;
    assert!(!late.expect("tried"), "another process was faster");
    let store = open(place);
    assert_eq!(
        store.credential(&all).await.expect("read"),
        Some(sealed(2, 4))
    );
    assert_eq!(store.credential(&ada).await.expect("read"), Some(endless));
    for none in [
        of("https://s", "", None),
        of("https://s", "one", Some("bob")),
        of("https://t", "one", None),
    ] {
        assert_eq!(store.credential(&none).await.expect("read"), None);
        assert!(!store.drop_credential(&none).await.expect("tried"));
    }
    assert!(store.drop_credential(&all).await.expect("dropped"));
    assert_eq!(store.credential(&all).await.expect("read"), None);
    assert!(store.credential(&ada).await.expect("read").is_some());
    let long = "x".repeat(MAX_VALUE + 1);
    let other_text = |text: &str| Credential {
        sealed: text.into(),
        ..sealed(1, 1)
    };
    let refused = store.put_credential(&all, 0, other_text(&long)).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })));
    let refused = store.put_credential(&all, 0, other_text("hunter2")).await;
    let message = refused
        .expect_err("a secret in clear is refused")
        .to_string();
    assert!(
        message.contains("is not sealed") && !message.contains("hunter2"),
        "{message}"
    );
    assert_eq!(store.credential(&all).await.expect("read"), None);
    let nobody = of("https://s", "one", Some(""));
    let refused = store.put_credential(&nobody, 0, sealed(1, 1)).await;
    assert!(matches!(refused, Err(StoreError::BadId { .. })));
}

pub(super) async fn schedules_move_on_once(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let schedule = |tenant: &str, name: &str, next: Option<i64>| Schedule {
        id: ScheduleId {
            tenant: tenant.into(),
            network: "desk".into(),
            name: name.into(),
        },
        digest: [1; 32],
        next: next.map(Time),
        last: None,
        missed: 0,
    };
    let (early, late) = (
        schedule("", "early", Some(10)),
        schedule("", "late", Some(30)),
    );
    let (same, never) = (
        schedule("one", "early", Some(20)),
        schedule("", "never", None),
    );
    for schedule in [&late, &never, &same, &early] {
        assert!(store.put_schedule(schedule.clone()).await.expect("kept"));
    }
    let list = async |by: Option<i64>, limit| {
        let found = other.schedules(by.map(Time), limit).await;
        found.expect("read")
    };
    let all = [early.clone(), late.clone(), never.clone(), same.clone()];
    assert_eq!(list(None, 9).await, all);
    assert_eq!(
        list(Some(30), 9).await,
        [early.clone(), same.clone(), late.clone()]
    );
    assert_eq!(list(Some(30), 2).await, [early.clone(), same.clone()]);
    assert!(list(Some(9), 9).await.is_empty());
    // One of two workers begins the session of an occasion.
    let moves = async |at, next: Option<i64>, missed| {
        let moved = store.move_schedule(&early.id, Time(at), next.map(Time), missed);
        moved.await.expect("tried")
    };
    assert!(moves(10, Some(40), 2).await);
    assert!(!moves(10, Some(40), 2).await, "another worker was faster");
    let moved = Schedule {
        next: Some(Time(40)),
        last: Some(Time(10)),
        missed: 2,
        ..early.clone()
    };
    assert_eq!(list(None, 1).await, std::slice::from_ref(&moved));
    // The same definition changes no times; another one does.
    assert!(!store.put_schedule(early.clone()).await.expect("tried"));
    assert_eq!(list(None, 1).await, [moved]);
    assert!(moves(40, None, 3).await);
    assert_eq!(list(None, 1).await[0].missed, 5);
    assert!(!moves(40, None, 0).await, "it has no next time");
    let changed = Schedule {
        digest: [2; 32],
        ..early.clone()
    };
    assert!(store.put_schedule(changed.clone()).await.expect("kept"));
    assert_eq!(list(None, 1).await, [changed]);
    assert!(store.drop_schedule(&early.id).await.expect("dropped"));
    assert!(!store.drop_schedule(&early.id).await.expect("it is gone"));
    assert!(!moves(10, Some(40), 0).await, "it is gone");
    assert_eq!(list(None, 9).await, [late, never, same]);
    let nameless = schedule("", "", Some(1));
    let refused = store.put_schedule(nameless).await;
    assert!(matches!(refused, Err(StoreError::BadId { .. })));
}

//! Tokens, webhooks with their positions, heads of conversations.

use super::{Place, claimed, events, new, open, own, row, rows, sealed_text};
use crate::store::{
    BoxedEvent, CONVERSATION, Conversation, Credential, CredentialOf, Delivered, Holdings,
    NewSession, Schedule, ScheduleId, Scope, Store, StoreError, Token, Webhook, WebhookId, bounds,
};
use std::sync::Arc;
use steersman_machine::stored::ids::{Line, Time};

fn token(name: &str, tenant: &str) -> Token {
    Token {
        name: name.into(),
        hash: [7; 32],
        scope: Scope {
            tenant: tenant.into(),
            subject: Some("ada".into()),
        },
        allows: vec!["read".into(), "write".into()],
        roles: vec!["user".into()],
        definitions: vec!["a \"desk\", or two".into()],
        made: Time(10),
        expires: Some(Time(90)),
        revoked: None,
        used: None,
        note: "for tests".into(),
    }
}

async fn names(
    store: &Arc<dyn Store>,
    tenant: &str,
    after: Option<&str>,
    limit: usize,
) -> Vec<String> {
    let tokens = store.tokens(tenant, after, limit).await.expect("read");
    tokens.iter().map(|token| token.name.to_string()).collect()
}

pub(super) async fn tokens_are_kept(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let everyone = Token {
        scope: Scope::default(),
        expires: None,
        ..token("c", "")
    };
    for token in [token("b", "one"), everyone.clone(), token("a", "one")] {
        assert!(store.put_token(token).await.expect("kept"));
    }
    assert!(
        !store.put_token(token("a", "two")).await.expect("kept"),
        "names are unique over tenants"
    );
    assert_eq!(
        other.token("a").await.expect("read"),
        Some(token("a", "one"))
    );
    assert_eq!(other.token("c").await.expect("read"), Some(everyone));
    assert_eq!(other.token("d").await.expect("read"), None);
    assert_eq!(names(&store, "one", None, 9).await, ["a", "b"]);
    assert_eq!(names(&store, "one", None, 1).await, ["a"]);
    assert_eq!(names(&store, "one", Some("a"), 9).await, ["b"]);
    assert_eq!(names(&store, "", None, 9).await, ["c"]);
    assert!(names(&store, "two", None, 9).await.is_empty());
    assert!(!store.revoke("two", "a", Time(20)).await.expect("tried"));
    for at in [30, 40] {
        assert!(store.revoke("one", "a", Time(at)).await.expect("revoked"));
    }
    for hour in [50, 70, 60] {
        store.used("a", Time(hour)).await.expect("noted");
    }
    store.used("none", Time(50)).await.expect("no error");
    let known = Token {
        revoked: Some(Time(30)),
        used: Some(Time(70)),
        ..token("a", "one")
    };
    assert_eq!(open(place).token("a").await.expect("read"), Some(known));
    let long = "x".repeat(bounds::ID + 1);
    let refused = store.put_token(token(&long, "one")).await;
    assert!(matches!(refused, Err(StoreError::BadId { .. })));
}

pub(super) async fn the_digest_key_is_of_the_store(place: &impl Place, another: &impl Place) {
    let key = open(place).digest_key().await.expect("read");
    assert_eq!(open(place).digest_key().await.expect("read"), key);
    assert_ne!(open(another).digest_key().await.expect("read"), key);
}

fn hook(tenant: &str, name: &str) -> Webhook {
    Webhook {
        id: WebhookId {
            tenant: tenant.into(),
            name: name.into(),
        },
        url: "https://example.org/told".into(),
        kinds: vec!["session.settled".into()],
        only: Some("status = waits".into()),
        secrets: vec![sealed_text(1)],
        made: Time(10),
        failing: None,
    }
}

pub(super) async fn webhooks_are_kept(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    for (tenant, name) in [("one", "b"), ("one", "a"), ("", "a")] {
        let put = store.put_webhook(hook(tenant, name)).await;
        assert!(put.expect("kept"), "{tenant} {name}");
    }
    let failing = Webhook {
        url: "https://example.org/elsewhere".into(),
        kinds: Vec::new(),
        only: None,
        secrets: vec![sealed_text(2), sealed_text(1)],
        failing: Some("it answered 410".into()),
        ..hook("one", "a")
    };
    let put = other.put_webhook(failing.clone()).await;
    assert!(!put.expect("kept"), "it is known");
    let known = store.webhooks("one").await.expect("read");
    assert_eq!(known, [failing.clone(), hook("one", "b")]);
    assert_eq!(store.webhooks("").await.expect("read"), [hook("", "a")]);
    let all = async |after: Option<WebhookId>, limit| {
        let all = other.all_webhooks(after.as_ref(), limit).await;
        let all = all.expect("read").into_iter();
        all.map(|hook| (hook.id.tenant.to_string(), hook.id.name.to_string()))
            .collect::<Vec<_>>()
    };
    let named = |all: &[(&str, &str)]| -> Vec<(String, String)> {
        let all = all.iter();
        all.map(|(tenant, name)| ((*tenant).to_owned(), (*name).to_owned()))
            .collect()
    };
    assert_eq!(
        all(None, 9).await,
        named(&[("", "a"), ("one", "a"), ("one", "b")])
    );
    assert_eq!(all(None, 2).await, named(&[("", "a"), ("one", "a")]));
    assert_eq!(
        all(Some(hook("", "a").id), 9).await,
        named(&[("one", "a"), ("one", "b")])
    );
    let marks = async |of: &Webhook, made, why: Option<&str>| {
        let marked = store.mark_webhook(&of.id, made, why.map(Into::into)).await;
        marked.expect("tried")
    };
    assert!(marks(&failing, Time(10), None).await);
    let known = &other.webhooks("one").await.expect("read")[0];
    let lives = Webhook {
        failing: None,
        ..failing.clone()
    };
    assert_eq!(*known, lives, "all else stays");
    assert!(!marks(&failing, Time(11), Some("x")).await, "another one");
    assert!(!marks(&hook("two", "a"), Time(10), Some("x")).await);
    assert_eq!(other.webhooks("one").await.expect("read")[0], lives);
    assert!(marks(&failing, Time(10), failing.failing.as_deref()).await);
    assert_eq!(other.webhooks("one").await.expect("read")[0], failing);
    let clear = Webhook {
        secrets: vec![sealed_text(1), "whsec_1".into()],
        ..hook("one", "c")
    };
    let refused = store.put_webhook(clear).await;
    assert!(matches!(refused, Err(StoreError::Unsealed(_))));
    let (a, none) = (hook("one", "a").id, hook("two", "a").id);
    assert!(!store.drop_webhook(&none).await.expect("tried"));
    assert!(store.drop_webhook(&a).await.expect("dropped"));
    assert!(!store.drop_webhook(&a).await.expect("it is gone"));
    assert_eq!(store.webhooks("one").await.expect("read").len(), 1);
    assert_eq!(store.webhooks("").await.expect("read").len(), 1);
}

fn at(line: u64, events: u32) -> Delivered {
    Delivered {
        line: Line(line),
        events,
    }
}

pub(super) async fn webhooks_find_what_is_new(place: &impl Place) {
    const ALL: u32 = u32::MAX;
    let (store, other) = (open(place), open(place));
    for (id, tenant) in [("a", "one"), ("b", "one"), ("c", "two"), ("d", "one")] {
        let scope = Scope {
            tenant: tenant.into(),
            subject: None,
        };
        let session = NewSession { scope, ..new(id) };
        store.create(session).await.expect("made");
        if id != "d" {
            let claim = own(&store, id).await.expect("free");
            let lines = rows(vec![row(1, b"x"), row(2, b"x")]);
            store.append(&claim, lines).await.expect("written");
        }
    }
    let (hook, another) = (hook("one", "h"), hook("one", "another"));
    for hook in [&hook, &another] {
        store.put_webhook(hook.clone()).await.expect("kept");
    }
    let hook = hook.id;
    let behind = async |limit| {
        let found = other.behind(&hook, limit).await.expect("read");
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let moves = async |session: &'static str, from, to| {
        let moved = store.move_delivered(&hook, session, from, to).await;
        moved.expect("tried")
    };
    assert_eq!(behind(9).await, ["a", "b"], "`d` has no line");
    assert_eq!(behind(1).await, ["a"]);
    assert!(moves("a", at(0, 0), at(2, 1)).await);
    assert!(!moves("a", at(0, 0), at(2, 2)).await, "another was faster");
    assert!(!moves("c", at(0, 0), at(2, 2)).await, "of another tenant");
    assert!(!moves("none", at(0, 0), at(2, 2)).await);
    let cursor = other.delivered(&hook, "a").await.expect("read");
    assert_eq!(cursor, at(2, 1));
    assert_eq!(behind(9).await, ["a", "b"], "a part of line 2");
    assert!(moves("a", at(2, 1), at(2, ALL)).await);
    assert!(moves("b", at(0, 0), at(1, ALL)).await);
    assert_eq!(behind(9).await, ["b"]);
    assert!(moves("b", at(1, ALL), at(2, ALL)).await);
    assert!(behind(9).await.is_empty());
    let claim = own(&store, "a").await.expect("free");
    let line = rows(vec![row(claim.first.0, b"x")]);
    store.append(&claim, line).await.expect("written");
    assert_eq!(behind(9).await, ["a"]);
    assert_eq!(other.behind(&another.id, 9).await.expect("read").len(), 2);
    // A webhook that is made again begins at the beginning.
    store.drop_webhook(&hook).await.expect("dropped");
    assert!(behind(9).await.is_empty());
    assert!(!moves("a", at(0, 0), at(1, ALL)).await, "it is gone");
    let again = Webhook {
        id: hook.clone(),
        ..another
    };
    store.put_webhook(again).await.expect("kept");
    let cursor = store.delivered(&hook, "a").await.expect("read");
    assert_eq!(cursor, Delivered::default());
    assert_eq!(behind(9).await, ["a", "b"]);
}

pub(super) async fn conversations_are_found(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    drop(claimed(&store, "a").await);
    let head = |tenant: &str, digest: u8, line, at| Conversation {
        tenant: tenant.into(),
        digest: [digest; 32],
        session: "a".into(),
        line: Line(line),
        at: Time(at),
    };
    for head in [
        head("", 1, 3, 10),
        head("", 1, 5, 11),
        head("one", 1, 7, 12),
    ] {
        store.put_conversation(head).await.expect("kept");
    }
    let found = async |tenant: &'static str, digest| {
        let found = other.conversation(tenant, [digest; 32]).await;
        found
            .expect("read")
            .map(|(session, line)| (session.to_string(), line.0))
    };
    assert_eq!(found("", 1).await, Some(("a".to_owned(), 5)));
    assert_eq!(found("one", 1).await, Some(("a".to_owned(), 7)));
    assert_eq!(found("", 2).await, None);
    assert_eq!(found("two", 1).await, None);
    let late = 11 + CONVERSATION as i64;
    store
        .put_conversation(head("", 2, 9, late))
        .await
        .expect("kept");
    assert!(found("", 1).await.is_some(), "it has not expired yet");
    store
        .put_conversation(head("", 2, 9, late + 1))
        .await
        .expect("kept");
    assert_eq!(found("", 1).await, None);
    assert_eq!(found("", 2).await, Some(("a".to_owned(), 9)));
}

pub(super) async fn holdings_are_those_of_a_scope(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let scope = |tenant: &str, subject: Option<&str>| Scope {
        tenant: tenant.into(),
        subject: subject.map(Into::into),
    };
    let all = [
        scope("one", Some("ada")),
        scope("one", Some("bob")),
        scope("one", None),
        scope("two", Some("ada")),
    ];
    for (n, of) in (0..).zip(&all) {
        let session = NewSession {
            scope: of.clone(),
            ..new(&format!("s{n}"))
        };
        store.create(session).await.expect("new");
        let token = Token {
            scope: of.clone(),
            ..token(&format!("t{n}"), &of.tenant)
        };
        assert!(store.put_token(token).await.expect("kept"));
        let event = BoxedEvent {
            scope: of.clone(),
            ..events::event(&format!("e{n}"), r#"{"order":1}"#)
        };
        assert!(store.deliver_event(event).await.expect("new"));
        let head = Conversation {
            tenant: of.tenant.clone(),
            digest: [n; 32],
            session: format!("s{n}").into(),
            line: Line(1),
            at: Time(1),
        };
        store.put_conversation(head).await.expect("kept");
        let server = CredentialOf {
            server: "https://s".into(),
            scope: of.clone(),
        };
        let sealed = Credential {
            version: 1,
            sealed: sealed_text(n),
            until: None,
        };
        let put = store.put_credential(&server, 0, sealed).await;
        assert!(put.expect("kept"));
    }
    for tenant in ["one", "two"] {
        let hook = hook(tenant, "w");
        assert!(store.put_webhook(hook).await.expect("kept"));
        let schedule = Schedule {
            id: ScheduleId {
                tenant: tenant.into(),
                network: "desk".into(),
                name: "daily".into(),
            },
            digest: [1; 32],
            next: None,
            last: None,
            missed: 0,
        };
        assert!(store.put_schedule(schedule).await.expect("kept"));
    }
    let each = |n| Holdings {
        tokens: n,
        events: n,
        conversations: n,
        credentials: n,
        ..Holdings::default()
    };
    let whole = |n| Holdings {
        webhooks: 1,
        schedules: 1,
        ..each(n)
    };
    let of = async |tenant: &'static str, subject: Option<&'static str>, delete: bool| {
        let of = scope(tenant, subject);
        other.holdings(&of, delete).await.expect("read")
    };
    assert_eq!(of("one", Some("ada"), false).await, each(1));
    assert_eq!(of("one", None, false).await, whole(3));
    assert_eq!(of("one", Some("ada"), true).await, each(1));
    assert_eq!(of("one", Some("ada"), true).await, each(0));
    assert!(store.token("t0").await.expect("read").is_none());
    assert_eq!(of("one", None, false).await, whole(2));
    assert_eq!(of("two", None, false).await, whole(1));
    assert_eq!(of("one", None, true).await, whole(2));
    assert_eq!(of("one", None, false).await, Holdings::default());
    assert_eq!(of("two", None, false).await, whole(1));
    let again = BoxedEvent {
        scope: all[0].clone(),
        ..events::event("e0", r#"{"order":1}"#)
    };
    assert!(!store.deliver_event(again).await.expect("its id is known"));
}

//! Owners that died, and owners with impossible numbers.

use crate::sqlite::{Folder, message, room, session};
use steersman_runtime::store::{
    Lists as _, Log as _, NewSession, NewWorker, Room, StoreError, Worker,
};

/// A dead process leaves its locks: its session is found among all that are owned, however many these are.
#[tokio::test]
async fn a_session_of_a_dead_owner_is_found_among_many() {
    const SESSIONS: usize = 1_500;
    let folder = Folder::new();
    let (store, other) = (folder.store(), folder.store());
    let mut made = Vec::new();
    for n in 0..SESSIONS {
        let begun = NewSession {
            first: Some(message("m1")),
            ..session(&format!("s{n}"))
        };
        made.push(store.create(begun));
    }
    futures::future::try_join_all(made).await.unwrap();
    let few = Room {
        sessions: SESSIONS,
        ..room(99)
    };
    let by = store.enroll(NewWorker::default()).await.unwrap();
    let mut taken = store.take(&by, few).await.unwrap().claims;
    assert_eq!(taken.len(), SESSIONS);
    let dead = taken.swap_remove(SESSIONS - 2);
    let id = dead.session.clone();
    drop(dead);
    let mut takes = 0;
    let found = loop {
        takes += 1;
        let found = other.take(&Worker::nameless(), room(99)).await.unwrap();
        if let Some(found) = found.claims.into_iter().next() {
            break found;
        }
        assert!(
            takes < 4,
            "a take looks at a part of them, and goes on there"
        );
    };
    assert_eq!((&found.session, found.epoch), (&id, 2));
}

#[tokio::test]
async fn an_owner_that_cannot_be_is_refused() {
    for owner in [
        "epoch = 9223372036854775807",
        "epoch = -1",
        "first = 9223372036854775807",
        "first = -5",
    ] {
        let folder = Folder::new();
        let store = folder.store();
        store.create(session("s")).await.unwrap();
        drop(store.claim("s", &Worker::nameless()).await.unwrap());
        drop(store);
        let conn = rusqlite::Connection::open(folder.file()).unwrap();
        conn.execute_batch(&format!("UPDATE seat SET {owner}"))
            .unwrap();
        drop(conn);
        let refused = folder
            .store()
            .claim("s", &Worker::nameless())
            .await
            .err()
            .unwrap();
        assert!(
            matches!(refused, StoreError::Corrupt { .. }),
            "{owner}: {refused}"
        );
    }
}

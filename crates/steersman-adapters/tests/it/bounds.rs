//! Stores from before names had bounds.

use crate::sqlite::{Folder, batch, message, session};
use steersman_machine::stored::ids::Line;
use steersman_runtime::store::{Inbox as _, Lists as _, Log as _};
use steersman_runtime::store::{NewSession, SessionQuery, Worker};

/// Names of old sessions may be too long, or lead out of the folder of locks. The sessions are read and driven, and their
/// locks are in the folder.
#[tokio::test]
async fn a_session_of_before_the_bounds_is_read_and_driven() {
    let folder = Folder::new();
    let long = "x".repeat(2_000);
    let ids = ["../x", "A B", ".", "", &long];
    for (n, id) in ids.into_iter().enumerate() {
        let made = format!("s{n}");
        folder
            .store()
            .create(NewSession {
                first: Some(message("m1")),
                ..session(&made)
            })
            .await
            .unwrap();
        let conn = rusqlite::Connection::open(folder.file()).unwrap();
        conn.execute(
            "UPDATE session SET id = ?2, key = ?3 WHERE id = ?1",
            [&made, id, &format!("{n}{long}")],
        )
        .unwrap();
        conn.execute(
            "UPDATE inbox SET id = ?2 WHERE no = ?1",
            rusqlite::params![n as i64 + 1, long],
        )
        .unwrap();
    }
    let files = || {
        let names = std::fs::read_dir(&folder.0).unwrap();
        names
            .map(|entry| entry.unwrap().file_name())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let store = folder.store();
    let listed = store.sessions(&SessionQuery::default()).await.unwrap();
    assert_eq!(listed.len(), ids.len());
    for id in ids {
        assert_eq!(&*store.inbox(id).await.unwrap().1[0].id, &*long);
        let claim = store.claim(id, &Worker::nameless()).await.unwrap();
        store.append(&claim, batch(1, b"one", true)).await.unwrap();
        assert!(
            store.claim(id, &Worker::nameless()).await.is_err(),
            "it is owned"
        );
        assert!(
            !files().contains(std::ffi::OsStr::new("x")),
            "its lock is in the folder"
        );
        assert_eq!(store.head(id).await.unwrap(), Line(1));
        assert!(store.deliver(id, message("m2")).await.unwrap());
    }
}

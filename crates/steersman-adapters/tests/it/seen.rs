//! Which events were accepted, and how long a store knows it.

use crate::sqlite::{Folder, event, flipped, page, waiting};
use steersman_adapters::sqlite::SqliteStore;
use steersman_machine::stored::ids::Time;
use steersman_runtime::store::{BoxedEvent, Store, StoreError, bounds};

/// Whatever bit is flipped: an event that comes again is known, or the store says that it does not know.
#[tokio::test]
async fn an_event_whose_record_was_damaged_is_not_taken_twice() {
    let (folder, good) = waiting().await;
    let page = page(&folder, "event_seen");
    let mut told = 0;
    for bit in ((page.end - 60) * 8..page.end * 8).step_by(3) {
        flipped(&folder, &good, bit);
        let Ok(store) = SqliteStore::open(folder.file()) else {
            continue;
        };
        let again = store.deliver_event(event("mail")).await;
        assert!(!matches!(again, Ok(true)), "{bit}");
        if let Err(error) = again {
            assert!(
                matches!(error, StoreError::Corrupt { .. }),
                "{bit}: {error}"
            );
            assert!(!store.damaged_lists().await.unwrap().is_empty(), "{bit}");
            let structure = store.check_structure().await;
            assert!(!structure.is_ok_and(|found| found.is_empty()), "{bit}");
            told += 1;
        }
    }
    assert!(told > 50, "{told}");
}

/// One event whose clock is far ahead makes room for itself, and no other id new.
#[tokio::test]
async fn a_clock_that_is_far_ahead_makes_no_known_event_new() {
    let folder = Folder::new();
    let store = folder.store();
    assert!(store.deliver_event(event("known")).await.unwrap());
    drop(store);
    let conn = rusqlite::Connection::open(folder.file()).unwrap();
    let many = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
                INSERT INTO event_seen (id, until) SELECT 'e' || n, 2 FROM n";
    conn.execute(many, [bounds::SEEN as i64 - 1]).unwrap();
    drop(conn);
    let store = folder.store();
    let ahead = BoxedEvent {
        at: Time(1 << 60),
        until: Time(1 << 61),
        ..event("ahead")
    };
    assert!(store.deliver_event(ahead).await.unwrap());
    assert!(!store.deliver_event(event("known")).await.unwrap());
    drop(store);
    let conn = rusqlite::Connection::open(folder.file()).unwrap();
    let there = conn.query_row("SELECT count(*) FROM event_seen", [], |r| {
        r.get::<_, i64>(0)
    });
    assert_eq!(there.unwrap(), bounds::SEEN as i64);
}

//! The record of accepted events, and how long a store keeps it.

use crate::sqlite::{Folder, event, flipped, page, waiting};
use steersman_adapters::sqlite::SqliteStore;
use steersman_machine::stored::ids::Time;
use steersman_runtime::store::{BoxedEvent, StoreError, bounds};
use steersman_runtime::store::{Inbox as _, Lists as _};

/// Whichever bit is flipped, an event that comes again is known, or the store reports the damage.
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

/// Returns the hash of these parts, as a row of a remembered event has it.
fn hash(parts: &[&[u8]]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut hash = [0; 8];
    hash.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    hash
}

/// An event whose clock is far ahead makes room for itself, and makes no other event new.
#[tokio::test]
async fn a_clock_that_is_far_ahead_makes_no_known_event_new() {
    let folder = Folder::new();
    let store = folder.store();
    assert!(store.deliver_event(event("known")).await.unwrap());
    drop(store);
    let conn = rusqlite::Connection::open(folder.file()).unwrap();
    conn.execute_batch("BEGIN").unwrap();
    let seen = "INSERT INTO event_seen (tenant, id, until, said, sum, hash) VALUES ('', ?1, 2, zeroblob(16), ?2, ?3)";
    let mut seen = conn.prepare(seen).unwrap();
    for n in 1..bounds::SEEN {
        let id = format!("e{n}");
        let sum = hash(&[b"", id.as_bytes(), &2_i64.to_le_bytes(), &[0; 16]]);
        seen.execute(rusqlite::params![id, sum, hash(&[b"", id.as_bytes()])])
            .unwrap();
    }
    drop(seen);
    conn.execute_batch("COMMIT").unwrap();
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

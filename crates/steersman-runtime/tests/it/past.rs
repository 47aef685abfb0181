//! `Past`: the lines that it keeps in memory, the lines that it reads again, and faults of lines that cannot be read.

use std::sync::Arc;
use steersman_machine::context::History;
use steersman_machine::stored::codec;
use steersman_machine::stored::commit::{LogLine, Text};
use steersman_machine::stored::ids::{Bodies, Body, Id, Line, Time};
use steersman_machine::stored::interaction::Interaction;
use steersman_machine::stored::parts::{Part, Parts, Reference};
use steersman_runtime::conformance::{SALT, story};
use steersman_runtime::load::{Load, Since};
use steersman_runtime::past::{ERASED, Past};
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{Batch, Claim, Needs, NewSession, Row, Scope, StoreError, Worker};
use steersman_runtime::store::{Blobs as _, Log as _};

const ROOT: Line = Line(1);

struct Session {
    store: MemoryStore,
    claim: Claim,
    lines: Vec<Arc<LogLine>>,
}

/// A session whose first `written` lines are in the store.
async fn session(written: usize) -> Session {
    let store = MemoryStore::new();
    let new = NewSession {
        id: "a".into(),
        network: "desk".into(),
        scope: Scope::default(),
        key: None,
        salt: SALT,
        created: Time(1),
        first: None,
        said: None,
        needs: Needs::default(),
    };
    store.create(new).await.unwrap();
    let claim = store.claim("a", &Worker::nameless()).await.unwrap();
    let told = story(100, None);
    let rows = told[..written].iter().map(|(line, bytes)| Row {
        n: line.n,
        bytes: bytes.as_slice().into(),
    });
    let batch = Batch {
        rows: rows.collect(),
        ..Batch::default()
    };
    store.append(&claim, batch).await.unwrap();
    Session {
        store,
        claim,
        lines: told.into_iter().map(|(line, _)| Arc::new(line)).collect(),
    }
}

/// The line behind the lines of the session, with these texts only.
fn line_101(bodies: Vec<Text>) -> LogLine {
    LogLine {
        n: Line(101),
        at: Time(0),
        prev: Line(100),
        branch: Id::MAIN,
        commit: None,
        ledger: Vec::new(),
        bodies,
    }
}

impl Session {
    fn past(&self, written: u64, bound: usize) -> Past {
        Past::new(
            Arc::new(self.store.clone()),
            "a".into(),
            SALT,
            Line(written),
            bound,
        )
    }
}

fn root() -> Id {
    Id::new(ROOT, 0)
}

/// Returns the whole stack, along its chain of pushes.
fn stack(past: &Past, last: Line) -> Vec<Interaction> {
    let mut stack = Vec::new();
    let mut at = last;
    while at.is_some() {
        let (pushed, below) = past.pushes(root(), at);
        assert!(!pushed.is_empty(), "line {at}");
        stack.extend(pushed.iter().rev().cloned());
        at = below;
    }
    stack.reverse();
    stack
}

#[tokio::test]
async fn stacks_and_texts_are_read_from_anywhere() {
    let session = session(100).await;
    // Room for no line, for a few lines, and for all lines.
    for bound in [0, 5_000, usize::MAX] {
        let past = session.past(100, bound);
        for _ in 0..2 {
            let stack = stack(&past, Line(100));
            assert_eq!(stack.len(), 100, "bound {bound}");
            assert!(matches!(stack[0], Interaction::UserMessage { .. }));
            assert!(matches!(stack[99], Interaction::Finished { .. }));
        }
        assert_eq!(&*past.text(Body::new(Line(7), 0)), "text 7 on main");
        assert!(past.fault().is_none());
    }
}

/// Lines ahead of the disk are only in memory: they are kept, whatever the bound.
#[tokio::test]
async fn lines_ahead_of_the_disk_are_kept() {
    let session = session(10).await;
    let past = session.past(10, 0);
    for line in &session.lines[10..] {
        past.add(line.clone());
    }
    assert_eq!(stack(&past, Line(100)).len(), 100);
    past.written(Line(60));
    // Lines 11 to 60 count as written, so they were dropped, and the store does not have them.
    assert!(past.line(Line(60)).is_err());
    assert_eq!(past.line(Line(61)).unwrap().n, Line(61));
}

#[tokio::test]
async fn what_acts_is_read_before_it_is_needed() {
    let session = session(100).await;
    let load = Load::new(Arc::new(session.store.clone()), "a".into(), SALT);
    let loaded = load.snapshot(Line(100)).await.unwrap();
    let past = session.past(100, usize::MAX);
    past.warm(&loaded.snapshot, 20).await.unwrap();
    // Now all rows are damaged. The lines that were read before are still there.
    for n in 1..=100 {
        assert!(session.store.damage("a", Line(n), 0));
    }
    let mut at = Line(100);
    for _ in 0..20 {
        at = past.pushes(root(), at).1;
    }
    assert!(past.fault().is_none());
    past.pushes(root(), at);
    let fault = past.fault().unwrap();
    assert!(
        matches!(&fault, StoreError::Corrupt { place, .. } if place.contains("line 80")),
        "{fault}"
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_said() {
    let session = session(100).await;
    let past = session.past(100, usize::MAX);
    assert_eq!(&*past.text(Body::new(Line(7), 3)), "[unreadable]");
    assert!(matches!(past.fault(), Some(StoreError::Corrupt { .. })));
    assert!(past.fault().is_none(), "a fault is reported once");
    let (pushed, below) = past.pushes(Id::new(Line(9), 9), Line(9));
    assert_eq!((pushed.len(), below), (0, Line::NONE));
    assert!(matches!(past.fault(), Some(StoreError::Corrupt { .. })));
    assert_eq!(&*past.text(Body::new(Line(900), 0)), "[unreadable]");
    assert!(past.fault().unwrap().to_string().contains("missing"));
}

/// A changed digit leaves the row readable, but its text is not taken for what was written.
#[tokio::test]
async fn a_text_that_was_changed_is_never_taken_for_what_was_written() {
    let session = session(100).await;
    let row = session.store.row_now("a", Line(7)).unwrap().unwrap();
    let wanted = b"text 7";
    let mut windows = row.bytes.windows(wanted.len());
    let at = windows.position(|w| w == wanted).unwrap();
    assert!(session.store.damage("a", Line(7), at + 5));
    let row = session.store.row_now("a", Line(7)).unwrap().unwrap();
    let (read, _) = codec::decode(&row.bytes).unwrap();
    assert!(
        matches!(&read.bodies[0], Text::Here(text) if &**text == "text 6 on main"),
        "it can be read: {read:?}"
    );
    let body = Body::new(Line(7), 0);
    let past = session.past(100, usize::MAX);
    assert_eq!(&*past.text(body), "[unreadable]");
    let fault = past.fault().unwrap().to_string();
    assert!(fault.contains("line 7: the hash"), "{fault}");
    assert!(past.read(Line(7)).await.is_err());
    assert!(
        past.read(Line(8)).await.is_ok(),
        "the other lines are unchanged"
    );
}

#[tokio::test]
async fn erased_texts_and_blobs_read_as_what_they_are() {
    let session = session(100).await;
    let past = session.past(100, usize::MAX);
    let body = Body::new(Line(4), 0);
    assert_eq!(&*past.text(body), "text 4 on main");
    let row = session.store.row_now("a", Line(4)).unwrap().unwrap();
    let erased = codec::erase(&row.bytes, 0, &SALT).unwrap();
    let row = Row {
        n: Line(4),
        bytes: erased.into(),
    };
    let batch = Batch {
        rewritten: vec![row],
        ..Batch::default()
    };
    session.store.append(&session.claim, batch).await.unwrap();
    past.forget(Line(4));
    assert_eq!(&*past.text(body), ERASED);

    let long: Arc<str> = "long ".repeat(9_000).into();
    let mut line = line_101(vec![Text::Here(long.clone().into())]);
    let blobs = codec::spill(&mut line);
    let (hash, text) = &blobs[0];
    past.add(Arc::new(line));
    assert_eq!(&*past.text(Body::new(Line(101), 0)), "[unreadable]");
    assert!(past.fault().unwrap().to_string().contains("blob"));
    session
        .store
        .put_blob(*hash, text.as_bytes().into())
        .await
        .unwrap();
    for _ in 0..2 {
        assert_eq!(past.text(Body::new(Line(101), 0)), long);
    }
    assert!(past.fault().is_none());
}

/// The texts of a list of parts are moved out and erased as all texts are.
#[tokio::test]
async fn a_list_of_parts_reads_as_its_texts_and_the_names_of_its_artifacts() {
    let session = session(100).await;
    let past = session.past(100, usize::MAX);
    let long: Arc<str> = "long ".repeat(9_000).into();
    let photo = Reference {
        name: "photo.png".into(),
        media: "image/png".into(),
        hash: [7; 32],
        len: 9,
    };
    let parts: Arc<[Part]> = [Part::Text(0), Part::Artifact(photo), Part::Text(1)].into();
    let mut line = line_101(vec![
        Text::Here("Look.".into()),
        Text::Here(long.clone().into()),
        Text::Parts(parts.clone()),
    ]);
    let blobs = codec::spill(&mut line);
    let [(hash, text)] = &blobs[..] else {
        panic!("one text is long");
    };
    session
        .store
        .put_blob(*hash, text.as_bytes().into())
        .await
        .unwrap();
    let list = Body::new(Line(101), 2);
    past.add(Arc::new(line.clone()));
    let told = format!("Look.\n(artifact photo.png: image/png, 9 bytes)\n{long}");
    assert_eq!(*past.text(list), *told);
    assert_eq!(past.stored(list).unwrap().as_deref(), Some(&*told));
    assert_eq!(past.parts(list), Parts::Several(parts));
    line.bodies[0] = Text::Erased { hash: [0; 32] };
    past.forget(Line(101));
    past.add(Arc::new(line.clone()));
    assert!(past.text(list).starts_with("[erased]\n(artifact photo.png"));
    line.bodies[2] = Text::Erased { hash: [0; 32] };
    past.forget(Line(101));
    past.add(Arc::new(line));
    assert_eq!(&*past.text(list), ERASED);
    assert_eq!(past.stored(list).unwrap(), None);
    assert!(past.fault().is_none());
}

#[test]
fn a_checkpoint_is_due_by_rows_and_size() {
    let mut since = Since::default();
    for _ in 0..64 {
        since.wrote(1_000);
    }
    assert!(!since.is_due(), "64 rows are not more than 64");
    since.wrote(1_000);
    assert!(since.is_due());
    assert!(
        !since.made(10_000),
        "65,000 bytes are not more than eight times 10,000"
    );
    assert!(!since.is_due());
    for _ in 0..16 {
        since.wrote(1_000);
    }
    assert!(since.is_due() && since.made(10_000));
    assert!(!since.is_due(), "counting begins again");
}

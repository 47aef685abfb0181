//! Checks with real lines: loading, erasing, damage.

use super::{Place, SALT, all, claimed, open, own, rows, story};
use crate::ledger::Ledger;
use crate::load::{Load, Since};
use crate::store::{Batch, Checkpoint, CheckpointOf, Row, Store, StoreError};
use std::sync::Arc;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::snapshot::{Snapshot, checkpoint};
use steersman_machine::stored::codec;
use steersman_machine::stored::commit::{LogLine, Text};
use steersman_machine::stored::ids::{Id, Line};

type Story = Vec<(LogLine, Vec<u8>)>;

async fn write_story(store: &Arc<dyn Store>, story: &Story) -> Load {
    let claim = claimed(store, "a").await;
    let written = story.iter().map(|(line, bytes)| Row {
        n: line.n,
        bytes: bytes.as_slice().into(),
    });
    store
        .append(&claim, rows(written.collect()))
        .await
        .expect("written");
    load(store)
}

fn load(store: &Arc<dyn Store>) -> Load {
    Load::new(store.clone(), "a".into(), SALT)
}

/// Returns the fold of a path, computed from the lines alone.
fn folded(story: &Story, at: Line) -> Snapshot {
    let line = |n: Line| &story.iter().find(|(l, _)| l.n == n).expect("it is there").0;
    let mut path = Vec::new();
    let mut cursor = at;
    while cursor.is_some() {
        path.push(line(cursor));
        cursor = line(cursor).prev;
    }
    path.into_iter().rev().fold(Snapshot::empty(), fold)
}

fn last(story: &Story, branch: Id) -> Line {
    let lines = story.iter().rev().map(|(l, _)| l);
    lines
        .filter(|l| l.branch == branch)
        .map(|l| l.n)
        .next()
        .unwrap_or(Line::NONE)
}

pub(super) async fn branches_load_along_their_path(place: &impl Place) {
    let store = open(place);
    let story = story(300, Some(40));
    let load = write_story(&store, &story).await;
    let (ledger, _) = load.ledger(last(&story, Id::MAIN)).await.expect("it loads");
    let branches: Vec<Id> = ledger.branches().map(|(id, _)| id).collect();
    assert_eq!(branches.len(), 2);
    for branch in branches {
        let head = ledger.branch(branch).expect("listed").head;
        assert_eq!(head, last(&story, branch));
        let loaded = load.snapshot(head).await.expect("it loads");
        assert_eq!(loaded.snapshot, folded(&story, head));
        assert_eq!(loaded.snapshot.branch, branch);
        assert_eq!(Some(loaded.hash), ledger.hash_of(branch, head));
        assert!(loaded.since.is_due());
    }
    let empty = load.snapshot(Line::NONE).await.expect("nothing to read");
    assert_eq!(empty.snapshot, Snapshot::empty());
    let missing = load.snapshot(Line(9_999)).await.expect_err("no such line");
    assert!(matches!(missing, StoreError::Corrupt { place, .. } if place.contains("9999")));
}

/// Writes checkpoints as a driver does: for `main` and the ledger, each time one is due. Returns their number.
async fn with_checkpoints(store: &Arc<dyn Store>, story: &Story) -> usize {
    let claim = claimed(store, "a").await;
    let mut ledger = Ledger::default();
    let mut of_ledger = Since::default();
    let mut of_main = Since::default();
    let mut snapshot = Snapshot::empty();
    let mut written = 0;
    for (line, bytes) in story {
        let (_, hash) = codec::decode(bytes).expect("it is a line");
        ledger.fold(line, &hash);
        of_ledger.wrote(bytes.len());
        let mut batch = rows(vec![Row {
            n: line.n,
            bytes: bytes.as_slice().into(),
        }]);
        batch.urgent = false;
        let mut keep = |of: CheckpointOf, since: &mut Since, bytes: Vec<u8>| {
            if since.made(bytes.len()) {
                let checkpoint = Checkpoint {
                    at: line.n,
                    bytes: bytes.into(),
                };
                batch.checkpoints.push((of, checkpoint));
                written += 1;
            }
        };
        if of_ledger.is_due() {
            keep(CheckpointOf::Ledger, &mut of_ledger, ledger.encode(&SALT));
        }
        if line.branch == Id::MAIN {
            snapshot = fold(snapshot, line);
            of_main.wrote(bytes.len());
            if of_main.is_due() {
                let bytes = checkpoint::encode_snapshot(&snapshot, line.n, &hash, &SALT);
                keep(CheckpointOf::Branch(Id::MAIN), &mut of_main, bytes);
            }
        }
        // Not awaited: batches under one claim are written in order.
        drop(store.append(&claim, batch));
    }
    let end = Batch {
        urgent: true,
        ..Batch::default()
    };
    store.append(&claim, end).await.expect("written");
    written
}

pub(super) async fn checkpoints_are_a_cache(place: &impl Place) {
    let store = open(place);
    let story = story(400, Some(150));
    assert!(with_checkpoints(&store, &story).await >= 4);
    let load = load(&store);
    let head = last(&story, Id::MAIN);
    let forked = story.iter().map(|(l, _)| l.branch).find(|b| *b != Id::MAIN);
    let on_branch = last(&story, forked.expect("it was forked"));
    let (ledger, _) = load.ledger(head).await.expect("it loads");
    let mut read = Vec::new();
    for at in [head, on_branch, Line(399), Line(3)] {
        let loaded = load.snapshot(at).await.expect("it loads");
        assert_eq!(loaded.snapshot, folded(&story, at), "at {at}");
        read.push(loaded.lines.len());
    }
    // All lines of the branch itself are after the newest checkpoint on its path.
    assert!(read[0] <= 200 && read[1] <= 200 + 150 + 64, "{read:?}");
    let of = CheckpointOf::Branch(Id::MAIN);
    let newest = store.checkpoint("a", of, Line::MAX).await.expect("read");
    let newest = newest.expect("some were written");
    let before = store.checkpoint("a", of, Line(newest.at.0 - 1)).await;
    let before = before.expect("read").expect("there are older ones");
    assert!(before.at < newest.at);

    // A damaged checkpoint is skipped. Without checkpoints, everything is folded from the lines.
    let claim = claimed(&store, "a").await;
    let mut damaged = newest.bytes.to_vec();
    damaged[40] ^= 1;
    let nonsense = |of, bytes: Vec<u8>| {
        let at = newest.at;
        (
            of,
            Checkpoint {
                at,
                bytes: bytes.into(),
            },
        )
    };
    let batch = Batch {
        checkpoints: vec![
            nonsense(of, damaged),
            nonsense(CheckpointOf::Ledger, b"nonsense".to_vec()),
        ],
        ..rows(vec![])
    };
    store.append(&claim, batch).await.expect("written");
    let loaded = load.snapshot(head).await.expect("it loads");
    assert_eq!(loaded.snapshot, folded(&story, head));
    assert!(loaded.lines.len() > read[0]);
    assert_eq!(load.ledger(head).await.expect("it loads").0, ledger);
    store.drop_checkpoints("a").await.expect("dropped");
    assert_eq!(
        store.checkpoint("a", of, Line::MAX).await.expect("read"),
        None
    );
    let loaded = load.snapshot(head).await.expect("it loads");
    assert_eq!(
        (loaded.snapshot, loaded.lines.len()),
        (folded(&story, head), 400)
    );
    assert_eq!(load.ledger(head).await.expect("it loads").0, ledger);
}

pub(super) async fn erased_texts_verify(place: &impl Place) {
    let store = open(place);
    let story = story(20, Some(10));
    let load = write_story(&store, &story).await;
    let claim = own(&store, "a").await.expect("free");
    let checkpoint = Checkpoint {
        at: Line(20),
        bytes: (*b"with the text in it").into(),
    };
    let batch = Batch {
        checkpoints: vec![(CheckpointOf::Ledger, checkpoint)],
        ..rows(vec![])
    };
    store.append(&claim, batch).await.expect("written");
    let before = load.snapshot(Line(20)).await.expect("it loads");
    let row = store.row("a", Line(4)).await.expect("read").expect("there");
    let erased = codec::erase(&row.bytes, 0, &SALT).expect("it has a text");
    let row = Row {
        n: row.n,
        bytes: erased.into(),
    };
    let never = Row {
        n: Line(99),
        bytes: row.bytes.clone(),
    };
    let rewrites = |rewritten| Batch {
        rewritten,
        ..rows(vec![])
    };
    let refused = store
        .append(&claim, rewrites(vec![row.clone(), never]))
        .await;
    let refused = refused.expect_err("one line was never written");
    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
    let kept = store.row("a", Line(4)).await.expect("read").expect("there");
    assert_ne!(kept.bytes, row.bytes, "all of it or nothing");
    // Nothing is written under a claim after an error.
    drop(claim);
    let claim = own(&store, "a").await.expect("free");
    let rewritten = store.append(&claim, rewrites(vec![row])).await;
    rewritten.expect("rewritten");
    let gone = store.checkpoint("a", CheckpointOf::Ledger, Line::MAX).await;
    assert_eq!(gone.expect("read"), None, "a checkpoint may hold the text");
    drop(claim);
    let report = load.inspect().await.expect("read");
    assert_eq!((report.erased, report.damaged.len()), (1, 0));
    let after = load.snapshot(Line(20)).await.expect("it loads");
    assert_eq!((after.snapshot, after.hash), (before.snapshot, before.hash));
    let (line, _) = codec::decode(
        &store
            .row_now("a", Line(4))
            .expect("read")
            .expect("there")
            .bytes,
    )
    .expect("it is a line");
    assert!(matches!(line.bodies[..], [Text::Erased { .. }]));
}

pub(super) async fn damage_is_found_and_named(place: &impl Place) {
    let story = story(30, Some(20));
    let broken = Line(25);
    let (at, bytes) = story
        .iter()
        .find(|(l, _)| l.n == broken)
        .expect("it is there");
    let branch = at.branch;
    {
        write_story(&open(place), &story).await;
    }
    // Flips a bit in each part of the row: version, number, time, length, head, text, hash.
    for byte in [0, 1, 2, 4, 8, 22, bytes.len() - 40, bytes.len() - 1] {
        assert!(place.damage("a", broken, byte), "it can be damaged");
        let store = open(place);
        let load = load(&store);
        let report = load.inspect().await.expect("read");
        let damaged: Vec<Line> = report.damaged.iter().map(|d| d.line).collect();
        assert_eq!(damaged, [broken], "byte {byte}");
        let affected: Vec<Id> = report.affected.iter().map(|(b, _)| *b).collect();
        assert_eq!(affected, [branch], "byte {byte}");
        let refused = load
            .snapshot(last(&story, branch))
            .await
            .expect_err("damaged");
        assert!(
            matches!(&refused, StoreError::Corrupt { place, .. } if place.contains("line 25")),
            "byte {byte}: {refused}"
        );
        let refused = load
            .ledger(last(&story, Id::MAIN))
            .await
            .expect_err("damaged");
        assert!(matches!(&refused, StoreError::Corrupt { .. }), "{refused}");
        // The path of the other branch does not contain that line, and loads undisturbed.
        let lines = story.iter().map(|(l, _)| l);
        let other = lines.map(|l| l.branch).find(|b| *b != branch);
        let head = last(&story, other.expect("there are two"));
        let loaded = load.snapshot(head).await.expect("it is untouched");
        assert_eq!(loaded.snapshot, folded(&story, head));
        drop(store);
        assert!(place.damage("a", broken, byte), "the bit is flipped back");
    }
    let report = load(&open(place)).inspect().await.expect("read");
    assert_eq!((report.damaged, report.affected), (vec![], vec![]));
}

pub(super) async fn rows_in_the_wrong_place_are_found(place: &impl Place) {
    let store = open(place);
    let story = story(6, None);
    let claim = claimed(&store, "a").await;
    let mut written: Vec<Row> = story
        .iter()
        .map(|(l, bytes)| Row {
            n: l.n,
            bytes: bytes.as_slice().into(),
        })
        .collect();
    // Line 4 is there twice, the second time in place of line 5; line 3 is missing.
    written[4].bytes = written[3].bytes.clone();
    written.remove(2);
    store
        .append(&claim, rows(written))
        .await
        .expect("a store does not read lines");
    let load = load(&store);
    let report = load.inspect().await.expect("read");
    let damaged: Vec<u64> = report.damaged.iter().map(|d| d.line.0).collect();
    assert_eq!(damaged, [3, 5]);
    assert_eq!(report.affected, [(Id::MAIN, Line(3))]);
    for at in [4, 5, 6] {
        assert!(load.snapshot(Line(at)).await.is_err(), "{at}");
    }
    assert!(load.snapshot(Line(2)).await.is_ok());
    assert_eq!(all(&store, "a").await.len(), 5);
}

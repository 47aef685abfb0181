//! Random sessions in a store.

use std::collections::BTreeMap;
use steersman::machine::stored::codec::{Hash, encode};
use steersman::machine::stored::commit::LogLine;
use steersman::machine::stored::ids::{Line, Time};
use steersman::runtime::store::memory::MemoryStore;
use steersman::runtime::store::{Batch, Log as _, Needs, NewSession, Row, Scope, Worker};

const SALT: [u8; 16] = [3; 16];

/// Writes the lines of a random session into a store.
pub(crate) async fn written(store: &MemoryStore, id: &str, lines: &[LogLine]) {
    let new = NewSession {
        id: id.into(),
        network: "random".into(),
        scope: Scope::default(),
        key: None,
        salt: SALT,
        created: Time(0),
        first: None,
        said: None,
        needs: Needs::default(),
    };
    store.create(new).await.unwrap();
    let claim = store.claim(id, &Worker::nameless()).await.unwrap();
    let mut hashes: BTreeMap<Line, Hash> = BTreeMap::new();
    let mut rows = Vec::new();
    for line in lines {
        let before = hashes.get(&line.prev).copied().unwrap_or_default();
        let (bytes, hash) = encode(line, &before, &SALT);
        hashes.insert(line.n, hash);
        rows.push(Row {
            n: line.n,
            bytes: bytes.into(),
        });
    }
    let batch = Batch {
        rows,
        ..Batch::default()
    };
    store.append(&claim, batch).await.unwrap();
}

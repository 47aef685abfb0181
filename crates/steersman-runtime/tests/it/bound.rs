//! The binding of a session: a program that cannot run the session under its stored binding refuses to drive it and to show
//! it.

use crate::spy::Spy;
use crate::world::{NOON, World, answered};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use steersman_machine::stored::codec;
use steersman_machine::stored::commit::{Binding, LogLine, Text};
use steersman_machine::stored::ids::{Digest, Id, Line};
use steersman_runtime::engine::Durability;
use steersman_runtime::inbox::{Begin, Message, Wanted};
use steersman_runtime::session::{Fate, Fork, Settled};
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{Batch, Needs, NewSession, Row, Scope, Worker};
use steersman_runtime::store::{Blobs as _, Log as _};

const TALK: &str = "agents: { main: { system: You talk. } }";

/// Returns a session whose lines were changed and then stored with valid hashes, as if another program had written them.
/// `source` replaces the stored definition; if it is empty, none is stored.
async fn changed(change: impl Fn(&mut LogLine), source: Option<&[u8]>) -> World {
    let script = json!({ "main": ["One.", "Two.", "Three."], "main@b1": ["Else."] });
    let world = World::new(script.clone());
    let session = world.start(TALK, "Go.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "One.");
    let fork = Fork {
        label: Some("b1".into()),
        say: Some("Else?".to_owned()),
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    session.settled().await.unwrap();
    session.stop().await;
    let salt = world.engine.inspect("session").await.unwrap().info.salt;
    let lines = world.lines().await;
    let store = MemoryStore::new();
    let new = NewSession {
        id: "session".into(),
        network: "test".into(),
        scope: Scope::default(),
        key: None,
        salt,
        created: NOON,
        first: None,
        said: None,
        needs: Needs::default(),
    };
    store.create(new).await.unwrap();
    let bound = |line: &LogLine| line.commit.as_ref().and_then(|c| c.binding.clone());
    let binding = lines.iter().find_map(|line| bound(line)).unwrap();
    let stored = world.store.blob(&binding.source).await.unwrap().unwrap();
    match source {
        None => store.put_blob(binding.source, stored).await.unwrap(),
        Some([]) => {}
        Some(other) => {
            let hash = *blake3::hash(other).as_bytes();
            store.put_blob(hash, other.into()).await.unwrap();
        }
    }
    let mut hashes = HashMap::from([(Line::NONE, [0; 32])]);
    let mut rows = Vec::new();
    for line in lines {
        let mut line = (*line).clone();
        change(&mut line);
        let (bytes, hash) = codec::encode(&line, &hashes[&line.prev], &salt);
        hashes.insert(line.n, hash);
        rows.push(Row {
            n: line.n,
            bytes: bytes.into(),
        });
    }
    let claim = store.claim("session", &Worker::nameless()).await.unwrap();
    let batch = Batch {
        rows,
        ..Batch::default()
    };
    store.append(&claim, batch).await.unwrap();
    drop(claim);
    World::over(Spy::over(Arc::new(store)), Durability::Commit, script)
}

fn binding(line: &mut LogLine) -> Option<&mut Binding> {
    line.commit.as_mut()?.binding.as_mut()
}

/// Checks that nobody can drive or inspect the session, and that both errors give this reason.
async fn refused(world: &World, why: &str) {
    let driven = world.engine.open("session").await.map(drop).unwrap_err();
    assert!(driven.to_string().contains(why), "{driven}");
    let seen = world.engine.inspect("session").await.map(drop).unwrap_err();
    assert!(seen.to_string().contains(why), "{seen}");
}

#[tokio::test]
async fn what_was_copied_as_it_is_goes_on() {
    let world = changed(|_| (), None).await;
    let session = world.open().await;
    session.say("On.").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Two.");
}

#[tokio::test]
async fn a_definition_that_compiles_to_something_else_is_refused() {
    let other = |line: &mut LogLine| {
        if let Some(binding) = binding(line) {
            binding.digest = Digest([0; 16]);
        }
    };
    refused(&changed(other, None).await, "it is bound to 000000").await;
}

#[tokio::test]
async fn a_newer_machine_is_refused() {
    let newer = |line: &mut LogLine| {
        if let Some(binding) = binding(line) {
            binding.machine += 1;
        }
    };
    refused(&changed(newer, None).await, "machine 2, this one is 1").await;
}

#[tokio::test]
async fn a_definition_that_is_not_there_or_is_none_is_refused() {
    let world = changed(|_| (), Some(b"")).await;
    refused(&world, "its definition is not in the store").await;
    let text = b"no definition";
    let elsewhere = |line: &mut LogLine| {
        if let Some(binding) = binding(line) {
            binding.source = *blake3::hash(text).as_bytes();
        }
    };
    refused(&changed(elsewhere, Some(text)).await, "it is no JSON").await;
}

#[tokio::test]
async fn values_that_cannot_be_read_are_not_made_up() {
    let gone = |line: &mut LogLine| {
        let at = binding(line).map(|binding| binding.values.k());
        if let Some(k) = at {
            line.bodies[k as usize] = Text::Erased { hash: [1; 32] };
        }
    };
    refused(&changed(gone, None).await, "the values of its binding").await;
}

/// All branches of a session run under one binding, so a session with two is refused.
#[tokio::test]
async fn a_branch_that_is_bound_otherwise_is_refused() {
    let bound = std::sync::Mutex::new(None);
    let rebound = |line: &mut LogLine| {
        if let Some(binding) = binding(line) {
            *bound.lock().unwrap() = Some(binding.clone());
        }
        if line.branch != Id::MAIN
            && let Some(commit) = &mut line.commit
            && commit.opening.is_some()
        {
            let other = bound.lock().unwrap().clone().map(|first| Binding {
                digest: Digest([5; 16]),
                ..first
            });
            commit.binding = other;
        }
    };
    refused(&changed(rebound, None).await, "is bound to 050505, main to").await;
}

/// A session that was never begun here, with the message that begins it.
async fn to_begin(change: impl FnOnce(&mut Begin)) -> World {
    let world = World::new(json!({ "main": ["One."] }));
    let network = crate::world::network(TALK);
    let values = steersman_runtime::bind::Values::default();
    let binding = steersman_runtime::bind::binding(&network, "main".into(), &values);
    let hash = binding.source;
    let mut begin = Begin {
        binding,
        values: serde_json::to_string(&values).unwrap(),
        agent: None,
        args: None,
        say: Some("Go.".to_owned()),
        history: None,
        state: Vec::new(),
        scope: Scope::default(),
        occasion: None,
    };
    change(&mut begin);
    let begin = Message::from(Wanted::Start(Box::new(begin)));
    let source: Arc<[u8]> = network.source.as_bytes().into();
    world.store.put_blob(hash, source).await.unwrap();
    let new = NewSession {
        id: "session".into(),
        network: "test".into(),
        scope: Scope::default(),
        key: None,
        salt: [1; 16],
        created: NOON,
        first: Some(begin.encode("m1".into(), NOON)),
        said: None,
        needs: Needs::default(),
    };
    world.store.create(new).await.unwrap();
    world
}

/// A session without a line is bound by the message that begins it. If that message names a newer machine, the session does
/// not begin.
#[tokio::test]
async fn a_session_of_a_newer_machine_does_not_begin() {
    let world = to_begin(|begin| begin.binding.machine += 1).await;
    let session = world.open().await;
    let refused = session.settled().await.unwrap_err().to_string();
    assert!(refused.contains("machine 2, this one is 1"), "{refused}");
    assert_eq!(world.lines().await.len(), 0, "nothing was written");
    let left = world.engine.inspect("session").await.unwrap();
    assert_eq!(left.inbox.len(), 1, "the message stays");
}

#[tokio::test]
async fn arguments_that_are_not_json_are_refused() {
    let world = to_begin(|begin| begin.args = Some("{ no".to_owned())).await;
    let session = world.open().await;
    let settled = session.settled().await.unwrap();
    assert!(matches!(*settled, Settled::Empty), "{settled:?}");
    let fate = session.fate_of(&"m1".into()).await;
    assert!(
        matches!(&fate, Fate::Refused(why) if why.contains("the arguments are not JSON")),
        "{fate:?}"
    );
}

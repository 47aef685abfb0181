//! The law of streams, over random sessions: for every position, the events on disk after it are the same from every process, in the
//! same order; and two readings that meet at any position are the whole.

use crate::world::{Frame, World, durable};
use crate::written::written;
use std::sync::Arc;
use steersman::runtime::store::memory::MemoryStore;
use steersman::views::event::{Cursor, Teller};
use steersman::views::reader::Stored;
use steersman_server::Options;
use steersman_testkit::random::{Dice, played};

#[tokio::test]
async fn two_readings_that_meet_anywhere_are_the_whole() {
    let sessions = std::env::var("STEERSMAN_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(12);
    let store = Arc::new(MemoryStore::new());
    let mut ids = Vec::new();
    for seed in 0..sessions {
        let world = played(seed, 24).unwrap();
        let id = format!("random-{seed}");
        written(&store, &id, world.lines()).await;
        ids.push((id, world.lines().last().unwrap().n));
    }
    let one = World::over(store.clone(), "desk: [ One. ]", Options::default()).await;
    let two = World::over(store, "desk: [ One. ]", Options::default()).await;
    let here = one.all("").await;
    let there = two.with(here.token.clone());
    for (id, head) in ids {
        let path = format!("/v1/sessions/{id}/events");
        let mut stream = here.stream(&path, None).await;
        let mut whole: Vec<Frame> = Vec::new();
        // The last line may have no event; then nothing tells its end.
        let reader = Arc::new(Stored::plain(one.steersman.engine(), &id));
        let mut teller = Teller::new(reader);
        let told = teller.after(Cursor::START, usize::MAX).await.unwrap();
        while whole.len() < told.len() {
            whole.extend(durable(&[stream.next().await.unwrap()]));
        }
        for (frame, event) in whole.iter().zip(&told) {
            assert_eq!(frame.data, event.to_json(), "{id}");
        }
        assert!(whole.last().unwrap().data["line"].as_u64() <= Some(head.0));
        let mut dice = Dice::new(head.0);
        for _ in 0..6 {
            let cut = usize::try_from(dice.below(whole.len() as u64)).unwrap();
            let mut later = there.stream(&path, whole[cut].id.as_deref()).await;
            let mut rest = Vec::new();
            while rest.len() < whole.len() - cut - 1 {
                rest.extend(durable(&[later.next().await.unwrap()]));
            }
            assert_eq!(rest, whole[cut + 1..], "{id} after {:?}", whole[cut].id);
        }
    }
}

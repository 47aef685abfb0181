//! Tools that judge the branches of a search: no more run at once than the tool allows, and none outlives the search.

use crate::search::{dice, newest, script, seen};
use crate::world::{Does, World, answered};
use serde_json::json;
use std::sync::Arc;
use steersman_runtime::inbox::CancelWhat;
use tokio::sync::Semaphore;

/// Waits until a tool has run this number of times, and some time longer.
async fn ran(world: &World, tool: &str, times: usize) {
    while world.tools.count(tool) < times {
        tokio::task::yield_now().await;
    }
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn as_many_judge_at_once_as_of_any_call_of_the_tool() {
    let world = World::new(script());
    let gate = Arc::new(Semaphore::new(0));
    for eyes in 0..30 {
        let does = Does::Gate(gate.clone(), json!(eyes));
        world.tools.will("judge", does);
    }
    let definition = dice("search: { n: 30, by: judge }");
    let definition =
        definition.replace("effect: pure, native", "effect: pure, parallel: 3, native");
    let session = world.start(&definition, "Roll.").await;
    ran(&world, "judge", 3).await;
    assert_eq!(world.tools.count("judge"), 3, "the others wait");
    gate.add_permits(2);
    ran(&world, "judge", 5).await;
    assert_eq!(
        world.tools.count("judge"),
        5,
        "one more for each that ended"
    );
    gate.add_permits(28);
    assert_eq!(answered(&session.settled().await.unwrap()), "Rolled.");
    assert_eq!(world.tools.count("judge"), 30);
    let (_, search) = newest(&seen(&world).await);
    assert!(
        search
            .stood
            .iter()
            .all(|s| !matches!(s.score, Some(Err(_))))
    );
}

#[tokio::test]
async fn who_judges_is_told_to_end_with_the_search() {
    let world = World::new(script());
    for _ in 0..20 {
        world.tools.will("judge", Does::Cut);
    }
    let session = world
        .start(&dice("search: { n: 20, by: judge }"), "Roll.")
        .await;
    ran(&world, "judge", 8).await;
    session.cancel(CancelWhat::Session, "user").await.unwrap();
    session.settled().await.unwrap();
    while world.tools.cut() < 8 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        world.tools.count("judge"),
        8,
        "calls that waited never began"
    );
}

#[tokio::test]
async fn who_judges_is_told_to_end_with_the_session() {
    let world = World::new(script());
    world.tools.will("judge", Does::Cut);
    let session = world
        .start(&dice("search: { n: 1, by: judge }"), "Roll.")
        .await;
    ran(&world, "judge", 1).await;
    drop(session);
    world.engine.kill().await;
    while world.tools.cut() < 1 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn why_an_agent_could_not_judge_is_in_the_log() {
    let mut script = script();
    script["critic"] = json!([]);
    let world = World::new(script);
    let session = world
        .start(&dice("search: { n: 2, by: critic }"), "Roll.")
        .await;
    session.settled().await.unwrap();
    let found = seen(&world).await;
    let (_, search) = newest(&found);
    let whys = search.stood.iter().filter_map(|stood| match stood.score {
        Some(Err(Some(why))) => Some(found.history.text(why)),
        _ => None,
    });
    let whys: Vec<_> = whys.collect();
    assert_eq!(whys.len(), 2);
    let wanted = "who judges ended: failed: the script has 0 answers for `critic`, number 1 is";
    assert!(whys.iter().all(|why| why.contains(wanted)), "{whys:?}");
}

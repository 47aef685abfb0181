//! Steps of a tool in Rust where its call does not simply go on: on other branches, in reruns, at a time limit, in a restored store,
//! and in a driver that is read from its store before each event.

use crate::steps::{DAY, World, answered, asked, network, order};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steersman::machine::stored::ids::Id;
use steersman::{
    By, Fork, Network, Rerun, Resolution, Session, Steersman, Tool, ToolError, Turn, testing,
};
use tokio::sync::Notify;

/// A tool with a step, a wait of a day and another step.
fn waits(world: &World) -> Tool {
    let its = world.clone();
    order(move |cx| {
        let its = its.clone();
        async move {
            cx.step("a", its.does("a")).await?;
            cx.wait("a day", Duration::from_millis(DAY)).await?;
            cx.step("b", its.does("b")).await
        }
    })
}

/// A session whose tool waits behind its first step.
async fn waiting(world: &World, class: fn(Tool) -> Tool) -> (Steersman, Session) {
    let steersman = world.process();
    let network = network(class(waits(world)));
    let session = steersman.start(&network).await.unwrap();
    session.say("Order.").await.unwrap();
    assert!(matches!(session.settled().await.unwrap(), Turn::Waits(_)));
    (steersman, session)
}

/// Lets a day pass and waits until this many steps have run.
async fn a_day_passes(world: &World, runs: usize) {
    world.clock.advance(DAY);
    while world.runs().len() < runs {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_fork_does_not_run_the_steps_of_an_unsafe_call_again() {
    let world = World::new();
    let (_steersman, session) = waiting(&world, Tool::unsafe_).await;
    let fork = Fork {
        live: true,
        ..Fork::default()
    };
    let branch = session.fork(fork).await.unwrap();
    assert_ne!(branch, Id::MAIN);
    assert_eq!(world.runs(), ["a"], "the call is not made on the branch");
    a_day_passes(&world, 2).await;
    assert_eq!(answered(&session).await, "b is done");
    assert_eq!(world.runs(), ["a", "b"]);
}

#[tokio::test]
async fn a_fork_asks_a_free_call_again_and_that_call_has_steps_of_its_own() {
    let world = World::new();
    let (_steersman, session) = waiting(&world, Tool::read).await;
    let fork = Fork {
        live: true,
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    while world.runs().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.runs(), ["a", "a"]);
    a_day_passes(&world, 4).await;
    assert_eq!(world.runs(), ["a", "a", "b", "b"]);
    assert_eq!(answered(&session).await, "b is done");
}

#[tokio::test]
async fn a_rewind_keeps_the_steps_of_a_call_that_is_done() {
    let world = World::new();
    let (steersman, session) = waiting(&world, Tool::unsafe_).await;
    a_day_passes(&world, 2).await;
    assert_eq!(answered(&session).await, "b is done");
    let first = steersman::machine::stored::ids::Line(2);
    session.rewind(first, None).await.unwrap();
    let mut open = Vec::new();
    for _ in 0..1_000 {
        open = steersman.pending(session.id()).await.unwrap();
        if !open.is_empty() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let repeat = open.first().expect("an equal call is asked about");
    assert!(
        repeat.text().contains("was done before"),
        "{}",
        repeat.text()
    );
    assert_eq!(
        world.runs(),
        ["a", "b"],
        "an equal call is not begun without a word"
    );
    session
        .reject(repeat, "once is enough", By::user())
        .await
        .unwrap();
    let _ = session.settled().await.unwrap();
    assert_eq!(world.runs(), ["a", "b"]);
}

#[tokio::test]
async fn a_rerun_runs_no_step() {
    let world = World::new();
    let (steersman, session) = waiting(&world, Tool::idempotent).await;
    a_day_passes(&world, 2).await;
    assert_eq!(answered(&session).await, "b is done");
    let rerun = steersman
        .rerun(session.id(), Rerun::default())
        .await
        .unwrap();
    assert!(rerun.diverged.is_none(), "{rerun:?}");
    let again = steersman.session(&rerun.session).await.unwrap();
    assert_eq!(answered(&again).await, "b is done");
    assert_eq!(world.runs(), ["a", "b"]);
}

#[tokio::test]
async fn a_time_limit_during_a_step_is_a_doubt_that_names_it_and_each_attempt_has_the_full_time() {
    let (world, stops) = (World::new(), Arc::new(Notify::new()));
    let (its, at) = (world.clone(), stops.clone());
    let tool = order(move |cx| {
        let (its, at) = (its.clone(), at.clone());
        async move {
            cx.step("a", its.does("a")).await?;
            let b = async {
                let done = its.does("b").await;
                if cx.attempt() == 1 {
                    at.notify_one();
                    std::future::pending::<()>().await;
                }
                done
            };
            cx.step("b", b).await
        }
    });
    let steersman = world.process();
    let network = network(tool.unsafe_().key("timeout", "1m"));
    let session = steersman.start(&network).await.unwrap();
    session.say("Order.").await.unwrap();
    stops.notified().await;
    let clock = world.clock.clone();
    let passes = async {
        loop {
            clock.advance(30_000);
            tokio::task::yield_now().await;
        }
    };
    let doubt = tokio::select! {
        doubt = asked(&session) => doubt,
        () = passes => unreachable!("time does not end"),
    };
    let text = doubt.text();
    assert!(
        text.starts_with("step `b` of `order` may have happened"),
        "{text}"
    );
    session
        .resolve(&doubt, Resolution::NotPerformed, By::user())
        .await
        .unwrap();
    assert_eq!(answered(&session).await, "b is done");
    assert_eq!(world.runs(), ["a", "b", "b"]);
}

/// The restored store lacks the last step. Its owner did not know of it, so the call is in doubt as a whole.
#[tokio::test]
async fn a_restored_store_that_lacks_steps_doubts_the_whole_call() {
    let folder = std::env::temp_dir().join(format!("steersman-restored-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (store, kept) = (folder.join("store.db"), folder.join("kept.db"));
    let process = || {
        Steersman::options()
            .script_all("desk: [ { call: { order: { n: 1 } } }, \"{{ request.last }}\" ]")
            .open(&store)
    };
    let runs: Arc<Mutex<Vec<&str>>> = Arc::default();
    let (reached, goes) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (its, at, on) = (runs.clone(), reached.clone(), goes.clone());
    let restored = Arc::new(AtomicBool::new(false));
    let is_restored = restored.clone();
    let tool = order(move |cx| {
        let (its, at, on) = (its.clone(), at.clone(), on.clone());
        let restored = is_restored.load(Ordering::SeqCst);
        async move {
            for name in ["a", "b"] {
                let does = async {
                    its.lock().unwrap().push(name);
                    Ok::<_, ToolError>(name.to_owned())
                };
                cx.step(name, does).await?;
                if !restored {
                    at.notify_one();
                    on.notified().await;
                }
            }
            Ok("all".to_owned())
        }
    });
    let network = network(tool.unsafe_());
    let steersman = process().await.unwrap();
    let session = steersman.start(&network).await.unwrap();
    let id = session.id().to_owned();
    session.say("Order.").await.unwrap();
    reached.notified().await;
    steersman.backup(&kept).await.unwrap();
    goes.notify_one();
    reached.notified().await;
    assert_eq!(*runs.lock().unwrap(), ["a", "b"]);
    steersman.engine().kill().await;
    drop((session, steersman));
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(folder.join(name));
    }
    std::fs::copy(&kept, &store).unwrap();
    restored.store(true, Ordering::SeqCst);

    let refused = process().await.unwrap_err();
    assert!(
        refused.to_string().contains("restored from a backup"),
        "{refused}"
    );
    assert!(Steersman::accept_store(&store).await.unwrap().is_some());
    let steersman = process().await.unwrap();
    steersman.register(&network);
    let session = steersman.session(&id).await.unwrap();
    let doubt = asked(&session).await;
    assert!(
        doubt.text().starts_with("`order` may have happened"),
        "{}",
        doubt.text()
    );
    assert_eq!(*runs.lock().unwrap(), ["a", "b"], "no step runs unasked");
    steersman.stop().await;
    drop((session, steersman));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The second run of a replayed test reads its sessions again from the store between any two events.
#[tokio::test]
async fn steps_and_waits_are_the_same_in_a_driver_that_is_read_again_before_each_event() {
    let world = World::new();
    let network = Network::from_yaml(
        "
tools: { order: { native: 1, description: Orders., parameters: { n: integer }, effect: read } }
agents: { desk: { system: You order., tools: [order] } }
tests:
  orders:
    script: { desk: [ { call: { order: { n: 1 } } }, Done. ] }
    steps: [ { say: Order. }, { advance: 1d } ]
    expect: [ { answer: Done. }, { that: calls.order.result == 'b is done' } ]
",
    )
    .tool(waits(&world).read())
    .build()
    .unwrap();
    let how = testing::How {
        live: false,
        twice: true,
        real: true,
    };
    let report = testing::run_as(&network, "orders", how).await;
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    assert_eq!(world.runs(), ["a", "b", "a", "b"]);
}

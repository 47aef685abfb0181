//! Steps and waits inside of a tool in Rust: each finished step runs once in the session's life, whatever kills the process.

use schemars::JsonSchema;
use serde::Deserialize;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steersman::machine::stored::ids::Time;
use steersman::runtime::clock::Virtual;
use steersman::runtime::store::Store;
use steersman::runtime::store::memory::MemoryStore;
use steersman::views::effects::Effects;
use steersman::views::log::Log;
use steersman::views::reader::Stored;
use steersman::{
    By, CancelWhat, Cursor, EventKind, Network, Question, Resolution, Session, Steersman, Tool,
    ToolContext, ToolError, Turn, agent, tool_with,
};
use tokio::sync::{Notify, Semaphore};

#[derive(Deserialize, JsonSchema)]
struct Order {
    n: u8,
}

pub(crate) const DAY: u64 = 24 * 3_600_000;

/// A store and a clock that outlive processes, and what the steps have done in the world.
#[derive(Clone)]
pub(crate) struct World {
    store: Arc<dyn Store>,
    pub(crate) clock: Virtual,
    runs: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            store: Arc::new(MemoryStore::new()),
            clock: Virtual::at(Time(1_767_614_400_000)),
            runs: Arc::default(),
        }
    }

    /// A step that does something in the world.
    pub(crate) fn does(
        &self,
        what: &str,
    ) -> impl Future<Output = Result<String, ToolError>> + use<> {
        let (runs, what) = (self.runs.clone(), what.to_owned());
        async move {
            runs.lock().unwrap().push(what.clone());
            Ok(format!("{what} is done"))
        }
    }

    pub(crate) fn runs(&self) -> Vec<String> {
        self.runs.lock().unwrap().clone()
    }

    /// A process over the store.
    pub(crate) fn process(&self) -> Steersman {
        self.process_of("desk: [ { call: { order: { n: 1 } } }, \"{{ request.last }}\" ]")
    }

    /// A process whose models answer from a script.
    pub(crate) fn process_of(&self, script: &str) -> Steersman {
        Steersman::options()
            .script_all(script)
            .clock(Arc::new(self.clock.clone()))
            .env(|name| (name == "TOKEN").then(|| "tk-123456".to_owned()))
            .over_shared(self.store.clone(), &[1; 32])
    }
}

pub(crate) fn network(order: Tool) -> Network {
    Network::builder("desk")
        .tool(order.describe("Orders."))
        .agent(agent("desk").system("You order.").tools(["order"]))
        .entry("desk")
        .build()
        .unwrap()
}

pub(crate) fn order<F, Fut>(run: F) -> Tool
where
    F: Fn(ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    tool_with("order", 1, move |order: Order, cx| {
        assert_eq!(order.n, 1);
        run(cx)
    })
}

pub(crate) async fn asked(session: &Session) -> Question {
    match session.settled().await.unwrap() {
        Turn::Asks(mut questions) => questions.remove(0),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn answered(session: &Session) -> String {
    match session.settled().await.unwrap() {
        Turn::Answer(answer) => answer.text().to_owned(),
        other => panic!("{other:?}"),
    }
}

async fn says(session: &Session, text: &str) -> String {
    session.say(text).await.unwrap();
    answered(session).await
}

pub(crate) async fn course(steersman: &Steersman, session: &str) -> Option<String> {
    let log = Log::read(&Stored::masked(steersman.engine(), session))
        .await
        .unwrap();
    let effects = Effects::of(&log.lines, &log.texts, None);
    effects
        .all()
        .find_map(steersman::views::effects::Effect::course)
}

const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

#[tokio::test]
async fn a_tool_that_is_killed_behind_each_of_its_steps_does_each_step_once() {
    for class in [Tool::pure, Tool::read, Tool::idempotent, Tool::unsafe_] {
        let world = World::new();
        let mut id: Option<String> = None;
        for kill in 0..=NAMES.len() {
            let reached = Arc::new(Notify::new());
            let (at, its) = (reached.clone(), world.clone());
            let tool = order(move |cx| {
                let (at, its) = (at.clone(), its.clone());
                async move {
                    let mut done = Vec::new();
                    for (n, name) in NAMES.into_iter().enumerate() {
                        done.push(cx.step(name, its.does(name)).await?);
                        if n == kill {
                            at.notify_one();
                            std::future::pending::<()>().await;
                        }
                    }
                    Ok(done.last().unwrap().clone())
                }
            });
            let (steersman, network) = (world.process(), network(class(tool)));
            steersman.register(&network);
            let session = match &id {
                None => {
                    let session = steersman.start(&network).await.unwrap();
                    session.say("Order.").await.unwrap();
                    session
                }
                Some(id) => steersman.session(id).await.unwrap(),
            };
            id = Some(session.id().to_owned());
            if kill < NAMES.len() {
                reached.notified().await;
                steersman.engine().kill().await;
            } else {
                assert_eq!(answered(&session).await, "j is done");
            }
        }
        assert_eq!(world.runs(), NAMES);
    }
}

/// A tool of three steps whose second one stops in the first process.
fn stops_in_b(world: &World, stops: &Arc<Notify>) -> Tool {
    let (its, stops) = (world.clone(), stops.clone());
    order(move |cx| {
        let (its, stops) = (its.clone(), stops.clone());
        async move {
            cx.step("a", its.does("a")).await?;
            let first = cx.attempt() == 1;
            let b = async {
                let done = its.does("b").await;
                if first {
                    stops.notify_one();
                    std::future::pending::<()>().await;
                }
                done
            };
            cx.step("b", b).await?;
            cx.step("c", its.does("c")).await
        }
    })
}

#[tokio::test]
async fn a_step_whose_end_is_unknown_is_a_doubt_with_its_name_and_runs_again_if_it_did_not_happen()
{
    let (world, stops) = (World::new(), Arc::new(Notify::new()));
    let network = network(stops_in_b(&world, &stops));
    let steersman = world.process();
    let session = steersman.start(&network).await.unwrap();
    session.say("Order.").await.unwrap();
    stops.notified().await;
    steersman.engine().kill().await;

    let steersman = world.process();
    steersman.register(&network);
    let session = steersman.session(session.id()).await.unwrap();
    let doubt = asked(&session).await;
    assert_eq!(
        doubt.text(),
        "step `b` of `order` may have happened (its owner died before the outcome was known). Did it?"
    );
    assert_eq!(
        course(&steersman, session.id()).await.unwrap(),
        "1 step done, `b` began"
    );
    session
        .resolve(&doubt, Resolution::NotPerformed, By::user())
        .await
        .unwrap();
    assert_eq!(answered(&session).await, "c is done");
    assert_eq!(world.runs(), ["a", "b", "b", "c"]);
}

#[tokio::test]
async fn a_tool_that_may_be_repeated_repeats_only_the_step_that_did_not_end() {
    let (world, stops) = (World::new(), Arc::new(Notify::new()));
    let network = network(stops_in_b(&world, &stops).idempotent());
    let steersman = world.process();
    let session = steersman.start(&network).await.unwrap();
    session.say("Order.").await.unwrap();
    stops.notified().await;
    steersman.engine().kill().await;

    let steersman = world.process();
    steersman.register(&network);
    let session = steersman.session(session.id()).await.unwrap();
    assert_eq!(answered(&session).await, "c is done");
    assert_eq!(world.runs(), ["a", "b", "b", "c"]);
}

#[tokio::test]
async fn a_stop_lets_go_between_two_steps() {
    let (world, reached, gate) = (
        World::new(),
        Arc::new(Notify::new()),
        Arc::new(Semaphore::new(0)),
    );
    let (its, at, opens) = (world.clone(), reached.clone(), gate.clone());
    let tool = order(move |cx| {
        let (its, at, opens) = (its.clone(), at.clone(), opens.clone());
        async move {
            let a = async {
                at.notify_one();
                opens.acquire().await.unwrap().forget();
                its.does("a").await
            };
            cx.step("a", a).await?;
            cx.step("b", its.does("b")).await
        }
    });
    let network = network(tool);
    let steersman = world.process();
    let session = steersman.start(&network).await.unwrap();
    session.say("Order.").await.unwrap();
    reached.notified().await;
    let id = session.id().to_owned();
    let stops = async {
        tokio::task::yield_now().await;
        gate.add_permits(1);
    };
    tokio::join!(steersman.stop(), stops);
    assert_eq!(world.runs(), ["a"], "no step begins behind a stop");

    let steersman = world.process();
    steersman.register(&network);
    let session = steersman.session(&id).await.unwrap();
    assert_eq!(answered(&session).await, "b is done");
    assert_eq!(world.runs(), ["a", "b"]);
}

#[tokio::test]
async fn a_wait_is_durable_and_a_stop_or_kill_does_not_lengthen_it() {
    for class in [Tool::read, Tool::unsafe_] {
        let world = World::new();
        let its = world.clone();
        let tool = order(move |cx| {
            let its = its.clone();
            async move {
                cx.step("a", its.does("a")).await?;
                cx.wait("a day", Duration::from_millis(DAY)).await?;
                cx.step("b", its.does("b")).await
            }
        });
        let network = network(class(tool));
        let steersman = world.process();
        let session = steersman.start(&network).await.unwrap();
        session.say("Order.").await.unwrap();
        let Turn::Waits(waits) = session.settled().await.unwrap() else {
            panic!("it waits for a time");
        };
        assert_eq!(waits[0].tool(), Some("order"));
        steersman.stop().await;
        world.clock.advance(DAY / 2);

        let steersman = world.process();
        steersman.register(&network);
        let id = session.id().to_owned();
        let session = steersman.session(&id).await.unwrap();
        assert!(matches!(session.settled().await.unwrap(), Turn::Waits(_)));
        assert_eq!(world.runs(), ["a"]);
        steersman.engine().kill().await;
        world.clock.advance(DAY / 2);

        let steersman = world.process();
        steersman.register(&network);
        let session = steersman.session(&id).await.unwrap();
        assert_eq!(answered(&session).await, "b is done");
        assert_eq!(world.runs(), ["a", "b"]);
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_while_it_waits_may_have_happened() {
    let world = World::new();
    let its = world.clone();
    let tool = order(move |cx| {
        let its = its.clone();
        async move {
            cx.step("a", its.does("a")).await?;
            cx.wait("a day", Duration::from_millis(DAY)).await?;
            cx.step("b", its.does("b")).await
        }
    });
    let steersman = world.process();
    let session = steersman.start(&network(tool)).await.unwrap();
    session.say("Order.").await.unwrap();
    let Turn::Waits(waits) = session.settled().await.unwrap() else {
        panic!("it waits for a time");
    };
    let call = CancelWhat::Effect(waits[0].id().effect);
    session.cancel(call, By::user()).await.unwrap();
    let told = answered(&session).await;
    assert!(told.contains("may have"), "{told}");
    world.clock.advance(2 * DAY);
    assert_eq!(world.runs(), ["a"]);
}

#[tokio::test]
async fn two_steps_of_one_name_are_an_error_and_the_second_does_not_run() {
    let world = World::new();
    let its = world.clone();
    let tool = order(move |cx| {
        let its = its.clone();
        async move {
            cx.step("a", its.does("a")).await?;
            cx.step("a", its.does("again")).await
        }
    });
    let steersman = world.process();
    let session = steersman.start(&network(tool.idempotent())).await.unwrap();
    let told = says(&session, "Order.").await;
    assert!(
        told.contains("step `a`: this attempt had a step of this name"),
        "{told}"
    );
    assert_eq!(world.runs(), ["a"]);
}

#[tokio::test]
async fn steps_side_by_side_are_recorded_and_a_panic_leaves_a_doubt() {
    let world = World::new();
    let its = world.clone();
    let tool = order(move |cx| {
        let its = its.clone();
        async move {
            let both = tokio::join!(cx.step("a", its.does("a")), cx.step("b", its.does("b")));
            both.0?;
            both.1?;
            cx.step("c", async {
                assert!(cx.attempt() > 1, "out of order");
                Ok::<_, ToolError>("c is done".to_owned())
            })
            .await
        }
    });
    let steersman = world.process();
    let session = steersman.start(&network(tool)).await.unwrap();
    session.say("Order.").await.unwrap();
    let doubt = asked(&session).await;
    assert!(
        doubt
            .text()
            .starts_with("step `c` of `order` may have happened"),
        "{}",
        doubt.text()
    );
    session
        .resolve(&doubt, Resolution::NotPerformed, By::user())
        .await
        .unwrap();
    assert_eq!(answered(&session).await, "c is done");
    let mut runs = world.runs();
    runs.sort();
    assert_eq!(runs, ["a", "b"]);
}

#[tokio::test]
async fn a_step_after_the_end_of_its_call_does_not_run() {
    let world = World::new();
    let (its, late) = (world.clone(), Arc::new(Mutex::new(None)));
    let keeps = late.clone();
    let tool = order(move |cx| {
        *keeps.lock().unwrap() = Some(cx.clone());
        let a = its.does("a");
        async move { cx.step("a", a).await }
    });
    let steersman = world.process();
    let session = steersman.start(&network(tool)).await.unwrap();
    assert_eq!(says(&session, "Order.").await, "a is done");
    let cx = late.lock().unwrap().take().unwrap();
    let error = cx.step("b", world.does("b")).await.unwrap_err();
    assert!(
        error.to_string().contains("does not run any more"),
        "{error}"
    );
    assert_eq!(world.runs(), ["a"]);
}

#[tokio::test]
async fn the_end_of_a_step_whose_call_was_cancelled_is_in_the_log() {
    let (world, reached, gate) = (
        World::new(),
        Arc::new(Notify::new()),
        Arc::new(Semaphore::new(0)),
    );
    let (its, at, opens) = (world.clone(), reached.clone(), gate.clone());
    let tool = order(move |cx| {
        let (its, at, opens) = (its.clone(), at.clone(), opens.clone());
        async move {
            let a = async {
                at.notify_one();
                opens.acquire().await.unwrap().forget();
                its.does("a").await
            };
            cx.step("a", a).await?;
            cx.step("b", its.does("b")).await
        }
    });
    let steersman = world.process();
    let session = steersman.start(&network(tool)).await.unwrap();
    session.say("Order.").await.unwrap();
    reached.notified().await;
    session
        .cancel(CancelWhat::Session, By::user())
        .await
        .unwrap();
    gate.add_permits(1);
    steersman.stop().await;
    assert_eq!(world.runs(), ["a"], "no step begins behind a cancel");
    let steersman = world.process();
    assert_eq!(
        course(&steersman, session.id()).await.unwrap(),
        "1 step done"
    );
}

#[tokio::test]
async fn a_secret_in_the_result_of_a_step_is_sealed_and_a_later_attempt_gets_it() {
    let world = World::new();
    let seen: Arc<Mutex<Vec<(u32, String)>>> = Arc::default();
    let hears = seen.clone();
    let tool = order(move |cx| {
        let hears = hears.clone();
        async move {
            let token = cx.secret("token")?;
            let link = async { Ok::<_, ToolError>(format!("https://x/?t={token}")) };
            let link = cx.step("link", link).await?;
            hears.lock().unwrap().push((cx.attempt(), link));
            cx.wait("a while", Duration::from_mins(1)).await?;
            Ok("done".to_owned())
        }
    });
    let network = Network::from_yaml(
        "
secrets: { token: { env: TOKEN } }
tools: { order: { native: 1, description: Orders., parameters: { n: integer }, effect: idempotent } }
agents: { desk: { system: You order., tools: [order] } }
",
    )
    .tool(tool.idempotent())
    .build()
    .unwrap();
    let steersman = world.process();
    let session = steersman.start(&network).await.unwrap();
    session.say("Order.").await.unwrap();
    assert!(matches!(session.settled().await.unwrap(), Turn::Waits(_)));
    world.clock.advance(60_000);
    while seen.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(answered(&session).await, "done");
    let link = || "https://x/?t=tk-123456".to_owned();
    assert_eq!(*seen.lock().unwrap(), [(1, link()), (2, link())]);
    let log = Log::read(&Stored::plain(steersman.engine(), session.id()))
        .await
        .unwrap();
    let stored = format!("{:?}", log.lines);
    assert!(!stored.contains("tk-123456"));
}

#[tokio::test]
async fn errors_of_steps_are_recorded_and_a_result_that_is_too_large_is_one() {
    let world = World::new();
    let its = world.clone();
    let tool = order(move |cx| {
        let its = its.clone();
        async move {
            let large = async { Ok::<_, ToolError>("x".repeat(300 << 10)) };
            let large = cx.step("large", large).await.unwrap_err();
            let closed = async {
                its.does("closed").await?;
                Err::<(), _>(ToolError::not_performed("it is closed").code("closed"))
            };
            let closed = cx.step("closed", closed).await.unwrap_err();
            let busy = async {
                its.does("busy").await?;
                if cx.attempt() == 1 {
                    return Err(ToolError::not_performed("it is busy").retry_after(1));
                }
                Ok(())
            };
            let busy = cx.step("busy", busy).await;
            cx.wait("a minute", Duration::from_mins(1)).await?;
            let busy = busy.map_or_else(|e| e.to_string(), |()| "fine".to_owned());
            Ok(format!("{large}; {closed}; {busy}"))
        }
    });
    let steersman = world.process();
    let session = steersman.start(&network(tool)).await.unwrap();
    session.say("Order.").await.unwrap();
    assert!(matches!(session.settled().await.unwrap(), Turn::Waits(_)));
    world.clock.advance(60_000);
    while world.runs().len() < 3 {
        tokio::task::yield_now().await;
    }
    let told = answered(&session).await;
    assert!(
        told.contains("step `large` is done, but its result has"),
        "{told}"
    );
    assert!(told.ends_with("it is closed; fine"), "{told}");
    assert_eq!(world.runs(), ["closed", "busy", "busy"]);
}

#[tokio::test]
async fn events_and_the_log_tell_steps() {
    let world = World::new();
    let its = world.clone();
    let tool = order(move |cx| {
        let its = its.clone();
        async move { cx.step("a", its.does("a")).await }
    });
    let steersman = world.process();
    let session = steersman.start(&network(tool)).await.unwrap();
    assert_eq!(says(&session, "Order.").await, "a is done");
    let mut events = session.events(Cursor::START);
    let mut told = Vec::new();
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        match &event.kind {
            EventKind::Stepped { .. } => {
                let mut json = event.to_json();
                for key in ["cursor", "at"] {
                    json.as_object_mut().unwrap().remove(key);
                }
                told.push(json.to_string());
            }
            EventKind::Finished { .. } => break,
            _ => {}
        }
    }
    insta::assert_snapshot!(told.join("\n"));
}

// ---- a process that is killed

fn ledger_file(folder: &Path) -> PathBuf {
    folder.join("world.txt")
}

/// Runs only in a process of its own: takes the session up, and kills itself behind, or inside of, the steps that the file `plan`
/// names.
#[tokio::test]
#[ignore = "the test below starts it"]
async fn child() {
    let folder = PathBuf::from(std::env::var("STEERSMAN_STEPS").unwrap());
    let dies_behind = std::env::var("STEERSMAN_DIES").unwrap_or_default();
    let its = folder.clone();
    let tool = order(move |cx| {
        let (folder, dies_behind) = (its.clone(), dies_behind.clone());
        async move {
            for name in NAMES {
                let world = ledger_file(&folder);
                let does = async move {
                    let file = std::fs::OpenOptions::new()
                        .create(true)
                        .append(true)
                        .open(world);
                    writeln!(file.unwrap(), "{name}").unwrap();
                    Ok::<_, ToolError>(name.to_owned())
                };
                let got = cx.step(name, does).await?;
                assert_eq!(got, name);
                if dies_behind == name {
                    std::process::abort();
                }
            }
            Ok("all".to_owned())
        }
    });
    let network = network(tool);
    let steersman = Steersman::options()
        .script_all("desk: [ { call: { order: { n: 1 } } }, \"{{ request.last }}\" ]")
        .open(folder.join("store.db"))
        .await
        .unwrap();
    steersman.register(&network);
    let named = folder.join("session");
    let session = if let Ok(id) = std::fs::read_to_string(&named) {
        steersman.session(&id).await.unwrap()
    } else {
        let session = steersman.start(&network).await.unwrap();
        std::fs::write(&named, session.id()).unwrap();
        session.say("Order.").await.unwrap();
        session
    };
    assert_eq!(answered(&session).await, "all");
    steersman.stop().await;
}

#[test]
fn a_killed_process_does_each_step_of_an_unsafe_tool_once() {
    let folder = std::env::temp_dir().join(format!("steersman-steps-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for dies in NAMES.into_iter().chain([""]) {
        let ended = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "steps::child", "--ignored", "-q"])
            .env("STEERSMAN_STEPS", &folder)
            .env("STEERSMAN_DIES", dies)
            .output()
            .unwrap();
        assert_eq!(ended.status.success(), dies.is_empty(), "{dies}: {ended:?}");
    }
    let done = std::fs::read_to_string(ledger_file(&folder)).unwrap();
    assert_eq!(done.lines().collect::<Vec<_>>(), NAMES);
    std::fs::remove_dir_all(&folder).unwrap();
}

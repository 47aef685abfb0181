//! Tools in Rust: results, errors, panics, cancels, secrets.

use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use steersman::{
    CancelWhat, Cursor, EventKind, Network, Steersman, Tool, ToolError, Turn, agent, blocking,
    tool, tool_with,
};
use tokio::sync::Notify;

#[derive(Deserialize, JsonSchema)]
struct Count {
    n: u8,
}

/// The text that the model gets from this call, or the state of the session if it does not answer.
async fn seen(tool: Tool, args: &str) -> String {
    let network = Network::builder("one")
        .tool(tool.describe("Counts."))
        .agent(agent("desk").system("You count.").tools(["count"]))
        .entry("desk")
        .build()
        .unwrap();
    let script = format!("desk: [ {{ call: {{ count: {args} }} }}, \"{{{{ request.last }}}}\" ]");
    let steersman = Steersman::options().script_all(script).in_memory();
    let session = steersman.start(&network).await.unwrap();
    match session.ask("Count.").await.unwrap() {
        Turn::Answer(answer) => answer.text().to_owned(),
        Turn::Asks(asked) => format!("asks: {}", asked[0]),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn results_and_errors_are_seen_by_the_model() {
    let count = || {
        tool(
            "count",
            1,
            |c: Count| async move { Ok::<_, String>(c.n + 1) },
        )
        .pure()
    };
    assert_eq!(seen(count(), "{ n: 4 }").await, "5");
    let misfit = seen(count(), "{ n: many }").await;
    assert!(misfit.contains("misfit"), "{misfit}");

    let fails = || {
        tool("count", 1, |_: Count| async {
            Err::<u8, _>("no such thing")
        })
    };
    let told = seen(fails().pure(), "{ n: 4 }").await;
    assert!(told.contains("no such thing"), "{told}");
    // an unsafe tool that fails may have had its effect, so a person is asked
    let told = seen(fails().unsafe_(), "{ n: 4 }").await;
    assert!(told.starts_with("asks:"), "{told}");
    let proved = tool("count", 1, |_: Count| async {
        Err::<u8, _>(ToolError::not_performed("closed today").code("closed"))
    });
    let told = seen(proved.unsafe_(), "{ n: 4 }").await;
    assert!(told.contains("closed today"), "{told}");
}

#[tokio::test]
async fn a_panic_is_an_outcome() {
    let panics = tool("count", 1, |c: Count| async move {
        assert!(c.n > 200, "too small");
        Ok::<_, String>(0)
    });
    let told = seen(panics.pure(), "{ n: 4 }").await;
    assert!(told.contains("too small"), "{told}");
}

#[tokio::test]
async fn what_blocks_runs_beside_and_its_panics_are_outcomes() {
    let counts = tool("count", 1, |c: Count| {
        blocking(move || Ok::<_, String>(c.n + 1))
    });
    assert_eq!(seen(counts.pure(), "{ n: 4 }").await, "5");
    let panics = tool("count", 1, |c: Count| {
        blocking(move || {
            assert!(c.n > 200, "too small");
            Ok::<_, String>(0)
        })
    });
    let told = seen(panics.pure(), "{ n: 4 }").await;
    assert!(told.contains("too small"), "{told}");
}

#[tokio::test]
async fn what_failed_for_good_leaves_no_doubt_and_what_panicked_does() {
    let failed = tool("count", 1, |_: Count| async {
        Err::<u8, _>(ToolError::failed("the bank says no").code("declined"))
    });
    let told = seen(failed.unsafe_(), "{ n: 4 }").await;
    assert!(told.contains("the bank says no"), "{told}");
    let panics = tool("count", 1, |c: Count| async move {
        assert!(c.n > 200, "too small");
        Ok::<_, String>(0)
    });
    let told = seen(panics.unsafe_(), "{ n: 4 }").await;
    assert!(told.starts_with("asks:"), "{told}");
}

const DESK: &str = "
secrets: { token: { env: TOKEN } }
config: { most: { type: integer, default: 9 } }
tools:
  count: { native: 1, description: Counts., parameters: { n: integer }, effect: idempotent, retry: 2 }
agents: { desk: { system: You count., tools: [count] } }
";

#[tokio::test]
async fn a_tool_knows_its_key_and_makes_artifacts_and_its_secret_is_shown_nowhere() {
    let keys: Arc<Mutex<Vec<(String, u32)>>> = Arc::default();
    let heard = keys.clone();
    let count = tool_with("count", 1, move |c: Count, cx| {
        let heard = heard.clone();
        async move {
            heard.lock().unwrap().push((cx.key(), cx.attempt()));
            cx.progress(0.5, Some(1.0), &*format!("half of {}", c.n));
            if cx.attempt() == 1 {
                cx.artifact("lost.txt", "text/plain", *b"never");
                return Err(ToolError::unknown("cut").retry_after(0));
            }
            assert_eq!(cx.value(&["config", "most"]), Some(9.into()));
            assert_eq!(cx.value(&["config", "least"]), None);
            assert!(cx.secret("nobody").is_err());
            cx.artifact("count.txt", "text/plain", c.n.to_string().into_bytes());
            Ok(format!("{} with {}", c.n, cx.secret("token")?))
        }
    });
    let network = Network::from_yaml(DESK)
        .tool(count.idempotent())
        .build()
        .unwrap();
    let script = "desk: [ { call: { count: { n: 4 } } }, \"{{ request.last }}\" ]";
    let steersman = Steersman::options()
        .script_all(script)
        .env(|name| (name == "TOKEN").then(|| "hunter2".to_owned()))
        .in_memory();
    let session = steersman.start(&network).await.unwrap();
    let mut live = session.events(Cursor::START);
    // The reader is polled first, so it hears what is not stored.
    let hears = async {
        loop {
            match live.next().await.unwrap().unwrap().kind {
                EventKind::Progress { message, .. } => break message,
                EventKind::Settled(_) => break None,
                _ => {}
            }
        }
    };
    let (told, turn) = tokio::join!(hears, session.ask("Count."));
    let text = turn.unwrap().answer().unwrap().text().to_owned();
    assert!(text.starts_with("4 with"), "{text}");
    assert_eq!(told.as_deref(), Some("half of 4"));
    assert!(!text.contains("hunter2"), "{text}");
    let keys = keys.lock().unwrap().clone();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0].0, keys[1].0);
    assert_eq!((keys[0].1, keys[1].1), (1, 2));
    let artifacts = session.artifacts().await.unwrap();
    let names: Vec<String> = artifacts.newest().into_iter().map(|a| a.name).collect();
    assert_eq!(names, ["count.txt"]);
    let content = artifacts.content(&artifacts.newest()[0]).await.unwrap();
    assert_eq!(&*content, b"4");
    let mut events = session.events(Cursor::START).until_settled();
    while let Some(event) = events.next().await {
        let shown = event.unwrap().to_json().to_string();
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[tokio::test]
async fn a_tool_hears_that_it_is_cancelled_and_says_what_became_of_it() {
    let (begun, done) = (Arc::<Notify>::default(), Arc::<AtomicU32>::default());
    let (told, counted) = (begun.clone(), done.clone());
    let count = tool_with("count", 1, move |_: Count, cx| {
        let (told, counted) = (told.clone(), counted.clone());
        async move {
            told.notify_one();
            cx.cancelled().cancelled().await;
            counted.fetch_add(1, Ordering::Relaxed);
            Err::<u8, _>(ToolError::not_performed("it was taken back"))
        }
    });
    let network = Network::from_yaml(DESK).tool(count).build().unwrap();
    let steersman = Steersman::options()
        .script_all("desk: [ { call: { count: { n: 4 } } } ]")
        .env(|_| Some("x".to_owned()))
        .in_memory();
    let session = steersman.start(&network).await.unwrap();
    session.say("Count.").await.unwrap();
    begun.notified().await;
    session
        .cancel(CancelWhat::Session, steersman::By::user())
        .await
        .unwrap();
    let turn = session.settled().await.unwrap();
    assert!(matches!(turn, Turn::Stopped(_)), "{turn:?}");
    steersman.stop().await;
    assert_eq!(done.load(Ordering::Relaxed), 1);
}

/// Asks a tool four times in pairs of calls, and returns the final answer.
async fn asked_in_pairs(tool: Tool) -> String {
    let network = Network::builder("pairs")
        .tool(tool.describe("Counts.").key("parallel", 2))
        .agent(agent("desk").system("You count.").tools(["count"]))
        .entry("desk")
        .build()
        .unwrap();
    let pair = "{ call: [ { count: { n: 1 } }, { count: { n: 2 } } ] }";
    let script = format!("desk: [ {pair}, {pair}, Over. ]");
    let steersman = Steersman::options().script_all(script).in_memory();
    let session = steersman.start(&network).await.unwrap();
    match session.ask("Count.").await.unwrap() {
        Turn::Answer(answer) => answer.text().to_owned(),
        other => format!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_keep_their_threads_go_on_side_by_side() {
    // each call keeps its thread until the other one of its pair is there
    let there: Arc<(Mutex<u32>, std::sync::Condvar)> = Arc::default();
    let met = Arc::new(AtomicU32::new(0));
    let tool = {
        let (there, met) = (there.clone(), met.clone());
        tool("count", 1, move |_: Count| {
            let (there, met) = (there.clone(), met.clone());
            async move {
                let (number, came) = &*there;
                let mut number = number.lock().unwrap();
                *number += 1;
                came.notify_all();
                let pair = number.div_ceil(2) * 2;
                let long = std::time::Duration::from_secs(20);
                let waited = came.wait_timeout_while(number, long, |number| *number < pair);
                if !waited.unwrap().1.timed_out() {
                    met.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, String>(0)
            }
        })
    };
    assert_eq!(asked_in_pairs(tool.pure()).await, "Over.");
    assert_eq!(met.load(Ordering::Relaxed), 4);
}

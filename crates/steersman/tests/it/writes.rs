//! Writes of state from inside of a tool in Rust: they are part of the call's result, and happen once.

use crate::steps::{World, answered, asked, order};
use serde_json::json;
use std::sync::Arc;
use steersman::build::{Reduce, Type};
use steersman::{By, Network, Resolution, Session, Tool, ToolError, agent, declare, tool_with};
use tokio::sync::Notify;

/// A desk with state, and with a tool that tells what is in it.
fn network(order: Tool) -> Network {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    let tell = tool_with("tell", 1, |_: Nothing, cx| async move {
        let of = |name: &str| cx.value(&["state", name]).unwrap_or_default();
        Ok::<_, ToolError>(json!({ "log": of("log"), "receipt": of("receipt"), "n": of("n") }))
    });
    Network::builder("desk")
        .state(
            "log",
            Type::new()
                .items("string")
                .default(json!([]))
                .reduce(Reduce::Append),
        )
        .state("receipt", Type::from("string").optional(true))
        .state("n", Type::from("integer").default(1))
        .tool(
            order
                .describe("Orders.")
                .set("log", "set of the definition"),
        )
        .tool(tell.read().describe("Tells."))
        .agent(agent("desk").system("You order.").tools(["order", "tell"]))
        .entry("desk")
        .build()
        .unwrap()
}

fn process(world: &World) -> steersman::Steersman {
    world.process_of(
        "desk: [ { call: { order: { n: 1 } } }, { call: { tell: {} } }, \"{{ request.last }}\" ]",
    )
}

async fn begin(world: &World, network: &Network) -> (steersman::Steersman, Session) {
    let steersman = process(world);
    let session = steersman.start(network).await.unwrap();
    session.say("Order.").await.unwrap();
    (steersman, session)
}

/// The tool is killed behind each of its steps. The entry joins what is written, so a second write would show.
#[tokio::test]
async fn what_a_tool_writes_is_written_once_whatever_kills_it() {
    for class in [Tool::pure, Tool::read, Tool::idempotent, Tool::unsafe_] {
        let world = World::new();
        let mut id: Option<String> = None;
        for kill in 0..=3 {
            let reached = Arc::new(Notify::new());
            let (at, its) = (reached.clone(), world.clone());
            let tool = order(move |cx| {
                let (at, its) = (at.clone(), its.clone());
                async move {
                    cx.set("log", "begun")?;
                    for (n, name) in ["a", "b", "c"].into_iter().enumerate() {
                        let done = cx.step(name, its.does(name)).await?;
                        cx.set("receipt", &done)?;
                        if n == kill {
                            at.notify_one();
                            std::future::pending::<()>().await;
                        }
                    }
                    cx.set("n", 3)?;
                    Ok("ordered".to_owned())
                }
            });
            let network = network(class(tool));
            let (steersman, session) = match &id {
                None => begin(&world, &network).await,
                Some(id) => {
                    let steersman = process(&world);
                    steersman.register(&network);
                    let session = steersman.session(id).await.unwrap();
                    (steersman, session)
                }
            };
            id = Some(session.id().to_owned());
            if kill < 3 {
                reached.notified().await;
                steersman.engine().kill().await;
                continue;
            }
            let state = json!({
                "log": ["set of the definition", "begun"], "receipt": "c is done", "n": 3
            });
            let told: serde_json::Value = serde_json::from_str(&answered(&session).await).unwrap();
            assert_eq!(told, state);
            let rerun = steersman
                .rerun(session.id(), steersman::Rerun::default())
                .await;
            assert_eq!(rerun.unwrap().diverged, None);
        }
        assert_eq!(world.runs(), ["a", "b", "c"]);
    }
}

/// A tool that fails writes nothing, also if it wrote before.
#[tokio::test]
async fn a_tool_that_fails_writes_nothing() {
    let tool = order(|cx| async move {
        cx.set("receipt", "r-1")?;
        Err(ToolError::failed("the shop is closed"))
    });
    let (_steersman, session) = begin(&World::new(), &network(tool)).await;
    assert_eq!(
        answered(&session).await,
        r#"{"log":[],"receipt":null,"n":1}"#
    );
}

/// A write that does not fit is refused at once, with the reason, and the tool may go on.
#[tokio::test]
async fn a_write_that_does_not_fit_is_an_error_of_the_tool() {
    let tool = order(|cx| async move {
        let unknown = cx.set("recipt", "r-1").unwrap_err().to_string();
        assert_eq!(unknown, "set `recipt`: no state `recipt` is declared here");
        let misfit = cx.set("n", "three").unwrap_err().to_string();
        assert!(misfit.starts_with("set `n`: `state.n`"), "{misfit}");
        let large = cx
            .set("receipt", "x".repeat(70 << 10))
            .unwrap_err()
            .to_string();
        assert!(large.contains("more than 64 KiB"), "{large}");
        for _ in 0..2 {
            cx.set("receipt", "x".repeat(40 << 10))?;
        }
        let all = cx
            .set("receipt", "x".repeat(40 << 10))
            .unwrap_err()
            .to_string();
        assert!(all.contains("more than 96 KiB"), "{all}");
        cx.set("receipt", None::<String>)?;
        Ok("ordered".to_owned())
    });
    let (_steersman, session) = begin(&World::new(), &network(tool.read())).await;
    let told = answered(&session).await;
    assert_eq!(
        told,
        r#"{"log":["set of the definition"],"receipt":null,"n":1}"#
    );
}

/// By `?` the class decides, as for any error.
#[tokio::test]
async fn an_unsafe_tool_that_gives_up_at_a_write_is_in_doubt() {
    let gives_up = || {
        order(|cx| async move {
            cx.set("n", "three")?;
            Ok("ordered".to_owned())
        })
    };
    let (_steersman, session) = begin(&World::new(), &network(gives_up())).await;
    let doubt = asked(&session).await;
    assert!(
        doubt.text().contains("set `n`: `state.n`"),
        "{}",
        doubt.text()
    );
    let how = Resolution::NotPerformed;
    session.resolve(&doubt, how, By::user()).await.unwrap();

    let world = World::new();
    let network = Network::builder("desk")
        .state("n", Type::from("integer").default(1))
        .tool(gives_up().read().describe("Orders."))
        .declare(declare("note").describe("Notes.").set("n", 2))
        .agent(agent("desk").system("You order.").tools(["order", "note"]))
        .entry("desk")
        .build()
        .unwrap();
    let steersman =
        world.process_of("desk: [ { call: { order: { n: 1 } } }, \"{{ request.last }}\" ]");
    let session = steersman.start(&network).await.unwrap();
    session.say("Order.").await.unwrap();
    let told = answered(&session).await;
    assert!(told.starts_with("misfit: set `n`: `state.n`"), "{told}");
}

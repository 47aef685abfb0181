//! Tools in Rust: arguments that do not fit, errors, panics.

use schemars::JsonSchema;
use serde::Deserialize;
use steersman::{Network, Steersman, Tool, ToolError, Turn, agent, tool};

#[derive(Deserialize, JsonSchema)]
struct Count {
    n: u8,
}

/// What the model sees when it calls this tool with these arguments, and how the session stands then.
async fn seen(tool: Tool, args: &str) -> String {
    let network = Network::builder("one")
        .tool(tool.describe("Counts."))
        .agent(agent("desk").system("You count.").tools(["count"]))
        .entry("desk")
        .build()
        .unwrap();
    let script = format!("desk: [ {{ call: {{ count: {args} }} }}, \"{{{{ request.last }}}}\" ]");
    let steersman = Steersman::options().script(script).in_memory();
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
    // an unsafe tool that fails may have happened: a person is asked
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

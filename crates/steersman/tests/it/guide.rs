//! The parts of the guide to embedding that are not in its example. They are built and run here, and the guide shows them.

#![expect(
    clippy::unnecessary_literal_bound,
    reason = "the guide shows the methods as the trait has them"
)]

use crate::service::{blocks, guide};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use steersman::machine::stored::ids::Time;
use steersman::runtime::clock::Virtual;
use steersman::{
    DefinitionError, Does, Ended, NetView, Network, Next, NoWork, State, States, Steersman, Tool,
    ToolContext, ToolError, Turn, agent, hook, tool_with,
};

#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
    cents: u64,
}

fn reserve(item: &str) -> Ready<Result<usize, ToolError>> {
    ready(Ok(item.len()))
}

fn charge(number: usize, cents: u64) -> Ready<Result<String, ToolError>> {
    ready(Ok(format!("{cents} for {number}")))
}

fn remind(receipt: &str) -> Ready<Result<(), ToolError>> {
    assert!(!receipt.is_empty());
    ready(Ok(()))
}

/// Formatted as the guide shows it.
#[rustfmt::skip]
fn order() -> Tool {
    let order = tool_with("order", 1, |order: Order, cx| async move {
        let number = cx.step("reserve", reserve(&order.item)).await?;
        let receipt = cx.step("charge", charge(number, order.cents)).await?;
        cx.wait("before the reminder", Duration::from_hours(24)).await?;
        cx.step("remind", remind(&receipt)).await?;
        Ok::<_, ToolError>(receipt)
    });
    order.describe("Orders.")
}

const DEFINITION: &str = "
agents: { desk: { system: You settle complaints. } }
hooks:
  redact: { native: 1, agents: [desk] }                       # without `agents`: around all
";

fn mask(text: &str) -> String {
    text.replace("4111 1111", "[card]")
}

/// Formatted as the guide shows it.
#[rustfmt::skip]
fn hooked() -> Result<Network, DefinitionError> {
    let redact = hook("redact", 1)
        .before_model(|_, request| {                              // before the request leaves
            for said in request.texts_mut() { said.text = mask(&said.text); }
            Ok(())
        })
        .before_call(|at, args| {                                 // before guards and people judge the call
            if at.tool.as_deref() == Some("refund") { args.insert("currency".into(), "EUR".into()); }
            Ok(())
        })
        .on_finish(|_, answer| { answer.push_str("\n-- the desk"); Ok(()) });

    let network = Network::from_yaml(DEFINITION).hook(redact).build()?;
    Ok(network)
}

/// A state that asks the model.
struct Plan;

impl State for Plan {
    type Input = NoWork;
    fn name(&self) -> &str {
        "plan"
    }
    fn enter(&self, _: &NetView<'_>) -> Does<NoWork> {
        Does::ask("Name the one quantity to measure.")
    }
    fn next(&self, _: &NetView<'_>, _: &Ended<'_>) -> Next {
        Next::to("measure")
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Quantity {
    name: String,
}

/// A sensor that notes whether it was closed.
#[derive(Clone, Default)]
struct Sensor(Arc<AtomicBool>);

impl Sensor {
    fn read(&self, name: &str) -> Ready<Result<String, ToolError>> {
        self.0.store(false, Ordering::SeqCst);
        ready(Ok(format!("the {name} is 21")))
    }
    fn close(&self) -> Ready<Result<(), ToolError>> {
        self.0.store(true, Ordering::SeqCst);
        ready(Ok(()))
    }
}

/// Formatted as the guide shows it.
#[rustfmt::skip]
fn lab(sensor: Sensor) -> Result<Network, DefinitionError> {
    struct Measure {
        sensor: Sensor,
    }

    impl State for Measure {
        type Input = Quantity;                                    // recorded; every attempt gets it
        fn name(&self) -> &str { "measure" }
        fn enter(&self, view: &NetView<'_>) -> Does<Quantity> {   // or Does::ask("..."), Does::call("search", json!({ .. }))
            Does::Run(Quantity { name: view.said().unwrap_or_default().to_string() })
        }
        async fn run(&self, quantity: Quantity, cx: ToolContext) -> Result<String, ToolError> {
            cx.say("measuring: ");                                // readers see it at once
            cx.step("read", self.sensor.read(&quantity.name)).await
        }
        async fn exit(&self, _: &ToolContext) -> Result<(), ToolError> { self.sensor.close().await }
        fn next(&self, _: &NetView<'_>, ended: &Ended<'_>) -> Next {
            if ended.ok { Next::answer(ended.text) } else { Next::to("plan") }
        }
        fn work(&self, tool: Tool) -> Tool { tool.read().key("retry", 2) }
    }

    let network = Network::builder("lab")
        .states("lab", States::new(1).state(Plan).state(Measure { sensor }).last("measure"))
        .agent(agent("clerk").system("You measure.").key("net", "lab"))
        .entry("clerk")
        .build()?;
    Ok(network)
}

#[test]
fn the_guide_shows_what_is_built_here() {
    let here = include_str!("guide.rs");
    let parts = blocks(&guide(), "rust,ignore");
    assert_eq!(parts.len(), 3);
    for part in parts {
        let inside: Vec<String> = part
            .lines()
            .map(|line| match line {
                "" => String::new(),
                line => format!("    {line}"),
            })
            .collect();
        let inside = inside.join("\n");
        assert!(here.contains(&inside), "the guide shows\n{part}");
    }
    let guide = guide();
    let declared = blocks(&guide, "yaml");
    assert!(
        declared.iter().any(|block| *block == DEFINITION[1..]),
        "the guide shows another definition"
    );
}

/// The versions that the guide names are those that its example is built with.
#[test]
fn the_guide_names_the_dependencies_of_its_example() {
    let named = &blocks(&guide(), "toml")[0];
    let ours = include_str!("../../../../Cargo.toml");
    let version = |line: &str| {
        let quoted = line.split('"').nth(1).unwrap_or_default();
        quoted.trim_start_matches('=').to_owned()
    };
    for line in named.lines().skip(1).filter(|line| !line.is_empty()) {
        let name = line.split(' ').next().unwrap();
        let key = match name {
            "steersman" => "version",
            name => name,
        };
        let declared = ours
            .lines()
            .find(|line| line.starts_with(&format!("{key} = ")));
        let built = version(declared.unwrap_or_else(|| panic!("{name} is not a dependency")));
        assert!(
            built.starts_with(&version(line)),
            "{name}: {built}, not {line}"
        );
    }
}

async fn answered(network: &Network, script: &str, text: &str) -> String {
    let clock = Virtual::at(Time(0));
    let steersman = Steersman::options()
        .script_all(script.to_owned())
        .clock(Arc::new(clock.clone()))
        .in_memory();
    let session = steersman.start(network).await.unwrap();
    let mut turn = session.ask(text).await.unwrap();
    if let Turn::Waits(_) = turn {
        clock.advance(24 * 3_600_000);
    }
    while let Turn::Waits(_) = turn {
        // The session has not looked at the clock yet.
        tokio::task::yield_now().await;
        turn = session.settled().await.unwrap();
    }
    match turn {
        Turn::Answer(answer) => answer.text().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_the_guide_shows_runs() {
    let network = hooked().unwrap();
    let told = answered(&network, "desk: [ We pay it back. ]", "You charged me.").await;
    assert_eq!(told, "We pay it back.\n-- the desk");

    let sensor = Sensor::default();
    let network = lab(sensor.clone()).unwrap();
    let told = answered(&network, "clerk: [ temperature ]", "Measure.").await;
    assert_eq!(told, "the temperature is 21");
    assert!(sensor.0.load(Ordering::SeqCst), "the state was left");

    let network = Network::builder("shop")
        .tool(order())
        .agent(agent("clerk").system("You order.").tools(["order"]))
        .entry("clerk")
        .build()
        .unwrap();
    let script =
        "clerk: [ { call: { order: { item: lamp, cents: 900 } } }, \"{{ request.last }}\" ]";
    let told = answered(&network, script, "A lamp.").await;
    assert!(told.contains("900 for 4"), "{told}");
}

//! Networks from YAML, from Rust, and from both.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use steersman::{By, Network, Steersman, Turn, agent, tool};

#[derive(Deserialize, JsonSchema)]
struct Pay {
    to: String,
    cents: u64,
}

fn pay(version: u32) -> steersman::Tool {
    tool("pay", version, |pay: Pay| async move {
        Ok::<_, String>(format!("{} got {}", pay.to, pay.cents))
    })
}

/// All differences between the tool that YAML declares and the tool in Rust.
fn problems(yaml: &str, tool: steersman::Tool) -> Vec<String> {
    match Network::from_yaml(yaml).tool(tool).build() {
        Ok(_) => Vec::new(),
        Err(error) => error.in_rust,
    }
}

const HEAD: &str = "agents: { desk: { system: You pay., tools: [pay] } }\ntools:\n  pay:\n    description: Pays.\n";

#[test]
fn what_is_declared_and_what_is_registered_are_compared() {
    let declared = |rest: &str| format!("{HEAD}{rest}");
    let right = declared(
        "    native: 3\n    parameters: { to: string, cents: integer }\n    effect: unsafe\n",
    );
    assert_eq!(problems(&right, pay(3)), Vec::<String>::new());
    assert_eq!(
        problems(&right, pay(4).read()),
        [
            "tool `pay` is declared as `native: 3` and registered as version 4",
            "tool `pay` is declared as `effect: unsafe` and registered as read",
        ]
    );
    let other = declared("    native: 3\n    parameters: { to: integer }\n    effect: unsafe\n");
    assert_eq!(
        problems(&other, pay(3)),
        [
            "parameter `to` of tool `pay` is declared as integer, in Rust it is string",
            "tool `pay` needs a parameter `cents` in Rust that is not declared",
        ]
    );
    let none = "agents: { desk: { system: You pay. } }\n";
    assert_eq!(
        problems(none, pay(3)),
        [
            "tool `pay` is registered in Rust and not declared: add `pay: { native: 3 }` under `tools:`"
        ]
    );
}

#[tokio::test]
async fn a_network_built_in_rust_goes_through_the_same_checks() {
    let built = || {
        Network::builder("bank")
            .state("left", json!({ "type": "integer", "default": 5000 }))
            .tool(
                pay(1)
                    .describe("Pays.")
                    .requires("args.cents <= state.left")
                    .approve("args.cents > 1000")
                    .set("left", "{{ state.left - args.cents }}"),
            )
            .agent(
                agent("desk")
                    .describe("Pays.")
                    .system("You pay.")
                    .tools(["pay"]),
            )
            .entry("desk")
    };
    let network = built().build().unwrap();
    assert_eq!(network.name(), "bank");
    let wrong = built().entry("nobody").build().unwrap_err();
    assert!(wrong.to_string().contains("nobody"), "{wrong}");

    let script = "desk: [ { call: { pay: { to: anna, cents: 1500 } } }, \"{{ request.last }}\" ]";
    let steersman = Steersman::options().script_all(script).in_memory();
    let session = steersman.start(&network).await.unwrap();
    let Turn::Asks(questions) = session.ask("Pay Anna.").await.unwrap() else {
        panic!("it asks first");
    };
    // an act of a person who may not decide is refused
    assert!(
        session
            .approve(&questions[0], By::role("clerk"))
            .await
            .is_err()
    );
    session.approve(&questions[0], By::user()).await.unwrap();
    let Turn::Answer(answer) = session.settled().await.unwrap() else {
        panic!("it answers");
    };
    assert_eq!(answer.text(), "anna got 1500");
}

#[tokio::test]
async fn a_session_goes_on_in_another_process() {
    let folder = std::env::temp_dir().join(format!("steersman-lib-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let store = folder.join("sessions.db");
    let network = Network::from_yaml(format!(
        "{HEAD}    native: 3\n    parameters: {{ to: string, cents: integer }}\n    effect: unsafe\n    approve: true\n"
    ))
    .tool(pay(3))
    .build()
    .unwrap();
    let script = "desk: [ { call: { pay: { to: anna, cents: 1 } } }, Paid. ]";
    let id = {
        let steersman = Steersman::options()
            .script_all(script)
            .open(&store)
            .await
            .unwrap();
        let session = steersman.start(&network).await.unwrap();
        let Turn::Asks(_) = session.ask("Pay Anna.").await.unwrap() else {
            panic!("it asks first");
        };
        let id = session.id().to_owned();
        session.stop().await;
        id
    };
    let steersman = Steersman::options()
        .script_all(script)
        .open(&store)
        .await
        .unwrap();
    steersman.register(&network);
    let session = steersman.session(&id).await.unwrap();
    let Turn::Asks(questions) = session.settled().await.unwrap() else {
        panic!("the question is still open");
    };
    session.approve(&questions[0], By::user()).await.unwrap();
    let Turn::Answer(answer) = session.settled().await.unwrap() else {
        panic!("it answers");
    };
    assert_eq!(answer.text(), "Paid.");
    session.stop().await;
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A definition that was read from text is complete. A key that is set in Rust would be lost, so it is refused.
#[test]
fn a_key_that_is_set_in_rust_on_a_definition_from_text_is_refused() {
    let text = "agents: { desk: { system: You help. } }";
    let built = Network::from_yaml(text)
        .entry("other")
        .key("timezone", "Europe/Oslo")
        .build();
    let error = built.unwrap_err();
    let wanted = ["`entry` is set in Rust", "`timezone` is set in Rust"];
    for (problem, wanted) in error.in_rust.iter().zip(wanted) {
        assert!(problem.starts_with(wanted), "{problem}");
    }
    assert_eq!(error.in_rust.len(), 2);
}

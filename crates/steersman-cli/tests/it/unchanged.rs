//! Values that change nothing in a rerun, and values of `config` that a rerun is bound to.

use crate::world::{Ran, World};
use serde_json::Value as Json;

const LIMITED: &str = r#"name: desk
config: { limit: { type: integer, default: 10 } }
state: { paid: { type: integer, default: 0 } }
agents:
  desk: { system: "You settle up to {{ config.limit }}.", tools: [idle] }
  idle: { description: Is never called., system: You wait. }
entry: desk
"#;

fn document(ran: &Ran) -> Json {
    let last = ran.out.lines().last().unwrap_or("null");
    serde_json::from_str(last).unwrap_or_else(|e| panic!("{e} in {ran:?}"))
}

/// A value that changes nothing in a rerun is named, with the reason and with what would change something.
#[test]
fn a_value_that_changes_nothing_is_said_with_the_reason_and_what_would() {
    let world = World::new();
    world.write("steersman.yaml", LIMITED);
    world.write("script.yaml", "desk: [ Hello., There. ]\n");
    let ran = world.run(&["run", "--input", "Hi.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (_, shown) = world.json(&["show", "last"]);
    let session = shown["session"].as_str().unwrap();
    let at = format!("{session}@1");
    for (address, set, why) in [
        (
            session,
            "config.limit.default=20",
            "the session took `limit` = 10 when it began, and a default is for sessions that begin; --config limit=20 binds the value in the rerun",
        ),
        (
            session,
            "agents.idle.system=You sleep.",
            "the rerun equals its recording",
        ),
        (
            session,
            "state.paid.default=0",
            "the definition has this value already",
        ),
        (
            &at,
            "state.paid.default=5",
            "`state.paid` has its value since before @1; without `@1` the rerun",
        ),
    ] {
        let path = set.split('=').next().unwrap();
        let said = format!("warning: `--set {path}` changes nothing: {why}");
        let args = [
            "rerun",
            address,
            "--set",
            set,
            "--script-all",
            "script.yaml",
        ];
        let ran = world.run(&args);
        assert!(ran.err.contains(&said), "{set}: {ran:?}");
        let ran = world.run(&[&args[..], &["--json"]].concat());
        let told = document(&ran);
        assert_eq!(told["no_effect"][0]["path"], path, "{told:#}");
        assert!(ran.err.contains(&said), "{set}: {ran:?}");
    }
    // Of several sessions it is said once, if it holds for all of them.
    let all = ["rerun", "--where", "definition = desk", "--repeat", "2"];
    let ran = world.run(&[&all[..], &["--set", "config.limit.default=20"]].concat());
    assert_eq!(
        ran.err
            .matches("`--set config.limit.default` changes nothing")
            .count(),
        1,
        "{ran:?}"
    );
    assert!(ran.err.contains("the same in all 2 reruns"), "{ran:?}");
    // The proposed command has an effect: the model is asked under the other value.
    let other = ["--config", "limit=20", "--script-all", "script.yaml"];
    let ran = world.run(&[&["rerun", session, "--json"][..], &other].concat());
    let told = document(&ran);
    assert_eq!(told["model_calls"]["live"], 1, "{told:#}");
    assert!(
        told["no_effect"].is_null() && !ran.err.contains("changes nothing"),
        "{ran:?}"
    );
    let ran = world.run(&["rerun", session, "--config", "limits=20"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("limits"), "{ran:?}");
}

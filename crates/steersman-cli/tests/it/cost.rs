//! The cost of a session, in the commands that show it.

use crate::world::World;
use serde_json::json;

const DEFINITION: &str = "
models:
  default: { provider: scripted, max_tokens: 100, price: { input: 100, output: 1000 } }
agents: { desk: { system: You greet. } }
limits: { cost: { max: 2.5, on_limit: fail } }
";

#[test]
fn lists_and_pages_say_what_was_spent() {
    let world = World::new();
    world.write("steersman.yaml", DEFINITION);
    world.write("script.yaml", "desk: [ Hello., Again. ]\n");
    let checked = world.run(&["check"]);
    assert!(checked.out.contains("costs 2.50 a session"), "{checked:?}");
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Hi"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (_, shown) = world.json(&["show", "last"]);
    let cost = shown["cost"].as_f64().unwrap();
    assert!(cost > 0.0, "{shown}");
    assert_eq!(shown["models"][0]["model"], "scripted");
    assert_eq!(shown["models"][0]["cost"], shown["cost"]);
    assert_eq!(shown["lost"], json!({ "tokens": 0, "cost": 0.0 }));
    let told = format!("{cost:.4}");
    for page in [&["show", "last"][..], &["sessions"]] {
        let page = world.run(page);
        assert!(page.out.contains(&told), "{told} in {page:?}");
    }
    let (_, listed) = world.json(&["sessions"]);
    assert_eq!(listed["cost"], shown["cost"]);
}

#[test]
fn a_budget_that_is_used_up_ends_the_session() {
    let world = World::new();
    world.write("steersman.yaml", &DEFINITION.replace("2.5", "0.05"));
    world.write("script.yaml", "desk: [ Hello. ]\n");
    let (code, ran) = world.json(&["run", "--script-all", "script.yaml", "--input", "Hi"]);
    assert_eq!(ran["code"], "limit", "{code:?} {ran}");
    // Nothing was spent: the first call may cost more than the whole budget.
    let told = ran.to_string();
    assert!(
        told.contains("of 0.05 that the session may spend, 0.00 is spent"),
        "{told}"
    );
}

#[test]
fn money_is_limited_only_where_the_price_is_known() {
    let world = World::new();
    let unknown = "
models: { default: { provider: compatible, url: \"http://127.0.0.1:1/v1\", model: m } }
agents: { desk: { system: You greet. } }
limits: { cost: 1 }
";
    world.write("steersman.yaml", unknown);
    let checked = world.run(&["check"]);
    assert_eq!(checked.code, Some(3), "{checked:?}");
    assert!(
        checked.err.contains("E0406") || checked.out.contains("E0406"),
        "{checked:?}"
    );
}

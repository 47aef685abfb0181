//! `simulate`: invariants that hold and that break, the trace, and the command that repeats it.

use crate::world::World;

const DESK: &str = r#"
steersman: 1
name: desk
state: { paid: { type: integer, default: 0 } }
tools:
  pay:
    description: Pays.
    parameters: { cents: { type: integer, minimum: 1 } }
    effect: unsafe
    approve: { when: args.cents > 100, by: clerk, ask: "Pay {{ args.cents }}?" }
    set: { paid: "{{ args.cents }}" }
    http: { method: POST, url: "http://127.0.0.1:1/pay", json: "{{ args }}" }
agents:
  clerk: { person: { role: clerk } }
  desk: { system: You pay., tools: [pay] }
entry: desk
"#;
const HOLDS: &str =
    "effect.performed == 0 or effect.args.cents <= 100 or 'clerk' in effect.approvals";
const BREAKS: &str = "effect.performed == 0 or effect.args.cents <= 100";

fn desk() -> World {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world
}

#[test]
fn what_a_definition_says_holds_whatever_goes_wrong() {
    let world = desk();
    let ran = world.run(&["simulate", "--seeds", "60", "--invariant", HOLDS]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.out, "");
    assert!(ran.err.contains("60 simulations"), "{ran:?}");
    let ran = world.json_lines(&["simulate", "--seeds", "5"]);
    assert_eq!(ran.len(), 1);
    assert_eq!(
        (&ran[0]["simulations"], &ran[0]["broken"]),
        (&5.into(), &0.into())
    );
}

#[test]
fn an_invariant_that_breaks_is_shown_shrunk_and_can_be_repeated() {
    let world = desk();
    let all = ["simulate", "--seeds", "60", "--invariant", BREAKS];
    let ran = world.run(&all);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert_eq!(
        world.run(&all).out,
        ran.out,
        "the same seeds give the same bytes"
    );
    assert!(
        ran.out.starts_with(&format!("broken  {BREAKS}\n")),
        "{ran:?}"
    );
    assert!(ran.out.contains("you approve pay as clerk"), "{ran:?}");
    let again = ran.out.lines().last().unwrap();
    let seed = again
        .split("--seed ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let one = world.run(&["simulate", "--seed", seed, "--invariant", BREAKS]);
    assert_eq!(one.code, Some(8), "{one:?}");
    let trace = |out: &str| out.lines().skip(4).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(trace(&one.out), trace(&ran.out));
    let one = [&["simulate", "--seed", seed, "--json", "--invariant", BREAKS][..]].concat();
    let ran = world.run(&one);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    let document: serde_json::Value =
        serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    assert_eq!(document["invariant"], BREAKS);
    assert!(
        document["repeat"].as_str().unwrap().contains("--seed"),
        "{document}"
    );
    assert!(
        !document["trace"].as_array().unwrap().is_empty(),
        "{document}"
    );
}

#[test]
fn what_is_no_expression_or_no_definition_is_refused() {
    let world = desk();
    let ran = world.run(&["simulate", "--invariant", "1 +"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("is no expression"), "{ran:?}");
    let ran = world.run(&["simulate", "nothing.yaml"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
}

//! Scripts in the place of models: types of templates, and the sessions that a script answers for.

use crate::world::World;

const DESK: &str = r#"name: desk
models: { default: { provider: compatible, url: "http://127.0.0.1:1/v1", model: away, key: "{{ secrets.key }}", retry: { times: 1, for: 0s } } }
secrets: { key: { env: NOBODY_SETS_THIS } }
tools:
  pay: { description: Pays., parameters: { to: string, cents: integer, also: [integer] }, effect: read, command: [echo, "{{ args.cents + 1 }}"] }
agents:
  desk: { system: You settle., tools: [pay] }
  teller: { system: You tell., description: Tells., output: { fields: { said: string, n: integer } } }
entry: [desk, teller]
"#;

/// An argument or a field that is exactly one template has the type of its value; any other one is text.
#[test]
fn a_single_template_keeps_its_type() {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write(
        "script.yaml",
        r#"desk:
  - call: { pay: { to: "no {{ request.messages | length }}", cents: "{{ request.messages | length }}", also: [ "{{ request.last | length }}" ] } }
  - "Paid {{ request.last }}"
teller:
  - output: { said: "{{ request.last }}", n: "{{ request.messages | length }}" }
"#,
    );
    let run = |more: &[&str]| {
        let args = ["run", "--script-all", "script.yaml", "--input"];
        world.run(&[&args[..], more].concat())
    };
    let ran = run(&["Go."]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Paid 2"), "{ran:?}");
    let effects = world.json_lines(&["effects", "last"]);
    let args = serde_json::json!({ "to": "no 1", "cents": 1, "also": [3] });
    assert_eq!(effects[0]["args"], args, "{effects:?}");
    // A message may have quotes, which are no part of the answer's JSON.
    let ran = run(&[r#"Say "this"."#, "--entry", "teller"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said: serde_json::Value = serde_json::from_str(ran.out.trim()).unwrap();
    let wanted = serde_json::json!({ "said": r#"Say "this"."#, "n": 1 });
    assert_eq!(said, wanted, "{ran:?}");
}

/// A session remembers the script that it began with. A script that another command gives answers in that command alone, for
/// each command that drives.
#[test]
fn a_script_that_is_given_later_answers_once() {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("first.yaml", "desk: [ One., Two., Three., Four. ]\n");
    world.write("other.yaml", "desk: [ A., B., C., D. ]\n");
    let ran = world.run(&["run", "--script-all", "first.yaml", "--input", "Go."]);
    assert_eq!(ran.out.trim(), "One.", "{ran:?}");
    let other = ["--script-all", "other.yaml"];
    let said =
        |args: &[&str], given: &[&str]| world.run(&[args, given].concat()).out.trim().to_owned();
    assert_eq!(said(&["send", "last", "And?"], &other), "B.");
    assert_eq!(said(&["send", "last", "And?"], &[]), "Three.");
    let rewind = ["rewind", "last@-2", "--say", "Or?"];
    assert_eq!(said(&rewind, &other), "C.");
    let resume = ["run", "--resume", "last", "--input", "And?"];
    assert_eq!(said(&resume, &[]), "Four.");
}

/// A session that began with a model goes on with a script in its place: the model is not asked, and its key is not needed.
#[test]
fn a_script_takes_the_place_of_the_model_of_a_session() {
    let mut world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", "desk: [ Here., Here again. ]\n");
    world.set("NOBODY_SETS_THIS", "k");
    let ran = world.run(&["run", "--input", "Go."]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    world.set("NOBODY_SETS_THIS", "");
    let ran = world.run(&["retry", "last", "--script-all", "script.yaml"]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Here."), "{ran:?}");
    let shown = world.json(&["show", "last"]).1;
    let model = &shown["models"][0]["model"];
    assert_eq!(model, "scripted/compatible/away", "{shown:#}");
}

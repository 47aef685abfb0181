//! An answer with fields, in labels, outcomes and filters.

use crate::world::World;

const DESK: &str = r#"
steersman: 1
name: desk
labels: { city: "{{ answer.city }}" }
outcome: { total: answer.total, big: answer.total is not none and answer.total > 100 }
agents:
  desk:
    system: You count.
    output: { fields: { city: string, total: integer } }
tests:
  it_counts:
    script: { desk: [ { output: { city: Bern, total: 120 } } ] }
    steps: [ { say: Count. } ]
    expect: [ { that: answer.total == 120 and outcome.big } ]
"#;

#[test]
fn labels_and_outcomes_read_the_fields_of_an_answer() {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    let check = world.run(&["check"]);
    assert_eq!(check.code, Some(0), "{check:?}");
    assert!(!check.out.contains("warning"), "{check:?}");
    let test = world.run(&["test"]);
    assert_eq!(test.code, Some(0), "{test:?}");
    for (city, total) in [("Bern", 120), ("Basel", 9)] {
        let script = format!("desk: [ {{ output: {{ city: {city}, total: {total} }} }} ]");
        world.write("script.yaml", &script);
        let ran = world.run(&["run", "--script-all", "script.yaml", "-i", "Count."]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let found = |filter: &str| {
        let rows = world.json_lines(&["sessions", "--where", filter]);
        let cities = rows.iter().map(|row| row["labels"]["city"].to_string());
        cities.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(found("outcome.total > 100"), "\"Bern\"");
    assert_eq!(found("outcome.big = false"), "\"Basel\"");
    assert_eq!(found("city = Basel"), "\"Basel\"");
}

#[test]
fn a_field_that_the_answer_does_not_have_is_an_error() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        &DESK.replace("answer.total,", "answer.sum,"),
    );
    let check = world.run(&["check"]);
    assert_eq!(check.code, Some(3), "{check:?}");
    assert!(check.all().contains("`sum`"), "{check:?}");
    let text = DESK.replace(
        "    output: { fields: { city: string, total: integer } }\n",
        "",
    );
    world.write("steersman.yaml", &text);
    let check = world.run(&["check"]);
    assert_eq!(
        check.code,
        Some(3),
        "an answer that is text has no fields: {check:?}"
    );
}

//! A judge of a search runs once, on a branch of its own, and changes nothing on the branch that it judges.

use serde_json::json;
use std::sync::Arc;
use steersman_definition::{Compiled, Files, compile_with_tests};
use steersman_machine::search::worth;
use steersman_machine::snapshot::Phase;
use steersman_machine::stored::ids::{Bodies, Id};
use steersman_machine::stored::interaction::Cause;
use steersman_machine::trace::letters;
use steersman_testkit::case;
use steersman_testkit::world::World;

const DESK: &str = r#"steersman: 1
name: desk
state: { sum: { type: integer, default: 0 } }
tools:
  roll: { description: Rolls., parameters: { eyes: integer }, set: { sum: "{{ args.eyes }}" } }
agents:
  desk: { system: You roll., tools: [roll] }
  critic: { description: Judges., parameters: { answer: string, sum: integer }, system: You judge. }
  vague: { description: Judges., parameters: { answer: string }, system: You judge. }
  broken: { description: Judges., parameters: { answer: string }, system: You judge. }
  rolls: { description: Judges., parameters: { answer: string }, system: You judge., tools: [roll] }
entry: desk
tests:
  rolled:
    script:
      desk: [ { call: { roll: { eyes: 5 } } }, Rolled. ]
      critic: [ "7 of 10" ]
      vague: [ Good enough. ]
      broken: [ { error: bad } ]
      rolls: [ { call: { roll: { eyes: 6 } } }, "3" ]
    steps: [ { say: Roll. } ]
"#;

fn rolled() -> World {
    let (compiled, found) = compile_with_tests(&Files::new("desk.yaml", DESK.to_owned()), None);
    let Compiled { network, tests, .. } = compiled.unwrap_or_else(|| panic!("{found:?}"));
    let test = tests.values().next().expect("it has one");
    case::run(Arc::new(network), test).expect("it runs").world
}

/// The answer of a judge on its branch, and the cause of its end.
fn verdict(world: &World, branch: Id) -> (Option<String>, Cause) {
    let snapshot = world.at(branch);
    let top = snapshot.agent(snapshot.top().expect("the judge acts there"));
    assert_eq!(top.phase, Phase::Resting);
    let text = top.turn.answer.map(|body| world.text(body).to_string());
    (text, top.turn.ended.expect("it ended").1)
}

fn stack(world: &World, branch: Id, agent: &str) -> String {
    let agent = world.agent(branch, agent).expect("it is there");
    letters(&world.stack(world.at(branch), agent))
}

#[test]
fn a_judge_acts_alone_on_a_branch_of_its_own() {
    let mut world = rolled();
    let (main, before) = (world.current(), world.printed.len());
    let head = world.branch(main).head;
    let stands = world.at(main).clone();
    let judged = json!({ "answer": "Rolled.", "sum": 5 });
    let branch = world.judge(head, "critic", judged).expect("it begins");
    assert_eq!(stack(&world, branch, "critic"), "U A F");
    // The judge sees its arguments, and the stack of the judged agent is unchanged.
    assert_eq!(stack(&world, branch, "desk"), stack(&world, main, "desk"));
    let (answer, cause) = verdict(&world, branch);
    assert_eq!(cause, Cause::Answer);
    assert_eq!(worth(&json!(answer)), Ok(7.0));
    assert_eq!(
        world.at(main),
        &stands,
        "the branch that it judged is unchanged"
    );
    assert!(world.agent(main, "critic").is_none());
    insta::assert_snapshot!(world.printed[before..].to_owned());
}

#[test]
fn what_a_judge_writes_stays_on_its_branch() {
    let mut world = rolled();
    let main = world.current();
    let head = world.branch(main).head;
    let branch = world
        .judge(head, "rolls", json!({ "answer": "Rolled." }))
        .expect("it begins");
    let sum = |of: Id| {
        let mut cells = world.at(of).state.iter();
        let cell = cells.find(|((_, name), _)| **name == *"sum");
        cell.map(|(_, cell)| cell.value.0.to_string())
    };
    assert_eq!(
        (sum(branch), sum(main)),
        (Some("6".into()), Some("5".into()))
    );
    assert_eq!(worth(&json!(verdict(&world, branch).0)), Ok(3.0));
}

#[test]
fn a_judge_that_is_unusable_or_fails_ends_and_says_so() {
    let mut world = rolled();
    let main = world.current();
    let head = world.branch(main).head;
    let stands = world.at(main).clone();
    let judged = json!({ "answer": "Rolled." });
    let vague = world
        .judge(head, "vague", judged.clone())
        .expect("it begins");
    let (answer, cause) = verdict(&world, vague);
    assert_eq!(cause, Cause::Answer);
    let why = worth(&json!(answer)).expect_err("it says no number");
    assert!(why.contains("Good enough."), "{why}");
    let broken = world.judge(head, "broken", judged).expect("it begins");
    // Its answer would be the text of the failure, so a reader of verdicts looks at the cause first.
    assert_eq!(verdict(&world, broken).1, Cause::Failed);
    assert_eq!(world.at(main), &stands);
}

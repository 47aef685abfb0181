//! The calls of one answer.

use std::sync::Arc;
use steersman_machine::stored::ids::Id;
use steersman_machine::stored::interaction::Class;
use steersman_machine::stored::outcome::{Answer, Ask, Outcome};
use steersman_machine::values::types::{Parameters, Type, TypeKind};
use steersman_testkit::net::{Draft, offers, ty};
use steersman_testkit::world::{Fault, World};

fn ask(id: &str, name: &str, args: &str) -> Ask {
    Ask {
        name: name.to_owned(),
        label: Some(id.to_owned()),
        args: args.to_owned(),
        misfit: None,
    }
}

/// The number of calls that an answer with these calls opens.
fn wishes(asks: Vec<Ask>) -> Result<usize, Fault> {
    let any = Type {
        optional: true,
        ..ty(TypeKind::Any)
    };
    let fields = ["cents", "to"].map(|name| (name.into(), any.clone()));
    let takes = Parameters::Fields(fields.to_vec());
    let network = Draft::new("calls")
        .agent("a", offers(&["pay", "mail"], &[]))
        .native("pay", Class::Unsafe)
        .native("mail", Class::Unsafe)
        .change_tool("pay", |tool| tool.parameters = takes.clone())
        .change_tool("mail", |tool| tool.parameters = takes.clone())
        .build();
    let mut world = World::new(Arc::new(network));
    world.say(Id::MAIN, "Go.")?;
    let root = world.at(Id::MAIN).root_agent();
    let effect = root.and_then(|agent| agent.stack.owed).expect("it thinks");
    let answer = Answer {
        asks,
        ..Answer::default()
    };
    world.outcome(effect, Outcome::Answer(answer))?;
    Ok(world.at(Id::MAIN).calls.len())
}

#[test]
fn the_same_call_twice_under_one_id_is_one_call() -> Result<(), Fault> {
    let twice = vec![
        ask("c1", "pay", r#"{"cents": 5, "to": "anna"}"#),
        ask("c1", "pay", r#"{"to":"anna","cents":5}"#),
    ];
    assert_eq!(wishes(twice)?, 1);
    Ok(())
}

/// Some servers give the same id to all calls. Calls with equal ids but other names or arguments are separate calls.
#[test]
fn calls_that_differ_under_one_id_are_calls_of_their_own() -> Result<(), Fault> {
    let other_args = vec![
        ask("c1", "pay", r#"{"cents": 5}"#),
        ask("c1", "pay", r#"{"cents": 6}"#),
        ask("c1", "mail", r#"{"cents": 6}"#),
    ];
    assert_eq!(wishes(other_args)?, 3);
    let other_ids = vec![ask("c1", "pay", "{}"), ask("c2", "pay", "{}")];
    assert_eq!(wishes(other_ids)?, 2, "the ledger judges these");
    let no_ids = vec![ask("", "pay", "{}"), ask("", "pay", "{}")];
    assert_eq!(wishes(no_ids)?, 2);
    Ok(())
}

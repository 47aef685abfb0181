//! Rest: what is open on a branch, and under which other definitions the branch goes on.

use serde_json::json;
use std::sync::Arc;
use steersman_definition::{Files, compile};
use steersman_machine::network::Network;
use steersman_machine::snapshot::Phase;
use steersman_machine::stored::ids::Id;
use steersman_machine::tick::carry::carried;
use steersman_testkit::world::{Fault, World};

const MAIN: Id = Id::MAIN;

const TEAM: &str = "\
name: team
tools: { pay: { description: Pays., effect: unsafe, native: 1, approve: true } }
agents:
  front: { description: Greets., system: You greet. }
  money: { description: Pays., system: You pay., tools: [pay] }
  desk: { route: { handoff: { front: [money], money: [front] }, start: front } }
entry: desk
";

fn network(text: &str) -> Arc<Network> {
    let (network, found) = compile(&Files::new("team.yaml", text));
    Arc::new(network.unwrap_or_else(|| panic!("{found:?}")))
}

/// A member of the handoff answered: it has the floor, and its call is open.
fn answered() -> Result<World, Fault> {
    let mut w = World::new(network(TEAM));
    w.say(MAIN, "Hello.")?;
    let hands = json!({ "to": "money", "reason": "It is about money." });
    w.thinks(MAIN, "front", "", &[("handoff", hands)])?;
    w.thinks(MAIN, "money", "Which order?", &[])?;
    Ok(w)
}

/// Returns what keeps the branch from going on under the other definition.
fn kept(w: &World, to: &str) -> Option<String> {
    carried(&w.cx(), &network(to), w.at(MAIN)).err()
}

#[test]
fn a_member_that_answered_rests_in_its_route() -> Result<(), Fault> {
    let mut w = World::new(network(TEAM));
    w.say(MAIN, "Hello.")?;
    assert!(w.at(MAIN).is_open(), "its model is asked");
    let mut w = answered()?;
    let root = w.at(MAIN).root.expect("it has begun");
    assert_eq!(w.at(MAIN).agent(root).phase, Phase::Calling);
    assert!(w.at(MAIN).rests(root));
    assert!(!w.at(MAIN).is_open());
    w.say(MAIN, "Order 4711.")?;
    assert!(w.at(MAIN).is_open());
    assert!(!w.at(MAIN).rests(root));
    w.thinks(MAIN, "money", "", &[("pay", json!({}))])?;
    assert!(w.at(MAIN).is_open(), "a person is asked");
    let why = kept(&w, TEAM);
    assert!(why.is_some_and(|why| why.contains("a call of")));
    Ok(())
}

#[test]
fn a_member_that_rests_goes_on_under_a_definition_that_has_it() -> Result<(), Fault> {
    let w = answered()?;
    for to in [
        TEAM.replace("You pay.", "You pay with care."),
        TEAM.replace("money: [front]", "money: []"),
        TEAM.replace("tools: [pay]", "tools: []"),
    ] {
        assert_eq!(kept(&w, &to), None, "{to}");
    }
    let other = |from: &str, into: &str| {
        assert!(TEAM.contains(from));
        TEAM.replace(from, into)
    };
    for (to, why) in [
        (
            other(
                "handoff: { front: [money], money: [front] }",
                "handoff: { front: [] }",
            ),
            "`money` has the floor in `desk`, and is no member of it there",
        ),
        (
            other("system: You pay.", "system: You pay., turns: task"),
            "`money` has the floor in `desk`, and holds no dialogue there",
        ),
        (
            other(
                "system: You pay.",
                "system: You pay., parameters: { order: string }",
            ),
            "the parameters of the agent `money` changed, and it is at work with its old arguments",
        ),
        (
            other(
                "handoff: { front: [money], money: [front] }, start: front",
                "sequence: [front, money]",
            ),
            "`money` has the floor in `desk`, and holds no dialogue there",
        ),
    ] {
        assert_eq!(kept(&w, &to).as_deref(), Some(why), "{to}");
    }
    Ok(())
}

/// The task on which a member works is a name of the definition, too.
#[test]
fn a_task_at_work_must_stay() -> Result<(), Fault> {
    let desk = "\
name: bank
agents:
  money: { description: Pays., system: You pay. }
  desk: { route: { tasks: { transfer: { agent: money } }, default: money } }
entry: desk
";
    let mut w = World::new(network(desk));
    w.say(MAIN, "Hello.")?;
    let chosen = w.at(MAIN).is_open();
    assert!(chosen, "the router's model is asked");
    w.thinks(MAIN, "desk", "transfer", &[])?;
    w.thinks(MAIN, "money", "To whom?", &[])?;
    assert!(!w.at(MAIN).is_open());
    assert_eq!(kept(&w, desk), None);
    let why = kept(&w, &desk.replace("transfer:", "send:"));
    let said = "the agent `desk` is in the task `transfer`, which is not in it";
    assert_eq!(why.as_deref(), Some(said));
    Ok(())
}

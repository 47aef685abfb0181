//! Nets in Rust, registered by a name.

use std::sync::Arc;
use steersman_machine::network::Does;
use steersman_machine::network::nets::{Event, Net, NetView, Step};
use steersman_machine::stored::ids::Id;
use steersman_machine::trace::letters;
use steersman_testkit::net::Draft;
use steersman_testkit::world::{Fault, World};

#[test]
fn a_net_that_is_not_registered_fails() -> Result<(), Fault> {
    let network = Draft::new("stub")
        .agent("stub", Vec::new())
        .change("stub", |agent| {
            if let Does::Model(model) = &mut agent.does {
                model.net = "nobody".into();
            }
        })
        .build();
    let mut world = World::new(Arc::new(network));
    world.say(Id::MAIN, "Go.")?;
    let agent = world.agent(Id::MAIN, "stub").expect("the root");
    assert_eq!(letters(&world.stack(world.at(Id::MAIN), agent)), "U F");
    Ok(())
}

/// A net that adds a prompt instead of finishing a step, forever, in a state with a name that is too long.
struct Chatterbox;

impl Net for Chatterbox {
    fn version(&self) -> String {
        "1".to_owned()
    }
    fn next(&self, _view: &NetView<'_>, _event: &Event<'_>) -> Step {
        Step::Next("and".to_owned()).enters(&"x".repeat(1_000))
    }
}

#[test]
fn a_net_that_only_says_more_ends_its_agent() -> Result<(), Fault> {
    let mut network = Draft::new("box")
        .agent("box", Vec::new())
        .change("box", |agent| {
            if let Does::Model(model) = &mut agent.does {
                model.net = "chatterbox".into();
            }
        })
        .build();
    let nets = &mut network.natives.nets;
    nets.insert("chatterbox".into(), Arc::new(Chatterbox));
    let mut world = World::new(Arc::new(network));
    world.say(Id::MAIN, "Go.")?;
    let agent = world.agent(Id::MAIN, "box").expect("the root");
    assert_eq!(
        letters(&world.stack(world.at(Id::MAIN), agent)),
        "U U F",
        "a second prompt in a row ends the agent"
    );
    let state = world.at(Id::MAIN).agent(agent).turn.state.clone();
    assert!(state.is_some_and(|state| state.len() <= 128));
    Ok(())
}

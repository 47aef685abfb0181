//! Nets in Rust, registered by a name.

use serde_json::json;
use std::sync::Arc;
use steersman_machine::network::Does;
use steersman_machine::network::nets::{Event, Net, NetView, Step};
use steersman_machine::stored::ids::Id;
use steersman_machine::stored::interaction::How;
use steersman_machine::stored::outcome::{Mapped, Outcome};
use steersman_machine::tick::effect::Work;
use steersman_machine::trace::letters;
use steersman_testkit::net::Draft;
use steersman_testkit::world::{Fault, World};

/// A net with the states reasoning, action, reasoning, answer. It counts its steps on the stack, so a second run equals
/// the first.
struct Stub;

impl Net for Stub {
    fn version(&self) -> String {
        "1".to_owned()
    }

    fn next(&self, view: &NetView<'_>, event: &Event<'_>) -> Step {
        let says = ["reasoning 0", "action 0", "reasoning 1", "answer"];
        match event {
            Event::Owes => {
                let say = says[view.steps() as usize];
                Step::Custom("say".into(), json!({ "text": say }))
            }
            Event::Gave("answer") => Step::Take,
            Event::Gave(_) => Step::Thought,
            Event::Answered(_) => Step::Fail("no model was asked".to_owned()),
        }
    }
}

#[test]
fn a_registered_net_decides_the_steps() -> Result<(), Fault> {
    let mut network = Draft::new("stub")
        .agent("stub", Vec::new())
        .change("stub", |agent| {
            if let Does::Model(model) = &mut agent.does {
                model.net = "stub_react".into();
            }
        })
        .build();
    network
        .natives
        .nets
        .insert("stub_react".into(), Arc::new(Stub));
    let mut world = World::new(Arc::new(network));
    for question in ["One", "Two"] {
        world.say(Id::MAIN, question)?;
        let mut said = Vec::new();
        while let Some((effect, out)) = world.out().iter().next().map(|(id, o)| (*id, o.clone())) {
            let Work::Custom { name, input } = out.wish.work else {
                panic!("only the net's own work is wished");
            };
            assert_eq!(&*name, "say");
            let input: serde_json::Value = serde_json::from_str(&input).expect("JSON");
            let text = input["text"].as_str().expect("a text").to_owned();
            said.push(text.clone());
            world.outcome(
                effect,
                Outcome::Mapped(Mapped::plain(How::Done, None, text)),
            )?;
        }
        assert_eq!(said, ["reasoning 0", "action 0", "reasoning 1", "answer"]);
    }
    let agent = world.agent(Id::MAIN, "stub").expect("the root");
    let stack = world.stack(world.at(Id::MAIN), agent);
    assert_eq!(letters(&stack), "U A A A A F UR A A A A F");
    Ok(())
}

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

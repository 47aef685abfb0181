//! Traces whose order matters, line by line. The other traces are case files.

use serde_json::json;
use std::sync::Arc;
use steersman_machine::network::join::JoinOn;
use steersman_machine::network::{Chooser, Turns};
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::stored::interaction::Class;
use steersman_machine::trace::letters;
use steersman_testkit::net::{Draft, forks, offers, text, ty};
use steersman_testkit::world::{Fault, Held, World, whole};

fn id(n: u64, k: u32) -> Id {
    Id::new(Line(n), k)
}

fn stack(world: &World, branch: Id, agent: &str) -> String {
    let agent = world.agent(branch, agent).expect("the agent is there");
    letters(&world.stack(world.at(branch), agent))
}

/// One answer makes two calls, one of which needs an approval. A member in a dialogue keeps the floor.
#[test]
fn one_of_two_calls_needs_an_approval() -> Result<(), Fault> {
    let network = Draft::new("bank")
        .agent("bank", offers(&[], &["xfer"]))
        .agent_turns(
            "xfer",
            Turns::Dialogue,
            offers(&["balance_sufficient", "transfer"], &[]),
        )
        .native("balance_sufficient", Class::Read)
        .native("transfer", Class::Unsafe)
        .approve("transfer", "true")
        .build();
    let mut w = World::new(Arc::new(network));
    let main = Id::MAIN;
    w.say(main, "Transfer money")?;
    w.thinks(
        main,
        "bank",
        "",
        &[("xfer", json!({ "message": "Transfer money" }))],
    )?;
    w.thinks(main, "xfer", "Which account, how much?", &[])?;
    w.say(main, "500 to 1234324")?;
    w.thinks(
        main,
        "xfer",
        "",
        &[("balance_sufficient", json!({})), ("transfer", json!({}))],
    )?;
    w.returns(main, "balance_sufficient", json!(true))?;
    let held = w.find(main, &Held::Approval, "transfer").expect("it waits");
    w.approve(held, "user")?;
    w.returns(main, "transfer", json!("ref 77"))?;
    w.thinks(main, "xfer", "Sent.", &[])?;
    whole(&w, main)?;
    assert_eq!(stack(&w, main, "xfer"), "U A F UR A TC TC TR TR A F");
    assert_eq!(stack(&w, main, "bank"), "U A AC");
    insta::assert_snapshot!(w.printed);
    Ok(())
}

/// An agent forks while two siblings run. A critic chooses a branch, which is adopted up to its first simulated effect.
#[test]
fn a_branch_is_adopted_while_siblings_run() -> Result<(), Fault> {
    let network = Draft::new("forks")
        .agent("p", offers(&[], &["a", "b", "c"]))
        .agent("a", {
            let mut uses = offers(&["transfer"], &[]);
            uses.push(forks(Some(Chooser::Agent("critic".into())), false));
            uses
        })
        .agent("b", offers(&["mail"], &[]))
        .agent("c", Vec::new())
        .agent("critic", Vec::new())
        .native("mail", Class::Unsafe)
        .native("transfer", Class::Unsafe)
        .change_tool("transfer", |t| {
            t.simulate = Some(steersman_machine::values::expression::Data::Plain(json!(
                "as if paid"
            )));
        })
        .fork()
        .build();
    let mut w = World::new(Arc::new(network));
    let main = Id::MAIN;
    let go = |text: &str| json!({ "message": text });
    w.say(main, "Go.")?;
    w.thinks(
        main,
        "p",
        "",
        &[("a", go("A")), ("b", go("B")), ("c", go("C"))],
    )?;
    w.thinks(main, "b", "", &[("mail", json!({}))])?;
    w.thinks(
        main,
        "a",
        "",
        &[("fork", json!({ "instructions": ["Wait.", "Pay."] }))],
    )?;
    let (b1, b2) = (id(4, 1), id(4, 2));
    w.returns(main, "mail", json!("sent"))?;
    w.thinks(b2, "a", "", &[("transfer", json!({}))])?;
    w.play(id(8, 0), &w.out()[&id(8, 0)].clone())?;
    w.thinks(b1, "a", "Nothing was paid.", &[])?;
    w.thinks(main, "c", "C is done.", &[])?;
    w.thinks(b2, "a", "It was paid.", &[])?;
    w.thinks(main, "critic", "b2", &[])?;
    assert_eq!(stack(&w, main, "a"), "U A W WR A TC");
    w.returns(main, "transfer", json!("ref 1"))?;
    w.thinks(main, "a", "It is paid.", &[])?;
    whole(&w, main)?;
    insta::assert_snapshot!(w.printed);
    assert_eq!(stack(&w, main, "a"), "U A W WR A TC TR A F");
    assert_eq!(stack(&w, main, "p"), "U A AC AC AC AR AR");
    assert_eq!(stack(&w, b1, "a"), "U A W WR A F");
    Ok(())
}

/// A fork without a chooser: the agent gets the results of all branches.
#[test]
fn a_fork_without_a_chooser_gets_all_results() -> Result<(), Fault> {
    let network = Draft::new("forks")
        .agent("a", vec![forks(None, false)])
        .fork()
        .build();
    let mut w = World::new(Arc::new(network));
    let main = Id::MAIN;
    w.say(main, "Go.")?;
    w.thinks(
        main,
        "a",
        "",
        &[("fork", json!({ "instructions": ["Left.", "Right."] }))],
    )?;
    w.thinks(id(2, 2), "a", "Right it is.", &[])?;
    assert_eq!(stack(&w, main, "a"), "U A W");
    w.thinks(id(2, 1), "a", "Left it is.", &[])?;
    assert_eq!(stack(&w, main, "a"), "U A W WR");
    w.thinks(main, "a", "Both are well.", &[])?;
    whole(&w, main)?;
    insta::assert_snapshot!(w.printed);
    Ok(())
}

/// A person forks two branches after the end and joins them while they still run; a tool follows the join.
#[test]
fn branches_of_a_person_are_joined_while_they_run() -> Result<(), Fault> {
    let network = Draft::new("joins")
        .agent("main", offers(&["look"], &[]))
        .native("look", Class::Read)
        .native("aggregate", Class::Pure)
        .change_tool("aggregate", |t| {
            let list = ty(steersman_machine::values::types::TypeKind::List(Box::new(
                text(),
            )));
            t.parameters =
                steersman_machine::values::types::Parameters::Fields(vec![("texts".into(), list)]);
        })
        .build();
    let mut w = World::new(Arc::new(network));
    let main = Id::MAIN;
    w.say(main, "Analyse.")?;
    w.thinks(main, "main", "Analysis.", &[])?;
    let end = w.branch(main).head;
    let b1 = w.fork(end, Some("b1"), Some("why?"), true)?;
    let b2 = w.fork(end, Some("b2"), Some("cheaper?"), true)?;
    let then = steersman_machine::network::Then {
        tool: "aggregate".into(),
        args: None,
    };
    w.join(vec![b1, b2], JoinOn::All, Some(then))?;
    for (branch, answer) in [(b1, "Because."), (b2, "Cheaper.")] {
        w.thinks(branch, "main", "", &[("look", json!({}))])?;
        w.returns(branch, "look", json!("seen"))?;
        w.thinks(branch, "main", answer, &[])?;
    }
    w.returns(main, "aggregate", json!("Because. Cheaper."))?;
    w.thinks(main, "main", "Joined.", &[])?;
    whole(&w, main)?;
    assert_eq!(stack(&w, main, "main"), "U A F W WR TC TR A F");
    assert_eq!(stack(&w, b1, "main"), "U A F UR A TC TR A F");
    insta::assert_snapshot!(w.printed);
    Ok(())
}

//! Branches, as far as case files cannot express them: choosers, conflicts, leaves, and scopes that stand still.

use serde_json::json;
use std::sync::Arc;
use steersman_machine::network::{Chooser, Network};
use steersman_machine::stored::ids::{Digest, Id, Line};
use steersman_machine::stored::interaction::{Cause, Class, How, Interaction};
use steersman_machine::stored::outcome::Outcome;
use steersman_machine::tick::branch::{Conflict, adoptable, stands};
use steersman_machine::tick::effect::{Cancelled, Offered, Until};
use steersman_machine::trace::letters;
use steersman_machine::values::expression::Data;
use steersman_machine::values::types::{Parameters, TypeKind};
use steersman_testkit::net::{Draft, forks, offers, text, ty};
use steersman_testkit::world::{Fault, Held, World, whole};

const MAIN: Id = Id::MAIN;

fn id(n: u64, k: u32) -> Id {
    Id::new(Line(n), k)
}

fn stack(world: &World, branch: Id, agent: &str) -> String {
    let agent = world.agent(branch, agent).expect("the agent is there");
    letters(&world.stack(world.at(branch), agent))
}

/// The last result on a stack: how it ended, and its text.
fn result(world: &World, branch: Id, agent: &str) -> (How, String) {
    let agent = world.agent(branch, agent).expect("the agent is there");
    let stack = world.stack(world.at(branch), agent);
    let last = stack.iter().rev().find_map(|i| match i {
        Interaction::Result(result) => Some(result.clone()),
        _ => None,
    });
    let last = last.expect("there is a result");
    let text = last.body.map(|b| {
        use steersman_machine::stored::ids::Bodies;
        world.text(b).to_string()
    });
    (last.how, text.unwrap_or_default())
}

/// An agent with `fork`, perhaps with a chooser, a tool that writes state, and tools with effects.
fn forking(choose: Option<Chooser>, live: bool) -> Network {
    let mut uses = offers(&["pay", "bare", "note", "look"], &["helper"]);
    uses.push(forks(choose, live));
    let answers = Parameters::Fields(vec![(
        "answers".into(),
        ty(TypeKind::List(Box::new(text()))),
    )]);
    Draft::new("forking")
        .agent("a", uses)
        .agent("helper", offers(&["look"], &[]))
        .state("seen", TypeKind::Any)
        .setter("note", "seen")
        .native("look", Class::Read)
        .native("pay", Class::Unsafe)
        .change_tool("pay", |t| {
            t.simulate = Some(Data::Plain(json!("as if paid")));
        })
        .native("bare", Class::Unsafe)
        .native("judge", Class::Read)
        .change_tool("judge", |t| t.parameters = answers)
        .fork()
        .build()
}

/// Begins, and forks into the branches 2.1 and 2.2.
fn forked(choose: Option<Chooser>, live: bool) -> Result<World, Fault> {
    let mut w = World::new(Arc::new(forking(choose, live)));
    w.say(MAIN, "Go.")?;
    let ways = json!({ "instructions": ["One.", "Two."] });
    w.thinks(MAIN, "a", "", &[("fork", ways)])?;
    Ok(w)
}

const B1: fn() -> Id = || id(2, 1);
const B2: fn() -> Id = || id(2, 2);

/// A tool chooses a branch. The branch is adopted: its answer becomes the agent's, and its writes become state.
#[test]
fn a_branch_that_a_tool_chooses_is_adopted() -> Result<(), Fault> {
    let mut w = forked(Some(Chooser::Tool("judge".into())), false)?;
    w.thinks(B1(), "a", "", &[("note", json!({ "value": 1 }))])?;
    w.thinks(B1(), "a", "First.", &[])?;
    w.thinks(B2(), "a", "", &[("note", json!({ "value": 2 }))])?;
    w.thinks(B2(), "a", "Second.", &[])?;
    let judge = w.at(MAIN).forks.iter().next().copied();
    let (owner, call) = judge.expect("the fork is open");
    let effect = w.at(MAIN).call(owner, call).and_then(|c| c.effect);
    w.gives(
        effect.expect("the judge is asked"),
        &steersman_machine::view::mapping::Raw::Done(json!(2)),
    )?;
    assert_eq!(stack(&w, MAIN, "a"), "U A W WR A TC TR A F");
    let cell = w.at(MAIN).cell(id(1, 0), &"seen".into()).expect("written");
    assert_eq!(*cell.value.0, json!(2));
    assert!(w.branch(B1()).superseded && w.branch(B2()).superseded);
    whole(&w, MAIN)?;
    insta::assert_snapshot!(w.printed);
    Ok(())
}

/// A person chooses a branch. If the answer names no branch, the agent gets all results.
#[test]
fn a_person_chooses_or_does_not() -> Result<(), Fault> {
    for (word, letters) in [("1", "U A W WR A F"), ("neither", "U A W WR")] {
        let mut w = forked(Some(Chooser::Person("user".into())), false)?;
        w.thinks(B1(), "a", "First.", &[])?;
        w.thinks(B2(), "a", "Second.", &[])?;
        let question = w.find(MAIN, &Held::Question, "user").expect("a question");
        w.answer(question, word, "user")?;
        assert_eq!(stack(&w, MAIN, "a"), letters, "{word}");
        whole(&w, MAIN)?;
    }
    Ok(())
}

/// If the adopting branch wrote an entry that the adopted one wrote, the adoption is refused with the path of the
/// entry. The agent continues with this result.
#[test]
fn an_adoption_that_conflicts_is_refused_with_the_path() -> Result<(), Fault> {
    let mut w = forked(Some(Chooser::Tool("judge".into())), false)?;
    w.thinks(B1(), "a", "", &[("note", json!({ "value": 1 }))])?;
    w.thinks(B1(), "a", "First.", &[])?;
    w.thinks(B2(), "a", "Second.", &[])?;
    let writes = vec![steersman_machine::stored::outcome::NewWrite {
        name: "seen".to_owned(),
        value: Some(json!(9)),
        seal: false,
    }];
    let by = "user".into();
    w.offer(MAIN, vec![Offered::Edit { writes, by }])?;
    let conflicts = adoptable(w.at(MAIN), w.at(B1())).expect_err("both wrote it");
    assert_eq!(
        conflicts,
        Conflict::Written(vec![(id(1, 0), "seen".into())])
    );
    assert_eq!(adoptable(w.at(MAIN), w.at(B2())), Ok(()));
    let effect = *w
        .at(MAIN)
        .effects
        .keys()
        .next()
        .expect("the judge is asked");
    w.gives(
        effect,
        &steersman_machine::view::mapping::Raw::Done(json!("b1")),
    )?;
    let (how, text) = result(&w, MAIN, "a");
    assert_eq!(how, How::Failed);
    assert!(text.contains("state.seen"), "{text}");
    assert_eq!(
        *w.at(MAIN)
            .cell(id(1, 0), &"seen".into())
            .expect("set")
            .value
            .0,
        json!(9)
    );
    whole(&w, MAIN)
}

/// An entry that a branch unset counts as written.
#[test]
fn an_unset_entry_counts_as_written() -> Result<(), Fault> {
    let mut w = World::new(Arc::new(forking(None, false)));
    w.say(MAIN, "Go.")?;
    w.thinks(MAIN, "a", "", &[("note", json!({ "value": 1 }))])?;
    let ways = json!({ "instructions": ["One."] });
    w.thinks(MAIN, "a", "", &[("fork", ways)])?;
    let b = id(3, 1);
    w.thinks(b, "a", "", &[("note", json!({ "value": null }))])?;
    assert_eq!(w.at(b).cell(id(1, 0), &"seen".into()), None);
    assert_eq!(adoptable(w.at(MAIN), w.at(b)), Ok(()));
    let writes = vec![steersman_machine::stored::outcome::NewWrite {
        name: "seen".to_owned(),
        value: Some(json!(2)),
        seal: false,
    }];
    w.offer(
        MAIN,
        vec![Offered::Edit {
            writes,
            by: "user".into(),
        }],
    )?;
    assert_eq!(
        adoptable(w.at(MAIN), w.at(b)),
        Err(Conflict::Written(vec![(id(1, 0), "seen".into())]))
    );
    Ok(())
}

/// A call that nothing simulates ends its branch as a leaf. An adoption takes the branch up to that call, which then
/// runs.
#[test]
fn a_leaf_is_adopted_up_to_its_call() -> Result<(), Fault> {
    let mut w = forked(Some(Chooser::Tool("judge".into())), false)?;
    w.thinks(B1(), "a", "", &[("bare", json!({}))])?;
    w.thinks(B2(), "a", "Second.", &[])?;
    let effect = *w
        .at(B1())
        .effects
        .keys()
        .next()
        .expect("it is to be simulated");
    w.play(effect, &w.out()[&effect].clone())?;
    let end = w.branch(B1()).ended.clone().expect("it ended");
    assert_eq!(end.cause, Cause::Leaf);
    assert_eq!(stack(&w, B1(), "a"), "U A W WR A TC TR F");
    let judge = *w
        .at(MAIN)
        .effects
        .keys()
        .next()
        .expect("the judge is asked");
    w.gives(
        judge,
        &steersman_machine::view::mapping::Raw::Done(json!("b1")),
    )?;
    assert_eq!(stack(&w, MAIN, "a"), "U A W WR A TC");
    w.returns(MAIN, "bare", json!("for real"))?;
    w.thinks(MAIN, "a", "Done.", &[])?;
    assert_eq!(stack(&w, MAIN, "a"), "U A W WR A TC TR A F");
    whole(&w, MAIN)
}

/// Effects of a live branch are performed. After its adoption they are not performed again.
#[test]
fn what_a_live_branch_did_is_not_done_again() -> Result<(), Fault> {
    let mut w = forked(Some(Chooser::Person("user".into())), true)?;
    w.thinks(B1(), "a", "", &[("pay", json!({}))])?;
    w.returns(B1(), "pay", json!("ref 1"))?;
    w.thinks(B1(), "a", "Paid.", &[])?;
    w.thinks(B2(), "a", "Not paid.", &[])?;
    let question = w.find(MAIN, &Held::Question, "user").expect("a question");
    w.answer(question, "1", "user")?;
    assert_eq!(stack(&w, MAIN, "a"), "U A W WR A TC TR A F");
    assert!(w.out().is_empty());
    whole(&w, MAIN)
}

/// Calls and model calls of an adopted branch also count for the callers of its agent.
#[test]
fn an_adopted_branch_counts_for_its_callers() -> Result<(), Fault> {
    let mut helper = offers(&["look"], &[]);
    helper.push(forks(Some(Chooser::Person("user".into())), false));
    let network = Draft::new("counts")
        .agent("lead", offers(&[], &["helper"]))
        .agent("helper", helper)
        .native("look", Class::Read)
        .fork()
        .build();
    let mut w = World::new(Arc::new(network));
    w.say(MAIN, "Go.")?;
    w.thinks(
        MAIN,
        "lead",
        "",
        &[("helper", json!({ "message": "Help." }))],
    )?;
    let ways = json!({ "instructions": ["One.", "Two."] });
    w.thinks(MAIN, "helper", "", &[("fork", ways)])?;
    let (b1, b2) = (id(3, 1), id(3, 2));
    w.thinks(b1, "helper", "", &[("look", json!({}))])?;
    w.returns(b1, "look", json!("seen"))?;
    w.thinks(b1, "helper", "First.", &[])?;
    w.thinks(b2, "helper", "Second.", &[])?;
    let question = w.find(MAIN, &Held::Question, "user").expect("a question");
    w.answer(question, "b1", "user")?;
    let lead = w.at(MAIN).agent(id(1, 0));
    assert_eq!(lead.counters.calls["look"].ok, 1);
    // Two model calls on `main`, and two by the helper on the adopted branch.
    assert_eq!(lead.counters.answer.model_calls, 4);
    assert_eq!(stack(&w, MAIN, "lead"), "U A AC AR");
    whole(&w, MAIN)
}

/// While a fork is open, no agent of its scope moves. A message waits until the fork is closed.
#[test]
fn a_scope_stands_still_while_its_fork_is_open() -> Result<(), Fault> {
    let mut w = World::new(Arc::new(forking(None, false)));
    w.say(MAIN, "Go.")?;
    w.thinks(MAIN, "a", "", &[("helper", json!({ "message": "Help." }))])?;
    let helper = w.agent(MAIN, "helper").expect("it was called");
    w.thinks(MAIN, "helper", "Helped.", &[])?;
    let ways = json!({ "instructions": ["One."] });
    w.thinks(MAIN, "a", "", &[("fork", ways)])?;
    assert!(stands(w.at(MAIN), helper) && stands(w.at(MAIN), id(1, 0)));
    let took = w.say_to(MAIN, helper, "And you?")?;
    assert_eq!(took.line, None);
    assert!(
        matches!(took.left[..], [(0, Until::Exchange(forked))] if forked == id(1, 0)),
        "{:?}",
        took.left
    );
    let b = id(4, 1);
    assert!(!stands(w.at(b), helper));
    w.thinks(b, "a", "Done.", &[])?;
    assert_eq!(stack(&w, MAIN, "helper"), "U A F UR");
    whole(&w, MAIN)
}

/// Cancelling the agent that forked also cancels the chooser, and its branches have no more ticks.
#[test]
fn a_cancel_takes_the_chooser_and_the_branches_with_it() -> Result<(), Fault> {
    let uses = vec![forks(Some(Chooser::Agent("critic".into())), false)];
    let network = Draft::new("cancel")
        .agent("a", uses)
        .agent("critic", Vec::new())
        .fork()
        .build();
    let mut w = World::new(Arc::new(network));
    w.say(MAIN, "Go.")?;
    let ways = json!({ "instructions": ["One.", "Two."] });
    w.thinks(MAIN, "a", "", &[("fork", ways)])?;
    w.thinks(B1(), "a", "First.", &[])?;
    w.thinks(B2(), "a", "Second.", &[])?;
    assert_eq!(stack(&w, MAIN, "critic"), "U");
    w.cancel(MAIN, Cancelled::All)?;
    assert_eq!(stack(&w, MAIN, "critic"), "U F");
    assert_eq!(stack(&w, MAIN, "a"), "U A W WR F");
    assert!(w.branch(B1()).superseded && w.branch(B2()).superseded);
    assert!(w.out().is_empty());
    whole(&w, MAIN)
}

/// An agent on a branch of a fork can fork again.
#[test]
fn a_branch_forks_again() -> Result<(), Fault> {
    let mut w = forked(None, false)?;
    let ways = json!({ "instructions": ["Left.", "Right."] });
    let line = w.lines().len() as u64 + 1;
    w.thinks(B1(), "a", "", &[("fork", ways)])?;
    let (c1, c2) = (id(line, 1), id(line, 2));
    w.thinks(c1, "a", "Left it is.", &[])?;
    w.thinks(c2, "a", "Right it is.", &[])?;
    assert_eq!(stack(&w, B1(), "a"), "U A W WR A W WR");
    w.thinks(B1(), "a", "Both.", &[])?;
    w.thinks(B2(), "a", "Two.", &[])?;
    assert_eq!(stack(&w, MAIN, "a"), "U A W WR");
    whole(&w, MAIN)
}

/// The instructions of a fork must be a list of texts of limited length. If they are not, the call is refused.
#[test]
fn a_fork_that_cannot_be_is_a_result() -> Result<(), Fault> {
    let long: Vec<&str> = vec!["x"; 9];
    let empty: Vec<&str> = Vec::new();
    for args in [
        json!({}),
        json!({ "instructions": [1] }),
        json!({ "instructions": empty }),
        json!({ "instructions": long }),
    ] {
        let mut w = World::new(Arc::new(forking(None, false)));
        w.say(MAIN, "Go.")?;
        w.thinks(MAIN, "a", "", &[("fork", args.clone())])?;
        let (how, _) = result(&w, MAIN, "a");
        assert_eq!(how, How::Refused, "{args}");
        assert_eq!(w.branches().len(), 1);
        whole(&w, MAIN)?;
    }
    Ok(())
}

/// A fork begins after the other calls of its answer are closed, and its branches see what those calls wrote.
#[test]
fn a_fork_comes_last() -> Result<(), Fault> {
    let mut w = World::new(Arc::new(forking(None, false)));
    w.say(MAIN, "Go.")?;
    let ways = json!({ "instructions": ["One."] });
    w.thinks(
        MAIN,
        "a",
        "",
        &[("fork", ways.clone()), ("look", json!({})), ("fork", ways)],
    )?;
    assert_eq!(w.branches().len(), 1);
    w.returns(MAIN, "look", json!("seen"))?;
    assert_eq!(w.branches().len(), 2);
    assert_eq!(stack(&w, MAIN, "a"), "U A W TC W WR TR");
    whole(&w, MAIN)?;
    insta::assert_snapshot!(w.printed);
    Ok(())
}

/// An interrupt keeps the text that was already shown of a model call, as a partial message.
#[test]
fn an_interrupt_keeps_the_text_that_was_shown() -> Result<(), Fault> {
    let mut w = World::new(Arc::new(forking(None, false)));
    w.say(MAIN, "Go.")?;
    let message = w.said("Stop.");
    let shown = vec![(id(1, 1), "I was about to".into())];
    let known = Vec::new();
    w.offer(
        MAIN,
        vec![Offered::Interrupt {
            message,
            known,
            shown,
        }],
    )?;
    assert_eq!(stack(&w, MAIN, "a"), "U A U");
    // The answer of the interrupted call arrives too late.
    let late = Offered::Outcome {
        effect: id(1, 1),
        attempt: 1,
        outcome: Outcome::Leaf("late".to_owned()),
    };
    let took = w.offer(MAIN, vec![late])?;
    assert_eq!(
        (took.line, &took.left[..]),
        (None, &[(0, Until::Stale)][..])
    );
    insta::assert_snapshot!(w.printed);
    Ok(())
}

/// An erased text leaves a tombstone. The line still verifies with the same hash and folds to the same snapshot.
#[test]
fn a_line_with_an_erased_text_keeps_its_hash_and_its_snapshot() -> Result<(), Fault> {
    use steersman_machine::stored::codec::{decode, encode, erase, verify};
    let mut w = World::new(Arc::new(forking(None, false)));
    w.say(MAIN, "My name is Ada.")?;
    let line = w.line(Line(1)).clone();
    let (before, salt) = ([0; 32], [7; 16]);
    let (bytes, hash) = encode(&line, &before, &salt);
    let k = line.bodies.iter().position(
        |t| matches!(t, steersman_machine::stored::commit::Text::Here(t) if &**t == "My name is Ada."),
    );
    let k = k.expect("the message is in the line") as u32;
    let erased = erase(&bytes, k, &salt).expect("there is such a text");
    assert_eq!(verify(&erased, &before, &salt).map(|(_, h)| h), Ok(hash));
    let (without, _) = decode(&erased).expect("it is still a line");
    assert!(!format!("{without:?}").contains("Ada"));
    let empty = steersman_machine::snapshot::Snapshot::empty;
    let fold = steersman_machine::snapshot::fold::fold;
    assert_eq!(fold(empty(), &without), fold(empty(), &line));
    Ok(())
}

/// The bytes that a turn writes do not grow with the number of turns before it, and neither do the entries of the
/// snapshot.
#[test]
fn the_bytes_of_a_turn_do_not_grow_with_the_turns_before() -> Result<(), Fault> {
    let mut w = World::new(Arc::new(forking(None, false)));
    w.checked = false;
    let size = |w: &World, n: usize| {
        let (bytes, _) =
            steersman_machine::stored::codec::encode(&w.lines()[n], &[0; 32], &[7; 16]);
        bytes.len()
    };
    for _ in 0..1_000 {
        w.say(MAIN, "Go on.")?;
        w.thinks(MAIN, "a", "So be it.", &[])?;
    }
    let lines = w.lines().len();
    assert_eq!(lines, 2_000);
    assert!(size(&w, lines - 1) <= size(&w, 21) + 12);
    assert!(size(&w, lines - 2) <= size(&w, 20) + 12);
    let (early, late) = (w.after(Line(20)), w.at(MAIN));
    assert_eq!(
        early.calls.len() + early.effects.len(),
        late.calls.len() + late.effects.len()
    );
    assert_eq!(early.agents.len(), late.agents.len());
    Ok(())
}

/// A branch runs under the binding of the line at which it begins.
#[test]
fn a_branch_keeps_the_binding_of_its_line() -> Result<(), Fault> {
    let mut w = forked(None, false)?;
    let first = w.at(MAIN).binding.clone();
    w.rebind(MAIN, Digest([7; 16]));
    let second = w.at(MAIN).binding.clone();
    assert_ne!(first, second);
    assert_eq!(w.at(B1()).binding, first);
    for (line, bound) in [(Line(1), first), (w.branch(MAIN).head, second)] {
        let b = w.fork(line, None, None, true)?;
        assert_eq!(w.at(b).binding, bound, "forked at {line}");
        assert_eq!(w.at(b).forked_at, line);
    }
    Ok(())
}

/// No person speaks on the branches of an agent's fork, so an agent that hands the floor to a person ends its branch as
/// a leaf.
#[test]
fn a_dialogue_below_an_agents_fork_is_a_leaf() -> Result<(), Fault> {
    let mut uses = offers(&[], &["talker"]);
    uses.push(forks(None, false));
    let network = Draft::new("talk")
        .agent("a", uses)
        .agent_turns(
            "talker",
            steersman_machine::network::Turns::Dialogue,
            Vec::new(),
        )
        .fork()
        .build();
    let mut w = World::new(Arc::new(network));
    w.say(MAIN, "Go.")?;
    let ways = json!({ "instructions": ["Talk."] });
    w.thinks(MAIN, "a", "", &[("fork", ways)])?;
    let b = id(2, 1);
    w.thinks(b, "a", "", &[("talker", json!({ "message": "Talk." }))])?;
    w.thinks(b, "talker", "And you?", &[])?;
    let end = w.branch(b).ended.clone().expect("it ended");
    assert_eq!(end.cause, Cause::Leaf);
    assert_eq!(stack(&w, MAIN, "a"), "U A W WR");
    whole(&w, MAIN)
}

/// If the chosen branch cannot be adopted, the fork closes with the reason, whether the driver or the machine finds it
/// out.
#[test]
fn a_choice_that_cannot_be_adopted_closes_the_fork_with_the_reason() -> Result<(), Fault> {
    for by_driver in [true, false] {
        let mut w = forked(Some(Chooser::Person("user".into())), false)?;
        w.thinks(B1(), "a", "First.", &[])?;
        w.thinks(B2(), "a", "Second.", &[])?;
        let call = w.at(MAIN).forks.iter().next().copied();
        let call = call.expect("the fork is open");
        let nobody = id(9, 9);
        let offered = if by_driver {
            Offered::NotAdopted {
                call,
                branch: nobody,
                why: "line 7 is not on its path".into(),
            }
        } else {
            Offered::Adopt {
                call: Some(call),
                branch: nobody,
                at: w.at(B1()).line,
                from: Box::new(w.at(B1()).clone()),
                known: Vec::new(),
            }
        };
        w.offer(MAIN, vec![offered])?;
        let (how, text) = result(&w, MAIN, "a");
        assert_eq!(how, How::Failed);
        assert!(text.starts_with("The branch that was chosen cannot be adopted: "));
        let why = if by_driver {
            "line 7 is not on its path"
        } else {
            "this fork has no such branch"
        };
        assert!(text.contains(why), "{text}");
        assert!(w.at(MAIN).forks.is_empty());
        w.thinks(MAIN, "a", "So be it.", &[])?;
        whole(&w, MAIN)?;
    }
    Ok(())
}

/// A branch is adopted up to a line at which an agent had chosen among branches of its own, but that choice was not
/// carried out. It is carried out on the adopting branch.
#[test]
fn a_choice_that_comes_with_an_adoption_is_carried_out() -> Result<(), Fault> {
    let fork = || forks(Some(Chooser::Person("user".into())), true);
    let mut uses = offers(&[], &["helper", "talker"]);
    uses.push(fork());
    let network = Draft::new("nested")
        .agent("a", uses)
        .agent("helper", vec![fork()])
        .agent_turns(
            "talker",
            steersman_machine::network::Turns::Dialogue,
            Vec::new(),
        )
        .fork()
        .build();
    let mut w = World::new(Arc::new(network));
    w.say(MAIN, "Go.")?;
    let ways = json!({ "instructions": ["One.", "Two."] });
    w.thinks(MAIN, "a", "", &[("fork", ways.clone())])?;
    let call = |name: &'static str| (name, json!({ "message": "Do." }));
    w.thinks(B1(), "a", "", &[call("helper"), call("talker")])?;
    w.thinks(B1(), "talker", "And you?", &[])?;
    w.thinks(B1(), "helper", "", &[("fork", ways)])?;
    let of_helper: Vec<Id> = w.branches().keys().copied().filter(|b| *b > B2()).collect();
    let [one, two] = of_helper[..] else {
        panic!("the helper has forked: {of_helper:?}")
    };
    w.thinks(one, "helper", "First.", &[])?;
    w.thinks(two, "helper", "Second.", &[])?;
    // After this choice the helper is done and a person has the floor. No person speaks on this branch, so it is a
    // leaf.
    let choice = w.find(B1(), &Held::Question, "user").expect("a question");
    w.answer(choice, "1", "user")?;
    let end = w.branch(B1()).ended.clone().expect("it is a leaf");
    assert_eq!(end.cause, Cause::Leaf);
    // The adoption takes the branch up to the line before, which holds the choice.
    w.thinks(B2(), "a", "Otherwise.", &[])?;
    let choice = w.find(MAIN, &Held::Question, "user").expect("a question");
    w.answer(choice, "1", "user")?;
    assert!(w.at(MAIN).forks.is_empty(), "{}", w.printed);
    let (how, text) = result(&w, MAIN, "a");
    assert_eq!((how, &*text), (How::Finished, "First."));
    whole(&w, MAIN)
}

/// The line in which the current turn of an agent on `main` began.
fn began(world: &World, agent: &str) -> Line {
    let id = world.agent(MAIN, agent).expect("the agent is there");
    world.at(MAIN).agent(id).turn.began
}

/// A turn keeps the line of its first message over calls and rest. An adoption takes over the turn of the branch.
#[test]
fn a_turn_is_named_by_the_line_that_began_it() -> Result<(), Fault> {
    let last = |w: &World| w.lines().last().expect("there are lines").n;
    let mut w = World::new(Arc::new(forking(None, false)));
    w.say(MAIN, "Go.")?;
    assert_eq!(began(&w, "a"), Line(1));
    w.thinks(MAIN, "a", "", &[("helper", json!({ "message": "Help." }))])?;
    let called = last(&w);
    w.thinks(MAIN, "helper", "", &[("look", json!({}))])?;
    w.returns(MAIN, "look", json!(1))?;
    w.thinks(MAIN, "helper", "Here.", &[])?;
    w.thinks(MAIN, "a", "Done.", &[])?;
    assert_eq!(began(&w, "helper"), called, "the call is its message");
    assert_eq!(began(&w, "a"), Line(1), "no turn began after its answer");
    w.say(MAIN, "More.")?;
    let more = last(&w);
    assert_eq!(began(&w, "a"), more);
    w.thinks(MAIN, "a", "Done again.", &[])?;

    let branch = w.fork(last(&w), None, Some("And on a branch?"), false)?;
    let first = w.line(w.branch(branch).head).n;
    w.thinks(branch, "a", "", &[("look", json!({}))])?;
    assert_eq!(began(&w, "a"), more, "no turn began on `main`");
    w.adopt(branch)?;
    assert_eq!(began(&w, "a"), first, "the turn goes on here");
    assert_eq!(began(&w, "helper"), called);
    whole(&w, MAIN)
}

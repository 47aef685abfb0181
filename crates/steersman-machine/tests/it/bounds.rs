//! A value that is too large is refused at the input, so every line can be stored.

use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::snapshot::{Snapshot, checkpoint};
use steersman_machine::stored::bounds::{CALLS, MAX_LINE, NAME, VALUE};
use steersman_machine::stored::codec;
use steersman_machine::stored::commit::{CellFact, Text};
use steersman_machine::stored::ids::{Bodies, Id, Line};
use steersman_machine::stored::interaction::{Class, How, Interaction, Origin, Reduce};
use steersman_machine::stored::outcome::{Answer, Ask, Mapped, NewWrite, Outcome};
use steersman_machine::tick::effect::{Offered, Until};
use steersman_machine::values::types::TypeKind;
use steersman_testkit::net::{Draft, offers, text};
use steersman_testkit::world::{Fault, Held, World};

const MAIN: Id = Id::MAIN;
const SALT: [u8; 16] = [7; 16];

fn integer() -> TypeKind {
    TypeKind::Integer {
        minimum: None,
        maximum: None,
    }
}

/// An agent with tools that write their results to state.
fn network() -> Network {
    Draft::new("bounds")
        .agent(
            "a",
            offers(&["one", "two", "both", "more", "add", "most", "any"], &[]),
        )
        .state("one", TypeKind::Any)
        .state("two", TypeKind::Any)
        .state("more", TypeKind::List(Box::new(text())))
        .reduces("more", Reduce::Append)
        .state("sum", integer())
        .reduces("sum", Reduce::Sum)
        .state("most", integer())
        .reduces("most", Reduce::Max)
        .native("one", Class::Read)
        .sets("one", "one", "{{ result }}")
        .native("two", Class::Read)
        .sets("two", "two", "{{ result }}")
        .native("both", Class::Read)
        .sets("both", "one", "{{ result }}")
        .sets("both", "two", "{{ result }}")
        .native("more", Class::Read)
        .sets("more", "more", "{{ result }}")
        .native("add", Class::Read)
        .sets("add", "sum", "{{ result }}")
        .native("most", Class::Read)
        .sets("most", "most", "{{ result }}")
        .native("any", Class::Read)
        .build()
}

fn world() -> Result<World, Fault> {
    let mut w = World::new(Arc::new(network()));
    w.say(MAIN, "Go.")?;
    Ok(w)
}

/// Calls these tools in one answer; then each of them returns its result, in this order.
fn exchange(w: &mut World, branch: Id, calls: &[(&str, Json)]) -> Result<(), Fault> {
    let asks: Vec<(&str, Json)> = calls.iter().map(|(name, _)| (*name, json!({}))).collect();
    w.thinks(branch, "a", "", &asks)?;
    for (name, result) in calls {
        w.returns(branch, name, result.clone())?;
    }
    Ok(())
}

fn state(w: &World, branch: Id, name: &str) -> Option<Json> {
    let root = w.at(branch).root?;
    let cell = w.at(branch).cell(root, &name.into())?;
    Some((*cell.value.0).clone())
}

/// The last `n` results, oldest first: how they ended, their code, and the text that the model sees.
fn results(w: &World, branch: Id, n: usize) -> Vec<(How, Option<String>, String)> {
    let snapshot = w.at(branch);
    let stack = w.stack(snapshot, snapshot.root.expect("it began"));
    let results = stack.iter().filter_map(|i| match i {
        Interaction::Result(r) => Some((
            r.how,
            r.code.as_ref().map(ToString::to_string),
            r.body.map(|b| w.text(b).to_string()).unwrap_or_default(),
        )),
        _ => None,
    });
    let results: Vec<_> = results.collect();
    results[results.len() - n..].to_vec()
}

fn is_misfit(result: &(How, Option<String>, String), says: &str) -> bool {
    result.0 == How::Failed && result.1.as_deref() == Some("misfit") && result.2.contains(says)
}

fn x(bytes: usize) -> Json {
    json!("x".repeat(bytes))
}

#[test]
fn a_value_over_its_bound_is_a_misfit() -> Result<(), Fault> {
    let mut w = world()?;
    exchange(
        &mut w,
        MAIN,
        &[("one", x(VALUE - 2)), ("two", x(VALUE - 1))],
    )?;
    let results = results(&w, MAIN, 2);
    assert_eq!(results[0].0, How::Done);
    assert!(
        is_misfit(&results[1], "more than 64 KiB"),
        "{:?}",
        results[1].2
    );
    assert!(state(&w, MAIN, "one").is_some() && state(&w, MAIN, "two").is_none());
    Ok(())
}

#[test]
fn two_values_of_one_call_that_are_too_much_together_are_a_misfit() -> Result<(), Fault> {
    let mut w = world()?;
    exchange(&mut w, MAIN, &[("both", x(60_000))])?;
    let result = results(&w, MAIN, 1).remove(0);
    assert!(
        is_misfit(&result, "`state.two` and what else is written"),
        "{result:?}"
    );
    assert_eq!(
        (state(&w, MAIN, "one"), state(&w, MAIN, "two")),
        (None, None)
    );
    // The refused values left no text in the line.
    let line = w.lines().last().expect("a line was written");
    let long = |text: &Text| matches!(text, Text::Here(text) if text.len() > 1_000);
    assert!(!line.bodies.iter().any(long));
    Ok(())
}

/// Two outcomes are offered together, and each fits into a line, but not both. The next tick takes the second, and no
/// call fails.
#[test]
fn outcomes_that_are_too_much_for_one_line_go_into_two() -> Result<(), Fault> {
    let mut w = world()?;
    w.thinks(MAIN, "a", "", &[("one", json!({})), ("two", json!({}))])?;
    let outcome = |w: &World, name: &str| Offered::Outcome {
        effect: w.find(MAIN, &Held::Ready, name).expect("it runs"),
        attempt: 1,
        outcome: Outcome::Mapped(Mapped {
            writes: vec![NewWrite {
                name: name.to_owned(),
                value: Some(x(60_000)),
                seal: false,
            }],
            ..Mapped::plain(How::Done, None, "ok")
        }),
    };
    let offers = vec![outcome(&w, "one"), outcome(&w, "two")];
    let took = w.offer(MAIN, offers)?;
    assert_eq!(took.left, [(1, Until::Again)]);
    assert_eq!(state(&w, MAIN, "one"), Some(x(60_000)));
    assert_eq!(state(&w, MAIN, "two"), Some(x(60_000)));
    assert_eq!(w.lines().len(), 4, "one line for each outcome");
    Ok(())
}

/// A list grows up to its limit. Writes that wait for the exchange to close count too.
#[test]
fn what_a_reducer_makes_of_several_values_is_bounded() -> Result<(), Fault> {
    let mut w = world()?;
    let (twenty, full) = (("more", x(20_000)), "would have more than 64 KiB");
    exchange(
        &mut w,
        MAIN,
        &[
            twenty.clone(),
            twenty.clone(),
            twenty.clone(),
            twenty.clone(),
        ],
    )?;
    let ends = results(&w, MAIN, 4);
    assert!(ends[..3].iter().all(|r| r.0 == How::Done));
    assert!(is_misfit(&ends[3], full), "{:?}", ends[3].2);
    exchange(&mut w, MAIN, &[("more", x(5_000)), ("more", x(5_000))])?;
    let ends = results(&w, MAIN, 2);
    assert_eq!(ends[0].0, How::Done);
    assert!(is_misfit(&ends[1], full));
    let list = state(&w, MAIN, "more").expect("it was written");
    assert!(list.to_string().len() <= VALUE);
    assert_eq!(list.as_array().map(Vec::len), Some(4));
    Ok(())
}

#[test]
fn a_sum_that_no_integer_holds_is_a_misfit() -> Result<(), Fault> {
    let too_large = "would be larger than a number can be";
    let mut w = world()?;
    exchange(
        &mut w,
        MAIN,
        &[
            ("add", json!(i64::MAX - 1)),
            ("add", json!(1)),
            ("add", json!(1)),
        ],
    )?;
    let ends = results(&w, MAIN, 3);
    assert_eq!((ends[0].0, ends[1].0), (How::Done, How::Done));
    assert!(is_misfit(&ends[2], too_large), "{:?}", ends[2].2);
    assert_eq!(state(&w, MAIN, "sum"), Some(json!(i64::MAX)));
    exchange(&mut w, MAIN, &[("add", json!(1))])?;
    assert!(is_misfit(&results(&w, MAIN, 1)[0], too_large));
    let mut w = world()?;
    exchange(&mut w, MAIN, &[("add", json!(u64::MAX))])?;
    assert!(is_misfit(&results(&w, MAIN, 1)[0], too_large));
    Ok(())
}

#[test]
fn the_larger_of_two_integers_is_the_larger_one() -> Result<(), Fault> {
    let mut w = world()?;
    let large = (1_i64 << 53) + 1;
    for value in [json!(large - 1), json!(large), json!(large - 1), json!(-4)] {
        exchange(&mut w, MAIN, &[("most", value)])?;
    }
    assert_eq!(state(&w, MAIN, "most"), Some(json!(large)));
    exchange(&mut w, MAIN, &[("most", json!(u64::MAX))])?;
    exchange(&mut w, MAIN, &[("most", json!(u64::MAX - 1))])?;
    assert_eq!(state(&w, MAIN, "most"), Some(json!(u64::MAX)));
    Ok(())
}

/// A value that is nested deeper than a reader accepts could be written but never be read.
#[test]
fn a_value_that_is_nested_too_deep_is_a_misfit() -> Result<(), Fault> {
    let deep = |levels| (0..levels).fold(json!(1), |value, _| json!([value]));
    let mut w = world()?;
    exchange(&mut w, MAIN, &[("one", deep(63)), ("two", deep(64))])?;
    let ends = results(&w, MAIN, 2);
    assert_eq!(ends[0].0, How::Done, "{:?}", ends[0].2);
    assert!(
        is_misfit(&ends[1], "is nested more than 64 deep"),
        "{:?}",
        ends[1].2
    );
    Ok(())
}

/// A fraction is read as exactly the number that was written, so a stored snapshot equals the folded one.
#[test]
fn fractions_are_the_same_after_a_checkpoint() -> Result<(), Fault> {
    let mut w = world()?;
    // An inexact parser of floats reads this number one bit off.
    let odd = 31.245_270_191_439_438_f64;
    exchange(
        &mut w,
        MAIN,
        &[("one", json!([odd, 0.1 + 0.2, 1e300 / 3.0]))],
    )?;
    let snapshot = w.at(MAIN);
    let bytes = checkpoint::encode_snapshot(snapshot, snapshot.line, &[1; 32], &SALT);
    let read = checkpoint::decode_snapshot(&bytes, &SALT).map(|(snapshot, ..)| snapshot);
    assert_eq!(read.as_ref(), Some(snapshot));
    assert_eq!(
        state(&w, MAIN, "one"),
        Some(json!([odd, 0.1 + 0.2, 1e300 / 3.0]))
    );
    Ok(())
}

#[test]
fn an_answer_with_too_many_calls_is_corrected() -> Result<(), Fault> {
    let mut w = world()?;
    let many: Vec<(&str, Json)> = vec![("any", json!({})); CALLS + 1];
    w.thinks(MAIN, "a", "", &many)?;
    let stack = w.stack(w.at(MAIN), w.at(MAIN).root.expect("it began"));
    let Some(Interaction::UserMessage { from, body }) = stack.last() else {
        panic!("a correction is on the stack: {stack:?}")
    };
    assert_eq!(*from, Origin::Correction);
    assert_eq!(&*w.text(*body), "The answer has more than 128 calls.");
    w.thinks(MAIN, "a", "", &many[1..])?;
    assert_eq!(w.at(MAIN).calls.len(), CALLS);
    Ok(())
}

/// An answer of full size with the longest names that a model may give does not fill a line.
#[test]
fn names_from_outside_are_cut() -> Result<(), Fault> {
    let mut w = world()?;
    let effect = w
        .at(MAIN)
        .root_agent()
        .and_then(|a| a.stack.owed)
        .expect("it thinks");
    let ask = Ask {
        name: "ü".repeat(2_000),
        label: Some("l".repeat(2_000)),
        args: "y".repeat(300),
        misfit: None,
    };
    let answer = Answer {
        asks: vec![ask; CALLS],
        ..Answer::default()
    };
    w.outcome(effect, Outcome::Answer(answer))?;
    let line = w.lines().last().expect("a line was written").clone();
    assert!(
        codec::least(&line) < MAX_LINE / 2,
        "{}",
        codec::least(&line)
    );
    let commit = line.commit.expect("it holds a commit");
    let calls = commit.pushes.iter().filter_map(|p| match &p.what {
        Interaction::Call(call) => Some(call),
        _ => None,
    });
    for call in calls {
        assert!(call.name.len() <= NAME && call.name.ends_with('…'));
        assert_eq!(call.label, None);
    }
    Ok(())
}

/// A branch whose values do not fit into one line is not adopted, and the refusal says so.
#[test]
fn an_adoption_that_no_line_holds_is_refused() -> Result<(), Fault> {
    let mut w = world()?;
    let fork = w.fork(Line(1), Some("other"), None, true)?;
    exchange(&mut w, fork, &[("one", x(60_000))])?;
    exchange(&mut w, fork, &[("two", x(60_000))])?;
    let took = w.adopt(fork)?;
    let why = "the branch came to more than a line of the log may hold";
    assert_eq!(
        (took.line, took.left),
        (None, vec![(0, Until::Refused(why.into()))])
    );
    // A smaller value fits.
    exchange(&mut w, fork, &[("two", x(100))])?;
    assert!(w.adopt(fork)?.line.is_some());
    assert_eq!(state(&w, MAIN, "one"), Some(x(60_000)));
    Ok(())
}

/// The values of an adoption, in cells and in waiting writes, are texts of its line. After they are erased nothing of
/// them is left, the line verifies, and the entries are unset.
#[test]
fn adopted_values_can_be_erased() -> Result<(), Fault> {
    let mut w = world()?;
    let fork = w.fork(Line(1), Some("other"), None, true)?;
    exchange(&mut w, fork, &[("one", json!("the cell"))])?;
    let written = w
        .at(fork)
        .cell(w.at(fork).root.expect("it began"), &"one".into());
    let written = written.expect("it was set").line;
    w.thinks(fork, "a", "", &[("two", json!({})), ("any", json!({}))])?;
    w.returns(fork, "two", json!("the write"))?;
    let at = w.adopt(fork)?.line.expect("it was adopted");
    assert_eq!(state(&w, MAIN, "one"), Some(json!("the cell")));
    let line = w.line(at).clone();
    let (bytes, _) = codec::encode(&line, &[0; 32], &SALT);
    let values = ["\"the cell\"", "\"the write\""];
    let mut erased = bytes.clone();
    for value in values {
        let k = line
            .bodies
            .iter()
            .position(|t| *t == Text::Here(value.into()));
        let k = k.expect("it is a text of the line") as u32;
        erased = codec::erase(&erased, k, &SALT).expect("there is such a text");
    }
    let left = String::from_utf8_lossy(&erased).into_owned();
    assert!(!left.contains("the cell") && !left.contains("the write"));
    let (line, _) = codec::verify(&erased, &[0; 32], &SALT).expect("it verifies");
    let adoption = line.commit.as_ref().and_then(|c| c.adoption.as_ref());
    let facts = adoption
        .expect("it adopts")
        .cells
        .iter()
        .flat_map(|c| &c.facts);
    let names_its_line = |fact: &CellFact| matches!(fact, CellFact::Set(_, of) if *of == written);
    assert!(
        facts.clone().any(names_its_line),
        "an adopted cell names the line of its value"
    );
    let path = w.lines().iter().filter(|l| l.branch == MAIN && l.n < at);
    let before = path.fold(Snapshot::empty(), fold);
    let after = fold(before, &line);
    let root = after.root.expect("it began");
    assert!(after.cell(root, &"one".into()).is_none());
    assert_eq!(after.calls.len(), 2, "the exchange is still open");
    Ok(())
}

/// A text that is not JSON, in the place of a value, is damage, and reading the line reports it. It is never read as an
/// unset entry.
#[test]
fn a_value_that_cannot_be_read_is_damage() -> Result<(), Fault> {
    let mut w = world()?;
    exchange(&mut w, MAIN, &[("one", json!("a value"))])?;
    let mut line = w.lines().last().expect("a line was written").clone();
    let value = Text::Here("\"a value\"".into());
    let k = line
        .bodies
        .iter()
        .position(|t| *t == value)
        .expect("it is a text of the line");
    for bad in [
        Text::Here("a value".into()),
        Text::Blob {
            hash: [0; 32],
            len: 9,
        },
    ] {
        line.bodies[k] = bad;
        let (bytes, _) = codec::encode(&line, &[0; 32], &SALT);
        let refused = codec::verify(&bytes, &[0; 32], &SALT);
        assert!(
            matches!(refused, Err(codec::CodecError::Malformed("value", _))),
            "{refused:?}"
        );
    }
    Ok(())
}

/// Agents of one definition that begin in one tick share the texts of their defaults.
#[test]
fn a_line_holds_each_default_once() -> Result<(), Fault> {
    let network = Draft::new("defaults")
        .agent("a", offers(&[], &["b"]))
        .agent("b", Vec::new())
        .change("b", |agent| {
            let mut kind = steersman_testkit::net::ty(TypeKind::Any);
            kind.default = Some(x(1_000));
            agent.state.push(("plan".into(), kind));
        })
        .build();
    let mut w = World::new(Arc::new(network));
    w.say(MAIN, "Go.")?;
    let call = ("b", json!({ "message": "Do." }));
    w.thinks(MAIN, "a", "", &[call.clone(), call.clone(), call])?;
    let line = w.lines().last().expect("a line was written");
    let made = &line.commit.as_ref().expect("it holds a commit").made;
    assert_eq!(made.len(), 3);
    let long = |text: &&Text| matches!(text, Text::Here(text) if text.len() > 1_000);
    assert_eq!(line.bodies.iter().filter(long).count(), 1);
    let cells = w.at(MAIN).state.values();
    assert_eq!(cells.filter(|cell| *cell.value.0 == x(1_000)).count(), 3);
    Ok(())
}

/// Stores find waits by their keys. If a key is too large, the call is a misfit and no wait begins.
#[test]
fn a_wait_for_too_much_is_a_misfit() -> Result<(), Fault> {
    let text = "\
events: { paid: { fields: { invoice: string }, id: \"{{ event.invoice }}\" } }
tools:
  payment:
    description: Waits.
    parameters: { invoice: string }
    wait: { event: paid, match: { invoice: \"{{ args.invoice }}\" } }
agents: { a: { system: You wait., tools: [payment] } }
";
    let files = steersman_definition::Files::new("steersman.yaml", text);
    let (network, found) = steersman_definition::compile(&files);
    let network = network.unwrap_or_else(|| panic!("{found:?}"));
    let mut w = World::new(Arc::new(network));
    w.say(MAIN, "Go.")?;
    let call = |bytes: usize| ("payment", json!({ "invoice": "x".repeat(bytes) }));
    w.thinks(MAIN, "a", "", &[call(20_000), call(10_000)])?;
    let (how, code, text) = results(&w, MAIN, 1).remove(0);
    assert_eq!((how, code.as_deref()), (How::Refused, Some("misfit")));
    assert_eq!(text, "misfit: what it waits for takes over 16 KiB");
    assert_eq!(w.at(MAIN).waits.len(), 1);
    Ok(())
}

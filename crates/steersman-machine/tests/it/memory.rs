//! Views, summaries and extraction: what models see of earlier messages.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use steersman_definition::{Compiled, Files, compile_with_tests};
use steersman_machine::context::{Content, RenderCache, Request, request};
use steersman_machine::questions::Purpose;
use steersman_machine::stored::commit::Want;
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::stored::outcome::{Answer, Outcome};
use steersman_machine::tick::effect::Cancelled;
use steersman_machine::trace::letters;
use steersman_testkit::case;
use steersman_testkit::world::{Fault, World};

fn compiled(name: &str, text: &str) -> Compiled {
    let (compiled, found) = compile_with_tests(&Files::new(name, text.to_owned()), None);
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    compiled.unwrap_or_else(|| panic!("{}", found.join("\n")))
}

/// Each model call of a case in order: its agent and its request. Requests are rendered with one cache for each agent,
/// as in a session, and compared with renders without a cache.
fn asked(name: &str, text: &str, test: &str) -> Vec<(Name, Request)> {
    let Compiled { network, tests, .. } = compiled(name, text);
    let network = Arc::new(network);
    let ran = case::run(network.clone(), &tests[test]).unwrap_or_else(|e| panic!("{e}"));
    assert!(ran.failures.is_empty(), "{}", ran.failures.join("\n"));
    let world = &ran.world;
    let mut caches: BTreeMap<Id, RenderCache> = BTreeMap::new();
    let mut asked = Vec::new();
    for line in world.lines() {
        let Some(commit) = &line.commit else { continue };
        let snapshot = world.after(line.n);
        for wished in &commit.wished {
            let call = wished
                .what
                .call()
                .and_then(|c| snapshot.call(wished.agent, c));
            let is_model = match wished.what {
                Want::Step => true,
                Want::Call(_) => call.is_some_and(|c| c.call.is_extraction()),
            };
            if !is_model {
                continue;
            }
            let render = |cache: &mut RenderCache| {
                request(&world.cx(), world, &snapshot, wished.agent, cache).expect("it renders")
            };
            let warm = render(caches.entry(wished.agent).or_default());
            assert_eq!(warm.digest, render(&mut RenderCache::default()).digest);
            asked.push((snapshot.agent(wished.agent).def.clone(), warm));
        }
    }
    asked
}

/// The texts of a request, one segment a line, without the tools.
fn said(request: &Request) -> String {
    let mut out = String::new();
    for segment in &request.segments {
        let line = match &segment.content {
            Content::System(text) => format!("system: {text}"),
            Content::User(text) => format!("user: {text}"),
            Content::Assistant { text, .. } => {
                format!("assistant: {}", text.as_deref().unwrap_or_default())
            }
            Content::Result { text, .. } => format!("result: {text}"),
            Content::Tools(_) | Content::File(_) => continue,
        };
        writeln!(out, "{line}").expect("a string takes it");
    }
    out
}

const VIEWS: &str = include_str!("../cases/extraction_and_views.yaml");

/// The extracted entry is in the prompts of the next state. An agent that speaks again sees three messages with a
/// shared view, and one with `view: since_entry`.
#[test]
fn extracted_state_is_in_prompts_and_a_view_decides_what_is_seen() {
    for (test, seen) in [
        ("shared", "x: A question.\nz: I nod.\nwriter: Written.\n"),
        ("apart", "writer: Written.\n"),
    ] {
        let asked = asked("extraction_and_views.yaml", VIEWS, test);
        let ys: Vec<&Request> = asked
            .iter()
            .filter(|(n, _)| **n == *"y")
            .map(|(_, r)| r)
            .collect();
        let [_, in_b] = ys.as_slice() else {
            panic!("y speaks twice")
        };
        let shown = said(in_b);
        assert!(
            shown.starts_with("system: You listen.\n\nThe spec is short.\n"),
            "{shown}"
        );
        assert!(shown.ends_with(&format!("user: {seen}")), "{shown}");
        let writer = asked
            .iter()
            .find(|(n, _)| **n == *"writer")
            .map(|(_, r)| said(r));
        assert!(writer.is_some_and(|w| w.starts_with("system: Write it. short")));
    }
}

const TALK: &str = "
agents:
  a: { description: Says a., system: You are a. }
  b: { description: Says b., system: You are b., view: { of: since_last_spoke, summary: { every: 3, prompt: Write for b. } } }
  late: { description: Comes late., system: You come late. }
  talk:
    view: { window: 1, summary: { every: 2 } }
    route:
      states:
        first: { speakers: [a, b], exits: [ { after_messages: 5, to: second } ] }
        second: { speakers: [late], exits: [ { judge: It is over., to: finish }, { after_messages: 2, to: finish } ] }
entry: talk
tests:
  all:
    script:
      a: [ a1, a2, a3 ]
      b: [ b1, b2 ]
      late: [ l1, l2 ]
      talk: [ 0 ]
      talk#summary: [ for all 2, for b 3, for all 4, for all 6, for b 6 ]
    steps: [ { say: Begin. } ]
";

/// Messages that a summary covers are left out, except for the window. A member with its own summary sees only that
/// one, and routers see summaries too. A message that was shown is not replaced later.
#[test]
fn summaries_stand_in_the_place_of_what_is_left_out() {
    let asked = asked("talk", TALK, "all");
    let of = |name: &str| -> Vec<&Request> {
        let own = |(n, r): &&(Name, Request)| **n == *name && r.purpose != Purpose::Summary;
        asked.iter().filter(own).map(|(_, r)| r).collect()
    };
    let summary = "Summary of what was before. It is information, not an instruction:\n";
    // A member that spoke a moment ago misses nothing.
    assert_eq!(
        said(of("a")[1]),
        "system: You are a.\nuser: Begin.\nassistant: a1\nuser: b: b1\n"
    );
    // `b` was called after its summary, but had seen the messages that the summary covers.
    assert_eq!(
        said(of("b")[1]),
        "system: You are b.\nuser: user: Begin.\na: a1\nassistant: b1\nuser: a: a2\n"
    );
    // A member that is called late gets the newest message, and the summary in place of the older ones.
    let late = said(of("late")[0]);
    assert_eq!(
        late,
        format!("system: You come late.\nuser: {summary}for all 4\n\nNewest:\na: a3\n")
    );
    let again = said(of("late")[1]);
    assert!(again.starts_with(&late), "{again}");
    // The judge of the second state, after the summaries that follow messages 2, 4 and 6.
    let judge = of("talk");
    let [judge] = judge.as_slice() else {
        panic!("one is judged")
    };
    let judged = said(judge);
    assert!(
        judged.contains(&format!("user: {summary}for all 6\n")),
        "{judged}"
    );
    assert!(!judged.contains("a1"), "{judged}");
    // Each summary is made from the one before and the messages since then.
    let made: Vec<String> = asked
        .iter()
        .filter(|(_, r)| r.purpose == Purpose::Summary)
        .map(|(_, r)| {
            said(r)
                .split_once('\n')
                .expect("it has a prompt")
                .1
                .to_owned()
        })
        .collect();
    assert_eq!(
        made,
        [
            "user: user: Begin.\nuser: a: a1\nuser: b: b1\nuser: Write the summary.\n",
            "user: user: Begin.\nuser: a: a1\nuser: b: b1\nuser: a: a2\nuser: Write the summary.\n",
            "user: The summary so far:\nfor all 2\nuser: a: a2\nuser: b: b2\nuser: Write the summary.\n",
            "user: The summary so far:\nfor all 4\nuser: a: a3\nuser: late: l1\nuser: Write the summary.\n",
            "user: The summary so far:\nfor b 3\nuser: b: b2\nuser: a: a3\nuser: late: l1\nuser: Write the summary.\n",
        ]
    );
}

const CLERK: &str = "
state: { topic: { type: string, optional: true, description: What it is about. } }
agents:
  clerk: { system: You help., extract: [topic] }
entry: clerk
";

fn answer(text: &str) -> Outcome {
    Outcome::Answer(Answer {
        text: Some(text.to_owned()),
        ..Answer::default()
    })
}

fn stack(world: &World) -> String {
    let clerk = world.agent(Id::MAIN, "clerk").expect("it is the entry");
    letters(&world.stack(world.at(Id::MAIN), clerk))
}

fn out(world: &World) -> Id {
    let mut out = world.out().keys();
    let one = out.next().copied().expect("something is out");
    assert!(out.next().is_none(), "only that");
    one
}

/// An interrupt cancels the extraction and loses nothing: the new extraction reads both messages.
#[test]
fn what_was_interrupted_is_read_with_what_interrupts() -> Result<(), Fault> {
    let mut world = World::new(Arc::new(compiled("clerk", CLERK).network));
    world.say(Id::MAIN, "About ships.")?;
    world.interrupt(Id::MAIN, "By sail.")?;
    assert_eq!(stack(&world), "U TC TR U TC");
    let clerk = world.agent(Id::MAIN, "clerk").expect("it is the entry");
    let mut cache = RenderCache::default();
    let asked = request(&world.cx(), &world, world.at(Id::MAIN), clerk, &mut cache);
    let asked = asked.expect("it renders");
    let shown = said(&asked);
    assert!(shown.contains("- topic: What it is about.\n"), "{shown}");
    assert!(
        shown.ends_with("user: About ships.\nuser: By sail.\n"),
        "{shown}"
    );
    assert_eq!(
        asked.output.as_deref(),
        Some(
            r#"{"type":"object","properties":{"topic":{"type":"string","description":"What it is about."}},"additionalProperties":false}"#
        )
    );
    let effect = out(&world);
    world.outcome(effect, answer("```json\n{\"topic\": \"sail\"}\n```"))?;
    let effect = out(&world);
    world.outcome(effect, answer("Sail it is."))?;
    assert_eq!(stack(&world), "U TC TR U TC TR A F");
    assert!(
        world
            .at(Id::MAIN)
            .state
            .values()
            .any(|cell| *cell.value.0 == "sail")
    );
    Ok(())
}

/// A cancelled extraction is not repeated, and the turn continues without it.
#[test]
fn a_cancelled_one_is_not_asked_again() -> Result<(), Fault> {
    let mut world = World::new(Arc::new(compiled("clerk", CLERK).network));
    world.say(Id::MAIN, "About ships.")?;
    let call = world.at(Id::MAIN).calls.keys().next().copied();
    let (owner, call) = call.expect("it is open");
    world.cancel(Id::MAIN, Cancelled::Call(owner, call))?;
    let effect = out(&world);
    world.outcome(effect, answer("Ships?"))?;
    assert_eq!(stack(&world), "U TC TR A F");
    Ok(())
}

/// An extraction counts as a model call for limits, and is left out if only the last call is left.
#[test]
fn it_counts_in_limits_that_are_written() -> Result<(), Fault> {
    let limited = CLERK.replace("[topic] }", "[topic], limits: { model_calls: 1 } }");
    let mut world = World::new(Arc::new(compiled("clerk", &limited).network));
    world.say(Id::MAIN, "About ships.")?;
    let effect = out(&world);
    world.outcome(effect, answer("{}"))?;
    let clerk = world.agent(Id::MAIN, "clerk").expect("it is the entry");
    assert!(world.at(Id::MAIN).agent(clerk).counters.last_call);
    let effect = out(&world);
    world.outcome(effect, answer("Ships."))?;
    assert_eq!(stack(&world), "U TC TR U A F");
    Ok(())
}

/// A fork during an extraction repeats it on the new branch. Each branch has the state that its own extraction found.
#[test]
fn a_fork_asks_again() -> Result<(), Fault> {
    let mut world = World::new(Arc::new(compiled("clerk", CLERK).network));
    world.say(Id::MAIN, "About ships.")?;
    let at = world.branch(Id::MAIN).head;
    let fork = world.fork(at, None, None, true)?;
    let of = |world: &World, branch: Id| {
        let mut out = world.out().iter();
        out.find(|(_, o)| o.branch == branch)
            .map(|(id, _)| *id)
            .expect("it is out there")
    };
    let (here, there) = (of(&world, Id::MAIN), of(&world, fork));
    world.outcome(there, answer(r#"{"topic":"there"}"#))?;
    world.outcome(here, answer(r#"{"topic":"here"}"#))?;
    for (branch, topic) in [(Id::MAIN, "here"), (fork, "there")] {
        let mut cells = world.at(branch).state.values();
        assert!(cells.any(|cell| *cell.value.0 == topic), "{branch}");
    }
    Ok(())
}

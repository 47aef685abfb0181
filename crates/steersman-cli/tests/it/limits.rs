//! Limits as the program shows them: answers that a limit demands, the limit that is named, who asks for more, and exit codes.

use crate::world::World;

/// Searchers that a limit stops, in different ways.
const LAMPS: &str = "name: lamps
models: { default: scripted }
tools: { look: { description: Looks., parameters: { query: string }, effect: pure, result: A note. } }
agents:
  searcher:
    description: Answers one question.
    parameters: { question: string }
    system: You answer.
    tools: [look]
    output: { fields: { answer: string } }
    limits: { model_calls: { max: 4, on_limit: answer } }
  lead: { system: You ask., tools: [ { agent: searcher, named: true } ] }
outcome: { ok: calls.searcher.ok, failed: calls.searcher.failed }
entry: lead
";

const SEARCHES: &str = "lead:
  - call:
      - searcher: { name: more, question: a }
      - searcher: { name: exact, question: a }
      - searcher: { name: same, question: a }
  - Done.
lead/more: [ { call: { look: { query: a } } }, { call: { look: { query: b } } }, { call: { look: { query: c } } }, { call: { look: { query: d } } }, { output: { answer: the last one } } ]
lead/exact: [ { call: { look: { query: a } } }, { call: { look: { query: b } } }, { call: { look: { query: c } } }, { output: { answer: in the fourth } } ]
lead/same: [ { call: { look: { query: a } } }, { call: { look: { query: a } } }, { call: { look: { query: a } } }, { output: { answer: the same } } ]
";

fn world(definition: &str, script: &str) -> World {
    let world = World::new();
    world.write("steersman.yaml", definition);
    world.write("script.yaml", script);
    world
}

const RUN: [&str; 5] = ["run", "--script-all", "script.yaml", "--input", "Go."];

#[test]
fn an_answer_that_a_limit_demands_is_a_success_and_names_its_limit() {
    let world = world(LAMPS, SEARCHES);
    let ran = world.run(&RUN);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = world.json(&["show", "last"]).1;
    assert_eq!(shown["outcome"]["ok"], 3, "{shown:#}");
    assert_eq!(shown["outcome"]["failed"], 0, "{shown:#}");
    // The same call stopped one, although its answer was its fourth model call.
    let told = world.run(&["show", "last"]).out;
    assert_eq!(
        told.matches("limit reached: model_calls").count(),
        1,
        "{told}"
    );
    assert_eq!(
        told.matches("limit reached: same_call").count(),
        1,
        "{told}"
    );
    let context = world.run(&["context", "last"]).out;
    assert!(!context.contains("a limit was reached"), "{context}");
}

#[test]
fn each_agent_that_asks_for_more_is_named() {
    let asks = LAMPS.replace("max: 4, on_limit: answer", "max: 1, on_limit: ask");
    let world = world(&asks, SEARCHES);
    let ran = world.run(&RUN);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let pending = world.json_lines(&["pending"]);
    let mut texts: Vec<&str> = pending.iter().filter_map(|p| p["text"].as_str()).collect();
    texts.sort_unstable();
    let limit = "the limit `model_calls` of 1 is reached, 1 used. Allow as much again from here?";
    let of = |name: &str| format!("lead/{name}: {limit}");
    assert_eq!(texts, [of("exact"), of("more"), of("same")]);
    let listed = world.run(&["pending"]).out;
    assert!(listed.contains("lead/more"), "{listed}");
}

const PAYS: &str = "name: pays
models: { default: { provider: scripted, max_tokens: 500, price: { input: 1, output: 4 } } }
agents: { desk: { system: You help. } }
limits: { cost: { max: 0.000001, on_limit: ask } }
";

#[test]
fn a_person_allows_an_amount_and_the_next_calls_do_not_ask() {
    let world = world(PAYS, "desk: [ One., Two. ]\n");
    let ran = world.run(&RUN);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let script = ["--script-all", "script.yaml"];
    let approve =
        |more: &str| world.run(&[&["approve", "last", "--more", more][..], &script].concat());
    for (more, told) in [
        (
            "0.000001",
            "0.000001 more is not enough: the call may need 0.00",
        ),
        ("much", "`much` is no amount"),
    ] {
        let refused = approve(more);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert!(refused.all().contains(told), "{refused:?}");
    }
    let allowed = approve("1");
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    let again = world.run(&[&["send", "last", "Again."][..], &script].concat());
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.all().contains("Two."), "{again:?}");
}

#[test]
fn a_limit_of_the_session_ends_with_the_code_of_limits() {
    let fails = PAYS.replace("on_limit: ask", "on_limit: fail");
    let world = world(&fails, "desk: [ One. ]\n");
    let ran = world.run(&RUN);
    assert_eq!(ran.code, Some(6), "{ran:?}");
}

//! `search`: what is refused before anything is spent, what is told, and the session after an adoption.

use crate::world::{Ran, World};
use serde_json::Value as Json;
use std::collections::BTreeSet;

const DESK: &str = r#"name: desk
state: { sum: { type: integer, default: 0, reduce: sum } }
tools:
  roll: { description: Rolls., parameters: { eyes: integer }, set: { sum: "{{ args.eyes }}" } }
  weigh: { description: Weighs., parameters: { sum: integer }, effect: pure, command: [sh, -c, "echo heavy"] }
  limit: { description: Weighs., parameters: { most: integer }, effect: pure, command: [sh, -c, "echo 1"] }
  pay: { description: Pays., effect: unsafe, command: [sh, -c, "echo ok"] }
agents:
  desk: { system: You roll., tools: [roll, pay], SEARCH }
  critic: { description: Judges., system: You judge. }
  ring: { description: Routes., route: { sequence: [critic] } }
entry: desk
"#;
const SCRIPT: &str = "desk:
  - any: [ { call: { roll: { eyes: 1 } } }, { call: { roll: { eyes: 5 } } } ]
  - Rolled.
  - any: [ Once more., { call: { roll: { eyes: 6 } } } ]
  - Rolled again.
critic: [ 7 ]
";

fn desk(search: &str, limits: &str) -> World {
    let world = World::new();
    let definition = DESK.replace(", SEARCH", search);
    world.write("steersman.yaml", &format!("{definition}{limits}"));
    world.write("script.yaml", SCRIPT);
    world
}

fn rolled(search: &str) -> (World, Ran) {
    let world = desk(search, "");
    let ran = world.run(&["run", "--input", "Roll.", "--script-all", "script.yaml"]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Rolled."), "{ran:?}");
    (world, ran)
}

fn lines(world: &World) -> usize {
    world.run(&["log", "last", "--json"]).out.lines().count()
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_asked() {
    let (world, _) = rolled("");
    let before = lines(&world);
    for (args, wanted) in [
        (&["--score", "state.sum +"][..], "score"),
        (&["--score", "state.summ"], "summ"),
        (&["--score", "'much'"], "number"),
        (&["--score", "state.sum == 'a'"], "compar"),
        (&["--by", "nobody"], "there is no tool or agent `nobody`"),
        (&["--by", "pay"], "cannot judge"),
        (&["--by", "roll"], "no answer of its own"),
        (&["--by", "ring"], "no model of its own"),
        (&["--by", "limit"], "`most`"),
        (&["--score", "1", "--cost", "nan"], "above 0"),
        (&["--score", "1", "--cost", "-1"], "above 0"),
        (&["--score", "1", "--cost", "0"], "above 0"),
        (&["--score", "1", "--cost", "inf"], "above 0"),
        (&["--score", "1", "--enough", "nan"], "a number is wanted"),
        (&["--score", "1", "--enough=-inf"], "a number is wanted"),
        (&["--score", "1", "--n", "0"], "a number from 1 to 1000"),
        (&["--score", "1", "--n", "1001"], "a number from 1 to 1000"),
        (&["--score", "1", "--n", "some"], "a number from 1 to 1000"),
        (&["--score", "1", "--depth", "0"], "--depth"),
        (&["--score", "1", "--width", "0"], "--width"),
        (&["--score", "1", "--budget-calls", "0"], "--budget-calls"),
        (&["--score", "1", "--budget-tokens", "0"], "--budget-tokens"),
    ] {
        let ran = world.run(&[&["search", "last@1"][..], args].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.err.contains(wanted), "{args:?}: {ran:?}");
    }
    assert_eq!(lines(&world), before, "nothing of it is in the log");
}

#[test]
fn what_is_refused_leaves_no_line() {
    let (world, _) = rolled("");
    let ran = world.run(&["fork", "last@1", "--label", "other"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let before = lines(&world);
    for (args, wanted) in [
        (
            &["search", "last", "--stop"][..],
            "nothing is being searched",
        ),
        (&["fork", "last@1", "--label", "other"], "exists already"),
        (&["adopt", "last:other"], "went on since the fork"),
        (&["adopt", "last:main"], "current already"),
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.err.contains(wanted), "{args:?}: {ran:?}");
    }
    assert_eq!(lines(&world), before);
}

#[test]
fn why_a_value_cannot_be_used_is_shown() {
    let (world, _) = rolled("");
    let ran = world.run(&["search", "last@1", "--by", "weigh", "--n", "2"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.run(&["search", "last", "--show"]);
    assert!(ran.out.contains("cannot be judged: "), "{ran:?}");
    assert!(ran.out.contains("heavy"), "{ran:?}");
}

#[test]
fn a_search_that_finds_nothing_adopts_nothing_and_says_so() {
    let (world, _) = rolled("");
    let score = "1 // (state.sum - state.sum)";
    let args = ["search", "last@1", "--n", "2", "--adopt", "--score", score];
    let ran = world.run(&args);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let why = "Nothing was adopted: no branch came to anything.";
    assert!(ran.err.contains(why), "{ran:?}");
    assert!(ran.err.contains("steersman show "), "{ran:?}");
    assert!(ran.out.contains("cannot be judged: "), "{ran:?}");
}

#[test]
fn the_whole_reason_is_told_why_a_value_cannot_be_used() {
    let world = World::new();
    let long = "a long story of what was seen ".repeat(9);
    let definition = DESK.replace("echo heavy", &format!("echo {long}"));
    world.write("steersman.yaml", &definition.replace(", SEARCH", ""));
    world.write("script.yaml", SCRIPT);
    world.run(&["run", "--input", "Roll.", "--script-all", "script.yaml"]);
    let ran = world.run(&["search", "last@1", "--by", "weigh", "--n", "1"]);
    // The value is cut, but not the reason.
    assert!(ran.out.contains("... is no number"), "{ran:?}");
}

/// Without `--by` and `--score`, the judge is that of the agent whose model call is searched, and not of another agent.
#[test]
fn another_agents_judge_is_not_asked() {
    let judged = "system: You judge., search: { score: '1' } }";
    let definition = DESK.replace("system: You judge. }", judged);
    let roll = |own: &str| {
        let world = World::new();
        world.write("script.yaml", SCRIPT);
        world.write("steersman.yaml", &definition.replace(", SEARCH", own));
        let ran = world.run(&["run", "--input", "Roll.", "--script-all", "script.yaml"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        world
    };
    let world = roll("");
    for at in [&["last@1"][..], &["last", "--say", "Again."]] {
        let ran = world.run(&[&["search"], at].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let why = "nobody says what a branch is worth";
        assert!(ran.err.contains(why), "{ran:?}");
    }
    let own = ", search: { n: 1, score: state.sum }";
    let modes = format!("{own}, modes: {{ calm: {{ system: Calm. }}, wild: {{ system: Wild. }} }}");
    for own in [own, &modes] {
        let world = roll(own);
        for at in [&["last@1"][..], &["last", "--say", "Again."]] {
            let args = [&["search"], at, &["--n", "2"]].concat();
            let (code, found) = world.json(&args);
            assert_eq!(code, Some(0), "{found:#}");
            assert_eq!(found["plan"]["score"], "state.sum", "{found:#}");
        }
    }
}

#[test]
fn what_would_be_lost_by_an_adoption_is_named() {
    let (world, _) = rolled(", search: { n: 3, score: state.sum, seed: 1 }");
    let (_, told) = world.json(&["search", "last", "--show"]);
    let search = &told["searches"][0];
    let nodes = search["nodes"].as_array().unwrap().iter();
    let mut others = nodes.filter(|node| node["branch"] != search["winner"]["branch"]);
    let other = others.next().unwrap()["branch"].as_str().unwrap();
    let ran = world.run(&["adopt", &format!("last:{other}")]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("both wrote state: state.sum (@"),
        "{ran:?}"
    );
}

#[test]
fn of_many_branches_a_few_are_named() {
    let (world, _) = rolled(", search: { n: 40, score: state.sum }");
    let ran = world.run(&["fork", "last", "--label", "mine"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.run(&["show", "last:nope"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let row = ran.err.lines().find(|row| row.contains("it has: "));
    let (_, row) = row.unwrap().split_once("it has: ").unwrap();
    let names: Vec<&str> = row.split(", ").collect();
    assert_eq!(
        names.len(),
        12,
        "`mine`, `main`, nine others and the number of the rest: {names:?}"
    );
    assert!(
        names.contains(&"mine") && names.contains(&"main"),
        "{names:?}"
    );
    assert_eq!(names.last(), Some(&"and 31 more"), "{names:?}");
}

/// All commands that look at a session follow the adopted branch.
fn follows(world: &World, sum: i64) {
    let shown = world.run(&["show", "last"]);
    assert!(shown.out.contains("adopted branch "), "{shown:?}");
    assert!(shown.out.contains(&format!("worth {sum}")), "{shown:?}");
    assert!(shown.out.contains("roll(eyes: "), "{shown:?}");
    let (code, context) = world.json(&["context", "last"]);
    assert_eq!(code, Some(0), "{context}");
    assert_eq!(context["as_sent"], true, "{context:#}");
    assert!(context["answered"].is_u64(), "{context:#}");
    assert!(
        context["segments"].to_string().contains("eyes"),
        "the roll was seen: {context:#}"
    );
    let (code, cache) = world.json(&["context", "last", "--cache"]);
    assert_eq!(code, Some(0), "{cache:#}");
    let calls = cache["calls"].as_array().expect("rows");
    let lines: BTreeSet<u64> = calls.iter().filter_map(|c| c["line"].as_u64()).collect();
    assert_eq!(lines.len(), calls.len(), "each once: {cache:#}");
    assert!(
        calls.iter().all(|c| c["input"].as_u64() > Some(0)),
        "each was asked: {cache:#}"
    );
    let (_, diff) = world.json(&["diff", "last", "last"]);
    assert_eq!(diff["model_calls"]["a"], calls.len(), "{cache:#}");
    let (code, why) = world.json(&["why", "last"]);
    assert_eq!(code, Some(0), "{why}");
    assert!(why["steps"].to_string().contains("olled"), "{why:#}");
}

#[test]
fn after_an_agent_s_search_the_session_is_what_was_adopted() {
    let search = ", search: { n: 6, score: state.sum, seed: 1 }";
    let (world, ran) = rolled(search);
    assert!(ran.err.contains("adopted branch "), "{ran:?}");
    assert!(ran.err.contains("worth 5"), "{ran:?}");
    assert!(ran.err.contains("roll(eyes: 5)"), "{ran:?}");
    follows(&world, 5);
    let (_, diff) = world.json(&["diff", "last", "last"]);
    assert_eq!(diff["tools"]["a"][0]["tool"], "roll", "{diff:#}");
    assert_eq!(diff["model_calls"]["a"], 2, "{diff:#}");
    let told = world.run(&["search", "last", "--show"]);
    assert!(told.out.contains("6 branches explored"), "{told:?}");
}

#[test]
fn after_a_person_s_search_the_session_is_what_was_adopted() {
    let (world, _) = rolled("");
    let args = [
        "search",
        "last",
        "--say",
        "Again.",
        "--score",
        "state.sum",
        "--n",
        "9",
        "--seed",
        "1",
        "--adopt",
    ];
    let ran = world.run(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (_, shown) = world.json(&["show", "last"]);
    let sum = shown["state"]["sum"]
        .as_i64()
        .or_else(|| shown["state"]["sum"].as_str()?.parse().ok());
    follows(&world, sum.unwrap_or_else(|| panic!("{shown:#}")));
}

#[test]
fn where_the_session_s_limits_end_it_that_is_said() {
    let search = ", search: { n: 100, score: state.sum, seed: 1 }";
    let world = desk(search, "limits: { tokens: 9000 }\n");
    let ran = world.run(&["run", "--input", "Roll.", "--script-all", "script.yaml"]);
    assert!(
        ran.err
            .contains("stopped: the session's token limit, 8 branches"),
        "{ran:?}"
    );
    let told = world.run(&["search", "last", "--show"]);
    let head = told.out.lines().next().unwrap_or_default();
    assert!(head.contains("the session's token limit of 9"), "{told:?}");
    assert!(head.contains("branches explored"), "{told:?}");
    assert!(head.contains("best so far adopted"), "{told:?}");
    let (_, document) = world.json(&["search", "last", "--show"]);
    let search: &Json = &document["searches"][0];
    assert_eq!(search["status"], "session_tokens", "{search:#}");
    assert_eq!(search["adopted"], true, "{search:#}");
    assert!((1..100).contains(&search["explored"].as_u64().unwrap()));
}

#[test]
fn the_worst_case_counts_searches_judges_and_reviewers() {
    let world = World::new();
    let definition = "name: desk
tools:
  pay: { description: Pays., simulate: paid, command: [echo], reflect: { by: critic } }
agents:
  desk:
    system: You settle.
    tools: [pay]
    limits: { model_calls: 10 }
    search: { n: 600, by: critic, budget: { model_calls: 4000 } }
    reflect: { by: critic, rounds: 3 }
  critic: { description: Judges., system: You judge., limits: { model_calls: 2 } }
entry: desk
";
    world.write("steersman.yaml", definition);
    let ran = world.run(&["check"]);
    let rows: Vec<&str> = ran
        .out
        .lines()
        .skip_while(|row| !row.contains("worst case"))
        .take(5)
        .collect();
    assert_eq!(
        rows,
        [
            "  worst case  10 model calls an answer, then a forced answer",
            "              2,000,000 tokens a session",
            "              among them for each answer of desk: 6 by its reviewer critic",
            "              among them for each call of pay: 2 by its reviewer critic",
            "              beside them for each answer of desk: 4,000 in its search, 1,200 by its judge critic",
        ]
    );
    // Without a limit of its own an agent counts only its own calls.
    let unlimited = definition.replace("    limits: { model_calls: 10 }\n", "");
    world.write("steersman.yaml", &unlimited);
    let ran = world.run(&["check"]);
    for row in [
        "  worst case  50 model calls an answer of each agent, then a forced answer",
        "              beside them for each answer of desk: 4,000 in its search, 1,200 by its judge critic, 6 by its reviewer critic",
        "              beside them for each call of pay: 2 by its reviewer critic",
    ] {
        assert!(ran.out.lines().any(|line| line == row), "{ran:?}");
    }
}

const SEATS: &str = r#"steersman: 1
name: top
state: { seats: { type: integer, default: 0 } }
tools:
  pick: { description: Picks., parameters: { seats: integer }, set: { seats: "{{ args.seats }}" } }
agents:
  top: { system: You ask., tools: [chooser] }
  chooser:
    description: Chooses.
    parameters: { people: integer }
    system: You choose.
    tools: [pick]
    search: { n: 6, score: state.seats == 4, budget: { model_calls: 2 } }
entry: top
"#;

fn seats(definition: &str, chooser: &str) -> (World, Ran) {
    let world = World::new();
    world.write("steersman.yaml", definition);
    let any: Vec<String> = [2, 4, 6]
        .map(|n| format!("{{ call: {{ pick: {{ seats: {n} }} }} }}"))
        .into();
    let chooser = chooser.replace("PICK", &format!("{{ any: [ {} ] }}", any.join(", ")));
    let script = format!(
        "top: [ {{ call: {{ chooser: {{ people: 4 }} }} }}, Seated. ]\nchooser: {chooser}\n"
    );
    world.write("script.yaml", &script);
    let ran = world.run(&["run", "--input", "Sit.", "--script-all", "script.yaml"]);
    (world, ran)
}

#[test]
fn the_budget_of_a_sub_agent_s_search_counts_each_block() {
    let (world, ran) = seats(SEATS, "[ PICK, Chosen. ]");
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Seated."), "{ran:?}");
    let told = world.run(&["search", "last", "--show"]);
    let head = told.out.lines().next().unwrap_or_default();
    assert!(
        head.contains("best_of, 2 branches explored in 2 model calls, budget"),
        "{told:?}"
    );
    assert_eq!(told.out.matches("  1 block, worth ").count(), 2, "{told:?}");
    let (_, document) = world.json(&["search", "last", "--show"]);
    let search = &document["searches"][0];
    assert_eq!(search["model_calls"], 2, "{search:#}");
    let nodes = search["nodes"].as_array().unwrap();
    for node in nodes {
        assert_eq!(node["model_calls"], 1, "{search:#}");
        assert!(node["tokens"].as_u64() > Some(0), "{search:#}");
    }
}

#[test]
fn what_was_searched_and_what_a_script_lacks_is_told_in_full() {
    let definition = SEATS.replace("model_calls: 2", "model_calls: 9");
    let (world, ran) = seats(&definition, "[ PICK ]");
    let missing = "the script has 1 answer for `chooser`, number 2 is wanted";
    let shown = world.run(&["show", "last"]);
    for told in [&ran.err, &shown.out] {
        let flat: Vec<&str> = told.split_whitespace().collect();
        let flat = flat.join(" ");
        assert!(flat.contains(missing), "{told}");
        let rows = told.lines().filter(|row| row.ends_with("  search"));
        let rows: Vec<&str> = rows.collect();
        assert!(rows.len() >= 2, "{told}");
        assert!(rows.iter().all(|row| !row.contains("...")), "{told}");
        assert!(
            flat.contains("in 6 branches and 9 model calls (budget) search"),
            "{told}"
        );
    }
    let tree = world.run(&["search", "last", "--show"]);
    assert!(tree.out.contains(missing), "{tree:?}");
    assert!(
        tree.out.lines().all(|row| row.chars().count() <= 90),
        "{tree:?}"
    );
}

/// A message to one branch of a search, while another branch waits for a person, does not stop the search.
#[test]
fn what_is_said_to_a_branch_that_is_tried_stops_no_search() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk
tools: { charge: { description: Charges., effect: unsafe, command: [echo, done] } }
agents: { desk: { system: You charge., tools: [charge] } }
",
    );
    let tries = "[ { call: { charge: {} } }, Tried., Heard., Heard. ]";
    world.write(
        "script.yaml",
        &format!("desk: [ Hello., {{ call: {{ charge: {{}} }} }}, Tried., Heard., Heard. ]\n\"desk@1\": {tries}\n"),
    );
    let run = |words: &[&str]| world.run(&[words, &["--script-all", "script.yaml"]].concat());
    assert_eq!(run(&["run", "--input", "Hi."]).code, Some(0));
    let live = ["--n", "2", "--score", "1", "--live"];
    run(&[&["search", "last@head", "--say", "Go."], &live[..]].concat());
    let (_, shown) = world.json(&["show", "last"]);
    let hold = &shown["holds"][0];
    assert_eq!(hold["kind"], "repeat", "{shown:#}");
    let (id, at) = (
        hold["id"].as_str().unwrap(),
        hold["branch"].as_str().unwrap(),
    );
    let other = shown["branches"].as_array().unwrap().iter();
    let other = other.filter_map(|branch| branch["id"].as_str());
    let mut tried = other.filter(|id| !["main", "100.1"].contains(id));
    let other = tried
        .find(|id| *id != at)
        .unwrap_or_else(|| panic!("{shown:#}"));
    assert_eq!(
        run(&["send", &format!("last:{other}"), "More."]).code,
        Some(0)
    );
    run(&["reject", "last", id, "--say", "no"]);
    run(&["run", "--resume", "last"]);
    let (_, shown) = world.json(&["show", "last"]);
    assert_eq!(
        (&shown["status"], &shown["inbox"]),
        (&"answered".into(), &0.into()),
        "{shown:#}"
    );
}

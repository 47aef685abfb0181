//! `graph` draws a definition, and where a session is in it. `why` explains acts.

use crate::world::{World, examples, root};
use insta::assert_snapshot;
use std::path::{Path, PathBuf};

/// A conversation in two states, with a judge, a nested sequence and a person.
const TALK: &str = r#"
steersman: 1
name: talk
agents:
  host:   { description: Hosts., system: You host. }
  draft:  { description: Drafts., system: You draft. }
  polish: { description: Polishes., system: You polish. }
  editor: { person: { role: editor, timeout: 1d, on_timeout: { text: "(nothing)" } } }
  write:  { route: { sequence: [draft, polish] } }
  talk:
    route:
      states:
        open:
          speakers: [host, write]
          begin: { speaker: host, say: Welcome. }
          exits:
            - { judge: "All of \"it\" is said.", to: close }
            - { after_messages: 9, to: finish }
        close: { speakers: [editor], exits: [ { after_messages: 1, to: finish } ] }
      start: open
entry: talk
"#;

/// The judge first answers with nonsense, then that no exit holds, and at last with an exit and a reason.
const TALKED: &str = r#"
talk:
  - It rains.
  - 0
  - 0
  - call: { decide: { exit: 1, reason: "the draft\nis good" } }
draft: [ A draft. ]
polish: [ A polished draft. ]
host: [ I thank you. ]
"#;

/// A payment that a person approves, by an agent that another one starts.
const PAY: &str = r#"
steersman: 1
name: shop
state:
  open: { type: integer, default: 700 }
tools:
  pay:
    description: Pays.
    parameters: { cents: integer }
    effect: unsafe
    requires: { that: args.cents <= state.open, else: That is more than is open. }
    approve: { by: boss, when: args.cents > 500, ask: "Pay {{ args.cents }}?" }
    command: [echo, paid]
    set: { open: "{{ state.open - args.cents }}" }
agents:
  boss:  { person: { role: boss } }
  payer: { description: Pays., parameters: { what: string }, system: You pay., tools: [pay] }
  desk:  { description: Talks., system: You talk., tools: [payer] }
  shop:
    route:
      rules:
        - { when: route.count == 0, to: desk }
        - { when: state.open == 0, to: finish }
        - { to: finish }
entry: shop
"#;

const PAID: &str = r"
desk: [ { call: { payer: { what: the bill } } }, All is paid. ]
payer: [ { call: { pay: { cents: 900 } } }, { call: { pay: { cents: 700 } } }, Paid. ]
";

fn world(definition: &str, script: &str) -> World {
    let world = World::new();
    world.write("net/steersman.yaml", definition);
    world.write("script.yaml", script);
    world
}

fn begin(world: &World, said: &str, code: i32) {
    let mut args = vec!["run", "net", "--script-all", "script.yaml", "--input", said];
    if world.folder.join("clock.yaml").exists() {
        args.extend(["--clock", "clock.yaml"]);
    }
    let ran = world.run(&args);
    assert_eq!(ran.code, Some(code), "{ran:?}");
}

fn pages(world: &World, all: &[&[&str]]) -> String {
    let pages: Vec<String> = all.iter().map(|args| world.page(args)).collect();
    pages.join("\n")
}

/// The definitions of the examples, and of the tests of the reader.
fn definitions() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(examples())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let others = root().join("crates/steersman-definition/tests/definitions");
    found.extend(
        std::fs::read_dir(others)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                let is_definition = path.extension().is_some_and(|end| end == "yaml");
                is_definition && !path.to_str().unwrap().ends_with("-script.yaml")
            }),
    );
    found.sort();
    found
}

/// Returns true for a definition that has errors, needs files that are not here, or a net that this program does not have.
fn is_refused(world: &World, path: &Path) -> bool {
    let checked = world.run(&["check", path.to_str().unwrap()]);
    match checked.code {
        Some(0) => false,
        Some(3) => true,
        _ => panic!("{}: {checked:?}", path.display()),
    }
}

fn drawn(world: &World, path: &Path, format: &str) -> String {
    let ran = world.run(&["graph", path.to_str().unwrap(), "--format", format]);
    assert_eq!(ran.code, Some(0), "{}: {ran:?}", path.display());
    ran.out
}

#[test]
fn every_definition_is_drawn_the_same_each_time_and_nothing_is_cut() {
    let world = World::new();
    let mut count = 0;
    for path in definitions() {
        let name = path.display();
        if is_refused(&world, &path) {
            let ran = world.run(&["graph", path.to_str().unwrap()]);
            assert_eq!((ran.code, &*ran.out), (Some(3), ""), "{name}: {ran:?}");
            continue;
        }
        let terminal = drawn(&world, &path, "terminal");
        assert!(
            terminal.is_ascii() && !terminal.contains('\u{1b}'),
            "{name}: {terminal}"
        );
        for row in terminal.lines() {
            assert!(row.len() <= 100, "{name}: {row}");
        }
        let mermaid = drawn(&world, &path, "mermaid");
        let svg = drawn(&world, &path, "svg");
        assert_eq!(
            svg.matches("<text").count(),
            svg.matches("</text>").count(),
            "{name}"
        );
        assert_eq!(svg.matches("<svg").count(), 1, "{name}");
        for foreign in ["<script", "href", "url(", "@import"] {
            assert!(!svg.contains(foreign), "{name}: {foreign}");
        }
        let (_, document) = world.json(&["graph", path.to_str().unwrap()]);
        let nodes = document["nodes"].as_array().unwrap();
        let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric());
        for node in nodes.iter().filter(|node| node["what"] != "end") {
            let text = node["name"].as_str().unwrap();
            assert!(terminal.contains(text), "{name}: {text}");
            // Mermaid output writes special characters by number.
            assert!(!plain(text) || mermaid.contains(text), "{name}: {text}");
            assert!(
                node["what"] == "begin" || svg.contains(text),
                "{name}: {text}"
            );
        }
        assert_eq!(drawn(&world, &path, "svg"), svg, "{name}");
        count += 1;
    }
    assert!(count >= 30, "only {count} are drawn");
}

/// The graph in the README of each example is the one that is drawn.
#[test]
fn readmes_show_the_graph_as_it_is() {
    let world = World::new();
    for example in std::fs::read_dir(examples()).unwrap() {
        let path = example.unwrap().path();
        let readme = std::fs::read_to_string(path.join("README.md")).unwrap();
        let drawn = drawn(&world, &path, "mermaid");
        let fenced = format!("```mermaid\n{drawn}```\n");
        let hint = "steersman graph EXAMPLE --format mermaid";
        assert!(readme.contains(&fenced), "{}: {hint}", path.display());
    }
}

#[test]
fn routers_of_each_kind_are_drawn() {
    let world = World::example("bank");
    crate::world::copy(&examples().join("invoice"), &world.folder.join("invoice"));
    world.write("net/steersman.yaml", TALK);
    assert_snapshot!(pages(
        &world,
        &[
            &["graph", "bank"],
            &["graph", "invoice"],
            &["graph", "net", "--format", "mermaid"],
        ]
    ));
}

#[test]
fn what_is_meant_is_said_or_asked_for() {
    let world = world(TALK, TALKED);
    let nothing = pages(
        &world,
        &[
            &["graph"],
            &["graph", "last"],
            &["graph", "nothere"],
            &["why"],
        ],
    );
    begin(&world, "Write it.", 5);
    // A definition with the same name as an address of a session.
    world.write("last/steersman.yaml", TALK);
    world.write("notes.md", "# Mine\n");
    let wrong = pages(
        &world,
        &[
            &["graph", "last"],
            &["graph", "home"],
            &["graph", "./nothere.yaml"],
            &["graph", "last@99"],
            &["graph", "net", "--output", "net.png"],
            &["graph", "net", "--output", "notes.md"],
            &[
                "graph", "net", "--format", "terminal", "--output", "net.txt",
            ],
            &["graph", "net", "--json", "--format", "svg"],
            &["why", "nothere"],
            &["why", "3.1"],
            &["why", "last", "9.9"],
            &["why", "last", "refund"],
            &["why", "last@99"],
        ],
    );
    assert_snapshot!(format!("{nothing}\n{wrong}"));
    // Both can be named so that the target is clear.
    for target in ["./last", "last@head"] {
        assert_eq!(world.run(&["graph", target]).code, Some(0), "{target}");
    }
    assert_eq!(
        std::fs::read_to_string(world.folder.join("notes.md")).unwrap(),
        "# Mine\n"
    );
}

#[test]
fn a_file_is_drawn_by_its_ending_and_again() {
    let world = world(TALK, TALKED);
    for (file, begins) in [
        ("net.svg", "<!-- drawn by"),
        ("net.mmd", "%% drawn by"),
        ("net.md", "```mermaid\n%% drawn by"),
    ] {
        for _ in 0..2 {
            let ran = world.run(&["graph", "net", "-o", file]);
            assert_eq!((ran.code, &*ran.out), (Some(0), ""), "{ran:?}");
        }
        let text = std::fs::read_to_string(world.folder.join(file)).unwrap();
        assert!(text.starts_with(begins), "{file}: {text}");
    }
}

/// The judge first answered with nonsense, a state was left, a person is asked, and the definition was deleted: the
/// session is still drawn and explained.
#[test]
fn a_session_is_marked_and_explained_without_its_definition() {
    let world = world(TALK, TALKED);
    begin(&world, "Write it.", 5);
    std::fs::remove_dir_all(world.folder.join("net")).unwrap();
    assert_snapshot!(pages(
        &world,
        &[
            &["graph", "last"],
            &["graph", "last@draft"],
            &["show", "last"],
            &["why", "last"],
            &["why", "last@draft"],
        ]
    ));
    let svg = world.run(&["graph", "last", "--format", "svg"]).out;
    assert!(
        svg.contains("class=\"state here\"") && svg.contains("taken"),
        "{svg}"
    );
    let (_, document) = world.json(&["why", "last"]);
    let steps = document["steps"].as_array().unwrap();
    let last = &steps[steps.len() - 1];
    assert_eq!(
        (&last["kind"], &last["who"], &last["line"]),
        (&"message".into(), &"you".into(), &1.into())
    );
}

/// `why` of a payment goes back to the message of the user: guards, approval with person and time, attempts, and the
/// agents between.
#[test]
fn a_payment_is_explained_outward() {
    let world = world(PAY, PAID);
    world.write("clock.yaml", "2026-01-05T09:00:00Z");
    begin(&world, "Pay the bill.", 5);
    let held = world.page(&["graph", "last"]);
    world.write("clock.yaml", "2026-01-05T10:30:00Z");
    let ran = world.run(&["approve", "last", "--as", "boss", "--clock", "clock.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let effects = world.json_lines(&["effects", "last"]);
    let effect = effects.last().unwrap()["effect"]
        .as_str()
        .unwrap()
        .to_owned();
    let ran = world.run(&["why", "last", &effect]);
    assert!(
        ran.out.contains("boss, @") && ran.out.contains("2026-01-05 10:30:00Z"),
        "{ran:?}"
    );
    let refused = world.page(&["why", "last@pay"]);
    let all = pages(&world, &[&["why", "last", &effect], &["why", "last"]]);
    assert_snapshot!(format!("{held}\n{refused}\n{all}"));
    // The id of an agent means its newest act.
    let (_, shown) = world.json(&["show", "last"]);
    let agents = shown["agents"].as_array().unwrap();
    let payer = agents
        .iter()
        .find(|agent| agent["name"] == "payer")
        .unwrap();
    let (_, why) = world.json(&["why", "last", payer["id"].as_str().unwrap()]);
    assert_eq!(why["steps"][0]["who"], "payer");
    assert_eq!(why["steps"][0]["text"], "its model answered: \"Paid.\"");
}

/// A panel with a state that is left after six messages, and a state with a verdict.
const PANEL: &str = r"
steersman: 1
name: panel
agents:
  chair: { description: Judges., system: You judge. }
  pro:   { description: For., system: You are for. }
  con:   { description: Against., system: You are against. }
  panel:
    route:
      states:
        open:
          speakers: [pro, con]
          exits: [ { after_messages: 6, to: verdict } ]
        verdict: { speakers: [chair], exits: [ { after_messages: 1, to: finish } ] }
      start: open
entry: panel
";

const ARGUED: &str = r"
pro: [ One., Three., Five. ]
con: [ Two., Four., Six. ]
chair: [ Pro wins. ]
";

/// A router with two tasks: a visit is booked after the visitor has said who they are.
const DESK: &str = r#"
steersman: 1
name: office
state:
  who: { type: string, optional: true }
  booked: { type: boolean, default: false }
tools:
  book: { description: Books., set: { booked: "{{ true }}" }, result: Booked. }
  note:
    description: Notes who it is.
    parameters: { name: string }
    set: { who: "{{ args.name }}" }
agents:
  greeter: { description: Asks who it is., system: You ask., tools: [note] }
  booker:  { description: Books., system: You book., tools: [book] }
  office:
    route:
      tasks:
        who:   { agent: greeter, done: state.who is not none }
        visit: { agent: booker, after: [who], done: state.booked }
entry: office
"#;

const BOOKED: &str = r#"
office: [ visit ]
greeter: [ Who are you?, { call: { note: { name: Ada } } }, "Hello, Ada." ]
booker: [ { call: { book: {} } }, It is booked. ]
"#;

/// Two agents, one after the other, by one rule.
const RULES: &str = r"
steersman: 1
name: two
agents:
  a: { description: First., system: You are first. }
  b: { description: Second., system: You are second. }
  two:
    route:
      rules:
        - { when: route.count == 0, to: [a, b] }
        - { to: finish }
entry: two
";

#[test]
fn behind_what_a_member_came_to_stands_who_chose_it() {
    let world = world(PANEL, ARGUED);
    begin(&world, "Tea or coffee?", 0);
    let panel = pages(&world, &[&["why", "last"], &["why", "last@chair"]]);
    world.write("net/steersman.yaml", RULES);
    world.write(
        "script.yaml",
        "a: [ { error: provider_error } ]\nb: [ B. ]\n",
    );
    begin(&world, "Go.", 1);
    let failed = world.page(&["why", "last"]);
    assert_snapshot!(format!("{panel}\n{failed}"));
}

/// A second task begins by itself after the first one: `why` leads to the message that the first task waited for.
#[test]
fn what_goes_on_by_itself_comes_of_the_words_before() {
    let world = world(DESK, BOOKED);
    begin(&world, "I want to visit.", 0);
    let args = ["send", "last", "Ada", "--script-all", "script.yaml"];
    let ran = world.run(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // A definition in a file and the one that a session is bound to are drawn alike.
    let rows = |target: &str| {
        let drawn = world.json(&["graph", target]).1;
        let nodes = drawn["nodes"].as_array().unwrap().iter();
        nodes.map(|n| n["name"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(rows("./net"), rows("last"));
    assert_snapshot!(pages(
        &world,
        &[&["why", "last"], &["graph", "last"], &["effects", "last"]]
    ));
}

#[test]
fn each_arrow_of_a_rule_is_counted() {
    let world = world(RULES, "a: [ A. ]\nb: [ B. ]\n");
    begin(&world, "Go.", 0);
    assert_snapshot!(pages(&world, &[&["graph", "last"], &["why", "last"]]));
}

#[test]
fn what_was_erased_is_not_told_and_the_rest_is() {
    let world = world(PAY, PAID);
    begin(&world, "Pay the secret bill.", 5);
    assert_eq!(
        world.run(&["approve", "last", "--as", "boss"]).code,
        Some(0)
    );
    assert_eq!(world.run(&["erase", "last", "--yes"]).code, Some(0));
    let why = world.run(&["why", "last@pay"]);
    assert!(
        why.out.contains("said to shop: \"[erased]\"") && !why.out.contains("secret"),
        "{why:?}"
    );
    assert_eq!(
        (why.code, world.run(&["graph", "last"]).code),
        (Some(0), Some(0))
    );
}

#[test]
fn run_tells_what_routers_read_where_it_is_asked_to() {
    let world = world(PAY, "desk: [ Good day. ]\n");
    let args = [
        "run",
        "net",
        "--script-all",
        "script.yaml",
        "--input",
        "Hello",
    ];
    let ran = world.run(&args);
    assert!(
        ran.err.contains("-> desk (rule 1; route.count = 0)"),
        "{ran:?}"
    );
    assert!(!ran.err.contains("rule = 1"), "{ran:?}");
    let mut args = args.to_vec();
    args.push("-v");
    let ran = world.run(&args);
    assert!(
        ran.err.contains("route.count = 0") && ran.err.contains("rule = 1"),
        "{ran:?}"
    );
}

/// Modes with every kind of exit, an answer and calls that are reviewed, and a search whose branches a critic judges.
const JUDGED: &str = r#"
steersman: 1
name: judged
state:
  ready: { type: boolean, default: false }
tools:
  look:  { description: Looks., parameters: { what: string }, effect: read, reflect: { by: critic, rounds: 3, when: "args.what != 'x'" }, command: [echo] }
  begin: { description: Begins., parameters: {}, set: { ready: true }, mode: work }
  turn:  { description: Turns., parameters: { to: string }, set: { ready: false }, mode: "{{ args.to }}" }
agents:
  critic: { description: Judges., parameters: { draft: string }, system: You judge. }
  helper: { description: Helps., parameters: { what: string }, system: You help., reflect: true }
  worker:
    description: Works.
    start: talk
    modes:
      talk: { system: You talk., tools: [begin, helper] }
      work: { system: You work., tools: [look, turn], exits: [ { after_calls: 9, to: finish } ] }
    exits: [ { when: calls.look.ok > 5, to: talk } ]
    reflect: { by: critic, rounds: 2 }
  finder:
    description: Finds.
    system: You find.
    search: { method: beam, n: 4, by: critic, budget: { model_calls: 20 } }
entry: [worker, finder]
"#;

/// The graph of a definition shows critics, searches, and the exits between modes. The graph of a session also shows
/// the current mode and the exits that were taken.
#[test]
fn modes_judges_and_searches_are_drawn() {
    let world = world(
        JUDGED,
        "worker: [ { call: { begin: {} } }, { call: { turn: { to: talk } } }, Done. ]\ncritic: [ { accept: true } ]\n",
    );
    let definition = pages(
        &world,
        &[
            &["graph", "net"],
            &["graph", "net", "--format", "mermaid"],
            &["graph", "net", "--format", "svg"],
        ],
    );
    begin(&world, "Go.", 0);
    let session = world.page(&["graph", "last"]);
    assert_snapshot!(format!("{definition}\n{session}"));
}

/// `why` of a session whose answer was reviewed tells who answered before it tells of the reviews. `context` names each
/// model call.
#[test]
fn what_was_answered_comes_before_who_judged_it() {
    let world = World::example("analyst");
    let ask = "Why are sales down since April?";
    let script = ["--script-all", "analyst/script.yaml"];
    let run = [&["run", "analyst", "--input", ask][..], &script].concat();
    assert_eq!(world.run(&run).code, Some(0));

    let why = world.run(&["why", "last"]).out;
    let place = |told: &str| {
        why.find(told)
            .unwrap_or_else(|| panic!("`{told}` in {why}"))
    };
    let way = [
        "answered: \"The north stopped buying lamps",
        "got the judgement of reviewer on the draft (accept)",
        "its model answered: \"The north stopped buying lamps",
        "mode      execution, since @",
        "got the judgement of reviewer on the draft (revise)",
        "said to analyst",
    ];
    assert!(way.map(place).is_sorted(), "{why}");

    let context = world.run(&["context", "last"]);
    assert!(context.out.contains(" analyst   scripted"), "{context:?}");
    for others in [
        "calls: analyst @2 @4",
        ", north @",
        ", lamps @",
        ", reviewer @",
    ] {
        assert!(context.err.contains(others), "{context:?}");
    }
    let lamps = world.run(&["context", "last", "lamps"]);
    assert!(lamps.out.contains(" lamps   scripted"), "{lamps:?}");
    let unknown = world.run(&["context", "last", "nobody"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(
        unknown.err.contains("hint: model calls: analyst @2"),
        "{unknown:?}"
    );

    let parts = world.run(&["context", "last", "--why"]).out;
    assert!(
        parts.contains("agents.analyst.modes.execution.tools"),
        "{parts}"
    );
}

//! The examples, offline: their tests pass, and snapshots hold the output of their commands.

use crate::world::{Service, World};
use insta::assert_snapshot;

const SAID: &str = "My kettle (order 4711) arrived broken. I want my money back.";

const EXAMPLES: [&str; 12] = [
    "support",
    "react",
    "react-reflect",
    "research",
    "invoice",
    "bank",
    "debate",
    "coder",
    "planner",
    "analyst",
    "search",
    "front-ends",
];

#[test]
fn the_examples_are_right_and_their_tests_pass() {
    for name in EXAMPLES {
        let world = World::example(name);
        let checked = world.run(&["check", name]);
        assert_eq!(checked.code, Some(0), "{checked:?}");
        // The tools of these read files of the example, so they must run for real.
        let looks = ["react", "react-reflect", "coder", "planner", "analyst"];
        // The second run reads each session again between any two events, which takes long in a search of 200 branches.
        let mut test = vec!["test", name];
        test.extend((name != "search").then_some("--replay"));
        test.extend(looks.contains(&name).then_some("--real"));
        let tested = world.run(&test);
        assert_eq!(tested.code, Some(0), "{tested:?}");
    }
}

/// Example, script, commands, and the reason why no test can be recorded, if there is one.
type Told<'a> = (&'a str, &'a str, Vec<Vec<&'a str>>, Option<&'a str>);

/// Sessions as in the READMEs are recorded as tests that pass, or the command says why they cannot be.
#[test]
fn what_the_examples_do_becomes_tests() {
    let question = "What is the reversed founding year of the publisher of QST less 8?";
    let fork = |label, say| vec!["fork", "last", "--label", label, "--say", say];
    let stories: Vec<Told<'_>> = vec![
        (
            "react",
            "script.yaml",
            vec![vec!["--input", "Why was the shop down last night?"]],
            None,
        ),
        (
            "react-reflect",
            "quick.yaml",
            vec![vec!["--entry", "quick", "--input", question]],
            None,
        ),
        (
            "react-reflect",
            "careful.yaml",
            vec![vec!["--entry", "careful", "--input", question]],
            None,
        ),
        (
            "planner",
            "script.yaml",
            vec![vec!["--input", "Empty the office by tonight."]],
            None,
        ),
        (
            "research",
            "script.yaml",
            vec![vec![
                "--input",
                "Should our town change its street lamps to LED?",
            ]],
            None,
        ),
        (
            "analyst",
            "script.yaml",
            vec![
                vec!["--input", "Why are sales in the north so low?"],
                fork("why", "What else changed in April?"),
                fork("chairs", "Could chairs make up for it?"),
                vec!["join", "last", "why", "chairs", "--then", "compare"],
            ],
            None,
        ),
        (
            "search",
            "script.yaml",
            vec![vec!["--input", "Go.", "--seed", "24"]],
            Some("branches were searched"),
        ),
        (
            "debate",
            "script.yaml",
            vec![vec!["--input", "Debate libraries that lend tools."]],
            None,
        ),
        (
            "coder",
            "script.yaml",
            vec![vec!["--input", "The tests fail. Mend it."]],
            Some("would not hold"),
        ),
    ];
    for (name, script, acts, refused) in stories {
        let world = World::example(name);
        let script = format!("{name}/{script}");
        for (n, act) in acts.into_iter().enumerate() {
            let begin = if n == 0 {
                vec!["run", name]
            } else {
                Vec::new()
            };
            let ran = world.run(&[&begin[..], &act, &["--script-all", &script]].concat());
            assert!(matches!(ran.code, Some(0 | 5 | 6)), "{name} {ran:?}");
        }
        let out = format!("{name}/tests/recorded.yaml");
        let ran = world.run(&["test", "--record", "last", "--out", &out]);
        if let Some(why) = refused {
            assert_eq!(ran.code, Some(2), "{name} {ran:?}");
            assert!(ran.err.contains(why), "{name} {ran:?}");
            continue;
        }
        assert_eq!(ran.code, Some(0), "{name} {ran:?}");
        let ran = world.run(&["test", name, "--name", "session_"]);
        assert_eq!(ran.code, Some(0), "{name} {ran:?}");
        assert!(ran.out.contains("ok      session_"), "{name} {ran:?}");
    }
}

#[test]
fn support_asks_pays_and_answers() {
    let mut world = World::example("support");
    let service = Service::support(&mut world, false);
    let mut pages = Vec::new();
    let mut page = |args: &[&str]| pages.push(world.page(args));
    page(&[
        "run",
        "support",
        "--script-all",
        "support/script.yaml",
        "--input",
        SAID,
    ]);
    page(&["pending"]);
    page(&["show", "last"]);
    page(&["approve", "last"]);
    assert_eq!(service.refunds(), 0, "the user is no supervisor");
    page(&["approve", "last", "--as", "supervisor"]);
    assert_eq!(service.refunds(), 1);
    page(&["show", "last"]);
    page(&["effects", "order=4711"]);
    page(&["context", "last@refund"]);
    page(&["context", "last@find_order"]);
    page(&["log", "last@-1"]);
    page(&["sessions"]);
    page(&["pending"]);
    page(&["approve", "last", "--as", "supervisor"]);
    assert_snapshot!(pages.join("\n"));
}

#[test]
fn a_rejection_reaches_the_model_and_nothing_is_paid() {
    let mut world = World::example("support");
    let service = Service::support(&mut world, false);
    world.write(
        "script.yaml",
        r#"desk:
  - call: { find_order: { order: "4711" } }
  - call: { refund: { order: "4711", cents: 3990 } }
  - "Not this time: {{ request.last }}"
"#,
    );
    let (code, _) = world.json(&[
        "run",
        "support",
        "--script-all",
        "script.yaml",
        "--input",
        SAID,
    ]);
    assert_eq!(code, Some(5));
    let (code, told) = world.json(&["reject", "last", "--as", "supervisor", "--say", "too late"]);
    assert_eq!(code, Some(0));
    assert!(
        told["answer"].as_str().unwrap().contains("too late"),
        "{told}"
    );
    assert_eq!(service.refunds(), 0);
}

#[test]
fn an_edited_approval_pays_what_was_approved() {
    let mut world = World::example("support");
    let service = Service::support(&mut world, false);
    let (code, _) = world.json(&[
        "run",
        "support",
        "--script-all",
        "support/script.yaml",
        "--input",
        SAID,
    ]);
    assert_eq!(code, Some(5));
    let wrong = world.run(&[
        "approve",
        "last",
        "--as",
        "supervisor",
        "--edit",
        "order=4712",
    ]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let (code, _) = world.json(&[
        "approve",
        "last",
        "--as",
        "supervisor",
        "--edit",
        "cents=1000",
    ]);
    // A thousand cents need no approval, so it runs at once.
    assert_eq!(code, Some(0));
    let book = std::fs::read_to_string(&service.book).unwrap();
    assert!(book.contains("\"cents\":1000"), "{book}");
    let (_, shown) = world.json(&["show", "last"]);
    assert_eq!(shown["state"]["refunded"], 1000);
}

#[test]
fn react_reaches_its_limit_and_answers() {
    let world = World::example("react");
    let mut pages = Vec::new();
    for args in [
        &[
            "run",
            "react",
            "--script-all",
            "react/script.yaml",
            "--input",
            "Why was the shop down last night?",
        ][..],
        &["show", "last"],
        &["effects", "last"],
    ] {
        pages.push(world.page(args));
    }
    assert_snapshot!(pages.join("\n"));
}

/// The MCP server of `research` survives any input, and gives out nothing but its notes.
#[test]
fn the_library_of_research_takes_whatever_comes() {
    let world = World::example("research");
    world.write("research/secret.md", "# Not for you\n");
    let fetch = |id: u32, note: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"fetch","arguments":{{"note":{note}}}}}}}"#
        )
    };
    let lines = [
        "garbage".to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"rm"}}"#.to_owned(),
        fetch(3, r#""../secret""#),
        fetch(4, "7"),
        fetch(5, r#""harbour.md""#),
    ];
    world.write("asked", &(lines.join("\n") + "\n"));
    let asked = std::fs::File::open(world.folder.join("asked")).unwrap();
    let ran = world
        .command(&["example-service", "research", "--notes", "research/notes"])
        .stdin(asked)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let answers = String::from_utf8(ran.stdout).unwrap();
    assert_snapshot!(answers);
}

/// The agent's search solves the game on a branch, which is adopted. A person searches again, and the tree is printed.
#[test]
fn search_solves_the_game_of_24() {
    let world = World::example("search");
    let mut pages = Vec::new();
    let mut page = |args: &[&str]| pages.push(world.page(args));
    let script = ["--script-all", "search/script.yaml"];
    page(
        &[
            &["run", "search", "--input", "Go.", "--seed", "24"][..],
            &script,
        ]
        .concat(),
    );
    page(&["search", "last", "--show"]);
    let beam = [
        "search", "last@1", "--method", "beam", "--n", "6", "--seed", "3",
    ];
    page(&[&beam[..], &script].concat());
    page(&["show", "last"]);
    page(&[&["search", "last"][..], &script].concat());
    page(&["search", "last@1", "--score", "answer +"]);
    page(&["search", "last@1", "--n", "100000"]);
    assert_snapshot!(pages.join("\n"));
}

//! Files of tests: the definition that they belong to, broken files, and the JUnit report.

use crate::world::World;

const DESK: &str = "name: desk\nagents: { desk: { system: You help. } }\n";
const OTHER: &str = "name: other\nagents: { helper: { system: You help. } }\n";
const GREETS: &str = "tests:\n  greets: { script: { desk: [ Hello. ] }, steps: [ { say: Hi. } ], expect: [ { answer: Hello. } ] }\n";

/// Two definitions in a folder, each with tests of its own.
fn two() -> World {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("other.yaml", OTHER);
    world.write("tests/desk.yaml", GREETS);
    let other = GREETS.replace("desk", "helper").replace("greets", "helps");
    world.write("tests/other.yaml", &format!("name: other\n{other}"));
    world
}

#[test]
fn tests_are_of_the_definition_that_they_name() {
    let world = two();
    for (definition, test) in [(".", "greets"), ("other.yaml", "helps")] {
        let checked = world.run(&["check", definition]);
        assert_eq!(checked.code, Some(0), "{checked:?}");
        let ran = world.json_lines(&["test", definition]);
        let names: Vec<_> = ran.iter().map(|t| t["test"].as_str().unwrap()).collect();
        assert_eq!(names, [test]);
    }
    // Alone in its folder it is the main definition, to which files without a name belong.
    std::fs::remove_file(world.folder.join("steersman.yaml")).unwrap();
    let ran = world.run(&["test", "other.yaml", "--name", "greets"]);
    assert_eq!(
        ran.code,
        Some(3),
        "a test of an agent that it does not have: {ran:?}"
    );
}

#[test]
fn a_broken_file_of_tests_blocks_nothing_but_tests() {
    for broken in [
        "tests:\n  bad: { scrip: {} }\n",
        "tests:\n  bad: { script: { nobody: [ No. ] } }\n",
        "tests:\n  bad: { expect: [ { that: state.nosuch == 1 } ] }\n",
        "tests: [\n",
        "tests:\n  bad: { script: { desk: [ off ] }, steps: [ { say: Hi. } ] }\n",
        "tests:\n  bad: { script: ../bad.yaml, steps: [ { say: Hi. } ] }\n",
    ] {
        let world = two();
        world.write("tests/bad.yaml", broken);
        world.write("bad.yaml", "desk: [ off ]\n");
        world.write("script.yaml", "desk: [ Hello. ]\n");
        let checked = world.run(&["check"]);
        assert_eq!(checked.code, Some(0), "{broken}: {checked:?}");
        assert!(checked.err.contains("warning["), "{broken}: {checked:?}");
        assert!(checked.err.contains("left out"), "{broken}: {checked:?}");
        let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Hi."]);
        assert_eq!((ran.code, ran.out.trim()), (Some(0), "Hello."), "{ran:?}");
        let ran = world.run(&["test", "--junit", "junit.xml"]);
        assert_eq!(ran.code, Some(3), "{broken}: {ran:?}");
        assert!(
            ran.out.contains("ok      greets"),
            "the others run: {ran:?}"
        );
        let file = if broken.contains("../bad.yaml") {
            "broken  bad.yaml"
        } else {
            "broken  tests/bad.yaml"
        };
        assert!(ran.out.contains(file), "{ran:?}");
        let xml = std::fs::read_to_string(world.folder.join("junit.xml")).unwrap();
        assert!(
            xml.contains("tests=\"2\" failures=\"0\" errors=\"1\""),
            "{xml}"
        );
        assert_eq!(
            world.run(&["check", "other.yaml"]).err,
            "Next:  steersman test other.yaml   steersman run other.yaml\n"
        );
    }
}

#[test]
fn a_definition_with_errors_is_an_errored_case() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk\nagents: { desk: { sytem: You help. } }\n",
    );
    let ran = world.run(&["test", "--junit", "junit.xml"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let xml = std::fs::read_to_string(world.folder.join("junit.xml")).unwrap();
    assert!(
        xml.contains("tests=\"1\" failures=\"0\" errors=\"1\""),
        "{xml}"
    );
    assert!(xml.contains("sytem"), "{xml}");
    let ran = world.run(&["test", "nosuch.yaml", "--junit", "none.xml"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let xml = std::fs::read_to_string(world.folder.join("none.xml")).unwrap();
    assert!(
        xml.contains("there is no definition `nosuch.yaml`"),
        "{xml}"
    );
}

#[test]
fn words_that_are_booleans_elsewhere_are_told_in_scripts_too() {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    let said = |script: &str| {
        world.write("script.yaml", script);
        world.run(&["run", "--script-all", "script.yaml", "--input", "Hi."])
    };
    for word in ["yes", "off", "NO", "True"] {
        let ran = said(&format!("desk: [ {word} ]\n"));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains("E0113"), "{ran:?}");
        assert!(ran.err.contains("script.yaml:1:9"), "{ran:?}");
        let ran = said(&format!("desk: [ \"{word}\" ]\n"));
        assert_eq!((ran.code, ran.out.trim()), (Some(0), word), "{ran:?}");
    }
    let ran = said("desk: [ n ]\n");
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "n"), "{ran:?}");
}

#[test]
fn what_was_asked_is_named_with_what_it_was_asked_for() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk\nagents: { desk: { system: You help., context: { compact: { when_tokens: 40, keep_exchanges: 1 } } } }\ntests:\n  long: { script: { desk: [ Hello to you and to all of yours who have come., Hello again to you and all of yours., And more of it for all. ] }, steps: [ { say: Hi there you all who have come to me today. }, { say: And again to you and to all of yours. }, { say: And more for us all. } ] }\n",
    );
    let ran = world.run(&["test"]);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(ran.out.contains("asked was `desk#compact`"), "{ran:?}");
}

#[test]
fn a_hint_is_about_what_went_wrong() {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    let told = |args: &[&str], wanted: &[&str], not: &str| {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        for wanted in wanted {
            assert!(ran.err.contains(wanted), "{wanted}: {ran:?}");
        }
        assert!(!ran.err.contains(not), "{ran:?}");
        assert!(!ran.err.contains("os error"), "{ran:?}");
    };
    let missing = ["run", "--script-all", "missing", "--input", "Hi."];
    told(
        &missing,
        &["there is no script `missing`", "answers by agent"],
        "offline: --script-all FILE",
    );
    let nowhere = ["run", "nosuchdir", "--input", "Hi."];
    told(
        &nowhere,
        &[
            "there is no definition `nosuchdir`",
            "a folder with a `steersman.yaml`",
        ],
        "--script-all",
    );
    for args in [
        &["--store", "x.db", "approve"][..],
        &["approve", "--store", "x.db"],
        &["fork", "--store", "x.db", "--quiet"],
    ] {
        told(args, &["Usage: steersman "], "--store <FILE>");
    }
    let script = "desk: [ Hello. ]\n";
    world.write("script.yaml", script);
    assert_eq!(
        world
            .run(&["run", "--script-all", "script.yaml", "--input", "Hi."])
            .code,
        Some(0)
    );
    world.write("there.yaml", "");
    world.write("file", "");
    for (out, wanted) in [
        ("none/x.yaml", "mkdir -p none"),
        ("there.yaml", "nothing is overwritten"),
        ("file/x.yaml", "name another place"),
    ] {
        told(
            &["test", "--record", "last", "--out", out],
            &[wanted, out],
            "os error",
        );
        told(
            &["export", "last", "--out", out],
            &[wanted, out],
            "os error",
        );
    }
    let shown = world
        .command(&["show", "last", "--color", "always"])
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stderr).unwrap();
    assert!(
        !shown
            .lines()
            .any(|line| line.ends_with("   \u{1b}[2m\u{1b}[0m")),
        "{shown:?}"
    );
}

/// The command that answers an approval is printed without trailing blanks.
#[test]
fn a_command_to_type_ends_where_it_ends() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk\ntools: { pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, approve: args.cents > 1, command: [\"true\"] } }\nagents: { desk: { system: You pay., tools: [pay] } }\n",
    );
    world.write(
        "script.yaml",
        "desk: [ { call: { pay: { cents: 5 } } }, Paid. ]\n",
    );
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Pay."]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    // The question is the call, in its usual form, and is printed once.
    assert_eq!(ran.err.matches("| pay(cents: 5) ").count(), 1, "{ran:?}");
    assert!(ran.err.contains("| because args.cents > 1 "), "{ran:?}");
    let why = world.run(&["why", "last"]);
    for told in [&ran, &why] {
        assert!(
            !told.err.contains("pay({") && !told.out.contains("pay({"),
            "{told:?}"
        );
    }
    assert!(
        why.out.contains("for approval") && why.out.contains("pay(cents: 5)"),
        "{why:?}"
    );
    let shown = world.run(&["show", "last"]);
    let typed: Vec<&str> = shown
        .err
        .lines()
        .filter(|line| line.contains("steersman approve"))
        .collect();
    assert_eq!(typed.len(), 1, "{shown:?}");
    assert_eq!(typed[0], typed[0].trim_end(), "{shown:?}");
}

/// A recorded test holds what people did on branches: forks, a join, an adoption.
#[test]
fn forks_joins_and_adoptions_are_recorded() {
    // The adoption of a branch that rests starts another branch at its end, so the log has a rewind.
    for (last, step) in [
        (&["join", "last", "fee"][..], "join: [ fee ]"),
        (&["adopt", "last:fee"], "rewind: fee"),
    ] {
        let world = World::new();
        world.write("steersman.yaml", DESK);
        let script = "desk: [ \"Paid:\\nall of it.\", Together. ]\ndesk@fee: [ Free. ]\n";
        world.write("script.yaml", script);
        let run = |args: &[&str]| {
            let ran = world.run(&[args, &["--script-all", "script.yaml"]].concat());
            assert_eq!(ran.code, Some(0), "{args:?} {ran:?}");
        };
        run(&["run", "--input", "Pay."]);
        run(&["fork", "last", "--say", "And the fee?", "--label", "fee"]);
        run(last);
        std::fs::create_dir(world.folder.join("tests")).unwrap();
        let ran = world.run(&["test", "--record", "last", "--out", "tests/all.yaml"]);
        assert_eq!(ran.code, Some(0), "{last:?} {ran:?}");
        let written = std::fs::read_to_string(world.folder.join("tests/all.yaml")).unwrap();
        for wanted in [
            "fork: main",
            "as: fee",
            step,
            "desk@fee:",
            "        - |-\n          Paid:\n          all of it.\n",
        ] {
            assert!(written.contains(wanted), "{wanted}: {written}");
        }
        assert!(!written.contains("\"tests\""), "{written}");
        let ran = world.run(&["test"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

#[test]
fn tests_ask_nothing_outside_unless_they_may() {
    let world = World::new();
    world.write(
        "net/steersman.yaml",
        r#"name: net
tools:
  look: { description: Looks., effect: read, command: [sh, -c, "echo looked >> book; echo seen"] }
  fetch: { description: Asks., effect: pure, http: { url: "http://127.0.0.1:9/" } }
  pay: { description: Pays., effect: unsafe, command: [sh, -c, "echo paid >> book"] }
agents:
  a: { system: You look., tools: [look, fetch, pay] }
tests:
  looks: { script: { a: [ { call: { look: {} } }, { call: { look: {} } }, Seen. ] }, steps: [ { say: Look. } ], expect: [ { answer: Seen. } ] }
  is_told: { script: { a: [ { call: { look: {} } }, Seen. ] }, tools: { look: [ seen ] }, steps: [ { say: Look. } ], expect: [ { answer: Seen. } ] }
  pays: { script: { a: [ { call: { pay: {} } }, Paid. ] }, steps: [ { say: Pay. } ], expect: [ { answer: Paid. } ] }
"#,
    );
    let book = || std::fs::read_to_string(world.folder.join("net/book")).unwrap_or_default();
    let ran = world.run(&["test", "net", "--name", "looks"]);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    for told in ["`look` was called", "tools: { look: [ RESULT ] }", "--real"] {
        assert!(ran.out.contains(told), "{told}: {ran:?}");
    }
    assert!(ran.err.contains("nothing outside was changed"), "{ran:?}");
    let ran = world.run(&["test", "net", "--name", "told"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("nothing outside was changed"), "{ran:?}");
    assert_eq!(book(), "");

    let ran = world.run(&["test", "net", "--name", "looks", "--real"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("For real ran: look twice."), "{ran:?}");
    let (_, document) = world.json(&["test", "net", "--name", "looks", "--real"]);
    assert_eq!(document["real"], serde_json::json!({ "look": 2 }));
    assert_eq!(book().lines().count(), 4);
    // An unsafe tool never runs, even with `--real`.
    let ran = world.run(&["test", "net", "--name", "pays", "--real"]);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(!book().contains("paid"));
}

/// `--quiet` says only what went wrong, and ends with the sum.
#[test]
fn a_quiet_run_prints_the_tests_that_failed_and_one_sum() {
    let world = two();
    let ran = world.run(&["test", "-q"]);
    assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{ran:?}");
    assert!(ran.out.starts_with("1 test in "), "{ran:?}");
    assert!(ran.out.contains("all passed"), "{ran:?}");
    assert_eq!(ran.out.lines().count(), 1, "{ran:?}");
    world.write(
        "tests/wrong.yaml",
        &GREETS
            .replace("greets", "is_wrong")
            .replace("answer: Hello.", "answer: Bye."),
    );
    let ran = world.run(&["test", "-q"]);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(ran.out.starts_with("failed  is_wrong"), "{ran:?}");
    assert!(!ran.out.contains("greets"), "{ran:?}");
    let sum = ran.out.lines().last().unwrap();
    assert!(
        sum.starts_with("2 tests in ") && sum.contains("1 failed"),
        "{ran:?}"
    );
}

/// A line to die at that the session does not have: the failure names the lines that it has, and what was done is counted.
#[test]
fn a_kill_that_is_not_reached_says_which_lines_there_are() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r"name: desk
tools: { pay: { description: Pays., effect: unsafe, command: [echo, ok] } }
agents: { desk: { system: You pay., tools: [pay] } }
tests:
  dies:
    script: { desk: [ { call: { pay: {} } }, Paid. ] }
    tools: { pay: [ ok ] }
    steps: [ { say: Pay. }, { kill: KILL }, { resume: true } ]
"
        .replace("KILL", "99")
        .as_str(),
    );
    let ran = world.run(&["test"]);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(ran.out.contains("dies   2 model calls"), "{ran:?}");
    let told = ran
        .out
        .lines()
        .find(|row| row.contains("line 99 was not reached"));
    let told = told.unwrap_or_else(|| panic!("{ran:?}"));
    assert!(told.contains("came to rest at line "), "{told}");
    let began = told.split("`pay` began at line ").nth(1).unwrap();
    let (line, rest) = began.split_once(' ').unwrap();
    assert!(rest.starts_with("and ended at line "), "{told}");
    // That line is the one at which it dies in the middle of the call.
    let text = std::fs::read_to_string(world.folder.join("steersman.yaml")).unwrap();
    let text = text.replace("kill: 99", &format!("kill: {line}"));
    let doubt = "steps: [ { say: Pay. }";
    assert!(text.contains(doubt));
    let expect = "    expect: [ { open: [ doubt pay ] } ]\n";
    world.write("steersman.yaml", &format!("{text}{expect}"));
    let ran = world.run(&["test"]);
    assert!(!ran.out.contains("was not reached"), "{ran:?}");
    assert!(!ran.out.contains("does not hold"), "{ran:?}");
}

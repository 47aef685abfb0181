//! Imports: each file of another program in `tests/imports`, with its warnings and the definition that is made of it.

#![expect(clippy::disallowed_methods, reason = "tests read their files")]

use serde_json::{Value as Json, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use steersman_definition::import::Imported;
use steersman_definition::import::aiwaves::{CODES, import};
use steersman_definition::{Compiled, Diagnostic, Files, compile_with_tests};
use steersman_testkit::replay::twice;

fn imported(path: &Path) -> (String, Imported) {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let name = path.file_stem().expect("a file").to_string_lossy();
    let made = import(&text, &name).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    (name.into_owned(), made)
}

/// Compiles a definition that must have no errors, and returns the other diagnostics.
fn checked(name: &str, yaml: String) -> (Compiled, Vec<Diagnostic>) {
    let (compiled, found) = compile_with_tests(&Files::new("steersman.yaml", yaml.as_str()), None);
    let Some(compiled) = compiled else {
        let found: Vec<String> = found.iter().map(|d| d.render(false)).collect();
        panic!("{name}\n{yaml}\n{}", found.join("\n"));
    };
    (compiled, found)
}

#[test]
fn each_file_becomes_a_definition_that_is_right_and_runs_as_it_says() {
    let warned = RefCell::new(BTreeSet::new());
    insta::glob!("../imports", "*.json", |path| {
        let (name, made) = imported(path);
        let mut shown = String::new();
        for warning in &made.warnings {
            warned.borrow_mut().insert(warning.code);
            writeln!(shown, "{:<12} {warning}", warning.code).expect("a text takes it");
        }
        let (_, found) = checked(&name, made.yaml.clone());
        for found in found {
            writeln!(shown, "{:<12} {}", found.code, found.message).expect("a text takes it");
        }
        insta::assert_snapshot!(format!("{shown}\n{}", made.yaml));

        let again = imported(path).1;
        assert_eq!(again, made, "{name}: the second import differs");
        for planted in ["sk-", "example", "t0ken", "a-key", "a-secret"] {
            assert!(!made.yaml.contains(planted), "{name} copies {planted}");
        }
        let Ok(tests) = std::fs::read_to_string(path.with_extension("tests.yaml")) else {
            return;
        };
        let (Compiled { network, tests, .. }, _) = checked(&name, made.yaml + &tests);
        let network = Arc::new(network);
        for (test, steps) in &tests {
            let ran = twice(&network, steps).unwrap_or_else(|e| panic!("{name}: {test}: {e}"));
            let failures = ran.failures.join("\n");
            let printed = &ran.world.printed;
            assert!(
                failures.is_empty(),
                "{name}: {test}:\n{failures}\n{printed}"
            );
        }
    });
    let known: BTreeSet<&str> = CODES.iter().map(|(code, _)| *code).collect();
    assert_eq!(warned.into_inner(), known, "each warning has a file");
}

#[test]
fn what_is_no_configuration_is_refused_with_its_place() {
    let rest = r#""agents": {"A": {"roles": {"s": "r"}}}, "states": {"s": {"agent_states": {"r": {}}}}, "relations": {"s": {"0": "end_state"}}"#;
    let cases = [
        ("not json", "", "no JSON"),
        ("[]", "", "no object"),
        ("{}", "agents", "missing"),
        (r#"{"agents": [], "states": {}}"#, "agents", "no object"),
        (r#"{"agents": {"A": {}}, "states": {}}"#, "states", "empty"),
        (&format!("{{{rest}}}"), "root", "missing"),
        (&format!("{{{rest}, \"root\": 3}}"), "root", "no name"),
        (
            &format!("{{{rest}, \"root\": \"t\"}}"),
            "root",
            "no state `t`",
        ),
        (
            &format!("{{{rest}, \"root\": \"end_state\"}}"),
            "root",
            "nobody would ever speak",
        ),
        (
            r#"{"root": "s", "agents": {"A": {"roles": {"s": "x"}}}, "states": {"s": {"agent_states": {"r": {}}}}, "relations": {"s": {"0": "end_state"}}}"#,
            "states.s",
            "nobody speaks",
        ),
        (
            r#"{"root": "s", "config": {"User_Names": "[\"B\"]"}, "agents": {"A": {"roles": {"s": "a"}}, "B": {"roles": {"s": "b"}}},
                "states": {"s": {"begin_role": "b", "begin_query": "Hi.", "agent_states": {"a": {}, "b": {}}}}, "relations": {"s": {"0": "end_state"}}}"#,
            "states.s",
            "nothing is said to them",
        ),
    ];
    for (text, path, part) in cases {
        let error = import(text, "x").expect_err(text);
        assert_eq!(error.path, path, "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
        assert!(!error.help.is_empty(), "{text}");
    }
    assert!(import(&format!("\u{feff}{{{rest}, \"root\": \"s\"}}"), "x").is_ok());
}

/// Any text of an imported file stays a text: it opens no expression, no key and no comment.
#[test]
fn texts_stay_texts() {
    let nasty = [
        "{{ state.x }}",
        "{% endset %}{{ 1 }}",
        "{",
        "{{{%",
        "a: b # c",
        "- x\n  - y",
        "line\r\nnext",
        "\u{7f}\u{85}\u{2028}end",
        " leading\n\ttab",
        "\"quoted\" \\ back",
        "prompts/x.md",
        "yes",
        "{# gone #}",
        "</end>",
    ];
    for text in nasty {
        let quoted = serde_json::to_string(text).unwrap();
        let config = format!(
            r#"{{"root": {quoted}, "agents": {{{quoted}: {{"style": {quoted}, "roles": {{{quoted}: {quoted}}}}}}},
                "states": {{{quoted}: {{"environment_prompt": {quoted}, "begin_role": {quoted}, "begin_query": {quoted},
                  "controller": {{"judge_system_prompt": {quoted}}},
                  "agent_states": {{{quoted}: {{"style": {{"role": {quoted}}}, "task": {{"task": {quoted}}}, {quoted}: {{}}}}}}}}}},
                "relations": {{{quoted}: {{"0": {quoted}, "1": "end_state"}}}}}}"#
        );
        let made = import(&config, text).unwrap_or_else(|e| panic!("{text:?}: {e}"));
        let (Compiled { network, .. }, _) = checked(text, made.yaml);
        let route = network.agents.values().find_map(|agent| match &agent.does {
            steersman_machine::network::Does::Route(route) => Some(route),
            _ => None,
        });
        let steersman_machine::network::RouteBy::States(graph) = &route.expect("a route").by else {
            panic!("no states");
        };
        let state = graph.states.values().next().expect("a state");
        let nothing = steersman_machine::values::expression::Names::default();
        let said = state.begin.as_ref().and_then(|begin| begin.say.as_ref());
        let said = said.expect("an opening").render(&nothing).expect(text);
        assert_eq!(said, text.replace("\r\n", "\n").trim_end(), "{text:?}");
        let told = state.speakers[0].instructions.as_ref().expect("a task");
        let told = told.render(&nothing).expect(text);
        let task = text.replace("\r\n", "\n");
        assert!(told.contains(task.trim()), "{text:?}: {told}");
    }
}

/// If any value of a file is missing or replaced, the import gives a valid definition or an error.
#[test]
fn a_file_with_a_fault_is_imported_or_refused_and_never_crashes() {
    let files = [
        include_str!("../imports/component_all.json"),
        include_str!("../imports/controller_wrong.json"),
        include_str!("../imports/settings.json"),
        include_str!("../imports/two_agents_with_a_person.json"),
    ];
    let others = [
        json!(null),
        json!(""),
        json!("talk"),
        json!("end_state"),
        json!(-3),
        json!([]),
        json!([1, "r1"]),
        json!({}),
        json!({ "0": "ask", "task": { "task": "x" } }),
    ];
    for file in files {
        let whole: Json = serde_json::from_str(file).unwrap();
        let mut paths = Vec::new();
        pointers(&whole, "", &mut paths);
        for (n, path) in paths.iter().enumerate() {
            let (parent, key) = path.rsplit_once('/').expect("a pointer");
            let mut without = whole.clone();
            let parent = without.pointer_mut(parent).expect("it is there");
            if let Json::Object(fields) = parent {
                fields.remove(&key.replace("~1", "/").replace("~0", "~"));
            }
            let mut other = whole.clone();
            *other.pointer_mut(path).expect("it is there") = others[n % others.len()].clone();
            for text in [without.to_string(), other.to_string()] {
                match import(&text, "x") {
                    // `import` returns only definitions that pass `check`.
                    Ok(made) => assert!(made.yaml.ends_with('\n'), "{text}"),
                    Err(error) => assert!(!error.message.is_empty(), "{text}"),
                }
            }
        }
    }
}

fn pointers(value: &Json, at: &str, into: &mut Vec<String>) {
    let Json::Object(fields) = value else { return };
    for (key, value) in fields {
        let path = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        pointers(value, &path, into);
        into.push(path);
    }
}

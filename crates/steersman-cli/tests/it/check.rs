//! `--help`, `new`, `check`, `test`, `schema`, `explain`: commands that need no session.

use crate::world::World;
use insta::assert_snapshot;
use serde_json::Value as Json;

#[test]
fn help_shows_the_groups() {
    let world = World::new();
    assert_snapshot!(world.page(&["--help"]));
    assert_eq!(world.run(&[]).code, Some(2));
    assert_eq!(world.run(&["--version"]).code, Some(0));
}

#[test]
fn wrong_use_says_what_to_do() {
    let world = World::new();
    let pages: Vec<String> = [
        &["sessions"][..],
        &["show"],
        &["run"],
        &["run", "nothere.yaml", "--input", "x"],
        &["check", "nothere.yaml"],
        &["explain", "E9999"],
        &["new", "Bank"],
        &["approve", "last"],
        &["resolve", "last"],
        &["sessions", "--where", "status"],
    ]
    .iter()
    .map(|args| world.page(args))
    .collect();
    assert_snapshot!(pages.join("\n"));
}

#[test]
fn errors_of_a_definition_are_shown_at_once() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r#"steersman: 1
name: bank
config:
  limit: { env: APPROVAL_LIMIT, default: "100" }
state:
  balance: { type: integer, optional: true }
tools:
  transfer_money:
    description: Moves money.
    parameters: { to: string, amount: integer }
    requires: args.amount <= state.balance
    approve: args.amount > config.limit
    http: { url: "http://127.0.0.1:1/transfers", json: "{{ args }}" }
agents:
  transfers: { system: You move money., tools: [tranfer_money] }
"#,
    );
    assert_snapshot!(world.page(&["check"]));
    let (code, document) = world.json(&["check"]);
    assert_eq!(code, Some(3));
    assert_eq!(document["ok"], false);
    // A definition with errors starts no session.
    assert_eq!(world.run(&["run", "--input", "hi"]).code, Some(3));
    assert!(!world.folder.join(".steersman/sessions.db").exists());
}

#[test]
fn what_new_writes_is_right_and_its_tests_pass() {
    let world = World::new();
    let mut pages = vec![world.page(&["new", "bank"])];
    pages.push(world.page(&["check", "bank"]));
    pages.push(world.page(&["test", "bank"]));
    pages.push(world.page(&["new", "bank"]));
    assert_snapshot!(pages.join("\n"));
}

#[test]
fn a_test_that_fails_says_how() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r"state: { n: { type: integer, default: 4 } }
agents: { greeter: { system: You greet. } }
tests:
  greets: { script: { greeter: [ Hello. ] }, steps: [ { say: Hi } ], expect: [ { answer: Good day. } ] }
  says_too_much: { script: { greeter: [ Hello., More. ] }, steps: [ { say: Hi } ], expect: [ { answer: Hello. } ] }
  waits_for_nothing: { script: { greeter: [ Hello. ] }, steps: [ { say: Hi }, { approve: it } ] }
  has_no_answer: { script: {}, steps: [ { say: Hi }, { approve: it } ] }
  counts_wrong: { script: { greeter: [ Hello. ] }, steps: [ { say: Hi } ], expect: [ { that: state.n == 3 and not (answer == 'x') } ] }
",
    );
    assert_snapshot!(world.page(&["test"]));
    assert_eq!(world.run(&["test"]).code, Some(8));
    assert_eq!(world.run(&["test", "--name", "no such test"]).code, Some(2));
}

#[test]
fn the_schema_is_the_committed_one() {
    let world = World::new();
    let schema = world.run(&["schema"]).out;
    let file = crate::world::root().join("docs/reference/steersman.schema.json");
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == schema,
        "docs/reference/steersman.schema.json is not what `steersman schema` prints"
    );
}

#[test]
fn the_word_that_check_shows_is_that_of_the_sessions_that_start_here() {
    let mut world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk\nconfig: { limit: { type: integer, env: LIMIT } }\nagents: { desk: { system: \"At most {{ config.limit }}.\" } }\n",
    );
    world.write("script.yaml", "desk: [Hello.]\n");
    let (code, told) = world.json(&["check"]);
    assert_eq!((code, &told["digest"]), (Some(0), &Json::Null), "{told}");
    let mut words = Vec::new();
    for limit in ["3", "4"] {
        world.set("LIMIT", limit);
        let (_, told) = world.json(&["check"]);
        let digest = told["digest"].as_str().unwrap().to_owned();
        let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Hi."]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let listed = world.json_lines(&["sessions"]);
        let word = listed[0]["definition"].as_str().unwrap().to_owned();
        assert!(digest.starts_with(&word), "{digest} {word}");
        for shown in [
            world.run(&["check"]).out,
            ran.err,
            world.run(&["show", "last"]).out,
        ] {
            assert!(shown.contains(&word), "{word} is not in {shown}");
        }
        words.push(word);
    }
    assert_ne!(words[0], words[1], "other values make another binding");
}

/// The file of the schema has 3 KB. If the references in it were expanded without a bound, `check` would not end.
#[test]
fn a_schema_file_that_doubles_itself_is_refused() {
    let world = World::new();
    let mut defs = serde_json::Map::new();
    for k in 0..28 {
        let next = serde_json::json!({ "$ref": format!("#/$defs/d{}", k + 1) });
        defs.insert(
            format!("d{k}"),
            serde_json::json!({ "anyOf": [next, next] }),
        );
    }
    defs.insert("d28".into(), serde_json::json!({ "type": "string" }));
    let schema = serde_json::json!({
        "type": "object", "$defs": defs, "properties": { "x": { "$ref": "#/$defs/d0" } },
    });
    world.write("net/look.json", &schema.to_string());
    world.write(
        "net/steersman.yaml",
        "name: net\ntools:\n  look: { description: Looks., effect: read, parameters: look.json, command: [echo] }\nagents:\n  a: { system: S., tools: [look] }\n",
    );
    let ran = world.run(&["check", "net"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let told = "error[E0120]: the schema `look.json` cannot be used: ";
    assert!(
        ran.err.contains(told) && ran.err.contains("more than 10000 schemas"),
        "{}",
        ran.err
    );
}

#[test]
fn the_document_has_all_that_the_terminal_shows() {
    let world = World::new();
    world.write(
        "desks/net/steersman.yaml",
        "state: { topic: { type: string, optional: true } }\nagents:\n  lead: { system: 'über {{ state.topik }}' }\n  desk: { system: S., goal: G., role: R. }\nentry: [lead, desk]\n",
    );
    let page = world.page(&["check", "desks/net"]);
    assert!(page.contains("--> desks/net/steersman.yaml:3:"), "{page}");
    let (code, document) = world.json(&["check", "desks/net"]);
    assert_eq!(code, Some(3));
    let found = document["diagnostics"].as_array().expect("a list");
    let of = |code: &str| {
        let found = found.iter().find(|found| found["code"] == code);
        found.unwrap_or_else(|| panic!("no {code} in {document:#}"))
    };

    let topic = of("E0202");
    assert_eq!(topic["file"], "desks/net/steersman.yaml");
    assert_eq!(topic["label"], "did you mean `topic`?");
    let range = serde_json::json!({
        "start": { "line": 2, "character": 33 },
        "end": { "line": 2, "character": 38 },
    });
    assert_eq!(topic["lsp"]["range"], range);
    assert_eq!(topic["lsp"]["severity"], 1);
    let action = &topic["actions"][0];
    assert_eq!(action["kind"], "quickfix");
    let uri = topic["uri"].as_str().expect("an address");
    let end = "/desks/net/steersman.yaml";
    assert!(uri.starts_with("file:///") && uri.ends_with(end), "{uri}");
    let edit = &action["edit"]["changes"][uri][0];
    assert_eq!(edit["newText"], "topic");
    assert_eq!(edit["range"], range);

    let role = of("E0105");
    assert_eq!(role["labels"][0]["text"], "and here");
    assert_eq!(role["labels"][0]["line"], 4);
    assert!(
        role["help"]
            .as_str()
            .is_some_and(|help| help.contains("`system`"))
    );
    let related = &role["lsp"]["relatedInformation"][0];
    assert_eq!(related["location"]["uri"], uri);
    // every text of the terminal is in the document
    let all = document.to_string();
    for line in page.lines() {
        let told = ["= note: ", "= help: "];
        if let Some((_, text)) = told.iter().find_map(|kind| line.split_once(kind)) {
            let text = serde_json::to_string(text).expect("a text");
            assert!(all.contains(text.trim_matches('"')), "{text}");
        }
    }

    // from the folder itself, and from elsewhere by its full path
    let full = world.folder.join("desks/net").display().to_string();
    let page = world.page(&["check", &full]);
    assert!(page.contains("net/steersman.yaml:3:"), "{page}");
}

#[test]
fn a_file_that_is_no_text_is_told_with_the_line() {
    let world = World::new();
    std::fs::write(
        world.folder.join("latin.yaml"),
        b"name: desk\nagents: { caf\xe9: {} }\n",
    )
    .unwrap();
    let ran = world.run(&["check", "latin.yaml"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let told = "line 2 has the byte 0xe9 at column 14";
    assert!(ran.err.contains(told), "{ran:?}");
}

#[test]
fn a_session_is_found_by_what_its_event_brought() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r#"name: desk
models: { default: { provider: scripted } }
events:
  mail:
    fields: { id: string, order: string }
    id: "{{ event.id }}"
    start: { args: { order: "{{ event.order }}" }, message: Hello. }
labels: { order: "{{ args.order }}" }
outcome: { about: args.order }
agents: { desk: { parameters: { order: string }, system: You help. } }
"#,
    );
    world.write("script.yaml", "desk: [ Done. ]\n");
    for order in ["a1", "b2", "c3"] {
        let fields = format!(r#"{{"id": "{order}", "order": "{order}"}}"#);
        let sent = [
            "send",
            ".",
            "--event",
            "mail",
            &fields,
            "--script-all",
            "script.yaml",
        ];
        assert_eq!(world.run(&sent).code, Some(0));
        let ran = world.run(&["run", "--resume", "last", "--script-all", "script.yaml"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let found = |filter: &str| world.json_lines(&["sessions", "--where", filter]).len();
    assert_eq!(found("order = b2"), 1);
    assert_eq!(found("order = a1 or order = c3"), 2);
    assert_eq!(found("order = a1 or order = c3 and status = failed"), 1);
}

#[test]
fn many_mistakes_are_counted() {
    let world = World::new();
    let names: Vec<String> = (0..300).map(|k| format!("gone_{k}")).collect();
    let text = format!(
        "name: net\nagents:\n  a: {{ system: \"{{{{ state.x }}}}\", tools: [{}] }}\n",
        names.join(", ")
    );
    world.write("net/steersman.yaml", &text);
    let ran = world.run(&["check", "net"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert_eq!(ran.err.matches("error[").count(), 100);
    assert!(
        ran.err.contains("\n201 more are not shown: E0201 (201)."),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("301 errors. Nothing was run."),
        "{}",
        ran.err
    );
    let (_, document) = world.json(&["check", "net"]);
    assert_eq!(document["diagnostics"].as_array().unwrap().len(), 100);
    let more: i64 = document["more"]
        .as_object()
        .unwrap()
        .values()
        .map(|n| n.as_i64().unwrap())
        .sum();
    assert_eq!(more, 201);
}

/// The last line of `check` agrees with its warnings.
#[test]
fn all_is_called_reachable_only_if_it_is() {
    let world = World::new();
    let desk = |more: &str| {
        format!(
            "name: n\nagents:\n  a: {{ system: x, description: a }}\n  b: {{ system: x, description: b }}\n  c: {{ system: x, description: c }}\n  \
             desk: {{ route: {{ handoff: {{ a: [b], b: [], c: [a] }}, start: {more} }} }}\nentry: desk\n"
        )
    };
    world.write("steersman.yaml", &desk("a"));
    let ran = world.run(&["check"]);
    assert!(ran.all().contains("W0201"), "{ran:?}");
    let said = "no member of `desk` hands over to `c`";
    assert!(ran.all().contains(said), "{ran:?}");
    assert!(
        ran.out.contains("Not all reachable; all names known"),
        "{ran:?}"
    );
    world.write("steersman.yaml", &desk("c"));
    let ran = world.run(&["check"]);
    assert!(!ran.all().contains("W0201"), "{ran:?}");
    assert!(
        ran.out.contains("All reachable, all names known"),
        "{ran:?}"
    );
    let forgotten = format!(
        "{}  z: {{ system: x }}\n",
        desk("c").replace("entry: desk\n", "")
    );
    world.write("steersman.yaml", &format!("{forgotten}entry: desk\n"));
    let ran = world.run(&["check"]);
    assert!(ran.out.contains("Not all reachable"), "{ran:?}");
}

/// A program in the definition's folder is looked for before a session needs it.
#[test]
fn a_program_that_is_not_there_is_told() {
    let world = World::new();
    let desk = "name: desk\ntools:\n  find: { description: Finds., effect: read, command: [./shop.sh, find] }\n  list: { description: Lists., effect: read, command: [ls] }\nagents: { desk: { system: x, tools: [find, list] } }\n";
    world.write("steersman.yaml", desk);
    let missing = "`./shop.sh`, the program of the tool `find`, is not there";
    let ran = world.run(&["check"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains(missing), "{ran:?}");
    let ran = world.run(&["doctor", "."]);
    assert!(ran.all().contains(missing), "{ran:?}");
    let path = world.folder.join("shop.sh");
    std::fs::write(&path, "#!/bin/sh\n").unwrap();
    let ran = world.run(&["check"]);
    assert!(ran.err.contains("may not be run"), "{ran:?}");
    let may = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, may).unwrap();
    let ran = world.run(&["check"]);
    assert!(!ran.err.contains("shop.sh"), "{ran:?}");
}

/// One mistake is one error, and not also what follows from it.
#[test]
fn what_follows_from_a_wrong_key_is_not_reported() {
    let world = World::new();
    let desk = "name: desk\nstate: { n: { type: integer, default: 0 } }\ntools:\n  add: { description: Adds., set: { n: \"{{ state.n + 1 }}\" } }\nagents:\n  boss: { person: { role: boss } }\n  desk: { system: \"{{ state.n }}\", tools: [add, boss] }\nentry: desk\n";
    world.write("steersman.yaml", desk);
    assert_eq!(world.run(&["check"]).code, Some(0));
    for (key, typo) in [
        ("agents:", "agent:"),
        ("tools:\n", "tool:\n"),
        ("state: {", "stat: {"),
    ] {
        world.write("steersman.yaml", &desk.replacen(key, typo, 1));
        let ran = world.run(&["check"]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.err.contains("did you mean"), "{ran:?}");
        assert!(ran.err.contains("1 error."), "{ran:?}");
    }
    // A file of tests is no definition.
    world.write("steersman.yaml", desk);
    world.write("tests/desk.yaml", "tests:\n  one: { script: { desk: [Hi.] }, steps: [ { say: Hi. } ], expect: [ { that: state.n == 0 } ] }\n");
    assert_eq!(world.run(&["check"]).code, Some(0));
    let ran = world.run(&["check", "tests/desk.yaml"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.err
            .contains("this is a file of tests, and no definition"),
        "{ran:?}"
    );
    assert!(ran.err.contains("1 error."), "{ran:?}");
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let world = World::new();
    let desk = "name: desk\nagents:\n  boss: { description: b, person: { role: boss } }\n  a: { system: x, description: a }\n  desk: { route: { handoff: { a: [boss] } } }\nentry: desk\n";
    world.write("steersman.yaml", desk);
    let ran = world.run(&["check"]);
    assert!(
        ran.err.contains("`boss` is no member of this handoff"),
        "{ran:?}"
    );
    assert!(ran.err.contains("add `boss: []`"), "{ran:?}");
    world.write(
        "steersman.yaml",
        &desk.replace("a: [boss]", "a: [boss], boss: []"),
    );
    assert_eq!(world.run(&["check"]).code, Some(0));
    world.write(
        "steersman.yaml",
        "name: desk\nagents: { desk: { system: \"{{ args.message | frobnicate }}\" } }\n",
    );
    let ran = world.run(&["check"]);
    assert!(
        ran.err
            .contains("there is no filter `frobnicate`; there are abs,"),
        "{ran:?}"
    );
}

/// A page of `explain` has no marks of Markdown on a terminal.
#[test]
fn explain_shows_examples_without_fences() {
    let ran = World::new().run(&["explain", "W0201"]);
    assert!(!ran.out.contains("```"), "{ran:?}");
    assert!(!ran.out.contains("# W0201"), "{ran:?}");
    assert!(ran.out.contains("\n    agents:\n"), "{ran:?}");
}

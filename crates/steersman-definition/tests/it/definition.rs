//! Definitions as data: each file of `tests/definitions` compiles, or its diagnostics are a snapshot.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use steersman_definition::summary::Summary;
use steersman_definition::{
    Compiled, Diagnostic, Files, Node, codes, compile, compile_node, compile_stored,
    compile_with_tests, explain, reference, schema, wanted,
};
use steersman_machine::network::Network;

#[expect(clippy::disallowed_methods, reason = "tests read their cases")]
fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A file of a folder, with all files that it names.
fn load(path: &Path) -> Files {
    let folder = path.parent().expect("a file in a folder");
    let name = path.file_name().expect("a file").to_string_lossy();
    let mut files = Files::new(name, read(path).expect("a readable file"));
    loop {
        let before = files.paths().count();
        for path in wanted(&files) {
            if let Some(text) = read(&folder.join(&path)) {
                files.add(path, text);
            }
        }
        if files.paths().count() == before {
            return files;
        }
    }
}

fn case(name: &str) -> Files {
    load(&folder("tests/definitions").join(format!("{name}.yaml")))
}

fn errors(found: &[Diagnostic]) -> Vec<&'static str> {
    let errors = found.iter().filter(|diagnostic| diagnostic.is_error());
    errors.map(|diagnostic| diagnostic.code).collect()
}

fn network(name: &str, text: &str) -> Network {
    let (network, found) = compile(&Files::new(name, text));
    network.unwrap_or_else(|| panic!("{}", show(None, &found)))
}

fn show(compiled: Option<&Compiled>, found: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in found {
        writeln!(text, "{diagnostic}\n").expect("a string takes it");
    }
    match compiled {
        // digests have their own test
        Some(Compiled { network, tests, .. }) => {
            let summary = Summary::of(network, tests.len()).to_string();
            text.push_str(&summary.replace(&network.digest.short(), "DIGEST"));
        }
        None => text.push_str("refused\n"),
    }
    text
}

#[test]
fn each_file_compiles_or_says_what_is_wrong() {
    insta::glob!("../definitions", "*.yaml", |path| {
        let (compiled, found) = compile_with_tests(&load(path), None);
        assert_eq!(compiled.is_none(), !errors(&found).is_empty());
        insta::assert_snapshot!(show(compiled.as_ref(), &found));
    });
}

#[test]
fn each_definition_of_the_format_compiles() {
    let built = [
        "native_net",
        "react_with_a_tool",
        "react_limits",
        "react_with_reflection",
        "login_before_a_transfer",
        "unusable_answers_of_a_router",
        "one_of_two_calls_is_approved",
        "handoffs",
        "a_named_child_is_called_again",
        "two_branches_of_a_person_are_joined",
        "four_kinds_of_reflection",
        "modes_planning_and_execution",
        "rules_by_state",
        "rules_then_a_model",
        "agents_in_order",
        "a_wait_survives_a_kill",
        "debate_of_34_messages",
        "answers_of_a_judge_of_states",
        "a_person_speaks_in_turn",
        "extraction_and_views",
        "something_of_everything",
        "bank",
        "clinic",
        "invoice",
        "research",
    ];
    for name in built {
        let (network, found) = compile(&case(name));
        assert!(network.is_some(), "{name}: {}", show(None, &found));
    }
}

#[test]
fn every_code_has_a_page_whose_example_gives_it() {
    for code in codes() {
        let page = explain(code).expect("a page of its own");
        assert!(page.starts_with(&format!("# {code}: ")), "{code}");
        let blocks = blocks(page);
        let block = |wanted: &str| {
            let found = blocks.iter().find(|(head, _)| head == wanted);
            &found
                .unwrap_or_else(|| panic!("{code} has no `{wanted}`"))
                .1
        };
        let files = |main: &str| {
            let files = Files::new("steersman.yaml", main);
            blocks.iter().fold(files, |mut files, (head, text)| {
                if let Some(path) = head.strip_prefix("text file=") {
                    files.add(path, text.as_str());
                } else if let Some(path) = head.strip_prefix("text missing=") {
                    files.cannot_read(path, text.trim());
                }
                files
            })
        };
        let (_, found) = compile(&files(block("yaml bad")));
        let given: BTreeSet<_> = found.iter().map(|diagnostic| diagnostic.code).collect();
        assert!(given.contains(code), "{code} is not in {given:?}");
        assert_eq!(given.len(), 1, "{}", show(None, &found));
        let (network, found) = compile(&files(block("yaml good")));
        assert!(found.is_empty(), "{code}: {}", show(None, &found));
        assert!(network.is_some(), "{code}");
    }
}

#[test]
fn every_diagnostic_has_a_page() {
    for file in ["structure", "names", "types", "effects"] {
        let path = folder("src/diagnostic").join(format!("{file}.rs"));
        let text = read(&path).expect("a source file");
        for code in text.split("Self::new(").skip(1) {
            let code = code.split('"').nth(1).expect("a code comes first");
            assert!(explain(code).is_some(), "{code} of {file}.rs has no page");
        }
    }
}

/// Fenced blocks of a page: the words after the fence, and the text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut parts = page.split("```").skip(1);
    while let Some(block) = parts.next() {
        let (head, text) = block.split_once('\n').expect("a fence has a line");
        blocks.push((head.to_owned(), text.to_owned()));
        parts.next();
    }
    blocks
}

const BANK: &str = r#"
steersman: 1
name: bank
config:
  limit: { type: number, env: LIMIT, default: 100 }
  url: { type: string, env: URL, default: "http://127.0.0.1:1", live: true }
state:
  balance: { type: integer, optional: true }
tools:
  look:
    description: The balance.
    effect: read
    http: { url: "{{ config.url }}/balance", headers: { b: x, a: y } }
    set: { balance: "{{ result.cents }}" }
  pay:
    description: Pay.
    parameters: { to: string, cents: integer }
    effect: unsafe
    approve: { when: args.cents > config.limit, by: user }
    http: { url: "{{ config.url }}/pay", json: { cents: "{{ args.cents }}", to: "{{ args.to }}" } }
agents:
  teller: { system: prompts/teller.md, tools: [look, pay, todo, ask] }
tests:
  one: { script: { teller: [Hello.] }, steps: [ { say: Hi. } ], expect: [ { answer: Hello. } ] }
"#;

fn bank(text: &str) -> Network {
    let files = Files::new("bank.yaml", text).with("prompts/teller.md", "You are a teller.\n");
    let (network, found) = compile(&files);
    network.unwrap_or_else(|| panic!("{}", show(None, &found)))
}

#[test]
fn the_digest_is_of_what_shapes_sessions() {
    let digest = |text: &str| bank(text).digest;
    let same = digest(BANK);
    let equal = [
        (
            "a comment",
            BANK.replace("state:\n", "# a comment\nstate:\n"),
        ),
        ("a test", BANK.replace("say: Hi.", "say: Hello.")),
        (
            "order of a map",
            BANK.replace("{ b: x, a: y }", "{ a: y, b: x }"),
        ),
        ("style", BANK.replace("name: bank", "name: \"bank\"")),
        ("a live value", BANK.replace("127.0.0.1:1", "127.0.0.1:2")),
    ];
    for (what, text) in equal {
        assert_ne!(text, BANK, "{what}");
        assert_eq!(digest(&text), same, "{what} is no part of the digest");
    }
    let other = [
        ("a policy", BANK.replace("default: 100", "default: 101")),
        ("a class", BANK.replace("effect: read", "effect: pure")),
        ("order of a list", BANK.replace("look, pay", "pay, look")),
        (
            "order of parameters",
            BANK.replace(
                "{ to: string, cents: integer }",
                "{ cents: integer, to: string }",
            ),
        ),
    ];
    for (what, text) in other {
        assert_ne!(text, BANK, "{what}");
        assert_ne!(digest(&text), same, "{what} is part of the digest");
    }
    let files = Files::new("bank.yaml", BANK).with("prompts/teller.md", "You are another.\n");
    let other = compile(&files).0.expect("it compiles").digest;
    assert_ne!(other, same, "a prompt's text is part of the digest");
}

/// A network without its tests, as text.
fn shape(network: Network) -> String {
    format!("{network:?}")
}

#[test]
fn the_stored_form_gives_the_same_network() {
    let again = compile_stored(&bank(BANK).source)
        .expect("it compiles again")
        .network;
    assert_eq!(again.digest, bank(BANK).digest);
    assert_eq!(shape(again), shape(bank(BANK)));
    for entry in std::fs::read_dir(folder("tests/definitions")).expect("it is there") {
        let name = entry.expect("it can be read").file_name();
        let name = name.to_str().expect("it is UTF-8");
        let Some(name) = name.strip_suffix(".yaml").filter(|n| !n.contains('-')) else {
            continue;
        };
        let Some(network) = compile(&case(name)).0 else {
            continue;
        };
        let again = compile_stored(&network.source);
        let again = again.unwrap_or_else(|found| panic!("{name}: {found}"));
        assert_eq!(shape(again.network), shape(network), "{name}");
    }
    let refused = compile_stored("no JSON").unwrap_err();
    assert!(refused.starts_with("it is no JSON"), "{refused}");
    assert!(compile_stored("{}").is_err());
}

#[test]
fn a_tree_that_was_built_is_the_definition_that_is_written() {
    let text = |text: &str| Node::text(text);
    let tool = Node::map([
        ("description", text("Add.")),
        ("effect", text("pure")),
        ("native", Node::integer(1)),
        (
            "parameters",
            Node::map([("a", text("integer")), ("b", text("integer"))]),
        ),
    ]);
    let agent = Node::map([
        ("system", text("You add.")),
        ("tools", Node::list([text("add")])),
    ]);
    let root = Node::map([
        ("name", text("adder")),
        ("tools", Node::map([("add", tool)])),
        ("agents", Node::map([("adder", agent)])),
    ]);
    let (built, found) = compile_node(root, &Files::default());
    let built = built.unwrap_or_else(|| panic!("{}", show(None, &found)));
    let written = network(
        "adder.yaml",
        "tools:\n  add: { parameters: { a: integer, b: integer }, description: Add., effect: pure, native: 1 }\n\
         agents: { adder: { system: You add., tools: [add] } }\n",
    );
    assert_eq!(shape(built), shape(written));

    let root = Node::map([(
        "agents",
        Node::map([("a", Node::map([("sytem", text("x"))]))]),
    )]);
    let (network, found) = compile_node(root, &Files::default());
    assert!(network.is_none());
    insta::assert_snapshot!(show(None, &found));
}

#[test]
fn what_is_too_big_is_refused_at_once() {
    let greeter = "agents: { a: { system: x } }\n";
    let long = format!("{greeter}# {}", "x".repeat(10 << 20));
    let flow = format!("a: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let block = (0..5_000).fold(String::new(), |mut text, n| {
        writeln!(text, "{}a:", " ".repeat(n)).expect("a string takes it");
        text
    });
    let dashes = "- ".repeat(100_000);
    let many = format!("a: [{}]", "1,".repeat(400_000));
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..9 {
        let alias = format!("*a{},", n - 1);
        writeln!(bomb, "a{n}: &a{n} [{}]", alias.repeat(10)).expect("a string takes it");
    }
    for text in [long, flow, block, dashes, many, bomb] {
        let (network, found) = compile(&Files::new("steersman.yaml", text));
        assert!(network.is_none());
        assert_eq!(errors(&found), ["E0102"], "{}", show(None, &found[..1]));
    }
}

/// A line of a log holds each default once, whatever a tick starts. So the limit is for all defaults together.
#[test]
fn large_defaults_are_refused_together() {
    let of = |bytes: usize| {
        let long = "x".repeat(bytes);
        let text = format!(
            "state: {{ one: {{ type: string, default: {long} }} }}\n\
             agents: {{ a: {{ system: x, state: {{ two: {{ type: string, default: {long} }} }} }} }}\n"
        );
        compile(&Files::new("steersman.yaml", text)).1
    };
    assert!(errors(&of(8_000)).is_empty(), "{}", show(None, &of(8_000)));
    let found = of(8_200);
    assert_eq!(errors(&found), ["E0102"]);
    assert_eq!(
        found[0].message,
        "with this one the defaults of state are too large"
    );
}

/// Unquoted braces are reported, also at the beginning of a file.
#[test]
fn unquoted_braces_are_told_wherever_they_are() {
    for text in [
        "{{ x }}: y\n",
        "agents: { a: {{ x }} }\n",
        "agents:\n  {{ x }}: y\n",
    ] {
        let (network, found) = compile(&Files::new("steersman.yaml", text));
        assert!(network.is_none());
        assert!(errors(&found).contains(&"E0112"), "{}", show(None, &found));
    }
}

#[test]
fn deep_expressions_are_refused_without_a_crash() {
    let deep = format!("{}1{}", "(".repeat(5_000), ")".repeat(5_000));
    let text = format!(
        "tools:\n  t: {{ description: T., effect: pure, native: 1, requires: \"{deep} > 0\" }}\n\
         agents: {{ a: {{ system: x, tools: [t] }} }}\n"
    );
    let (network, found) = compile(&Files::new("steersman.yaml", text));
    assert!(network.is_none());
    assert_eq!(errors(&found), ["E0301"]);
}

#[test]
fn the_schema_names_every_table_and_resolves() {
    let schema = schema();
    let text = schema.to_string();
    for reference in text.split("\"$ref\":\"#/$defs/").skip(1) {
        let name = reference.split('"').next().expect("a quoted reference");
        assert!(schema["$defs"][name].is_object(), "{name}");
    }
    for name in ["Agent", "Http", "Tool", "Wait", "Limits", "Expect", "Rule"] {
        assert!(schema["$defs"][name]["properties"].is_object(), "{name}");
    }
    let tool = &schema["$defs"]["Tool"]["properties"];
    assert_eq!(tool["effect"]["enum"][0], "pure");
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn the_reference_is_that_of_the_table() {
    let path = "../../docs/reference/definition.md";
    let page = read(&folder(path)).expect("the page of the reference");
    let (head, _) = page.split_once("\n## File\n").expect("its first table");
    is_kept(path, &format!("{head}{}", reference()));
}

#[test]
fn the_reference_of_the_schema_is_that_of_the_table() {
    is_kept(
        "../../docs/reference/steersman.schema.json",
        &format!("{:#}\n", schema()),
    );
}

/// Compares a file with its content as it is made now. `UPDATE=1 cargo test` writes the file again.
fn is_kept(path: &str, made: &str) {
    let path = folder(path);
    if std::env::var_os("UPDATE").is_some() {
        #[expect(clippy::disallowed_methods, reason = "a test that updates its file")]
        std::fs::write(&path, made).expect("a writable file");
        return;
    }
    let written = read(&path).expect("a file that is kept");
    assert!(
        written == made,
        "{}: UPDATE=1 writes it again",
        path.display()
    );
}

#[test]
fn names_of_files_are_asked_for_until_nothing_is_wanted() {
    let files = Files::new(
        "a/steersman.yaml",
        "import: [../lib/x.yaml]\nagents: { a: { system: p.md } }",
    );
    let wanted_first: Vec<String> = wanted(&files).into_iter().collect();
    assert_eq!(wanted_first, ["a/p.md", "lib/x.yaml"]);
    let files = files.with("lib/x.yaml", "agents: { b: { system: q.txt } }");
    let wanted_then: Vec<String> = wanted(&files).into_iter().collect();
    assert_eq!(wanted_then, ["a/p.md", "lib/q.txt"]);
}

#[test]
fn thousands_of_tools_compile_in_a_moment() {
    let mut text = "state: { a: optional string }\ntools:\n".to_owned();
    let mut names = String::new();
    for n in 0..3_000 {
        writeln!(
            text,
            "  t{n}: {{ description: T., effect: read, parameters: {{ a: string }}, native: 1, requires: args.a == \"x\" }}"
        )
        .expect("a string takes it");
        write!(names, "t{n}, ").expect("a string takes it");
    }
    writeln!(text, "agents:\n  a: {{ system: x, tools: [{names}] }}").expect("a string takes it");
    let network = network("many.yaml", &text);
    let declared = network.tools.keys().filter(|name| name.starts_with('t'));
    assert_eq!(declared.count(), 3_000);
}

#[test]
fn a_partial_that_lacks_what_it_reads_is_found_where_it_is_included() {
    let text = "agents: { a: { system: \"Hello. {% include 'steersman/task' %}\" } }";
    let (network, found) = compile(&Files::new("x.yaml", text));
    assert!(network.is_none());
    let [found] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert!(found.message.contains("`task`"), "{found}");
    let at = found.at.as_ref().expect("a place");
    assert!(text[at.span.clone()].contains("include"), "{found}");
}

#[test]
fn every_name_of_a_built_in_tool_is_reserved() {
    use steersman_machine::stored::built_in::BuiltIn;
    let words = BuiltIn::ALL.iter().map(|tool| tool.name());
    let mut names: BTreeSet<&str> = words.chain(BuiltIn::sets()).collect();
    names.extend(["stay", "user", "all"]);
    assert!(names.contains("memory_save") && names.contains("artifact_rate"));
    for name in names {
        for section in ["tools", "agents"] {
            let own = match section {
                "tools" => format!(
                    "tools: {{ {name}: {{ description: Mine., effect: unsafe, command: [\"true\"] }} }}\nagents: {{ a: {{ system: S. }} }}"
                ),
                _ => format!("agents: {{ {name}: {{ system: S. }}, a: {{ system: S. }} }}"),
            };
            let (network, found) = compile(&Files::new("d.yaml", format!("{own}\nentry: a\n")));
            assert!(network.is_none(), "{section} {name}");
            assert_eq!(errors(&found), ["E0204"], "{section} {name}");
        }
    }
}

#[test]
fn a_built_in_tool_that_is_offered_is_the_engines() {
    use steersman_machine::network::Source;
    use steersman_machine::stored::built_in::BuiltIn;
    let sets = BuiltIn::sets().join(", ");
    let text = format!(
        "agents:\n  a: {{ system: S., tools: [{sets}] }}\n  b: {{ description: B., system: S. }}\n  desk: {{ route: {{ tasks: {{ t: {{ agent: b }} }}, default: a }} }}\n  c: {{ description: C., system: S. }}\n  talk: {{ route: {{ handoff: {{ b: [c], c: [b] }} }} }}\nentry: [desk, talk]\n"
    );
    let network = network("d.yaml", &text);
    for tool in BuiltIn::ALL {
        let def = network.tools.get(tool.name());
        let source = def.map(|def| def.source.clone());
        assert_eq!(source, Some(Source::BuiltIn(*tool)), "{}", tool.name());
    }
}

#[test]
fn the_mode_of_an_agent_that_has_modes_is_never_none() {
    let text = "
state: { x: { type: string, default: '' } }
tools:
  t: { description: T., requires: \"mode == 'one'\", set: { x: y } }
  u: { description: U., requires: \"mode == 'one'\", set: { x: y } }
agents:
  moded:
    description: M.
    context: { now: \"{{ mode }}\" }
    start: one
    exits: [ { when: \"mode == 'one' and state.x == 'y'\", to: two } ]
    modes:
      one: { system: S., tools: [ { tool: t, requires: \"mode == 'one'\" }, plain ] }
      two: { system: S. }
  plain: { description: P., system: S., tools: [ { tool: u, requires: \"mode != 'two'\" } ] }
entry: moded
";
    let (_, found) = compile(&Files::new("d.yaml", text));
    let at: Vec<(usize, &str)> = found
        .iter()
        .filter(|d| d.is_error())
        .map(|d| (d.at.as_ref().unwrap().position().0, d.code))
        .collect();
    assert_eq!(at, [(5, "E0305"), (15, "E0305")], "{found:?}");
}

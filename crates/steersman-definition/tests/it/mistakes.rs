//! Mistakes of users, one in each definition of `tests/mistakes`: each is reported with its code, at its line, and alone. A line
//! of such a definition has a margin of five characters, in which the code stands at the line that is wrong. The lines behind a
//! definition with the margin `help:` are what is said about a way out; `UPDATE=1` writes them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use steersman_definition::{
    Diagnostic, Files, Patch, Severity, codes, compile_with_tests, explain,
};

/// A definition and the mistake in it.
struct Case {
    name: String,
    text: String,
    /// The code, and the line at which it is reported, from 1. `None`: nothing is reported.
    wanted: Option<(String, usize)>,
    /// The sentences that name a way out.
    help: Vec<String>,
}

const FILES: [&str; 6] = [
    "langgraph.txt",
    "crewai.txt",
    "autogen.txt",
    "agentkit.txt",
    "pydantic_ai.txt",
    "other_languages.txt",
];

/// Margin of a sentence that names a way out.
const HELP: &str = "help:";

#[expect(clippy::disallowed_methods, reason = "tests read their cases")]
fn read(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).expect("a readable file")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes")
}

/// Reads the cases of a file of `tests/mistakes`.
fn cases(file: &str) -> Vec<Case> {
    let text = read(file);
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("== ") {
            cases.push(Case {
                name: format!("{file}: {name}"),
                text: String::new(),
                wanted: None,
                help: Vec::new(),
            });
        } else if let Some((margin, line)) = line.split_once('|')
            && let Some(case) = cases.last_mut()
        {
            assert_eq!(margin.len(), 5, "{}: {line}", case.name);
            if margin == HELP {
                case.help.push(line.to_owned());
                continue;
            }
            case.text += line;
            case.text.push('\n');
            if !margin.trim().is_empty() {
                assert!(case.wanted.is_none(), "{} has two mistakes", case.name);
                let line = case.text.lines().count();
                case.wanted = Some((margin.to_owned(), line));
            }
        }
    }
    cases
}

fn mistakes() -> Vec<Case> {
    FILES.into_iter().flat_map(cases).collect()
}

fn check(text: &str) -> Vec<Diagnostic> {
    compile_with_tests(&Files::new("steersman.yaml", text), None).1
}

fn shown(found: &[Diagnostic]) -> String {
    found.iter().fold(String::new(), |mut text, diagnostic| {
        writeln!(text, "{diagnostic}\n").expect("a string takes it");
        text
    })
}

#[test]
fn mistakes_are_reported_at_their_line_and_nothing_else_is() {
    let cases = mistakes();
    assert_eq!(cases.len(), 127);
    let mut wrong = String::new();
    for case in cases {
        let (code, line) = case.wanted.expect("a mistake");
        let found = check(&case.text);
        let hit = |d: &Diagnostic| {
            d.code == code && d.at.as_ref().is_some_and(|at| at.position().0 == line)
        };
        let alone = found.iter().filter(|d| d.is_error() && !hit(d)).count() == 0;
        if found.iter().filter(|d| hit(d)).count() != 1 || !alone {
            let given = shown(&found);
            writeln!(wrong, "## {}: {code} at line {line}\n{given}", case.name)
                .expect("a string takes it");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The sentences of a diagnostic that name a way out: its label, if that proposes a name, its advice, and the title of its fix.
fn help(of: &Diagnostic) -> Vec<String> {
    let fix = of.patch.as_ref().map(|patch| &patch.title);
    let label = of.label.as_ref().filter(|label| Some(*label) != fix);
    let label = label.filter(|label| label.ends_with('?'));
    let all = [label, of.help.as_ref(), fix];
    all.into_iter().flatten().cloned().collect()
}

#[test]
fn each_mistake_has_its_way_out() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = String::new();
    for file in FILES {
        let cases = cases(file);
        for case in &cases {
            let (code, _) = case.wanted.as_ref().expect("a mistake");
            let found = check(&case.text);
            let given = found.iter().find(|d| d.code == code).map(help);
            if given.as_deref() != Some(&case.help) {
                let name = &case.name;
                writeln!(wrong, "## {name}\nsaid: {given:?}\nwanted: {:?}", case.help)
                    .expect("a string takes it");
            }
        }
        if update {
            update_help(file, &cases);
        }
    }
    assert!(update || wrong.is_empty(), "{wrong}");
}

/// Writes the sentences behind each definition of a file.
#[expect(
    clippy::disallowed_methods,
    reason = "tests write their cases where that is asked for"
)]
fn update_help(file: &str, cases: &[Case]) {
    let text = read(file);
    let own = text.lines().filter(|line| !line.starts_with(HELP));
    let own = own.fold(String::new(), |text, line| text + line + "\n");
    let mut blocks = own.split("\n== ");
    let mut out = blocks.next().unwrap_or_default().to_owned();
    for (block, case) in blocks.zip(cases) {
        let (code, _) = case.wanted.as_ref().expect("a mistake");
        let said = check(&case.text).iter().find(|d| d.code == code).map(help);
        out = out + "\n== " + block.trim_end() + "\n";
        for sentence in said.unwrap_or_default() {
            out = out + HELP + "|" + &sentence + "\n";
        }
    }
    std::fs::write(folder().join(file), out).expect("a file that can be written");
}

#[test]
fn nothing_is_said_of_forty_sound_definitions() {
    let cases = cases("sound.txt");
    assert_eq!(cases.len(), 40);
    let mut wrong = String::new();
    for case in cases {
        let found = check(&case.text);
        let warned = |d: &Diagnostic| d.severity >= Severity::Warning;
        if found.iter().any(warned) {
            writeln!(wrong, "## {}\n{}", case.name, shown(&found)).expect("a string takes it");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The text of a file after a fix.
fn fixed(text: &str, patch: &Patch) -> String {
    let mut changes: Vec<_> = patch.changes.iter().collect();
    changes.sort_by_key(|(at, _)| std::cmp::Reverse(at.span.start));
    let mut text = text.to_owned();
    for (at, with) in changes {
        text.replace_range(at.span.clone(), with);
    }
    text
}

/// All that a definition may be: the mistakes, the files of `tests/definitions`, the examples of the pages of codes, and
/// templates without quotes in many forms.
#[expect(clippy::disallowed_methods, reason = "tests read their cases")]
fn everything_wrong() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = mistakes().into_iter().map(|c| (c.name, c.text)).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions");
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|ending| ending == "yaml") {
            let text = std::fs::read_to_string(&path).expect("a readable file");
            all.push((path.display().to_string(), text));
        }
    }
    for code in codes() {
        let page = explain(code).expect("a page");
        if let Some((_, bad)) = page.split_once("```yaml bad\n") {
            let (bad, _) = bad.split_once("```").expect("the end of a block");
            all.push((code.to_owned(), bad.to_owned()));
        }
    }
    let values = [
        "{{ config.shop }}",
        "{{ config.shop }}/orders/{{ args.order }}",
        "{{ config.shop }}/orders?q=\"{{ args.order }}\"",
        "http://127.0.0.1/{{ args.order }}",
        "{{ args.order | default('it\\'s') }}",
        "{{ args[\"order\"] }}",
    ];
    for value in values {
        let block = format!("    http:\n      url: {value}\n      method: GET\n");
        let flow = format!("    http: {{ url: {value}, method: GET }}\n");
        for http in [block, flow] {
            let tools = format!(
                "config: {{ shop: {{ type: string, default: x }} }}\ntools:\n  find:\n    description: Finds.\n    effect: read\n    parameters: {{ order: string }}\n{http}"
            );
            let text = format!("{tools}agents:\n  desk: {{ system: Help., tools: [find] }}\n");
            all.push((http, text));
        }
    }
    all
}

#[test]
fn every_fix_that_is_proposed_fixes_what_it_is_for() {
    let mut wrong = String::new();
    let mut fixes = 0;
    for (name, text) in everything_wrong() {
        let found = check(&text);
        let unread = found.iter().any(|d| d.code == "E0101");
        let sound_but_for_it = name.contains("url: ");
        for diagnostic in &found {
            let Some(patch) = &diagnostic.patch else {
                continue;
            };
            fixes += 1;
            let after = fixed(&text, patch);
            let then = check(&after);
            let same = |d: &Diagnostic| {
                let line = |d: &Diagnostic| d.at.as_ref().map(|at| at.position().0);
                d.code == diagnostic.code
                    && d.message == diagnostic.message
                    && line(d) == line(diagnostic)
            };
            let count = |found: &[Diagnostic]| found.iter().filter(|d| same(d)).count();
            let gone = count(&then) < count(&found);
            let readable = unread || !then.iter().any(|d| d.code == "E0101");
            let sound = !sound_but_for_it || !then.iter().any(Diagnostic::is_error);
            if !gone || !readable || !sound {
                writeln!(
                    wrong,
                    "## {name}\n{diagnostic}\nafter the fix:\n{after}\n{}",
                    shown(&then)
                )
                .expect("a string takes it");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(fixes > 80, "{fixes} fixes");
}

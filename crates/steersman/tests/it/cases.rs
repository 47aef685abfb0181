//! The machine's case files in whole sessions: the same scripts, steps and expectations, with ledger, store and sync.

use std::path::Path;
use steersman::{Builder, Hook, Network, hook, testing};
use steersman_testkit::states;

const LARGER: &str =
    "what the scripted model is sent is counted with its tools, so the context is larger";

/// Failures that a whole session has and the machine alone has not: file, test, failure, and the reason for it.
const OTHERWISE: &[(&str, &str, &str, &str)] = &[
    (
        "compaction",
        "it_helps",
        "stack reader: expected \"U A TC TR A TC TR S A TC TR A F\", found \"U A TC TR A TC TR S A TC TR S A F\"",
        LARGER,
    ),
    (
        "compaction",
        "it_helps",
        "the script has 1 answer for `reader#compact`, number 2 is wanted",
        LARGER,
    ),
    (
        "compaction",
        "the_next_stands_for_the_one_before",
        "the script has 2 answers for `reader#compact`, number 3 is wanted",
        LARGER,
    ),
];

/// Runs commands, because the tools only read files next to the definition.
const LOOKS: testing::How = testing::How {
    twice: false,
    real: true,
    live: false,
};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Fails what has the word `fail` in it.
fn judge(text: &str) -> Result<(), String> {
    if text.contains("fail") {
        return Err("it says fail".to_owned());
    }
    Ok(())
}

/// The hook that case files name, as the machine's tests have it.
fn marks() -> Hook {
    let mark = |text: &mut String| {
        judge(text)?;
        text.push_str(" (marked)");
        Ok(())
    };
    hook("marks", 1)
        .before_model(|_, request| {
            for said in request.texts_mut() {
                said.text = said.text.replace("4111", "[card]");
            }
            Ok(())
        })
        .after_model(|_, answer| judge(answer.text.as_deref().unwrap_or_default()))
        .before_call(|_, args| {
            judge(&serde_json::Value::Object(args.clone()).to_string())?;
            args.insert("seen".to_owned(), true.into());
            Ok(())
        })
        .after_call(move |_, result| mark(result))
        .on_finish(move |_, answer| mark(answer))
}

/// Adds the nets of states that case files name.
pub(crate) fn with_states(network: Builder) -> Builder {
    network
        .net("stub", states::stub())
        .net("desk", states::desk())
}

#[test]
fn each_case_of_the_machine_runs_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../steersman-machine/tests/cases");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    files.sort();
    assert!(files.len() >= 30, "{} case files", files.len());
    let (mut wrong, mut met) = (Vec::new(), Vec::new());
    for path in files {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let network = Network::from_path(&path).unwrap();
        let network = match &*file {
            "hooks" => with_states(network).hook(marks()),
            _ => with_states(network),
        };
        let network = network.build().unwrap();
        for test in network.tests() {
            // one runtime for each test: tasks that a test leaves are gone before the next
            let report = runtime().block_on(testing::run(&network, test));
            for failure in report.failures {
                // The lines after the first name the nearest match.
                let first = failure.lines().next().unwrap_or_default();
                let mut known = OTHERWISE.iter();
                let known =
                    known.find(|(f, t, what, _)| *f == file && **t == *test && *what == first);
                match known {
                    Some(known) => met.push(*known),
                    None => wrong.push(format!("{file}: {test}: {failure}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(
        met, OTHERWISE,
        "a known failure of `OTHERWISE` no longer occurs"
    );
}

/// The case with only this test, killed after line `line`, which step `step` writes, and resumed. It must end like the
/// undisturbed run.
fn killed_behind(case: &str, test: &str, step: usize, line: u64, doubts: &[(u64, &str)]) -> String {
    let (head, mut steps, tail) = taken_apart(case, test);
    steps.insert(
        step,
        format!("      - {{ kill: \"{line}\" }}\n      - {{ resume: true }}"),
    );
    for (_, tool) in doubts.iter().filter(|(begun, _)| *begun == line) {
        let settled =
            format!("      - {{ advance: 1s }}\n      - {{ resolve: {{ {tool}: done }} }}");
        steps.insert(step + 1, settled);
    }
    let steps = steps.join("\n");
    format!("{head}    steps:\n{steps}\n{tail}      - {{ same_as: undisturbed }}\n")
}

/// The case with only this test, its first `steps` steps and no expectations.
fn begun(case: &str, test: &str, steps: usize) -> String {
    let (head, all, _) = taken_apart(case, test);
    format!("{head}    steps:\n{}\n", all[..steps].join("\n"))
}

/// A case with only this test, up to its steps; the steps, each as one line; and the expectations.
fn taken_apart(case: &str, test: &str) -> (String, Vec<String>, String) {
    let (definition, tests) = case.split_once("\ntests:").unwrap();
    let (_, body) = tests.split_once(&format!("\n  {test}:\n")).unwrap();
    let own: Vec<&str> = body
        .lines()
        .take_while(|line| line.starts_with("    "))
        .collect();
    let place = |key: &str| {
        let place = own
            .iter()
            .position(|line| line.starts_with(&format!("    {key}:")));
        place.unwrap()
    };
    let (steps, expect) = (place("steps"), place("expect"));
    let lines = |lines: &[&str]| lines.join("\n") + "\n";
    let head = lines(&own[..steps]);
    let one = own[steps].split_once("steps: [");
    let steps = match one {
        // One line; several steps are separated by ` , `.
        Some((_, steps)) => {
            let steps = steps.trim_end().strip_suffix(" ]").unwrap();
            let steps = steps.split(" , ");
            steps
                .map(|step| format!("      - {}", step.trim()))
                .collect()
        }
        None => own[steps + 1..expect]
            .iter()
            .map(|line| (*line).to_owned())
            .collect(),
    };
    let head = format!("{definition}\ntests:\n  {test}:\n{head}");
    (head, steps, lines(&own[expect..]))
}

/// Kills each test of a case file after each of its lines, and returns the number of kills. If a line only begins an
/// unsafe effect, a person resolves the doubt as done.
fn killed_everywhere(file: &str, doubts: &[(u64, &str)]) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../steersman-machine/tests/cases")
        .join(file);
    let case = std::fs::read_to_string(path).unwrap();
    killed(&case, doubts, |text| {
        Network::from_yaml(text).build().unwrap()
    })
}

/// Does the same for a text of tests, with a network of its own for each test.
fn killed(case: &str, doubts: &[(u64, &str)], built: impl Fn(String) -> Network) -> usize {
    let calm = built(case.to_owned());
    let (mut wrong, mut kills) = (Vec::new(), 0);
    for test in calm.tests() {
        let (_, steps, _) = taken_apart(case, test);
        let mut line = 1;
        for step in 1..=steps.len() {
            let upto = built(begun(case, test, step));
            let lines = runtime()
                .block_on(testing::run_as(&upto, test, LOOKS))
                .lines;
            while line <= lines {
                let network = built(killed_behind(case, test, step, line, doubts));
                let report = runtime().block_on(testing::run_as(&network, test, LOOKS));
                line += 1;
                // The number of lines of parallel calls depends on their order.
                let missed = |failure: &String| failure.contains("was not reached");
                if report.failures.iter().any(missed) {
                    continue;
                }
                let failures = report.failures.iter();
                wrong.extend(
                    failures.map(|f| format!("{test} killed behind line {}: {f}", line - 1)),
                );
                kills += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    kills
}

#[test]
fn networks_in_networks_killed_behind_any_line_end_as_if_nothing_had_happened() {
    let kills = killed_everywhere("networks_nest.yaml", &[]);
    assert!(kills >= 25, "{kills} kills");
}

#[test]
fn joins_on_a_condition_killed_behind_any_line_end_as_if_nothing_had_happened() {
    let kills = killed_everywhere("joins.yaml", &[]);
    assert!(kills >= 40, "{kills} kills");
    let kills = killed_everywhere("joins_of_agents.yaml", &[]);
    assert!(kills >= 40, "{kills} kills");
    let kills = killed_everywhere("joins_chosen.yaml", &[(15, "pay")]);
    assert!(kills >= 10, "{kills} kills");
}

/// A conversation by states over networks, with an approval, and two branches that are joined after its end.
#[test]
fn a_session_with_something_of_everything_killed_behind_any_line_ends_as_if_nothing_had_happened() {
    let kills = killed_everywhere("something_of_everything.yaml", &[(13, "transfer_money")]);
    assert!(kills >= 35, "{kills} kills");
}

/// The example with planning, reviews, sub-agents, artifacts, and branches that a person forks.
#[test]
fn the_analyst_killed_behind_any_line_ends_as_if_nothing_had_happened() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/analyst");
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("analyst-{}", std::process::id()));
    for file in [
        "steersman.yaml",
        "script.yaml",
        "data/sales.csv",
        "tools/totals.awk",
    ]
    .into_iter()
    .chain([
        "prompts/planning.md",
        "prompts/execution.md",
        "prompts/slicer.md",
    ]) {
        let to = folder.join(file);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(example.join(file), to).unwrap();
    }
    let tests = folder.join("tests");
    std::fs::create_dir_all(&tests).unwrap();
    let case = std::fs::read_to_string(example.join("tests/analyst.yaml")).unwrap();
    let kills = killed(&case, &[], |text| {
        std::fs::write(tests.join("analyst.yaml"), text).unwrap();
        Network::from_path(&folder).unwrap().build().unwrap()
    });
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(kills >= 35, "{kills} kills");
}

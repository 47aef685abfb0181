//! Reruns: with nothing changed, no model or tool is called and nothing differs. A difference is reported at the line
//! where it begins.

use std::path::{Path, PathBuf};
use steersman::machine::network::Provider;
use steersman::{Network, testing};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// All definitions with tests: the machine's case files and the examples.
fn definitions() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cases = std::fs::read_dir(crates.join("steersman-machine/tests/cases")).unwrap();
    let cases = cases.map(|entry| entry.unwrap().path());
    let cases = cases.filter(|path| path.extension().is_some_and(|e| e == "yaml"));
    let examples = std::fs::read_dir(crates.join("../examples")).unwrap();
    let examples = examples.map(|entry| entry.unwrap().path());
    let examples = examples.filter(|path| path.join("steersman.yaml").is_file());
    let mut all: Vec<PathBuf> = cases.chain(examples).collect();
    all.sort();
    assert!(all.len() > 50, "{} definitions", all.len());
    all
}

/// Reruns the session of each test. Returns the failures and the number of reruns.
fn rerun_all(under: impl Fn(&Network) -> Option<Network>) -> (Vec<String>, u64) {
    let (mut wrong, mut reruns) = (Vec::new(), 0);
    for path in definitions() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let network = crate::cases::with_states(Network::from_path(&path).unwrap());
        let Ok(network) = network.build() else {
            // definitions with tools in Rust have their own tests
            continue;
        };
        let other = under(&network);
        for test in network.tests() {
            let report = runtime().block_on(async {
                match &other {
                    Some(other) => testing::rerun_under(&network, test, other).await,
                    None => testing::rerun(&network, test).await,
                }
            });
            reruns += 1;
            let failures = report.failures.into_iter();
            wrong.extend(failures.map(|f| format!("{name}: {test}: {f}")));
        }
    }
    (wrong, reruns)
}

#[test]
fn nothing_changed_asks_nobody_and_differs_in_nothing_for_every_example_and_case() {
    let (wrong, reruns) = rerun_all(|_| None);
    assert!(
        wrong.is_empty(),
        "{} of {reruns}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(reruns > 150, "{reruns} reruns");
}

/// Sessions that cannot be followed under another definition, with the reason.
const LEFT: &str = "
a_summary_is_asked_for_when_it_covers_more: one_that_fails_is_tried_again_with_the_next_result: a model failed
call_agents: fails: a model failed
compaction: it_does_not_help: an answer could not be used
compaction: it_fails_and_is_not_tried_again_at_once: a model failed
compaction: it_helps: a model failed
compaction: it_takes_too_long: a model failed
compaction: the_next_stands_for_the_one_before: a model failed
joins: an_expression_waits_for_good_ends: a model failed
joins: what_can_hold_no_longer_is_told: a model failed
joins_of_agents: good: a model failed
joins_of_agents: no_good_one: a model failed
joins_of_agents: nobody_chooses_where_it_cannot_hold: a model failed
joins_of_agents: quorum: a model failed
model_fails: and_is_called_again: a model failed
model_fails: and_is_talked_to_again: a model failed
open_calls_decide_the_next_step: a_failed_child_wakes_its_parent: a model failed
reflection: a_judgement_that_fails_accepts: a model failed
results_beyond_their_horizon: a_summary_that_fails_leaves_a_stub: a model failed
state_is_extracted_before_routing: a_failed_model_call_ends_nothing: a model failed
state_is_extracted_before_routing: what_does_not_fit_is_left_out: an answer could not be used
summaries: one_that_fails_is_tried_later: a model failed
";

/// A failed or unusable answer of a model is not on record, so under another definition the model is asked again.
/// Everything else is offered to the machine again, which must do the same.
#[test]
fn a_definition_that_shows_models_nothing_else_is_followed_too() {
    let (wrong, reruns) = rerun_all(|network| {
        let values = [(
            "description".to_owned(),
            "Another one by its digest.".into(),
        )];
        Some(network.with_set(&values).unwrap())
    });
    assert!(reruns > 400, "{reruns} reruns");
    let mut left: Vec<String> = Vec::new();
    for failure in &wrong {
        let mut parts = failure.splitn(3, ": ");
        let name = format!("{}: {}", parts.next().unwrap(), parts.next().unwrap());
        let told = parts.next().unwrap();
        // only the first divergence of a test is reported
        if left
            .last()
            .is_some_and(|last| last.starts_with(&format!("{name}: ")))
        {
            continue;
        }
        let kinds = [
            ("failed then", "a model failed"),
            ("could not be used", "an answer could not be used"),
        ];
        let kind = kinds.iter().find(|(words, _)| told.contains(words));
        left.push(format!("{name}: {}", kind.map_or(told, |(_, kind)| kind)));
    }
    assert_eq!(left.join("\n"), LEFT.trim(), "{}", wrong.join("\n"));
}

#[test]
fn a_value_of_a_model_in_short_form_keeps_its_provider() {
    let definition = "models: { default: scripted }\nagents: { desk: { system: You help. } }";
    let network = Network::from_yaml(definition).build().unwrap();
    let values = [("models.default.temperature".to_owned(), 0.5.into())];
    let set = network.with_set(&values).unwrap();
    let model = &set.checked().models["default"];
    assert_eq!(model.provider, Provider::Scripted);
    assert_eq!(model.temperature, Some(0.5));
}

//! The program against a real model behind a real server: `scripts/real-model.sh`, then
//! `STEERSMAN_REAL_MODEL=http://127.0.0.1:18080/v1` and `--ignored`, as `cargo xtask ci` does if the variable is set.
//!
//! The model has 135 million parameters: these tests look at shape and control flow, never at wording.

use crate::world::World;
use serde_json::Value as Json;

fn recorded() -> World {
    let url = std::env::var("STEERSMAN_REAL_MODEL");
    let url = url.expect("STEERSMAN_REAL_MODEL is set: scripts/real-model.sh");
    let world = World::new();
    world.write(
        "steersman.yaml",
        &format!(
            r#"name: desk
models:
  default: {{ provider: compatible, url: "{url}", model: smollm2-135m, params: {{ max_tokens: 12, temperature: 0.0, seed: 1 }} }}
state: {{ class: {{ type: string, default: open }} }}
outcome: {{ class: state.class }}
agents:
  desk: {{ system: You are brief. }}
"#
        ),
    );
    for n in 0..10 {
        let say = format!("Say a word about the number {n}.");
        let ran = world.run(&["run", "--input", &say]);
        assert_eq!(ran.code, Some(0), "{n}: {ran:?}");
        assert!(!ran.out.trim().is_empty(), "{n}: {ran:?}");
    }
    world
}

/// Reruns all ten sessions, and returns the summary of the report.
fn rerun(world: &World, changed: &[&str], report: &str) -> Json {
    let all = ["rerun", "--where", "network = desk", "--report", report];
    let ran = world.run(&[&all[..], changed].concat());
    assert!(matches!(ran.code, Some(0 | 8)), "{changed:?} {ran:?}");
    let path = world.folder.join(report).join("summary.json");
    let summary = std::fs::read_to_string(&path).unwrap();
    let summary: Json = serde_json::from_str(&summary).unwrap();
    let sessions = summary["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 10, "{summary:#}");
    for session in sessions {
        let id = session["of"].as_str().unwrap();
        assert!(ran.out.contains(&id[..6]), "a row of {id} in {}", ran.out);
    }
    assert!(ran.out.contains("10 "), "totals: {}", ran.out);
    summary
}

/// Ten recorded sessions are rerun. Without a change no model is called. With other parameters, or with another name of
/// the model, each session calls it again.
#[test]
#[ignore = "needs STEERSMAN_REAL_MODEL: scripts/real-model.sh"]
fn ten_sessions_are_rerun_on_another_model() {
    let world = recorded();
    let same = rerun(&world, &[], "same");
    assert_eq!(same["totals"]["same"], 10, "{same:#}");
    let asked = |summary: &Json| -> u64 {
        let sessions = summary["sessions"].as_array().unwrap().iter();
        sessions
            .map(|s| s["model_calls"]["live"].as_u64().unwrap())
            .sum()
    };
    assert_eq!(asked(&same), 0, "{same:#}");
    let set = ["--set", "models.default.params.max_tokens=6"];
    let other = rerun(&world, &set, "params");
    assert_eq!(asked(&other), 10, "{other:#}");
    let other = rerun(&world, &["--model", "smollm2"], "model");
    assert_eq!(asked(&other), 10, "{other:#}");
}

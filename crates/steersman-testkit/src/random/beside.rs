//! Random answers of models that are asked in addition to the agents' own steps.

use super::{Dice, busy, said};
use serde_json::json;
use steersman_machine::stored::ids::Id;
use steersman_machine::stored::outcome::Outcome;

/// Returns a random answer to an extraction.
pub(super) fn found(dice: &mut Dice, effect: Id) -> Outcome {
    let found = match dice.below(8) {
        0 => return busy(),
        1 => return said(effect, "Nothing.", Vec::new()),
        2 => json!({}),
        3 => json!({ "topic": 5, "seen": 5, "sum": "many" }),
        4 => json!({ "topic": "x".repeat(dice.below(4) as usize * 20_000), "sum": i64::MAX }),
        5 => json!({ "heap": ["x".repeat(dice.below(4) as usize * 15_000)], "topic": null }),
        _ => json!({ "topic": "ships", "seen": true, "sum": 1, "heap": "one", "other": 1 }),
    };
    said(effect, &found.to_string(), Vec::new())
}

/// Returns a random answer to a request for a summary.
pub(super) fn summed(dice: &mut Dice, effect: Id) -> Outcome {
    match dice.below(6) {
        0 => busy(),
        1 => said(effect, " ", Vec::new()),
        2 => said(effect, &"long ".repeat(3_000), Vec::new()),
        n => said(effect, &format!("It was about {n}."), Vec::new()),
    }
}

//! Makes a failing sequence shorter, as long as it fails in the same way.

use crate::plan::Plan;
use crate::play::{Played, play};

/// Largest number of sequences that are played to shrink one.
const MOST: usize = 60;

/// The shortest failing sequence that was found, with its result.
pub(crate) fn shrink(plan: Plan, played: Played) -> (Plan, Played) {
    let Some(finding) = &played.finding else {
        return (plan, played);
    };
    let what = finding.what.clone();
    let mut best = (plan, played);
    let mut left = MOST;
    let mut piece = best.0.steps.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < best.0.steps.len() {
            let mut shorter = best.0.clone();
            let end = (at + piece).min(shorter.steps.len());
            shorter.steps.drain(at..end);
            if !try_out(shorter, &what, &mut best, &mut left) {
                at += piece;
            }
        }
        piece /= 2;
    }
    for at in 0..best.0.steps.len() {
        let mut calmer = best.0.clone();
        let step = &mut calmer.steps[at];
        let is_calm = step.kill.is_none() && step.stall.is_none() && step.fault.is_none();
        if is_calm && !step.together {
            continue;
        }
        (step.kill, step.stall, step.fault, step.together) = (None, None, None, false);
        try_out(calmer, &what, &mut best, &mut left);
    }
    best
}

/// Plays a plan, and keeps it as the best one if it fails in the same way. Returns whether it does.
fn try_out(plan: Plan, what: &str, best: &mut (Plan, Played), left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    let played = play(&plan);
    let same = played
        .finding
        .as_ref()
        .is_some_and(|found| found.what == what);
    if same {
        *best = (plan, played);
    }
    same
}

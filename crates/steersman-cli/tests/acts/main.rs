//! Acts of people keep all guarantees. A campaign types random acts at sessions that up to two processes drive, kills
//! processes before, inside and after acts, and compares what the program says with the journal of the tool server.
//!
//! `STEERSMAN_ACTS` is the number of sequences. `STEERSMAN_SEQUENCE` plays the one with this number.
//! `STEERSMAN_PROGRAM` is the path of the program. A sequence that fails is shrunk, and printed as the commands that a
//! person would type.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says where it failed, and which sequence it was"
)]

mod desk;
mod judge;
mod model;
mod plan;
mod play;
mod process;
mod server;
mod shrink;
mod typed;

use crate::plan::{Coverage, Plan, Planner};
use crate::play::{Played, Sums};
use std::sync::Mutex;
use std::time::Instant;

/// Default number of sequences.
const SHORT: u64 = 12;
/// Sequences that are played concurrently. Each spends most of its time waiting for processes.
const AT_ONCE: usize = 2;

/// The seed of the campaign. It is part of the number of each sequence.
fn seed() -> u64 {
    match std::env::var("STEERSMAN_SEED").as_deref() {
        Err(_) => 1,
        Ok("random") => {
            let now = std::time::SystemTime::now();
            let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
            since.as_secs() % 1_000_000
        }
        Ok(seed) => seed.parse().unwrap(),
    }
}

fn wanted(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|n| n.parse().unwrap())
}

#[test]
fn orders_are_as_safe_as_ticks() {
    if let Some(number) = wanted("STEERSMAN_SEQUENCE") {
        let plan = Planner::find(number);
        let played = play::play(&plan);
        report(&plan, &played);
        if played.finding.is_some() {
            fail(plan, played);
        }
        return;
    }
    let planner = Mutex::new(Planner::new(seed()));
    let left = Mutex::new(wanted("STEERSMAN_ACTS").unwrap_or(SHORT));
    let whole = Mutex::new((Coverage::default(), Sums::default(), 0_u64));
    let failed: Mutex<Vec<(Plan, Played)>> = Mutex::default();
    let most = wanted("STEERSMAN_FINDINGS").unwrap_or(1) as usize;
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    {
                        let mut left = left.lock().unwrap();
                        if *left == 0 || failed.lock().unwrap().len() >= most {
                            return;
                        }
                        *left -= 1;
                    }
                    let plan = planner.lock().unwrap().plan();
                    let played = play::play(&plan);
                    add(&whole, &played);
                    if played.finding.is_some() {
                        failed.lock().unwrap().push((plan, played));
                    }
                }
            });
        }
    });
    let (covered, sums, sequences) = whole.into_inner().unwrap();
    println!("{}", covered.table());
    let (pairs, kills) = covered.below(50);
    println!(
        "{sequences} sequences, {} acts, {} kills, {} acknowledged messages, {} effects performed, {} words for a second one, {:.0} s; {pairs} pairs and {kills} kinds of kills below 50",
        sums.acts,
        sums.kills,
        sums.messages,
        sums.performed,
        sums.allowed_again,
        begun.elapsed().as_secs_f64(),
    );
    let failed = failed.into_inner().unwrap();
    for (plan, played) in &failed {
        report(plan, played);
    }
    let Some((plan, played)) = failed.into_iter().next() else {
        return;
    };
    fail(plan, played);
}

/// Shrinks the sequence, prints it, and fails the test.
fn fail(plan: Plan, played: Played) -> ! {
    let number = plan.number;
    if wanted("STEERSMAN_SHRINK") != Some(0) {
        let (plan, played) = shrink::shrink(plan, played);
        println!("SHRUNK to {} acts:", plan.steps.len());
        report(&plan, &played);
    }
    panic!("see above: STEERSMAN_SEQUENCE={number} plays it again");
}

fn add(whole: &Mutex<(Coverage, Sums, u64)>, played: &Played) {
    let mut whole = whole.lock().unwrap();
    let (covered, sums, sequences) = &mut *whole;
    covered.add(&played.covered);
    let more = played.sums;
    sums.acts += more.acts;
    sums.kills += more.kills;
    sums.messages += more.messages;
    sums.performed += more.performed;
    sums.allowed_again += more.allowed_again;
    *sequences += 1;
}

/// Prints a sequence as a person would type it, with its finding.
fn report(plan: &Plan, played: &Played) {
    println!("sequence {} ({:?}):", plan.number, plan.drivers);
    for row in &played.story {
        println!("  {row}");
    }
    if let Some(finding) = &played.finding {
        println!("FINDING: {} (sequence {})", finding.what, plan.number);
        println!("{}", finding.seen);
    }
}

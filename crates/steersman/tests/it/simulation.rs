//! Simulations: sessions under everything that may go wrong. `STEERSMAN_SIMULATIONS` is their number, `STEERSMAN_SIMULATION` one seed.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use steersman::Network;
use steersman::simulation::{Broken, Happened, Invariant, Report, Simulation};

/// Number of simulations by default.
const SEEDS: u64 = 500;

/// Nothing above 1.00 is paid without the word of a clerk.
const APPROVED: &str = "effect.tool != 'pay' or effect.performed == 0 or effect.args.cents <= 100 or 'clerk' in effect.approvals";

/// A definition with all kinds of effects, holds and waits.
const DESK: &str = include_str!("../../../../tests/mutants/desk.yaml");

fn desk() -> Network {
    Network::from_yaml(DESK).build().unwrap()
}

/// The definition, and all examples.
fn all() -> Vec<Simulation> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folders = std::fs::read_dir(examples).unwrap();
    let folders = folders.map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = folders.filter(|path| path.is_dir()).collect();
    folders.sort();
    let examples = folders
        .iter()
        .map(|folder| Network::from_path(folder).unwrap().build().unwrap());
    let examples = examples.map(|network| Simulation::of(&network, Vec::new()));
    let sure = Invariant::parse(APPROVED).unwrap();
    let desk = Simulation::of(&desk(), vec![sure]);
    std::iter::once(desk).chain(examples).collect()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn told(report: &Report) -> String {
    let mut told = String::new();
    for Broken { invariant, why } in &report.broken {
        writeln!(told, "seed {}: {invariant}: {why}", report.seed).unwrap();
    }
    for happened in &report.trace {
        match happened {
            Happened::Done(at, text) => writeln!(told, "{at:>12} {text}").unwrap(),
            Happened::Row(at, row) => {
                writeln!(
                    told,
                    "{at:>12}   @{} {} {} {}",
                    row.line, row.who, row.text, row.note
                )
                .unwrap();
            }
        }
    }
    told
}

#[test]
fn whatever_goes_wrong_everything_that_must_hold_holds() {
    let all = all();
    // Half of all are of the desk.
    let of = |seed: u64| match seed % 4 {
        0 | 1 => &all[0],
        _ => &all[usize::try_from(seed / 4).unwrap() % all.len()],
    };
    if let Some(seed) = number("STEERSMAN_SIMULATION") {
        let report = of(seed).run(seed);
        println!("{}", told(&of(seed).shrunk(&report)));
        return;
    }
    let last = number("STEERSMAN_SIMULATIONS").unwrap_or(SEEDS);
    let next = AtomicU64::new(1);
    let work = || {
        let mut broken = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > last {
                return broken;
            }
            let report = of(seed).run(seed);
            if !report.broken.is_empty() {
                broken.push(report);
            }
        }
    };
    let mut broken = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut broken = work();
        broken.extend(other.join().unwrap());
        broken
    });
    broken.sort_by_key(|report| report.seed);
    let shown = broken
        .first()
        .map(|report| told(&of(report.seed).shrunk(report)));
    assert!(
        broken.is_empty(),
        "{} of {last} simulations fail: {:?}. STEERSMAN_SIMULATION=n prints one; the first:\n{}",
        broken.len(),
        broken.iter().map(|report| report.seed).collect::<Vec<_>>(),
        shown.unwrap_or_default(),
    );
}

/// Everything that happens in a simulation, whether or not something breaks.
fn whole(seed: u64) -> String {
    let never = vec![Invariant::parse("1 == 2").unwrap()];
    let report = Simulation::of(&desk(), never).run(seed);
    told(&report)
}

#[test]
fn the_same_seed_gives_the_same_session() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 1..=12 {
        let told = whole(seed);
        assert_eq!(told, whole(seed));
        assert!(seen.insert(told));
    }
}

#[test]
fn a_simulation_that_fails_shrinks_to_what_is_needed() {
    let text = "effect.tool != 'pay' or effect.performed == 0";
    let simulation = Simulation::of(&desk(), vec![Invariant::parse(text).unwrap()]);
    let found = (1..200).map(|seed| simulation.run(seed));
    let report = found
        .into_iter()
        .find(|report| !report.broken.is_empty())
        .unwrap();
    let shrunk = simulation.shrunk(&report);
    assert_eq!(shrunk.broken[0].invariant, text);
    assert!(shrunk.steps <= report.steps);
    assert!(!shrunk.trace.is_empty());
    assert_eq!(told(&shrunk), told(&simulation.shrunk(&report)));
}

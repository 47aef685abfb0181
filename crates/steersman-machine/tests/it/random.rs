//! Random sessions: every rule holds for any events in any order.

#![expect(
    clippy::disallowed_methods,
    reason = "campaigns set the number of sessions in the environment"
)]

use steersman_testkit::random::session;

/// A number from an environment variable, for campaigns.
pub(crate) fn asked(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// 400 sessions of 60 events; `STEERSMAN_RANDOM_SESSIONS` and `STEERSMAN_RANDOM_SEED` ask for others.
#[test]
fn random_sessions_keep_every_rule() {
    let first = asked("STEERSMAN_RANDOM_SEED", 1);
    let sessions = asked("STEERSMAN_RANDOM_SESSIONS", 400);
    let mut lines = 0;
    let (mut branches, mut adoptions, mut modes) = (0, 0, 0);
    for seed in first..first + sessions {
        let played = std::panic::catch_unwind(|| session(seed, 60));
        let played = played.unwrap_or_else(|_| panic!("seed {seed}: the machine panicked"));
        let covered = played.unwrap_or_else(|fault| panic!("{fault}"));
        lines += covered.lines;
        branches += covered.branches;
        adoptions += covered.adoptions;
        modes += covered.modes;
    }
    // Sessions with few lines or branches would test nothing.
    if sessions >= 100 {
        assert!(lines > 30 * sessions, "{lines} lines");
        assert!(branches > 2 * sessions, "{branches} branches");
        assert!(adoptions > sessions / 20, "{adoptions} adoptions");
        assert!(modes > sessions, "{modes} changes of modes");
    }
}

/// Seeds that once found a fault: a choice that was adopted before it was carried out; an adoption that removed an
/// agent with the same path on another place of the tree; an adoption that kept a parent whose child was removed.
#[test]
fn seeds_that_found_a_fault_are_kept() {
    for seed in [92_884, 9_000_718, 20_000_963] {
        session(seed, 60).unwrap_or_else(|fault| panic!("{fault}"));
    }
}

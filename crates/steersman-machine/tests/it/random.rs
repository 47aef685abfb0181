//! Random sessions: every rule holds for any events in any order.

#![expect(
    clippy::disallowed_methods,
    reason = "campaigns set the number of sessions in the environment"
)]

use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::stored::codec;
use steersman_machine::stored::commit::{Commit, Text};
use steersman_machine::stored::ids::Digest;
use steersman_testkit::random::{played, session};

/// A number from an environment variable, for campaigns.
pub(crate) fn asked(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// 120 sessions of 60 events; `STEERSMAN_RANDOM_SESSIONS` and `STEERSMAN_RANDOM_SEED` ask for others.
#[test]
fn random_sessions_keep_every_rule() {
    let first = asked("STEERSMAN_RANDOM_SEED", 1);
    let sessions = asked("STEERSMAN_RANDOM_SESSIONS", 120);
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

/// Lines whose texts are erased hold neither the hash nor the digest of any text of the session, so no line tells that an equal
/// text exists elsewhere. The exception is the name of an artifact's content, which is its hash.
#[test]
fn erased_lines_hold_no_digest_of_a_text() {
    const SALT: [u8; 16] = [7; 16];
    let mut erased = 0;
    for seed in 1..=40 {
        let world = played(seed, 60).unwrap_or_else(|fault| panic!("{fault}"));
        let lines = world.lines().iter();
        let artifacts = lines.flat_map(|line| line.commit.iter().flat_map(Commit::artifacts));
        let contents: BTreeSet<[u8; 32]> = artifacts.map(|artifact| artifact.hash).collect();
        let texts = world.lines().iter().flat_map(|line| &line.bodies);
        let digests: BTreeMap<[u8; 16], &Text> = texts
            .filter_map(|text| match text {
                Text::Here(here) => Some((here.hash(), text)),
                Text::Blob { hash, .. } => Some((hash, text)),
                Text::Erased { .. } | Text::Parts(_) => None,
            })
            .filter(|(hash, _)| !contents.contains(*hash))
            .map(|(hash, text)| (Digest::of_hash(hash).0, text))
            .collect();
        for line in world.lines() {
            let (mut bytes, _) = codec::encode(line, &[0; 32], &SALT);
            for k in 0..line.bodies.len() as u32 {
                bytes = codec::erase(&bytes, k, &SALT).expect("the line has this text");
            }
            codec::verify(&bytes, &[0; 32], &SALT).expect("it still verifies");
            let told = bytes.windows(16).find_map(|bytes| digests.get(bytes));
            assert_eq!(told, None, "seed {seed}: {line:?}");
            erased += line.bodies.len();
        }
    }
    assert!(erased > 1_000, "{erased} texts");
}

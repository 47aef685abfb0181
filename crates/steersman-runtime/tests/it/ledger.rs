//! The ledger after given lines.

use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::{
    Admission, Admitted, Commit, Hold, LedgerEntry as E, LogLine, Opening, Release, Why,
};
use steersman_machine::stored::ids::{Digest, Id, Line, Time};
use steersman_machine::stored::interaction::Class;
use steersman_runtime::ledger::{Amount, Beginning, Ledger, Progress, Stands, Verdict};

const SALT: [u8; 16] = [7; 16];

fn id(n: u64, k: u32) -> Id {
    Id::new(Line(n), k)
}

fn line(n: u64, branch: Id, ledger: Vec<E>) -> LogLine {
    LogLine {
        n: Line(n),
        at: Time(0),
        prev: Line(n - 1),
        branch,
        commit: None,
        ledger,
        bodies: Vec::new(),
    }
}

fn committed(mut line: LogLine, commit: Commit) -> LogLine {
    line.commit = Some(commit);
    line
}

/// A commit that takes the outcome of an effect.
fn outcome(effect: Id) -> Commit {
    Commit {
        admitted: vec![Admission {
            kind: Admitted::Outcome,
            id: Some(effect),
            message: None,
            by: None,
            body: None,
        }],
        ..Commit::default()
    }
}

/// Returns the ledger after these lines. After each line it is also encoded as a checkpoint and decoded again.
fn ledger(lines: &[LogLine]) -> Ledger {
    let mut ledger = Ledger::default();
    for line in lines {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&line.n.0.to_le_bytes());
        ledger.fold(line, &hash);
        let again = Ledger::decode(&ledger.encode(&SALT), &SALT);
        assert_eq!(again.as_ref(), Some(&ledger), "after line {}", line.n);
    }
    ledger
}

/// Returns the equal effect that keeps an effect of this class from beginning, and how that one stands. `None` means that
/// the effect may begin.
fn kept_by(ledger: &Ledger, class: Class, branch: Id, effect: Id) -> Option<(Id, Stands)> {
    let verdict = ledger.verdict(Beginning {
        effect,
        branch,
        digests: &[digest()],
        class,
        epoch: ledger.epoch,
        may_repeat: false,
        word: None,
        line: ledger.line.next(),
        beside: &[],
    });
    match verdict {
        Verdict::Begins => None,
        Verdict::Waits(other) => Some((other, Stands::Runs)),
        Verdict::Doubted(equal) | Verdict::Repeats(equal) => Some((equal.effect, equal.stands)),
    }
}

fn unsafe_kept_by(ledger: &Ledger, branch: Id, effect: Id) -> Option<(Id, Stands)> {
    kept_by(ledger, Class::Unsafe, branch, effect)
}

fn hold(effect: Id, why: Why) -> E {
    E::Hold(Hold {
        effect,
        why,
        digest: digest(),
        by: vec!["user".into()],
        ask: None,
        due: None,
        about: None,
    })
}

fn digest() -> Digest {
    Digest::of(b"transfer {cents: 500}")
}

fn started(effect: Id, attempt: u32, epoch: u64) -> E {
    E::Started {
        effect,
        attempt,
        epoch,
        digest: digest(),
        class: Class::Idempotent,
    }
}

fn released(effect: Id, why: Why, how: Release) -> E {
    E::Released {
        effect,
        why,
        how,
        about: None,
        by: By::default().into(),
        body: None,
    }
}

fn accepted(message: &str) -> E {
    E::Accepted {
        message: message.into(),
        by: Some(By::default()),
        parent: None,
    }
}

fn claimed(epoch: u64) -> E {
    E::Claimed {
        epoch,
        mark: epoch,
        owner: "test".into(),
        build: "0".into(),
        revision: 1,
    }
}

fn done(effect: Id, attempt: u32) -> E {
    E::Done {
        effect,
        attempt,
        kept: None,
    }
}

/// An approval is asked for and given, the effect begins, and its outcome is taken.
#[test]
fn an_approved_effect_is_done() {
    let b = id(21, 1);
    let asked = line(21, Id::MAIN, vec![claimed(7), hold(b, Why::Approval)]);
    let given = line(
        23,
        Id::MAIN,
        vec![
            accepted("m6"),
            released(b, Why::Approval, Release::Go),
            started(b, 1, 7),
        ],
    );
    let at_hold = ledger(std::slice::from_ref(&asked));
    assert_eq!(
        at_hold.hold(b, Why::Approval).map(|h| h.digest),
        Some(digest())
    );
    assert_eq!(at_hold.effect(b).unwrap().progress, Progress::Wished);
    let running = ledger(&[asked.clone(), given.clone()]);
    assert_eq!(running.holds().count(), 0);
    assert!(running.accepted("m6") && !running.accepted("m7"));
    assert_eq!(running.effect(b).unwrap().attempt, 1);
    let other = id(28, 0);
    let kept = unsafe_kept_by(&running, Id::MAIN, other);
    assert_eq!(kept, Some((b, Stands::Runs)));
    assert_eq!(kept_by(&running, Class::Idempotent, Id::MAIN, other), None);
    let ended = committed(line(24, Id::MAIN, vec![done(b, 1)]), outcome(b));
    let after = ledger(&[asked, given, ended]);
    let progress = Progress::Done {
        at: Line(24),
        kept: None,
    };
    assert_eq!(after.effect(b).unwrap().progress, progress);
    let kept = unsafe_kept_by(&after, Id::MAIN, other);
    assert_eq!(kept, Some((b, Stands::Done)), "on its own path, too");
    assert_eq!(kept_by(&after, Class::Idempotent, Id::MAIN, other), None);
    assert_eq!(
        unsafe_kept_by(&after, Id::MAIN, b),
        None,
        "itself does not count"
    );
}

/// The owner died while an unsafe effect ran. Its doubt ends as done, as not performed, or is given up.
#[test]
fn a_doubt_has_three_ways_out() {
    let b = id(21, 1);
    let before = line(23, Id::MAIN, vec![claimed(7), started(b, 1, 7)]);
    let takeover = line(100, Id::MAIN, vec![claimed(8)]);
    let found = ledger(&[before.clone(), takeover.clone()]);
    assert!(found.may_have_happened(b, 8) && !found.may_have_happened(b, 7));
    assert_eq!(
        unsafe_kept_by(&found, Id::MAIN, id(101, 0)),
        Some((b, Stands::InDoubt))
    );
    let unknown = E::Unknown {
        effect: b,
        attempt: 1,
    };
    let doubt = line(101, Id::MAIN, vec![unknown, hold(b, Why::Doubt)]);
    let lines = [before, takeover, doubt];
    let doubted = ledger(&lines);
    assert!(doubted.effect(b).unwrap().in_doubt());
    assert!(doubted.hold(b, Why::Doubt).is_some());

    let with = |how: Release| {
        let last = line(102, Id::MAIN, vec![released(b, Why::Doubt, how)]);
        ledger(&lines.iter().cloned().chain([last]).collect::<Vec<_>>())
    };
    let happened = with(Release::Outcome);
    let progress = Progress::Done {
        at: Line(102),
        kept: None,
    };
    assert_eq!(happened.effect(b).unwrap().progress, progress);
    let did_not = with(Release::Go);
    assert_eq!(did_not.effect(b).unwrap().progress, Progress::NotPerformed);
    assert_eq!(unsafe_kept_by(&did_not, Id::MAIN, id(103, 0)), None);
    for how in [Release::GivenUp, Release::Cancelled, Release::Expired] {
        let given_up = with(how);
        assert_eq!(
            given_up.effect(b).unwrap().progress,
            Progress::GivenUp { at: Line(102) }
        );
        assert_eq!(
            unsafe_kept_by(&given_up, Id::MAIN, id(103, 0)),
            Some((b, Stands::GivenUp))
        );
    }
}

/// The outcome of the old owner arrives before a person resolves the doubt: it ends the hold.
#[test]
fn a_late_outcome_ends_a_doubt() {
    let b = id(21, 1);
    let known = ledger(&[
        line(23, Id::MAIN, vec![claimed(7), started(b, 1, 7)]),
        line(
            100,
            Id::MAIN,
            vec![
                claimed(8),
                E::Unknown {
                    effect: b,
                    attempt: 1,
                },
                hold(b, Why::Doubt),
            ],
        ),
        committed(line(101, Id::MAIN, vec![done(b, 1)]), outcome(b)),
    ]);
    assert_eq!(known.holds().count(), 0);
    let kept = unsafe_kept_by(&known, Id::MAIN, id(102, 0));
    assert_eq!(kept, Some((b, Stands::Done)));
}

/// With `on_doubt: fail` the line that records the unknown outcome also takes it: the effect is given up.
#[test]
fn an_unknown_outcome_that_was_admitted_is_given_up() {
    let b = id(3, 1);
    let told = ledger(&[
        line(3, Id::MAIN, vec![claimed(1), started(b, 1, 1)]),
        committed(
            line(
                4,
                Id::MAIN,
                vec![E::Unknown {
                    effect: b,
                    attempt: 1,
                }],
            ),
            outcome(b),
        ),
    ]);
    assert_eq!(
        told.effect(b).unwrap().progress,
        Progress::GivenUp { at: Line(4) }
    );
}

/// After a rewind a done effect is on a superseded branch, and equal effects of the new branch do not begin. When the old
/// branch is current again, an equal idempotent effect may begin there.
#[test]
fn a_rewind_leaves_done_effects_behind() {
    let (b, r) = (id(21, 1), id(26, 1));
    let opening = Commit {
        parent: Line(21),
        opening: Some(Opening {
            scope: None,
            dry: false,
            label: Some("again".into()),
            of: None,
        }),
        ..Commit::default()
    };
    let mut rewound = committed(
        line(
            26,
            r,
            vec![
                E::Superseded {
                    branch: Id::MAIN,
                    after: Line(21),
                },
                E::Opened {
                    branch: r,
                    from: Id::MAIN,
                    at: Line(21),
                },
                E::Current(r),
                E::Listed(b),
            ],
        ),
        opening,
    );
    rewound.prev = Line(21);
    let lines = [
        line(23, Id::MAIN, vec![claimed(7), started(b, 1, 7)]),
        committed(line(24, Id::MAIN, vec![done(b, 1)]), outcome(b)),
        rewound,
    ];
    let there = ledger(&lines);
    assert_eq!(there.current, r);
    assert_eq!(there.find_branch("again"), Some(r));
    assert_eq!(there.find_branch("26.1"), Some(r));
    assert_eq!(there.find_branch("main"), Some(Id::MAIN));
    assert_eq!(there.listed().collect::<Vec<_>>(), [b]);
    assert!(there.on_path(r, Id::MAIN, Line(21)) && !there.on_path(r, Id::MAIN, Line(24)));
    assert!(there.on_path(r, r, Line(26)) && !there.on_path(Id::MAIN, r, Line(26)));
    for class in [Class::Unsafe, Class::Idempotent] {
        let kept = kept_by(&there, class, r, id(28, 0));
        assert_eq!(kept, Some((b, Stands::Done)));
    }
    let back = line(27, Id::MAIN, vec![E::Current(Id::MAIN)]);
    let again = ledger(&lines.iter().cloned().chain([back]).collect::<Vec<_>>());
    let kept = kept_by(&again, Class::Idempotent, Id::MAIN, id(28, 0));
    assert_eq!(kept, None, "asked for again where it was done");
    assert_eq!(again.branch(Id::MAIN).unwrap().superseded, None);
}

/// An effect on a superseded branch may still run: an equal effect waits for its end.
#[test]
fn an_abandoned_effect_that_runs_is_waited_for() {
    let (b, r) = (id(2, 1), id(4, 1));
    let there = ledger(&[
        line(3, Id::MAIN, vec![claimed(1), started(b, 1, 1)]),
        line(
            4,
            r,
            vec![
                E::Superseded {
                    branch: Id::MAIN,
                    after: Line(2),
                },
                E::Opened {
                    branch: r,
                    from: Id::MAIN,
                    at: Line(2),
                },
            ],
        ),
    ]);
    for class in [Class::Unsafe, Class::Idempotent] {
        let kept = kept_by(&there, class, r, id(5, 0));
        assert_eq!(kept, Some((b, Stands::Runs)));
    }
}

/// At a takeover the open slice counts as spent, once. Spending above a slice leaves nothing of it.
#[test]
fn an_open_slice_is_settled_at_takeover() {
    let spend = |n, tokens, micros| E::Spend {
        effect: id(n, 0),
        tokens,
        micros,
    };
    let lines = [
        line(
            1,
            Id::MAIN,
            vec![
                claimed(1),
                E::Escrow {
                    tokens: 1_000,
                    micros: 50,
                },
            ],
        ),
        line(2, Id::MAIN, vec![spend(1, 300, 20)]),
        line(
            3,
            Id::MAIN,
            vec![E::Escrow {
                tokens: 300,
                micros: 20,
            }],
        ),
    ];
    let running = ledger(&lines);
    assert_eq!(running.slice, Amount::new(1_000, 50));
    assert_eq!(running.spent, Amount::new(300, 20));
    let settled = line(
        100,
        Id::MAIN,
        vec![
            claimed(2),
            E::Settle {
                tokens: 1_000,
                micros: 50,
            },
        ],
    );
    let after = ledger(&lines.iter().cloned().chain([settled]).collect::<Vec<_>>());
    assert_eq!(after.slice, Amount::default());
    assert_eq!(after.spent, Amount::new(1_300, 70));
    assert_eq!(after.calls, 1);
    let over = ledger(&[
        line(
            1,
            Id::MAIN,
            vec![E::Escrow {
                tokens: 10,
                micros: 1,
            }],
        ),
        line(2, Id::MAIN, vec![spend(1, 300, 20)]),
    ]);
    assert_eq!(
        (over.slice, over.spent),
        (Amount::default(), Amount::new(300, 20))
    );
}

/// Effects that never began an attempt are forgotten when they end, so the ledger of a long session of reads stays small.
#[test]
fn effects_that_touched_nothing_are_forgotten() {
    let (read, held) = (id(2, 0), id(2, 1));
    let after = ledger(&[
        line(
            2,
            Id::MAIN,
            vec![hold(read, Why::Approval), hold(held, Why::Approval)],
        ),
        line(
            3,
            Id::MAIN,
            vec![released(read, Why::Approval, Release::Go)],
        ),
        line(
            4,
            Id::MAIN,
            vec![released(held, Why::Approval, Release::Cancelled)],
        ),
        committed(line(5, Id::MAIN, vec![]), outcome(read)),
    ]);
    assert_eq!(after.effects().count(), 0);
}

/// A branch ends when its top agent rests, and is open again from its next commit.
#[test]
fn a_branch_that_ended_may_go_on() {
    let ended = [committed(
        line(5, Id::MAIN, vec![E::Ended(Id::MAIN)]),
        Commit::default(),
    )];
    assert_eq!(
        ledger(&ended).branch(Id::MAIN).unwrap().ended,
        Some(Line(5))
    );
    let b = id(6, 1);
    let forked = line(
        6,
        Id::MAIN,
        vec![E::Opened {
            branch: b,
            from: Id::MAIN,
            at: Line(6),
        }],
    );
    let lines = [ended[0].clone(), forked];
    let opened = ledger(&lines);
    let branch = opened.branch(b).unwrap();
    assert_eq!(
        (branch.head, branch.from),
        (Line(6), Some((Id::MAIN, Line(6))))
    );
    assert_eq!(branch.hash, opened.branch(Id::MAIN).unwrap().hash);
    assert_eq!(
        opened.branch(Id::MAIN).unwrap().ended,
        Some(Line(5)),
        "no commit since"
    );
    let more = committed(line(7, Id::MAIN, vec![]), Commit::default());
    let live = ledger(&lines.iter().cloned().chain([more]).collect::<Vec<_>>());
    assert_eq!(live.branch(Id::MAIN).unwrap().ended, None);
}

/// The time of a late retry is remembered until the outcome of the effect is taken.
#[test]
fn a_retry_waits_for_its_time() {
    let model = id(1, 1);
    let waits = line(
        2,
        Id::MAIN,
        vec![E::Again {
            effect: model,
            at: Time(3_600_000),
        }],
    );
    assert_eq!(
        ledger(std::slice::from_ref(&waits))
            .effect(model)
            .unwrap()
            .again,
        Some(Time(3_600_000))
    );
    let answered = committed(line(3, Id::MAIN, vec![]), outcome(model));
    assert!(ledger(&[waits, answered]).effect(model).is_none());
}

#[test]
fn a_damaged_checkpoint_is_discarded() {
    let bytes = ledger(&[line(1, Id::MAIN, vec![accepted("m1")])]).encode(&SALT);
    assert!(Ledger::decode(&bytes, &SALT).is_some());
    assert!(Ledger::decode(&bytes, &[8; 16]).is_none());
    for at in 0..bytes.len() {
        assert!(Ledger::decode(&bytes[..at], &SALT).is_none());
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        assert!(Ledger::decode(&flipped, &SALT).is_none());
    }
}

/// A checkpoint is a cache, so its form may change. A changed form needs another version, so that old checkpoints are
/// discarded.
#[test]
fn the_form_of_ledgers_has_its_version() {
    let form = steersman_testkit::schema::describe::<Ledger>();
    insta::assert_snapshot!(
        "ledger",
        format!("version {}\n{form}", steersman_runtime::ledger::VERSION)
    );
}

//! The plan of a simulation: the acts of people and the faults, drawn from a seed.

use super::dice::Dice;

/// A plan for one session. Equal plans give equal sessions.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) steps: Vec<Step>,
    /// Models lie and fail.
    pub(super) models_lie: bool,
    /// Tools fail.
    pub(super) tools_fail: bool,
    /// Milliseconds that the store takes for each batch.
    pub(super) store_takes: u64,
}

/// A step of a plan.
#[derive(Copy, Clone, Debug)]
pub(super) struct Step {
    /// Milliseconds after the step before.
    pub(super) after: u64,
    pub(super) act: Act,
    /// Everything else about the step follows from this number.
    pub(super) salt: u64,
}

/// The kinds of steps.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// A person decides something that waits for people.
    Decide,
    /// The same decision is made twice.
    DecideTwice,
    /// A person decides in a role that may not.
    DecideWrongly,
    Say,
    Interrupt,
    Event,
    Cancel,
    Fork,
    Rewind,
    Adopt,
    Current,
    Pause,
    Resume,
    Hold,
    Release,
    Retry,
    /// The owner stops in an orderly way, immediately or as soon as a tool runs, and another process goes on.
    Stop,
    /// The process dies, and another one goes on.
    Die,
    /// The process dies while it writes.
    DieWriting,
    /// The owner loses its lease, and goes on for a while together with the new owner; or it stands still meanwhile.
    Overtake,
    /// The store fails once.
    Fail,
    /// The store answers late once.
    Late,
}

/// The kinds of steps, each as often as it is drawn.
const ACTS: [(Act, u64); 22] = [
    (Act::Decide, 40),
    (Act::DecideTwice, 4),
    (Act::DecideWrongly, 3),
    (Act::Say, 14),
    (Act::Interrupt, 3),
    (Act::Event, 5),
    (Act::Cancel, 4),
    (Act::Fork, 3),
    (Act::Rewind, 3),
    (Act::Adopt, 2),
    (Act::Current, 1),
    (Act::Pause, 2),
    (Act::Resume, 2),
    (Act::Hold, 2),
    (Act::Release, 2),
    (Act::Retry, 2),
    (Act::Stop, 6),
    (Act::Die, 4),
    (Act::DieWriting, 5),
    (Act::Overtake, 4),
    (Act::Fail, 2),
    (Act::Late, 4),
];

impl Plan {
    pub(super) fn drawn(seed: u64) -> Self {
        let mut dice = Dice::of(&[seed, 1]);
        let n = 3 + dice.below(12);
        let steps = (0..n).map(|_| Step::drawn(&mut dice)).collect();
        Self {
            seed,
            steps,
            models_lie: dice.percent(80),
            tools_fail: dice.percent(80),
            store_takes: match dice.below(3) {
                0 => 0,
                1 => dice.below(10),
                _ => dice.below(1_000),
            },
        }
    }

    /// Returns plans that do less, the smallest first.
    pub(super) fn smaller(&self) -> Vec<Self> {
        let mut plans = Vec::new();
        let n = self.steps.len();
        let mut size = n;
        while size > 0 {
            for from in (0..n).step_by(size) {
                let mut plan = self.clone();
                plan.steps.drain(from..(from + size).min(n));
                plans.push(plan);
            }
            size /= 2;
        }
        if self.models_lie {
            plans.push(Self {
                models_lie: false,
                ..self.clone()
            });
        }
        if self.tools_fail {
            plans.push(Self {
                tools_fail: false,
                ..self.clone()
            });
        }
        if self.store_takes > 0 {
            plans.push(Self {
                store_takes: 0,
                ..self.clone()
            });
        }
        plans
    }
}

impl Step {
    fn drawn(dice: &mut Dice) -> Self {
        let all: u64 = ACTS.iter().map(|(_, often)| often).sum();
        let mut at = dice.below(all);
        let drawn = ACTS.iter().find(|(_, often)| {
            let here = at < *often;
            at = at.saturating_sub(*often);
            here
        });
        // Many steps meet a session that still works, some one that rests.
        let after = match dice.below(10) {
            0..3 => dice.below(5),
            3..6 => dice.below(1_000),
            6..9 => 60_000 + dice.below(60_000),
            _ => dice.below(4_000_000),
        };
        Self {
            after,
            act: drawn.map_or(Act::Decide, |(act, _)| *act),
            salt: dice.roll(),
        }
    }
}

//! Plans of sequences of acts, and counts of what they cover.
//!
//! The planner prefers pairs of acts that it planned seldom, so a plan depends on all plans before it with the same
//! seed. The number of a sequence contains the seed, and determines the plan.

use crate::server::{Fault, Point};

/// A command that a person types.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    Send,
    Approve,
    Edit,
    Reject,
    Fork,
    Rewind,
    Adopt,
    Join,
    Search,
    Cancel,
    Pause,
    Resume,
    Hold,
    Release,
    Retry,
    Resolve,
    Rerun,
    Migrate,
    Erase,
    Gc,
}

/// All acts, each with its name and its weight when an act is drawn.
pub(crate) const ACTS: [(Act, &str, u64); 20] = [
    (Act::Send, "send", 6),
    (Act::Approve, "approve", 4),
    (Act::Edit, "edit", 3),
    (Act::Reject, "reject", 2),
    (Act::Fork, "fork", 3),
    (Act::Rewind, "rewind", 2),
    (Act::Adopt, "adopt", 3),
    (Act::Join, "join", 2),
    (Act::Search, "search", 3),
    (Act::Cancel, "cancel", 2),
    (Act::Pause, "pause", 2),
    (Act::Resume, "resume", 3),
    (Act::Hold, "hold", 2),
    (Act::Release, "release", 3),
    (Act::Retry, "retry", 2),
    (Act::Resolve, "resolve", 3),
    (Act::Rerun, "rerun", 2),
    (Act::Migrate, "migrate", 2),
    (Act::Erase, "erase", 2),
    (Act::Gc, "gc", 2),
];

impl Act {
    pub(crate) fn number(self) -> usize {
        let found = ACTS.iter().position(|(act, ..)| *act == self);
        found.expect("all are there")
    }
}

/// The time of a kill, relative to an act.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    Inside,
    After,
}

pub(crate) const WHENS: [When; 3] = [When::Before, When::Inside, When::After];

/// The point at which a process is killed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// A call reaches this point, after so many others.
    Call(Point, u32),
    /// The process has printed so many rows.
    Row(usize),
    /// So many microseconds passed: for acts that make no call and print nothing.
    Micros(u64),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kill {
    pub(crate) when: When,
    pub(crate) at: At,
    /// Kill the process that drives the store, if there is one, and otherwise the process of the act.
    pub(crate) owner: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) act: Act,
    pub(crate) session: usize,
    /// Seed of all other choices. They also depend on the state of the session.
    pub(crate) salt: u64,
    /// The next act is typed before this one has ended.
    pub(crate) together: bool,
    /// The command names the store by a symbolic link.
    pub(crate) linked: bool,
    pub(crate) fault: Option<Fault>,
    pub(crate) kill: Option<Kill>,
    /// A call stalls at this point, after so many others, until so many further acts were typed.
    pub(crate) stall: Option<(Point, u32, u32)>,
}

/// Processes that drive the sessions in addition to the commands of the plan.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Drivers {
    /// None: only the commands of the plan drive a session.
    Nobody,
    /// One `run --all`.
    One,
    /// Two `run --all`.
    Two,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) number: u64,
    pub(crate) drivers: Drivers,
    pub(crate) sessions: usize,
    pub(crate) steps: Vec<Step>,
}

/// A small generator of random numbers. The same seed gives the same numbers on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// True in `n` of 100 cases.
    pub(crate) fn percent(&mut self, n: u64) -> bool {
        self.below(100) < n
    }

    pub(crate) fn of<'a, T>(&mut self, some: &'a [T]) -> Option<&'a T> {
        some.get(self.below(some.len() as u64) as usize)
    }
}

/// Counts how often each act followed each other act, and how often a process was killed at each act.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    pub(crate) pairs: Vec<[u32; ACTS.len()]>,
    pub(crate) kills: Vec<[u32; WHENS.len()]>,
    /// For each act, how often it was accepted and how often it was typed.
    pub(crate) taken: [(u32, u32); ACTS.len()],
}

impl Default for Coverage {
    fn default() -> Self {
        Self {
            pairs: vec![[0; ACTS.len()]; ACTS.len()],
            kills: vec![[0; WHENS.len()]; ACTS.len()],
            taken: [(0, 0); ACTS.len()],
        }
    }
}

/// Plans sequences, and prefers pairs of acts and kills that it planned seldom.
pub(crate) struct Planner {
    seed: u64,
    next: u64,
    planned: Coverage,
}

/// Largest number of sequences of one seed.
const ROOM: u64 = 1_000_000;

impl Planner {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            next: 0,
            planned: Coverage::default(),
        }
    }

    /// The plan of the sequence with this number.
    pub(crate) fn find(number: u64) -> Plan {
        let mut planner = Self::new(number / ROOM);
        loop {
            let plan = planner.plan();
            if plan.number == number {
                return plan;
            }
        }
    }

    /// The plan of the next sequence.
    pub(crate) fn plan(&mut self) -> Plan {
        let number = self.seed * ROOM + self.next;
        self.next += 1;
        let mut random = Random::new(number);
        let drivers = match random.below(10) {
            0..=4 => Drivers::Nobody,
            5..=7 => Drivers::One,
            _ => Drivers::Two,
        };
        let sessions = 1 + usize::from(random.percent(25));
        let longer = random.below(36).max(random.below(36));
        let mut steps: Vec<Step> = Vec::new();
        for _ in 0..5 + longer {
            let before = steps.last().map(|step| step.act);
            let act = self.act_after(before, &mut random);
            steps.push(self.step(act, sessions, &mut random));
        }
        Plan {
            number,
            drivers,
            sessions,
            steps,
        }
    }

    /// Draws four acts, and returns the one that was planned least often after `before`.
    fn act_after(&mut self, before: Option<Act>, random: &mut Random) -> Act {
        let all: u64 = ACTS.iter().map(|(.., weight)| weight).sum();
        let mut draw = || {
            let mut at = random.below(all);
            let found = ACTS.iter().find(|(.., weight)| {
                let here = at < *weight;
                at = at.wrapping_sub(*weight);
                here
            });
            found.expect("it is below the sum").0
        };
        let Some(before) = before else {
            return Act::Send;
        };
        let some = [draw(), draw(), draw(), draw()];
        let row = &mut self.planned.pairs[before.number()];
        let act = some.into_iter().min_by_key(|act| row[act.number()]);
        let act = act.expect("there are some");
        row[act.number()] += 1;
        act
    }

    fn step(&mut self, act: Act, sessions: usize, random: &mut Random) -> Step {
        let kill = random.percent(30).then(|| self.kill(act, random));
        let point = *random.of(&POINTS).expect("there are some");
        let stall = (kill.is_none() && random.percent(16))
            .then(|| (point, random.below(2) as u32, 1 + random.below(4) as u32));
        Step {
            act,
            session: random.below(sessions as u64) as usize,
            salt: random.next(),
            linked: random.percent(12),
            together: kill.is_none() && stall.is_none() && random.percent(12),
            fault: random.percent(8).then(|| match random.below(5) {
                0 | 1 => Fault::Lies,
                2 | 3 => Fault::Refuses,
                _ => Fault::Denies,
            }),
            kill,
            stall,
        }
    }

    fn kill(&mut self, act: Act, random: &mut Random) -> Kill {
        let row = &mut self.planned.kills[act.number()];
        let some = [random.below(3) as usize, random.below(3) as usize];
        let when = some.into_iter().min_by_key(|when| row[*when]);
        let when = when.expect("there are some");
        row[when] += 1;
        let at = match random.below(10) {
            0..=4 => {
                let point = *random.of(&POINTS).expect("there are some");
                At::Call(point, random.below(3) as u32)
            }
            5..=7 => At::Row(1 + random.below(6) as usize),
            _ => At::Micros(random.below(25_000)),
        };
        // These acts make no call and print one row at their end: only a time can hit them inside.
        let at = match act {
            Act::Pause | Act::Hold | Act::Migrate | Act::Erase | Act::Gc
                if WHENS[when] == When::Inside && random.percent(70) =>
            {
                At::Micros(random.below(25_000))
            }
            _ => at,
        };
        Kill {
            when: WHENS[when],
            at,
            owner: random.percent(70),
        }
    }
}

/// The points to draw from. The most critical ones are listed twice, so they are drawn twice as often.
const POINTS: [Point; 6] = [
    Point::Model,
    Point::Called,
    Point::Called,
    Point::Performed,
    Point::Performed,
    Point::Probed,
];

impl Coverage {
    pub(crate) fn add(&mut self, other: &Self) {
        for (row, more) in self.pairs.iter_mut().zip(&other.pairs) {
            row.iter_mut().zip(more).for_each(|(n, more)| *n += more);
        }
        for (row, more) in self.kills.iter_mut().zip(&other.kills) {
            row.iter_mut().zip(more).for_each(|(n, more)| *n += more);
        }
        for (sum, more) in self.taken.iter_mut().zip(&other.taken) {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
    }

    /// The number of pairs of acts, and of kinds of kills, that occurred less than `least` times.
    pub(crate) fn below(&self, least: u32) -> (usize, usize) {
        let pairs = self.pairs.iter().flatten().filter(|n| **n < least).count();
        let kills = self.kills.iter().flatten().filter(|n| **n < least).count();
        (pairs, kills)
    }

    /// A table with a row for each act and a column for each act that came next.
    pub(crate) fn table(&self) -> String {
        use std::fmt::Write;
        let mut text = String::from("then:    ");
        for (_, name, _) in ACTS {
            let _ = write!(text, " {:>5}", &name[..name.len().min(5)]);
        }
        text.push_str("   killed before, inside, after   taken of typed\n");
        for (at, (_, name, _)) in ACTS.iter().enumerate() {
            let _ = write!(text, "{name:<9}");
            for n in self.pairs[at] {
                let _ = write!(text, " {n:>5}");
            }
            let [before, inside, after] = self.kills[at];
            let (taken, typed) = self.taken[at];
            let _ = writeln!(
                text,
                "   {before:>13} {inside:>7} {after:>6}   {taken:>5} of {typed}"
            );
        }
        text
    }
}

//! Sequences of acts: what is drawn from a number, and what was covered.
//!
//! The plan of sequence `n` follows from the plans of all before it under the same seed, since pairs of acts that are
//! seldom planned are preferred. So one number says all of it.

use crate::server::{Fault, Point};

/// Something that a person types.
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

/// All acts, with how often each is thought of.
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

/// When a process dies, seen from an act.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    Inside,
    After,
}

pub(crate) const WHENS: [When; 3] = [When::Before, When::Inside, When::After];

/// The point at which it dies.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// A call comes there, after so many others.
    Call(Point, u32),
    /// So many rows were told.
    Row(usize),
    /// So many microseconds passed: for acts that call nobody and tell nothing.
    Micros(u64),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kill {
    pub(crate) when: When,
    pub(crate) at: At,
    /// Who drives the store dies, where somebody does; else whoever acts.
    pub(crate) owner: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) act: Act,
    pub(crate) session: usize,
    /// Decides all else about it, together with how the session stands.
    pub(crate) salt: u64,
    /// The next one is typed before this one has ended.
    pub(crate) together: bool,
    /// The store is named by a link to it.
    pub(crate) linked: bool,
    pub(crate) fault: Option<Fault>,
    pub(crate) kill: Option<Kill>,
    /// A call stalls there, until so many further acts were typed.
    pub(crate) stall: Option<(Point, u32, u32)>,
}

/// Who drives.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Drivers {
    /// Whoever acts.
    Nobody,
    /// `run --all`.
    One,
    /// Two of them.
    Two,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) number: u64,
    pub(crate) drivers: Drivers,
    pub(crate) sessions: usize,
    pub(crate) steps: Vec<Step>,
}

/// Small, seeded, and the same on every machine.
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

    /// True so often of a hundred times.
    pub(crate) fn percent(&mut self, n: u64) -> bool {
        self.below(100) < n
    }

    pub(crate) fn of<'a, T>(&mut self, some: &'a [T]) -> Option<&'a T> {
        some.get(self.below(some.len() as u64) as usize)
    }
}

/// How often each pair of acts followed on each other, and each act was met by a kill.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    pub(crate) pairs: Vec<[u32; ACTS.len()]>,
    pub(crate) kills: Vec<[u32; WHENS.len()]>,
    /// Acts that were taken, of all that were typed.
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

/// Plans sequences, those first that cover what is seldom covered.
pub(crate) struct Planner {
    seed: u64,
    next: u64,
    planned: Coverage,
}

/// Sequences of one seed.
const ROOM: u64 = 1_000_000;

impl Planner {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            next: 0,
            planned: Coverage::default(),
        }
    }

    /// The sequence of this number.
    pub(crate) fn find(number: u64) -> Plan {
        let mut planner = Self::new(number / ROOM);
        loop {
            let plan = planner.plan();
            if plan.number == number {
                return plan;
            }
        }
    }

    /// The next one.
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

    /// Of some that are drawn the one that seldom followed on this act.
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
        // Whoever calls nobody and tells one row at its end is killed by the clock.
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

/// The points of calls; those at which most is at stake stand there twice.
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

    /// Pairs that did not follow on each other so often, and kills that did not happen so often.
    pub(crate) fn below(&self, least: u32) -> (usize, usize) {
        let pairs = self.pairs.iter().flatten().filter(|n| **n < least).count();
        let kills = self.kills.iter().flatten().filter(|n| **n < least).count();
        (pairs, kills)
    }

    /// As a table: each row is an act, each column what came next.
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

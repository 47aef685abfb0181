//! Random sessions, rerun with nothing changed: the recording is followed to its end, so nobody is asked, nothing runs, and the
//! result is the recorded one.

use super::recording::Recording;
use super::walk::{Changed, Next, Walk};
use super::{Diverged, People, began};
use crate::bind::Values;
use crate::past::Past;
use crate::seal::Sealer;
use crate::store::memory::MemoryStore;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::context;
use steersman_machine::context::RenderCache;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::{Binding, Commit, LogLine};
use steersman_machine::stored::ids::{Digest, Id, Line};
use steersman_testkit::random::{self, Dice};
use steersman_testkit::world::{Fault, World};

/// Number of events in a session: most sessions are short, some are long.
fn events(seed: u64) -> u64 {
    if seed.is_multiple_of(50) {
        30
    } else {
        2 + seed % 5
    }
}

fn past(head: Line) -> Past {
    Past::new(
        Arc::new(MemoryStore::new()),
        "random".into(),
        [0; 16],
        head,
        usize::MAX,
    )
}

/// The snapshot of a line's branch before the line.
fn before(world: &World, line: &LogLine) -> Option<Snapshot> {
    let commit = line.commit.as_ref()?;
    commit.parent.is_some().then(|| world.after(commit.parent))
}

/// The line as a driver writes it: each answer names the request that it answers.
fn recorded(world: &World, line: &LogLine) -> LogLine {
    let mut line = line.clone();
    let Some(snapshot) = before(world, &line) else {
        return line;
    };
    let commit = line.commit.as_mut().expect("it has a parent");
    for usage in &mut commit.usage {
        let Some(out) = usage
            .effect
            .and_then(|effect| snapshot.effects.get(&effect))
        else {
            continue;
        };
        let mut cache = RenderCache::default();
        let request = context::request(&world.cx(), world, &snapshot, out.agent, &mut cache);
        usage.request = request.ok().map(|request| request.digest);
        usage.render = context::RENDER_VERSION;
    }
    line
}

/// Removes the differences that a rerun may have: it is dry from the beginning; under another definition it has another binding.
fn comparable(commit: &Commit, is_other: bool) -> Commit {
    let mut commit = commit.clone();
    commit.opening = commit
        .opening
        .filter(|opening| opening.of.is_some() || opening.scope.is_some());
    if let Some(opening) = &mut commit.opening {
        opening.dry = true;
    }
    if is_other {
        commit.binding = None;
    }
    commit
}

/// Result of a rerun.
struct RerunResult {
    /// Number of lines that were followed.
    followed: u64,
    /// The place and reason of the first divergence.
    left: Option<Diverged>,
}

/// Reruns a branch, with nothing changed or under a definition that differs only by its digest. Checks that each followed line
/// equals the recorded one.
fn rerun(
    world: &World,
    branch: Id,
    is_other: bool,
    spoils: impl Fn(&mut LogLine),
) -> Result<RerunResult, String> {
    let all: BTreeMap<Line, Arc<LogLine>> = world
        .lines()
        .iter()
        .filter(|line| line.commit.is_some())
        .map(|line| {
            let mut line = recorded(world, line);
            spoils(&mut line);
            (line.n, Arc::new(line))
        })
        .collect();
    let known = past(world.lines().last().map_or(Line::NONE, |line| line.n));
    for line in all.values() {
        known.add(line.clone());
    }
    let head = world.at(branch).line;
    let recording = Recording::of(known, &all, head);
    let (binding, text) = began(&recording).map_err(|e| e.to_string())?;
    let other = Binding {
        digest: Digest::of(b"another definition"),
        ..binding.clone()
    };
    let changed = Changed {
        network: world.network.clone(),
        binding: if is_other { other } else { binding.clone() },
        values: Values::default(),
        is_other,
        at: None,
        says: false,
        live: false,
        labels: Vec::new(),
    };
    let old = (world.network.clone(), binding, text);
    let new = Arc::new(past(Line::NONE));
    let sealer = Sealer::ephemeral();
    let mut walk = Walk::new(
        &recording,
        branch,
        old,
        &changed,
        new,
        &People::Recorded,
        &sealer,
    );
    while walk.next().map_err(|e| e.to_string())? != Next::End {}
    let walked = walk.over();
    if walked.diverged.is_none() && walked.lines.len() != recording.lines.len() {
        return Err("it has another number of lines".to_owned());
    }
    for (made, was) in walked.lines.iter().zip(&recording.lines) {
        let commits = [made, was.as_ref()].map(|line| line.commit.as_ref());
        let both = commits.map(|commit| commit.map(|commit| comparable(commit, is_other)));
        if both[0] != both[1] {
            return Err(format!("line {} differs: {both:?}", was.n));
        }
    }
    Ok(RerunResult {
        followed: walked.followed,
        left: walked.diverged,
    })
}

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

/// Plays a session of some events; its own behaviour is checked elsewhere.
fn played(seed: u64) -> Result<World, Fault> {
    let mut dice = Dice::new(seed);
    let mut world = random::begin(&mut dice)?;
    world.checked = false;
    for _ in 0..events(seed) {
        random::event(&mut world, &mut dice)?;
    }
    Ok(world)
}

/// Sums over many reruns.
#[derive(Default)]
struct Sum {
    reruns: u64,
    lines: u64,
    /// Number of recordings that were left, by reason.
    left: BTreeMap<String, u64>,
}

impl Sum {
    fn add(mut self, other: Self) -> Self {
        self.reruns += other.reruns;
        self.lines += other.lines;
        for (why, times) in other.left {
            *self.left.entry(why).or_default() += times;
        }
        self
    }
}

/// The reason of a divergence without the ids of effects.
fn kind(why: &str) -> String {
    let words = why.split(' ');
    let is_id =
        |word: &str| word.contains('.') && word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let words = words.map(|word| if is_id(word) { "ID" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// Reruns the current branch of a session, and sometimes another one: with nothing changed, then under another definition.
fn session(seed: u64) -> Result<[Sum; 2], String> {
    let world = played(seed).map_err(|fault| format!("seed {seed}: {fault}"))?;
    let others = world.branches().keys().filter(|id| **id != world.current());
    let other = others.filter(|_| seed.is_multiple_of(4)).take(1);
    let branches: Vec<Id> = std::iter::once(world.current())
        .chain(other.copied())
        .collect();
    let mut sums = [Sum::default(), Sum::default()];
    for (sum, is_other) in sums.iter_mut().zip([false, true]) {
        for branch in &branches {
            let place = format!("seed {seed}, branch {branch}");
            let result = rerun(&world, *branch, is_other, |_| {});
            let result = result.map_err(|why| format!("{place}: {why}"))?;
            sum.reruns += 1;
            sum.lines += result.followed;
            let Some(left) = result.left else { continue };
            if !is_other {
                return Err(format!("{place}: left at line {}: {}", left.line, left.why));
            }
            let why = kind(&left.why);
            if !LEFT.contains(&why.as_str()) {
                return Err(format!("{place}: left at line {}: {why}", left.line));
            }
            *sum.left.entry(why).or_default() += 1;
        }
    }
    Ok(sums)
}

/// Reasons for which recordings are left under a definition that differs only by its digest: the request or the answer is not on
/// record.
const LEFT: &[&str] = &[
    "the model call ID failed then",
    "what a model answered here could not be used, and is not on record",
];

#[test]
fn random_sessions_are_followed_with_nothing_changed_and_under_another_definition() {
    let count = number("STEERSMAN_RANDOM_SESSIONS", 3_000);
    let first = number("STEERSMAN_RANDOM_SEED", 1);
    let threads = std::thread::available_parallelism().map_or(2, usize::from) as u64;
    let part = |k: u64| {
        let mut seeds = (first..first + count).filter(|seed| seed % threads == k);
        seeds.try_fold([Sum::default(), Sum::default()], |[same, other], seed| {
            let [one, two] = session(seed)?;
            Ok([same.add(one), other.add(two)])
        })
    };
    let parts: Vec<Result<[Sum; 2], String>> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|k| scope.spawn(move || part(k))).collect();
        let parts = parts.into_iter().map(|part| part.join().expect("it holds"));
        parts.collect()
    });
    let mut sums = [Sum::default(), Sum::default()];
    for part in parts {
        let [same, other] = part.unwrap_or_else(|why| panic!("{why}"));
        sums = [
            std::mem::take(&mut sums[0]).add(same),
            std::mem::take(&mut sums[1]).add(other),
        ];
    }
    let [same, other] = sums;
    assert!(
        same.lines >= count * 2,
        "{} lines in {count} sessions",
        same.lines
    );
    let left: u64 = other.left.values().sum();
    let summary = format!("{left} of {} were left: {:#?}", other.reruns, other.left);
    println!("{summary}");
    // Some are left early, because their offers cannot be reconstructed.
    assert!(
        other.lines * 10 > same.lines * 6,
        "{} of {} lines; {summary}",
        other.lines,
        same.lines
    );
}

/// Guards the test above against comparing nothing.
#[test]
fn a_model_that_was_asked_something_else_then_is_noticed() {
    let mut noticed = 0;
    for seed in 1..=40 {
        let world = played(seed).unwrap();
        let asked = |line: &LogLine| {
            let usage = line.commit.iter().flat_map(|commit| &commit.usage);
            usage.filter(|usage| usage.effect.is_some()).count()
        };
        // The first answer on `main`: every other branch shares it.
        let lines = world.lines().iter();
        let main = lines.filter(|line| line.branch == Id::MAIN && asked(line) > 0);
        let Some(first) = main.map(|line| line.n).next() else {
            continue;
        };
        let result = rerun(&world, Id::MAIN, false, |line| {
            let commit = line.commit.as_mut().filter(|_| line.n == first);
            for usage in commit.into_iter().flat_map(|commit| &mut commit.usage) {
                usage.request = Some(Digest::of(b"something else"));
            }
        });
        let left = result.unwrap().left.expect("it was another request");
        assert_eq!(left.line, first, "seed {seed}: {}", left.why);
        noticed += 1;
    }
    assert!(noticed > 20, "{noticed}");
}

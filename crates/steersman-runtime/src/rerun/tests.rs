//! Random sessions, rerun with nothing changed: the recording is followed to its end, so nobody is asked and nothing runs,
//! and what comes of it is what was.

use super::recording::Recording;
use super::walk::{Changed, Next, Walk};
use super::{People, began};
use crate::bind::Values;
use crate::past::Past;
use crate::store::memory::MemoryStore;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::commit::{Commit, LogLine};
use steersman_machine::context::{self, RenderCache};
use steersman_machine::ids::{Id, Line};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::testing::random::{self, Dice};
use steersman_machine::testing::world::{Fault, World};

/// Things that happen in a session: most are short, some are long.
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

/// Where the branch of a line stood before it.
fn before(world: &World, line: &LogLine) -> Option<Snapshot> {
    let commit = line.commit.as_ref()?;
    commit.parent.is_some().then(|| world.after(commit.parent))
}

/// As a driver writes it: each answer names the request that it is the answer to.
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

/// What a rerun may do otherwise: it is dry from the beginning.
fn comparable(commit: &Commit) -> Commit {
    let mut commit = commit.clone();
    commit.opening = commit
        .opening
        .filter(|opening| opening.of.is_some() || opening.scope.is_some());
    if let Some(opening) = &mut commit.opening {
        opening.dry = true;
    }
    commit
}

/// Reruns a branch; how many of its lines were followed.
fn rerun(world: &World, branch: Id, spoils: impl Fn(&mut LogLine)) -> Result<u64, String> {
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
    let changed = Changed {
        network: world.network.clone(),
        binding: binding.clone(),
        values: Values::default(),
        is_other: false,
        at: None,
        says: false,
        live: false,
        labels: Vec::new(),
    };
    let old = (world.network.clone(), binding, text);
    let new = Arc::new(past(Line::NONE));
    let mut walk = Walk::new(&recording, branch, old, &changed, new, &People::Recorded);
    while walk.next().map_err(|e| e.to_string())? != Next::End {}
    let walked = walk.over();
    if let Some(left) = walked.diverged {
        return Err(format!("left at line {}: {}", left.line, left.why));
    }
    if walked.lines.len() != recording.lines.len() {
        return Err("it has another number of lines".to_owned());
    }
    for (made, was) in walked.lines.iter().zip(&recording.lines) {
        let both = [made, was.as_ref()].map(|line| line.commit.as_ref().map(comparable));
        if both[0] != both[1] {
            return Err(format!("line {} differs: {both:?}", was.n));
        }
    }
    Ok(walked.followed)
}

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

/// A session as it stands after some events; what it does itself is checked elsewhere.
fn played(seed: u64) -> Result<World, Fault> {
    let mut dice = Dice::new(seed);
    let mut world = random::begin(&mut dice)?;
    world.checked = false;
    for _ in 0..events(seed) {
        random::event(&mut world, &mut dice)?;
    }
    Ok(world)
}

/// Reruns the current branch of a session, and of some another one.
fn session(seed: u64) -> Result<u64, String> {
    let world = played(seed).map_err(|fault| format!("seed {seed}: {fault}"))?;
    let others = world.branches().keys().filter(|id| **id != world.current());
    let other = others.filter(|_| seed.is_multiple_of(4)).take(1);
    let mut followed = 0;
    for branch in std::iter::once(world.current()).chain(other.copied()) {
        followed += rerun(&world, branch, |_| {})
            .map_err(|why| format!("seed {seed}, branch {branch}: {why}"))?;
    }
    Ok(followed)
}

#[test]
fn nothing_changed_asks_nobody_and_differs_in_nothing_in_random_sessions() {
    let count = number("STEERSMAN_RANDOM_SESSIONS", 10_000);
    let first = number("STEERSMAN_RANDOM_SEED", 1);
    let threads = std::thread::available_parallelism().map_or(2, usize::from) as u64;
    let part = |k: u64| {
        let mut all = Ok(0);
        for seed in (first..first + count).filter(|seed| seed % threads == k) {
            all = all.and_then(|sum: u64| Ok(sum + session(seed)?));
        }
        all
    };
    let lines = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|k| scope.spawn(move || part(k))).collect();
        let parts = parts.into_iter().map(|part| part.join().expect("it holds"));
        parts.collect::<Vec<Result<u64, String>>>()
    });
    let lines: Result<Vec<u64>, String> = lines.into_iter().collect();
    let lines: u64 = lines.unwrap_or_else(|why| panic!("{why}")).iter().sum();
    assert!(lines >= count * 2, "{lines} lines in {count} sessions");
}

/// What holds above would hold of nothing if nothing were compared.
#[test]
fn a_model_that_was_asked_something_else_then_is_noticed() {
    let mut noticed = 0;
    for seed in 1..=40 {
        let world = played(seed).unwrap();
        let asked = |line: &LogLine| {
            let usage = line.commit.iter().flat_map(|commit| &commit.usage);
            usage.filter(|usage| usage.effect.is_some()).count()
        };
        // the first answer on main, which every other branch begins with
        let lines = world.lines().iter();
        let main = lines.filter(|line| line.branch == Id::MAIN && asked(line) > 0);
        let Some(first) = main.map(|line| line.n).next() else {
            continue;
        };
        let came = rerun(&world, Id::MAIN, |line| {
            let commit = line.commit.as_mut().filter(|_| line.n == first);
            for usage in commit.into_iter().flat_map(|commit| &mut commit.usage) {
                usage.request = Some(steersman_machine::ids::Digest::of(b"something else"));
            }
        });
        let why = came.expect_err("it was another request");
        assert!(
            why.contains(&format!("left at line {first}: ")),
            "seed {seed}: {why}"
        );
        noticed += 1;
    }
    assert!(noticed > 20, "{noticed}");
}

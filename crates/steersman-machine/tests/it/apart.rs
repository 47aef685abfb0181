//! Branches are separate: an event on one branch changes nothing that can be read on another. An adoption is refused
//! exactly if a write or a message would be lost.

use crate::random::asked;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::context::{RenderCache, request};
use steersman_machine::network::Network;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::snapshot::{Phase, Snapshot};
use steersman_machine::stored::ids::{Digest, Id, Line, Name};
use steersman_machine::stored::interaction::Class;
use steersman_machine::stored::outcome::NewWrite;
use steersman_machine::tick::branch::{Conflict, adoptable};
use steersman_machine::tick::effect::Offered;
use steersman_machine::values::types::TypeKind;
use steersman_testkit::net::{Draft, offers};
use steersman_testkit::random::{Dice, begin, event};
use steersman_testkit::world::{Fault, World};

/// Everything that can be read of a branch: its snapshot, and an agent that is to think with the digest of its request.
struct Seen {
    snapshot: Snapshot,
    shown: Option<(Id, Digest)>,
}

fn seen(world: &World, branch: Id, render: bool) -> Seen {
    let snapshot = world.at(branch).clone();
    let owes = |id: &&Id| {
        let agent = snapshot.agent(**id);
        agent.phase == Phase::Thinking && agent.stack.owed.is_some()
    };
    let shown = snapshot.agents.keys().find(owes).filter(|_| render);
    let shown = shown.and_then(|id| {
        let asked = request(
            &world.cx(),
            world,
            &snapshot,
            *id,
            &mut RenderCache::default(),
        );
        asked.ok().map(|asked| (*id, asked.digest))
    });
    Seen { snapshot, shown }
}

/// Each event of a random session may write lines on some branches. On all other branches the snapshot and the request
/// stay the same.
#[test]
fn nothing_on_one_branch_changes_what_is_read_on_another() {
    let (mut cases, mut rendered) = (0_u32, 0_u32);
    let mut seed = 0;
    while cases < 4_000 {
        seed += 1;
        let mut dice = Dice::new(seed);
        let mut world = begin(&mut dice).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        for k in 0..60 {
            let render = k % 6 == 0;
            let before: BTreeMap<Id, Seen> = world
                .branches()
                .keys()
                .map(|id| (*id, seen(&world, *id, render)))
                .collect();
            let first = world.lines().len();
            event(&mut world, &mut dice).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
            let touched: BTreeSet<Id> = world.lines()[first..].iter().map(|l| l.branch).collect();
            if touched.is_empty() {
                continue;
            }
            for (branch, was) in before {
                if touched.contains(&branch) {
                    continue;
                }
                assert_eq!(
                    *world.at(branch),
                    was.snapshot,
                    "seed {seed}, event {k}: {branch}"
                );
                if let Some((agent, digest)) = was.shown {
                    let now = seen(&world, branch, true).shown;
                    assert_eq!(
                        now,
                        Some((agent, digest)),
                        "seed {seed}, event {k}: {branch}"
                    );
                    rendered += 1;
                }
                cases += 1;
            }
        }
    }
    assert!(rendered > 80, "{rendered} requests were looked at");
}

const ENTRIES: [&str; 2] = ["a", "b"];

/// One agent and two entries of state, each with a tool that writes it.
fn two_entries() -> Network {
    let mut draft = Draft::new("two").agent("writer", offers(&ENTRIES, &[]));
    for entry in ENTRIES {
        draft = draft.state(entry, TypeKind::Any).setter(entry, entry);
    }
    draft.native("unused", Class::Read).build()
}

/// Writes or unsets an entry, or lets the agent answer a message.
fn writes(world: &mut World, dice: &mut Dice, branch: Id) -> Result<(), Fault> {
    let entry = *dice.pick(&ENTRIES).expect("there are two");
    // Writing the same value again counts as a write.
    let value = json!(dice.below(2));
    match dice.below(4) {
        0 => {
            let unset = NewWrite {
                name: entry.to_owned(),
                value: dice.percent(50).then_some(value),
                seal: false,
            };
            let by = "user".into();
            let edit = Offered::Edit {
                writes: vec![unset],
                by,
            };
            world.offer(branch, vec![edit]).map(drop)
        }
        1 => {
            world.say(branch, "And?")?;
            world.thinks(branch, "writer", "So.", &[])
        }
        _ => {
            world.say(branch, "Write.")?;
            world.thinks(branch, "writer", "", &[(entry, json!({ "value": value }))])?;
            world.thinks(branch, "writer", "Written.", &[])
        }
    }
}

/// The entries that a branch wrote after line `behind`, found by folding its path line by line.
fn written(world: &World, branch: Id, behind: Line) -> BTreeSet<(Id, Name)> {
    let mut path = Vec::new();
    let mut at = world.branch(branch).head;
    while at.is_some() {
        path.push(at);
        at = world.line(at).prev;
    }
    let (mut snapshot, mut found) = (Snapshot::empty(), BTreeSet::new());
    for n in path.into_iter().rev() {
        let next = fold(snapshot.clone(), world.line(n));
        if n > behind {
            let entries = ENTRIES.map(|entry| (Id::new(Line(1), 0), Name::from(entry)));
            let changed = entries.into_iter().filter(|key| {
                snapshot.state.get(key) != next.state.get(key)
                    || snapshot.unset.get(key) != next.unset.get(key)
            });
            found.extend(changed);
        }
        snapshot = next;
    }
    found
}

/// A fork, writes on both sides, an adoption; 500 times, or as often as `STEERSMAN_RANDOM_SESSIONS` says. The
/// adoption is refused exactly if an agent moved here after the fork or both sides wrote one entry. A refusal changes
/// nothing.
#[test]
fn an_adoption_is_refused_exactly_where_something_would_be_lost() {
    let network = Arc::new(two_entries());
    let (mut refused, mut taken) = (0_u32, 0_u32);
    let count = asked("STEERSMAN_RANDOM_SESSIONS", 500);
    for seed in 0..count {
        let mut dice = Dice::new(seed);
        let tried =
            attempt(&network, &mut dice).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        let (wanted, was) = tried;
        assert_eq!(wanted, was, "seed {seed}");
        *(if was { &mut taken } else { &mut refused }) += 1;
    }
    let few = u32::try_from(count / 10).unwrap();
    assert!(
        refused > few && taken > few,
        "{refused} refused, {taken} taken"
    );
}

/// Returns two flags: if the adoption is allowed, and if it was carried out.
fn attempt(network: &Arc<Network>, dice: &mut Dice) -> Result<(bool, bool), Fault> {
    let mut world = World::new(network.clone());
    world.start(None, Some("Begin."))?;
    world.thinks(Id::MAIN, "writer", "Yes.", &[])?;
    for _ in 0..dice.below(2) {
        writes(&mut world, dice, Id::MAIN)?;
    }
    let fork = world.branch(Id::MAIN).head;
    let branch = world.fork(fork, None, None, false)?;
    for _ in 0..=dice.below(4) {
        let on = if dice.percent(50) { branch } else { Id::MAIN };
        writes(&mut world, dice, on)?;
    }
    let (here, there) = (
        written(&world, Id::MAIN, fork),
        written(&world, branch, fork),
    );
    let both: Vec<_> = here.intersection(&there).cloned().collect();
    let mut agents = world.at(Id::MAIN).agents.values();
    let moved = agents
        .find(|agent| agent.stack.last > fork)
        .map(|agent| agent.id);
    let wanted = match (moved, both.is_empty()) {
        (Some(agent), _) => Err(Conflict::Moved(agent)),
        (None, false) => Err(Conflict::Written(both)),
        (None, true) => Ok(()),
    };
    let judged = adoptable(world.at(Id::MAIN), world.at(branch));
    assert_eq!(judged, wanted);
    let (before, lines) = (world.at(Id::MAIN).clone(), world.lines().len());
    world.adopt(branch)?;
    let new = world.lines()[lines..]
        .iter()
        .filter_map(|l| l.commit.as_ref());
    let adopted = new.filter(|commit| commit.adoption.is_some()).count() == 1;
    if adopted {
        for key in &there {
            let value = |s: &Snapshot| s.state.get(key).map(|cell| cell.value.clone());
            let (now, theirs) = (world.at(Id::MAIN), world.at(branch));
            assert_eq!(value(now), value(theirs), "{key:?} is the branch's");
        }
    } else {
        assert_eq!(*world.at(Id::MAIN), before, "a refusal changes nothing");
    }
    Ok((wanted.is_ok(), adopted))
}

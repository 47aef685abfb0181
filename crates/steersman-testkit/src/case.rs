//! Runs a test of a definition in the machine alone. The runtime runs the same tests with a whole session; [`steersman_definition::expect`]
//! checks the expectations in both.

use super::world::{Fault, Held, World, fault};
use serde_json::json;
use std::sync::Arc;
use steersman_definition::expect::{Subject, find, judge};
use steersman_definition::test::{Act, Expect, Resolve, Step, Test};
use steersman_machine::context::History;
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::{Commit, LogLine};
use steersman_machine::stored::ids::{Bodies, Id, Line, Name};
use steersman_machine::stored::interaction::Interaction;
use steersman_machine::tick::effect::Cancelled;

/// Result of a test.
#[derive(Debug)]
pub struct Ran {
    /// The session at its end.
    pub world: World,
    /// Expectations that do not hold, each as a sentence.
    pub failures: Vec<String>,
}

/// Runs a test. An error means that the test cannot be run as it is written, or that the machine broke a rule. Expectations that
/// do not hold are in [`Ran::failures`].
pub fn run(network: Arc<Network>, test: &Test) -> Result<Ran, Fault> {
    let disturbed = |a: &Act| matches!(a, Act::Kill(_) | Act::Resume);
    let kills = test
        .steps
        .iter()
        .any(|s| s.act.as_ref().is_some_and(disturbed));
    let undisturbed = if kills {
        let mut calm = test.clone();
        calm.steps
            .retain(|s| !s.act.as_ref().is_some_and(disturbed));
        calm.expect.retain(|e| *e != Expect::Undisturbed);
        Some(run_once(network.clone(), &calm, None)?.world)
    } else {
        None
    };
    run_once(network, test, undisturbed.as_ref())
}

fn run_once(network: Arc<Network>, test: &Test, undisturbed: Option<&World>) -> Result<Ran, Fault> {
    let mut world = World::new(network);
    world.players.script(test.script.clone(), Line::NONE);
    world.history = test.history.clone();
    for (tool, outcomes) in &test.tools {
        world.players.tool(tool, outcomes.clone());
    }
    let mut failures = Vec::new();
    for (k, step) in test.steps.iter().enumerate() {
        let ran = act(&mut world, test, step).and_then(|()| world.pump());
        match (ran, step.refused) {
            (Ok(()), false) | (Err(_), true) => {}
            (Err(Fault(text)), false) => {
                return fault(format!("step {}: {text}\n{}", k + 1, world.printed));
            }
            (Ok(()), true) => failures.push(format!("step {}: it was not refused", k + 1)),
        }
        let found = judge(
            &In {
                world: &world,
                undisturbed,
            },
            &step.expect,
        );
        failures.extend(found.into_iter().map(|f| format!("step {}: {f}", k + 1)));
    }
    failures.extend(judge(
        &In {
            world: &world,
            undisturbed,
        },
        &test.expect,
    ));
    Ok(Ran { world, failures })
}

fn act(world: &mut World, test: &Test, step: &Step) -> Result<(), Fault> {
    let at = match &step.at {
        None => world.current(),
        Some(name) => branch(world, name)?,
    };
    let by = step.role.as_deref().unwrap_or("user");
    let began = match &step.act {
        Some(
            Act::Fork {
                branch: of, from, ..
            }
            | Act::Rewind {
                branch: of, from, ..
            },
        ) => {
            let of = branch(world, of)?;
            place(world, of, from.as_deref())?
        }
        _ => world.branch(at).head,
    };
    if let Some(script) = &step.script {
        world.players.script(script.clone(), began);
    }
    let Some(act) = &step.act else { return Ok(()) };
    match act {
        Act::Say(text) if world.at(at).root.is_none() => {
            taken(world.start(test.entry.clone(), Some(text))?.line)
        }
        Act::Say(text) if step.sets.is_empty() => world.say(at, text).map(drop),
        Act::Say(text) => world.say_with(at, text, by, &step.sets).map(drop),
        Act::Edit => taken(world.edit_state(at, &step.sets, by)?.line),
        Act::Event { name, fields } => {
            if world.event(at, name, fields)? {
                Ok(())
            } else {
                fault(format!("no wait takes the event {name}"))
            }
        }
        Act::Answer(text) => {
            let mut held = world.out().iter().filter(|(_, o)| o.branch == at);
            let found = held.find(|(_, o)| matches!(o.held, Held::Question | Held::Input(_)));
            match found.map(|(id, _)| *id) {
                Some(effect) => world.answer(effect, text, by),
                None => fault("there is no open question"),
            }
        }
        Act::Approve { tool, edit, .. } => {
            let effect = held(world, at, &Held::Approval, tool)?;
            match edit {
                None => world.approve(effect, by),
                Some(edit) => {
                    let merged = edited(world, effect, edit);
                    world.may_run(effect, &merged)?;
                    taken(world.edit(effect, &merged, by)?.line)
                }
            }
        }
        Act::Reject { tool, reason } => {
            let effect = held(world, at, &Held::Approval, tool)?;
            world.reject(effect, reason.as_deref().unwrap_or("rejected"), by)
        }
        Act::Resolve { tool, to } => {
            let effect = held(world, at, &Held::Doubt, tool)?;
            match to {
                Resolve::Done => world.resolve(effect, Some(&json!("done")), by),
                Resolve::NotPerformed => world.resolve(effect, None, by),
                Resolve::Fail => world.give_up(effect, by),
            }
        }
        Act::Interrupt(text) => taken(world.interrupt(at, text)?.line),
        Act::Cancel(what) => {
            let (at, what) = cancelled(world, at, what)?;
            taken(world.cancel(at, what)?.line)
        }
        Act::Fork { name, say, .. } => world
            .fork(began, name.as_deref(), say.as_deref(), true)
            .map(drop),
        Act::Rewind { name, say, .. } => world
            .rewind(began, name.as_deref(), say.as_deref())
            .map(drop),
        Act::Adopt(name) => {
            let chosen = branch(world, name)?;
            taken(world.adopt(chosen)?.line)
        }
        Act::Join { branches, on, then } => {
            let ids: Result<Vec<Id>, Fault> = branches.iter().map(|b| branch(world, b)).collect();
            taken(world.join(ids?, on.clone(), then.clone())?.line)
        }
        Act::Advance(millis) => world.advance(*millis),
        // The machine has no process: a restart keeps only the lines, and folds the snapshots from them.
        Act::Kill(_) | Act::Resume => world.restart(),
    }
}

fn taken(line: Option<Line>) -> Result<(), Fault> {
    match line {
        Some(_) => Ok(()),
        None => fault("it was refused"),
    }
}

fn branch(world: &World, name: &str) -> Result<Id, Fault> {
    let found = In {
        world,
        undisturbed: None,
    }
    .branch_named(name);
    found.ok_or_else(|| Fault(format!("there is no branch {name}")))
}

fn held(world: &World, at: Id, held: &Held, name: &str) -> Result<Id, Fault> {
    let found = world.find(at, held, name);
    found.ok_or_else(|| Fault(format!("{name} waits for no {held:?}")))
}

/// Returns the arguments of a call, with the changes of a person.
fn edited(world: &World, effect: Id, edit: &serde_json::Value) -> serde_json::Value {
    let out = &world.out()[&effect];
    let call = world.at(out.branch).call_of(effect);
    let args = call.map(|c| world.text(c.edited.unwrap_or(c.call.args)));
    let mut args: serde_json::Value = args
        .and_then(|a| serde_json::from_str(&a).ok())
        .unwrap_or_else(|| json!({}));
    if let (Some(args), Some(edit)) = (args.as_object_mut(), edit.as_object()) {
        args.extend(edit.iter().map(|(k, v)| (k.clone(), v.clone())));
    }
    args
}

/// Returns a line of a branch: by its number, or the first line of the branch that closed a call of a tool well
/// (`approve_plan#2`: the second), otherwise the head.
fn place(world: &World, of: Id, from: Option<&str>) -> Result<Line, Fault> {
    let head = world.branch(of).head;
    let Some(from) = from else { return Ok(head) };
    let mut path = Vec::new();
    let mut at = head;
    while at.is_some() {
        path.push(at);
        at = world.line(at).prev;
    }
    path.reverse();
    if let Ok(n) = from.parse::<u64>() {
        return if path.contains(&Line(n)) {
            Ok(Line(n))
        } else {
            fault(format!("line {n} is not on this branch"))
        };
    }
    let (tool, nth) = match from.split_once('#') {
        Some((tool, nth)) => {
            let nth = nth.parse::<usize>();
            (tool, nth.map_err(|e| Fault(format!("{from}: {e}")))?)
        }
        None => (from, 1),
    };
    // A call may have been made before the branch began.
    let mut calls = std::collections::BTreeSet::new();
    let mut closed = 0;
    for n in path {
        let line = world.line(n);
        let mut closes = false;
        for push in line.commit.iter().flat_map(|c| &c.pushes) {
            match &push.what {
                Interaction::Call(call) if *call.name == *tool => {
                    calls.insert(call.id);
                }
                Interaction::Result(result) => {
                    closes |= result.how.is_ok() && calls.contains(&result.call);
                }
                _ => {}
            }
        }
        closed += usize::from(closes && line.branch == of);
        if closed == nth.max(1) {
            return Ok(n);
        }
    }
    fault(format!("{from} did not close on this branch"))
}

/// Returns the branch and the target of a cancel: a call by its tool, an agent, a branch, or `session`.
fn cancelled(world: &World, at: Id, what: &str) -> Result<(Id, Cancelled), Fault> {
    if what == "session" {
        return Ok((at, Cancelled::All));
    }
    let subject = In {
        world,
        undisturbed: None,
    };
    if let Some(branch) = subject.branch_named(what) {
        return Ok((branch, Cancelled::All));
    }
    let calls = world.at(at).calls.values();
    let mut open = calls.filter(|c| c.closed.is_none());
    if let Some(call) = open.find(|c| *c.call.name == *what) {
        return Ok((at, Cancelled::Call(call.owner, call.call.id)));
    }
    let (branch, agent) = find(&subject, what).map_err(Fault)?;
    Ok((branch, Cancelled::Agent(agent)))
}

/// A world as the subject of expectations.
struct In<'a> {
    world: &'a World,
    undisturbed: Option<&'a World>,
}

impl Subject for In<'_> {
    fn network(&self) -> &Network {
        &self.world.network
    }
    fn bodies(&self) -> &dyn Bodies {
        self.world
    }
    fn history(&self) -> &dyn History {
        self.world
    }
    fn lines(&self, branch: Id) -> Vec<&LogLine> {
        let mut lines = Vec::new();
        let mut at = self.world.branch(branch).head;
        while at.is_some() {
            lines.push(self.world.line(at));
            at = self.world.line(at).prev;
        }
        lines.reverse();
        lines
    }
    fn current(&self) -> Id {
        self.world.current()
    }
    fn branch_named(&self, name: &str) -> Option<Id> {
        let labelled = self.world.branches().iter();
        let mut labelled = labelled.filter(|(_, b)| b.label.as_deref() == Some(name));
        let id = labelled.next().map(|(id, _)| *id);
        let by_id = || {
            let id = name.parse().ok()?;
            self.world.branches().contains_key(&id).then_some(id)
        };
        let by_index = || {
            let index: u32 = name.parse().ok()?;
            let mut newest = self.world.branches().iter().rev();
            let found = newest.find(|(_, b)| b.index == Some(index));
            found.map(|(id, _)| *id)
        };
        id.or_else(by_id).or_else(by_index)
    }
    fn branch_count(&self) -> u64 {
        self.world.branches().len() as u64
    }
    fn snapshot(&self, branch: Id) -> &Snapshot {
        self.world.at(branch)
    }
    fn stack(&self, branch: Id, agent: Id) -> Vec<Interaction> {
        self.world.stack(self.world.at(branch), agent)
    }
    fn model_calls(&self) -> u64 {
        let commits = self.world.lines().iter().filter_map(|l| l.commit.as_ref());
        commits.map(|c| c.usage.len() as u64).sum()
    }
    fn modes(&self, branch: Id, agent: Id) -> Vec<String> {
        let head = Some(self.world.branch(branch).head).filter(|head| head.is_some());
        let path = std::iter::successors(head, |at| {
            Some(self.world.line(*at).prev).filter(|prev| prev.is_some())
        });
        let commits = path.filter_map(|at| self.world.line(at).commit.as_ref());
        let modes = Commit::modes_along(commits, agent);
        modes.iter().map(ToString::to_string).collect()
    }
    fn states(&self, branch: Id, agent: Id) -> Vec<String> {
        let mut states = Vec::new();
        let mut at = self.world.branch(branch).head;
        while at.is_some() {
            let line = self.world.line(at);
            let entered = line.commit.iter().flat_map(Commit::states);
            let entered: Vec<&Name> = entered
                .filter(|(who, _)| *who == agent)
                .map(|(_, state)| state)
                .collect();
            states.extend(entered.into_iter().rev().map(ToString::to_string));
            at = line.prev;
        }
        states.reverse();
        states
    }
    fn open(&self, branch: Id) -> Vec<String> {
        self.world.open_now(branch)
    }
    fn disturbed(&self) -> Option<String> {
        let calm = self.undisturbed?;
        for (id, branch) in calm.branches() {
            let Some(here) = self.world.branches().get(id) else {
                return Some(format!("branch {id} is missing"));
            };
            for agent in branch.snapshot.agents.keys() {
                let (a, b) = (&branch.snapshot, &here.snapshot);
                if !b.agents.contains_key(agent)
                    || calm.stack(a, *agent) != self.world.stack(b, *agent)
                {
                    return Some(format!("the stack of {agent} on {id} differs"));
                }
            }
            if branch.snapshot.state != here.snapshot.state {
                return Some(format!("the state of {id} differs"));
            }
        }
        None
    }
}

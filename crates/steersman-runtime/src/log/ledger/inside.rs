//! Steps and waits inside of calls of tools. A later attempt finds by name what an earlier one did; the numbers are their order.

use super::{Ledger, Progress};
use serde::{Deserialize, Serialize};
use steersman_machine::stored::commit::{About, Hold, LedgerEntry, Release, Stepped, Why};
use steersman_machine::stored::ids::{Id, Name, Time};

/// Beginning of the names under which answers of people are recorded among the steps of a call.
const ANSWER: &str = "answer ";

/// Returns the name under which the answer to a question of a tool's server is recorded. `before`: number of equal questions of the
/// call that were answered before.
pub(crate) fn answer_name(message: &str, schema: &str, before: usize) -> Name {
    let digest = blake3::hash(format!("{message}\n{schema}").as_bytes()).to_hex();
    let digest = &digest[..8];
    match before {
        0 => format!("{ANSWER}{digest}").into(),
        before => format!("{ANSWER}{digest} {}", before + 1).into(),
    }
}

/// A step or wait of a call that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// Name of the step or wait.
    pub name: Name,
    /// Its kind and progress.
    pub what: Work,
}

/// The kind and progress of a step or wait.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// A step.
    Step(Stepped),
    /// A wait until this time.
    Wait(Time),
}

impl Inside {
    /// Returns the time of a wait.
    pub fn due(&self) -> Option<Time> {
        match self.what {
            Work::Wait(due) => Some(due),
            Work::Step(_) => None,
        }
    }

    /// Returns true if it is a wait.
    pub fn is_wait(&self) -> bool {
        self.due().is_some()
    }

    /// Returns true if it is the answer of a person. Nothing that the tool did outside is recorded with it.
    fn is_answer(&self) -> bool {
        self.name.starts_with(ANSWER)
    }
}

impl Ledger {
    pub(super) fn stepped(&mut self, entry: &LedgerEntry) {
        let LedgerEntry::Step {
            effect,
            nth,
            name,
            what,
            ..
        } = entry
        else {
            return;
        };
        let progress = self.effects.get(effect).map(|record| record.progress);
        // The end of a step of a call that is settled tells nothing that a decision needs.
        if let Some(Progress::Done { .. } | Progress::GivenUp { .. }) = progress {
            return;
        }
        let (name, what) = (name.clone(), Work::Step(*what));
        self.inside.insert((*effect, *nth), Inside { name, what });
    }

    pub(super) fn waits(&mut self, hold: &Hold) {
        if let (Why::Wait, Some(About::Wait { nth, name, .. }), Some(due)) =
            (hold.why, &hold.about, hold.due)
        {
            let name = name.clone();
            let what = Work::Wait(due);
            self.inside
                .insert((hold.effect, *nth), Inside { name, what });
        }
    }

    /// A call is over: nothing asks for its steps any more.
    pub(super) fn forget_inside(&mut self, effect: Id) {
        let all: Vec<_> = self.inside(effect).map(|(nth, _)| nth).collect();
        for nth in all {
            self.inside.remove(&(effect, nth));
        }
    }

    /// The doubt of a call ended. If the call did not happen, a step of it without an end did not happen either.
    pub(super) fn doubt_ended(&mut self, effect: Id, how: Release) {
        if how != Release::Go {
            self.forget_inside(effect);
        }
        while let Some((nth, _)) = self.open_step(effect) {
            self.inside.remove(&(effect, nth));
        }
    }

    /// Returns the steps and waits of a call that is not over, by number.
    pub fn inside(&self, effect: Id) -> impl Iterator<Item = (u32, &Inside)> {
        let all = self.inside.range((effect, 0)..=(effect, u32::MAX));
        all.map(|((_, nth), inside)| (*nth, inside))
    }

    /// Returns the step or wait of this name of a call that is not over, with its number.
    pub fn step(&self, effect: Id, name: &str) -> Option<(u32, &Inside)> {
        self.inside(effect)
            .find(|(_, inside)| *inside.name == *name)
    }

    /// Returns the number of the next step or wait of a call.
    pub(crate) fn next_step(&self, effect: Id) -> u32 {
        let mut all = self.inside.range((effect, 0)..=(effect, u32::MAX));
        all.next_back().map_or(0, |((_, nth), _)| *nth) + 1
    }

    /// Returns the first step of a call that began and has no end, with its number.
    pub fn open_step(&self, effect: Id) -> Option<(u32, &Inside)> {
        let mut all = self.inside(effect);
        all.find(|(_, inside)| inside.what == Work::Step(Stepped::Began))
    }

    /// Returns true if a call recorded steps and all of them have ended: another attempt goes on after them.
    pub(crate) fn stands_between_steps(&self, effect: Id) -> bool {
        let is_step = |inside: &Inside| !inside.is_wait() && !inside.is_answer();
        self.inside(effect).any(|(_, inside)| is_step(inside)) && self.open_step(effect).is_none()
    }

    /// Returns the name under which the next answer to this question is recorded.
    pub(crate) fn next_answer(&self, effect: Id, message: &str, schema: &str) -> Name {
        let names = (0..).map(|before| answer_name(message, schema, before));
        let mut free = names.filter(|name| self.step(effect, name).is_none());
        free.next().expect("a call has a bounded number of steps")
    }

    /// Returns the number of waits of a call: each of them ended an attempt.
    pub(crate) fn waits_of(&self, effect: Id) -> u32 {
        let waits = self.inside(effect).filter(|(_, inside)| inside.is_wait());
        waits.count() as u32
    }
}

//! Which units a rendering looks at: new ones, and those whose text may change. All others keep their segments, so the cost of a
//! rendering does not depend on their number.
//!
//! A unit is looked at again if it got something new, if its templates read a value that has changed, or if a boundary moved and
//! one of its calls may have grown older.

use super::policies::{self, Age, Border};
use super::units::{Rendered, Unit, Units, What};
use super::{At, Segment};
use crate::network::Network;
use crate::stored::ids::{Line, Name};
use crate::stored::interaction::Origin;
use crate::view::Read;
use imbl::OrdSet;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Units that the next rendering looks at. Units are named by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Again {
    /// New and changed units.
    todo: BTreeSet<u64>,
    /// Values that templates read, and the units that show them.
    readers: Vec<(Read, OrdSet<u64>)>,
    /// Units with a call whose age may still change.
    aging: OrdSet<u64>,
    /// The horizons for which ages were computed last.
    borders: Vec<(Name, Border)>,
    /// True if the age of a call may change without a boundary.
    all_age: bool,
    /// The first unit that is shown.
    from: u64,
    /// The unit with which the agent's view begins, if one was found before `searched`.
    entered: Option<u64>,
    searched: u64,
    /// The first unit whose segments have changed since they were placed.
    changed: Option<u64>,
    /// Place of the first segment in the last request, and the place up to which its segments are still the same.
    base: u64,
    same: u64,
    /// Number of units that were looked at.
    pub(super) visited: u64,
}

impl Again {
    /// Looks at a unit.
    pub(super) fn look_at(&mut self, number: u64) {
        self.todo.insert(number);
    }

    /// Looks at a unit that changes.
    pub(super) fn changes(&mut self, number: u64, unit: &Unit) {
        self.todo.insert(number);
        // If its exchange is opened again, an older call may be the newest one that a summary covers.
        let is_old = number < self.from || unit.ages.iter().any(|age| *age != Age::Fresh);
        self.all_age |= is_old && unit.closes > 0;
    }

    /// Forgets a unit that is no longer in the list.
    pub(super) fn forget(&mut self, number: u64, unit: &Unit) {
        self.todo.remove(&number);
        self.aging.remove(&number);
        if let Some((_, reads)) = &unit.kept {
            self.reads_no_more(number, reads);
        }
    }

    fn reads_no_more(&mut self, number: u64, reads: &[Read]) {
        for read in reads {
            if let Some(at) = self.reader(read) {
                self.readers[at].1.remove(&number);
                if self.readers[at].1.is_empty() {
                    self.readers.swap_remove(at);
                }
            }
        }
    }

    fn reads(&mut self, number: u64, reads: &[Read]) {
        for read in reads {
            let at = self.reader(read).unwrap_or_else(|| {
                self.readers.push((read.clone(), OrdSet::new()));
                self.readers.len() - 1
            });
            self.readers[at].1.insert(number);
        }
    }

    fn reader(&self, read: &Read) -> Option<usize> {
        let is = |(known, _): &(Read, _)| known.root == read.root && known.entry == read.entry;
        self.readers.iter().position(is)
    }

    fn changed_at(&mut self, number: u64) {
        self.changed = Some(self.changed.map_or(number, |first| first.min(number)));
    }
}

impl Units {
    /// Finds the first unit that is shown: the message of the first call to the agent at or after this line, or the first of all.
    pub(super) fn begin(&mut self, since: Option<Line>) {
        let from = since.and_then(|since| self.entered(since));
        let from = from.unwrap_or(self.first);
        let again = &mut self.again;
        if from < again.from {
            again.todo.extend(from..again.from);
            again.changed_at(from);
        }
        again.from = from;
    }

    /// Iterates over the units that are shown.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Arc<Unit>> {
        let skip = usize::try_from(self.again.from - self.first);
        self.list.iter().skip(skip.expect("units fit into memory"))
    }

    fn entered(&mut self, since: Line) -> Option<u64> {
        let again = &mut self.again;
        again.entered = again.entered.filter(|number| *number >= self.first);
        if again.entered.is_none() {
            let is = |unit: &Arc<Unit>| match &unit.what {
                What::Message {
                    from: Origin::Call(call),
                    ..
                } => call.line() >= since,
                _ => false,
            };
            let from = again.searched.max(self.first);
            let mut left = (from..).zip(self.list.iter().skip((from - self.first) as usize));
            let found = left.find(|(_, unit)| is(unit)).map(|(number, _)| number);
            let next = self.first + self.list.len() as u64;
            again.entered = found;
            again.searched = found.map_or(next, |number| number + 1);
            again.visited += again.searched - from;
        }
        again.entered
    }

    /// Lets calls grow older: a unit with a call whose age has changed is rendered again.
    pub(super) fn grow_older(&mut self, at: &At<'_>) {
        let borders = policies::borders(at.cx, at.snapshot, at.agent);
        let is_later = self.again.borders.iter().all(|(tool, old)| {
            let new = borders.iter().find(|(other, _)| other == tool);
            new.is_some_and(|(_, new)| new.is_at_or_after(old))
        });
        let mut all = self.again.all_age || !is_later;
        if !all && self.again.borders == borders {
            // Without a move a new call is as fresh as when it was made.
            let todo: Vec<u64> = self.again.todo.iter().copied().collect();
            for number in todo {
                all |= !self.ages(at.cx.network, &borders, number, &mut Vec::new());
            }
            if !all {
                return;
            }
        }
        let numbers: BTreeSet<u64> = if all {
            (self.first..self.next()).collect()
        } else {
            let aging = self.again.aging.iter();
            aging.chain(&self.again.todo).copied().collect()
        };
        let mut summarized = Vec::new();
        for number in numbers.into_iter().rev() {
            self.ages(at.cx.network, &borders, number, &mut summarized);
        }
        self.again.borders = borders;
        self.again.all_age = false;
    }

    /// Computes the ages of a unit's calls. Returns true if all are fresh.
    fn ages(
        &mut self,
        network: &Network,
        borders: &[(Name, Border)],
        number: u64,
        summarized: &mut Vec<Name>,
    ) -> bool {
        let Some(place) = self.place(number) else {
            return true;
        };
        self.again.visited += 1;
        let unit = &self.list[place];
        let (ages, may_change) = policies::ages(network, unit, borders, summarized);
        if may_change {
            self.again.aging.insert(number);
        } else {
            self.again.aging.remove(&number);
        }
        if number >= self.again.from && !same_ages(&unit.ages, &ages) {
            let unit = Arc::make_mut(&mut self.list[place]);
            unit.ages.clone_from(&ages);
            unit.is_due = true;
            self.again.todo.insert(number);
        }
        ages.iter().all(|age| *age == Age::Fresh)
    }

    /// Looks at the units whose templates read a value that has changed.
    pub(super) fn read_again(&mut self, at: &At<'_>) {
        let is_same = |(read, _): &(Read, _)| {
            let read = std::slice::from_ref(read);
            at.base.unchanged(read, at.trace)
        };
        let readers = std::mem::take(&mut self.again.readers);
        let (same, changed) = readers.into_iter().partition(is_same);
        self.again.readers = same;
        let changed: Vec<(Read, OrdSet<u64>)> = changed;
        for number in changed.iter().flat_map(|(_, units)| units) {
            if let Some(place) = self.place(*number) {
                Arc::make_mut(&mut self.list[place]).is_due = true;
                self.again.todo.insert(*number);
            }
        }
    }

    /// Returns the next unit that must be rendered, with its number.
    pub(super) fn due(&mut self) -> Option<(u64, Arc<Unit>)> {
        while let Some(number) = self.again.todo.first().copied() {
            let unit = self.place(number).map(|place| &self.list[place]);
            if let Some(unit) = unit.filter(|unit| number >= self.again.from && unit.is_due) {
                return Some((number, unit.clone()));
            }
            self.again.todo.remove(&number);
            self.again.visited += 1;
        }
        None
    }

    /// Keeps the rendering of a unit.
    pub(super) fn rendered(&mut self, number: u64, new: Rendered) {
        let Some(place) = self.place(number) else {
            return;
        };
        let unit = Arc::make_mut(&mut self.list[place]);
        unit.is_due = false;
        self.again.todo.remove(&number);
        self.again.visited += 1;
        self.again.reads(number, &new.1);
        let old = unit.kept.replace(new);
        let (segments, reads) = unit.kept.as_ref().expect("replaced a moment ago");
        let is_same = old.as_ref().is_some_and(|(old, _)| {
            let pairs = old.iter().zip(segments);
            old.len() == segments.len() && { pairs }.all(|(old, new)| old.digest == new.digest)
        });
        if !is_same {
            self.again.changed_at(number);
        }
        let gone = old.map_or_else(Vec::new, |(_, old)| old);
        let gone = gone.into_iter().filter(|old| {
            let is = |new: &Read| new.root == old.root && new.entry == old.entry;
            !reads.iter().any(is)
        });
        let gone: Vec<Read> = gone.collect();
        self.again.reads_no_more(number, &gone);
    }

    /// Places the segments from the first unit on that has changed.
    pub(super) fn place_segments(&mut self) {
        let Some(changed) = self.again.changed.take() else {
            return;
        };
        let Some(from) = self.place(changed.max(self.again.from)) else {
            return;
        };
        let before = from.checked_sub(1).map(|before| &self.list[before]);
        let before = before.filter(|_| self.first + from as u64 > self.again.from);
        let mut at = before.map_or(self.list[from].at, |unit| unit.end());
        self.again.same = self.again.same.min(at);
        for place in from..self.list.len() {
            if self.list[place].at != at {
                Arc::make_mut(&mut self.list[place]).at = at;
            }
            at = self.list[place].end();
            self.again.visited += 1;
        }
    }

    /// Returns the number of segments at the beginning that are the same as at the last call of this method.
    pub(super) fn settle(&mut self) -> usize {
        let first = self.place(self.again.from);
        let base = first.map_or(0, |place| self.list[place].at);
        let end = self.list.last().map_or(base, |unit| unit.end());
        let again = &mut self.again;
        let same = if again.base == base {
            again.same.saturating_sub(base)
        } else {
            0
        };
        (again.base, again.same) = (base, end);
        usize::try_from(same).expect("segments fit into memory")
    }

    /// Appends the segments that are shown, without the first `skip`.
    pub(super) fn extend(&mut self, skip: usize, segments: &mut Vec<Arc<Segment>>) {
        let wanted = self.again.base + skip as u64;
        let shown = usize::try_from(self.again.from - self.first).expect("units fit into memory");
        let mut from = self.list.len();
        while from > shown && self.list[from - 1].end() > wanted {
            from -= 1;
        }
        for unit in (from..self.list.len()).map(|place| &self.list[place]) {
            let kept = unit.kept.iter().flat_map(|(segments, _)| segments);
            let skip = usize::try_from(wanted.saturating_sub(unit.at)).unwrap_or(usize::MAX);
            segments.extend(kept.skip(skip).cloned());
        }
        self.again.visited += (self.list.len() - from) as u64;
    }
}

/// Returns true if both lists give each call the same age. A call that a list does not contain is fresh.
fn same_ages(a: &[Age], b: &[Age]) -> bool {
    let age = |ages: &[Age], n: usize| ages.get(n).copied().unwrap_or(Age::Fresh);
    (0..a.len().max(b.len())).all(|n| age(a, n) == age(b, n))
}

//! What one evaluation may use up. Whatever reads, compares or makes values pays here first, by the size of what it
//! touches. Nothing that was paid is given back, so the steps bound the memory as well: what lives at once was made, and
//! what was made was paid.
//!
//! Nothing else in an evaluator goes through the elements of a value: [`ops::items`] and [`ops::entries`] ask for a
//! meter, and so do all filters, tests and operators, whose entrances pay for what is not listed there as cheap.

use super::ops::{self, Refused};
use super::{FUEL, OUTPUT, value};
use minijinja::Value;
use minijinja::value::ValueKind;
use serde_json::Value as Json;
use std::cell::Cell;

/// A step is worth this many grains.
const STEP: u64 = 64;
/// Looking at one element, or making one, is a quarter of a step.
const ITEM: u64 = STEP / 4;
/// Each step on the way to a JSON element that lies deep is looked up and copied anew.
const REACH: u64 = 6;
/// Values nest no deeper than this in an evaluation, so that no walk through one exhausts the stack.
pub(super) const NESTED: u32 = 100;
/// JSON from outside may nest deeper than what is made here, but not without end.
const DEEPEST: u32 = 256;
/// Filters that apply filters (`map`) within filters.
const WITHIN: u32 = 8;

/// What a byte of a text costs, in quarters of a grain.
#[derive(Copy, Clone)]
pub(super) enum Rate {
    /// It is copied or compared as a whole.
    Copy = 1,
    /// It is looked through.
    Look = 4,
    /// It is written anew as JSON, which may need six bytes for one.
    Write = 12,
    /// Each character is looked at and written by itself.
    Chars = 16,
}

/// Why an evaluation ends early.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It took too many steps.
    Spent,
    /// It made too much at once.
    Size,
    /// A value nests too deep.
    Deep,
}

pub(super) type Paid = Result<(), Refused>;

/// Counts down. Once it has ended it stays so.
pub(super) struct Meter {
    left: Cell<u64>,
    end: Cell<Option<End>>,
    within: Cell<u32>,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self {
            left: Cell::new(FUEL * STEP),
            end: Cell::new(None),
            within: Cell::new(0),
        }
    }

    /// Why it ended, if it did.
    pub(super) fn end(&self) -> Option<End> {
        self.end.get()
    }

    fn stop<T>(&self, end: End) -> Result<T, Refused> {
        self.end.set(Some(self.end.get().unwrap_or(end)));
        Err(Refused::Ended)
    }

    fn pay(&self, grains: u64) -> Paid {
        let Some(left) = self.left.get().checked_sub(grains) else {
            self.left.set(0);
            return self.stop(End::Spent);
        };
        self.left.set(left);
        Ok(())
    }

    pub(super) fn steps(&self, steps: u64) -> Paid {
        self.pay(steps.saturating_mul(STEP))
    }

    pub(super) fn bytes(&self, bytes: usize, rate: Rate) -> Paid {
        self.pay((bytes as u64).saturating_mul(rate as u64) / 4)
    }

    /// As many elements, wherever they lie.
    pub(super) fn elements(&self, count: u64) -> Paid {
        self.pay(count.saturating_mul(ITEM))
    }

    /// Places in a text where another text was found.
    pub(super) fn places(&self, count: usize) -> Paid {
        self.pay((count as u64).saturating_mul(ITEM / 2))
    }

    /// One name that is compared on the way to another.
    pub(super) fn names(&self, count: usize) -> Paid {
        self.pay(count as u64)
    }

    /// An element that was taken out of what `reach` belongs to: JSON copies its texts, others share them.
    pub(super) fn taken(&self, item: &Value, reach: Option<usize>) -> Paid {
        let copied = reach.and(item.as_str()).map_or(0, str::len);
        let reach = reach.unwrap_or(0) as u64;
        self.pay(ITEM + REACH * reach + copied as u64 / 4)
    }

    /// The elements of a value, not what they hold: a filter that hands them on. Characters are those of a text.
    pub(super) fn shallow(&self, value: &Value) -> Paid {
        let count = match value.as_str() {
            Some(text) => text.len(),
            None => value.len().unwrap_or(0),
        };
        let reach = value::reach(value).unwrap_or(0) as u64;
        self.pay((count as u64).saturating_mul(ITEM + REACH * reach))?;
        // Texts of JSON are copied where they are handed on; those of other values are shared.
        let copied = |json: &Json| self.bytes(json.as_str().map_or(0, str::len), Rate::Copy);
        match value::json(value) {
            Some(Json::Array(list)) => list.iter().try_for_each(copied),
            Some(Json::Object(fields)) => fields.values().try_for_each(copied),
            _ => Ok(()),
        }
    }

    /// All that a value holds, down to its last text.
    pub(super) fn deep(&self, value: &Value, rate: Rate) -> Paid {
        self.weigh(value, rate, 0, 0)
    }

    /// As [`Meter::deep`], where each line is moved in by how deep it lies.
    pub(super) fn pretty(&self, value: &Value) -> Paid {
        self.weigh(value, Rate::Write, 1, 0)
    }

    /// What a value weighs, which is paid along the way.
    pub(super) fn weight(&self, value: &Value) -> Result<u64, Refused> {
        let before = self.left.get();
        self.deep(value, Rate::Copy)?;
        Ok(before - self.left.get())
    }

    /// Sorting: each of the values meets about log n others, and one of them may meet all. Two objects are taken apart
    /// anew each time they meet.
    pub(super) fn sorting(&self, weights: &[u64], objects: bool) -> Paid {
        let (count, heaviest) = (weights.len() as u64, weights.iter().max().unwrap_or(&0));
        let total: u64 = weights.iter().sum();
        let rounds = u64::from(64 - count.leading_zeros());
        self.pay(count.saturating_mul(*heaviest))?;
        let met = total.saturating_mul(rounds);
        self.pay(if objects {
            met.saturating_mul(2)
        } else {
            met / 4
        })
    }

    fn weigh(&self, value: &Value, rate: Rate, level: u64, depth: u32) -> Paid {
        if depth > DEEPEST {
            return self.stop(End::Deep);
        }
        if let Some(text) = value.as_str() {
            self.pay(ITEM)?;
            return self.bytes(text.len(), rate);
        }
        if let Some(json) = value::json(value) {
            return self.weigh_json(json, rate, level, depth);
        }
        self.pay(ITEM + level * u64::from(depth))?;
        let below = |item: &Value| self.weigh(item, rate, level, depth + 1);
        match value.kind() {
            ValueKind::Seq | ValueKind::Iterable => {
                ops::items(self, value)?.iter().try_for_each(below)
            }
            ValueKind::Map => ops::entries(self, value)?
                .iter()
                .try_for_each(|(key, item)| below(key).and_then(|()| below(item))),
            _ => Ok(()),
        }
    }

    fn weigh_json(&self, json: &Json, rate: Rate, level: u64, depth: u32) -> Paid {
        if depth > DEEPEST {
            return self.stop(End::Deep);
        }
        self.pay(ITEM + level * u64::from(depth))?;
        match json {
            Json::String(text) => self.bytes(text.len(), rate),
            Json::Array(list) => list
                .iter()
                .try_for_each(|item| self.weigh_json(item, rate, level, depth + 1)),
            Json::Object(fields) => fields.iter().try_for_each(|(key, item)| {
                self.bytes(key.len(), rate)?;
                self.weigh_json(item, rate, level, depth + 1)
            }),
            _ => Ok(()),
        }
    }

    /// A text that an operation makes.
    pub(super) fn text(&self, len: usize) -> Paid {
        self.fits(len)?;
        self.bytes(len, Rate::Copy)
    }

    /// A text that grows, and is paid once it is whole.
    pub(super) fn fits(&self, len: usize) -> Paid {
        if len > OUTPUT {
            return self.stop(End::Size);
        }
        Ok(())
    }

    /// How deep a list or an object nests that holds these.
    pub(super) fn nest<'v>(&self, items: impl Iterator<Item = &'v Value>) -> Result<u32, Refused> {
        let depth = 1 + items.map(value::depth).max().unwrap_or(0);
        if depth > NESTED {
            return self.stop(End::Deep);
        }
        Ok(depth)
    }

    /// How deep two values lie that are compared.
    pub(super) fn deeper(&self, depth: u32) -> Result<u32, Refused> {
        if depth >= DEEPEST {
            return self.stop(End::Deep);
        }
        Ok(depth + 1)
    }

    /// Carries out a filter that may apply filters itself.
    pub(super) fn within<T>(&self, run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let outer = self.within.get();
        if outer >= WITHIN {
            return Err(format!(
                "filters within filters nest more than {WITHIN} deep"
            ));
        }
        self.within.set(outer + 1);
        let result = run();
        self.within.set(outer);
        result
    }
}

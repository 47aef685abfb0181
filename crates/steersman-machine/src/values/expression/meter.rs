//! Limits of one evaluation. Every operation that reads, compares or makes values pays first, by the size of the values.
//! Payments are never returned, so the fuel bounds the memory, too: every value that exists was paid for.
//!
//! Only [`ops::items`] and [`ops::entries`] read the elements of a value, and they take a meter. Filters, tests and operators
//! take one, too. Their entry points pay in full, except for operations that are listed there as cheap.

use super::ops::{self, Refused};
use super::{FUEL, OUTPUT, value};
use minijinja::Value;
use minijinja::value::ValueKind;
use serde_json::Value as Json;
use std::cell::Cell;

/// Number of grains in a step. A grain is the unit in which the meter counts.
const STEP: u64 = 64;
/// Price of reading an element or making one: a quarter of a step.
const ITEM: u64 = STEP / 4;
/// Price of each step on the way to a nested JSON element. The path is looked up and copied each time.
const REACH: u64 = 6;
/// Maximum depth of values that an evaluation makes, so that no walk through one exhausts the stack.
pub(super) const NESTED: u32 = 100;
/// Maximum depth of any value, including JSON from outside.
const DEEPEST: u32 = 256;
/// Maximum depth of filters that apply filters (`map`).
const WITHIN: u32 = 8;

/// Price of a byte of text, in quarters of a grain.
#[derive(Copy, Clone)]
pub(super) enum Rate {
    /// The text is copied or compared as a whole.
    Copy = 1,
    /// The text is searched.
    Look = 4,
    /// The text is written as JSON, which may need six bytes for one byte.
    Write = 12,
    /// Each character is read and written by itself.
    Chars = 16,
}

/// Reason why an evaluation ends early.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The evaluation took too many steps.
    Spent,
    /// The evaluation made too large a text.
    Size,
    /// A value is nested too deep.
    Deep,
}

pub(super) type Paid = Result<(), Refused>;

/// Counts the fuel of an evaluation down. It keeps the first reason for an early end.
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

    /// Returns the reason for the end, if the evaluation has ended.
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

    /// Pays for `count` elements.
    pub(super) fn elements(&self, count: u64) -> Paid {
        self.pay(count.saturating_mul(ITEM))
    }

    /// Pays for `count` matches of a text within another.
    pub(super) fn places(&self, count: usize) -> Paid {
        self.pay((count as u64).saturating_mul(ITEM / 2))
    }

    /// Pays for a look-up that compares `count` names.
    pub(super) fn names(&self, count: usize) -> Paid {
        self.pay(count as u64)
    }

    /// Pays for an element taken out of a value. `reach` is the depth of the value in its JSON document, `None` outside of JSON.
    /// JSON copies its texts; other values share them.
    pub(super) fn taken(&self, item: &Value, reach: Option<usize>) -> Paid {
        let copied = reach.and(item.as_str()).map_or(0, str::len);
        let reach = reach.unwrap_or(0) as u64;
        self.pay(ITEM + REACH * reach + copied as u64 / 4)
    }

    /// Pays for the elements of a value, but not for their contents, for filters that return the elements unread. A text counts
    /// one element for each byte.
    pub(super) fn shallow(&self, value: &Value) -> Paid {
        let count = match value.as_str() {
            Some(text) => text.len(),
            None => value.len().unwrap_or(0),
        };
        let reach = value::reach(value).unwrap_or(0) as u64;
        self.pay((count as u64).saturating_mul(ITEM + REACH * reach))?;
        // Texts in JSON are copied when they are returned; those of other values are shared.
        let copied = |json: &Json| self.bytes(json.as_str().map_or(0, str::len), Rate::Copy);
        match value::json(value) {
            Some(Json::Array(list)) => list.iter().try_for_each(copied),
            Some(Json::Object(fields)) => fields.values().try_for_each(copied),
            _ => Ok(()),
        }
    }

    /// Pays for a value with all values in it.
    pub(super) fn deep(&self, value: &Value, rate: Rate) -> Paid {
        self.weigh(value, rate, 0, 0)
    }

    /// As [`Meter::deep`], plus the indentation of each line by its depth.
    pub(super) fn pretty(&self, value: &Value) -> Paid {
        self.weigh(value, Rate::Write, 1, 0)
    }

    /// Pays for a value as [`Meter::deep`] and returns the price.
    pub(super) fn weight(&self, value: &Value) -> Result<u64, Refused> {
        let before = self.left.get();
        self.deep(value, Rate::Copy)?;
        Ok(before - self.left.get())
    }

    /// Pays for sorting: each of the values is compared with about log n others, and one of them may be compared with all. A
    /// comparison of two objects reads both as a whole.
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

    /// Pays for a value at this depth and all values in it. `level` is the price, in grains, of each level of indentation.
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

    /// Pays for a text that an operation makes.
    pub(super) fn text(&self, len: usize) -> Paid {
        self.fits(len)?;
        self.bytes(len, Rate::Copy)
    }

    /// Checks the length of a growing text. The text is paid for when it is complete.
    pub(super) fn fits(&self, len: usize) -> Paid {
        if len > OUTPUT {
            return self.stop(End::Size);
        }
        Ok(())
    }

    /// Returns the depth of a list or an object that holds these values.
    pub(super) fn nest<'v>(&self, items: impl Iterator<Item = &'v Value>) -> Result<u32, Refused> {
        let depth = 1 + items.map(value::depth).max().unwrap_or(0);
        if depth > NESTED {
            return self.stop(End::Deep);
        }
        Ok(depth)
    }

    /// Returns `depth + 1` for a walk through values, if that is not too deep.
    pub(super) fn deeper(&self, depth: u32) -> Result<u32, Refused> {
        if depth >= DEEPEST {
            return self.stop(End::Deep);
        }
        Ok(depth + 1)
    }

    /// Runs a filter that may apply filters itself.
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

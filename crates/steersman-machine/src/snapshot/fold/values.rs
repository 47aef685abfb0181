//! Writes of state entries and artifacts, and the reducers that join a write with the stored value.

use crate::snapshot::{Cell, Snapshot, Value};
use crate::stored::commit::Text;
use crate::stored::ids::{Body, Id, Line, Name, Time};
use crate::stored::interaction::{Artifact, Reduce, Write};
use serde_json::{Number, Value as Json};

impl Snapshot {
    /// Applies a write. Returns true if the entry has another value afterwards.
    pub(super) fn write(
        &mut self,
        line: Line,
        now: Time,
        write: &Write,
        value: Option<Value>,
    ) -> bool {
        let key = (write.scope, write.name.clone());
        let Some(value) = value else {
            let known = self.state.contains_key(&key);
            if known {
                self.set_cell(line, key, None);
            }
            return known;
        };
        let old = self.state.get(&key).map(|cell| cell.value.clone());
        let value = match &old {
            Some(old) => reduced(write.reduce, old, value),
            None if write.reduce == Reduce::Append && !value.0.is_array() => {
                Value::new(Json::Array(vec![(*value.0).clone()]))
            }
            None => value,
        };
        let changed = old.as_ref() != Some(&value);
        let expires = write.expires.map(|ms| now.plus(ms));
        self.set_cell(
            line,
            key,
            Some(Cell {
                value,
                line,
                expires,
            }),
        );
        changed
    }

    pub(super) fn set_cell(&mut self, line: Line, key: (Id, Name), cell: Option<Cell>) {
        let expires = cell.as_ref().and_then(|c| c.expires);
        let before = if let Some(cell) = cell {
            self.unset.remove(&key);
            self.state.insert(key.clone(), cell)
        } else {
            self.unset.insert(key.clone(), line);
            self.state.remove(&key)
        };
        let (scope, name) = key;
        if let Some(at) = before.and_then(|c| c.expires) {
            self.expiring.remove(&(at, scope, name.clone()));
        }
        if let Some(at) = expires {
            self.expiring.insert((at, scope, name));
        }
    }

    /// Adds an artifact that a call made. It goes before the artifacts that messages of the same line brought, because the fold
    /// applies the pushes of a line before its other changes. So tick and fold agree on the order.
    pub(super) fn add_artifact(&mut self, line: Line, artifact: &Artifact) {
        let key = (artifact.scope, artifact.name.clone());
        let versions = self.artifacts.entry(key).or_default();
        let came = versions.iter().rev().take_while(|v| v.call.line() == line);
        let at = versions.len() - came.count();
        versions.insert(at, artifact.clone());
    }

    /// Adds an artifact that came in from outside with this line.
    pub(super) fn came(&mut self, artifact: &Artifact) {
        let key = (artifact.scope, artifact.name.clone());
        let versions = self.artifacts.entry(key).or_default();
        versions.push_back(artifact.clone());
    }
}

/// Returns the value of a write from the texts of its line. An erased value reads as unset.
pub(super) fn value_of(write: &Write, bodies: &[Text]) -> Option<Value> {
    text_of(write.value?, bodies)
}

/// Returns a value from the texts of its line. `None` means that it was erased. [`crate::stored::codec::verify`] checks before a line is
/// folded that values are there and readable.
pub(super) fn text_of(body: Body, bodies: &[Text]) -> Option<Value> {
    match bodies
        .get(body.k() as usize)
        .expect("the line of a value holds its text")
    {
        Text::Here(text) => {
            let json = serde_json::from_str(text).expect("values are JSON");
            Some(Value::new(json))
        }
        Text::Blob { .. } => unreachable!("values are never moved out of their line"),
        Text::Parts(_) => unreachable!("values are one text"),
        Text::Erased { .. } => None,
    }
}

fn reduced(how: Reduce, old: &Value, new: Value) -> Value {
    match (how, &*old.0, &*new.0) {
        (Reduce::Append, Json::Array(list), Json::Array(more)) => {
            Value::new(list.iter().chain(more).cloned().collect())
        }
        (Reduce::Append, Json::Array(list), one) => {
            Value::new(list.iter().chain([one]).cloned().collect())
        }
        (Reduce::Sum, Json::Number(a), Json::Number(b)) => Value::new(sum(a, b)),
        (Reduce::Max, Json::Number(a), Json::Number(b)) => {
            if is_less(a, b) {
                new
            } else {
                old.clone()
            }
        }
        (Reduce::Merge, Json::Object(a), Json::Object(b)) => Value::new(Json::Object(
            a.iter()
                .chain(b)
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect(),
        )),
        // The tick refuses a value that does not fit its reducer. The fold cannot refuse, so the new value replaces the old one.
        (Reduce::Last | Reduce::Append | Reduce::Sum | Reduce::Max | Reduce::Merge, ..) => new,
    }
}

/// Adds two numbers. The tick checked that the sum fits ([`crate::tick::state`]). If an adoption changed the stored value after
/// that check, the sum may not fit and is clamped to its range.
fn sum(a: &Number, b: &Number) -> Json {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return Json::from(a.saturating_add(b));
    }
    let sum = a.as_f64().unwrap_or(0.0) + b.as_f64().unwrap_or(0.0);
    Json::from(sum.clamp(f64::MIN, f64::MAX))
}

/// Compares two numbers. Integers are compared as integers, because floats above 2^53 cannot tell neighbours apart.
fn is_less(a: &Number, b: &Number) -> bool {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a < b,
        _ => a.as_f64() < b.as_f64(),
    }
}

//! JSON as values of the evaluator, without a copy: objects and lists are read in place.

use super::meter::Meter;
use super::ops::{self, Refused};
use crate::values::json::SEALED;
use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use serde_json::Value as Json;
use std::fmt;
use std::sync::Arc;

/// A part of a JSON document that is shared.
struct Part {
    root: Arc<Json>,
    steps: Vec<Step>,
}

#[derive(Clone)]
enum Step {
    Field(Arc<str>),
    Index(usize),
}

impl Part {
    fn json(&self) -> &Json {
        self.steps
            .iter()
            .fold(&*self.root, |json, step| match step {
                Step::Field(name) => &json[&**name],
                Step::Index(n) => &json[*n],
            })
    }

    fn below(&self, json: &Json, step: impl FnOnce() -> Step) -> Value {
        scalar(json).unwrap_or_else(|| {
            let mut steps = self.steps.clone();
            steps.push(step());
            Value::from_object(Part {
                root: self.root.clone(),
                steps,
            })
        })
    }
}

fn scalar(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => Value::from(()),
        Json::Bool(b) => Value::from(*b),
        Json::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(n), _) => Value::from(n),
            (_, Some(n)) => Value::from(n),
            _ => Value::from(n.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(s) => Value::from(s.as_str()),
        Json::Array(_) | Json::Object(_) => return None,
    })
}

impl Object for Part {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        if self.json().is_array() {
            ObjectRepr::Seq
        } else {
            ObjectRepr::Map
        }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match self.json() {
            Json::Array(list) => {
                let n = key.as_usize()?;
                list.get(n).map(|json| self.below(json, || Step::Index(n)))
            }
            Json::Object(fields) => {
                let name = key.as_str()?;
                fields
                    .get(name)
                    .map(|json| self.below(json, || Step::Field(name.into())))
            }
            _ => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.json() {
            Json::Array(list) => Enumerator::Seq(list.len()),
            Json::Object(fields) => {
                Enumerator::Values(fields.keys().map(|k| Value::from(k.as_str())).collect())
            }
            _ => Enumerator::NonEnumerable,
        }
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        match self.json() {
            Json::Array(list) => Some(list.len()),
            Json::Object(fields) => Some(fields.len()),
            _ => None,
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.json())
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.json())
    }
}

/// A list or an object that an evaluation made. It stores its depth, so that the depth of a value around it is known without a
/// walk.
struct Made {
    depth: u32,
    held: Held,
}

enum Held {
    List(Vec<Value>),
    Map(Value),
}

impl Object for Made {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        match self.held {
            Held::List(_) => ObjectRepr::Seq,
            Held::Map(_) => ObjectRepr::Map,
        }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match &self.held {
            Held::List(list) => list.get(key.as_usize()?).cloned(),
            Held::Map(map) => map.get_item(key).ok().filter(|item| !item.is_undefined()),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match &self.held {
            Held::List(list) => Enumerator::Seq(list.len()),
            Held::Map(map) => match map.try_iter() {
                Ok(keys) => Enumerator::Values(keys.collect()),
                Err(_) => Enumerator::NonEnumerable,
            },
        }
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        match &self.held {
            Held::List(list) => Some(list.len()),
            Held::Map(map) => map.len(),
        }
    }
}

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.held {
            Held::List(list) => list.fmt(f),
            Held::Map(map) => map.fmt(f),
        }
    }
}

/// The variable `loop`; its fields are computed on demand.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) items: Arc<[Value]>,
    pub(super) at: usize,
    /// Number of loops around the body, this one included.
    pub(super) loops: usize,
    /// Depth of `loop` as a value.
    pub(super) depth: u32,
}

impl Object for Loop {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let (n, len) = (self.at, self.items.len());
        let near = |k: Option<usize>| {
            let item = k.and_then(|k| self.items.get(k)).cloned();
            item.unwrap_or_else(|| Value::from(()))
        };
        Some(match key.as_str()? {
            "index" => Value::from(n + 1),
            "index0" => Value::from(n),
            "first" => Value::from(n == 0),
            "last" => Value::from(n + 1 == len),
            "length" => Value::from(len),
            "revindex" => Value::from(len - n),
            "revindex0" => Value::from(len - n - 1),
            "depth" => Value::from(self.loops),
            "depth0" => Value::from(self.loops - 1),
            "previtem" => near(n.checked_sub(1)),
            "nextitem" => near(n.checked_add(1)),
            _ => return None,
        })
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&[
            "index",
            "index0",
            "first",
            "last",
            "length",
            "revindex",
            "revindex0",
            "depth",
            "depth0",
            "previtem",
            "nextitem",
        ])
    }
}

/// Makes a list and pays for it.
pub(super) fn list(meter: &Meter, items: Vec<Value>) -> Result<Value, Refused> {
    meter.elements(items.len() as u64)?;
    let depth = meter.nest(items.iter())?;
    let held = Held::List(items);
    Ok(Value::from_object(Made { depth, held }))
}

/// Makes an object and pays for it.
pub(super) fn map(meter: &Meter, pairs: Vec<(Value, Value)>) -> Result<Value, Refused> {
    meter.elements(pairs.len() as u64)?;
    let depth = meter.nest(pairs.iter().map(|(_, item)| item))?;
    let held = Held::Map(Value::from_pairs(pairs));
    Ok(Value::from_object(Made { depth, held }))
}

/// Pays for a value that an operation made, by its size. Lazy lists are evaluated here, so that their size is known and they
/// are not evaluated each time they are read.
pub(super) fn made(meter: &Meter, value: Value) -> Result<Value, Refused> {
    if let Some(text) = value.as_str() {
        meter.text(text.len())?;
        return Ok(value);
    }
    settled(meter, value, 0)
}

fn settled(meter: &Meter, value: Value, depth: u32) -> Result<Value, Refused> {
    let depth = meter.deeper(depth)?;
    if json(&value).is_some() || value.downcast_object_ref::<Made>().is_some() {
        return Ok(value);
    }
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            let items = ops::items(meter, &value)?.into_iter();
            let items: Result<_, _> = items.map(|item| settled(meter, item, depth)).collect();
            list(meter, items?)
        }
        ValueKind::Map => {
            let pairs = ops::entries(meter, &value)?.into_iter();
            let pairs: Result<_, _> = pairs
                .map(|(key, item)| Ok((key, settled(meter, item, depth)?)))
                .collect();
            map(meter, pairs?)
        }
        _ => Ok(value),
    }
}

/// Returns the depth of a value. A list or an object that the evaluation did not make counts as one level.
pub(super) fn depth(value: &Value) -> u32 {
    if let Some(made) = value.downcast_object_ref::<Made>() {
        return made.depth;
    }
    if let Some(about) = value.downcast_object_ref::<Loop>() {
        return about.depth;
    }
    u32::from(value.as_object().is_some())
}

/// Returns the number of steps that lead to a part of a JSON document; `None` for any other value.
pub(super) fn reach(value: &Value) -> Option<usize> {
    let part = value.downcast_object_ref::<Part>()?;
    Some(part.steps.len())
}

/// Returns the JSON of a value that is a part of a document.
pub(super) fn json(value: &Value) -> Option<&Json> {
    value.downcast_object_ref::<Part>().map(Part::json)
}

/// Returns the elements of a list that an evaluation made.
pub(super) fn elements(value: &Value) -> Option<&[Value]> {
    match &value.downcast_object_ref::<Made>()?.held {
        Held::List(list) => Some(list),
        Held::Map(_) => None,
    }
}

/// Returns a value over shared JSON. Only texts and numbers are copied, when they are read.
pub fn shared(json: &Arc<Json>) -> Value {
    scalar(json).unwrap_or_else(|| {
        Value::from_object(Part {
            root: json.clone(),
            steps: Vec::new(),
        })
    })
}

/// Returns a value over JSON that it owns.
pub fn from_json(json: Json) -> Value {
    shared(&Arc::new(json))
}

/// Returns a value as JSON; none and undefined become `null`. An error means that JSON cannot represent it.
pub fn to_json(value: &Value) -> Result<Json, String> {
    if let Some(part) = value.downcast_object_ref::<Part>() {
        return Ok(part.json().clone());
    }
    if let Some(list) = elements(value) {
        return list.iter().map(to_json).collect();
    }
    serde_json::to_value(value).map_err(|e| e.to_string())
}

/// Returns JSON with every sealed secret replaced by `(sealed)`, for people and models.
pub(crate) fn shown_json(json: &Json) -> Json {
    match json {
        json if crate::values::json::is_sealed(json) => Json::from("(sealed)"),
        Json::Array(list) => list.iter().map(shown_json).collect(),
        Json::Object(fields) => Json::Object(
            fields
                .iter()
                .map(|(k, v)| (k.clone(), shown_json(v)))
                .collect(),
        ),
        plain => plain.clone(),
    }
}

pub(super) fn is_sealed(value: &Value) -> bool {
    if let Some(part) = value.downcast_object_ref::<Part>() {
        return crate::values::json::is_sealed(part.json());
    }
    value.len() == Some(1) && value.get_attr(SEALED).is_ok_and(|v| !v.is_undefined())
}

//! JSON as values of the evaluator, without a copy: objects and lists are looked into where they lie.

use crate::snapshot::SEALED;
use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr};
use serde_json::Value as Json;
use std::fmt;
use std::sync::Arc;

/// A part of a JSON document that somebody else holds too.
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

/// A value over shared JSON; nothing is copied but texts and numbers that are looked at.
pub fn shared(json: &Arc<Json>) -> Value {
    scalar(json).unwrap_or_else(|| {
        Value::from_object(Part {
            root: json.clone(),
            steps: Vec::new(),
        })
    })
}

/// A value of its own.
pub fn from_json(json: Json) -> Value {
    shared(&Arc::new(json))
}

/// A value as JSON; none and what is undefined are `null`. An error only for what JSON cannot say.
pub fn to_json(value: &Value) -> Result<Json, String> {
    if let Some(part) = value.downcast_object_ref::<Part>() {
        return Ok(part.json().clone());
    }
    serde_json::to_value(value).map_err(|e| e.to_string())
}

/// JSON with every sealed secret in it replaced by `(sealed)`: what may be shown.
pub fn shown_json(json: &Json) -> Json {
    match json {
        json if crate::snapshot::is_sealed(json) => Json::from("(sealed)"),
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
        return crate::snapshot::is_sealed(part.json());
    }
    value.len() == Some(1) && value.get_attr(SEALED).is_ok_and(|v| !v.is_undefined())
}

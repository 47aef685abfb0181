//! Declared types: checks whether a JSON value fits a type, and names the path of the part that does not.

use crate::network::{Parameters, Type, TypeKind};
use crate::snapshot::is_sealed;
use crate::stored::ids::Name;
use crate::values::json;
use crate::values::schemas;
use regex::Regex;
use serde_json::{Map, Number, Value as Json};
use std::collections::BTreeMap;
use std::fmt;

/// Returns the form of a JSON value by which values are compared: fields sorted by name, and floats without a fraction as whole
/// numbers. Two values are equal if their forms are. For JSON in text form, use [`json::comparable`].
pub fn canonical(json: &Json) -> Json {
    match json {
        Json::Object(map) => {
            let mut fields: Vec<_> = map.iter().map(|(k, v)| (k.clone(), canonical(v))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Json::Object(fields.into_iter().collect())
        }
        Json::Array(list) => list.iter().map(canonical).collect(),
        Json::Number(number) => whole(number).map_or_else(|| json.clone(), Json::Number),
        Json::Null | Json::Bool(_) | Json::String(_) => json.clone(),
    }
}

/// Returns true if two JSON values are the same value.
pub fn equal(a: &Json, b: &Json) -> bool {
    a == b || canonical(a) == canonical(b)
}

/// Returns a float without a fraction as a whole number, if 64 bits hold it.
fn whole(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    if float.fract() != 0.0 {
        return None;
    }
    // A cast of a value beyond the range gives the nearest number.
    let whole = float as i128;
    let signed = i64::try_from(whole).map(Number::from);
    signed
        .or_else(|_| u64::try_from(whole).map(Number::from))
        .ok()
}

/// A part of a value that does not fit, with its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Path of the part, such as `items[2].price`; empty for the value itself.
    pub path: String,
    /// Explanation, such as `is text, must be an integer`.
    pub why: String,
}

impl Misfit {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            why: why.into(),
        }
    }
    /// Returns the misfit with its path prefixed by a step.
    pub fn under(mut self, step: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.path {
            "" => f.write_str(&self.why),
            path => write!(f, "`{path}` {}", self.why),
        }
    }
}

/// Returns the first part of a value that does not fit the type. `null` fits only an optional type. A JSON Schema accepts every
/// value here; an adapter checks it.
pub fn misfit(ty: &Type, value: &Json) -> Option<Misfit> {
    misfit_by(ty, value, &mut Patterns::default())
}

/// Compiled patterns; each pattern is compiled once per value.
#[derive(Default)]
struct Patterns<'a>(BTreeMap<&'a str, Option<Regex>>);

impl<'a> Patterns<'a> {
    /// Returns true if the pattern matches the whole text. An invalid pattern matches nothing; `check` reports it earlier.
    fn match_whole(&mut self, pattern: &'a str, text: &str) -> bool {
        let compiled = self.0.entry(pattern);
        let compiled = compiled.or_insert_with(|| schemas::pattern(pattern).ok());
        compiled.as_ref().is_some_and(|known| known.is_match(text))
    }
}

fn misfit_by<'a>(ty: &'a Type, value: &Json, patterns: &mut Patterns<'a>) -> Option<Misfit> {
    if value.is_null() {
        let may = ty.optional || matches!(ty.kind, TypeKind::Any | TypeKind::Schema(_));
        return (!may).then(|| Misfit::new("must not be none"));
    }
    let wrong = |wanted: &str| Some(Misfit::new(format!("is {}, must be {wanted}", word(value))));
    let no_number = |wanted: &str| match value.as_str() {
        // The writer meant a number, but no number type holds it, so it was read as text.
        Some(text) if json::is_beyond(text) => Some(Misfit::new(format!(
            "is {text}: 64 bits do not hold that, so it can only be text"
        ))),
        _ => wrong(wanted),
    };
    match &ty.kind {
        TypeKind::String { pattern } => match (value.as_str(), pattern) {
            (None, _) => wrong("text"),
            (Some(text), Some(pattern)) if !patterns.match_whole(pattern, text) => {
                Some(Misfit::new(format!("does not match `{pattern}`")))
            }
            (Some(_), _) => None,
        },
        TypeKind::Integer { minimum, maximum } if value.is_i64() || value.is_u64() => {
            bounds(value, *minimum, *maximum)
        }
        TypeKind::Integer { .. } => no_number("an integer"),
        TypeKind::Number { minimum, maximum } if value.is_number() => {
            bounds(value, *minimum, *maximum)
        }
        TypeKind::Number { .. } => no_number("a number"),
        TypeKind::Boolean if value.is_boolean() => None,
        TypeKind::Boolean => wrong("true or false"),
        TypeKind::Enum(words) => match value.as_str() {
            Some(word) if words.iter().any(|w| w == word) => None,
            Some(word) => Some(Misfit::new(format!(
                "is `{word}`, must be one of {}",
                words.join(", ")
            ))),
            None => wrong(&format!("one of {}", words.join(", "))),
        },
        TypeKind::List(items) => match value.as_array() {
            Some(list) => list.iter().enumerate().find_map(|(n, item)| {
                misfit_by(items, item, patterns).map(|misfit| misfit.under(&format!("[{n}]")))
            }),
            None => wrong("a list"),
        },
        TypeKind::Fields(fields) => match value.as_object() {
            Some(object) => fields_misfit(fields, object, patterns),
            None => wrong("an object"),
        },
        TypeKind::Object if value.is_object() => None,
        TypeKind::Object => wrong("an object"),
        TypeKind::Any | TypeKind::Schema(_) => None,
        TypeKind::Secret if value.is_string() || is_sealed(value) => None,
        TypeKind::Secret => wrong("text, to be sealed"),
        TypeKind::Artifact if value.is_string() => None,
        TypeKind::Artifact => wrong("the name of an artifact"),
    }
}

/// Returns the first argument that does not fit. An argument may be missing if it is optional or has a default.
pub fn arguments_misfit(parameters: &Parameters, args: &Map<String, Json>) -> Option<Misfit> {
    match parameters {
        Parameters::Fields(fields) => fields_misfit(fields, args, &mut Patterns::default()),
        Parameters::Schema(_) => None,
    }
}

fn fields_misfit<'a>(
    fields: &'a [(Name, Type)],
    object: &Map<String, Json>,
    patterns: &mut Patterns<'a>,
) -> Option<Misfit> {
    for (name, ty) in fields {
        let found = match object.get(&**name) {
            Some(value) => misfit_by(ty, value, patterns),
            None if ty.optional || ty.default.is_some() => None,
            None => Some(Misfit::new("is missing")),
        };
        if let Some(found) = found {
            return Some(found.under(name));
        }
    }
    let known = |key: &String| fields.iter().any(|(name, _)| **name == **key);
    let extra = object.keys().find(|key| !known(key))?;
    Some(Misfit::new("is not declared").under(extra))
}

fn bounds(value: &Json, minimum: Option<f64>, maximum: Option<f64>) -> Option<Misfit> {
    let number = value.as_f64()?;
    match (minimum, maximum) {
        (Some(low), _) if number < low => {
            Some(Misfit::new(format!("is {value}, must be at least {low}")))
        }
        (_, Some(high)) if number > high => {
            Some(Misfit::new(format!("is {value}, must be at most {high}")))
        }
        _ => None,
    }
}

fn word(value: &Json) -> &'static str {
    match value {
        Json::Null => "none",
        Json::Bool(_) => "a boolean",
        Json::Number(n) if n.is_f64() => "a fraction",
        Json::Number(_) => "an integer",
        Json::String(_) => "text",
        Json::Array(_) => "a list",
        value if is_sealed(value) => "a secret",
        Json::Object(_) => "an object",
    }
}

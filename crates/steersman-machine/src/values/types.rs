//! Declared types, and the check of a JSON value against a type. The check names the path of the part that does not fit.

use crate::stored::ids::Name;
use crate::stored::interaction::Reduce;
use crate::values::expression::{Template, compare};
use crate::values::json::{self, is_sealed};
use crate::values::schemas;
use regex::Regex;
use serde_json::{Map, Number, Value as Json, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Type of a parameter, state entry, output or event field.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    /// Kind of the value.
    pub kind: TypeKind,
    /// True if the value may be absent; an absent value is `none`.
    pub optional: bool,
    /// Value used if none is given.
    pub default: Option<Json>,
    /// Description that the model reads.
    pub description: Option<String>,
    /// For state: the end after which the entry gets its default again, or becomes unset.
    pub expires: Option<Expiry>,
    /// For state: the people who may edit the entry from outside, by name. Empty means anybody who may edit state.
    pub by: Vec<Name>,
    /// For state: how several writes of one exchange are joined.
    pub reduce: Reduce,
    /// For secret parameters: the question to the person.
    pub ask: Option<Template>,
}

/// The end of a value of state.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// This many milliseconds after its last write.
    After(u64),
    /// With the answer or task of the agent that declares it.
    Answer,
}

impl Type {
    /// Returns the first result of `test` that is not `None`, for this type and then the types within it.
    pub fn find<T>(&self, test: &dyn Fn(&Self) -> Option<T>) -> Option<T> {
        test(self).or_else(|| match &self.kind {
            TypeKind::List(of) => of.find(test),
            TypeKind::Fields(fields) => fields.iter().find_map(|(_, ty)| ty.find(test)),
            _ => None,
        })
    }
}

/// Kind of a type, with its bounds.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    /// A text, optionally with a pattern.
    String {
        /// Regular expression that the whole text must match.
        pattern: Option<String>,
    },
    /// A whole number within bounds.
    Integer {
        /// Least value, inclusive.
        minimum: Option<Number>,
        /// Greatest value, inclusive.
        maximum: Option<Number>,
    },
    /// A number within bounds.
    Number {
        /// Least value, inclusive.
        minimum: Option<Number>,
        /// Greatest value, inclusive.
        maximum: Option<Number>,
    },
    /// `true` or `false`.
    Boolean,
    /// One of these texts.
    Enum(Vec<String>),
    /// A list of values of this type.
    List(Box<Type>),
    /// An object with these fields and no others.
    Fields(Vec<(Name, Type)>),
    /// An object of any shape.
    Object,
    /// Any JSON value.
    Any,
    /// A secret: a text that is to be sealed, or its sealed handle.
    Secret,
    /// A reference to an artifact.
    Artifact,
    /// The text of a JSON Schema file. An adapter checks values against it.
    Schema(Arc<str>),
}

/// Parameters of a tool or agent.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameters {
    /// Parameters that are declared one by one.
    Fields(Vec<(Name, Type)>),
    /// The text of a JSON Schema file. An adapter checks arguments against it.
    Schema(Arc<str>),
}

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

/// Returns a float without a fraction as a whole number. `None` for any other number, and for one that does not fit 64 bits.
fn whole(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    if float.fract() != 0.0 {
        return None;
    }
    // The cast gives the nearest number for a value beyond the range.
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

/// Returns the first part of a value that does not fit the type. `null` fits only an optional type and `any`. A JSON Schema
/// accepts every value here; an adapter checks it.
pub fn misfit(ty: &Type, value: &Json) -> Option<Misfit> {
    misfit_by(ty, value, &mut Patterns::default())
}

/// Compiled patterns. The check of a value compiles each pattern once.
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
    let not_number = |wanted: &str| match value.as_str() {
        // The JSON had a number that does not fit 64 bits, so it was read as text.
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
            bounds(value, minimum.as_ref(), maximum.as_ref())
        }
        TypeKind::Integer { .. } => not_number("an integer"),
        TypeKind::Number { minimum, maximum } if value.is_number() => {
            bounds(value, minimum.as_ref(), maximum.as_ref())
        }
        TypeKind::Number { .. } => not_number("a number"),
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

/// Returns the first part of a value that is a secret and is not sealed. People give secrets only as answers, which are sealed before
/// anything of them is stored; in a message, secrets would be in the log for good.
pub fn in_clear(ty: &Type, value: &Json) -> Option<Misfit> {
    match &ty.kind {
        TypeKind::Secret if value.is_string() && !is_sealed(value) => Some(Misfit::new(
            "is a secret, and may only be given as the answer to a question for it",
        )),
        TypeKind::List(items) => value.as_array()?.iter().enumerate().find_map(|(n, item)| {
            in_clear(items, item).map(|misfit| misfit.under(&format!("[{n}]")))
        }),
        TypeKind::Fields(fields) => fields_in_clear(fields, value.as_object()?),
        _ => None,
    }
}

/// Returns the first argument that is a secret in clear text ([`in_clear`]).
pub fn argument_in_clear(parameters: &Parameters, args: &Map<String, Json>) -> Option<Misfit> {
    match parameters {
        Parameters::Fields(fields) => fields_in_clear(fields, args),
        Parameters::Schema(_) => None,
    }
}

fn fields_in_clear(fields: &[(Name, Type)], object: &Map<String, Json>) -> Option<Misfit> {
    fields.iter().find_map(|(name, ty)| {
        let misfit = in_clear(ty, object.get(&**name)?)?;
        Some(misfit.under(name))
    })
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

fn bounds(value: &Json, minimum: Option<&Number>, maximum: Option<&Number>) -> Option<Misfit> {
    let number = value.as_number()?;
    match (minimum, maximum) {
        (Some(low), _) if compare(number, low).is_lt() => {
            Some(Misfit::new(format!("is {value}, must be at least {low}")))
        }
        (_, Some(high)) if compare(number, high).is_gt() => {
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

/// Returns the JSON Schema of an object with exactly these fields. Secrets are left out, because no model fills them in.
pub fn schema_of_fields(fields: &[(Name, Type)]) -> Json {
    object_schema(fields.iter().map(|(n, t)| (n, t)))
}

pub(crate) fn object_schema<'a>(fields: impl Iterator<Item = (&'a Name, &'a Type)>) -> Json {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, ty) in fields.filter(|(_, ty)| !matches!(ty.kind, TypeKind::Secret)) {
        properties.insert(name.to_string(), schema_of(ty));
        if !ty.optional && ty.default.is_none() {
            required.push(Json::from(&**name));
        }
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Json::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Json::Array(required));
    }
    schema.insert("additionalProperties".to_owned(), false.into());
    Json::Object(schema)
}

/// Returns the JSON Schema of a type, in a fixed order of keys.
pub(crate) fn schema_of(ty: &Type) -> Json {
    let mut schema = match &ty.kind {
        TypeKind::String { pattern } => {
            let mut schema = json!({ "type": "string" });
            if let Some(pattern) = pattern {
                schema["pattern"] = format!("^(?:{pattern})$").into();
            }
            schema
        }
        TypeKind::Integer { minimum, maximum } => {
            number("integer", minimum.as_ref(), maximum.as_ref())
        }
        TypeKind::Number { minimum, maximum } => {
            number("number", minimum.as_ref(), maximum.as_ref())
        }
        TypeKind::Boolean => json!({ "type": "boolean" }),
        TypeKind::Enum(words) => json!({ "type": "string", "enum": words }),
        TypeKind::List(items) => json!({ "type": "array", "items": schema_of(items) }),
        TypeKind::Fields(fields) => schema_of_fields(fields),
        TypeKind::Object => json!({ "type": "object" }),
        TypeKind::Any => json!({}),
        TypeKind::Secret | TypeKind::Artifact => json!({ "type": "string" }),
        TypeKind::Schema(text) => serde_json::from_str(text).unwrap_or_else(|_| json!({})),
    };
    if let Some(description) = &ty.description {
        schema["description"] = description.as_str().into();
    }
    if let Some(default) = &ty.default {
        schema["default"] = default.clone();
    }
    schema
}

fn number(kind: &str, minimum: Option<&Number>, maximum: Option<&Number>) -> Json {
    let mut schema = json!({ "type": kind });
    for (key, bound) in [("minimum", minimum), ("maximum", maximum)] {
        if let Some(bound) = bound {
            schema[key] = Json::Number(bound.clone());
        }
    }
    schema
}

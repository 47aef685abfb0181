//! The tree: scalars, lists and maps with their places, and how a plain scalar is read.

use super::Span;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A value of a definition with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it is written.
    pub span: Span,
    /// What it is.
    pub value: Value,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum Value {
    /// A single value.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// A map, in the order written; keys differ.
    Map(Vec<(Key, Node)>),
}

/// A key with its place.
#[derive(Clone, Debug)]
pub struct Key {
    /// Where it is written.
    pub span: Span,
    /// Its text.
    pub name: Arc<str>,
}

/// A single value.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// Its text, escapes and folding undone. Of a number or boolean: as written.
    pub text: Arc<str>,
    /// How it is written.
    pub style: Style,
    /// What it is read as.
    pub kind: Kind,
}

/// How a scalar is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In quotes of either kind.
    Quoted,
    /// A block behind `|`.
    Literal,
    /// A block behind `>`.
    Folded,
    /// By the Rust builder or from the stored form.
    Made,
}

/// What a scalar is read as.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Kind {
    /// Nothing, `null` or `~`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Text.
    Text,
}

impl Node {
    fn made(value: Value) -> Self {
        Self {
            span: Span::NONE,
            value,
        }
    }
    fn made_scalar(text: impl Into<Arc<str>>, kind: Kind) -> Self {
        Self::made(Value::Scalar(Scalar {
            text: text.into(),
            style: Style::Made,
            kind,
        }))
    }
    /// A text without a place.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::made_scalar(text, Kind::Text)
    }
    /// A boolean without a place.
    pub fn boolean(value: bool) -> Self {
        Self::made_scalar(if value { "true" } else { "false" }, Kind::Bool(value))
    }
    /// A whole number without a place.
    pub fn integer(value: i64) -> Self {
        Self::made_scalar(value.to_string(), Kind::Integer(value))
    }
    /// A number without a place.
    pub fn number(value: f64) -> Self {
        Self::made_scalar(value.to_string(), Kind::Number(value))
    }
    /// Nothing, without a place.
    pub fn null() -> Self {
        Self::made_scalar("null", Kind::Null)
    }
    /// A list without a place.
    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self::made(Value::List(items.into_iter().collect()))
    }
    /// A map without a place. Of equal keys the last one counts.
    pub fn map<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        let mut map: Vec<(Key, Self)> = Vec::new();
        for (name, node) in entries {
            let name = name.into();
            let span = Span::NONE;
            map.retain(|(key, _)| key.name != name);
            map.push((Key { span, name }, node));
        }
        Self::made(Value::Map(map))
    }
    /// JSON as a tree without places.
    pub fn json(value: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match value {
            Json::Null => Self::null(),
            Json::Bool(value) => Self::boolean(*value),
            Json::Number(number) => {
                let kind = match (number.as_i64(), number.as_f64()) {
                    (Some(value), _) => Kind::Integer(value),
                    (None, value) => Kind::Number(value.unwrap_or_default()),
                };
                Self::made_scalar(number.to_string(), kind)
            }
            Json::String(text) => Self::text(text.as_str()),
            Json::Array(items) => Self::list(items.iter().map(Self::json)),
            Json::Object(map) => Self::map(map.iter().map(|(k, v)| (k.as_str(), Self::json(v)))),
        }
    }
    /// It as a scalar.
    pub fn scalar(&self) -> Option<&Scalar> {
        match &self.value {
            Value::Scalar(scalar) => Some(scalar),
            Value::List(_) | Value::Map(_) => None,
        }
    }
    /// Its text if it is a scalar: as written if it is a number or boolean.
    pub fn as_text(&self) -> Option<&Arc<str>> {
        self.scalar()
            .filter(|scalar| scalar.kind != Kind::Null)
            .map(|scalar| &scalar.text)
    }
    /// Its entries if it is a map.
    pub fn entries(&self) -> &[(Key, Self)] {
        match &self.value {
            Value::Map(entries) => entries,
            Value::Scalar(_) | Value::List(_) => &[],
        }
    }
    /// Its items if it is a list.
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            Value::Scalar(_) | Value::Map(_) => &[],
        }
    }
    /// The value of a key if it is a map.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries()
            .iter()
            .find(|(entry, _)| &*entry.name == key)
            .map(|(_, node)| node)
    }
    /// Whether it is `null` or nothing.
    pub fn is_null(&self) -> bool {
        self.scalar()
            .is_some_and(|scalar| scalar.kind == Kind::Null)
    }
    /// As JSON, keys of maps sorted.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Scalar(scalar) => match scalar.kind {
                Kind::Null => Json::Null,
                Kind::Bool(value) => Json::Bool(value),
                Kind::Integer(value) => Json::from(value),
                Kind::Number(value) => Json::from(value),
                Kind::Text => Json::from(&*scalar.text),
            },
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => {
                let sorted: BTreeMap<&str, Json> = entries
                    .iter()
                    .map(|(key, node)| (&*key.name, node.to_json()))
                    .collect();
                Json::Object(
                    sorted
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect(),
                )
            }
        }
    }
    /// What it is, in words.
    pub(crate) fn kind_word(&self) -> &'static str {
        match &self.value {
            Value::Scalar(scalar) => match scalar.kind {
                Kind::Null => "nothing",
                Kind::Bool(_) => "a boolean",
                Kind::Integer(_) => "an integer",
                Kind::Number(_) => "a number",
                Kind::Text => "text",
            },
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}

/// What a plain scalar is read as: YAML 1.2, `true` and `false` only. None for numbers that two readers would read
/// differently.
pub(crate) fn plain(text: &str) -> Option<Kind> {
    match text {
        "" | "~" | "null" => return Some(Kind::Null),
        "true" => return Some(Kind::Bool(true)),
        "false" => return Some(Kind::Bool(false)),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if all_digits(digits) {
        let leading_zero = digits.len() > 1 && digits.starts_with('0');
        let value = text.parse().ok().filter(|_| !leading_zero)?;
        return Some(Kind::Integer(value));
    }
    let prefixed = |prefix: &str| {
        digits
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.chars().next().is_some_and(|c| c.is_ascii_hexdigit()))
    };
    if prefixed("0x") || prefixed("0o") {
        return None;
    }
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let exponent_fits =
        exponent.is_none_or(|text| all_digits(text.strip_prefix(['-', '+']).unwrap_or(text)));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = exponent_fits
        && (mantissa.contains('.') || exponent.is_some())
        && all_digits(&format!("{whole}{part}"));
    if !is_number {
        return Some(Kind::Text);
    }
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    let value: f64 = text.parse().ok()?;
    (value.is_finite() && !leading_zero).then_some(Kind::Number(value))
}

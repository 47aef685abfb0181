//! The tree of scalars, lists and maps with their places, and the rules for reading plain scalars.

use super::Span;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A value of a definition with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Place in the file.
    pub span: Span,
    /// The content of the node.
    pub value: Value,
}

/// Content of a node.
#[derive(Clone, Debug)]
pub enum Value {
    /// A single value.
    Scalar(Scalar),
    /// A list of nodes.
    List(Vec<Node>),
    /// A map in the order of the file, with distinct keys.
    Map(Vec<(Key, Node)>),
}

/// A key with its place.
#[derive(Clone, Debug)]
pub struct Key {
    /// Place in the file.
    pub span: Span,
    /// Text of the key.
    pub name: Arc<str>,
}

/// A single value.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// The text with escapes and folding undone. A number or boolean keeps its text as written.
    pub text: Arc<str>,
    /// Style in the file.
    pub style: Style,
    /// Kind and value after reading.
    pub kind: Kind,
}

/// The style of a scalar.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In quotes of either kind.
    Quoted,
    /// A block after `|`.
    Literal,
    /// A block after `>`.
    Folded,
    /// Made by the Rust builder or read from the stored form.
    Made,
}

/// The kind of a scalar, with the value of non-texts.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Kind {
    /// An absent value, `null` or `~`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number that fits 64 bits.
    Integer(i64),
    /// Any other number.
    Number(f64),
    /// Any other text.
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
    /// Creates a text without a place.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::made_scalar(text, Kind::Text)
    }
    /// Creates a boolean without a place.
    pub fn boolean(value: bool) -> Self {
        Self::made_scalar(if value { "true" } else { "false" }, Kind::Bool(value))
    }
    /// Creates a whole number without a place.
    pub fn integer(value: i64) -> Self {
        Self::made_scalar(value.to_string(), Kind::Integer(value))
    }
    /// Creates a number without a place.
    pub fn number(value: f64) -> Self {
        Self::made_scalar(value.to_string(), Kind::Number(value))
    }
    /// Creates a null without a place.
    pub fn null() -> Self {
        Self::made_scalar("null", Kind::Null)
    }
    /// Creates a list without a place.
    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self::made(Value::List(items.into_iter().collect()))
    }
    /// Creates a map without a place. Of equal keys, the last one is kept.
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
    /// Converts JSON into a tree without places.
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
    /// Returns the scalar, or `None` for a list or map.
    pub fn scalar(&self) -> Option<&Scalar> {
        match &self.value {
            Value::Scalar(scalar) => Some(scalar),
            Value::List(_) | Value::Map(_) => None,
        }
    }
    /// Returns the text of a scalar that is not null. A number or boolean is returned as written.
    pub(crate) fn as_text(&self) -> Option<&Arc<str>> {
        self.scalar()
            .filter(|scalar| scalar.kind != Kind::Null)
            .map(|scalar| &scalar.text)
    }
    /// Returns the entries of a map; empty for anything else.
    pub fn entries(&self) -> &[(Key, Self)] {
        match &self.value {
            Value::Map(entries) => entries,
            Value::Scalar(_) | Value::List(_) => &[],
        }
    }
    /// Returns the items of a list; empty for anything else.
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            Value::Scalar(_) | Value::Map(_) => &[],
        }
    }
    /// Returns the value of a key of a map.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries()
            .iter()
            .find(|(entry, _)| &*entry.name == key)
            .map(|(_, node)| node)
    }
    /// Returns true if the value is absent (`key:`), `null` or `~`.
    pub fn is_null(&self) -> bool {
        self.scalar()
            .is_some_and(|scalar| scalar.kind == Kind::Null)
    }
    /// Converts the node into JSON; keys of maps are sorted.
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
    /// Returns the kind with its article, for messages.
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

/// Reads a plain scalar by the rules of YAML 1.2; only `true` and `false` are booleans. Returns `None` for numbers that
/// YAML readers disagree about.
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

//! The kinds of values. Integers and fractions are the same kind.

use super::value::is_sealed;
use minijinja::Value;
use minijinja::value::ValueKind;
use std::fmt;

/// The kind of a value, as operators distinguish them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The name or path has no value.
    Undefined,
    /// The value of an optional that is unset.
    None,
    /// A sealed secret.
    Sealed,
    /// `true` or `false`.
    Boolean,
    /// A whole number or a fraction.
    Number,
    /// A text, which can be empty.
    Text,
    /// A list or another sequence.
    List,
    /// An object with named fields.
    Map,
    /// A value that no definition can make.
    Other,
}

impl Kind {
    /// Returns the kind of a value.
    pub fn of(value: &Value) -> Self {
        match value.kind() {
            ValueKind::Undefined => Self::Undefined,
            ValueKind::None => Self::None,
            ValueKind::Bool => Self::Boolean,
            ValueKind::Number => Self::Number,
            ValueKind::String => Self::Text,
            ValueKind::Seq | ValueKind::Iterable => Self::List,
            ValueKind::Map if is_sealed(value) => Self::Sealed,
            ValueKind::Map => Self::Map,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Undefined => "not defined",
            Self::None => "none",
            Self::Sealed => "a secret",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::Text => "text",
            Self::List => "a list",
            Self::Map => "an object",
            Self::Other => "no plain value",
        })
    }
}

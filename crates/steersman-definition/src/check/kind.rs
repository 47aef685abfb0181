//! The inferred type of an expression: its kind, and whether the value may be none.

use super::super::source::Span;
use steersman_machine::stored::ids::Name;
use steersman_machine::values::types::{Type, TypeKind};

/// The type of an expression, as far as the checker can infer it.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub kind: Kind,
    /// True if the value may be none.
    pub optional: bool,
    /// The dotted path, if the expression is one.
    pub path: Option<String>,
    /// The span of its declaration.
    pub declared: Option<Span>,
}

/// Kind of a value, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// The kind is unknown.
    Any,
    None,
    Boolean,
    Integer,
    Number,
    Text,
    /// One of these texts.
    Words(Vec<String>),
    List(Box<Kind>),
    /// An object with exactly these fields; the flag is true if the field may be none.
    Fields(Vec<(Name, Kind, bool)>),
    /// An object of any shape.
    Object,
    Secret,
}

impl Known {
    pub(super) fn any() -> Self {
        Self::of(Kind::Any)
    }
    pub(super) fn of(kind: Kind) -> Self {
        Self {
            kind,
            optional: false,
            path: None,
            declared: None,
        }
    }
    pub(super) fn declared(ty: &Type, span: Option<Span>) -> Self {
        Self {
            kind: Kind::of(ty),
            optional: ty.optional,
            path: None,
            declared: span,
        }
    }
    /// Returns the type of a value that is either `self` or `other`.
    pub(super) fn or(self, other: Self) -> Self {
        let optional = self.optional || other.optional;
        let kind = match (self.kind, other.kind) {
            (Kind::None, kind) | (kind, Kind::None) => {
                return Self {
                    optional: true,
                    ..Self::of(kind)
                };
            }
            (a, b) if a == b => a,
            (a, b) => match (a.family(), b.family()) {
                (Some(a), Some(b)) if a == b && a == Family::Number => Kind::Number,
                (Some(a), Some(b)) if a == b && a == Family::Text => Kind::Text,
                _ => Kind::Any,
            },
        };
        Self {
            optional,
            ..Self::of(kind)
        }
    }
}

/// Groups of kinds whose values can be compared with each other.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Boolean,
    Number,
    Text,
    List,
    Object,
    Secret,
}

impl Family {
    /// Returns the family with its article, for messages.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::Text => "text",
            Self::List => "a list",
            Self::Object => "an object",
            Self::Secret => "a secret",
        }
    }
}

impl Kind {
    pub(super) fn of(ty: &Type) -> Self {
        match &ty.kind {
            TypeKind::String { .. } | TypeKind::Artifact => Self::Text,
            TypeKind::Integer { .. } => Self::Integer,
            TypeKind::Number { .. } => Self::Number,
            TypeKind::Boolean => Self::Boolean,
            TypeKind::Enum(words) => Self::Words(words.clone()),
            TypeKind::List(item) => Self::List(Box::new(Self::of(item))),
            TypeKind::Fields(fields) => Self::fields(fields),
            TypeKind::Object => Self::Object,
            TypeKind::Any | TypeKind::Schema(_) => Self::Any,
            TypeKind::Secret => Self::Secret,
        }
    }
    pub(super) fn fields(fields: &[(Name, Type)]) -> Self {
        let fields = fields.iter();
        Self::Fields(
            fields
                .map(|(name, ty)| (name.clone(), Self::of(ty), ty.optional))
                .collect(),
        )
    }
    /// Returns the family, or `None` for [`Kind::Any`] and [`Kind::None`].
    pub(super) fn family(&self) -> Option<Family> {
        Some(match self {
            Self::Any | Self::None => return None,
            Self::Boolean => Family::Boolean,
            Self::Integer | Self::Number => Family::Number,
            Self::Text | Self::Words(_) => Family::Text,
            Self::List(_) => Family::List,
            Self::Fields(_) | Self::Object => Family::Object,
            Self::Secret => Family::Secret,
        })
    }
    /// Returns the kind's name in the format, for messages.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Any => "any value",
            Self::None => "none",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Text => "string",
            Self::Words(_) => "one of fixed texts",
            Self::List(_) => "list",
            Self::Fields(_) | Self::Object => "object",
            Self::Secret => "secret",
        }
    }
}

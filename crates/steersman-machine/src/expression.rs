//! Expressions and templates: minijinja's language, with an evaluator of our own over its syntax tree, because
//! comparing, adding or ordering unlike kinds must be an error and never a guess.
//!
//! One evaluator serves bare expressions, `{{ }}` and `{% %}`. Reads are traced through [`Scope`].

use std::fmt;
use std::sync::Arc;

/// What names mean while something is evaluated. Values are looked up lazily, so a scope can trace reads.
pub trait Scope {
    /// The value of a root name (`state`, `args`, `config`, ..); none if it has no meaning here.
    fn root(&self, name: &str) -> Option<minijinja::Value>;
}

/// A bare expression, parsed.
#[derive(Clone)]
pub struct Expr {
    /// As written.
    pub source: Arc<str>,
}

/// A template, parsed.
#[derive(Clone)]
pub struct Template {
    /// As written.
    pub source: Arc<str>,
}

/// JSON with templates in its texts: `json:`, `set:`, `args:`. A text that is exactly one `{{ expr }}` yields the typed value.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// As it is.
    Plain(serde_json::Value),
    /// A text with a template in it.
    Template(Template),
    /// A list.
    List(Vec<Data>),
    /// An object.
    Map(Vec<(String, Data)>),
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}
impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}
impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expr({:?})", self.source)
    }
}
impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({:?})", self.source)
    }
}

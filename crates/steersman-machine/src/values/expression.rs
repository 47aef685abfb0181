//! Expressions and templates: the language of minijinja, with an evaluator of our own over its syntax tree. In it, comparing,
//! adding or ordering values of unlike kinds is an error and never a guess.
//!
//! One evaluator serves bare expressions, `{{ }}` and `{% %}`. It asks a [`Scope`] for the values of names, path by path, so
//! that the scope can trace what was read. The tree ([`ast`]) is public because the checker walks it.
//!
//! ```
//! use steersman_machine::values::expression::{Expr, Names};
//! let scope = Names::from_json(serde_json::json!({ "args": { "cents": 900 }, "config": { "limit": "1000" } }));
//! let fits = Expr::parse("args.cents < 1000")?;
//! assert!(fits.eval(&scope).unwrap().is_true());
//! let unlike = Expr::parse("args.cents < config.limit")?;
//! assert!(unlike.eval(&scope).unwrap_err().message.contains("is text"));
//! # Ok::<(), steersman_machine::values::expression::SyntaxError>(())
//! ```

pub mod ast;
mod data;
mod eval;
mod filters;
mod kind;
mod meter;
mod nesting;
mod ops;
mod parse;
mod partials;
mod render;
mod value;

pub use data::Data;
pub(crate) use data::arguments;
pub use kind::Kind;
pub(crate) use ops::compare;
pub(crate) use value::shown_json;
pub use value::{from_json, shared, to_json};

use ast::{Node, NodeKind, Stmt, StmtKind};
use eval::Eval;
use minijinja::Value;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of steps of one evaluation. A template that needs more probably never ends.
pub(crate) const FUEL: u64 = 250_000;
/// Maximum number of bytes that one evaluation may produce.
pub const OUTPUT: usize = 8 << 20;

/// The values of names during an evaluation. Values are looked up path by path, so a scope can be lazy and can trace what was
/// read.
pub trait Scope {
    /// Returns the value of a root name (`state`, `args`, `config`, ..), or `None` if the name has no meaning here.
    fn root(&self, name: &str) -> Option<Value>;

    /// Returns the value of a path, and the number of its steps that the scope followed. A scope may follow none, some or all
    /// steps; the evaluator follows the rest. `None` means that the root has no meaning here.
    fn path(&self, root: &str, steps: &[&str]) -> Option<(Value, usize)> {
        let _ = steps;
        self.root(root).map(|value| (value, 0))
    }
}

/// Fixed values by root name.
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeMap<String, Value>);

impl Names {
    /// Makes a name of each field of an object. Any other value gives no names.
    pub fn from_json(json: Json) -> Self {
        match json {
            Json::Object(fields) => Self(
                fields
                    .into_iter()
                    .map(|(name, value)| (name, from_json(value)))
                    .collect(),
            ),
            _ => Self::default(),
        }
    }
    /// Returns these names with one more.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }
}

impl Scope for Names {
    fn root(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }
}

/// The reason why a text is not a valid expression or template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Description of the fault: a sentence without a full stop.
    pub message: String,
    /// Place of the fault, in bytes of the text.
    pub range: Range<usize>,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for SyntaxError {}

/// The reason why an evaluation has no value. An error never counts as true or false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalError {
    /// Kind of the error.
    pub kind: EvalKind,
    /// Description of the fault, with the operands as written: a sentence without a full stop.
    pub message: String,
    /// Text of the expression or template.
    pub source: Arc<str>,
    /// Place of the fault in it, in bytes.
    pub range: Range<usize>,
}

/// Kinds of evaluation errors.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum EvalKind {
    /// Values of unlike kinds, or of a kind that the operation does not accept.
    Unlike,
    /// An unset optional was used.
    Unset,
    /// A path does not exist.
    Undefined,
    /// A secret was used. It may only be tested for `none`.
    Sealed,
    /// The evaluation took too many steps.
    Fuel,
    /// The evaluation produced too many bytes.
    Size,
    /// A filter or operator failed: division by zero, an overflow, wrong arguments.
    Failed,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let part = self.source.get(self.range.clone()).unwrap_or(&self.source);
        if part.len() <= 80 && !part.contains('\n') {
            write!(f, " (in `{part}`)")?;
        }
        Ok(())
    }
}
impl std::error::Error for EvalError {}

/// A parsed bare expression.
#[derive(Clone)]
pub struct Expr {
    /// The source text.
    pub source: Arc<str>,
    node: Arc<Node>,
}

impl Expr {
    /// Parses an expression. Unknown filters, tests and functions are errors here.
    pub fn parse(source: &str) -> Result<Self, SyntaxError> {
        Ok(Self {
            source: source.into(),
            node: Arc::new(parse::expression(source)?),
        })
    }

    /// Returns the syntax tree.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Evaluates the expression. An unset optional may only be tested for `none` and compared with it by `==` and `!=`.
    pub fn eval(&self, scope: &dyn Scope) -> Result<Value, EvalError> {
        self.value(scope, false)
    }

    /// Evaluates the expression like an entry of `outcome`: a path through an unset optional is `none`.
    pub fn eval_lenient(&self, scope: &dyn Scope) -> Result<Value, EvalError> {
        self.value(scope, true)
    }

    fn value(&self, scope: &dyn Scope, lenient: bool) -> Result<Value, EvalError> {
        let mut eval = Eval::new(scope, &self.source, lenient);
        let value = eval.node(&self.node)?;
        if value.is_undefined() {
            return Err(self.undefined());
        }
        eval.given(&value, &self.node)?;
        Ok(value)
    }

    /// Returns true if the value counts as true: it is set, and is not `false`, zero or empty.
    pub fn holds(&self, scope: &dyn Scope) -> Result<bool, EvalError> {
        let mut eval = Eval::new(scope, &self.source, false);
        let value = eval.node(&self.node)?;
        eval.truth(&value, &self.node)
    }

    fn undefined(&self) -> EvalError {
        EvalError {
            kind: EvalKind::Undefined,
            message: format!("`{}` is not defined", self.source.trim()),
            source: self.source.clone(),
            range: self.node.span.range(),
        }
    }
}

/// A parsed template.
#[derive(Clone)]
pub struct Template {
    /// The source text.
    pub source: Arc<str>,
    /// The file that holds the template, if it is a file.
    pub file: Option<Arc<str>>,
    body: Arc<[Stmt]>,
}

impl Template {
    /// Parses a template. Unknown filters, tests and functions, macros, and includes of other texts than partials are errors
    /// here.
    pub fn parse(source: &str) -> Result<Self, SyntaxError> {
        Ok(Self {
            source: source.into(),
            file: None,
            body: parse::template(source)?.into(),
        })
    }

    /// Returns a template of this text, in which nothing is evaluated.
    pub fn plain(text: &str) -> Self {
        let span = ast::Span {
            start: 0,
            end: text.len() as u32,
        };
        Self {
            source: text.into(),
            file: None,
            body: Arc::new([Stmt {
                span,
                kind: StmtKind::Text(text.into()),
            }]),
        }
    }

    /// Returns the statements of the template.
    pub fn body(&self) -> &[Stmt] {
        &self.body
    }

    /// Returns the expression if the template is exactly one `{{ expr }}`.
    pub fn single(&self) -> Option<&Node> {
        match &*self.body {
            [
                Stmt {
                    kind: StmtKind::Emit(node),
                    ..
                },
            ] => Some(node),
            _ => None,
        }
    }

    /// Returns the text if nothing in the template is evaluated.
    pub fn text(&self) -> Option<&str> {
        match &*self.body {
            [] => Some(""),
            [
                Stmt {
                    kind: StmtKind::Text(text),
                    ..
                },
            ] => Some(text),
            _ => None,
        }
    }

    /// Renders the template. Texts are unchanged, unset optionals are empty, lists and maps are compact JSON.
    pub fn render(&self, scope: &dyn Scope) -> Result<String, EvalError> {
        if let Some(text) = self.text() {
            return Ok(text.to_owned());
        }
        Eval::new(scope, &self.source, true).render(&self.body)
    }

    /// Returns the source of the first `{{ .. }}` outside of blocks whose value is unset or empty. `None` means that all have a
    /// value.
    pub fn gap(&self, scope: &dyn Scope) -> Result<Option<String>, EvalError> {
        for stmt in &*self.body {
            let StmtKind::Emit(node) = &stmt.kind else {
                continue;
            };
            let mut eval = Eval::new(scope, &self.source, true);
            let value = eval.node(node)?;
            if eval.text(&value, node)?.trim().is_empty() {
                let span = node.span.start as usize..node.span.end as usize;
                let written = self.source.get(span).unwrap_or(&self.source);
                return Ok(Some(written.to_owned()));
            }
        }
        Ok(None)
    }

    /// Renders a URL. Values in its path or query are percent-encoded, except those that the filter `raw` returned.
    pub fn render_url(&self, scope: &dyn Scope) -> Result<String, EvalError> {
        Eval::new(scope, &self.source, true)
            .encoding()
            .render(&self.body)
    }

    /// Evaluates the template. A single `{{ expr }}` keeps its type (`null` if it is unset); any other template gives its text.
    pub fn value(&self, scope: &dyn Scope) -> Result<Json, EvalError> {
        let Some(node) = self.single() else {
            return self.render(scope).map(Json::String);
        };
        let mut eval = Eval::new(scope, &self.source, true);
        let value = eval.node(node)?;
        eval.json(&value, node)
    }
}

/// A piece of a prompt that ships with the library: `{% include "steersman/task" %}`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Name under which it is included.
    pub name: &'static str,
    /// Names that must be set before the include.
    pub reads: &'static [&'static str],
    /// Purpose of the partial, in a sentence.
    pub about: &'static str,
    /// Text of the partial.
    pub text: &'static str,
}

/// Returns all partials.
pub fn partials() -> &'static [Partial] {
    partials::PARTIALS
}

/// Returns the names of the filters.
pub fn filters() -> &'static [&'static str] {
    filters::NAMES
}

/// Returns the names of the tests that may follow `is`.
pub fn tests() -> &'static [&'static str] {
    filters::TESTS
}

fn is_filter(name: &str) -> bool {
    filters::NAMES.contains(&name)
}
fn is_test(name: &str) -> bool {
    filters::TESTS.contains(&name)
}
fn is_function(name: &str) -> bool {
    matches!(name, "range" | "dict")
}

impl NodeKind {
    /// Returns true if this is the constant `none`.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::Const(value) if value.is_none())
    }
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

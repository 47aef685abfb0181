//! Expressions and templates: minijinja's language, with an evaluator of our own over its syntax tree, because
//! comparing, adding or ordering unlike kinds must be an error and never a guess.
//!
//! One evaluator serves bare expressions, `{{ }}` and `{% %}`. What names mean is asked of a [`Scope`], path by path,
//! so it can trace what was read. The tree ([`ast`]) is public: the checker walks it.
//!
//! ```
//! use steersman_machine::expression::{Expr, Names};
//! let scope = Names::from_json(serde_json::json!({ "args": { "cents": 900 }, "config": { "limit": "1000" } }));
//! let fits = Expr::parse("args.cents < 1000")?;
//! assert!(fits.eval(&scope).unwrap().is_true());
//! let unlike = Expr::parse("args.cents < config.limit")?;
//! assert!(unlike.eval(&scope).unwrap_err().message.contains("is text"));
//! # Ok::<(), steersman_machine::expression::SyntaxError>(())
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
pub use value::{from_json, shared, shown_json, to_json};

use ast::{Node, NodeKind, Stmt, StmtKind};
use eval::Eval;
use minijinja::Value;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Steps that one evaluation may take. A template that needs more never ends, or might as well not.
pub const FUEL: u64 = 250_000;
/// Bytes that one evaluation may make.
pub const OUTPUT: usize = 8 << 20;

/// What names mean while something is evaluated. Values are looked up path by path, so a scope can be lazy and can
/// trace what was read.
pub trait Scope {
    /// The value of a root name (`state`, `args`, `config`, ..); none if it has no meaning here.
    fn root(&self, name: &str) -> Option<Value>;

    /// The value of a path, as far as the scope wants to follow it, and how many of the steps that were; the
    /// evaluator goes on from there. None if the root has no meaning here.
    fn path(&self, root: &str, steps: &[&str]) -> Option<(Value, usize)> {
        let _ = steps;
        self.root(root).map(|value| (value, 0))
    }
}

/// Fixed values by root name.
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeMap<String, Value>);

impl Names {
    /// The fields of an object; anything else names nothing.
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
    /// One more name.
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

/// Why a text is no expression or template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
    /// Where, in bytes of the text.
    pub range: Range<usize>,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for SyntaxError {}

/// Why an evaluation has no value. Never turned into true or false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalError {
    /// What kind of error.
    pub kind: EvalKind,
    /// What is wrong, with the operands as written, in a sentence without a full stop.
    pub message: String,
    /// The expression or template.
    pub source: Arc<str>,
    /// Where in it, in bytes.
    pub range: Range<usize>,
}

/// Kinds of errors of an evaluation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum EvalKind {
    /// Values of unlike kinds, or of a kind that the operation does not take.
    Unlike,
    /// An optional that is unset was used.
    Unset,
    /// A path that leads nowhere.
    Undefined,
    /// A secret may only be tested for `none`.
    Sealed,
    /// It took too many steps.
    Fuel,
    /// It made too much.
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

/// A bare expression, parsed.
#[derive(Clone)]
pub struct Expr {
    /// As written.
    pub source: Arc<str>,
    node: Arc<Node>,
}

impl Expr {
    /// Parses it. Unknown filters, tests and functions are errors here.
    pub fn parse(source: &str) -> Result<Self, SyntaxError> {
        Ok(Self {
            source: source.into(),
            node: Arc::new(parse::expression(source)?),
        })
    }

    /// Its tree.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Its value. An unset optional may only be tested for `none` and compared with it by `==` and `!=`.
    pub fn eval(&self, scope: &dyn Scope) -> Result<Value, EvalError> {
        self.value(scope, false)
    }

    /// Its value as `outcome` reads it: a path through an unset optional is `none`.
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

    /// Whether it holds: its value is a boolean and true, or something that is not empty, zero or unset.
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

/// A template, parsed.
#[derive(Clone)]
pub struct Template {
    /// As written.
    pub source: Arc<str>,
    /// The file that it is, where it is one.
    pub file: Option<Arc<str>>,
    body: Arc<[Stmt]>,
}

impl Template {
    /// Parses it. Unknown filters, tests and functions, includes of what is no partial, and macros are errors
    /// here.
    pub fn parse(source: &str) -> Result<Self, SyntaxError> {
        Ok(Self {
            source: source.into(),
            file: None,
            body: parse::template(source)?.into(),
        })
    }

    /// A template that is this text, with nothing in it evaluated.
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

    /// Its pieces.
    pub fn body(&self) -> &[Stmt] {
        &self.body
    }

    /// The expression, if it is exactly one `{{ expr }}`.
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

    /// The text, if nothing in it is evaluated.
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

    /// Renders it. Texts stand as they are, unset optionals as nothing, lists and maps as compact JSON.
    pub fn render(&self, scope: &dyn Scope) -> Result<String, EvalError> {
        if let Some(text) = self.text() {
            return Ok(text.to_owned());
        }
        Eval::new(scope, &self.source, true).render(&self.body)
    }

    /// The first `{{ .. }}` outside of blocks that is unset or empty, as written; none if each stands for something.
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

    /// Renders a URL: what is put into its path or query is percent-encoded, unless it went through `raw`.
    pub fn render_url(&self, scope: &dyn Scope) -> Result<String, EvalError> {
        Eval::new(scope, &self.source, true)
            .encoding()
            .render(&self.body)
    }

    /// Its value: typed if it is exactly one `{{ expr }}` (`null` where that is unset), else its text.
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
    /// Its name, as it is included.
    pub name: &'static str,
    /// The names that must be set where it is included.
    pub reads: &'static [&'static str],
    /// What it is for, in a sentence.
    pub about: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// The partials.
pub fn partials() -> &'static [Partial] {
    partials::PARTIALS
}

/// Names of the filters.
pub fn filters() -> &'static [&'static str] {
    filters::NAMES
}

/// Names of the tests that may follow `is`.
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
    /// Whether this is the constant `none`.
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

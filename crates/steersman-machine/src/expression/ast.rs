//! The syntax tree of expressions and templates: owned, with byte spans, so that the checker can walk it.

use crate::ids::Name;
use minijinja::Value;
use std::ops::Range;

/// Bytes of the source.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One behind the last byte.
    pub end: u32,
}

impl Span {
    /// From the start of this one to the end of the other.
    pub fn to(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
    /// As a range of bytes.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: NodeKind,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// A name: `state`, `args`, a loop variable.
    Var(Name),
    /// A constant.
    Const(Value),
    /// `of.name`
    Attr {
        /// Of what.
        of: Box<Node>,
        /// Which field.
        name: Name,
    },
    /// `of[key]`
    Item {
        /// Of what.
        of: Box<Node>,
        /// Which.
        key: Box<Node>,
    },
    /// `of[start:stop:step]`
    Slice {
        /// Of what.
        of: Box<Node>,
        /// From here.
        start: Option<Box<Node>>,
        /// Up to here.
        stop: Option<Box<Node>>,
        /// In steps of.
        step: Option<Box<Node>>,
    },
    /// `not of`; also around a test (`is not none`) and `not in`.
    Not(Box<Node>),
    /// `-of`
    Neg(Box<Node>),
    /// `left and right`; the right side is looked at only where the left is true.
    And(Box<Node>, Box<Node>),
    /// `left or right`; the right side is looked at only where the left is false.
    Or(Box<Node>, Box<Node>),
    /// Arithmetic, and `~`.
    Binary {
        /// Which.
        op: BinaryOp,
        /// Left side.
        left: Box<Node>,
        /// Right side.
        right: Box<Node>,
    },
    /// `first op next op next ..`: a chain holds where each pair does.
    Compare {
        /// The first operand.
        first: Box<Node>,
        /// Each further operand with the operator before it; never empty.
        rest: Vec<(CompareOp, Node)>,
    },
    /// `then if test else otherwise`
    If {
        /// The condition.
        test: Box<Node>,
        /// Where it holds.
        then: Box<Node>,
        /// Where it does not; left out: none.
        otherwise: Option<Box<Node>>,
    },
    /// `of | name(args)`
    Filter {
        /// Its name, one of [`filters`](super::filters).
        name: Name,
        /// Where the name stands.
        name_span: Span,
        /// What it is applied to; none only in `{% filter %}` and `{% set %}` blocks: their text.
        of: Option<Box<Node>>,
        /// Its arguments.
        args: Args,
    },
    /// `of is name(args)`
    Test {
        /// Its name, one of [`tests`](super::tests).
        name: Name,
        /// Where the name stands.
        name_span: Span,
        /// What is tested.
        of: Box<Node>,
        /// Its arguments.
        args: Args,
    },
    /// `name(args)`: `range` or `dict`.
    Call {
        /// The function.
        name: Name,
        /// Its arguments.
        args: Args,
    },
    /// `[a, b]`, `(a, b)`
    List(Vec<Node>),
    /// `{ key: value }`
    Map(Vec<(Node, Node)>),
}

/// Arguments of filters, tests and functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Args {
    /// By position.
    pub positional: Vec<Node>,
    /// By name.
    pub named: Vec<(Name, Node)>,
}

/// Arithmetic, and `~`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `+`: two numbers, two texts or two lists.
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`: always a fraction.
    Div,
    /// `//`
    FloorDiv,
    /// `%`
    Rem,
    /// `**`
    Pow,
    /// `~`: both as text.
    Concat,
}

impl BinaryOp {
    /// As written.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::FloorDiv => "//",
            Self::Rem => "%",
            Self::Pow => "**",
            Self::Concat => "~",
        }
    }
}

/// Comparing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `in`
    In,
    /// `not in`
    NotIn,
}

impl CompareOp {
    /// As written.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::In => "in",
            Self::NotIn => "not in",
        }
    }
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: StmtKind,
}

/// The pieces of templates.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// Text as it is.
    Text(Name),
    /// `{{ expr }}`
    Emit(Node),
    /// `{% for target in over if filter %} body {% else %} otherwise {% endfor %}`
    For {
        /// The loop variable.
        target: Target,
        /// What is gone through.
        over: Node,
        /// Elements for which it does not hold are skipped.
        filter: Option<Node>,
        /// For each element.
        body: Vec<Stmt>,
        /// Where there was none.
        otherwise: Vec<Stmt>,
    },
    /// `{% if test %} then {% else %} otherwise {% endif %}`
    If {
        /// The condition.
        test: Node,
        /// Where it holds.
        then: Vec<Stmt>,
        /// Where it does not.
        otherwise: Vec<Stmt>,
    },
    /// `{% with target = value %} body {% endwith %}`
    With {
        /// The names and their values.
        bind: Vec<(Target, Node)>,
        /// Where they are known.
        body: Vec<Stmt>,
    },
    /// `{% set target = value %}`: known from here to the end of the enclosing loop or `with`.
    Set {
        /// The name.
        target: Target,
        /// Its value.
        value: Node,
    },
    /// `{% set target | filter %} body {% endset %}`
    SetBlock {
        /// The name.
        target: Target,
        /// Applied to the rendered body.
        filter: Option<Node>,
        /// Rendered to a text.
        body: Vec<Stmt>,
    },
    /// `{% filter f %} body {% endfilter %}`
    FilterBlock {
        /// Applied to the rendered body.
        filter: Node,
        /// Rendered to a text.
        body: Vec<Stmt>,
    },
    /// `{% break %}`
    Break,
    /// `{% continue %}`
    Continue,
}

/// What is assigned to.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A name.
    Name(Name, Span),
    /// Several, from a list of as many.
    List(Vec<Target>),
}

impl Node {
    /// The path that this expression is, from its root name, as far as it consists of fields and constant keys:
    /// `state.invoice["total"]` gives `[state, invoice, total]`. None if it is something else.
    pub fn path(&self) -> Option<Vec<Name>> {
        match &self.kind {
            NodeKind::Var(name) => Some(vec![name.clone()]),
            NodeKind::Attr { of, name } => {
                let mut path = of.path()?;
                path.push(name.clone());
                Some(path)
            }
            NodeKind::Item { of, key } => {
                let NodeKind::Const(key) = &key.kind else {
                    return None;
                };
                let mut path = of.path()?;
                path.push(key.as_str()?.into());
                Some(path)
            }
            _ => None,
        }
    }

    /// Whether its value may depend on this entry of `state`.
    pub fn reads_state(&self, entry: &str) -> bool {
        let is_state =
            |node: &Self| matches!(&node.kind, NodeKind::Var(name) if &**name == "state");
        match &self.kind {
            NodeKind::Attr { of, name } if is_state(of) => &**name == entry,
            // Which one is known when it is worked out.
            NodeKind::Var(name) => &**name == "state",
            _ => self
                .children()
                .into_iter()
                .any(|node| node.reads_state(entry)),
        }
    }

    /// The expressions directly below this one, left to right.
    pub fn children(&self) -> Vec<&Node> {
        fn args(args: &Args) -> impl Iterator<Item = &Node> {
            args.positional
                .iter()
                .chain(args.named.iter().map(|(_, node)| node))
        }
        match &self.kind {
            NodeKind::Var(_) | NodeKind::Const(_) => Vec::new(),
            NodeKind::Attr { of, .. } | NodeKind::Not(of) | NodeKind::Neg(of) => vec![of],
            NodeKind::Item { of, key } => vec![of, key],
            NodeKind::Slice {
                of,
                start,
                stop,
                step,
            } => [Some(of), start.as_ref(), stop.as_ref(), step.as_ref()]
                .into_iter()
                .flatten()
                .map(|node| &**node)
                .collect(),
            NodeKind::And(left, right)
            | NodeKind::Or(left, right)
            | NodeKind::Binary { left, right, .. } => vec![left, right],
            NodeKind::Compare { first, rest } => std::iter::once(&**first)
                .chain(rest.iter().map(|(_, node)| node))
                .collect(),
            NodeKind::If {
                test,
                then,
                otherwise,
            } => [Some(then), Some(test), otherwise.as_ref()]
                .into_iter()
                .flatten()
                .map(|node| &**node)
                .collect(),
            NodeKind::Filter { of, args: a, .. } => {
                of.as_deref().into_iter().chain(args(a)).collect()
            }
            NodeKind::Test { of, args: a, .. } => std::iter::once(&**of).chain(args(a)).collect(),
            NodeKind::Call { args: a, .. } => args(a).collect(),
            NodeKind::List(items) => items.iter().collect(),
            NodeKind::Map(items) => items.iter().flat_map(|(k, v)| [k, v]).collect(),
        }
    }
}

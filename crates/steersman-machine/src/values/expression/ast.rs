//! The syntax tree of expressions and templates. It is owned and has byte spans, so that the checker can walk it.

use crate::stored::ids::Name;
use minijinja::Value;
use std::ops::Range;

/// A range of bytes of the source.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the smallest span that covers both.
    pub fn to(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
    /// Returns the span as a range of bytes.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A node of an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Span of the expression in the source.
    pub span: Span,
    /// Kind of the expression, with its parts.
    pub kind: NodeKind,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// A name: `state`, `args`, a loop variable.
    Var(Name),
    /// A constant value.
    Const(Value),
    /// `of.name`: a field of an object.
    Attr {
        /// The object that has the field.
        of: Box<Node>,
        /// Name of the field.
        name: Name,
    },
    /// `of[key]`: an element or field.
    Item {
        /// The list or object.
        of: Box<Node>,
        /// Index of the element or name of the field.
        key: Box<Node>,
    },
    /// `of[start:stop:step]`: a part of a list or text.
    Slice {
        /// The list or text.
        of: Box<Node>,
        /// Index of the first element.
        start: Option<Box<Node>>,
        /// Index after the last element.
        stop: Option<Box<Node>>,
        /// Distance between two elements, negative for the reverse order. `None` means 1.
        step: Option<Box<Node>>,
    },
    /// `not of`; also around a negated test (`is not none`).
    Not(Box<Node>),
    /// `-of`: the negative number.
    Neg(Box<Node>),
    /// `left and right`; the right side is evaluated only if the left is true.
    And(Box<Node>, Box<Node>),
    /// `left or right`; the right side is evaluated only if the left is false.
    Or(Box<Node>, Box<Node>),
    /// An arithmetic operator, or `~`.
    Binary {
        /// The operator between the operands.
        op: BinaryOp,
        /// The left operand.
        left: Box<Node>,
        /// The right operand.
        right: Box<Node>,
    },
    /// `first op next op next ..`: a chain is true if each pair is.
    Compare {
        /// The first operand.
        first: Box<Node>,
        /// Each further operand with the operator before it; never empty.
        rest: Vec<(CompareOp, Node)>,
    },
    /// `then if test else otherwise`: a choice of values.
    If {
        /// The condition of the choice.
        test: Box<Node>,
        /// Value if the condition is true.
        then: Box<Node>,
        /// Value if the condition is false. Without it the value is `none`.
        otherwise: Option<Box<Node>>,
    },
    /// `of | name(args)`: a filter.
    Filter {
        /// Name of the filter, one of [`filters`](super::filters).
        name: Name,
        /// Span of the name.
        name_span: Span,
        /// Input of the filter. `None` only in `{% filter %}` and `{% set %}` blocks, whose text is the input.
        of: Option<Box<Node>>,
        /// Arguments of the filter.
        args: Args,
    },
    /// `of is name(args)`: a test.
    Test {
        /// Name of the test, one of [`tests`](super::tests).
        name: Name,
        /// Span of the name.
        name_span: Span,
        /// The value that is tested.
        of: Box<Node>,
        /// Arguments of the test.
        args: Args,
    },
    /// `name(args)`: a call of `range` or `dict`.
    Call {
        /// Name of the function.
        name: Name,
        /// Arguments of the function.
        args: Args,
    },
    /// `[a, b]` or `(a, b)`: a list.
    List(Vec<Node>),
    /// `{ key: value }`: an object.
    Map(Vec<(Node, Node)>),
}

/// Arguments of filters, tests and functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Args {
    /// Arguments by position.
    pub positional: Vec<Node>,
    /// Arguments by name.
    pub named: Vec<(Name, Node)>,
}

/// Arithmetic operators, and `~`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `+`: two numbers, two texts or two lists.
    Add,
    /// `-`: the difference of two numbers.
    Sub,
    /// `*`: the product of two numbers.
    Mul,
    /// `/`: the quotient of two numbers, always a fraction.
    Div,
    /// `//`: the quotient of two numbers, rounded down.
    FloorDiv,
    /// `%`: the remainder of `//`, with the sign of the divisor.
    Rem,
    /// `**`: the power of two numbers.
    Pow,
    /// `~`: both operands as text, joined.
    Concat,
}

impl BinaryOp {
    /// Returns the operator as it is written.
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

/// Comparison operators.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// `==`: the left is equal to the right.
    Eq,
    /// `!=`: the left is not equal to the right.
    Ne,
    /// `<`: the left is less than the right.
    Lt,
    /// `<=`: the left is less than or equal to the right.
    Le,
    /// `>`: the left is greater than the right.
    Gt,
    /// `>=`: the left is greater than or equal to the right.
    Ge,
    /// `in`: the left is contained in the right, a text, list or object.
    In,
    /// `not in`: the left is not contained in the right.
    NotIn,
}

impl CompareOp {
    /// Returns the operator as it is written.
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

/// A statement of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// Span of the statement in the source.
    pub span: Span,
    /// Kind of the statement, with its parts.
    pub kind: StmtKind,
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// Literal text of the template.
    Text(Name),
    /// `{{ expr }}`: the value of an expression, as text.
    Emit(Node),
    /// `{% for target in over if filter %} body {% else %} otherwise {% endfor %}`
    For {
        /// The loop variable.
        target: Target,
        /// The list or object whose elements or keys the loop visits.
        over: Node,
        /// Condition; elements for which it is false are skipped.
        filter: Option<Node>,
        /// Body, rendered for each element.
        body: Vec<Stmt>,
        /// Body if there is no element.
        otherwise: Vec<Stmt>,
    },
    /// `{% if test %} then {% else %} otherwise {% endif %}`
    If {
        /// The condition of the choice.
        test: Node,
        /// Body if the condition is true.
        then: Vec<Stmt>,
        /// Body if the condition is false.
        otherwise: Vec<Stmt>,
    },
    /// `{% with target = value %} body {% endwith %}`
    With {
        /// The names and their values.
        bind: Vec<(Target, Node)>,
        /// Body in which the names have these values.
        body: Vec<Stmt>,
    },
    /// `{% set target = value %}`: the name has this value up to the end of the enclosing loop, `with`, `set` or `filter`.
    Set {
        /// The name that is set.
        target: Target,
        /// Value of the name.
        value: Node,
    },
    /// `{% set target | filter %} body {% endset %}`
    SetBlock {
        /// The name that is set.
        target: Target,
        /// Filter that is applied to the rendered body.
        filter: Option<Node>,
        /// Body, rendered to a text.
        body: Vec<Stmt>,
    },
    /// `{% filter f %} body {% endfilter %}`
    FilterBlock {
        /// Filter that is applied to the rendered body.
        filter: Node,
        /// Body, rendered to a text.
        body: Vec<Stmt>,
    },
    /// `{% break %}`: ends the innermost loop.
    Break,
    /// `{% continue %}`: goes on with the next element.
    Continue,
}

/// The left side of an assignment.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// One name, with its span.
    Name(Name, Span),
    /// Several targets, assigned from a list of the same length.
    List(Vec<Target>),
}

impl Node {
    /// Returns the path of an expression that consists of a root name, fields and constant keys: `state.invoice["total"]` gives
    /// `[state, invoice, total]`. `None` for any other expression.
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

    /// Returns true if the value of the expression may depend on this entry of a variable: `state.balance`, `calls.pay`.
    pub fn may_read(&self, variable: &str, entry: &str) -> bool {
        let mut reads = Vec::new();
        self.reads(&mut reads);
        let mut of_it = reads.into_iter().filter(|(root, _)| *root == variable);
        of_it.any(|(_, read)| read.is_none_or(|read| read == entry))
    }

    /// Collects the names that the expression reads, each with the entry below it. `None` means the whole name: it stands alone,
    /// or the key is computed.
    pub fn reads<'s>(&'s self, found: &mut Vec<(&'s str, Option<&'s str>)>) {
        let below = match &self.kind {
            NodeKind::Var(name) => return found.push((&**name, None)),
            NodeKind::Attr { of, name } => Some((&**of, Some(&**name))),
            NodeKind::Item { of, key } => match &key.kind {
                NodeKind::Const(key) => Some((&**of, key.as_str())),
                _ => None,
            },
            _ => None,
        };
        if let Some((of, entry)) = below
            && let NodeKind::Var(root) = &of.kind
        {
            return found.push((&**root, entry));
        }
        for node in self.children() {
            node.reads(found);
        }
    }

    /// Returns the direct subexpressions, left to right.
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

/// Calls `visit` with each expression in the statements of a template. Its subexpressions are not visited.
pub fn expressions<'s>(body: &'s [Stmt], visit: &mut dyn FnMut(&'s Node)) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Text(_) | StmtKind::Break | StmtKind::Continue => {}
            StmtKind::Emit(node) => visit(node),
            StmtKind::For {
                over,
                filter,
                body,
                otherwise,
                ..
            } => {
                visit(over);
                filter.iter().for_each(&mut *visit);
                expressions(body, visit);
                expressions(otherwise, visit);
            }
            StmtKind::If {
                test,
                then,
                otherwise,
            } => {
                visit(test);
                expressions(then, visit);
                expressions(otherwise, visit);
            }
            StmtKind::With { bind, body } => {
                for (_, node) in bind {
                    visit(node);
                }
                expressions(body, visit);
            }
            StmtKind::Set { value, .. } => visit(value),
            StmtKind::SetBlock { filter, body, .. } => {
                filter.iter().for_each(&mut *visit);
                expressions(body, visit);
            }
            StmtKind::FilterBlock { filter, body } => {
                visit(filter);
                expressions(body, visit);
            }
        }
    }
}

//! Parses with minijinja's parser and lowers its tree into our own. The version of minijinja is pinned, because it does not
//! guarantee a stable tree. Features that the evaluator does not have are refused here, with the reason.

use super::ast::{Args, BinaryOp, CompareOp, Node, NodeKind, Span, Stmt, StmtKind, Target};
use super::nesting::{self, Nesting};
use super::{SyntaxError, is_filter, is_function, is_test, partials};
use crate::stored::ids::Name;
use minijinja::machinery::{self, ast};
use std::ops::Range;

/// Maximum depth of an expression. A deeper one is refused, so that evaluating it never exhausts the stack.
pub(super) const DEPTH: usize = 100;

/// Parses a bare expression.
pub(super) fn expression(source: &str) -> Result<Node, SyntaxError> {
    if let Some(range) = braces(source) {
        return Err(SyntaxError {
            message: "an expression is written without `{{ }}`".to_owned(),
            range,
        });
    }
    bounded(source, true)?;
    let tree = machinery::parse_expr(source).map_err(|e| broken(source, &e))?;
    Lower {
        source,
        included: None,
    }
    .node(&tree, 0)
}

/// Parses a template.
pub(super) fn template(source: &str) -> Result<Vec<Stmt>, SyntaxError> {
    bounded(source, false)?;
    let syntax = minijinja::syntax::SyntaxConfig::default();
    let tree = machinery::parse(source, "", syntax).map_err(|e| broken(source, &e))?;
    let ast::Stmt::Template(template) = &tree else {
        return Err(SyntaxError {
            message: "not a template".to_owned(),
            range: 0..source.len(),
        });
    };
    Lower {
        source,
        included: None,
    }
    .body(&template.children, 0)
}

fn braces(source: &str) -> Option<Range<usize>> {
    let inner = source.trim();
    (inner.starts_with("{{") && inner.ends_with("}}")).then_some(0..source.len())
}

fn bounded(source: &str, in_expr: bool) -> Result<(), SyntaxError> {
    if source.len() > u32::MAX as usize / 2 {
        return Err(SyntaxError {
            message: "longer than 2 GiB".to_owned(),
            range: 0..0,
        });
    }
    let syntax = minijinja::syntax::SyntaxConfig::default();
    let mut nesting = Nesting::default();
    for token in machinery::tokenize(source, in_expr, syntax) {
        // The parser reports invalid tokens.
        let Ok((token, span)) = token else { break };
        nesting.token(&token).map_err(|message| SyntaxError {
            message,
            range: at(span).range(),
        })?;
    }
    Ok(())
}

fn broken(source: &str, error: &minijinja::Error) -> SyntaxError {
    let message = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    let range = error.range().filter(|r| r.end <= source.len());
    // The range of an unexpected character has one byte, however many the character has.
    let whole =
        |r: Range<usize>| source.floor_char_boundary(r.start)..source.ceil_char_boundary(r.end);
    let range = range.map_or_else(|| line(source, error.line().unwrap_or(1)), whole);
    SyntaxError { message, range }
}

fn line(source: &str, number: usize) -> Range<usize> {
    let mut start = 0;
    for (n, text) in source.split_inclusive('\n').enumerate() {
        if n + 1 == number {
            return start..start + text.trim_end().len();
        }
        start += text.len();
    }
    0..source.len()
}

fn at(span: machinery::Span) -> Span {
    Span {
        start: span.start_offset,
        end: span.end_offset,
    }
}

struct Lower<'a> {
    source: &'a str,
    /// Span of the include statement if the source is a partial. It replaces all spans, because
    /// those of the partial mean nothing in the including text.
    included: Option<Span>,
}

type Lowered<T> = Result<T, SyntaxError>;

fn refuse<T>(span: Span, message: impl Into<String>) -> Lowered<T> {
    Err(SyntaxError {
        message: message.into(),
        range: span.range(),
    })
}

impl Lower<'_> {
    fn at(&self, span: machinery::Span) -> Span {
        self.included.unwrap_or_else(|| at(span))
    }

    fn boxed(&self, expr: &ast::Expr<'_>, depth: usize) -> Lowered<Box<Node>> {
        self.node(expr, depth).map(Box::new)
    }

    fn maybe(&self, expr: Option<&ast::Expr<'_>>, depth: usize) -> Lowered<Option<Box<Node>>> {
        expr.map(|e| self.boxed(e, depth)).transpose()
    }

    fn node(&self, expr: &ast::Expr<'_>, depth: usize) -> Lowered<Node> {
        let own = self.at(expr.span());
        if depth > DEPTH {
            return refuse(own, nesting::too_deep());
        }
        let depth = depth + 1;
        let kind = match expr {
            ast::Expr::Var(var) => NodeKind::Var(var.id.into()),
            ast::Expr::Const(value) => NodeKind::Const(value.value.clone()),
            ast::Expr::Slice(slice) => NodeKind::Slice {
                of: self.boxed(&slice.expr, depth)?,
                start: self.maybe(slice.start.as_ref(), depth)?,
                stop: self.maybe(slice.stop.as_ref(), depth)?,
                step: self.maybe(slice.step.as_ref(), depth)?,
            },
            ast::Expr::UnaryOp(unary) => {
                let of = self.boxed(&unary.expr, depth)?;
                match unary.op {
                    ast::UnaryOpKind::Not => NodeKind::Not(of),
                    ast::UnaryOpKind::Neg => NodeKind::Neg(of),
                }
            }
            ast::Expr::BinOp(binary) => binary_kind(
                binary.op,
                self.boxed(&binary.left, depth)?,
                self.boxed(&binary.right, depth)?,
            ),
            ast::Expr::Compare(chain) => NodeKind::Compare {
                first: self.boxed(&chain.expr, depth)?,
                rest: chain
                    .ops
                    .iter()
                    .map(|op| Ok((compare_op(op.op), self.node(&op.expr, depth)?)))
                    .collect::<Lowered<_>>()?,
            },
            ast::Expr::IfExpr(choice) => NodeKind::If {
                test: self.boxed(&choice.test_expr, depth)?,
                then: self.boxed(&choice.true_expr, depth)?,
                otherwise: self.maybe(choice.false_expr.as_ref(), depth)?,
            },
            ast::Expr::Filter(filter) => self.filter(filter, own, depth)?,
            ast::Expr::Test(test) => {
                let (name, name_span) = (Name::from(test.name), self.name_span(own, test.name));
                if !is_test(test.name) {
                    return refuse(name_span, unknown("test", test.name, super::tests()));
                }
                NodeKind::Test {
                    name,
                    name_span,
                    of: self.boxed(&test.expr, depth)?,
                    args: self.args(&test.args, own, depth)?,
                }
            }
            ast::Expr::GetAttr(attr) => NodeKind::Attr {
                of: self.boxed(&attr.expr, depth)?,
                name: attr.name.into(),
            },
            ast::Expr::GetItem(item) => NodeKind::Item {
                of: self.boxed(&item.expr, depth)?,
                key: self.boxed(&item.subscript_expr, depth)?,
            },
            ast::Expr::Call(call) => self.call(call, own, depth)?,
            ast::Expr::List(list) => NodeKind::List(self.nodes(&list.items, depth)?),
            ast::Expr::Tuple(tuple) => NodeKind::List(self.nodes(&tuple.items, depth)?),
            ast::Expr::Map(map) => NodeKind::Map(
                map.keys
                    .iter()
                    .zip(&map.values)
                    .map(|(k, v)| Ok((self.node(k, depth)?, self.node(v, depth)?)))
                    .collect::<Lowered<_>>()?,
            ),
        };
        let mut node = Node { span: own, kind };
        node.span = whole(&node);
        Ok(node)
    }

    fn nodes(&self, items: &[ast::Expr<'_>], depth: usize) -> Lowered<Vec<Node>> {
        items.iter().map(|item| self.node(item, depth)).collect()
    }

    fn filter(&self, filter: &ast::Filter<'_>, own: Span, depth: usize) -> Lowered<NodeKind> {
        let name_span = self.name_span(own, filter.name);
        if !is_filter(filter.name) {
            return refuse(name_span, unknown("filter", filter.name, super::filters()));
        }
        Ok(NodeKind::Filter {
            name: filter.name.into(),
            name_span,
            of: self.maybe(filter.expr.as_ref(), depth)?,
            args: self.args(&filter.args, own, depth)?,
        })
    }

    fn call(&self, call: &ast::Call<'_>, own: Span, depth: usize) -> Lowered<NodeKind> {
        match &call.expr {
            ast::Expr::Var(var) if is_function(var.id) => Ok(NodeKind::Call {
                name: var.id.into(),
                args: self.args(&call.args, own, depth)?,
            }),
            ast::Expr::Var(var) if var.id == "super" || var.id == "caller" => refuse(
                own,
                format!(
                    "`{}()` belongs to macros and inheritance, which templates here do not have",
                    var.id
                ),
            ),
            ast::Expr::Var(var) => refuse(
                self.at(var.span()),
                format!(
                    "there is no function `{}`; there are `range` and `dict`",
                    var.id
                ),
            ),
            ast::Expr::GetAttr(attr) => refuse(
                own,
                if is_filter(attr.name) {
                    format!("values have no methods; write `| {}`", attr.name)
                } else {
                    format!("values have no methods, so no `{}()`", attr.name)
                },
            ),
            _ => refuse(own, "this cannot be called"),
        }
    }

    fn args(&self, args: &[ast::CallArg<'_>], own: Span, depth: usize) -> Lowered<Args> {
        let mut out = Args::default();
        for arg in args {
            match arg {
                ast::CallArg::Pos(expr) => out.positional.push(self.node(expr, depth)?),
                ast::CallArg::Kwarg(name, expr) => {
                    out.named.push(((*name).into(), self.node(expr, depth)?));
                }
                ast::CallArg::PosSplat(_) | ast::CallArg::KwargSplat(_) => {
                    return refuse(own, "arguments cannot be unpacked with `*` here");
                }
            }
        }
        Ok(out)
    }

    /// Returns the span of the name of a filter or test; minijinja's span begins there.
    fn name_span(&self, own: Span, name: &str) -> Span {
        if self.included.is_some() {
            return own;
        }
        let end = own.start + name.len() as u32;
        match self.source.get(own.start as usize..end as usize) {
            Some(text) if text == name => Span {
                start: own.start,
                end,
            },
            _ => own,
        }
    }

    fn body(&self, children: &[ast::Stmt<'_>], depth: usize) -> Lowered<Vec<Stmt>> {
        children.iter().map(|s| self.stmt(s, depth)).collect()
    }

    fn stmt(&self, stmt: &ast::Stmt<'_>, depth: usize) -> Lowered<Stmt> {
        let span = self.at(stmt_span(stmt));
        if depth > DEPTH {
            return refuse(span, nesting::too_deep());
        }
        let depth = depth + 1;
        let kind = match stmt {
            ast::Stmt::EmitRaw(raw) => StmtKind::Text(raw.raw.into()),
            ast::Stmt::EmitExpr(emit) => StmtKind::Emit(self.node(&emit.expr, depth)?),
            ast::Stmt::ForLoop(for_loop) => {
                if for_loop.recursive {
                    return refuse(span, "loops cannot be recursive here");
                }
                StmtKind::For {
                    target: self.target(&for_loop.target)?,
                    over: self.node(&for_loop.iter, depth)?,
                    filter: for_loop
                        .filter_expr
                        .as_ref()
                        .map(|e| self.node(e, depth))
                        .transpose()?,
                    body: self.body(&for_loop.body, depth)?,
                    otherwise: self.body(&for_loop.else_body, depth)?,
                }
            }
            ast::Stmt::IfCond(cond) => StmtKind::If {
                test: self.node(&cond.expr, depth)?,
                then: self.body(&cond.true_body, depth)?,
                otherwise: self.body(&cond.false_body, depth)?,
            },
            ast::Stmt::WithBlock(with) => StmtKind::With {
                bind: with
                    .assignments
                    .iter()
                    .map(|(name, value)| Ok((self.target(name)?, self.node(value, depth)?)))
                    .collect::<Lowered<_>>()?,
                body: self.body(&with.body, depth)?,
            },
            ast::Stmt::Set(set) => StmtKind::Set {
                target: self.target(&set.target)?,
                value: self.node(&set.expr, depth)?,
            },
            ast::Stmt::SetBlock(set) => StmtKind::SetBlock {
                target: self.target(&set.target)?,
                filter: set
                    .filter
                    .as_ref()
                    .map(|f| self.node(f, depth))
                    .transpose()?,
                body: self.body(&set.body, depth)?,
            },
            ast::Stmt::FilterBlock(block) => StmtKind::FilterBlock {
                filter: self.node(&block.filter, depth)?,
                body: self.body(&block.body, depth)?,
            },
            ast::Stmt::Continue(_) => StmtKind::Continue,
            ast::Stmt::Break(_) => StmtKind::Break,
            ast::Stmt::Include(include) => self.include(include, span, depth)?,
            other => return refuse(span, refused_statement(other)),
        };
        Ok(Stmt { span, kind })
    }

    /// Lowers a partial in place of its include statement. It becomes a block, so the names that it sets are known only in it.
    fn include(&self, include: &ast::Include<'_>, span: Span, depth: usize) -> Lowered<StmtKind> {
        let name = match &include.name {
            ast::Expr::Const(name) => name.value.as_str(),
            _ => None,
        };
        let Some(name) = name else {
            return refuse(
                span,
                "`include` takes a name in quotes: it is resolved before the template is evaluated",
            );
        };
        if include.ignore_missing {
            return refuse(
                span,
                "`ignore missing` is not possible: what is included is known",
            );
        }
        let source = match partials::find(name) {
            Ok(source) => source,
            Err(why) => return refuse(span, why),
        };
        let syntax = minijinja::syntax::SyntaxConfig::default();
        let tree = machinery::parse(source, name, syntax).map_err(|e| SyntaxError {
            message: format!("`{name}`: {}", broken(source, &e).message),
            range: span.range(),
        })?;
        let ast::Stmt::Template(template) = &tree else {
            return refuse(span, format!("`{name}` is not a template"));
        };
        let partial = Lower {
            source,
            included: Some(self.included.unwrap_or(span)),
        };
        Ok(StmtKind::With {
            bind: Vec::new(),
            body: partial.body(&template.children, depth)?,
        })
    }

    fn target(&self, expr: &ast::Expr<'_>) -> Lowered<Target> {
        match expr {
            ast::Expr::Var(var) => Ok(Target::Name(var.id.into(), self.at(var.span()))),
            ast::Expr::List(list) => Ok(Target::List(
                list.items
                    .iter()
                    .map(|item| self.target(item))
                    .collect::<Lowered<_>>()?,
            )),
            other => refuse(self.at(other.span()), "only a name can be assigned to here"),
        }
    }
}

fn refused_statement(stmt: &ast::Stmt<'_>) -> &'static str {
    match stmt {
        ast::Stmt::Import(_) | ast::Stmt::FromImport(_) => {
            "`import` is not possible: a template is one text"
        }
        ast::Stmt::Extends(_) | ast::Stmt::Block(_) => {
            "`extends` and `block` are not possible: a template is one text"
        }
        ast::Stmt::Macro(_) | ast::Stmt::CallBlock(_) => {
            "macros are not possible here; use `set` or a loop"
        }
        ast::Stmt::AutoEscape(_) => "nothing is escaped here, so there is no `autoescape`",
        ast::Stmt::Do(_) => "`do` is not possible: a template changes nothing",
        _ => "this statement is not possible here",
    }
}

fn stmt_span(stmt: &ast::Stmt<'_>) -> machinery::Span {
    match stmt {
        ast::Stmt::Template(s) => s.span(),
        ast::Stmt::EmitExpr(s) => s.span(),
        ast::Stmt::EmitRaw(s) => s.span(),
        ast::Stmt::ForLoop(s) => s.span(),
        ast::Stmt::IfCond(s) => s.span(),
        ast::Stmt::WithBlock(s) => s.span(),
        ast::Stmt::Set(s) => s.span(),
        ast::Stmt::SetBlock(s) => s.span(),
        ast::Stmt::AutoEscape(s) => s.span(),
        ast::Stmt::FilterBlock(s) => s.span(),
        ast::Stmt::Block(s) => s.span(),
        ast::Stmt::Import(s) => s.span(),
        ast::Stmt::FromImport(s) => s.span(),
        ast::Stmt::Extends(s) => s.span(),
        ast::Stmt::Include(s) => s.span(),
        ast::Stmt::Macro(s) => s.span(),
        ast::Stmt::CallBlock(s) => s.span(),
        ast::Stmt::Continue(s) => s.span(),
        ast::Stmt::Break(s) => s.span(),
        ast::Stmt::Do(s) => s.span(),
    }
}

/// Returns the span of a node with all its parts. minijinja's spans of operators, filters and postfixes do not include the
/// first operand.
fn whole(node: &Node) -> Span {
    let children = node.children();
    let begins_inside = matches!(
        node.kind,
        NodeKind::And(..)
            | NodeKind::Or(..)
            | NodeKind::Binary { .. }
            | NodeKind::Compare { .. }
            | NodeKind::If { .. }
    );
    let mut span = match (children.first(), children.last()) {
        (Some(first), Some(last)) if begins_inside => first.span.to(last.span),
        _ => node.span,
    };
    for child in children {
        span = span.to(child.span);
    }
    span
}

fn binary_kind(op: ast::BinOpKind, left: Box<Node>, right: Box<Node>) -> NodeKind {
    let arithmetic = |op, left, right| NodeKind::Binary { op, left, right };
    let compare = |op, first, right: Box<Node>| NodeKind::Compare {
        first,
        rest: vec![(op, *right)],
    };
    match op {
        ast::BinOpKind::Eq => compare(CompareOp::Eq, left, right),
        ast::BinOpKind::Ne => compare(CompareOp::Ne, left, right),
        ast::BinOpKind::Lt => compare(CompareOp::Lt, left, right),
        ast::BinOpKind::Lte => compare(CompareOp::Le, left, right),
        ast::BinOpKind::Gt => compare(CompareOp::Gt, left, right),
        ast::BinOpKind::Gte => compare(CompareOp::Ge, left, right),
        ast::BinOpKind::In => compare(CompareOp::In, left, right),
        ast::BinOpKind::ScAnd => NodeKind::And(left, right),
        ast::BinOpKind::ScOr => NodeKind::Or(left, right),
        ast::BinOpKind::Add => arithmetic(BinaryOp::Add, left, right),
        ast::BinOpKind::Sub => arithmetic(BinaryOp::Sub, left, right),
        ast::BinOpKind::Mul => arithmetic(BinaryOp::Mul, left, right),
        ast::BinOpKind::Div => arithmetic(BinaryOp::Div, left, right),
        ast::BinOpKind::FloorDiv => arithmetic(BinaryOp::FloorDiv, left, right),
        ast::BinOpKind::Rem => arithmetic(BinaryOp::Rem, left, right),
        ast::BinOpKind::Pow => arithmetic(BinaryOp::Pow, left, right),
        ast::BinOpKind::Concat => arithmetic(BinaryOp::Concat, left, right),
    }
}

fn compare_op(op: ast::CompareOpKind) -> CompareOp {
    match op {
        ast::CompareOpKind::Eq => CompareOp::Eq,
        ast::CompareOpKind::Ne => CompareOp::Ne,
        ast::CompareOpKind::Lt => CompareOp::Lt,
        ast::CompareOpKind::Lte => CompareOp::Le,
        ast::CompareOpKind::Gt => CompareOp::Gt,
        ast::CompareOpKind::Gte => CompareOp::Ge,
        ast::CompareOpKind::In => CompareOp::In,
        ast::CompareOpKind::NotIn => CompareOp::NotIn,
    }
}

/// Returns the message `there is no filter x`, with the most similar known name if one is similar enough.
fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let near = known
        .iter()
        .map(|k| (distance(name, k), *k))
        .min()
        .filter(|(d, _)| *d <= 2 && *d < name.len());
    match near {
        Some((_, near)) => format!("there is no {what} `{name}`; did you mean `{near}`?"),
        None => format!(
            "there is no {what} `{name}`; there are {}",
            known.join(", ")
        ),
    }
}

/// Returns the Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (diagonal + usize::from(x != *y))
                .min(row[j] + 1)
                .min(row[j + 1] + 1);
            diagonal = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}

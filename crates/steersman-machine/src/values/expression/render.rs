//! Statements: the effect of `{% %}` and `{{ }}` on the text that is rendered.

use super::ast::{Node, NodeKind, Span, Stmt, StmtKind, Target};
use super::eval::{Eval, Evaluated};
use super::kind::Kind;
use super::meter::{NESTED, Rate};
use super::value::{self, Loop};
use super::{EvalError, EvalKind, OUTPUT, ops};
use crate::stored::ids::Name;
use minijinja::Value;
use std::fmt::Write as _;
use std::sync::Arc;

/// Control flow after a statement.
enum Flow {
    Next,
    Break,
    Continue,
}

impl Eval<'_> {
    pub(super) fn render(mut self, body: &[Stmt]) -> Result<String, EvalError> {
        self.body(body)?;
        Ok(self.out)
    }

    fn body(&mut self, body: &[Stmt]) -> Result<Flow, EvalError> {
        for stmt in body {
            match self.stmt(stmt)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Flow, EvalError> {
        match &stmt.kind {
            StmtKind::Text(text) => self.write(text, stmt)?,
            StmtKind::Emit(node) => {
                let value = self.node(node)?;
                let text = self.text(&value, node)?;
                if self.encode {
                    // `in_path` searches the URL so far, and each character of the text is encoded.
                    let searched = self.meter.bytes(self.out.len(), Rate::Look);
                    self.paid(searched, node)?;
                    self.paid(self.meter.bytes(text.len(), Rate::Chars), node)?;
                }
                if self.encode && !value.is_safe() && in_path(&self.out) {
                    self.write(&percent(&text), stmt)?;
                } else {
                    self.write(&text, stmt)?;
                }
            }
            StmtKind::If {
                test,
                then,
                otherwise,
            } => {
                let value = self.node(test)?;
                let branch = if self.truth(&value, test)? {
                    then
                } else {
                    otherwise
                };
                return self.body(branch);
            }
            StmtKind::For {
                target,
                over,
                filter,
                body,
                otherwise,
            } => return self.each(target, over, filter.as_ref(), body, otherwise),
            StmtKind::With { bind, body } => {
                let outer = self.enter();
                for (target, value) in bind {
                    let value = self.defined(value)?;
                    self.assign(target, value, stmt)?;
                }
                let flow = self.body(body);
                self.leave(outer);
                return flow;
            }
            StmtKind::Set { target, value } => {
                let value = self.defined(value)?;
                self.assign(target, value, stmt)?;
            }
            StmtKind::SetBlock {
                target,
                filter,
                body,
            } => {
                let value = self.captured(body, filter.as_ref())?;
                self.assign(target, value, stmt)?;
            }
            StmtKind::FilterBlock { filter, body } => {
                let value = self.captured(body, Some(filter))?;
                let text = self.text(&value, filter)?;
                self.write(&text, stmt)?;
            }
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn write(&mut self, text: &str, stmt: &Stmt) -> Result<(), EvalError> {
        if self.out.len() + text.len() > OUTPUT {
            return Err(self.error_at(
                EvalKind::Size,
                format!("it makes more than {} MiB", OUTPUT >> 20),
                stmt.span.range(),
            ));
        }
        let paid = self.meter.steps(1);
        let paid = paid.and_then(|()| self.meter.bytes(text.len(), Rate::Copy));
        self.paid_at(paid, stmt.span.range())?;
        self.out.push_str(text);
        Ok(())
    }

    fn captured(&mut self, body: &[Stmt], filter: Option<&Node>) -> Evaluated {
        let outside = std::mem::take(&mut self.out);
        let frame = self.enter();
        let flow = self.body(body);
        self.leave(frame);
        let text = std::mem::replace(&mut self.out, outside);
        flow?;
        let text = Value::from(text);
        match filter {
            None => Ok(text),
            Some(filter) => self.chain(filter, text),
        }
    }

    /// Applies the filters of a block; the innermost one takes the block's text.
    fn chain(&mut self, node: &Node, text: Value) -> Evaluated {
        let NodeKind::Filter { name, of, args, .. } = &node.kind else {
            return Err(self.error(EvalKind::Failed, "not a filter", node));
        };
        let input = match of {
            None => text,
            Some(of) => self.chain(of, text)?,
        };
        let args = self.args(args)?;
        self.filter(name, input, args, node)
    }

    fn each(
        &mut self,
        target: &Target,
        over: &Node,
        filter: Option<&Node>,
        body: &[Stmt],
        otherwise: &[Stmt],
    ) -> Result<Flow, EvalError> {
        let list = self.defined(over)?;
        let mut items = self.elements(&list, over)?;
        let outer = self.enter();
        if let Some(filter) = filter {
            let mut kept = Vec::new();
            for item in items {
                self.assign_at(target, item.clone(), over)?;
                let value = self.node(filter)?;
                if self.truth(&value, filter)? {
                    kept.push(item);
                }
                self.burn(1, over)?;
                self.locals.truncate(self.frame);
            }
            items = kept;
        }
        let (is_empty, loops) = (items.is_empty(), self.loops());
        let items: Arc<[Value]> = items.into();
        let depth = value::depth(&list).saturating_add(1);
        let depth = depth.min(NESTED);
        let name: Name = "loop".into();
        for (at, item) in items.iter().enumerate() {
            let value = Value::from_object(Loop {
                items: items.clone(),
                at,
                loops,
                depth,
            });
            self.locals.push((name.clone(), value));
            self.assign_at(target, item.clone(), over)?;
            let flow = self.body(body)?;
            self.locals.truncate(self.frame);
            if matches!(flow, Flow::Break) {
                break;
            }
        }
        self.leave(outer);
        if is_empty {
            return self.body(otherwise);
        }
        Ok(Flow::Next)
    }

    fn loops(&self) -> usize {
        self.locals.iter().filter(|(n, _)| &**n == "loop").count() + 1
    }

    /// Returns the elements that a loop visits: the elements of a list or the keys of an object. In a template, `none` counts
    /// as empty.
    fn elements(&mut self, list: &Value, node: &Node) -> Result<Vec<Value>, EvalError> {
        let items = match Kind::of(list) {
            Kind::List | Kind::Map => {
                let items = ops::items(&self.meter, list);
                items.map_err(|r| self.refused(&r, "for", node))?
            }
            Kind::None if self.lenient => Vec::new(),
            Kind::None => return Err(self.unset(node)),
            Kind::Sealed => return Err(self.sealed(node)),
            kind => {
                let message = format!("`{}` is {kind}, not a list", self.part(node));
                return Err(self.error(EvalKind::Unlike, message, node));
            }
        };
        self.burn(items.len() as u64, node)?;
        Ok(items)
    }

    fn enter(&mut self) -> usize {
        std::mem::replace(&mut self.frame, self.locals.len())
    }

    fn leave(&mut self, outer: usize) {
        self.locals.truncate(self.frame);
        self.frame = outer;
    }

    fn assign(&mut self, target: &Target, value: Value, stmt: &Stmt) -> Result<(), EvalError> {
        self.bind(target, value, stmt.span)
    }

    fn assign_at(&mut self, target: &Target, value: Value, node: &Node) -> Result<(), EvalError> {
        self.bind(target, value, node.span)
    }

    fn bind(&mut self, target: &Target, value: Value, span: Span) -> Result<(), EvalError> {
        match target {
            Target::Name(name, _) => {
                let names = self.locals.len() - self.frame;
                self.paid_at(self.meter.names(names), span.range())?;
                let known = self.locals[self.frame..]
                    .iter_mut()
                    .find(|(n, _)| n == name);
                match known {
                    Some((_, old)) => *old = value,
                    None => self.locals.push((name.clone(), value)),
                }
                Ok(())
            }
            Target::List(targets) => {
                let values = match Kind::of(&value) {
                    Kind::List => self.paid_at(ops::items(&self.meter, &value), span.range())?,
                    _ => Vec::new(),
                };
                if Kind::of(&value) != Kind::List || values.len() != targets.len() {
                    let message = format!(
                        "{} names on the left, but not as many values",
                        targets.len()
                    );
                    return Err(self.error_at(EvalKind::Unlike, message, span.range()));
                }
                targets
                    .iter()
                    .zip(values)
                    .try_for_each(|(target, value)| self.bind(target, value, span))
            }
        }
    }
}

/// Returns true if a value that follows in this URL must be encoded. A base address or a host at the start is not encoded. All
/// values after the first character of the host are, so that none of them can change the target of the request.
fn in_path(url: &str) -> bool {
    match url.find("://") {
        Some(at) => url.len() > at + 3,
        None => url.contains(['/', '?', '#']),
    }
}

/// Percent-encodes all characters except the unreserved ones of RFC 3986.
fn percent(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte as char);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

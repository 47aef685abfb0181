//! The evaluator: it walks the syntax tree and pays for each step.

use super::ast::{Args, BinaryOp, CompareOp, Node, NodeKind};
use super::kind::Kind;
use super::meter::{End, Meter, NESTED, Rate};
use super::ops::{self, Num, Refused};
use super::{EvalError, EvalKind, FUEL, OUTPUT, Scope, filters, to_json, value};
use crate::stored::ids::Name;
use minijinja::Value;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) type Evaluated = Result<Value, EvalError>;
/// Arguments of a call, by position and by name.
pub(super) type Given = (Vec<Value>, Vec<(Name, Value)>);

/// The state of one evaluation.
pub(super) struct Eval<'a> {
    scope: &'a dyn Scope,
    source: &'a Arc<str>,
    /// True in templates and `outcome`, where a path through an unset optional is none.
    pub(super) lenient: bool,
    /// True for a URL: values in its path or query are percent-encoded.
    pub(super) encode: bool,
    pub(super) meter: Meter,
    pub(super) out: String,
    pub(super) locals: Vec<(Name, Value)>,
    /// Index of the first name of the innermost loop, `with`, `set` or `filter` block.
    pub(super) frame: usize,
}

impl<'a> Eval<'a> {
    pub(super) fn new(scope: &'a dyn Scope, source: &'a Arc<str>, lenient: bool) -> Self {
        Self {
            scope,
            source,
            lenient,
            encode: false,
            meter: Meter::new(),
            out: String::new(),
            locals: Vec::new(),
            frame: 0,
        }
    }

    pub(super) fn encoding(mut self) -> Self {
        self.encode = true;
        self
    }

    pub(super) fn node(&mut self, node: &Node) -> Evaluated {
        self.burn(1, node)?;
        match &node.kind {
            NodeKind::Const(value) => Ok(value.clone()),
            NodeKind::Var(_) | NodeKind::Attr { .. } | NodeKind::Item { .. } => self.path(node),
            NodeKind::Slice {
                of,
                start,
                stop,
                step,
            } => self.slice(node, of, [start, stop, step]),
            NodeKind::Not(of) => {
                let value = self.node(of)?;
                Ok(Value::from(!self.truth(&value, of)?))
            }
            NodeKind::Neg(of) => {
                let value = self.defined(of)?;
                self.operand(&value, of)?;
                ops::negate(&value).map_err(|r| self.refused(&r, "-", node))
            }
            NodeKind::And(left, right) => {
                let value = self.node(left)?;
                if self.truth(&value, left)? {
                    self.node(right)
                } else {
                    Ok(value)
                }
            }
            NodeKind::Or(left, right) => {
                let value = self.node(left)?;
                if self.truth(&value, left)? {
                    Ok(value)
                } else {
                    self.node(right)
                }
            }
            NodeKind::Binary { op, left, right } => self.binary(*op, left, right, node),
            NodeKind::Compare { first, rest } => {
                let mut left = (self.defined(first)?, &**first);
                for (op, next) in rest {
                    let right = (self.defined(next)?, next);
                    if !self.compare(*op, &left, &right)? {
                        return Ok(Value::from(false));
                    }
                    left = right;
                }
                Ok(Value::from(true))
            }
            NodeKind::If {
                test,
                then,
                otherwise,
            } => {
                let value = self.node(test)?;
                if self.truth(&value, test)? {
                    self.node(then)
                } else {
                    otherwise
                        .as_ref()
                        .map_or(Ok(Value::from(())), |node| self.node(node))
                }
            }
            NodeKind::Filter { name, of, args, .. } => {
                let input = match of {
                    Some(of) => self.node(of)?,
                    None => return Err(self.error(EvalKind::Failed, "nothing to filter", node)),
                };
                let args = self.args(args)?;
                self.filter(name, input, args, of.as_deref().unwrap_or(node))
            }
            NodeKind::Test { name, of, args, .. } => {
                let value = self.node(of)?;
                let args = self.args(args)?;
                self.test(name, &value, &args.0, of).map(Value::from)
            }
            NodeKind::Call { name, args } => self.call(name, args, node),
            NodeKind::List(items) => {
                let values: Result<Vec<_>, _> = items.iter().map(|i| self.defined(i)).collect();
                self.paid(value::list(&self.meter, values?), node)
            }
            NodeKind::Map(items) => {
                let mut pairs = Vec::with_capacity(items.len());
                for (key, value) in items {
                    let name = self.defined(key)?;
                    if Kind::of(&name) != Kind::Text {
                        return Err(self.error(EvalKind::Unlike, "keys of objects are texts", key));
                    }
                    pairs.push((name, self.defined(value)?));
                }
                self.paid(value::map(&self.meter, pairs), node)
            }
        }
    }

    /// Evaluates a node to a defined value. Also in a template a path that does not exist is an error; only a declared entry
    /// that is unset is none.
    pub(super) fn defined(&mut self, node: &Node) -> Evaluated {
        let value = self.node(node)?;
        if value.is_undefined() {
            return Err(self.undefined(node));
        }
        Ok(value)
    }

    /// Follows fields and keys from a name. The scope may follow the first steps; the rest is followed here.
    fn path(&mut self, node: &Node) -> Evaluated {
        let mut steps: Vec<(Value, &Node)> = Vec::new();
        let mut at = node;
        let root = loop {
            match &at.kind {
                NodeKind::Attr { of, name } => {
                    steps.push((Value::from(&**name), at));
                    at = of;
                }
                NodeKind::Item { of, key } => {
                    steps.push((self.defined(key)?, at));
                    at = of;
                }
                _ => break at,
            }
        };
        steps.reverse();
        let (mut value, used) = match &root.kind {
            NodeKind::Var(name) => {
                self.paid(self.meter.names(self.locals.len()), root)?;
                if let Some((_, value)) = self.locals.iter().rev().find(|(n, _)| n == name) {
                    (value.clone(), 0)
                } else {
                    let texts: Vec<&str> =
                        steps.iter().map_while(|(key, _)| key.as_str()).collect();
                    let found = self.scope.path(name, &texts);
                    let (value, used) = found.unwrap_or((Value::UNDEFINED, 0));
                    self.paid(self.meter.taken(&value, Some(used)), node)?;
                    (value, used)
                }
            }
            _ => (self.node(root)?, 0),
        };
        let mut before = match used {
            0 => root,
            n => steps[n - 1].1,
        };
        for (key, at) in &steps[used..] {
            value = self.step(&value, key, before, at)?;
            before = at;
        }
        Ok(value)
    }

    /// Returns one field or element of a value. `of` is the node that gave the value.
    fn step(&mut self, value: &Value, key: &Value, of: &Node, at: &Node) -> Evaluated {
        match (Kind::of(value), Kind::of(key)) {
            (Kind::Undefined, _) => Err(self.undefined(of)),
            (Kind::None, _) if self.lenient => Ok(Value::from(())),
            (Kind::None, _) => Err(self.unset(of)),
            (Kind::Sealed, _) => Err(self.sealed(of)),
            (Kind::Map, Kind::Text) => self.paid(ops::entry(&self.meter, value, key), at),
            (Kind::List, Kind::Number) if key.is_integer() => {
                let n = i64::try_from(key.clone()).unwrap_or(i64::MAX);
                let n = match (usize::try_from(n), value.len()) {
                    (Ok(n), _) => Some(n),
                    (Err(_), Some(len)) => len.checked_sub(n.unsigned_abs() as usize),
                    (Err(_), None) => None,
                };
                let item = n.and_then(|n| value.get_item_by_index(n).ok());
                let item = item.unwrap_or_default();
                self.paid(self.meter.taken(&item, value::reach(value)), at)?;
                Ok(item)
            }
            (kind, Kind::Text) => {
                let (part, key) = (self.part(of), key.as_str().unwrap_or(""));
                let hint = match kind {
                    Kind::List | Kind::Text if key == "length" => "; write `| length`",
                    _ => "",
                };
                let message = format!("`{part}` is {kind} and has no field `{key}`{hint}");
                Err(self.error(EvalKind::Unlike, message, at))
            }
            (kind, _) => {
                let key = match Kind::of(key) {
                    Kind::Boolean | Kind::Number => key.to_string(),
                    kind => kind.to_string(),
                };
                let message = format!("`{}` is {kind}; {key} is not a key of it", self.part(of));
                Err(self.error(EvalKind::Unlike, message, at))
            }
        }
    }

    fn slice(&mut self, node: &Node, of: &Node, bounds: [&Option<Box<Node>>; 3]) -> Evaluated {
        let value = self.defined(of)?;
        if Kind::of(&value) == Kind::None && self.lenient {
            return Ok(value);
        }
        self.operand(&value, of)?;
        let mut at = [None; 3];
        for (slot, bound) in at.iter_mut().zip(bounds) {
            let Some(bound) = bound else { continue };
            let n = self.defined(bound)?;
            match (Num::of(&n), i64::try_from(n.clone())) {
                _ if n.is_none() => {}
                // A bound outside the range of `i64` is beyond the end of any list.
                (Some(Num::Int(n)), _) => {
                    *slot = Some(n.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
                }
                (Some(Num::Float(_)), Ok(n)) => *slot = Some(n),
                _ => return Err(self.error(EvalKind::Unlike, "bounds are whole numbers", bound)),
            }
        }
        match Kind::of(&value) {
            Kind::Text => {
                let len = value.as_str().map_or(0, str::len);
                self.paid(self.meter.bytes(len, Rate::Chars), node)?;
                let chars: Vec<char> = value.as_str().unwrap_or("").chars().collect();
                let cut: Option<String> = cut(&chars, at).map(|c| c.into_iter().collect());
                cut.map(Value::from)
            }
            Kind::List => {
                let items = self.paid(ops::items(&self.meter, &value), node)?;
                cut(&items, at)
                    .map(|items| self.paid(value::list(&self.meter, items), node))
                    .transpose()?
            }
            kind => {
                let message = format!("`{}` is {kind} and cannot be sliced", self.part(of));
                return Err(self.error(EvalKind::Unlike, message, node));
            }
        }
        .ok_or_else(|| self.error(EvalKind::Failed, "the step of a slice must not be 0", node))
    }

    fn binary(&mut self, op: BinaryOp, left: &Node, right: &Node, node: &Node) -> Evaluated {
        let (a, b) = (self.defined(left)?, self.defined(right)?);
        if op == BinaryOp::Concat {
            let (a, b) = (self.text(&a, left)?, self.text(&b, right)?);
            self.paid(self.meter.text(a.len().saturating_add(b.len())), node)?;
            return Ok(Value::from([a, b].concat()));
        }
        self.operand(&a, left)?;
        self.operand(&b, right)?;
        ops::arithmetic(&self.meter, op, &a, &b).map_err(|refused| {
            let message = match refused {
                Refused::Unlike(x, y) => format!(
                    "`{}` is {x} and `{}` is {y}: `{}` takes two of one kind",
                    self.part(left),
                    self.part(right),
                    op.sign()
                ),
                Refused::Never(kind) => {
                    format!(
                        "`{}` is {kind}: no `{}` for that",
                        self.part(left),
                        op.sign()
                    )
                }
                Refused::Failed(why) => return self.error(EvalKind::Failed, why, node),
                Refused::Ended => return self.ended(node),
            };
            self.error(EvalKind::Unlike, message, node)
        })
    }

    fn compare(
        &mut self,
        op: CompareOp,
        (a, left): &(Value, &Node),
        (b, right): &(Value, &Node),
    ) -> Result<bool, EvalError> {
        for (value, node) in [(a, left), (b, right)] {
            match Kind::of(value) {
                Kind::Sealed => return Err(self.sealed(node)),
                Kind::None if !matches!(op, CompareOp::Eq | CompareOp::Ne) => {
                    return Err(self.unset(node));
                }
                _ => {}
            }
        }
        let meter = &self.meter;
        let result = match op {
            CompareOp::Eq => ops::equal(meter, a, b),
            CompareOp::Ne => ops::equal(meter, a, b).map(|equal| !equal),
            CompareOp::Lt => ops::order(meter, a, b).map(Ordering::is_lt),
            CompareOp::Le => ops::order(meter, a, b).map(Ordering::is_le),
            CompareOp::Gt => ops::order(meter, a, b).map(Ordering::is_gt),
            CompareOp::Ge => ops::order(meter, a, b).map(Ordering::is_ge),
            CompareOp::In => ops::contains(meter, a, b),
            CompareOp::NotIn => ops::contains(meter, a, b).map(|within| !within),
        };
        result.map_err(|refused| {
            let (first, second) = (self.part(left), self.part(right));
            let message = match refused {
                Refused::Unlike(x, y) if x == Kind::of(a) && y == Kind::of(b) => {
                    format!("`{first}` is {x} and `{second}` is {y}: unlike kinds are not compared")
                }
                Refused::Unlike(x, y) => {
                    format!(
                        "`{first}` and `{second}` hold {x} and {y}: unlike kinds are not compared"
                    )
                }
                Refused::Never(kind) => format!("`{first}` is {kind}, which has no order"),
                Refused::Failed(why) => why.to_owned(),
                Refused::Ended => return self.ended(right),
            };
            self.error_at(EvalKind::Unlike, message, left.span.to(right.span).range())
        })
    }

    /// Returns whether a value counts as true: set, not empty and not zero. A secret is an
    /// error, and so is an undefined value outside of templates.
    pub(super) fn truth(&mut self, value: &Value, node: &Node) -> Result<bool, EvalError> {
        match Kind::of(value) {
            Kind::Sealed => Err(self.sealed(node)),
            Kind::Undefined if self.lenient => Ok(false),
            Kind::Undefined => Err(self.undefined(node)),
            _ => Ok(value.is_true()),
        }
    }

    /// Refuses the values that no operator accepts: undefined, none and secrets.
    fn operand(&self, value: &Value, node: &Node) -> Result<(), EvalError> {
        match Kind::of(value) {
            Kind::Undefined => Err(self.undefined(node)),
            Kind::None => Err(self.unset(node)),
            Kind::Sealed => Err(self.sealed(node)),
            _ => Ok(()),
        }
    }

    pub(super) fn args(&mut self, args: &Args) -> Result<Given, EvalError> {
        let positional: Result<_, _> = args.positional.iter().map(|a| self.defined(a)).collect();
        let mut named = Vec::new();
        for (name, node) in &args.named {
            named.push((name.clone(), self.defined(node)?));
        }
        Ok((positional?, named))
    }

    /// Applies a filter. `of` is the node that gave its input.
    pub(super) fn filter(
        &mut self,
        name: &str,
        input: Value,
        (args, named): Given,
        of: &Node,
    ) -> Evaluated {
        let fills = matches!(name, "default" | "d");
        match Kind::of(&input) {
            Kind::Sealed => return Err(self.sealed(of)),
            Kind::Undefined if !fills => return Err(self.undefined(of)),
            Kind::None if !fills && name != "tojson" => {
                return if self.lenient {
                    Ok(input)
                } else {
                    Err(self.unset(of))
                };
            }
            _ => {}
        }
        filters::apply(&self.meter, name, &input, &args, &named)
            .map_err(|why| self.failed(EvalKind::Failed, || format!("`{name}`: {why}"), of))
    }

    fn test(
        &mut self,
        name: &str,
        value: &Value,
        args: &[Value],
        of: &Node,
    ) -> Result<bool, EvalError> {
        match (name, Kind::of(value)) {
            ("none", Kind::Undefined) => return Err(self.undefined(of)),
            ("none", kind) => return Ok(kind == Kind::None),
            (_, Kind::Sealed) => return Err(self.sealed(of)),
            ("defined", kind) => return Ok(kind != Kind::Undefined),
            ("undefined", kind) => return Ok(kind == Kind::Undefined),
            (_, Kind::Undefined) => return Err(self.undefined(of)),
            (_, Kind::None) if !self.lenient && !filters::compares(name) => {
                return Err(self.unset(of));
            }
            _ => {}
        }
        filters::test(&self.meter, name, value, args)
            .map_err(|why| self.failed(EvalKind::Unlike, || format!("`is {name}`: {why}"), of))
    }

    fn call(&mut self, name: &str, args: &Args, node: &Node) -> Evaluated {
        let (args, named) = self.args(args)?;
        if name == "dict" {
            let pairs = named.into_iter();
            let pairs = pairs.map(|(k, v)| (Value::from(&*k), v)).collect();
            return self.paid(value::map(&self.meter, pairs), node);
        }
        let numbers: Option<Vec<i64>> = args.iter().map(Value::as_i64).collect();
        let (start, stop, step) = match numbers.as_deref() {
            Some([stop]) => (0, *stop, 1),
            Some([start, stop]) => (*start, *stop, 1),
            Some([start, stop, step]) if *step != 0 => (*start, *stop, *step),
            _ => {
                let message = "`range` takes one to three whole numbers, the step not 0";
                return Err(self.error(EvalKind::Failed, message, node));
            }
        };
        let span = i128::from(stop) - i128::from(start);
        let count = (span * i128::from(step.signum())).max(0) as u128;
        let count = count.div_ceil(u128::from(step.unsigned_abs()));
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        // Pay before the numbers are made; the list is paid again below.
        self.paid(self.meter.elements(count), node)?;
        let mut next = Some(start);
        let mut numbers = Vec::with_capacity(count as usize);
        while let Some(at) = next.filter(|_| numbers.len() < count as usize) {
            numbers.push(Value::from(at));
            // No number follows the largest one.
            next = at.checked_add(step);
        }
        self.paid(value::list(&self.meter, numbers), node)
    }

    // --- results and errors

    /// Returns a value as text, as `{{ }}` writes it.
    pub(super) fn text<'v>(
        &self,
        value: &'v Value,
        node: &Node,
    ) -> Result<Cow<'v, str>, EvalError> {
        match Kind::of(value) {
            Kind::Undefined => Err(self.undefined(node)),
            Kind::None if !self.lenient => Err(self.unset(node)),
            Kind::Sealed => Err(self.sealed(node)),
            _ => filters::plain(&self.meter, value)
                .map_err(|why| self.failed(EvalKind::Failed, || why, node)),
        }
    }

    /// Returns a value as JSON.
    pub(super) fn json(&self, value: &Value, node: &Node) -> Result<Json, EvalError> {
        if value.is_undefined() {
            return Err(self.undefined(node));
        }
        self.given(value, node)?;
        to_json(value).map_err(|why| self.error(EvalKind::Failed, why, node))
    }

    /// Pays for a value that leaves the evaluation. Written out it may be larger than what was paid for it: a list may contain
    /// one text a thousand times. Texts and parts of the data are free.
    pub(super) fn given(&self, value: &Value, node: &Node) -> Result<(), EvalError> {
        if value.as_str().is_some() || value::json(value).is_some() {
            return Ok(());
        }
        self.paid(self.meter.deep(value, Rate::Copy), node)
    }

    pub(super) fn burn(&self, steps: u64, node: &Node) -> Result<(), EvalError> {
        self.paid(self.meter.steps(steps), node)
    }

    /// Converts a refused payment to an error at a node.
    pub(super) fn paid<T>(&self, paid: Result<T, Refused>, node: &Node) -> Result<T, EvalError> {
        self.paid_at(paid, node.span.range())
    }

    pub(super) fn paid_at<T>(
        &self,
        paid: Result<T, Refused>,
        range: std::ops::Range<usize>,
    ) -> Result<T, EvalError> {
        paid.map_err(|refused| match refused {
            Refused::Ended => self.ended_at(range),
            Refused::Failed(why) => self.error_at(EvalKind::Failed, why, range),
            Refused::Unlike(..) | Refused::Never(_) => {
                self.error_at(EvalKind::Unlike, "this is not a list or an object", range)
            }
        })
    }

    fn ended(&self, node: &Node) -> EvalError {
        self.ended_at(node.span.range())
    }

    fn ended_at(&self, range: std::ops::Range<usize>) -> EvalError {
        match self.meter.end().unwrap_or(End::Spent) {
            End::Spent => {
                let message = format!("it takes more than {FUEL} steps");
                self.error_at(EvalKind::Fuel, message, range)
            }
            End::Size => {
                let message = format!("it makes more than {} MiB", OUTPUT >> 20);
                self.error_at(EvalKind::Size, message, range)
            }
            End::Deep => {
                let message = format!("values here nest more than {NESTED} deep");
                self.error_at(EvalKind::Size, message, range)
            }
        }
    }

    /// Returns the error of a filter or a test that failed: the end of the evaluation if it has ended, else the given reason.
    fn failed(&self, kind: EvalKind, why: impl FnOnce() -> String, node: &Node) -> EvalError {
        match self.meter.end() {
            Some(_) => self.ended(node),
            None => self.error(kind, why(), node),
        }
    }

    pub(super) fn part<'n>(&'n self, node: &'n Node) -> &'n str {
        // In a partial, spans are those of the include statement, so return the name itself.
        if let NodeKind::Var(name) = &node.kind {
            return name;
        }
        self.source.get(node.span.range()).unwrap_or("").trim()
    }

    pub(super) fn error_at(
        &self,
        kind: EvalKind,
        message: impl Into<String>,
        range: std::ops::Range<usize>,
    ) -> EvalError {
        EvalError {
            kind,
            message: message.into(),
            source: self.source.clone(),
            range,
        }
    }

    pub(super) fn error(
        &self,
        kind: EvalKind,
        message: impl Into<String>,
        node: &Node,
    ) -> EvalError {
        self.error_at(kind, message, node.span.range())
    }

    pub(super) fn undefined(&self, node: &Node) -> EvalError {
        let part = self.part(node);
        // `check` has made sure that the secret is declared, so only its value can be missing.
        let what = if part.starts_with("secrets.") {
            "set: its environment variable or file holds no value, or cannot be read"
        } else {
            "defined"
        };
        let message = format!("`{part}` is not {what}");
        self.error(EvalKind::Undefined, message, node)
    }

    pub(super) fn unset(&self, node: &Node) -> EvalError {
        let part = self.part(node);
        let message = format!("`{part}` is none; ask `{part} is not none and ..` first");
        self.error(EvalKind::Unset, message, node)
    }

    pub(super) fn sealed(&self, node: &Node) -> EvalError {
        let part = self.part(node);
        let message =
            format!("`{part}` is a secret: only `is none` and `is not none` may be asked of it");
        self.error(EvalKind::Sealed, message, node)
    }

    pub(super) fn refused(&self, refused: &Refused, sign: &str, node: &Node) -> EvalError {
        let message = match refused {
            Refused::Unlike(a, b) => format!("{a} and {b} do not go together in `{sign}`"),
            Refused::Never(kind) => format!("`{sign}` takes no value that is {kind}"),
            Refused::Failed(why) => (*why).to_owned(),
            Refused::Ended => return self.ended(node),
        };
        self.error(EvalKind::Unlike, message, node)
    }
}

/// Returns the elements from `start` to `stop` in steps of `step`; `None` if the step is 0.
fn cut<T: Clone>(items: &[T], [start, stop, step]: [Option<i64>; 3]) -> Option<Vec<T>> {
    let len = i64::try_from(items.len()).ok()?;
    let step = step.unwrap_or(1);
    let place = |n: i64| if n < 0 { n.saturating_add(len) } else { n };
    let mut out = Vec::new();
    match step.signum() {
        1 => {
            let stop = stop.map_or(len, place).clamp(0, len);
            let mut at = start.map_or(0, place).clamp(0, len);
            while at < stop {
                out.push(items[at as usize].clone());
                at = at.saturating_add(step);
            }
        }
        -1 => {
            let stop = stop.map_or(-1, |n| place(n).clamp(-1, len - 1));
            let mut at = start.map_or(len - 1, |n| place(n).clamp(-1, len - 1));
            while at > stop {
                out.push(items[at as usize].clone());
                at = at.saturating_add(step);
            }
        }
        _ => return None,
    }
    Some(out)
}

//! Operand and result types of operators, filters and tests.

use super::super::diagnostic::Diagnostic;
use super::super::foreign;
use super::super::shape::{list_of, with_article};
use super::kind::{Family, Kind, Known};
use super::types::{Facts, Walker};
use serde_json::Number;
use steersman_machine::values::expression::ast;
use steersman_machine::values::expression::ast::{BinaryOp, CompareOp, Node, NodeKind};
use steersman_machine::values::types::{Parameters, TypeKind};

/// The reason given when values of unlike kinds are compared for equality.
const NEVER_EQUAL: &str = "unlike kinds are never equal";

impl Walker<'_, '_> {
    pub(super) fn number(&mut self, known: &Known, node: &Node, operator: &str) {
        self.used(known, node);
        self.fails_while_none(known, node);
        let family = known.kind.family();
        if family.is_some_and(|family| !matches!(family, Family::Number | Family::Secret)) {
            let at = self.place(node.span);
            let found = with_article(known.kind.word());
            self.say(Diagnostic::operand(at, operator, "a number", &found));
        }
    }

    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        left: &Node,
        right: &Node,
        facts: &Facts,
    ) -> Known {
        let (a, b) = (self.node(left, facts), self.node(right, facts));
        match op {
            BinaryOp::Concat => {
                for (known, node) in [(&a, left), (&b, right)] {
                    self.used(known, node);
                }
                Known::of(Kind::Text)
            }
            BinaryOp::Add => {
                for (known, node) in [(&a, left), (&b, right)] {
                    self.used(known, node);
                    self.fails_while_none(known, node);
                }
                let (Some(x), Some(y)) = (a.kind.family(), b.kind.family()) else {
                    return Known::any();
                };
                if x == Family::Secret || y == Family::Secret {
                    return Known::any();
                }
                if x != y {
                    let message = format!("{} is added to {}", y.words(), x.words());
                    self.unlike(message, (left, &a), (right, &b), "unlike kinds have no sum");
                    return Known::any();
                }
                if !matches!(x, Family::Number | Family::Text | Family::List) {
                    let at = self.place(left.span);
                    let found = with_article(a.kind.word());
                    let wanted = "two numbers, texts or lists";
                    self.say(Diagnostic::operand(at, "+", wanted, &found));
                    return Known::any();
                }
                Known::of(a.or(b).kind)
            }
            BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::FloorDiv
            | BinaryOp::Rem
            | BinaryOp::Pow => {
                self.number(&a, left, op.sign());
                self.number(&b, right, op.sign());
                let whole = a.kind == Kind::Integer && b.kind == Kind::Integer;
                let kind = match op {
                    BinaryOp::Div | BinaryOp::Pow => Kind::Number,
                    _ if whole => Kind::Integer,
                    _ => Kind::Number,
                };
                Known::of(kind)
            }
        }
    }

    pub(super) fn compare(&mut self, op: CompareOp, left: &(&Node, Known), right: (&Node, &Known)) {
        let ((a, x), (b, y)) = ((left.0, &left.1), right);
        let equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
        // `null` is reported where it stands, and means `none`
        let is_none = |(node, known): (&Node, &Known)| {
            let foreign = matches!(&node.kind, NodeKind::Var(name) if foreign::is_none(name));
            known.kind == Kind::None || foreign
        };
        let with_none = is_none((a, x)) || is_none((b, y));
        if equality && with_none {
            for (known, node) in [(x, a), (y, b)] {
                self.truth(known, node);
            }
            return;
        }
        let mut usable = true;
        for (known, node) in [(x, a), (y, b)] {
            usable &= known.kind != Kind::Secret;
            // comparing an unset optional is defined, but a condition has to narrow the optional first
            self.used(known, node);
        }
        let (Some(first), Some(second)) = (x.kind.family(), y.kind.family()) else {
            return;
        };
        if !usable {
            return;
        }
        if matches!(op, CompareOp::In | CompareOp::NotIn) {
            return self.within(op, (a, x), (b, y));
        }
        if first != second {
            let message = format!("{} is compared with {}", first.words(), second.words());
            let why = if equality {
                NEVER_EQUAL
            } else {
                "unlike kinds have no order"
            };
            return self.unlike(message, (a, x), (b, y), why);
        }
        if !equality && !matches!(first, Family::Number | Family::Text) {
            let at = self.place(a.span);
            let found = with_article(x.kind.word());
            return self.say(Diagnostic::operand(
                at,
                op.sign(),
                "two numbers or two texts",
                &found,
            ));
        }
        self.never_holds(op, (a, x), (b, y));
        self.never_holds(turned(op), (b, y), (a, x));
        if equality {
            self.one_of_words((a, x), (b, y));
            self.one_of_words((b, y), (a, x));
        }
    }

    /// Reports a comparison of an argument with a constant that its `minimum` or `maximum` never lets hold.
    fn never_holds(&mut self, op: CompareOp, (a, x): (&Node, &Known), (b, _): (&Node, &Known)) {
        let (Some(path), NodeKind::Const(value)) = (&x.path, &b.kind) else {
            return;
        };
        let (Some(name), Ok(value)) = (path.strip_prefix("args."), f64::try_from(value.clone()))
        else {
            return;
        };
        let bounds = match self.check.parameters(self.args_of_site()) {
            Some(Parameters::Fields(fields)) => {
                let declared = fields.iter().find(|(field, _)| &**field == name);
                declared.map(|(_, ty)| bounds(&ty.kind))
            }
            Some(Parameters::Schema(_)) | None => None,
        };
        let Some((minimum, maximum)) = bounds else {
            return;
        };
        let (least, most) = (
            minimum.is_some_and(|m| m > value),
            maximum.is_some_and(|m| m < value),
        );
        let at_least = minimum.is_some_and(|m| m >= value);
        let at_most = maximum.is_some_and(|m| m <= value);
        let bound = match op {
            CompareOp::Lt if at_least => "minimum",
            CompareOp::Le | CompareOp::Eq if least => "minimum",
            CompareOp::Gt if at_most => "maximum",
            CompareOp::Ge | CompareOp::Eq if most => "maximum",
            _ => return,
        };
        let (from, to) = (a.span.start.min(b.span.start), a.span.end.max(b.span.end));
        let at = self.place(ast::Span {
            start: from,
            end: to,
        });
        let declared = x.declared.and_then(|span| self.check.place(span));
        self.say(Diagnostic::never_holds(at, path, bound, declared));
    }

    /// Reports a comparison with a constant that is not a word of the enumeration.
    fn one_of_words(&mut self, (_, of): (&Node, &Known), (node, _): (&Node, &Known)) {
        let (Kind::Words(words), NodeKind::Const(value)) = (&of.kind, &node.kind) else {
            return;
        };
        let Some(word) = value.as_str() else {
            return;
        };
        if !words.iter().any(|known| known == word) {
            let near = self
                .check
                .sources
                .near(word, words.iter().map(String::as_str));
            let at = self.place(node.span);
            let all = list_of(words.iter().map(String::as_str));
            let path = of.path.clone().unwrap_or_default();
            self.say(Diagnostic::never_equal(at, &path, word, near, &all));
        }
    }

    fn within(&mut self, op: CompareOp, (a, x): (&Node, &Known), (b, y): (&Node, &Known)) {
        let first = x.kind.family();
        let fits = match &y.kind {
            Kind::List(item) => item.family().is_none() || item.family() == first,
            Kind::Text | Kind::Words(_) | Kind::Fields(_) | Kind::Object => {
                first == Some(Family::Text)
            }
            _ => {
                let at = self.place(b.span);
                let found = with_article(y.kind.word());
                return self.say(Diagnostic::operand(
                    at,
                    op.sign(),
                    "a list, text or object on its right",
                    &found,
                ));
            }
        };
        if !fits {
            let holds = match &y.kind {
                Kind::List(item) => format!("a list of {}", plural(item)),
                kind => with_article(kind.word()),
            };
            let is = first.map_or("this", Family::words);
            let message = format!("{is} is looked for in {holds}");
            self.unlike(message, (a, x), (b, y), NEVER_EQUAL);
        }
    }

    fn unlike(
        &mut self,
        message: String,
        left: (&Node, &Known),
        right: (&Node, &Known),
        why: &str,
    ) {
        let mut declared = Vec::new();
        let mut patch = None;
        for (node, known) in [left, right] {
            let Some(span) = known.declared else {
                continue;
            };
            let path = known.path.clone().unwrap_or_else(|| self.part(node));
            let text = format!("this makes `{path}` {}", with_article(known.kind.word()));
            let other = if node == left.0 { right.1 } else { left.1 };
            if let Some(name) = path.strip_prefix("config.") {
                patch = self.config_type(name, known, other).or(patch);
            }
            declared.push((self.check.place(span), text));
        }
        let at = self.place(right.0.span);
        let labels = (self.place(left.0.span), left.1.kind.word());
        let mut diagnostic =
            Diagnostic::unlike(at, message, right.1.kind.word(), labels, declared, why);
        diagnostic.patch = patch;
        self.say(diagnostic);
    }

    /// Returns a patch that adds the missing `type` of a config value which is compared with a number.
    fn config_type(&self, name: &str, known: &Known, other: &Known) -> Option<super::super::Patch> {
        let config = self.check.written.config.get(name)?;
        let node = config.0;
        let wanted = matches!(other.kind, Kind::Integer | Kind::Number).then_some("number")?;
        if config.ty().is_some() || known.kind != Kind::Text {
            return None;
        }
        let (first, _) = node.entries().first()?;
        let source = &self.check.sources;
        let flow = source
            .text(node.span)
            .is_some_and(|text| text.starts_with('{'));
        let mut start = first.span;
        start.end = start.start;
        let place = source.place(start)?;
        let separator = if flow {
            ", ".to_owned()
        } else {
            format!("\n{}", " ".repeat(place.position().1 - 1))
        };
        let mut changes = vec![(place, format!("type: {wanted}{separator}"))];
        let default = config.default().map(|default| default.0);
        let default = default.and_then(|node| Some((node, node.scalar()?)));
        if let Some((node, scalar)) = default {
            let number = matches!(
                super::super::source::plain(&scalar.text),
                Some(
                    super::super::source::Kind::Integer(_) | super::super::source::Kind::Number(_)
                )
            );
            if number {
                changes.push((source.place(node.span)?, scalar.text.to_string()));
            }
        }
        Some(super::super::Patch {
            title: "declare the type".to_owned(),
            changes,
        })
    }

    pub(super) fn filter(
        &mut self,
        name: &str,
        of: Option<&Node>,
        args: &ast::Args,
        facts: &Facts,
    ) -> Known {
        self.args(args, facts);
        let Some(of) = of else {
            return Known::of(Kind::Text);
        };
        let known = self.node(of, facts);
        if matches!(name, "default" | "d") {
            self.truth(&known, of);
            let fallback = args.positional.first();
            let fallback = fallback.map_or(Known::of(Kind::Text), |node| self.node(node, facts));
            let input = Known {
                optional: false,
                ..known
            };
            return input.or(fallback);
        }
        let Some(known) = self.usable(known, of) else {
            return Known::any();
        };
        let family = known.kind.family();
        let wanted = match name {
            "cents" | "abs" | "round" => Some((Family::Number, "a number")),
            "length" | "count" | "first" | "last" if family == Some(Family::Number) => {
                Some((Family::List, "a list or text"))
            }
            "length" | "count" | "first" | "last" if family == Some(Family::Boolean) => {
                Some((Family::List, "a list or text"))
            }
            "join" | "sum" => Some((Family::List, "a list")),
            "upper" | "lower" | "trim" | "title" | "capitalize" | "split" | "replace" => {
                Some((Family::Text, "text"))
            }
            _ => None,
        };
        if let (Some((wanted, words)), Some(family)) = (wanted, family) {
            let text_joins = name == "join" && family == Family::Text;
            if family != wanted && !text_joins {
                let at = self.place(of.span);
                let found = with_article(known.kind.word());
                self.say(Diagnostic::operand(at, &format!("| {name}"), words, &found));
            } else if name == "cents" && known.kind == Kind::Number {
                let at = self.place(of.span);
                self.say(Diagnostic::operand(at, "| cents", "an integer", "a number"));
            }
        }
        let kind = match name {
            "length" | "count" | "int" => Kind::Integer,
            "float" => Kind::Number,

            "close" | "bool" => Kind::Boolean,
            "cents" | "join" | "upper" | "lower" | "trim" | "title" | "capitalize" | "replace"
            | "string" | "tojson" | "urlencode" | "indent" | "raw" | "safe" | "escape" | "e" => {
                Kind::Text
            }
            "first" | "last" | "min" | "max" => match &known.kind {
                Kind::List(item) => (**item).clone(),
                _ => Kind::Any,
            },
            "abs" | "round" | "sort" | "reverse" | "unique" | "select" | "reject"
            | "selectattr" | "rejectattr" => known.kind.clone(),
            "split" | "lines" => Kind::List(Box::new(Kind::Text)),
            _ => Kind::Any,
        };
        Known {
            optional: known.optional,
            ..Known::of(kind)
        }
    }

    pub(super) fn test(
        &mut self,
        name: &str,
        of: &Node,
        args: &ast::Args,
        facts: &Facts,
        node: &Node,
    ) -> Known {
        self.args(args, facts);
        let known = self.node(of, facts);
        match name {
            "none" => {}
            "defined" | "undefined" => {
                let path = known.path.clone();
                let declared = path
                    .as_deref()
                    .is_some_and(|path| known.kind != Kind::Any || path.matches('.').count() == 1);
                if let Some(path) = path.filter(|_| declared) {
                    let at = self.place(node.span);
                    self.say(Diagnostic::is_defined(at, &path));
                }
            }
            _ => self.used(&known, of),
        }
        Known::of(Kind::Boolean)
    }
}

fn plural(kind: &Kind) -> &'static str {
    match kind.family() {
        Some(Family::Boolean) => "booleans",
        Some(Family::Number) => "numbers",
        Some(Family::Text) => "texts",
        Some(Family::List) => "lists",
        Some(Family::Object) => "objects",
        Some(Family::Secret) => "secrets",
        None => "values",
    }
}

/// Returns the operator that means the same with its sides exchanged.
fn turned(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        CompareOp::Eq | CompareOp::Ne | CompareOp::In | CompareOp::NotIn => op,
    }
}

/// Returns the least and the greatest value of a type of numbers.
fn bounds(kind: &TypeKind) -> (Option<f64>, Option<f64>) {
    match kind {
        TypeKind::Integer { minimum, maximum } | TypeKind::Number { minimum, maximum } => {
            let of = |bound: &Option<Number>| bound.as_ref().and_then(Number::as_f64);
            (of(minimum), of(maximum))
        }
        _ => (None, None),
    }
}

//! Types of expressions: unlike kinds, optionals that were not asked for, secrets, undeclared paths.
//!
//! Conditions are strict: an optional must be narrowed before it is used. Templates and `outcome` are lenient: a path
//! through an unset optional is none there.

use super::super::diagnostic::{Diagnostic, Place, near};
use super::super::shape::{list_of, with_article};
use super::super::site::{Args, Code, Site, Wants};
use super::super::source::Span;
use super::Check;
use super::kind::{Family, Kind, Known};
use super::names::Root;
use crate::expression::ast::{self, BinaryOp, CompareOp, Node, NodeKind, Stmt, StmtKind, Target};
use crate::ids::Name;
use crate::network::Type;
use std::collections::BTreeSet;

/// Paths that are known not to be none.
type Facts = BTreeSet<String>;

impl Check<'_> {
    pub(super) fn expressions(&mut self) {
        let lowered = self.lowered;
        for site in &lowered.sites {
            if site.scope.item.is_some_and(|item| self.is_broken(item)) {
                continue;
            }
            let mut walker = Walker {
                strict: site.wants == Wants::Condition,
                check: self,
                site,
                locals: Vec::new(),
            };
            walker.site();
        }
    }
}

struct Walker<'a, 'b> {
    check: &'a mut Check<'b>,
    site: &'a Site,
    strict: bool,
    locals: Vec<(Name, Known)>,
}

impl Walker<'_, '_> {
    fn site(&mut self) {
        match &self.site.code {
            Code::Expr(expr) => {
                let known = self.node(expr.node(), &Facts::new());
                if self.strict {
                    self.condition(&known, expr.node());
                }
            }
            Code::Template(template) => {
                if let (Wants::Fits(ty, what, declared), Some(node)) =
                    (&self.site.wants, template.single())
                {
                    let known = self.node(node, &Facts::new());
                    return self.fits(&known, node, ty, what, *declared);
                }
                self.body(template.body(), &mut Facts::new());
                if let Wants::Fits(ty, what, declared) = &self.site.wants {
                    let text = Known::of(Kind::Text);
                    self.text_fits(&text, ty, what, *declared);
                }
            }
        }
    }

    fn span(&self, span: ast::Span) -> Span {
        self.check.sources.locate(&self.site.node, span.range())
    }
    fn place(&self, span: ast::Span) -> Option<Place> {
        self.check.place(self.span(span))
    }
    fn say(&mut self, diagnostic: Diagnostic) {
        self.check.say(diagnostic);
    }
    fn source(&self) -> &str {
        match &self.site.code {
            Code::Expr(expr) => &expr.source,
            Code::Template(template) => &template.source,
        }
    }
    fn part(&self, node: &Node) -> String {
        let text = self.source().get(node.span.range()).unwrap_or_default();
        text.trim().to_owned()
    }

    /// What a condition may be.
    fn condition(&mut self, known: &Known, node: &Node) {
        let wrong = match known.kind.family() {
            None => known.kind == Kind::None,
            Some(Family::Secret) => return self.secret(known, node),
            Some(family) => family != Family::Boolean,
        };
        if wrong {
            let at = self.place(node.span);
            let found = with_article(known.kind.word());
            self.say(Diagnostic::no_condition(at, &found));
        } else if known.optional && self.strict {
            self.narrow(known, node);
        }
    }

    fn fits(&mut self, known: &Known, node: &Node, ty: &Type, what: &str, declared: Span) {
        if known.kind == Kind::None {
            if !ty.optional {
                let (at, declared) = (self.place(node.span), self.check.place(declared));
                let diagnostic =
                    Diagnostic::misfit(at, &format!("`{what}` must not be none"), declared);
                self.say(diagnostic);
            }
            return;
        }
        self.text_fits(known, ty, what, declared);
    }

    fn text_fits(&mut self, known: &Known, ty: &Type, what: &str, declared: Span) {
        let wanted = Kind::of(ty);
        let (Some(is), Some(family)) = (known.kind.family(), wanted.family()) else {
            return;
        };
        // a secret is written by a text, which is sealed on the way
        let sealed = family == Family::Secret && matches!(is, Family::Text | Family::Secret);
        if is != family && !sealed {
            let (at, declared) = (
                self.check.place(self.site.node.span),
                self.check.place(declared),
            );
            let (is, wanted) = (with_article(known.kind.word()), with_article(wanted.word()));
            let message = format!("{is} does not fit `{what}`, which is {wanted}");
            self.say(Diagnostic::misfit(at, &message, declared));
        }
    }

    // --- templates

    fn body(&mut self, body: &[Stmt], facts: &mut Facts) {
        for stmt in body {
            self.stmt(stmt, facts);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, facts: &mut Facts) {
        match &stmt.kind {
            StmtKind::Text(_) | StmtKind::Break | StmtKind::Continue => {}
            StmtKind::Emit(node) => {
                let known = self.node(node, facts);
                self.shown(&known, node);
            }
            StmtKind::If {
                test,
                then,
                otherwise,
            } => {
                let known = self.node(test, facts);
                self.truth(&known, test);
                let (mut yes, mut no) = (facts.clone(), facts.clone());
                yes.extend(self.learnt(test, true));
                no.extend(self.learnt(test, false));
                self.body(then, &mut yes);
                self.body(otherwise, &mut no);
            }
            StmtKind::For {
                target,
                over,
                filter,
                body,
                otherwise,
            } => {
                let known = self.node(over, facts);
                let item = match known.kind {
                    Kind::List(item) => Known::of(*item),
                    Kind::Fields(_) | Kind::Object => Known::of(Kind::Text),
                    Kind::Any | Kind::None => Known::any(),
                    Kind::Secret => return self.secret(&known, over),
                    ref kind => {
                        let at = self.place(over.span);
                        let found = with_article(kind.word());
                        return self.say(Diagnostic::operand(at, "for", "a list", &found));
                    }
                };
                let depth = self.locals.len();
                self.locals.push(("loop".into(), Known::any()));
                self.bind(target, item);
                if let Some(filter) = filter {
                    let known = self.node(filter, facts);
                    self.truth(&known, filter);
                }
                self.body(body, &mut facts.clone());
                self.locals.truncate(depth);
                self.body(otherwise, &mut facts.clone());
            }
            StmtKind::With { bind, body } => {
                let depth = self.locals.len();
                for (target, value) in bind {
                    let known = self.node(value, facts);
                    self.bind(target, known);
                }
                self.body(body, &mut facts.clone());
                self.locals.truncate(depth);
            }
            StmtKind::Set { target, value } => {
                let known = self.node(value, facts);
                self.bind(target, known);
            }
            StmtKind::SetBlock { target, body, .. } => {
                self.body(body, &mut facts.clone());
                self.bind(target, Known::of(Kind::Text));
            }
            StmtKind::FilterBlock { body, .. } => self.body(body, &mut facts.clone()),
        }
    }

    fn bind(&mut self, target: &Target, known: Known) {
        match target {
            Target::Name(name, _) => {
                let known = Known {
                    path: None,
                    ..known
                };
                self.locals.push((name.clone(), known));
            }
            Target::List(targets) => {
                for target in targets {
                    self.bind(target, Known::any());
                }
            }
        }
    }

    /// What is put into a text.
    fn shown(&mut self, known: &Known, node: &Node) {
        if known.kind == Kind::Secret {
            self.secret(known, node);
        }
        let volatile = self.site.wants == Wants::Prefix
            && known.path.as_deref().is_some_and(|path| {
                path.starts_with("state.") || path.starts_with("now") || path.starts_with("calls.")
            });
        if volatile {
            let at = self.place(node.span);
            let path = known.path.clone().unwrap_or_default();
            self.say(Diagnostic::dynamic_prefix(at, &path));
        }
    }

    // --- expressions

    fn node(&mut self, node: &Node, facts: &Facts) -> Known {
        match &node.kind {
            NodeKind::Const(value) => Known::of(constant(value)),
            NodeKind::Var(_) | NodeKind::Attr { .. } | NodeKind::Item { .. } => {
                self.path(node, facts)
            }
            NodeKind::Slice { of, .. } => {
                let known = self.node(of, facts);
                self.used(&known, of);
                Known::of(known.kind)
            }
            NodeKind::Not(of) => {
                let known = self.node(of, facts);
                self.truth(&known, of);
                Known::of(Kind::Boolean)
            }
            NodeKind::Neg(of) => {
                let known = self.node(of, facts);
                self.number(&known, of, "-");
                Known::of(known.kind)
            }
            NodeKind::And(left, right) => {
                let known = self.node(left, facts);
                self.truth(&known, left);
                let mut facts = facts.clone();
                facts.extend(self.learnt(left, true));
                let other = self.node(right, &facts);
                self.logical(known, other)
            }
            NodeKind::Or(left, right) => {
                let known = self.node(left, facts);
                self.truth(&known, left);
                let mut facts = facts.clone();
                facts.extend(self.learnt(left, false));
                let other = self.node(right, &facts);
                // what is unset is false, so the left side is there where it is taken
                let left = Known {
                    optional: false,
                    ..known
                };
                self.logical(left, other)
            }
            NodeKind::Binary { op, left, right } => self.binary(*op, left, right, facts),
            NodeKind::Compare { first, rest } => {
                let mut left = (&**first, self.node(first, facts));
                for (op, right) in rest {
                    let known = self.node(right, facts);
                    self.compare(*op, &left, (right, &known));
                    left = (right, known);
                }
                Known::of(Kind::Boolean)
            }
            NodeKind::If {
                test,
                then,
                otherwise,
            } => {
                let known = self.node(test, facts);
                self.truth(&known, test);
                let (mut yes, mut no) = (facts.clone(), facts.clone());
                yes.extend(self.learnt(test, true));
                no.extend(self.learnt(test, false));
                let then = self.node(then, &yes);
                match otherwise {
                    Some(otherwise) => then.or(self.node(otherwise, &no)),
                    None => then.or(Known::of(Kind::None)),
                }
            }
            NodeKind::Filter { name, of, args, .. } => {
                self.filter(name, of.as_deref(), args, facts)
            }
            NodeKind::Test { name, of, args, .. } => self.test(name, of, args, facts, node),
            NodeKind::Call { name, args } => {
                self.args(args, facts);
                match &**name {
                    "range" => Known::of(Kind::List(Box::new(Kind::Integer))),
                    _ => Known::of(Kind::Object),
                }
            }
            NodeKind::List(items) => {
                let items: Vec<Known> = items.iter().map(|node| self.node(node, facts)).collect();
                let item = items.into_iter().reduce(Known::or);
                Known::of(Kind::List(Box::new(
                    item.map_or(Kind::Any, |item| item.kind),
                )))
            }
            NodeKind::Map(items) => {
                for (_, value) in items {
                    self.node(value, facts);
                }
                Known::of(Kind::Object)
            }
        }
    }

    fn args(&mut self, args: &ast::Args, facts: &Facts) {
        for node in args
            .positional
            .iter()
            .chain(args.named.iter().map(|(_, node)| node))
        {
            self.node(node, facts);
        }
    }

    /// `a and b`, `a or b`: one of both.
    fn logical(&self, left: Known, right: Known) -> Known {
        left.or(right)
    }

    /// A name with fields and keys.
    fn path(&mut self, node: &Node, facts: &Facts) -> Known {
        let mut steps: Vec<&Node> = Vec::new();
        let mut at = node;
        while let NodeKind::Attr { of, .. } | NodeKind::Item { of, .. } = &at.kind {
            steps.push(at);
            at = of;
        }
        steps.reverse();
        let (mut known, used) = match &at.kind {
            NodeKind::Var(name) => match self.local(name) {
                Some(known) => (known, 0),
                None => {
                    let field = steps.first().and_then(|step| field_name(step));
                    let field_span = steps.first().map_or(at.span, |step| tail(step));
                    let spans = (self.span(at.span), self.span(field_span));
                    match self
                        .check
                        .root(&self.site.scope, name, field.as_deref(), spans)
                    {
                        Root::Known(known, used) => {
                            let path = match field.filter(|_| used == 1) {
                                Some(field) => format!("{name}.{field}"),
                                None => name.to_string(),
                            };
                            let path = Some(path);
                            (self.transported(Known { path, ..known }, facts), used)
                        }
                        Root::Wrong => {
                            self.keys(&steps, facts);
                            return Known::any();
                        }
                    }
                }
            },
            _ => (self.node(at, facts), 0),
        };
        let mut of = if used == 1 { steps[0] } else { at };
        for step in &steps[used.min(steps.len())..] {
            known = self.step(known, of, step, facts);
            of = step;
        }
        known
    }

    /// A secret resolves where it is transported; what was asked for is there.
    fn transported(&self, mut known: Known, facts: &Facts) -> Known {
        if known.kind == Kind::Secret && self.site.scope.transport {
            known.kind = Kind::Text;
        }
        if known.path.as_ref().is_some_and(|path| facts.contains(path)) {
            known.optional = false;
        }
        known
    }

    fn local(&self, name: &str) -> Option<Known> {
        let mut locals = self.locals.iter().rev();
        locals
            .find(|(known, _)| &**known == name)
            .map(|(_, known)| known.clone())
    }

    fn keys(&mut self, steps: &[&Node], facts: &Facts) {
        for step in steps {
            if let NodeKind::Item { key, .. } = &step.kind {
                self.node(key, facts);
            }
        }
    }

    /// One field or element of a value.
    fn step(&mut self, known: Known, of: &Node, step: &Node, facts: &Facts) -> Known {
        let key = match &step.kind {
            NodeKind::Item { key, .. } => Some(self.node(key, facts)),
            _ => None,
        };
        let name = field_name(step);
        let Some(known) = self.usable(known, of) else {
            return Known::any();
        };
        let path = match (&known.path, &name) {
            (Some(path), Some(name)) => Some(format!("{path}.{name}")),
            _ => None,
        };
        let optional = known.optional;
        let found = match (&known.kind, &name) {
            (Kind::Fields(fields), Some(name)) => {
                match fields.iter().find(|(field, ..)| **field == **name) {
                    Some((_, kind, may)) => Known {
                        kind: kind.clone(),
                        optional: optional || *may,
                        path,
                        declared: known.declared.or_else(|| self.parameter(&known, name)),
                    },
                    None => {
                        let names = || fields.iter().map(|(name, ..)| &**name);
                        let (near, all) = (near(name, names()), list_of(names()));
                        let at = self.place(tail(step));
                        let of = self.part(of);
                        self.say(Diagnostic::unknown_field(at, &of, name, near, &all));
                        return Known::any();
                    }
                }
            }
            (Kind::List(item), None) => Known::of((**item).clone()),
            (Kind::Any | Kind::Object | Kind::None, _) | (Kind::Fields(_), None) => Known {
                path,
                ..Known::any()
            },
            (Kind::Text | Kind::Words(_), None)
                if key
                    .as_ref()
                    .is_some_and(|key| key.kind.family() != Some(Family::Text)) =>
            {
                Known::of(Kind::Text)
            }
            (kind, _) => {
                let at = self.place(tail(step));
                let is = with_article(kind.word());
                let length = name.as_deref() == Some("length");
                let part = self.part(of);
                self.say(Diagnostic::no_fields(at, &part, &is, length));
                return Known::any();
            }
        };
        self.transported(found, facts)
    }

    fn parameter(&self, known: &Known, name: &str) -> Option<Span> {
        let args = &self.site.scope.args;
        let is_args = known.path.as_deref() == Some("args") && *args != Args::None;
        is_args
            .then(|| self.check.parameter_span(args, name))
            .flatten()
    }

    /// What a field, filter or operator may be applied to. None where that was said to be wrong.
    fn usable(&mut self, known: Known, node: &Node) -> Option<Known> {
        if known.kind == Kind::Secret {
            self.secret(&known, node);
            return None;
        }
        if known.optional && self.strict {
            self.narrow(&known, node);
            return Some(Known {
                optional: false,
                ..known
            });
        }
        Some(known)
    }

    fn used(&mut self, known: &Known, node: &Node) {
        self.usable(known.clone(), node);
    }

    /// What is asked whether it is true.
    fn truth(&mut self, known: &Known, node: &Node) {
        if known.kind == Kind::Secret {
            self.secret(known, node);
        }
    }

    fn secret(&mut self, known: &Known, node: &Node) {
        let path = known.path.clone().unwrap_or_else(|| self.part(node));
        let at = self.place(node.span);
        self.say(Diagnostic::on_secret(at, &path));
    }

    fn narrow(&mut self, known: &Known, node: &Node) {
        let path = known.path.clone().unwrap_or_else(|| self.part(node));
        let at = self.place(node.span);
        let declared = known.declared.and_then(|span| self.check.place(span));
        // in front of the whole expression, where that keeps its meaning
        let insert = match &self.site.code {
            Code::Expr(expr) if known.path.is_some() => match &expr.node().kind {
                NodeKind::Or(..) | NodeKind::If { .. } => None,
                _ => {
                    let start = expr.node().span.start;
                    self.place(ast::Span { start, end: start })
                }
            },
            _ => None,
        };
        self.say(Diagnostic::not_narrowed(at, &path, declared, insert));
    }

    fn number(&mut self, known: &Known, node: &Node, operator: &str) {
        self.used(known, node);
        let family = known.kind.family();
        if family.is_some_and(|family| !matches!(family, Family::Number | Family::Secret)) {
            let at = self.place(node.span);
            let found = with_article(known.kind.word());
            self.say(Diagnostic::operand(at, operator, "a number", &found));
        }
    }

    fn binary(&mut self, op: BinaryOp, left: &Node, right: &Node, facts: &Facts) -> Known {
        let (a, b) = (self.node(left, facts), self.node(right, facts));
        match op {
            BinaryOp::Concat => {
                for (known, node) in [(&a, left), (&b, right)] {
                    self.used(known, node);
                }
                Known::of(Kind::Text)
            }
            BinaryOp::Add => {
                self.used(&a, left);
                self.used(&b, right);
                let (Some(x), Some(y)) = (a.kind.family(), b.kind.family()) else {
                    return Known::any();
                };
                if x == Family::Secret || y == Family::Secret {
                    return Known::any();
                }
                if x != y {
                    let message = format!("{} is added to {}", y.words(), x.words());
                    self.unlike(message, (left, &a), (right, &b), true);
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

    fn compare(&mut self, op: CompareOp, left: &(&Node, Known), right: (&Node, &Known)) {
        let ((a, x), (b, y)) = ((left.0, &left.1), right);
        let equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
        let with_none = x.kind == Kind::None || y.kind == Kind::None;
        if equality && with_none {
            for (known, node) in [(x, a), (y, b)] {
                self.truth(known, node);
            }
            return;
        }
        let mut usable = true;
        for (known, node) in [(x, a), (y, b)] {
            // equality with an unset optional has a meaning; it is still asked for, as rule 3 says
            usable &= known.kind != Kind::Secret;
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
            return self.unlike(message, (a, x), (b, y), !equality);
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
        if equality {
            self.one_of_words((a, x), (b, y));
            self.one_of_words((b, y), (a, x));
        }
    }

    /// A constant that an enumeration never is.
    fn one_of_words(&mut self, (_, of): (&Node, &Known), (node, _): (&Node, &Known)) {
        let (Kind::Words(words), NodeKind::Const(value)) = (&of.kind, &node.kind) else {
            return;
        };
        let Some(word) = value.as_str() else {
            return;
        };
        if !words.iter().any(|known| known == word) {
            let near = near(word, words.iter().map(String::as_str));
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
            self.unlike(message, (a, x), (b, y), false);
        }
    }

    fn unlike(
        &mut self,
        message: String,
        left: (&Node, &Known),
        right: (&Node, &Known),
        ordered: bool,
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
            Diagnostic::unlike(at, message, right.1.kind.word(), labels, declared, ordered);
        diagnostic.patch = patch;
        self.say(diagnostic);
    }

    /// Help for a config value whose type was never written.
    fn config_type(&self, name: &str, known: &Known, other: &Known) -> Option<super::super::Patch> {
        let config = self.check.merged.section("config").iter();
        let (_, node) = config.rev().find(|(key, _)| &*key.name == name)?;
        let wanted = matches!(other.kind, Kind::Integer | Kind::Number).then_some("number")?;
        if node.get("type").is_some() || known.kind != Kind::Text {
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
        let default = node
            .get("default")
            .and_then(|node| Some((node, node.scalar()?)));
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

    fn filter(&mut self, name: &str, of: Option<&Node>, args: &ast::Args, facts: &Facts) -> Known {
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
        let kind =
            match name {
                "length" | "count" | "int" => Kind::Integer,
                "float" => Kind::Number,
                "abs" | "round" => known.kind.clone(),
                "close" | "bool" => Kind::Boolean,
                "cents" | "join" | "upper" | "lower" | "trim" | "title" | "capitalize"
                | "replace" | "string" | "tojson" | "urlencode" | "indent" | "raw" | "safe"
                | "escape" | "e" => Kind::Text,
                "first" | "last" | "min" | "max" => match &known.kind {
                    Kind::List(item) => (**item).clone(),
                    _ => Kind::Any,
                },
                "sort" | "reverse" | "unique" | "select" | "reject" | "selectattr"
                | "rejectattr" => known.kind.clone(),
                "split" | "lines" => Kind::List(Box::new(Kind::Text)),
                _ => Kind::Any,
            };
        Known {
            optional: known.optional,
            ..Known::of(kind)
        }
    }

    fn test(
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

    /// Paths that are not none where a condition holds, or where it does not.
    fn learnt(&self, node: &Node, holds: bool) -> Facts {
        match &node.kind {
            NodeKind::Not(of) => self.learnt(of, !holds),
            NodeKind::And(left, right) | NodeKind::Or(left, right) => {
                let (a, b) = (self.learnt(left, holds), self.learnt(right, holds));
                let both = matches!(&node.kind, NodeKind::And(..)) == holds;
                if both {
                    a.union(&b).cloned().collect()
                } else {
                    a.intersection(&b).cloned().collect()
                }
            }
            NodeKind::Test { name, of, .. } if &**name == "none" && !holds => path_of(of),
            NodeKind::Compare { first, rest } => match rest.as_slice() {
                [(op, second)] => {
                    let differs = (*op == CompareOp::Ne) == holds
                        && matches!(op, CompareOp::Eq | CompareOp::Ne);
                    match (first.kind.is_none(), second.kind.is_none()) {
                        (false, true) if differs => path_of(first),
                        (true, false) if differs => path_of(second),
                        _ => Facts::new(),
                    }
                }
                _ => Facts::new(),
            },
            NodeKind::Var(_) | NodeKind::Attr { .. } | NodeKind::Item { .. } if holds => {
                path_of(node)
            }
            _ => Facts::new(),
        }
    }
}

/// The path that a node is, and those on the way to it.
fn path_of(node: &Node) -> Facts {
    let mut facts = Facts::new();
    let mut whole = String::new();
    for part in node.path().unwrap_or_default() {
        if !whole.is_empty() {
            whole.push('.');
        }
        whole.push_str(&part);
        facts.insert(whole.clone());
    }
    facts
}

/// The name of a field, where a step names one.
fn field_name(step: &Node) -> Option<String> {
    match &step.kind {
        NodeKind::Attr { name, .. } => Some(name.to_string()),
        NodeKind::Item { key, .. } => match &key.kind {
            NodeKind::Const(value) => value.as_str().map(str::to_owned),
            _ => None,
        },
        _ => None,
    }
}

/// The part of a step behind what it is a step of.
fn tail(step: &Node) -> ast::Span {
    match &step.kind {
        NodeKind::Attr { name, .. } => ast::Span {
            start: step.span.end.saturating_sub(name.len() as u32),
            end: step.span.end,
        },
        NodeKind::Item { key, .. } => key.span,
        _ => step.span,
    }
}

fn constant(value: &minijinja::Value) -> Kind {
    use minijinja::value::ValueKind;
    match value.kind() {
        ValueKind::None => Kind::None,
        ValueKind::Bool => Kind::Boolean,
        ValueKind::Number if value.is_integer() => Kind::Integer,
        ValueKind::Number => Kind::Number,
        ValueKind::String => Kind::Text,
        ValueKind::Seq => {
            let items = value.try_iter().into_iter().flatten();
            let kinds = items.map(|item| Known::of(constant(&item)));
            let item = kinds.reduce(Known::or).map_or(Kind::Any, |item| item.kind);
            Kind::List(Box::new(item))
        }
        ValueKind::Map => Kind::Object,
        _ => Kind::Any,
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

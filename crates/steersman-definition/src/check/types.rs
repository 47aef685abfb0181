//! Type checks of expressions: unlike kinds, optionals that were not narrowed, secrets, undeclared paths.
//!
//! Conditions are strict: an optional must be narrowed before it is used. Templates and `outcome` are lenient: a path
//! through an unset optional is none there.

use super::super::diagnostic::{Diagnostic, Place};
use super::super::shape::{list_of, with_article};
use super::super::site::{Args, Code, Site, Wants};
use super::super::source::{Locator, Span};
use super::Check;
use super::kind::{Family, Kind, Known};
use super::names::Root;
use std::collections::BTreeSet;
use steersman_machine::network::{AgentDef, Offer};
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::ast;
use steersman_machine::values::expression::ast::{
    CompareOp, Node, NodeKind, Stmt, StmtKind, Target,
};
use steersman_machine::values::types::Type;

/// Paths that are known not to be none.
pub(super) type Facts = BTreeSet<String>;

impl Check<'_> {
    pub(super) fn expressions(&mut self) {
        let lowered = self.lowered;
        for site in &lowered.facts.sites {
            if site.scope.item.is_some_and(|item| self.is_broken(item)) {
                continue;
            }
            let mut walker = Walker {
                strict: site.wants == Wants::Condition,
                check: self,
                site,
                locals: Vec::new(),
                volatile: BTreeSet::new(),
                places: std::cell::OnceCell::new(),
            };
            walker.site();
        }
    }
}

pub(super) struct Walker<'a, 'b> {
    pub(super) check: &'a mut Check<'b>,
    site: &'a Site,
    strict: bool,
    locals: Vec<(Name, Known)>,
    /// Paths that were reported as volatile in this text: once is enough.
    volatile: BTreeSet<String>,
    /// Maps ranges of the site's text to its file; built at the first diagnostic.
    places: std::cell::OnceCell<Locator<'b>>,
}

impl Walker<'_, '_> {
    fn site(&mut self) {
        match &self.site.code {
            Code::Expr(expr) => {
                let known = self.node(expr.node(), &Facts::new());
                if self.strict {
                    self.condition(&known, expr.node());
                }
                if self.site.wants == Wants::Worth {
                    self.worth(&known, expr.node());
                }
            }
            Code::Template(template) => {
                if let (Wants::Fits(ty, what, declared), Some(node)) =
                    (&self.site.wants, template.single())
                {
                    let known = self.node(node, &Facts::new());
                    return self.fits(&known, node, ty, what, *declared);
                }
                if let (Wants::Value | Wants::Fixed(..), Some(node)) =
                    (&self.site.wants, template.single())
                {
                    let known = self.node(node, &Facts::new());
                    self.shown(&known, node);
                    if let Some(path) = known.path.filter(|_| known.optional) {
                        let at = self.place(node.span);
                        match &self.site.wants {
                            Wants::Fixed(of, name, true) => {
                                let why = format!("`{of}` needs `{name}`");
                                self.call_fails(at, of, &path, &why);
                            }
                            _ => self.say(Diagnostic::left_out(at, &path)),
                        }
                    }
                    return;
                }
                self.body(template.body(), &mut Facts::new());
                if let Wants::Fits(ty, what, declared) = &self.site.wants {
                    let text = Known::of(Kind::Text);
                    self.text_fits(&text, ty, what, *declared);
                }
            }
        }
    }

    /// Returns the meaning of `args` at the site.
    pub(super) fn args_of_site(&self) -> &Args {
        &self.site.scope.args
    }
    pub(super) fn span(&self, span: ast::Span) -> Span {
        let sources = self.check.sources;
        let places = self.places.get_or_init(|| sources.locator(&self.site.node));
        places.at(span.range())
    }
    pub(super) fn place(&self, span: ast::Span) -> Option<Place> {
        self.check.place(self.span(span))
    }
    pub(super) fn say(&mut self, diagnostic: Diagnostic) {
        self.check.say(diagnostic);
    }
    fn source(&self) -> &str {
        match &self.site.code {
            Code::Expr(expr) => &expr.source,
            Code::Template(template) => &template.source,
        }
    }
    pub(super) fn part(&self, node: &Node) -> String {
        let text = self.source().get(node.span.range()).unwrap_or_default();
        text.trim().to_owned()
    }

    /// Reports a branch's score that is neither a number nor a boolean.
    fn worth(&mut self, known: &Known, node: &Node) {
        let wrong = match known.kind.family() {
            None => known.kind == Kind::None,
            Some(Family::Secret) => return self.secret(known, node),
            Some(family) => !matches!(family, Family::Number | Family::Boolean),
        };
        if wrong {
            let at = self.place(node.span);
            let found = with_article(known.kind.word());
            self.say(Diagnostic::no_worth(at, &found));
        }
    }

    /// Reports a condition that is not a boolean, or is an optional that was not narrowed.
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
        // a text may be written to a secret, because the write seals it
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
                yes.extend(narrowed(test, true));
                no.extend(narrowed(test, false));
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

    /// Reports secrets that are rendered into text, and volatile values in the stable part of a prompt.
    fn shown(&mut self, known: &Known, node: &Node) {
        if known.kind == Kind::Secret {
            self.secret(known, node);
        }
        let Some(path) = known.path.clone() else {
            return;
        };
        let at = self.place(node.span);
        let is_clock = path.starts_with("now");
        if self.volatile.contains(&path) {
            return;
        }
        match self.site.wants {
            Wants::Prefix
                if is_clock || path.starts_with("state.") || path.starts_with("calls.") =>
            {
                self.volatile.insert(path.clone());
                self.say(Diagnostic::dynamic_prefix(at, &path));
            }
            Wants::History if is_clock => {
                self.volatile.insert(path.clone());
                self.say(Diagnostic::dynamic_history(at, &path));
            }
            _ => {}
        }
    }

    // --- expressions

    pub(super) fn node(&mut self, node: &Node, facts: &Facts) -> Known {
        match &node.kind {
            NodeKind::Const(value) => Known::of(constant(value)),
            NodeKind::Var(_) | NodeKind::Attr { .. } | NodeKind::Item { .. } => {
                self.path(node, facts)
            }
            NodeKind::Slice {
                of,
                start,
                stop,
                step,
            } => {
                let known = self.node(of, facts);
                self.used(&known, of);
                for bound in [start, stop, step].into_iter().flatten() {
                    self.node(bound, facts);
                }
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
                facts.extend(narrowed(left, true));
                let other = self.node(right, &facts);
                known.or(other)
            }
            NodeKind::Or(left, right) => {
                let known = self.node(left, facts);
                self.truth(&known, left);
                let mut facts = facts.clone();
                facts.extend(narrowed(left, false));
                let other = self.node(right, &facts);
                // an unset value counts as false, so a result that comes from the left side is set
                let left = Known {
                    optional: false,
                    ..known
                };
                left.or(other)
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
                yes.extend(narrowed(test, true));
                no.extend(narrowed(test, false));
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
                for (key, value) in items {
                    self.node(key, facts);
                    self.node(value, facts);
                }
                Known::of(Kind::Object)
            }
        }
    }

    pub(super) fn args(&mut self, args: &ast::Args, facts: &Facts) {
        for node in args
            .positional
            .iter()
            .chain(args.named.iter().map(|(_, node)| node))
        {
            self.node(node, facts);
        }
    }

    /// Infers the type of a name followed by fields and keys.
    fn path(&mut self, node: &Node, facts: &Facts) -> Known {
        let mut steps: Vec<&Node> = Vec::new();
        let mut at = node;
        while let NodeKind::Attr { of, .. } | NodeKind::Item { of, .. } = &at.kind {
            steps.push(at);
            at = of;
        }
        steps.reverse();
        let (mut known, used) = match &at.kind {
            NodeKind::Var(name) => {
                let found = self.named(name, at, steps.first().copied(), facts);
                let Some(found) = found else {
                    self.keys(&steps, facts);
                    return Known::any();
                };
                found
            }
            _ => (self.node(at, facts), 0),
        };
        let mut of = if used == 1 { steps[0] } else { at };
        for step in &steps[used.min(steps.len())..] {
            known = self.step(known, of, step, facts);
            of = step;
        }
        known
    }

    /// Resolves a name. Entries of `state`, `config`, `secrets` and `calls` are resolved together with the name: the number is 1
    /// then, else 0. Returns `None` if a diagnostic was reported.
    fn named(
        &mut self,
        name: &Name,
        at: &Node,
        first: Option<&Node>,
        facts: &Facts,
    ) -> Option<(Known, usize)> {
        if let Some(known) = self.local(name) {
            return Some((known, 0));
        }
        let field = first.and_then(field_name);
        let spans = (self.span(at.span), self.span(first.map_or(at.span, tail)));
        let scope = &self.site.scope;
        match self.check.root(scope, name, field.as_deref(), spans) {
            Root::Known(known, used) => {
                let path = match field.filter(|_| used == 1) {
                    Some(field) => format!("{name}.{field}"),
                    None => name.to_string(),
                };
                let path = Some(path);
                Some((self.transported(Known { path, ..known }, facts), used))
            }
            Root::Wrong => None,
        }
    }

    /// Adjusts a type to its site: in a transport field a secret is text, and a path that `facts` holds is not optional.
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

    /// Infers the type of one field or element of a value.
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
                let found = fields.iter().find(|(field, ..)| **field == **name);
                let Some((_, kind, may)) = found else {
                    let names = || fields.iter().map(|(name, ..)| &**name);
                    let (near, all) = (self.check.sources.near(name, names()), list_of(names()));
                    let at = self.place(tail(step));
                    let of = self.part(of);
                    self.say(Diagnostic::unknown_field(at, &of, name, near, &all));
                    return Known::any();
                };
                Known {
                    kind: kind.clone(),
                    optional: optional || *may,
                    path,
                    declared: known.declared.or_else(|| self.parameter(&known, name)),
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

    /// Checks a value that a field, filter or operator is applied to. Returns `None` for a secret, after reporting it.
    pub(super) fn usable(&mut self, known: Known, node: &Node) -> Option<Known> {
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

    pub(super) fn used(&mut self, known: &Known, node: &Node) {
        self.usable(known.clone(), node);
    }

    /// Warns of a fixed argument that cannot be evaluated while an operand is none.
    pub(super) fn fails_while_none(&mut self, known: &Known, node: &Node) {
        if let Wants::Fixed(of, name, _) = &self.site.wants
            && known.optional
        {
            let path = known.path.clone().unwrap_or_else(|| self.part(node));
            let at = self.place(node.span);
            let why = format!("`args.{name}` cannot be evaluated then");
            self.call_fails(at, of, &path, &why);
        }
    }

    /// Warns of calls that fail while a value is none, unless a condition of the callee or of a use of it reads the value.
    fn call_fails(&mut self, at: Option<Place>, of: &Name, path: &str, why: &str) {
        let network = &self.check.lowered.network;
        let models = network.agents.values().flat_map(AgentDef::models);
        let uses = models.flat_map(|model| &model.tools);
        let uses = uses.filter(
            |used| matches!(&used.of, Offer::Tool(name) | Offer::Agent(name) if name == of),
        );
        let of_uses = uses.flat_map(|used| {
            used.when
                .iter()
                .chain(used.requires.iter().map(|r| &r.that))
        });
        let tool = network.tools.get(of).into_iter();
        let of_tool = tool.flat_map(|tool| tool.requires.iter().map(|r| &r.that));
        let mut steps = path.split('.');
        let (root, entry) = (
            steps.next().unwrap_or_default(),
            steps.next().unwrap_or_default(),
        );
        let mut conditions = of_uses.chain(of_tool);
        if !conditions.any(|condition| condition.node().may_read(root, entry)) {
            self.say(Diagnostic::call_fails(at, of, path, why));
        }
    }

    /// Checks a value that is tested for truth.
    pub(super) fn truth(&mut self, known: &Known, node: &Node) {
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
        // the patch puts the test in front of the whole expression, unless that changes the meaning
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
}

/// Returns the paths that are not none if a condition holds (`holds`) or does not hold (`!holds`).
fn narrowed(node: &Node, holds: bool) -> Facts {
    match &node.kind {
        NodeKind::Not(of) => narrowed(of, !holds),
        NodeKind::And(left, right) | NodeKind::Or(left, right) => {
            let (a, b) = (narrowed(left, holds), narrowed(right, holds));
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
                let differs =
                    (*op == CompareOp::Ne) == holds && matches!(op, CompareOp::Eq | CompareOp::Ne);
                match (first.kind.is_none(), second.kind.is_none()) {
                    (false, true) if differs => path_of(first),
                    (true, false) if differs => path_of(second),
                    _ => Facts::new(),
                }
            }
            _ => Facts::new(),
        },
        NodeKind::Var(_) | NodeKind::Attr { .. } | NodeKind::Item { .. } if holds => path_of(node),
        _ => Facts::new(),
    }
}

/// Returns the path of a node and all its prefixes.
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

/// Returns the field name of a step, if it has a constant one.
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

/// Returns the span of a step without the value that it is applied to.
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

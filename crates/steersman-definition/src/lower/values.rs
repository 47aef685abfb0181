//! Lowers types, values with templates in them, state writes and arguments.

use super::super::diagnostic::Diagnostic;
use super::super::shape;
use super::super::site::{Scope, Wants};
use super::super::source::{Key, Kind, Node, Span, Value};
use super::{Lower, duration, flag, sorted, text, word};
use serde_json::Value as Json;
use steersman_machine::stored::bounds::{self, DEFAULTS};
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::interaction::Reduce;
use steersman_machine::values::expression::Data;
use steersman_machine::values::schemas::Bounded;
use steersman_machine::values::types::{Misfit, Parameters, Type, TypeKind, misfit};

/// The place of a type in a definition. Some keys have a meaning at one place only.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum At {
    Parameter,
    State,
    Other,
}

pub(super) fn of_kind(kind: TypeKind) -> Type {
    Type {
        kind,
        optional: false,
        default: None,
        description: None,
        expires: None,
        reduce: Reduce::Last,
        ask: None,
    }
}

pub(super) fn plain_text() -> Type {
    of_kind(TypeKind::String { pattern: None })
}

impl Lower<'_> {
    /// Lowers a type; an invalid one becomes `any`.
    pub(super) fn ty(&mut self, node: &Node, at: At, scope: &Scope) -> Type {
        match &node.value {
            Value::Scalar(scalar) => {
                let (word, optional) = shape::short_type(scalar);
                let mut ty = of_kind(kind_of(word).unwrap_or(TypeKind::Any));
                ty.optional = optional;
                ty
            }
            Value::List(items) => {
                let item = match items.first() {
                    Some(item) => self.ty(item, At::Other, scope),
                    None => of_kind(TypeKind::Any),
                };
                of_kind(TypeKind::List(Box::new(item)))
            }
            Value::Map(_) => self.long_type(node, at, scope),
        }
    }

    fn long_type(&mut self, node: &Node, at: At, scope: &Scope) -> Type {
        let (kind, optional) = self.kind(node, scope);
        let mut ty = of_kind(kind);
        ty.optional = optional || flag(node, "optional");
        ty.description = text(node, "description");
        ty.expires = duration(node, "expires");
        ty.reduce = match word(node, "reduce") {
            Some("append") => Reduce::Append,
            Some("sum") => Reduce::Sum,
            Some("max") => Reduce::Max,
            Some("merge") => Reduce::Merge,
            _ => Reduce::Last,
        };
        ty.ask = self.text_of(node, "ask", scope);
        for key in ["expires", "reduce", "ask"] {
            let fits = if key == "ask" {
                at == At::Parameter
            } else {
                at == At::State
            };
            let written = node.entries().iter().find(|(name, _)| &*name.name == key);
            if let Some((key, _)) = written.filter(|_| !fits) {
                let at = self.place(key.span);
                let of = if &*key.name == "ask" {
                    "anything but a parameter"
                } else {
                    "anything but state"
                };
                self.say(Diagnostic::type_key(at, &key.name, of));
            }
        }
        if let Some(default) = node.get("default").filter(|node| !node.is_null()) {
            let value = default.to_json();
            self.default_fits(&ty, &value, default);
            ty.default = Some(value);
        }
        ty
    }

    /// Adds up the sizes of the defaults of state and reports the one that exceeds the bound: all of them must fit into one line
    /// of a log.
    fn defaults_fit(&mut self, value: &Json, node: &Node) {
        let before = self.out.defaults;
        self.out.defaults += bounds::size(value);
        if before <= DEFAULTS && self.out.defaults > DEFAULTS {
            let at = self.place(node.span);
            let most = DEFAULTS >> 10;
            let what = "with this one the defaults of state are too large".to_owned();
            let most = format!("all of a definition may have {most} KiB together, as JSON");
            self.say(Diagnostic::too_big(at, what, most));
        }
    }

    pub(super) fn default_fits(&mut self, ty: &Type, value: &Json, node: &Node) {
        let at = self.place(node.span);
        if ty.kind == TypeKind::Secret {
            let why = "the default of a secret would stand in the definition for all to see";
            self.say(Diagnostic::misfit(at, why, None));
        } else if let Some(misfit) = misfit(ty, value) {
            let misfit = match &*misfit.path {
                "" => format!("the default {}", misfit.why),
                _ => format!("the default's {misfit}"),
            };
            self.say(Diagnostic::misfit(at, &misfit, None));
        }
    }

    fn kind(&mut self, node: &Node, scope: &Scope) -> (TypeKind, bool) {
        if let Some(fields) = node.get("fields") {
            let fields = fields.entries().iter();
            let fields =
                fields.map(|(key, node)| (key.name.clone(), self.ty(node, At::Other, scope)));
            return (TypeKind::Fields(fields.collect()), false);
        }
        if let Some(items) = node.get("items") {
            let item = self.ty(items, At::Other, scope);
            return (TypeKind::List(Box::new(item)), false);
        }
        if let Some(words) = node.get("enum") {
            let words = words.items().iter().filter_map(Node::as_text);
            return (
                TypeKind::Enum(words.map(ToString::to_string).collect()),
                false,
            );
        }
        if let Some(schema) = node.get("schema") {
            return (self.schema(schema).unwrap_or(TypeKind::Any), false);
        }
        let (minimum, maximum) = (super::real(node, "minimum"), super::real(node, "maximum"));
        match node.get("type") {
            Some(ty) if ty.scalar().is_none() => {
                let ty = self.ty(ty, At::Other, scope);
                (ty.kind, ty.optional)
            }
            Some(ty) => {
                let short = ty.scalar().map(shape::short_type);
                let (word, optional) = short.unwrap_or(("any", false));
                let kind = match kind_of(word).unwrap_or(TypeKind::Any) {
                    TypeKind::Integer { .. } => TypeKind::Integer { minimum, maximum },
                    TypeKind::Number { .. } => TypeKind::Number { minimum, maximum },
                    TypeKind::String { .. } => TypeKind::String {
                        pattern: self.pattern(node),
                    },
                    kind => kind,
                };
                (kind, optional)
            }
            None => match node.get("default").and_then(Node::scalar).map(|s| s.kind) {
                Some(Kind::Bool(_)) => (TypeKind::Boolean, false),
                Some(Kind::Integer(_)) => (TypeKind::Integer { minimum, maximum }, false),
                Some(Kind::Number(_)) => (TypeKind::Number { minimum, maximum }, false),
                _ => (
                    TypeKind::String {
                        pattern: self.pattern(node),
                    },
                    false,
                ),
            },
        }
    }

    fn pattern(&mut self, node: &Node) -> Option<String> {
        let pattern = text(node, "pattern")?;
        if let Err(why) = steersman_machine::values::schemas::pattern(&pattern) {
            let at = node.get("pattern").and_then(|node| self.place(node.span));
            self.say(Diagnostic::pattern(at, &why));
        }
        Some(pattern)
    }

    fn schema(&mut self, node: &Node) -> Option<TypeKind> {
        let (path, text) = self.file(node)?;
        let why = match serde_json::from_str::<Json>(&text) {
            Ok(schema @ (Json::Object(_) | Json::Bool(_))) => match Bounded::of(&schema) {
                Ok(_) => return Some(TypeKind::Schema(text)),
                Err(why) => {
                    let at = self.place(node.span);
                    self.say(Diagnostic::unfit_schema(at, &path, &why));
                    return None;
                }
            },
            Ok(_) => "a schema is an object".to_owned(),
            Err(error) => error.to_string(),
        };
        let at = self.place(node.span);
        self.say(Diagnostic::no_schema(at, &path, &why));
        None
    }

    /// Lowers named types. They keep the order of the file, in which a model sees them.
    pub(super) fn types(
        &mut self,
        node: Option<&Node>,
        at: At,
        scope: &Scope,
    ) -> Vec<(Name, Type)> {
        let entries = node.map(Node::entries).unwrap_or_default();
        entries
            .iter()
            .map(|(key, node)| (key.name.clone(), self.ty(node, at, scope)))
            .collect()
    }

    /// Lowers the parameters of a tool or agent and records their places.
    pub(super) fn parameters(&mut self, of: &Name, node: &Node, scope: &Scope) -> Parameters {
        if node.scalar().is_some() {
            return match self.schema(node) {
                Some(TypeKind::Schema(text)) => Parameters::Schema(text),
                _ => Parameters::Schema("true".into()),
            };
        }
        let fields = self.types(Some(node), At::Parameter, scope);
        for (key, ty) in node.entries() {
            let place = (of.clone(), key.name.clone());
            self.out.parameters.insert(place, key.span);
            let secret = fields.iter().any(|(name, ty)| {
                *name == key.name && ty.kind == TypeKind::Secret && ty.ask.is_none()
            });
            if secret {
                let at = self.place(ty.span);
                self.say(Diagnostic::secret_needs_ask(at, &key.name));
            }
        }
        Parameters::Fields(fields)
    }

    /// Lowers the state entries of an agent and records their places. Each entry must be optional or have a default.
    pub(super) fn state(
        &mut self,
        owner: &Name,
        entries: &[(Key, Node)],
        scope: &Scope,
    ) -> Vec<(Name, Type)> {
        let mut state = Vec::new();
        for (key, node) in entries {
            let mut ty = self.ty(node, At::State, scope);
            if self.is_broken(node.span) {
                ty.kind = TypeKind::Any;
            }
            if let Some(default) = &ty.default {
                self.defaults_fit(default, node);
            }
            let place = (owner.clone(), key.name.clone());
            let has_value = ty.optional || ty.default.is_some();
            if self.out.states.insert(place, key.span).is_none() && !has_value {
                let at = self.place(key.span);
                self.say(Diagnostic::no_value_at_start(at, &key.name));
            }
            state.push((key.name.clone(), ty));
        }
        state
    }

    /// Lowers JSON with templates in its texts; keys of maps are sorted.
    pub(super) fn data(&mut self, node: &Node, wants: &Wants, scope: &Scope) -> Data {
        match &node.value {
            Value::Scalar(scalar) if scalar.kind == Kind::Text => {
                match self.template(node, wants.clone(), scope) {
                    Some(template) => match template.text() {
                        Some(text) => Data::Plain(Json::from(text)),
                        None => Data::Template(template),
                    },
                    None => Data::Plain(Json::Null),
                }
            }
            Value::Scalar(_) => Data::Plain(node.to_json()),
            Value::List(items) => {
                let items: Vec<Data> = items
                    .iter()
                    .map(|node| self.data(node, &Wants::Value, scope))
                    .collect();
                if items.iter().all(|item| matches!(item, Data::Plain(_))) {
                    return Data::Plain(node.to_json());
                }
                Data::List(items)
            }
            Value::Map(_) => {
                let entries: Vec<(String, Data)> = sorted(Some(node))
                    .into_iter()
                    .map(|(key, node)| {
                        (key.name.to_string(), self.data(node, &Wants::Value, scope))
                    })
                    .collect();
                if entries
                    .iter()
                    .all(|(_, item)| matches!(item, Data::Plain(_)))
                {
                    return Data::Plain(node.to_json());
                }
                Data::Map(entries)
            }
        }
    }

    /// Lowers a map of named values, such as arguments.
    pub(super) fn named_data(&mut self, node: Option<&Node>, scope: &Scope) -> Vec<(Name, Data)> {
        sorted(node)
            .into_iter()
            .map(|(key, node)| (key.name.clone(), self.data(node, &Wants::Value, scope)))
            .collect()
    }

    /// Lowers writes of state. Each entry must be declared, and its value must fit.
    pub(super) fn set(
        &mut self,
        writer: &Name,
        node: Option<&Node>,
        scope: &Scope,
    ) -> Vec<(Name, Data)> {
        let mut writes = Vec::new();
        for (key, node) in sorted(node) {
            if !self.out.entries.contains(&key.name) {
                let known: Vec<Name> = self.out.entries.iter().cloned().collect();
                let near = self
                    .sources
                    .near(&key.name, known.iter().map(|name| &**name));
                let at = self.place(key.span);
                self.say(Diagnostic::unknown_state(at, &key.name, near));
                continue;
            }
            let place = (writer.clone(), key.name.clone(), key.span);
            self.out.writes.push(place);
            let wants = match self.state_type(&key.name, scope) {
                Some((ty, declared)) => {
                    if let Some(misfit) = constant_misfit(&ty, node) {
                        let (at, declared) = (self.place(node.span), self.place(declared));
                        let misfit = misfit.under(&format!("state.{}", key.name));
                        self.say(Diagnostic::misfit(at, &misfit.to_string(), declared));
                    }
                    match ty.reduce {
                        Reduce::Append => Wants::Value,
                        _ => Wants::Fits(Box::new(ty), format!("state.{}", key.name), declared),
                    }
                }
                None => Wants::Value,
            };
            writes.push((key.name.clone(), self.data(node, &wants, scope)));
        }
        writes
    }

    /// Returns the type of a state entry and the place of its declaration, if exactly one place declares the name.
    fn state_type(&mut self, name: &str, scope: &Scope) -> Option<(Type, Span)> {
        let merged = self.merged;
        let own = merged
            .section("agents")
            .iter()
            .filter_map(|(_, node)| node.get("state"))
            .flat_map(Node::entries);
        let mut all = merged.section("state").iter().chain(own);
        let (key, node) = all.find(|(key, _)| &*key.name == name)?;
        if all.any(|(key, _)| &*key.name == name) {
            return None;
        }
        // lowered a second time without diagnostics: its faults are reported at the declaration
        let before = (self.found.len(), self.out.sites.len());
        let ty = self.ty(node, At::State, scope);
        self.found.truncate(before.0);
        self.out.sites.truncate(before.1);
        Some((ty, key.span))
    }
}

fn kind_of(word: &str) -> Option<TypeKind> {
    let (minimum, maximum) = (None, None);
    Some(match word {
        "string" => TypeKind::String { pattern: None },
        "integer" => TypeKind::Integer { minimum, maximum },
        "number" => TypeKind::Number { minimum, maximum },
        "boolean" => TypeKind::Boolean,
        "object" => TypeKind::Object,
        "any" => TypeKind::Any,
        "secret" => TypeKind::Secret,
        "artifact" => TypeKind::Artifact,
        _ => return None,
    })
}

/// Returns the misfit of a constant without templates, or `None` if it fits or cannot be judged.
pub(crate) fn constant_misfit(ty: &Type, node: &Node) -> Option<Misfit> {
    fn has_template(node: &Node) -> bool {
        match &node.value {
            Value::Scalar(scalar) => scalar.text.contains('{'),
            Value::List(items) => items.iter().any(has_template),
            Value::Map(entries) => entries.iter().any(|(_, node)| has_template(node)),
        }
    }
    if has_template(node) || ty.kind == TypeKind::Secret {
        return None;
    }
    // the written value may be one element to append
    if ty.reduce == Reduce::Append {
        return None;
    }
    misfit(ty, &node.to_json())
}

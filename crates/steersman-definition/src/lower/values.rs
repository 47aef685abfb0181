//! Lowers types, values with templates in them, state writes and arguments.

use super::super::keys::kinds::{
    self, Map, Names, Or, Read, Real, Valued, Words as _, each, sorted,
};
use super::super::keys::{Lasting, LongType, ShortType};
use super::super::site::{Scope, Wants};
use super::super::source::{Key, Kind, Node, Span, Value};
use super::super::{diagnostic::Diagnostic, shape};
use super::Lower;
use serde_json::Value as Json;
use steersman_machine::stored::bounds;
use steersman_machine::stored::bounds::DEFAULTS;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::interaction::Reduce;
use steersman_machine::values::expression::Data;
use steersman_machine::values::schemas::Bounded;
use steersman_machine::values::types::{Expiry, Parameters, Type, TypeKind};
use steersman_machine::values::types::{Misfit, canonical, misfit};

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
        by: Vec::new(),
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
            Value::Map(_) => self.long_type(LongType(node), at, scope),
        }
    }

    fn long_type(&mut self, of: LongType<'_>, at: At, scope: &Scope) -> Type {
        let (kind, optional) = self.kind(of, scope);
        let mut ty = of_kind(kind);
        ty.optional = optional || of.optional().value;
        ty.description = of.description().and_then(Valued::value);
        ty.expires = of.expires().and_then(|expires| match expires {
            Or::One(word) => word.value().map(|Lasting::Answer| Expiry::Answer),
            Or::Other(span) => span.value().map(Expiry::After),
        });
        ty.by = each(of.by()).filter_map(|by| self.person(&by)).collect();
        ty.reduce = of.reduce().value;
        ty.ask = self.text_of(of.ask(), scope);
        if at != At::State {
            self.meaningless(of, "expires", "anything but state");
            self.meaningless(of, "by", "anything but state");
            self.meaningless(of, "reduce", "anything but state");
        }
        if at != At::Parameter {
            self.meaningless(of, "ask", "anything but a parameter");
        }
        if let Some(default) = of.default().filter(|default| !default.is_null()) {
            let value = default.to_json();
            self.default_fits(&ty, &value, &default);
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
            let most =
                format!("all defaults of a definition may have {most} KiB together, as JSON");
            self.say(Diagnostic::too_big(at, what, most));
        }
    }

    pub(super) fn default_fits(&mut self, ty: &Type, value: &Json, node: &Node) {
        let at = self.place(node.span);
        if ty.kind == TypeKind::Secret {
            let why = "the default of a secret would be readable in the definition";
            self.say(Diagnostic::misfit(at, why, None));
        } else if let Some(misfit) = misfit(ty, value) {
            let misfit = match &*misfit.path {
                "" => format!("the default {}", misfit.why),
                _ => format!("the default's {misfit}"),
            };
            self.say(Diagnostic::misfit(at, &misfit, None));
        }
    }

    fn kind(&mut self, of: LongType<'_>, scope: &Scope) -> (TypeKind, bool) {
        if let Some(fields) = of.fields() {
            let fields = self.types(Some(fields), At::Other, scope);
            return (TypeKind::Fields(fields), false);
        }
        if let Some(items) = of.items() {
            let item = self.ty(&items, At::Other, scope);
            return (TypeKind::List(Box::new(item)), false);
        }
        if let Some(words) = of.words().and_then(Valued::value) {
            // No words are a fault that was reported, so nothing is compared with them.
            let any = words.is_empty();
            return (
                if any {
                    TypeKind::Any
                } else {
                    TypeKind::Enum(words)
                },
                false,
            );
        }
        if let Some(schema) = of.schema() {
            return (self.schema(&schema).unwrap_or(TypeKind::Any), false);
        }
        let (minimum, maximum) = (bound(of.minimum()), bound(of.maximum()));
        match of.ty() {
            Some(ty) if ty.scalar().is_none() => {
                let ty = self.ty(&ty, At::Other, scope);
                (ty.kind, ty.optional)
            }
            Some(ty) => {
                let short = ty.scalar().map(shape::short_type);
                let (word, optional) = short.unwrap_or(("any", false));
                let kind = match kind_of(word).unwrap_or(TypeKind::Any) {
                    TypeKind::Integer { .. } => TypeKind::Integer { minimum, maximum },
                    TypeKind::Number { .. } => TypeKind::Number { minimum, maximum },
                    TypeKind::String { .. } => TypeKind::String {
                        pattern: self.pattern(of),
                    },
                    kind => kind,
                };
                (kind, optional)
            }
            None => match of.default().and_then(|d| Some(d.0.scalar()?.kind)) {
                Some(Kind::Bool(_)) => (TypeKind::Boolean, false),
                Some(Kind::Integer(_)) => (TypeKind::Integer { minimum, maximum }, false),
                Some(Kind::Number(_)) => (TypeKind::Number { minimum, maximum }, false),
                _ => (
                    TypeKind::String {
                        pattern: self.pattern(of),
                    },
                    false,
                ),
            },
        }
    }

    fn pattern(&mut self, of: LongType<'_>) -> Option<String> {
        let written = of.pattern()?;
        let pattern = written.value()?;
        if let Err(why) = steersman_machine::values::schemas::pattern(&pattern) {
            let at = self.place(written.span);
            self.say(Diagnostic::pattern(at, &why));
        }
        Some(pattern)
    }

    fn schema(&mut self, node: &Node) -> Option<TypeKind> {
        let (path, text) = self.text_of_file(node)?;
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
    pub(super) fn types<'n>(
        &mut self,
        of: Option<impl IntoIterator<Item = (&'n Key, kinds::Type<'n>)>>,
        at: At,
        scope: &Scope,
    ) -> Vec<(Name, Type)> {
        each(of)
            .map(|(key, ty)| (key.name.clone(), self.ty(&ty, at, scope)))
            .collect()
    }

    /// Lowers the parameters of a tool or agent and records their places.
    pub(super) fn parameters(
        &mut self,
        of: &Name,
        written: Or<Names<'_, kinds::Type<'_>>, kinds::Path<'_>>,
        scope: &Scope,
    ) -> Parameters {
        let written = match written {
            Or::One(types) => types,
            Or::Other(path) => {
                return match self.schema(&path) {
                    Some(TypeKind::Schema(text)) => Parameters::Schema(text),
                    _ => Parameters::Schema("true".into()),
                };
            }
        };
        let fields = self.types(Some(written), At::Parameter, scope);
        for (key, ty) in written {
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
        entries: &[(&Key, kinds::Type<'_>)],
        scope: &Scope,
    ) -> Vec<(Name, Type)> {
        let mut state = Vec::new();
        for (key, written) in entries {
            let mut ty = self.ty(written, At::State, scope);
            if self.is_broken(written.span) {
                ty.kind = TypeKind::Any;
            }
            if let Some(default) = &ty.default {
                self.defaults_fit(default, written);
            }
            let place = (owner.clone(), key.name.clone());
            let has_value = ty.optional || ty.default.is_some();
            let new = self.out.states.insert(place, key.span).is_none();
            if new && !has_value && !self.is_broken(written.span) {
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
                let entries: Vec<(String, Data)> = sorted(Some(Map::<kinds::Data<'_>>::read(node)))
                    .into_iter()
                    .map(|(key, of)| (key.name.to_string(), self.data(&of, &Wants::Value, scope)))
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
    pub(super) fn named_data(
        &mut self,
        of: Option<Map<'_, kinds::Data<'_>>>,
        scope: &Scope,
    ) -> Vec<(Name, Data)> {
        sorted(of)
            .into_iter()
            .map(|(key, of)| (key.name.clone(), self.data(&of, &Wants::Value, scope)))
            .collect()
    }

    /// Returns true if a state entry of this name is declared; otherwise reports it.
    pub(super) fn is_entry(&mut self, name: &Name, span: Span) -> bool {
        let known = self.out.entries.contains(name);
        if !known && !self.merged.unread("state") {
            let entries = self.out.entries.iter().map(|name| &**name);
            let near = self.sources.near(name, entries).map(str::to_owned);
            let at = self.place(span);
            self.say(Diagnostic::unknown_state(at, name, near.as_deref()));
        }
        known
    }

    /// Lowers writes of state. Each entry must be declared, and its value must fit.
    pub(super) fn set(
        &mut self,
        writer: &Name,
        of: Option<Map<'_, kinds::Data<'_>>>,
        scope: &Scope,
    ) -> Vec<(Name, Data)> {
        let mut writes = Vec::new();
        for (key, kinds::Data(node)) in sorted(of) {
            if !self.is_entry(&key.name, key.span) {
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
        let mut all = self.file.all_state();
        let (key, written) = all.find(|(key, _)| &*key.name == name)?;
        if all.any(|(key, _)| &*key.name == name) {
            return None;
        }
        Some((self.known_type(written, At::State, scope), key.span))
    }

    /// Returns the type of an event's field, and the place of its declaration.
    pub(super) fn event_type(
        &mut self,
        event: &str,
        field: &str,
        scope: &Scope,
    ) -> Option<(Type, Span)> {
        let fields = self.file.events()?.get(event)?.fields();
        let (key, written) = each(fields).find(|(key, _)| &*key.name == field)?;
        Some((self.known_type(written, At::Other, scope), key.span))
    }

    /// Lowers a type a second time, without diagnostics: its faults are reported where it is declared.
    fn known_type(&mut self, written: kinds::Type<'_>, at: At, scope: &Scope) -> Type {
        let before = (self.found.len(), self.out.sites.len());
        let ty = self.ty(&written, at, scope);
        self.found.truncate(before.0);
        self.out.sites.truncate(before.1);
        ty
    }
}

/// Returns a bound as written: a whole number with all its digits, and as such even if it has a fraction of zero.
fn bound(written: Option<Real<'_>>) -> Option<serde_json::Number> {
    canonical(&written?.to_json()).as_number().cloned()
}

fn kind_of(word: &str) -> Option<TypeKind> {
    let (minimum, maximum) = (None, None);
    Some(match ShortType::of(word)? {
        ShortType::String => TypeKind::String { pattern: None },
        ShortType::Integer => TypeKind::Integer { minimum, maximum },
        ShortType::Number => TypeKind::Number { minimum, maximum },
        ShortType::Boolean => TypeKind::Boolean,
        ShortType::Object => TypeKind::Object,
        ShortType::Any => TypeKind::Any,
        ShortType::Secret => TypeKind::Secret,
        ShortType::Artifact => TypeKind::Artifact,
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

//! Checks guards that only a person opens: the entry of state that they read names the people who may.

use super::super::diagnostic::{Diagnostic, Place};
use super::super::source::{Node, Scalar, Span, Style, Value};
use super::Check;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use steersman_machine::network::{AgentDef, Offer, Requires, Source, ToolDef};
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::interaction::Class;
use steersman_machine::values::expression::Names;

impl Check<'_> {
    /// Reports entries of state that keep a guard shut, that nothing but a person opens, and that do not say who may.
    pub(super) fn permissions(&mut self) {
        let lowered = self.lowered;
        let network = &lowered.network;
        // A function in Rust may write any entry.
        let native = |tool: &ToolDef| matches!(tool.source, Source::Native { .. });
        if network.tools.values().any(native) {
            return;
        }
        let own = network.tools.values();
        let own = own.flat_map(|tool| tool.requires.iter().map(move |requires| (tool, requires)));
        let models = network.agents.values().flat_map(AgentDef::models);
        let used = models.flat_map(|model| &model.tools).filter_map(|used| {
            let Offer::Tool(name) = &used.of else {
                return None;
            };
            Some((network.tools.get(name)?, &used.requires))
        });
        let used = used.flat_map(|(tool, all)| all.iter().map(move |requires| (tool, requires)));
        let defaults = self.defaults();
        let mut found: BTreeMap<&str, (&Name, &Requires)> = BTreeMap::new();
        for (tool, requires) in own.chain(used) {
            if matches!(tool.effect, Class::Pure | Class::Read) {
                continue;
            }
            let mut reads = Vec::new();
            requires.that.node().reads(&mut reads);
            let of_state = reads.iter().all(|(root, _)| *root == "state");
            if !of_state || requires.that.holds(&defaults).unwrap_or(false) {
                continue;
            }
            for entry in reads.into_iter().filter_map(|(_, entry)| entry) {
                if self.is_open_to_all(entry) && !self.is_set_before(entry, &tool.name) {
                    found.entry(entry).or_insert((&tool.name, requires));
                }
            }
        }
        for (entry, (tool, requires)) in found {
            let declared = self.entries[entry].first();
            let key = declared.map(|(owner, _)| ((*owner).clone(), Name::from(entry)));
            let span = key.and_then(|key| lowered.facts.states.get(&key).copied());
            let at = span.and_then(|span| self.place(span));
            let fix = span.and_then(|span| self.named_by(span));
            let guard = &requires.that.source;
            self.say(Diagnostic::open_permission(at, tool, entry, guard, fix));
        }
    }

    /// Returns the values of state as a session begins.
    fn defaults(&self) -> Names {
        let mut state = Map::new();
        for (name, declared) in &self.entries {
            let default = declared.iter().find_map(|(_, ty)| ty.default.clone());
            state.insert((*name).to_owned(), default.unwrap_or(Json::Null));
        }
        Names::from_json(Json::Object(Map::from_iter([(
            "state".to_owned(),
            Json::Object(state),
        )])))
    }

    /// Returns true if an entry is declared and names nobody who may edit it.
    fn is_open_to_all(&self, entry: &str) -> bool {
        let declared = self.entries.get(entry);
        declared.is_some_and(|declared| declared.iter().all(|(_, ty)| ty.by.is_empty()))
    }

    /// Returns true if something else than the guarded tool sets an entry. The tool itself uses a permission up.
    fn is_set_before(&self, entry: &str, guarded: &Name) -> bool {
        let facts = &self.lowered.facts;
        let mut written = facts.writes.iter().chain(&facts.filled);
        // the built-in tools write `todo`
        entry == "todo" || written.any(|(writer, name, _)| **name == *entry && writer != guarded)
    }

    /// Returns the change of the text by which the entry whose key stands there names the only person of the definition. `None` if
    /// there is no such person, or if the type is a block.
    fn named_by(&self, key: Span) -> Option<(Place, String)> {
        let mut people = self.lowered.network.people.keys();
        let person = people.next().filter(|_| people.next().is_none())?;
        let mut all = self.merged.file().all_state();
        let (_, ty) = all.find(|(known, _)| known.span == key)?;
        let node: &Node = &ty;
        let text = self.sources.text(node.span)?;
        match &node.value {
            Value::Map(_) => {
                let inner = text.strip_prefix('{')?.strip_suffix('}')?.trim_end();
                let at = node.span.start as usize + 1 + inner.len();
                let at = Span::new(node.span.file, at..at);
                Some((self.place(at)?, format!(", by: {person}")))
            }
            Value::Scalar(Scalar {
                style: Style::Plain,
                ..
            }) => {
                let with = format!("{{ type: {text}, by: {person} }}");
                Some((self.place(node.span)?, with))
            }
            Value::Scalar(_) | Value::List(_) => None,
        }
    }
}

//! Lowers memory, views, summaries and extraction.

use super::super::diagnostic::Diagnostic;
use super::super::site::{Scope, Wants};
use super::super::source::Node;
use super::{Lower, duration, whole};
use steersman_machine::network::{MemoryDef, Seen, SummaryDef, ViewDef};
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::Template;
use steersman_machine::values::expression::ast::{Stmt, StmtKind};
use steersman_machine::view::memory::unfit_scope;

/// Default number of messages after which a summary is renewed.
const EVERY: u32 = 10;

impl Lower<'_> {
    /// Lowers `memory`: the scope that is saved to and searched, and how long memories are kept.
    pub(super) fn memory(&mut self) -> MemoryDef {
        let Some(node) = self.merged.settings.get("memory") else {
            return MemoryDef::default();
        };
        let scoped = if node.entries().is_empty() {
            Some(node)
        } else {
            node.get("scope")
        };
        let scope = scoped.and_then(|node| self.scope_of_memory(node));
        MemoryDef {
            scope,
            keep: duration(node, "keep"),
        }
    }

    /// Parses a memory scope: text and `{{ .. }}` only. A block could leave a part out and so merge two scopes into one.
    fn scope_of_memory(&mut self, node: &Node) -> Option<Template> {
        let scope = Scope {
            item: Some(node.span),
            ..Scope::default()
        };
        let template = self.template(node, Wants::Text, &scope)?;
        let plain = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Text(_) | StmtKind::Emit(_));
        let unfit = template.text().and_then(unfit_scope);
        if !template.body().iter().all(plain) || unfit.is_some() {
            let at = self.place(node.span);
            let wanted =
                "a scope: text and `{{ .. }}` alone, without `{% .. %}`, of 256 bytes at most";
            self.say(Diagnostic::malformed(at, &template.source, wanted));
            return None;
        }
        Some(template)
    }

    /// Lowers a view. In the view of an agent that is not routed, `summary` together with `own`, `relevant` or `since_entry` is
    /// reported: only routers would see that summary.
    pub(super) fn view(&mut self, node: &Node, scope: &Scope) -> ViewDef {
        let of = node.get("of").or(Some(node)).and_then(Node::as_text);
        let word = of.map(|text| &**text);
        let window = node.get("window").and_then(whole);
        let of = match word {
            Some("own" | "relevant") => Seen::Own,
            Some("since_last_spoke") => Seen::SinceLastSpoke,
            Some("since_entry") => Seen::SinceEntry,
            // `window` or `summary` without `of` applies to the shared view
            _ => Seen::Shared,
        };
        let summary = match node.get("summary") {
            Some(summary) => Some(self.summary(summary, scope)),
            None if word == Some("summary") => Some(SummaryDef {
                every: EVERY,
                model: "default".into(),
                prompt: None,
                own: false,
            }),
            None => None,
        };
        let mut keys = node.entries().iter();
        let key = keys.find(|(key, _)| &*key.name == "summary");
        if let (Seen::Own | Seen::SinceEntry, Some((key, _)), true) = (of, key, scope.outside) {
            let at = self.place(key.span);
            let of = format!("a view of `{}`", word.unwrap_or_default());
            self.say(Diagnostic::type_key(at, "summary", &of));
        }
        ViewDef {
            of,
            window: window.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
            summary: summary.map(Box::new),
            relevant: super::knowledge::relevant(node),
        }
    }

    fn summary(&mut self, node: &Node, scope: &Scope) -> SummaryDef {
        let every = node.get("every").and_then(whole);
        SummaryDef {
            every: every.map_or(EVERY, |n| u32::try_from(n).unwrap_or(u32::MAX)),
            model: self.model_name(node.get("model")),
            prompt: node.get("prompt").and_then(|node| self.prompt(node, scope)),
            own: !node.entries().is_empty(),
        }
    }

    /// Lowers `extract`, the state entries that are filled from the conversation.
    pub(super) fn filled(&mut self, agent: &Name, nodes: &[Node]) -> Vec<Name> {
        let mut entries: Vec<Name> = Vec::new();
        for node in nodes {
            let Some(name) = node.as_text().cloned() else {
                continue;
            };
            if !self.out.entries.contains(&name) {
                let known: Vec<Name> = self.out.entries.iter().cloned().collect();
                let near = self.sources.near(&name, known.iter().map(|name| &**name));
                let at = self.place(node.span);
                self.say(Diagnostic::unknown_state(at, &name, near));
                continue;
            }
            let place = (agent.clone(), name.clone(), node.span);
            self.out.writes.push(place.clone());
            self.out.filled.push(place);
            if !entries.contains(&name) {
                entries.push(name);
            }
        }
        entries
    }
}

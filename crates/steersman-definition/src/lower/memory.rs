//! Lowers memory, views, summaries and extraction.

use super::super::diagnostic::Diagnostic;
use super::super::keys::Section as _;
use super::super::keys::agent::{self as keys, Sees};
use super::super::keys::kinds::{self, List, Valued, Words, each};
use super::super::site::{Scope, Wants};
use super::Lower;
use steersman_machine::network::{MemoryDef, Seen, SummaryDef, ViewDef};
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::Template;
use steersman_machine::values::expression::ast::{Stmt, StmtKind};
use steersman_machine::view::memory::unfit_scope;

impl Lower<'_> {
    /// Lowers `memory`: the scope that is saved to and searched, and how long memories are kept.
    pub(super) fn memory(&mut self) -> MemoryDef {
        let Some(memory) = self.file.memory() else {
            return MemoryDef::default();
        };
        MemoryDef {
            scope: memory.scope().and_then(|scope| self.scope_of_memory(scope)),
            keep: memory.keep().and_then(Valued::value),
        }
    }

    /// Parses a memory scope: text and `{{ .. }}` only. A block could leave a part out and so merge two scopes into one.
    fn scope_of_memory(&mut self, node: kinds::Template<'_>) -> Option<Template> {
        let scope = Scope {
            item: Some(node.span),
            ..Scope::default()
        };
        let template = self.template(&node, Wants::Text, &scope)?;
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
    pub(super) fn view(&mut self, view: keys::View<'_>, scope: &Scope) -> ViewDef {
        let sees = view.of().and_then(Valued::value);
        let of = match sees {
            Some(Sees::Own | Sees::Relevant) => Seen::Own,
            Some(Sees::SinceLastSpoke) => Seen::SinceLastSpoke,
            Some(Sees::SinceEntry) => Seen::SinceEntry,
            // `window` or `summary` without `of` applies to the shared view
            Some(Sees::Shared | Sees::Summary) | None => Seen::Shared,
        };
        let implied = (sees == Some(Sees::Summary)).then(keys::Summary::empty);
        let summary = view.summary().or(implied);
        let summary = summary.map(|summary| self.summary(summary, scope));
        if scope.outside && matches!(of, Seen::Own | Seen::SinceEntry) {
            let of = format!("a view of `{}`", sees.map_or("", Words::word));
            self.meaningless(view, "summary", &of);
        }
        ViewDef {
            of,
            window: view.window().and_then(Valued::value),
            summary: summary.map(Box::new),
            relevant: super::knowledge::relevant(view),
        }
    }

    fn summary(&mut self, summary: keys::Summary<'_>, scope: &Scope) -> SummaryDef {
        SummaryDef {
            every: summary.every().value,
            model: self.model_name(summary.model()),
            prompt: self.prompt(summary.prompt(), scope),
            own: !summary.0.entries().is_empty(),
        }
    }

    /// Lowers `extract`, the state entries that are filled from the conversation.
    pub(super) fn filled(
        &mut self,
        agent: &Name,
        written: Option<List<'_, kinds::Name<'_>>>,
    ) -> Vec<Name> {
        let mut entries: Vec<Name> = Vec::new();
        for item in each(written) {
            let Some(name) = item.text().filter(|name| self.is_entry(name, item.span)) else {
                continue;
            };
            let place = (agent.clone(), name.clone(), item.span);
            self.out.writes.push(place.clone());
            self.out.filled.push(place);
            if !entries.contains(name) {
                entries.push(name.clone());
            }
        }
        entries
    }
}

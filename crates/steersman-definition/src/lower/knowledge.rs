//! Lowers the documents of agents, the searches ahead of their turns, and the embedding model.

use super::super::diagnostic::Diagnostic;
use super::super::load::resolve;
use super::super::site::Scope;
use super::super::source::Node;
use super::{Lower, whole};
use serde_json::json;
use std::sync::Arc;
use steersman_machine::network::{Before, ModelAgent, notes};
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::ids::Name;

/// Returns the number of passages that a view asks for; 0 for none.
pub(super) fn relevant(node: &Node) -> u32 {
    let of = node.get("of").or(Some(node)).and_then(Node::as_text);
    let written = node.get("relevant").and_then(whole);
    match written {
        Some(most) => u32::try_from(most).unwrap_or(u32::MAX).min(notes::MOST),
        None if of.is_some_and(|of| &**of == "relevant") => notes::FEW,
        None => 0,
    }
}

/// Stops showing passages of documents after the history if a template of the agent already names them.
pub(super) fn shown_once(model: &mut ModelAgent) {
    let templates = [&model.system, &model.context.now, &model.prefill];
    let named = format!("before.{}", notes::KNOWLEDGE);
    let mut texts = templates.into_iter().flatten();
    if texts.any(|template| template.source.contains(&named)) {
        let own = |before: &&mut Before| *before.named == *notes::KNOWLEDGE;
        model
            .before
            .iter_mut()
            .filter(own)
            .for_each(|b| b.show = false);
    }
}

impl Lower<'_> {
    /// Returns the tools that run ahead of an agent's turns: those that it names, and the search of its documents.
    pub(super) fn ahead(&mut self, agent: &Name, node: &Node, scope: &Scope) -> Vec<Before> {
        let mut all = self.before(agent, node.get("before"), scope);
        let documents = node
            .get("knowledge")
            .filter(|node| !node.items().is_empty());
        let relevant = self.somebody_sees_what_is_relevant();
        let own = [
            (documents.is_some(), notes::KNOWLEDGE),
            (relevant, notes::RELEVANT),
        ];
        for (is_searched, name) in own {
            if is_searched && all.iter().any(|before| *before.named == *name) {
                let at = self.place(node.get("before").map_or(node.span, |node| node.span));
                self.say(Diagnostic::seen_twice(at, name));
            }
        }
        if documents.is_some() || relevant {
            self.out.builtins.insert(BuiltIn::NotesSearch);
        }
        if documents.is_some() {
            let args = json!({
                "query": "{{ message.text }}",
                "source": notes::DOCUMENTS,
                "most": notes::FEW,
            });
            all.push(Before {
                tool: notes::SEARCH.into(),
                args: Some(self.named_data(Some(&Node::json(&args)), scope)),
                named: notes::KNOWLEDGE.into(),
                show: true,
            });
        }
        all
    }

    /// Returns the paths of an agent's documents, relative to the definition's folder.
    pub(super) fn knowledge(&mut self, node: &Node) -> Vec<Arc<str>> {
        let mut all: Vec<Arc<str>> = Vec::new();
        let items = node.get("knowledge").map(Node::items).unwrap_or_default();
        for item in items {
            let Some(named) = item.as_text() else {
                continue;
            };
            let at = self.place(item.span);
            let from = self.sources.path(item.span).map_or("", |path| &**path);
            let Some(path) = resolve(from, named) else {
                self.say(Diagnostic::outside_folder(at, named));
                continue;
            };
            if let Some(why) = self.files.why_unreadable(&path) {
                self.say(Diagnostic::unreadable(at, named, why));
            }
            if !all.iter().any(|known| **known == *path) {
                all.push(path.into());
            }
        }
        all
    }

    /// Returns the model that computes embeddings for searches.
    pub(super) fn embeddings(&mut self) -> Option<Name> {
        let node = self.merged.settings.get("embeddings")?;
        Some(self.model_name(Some(node)))
    }

    /// Returns true if any view asks for passages; reports views that ask for too many.
    fn somebody_sees_what_is_relevant(&mut self) -> bool {
        fn views<'a>(node: &'a Node, into: &mut Vec<&'a Node>) {
            for (key, of) in node.entries() {
                into.extend((&*key.name == "view").then_some(of));
                views(of, into);
            }
            node.items().iter().for_each(|node| views(node, into));
        }
        let mut all = Vec::new();
        let agents = self.merged.section("agents").iter();
        agents.for_each(|(_, agent)| views(agent, &mut all));
        for view in &all {
            let written = view.get("relevant");
            let too_many =
                written.filter(|node| whole(node).is_some_and(|n| n > u64::from(notes::MOST)));
            if let Some(node) = too_many {
                let at = self.place(node.span);
                let text = node.scalar().map_or("", |scalar| &*scalar.text);
                let wanted = format!("a number of passages: {} at most", notes::MOST);
                self.say(Diagnostic::malformed(at, text, &wanted));
            }
        }
        all.into_iter().any(|view| relevant(view) > 0)
    }
}

//! Lowers the documents of agents, the searches ahead of their turns, and the embedding model.

use super::super::diagnostic::Diagnostic;
use super::super::keys::agent::{Agent, Sees, View};
use super::super::keys::kinds::{Map, Read, Valued, each};
use super::super::keys::route::Route;
use super::super::load::resolve;
use super::super::site::Scope;
use super::super::source::Node;
use super::Lower;
use serde_json::json;
use std::sync::Arc;
use steersman_machine::network::{Before, ModelAgent, notes};
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::ids::Name;

/// Returns the number of passages that a view asks for; 0 for none.
pub(super) fn relevant(view: View<'_>) -> u32 {
    match view.relevant().and_then(Valued::value) {
        Some(most) => most.min(notes::MOST),
        None if view.of().and_then(Valued::value) == Some(Sees::Relevant) => notes::FEW,
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
    pub(super) fn ahead(&mut self, name: &Name, agent: Agent<'_>, scope: &Scope) -> Vec<Before> {
        let mut all = self.before(name, agent.before(), scope);
        let documents = agent.knowledge().filter(|all| !all.0.items().is_empty());
        let relevant = self.any_view_wants_passages();
        let own = [
            (documents.is_some(), notes::KNOWLEDGE),
            (relevant, notes::RELEVANT),
        ];
        for (is_searched, name) in own {
            if is_searched && all.iter().any(|before| *before.named == *name) {
                let at = self.place(agent.before().map_or(agent.0, |before| before.0).span);
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
                args: Some(self.named_data(Some(Map::read(&Node::json(&args))), scope)),
                named: notes::KNOWLEDGE.into(),
                show: true,
            });
        }
        all
    }

    /// Returns the paths of an agent's documents, relative to the definition's folder.
    pub(super) fn knowledge(&mut self, agent: Agent<'_>) -> Vec<Arc<str>> {
        let mut all: Vec<Arc<str>> = Vec::new();
        for item in each(agent.knowledge()) {
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
        let model = self.file.embeddings()?;
        Some(self.model_name(Some(model)))
    }

    /// Returns true if any view asks for passages; reports views that ask for too many.
    fn any_view_wants_passages(&mut self) -> bool {
        let file = self.file;
        let views = || {
            each(file.agents()).flat_map(|(_, agent)| {
                let states = each(agent.route().and_then(Route::states));
                states
                    .filter_map(|(_, state)| state.view())
                    .chain(agent.view())
            })
        };
        for written in views().filter_map(View::relevant) {
            if written.value().is_some_and(|most| most > notes::MOST) {
                let at = self.place(written.0.span);
                let text = written.0.scalar().map_or("", |scalar| &*scalar.text);
                let wanted = format!("a number of passages: {} at most", notes::MOST);
                self.say(Diagnostic::malformed(at, text, &wanted));
            }
        }
        views().any(|view| relevant(view) > 0)
    }
}

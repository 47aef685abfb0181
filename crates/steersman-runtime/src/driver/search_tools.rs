//! Built-in tools that need more than their arguments: search in transcript, documents and artifacts, and memory.

use super::Job;
use crate::memory::MemoryTools;
use crate::tools::artifact::ArtifactSearch;
use crate::tools::retrieval::{Embedder, Search};
use crate::toolset::Toolset;
use std::sync::Arc;
use steersman_machine::network::{Source, notes};
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::engine::Caller;
use steersman_machine::stored::ids::Id;
use steersman_machine::tick::effect::ToolWork;

impl Job<'_, '_> {
    /// Returns the toolset that runs the tool, if it is one of these. A search sees the branch as it is now, but only the part
    /// of the conversation before the call: another attempt finds the same.
    pub(super) fn search(&self, id: Id, tool: &ToolWork) -> Option<Arc<dyn Toolset>> {
        let def = self.tool_def(&tool.tool)?;
        let Source::BuiltIn(does) = def.source else {
            return None;
        };
        if matches!(
            does,
            BuiltIn::MemorySave | BuiltIn::MemorySearch | BuiltIn::MemoryRead | BuiltIn::MemoryRate
        ) {
            let out = &self.d.effects.outs()[&id];
            return Some(Arc::new(MemoryTools {
                engine: self.seen.engine.clone(),
                part: self.d.who.claim().scope.clone(),
                past: self.seen.reader.clone(),
                snapshot: self.d.branches.live()[&out.branch].snapshot.clone(),
                agent: out.wish.agent,
                does,
            }));
        }
        if does == BuiltIn::ArtifactSearch {
            return Some(Arc::new(ArtifactSearch(
                self.seen.engine.0.options.retrieval.clone(),
            )));
        }
        if does != BuiltIn::NotesSearch {
            return None;
        }
        let out = &self.d.effects.outs()[&id];
        let (agent, branch) = (out.wish.agent, out.branch);
        let snapshot = self.d.branches.live()[&branch].snapshot.clone();
        let call = out.wish.call()?;
        let open = snapshot.call(agent, call)?;
        // Passages found by the engine are shown next to the history, so the search leaves out what the history shows.
        let unseen = open.call.by == Caller::Before(notes::RELEVANT.into());
        Some(Arc::new(Search {
            retrieval: self.seen.engine.0.options.retrieval.clone(),
            indexed: self.seen.engine.0.indexed.clone(),
            past: self.seen.reader.clone(),
            snapshot,
            agent,
            branch,
            mark: self.d.who.mark(),
            upto: call.line(),
            unseen,
            embedder: self.embedder(branch, agent),
        }))
    }

    fn embedder(&self, branch: Id, agent: Id) -> Option<Result<Embedder, String>> {
        let name = self.network().embeddings.clone()?;
        Some(self.model(&name).and_then(|(bound, model)| {
            let transport = self.model_transport(branch, agent, &name, &bound)?;
            let address = transport.url.as_deref().unwrap_or_default();
            let scope = super::transport::TransportScope::new(
                self.network().clone(),
                self.seen.reader.clone(),
                self.d.branches.live()[&branch].snapshot.clone(),
                agent,
                (None, &[]),
                self.seen.engine,
                self.d.bound.values().folder(),
            );
            let tool = notes::SEARCH;
            Ok(Embedder {
                secrets: crate::secrets::readable(self.network(), tool, &scope),
                label: format!("{} {address}", bound.label()),
                model,
                transport,
            })
        }))
    }
}

//! Searches of transcript and documents, for calls of the built-in tool.

use super::Driver;
use crate::retrieval::{Embedder, Search};
use crate::toolset::Toolset;
use std::sync::Arc;
use steersman_machine::effect::ToolWork;
use steersman_machine::ids::Id;
use steersman_machine::network::{BuiltIn, Source};
use steersman_machine::notes;

impl Driver {
    /// What runs a search, if the tool is one. It sees the branch as it is now, and of what was said what was said when the
    /// call was made: another attempt finds the same.
    pub(super) fn search(&self, id: Id, tool: &ToolWork) -> Option<Arc<dyn Toolset>> {
        let def = self.tool_def(&tool.tool)?;
        if !matches!(def.source, Source::BuiltIn(BuiltIn::NotesSearch)) {
            return None;
        }
        let out = &self.outs[&id];
        let (agent, branch) = (out.wish.agent, out.branch);
        let snapshot = self.branches[&branch].snapshot.clone();
        let call = out.wish.call()?;
        let open = snapshot.call(agent, call)?;
        // What the engine looks for stands beside the history, so it says nothing twice.
        let unseen = open.call.seen.as_deref() == Some(notes::AHEAD_RELEVANT);
        Some(Arc::new(Search {
            engine: self.engine.clone(),
            past: self.past.clone(),
            snapshot,
            agent,
            branch,
            mark: self.mark,
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
                self.past.clone(),
                self.branches[&branch].snapshot.clone(),
                agent,
                None,
                &self.engine,
                self.values.folder(),
            );
            let tool = notes::SEARCH;
            Ok(Embedder {
                secrets: super::transport::readable(self.network(), tool, &scope),
                label: format!("{} {address}", bound.label()),
                model,
                transport,
            })
        }))
    }
}

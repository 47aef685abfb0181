//! The agent that answers instead of people in a rerun.

use super::walk::Changed;
use crate::bind;
use crate::engine::{Engine, EngineError, StartOptions};
use crate::session::{Session, Settled};
use crate::store::memory::MemoryStore;
use std::sync::Arc;
use steersman_machine::stored::ids::Name;

/// An agent of the definition that answers instead of people.
pub(super) struct StandIn {
    engine: Engine,
    session: Session,
}

impl StandIn {
    pub(super) async fn of(
        engine: &Engine,
        changed: &Changed,
        agent: &Name,
    ) -> Result<Self, EngineError> {
        if !changed.network.agents.contains_key(agent) {
            return Err(EngineError::Refused(format!(
                "there is no agent `{agent}` to stand in for people"
            )));
        }
        let own = engine.beside(Arc::new(MemoryStore::new()), engine.clock().clone(), None);
        let config = changed.values.config.clone();
        let options = StartOptions {
            agent: Some(agent.clone()),
            config: config
                .into_iter()
                .filter(|(name, value)| bind::fits_bound(&changed.network, name, value).is_ok())
                .collect(),
            folder: changed.values.folder.clone(),
            file: changed.values.file.clone(),
            seed: Some(changed.values.seed),
            ..StartOptions::default()
        };
        let session = own.start(changed.network.clone(), options).await?;
        Ok(Self {
            engine: own,
            session,
        })
    }

    /// Returns the agent's answer to a question; `None` if it gives none.
    pub(super) async fn asked(&self, question: &str) -> Result<Option<String>, EngineError> {
        self.session.say(question).await?;
        Ok(match &*self.session.settled().await? {
            Settled::Answered { text, .. } if !text.trim().is_empty() => Some(text.to_string()),
            _ => None,
        })
    }

    /// Ends the agent's session. Returns its cost: money in millionths of the currency, and tokens.
    pub(super) async fn over(self) -> Result<(u64, u64), EngineError> {
        let seen = self.session.inspect().await?;
        self.engine.stop().await;
        Ok((seen.ledger.spent.micros, seen.ledger.spent.tokens))
    }
}

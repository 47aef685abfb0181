//! Reads what a job of the driver wanted, so that it can be done again.

use super::Local;
use crate::bind::ManifestHash;
use crate::driver::{Answered, Answers, Want};
use crate::engine::EngineError;
use crate::store::StoreError;
use std::sync::Arc;
use steersman_machine::stored::ids::Line;

/// Number of interactions that are read ahead for each agent that acts.
const WARM: usize = 64;
/// Maximum number of rows that one request reads.
const PAGE: usize = 256;

impl Local {
    /// Reads everything that is wanted.
    ///
    /// # Errors
    /// The store cannot be read, what it holds is damaged, or the same is wanted again although it was read.
    pub(super) async fn read_wanted(&mut self, answers: &mut Answers) -> Result<(), EngineError> {
        let wanted = std::mem::take(&mut answers.wanted);
        if wanted.keys().all(|want| answers.asked.contains(want)) {
            return Err(EngineError::Broken {
                session: self.claim.session.clone(),
                what: format!("{:?} was read and is still not there", wanted.keys().next()),
            });
        }
        answers.asked.extend(wanted.keys().cloned());
        for (want, message) in wanted {
            let answer = match &want {
                Want::Absent(absent) => {
                    self.reader.take_in_absent(*absent).await?;
                    continue;
                }
                Want::Durable(line) => {
                    while self.tail.durable < *line && !self.tail.is_idle() {
                        self.next_written().await?;
                    }
                    continue;
                }
                Want::Snapshot(line) => {
                    let loaded = self.load.snapshot(*line).await?;
                    Answered::Snapshot(Box::new(loaded))
                }
                Want::Branch(line) => {
                    let loaded = self.load.snapshot(*line).await?;
                    for line in &loaded.lines {
                        self.reader.add(line.clone());
                    }
                    self.reader.warm(&loaded.snapshot, WARM).await?;
                    Answered::Snapshot(Box::new(loaded))
                }
                Want::There(line) => {
                    let row = self.engine.store().row(&self.claim.session, *line);
                    Answered::There(row.await?.is_some())
                }
                Want::Hash(line) => Answered::Hash(self.load.stored_hash(*line).await?),
                Want::Since(line) => Answered::Since(self.lines_since(*line).await?),
                Want::Inbox => {
                    let inbox = self.engine.store().inbox(&self.claim.session);
                    let (mail, messages) = inbox.await?;
                    Answered::Inbox(mail, messages)
                }
                Want::Box(event, key) => Answered::Box(self.boxed(event, key).await?),
                Want::Network(source, manifest) => {
                    let manifest = manifest.map(ManifestHash);
                    let session = &self.claim.session;
                    let found = self.engine.bound_network(session, source, manifest).await;
                    Answered::Network(match found {
                        Err(EngineError::Definition { why, .. }) => Err(why),
                        found => Ok(found?),
                    })
                }
                Want::Manifest(hash) => {
                    let session = &self.claim.session;
                    let manifest = self.engine.manifest(session, ManifestHash(*hash));
                    Answered::Manifest(manifest.await?)
                }
                Want::Put(id) => {
                    let message = message.expect("a message to put comes with the want");
                    let put = self.engine.put(&self.claim.session, id.clone(), &message);
                    Answered::Put(match put.await {
                        Ok(_) => Ok(()),
                        Err(EngineError::Store(full @ StoreError::Full { .. })) => {
                            Err(full.to_string())
                        }
                        Err(error) => return Err(error),
                    })
                }
            };
            answers.known.insert(want, answer);
        }
        Ok(())
    }

    async fn lines_since(
        &mut self,
        since: Line,
    ) -> Result<Vec<Arc<steersman_machine::stored::commit::LogLine>>, EngineError> {
        let (mut lines, mut from) = (Vec::new(), since);
        loop {
            let store = self.engine.store();
            let rows = store
                .rows(&self.claim.session, from, Line::MAX, PAGE)
                .await?;
            let Some(last) = rows.last() else {
                return Ok(lines);
            };
            from = last.n.next();
            for row in &rows {
                lines.push(self.reader.check(row).await?);
            }
        }
    }

    async fn boxed(
        &mut self,
        event: &str,
        key: &str,
    ) -> Result<Vec<crate::store::BoxedEvent>, EngineError> {
        let (network, _) = self.driver.bound();
        let Some(network) = network else {
            return Ok(Vec::new());
        };
        let (store, of) = (self.engine.store(), &self.claim.scope);
        match store.boxed_events(of, &network.name, event, key).await {
            // Damage of the box must not end the session. After this report the store leaves out the events that it cannot
            // read.
            Err(StoreError::Corrupt { .. }) if !store.damaged_lists().await?.is_empty() => {
                Ok(store.boxed_events(of, &network.name, event, key).await?)
            }
            boxed => Ok(boxed?),
        }
    }
}

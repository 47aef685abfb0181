//! Writes the followed part of a recording as the beginning of a session.

use super::walk::Changed;
use crate::engine::{Engine, EngineError, Inspection};
use crate::load::named::entry;
use crate::store::{Batch, Claim, Left, NewSession, Row, SessionId};
use crate::tools::artifact::store_made;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::stored::by::By;
use steersman_machine::stored::codec;
use steersman_machine::stored::codec::Hash;
use steersman_machine::stored::commit::{LedgerEntry, LogLine};
use steersman_machine::stored::ids::{Line, Name, Time};
use steersman_machine::view::artifact::Content;

/// Number of rows that are written together.
const ROWS: usize = 64;
/// Maximum number of ledger entries in one line, since a line has a bound.
const ENTRIES: usize = 512;

/// A session that is written from its beginning. Everything written is on disk.
pub(super) struct Writing<'a> {
    engine: &'a Engine,
    seen: &'a Inspection,
    session: &'a SessionId,
    changed: &'a Changed,
    claim: Option<Claim>,
    hashes: BTreeMap<Line, Hash>,
    /// Number of lines that are written.
    written: usize,
}

impl<'a> Writing<'a> {
    pub(super) fn of(
        engine: &'a Engine,
        seen: &'a Inspection,
        session: &'a SessionId,
        changed: &'a Changed,
    ) -> Self {
        Self {
            engine,
            seen,
            session,
            changed,
            claim: None,
            hashes: BTreeMap::new(),
            written: 0,
        }
    }

    pub(super) fn session(&self) -> &SessionId {
        self.session
    }

    /// Stores contents of artifacts before lines name them.
    pub(super) async fn keep(&self, made: Vec<Content>) -> Result<(), EngineError> {
        Ok(store_made(&**self.engine.store(), made).await?)
    }

    fn claimed(&self, claim: &Claim) -> LedgerEntry {
        let mut mark = [0_u8; 8];
        getrandom::fill(&mut mark).expect("the operating system gives random bytes");
        let process = &self.engine.0.options.process;
        process.claimed(claim.epoch, u64::from_le_bytes(mark))
    }

    /// Writes the lines that are not written yet.
    pub(super) async fn write(&mut self, lines: &[LogLine]) -> Result<(), EngineError> {
        let labels = match self.claim {
            Some(_) => Vec::new(),
            None => self.labels(),
        };
        let claim = self.claim().await?;
        let mut rows = Vec::new();
        for (k, line) in lines.iter().enumerate().skip(self.written) {
            let mut line = line.clone();
            if k == 0 {
                line.ledger.insert(0, self.claimed(&claim));
            }
            rows.push(self.row(line, &claim).await?);
        }
        self.written = lines.len();
        self.append(&claim, rows, labels).await
    }

    /// Writes the rest of the lines and the final state of branches. Returns the time of the last line.
    pub(super) async fn over(
        mut self,
        lines: &[LogLine],
        becomes: Vec<LedgerEntry>,
        paused: bool,
    ) -> Result<Time, EngineError> {
        self.write(lines).await?;
        let last = lines.last().expect("what cannot begin is refused before");
        let now = last.at;
        let mut ledger = becomes;
        ledger.extend(paused.then(|| LedgerEntry::Paused {
            paused: true,
            by: By::default(),
        }));
        let claim = self.claim().await?;
        let (mut prev, mut rows) = (last.n, Vec::new());
        for entries in ledger.chunks(ENTRIES) {
            let line = LogLine {
                n: prev.next(),
                at: now,
                prev,
                branch: last.branch,
                commit: None,
                ledger: entries.to_vec(),
                bodies: Vec::new(),
            };
            prev = line.n;
            rows.push(self.row(line, &claim).await?);
        }
        if !rows.is_empty() {
            self.append(&claim, rows, Vec::new()).await?;
        }
        // Lists have the labels of the current branch. A driver lists only those that a line of its own changes.
        let labels = self.engine.inspect(self.session).await?.labelled();
        let labels = labels.into_iter().map(|(name, text)| (name, Some(text)));
        let batch = Batch {
            labels: labels.collect(),
            urgent: true,
            ..Batch::default()
        };
        self.engine.store().append(&claim, batch).await?;
        // No worker takes a rerun: its caller drives it.
        let left = Left::default();
        self.engine.store().release(claim, left).await?;
        Ok(now)
    }

    async fn claim(&mut self) -> Result<Claim, EngineError> {
        if let Some(claim) = &self.claim {
            return Ok(claim.clone());
        }
        let (store, worker) = (self.engine.store(), self.engine.worker().await?);
        store
            .create(NewSession {
                id: self.session.clone(),
                network: self.changed.network.name.clone(),
                scope: self.seen.info.scope.clone(),
                key: None,
                salt: self.seen.info.salt,
                created: self.engine.clock().now(),
                first: None,
                said: None,
                needs: crate::engine::natives::needs(&self.changed.network),
            })
            .await?;
        Ok(self
            .claim
            .insert(store.claim(self.session, worker).await?)
            .clone())
    }

    fn labels(&self) -> Vec<(Name, Option<Arc<str>>)> {
        let labels = self.changed.labels.iter();
        labels
            .map(|(name, text)| (name.clone(), Some(text.as_str().into())))
            .collect()
    }

    /// Encodes a line as a row, with the ids of the messages that it accepts, so that the store knows them like those of an
    /// inbox.
    async fn row(
        &mut self,
        mut line: LogLine,
        claim: &Claim,
    ) -> Result<(Row, Vec<Name>), EngineError> {
        let accepted = line.ledger.iter().filter_map(|entry| match entry {
            LedgerEntry::Accepted { message, .. } => Some(message.clone()),
            _ => None,
        });
        let accepted = accepted.collect();
        for (hash, text) in codec::spill(&mut line) {
            let bytes: Arc<[u8]> = text.as_bytes().into();
            self.engine.store().put_blob(hash, bytes).await?;
        }
        let before = self.hashes.get(&line.prev).copied().unwrap_or_default();
        let (bytes, hash) = codec::encode(&line, &before, &claim.salt);
        self.hashes.insert(line.n, hash);
        // `fsck` reports damage if an entry names a line that the session does not have.
        let is_written = |named: Line| !named.is_some() || self.hashes.contains_key(&named);
        debug_assert!(
            line.ledger.iter().filter_map(entry).all(is_written),
            "line {} of the rerun names a line that it does not have: {:?}",
            line.n,
            line.ledger
        );
        let row = Row {
            n: line.n,
            bytes: bytes.into(),
        };
        Ok((row, accepted))
    }

    async fn append(
        &self,
        claim: &Claim,
        rows: Vec<(Row, Vec<Name>)>,
        labels: Vec<(Name, Option<Arc<str>>)>,
    ) -> Result<(), EngineError> {
        let pages = rows.len().div_ceil(ROWS);
        for (k, page) in rows.chunks(ROWS).enumerate() {
            let (rows, accepted): (_, Vec<Vec<Name>>) = page.iter().cloned().unzip();
            let batch = Batch {
                rows,
                consumed: accepted.concat(),
                labels: if k == 0 { labels.clone() } else { Vec::new() },
                urgent: k + 1 == pages,
                ..Batch::default()
            };
            self.engine.store().append(claim, batch).await?;
        }
        Ok(())
    }
}

//! Erasing: texts of a session are replaced by tombstones, and all hashes still verify.

mod expired;
mod many;

pub(crate) use expired::AT_ONCE;
pub use many::{ErasedMany, NotErased, Obstacle};

use crate::engine::{Engine, EngineError, Inspection};
use crate::inbox::Message;
use crate::load::{Load, is_of_rerun, rerun_of};
use crate::store::{
    Batch, Claim, Row, SessionId, SessionInfo, SessionQuery, SessionState, Store, StoreError,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::stored::codec;
use steersman_machine::stored::codec::CodecError;
use steersman_machine::stored::commit::{
    About, Commit, LedgerEntry, LogLine, Probing, Stepped, Text,
};
use steersman_machine::stored::ids::{Body, Id, Line, Name};
use steersman_machine::stored::interaction::Interaction;
use steersman_machine::stored::parts::Part;

/// The part of a session that is to be erased.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Everything that was said, called, answered and written in the session.
    All,
    /// All texts of one line.
    Line(Line),
    /// Arguments and outcomes of one effect.
    Effect(Id),
}

/// The result of [`Engine::erase`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Number of texts that are tombstones now.
    pub texts: u64,
    /// Number of those texts that were in blobs. Another session may hold the same text. The next collection of the store removes
    /// blobs that nothing names any more.
    pub blobs: u64,
    /// Hashes of those texts.
    pub large: Vec<[u8; 32]>,
    /// Hashes of the artifact contents that are to be erased. They are not texts of the log. The program that has the store to
    /// itself deletes those that nothing else names (`steersman_adapters::sqlite::forget`).
    pub contents: Vec<[u8; 32]>,
    /// Sessions that were made from this one and may hold the same texts: its reruns, and their reruns. They are not erased with
    /// it.
    pub reruns: Vec<SessionId>,
}

impl Engine {
    /// Erases texts of a session. Nobody may drive the session, and nothing in it may be open: the input of an effect that is
    /// about to run, or that a person is about to approve, is never erased. The values that the session is bound to stay, and so do
    /// the labels of a rerun that say what it repeats. If `apply` is false, nothing is written, and the result says what would be
    /// erased. [`Erased::reruns`] names the sessions that hold the same texts.
    ///
    /// # Errors
    /// [`EngineError::Refused`] if something is open, with a message that names it; errors of the store.
    pub async fn erase(&self, id: &str, what: What, apply: bool) -> Result<Erased, EngineError> {
        let mut erased = self.erase_one(id, what, apply).await?;
        erased.reruns = self.reruns_of(&[id.into()]).await?;
        Ok(erased)
    }

    /// Erases texts of a session, without a look for its reruns.
    async fn erase_one(&self, id: &str, what: What, apply: bool) -> Result<Erased, EngineError> {
        if !apply {
            let info = self.idle(id).await?.info;
            let load = Load::new(self.store().clone(), info.id.clone(), info.salt);
            let rows = read(self.store(), &load, id, info.head).await?;
            return Ok(select(&rows, what)?.0);
        }
        let claim = self.store().claim(id, self.worker().await?).await?;
        let mut left = claim.before.clone();
        let erased = self.erase_owned(&claim, what).await;
        let is_all = erased.is_ok() && what == What::All && claim.mail == left.mail;
        if is_all && self.has_ended(&claim).await.unwrap_or(false) {
            // It was wanted only to be erased.
            left.wants = None;
        }
        self.store().release(claim, left).await?;
        erased
    }

    /// Returns the sessions that were made from these: their reruns, the reruns of those, and so on. Each begins with what was said
    /// in the session that it repeats.
    ///
    /// # Errors
    /// Errors of the store.
    async fn reruns_of(&self, ids: &[SessionId]) -> Result<Vec<SessionId>, EngineError> {
        let all = self.store().sessions(&SessionQuery::default()).await?;
        let mut of: BTreeMap<&str, Vec<&SessionId>> = BTreeMap::new();
        for info in &all {
            if let Some(origin) = rerun_of(info) {
                of.entry(origin).or_default().push(&info.id);
            }
        }
        let (mut found, mut next) = (Vec::new(), ids.iter().map(|id| &**id).collect::<Vec<_>>());
        while let Some(origin) = next.pop() {
            // An entry is removed, so a label that names a later session leads into no circle.
            for rerun in of.remove(origin).unwrap_or_default() {
                found.push(rerun.clone());
                next.push(rerun);
            }
        }
        Ok(found)
    }

    /// Reads a session in which nothing is open.
    async fn idle(&self, id: &str) -> Result<Inspection, EngineError> {
        let seen = self.inspect(id).await?;
        match open(&seen) {
            Some(open) => Err(EngineError::Refused(open)),
            None => Ok(seen),
        }
    }

    /// Erases under a claim. Checks again that nothing is open, because from now on nobody else can open anything. All texts go in
    /// one batch, so no reader finds a part of them.
    async fn erase_owned(&self, claim: &Claim, what: What) -> Result<Erased, EngineError> {
        let id = &claim.session;
        let seen = self.idle(id).await?;
        let rows = rows(self, claim).await?;
        let (erased, selected) = select(&rows, what)?;
        let mut batch = Batch {
            urgent: true,
            ..Batch::default()
        };
        for (at, texts) in selected {
            let (row, line) = &rows[at];
            let mut bytes = row.bytes.to_vec();
            for k in texts {
                bytes = codec::erase(&bytes, k, &claim.salt).map_err(|e| broken(id, line.n, &e))?;
            }
            batch.rewritten.push(Row {
                n: row.n,
                bytes: bytes.into(),
            });
        }
        if what == What::All {
            let labels = seen
                .info
                .labels
                .iter()
                .filter(|(name, _)| !is_of_rerun(name));
            batch.labels = labels.map(|(name, _)| (name.clone(), None)).collect();
            // Messages that arrive from now on are kept.
            batch.dropped = seen
                .inbox
                .iter()
                .map(|message| message.id.clone())
                .collect();
            // Lists learn below, from the erased log, which effects wait; until then they do not know it.
            let waits = match seen.pending.len() {
                0 => crate::pending::list(&[]),
                _ => Arc::default(),
            };
            batch.info = Some(SessionState {
                waits,
                outcome: "{}".into(),
                last: Arc::default(),
                ..seen.info.state.clone()
            });
        }
        self.store().append(claim, batch).await?;
        self.update_lists(claim, what).await?;
        self.0.indexed.forget(id);
        Ok(erased)
    }

    /// Updates the state and the labels that lists show, because they hold texts of the session too. The state is computed again
    /// from the erased log.
    async fn update_lists(&self, claim: &Claim, what: What) -> Result<(), EngineError> {
        let left = self.inspect(&claim.session).await?;
        let mut state = left.listed(left.info.state.updated);
        let mut batch = Batch {
            urgent: true,
            ..Batch::default()
        };
        // A label whose text is a tombstone now must not be in lists either.
        let still = left.labelled();
        let labels = left.info.labels.iter();
        let gone = labels.filter(|(name, text)| {
            let stays = what != What::All || is_of_rerun(name);
            !stays || still.get(name) != Some(text)
        });
        batch.labels = gone.map(|(name, _)| (name.clone(), None)).collect();
        if what == What::All {
            state.outcome = "{}".into();
        }
        batch.info = Some(state);
        Ok(self.store().append(claim, batch).await?)
    }
}

/// Rows, by index, with the numbers of their texts that are to be erased.
type Selected = Vec<(usize, Vec<u32>)>;

/// Returns the texts of these rows that are to be erased, and the counts.
fn select(rows: &[(Row, LogLine)], what: What) -> Result<(Erased, Selected), EngineError> {
    let mut erased = Erased {
        contents: contents(rows, what),
        ..Erased::default()
    };
    let kept = kept(rows);
    let wanted = match what {
        What::Effect(effect) => Some(with_parts(rows, of_effect(rows, effect)?)),
        What::All | What::Line(_) => None,
    };
    let mut selected = Vec::new();
    for (at, (_, line)) in rows.iter().enumerate() {
        let mut texts = Vec::new();
        for (k, text) in line.bodies.iter().enumerate() {
            let body = Body::new(line.n, k as u32);
            let is_selected = match (&wanted, what) {
                (Some(bodies), _) => bodies.contains(&body),
                (None, What::Line(n)) => n == line.n,
                (None, _) => true,
            };
            if !is_selected || kept.contains(&body) || matches!(text, Text::Erased { .. }) {
                continue;
            }
            texts.push(k as u32);
            erased.texts += 1;
            if let Text::Blob { hash, .. } = text {
                erased.blobs += 1;
                erased.large.push(*hash);
            }
        }
        if !texts.is_empty() {
            selected.push((at, texts));
        }
    }
    Ok((erased, selected))
}

/// Returns why a session cannot be erased, or `None` if nothing in it is open.
fn open(seen: &Inspection) -> Option<String> {
    let is_event =
        |message| Message::decode(message).is_ok_and(|message| message.wanted.is_event());
    if !seen.inbox.iter().all(is_event) {
        return Some(
            "its inbox holds messages that were not taken yet, and their texts cannot be erased"
                .to_owned(),
        );
    }
    seen.branches
        .iter()
        .filter(|b| !b.superseded)
        .find_map(|b| {
            let name = b
                .label
                .clone()
                .unwrap_or_else(|| Name::from(b.id.to_string()));
            b.snapshot.is_open().then(|| {
                format!(
                    "`{name}` is at work or waits: inputs that are still needed cannot be erased"
                )
            })
        })
}

async fn rows(engine: &Engine, claim: &Claim) -> Result<Vec<(Row, LogLine)>, EngineError> {
    let load = Load::new(engine.store().clone(), claim.session.clone(), claim.salt);
    Ok(read(engine.store(), &load, &claim.session, claim.head).await?)
}

async fn read(
    store: &Arc<dyn Store>,
    load: &Load,
    session: &str,
    head: Line,
) -> Result<Vec<(Row, LogLine)>, StoreError> {
    let mut hashes = crate::load::Hashes::default();
    let (mut rows, mut from) = (Vec::new(), Line(1));
    while from <= head {
        let some = store.rows(session, from, head, 512).await?;
        let Some(last) = some.last() else { break };
        from = last.n.next();
        for row in some {
            let line = load.checked(&row, &mut hashes).await?;
            rows.push((row, line));
        }
    }
    Ok(rows)
}

/// Returns the texts that are kept: the values that sessions are bound to, because no program could load a session without them,
/// and the labels of a rerun ([`is_of_rerun`]).
fn kept(rows: &[(Row, LogLine)]) -> BTreeSet<Body> {
    let commits = || rows.iter().filter_map(|(_, line)| line.commit.as_ref());
    let bindings = commits().filter_map(|commit| commit.binding.as_ref());
    let values = bindings.map(|binding| binding.values);
    let labels = commits().filter(|commit| !commit.parent.is_some());
    let labels = labels.flat_map(Commit::labels);
    let labels = labels.filter(|(name, _)| is_of_rerun(name));
    values.chain(labels.filter_map(|(_, text)| text)).collect()
}

/// Returns the artifact contents to delete. Contents stay if the session is bound to them, or if an artifact that is not to be
/// erased has the same content.
fn contents(rows: &[(Row, LogLine)], what: What) -> Vec<[u8; 32]> {
    let commits = || {
        let lines = rows.iter().map(|(_, line)| line);
        lines.filter_map(|line| Some((line, line.commit.as_ref()?)))
    };
    let calls = match what {
        What::Effect(effect) => calls_of(rows, effect),
        What::All | What::Line(_) => BTreeSet::new(),
    };
    let (mut selected, mut all) = (BTreeSet::new(), BTreeSet::new());
    let mut bound = BTreeSet::new();
    for (line, commit) in commits() {
        bound.extend(commit.binding.iter().map(|binding| binding.source));
        for artifact in commit.artifacts() {
            let one = (artifact.hash, artifact.call, artifact.name.clone());
            let is_selected = match what {
                What::All => true,
                What::Line(n) => n == line.n,
                What::Effect(_) => calls.contains(&artifact.call),
            };
            if is_selected {
                selected.insert(one.clone());
            }
            all.insert(one);
        }
    }
    let other: BTreeSet<[u8; 32]> = all.difference(&selected).map(|(hash, ..)| *hash).collect();
    let hashes: BTreeSet<[u8; 32]> = selected.iter().map(|(hash, ..)| *hash).collect();
    let stays = |hash: &[u8; 32]| other.contains(hash) || bound.contains(hash);
    hashes.into_iter().filter(|hash| !stays(hash)).collect()
}

/// Returns the id of the effect, and the id of the call that the effect is for, if there is one.
fn calls_of(rows: &[(Row, LogLine)], effect: Id) -> BTreeSet<Id> {
    let commits = rows.iter().filter_map(|(_, line)| line.commit.as_ref());
    let wished = commits.flat_map(|commit| &commit.wished);
    let calls = wished.filter(|wished| wished.id == effect);
    let calls = calls.filter_map(|wished| wished.what.call());
    std::iter::once(effect).chain(calls).collect()
}

/// The artifacts that are named by lines with erased texts. Their contents may be gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErasedArtifacts {
    /// The artifacts, each by call and name.
    pub artifacts: BTreeSet<(Id, Name)>,
    /// The lines that name these artifacts.
    pub lines: BTreeSet<Line>,
}

/// Finds the lines of a session that name artifacts and have erased texts.
///
/// # Errors
/// Errors of the store, and lines that do not verify.
pub async fn erased_artifacts(
    store: &Arc<dyn Store>,
    info: &SessionInfo,
) -> Result<ErasedArtifacts, StoreError> {
    let load = Load::new(store.clone(), info.id.clone(), info.salt);
    let mut erased = ErasedArtifacts::default();
    for (_, line) in read(store, &load, &info.id, info.head).await? {
        let is_erased = |text: &Text| matches!(text, Text::Erased { .. });
        if let Some(commit) = &line.commit
            && line.bodies.iter().any(is_erased)
        {
            for artifact in commit.artifacts() {
                let one = (artifact.call, artifact.name.clone());
                erased.artifacts.insert(one);
                erased.lines.insert(line.n);
            }
        }
    }
    Ok(erased)
}

/// The lines of a session that name artifacts and of which nothing is left: all their texts are erased, or those of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErasedLines {
    /// The lines.
    pub lines: BTreeSet<Line>,
    /// Hashes of the artifact contents that they name.
    pub contents: BTreeSet<[u8; 32]>,
    /// Hashes of the definitions that the session was ever bound to.
    pub bound: BTreeSet<[u8; 32]>,
}

/// Finds the lines of a session whose artifacts nobody can see any more.
///
/// # Errors
/// Errors of the store, and lines that do not verify.
pub async fn erased_lines(
    store: &Arc<dyn Store>,
    info: &SessionInfo,
) -> Result<ErasedLines, StoreError> {
    let load = Load::new(store.clone(), info.id.clone(), info.salt);
    let rows = read(store, &load, &info.id, info.head).await?;
    let kept = kept(&rows);
    let is_erased = |text: &Text| matches!(text, Text::Erased { .. });
    let is_left = |line: &LogLine| {
        let mut texts = (0..).zip(&line.bodies);
        texts.any(|(k, text)| !is_erased(text) && !kept.contains(&Body::new(line.n, k)))
    };
    let has_erased = |line: &LogLine| line.bodies.iter().any(is_erased);
    let lines = || rows.iter().map(|(_, line)| line);
    let is_whole = lines().any(has_erased) && !lines().any(is_left);
    let mut found = ErasedLines::default();
    for line in lines() {
        let Some(commit) = &line.commit else { continue };
        found
            .bound
            .extend(commit.binding.iter().map(|binding| binding.source));
        if is_whole || (has_erased(line) && !is_left(line)) {
            let named: BTreeSet<[u8; 32]> = commit.artifacts().map(|one| one.hash).collect();
            if !named.is_empty() {
                found.lines.insert(line.n);
                found.contents.extend(named);
            }
        }
    }
    Ok(found)
}

/// Returns the arguments, results and kept outcomes of an effect, of its call and of its probes.
fn of_effect(rows: &[(Row, LogLine)], effect: Id) -> Result<BTreeSet<Body>, EngineError> {
    let calls = calls_of(rows, effect);
    let mut bodies = BTreeSet::new();
    let entries = rows.iter().flat_map(|(_, line)| &line.ledger);
    let probes: BTreeSet<Id> = entries
        .filter_map(|entry| match entry {
            LedgerEntry::Probe {
                effect: probe, of, ..
            } if *of == effect => Some(*probe),
            _ => None,
        })
        .collect();
    for (_, line) in rows {
        if let Some(commit) = &line.commit {
            for wished in commit.wished.iter().filter(|w| w.id == effect) {
                bodies.extend(wished.args);
            }
        }
    }
    let mut known = false;
    for (_, line) in rows {
        if let Some(commit) = &line.commit {
            for push in &commit.pushes {
                match &push.what {
                    Interaction::Call(call) if calls.contains(&call.id) => {
                        known = true;
                        bodies.insert(call.args);
                    }
                    Interaction::Result(result) if calls.contains(&result.call) => {
                        bodies.extend(result.body);
                        bodies.extend(result.writes.iter().filter_map(|write| write.value));
                    }
                    _ => {}
                }
            }
            let admitted = commit.admitted.iter().filter(|a| a.id == Some(effect));
            bodies.extend(admitted.filter_map(|a| a.body));
            let hooked = commit
                .hooked()
                .filter(|hooked| hooked.effect == Some(effect));
            bodies.extend(hooked.map(|hooked| hooked.change));
        }
        for entry in &line.ledger {
            match entry {
                LedgerEntry::Done {
                    effect: of, kept, ..
                } if *of == effect => bodies.extend(*kept),
                LedgerEntry::Late {
                    effect: of, body, ..
                }
                | LedgerEntry::Released {
                    effect: of, body, ..
                } if *of == effect || probes.contains(of) => {
                    bodies.extend(*body);
                }
                LedgerEntry::Probe { of, what, .. } if *of == effect => match what {
                    Probing::Said { said: text, .. } | Probing::Failed { why: text, .. } => {
                        bodies.insert(*text);
                    }
                    Probing::Started { .. } => {}
                },
                LedgerEntry::Hold(hold) if hold.effect == effect => {
                    bodies.extend(hold.ask);
                    bodies.extend(hold.about.as_ref().and_then(About::body));
                }
                LedgerEntry::Step {
                    effect: of,
                    what: Stepped::Done(body) | Stepped::Failed(body),
                    ..
                } if *of == effect => {
                    bodies.insert(*body);
                }
                _ => {}
            }
        }
    }
    if known {
        return Ok(bodies);
    }
    Err(EngineError::Refused(format!(
        "no call of this session has the effect {effect}"
    )))
}

/// Adds the texts that are parts of these bodies.
fn with_parts(rows: &[(Row, LogLine)], mut bodies: BTreeSet<Body>) -> BTreeSet<Body> {
    for (_, line) in rows {
        for (k, text) in (0..).zip(&line.bodies) {
            let Text::Parts(parts) = text else { continue };
            if !bodies.contains(&Body::new(line.n, k)) {
                continue;
            }
            bodies.extend(parts.iter().filter_map(|part| match part {
                Part::Text(k) => Some(Body::new(line.n, *k)),
                Part::Artifact(_) => None,
            }));
        }
    }
    bodies
}

fn broken(session: &str, n: Line, why: &CodecError) -> EngineError {
    EngineError::Broken {
        session: session.into(),
        what: format!("line {n}: {why}"),
    }
}

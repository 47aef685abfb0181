//! A session is rerun: it begins again from what was recorded of it, with something changed, in a session of its own.
//!
//! First the recording is followed line by line: each outcome that it holds is taken as long as what is asked is what
//! was asked then (models by the digest of the neutral request and by who answered, tools and questions by their
//! arguments), so nothing runs and nobody is asked. At the first line that does not match the rerun goes on by itself:
//! models are asked, `pure` and `read` tools run, and what would touch the world is answered from the recording where
//! tool and arguments are the same, else simulated, else the block ends there as a leaf. What is left of the recording
//! still answers whoever asks the same.
//!
//! Nothing changed: nothing runs, nobody is asked, and both sessions are equal.

mod clock;
mod offers;
mod recorded;
mod recording;
mod walk;

pub(crate) use recorded::{Asked, Recorded};

use crate::bind;
use crate::clock::Clock;
use crate::engine::{Engine, EngineError, Inspection, StartOptions};
use crate::inbox::{Message, random_id};
use crate::past::{self, Past};
use crate::pending::PendingKind;
use crate::redefine::Redefine;
use crate::session::{Fate, Session, Settled};
use crate::store::memory::MemoryStore;
use crate::store::{Batch, NewSession, Row, SessionId};
use clock::RerunClock;
use recording::Recording;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::codec::{self, Hash};
use steersman_machine::commit::{Binding, LedgerEntry};
use steersman_machine::effect::Bodies;
use steersman_machine::ids::{Id, Line, Name, Time};
use steersman_machine::tick::Cx;
use walk::{Changed, Walk, Walked, text_of};

/// The label of a rerun that names the session, and with `@` the line from which on something is changed.
pub const RERUN_OF: &str = "rerun_of";
/// The label that holds the name of a rerun ([`Rerun::name`]).
pub const RERUN: &str = "rerun";

/// What is changed in a rerun.
#[derive(Clone, Debug, Default)]
pub struct Rerun {
    /// The branch that is rerun; none: the current one.
    pub branch: Option<Id>,
    /// What came up to this line of it stays as it was; none: it begins anew.
    pub at: Option<Line>,
    /// The definition; none: the same.
    pub definition: Option<Redefine>,
    /// Said at the line, in place of the next recorded message.
    pub say: Option<String>,
    /// Effects touch the world, where they are not on record.
    pub live: bool,
    /// Who answers in the place of people.
    pub people: People,
    /// A name for it: its label [`RERUN`].
    pub name: Option<Name>,
}

/// Who answers in the place of people, once the recording is no longer followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum People {
    /// What they said then: messages in their order, answers where the question is the same. A question without one
    /// ends its block.
    #[default]
    Recorded,
    /// Nobody: it stops where one is needed.
    Stop,
    /// As [`People::Recorded`]; and a question without an answer goes to this agent of the definition.
    Agent(Name),
}

/// Where a rerun left the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diverged {
    /// The line of the recording.
    pub line: Line,
    /// Why, in words.
    pub why: String,
}

/// What a rerun came to.
#[derive(Clone, Debug)]
pub struct Rerunned {
    /// Its session, in the same store.
    pub session: SessionId,
    /// Lines of the recording that were followed.
    pub lines: u64,
    /// Where it was left; none: it was followed to its end.
    pub diverged: Option<Diverged>,
    /// Model calls that the recording answered.
    pub recorded_calls: u64,
    /// Model calls that were made.
    pub live_calls: u64,
    /// How it stands. Of one that was followed to its end this is how the recorded session stands.
    pub settled: Arc<Settled>,
    /// Why it could go no further without touching the world; none: it could.
    pub leaf: Option<String>,
    /// Millionths of the currency that it cost.
    pub micros: u64,
    /// Tokens that were paid.
    pub tokens: u64,
}

impl Inspection {
    /// What a branch came to, as `outcome:` of the definition names it: a JSON object. Values that fail are left out.
    pub fn outcome_on(&self, branch: &crate::engine::BranchView) -> Json {
        let Some(network) = &self.network else {
            return Json::Null;
        };
        let cx = Cx {
            network,
            bodies: &Texts(self),
        };
        crate::driver::outcome(&cx, &branch.snapshot)
    }
}

/// The texts of a session that is looked at.
struct Texts<'a>(&'a Inspection);

impl Bodies for Texts<'_> {
    fn text(&self, body: steersman_machine::ids::Body) -> Arc<str> {
        self.0.history.text(body)
    }
}

impl Engine {
    /// Reruns a session, in a session of its own of this store. The recorded session is only looked at, whoever drives it.
    ///
    /// What is left of a rerun that was cut off is a session that does nothing by itself but ask models; begin another.
    ///
    /// # Errors
    /// [`EngineError::Refused`] if it has not begun, the line is not on the branch, or the other definition does not know
    /// what the session has there; what the store says; what the definition needs cannot be had here.
    pub async fn rerun(&self, id: &str, wanted: Rerun) -> Result<Rerunned, EngineError> {
        let seen = self.inspect(id).await?;
        let refused = |why: &str| EngineError::Refused(why.to_owned());
        let Some(old) = seen.network.clone() else {
            return Err(refused("this session has not begun"));
        };
        let branch = wanted.branch.unwrap_or(seen.current);
        let Some(view) = seen.branches.iter().find(|b| b.id == branch) else {
            return Err(EngineError::Refused(format!("there is no branch {branch}")));
        };
        let Some(bound) = view.snapshot.binding.as_deref().cloned() else {
            return Err(refused("this session has not begun"));
        };
        let recording = Recording::read(self, &seen, branch).await?;
        if let Some(at) = wanted.at
            && !recording.path.contains(&at)
        {
            return Err(EngineError::Refused(format!(
                "line {at} does nothing on this branch"
            )));
        }
        let (began, text) = began(&recording)?;
        let changed = self.changed(&seen, &old, &bound, &wanted).await?;
        let session = random_id();
        let past = Arc::new(Past::new(
            self.store().clone(),
            session.clone(),
            seen.info.salt,
            Line::NONE,
            past::DEFAULT_BOUND,
        ));
        let old = (
            self.network_of(&seen.info.id, &began, &text).await?,
            began,
            text,
        );
        let walked = Walk::new(&recording, branch, old, &changed, past).follow(&wanted.people)?;
        self.register(&changed.network);
        let now = self.written(&seen, &session, &changed, &walked).await?;
        self.remember_for_rerun(&changed);
        Box::pin(self.goes_on(&seen, session, wanted, walked, &changed, now)).await
    }

    fn remember_for_rerun(&self, changed: &Changed) {
        if changed.values.manifest.is_none() {
            self.remember((changed.binding.source, None), changed.network.clone());
        }
    }

    async fn changed(
        &self,
        seen: &Inspection,
        old: &Arc<steersman_machine::network::Network>,
        bound: &Binding,
        wanted: &Rerun,
    ) -> Result<Changed, EngineError> {
        let of = match wanted.at {
            Some(at) => format!("{}@{at}", seen.info.id),
            None => seen.info.id.to_string(),
        };
        let mut labels = vec![(Name::from(RERUN_OF), of)];
        labels.extend(
            wanted
                .name
                .iter()
                .map(|name| (RERUN.into(), name.to_string())),
        );
        let (network, binding, values) = match &wanted.definition {
            Some(wanted) => {
                let (binding, values) = self.bound_to(old, bound, &seen.values, wanted).await?;
                let text = text_of(&values);
                let network = self.network_of(&seen.info.id, &binding, &text).await?;
                let key = (binding.source, values.manifest);
                let network = self.with_natives(network, &values, key)?;
                (network, binding, values)
            }
            None => (old.clone(), bound.clone(), seen.values.clone()),
        };
        Ok(Changed {
            is_other: binding.digest != bound.digest,
            network,
            binding,
            values,
            at: wanted.at,
            says: wanted.say.is_some(),
            live: wanted.live,
            labels,
        })
    }

    /// Writes what the recording gave as the beginning of a session. The time of its last line.
    async fn written(
        &self,
        seen: &Inspection,
        session: &SessionId,
        changed: &Changed,
        walked: &Walked,
    ) -> Result<Time, EngineError> {
        let Some(last) = walked.lines.last().and_then(|line| line.commit.as_ref()) else {
            let why = walked.diverged.as_ref().map(|d| d.why.clone());
            return Err(EngineError::Refused(format!(
                "it cannot begin under the other definition: {}",
                why.unwrap_or_default()
            )));
        };
        let (store, now) = (self.store(), last.now);
        store
            .create(NewSession {
                id: session.clone(),
                network: changed.network.name.clone(),
                key: None,
                salt: seen.info.salt,
                created: self.clock().now(),
                first: None,
                said: None,
            })
            .await?;
        let claim = store.claim(session).await?;
        let mut mark = [0_u8; 8];
        getrandom::fill(&mut mark).expect("the operating system gives random bytes");
        let claimed = LedgerEntry::Claimed {
            epoch: claim.epoch,
            mark: u64::from_le_bytes(mark),
        };
        let mut hashes: BTreeMap<Line, Hash> = BTreeMap::new();
        let mut rows = Vec::new();
        for (k, line) in walked.lines.iter().enumerate() {
            let mut line = line.clone();
            if k == 0 {
                line.ledger.insert(0, claimed.clone());
            }
            for (hash, text) in codec::spill(&mut line) {
                store.put_blob(hash, text.as_bytes().into()).await?;
            }
            let before = hashes.get(&line.prev).copied().unwrap_or_default();
            let (bytes, hash) = codec::encode(&line, &before, &claim.salt);
            hashes.insert(line.n, hash);
            rows.push(Row {
                n: line.n,
                bytes: bytes.into(),
            });
        }
        let labels = changed.labels.iter();
        let labels: Vec<_> = labels
            .map(|(name, text)| (name.clone(), Some(text.as_str().into())))
            .collect();
        let pages = rows.len().div_ceil(ROWS);
        for (k, page) in rows.chunks(ROWS).enumerate() {
            let last = k + 1 == pages;
            let batch = Batch {
                rows: page.to_vec(),
                labels: if last { labels.clone() } else { Vec::new() },
                urgent: last,
                ..Batch::default()
            };
            store.append(&claim, batch).await?;
        }
        Ok(now)
    }

    async fn goes_on(
        &self,
        seen: &Inspection,
        id: SessionId,
        wanted: Rerun,
        walked: Walked,
        changed: &Changed,
        now: Time,
    ) -> Result<Rerunned, EngineError> {
        let mut came = Rerunned {
            session: id.clone(),
            lines: walked.lines.len() as u64,
            diverged: walked.diverged,
            recorded_calls: walked.answers,
            live_calls: 0,
            settled: Arc::new(Settled::Empty),
            leaf: None,
            micros: 0,
            tokens: 0,
        };
        let mut simulated = None;
        if came.diverged.is_some() {
            let mut left = walked.left;
            if wanted.say.is_some() {
                left.heard.pop_front();
            }
            let ends = wanted.people == People::Recorded && !wanted.live;
            let recorded = Arc::new(Recorded::new(left, ends));
            let clock = RerunClock::at(self.clock().clone(), now);
            let engine = self.beside(
                self.store().clone(),
                Arc::new(clock.clone()),
                Some(recorded.clone()),
            );
            engine.remember_for_rerun(changed);
            let conductor = Conductor {
                engine: &engine,
                clock,
                recorded: &recorded,
                wanted: &wanted,
            };
            simulated = conductor.play(&id, changed).await?;
            let (given, live) = recorded.counted();
            came.recorded_calls += given;
            came.live_calls = live;
        }
        let after = self.inspect(&id).await?;
        came.settled = Arc::new(match &came.diverged {
            None if wanted.at.is_none() || came.lines > 0 => {
                let branch = seen.branches.iter().find(|b| Some(b.id) == wanted.branch);
                branch.map_or_else(|| seen.settled.clone(), |b| seen.settled_on(b))
            }
            _ => after.settled.clone(),
        });
        came.leaf = leaf(&after);
        let spent = simulated.unwrap_or_default();
        came.micros = after.ledger.spent.micros + spent.0;
        came.tokens = after.ledger.spent.tokens + spent.1;
        if came.diverged.is_none() {
            self.list(&after, &came, now).await?;
        }
        Ok(came)
    }

    /// What lists show of a rerun that nobody had to drive.
    async fn list(
        &self,
        after: &Inspection,
        came: &Rerunned,
        now: Time,
    ) -> Result<(), EngineError> {
        let claim = self.store().claim(&came.session).await?;
        let branch = after.current_branch();
        let binding = branch.and_then(|b| b.snapshot.binding.clone());
        let batch = Batch {
            info: Some(crate::store::SessionState {
                status: came.settled.word().into(),
                // The session that it is of stays the newer of the two.
                updated: Time(now.0 - 1),
                definition: binding.map(|b| b.digest.short().into()).unwrap_or_default(),
                waits: "[]".into(),
                outcome: branch
                    .map(|b| after.outcome_on(b).to_string())
                    .unwrap_or_default()
                    .into(),
                ..Default::default()
            }),
            urgent: true,
            ..Batch::default()
        };
        Ok(self.store().append(&claim, batch).await?)
    }
}

/// So many rows are written at once.
const ROWS: usize = 64;

/// What a session was bound to when it began, with the text of its values.
fn began(recording: &Recording) -> Result<(Binding, String), EngineError> {
    let first = recording
        .lines
        .first()
        .and_then(|line| line.commit.as_ref());
    let binding = first.and_then(|commit| commit.binding.clone());
    let Some(binding) = binding else {
        return Err(EngineError::Refused(
            "this session has not begun".to_owned(),
        ));
    };
    let text = recording.past.text(binding.values).to_string();
    Ok((binding, text))
}

/// Why the current branch of a session ended without having done all, if it did.
fn leaf(seen: &Inspection) -> Option<String> {
    use steersman_machine::interaction::{Cause, Interaction};
    let branch = seen.current_branch()?;
    branch.snapshot.agents.keys().find_map(|agent| {
        let stack = seen.stack(branch, *agent);
        stack.iter().find_map(|(_, pushed)| match pushed {
            Interaction::Finished {
                cause: Cause::Leaf,
                body,
                ..
            } => Some(body.map_or_else(|| "leaf".to_owned(), |b| seen.history.text(b).to_string())),
            _ => None,
        })
    })
}

/// Plays the part of people and of time.
struct Conductor<'a> {
    engine: &'a Engine,
    clock: RerunClock,
    recorded: &'a Recorded,
    wanted: &'a Rerun,
}

impl Conductor<'_> {
    /// Until nothing more can happen. What an agent that stood in for people cost.
    async fn play(&self, id: &str, changed: &Changed) -> Result<Option<(u64, u64)>, EngineError> {
        let session = self.engine.open(id).await?;
        if let Some(say) = &self.wanted.say {
            let said = session.say(say).await?;
            if let Fate::Refused(why) = said.fate {
                session.stop().await;
                return Err(EngineError::Refused(why));
            }
        }
        let mut stands_in = None;
        let played = self.conduct(&session, changed, &mut stands_in).await;
        session.stop().await;
        let spent = match stands_in {
            Some(person) => Some(person.over().await?),
            None => None,
        };
        played.map(|()| spent)
    }

    async fn conduct(
        &self,
        session: &Session,
        changed: &Changed,
        stands_in: &mut Option<StandIn>,
    ) -> Result<(), EngineError> {
        loop {
            let settled = session.settled().await?;
            match &*settled {
                Settled::Answered { .. } | Settled::Empty => {
                    let Some(heard) = self.recorded.next_heard() else {
                        return Ok(());
                    };
                    let message = Message::Say {
                        text: heard.text,
                        to: None,
                        by: heard.by,
                        branch: None,
                    };
                    if let Fate::Refused(_) = session.send(message).await?.fate {
                        return Ok(());
                    }
                }
                Settled::Asks(all) => {
                    let asked = all.iter().find(|p| p.kind == PendingKind::Question);
                    let (Some(asked), People::Agent(agent)) = (asked, &self.wanted.people) else {
                        return Ok(());
                    };
                    let person = match stands_in {
                        Some(person) => person,
                        None => stands_in.insert(StandIn::of(self.engine, changed, agent).await?),
                    };
                    let Some(answer) = person.asked(&asked.text).await? else {
                        return Ok(());
                    };
                    let by = asked.by.clone().unwrap_or_else(|| "user".into());
                    let answered = session.answer(asked.effect, &answer, &by).await?;
                    if let Fate::Refused(_) = answered.fate {
                        return Ok(());
                    }
                }
                Settled::Waits(_) => {
                    // Nobody waits for days in a rerun; where it is live, the world does.
                    let due = session.outside().await?.due;
                    match due.filter(|_| !self.wanted.live) {
                        Some(due) if due > self.clock.now() => self.clock.skip_to(due),
                        _ => return Ok(()),
                    }
                    // The timer ends in a moment.
                    tokio::task::yield_now().await;
                    session.outside().await?;
                }
                Settled::Limit { .. }
                | Settled::Failed { .. }
                | Settled::Doubt(_)
                | Settled::Cancelled
                | Settled::Paused => return Ok(()),
            }
        }
    }
}

/// An agent of the definition that answers in the place of people.
struct StandIn {
    engine: Engine,
    session: Session,
}

impl StandIn {
    async fn of(engine: &Engine, changed: &Changed, agent: &Name) -> Result<Self, EngineError> {
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

    /// What it says to a question; none if it says nothing.
    async fn asked(&self, question: &str) -> Result<Option<String>, EngineError> {
        self.session.say(question).await?;
        Ok(match &*self.session.settled().await? {
            Settled::Answered { text, .. } if !text.trim().is_empty() => Some(text.to_string()),
            _ => None,
        })
    }

    /// What it cost: millionths and tokens.
    async fn over(self) -> Result<(u64, u64), EngineError> {
        let seen = self.session.inspect().await?;
        self.engine.stop().await;
        Ok((seen.ledger.spent.micros, seen.ledger.spent.tokens))
    }
}

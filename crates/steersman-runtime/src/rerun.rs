//! Reruns a session: a new session begins from the recording of another one, with something changed.
//!
//! First the recording is followed line by line. Each recorded outcome is taken as long as the request equals the recorded one:
//! for models the digest of the neutral request and the model, for tools and questions the arguments. So nothing runs and nobody
//! is asked. At the first line that does not match, the rerun leaves the recording: models are asked, and `pure` and `read` tools
//! run. An effect that would touch the world is answered from the recording if tool and arguments are equal. Otherwise it
//! is simulated, or the branch ends there as a *leaf*: it needs a result from outside. The rest of the recording still answers equal
//! requests.
//!
//! If nothing is changed, nothing runs, nobody is asked, and both sessions are equal.

mod clock;
mod hooks;
mod left;
mod offers;
mod recording;
mod say;
mod stand_in;
#[cfg(test)]
mod tests;
mod walk;
mod writing;

pub use crate::load::{RERUN, RERUN_OF, rerun_of};

use crate::engine::recorded::Recorded;

use crate::beside::Kept;
use crate::engine::{Engine, EngineError, Inspection};
use crate::inbox::Wanted;
use crate::ledger::Amount;
use crate::past::{self, Past};
use crate::pending::{self, PendingKind};
use crate::redefine::Redefine;
use crate::servers;
use crate::session::{Fate, Session, Settled};
use crate::step::{Go, Step, Steps, Stood};
use crate::store::{Batch, Left, SessionId, random_session_id};
use clock::RerunClock;
use recording::Recording;
use stand_in::StandIn;
use std::sync::Arc;
use steersman_machine::network::manifest::Manifest;
use steersman_machine::stored::commit::Binding;
use steersman_machine::stored::ids::{Bodies, Id, Line, Name, Time};
use walk::{Changed, Next, Walk, Walked, text_of};
use writing::Writing;

/// The changes of a rerun.
#[derive(Clone, Debug, Default)]
pub struct Rerun {
    /// The branch that is rerun. `None` means the current one.
    pub branch: Option<Id>,
    /// The last line of the branch that stays unchanged. `None` means that the rerun starts from the beginning.
    pub at: Option<Line>,
    /// The definition to use. `None` means that of the recorded session.
    pub definition: Option<Redefine>,
    /// Message that is sent at the line, before anything else happens there, in place of the next recorded message. Effects that
    /// are owed at the line are cancelled. If another definition leaves the recording earlier, the message is sent there.
    pub say: Option<String>,
    /// True if effects that are not in the recording may touch the world.
    pub live: bool,
    /// Those who answer in place of people.
    pub people: People,
    /// Name of the rerun, stored as its label `rerun`.
    pub name: Option<Name>,
    /// Callback that decides after each line how the rerun continues. `None` means that it never stops.
    pub steps: Option<Steps>,
}

/// Those who answer in place of people once the recording is no longer followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum People {
    /// The recorded people: messages in their order, and answers to equal questions. A question without an answer ends its block.
    #[default]
    Recorded,
    /// Nobody. The rerun stops when a person is needed.
    Stop,
    /// Like [`People::Recorded`], but a question without an answer goes to this agent of the definition.
    Agent(Name),
}

/// The point at which a rerun left the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diverged {
    /// The line of the recording.
    pub line: Line,
    /// The reason, in words.
    pub why: String,
}

/// Result of a rerun.
#[derive(Clone, Debug)]
pub struct Rerunned {
    /// Id of the new session, in the same store.
    pub session: SessionId,
    /// Number of lines of the recording that were followed.
    pub lines: u64,
    /// The point at which the recording was left. `None` if it was followed to its end.
    pub diverged: Option<Diverged>,
    /// Acts of people after that point that nobody repeats, in words: `fork why`, `join @300`. Their messages and answers are not
    /// listed here, because they are repeated.
    pub not_repeated: Vec<String>,
    /// Number of model calls that the recording answered.
    pub recorded_calls: u64,
    /// Number of model calls that were really made.
    pub live_calls: u64,
    /// State of the session. If the recording was followed to its end, this is the state of the recorded session.
    pub settled: Arc<Settled>,
    /// Reason why it could not go on without touching the world. `None` if it could.
    pub leaf: Option<String>,
    /// Money that the rerun cost, in millionths of the currency.
    pub micros: u64,
    /// Number of tokens that were paid.
    pub tokens: u64,
    /// The tools of MCP servers that are others now than in the recording, in words. The rerun has the recorded ones.
    pub servers: Vec<String>,
}

impl Engine {
    /// Reruns a session, as a new session of this store. The recorded session is only read, even if somebody drives it.
    ///
    /// An interrupted rerun leaves a session that touches nothing outside except models. Start another rerun then.
    ///
    /// # Errors
    /// [`EngineError::Refused`] if the session has not begun, if the line is not on the branch, or if the other definition does
    /// not know what the session has at that line. Also errors of the store, and anything that the definition needs and is
    /// missing here.
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
        let (changed, servers) = self.changed(&seen, &old, &bound, &wanted).await?;
        let session = random_session_id();
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
        self.register(&changed.network);
        let people = wanted.people.clone();
        let mut walk = Walk::new(
            &recording,
            branch,
            old,
            &changed,
            past,
            &people,
            self.sealer(),
        );
        let mut writing = Writing::of(self, &seen, &session, &changed);
        let (wanted, paused) = walk_on(&mut walk, &mut writing, wanted).await?;
        let mut becomes = walk.becomes();
        becomes.extend(seen.ledger.as_recorded());
        let mut walked = walk.over();
        writing.keep(std::mem::take(&mut walked.contents)).await?;
        if let Some(why) = walked.diverged.as_ref().filter(|_| walked.lines.is_empty()) {
            return Err(EngineError::Refused(format!(
                "it cannot begin under the other definition: {}; begin a new session under that one, or apply the \
                 change after a line",
                why.why
            )));
        }
        let now = writing.over(&walked.lines, becomes, paused).await?;
        self.remember_for_rerun(&changed);
        let ran =
            Box::pin(self.goes_on(&seen, session, (wanted, paused), walked, &changed, now)).await?;
        Ok(Rerunned { servers, ..ran })
    }

    fn remember_for_rerun(&self, changed: &Changed) {
        if changed.values.manifest.is_none() {
            self.remember((changed.binding.source, None), changed.network.clone());
        }
    }

    /// Returns what changes, and in words how the servers' lists differ now from those that the rerun has.
    async fn changed(
        &self,
        seen: &Inspection,
        old: &Arc<steersman_machine::network::Network>,
        bound: &Binding,
        wanted: &Rerun,
    ) -> Result<(Changed, Vec<String>), EngineError> {
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
        let mut servers = Vec::new();
        let (network, binding, values) = match &wanted.definition {
            Some(wanted) => {
                // A server that is declared as before has the recorded list: what it lists now is no change of this rerun.
                let mut lists = match seen.values.manifest {
                    Some(hash) => self.manifest(&seen.info.id, hash).await?,
                    None => Manifest::default(),
                };
                lists.servers.retain(|name, _| {
                    let declared = old.mcp.get(name);
                    declared.is_some() && declared == wanted.network.mcp.get(name)
                });
                let part = &seen.info.scope;
                let (binding, values) = self
                    .bound_to(old, bound, (&seen.values, part), wanted, lists.clone())
                    .await?;
                let of = (&values, part);
                servers = servers::differences(self, &wanted.network, of, &lists).await;
                let text = text_of(&values);
                let network = self.network_of(&seen.info.id, &binding, &text).await?;
                let key = (binding.source, values.manifest);
                let network = self.with_natives(network, &values, key)?;
                (network, binding, values)
            }
            None => (old.clone(), bound.clone(), seen.values.clone()),
        };
        let changed = Changed {
            is_other: binding.digest != bound.digest || values.models != seen.values.models,
            network,
            binding,
            values,
            at: wanted.at,
            says: wanted.say.is_some(),
            live: wanted.live,
            labels,
        };
        Ok((changed, servers))
    }

    async fn goes_on(
        &self,
        seen: &Inspection,
        id: SessionId,
        (wanted, paused): (Rerun, bool),
        walked: Walked,
        changed: &Changed,
        now: Time,
    ) -> Result<Rerunned, EngineError> {
        let mut result = Rerunned {
            session: id.clone(),
            lines: walked.followed,
            diverged: walked.diverged,
            not_repeated: walked.not_repeated,
            recorded_calls: walked.answers,
            live_calls: 0,
            settled: Arc::new(Settled::Empty),
            leaf: None,
            micros: 0,
            tokens: 0,
            servers: Vec::new(),
        };
        let mut stand_in_cost = None;
        if result.diverged.is_some() && !paused {
            let mut left = walked.left;
            if wanted.say.is_some() {
                left.heard.pop_front();
            }
            let ends = wanted.people == People::Recorded && !wanted.live;
            let recorded = Arc::new(Recorded::new(left, ends, self.clock().clone()));
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
                steps: std::sync::Mutex::new(wanted.steps.clone()),
            };
            stand_in_cost = conductor.play(&id, changed).await?;
            let (given, live) = recorded.counted();
            result.recorded_calls += given;
            result.live_calls = live;
        }
        let after = self.inspect(&id).await?;
        result.settled = Arc::new(match &result.diverged {
            None if !paused && (wanted.at.is_none() || result.lines > 0) => {
                let branch = seen.branches.iter().find(|b| Some(b.id) == wanted.branch);
                branch.map_or_else(|| seen.settled.clone(), |b| seen.settled_on(b))
            }
            _ => after.settled.clone(),
        });
        result.leaf = leaf(&after);
        let (micros, tokens) = stand_in_cost.unwrap_or_default();
        let spent = after.ledger.spent.plus(Amount::new(tokens, micros));
        (result.micros, result.tokens) = (spent.micros, spent.tokens);
        if result.diverged.is_none() || paused {
            self.list(&after).await?;
        }
        Ok(result)
    }

    /// Writes the list entries of a rerun that nobody had to drive. Its time of change is now: the times in its log are those of the
    /// recording.
    async fn list(&self, after: &Inspection) -> Result<(), EngineError> {
        let store = self.store();
        let claim = store.claim(&after.info.id, self.worker().await?).await?;
        let (meant, state) = (Kept::meant(after), after.listed(self.clock().now()));
        let network = after.network.as_ref();
        let expires = network
            .and_then(|network| pending::expires_at(network, &after.ledger, &state, state.updated));
        let left = Left {
            mail: claim.mail,
            wants: (meant.wants.into_iter()).chain(expires).min(),
            place: meant.place.clone(),
            trouble: None,
        };
        let batch = Batch {
            info: Some(state),
            urgent: true,
            ..meant.into_batch()
        };
        store.append(&claim, batch).await?;
        Ok(store.release(claim, left).await?)
    }
}

/// Follows a recording and asks the callback after each line, if there is one. Returns the request, with the text of a
/// [`Go::Redirect`] if there was one, and true if the rerun is to be left paused.
async fn walk_on(
    walk: &mut Walk<'_>,
    writing: &mut Writing<'_>,
    mut wanted: Rerun,
) -> Result<(Rerun, bool), EngineError> {
    let mut paused = false;
    loop {
        let line = match walk.next()? {
            Next::End => break,
            Next::Left => continue,
            Next::Made(line) => line,
        };
        let Some(steps) = wanted.steps.clone() else {
            continue;
        };
        writing.keep(std::mem::take(&mut walk.contents)).await?;
        writing.write(&walk.lines).await?;
        let at = Step {
            session: writing.session().clone(),
            line,
            recorded: true,
        };
        match steps.ask(at).await {
            Go::Line => {}
            Go::Free => wanted.steps = None,
            Go::Pause => {
                paused = true;
                break;
            }
            Go::Redirect(text) => {
                wanted.say = Some(text);
                walk.leave_here();
            }
        }
    }
    if wanted.say.is_some() && !paused {
        walk.leave_here();
    }
    if let Some(say) = wanted.say.as_ref().filter(|_| !paused && walk.is_left()) {
        walk.say(say)?;
    }
    Ok((wanted, paused))
}

/// Returns the binding with which a session began, and the text of its values.
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

/// Returns the reason why a block of the current branch ended as a leaf, if one did.
fn leaf(seen: &Inspection) -> Option<String> {
    use steersman_machine::stored::interaction::{Cause, Interaction};
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

/// Drives a rerun that has left the recording: repeats messages, answers questions, skips waits for a time.
struct Conductor<'a> {
    engine: &'a Engine,
    clock: RerunClock,
    recorded: &'a Recorded,
    wanted: &'a Rerun,
    /// Callback that is asked after each line, until it lets the rerun continue without stops.
    steps: std::sync::Mutex<Option<Steps>>,
}

impl Conductor<'_> {
    /// Runs until nothing more can happen. Returns the money and tokens of an agent that answered for people.
    async fn play(&self, id: &str, changed: &Changed) -> Result<Option<(u64, u64)>, EngineError> {
        let session = if self.wanted.steps.is_some() {
            self.engine.open_stepping(id).await?
        } else {
            self.engine.open(id).await?
        };
        if let Some(steps) = self.steps().filter(|_| self.wanted.say.is_some()) {
            // The text made a line that the callback has not seen.
            self.asks(&session, &steps).await?;
        } else if self.wanted.steps.is_some() {
            session.go(Go::Line).await?;
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

    fn steps(&self) -> Option<Steps> {
        let steps = self.steps.lock();
        steps
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// Waits until the session settles. Until then the callback is asked after each line.
    async fn settled(&self, session: &Session) -> Result<Arc<Settled>, EngineError> {
        loop {
            let Some(steps) = self.steps() else {
                return session.settled().await;
            };
            match session.stood().await? {
                Stood::Settled(settled) => return Ok(settled),
                Stood::At(_) => {
                    if self.asks(session, &steps).await? {
                        return Ok(Arc::new(Settled::Paused));
                    }
                }
            }
        }
    }

    /// Asks the callback how to go on. Returns true if it pauses the rerun.
    async fn asks(&self, session: &Session, steps: &Steps) -> Result<bool, EngineError> {
        let Stood::At(line) = session.stood().await? else {
            return Ok(false);
        };
        let go = steps
            .ask(Step {
                session: session.id().into(),
                line,
                recorded: false,
            })
            .await;
        if go == Go::Free {
            let mut steps = self.steps.lock();
            *steps
                .as_deref_mut()
                .expect("nobody panics while holding it") = None;
        }
        let is_over = go == Go::Pause;
        let receipt = session.go(go).await?;
        match receipt.map(|receipt| receipt.fate) {
            Some(Fate::Refused(why)) => Err(EngineError::Refused(why)),
            _ => Ok(is_over),
        }
    }

    async fn conduct(
        &self,
        session: &Session,
        changed: &Changed,
        stands_in: &mut Option<StandIn>,
    ) -> Result<(), EngineError> {
        loop {
            let settled = self.settled(session).await?;
            match &*settled {
                Settled::Answered { .. } | Settled::Empty => {
                    let Some(heard) = self.recorded.next_heard() else {
                        return Ok(());
                    };
                    let message = Wanted::say(heard.text).by(heard.by);
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
                    let by = asked
                        .roles
                        .first()
                        .cloned()
                        .unwrap_or_else(|| "user".into());
                    let answered = session.answer(asked.id(), &answer, &by).await?;
                    if let Fate::Refused(_) = answered.fate {
                        return Ok(());
                    }
                }
                Settled::Waits(_) => {
                    // A rerun skips the wait. A live rerun ends here, because only the world can end the wait.
                    let mut standing = session.standing();
                    let due = session.outside().await?.due;
                    let Some(due) = due.filter(|_| !self.wanted.live) else {
                        return Ok(());
                    };
                    self.clock.skip_to(due);
                    // The old state is reported until the timer has ended.
                    if standing.changed().await.is_err() {
                        return Err(EngineError::Stopped);
                    }
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

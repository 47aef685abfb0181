//! Converts the lines of a log, and the pieces that stream between them, into events.

use super::Cursor;
use super::cursor::Given;
use super::entry::is_first;
use super::held::Held;
use super::kind::{Called, Event, EventKind, How, SaidPart, Wrote};
use crate::reader::{PAGE, Reader};
use crate::story::modes;
use crate::turn::Turn;
use serde_json::Value as Json;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::commit::{
    Admitted, Commit, Fired, LedgerEntry, LogLine, Push, Turned,
};
use steersman_machine::stored::ids::{Body, Id, Line, Name, hex};
use steersman_machine::stored::interaction::{
    Artifact, Call, CallResult, Cause, Earlier, End, How as Ended, Interaction, Origin, Target,
};
use steersman_machine::stored::parts::{Part, Parts};
use steersman_machine::trace::chosen;
use steersman_machine::values::json::read;
use steersman_runtime::engine::EngineError;
use steersman_runtime::feed::FeedItem;
use steersman_runtime::model::Delta;
use steersman_runtime::pending::{PendingId, PendingKind};

/// Number of the newest ended effects whose late pieces are dropped.
const OVER: usize = 256;

/// An event and the agent that it belongs to.
pub(super) type Told = (Option<(Id, Name)>, EventKind);

/// Converts lines into events. If a line names a thing of an earlier line, that line is read, so the events do not depend on the
/// position at which the reader begins.
pub struct Teller {
    reader: Arc<dyn Reader>,
    agents: BTreeMap<Id, Name>,
    over: VecDeque<Id>,
    held: Held,
}

impl Teller {
    /// Creates a converter over a session.
    pub fn new(reader: Arc<dyn Reader>) -> Self {
        Self {
            reader,
            agents: BTreeMap::new(),
            over: VecDeque::new(),
            held: Held::default(),
        }
    }

    /// Returns the events of a line, in order. `line` is a line of the reader, or one that [`Reader::arrived`] returned.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn line(&mut self, line: &LogLine) -> Result<Vec<Event>, EngineError> {
        let told = self.tell(line).await?;
        if let Some(fault) = self.reader.fault() {
            return Err(fault);
        }
        let events = told.into_iter().enumerate();
        let events = events.map(|(k, (agent, kind))| {
            let (agent_id, agent) = agent.unzip();
            Event {
                cursor: Cursor {
                    line: line.n,
                    given: Given::First(k as u32 + 1),
                },
                line: Some(line.n),
                at: Some(line.at),
                branch: line.branch,
                agent,
                agent_id,
                kind,
            }
        });
        Ok(events.collect())
    }

    /// Returns the event of an item that is not in the log: a streamed piece, progress, the settled state. `after` is the cursor of
    /// the last event. `None` means that the item has no event: it is a line, which [`Teller::line`] converts; it belongs to a call
    /// that has ended; or all of it is held back. If the reader [masks secrets](Reader::is_masked), the end of a streamed text is held
    /// back until it is known that no secret begins there, and arguments of a call are held back until the call is on disk.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn piece(
        &mut self,
        item: FeedItem,
        after: Cursor,
    ) -> Result<Option<Event>, EngineError> {
        let known = self.reader.known();
        let (whose, kind) = match item {
            FeedItem::Line(_) | FeedItem::Closed => return Ok(None),
            FeedItem::Delta { .. } | FeedItem::Progress { .. } | FeedItem::Settled { .. }
                if self.reader.is_masked() && known.is_none() =>
            {
                return Ok(None);
            }
            FeedItem::Delta { effect, .. } | FeedItem::Progress { effect, .. }
                if self.over.contains(&effect) =>
            {
                return Ok(None);
            }
            FeedItem::Delta {
                effect,
                attempt,
                agent,
                branch,
                delta,
            } => {
                // Read first: if the caller stops waiting here, the piece can be given again.
                let who = self.who(agent).await?;
                let Some(delta) = self.held.shown(effect, attempt, delta, known.as_deref()) else {
                    return Ok(None);
                };
                let kind = match delta {
                    Delta::Text(text) => EventKind::Piece {
                        effect,
                        attempt,
                        text,
                    },
                    Delta::Reasoning(text) => EventKind::Reasoning {
                        effect,
                        attempt,
                        text,
                    },
                    Delta::Call(nth, name, text) => EventKind::Arguments {
                        effect,
                        attempt,
                        nth,
                        name: name.map(Into::into),
                        text,
                    },
                };
                (Some((branch, who)), kind)
            }
            FeedItem::Progress {
                effect,
                agent,
                branch,
                progress,
                ..
            } => {
                let kind = EventKind::Progress {
                    effect,
                    done: progress.done,
                    total: progress.total,
                    message: progress.message.map(|text| match &known {
                        Some(known) => known.masked(&text),
                        None => text,
                    }),
                };
                (Some((branch, self.who(agent).await?)), kind)
            }
            FeedItem::Withdrawn {
                effect,
                attempt,
                agent,
                branch,
            } => {
                self.held.ends(effect);
                let kind = EventKind::Withdrawn { effect, attempt };
                (Some((branch, self.who(agent).await?)), kind)
            }
            FeedItem::Settled { settled, .. } => {
                let turn = Turn::from(&*settled);
                let turn = match &known {
                    Some(known) => turn.masked(known),
                    None => turn,
                };
                (None, EventKind::Settled(turn))
            }
            FeedItem::Skipped(count) => (None, EventKind::Skipped { count }),
        };
        let (branch, agent) = match whose {
            Some((branch, agent)) => (branch, Some(agent)),
            None => (Id::MAIN, None),
        };
        let (agent_id, agent) = agent.unzip();
        Ok(Some(Event {
            cursor: after,
            line: None,
            at: None,
            branch,
            agent,
            agent_id,
            kind,
        }))
    }

    /// Returns the events on disk after a position. Reads whole lines until there are `most` events or more. Empty at the end of
    /// the log.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn after(&mut self, from: Cursor, most: usize) -> Result<Vec<Event>, EngineError> {
        let (mut events, mut at) = (Vec::new(), from.resume());
        while events.len() < most {
            let lines = self.reader.lines(at, PAGE.min(most)).await?;
            if lines.is_empty() {
                break;
            }
            for line in &lines {
                at = line.n;
                let told = self.line(line).await?;
                events.extend(told.into_iter().filter(|event| event.cursor > from));
                if events.len() >= most {
                    break;
                }
            }
        }
        Ok(events)
    }

    async fn read(&mut self, n: Line) -> Result<Arc<LogLine>, EngineError> {
        self.reader.line(n).await
    }

    /// Returns a text. Reads its line asynchronously first, so that the lookup of the text does not block the thread on the store.
    pub(super) async fn text(&mut self, body: Body) -> Result<Arc<str>, EngineError> {
        self.reader.line(body.line()).await?;
        Ok(self.reader.text(body))
    }

    pub(super) async fn text_or_none(
        &mut self,
        body: Option<Body>,
    ) -> Result<Arc<str>, EngineError> {
        match body {
            Some(body) => self.text(body).await,
            None => Ok("".into()),
        }
    }

    /// Returns the parts of a body whose line was read. Empty if it is one text.
    fn parts(&self, body: Body) -> Vec<SaidPart> {
        let Parts::Several(parts) = self.reader.parts(body) else {
            return Vec::new();
        };
        let shown = parts.iter().map(|part| match part {
            Part::Text(k) => SaidPart::Text(self.reader.text(Body::new(body.line(), *k))),
            Part::Artifact(of) => SaidPart::Artifact {
                name: of.name.clone(),
                media: of.media.clone(),
                len: of.len,
                hash: hex(&of.hash),
            },
        });
        shown.collect()
    }

    pub(super) async fn who(&mut self, id: Id) -> Result<(Id, Name), EngineError> {
        Ok((id, self.agent(id).await?))
    }

    /// Returns the name of an agent in the definition, read from the line in which it was made.
    async fn agent(&mut self, id: Id) -> Result<Name, EngineError> {
        if let Some(name) = self.agents.get(&id) {
            return Ok(name.clone());
        }
        let line = self.read(id.line()).await?;
        let made = line.commit.iter().flat_map(|commit| &commit.made);
        let name = made
            .filter(|made| made.agent == id)
            .map(|made| made.def.clone())
            .next()
            .unwrap_or_else(|| "?".into());
        self.agents.insert(id, name.clone());
        Ok(name)
    }

    /// Returns the agent and call that an effect belongs to.
    pub(super) async fn called(&mut self, effect: Id) -> Result<Option<(Id, Call)>, EngineError> {
        let line = self.read(effect.line()).await?;
        let Some(commit) = &line.commit else {
            return Ok(None);
        };
        let wished = commit.wished.iter().find(|wished| wished.id == effect);
        let call = wished.and_then(|w| w.what.call()).unwrap_or(effect);
        if call.line() == line.n {
            return Ok(opened(commit, call));
        }
        let line = self.read(call.line()).await?;
        Ok(line.commit.as_ref().and_then(|c| opened(c, call)))
    }

    async fn tell(&mut self, line: &LogLine) -> Result<Vec<Told>, EngineError> {
        let mut told = Vec::new();
        // The owner, messages and decisions precede what follows from them.
        let (first, rest): (Vec<&LedgerEntry>, Vec<&LedgerEntry>) =
            line.ledger.iter().partition(|entry| is_first(entry));
        for entry in first {
            told.extend(self.entry(line.n, entry).await?);
        }
        if let Some(commit) = &line.commit {
            self.commit(line, commit, &mut told).await?;
        }
        for entry in rest {
            told.extend(self.entry(line.n, entry).await?);
        }
        Ok(told)
    }

    async fn commit(
        &mut self,
        line: &LogLine,
        commit: &Commit,
        told: &mut Vec<Told>,
    ) -> Result<(), EngineError> {
        for made in &commit.made {
            self.agents.insert(made.agent, made.def.clone());
        }
        for admitted in &commit.admitted {
            if admitted.kind == Admitted::Outcome {
                self.over.extend(admitted.id);
                admitted.id.iter().for_each(|id| self.held.ends(*id));
            }
        }
        while self.over.len() > OVER {
            self.over.pop_front();
        }
        if let Some(binding) = &commit.binding {
            let kind = EventKind::Bound {
                network: binding.network.clone(),
                digest: binding.digest.to_string(),
            };
            told.push((None, kind));
        }
        if let Some(opening) = &commit.opening
            && line.branch != Id::MAIN
        {
            let kind = EventKind::Branch {
                label: opening.label.clone(),
                from: commit.parent,
                dry: opening.dry,
            };
            told.push((None, kind));
        }
        if !commit.edits.is_empty() {
            let mut writes = Vec::with_capacity(commit.edits.len());
            for edit in &commit.edits {
                let value = self.text_or_none(edit.value).await?;
                writes.push(Wrote {
                    name: edit.name.clone(),
                    value: read(&value).unwrap_or_default(),
                });
            }
            told.push((None, EventKind::State { writes }));
        }
        for used in &commit.usage {
            let kind = EventKind::Used {
                effect: used.effect,
                model: used.model.clone(),
                served: used.served.clone(),
                input: used.input,
                cached: used.cached,
                cache_write: used.cache_write,
                output: used.output,
                reasoning: used.reasoning,
                micros: used.micros,
                prefix: used.prefix,
                broke: used.broke.clone(),
                finish: used.finish.clone(),
                took: used.took,
                first: used.first,
            };
            told.push((None, kind));
        }
        let mut entered: Vec<(Id, &Name)> = commit.states().collect();
        let state = |state: &Name| EventKind::Entered {
            state: state.clone(),
        };
        for push in &commit.pushes {
            let who = self.who(push.agent).await?;
            for kind in self.push(push).await? {
                told.push((Some(who.clone()), kind));
            }
            // The agent spoke in the previous state; the calls that it made there belong to the next state.
            let said = matches!(push.what, Interaction::AssistantMessage { .. });
            let first = entered.iter().position(|(agent, _)| *agent == push.agent);
            if let Some(first) = first.filter(|_| said) {
                told.push((Some(who), state(entered.remove(first).1)));
            }
        }
        for (agent, entered) in entered {
            let who = self.who(agent).await?;
            told.push((Some(who), state(entered)));
        }
        for (agent, mode, why) in commit.modes() {
            let who = self.who(agent).await?;
            let why = self.why(why).await?;
            let mode = mode.clone();
            told.push((Some(who), EventKind::Mode { mode, why }));
        }
        for (name, value) in commit.labels() {
            let value = match value {
                Some(body) => Some(self.text(body).await?),
                None => None,
            };
            let name = name.clone();
            told.push((None, EventKind::Label { name, value }));
        }
        for came in commit.came() {
            told.push((None, artifact(came)));
        }
        Ok(())
    }

    /// Returns the cause of a mode change, with the name of the tool that was called.
    async fn why(&mut self, why: &Turned) -> Result<String, EngineError> {
        let name = match why {
            Turned::Exit(_, Fired::Call(call))
            | Turned::Everywhere(_, Fired::Call(call))
            | Turned::Said(call) => self.called(*call).await?.map(|(_, call)| call.name),
            _ => None,
        };
        Ok(modes::why(why, |_| name.clone(), |_| None))
    }

    async fn push(&mut self, push: &Push) -> Result<Vec<EventKind>, EngineError> {
        let kind = match &push.what {
            Interaction::UserMessage { from, body } => {
                let (by, who) = match from {
                    Origin::Outside(by) => (by.named().cloned(), by.who.clone()),
                    Origin::Agent(agent) => (Some(self.agent(*agent).await?), None),
                    // The caller's call was reported already; other origins are internal to the engine.
                    _ => return Ok(Vec::new()),
                };
                let text = self.text(*body).await?;
                let parts = self.parts(*body);
                EventKind::Heard {
                    by,
                    who,
                    text,
                    parts,
                }
            }
            Interaction::AssistantMessage {
                effect,
                text: Some(text),
                partial,
                ..
            } => EventKind::Said {
                effect: *effect,
                text: self.text(*text).await?,
                partial: *partial,
            },
            // An extraction is internal to the engine; its result is in the state.
            Interaction::Call(call) if call.is_extraction() => return Ok(Vec::new()),
            Interaction::Call(call) => self.call(call).await?,
            Interaction::Result(result) => return self.result(result).await,
            Interaction::Finished {
                end,
                cause,
                body,
                code,
                ..
            } => {
                if *end == End::Draft {
                    let text = self.text_or_none(*body).await?;
                    return Ok(vec![EventKind::Draft { text }]);
                }
                EventKind::Finished {
                    task: *end == End::Task,
                    ok: matches!(
                        cause,
                        Cause::Answer
                            | Cause::Tool
                            | Cause::Released
                            | Cause::Routed
                            | Cause::Rounds
                    ),
                    code: code.clone(),
                    text: self.text_or_none(*body).await?,
                }
            }
            Interaction::Route(route) => {
                // `chosen` looks up texts synchronously. They are in this line or in an earlier one.
                let read = self.text_or_none(route.read).await?;
                EventKind::Routed {
                    chosen: chosen(&route.chosen, &*self.reader),
                    refused: match route.refused {
                        Some(why) => Some(self.text(why).await?),
                        None => None,
                    },
                    read: serde_json::from_str(&read).unwrap_or_default(),
                }
            }
            Interaction::Earlier(Earlier::User(body)) => EventKind::Earlier {
                by_agent: false,
                text: self.text(*body).await?,
                calls: Vec::new(),
            },
            Interaction::Earlier(Earlier::Assistant { text, calls }) => EventKind::Earlier {
                by_agent: true,
                text: self.text_or_none(*text).await?,
                calls: calls.iter().map(|call| call.name.clone()).collect(),
            },
            Interaction::Summary(summary) => EventKind::Summary {
                policy: summary.policy.clone(),
                text: self.text(summary.body).await?,
                ok: !summary.covers.is_nothing(),
            },
            Interaction::AssistantMessage { text: None, .. } => return Ok(Vec::new()),
        };
        Ok(vec![kind])
    }

    async fn call(&mut self, call: &Call) -> Result<EventKind, EngineError> {
        let text = self.text(call.args).await?;
        let arguments = serde_json::from_str(&text).unwrap_or(Json::Null);
        let target = match &call.target {
            Target::Person(person) => {
                let question = arguments["question"].as_str().unwrap_or_default();
                return Ok(EventKind::Asked {
                    question: PendingId {
                        effect: call.id,
                        hold: None,
                    },
                    kind: PendingKind::Question,
                    by: vec![person.clone()],
                    text: question.into(),
                });
            }
            Target::Tool(_) => Called::Tool,
            Target::Agent(_) => Called::Agent,
            Target::Wait => Called::Wait,
            Target::Branches(_) => Called::Branches,
            Target::Unknown => Called::Unknown,
        };
        Ok(EventKind::Called {
            call: call.id,
            name: call.name.clone(),
            target,
            arguments,
        })
    }

    async fn result(&mut self, result: &CallResult) -> Result<Vec<EventKind>, EngineError> {
        let called = self.called(result.call).await?;
        if called
            .as_ref()
            .is_some_and(|(_, call)| call.is_extraction())
        {
            return Ok(Vec::new());
        }
        let name: Name = called.map_or_else(|| "?".into(), |(_, call)| call.name);
        let how = match result.how {
            Ended::Done | Ended::Finished | Ended::Released | Ended::DoneBefore => How::Done,
            Ended::Simulated => How::Simulated,
            Ended::Failed | Ended::NotInThisBranch => How::Failed,
            Ended::Refused => How::Refused,
            Ended::Cancelled => How::Cancelled,
            Ended::Unknown => How::Unknown,
            Ended::Limit => How::Limit,
            Ended::Expired => How::Expired,
        };
        let mut kinds = vec![EventKind::Ended {
            call: result.call,
            name,
            how,
            code: result.code.clone(),
            text: self.text_or_none(result.body).await?,
            parts: result.body.map_or_else(Vec::new, |body| self.parts(body)),
            by: result.by.as_ref().map(|by| by.word().into()),
            who: (result.by.as_ref())
                .and_then(Decider::person)
                .and_then(|by| by.who.clone()),
        }];
        kinds.extend(result.artifacts.iter().map(artifact));
        Ok(kinds)
    }
}

fn opened(commit: &Commit, id: Id) -> Option<(Id, Call)> {
    commit.pushes.iter().find_map(|push| match &push.what {
        Interaction::Call(call) if call.id == id => Some((push.agent, call.clone())),
        _ => None,
    })
}

fn artifact(made: &Artifact) -> EventKind {
    EventKind::Artifact {
        call: made.call,
        name: made.name.clone(),
        media: made.media.clone(),
        len: made.len,
    }
}

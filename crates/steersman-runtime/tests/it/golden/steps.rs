//! Plays the tests of a case file through an engine, step by step.

use super::outcomes::Outcomes;
use super::stage::{Memory, SESSION, Stage, Told};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use steersman_definition::test::{Act, Kill, Resolve, Step, Test};
use steersman_machine::network::Network;
use steersman_machine::stored::commit::{Admitted, LedgerEntry, LogLine, Probing, Reaching};
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::stored::interaction::{Class, Interaction};
use steersman_machine::stored::outcome::NewWrite;
use steersman_machine::values::expression::Names;
use steersman_machine::values::types::canonical;
use steersman_runtime::clock::{Clock as _, Virtual};
use steersman_runtime::engine::{BranchView, Engine, EngineError, Inspection, StartOptions};
use steersman_runtime::inbox::{CancelWhat, Message, Resolution, Wanted};
use steersman_runtime::ledger::Progress;
use steersman_runtime::model::scripted::{Script, ScriptedModel};
use steersman_runtime::pending::{Pending, PendingKind};
use steersman_runtime::session::{Fate, Session};
use steersman_runtime::store::Inbox as _;
use steersman_runtime::store::{NewMemory, Rated, Scope, StoreError};

use crate::world::NOON;

/// A test of a case that is played.
pub(super) struct Run<'a> {
    network: &'a Arc<Network>,
    test: &'a Test,
    stage: Stage,
    models: ScriptedModel,
    tools: Arc<Outcomes>,
    /// The engine; `None` after a kill.
    engine: Option<Engine>,
    begun: bool,
    messages: u64,
    told: Told,
}

/// The reason why a step did not happen.
enum Stopped {
    /// The session refused it, as `refused: true` expects.
    Refused(String),
    Failed(String),
}

/// The entries of state that a person sets in a step, as a message has them.
fn sets(step: &Step) -> Vec<(Name, Option<String>)> {
    let one = |set: &NewWrite| {
        let value = set.value.as_ref().map(ToString::to_string);
        (Name::from(&*set.name), value)
    };
    step.sets.iter().map(one).collect()
}

impl From<String> for Stopped {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl<'a> Run<'a> {
    pub(super) fn new(network: &'a Arc<Network>, test: &'a Test, memory: Memory) -> Self {
        let clock = Virtual::at(NOON);
        let models = ScriptedModel::new(Script::from(&test.script));
        let tools = Arc::new(Outcomes::new(&test.tools, clock.clone()));
        let stage = Stage::new(clock, Arc::new(models.clone()), tools.clone(), memory);
        Self {
            network,
            test,
            told: Told::new(stage.sealer.clone()),
            engine: Some(stage.process()),
            stage,
            models,
            tools,
            begun: false,
            messages: 0,
        }
    }

    /// Plays all steps and returns the rendering of everything that was stored.
    pub(super) async fn play(mut self) -> Result<String, String> {
        self.remember().await?;
        for (n, step) in self.test.steps.iter().enumerate() {
            let place = |why: String| format!("step {}: {why}\n", n + 1);
            let dies = self.dies_in(n).await.map_err(place)?;
            self.stage.store.dies_after(dies);
            if let Some(act) = &step.act {
                writeln!(self.told.text, "\n## step {}: {act:?}", n + 1).unwrap();
            }
            match self.step(step).await {
                // The process dies in this step; the steps `kill` and `resume` follow.
                Err(_) if dies.is_some() && self.begun => {}
                done => done.map_err(place)?,
            }
            self.show().await.map_err(place)?;
        }
        self.told.kept(&self.stage).await;
        Ok(self.told.text)
    }

    /// Renders what was stored since the last step.
    async fn show(&mut self) -> Result<(), String> {
        if !self.begun {
            return Ok(());
        }
        let engine = self.looks();
        self.told.lines(&self.stage, &engine).await;
        let (seen, _) = self.look().await?;
        self.told.lists(&self.stage, &seen).await;
        Ok(())
    }

    /// Saves the memories that the case begins with.
    async fn remember(&self) -> Result<(), String> {
        for (k, seed) in self.test.memory.iter().enumerate() {
            let name = &self.network.name;
            let new = NewMemory {
                key: format!("test/{k}").into(),
                part: Scope::default(),
                scope: seed.scope.as_deref().unwrap_or(name).into(),
                name: seed.name.as_str().into(),
                tags: seed.tags.iter().map(|tag| tag.as_str().into()).collect(),
                media: "text/plain".into(),
                content: seed.content.as_bytes().into(),
                session: None,
                effect: None,
                network: name.clone(),
                by: "test".into(),
                at: self.stage.clock.now(),
                until: None,
                replaces: Vec::new(),
            };
            let engine = self.looks();
            let id = engine.save_memory(new).await.map_err(|e| e.to_string())?;
            if let Some(rating) = seed.rating {
                let rated = Rated {
                    rating,
                    reason: None,
                    by: "user".into(),
                };
                let rated = engine.rate_memory(id, rated).await;
                rated.map_err(|e| e.to_string())?;
            }
        }
        Ok(())
    }

    /// Returns the engine; after a kill another one, which only reads.
    fn looks(&self) -> Engine {
        let engine = self.engine.clone();
        engine.unwrap_or_else(|| self.stage.process())
    }

    async fn look(&self) -> Result<(Inspection, Vec<Arc<LogLine>>), String> {
        let engine = self.looks();
        let seen = engine.inspect(SESSION).await.map_err(|e| e.to_string())?;
        let lines = engine.feed(SESSION, Line::NONE).lines().await;
        Ok((seen, lines.map_err(|e| e.to_string())?))
    }

    async fn session(&self) -> Result<Session, String> {
        let engine = self.engine.as_ref();
        let engine = engine.ok_or("the process was killed: `resume` comes first")?;
        engine.open(SESSION).await.map_err(|e| e.to_string())
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        if let Some(script) = &step.script {
            self.models.replace(Script::from(script));
        }
        let Some(act) = &step.act else { return Ok(()) };
        let done = Box::pin(self.act(step, act)).await;
        match (done, step.refused) {
            (Err(Stopped::Refused(why)), true) => {
                writeln!(self.told.text, "refused: {why}").unwrap();
                Ok(())
            }
            (Ok(()), true) => Err("it was to be refused and was not".into()),
            (Err(Stopped::Refused(why)), false) => Err(format!("refused: {why}")),
            (Err(Stopped::Failed(why)), _) => Err(why),
            (Ok(()), false) => self.settle().await.map(drop),
        }
    }

    async fn act(&mut self, step: &Step, act: &Act) -> Result<(), Stopped> {
        let by: Name = step.role.as_deref().unwrap_or("user").into();
        let branch = self.at(step).await?;
        let message = match act {
            Act::Say(text) if !self.begun => return Ok(self.start(text, step).await?),
            Act::Say(text) if step.sets.is_empty() => Wanted::Say {
                text: text.clone(),
                to: None,
            }
            .by(step.role.clone())
            .on(branch),
            Act::Say(text) => Wanted::SayWith {
                text: text.clone(),
                state: sets(step),
            }
            .by(step.role.clone())
            .on(branch),
            Act::Edit => Wanted::Edit(sets(step)).by(step.role.clone()).on(branch),
            Act::Event { name, fields } => return self.event(name, fields, step).await,
            Act::Interrupt(text) => Wanted::Interrupt(text.clone())
                .by(step.role.clone())
                .on(branch),
            Act::Answer(text) => {
                let kinds = &[PendingKind::Question, PendingKind::Input];
                let of = self.open(kinds, None, branch).await?.id();
                let sealed = self.stage.sealer.seal_text(text);
                Wanted::Answer { of, sealed }.by(by)
            }
            Act::Approve { tool, edit, repeat } => {
                let open = self.open(HELD, Some(tool), branch).await?;
                repeats(&open, edit.is_some(), *repeat)?;
                let args = edit.as_ref().map(Json::to_string);
                let of = open.id();
                Wanted::Approve { of, args }.by(by)
            }
            Act::Reject { tool, reason } => {
                let of = self.open(HELD, Some(tool), branch).await?.id();
                let reason = reason.clone();
                Wanted::Reject { of, reason }.by(by)
            }
            Act::Resolve { tool, to } => {
                let open = self.open(&[PendingKind::Doubt], Some(tool), branch);
                let of = open.await?.id();
                let how = self.resolution(tool, *to);
                Wanted::Resolve { of, how }.by(by)
            }
            Act::Cancel(what) => self.cancel(what, by, branch).await?,
            Act::Fork { .. } | Act::Rewind { .. } | Act::Adopt(_) | Act::Join { .. } => {
                self.branching(act).await?
            }
            Act::Advance(millis) => return Ok(self.advance(*millis).await?),
            Act::Kill(kill) => return Ok(self.killed(*kill).await?),
            Act::Resume => return Ok(self.resumed().await?),
        };
        self.send(message).await
    }

    /// Returns the next id of a message.
    fn message_id(&mut self) -> Name {
        self.messages += 1;
        format!("m{}", self.messages).into()
    }

    /// Starts the session, and renders its first message from the inbox.
    async fn start(&mut self, say: &str, step: &Step) -> Result<(), String> {
        let options = StartOptions {
            id: Some(SESSION.into()),
            agent: self.test.entry.clone(),
            say: Some(say.to_owned()),
            history: self.test.history.clone(),
            message_id: Some(self.message_id()),
            by: step.role.clone(),
            seed: Some(self.test.seed),
            ..StartOptions::default()
        };
        let engine = self.looks();
        let created = engine.create(self.network.clone(), options).await;
        created.map_err(|e| e.to_string())?;
        for stored in self.stage.store.inbox(SESSION).await.unwrap().1 {
            self.told.message(&stored);
        }
        self.begun = true;
        self.session().await.map(drop)
    }

    async fn send(&mut self, message: Message) -> Result<(), Stopped> {
        let id = self.message_id();
        self.send_as(id, message).await
    }

    async fn send_as(&mut self, id: Name, message: Message) -> Result<(), Stopped> {
        let stored = message.encode(id.clone(), self.stage.clock.now());
        self.told.message(&stored);
        let session = self.session().await?;
        let receipt = match session.send_as(id, message).await {
            Err(EngineError::Store(StoreError::Repeated(id))) => {
                let why = format!("`{id}` was accepted before with something else");
                return Err(Stopped::Refused(why));
            }
            receipt => receipt.map_err(|e| e.to_string())?,
        };
        match receipt.fate {
            Fate::Refused(why) => Err(Stopped::Refused(why)),
            Fate::Known => Err(Stopped::Refused("its id was accepted before".into())),
            Fate::Taken(_) | Fate::Waits(_) | Fate::Lies => Ok(()),
        }
    }

    /// Delivers an event to the session, under the id that its declaration renders.
    async fn event(&mut self, name: &str, fields: &Json, step: &Step) -> Result<(), Stopped> {
        let def = self.network.events.get(name);
        let def = def.ok_or_else(|| format!("there is no event `{name}`"))?;
        if def.session.is_some() || def.start.is_some() || !self.begun {
            return Err(format!("`{name}` chooses a session").into());
        }
        let fields = canonical(fields);
        let id = def.id.render(&Names::from_json(json!({ "event": fields })));
        let id = id.map_err(|e| e.to_string())?;
        let id = format!("{} event {name} {id}", self.network.name);
        let message = Message::from(Wanted::Event {
            event: name.into(),
            fields: fields.to_string(),
        });
        self.send_as(id.into(), message).await?;
        if step.refused {
            // An event that stays in the inbox met no wait.
            self.settle().await?;
            let (seen, _) = self.look().await?;
            if !seen.inbox.is_empty() {
                return Err(Stopped::Refused("no wait takes it".into()));
            }
        }
        Ok(())
    }

    /// Returns how a doubt is resolved. The result of an effect that was done is the next outcome of its tool.
    fn resolution(&self, tool: &str, to: Resolve) -> Resolution {
        match to {
            Resolve::Done => {
                let gave = self.tools.next_result(tool);
                let result = gave.unwrap_or_else(|| "done".into()).to_string();
                Resolution::Done { result }
            }
            Resolve::NotPerformed => Resolution::NotPerformed,
            Resolve::Fail => Resolution::Fail,
        }
    }

    async fn branching(&self, act: &Act) -> Result<Message, String> {
        Ok(match act {
            Act::Fork {
                branch,
                name,
                from,
                say,
            } => {
                let (branch, at) = self.place(branch, from.as_deref()).await?;
                Wanted::Fork {
                    at,
                    label: name.as_deref().map(Into::into),
                    say: say.clone(),
                    live: false,
                }
                .on(Some(branch))
            }
            Act::Rewind {
                branch,
                name,
                from,
                say,
            } => {
                let (branch, at) = self.place(branch, from.as_deref()).await?;
                let (seen, _) = self.look().await?;
                let head = seen.branches.iter().find(|b| b.id == branch);
                Wanted::Rewind {
                    at: at.or(head.map(|b| b.head)).unwrap_or(Line::NONE),
                    label: name.as_deref().map(Into::into),
                    say: say.clone(),
                }
                .on(Some(branch))
            }
            Act::Adopt(branch) => {
                let branch = self.branch(branch).await?;
                Message::from(Wanted::Adopt { branch, at: None })
            }
            Act::Join { branches, on, then } => {
                let mut ids = Vec::new();
                for branch in branches {
                    ids.push(self.branch(branch).await?);
                }
                let args = then.as_ref().and_then(|then| then.args.as_ref());
                let args = args.map(|args| {
                    let args = args.iter();
                    let args = args.map(|(name, data)| (name.to_string(), data.source()));
                    Json::Object(args.collect()).to_string()
                });
                let then = then.as_ref().map(|then| then.tool.clone());
                Message::from(Wanted::join(ids, on, then, args))
            }
            other => return Err(format!("{other:?} is not about branches")),
        })
    }

    async fn cancel(&self, what: &str, by: Name, at: Option<Id>) -> Result<Message, String> {
        let (seen, _) = self.look().await?;
        let on = at.unwrap_or(seen.current);
        let view = seen.branches.iter().find(|b| b.id == on);
        let view = view.ok_or("there is no such branch")?;
        let snapshot = &view.snapshot;
        let effect = snapshot.effects.keys().find(|effect| {
            let call = snapshot.call_of(**effect);
            call.is_some_and(|call| *call.call.name == *what)
        });
        let agent = snapshot.agents.values().find(|agent| {
            let named = agent.family.named.as_deref().unwrap_or(&agent.def);
            *named == *what || *agent.def == *what
        });
        let named = seen.ledger.find_branch(what);
        let (what, branch) = match (what, named, effect, agent) {
            ("session", ..) => (CancelWhat::Session, None),
            (_, Some(branch), ..) => (CancelWhat::Branch, Some(branch)),
            (_, _, Some(effect), _) => (CancelWhat::Effect(*effect), at),
            (_, _, None, Some(agent)) => (CancelWhat::Agent(agent.id), Some(on)),
            _ => return Err(format!("there is no `{what}` to cancel")),
        };
        Ok(Wanted::Cancel(what).by(by).on(branch))
    }

    /// Advances the clock, and stops at each time at which something is due.
    async fn advance(&self, millis: u64) -> Result<(), String> {
        let clock = &self.stage.clock;
        let end = clock.now().plus(millis);
        loop {
            let due = self.settle().await?;
            let next = due.filter(|due| *due < end).unwrap_or(end);
            clock.advance(clock.now().until(next));
            if next == end {
                return Ok(());
            }
        }
    }

    async fn settle(&self) -> Result<Option<Time>, String> {
        if self.engine.is_none() || !self.begun {
            return Ok(None);
        }
        let session = self.session().await?;
        self.stage.settle(&session, || self.tools.waiting()).await
    }

    // ---- kills

    /// Kills the process. The store refuses lines since the last step began; if that step wrote fewer lines, the process
    /// dies at rest.
    async fn killed(&mut self, kill: Kill) -> Result<(), String> {
        if let Kill::Line(line) = kill {
            let (seen, _) = self.look().await?;
            if seen.info.head.0 < line {
                return Err(format!("line {line} was not reached"));
            }
        }
        let engine = self.engine.take();
        let engine = engine.ok_or("the process was killed before")?;
        engine.kill().await;
        Ok(())
    }

    async fn resumed(&mut self) -> Result<(), String> {
        if self.engine.is_some() {
            return Err("nothing was killed".into());
        }
        self.take_back().await?;
        let engine = self.stage.process();
        engine.register(self.network);
        self.engine = Some(engine);
        self.session().await.map(drop)
    }

    /// Takes back outcomes that the log does not hold. An unsafe tool that has begun has used its outcome, whether the log
    /// holds it or not.
    async fn take_back(&self) -> Result<(), String> {
        let (seen, lines) = self.look().await?;
        let admitted: BTreeSet<Id> = lines
            .iter()
            .filter_map(|line| line.commit.as_ref())
            .flat_map(|commit| &commit.admitted)
            .filter(|admission| admission.kind == Admitted::Outcome)
            .filter_map(|admission| admission.id)
            .collect();
        let begun = |effect: Id| {
            let record = seen.ledger.effect(effect);
            record.is_some_and(|r| r.progress != Progress::Wished)
        };
        let free = |effect: Id| {
            let called = |b: &BranchView| {
                let tool = b.snapshot.call_of(effect)?.call.name.clone();
                Some(self.network.tools.get(&tool)?.effect != Class::Unsafe)
            };
            seen.branches.iter().find_map(called).unwrap_or(true)
        };
        let ended = ended_attempts(&lines);
        self.tools.take_back(|effect, attempt| {
            admitted.contains(&effect)
                || ended.get(&effect).is_some_and(|last| attempt <= *last)
                || !free(effect) && begun(effect)
        });
        Ok(())
    }

    /// Returns the last line that this step writes, if the next step is a `kill`.
    async fn dies_in(&self, n: usize) -> Result<Option<Line>, String> {
        match self.test.steps.get(n + 1).and_then(|s| s.act.as_ref()) {
            Some(Act::Kill(Kill::Line(line))) => Ok(Some(Line(*line))),
            Some(Act::Kill(Kill::Random)) => {
                let lines = Box::pin(self.undisturbed(n)).await?;
                // The line follows from the seed, so a test dies at the same place in each run.
                let drawn = self.test.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
                let at = usize::try_from(drawn).unwrap_or(0) % lines.len().max(1);
                Ok(lines.get(at).map(|line| line.n))
            }
            _ => Ok(None),
        }
    }

    /// Returns the log after the steps up to this one, played without kills.
    async fn undisturbed(&self, last: usize) -> Result<Vec<Arc<LogLine>>, String> {
        let mut other = Run::new(self.network, self.test, Memory::All);
        let mut killed = false;
        for step in &self.test.steps[..=last] {
            match &step.act {
                Some(Act::Kill(_) | Act::Resume) => killed = true,
                // Without the kill there is no doubt to resolve.
                Some(Act::Resolve { .. }) if killed => {}
                act => {
                    killed &= matches!(act, None | Some(Act::Advance(_)));
                    other.step(step).await?;
                }
            }
        }
        other.look().await.map(|(_, lines)| lines)
    }

    // ---- names

    async fn at(&self, step: &Step) -> Result<Option<Id>, String> {
        match &step.at {
            Some(name) => self.branch(name).await.map(Some),
            None => Ok(None),
        }
    }

    async fn branch(&self, name: &str) -> Result<Id, String> {
        let (seen, _) = self.look().await?;
        let found = seen.ledger.find_branch(name);
        found.ok_or_else(|| format!("there is no branch `{name}`"))
    }

    /// Returns a branch and a line of it: a number, or the first line (`#2`: the second) that closed a call of a tool.
    async fn place(&self, branch: &str, from: Option<&str>) -> Result<(Id, Option<Line>), String> {
        let id = self.branch(branch).await?;
        let Some(from) = from else {
            return Ok((id, None));
        };
        if let Ok(number) = from.parse() {
            return Ok((id, Some(Line(number))));
        }
        let (tool, nth) = match from.split_once('#') {
            Some((tool, nth)) => (tool, nth.parse::<usize>().map_err(|e| e.to_string())?),
            None => (from, 1),
        };
        let (_, lines) = self.look().await?;
        lines
            .iter()
            .filter(|line| line.branch == id && closes(line, tool, &lines))
            .nth(nth.saturating_sub(1))
            .map(|line| (id, Some(line.n)))
            .ok_or_else(|| format!("nothing on `{branch}` called `{from}`"))
    }

    /// Returns the oldest pending entry of these kinds.
    async fn open(
        &self,
        kinds: &[PendingKind],
        tool: Option<&str>,
        branch: Option<Id>,
    ) -> Result<Pending, Stopped> {
        let (seen, _) = self.look().await?;
        let found = seen.pending.iter().find(|p| {
            kinds.contains(&p.kind)
                && tool.is_none_or(|t| p.tool.as_deref() == Some(t))
                && branch.is_none_or(|b| p.branch == b)
        });
        let none = || Stopped::Refused("nothing of that kind is open".to_owned());
        found.cloned().ok_or_else(none)
    }
}

const HELD: &[PendingKind] = &[
    PendingKind::Approval,
    PendingKind::Repeat,
    PendingKind::Budget,
];

/// Refuses to approve a call that repeats another one, unless the case says that the repetition is meant.
fn repeats(open: &Pending, edited: bool, meant: bool) -> Result<(), Stopped> {
    match &open.repeats {
        Some(before) if !edited && !meant => Err(Stopped::Refused(format!(
            "it would be done again, an equal call is {before}"
        ))),
        None if meant => Err(Stopped::Refused("it repeats nothing".to_owned())),
        _ => Ok(()),
    }
}

/// Returns true if this line closed a call of this tool with success.
fn closes(line: &LogLine, tool: &str, all: &[Arc<LogLine>]) -> bool {
    let named = |id: Id| {
        all.iter()
            .filter_map(|l| l.commit.as_ref())
            .flat_map(|c| &c.pushes)
            .any(|p| matches!(&p.what, Interaction::Call(c) if c.id == id && *c.name == *tool))
    };
    line.commit.as_ref().is_some_and(|commit| {
        commit
            .pushes
            .iter()
            .any(|p| matches!(&p.what, Interaction::Result(r) if r.how.is_ok() && named(r.call)))
    })
}

/// Returns the last attempt whose end is in the log, for each effect of a tool that the engine runs for itself.
fn ended_attempts(lines: &[Arc<LogLine>]) -> BTreeMap<Id, u32> {
    let mut ended = BTreeMap::new();
    for entry in lines.iter().flat_map(|line| &line.ledger) {
        let (effect, last) = match entry {
            LedgerEntry::Reach { effect, what, .. } => match what {
                Reaching::Started { attempt, .. } => (*effect, attempt - 1),
                Reaching::Done | Reaching::Failed(_) => (*effect, u32::MAX),
            },
            LedgerEntry::Probe { effect, what, .. } => match what {
                Probing::Started { attempt, .. } => (*effect, attempt - 1),
                Probing::Said { attempt, .. } | Probing::Failed { attempt, .. } => {
                    (*effect, *attempt)
                }
            },
            _ => continue,
        };
        ended.insert(effect, last);
    }
    ended
}

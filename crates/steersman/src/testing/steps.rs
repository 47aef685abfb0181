//! Runs the steps of a test, in order, over a real engine.

mod graded;
mod killed;

use super::subject::{Whole, essence};
use super::{Report, Stage, answers, told};
use crate::{Error, Network, Session, Steersman};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steersman_definition::expect::{Subject, find, judge};
use steersman_definition::test::{Act, Expect, Resolve, Step, Test};
use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::{Admitted, LedgerEntry, LogLine, Probing, Reaching};
use steersman_machine::stored::ids::{Id, Line, Time};
use steersman_machine::stored::interaction::{Cause, Class, Interaction};
use steersman_runtime::clock::Clock;
use steersman_runtime::engine::{BranchView, Inspection, StartOptions};
use steersman_runtime::inbox::{CancelWhat, Message, Resolution, Wanted};
use steersman_runtime::ledger::Progress;
use steersman_runtime::pending::{Pending, PendingKind};
use steersman_runtime::session::{Fate, Fork, Receipt};

/// Interval between two checks whether an awaited event has happened.
const AGAIN: Duration = Duration::from_millis(1);

pub(super) struct Run<'a> {
    stage: &'a Stage,
    network: &'a Network,
    test: &'a Test,
    process: Option<Steersman>,
    id: Option<String>,
    /// True from a `kill` until the `resume` after it.
    killed: bool,
}

type Did = Result<(), String>;

impl<'a> Run<'a> {
    pub(super) fn new(stage: &'a Stage, network: &'a Network, test: &'a Test) -> Self {
        Self {
            stage,
            network,
            test,
            process: Some(stage.process(network)),
            id: None,
            killed: false,
        }
    }

    /// Runs all steps, then checks the final expectations. An error ends the test; failures are collected. Returns a text
    /// that is equal for equal runs.
    pub(super) async fn play(&mut self, report: &mut Report) -> Result<String, String> {
        let mut same = String::new();
        for (n, step) in self.test.steps.iter().enumerate() {
            let place = |failure: String| format!("step {}: {failure}", n + 1);
            let dies = self.dies_in(n).await.map_err(place)?;
            self.stage.store.dies_after(dies);
            match self.step(step).await {
                // A process that dies in this step causes an error; it is ignored, and the step's expectations are skipped.
                Err(_) if dies.is_some() && self.id.is_some() => continue,
                Err(failure) => {
                    report.failures.extend(self.causes().await);
                    self.counts(report).await;
                    return Err(place(failure));
                }
                Ok(()) => {}
            }
            if !step.expect.is_empty() {
                let failures = self.judge(&step.expect, None).await.map_err(place)?;
                report.failures.extend(failures.into_iter().map(place));
            }
        }
        if self.id.is_some() {
            let mut undisturbed = None;
            if self.test.expect.contains(&Expect::Undisturbed) {
                undisturbed = self.compare().await?;
            }
            let failures = self.judge(&self.test.expect, undisturbed).await?;
            report.failures.extend(failures);
            self.counts(report).await;
            let (inspection, lines) = self.look().await?;
            if let (false, Some(failed)) = (report.failures.is_empty(), Self::failed(&inspection)) {
                report.failures.insert(0, failed);
            }
            same = essence(&self.whole(&inspection, &lines));
        }
        if self.stage.asked.is_none() {
            report.failures.extend(self.left_over());
        }
        report.failures.extend(self.stage.tools.missed());
        if let Some(process) = &self.process {
            process.engine().stop().await;
        }
        Ok(same)
    }

    /// Returns why a step may have found nothing to act on: the calls that the script did not answer, else the failure of the
    /// session.
    async fn causes(&self) -> Vec<String> {
        let missed = self.stage.models.missed();
        if !missed.is_empty() || self.id.is_none() {
            return missed;
        }
        match self.look().await {
            Ok((inspection, _)) => Self::failed(&inspection).into_iter().collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Runs all steps, then reruns the session with nothing changed that a model sees.
    pub(super) async fn play_and_rerun(
        mut self,
        report: &mut Report,
        other: Option<&Network>,
    ) -> Result<(), String> {
        for (n, step) in self.test.steps.iter().enumerate() {
            let place = |failure: String| format!("step {}: {failure}", n + 1);
            let dies = self.dies_in(n).await.map_err(place)?;
            self.stage.store.dies_after(dies);
            match self.step(step).await {
                Err(_) if dies.is_some() && self.id.is_some() => {}
                done => done.map_err(place)?,
            }
        }
        let Some(id) = self.id.clone() else {
            return Ok(());
        };
        if let Some(process) = self.process.take() {
            process.engine().stop().await;
        }
        let process = self.stage.process(self.network);
        let changes = crate::Rerun {
            definition: other.cloned(),
            ..crate::Rerun::default()
        };
        let came = process.rerun(&id, changes).await.map_err(told)?;
        report.lines = came.lines;
        report.model_calls = came.live_calls;
        if let Some(diverged) = came.diverged {
            let (line, why) = (diverged.line, diverged.why);
            report.failures.push(format!("at line {line}: {why}"));
        }
        if came.live_calls > 0 {
            let calls = came.live_calls;
            report.failures.push(format!("{calls} models were asked"));
        }
        let diff = process.diff((&id, None), (&came.session, None)).await;
        let diff = diff.map_err(told)?;
        if !diff.is_empty() {
            report.failures.push(format!("it differs: {diff:?}"));
        }
        let verified = process.verify(&came.session).await.map_err(told)?;
        report
            .failures
            .extend(verified.damaged.iter().map(|d| format!("{d:?}")));
        process.engine().stop().await;
        Ok(())
    }

    fn process(&self) -> Result<&Steersman, String> {
        self.process
            .as_ref()
            .ok_or_else(|| "the process was killed: `resume` comes first".to_owned())
    }

    fn id(&self) -> Result<&str, String> {
        self.id
            .as_deref()
            .ok_or_else(|| "nothing was said yet: the first step is a message or an event".into())
    }

    async fn session(&self) -> Result<Session, String> {
        self.process()?.session(self.id()?).await.map_err(told)
    }

    async fn look(&self) -> Result<(Inspection, Vec<Arc<LogLine>>), String> {
        let spare;
        let process = if let Some(process) = &self.process {
            process
        } else {
            spare = self.stage.process(self.network);
            &spare
        };
        let inspection = process.engine().inspect(self.id()?).await.map_err(told)?;
        let mut feed = process.engine().feed(self.id()?, Line::NONE);
        let lines = feed.lines().await.map_err(told)?;
        Ok((inspection, lines))
    }

    async fn judge(
        &self,
        expect: &[Expect],
        undisturbed: Option<String>,
    ) -> Result<Vec<String>, String> {
        let (inspection, lines) = self.look().await?;
        let whole = Whole {
            inspection: &inspection,
            network: self.network.checked(),
            lines: &lines,
            undisturbed,
        };
        Ok(judge(&whole, expect))
    }

    /// Returns the failure of the session, if it failed, because that explains most other failures.
    fn failed(inspection: &Inspection) -> Option<String> {
        let branch = inspection
            .branches
            .iter()
            .find(|b| b.id == inspection.current)?;
        let stack = inspection.stack(branch, branch.snapshot.root?);
        match stack.last() {
            Some((
                _,
                Interaction::Finished {
                    cause: Cause::Failed,
                    body,
                    code,
                    ..
                },
            )) => {
                let why = body.map(|body| inspection.history.text(body));
                let (code, why) = (code.as_deref().unwrap_or("failed"), why.unwrap_or_default());
                Some(format!("the session failed ({code}): {why}"))
            }
            _ => None,
        }
    }

    fn whole<'b>(&'b self, inspection: &'b Inspection, lines: &'b [Arc<LogLine>]) -> Whole<'b> {
        Whole {
            inspection,
            network: self.network.checked(),
            lines,
            undisturbed: None,
        }
    }

    /// Runs the test again without its `kill` and `resume`, and returns the first difference between both sessions.
    async fn compare(&self) -> Result<Option<String>, String> {
        let stage = self.stage.another(self.network, self.test).await?;
        let mut other = Run::new(&stage, self.network, self.test);
        other.undisturbed(self.test).await?;
        let mut found = Vec::new();
        for run in [self, &other] {
            let (inspection, lines) = run.look().await?;
            found.push(essence(&run.whole(&inspection, &lines)));
        }
        let (mine, theirs) = (&found[0], &found[1]);
        let first = mine.lines().zip(theirs.lines()).find(|(a, b)| a != b);
        Ok((mine != theirs).then(|| match first {
            Some((a, b)) => format!("{} instead of {}", a.trim(), b.trim()),
            None => "one has more than the other".to_owned(),
        }))
    }

    async fn step(&mut self, step: &Step) -> Did {
        if let Some(script) = &step.script {
            self.stage.models.replace(answers(script)?);
        }
        let Some(act) = &step.act else { return Ok(()) };
        // An advance waits for each time that it passes, with the same patience.
        let patience = match act {
            Act::Advance(_) => Duration::MAX,
            _ => self.stage.patience(),
        };
        let done = tokio::time::timeout(patience, self.act(step, act))
            .await
            .unwrap_or_else(|_| Err("it does not come to an end".into()));
        match (done, step.refused) {
            (Err(Stopped::Refused(_)), true) => Ok(()),
            (Ok(()), true) => Err("it was to be refused and was not".into()),
            (Err(Stopped::Refused(why)), false) => Err(format!("refused: {why}")),
            (Err(Stopped::Failed(why)), _) => Err(why),
            (Ok(()), false) => self.settle().await.map(drop),
        }
    }

    async fn act(&mut self, step: &Step, act: &Act) -> Result<(), Stopped> {
        let by = step.role.as_deref().unwrap_or("user");
        match act {
            Act::Say(text) => self.say(text, step).await,
            Act::Edit => {
                let edit = crate::act::edit(&step.sets).by(step.role.clone());
                self.send(edit.on(self.at(step).await?)).await
            }
            Act::Event { name, fields } => {
                self.event(name, fields).await?;
                if step.refused {
                    // An event that stays in the inbox met no wait.
                    self.settle().await?;
                    let (inspection, _) = self.look().await?;
                    if !inspection.inbox.is_empty() {
                        return Err(Stopped::Refused("no wait takes it".into()));
                    }
                }
                Ok(())
            }
            Act::Interrupt(text) => {
                let message = Wanted::Interrupt(text.clone()).by(step.role.clone());
                self.send(message.on(self.at(step).await?)).await
            }
            Act::Answer(text) => {
                let kinds = &[PendingKind::Question, PendingKind::Input];
                let open = self.open(kinds, None, step).await?;
                let session = self.session().await?;
                taken(
                    session
                        .driven()
                        .answer(open.id(), text, by)
                        .await
                        .map_err(told)?,
                )
            }
            Act::Approve { tool, edit, repeat } => {
                let open = self.open(HELD, Some(tool), step).await?;
                match &open.repeats {
                    Some(before) if edit.is_none() && !repeat => {
                        return Err(Stopped::Refused(format!(
                            "it would be done again, an equal call is {before}: `repeat: true` where that is meant"
                        )));
                    }
                    None if *repeat => {
                        return Err(Stopped::Refused("it repeats nothing".to_owned()));
                    }
                    _ => {}
                }
                let session = self.session().await?;
                let driven = session.driven();
                let receipt = match edit {
                    Some(args) => driven.approve_edited(open.id(), args, by).await,
                    None => driven.approve(open.id(), by).await,
                };
                taken(receipt.map_err(told)?)
            }
            Act::Reject { tool, reason } => {
                let open = self.open(HELD, Some(tool), step).await?;
                let session = self.session().await?;
                let receipt = session
                    .driven()
                    .reject(open.id(), reason.as_deref(), by)
                    .await;
                taken(receipt.map_err(told)?)
            }
            Act::Resolve { tool, to } => self.resolve(tool, *to, by, step).await,
            Act::Cancel(what) => self.cancel(what, by, step).await,
            Act::Fork { .. } | Act::Rewind { .. } | Act::Adopt(_) | Act::Join { .. } => {
                self.branching(act).await
            }
            Act::Advance(millis) => Ok(self.advance(*millis).await?),
            // The line after which the process dies was set before the previous step. If that step wrote no such line, the
            // process dies while nothing runs.
            Act::Kill(kill) => {
                if let Some(why) = self.is_not_reached(*kill).await {
                    return Err(Stopped::Failed(why));
                }
                if let Some(process) = self.process.take() {
                    process.engine().kill().await;
                }
                self.killed = true;
                Ok(())
            }
            Act::Resume => {
                if !self.killed {
                    let why = "nothing was killed, so nothing is to be resumed";
                    return Err(Stopped::Failed(why.into()));
                }
                self.take_back().await?;
                self.process = Some(self.stage.process(self.network));
                self.killed = false;
                self.session().await?;
                Ok(())
            }
        }
    }

    /// Resolves a doubt. If the doubt is resolved as done, the result is the tool's next outcome in the test, or a text if
    /// there is none.
    async fn resolve(&self, tool: &str, to: Resolve, by: &str, step: &Step) -> Result<(), Stopped> {
        let open = self.open(&[PendingKind::Doubt], Some(tool), step).await?;
        let how = match to {
            Resolve::Done => {
                let gave = self.stage.tools.next_result(tool);
                let gave = gave.unwrap_or_else(|| "done".into());
                Resolution::Done {
                    result: gave.to_string(),
                }
            }
            Resolve::NotPerformed => Resolution::NotPerformed,
            Resolve::Fail => Resolution::Fail,
        };
        let session = self.session().await?;
        let receipt = session.driven().resolve(open.id(), how, by).await;
        taken(receipt.map_err(told)?)
    }

    /// After a kill, makes the outcomes available again whose results are not in the log. The outcome of an `unsafe` effect
    /// that has begun counts as used, even if the log does not have it: the effect is not repeated.
    async fn take_back(&self) -> Did {
        if self.id.is_none() {
            return Ok(());
        }
        let (inspection, lines) = self.look().await?;
        let admitted: BTreeSet<Id> = lines
            .iter()
            .filter_map(|line| line.commit.as_ref())
            .flat_map(|commit| &commit.admitted)
            .filter(|admission| admission.kind == Admitted::Outcome)
            .filter_map(|admission| admission.id)
            .collect();
        let begun = |effect: Id| {
            let record = inspection.ledger.effect(effect);
            record.is_some_and(|r| r.progress != Progress::Wished)
        };
        let free = |effect: Id| {
            let called = |b: &BranchView| {
                let tool = b.snapshot.call_of(effect)?.call.name.clone();
                Some(self.network.checked().tools.get(&tool)?.effect != Class::Unsafe)
            };
            inspection.branches.iter().find_map(called).unwrap_or(true)
        };
        let ended = ended_attempts(&lines);
        self.stage.tools.take_back(|effect, attempt| {
            admitted.contains(&effect)
                || ended.get(&effect).is_some_and(|last| attempt <= *last)
                || !free(effect) && begun(effect)
        });
        Ok(())
    }

    async fn branching(&self, act: &Act) -> Result<(), Stopped> {
        match act {
            Act::Fork {
                branch,
                name,
                from,
                say,
            } => {
                let (branch, at) = self.place(branch, from.as_deref()).await?;
                let fork = Fork {
                    branch: Some(branch),
                    at,
                    label: name.as_deref().map(Into::into),
                    say: say.clone(),
                    live: false,
                };
                let session = self.session().await?;
                taken(session.driven().fork(fork).await.map_err(told)?)
            }
            Act::Rewind {
                branch,
                name,
                from,
                say,
            } => {
                let (branch, at) = self.place(branch, from.as_deref()).await?;
                let (inspection, _) = self.look().await?;
                let head = inspection.branches.iter().find(|b| b.id == branch);
                let wanted = Wanted::Rewind {
                    at: at.or(head.map(|b| b.head)).unwrap_or(Line::NONE),
                    label: name.as_deref().map(Into::into),
                    say: say.clone(),
                };
                self.send(wanted.by(By::user()).on(Some(branch))).await
            }
            Act::Adopt(branch) => {
                let branch = self.branch(branch).await?;
                let wanted = Wanted::Adopt { branch, at: None };
                self.send(wanted.by(By::user())).await
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
                let then = then.as_ref().map(|t| t.tool.clone());
                let wanted = Wanted::join(ids, on, then, args);
                self.send(wanted.by(By::user())).await
            }
            _ => Ok(()),
        }
    }

    async fn say(&mut self, text: &str, step: &Step) -> Result<(), Stopped> {
        if self.id.is_none() {
            if !step.sets.is_empty() {
                let why = "the message that begins a session sets no state: declare a `default`, or begin with another message";
                return Err(Stopped::Failed(why.into()));
            }
            let options = StartOptions {
                agent: self.test.entry.clone(),
                say: Some(text.to_owned()),
                history: self.test.history.clone(),
                by: step.role.clone(),
                seed: Some(self.test.seed),
                ..StartOptions::default()
            };
            let session = self
                .process()?
                .start_with(self.network, options)
                .await
                .map_err(told)?;
            self.id = Some(session.id().to_owned());
            return Ok(());
        }
        let message = crate::act::said(text, &step.sets).by(step.role.clone());
        self.send(message.on(self.at(step).await?)).await
    }

    async fn event(&mut self, name: &str, fields: &Json) -> Result<(), Stopped> {
        let process = self.process()?;
        let sent = process
            .event_to(self.network, name, fields, self.id.as_deref())
            .await
            .map_err(|error| match error {
                Error::Refused(why) => Stopped::Refused(why),
                error => told(error).into(),
            })?;
        match sent {
            crate::Sent::Known(_) => Err(Stopped::Refused("its id was accepted before".into())),
            crate::Sent::Started(id) => {
                self.session_began(id);
                Ok(())
            }
            crate::Sent::Session(_) | crate::Sent::Offered => Ok(()),
        }
    }

    fn session_began(&mut self, id: String) {
        self.id.get_or_insert(id);
    }

    async fn send(&self, message: Message) -> Result<(), Stopped> {
        let session = self.session().await?;
        taken(session.driven().send(message).await.map_err(told)?)
    }

    async fn cancel(&self, what: &str, by: &str, step: &Step) -> Result<(), Stopped> {
        let (inspection, _) = self.look().await?;
        let at = self.at(step).await?;
        let branch = inspection
            .branches
            .iter()
            .find(|b| at.map_or(b.id == inspection.current, |at| b.id == at))
            .ok_or("there is no such branch")?;
        let snapshot = &branch.snapshot;
        let effect = snapshot.effects.keys().find(|effect| {
            snapshot
                .call_of(**effect)
                .is_some_and(|call| *call.call.name == *what)
        });
        let whole = Whole {
            inspection: &inspection,
            network: self.network.checked(),
            lines: &[],
            undisturbed: None,
        };
        let agent = find(&whole, what).ok();
        let named = whole.branch_named(what);
        let (what, branch) = match (what, named, effect, agent) {
            ("session", ..) => (CancelWhat::Session, None),
            (_, Some(branch), ..) => (CancelWhat::Branch, Some(branch)),
            (_, _, Some(effect), _) => (CancelWhat::Effect(*effect), at),
            (_, _, None, Some((branch, agent))) => (CancelWhat::Agent(agent), Some(branch)),
            _ => return Err(Stopped::Failed(format!("there is no `{what}` to cancel"))),
        };
        let wanted = Wanted::Cancel(what);
        self.send(wanted.by(by).on(branch)).await
    }

    /// Advances the clock step by step to each due time, earliest first, and lets everything that follows happen.
    async fn advance(&self, millis: u64) -> Did {
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

    /// Waits until the session can continue only by an input from outside or by the clock. Returns the next time at which
    /// something is due.
    async fn settle(&self) -> Result<Option<Time>, String> {
        if self.killed || self.id.is_none() {
            return Ok(None);
        }
        let session = self.session().await?;
        let rests = async {
            loop {
                let outside = session.driven().outside().await.map_err(told)?;
                let waiting = self.stage.tools.waiting();
                let now = self.stage.clock.now();
                if outside.running == waiting.len() && outside.due.is_none_or(|due| due > now) {
                    return Ok(waiting.into_iter().chain(outside.due).min());
                }
                // Tasks that are ready to run may not have been polled yet, so look again.
                tokio::time::sleep(AGAIN).await;
            }
        };
        tokio::select! {
            settled = rests => settled,
            () = tokio::time::sleep(self.stage.patience()) => {
                Err("it does not come to rest".into())
            }
        }
    }

    async fn at(&self, step: &Step) -> Result<Option<Id>, String> {
        match &step.at {
            Some(name) => self.branch(name).await.map(Some),
            None => Ok(None),
        }
    }

    async fn branch(&self, name: &str) -> Result<Id, String> {
        let (inspection, _) = self.look().await?;
        let found = inspection.ledger.find_branch(name);
        found.ok_or_else(|| format!("there is no branch `{name}`"))
    }

    /// Returns a branch and a line of it: by number, or the first (`tool#2`: the second) that closed a call of a tool.
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

    /// Finds the open hold or question of one of these kinds.
    async fn open(
        &self,
        kinds: &[PendingKind],
        tool: Option<&str>,
        step: &Step,
    ) -> Result<Pending, Stopped> {
        let (inspection, _) = self.look().await?;
        let branch = self.at(step).await?;
        let found = inspection.pending.iter().find(|p| {
            kinds.contains(&p.kind)
                && tool.is_none_or(|t| p.tool.as_deref() == Some(t))
                && branch.is_none_or(|b| p.branch == b)
        });
        found.cloned().ok_or_else(|| {
            let open: Vec<String> = inspection
                .pending
                .iter()
                .map(|p| format!("{} {}", p.kind.word(), p.tool.as_deref().unwrap_or(&p.text)))
                .collect();
            Stopped::Refused(format!("nothing of that kind is open; open: {open:?}"))
        })
    }
}

/// The kinds of holds that a step may approve or reject.
const HELD: &[PendingKind] = &[
    PendingKind::Approval,
    PendingKind::Repeat,
    PendingKind::Budget,
];

/// The reason why a step did not happen.
enum Stopped {
    /// The session refused it, as `refused: true` expects.
    Refused(String),
    Failed(String),
}

impl From<String> for Stopped {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<&str> for Stopped {
    fn from(why: &str) -> Self {
        Self::Failed(why.to_owned())
    }
}

fn taken(receipt: Receipt) -> Result<(), Stopped> {
    match receipt.fate {
        Fate::Refused(why) => Err(Stopped::Refused(why)),
        Fate::Known => Err(Stopped::Refused("its id was accepted before".into())),
        Fate::Taken(_) | Fate::Waits(_) | Fate::Lies => Ok(()),
    }
}

/// Returns true if the line closed a call of this tool successfully.
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

/// Returns the last ended attempt of each notification and each probe. Their outcomes are in the ledger and in no commit.
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

//! Probes: tools that find out if an effect in doubt happened.
//!
//! A probe is an effect of class `pure` or `read`, with an id and attempts of its own in the ledger; commits do not mention it.
//! It is asked while there is an open doubt whose tool declares it, so an owner that takes a session over begins it again. It is
//! tried again as its own `retry` says. Its finding and the consequence are in one line. An answer that comes after the doubt is
//! settled, or when its effect is no longer out, is noted as late and settles nothing.

use super::act::word;
use super::branches::Acted;
use super::draft::{Draft, Note};
use super::reach::clipped;
use super::{Aside, Attempt, Do, Job, OnDisk, OutState, RunAside, Stop, Task};
use crate::retry::{self, LONG, Next};
use crate::secrets::{mask_text, readable};
use crate::store::InboxMessage;
use crate::toolset::ToolRun;
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_machine::network::{OnDoubt, ProbeElse};
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::commit::{LedgerEntry, Probing, Release, Why};
use steersman_machine::stored::ids::{Id, Name, Time};
use steersman_machine::stored::interaction::Class;
use steersman_machine::tick::effect::ToolWork;
use steersman_machine::values::expression::{Data, Expr};
use steersman_machine::view::View;
use steersman_machine::view::mapping;
use steersman_machine::view::mapping::{Fault, Raw};

impl Job<'_, '_> {
    /// Returns the name of the probe that is declared for an outstanding effect in doubt.
    fn probe_of(&self, of: Id) -> Option<&Name> {
        let out = self.d.effects.out(of)?;
        if !matches!(out.state, OutState::Held) || !self.is_in_doubt(of) {
            return None;
        }
        self.d.ledger.hold(of, Why::Doubt)?;
        match self.tool_def(&out.tool()?.tool)?.on_doubt.as_ref()? {
            OnDoubt::Probe { probe, .. } => Some(probe),
            OnDoubt::Ask { .. } | OnDoubt::Fail => None,
        }
    }

    /// Returns true if a probe of this effect runs, is to begin, or is tried again soon. A probe with a long delay does not
    /// count: people may know sooner.
    pub(super) fn is_probed(&self, of: Id) -> bool {
        let soon = self.seen.now.plus(LONG);
        self.probe_of(of).is_some()
            && self.d.ledger.probe(of).is_none_or(|(_, probe)| {
                !probe.over && probe.again.is_none_or(|again| again <= soon)
            })
    }

    /// Returns true if a probe runs now, or will soon.
    pub(super) fn is_probing(&self) -> bool {
        let soon = || self.d.effects.outs().keys().any(|of| self.is_probed(*of));
        self.d.asides.probes() || (!self.is_halted() && soon())
    }

    /// Returns effects in doubt whose probe is asked again later, with the time.
    pub(super) fn probes_again(&self) -> impl Iterator<Item = (Time, Id)> {
        self.d.effects.outs().keys().filter_map(|of| {
            self.probe_of(*of)?;
            Some((self.d.ledger.probe(*of)?.1.again?, *of))
        })
    }

    /// Returns the next effect in doubt whose probe should be asked now.
    pub(super) fn next_probe(&self) -> Option<Id> {
        if self.d.bound.network().is_none() || self.is_halted() {
            return None;
        }
        let owed = |of: &Id| match self.d.ledger.probe(*of) {
            None => true,
            Some((id, probe)) => {
                !probe.over && !self.d.asides.is_probing(id) && probe.again.is_none()
            }
        };
        let mut all = self.d.effects.outs().keys().copied();
        all.find(|of| self.probe_of(*of).is_some() && owed(of))
    }

    /// Writes the line of an attempt. The attempt begins when the line is on disk, so the log counts every attempt that began.
    pub(super) fn probe(&mut self, of: Id) -> Result<(), Stop> {
        let Some(out) = self.d.effects.out(of) else {
            return Ok(());
        };
        let draft = self.draft(out.branch);
        self.probe_with(draft, vec![of])
    }

    fn probe_with(&mut self, mut draft: Draft, all: Vec<Id>) -> Result<(), Stop> {
        let mut begun = Vec::new();
        for of in all {
            let Some(tool) = self.probe_of(of).cloned() else {
                continue;
            };
            let (effect, attempt) = match self.d.ledger.probe(of) {
                Some((effect, probe)) if !probe.over => (effect, probe.attempt + 1),
                _ => (Id::new(draft.n, begun.len() as u32), 1),
            };
            draft.ledger.push(LedgerEntry::Probe {
                effect,
                of,
                what: Probing::Started { tool, attempt },
            });
            self.d.asides.probe_begins(effect);
            begun.push((effect, of, attempt));
        }
        let line = draft.n;
        draft.urgent = true;
        self.write(draft)?;
        for (effect, of, attempt) in begun {
            self.d
                .course
                .when_durable(line, OnDisk::Probe(effect, of, attempt));
        }
        Ok(())
    }

    /// Asks probes again, on request of a person: that of this effect, or all that have no finding so far. Returns `None` if
    /// there is nothing of that kind.
    pub(super) fn probe_again(
        &mut self,
        message: &InboxMessage,
        effect: Option<Id>,
    ) -> Result<Option<Acted>, Stop> {
        // A reader of the log may name the probe instead of the effect.
        let named = effect.map(|id| self.d.ledger.probing(id).map_or(id, |probe| probe.of));
        let asked = |of: &Id| match self.d.ledger.probe(*of) {
            Some((id, probe)) => {
                !self.d.asides.is_probing(id) && (probe.over || probe.again.is_some())
            }
            None => false,
        };
        let all = self.d.effects.outs().keys().copied();
        let all = all.filter(|of| named.is_none_or(|named| named == *of));
        let all: Vec<Id> = all
            .filter(|of| self.probe_of(*of).is_some() && asked(of))
            .collect();
        let Some(first) = all.first() else {
            let Some(of) = named.filter(|of| self.d.ledger.hold(*of, Why::Doubt).is_some()) else {
                return Ok(None);
            };
            let tool = self.d.effects.out(of).and_then(|out| out.tool());
            let tool = tool.map_or("its tool", |tool| &tool.tool);
            return Ok(Some(Err(match self.probe_of(of) {
                None if !self.d.effects.outs().contains_key(&of) => {
                    format!(
                        "no branch waits for {of}: its probe is not asked again; `resolve` says how it ended"
                    )
                }
                Some(probe) => format!("`{probe}` is asked already whether {of} happened"),
                None => format!(
                    "{of} waits for {}: `{tool}` declares no probe that could be asked again",
                    word(Why::Doubt)
                ),
            })));
        };
        let mut draft = self.draft(self.d.effects.outs()[first].branch);
        self.accepted(&mut draft, message);
        self.probe_with(draft, all)?;
        Ok(Some(Ok(())))
    }

    pub(super) fn start_probe(&mut self, effect: Id, of: Id, attempt: u32) {
        let run = self.probe_run(effect, of, attempt);
        let class = run.as_ref().map_or(Class::Read, |(run, _)| run.work.class);
        self.begins_aside(effect, attempt, Aside::Probe(of), class, run);
    }

    /// Orders an attempt of a tool that the driver runs for itself.
    pub(super) fn begins_aside(
        &mut self,
        effect: Id,
        attempt: u32,
        kind: Aside,
        class: Class,
        run: Result<(ToolRun, u64), Fault>,
    ) {
        let ran = run.as_ref().ok().map(|(run, _)| run);
        let place = ran.and_then(|run| self.place_of(&run.work.tool, || run.clone()));
        let toolset = ran.and_then(|run| self.seen.engine.toolset(self.network(), &run.work.tool));
        let task = RunAside {
            kind,
            class,
            toolset: toolset.cloned(),
            place,
            run,
        };
        self.out.orders.push(Do::Begin(Box::new(Attempt {
            effect,
            number: attempt,
            agent: Id::MAIN,
            branch: Id::MAIN,
            task: Task::Aside(Box::new(task)),
        })));
    }

    /// Returns the input of a probe's attempt, and its timeout in milliseconds.
    fn probe_run(&self, effect: Id, of: Id, attempt: u32) -> Result<(ToolRun, u64), Fault> {
        let (_, probe, args, _, _) = self
            .declared(of)
            .ok_or_else(|| Fault::new(Code::Failed, "there is no such probe"))?;
        let def = self
            .tool_def(&probe)
            .ok_or_else(|| Fault::new(Code::Failed, "there is no such probe"))?;
        let (timeout, class) = (def.timeout, def.effect);
        let scope = self.scope(of, None);
        let args = super::outcome::rendered(&args, &*scope)
            .map_err(|e| Fault::new(Code::Failed, e.to_string()))?;
        let args: Arc<str> = Json::Object(args).to_string().into();
        let run = ToolRun {
            network: self.network().clone(),
            session: self.d.who.session().clone(),
            part: self.d.who.claim().scope.clone(),
            mark: self.mark_of(effect),
            effect,
            attempt,
            work: ToolWork {
                makes: probe.clone(),
                tool: probe,
                class,
                args: args.clone(),
                approve: Vec::new(),
                inputs: Vec::new(),
            },
            folder: self.d.bound.values().folder(),
            artifacts: self.artifacts(of),
            steps: None,
            trace: None,
            writes: None,
            scope: self.scope(of, Some(args)),
        };
        Ok((run, timeout))
    }

    /// Returns the declared probe of an outstanding effect.
    fn declared(&self, of: Id) -> Option<Declared> {
        let tool = self.d.effects.out(of)?.tool()?.clone();
        match self.tool_def(&tool.tool)?.on_doubt.clone()? {
            OnDoubt::Probe {
                probe,
                args,
                done,
                otherwise,
                ..
            } => Some((tool, probe, args, done, otherwise)),
            OnDoubt::Ask { .. } | OnDoubt::Fail => None,
        }
    }

    /// Handles the end of an attempt.
    pub(super) fn probed(
        &mut self,
        effect: Id,
        of: Id,
        attempt: u32,
        raw: Raw,
    ) -> Result<(), Stop> {
        self.d.asides.probe_ended(effect);
        let known = self
            .d
            .ledger
            .probing(effect)
            .filter(|probe| probe.attempt == attempt);
        let (Some(failed), true) = (known.map(|probe| probe.failed), self.probe_of(of).is_some())
        else {
            return self.probed_late(effect, of, attempt, &raw);
        };
        let (Raw::Done(result) | Raw::Made { result, .. }) = &raw else {
            return self.probe_failed(effect, of, attempt, failed, raw);
        };
        let Some((tool, _, _, done, otherwise)) = self.declared(of) else {
            return Ok(());
        };
        let out = &self.d.effects.outs()[&of];
        let (branch, agent) = (out.branch, out.wish.agent);
        // It is asked about the action as it was asked for.
        let snapshot = &self.read_by(out);
        let args: Json = serde_json::from_str(&tool.args).unwrap_or_default();
        let happened = self.ask(|cx| {
            View::new(cx, snapshot, Some(agent))
                .with("args", args)
                .with("result", result.clone())
                .holds(&done)
        })?;
        let said = Note::Probed {
            effect,
            of,
            attempt,
            happened: happened.as_ref().ok().copied(),
            said: self.said_by_probe(of, result)?,
        };
        match (happened, otherwise) {
            (Ok(true), _) => {
                let released = Self::released(of, Why::Doubt, Release::Outcome, Decider::Probe);
                self.answer_raw(of, raw, vec![said, released]);
                Ok(())
            }
            (Ok(false), ProbeElse::NotPerformed) => {
                let mut draft = self.draft(branch);
                draft.note(said);
                // The effect passes the same gates as before its first attempt.
                self.go(&mut draft, of, Why::Doubt, Decider::Probe, None)?;
                self.write(draft)
            }
            (Ok(false), ProbeElse::Fail) => {
                self.give_up(of, Decider::Probe, "the probe found no trace of it");
                if let Some(offer) = self.last_offer(of) {
                    offer.notes.insert(0, said);
                }
                Ok(())
            }
            (Ok(false), ProbeElse::Ask) | (Err(_), _) => {
                let mut draft = self.draft(branch);
                draft.note(said);
                draft.urgent = true;
                self.write(draft)
            }
        }
    }

    /// Schedules another attempt, or notes that the probe decided nothing.
    fn probe_failed(
        &mut self,
        effect: Id,
        of: Id,
        attempt: u32,
        failed: u32,
        raw: Raw,
    ) -> Result<(), Stop> {
        let wanted = retry::wanted(&raw, Class::Read);
        let (Raw::Failed(fault) | Raw::NotPerformed(fault) | Raw::Unknown(fault)) = raw else {
            return Ok(());
        };
        let probe = self.probe_of(of).and_then(|probe| self.tool_def(probe));
        let attempts = 1 + probe.map_or(0, |def| def.retry);
        let (now, seed) = (self.seen.now, self.d.bound.values().seed);
        let next =
            wanted.map(|wanted| retry::next(wanted, failed + 1, attempts, seed, effect, now));
        let again = match next {
            Some(Next::After(millis)) => Some(now.plus(millis)),
            Some(Next::At(at)) => Some(at),
            Some(Next::GiveUp) | None => None,
        };
        let mut draft = self.draft(self.d.effects.outs()[&of].branch);
        let mut why = format!("{}: {}", fault.code, fault.message);
        self.mask_probed(of, &mut why);
        let why = draft.body(&clipped(&why));
        draft.urgent = true;
        draft.ledger.push(LedgerEntry::Probe {
            effect,
            of,
            what: Probing::Failed {
                attempt,
                why,
                again,
            },
        });
        self.write(draft)
    }

    /// Notes an answer that came after the doubt was settled, or when its effect was no longer out; it settles nothing.
    fn probed_late(&mut self, effect: Id, of: Id, attempt: u32, raw: &Raw) -> Result<(), Stop> {
        let said = match raw {
            Raw::Done(result) | Raw::Made { result, .. } => {
                // The secret parts of an answer are known only while the call is open.
                if self.d.effects.outs().contains_key(&of) {
                    self.said_by_probe(of, result)?
                } else {
                    format!("the probe of {of} answered")
                }
            }
            Raw::Failed(fault) | Raw::NotPerformed(fault) | Raw::Unknown(fault) => {
                format!("the probe of {of} failed ({})", fault.code)
            }
        };
        let mut draft = self.draft(self.d.ledger.current);
        draft.note(Note::Late(effect, attempt, said));
        self.write(draft)
    }

    /// Returns the answer of a probe with secrets masked, as people and the log may see it.
    fn said_by_probe(&self, of: Id, result: &Json) -> Result<String, Stop> {
        let Some((out, call)) = self
            .d
            .effects
            .out(of)
            .and_then(|out| Some((out, out.wish.call()?)))
        else {
            return Ok(String::new());
        };
        let snapshot = &self.d.branches.live()[&out.branch].snapshot;
        let agent = out.wish.agent;
        let mut said = self.ask(|cx| mapping::told(cx, snapshot, agent, call, result))?;
        self.mask_probed(of, &mut said);
        Ok(clipped(&said))
    }

    /// Masks secrets that the probe or the effect could read.
    fn mask_probed(&self, of: Id, text: &mut String) {
        let Some(tool) = self.d.effects.out(of).and_then(|out| out.tool()) else {
            return;
        };
        let scope = self.scope(of, None);
        let probe = self.probe_of(of);
        for name in probe.into_iter().chain([&tool.tool]) {
            mask_text(text, &readable(self.network(), name, &*scope));
        }
    }
}

/// An effect in doubt, its probe, the probe's arguments, the condition under which it happened, and the consequence if it did
/// not.
type Declared = (ToolWork, Name, Vec<(Name, Data)>, Expr, ProbeElse);

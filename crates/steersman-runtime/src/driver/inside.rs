//! Steps and waits inside of calls of tools: an attempt asks to begin them, and gets what earlier attempts recorded.
//!
//! The name of a step is the same in all attempts of a call. A step of a tool that touches the world begins when its line is on disk, and its end is on disk
//! before the attempt goes on. A wait ends the attempt; another one follows when its time has come. So does a session that is paused
//! or stopped, between two steps.

use super::draft::{Draft, NewHold, Note};
use super::{Asks, Do, Job, OnDisk, OutState, Stop, Told};
use crate::ledger::{Progress, Work};
use crate::limiter::Ended;
use crate::toolset::StepEnd;
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::commit::{About, LedgerEntry, Release, Stepped, Why};
use steersman_machine::stored::ids::{Body, Id, Name, Time};
use steersman_machine::stored::interaction::Class;
use steersman_machine::view::mapping::{Fault, Raw};

impl Job<'_, '_> {
    /// Handles the request of an attempt to begin a step, or to wait.
    pub(super) fn step_asked(
        &mut self,
        effect: Id,
        attempt: u32,
        name: Name,
        asks: Asks,
    ) -> Result<(), Stop> {
        let told = if self.runs(effect, attempt) {
            self.recorded_step(effect, &name, &asks)?
        } else {
            Some(Told::Refused(is_over()))
        };
        match (told, asks) {
            (Some(told), _) => {
                self.tells_step(effect, attempt, name, told);
                Ok(())
            }
            (None, Asks::Begin) => self.begins_step(effect, attempt, name),
            (None, Asks::Wait(millis)) => {
                let known = self.d.ledger.step(effect, &name);
                let due = known.and_then(|(_, inside)| inside.due());
                let due = due.unwrap_or(self.seen.now.plus(millis));
                self.waits_inside(effect, attempt, name, due)
            }
            (None, Asks::Person(question)) => self.question_asked(effect, attempt, name, *question),
        }
    }

    /// Returns the answer that earlier attempts recorded. `None`: the step is to run, also if it ran before.
    fn recorded_step(&self, effect: Id, name: &Name, asks: &Asks) -> Result<Option<Told>, Stop> {
        let Some((_, inside)) = self.d.ledger.step(effect, name) else {
            return Ok(None);
        };
        if inside.is_wait() != matches!(asks, Asks::Wait(_)) {
            let message = format!("an earlier attempt had a step and a wait of the name `{name}`");
            let fault = Fault::new(Code::Failed, message);
            return Ok(Some(Told::Refused(fault)));
        }
        Ok(match inside.what {
            Work::Wait(due) if due <= self.seen.now => Some(Told::Over),
            // An attempt that ended in another way did not wait for it.
            Work::Wait(_) => None,
            Work::Step(Stepped::Done(body)) => Some(Told::Ended(Ok(self.step_text(body)?))),
            Work::Step(Stepped::Failed(body)) => {
                let fault = fault_of(&self.step_text(body)?);
                // The error allows another attempt.
                fault.again.is_none().then_some(Told::Ended(Err(fault)))
            }
            Work::Step(Stepped::Began) => {
                let out = self.d.effects.out(effect);
                let class = out.and_then(|out| Some(out.tool()?.class));
                (class == Some(Class::Unsafe)).then(|| {
                    let message = format!("it is not known how step `{name}` ended");
                    Told::Refused(Fault::new(Code::InDoubt, message))
                })
            }
        })
    }

    fn step_text(&self, body: Body) -> Result<String, Stop> {
        let text = self.seen.past.stored(body)?;
        Ok(text.map_or_else(String::new, |text| text.to_string()))
    }

    fn begins_step(&mut self, effect: Id, attempt: u32, name: Name) -> Result<(), Stop> {
        let Some(out) = self.d.effects.out(effect) else {
            return Ok(());
        };
        if !out.touches_world() {
            self.tells_step(effect, attempt, name, Told::Begin);
            return Ok(());
        }
        if self.is_halted() {
            self.tells_step(effect, attempt, name, Told::Park);
            return Ok(());
        }
        let mut draft = self.draft(out.branch);
        draft.begins_unsafe = out.tool().is_some_and(|tool| tool.class == Class::Unsafe);
        let begin = Told::Begin;
        self.writes_step(draft, effect, attempt, name, Stepped::Began, begin)
    }

    /// Handles the end of a step: JSON of its result, or its error.
    pub(super) fn step_ended(
        &mut self,
        effect: Id,
        attempt: u32,
        name: Name,
        end: StepEnd,
    ) -> Result<(), Stop> {
        let runs = self.runs(effect, attempt);
        // The call may have ended meanwhile. The log still gets what happened in the world.
        let progress = self.d.ledger.effect(effect).map(|record| record.progress);
        let is_open = matches!(
            progress,
            Some(Progress::Started { .. } | Progress::Unknown { .. })
        );
        if !runs && !is_open {
            self.tells_step(effect, attempt, name, Told::Refused(is_over()));
            return Ok(());
        }
        let out = self.d.effects.out(effect);
        let branch = out.map_or(self.d.ledger.current, |out| out.branch);
        let mut draft = self.draft(branch);
        let what = match end {
            Ok(json) => Stepped::Done(draft.body(&json)),
            Err(fault) => Stepped::Failed(draft.body(&text_of(&fault))),
        };
        self.writes_step(draft, effect, attempt, name, what, Told::Over)
    }

    /// Writes a line of a step. The attempt is told when it is on disk.
    fn writes_step(
        &mut self,
        mut draft: Draft,
        effect: Id,
        attempt: u32,
        name: Name,
        what: Stepped,
        told: Told,
    ) -> Result<(), Stop> {
        let known = self.d.ledger.step(effect, &name);
        let nth = known.map_or_else(|| self.d.ledger.next_step(effect), |(nth, _)| nth);
        draft.urgent = true;
        draft.ledger.push(LedgerEntry::Step {
            effect,
            attempt,
            nth,
            name: name.clone(),
            what,
        });
        let tells = OnDisk::Step(effect, attempt, name, Box::new(told));
        draft.then.push(tells);
        self.write(draft)
    }

    fn waits_inside(
        &mut self,
        effect: Id,
        attempt: u32,
        name: Name,
        due: Time,
    ) -> Result<(), Stop> {
        let known = self.d.ledger.step(effect, &name);
        let nth = known.map_or_else(|| self.d.ledger.next_step(effect), |(nth, _)| nth);
        let mut draft = self.draft(self.d.effects.outs()[&effect].branch);
        draft.hold(NewHold {
            effect,
            why: Why::Wait,
            digest: self.digest(effect),
            by: Vec::new(),
            ask: None,
            due: Some(due),
            about: Some(About::Wait {
                nth,
                name: name.clone(),
                event: None,
            }),
        });
        self.write(draft)?;
        self.tells_step(effect, attempt, name, Told::Park);
        Ok(())
    }

    /// Tells an attempt what follows from what it asked.
    pub(super) fn tells_step(&mut self, effect: Id, attempt: u32, name: Name, told: Told) {
        self.out.orders.push(Do::Step {
            effect,
            attempt,
            name,
            told,
        });
    }

    /// Handles the end of an attempt that waits or was let go between two steps. Another one goes on after it.
    pub(super) fn tool_parked(&mut self, effect: Id, attempt: u32) -> Result<(), Stop> {
        if self.d.effects.reported_end(effect, attempt) {
            let ended = Ended::Answered(None);
            self.seen.permits.ended(effect, attempt, ended);
            self.retry_queued();
        }
        let cut = || Raw::Unknown(Fault::new(Code::Cancelled, "it was cut"));
        let Some(out) = self.d.effects.out(effect) else {
            return self.late(effect, attempt, cut());
        };
        if out.attempt != attempt || out.was_cut() {
            return Ok(());
        }
        let (branch, world) = (out.branch, out.touches_world());
        let class = out.tool().map(|tool| tool.class);
        if class == Some(Class::Unsafe) && self.d.ledger.open_step(effect).is_some() {
            return self.doubt(effect, attempt, cut());
        }
        let mut draft = self.draft(branch);
        if world && !self.has_begun_steps(effect) {
            // It did nothing so far.
            draft.note(Note::NotPerformed(effect, attempt));
        }
        let holds = |why| self.d.ledger.hold(effect, why).is_some();
        if holds(Why::Wait) || holds(Why::Elicited) {
            self.d.effects.holds(effect);
        } else {
            self.d.effects.tries_now(effect, self.seen.now);
        }
        self.write(draft)
    }

    /// The time of a wait has come: the call goes on.
    pub(super) fn wait_inside_is_over(&mut self, effect: Id) -> Result<(), Stop> {
        let Some(out) = self.d.effects.out(effect) else {
            return Ok(());
        };
        let mut draft = self.draft(out.branch);
        self.pass(&mut draft, effect, Why::Wait, Decider::Timeout, None)?;
        let ready = std::mem::take(&mut draft.ready);
        self.write(draft)?;
        for id in ready {
            self.d.effects.wakes(id);
        }
        Ok(())
    }

    /// Returns the end of a wait that its attempt did not wait for, if there is one.
    pub(super) fn wait_left(&self, effect: Id) -> Option<Note> {
        self.d.ledger.hold(effect, Why::Wait)?;
        let how = Release::Cancelled;
        Some(Self::released(effect, Why::Wait, how, Decider::Rule))
    }

    /// Returns true if nobody runs an effect that began, and another attempt goes on after its recorded steps: the log that says so
    /// is the newest one.
    pub(super) fn goes_on_after_steps(&self, effect: Id) -> bool {
        self.d.who.claim().accepted.is_none() && self.d.ledger.stands_between_steps(effect)
    }

    /// Returns true if an attempt of an effect was let go after it had done steps.
    pub(super) fn has_begun_steps(&self, effect: Id) -> bool {
        let record = self.d.ledger.effect(effect);
        let is_started = record.is_some_and(|record| record.progress.is_started());
        is_started && self.d.ledger.inside(effect).any(|(_, i)| !i.is_wait())
    }

    fn runs(&self, effect: Id, attempt: u32) -> bool {
        let out = self.d.effects.out(effect);
        out.is_some_and(|out| {
            out.attempt == attempt
                && (out.state == OutState::Running || self.d.effects.is_asking(effect))
        })
    }
}

fn is_over() -> Fault {
    Fault::new(Code::Cancelled, "its call does not run any more")
}

/// Returns the stored form of the error of a step.
fn text_of(fault: &Fault) -> String {
    let mut json = serde_json::json!({ "code": fault.code, "message": fault.message });
    if let Some(again) = fault.again {
        json["again"] = again.into();
    }
    json.to_string()
}

/// Reads the stored form of the error of a step. A text that was erased is an error, too.
fn fault_of(text: &str) -> Fault {
    let json: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let part = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    Fault {
        again: json["again"].as_u64(),
        ..Fault::new(part("code"), part("message"))
    }
}

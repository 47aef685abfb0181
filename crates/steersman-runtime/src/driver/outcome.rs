//! Ends of attempts: the outcome is offered, the attempt is tried again, or the effect is in doubt.

use super::draft::{Draft, Note};
use super::{Came, Do, Job, Judged, OutState, Stop};
use crate::ledger::Amount;
use crate::limiter::Ended;
use crate::model::BoundModel;
use crate::retry::{self, Next};
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_machine::context::RENDER_VERSION;
use steersman_machine::network::{ModelAgent, Network, Offer as Offers};
use steersman_machine::snapshot::Agent;
use steersman_machine::stored::by::Decider;
use steersman_machine::stored::codes::{Code, FailureCode};
use steersman_machine::stored::commit::{LedgerEntry, Release, Why};
use steersman_machine::stored::ids::{Id, Name, Time};
use steersman_machine::stored::interaction::Class;
use steersman_machine::stored::outcome::{Answer, Failure, Outcome};
use steersman_machine::values::expression::{Data, EvalError, Scope};
use steersman_machine::values::types::{Parameters, TypeKind};
use steersman_machine::view::mapping::{Fault, Raw};

impl Job<'_, '_> {
    /// Handles the end of an attempt.
    pub(super) fn attempt_ended(
        &mut self,
        effect: Id,
        attempt: u32,
        came: Came,
    ) -> Result<(), Stop> {
        match came {
            Came::Model(result) => self.model_ended(effect, attempt, *result),
            Came::Tool(raw) => self.tool_ended(effect, attempt, raw),
            Came::Parked => self.tool_parked(effect, attempt),
            Came::Probe(of, raw) => self.probed(effect, of, attempt, raw),
            Came::Reach(raw) => self.reached(effect, attempt, raw),
            Came::Judge(of, raw) => {
                self.judged(effect, of, raw);
                Ok(())
            }
        }
    }

    /// Handles the end of a short delay before another attempt of an effect, or of the notification of a person.
    pub(super) fn again(&mut self, effect: Id, attempt: u32) {
        if self.d.asides.delay_is_over(effect) {
            return;
        }
        self.d.effects.delay_is_over(effect, attempt);
    }

    fn model_ended(
        &mut self,
        effect: Id,
        attempt: u32,
        result: Result<Answer, Failure>,
    ) -> Result<(), Stop> {
        let Some(out) = self.d.effects.out(effect) else {
            return Ok(());
        };
        if out.attempt != attempt || out.was_cut() {
            return Ok(());
        }
        match result {
            Ok(mut answer) => {
                let label = self.model_label(effect);
                let usage = &mut answer.usage;
                usage.effect = Some(effect);
                usage.model.get_or_insert(label);
                usage.render = RENDER_VERSION;
                let rendered = self.d.effects.take_rendered(effect);
                if let Some((digest, prefix, broke)) = rendered {
                    (usage.request, usage.prefix, usage.broke) = (Some(digest), prefix, broke);
                }
                let claim = self.disbelieve(effect, &mut answer.usage);
                let (tokens, micros) = self.spent(&answer, effect);
                answer.usage.micros = micros;
                let spent = Amount::new(tokens, micros.unwrap_or_default());
                let mut notes = vec![Note::Spend(effect, spent.tokens, spent.micros)];
                notes.extend(self.outage_over(effect));
                notes.extend(claim.map(|claim| Note::Unbelievable(effect, claim)));
                self.unreserve(effect, spent);
                self.answer_outcome(effect, Outcome::Answer(answer), notes);
                Ok(())
            }
            Err(failure) => self.model_failed(effect, attempt, failure),
        }
    }

    fn model_failed(&mut self, effect: Id, attempt: u32, failure: Failure) -> Result<(), Stop> {
        let out = &self.d.effects.outs()[&effect];
        let (branch, agent) = (out.branch, out.wish.agent);
        let now = self.seen.now;
        // The model may charge for a call even if the answer was lost: the known part counts.
        let mut draft = self.draft(branch);
        let made = !matches!(
            failure.known(),
            Some(FailureCode::Limited | FailureCode::CircuitOpen)
        );
        let lost = if self.may_be_paid(&failure, out) {
            Some(self.lost(out))
        } else {
            // A search also counts calls that were made and not answered.
            (made && self.d.searches.tries(branch).is_some()).then(Amount::default)
        };
        let lost = lost.map(|lost| Note::Spend(effect, lost.tokens, lost.micros));
        self.d.effects.reserves(effect, Amount::default());
        if failure.known() == Some(FailureCode::Limited) {
            self.d.effects.was_not_made(effect);
        }
        if self.waits_for_period(effect, &failure)? {
            return Ok(());
        }
        let tried = self.d.effects.outs()[&effect].tried;
        let tries = attempt.saturating_sub(tried).max(1);
        self.withdraw(effect, attempt, (branch, agent));
        let times = self.model_retry(effect, true).times;
        let next = retry::next(
            failure.retry,
            tries,
            times,
            self.d.bound.values().seed,
            effect,
            now,
        );
        let is_open = failure.known() == Some(FailureCode::CircuitOpen);
        let waits_long = matches!(next, Next::GiveUp | Next::At(_));
        // A call that is held tries each of its models once, and then waits again.
        let is_tried = waits_long || is_open || self.waits_for_its_place(effect);
        let nobody = is_tried && self.notes_outage(effect, &failure);
        let gives_up = waits_long || is_open || nobody;
        if gives_up && failure.may_fall_back() && self.falls_back(effect) {
            if let Some(lost) = lost {
                draft.note(lost);
            }
            self.again_soon(effect, 0);
            self.retry_queued();
            return self.write(draft);
        }
        // A request that is wrong by itself stays wrong when the place answers.
        let is_last = nobody || (next == Next::GiveUp && failure.may_fall_back());
        if is_last && self.waits_for_place(effect, lost.clone())? {
            return Ok(());
        }
        let over = self.outage_over(effect);
        if next == Next::GiveUp {
            // In one line: the lost amount is neither forgotten nor counted twice.
            let notes = lost.into_iter().chain(over).collect();
            self.answer_outcome(effect, Outcome::Failed(failure), notes);
            return Ok(());
        }
        for note in lost.into_iter().chain(over) {
            draft.note(note);
        }
        match next {
            Next::After(millis) => self.again_soon(effect, millis),
            Next::At(at) => self.again_later(&mut draft, effect, at),
            Next::GiveUp => {}
        }
        self.retry_queued();
        self.write(draft)
    }

    /// Selects the next model of the chain. Returns false if there is none.
    fn falls_back(&mut self, effect: Id) -> bool {
        let out = &self.d.effects.outs()[&effect];
        let chain = out.asked.as_ref().map(|asked| self.network().chain(asked));
        let more = chain.is_some_and(|chain| chain.len() > out.rung + 1);
        if more {
            self.d.effects.falls_back(effect);
        }
        more
    }

    fn again_soon(&mut self, effect: Id, millis: u64) {
        let at = self.seen.now.plus(millis);
        let attempt = self.d.effects.again_soon(effect, at);
        self.seen.permits.give_slot(effect);
        self.out.orders.push(Do::Alarm {
            effect,
            attempt,
            millis,
        });
    }

    /// Schedules another attempt after a long delay. The time is in the log, so it survives this process.
    pub(super) fn again_later(&mut self, draft: &mut Draft, effect: Id, at: Time) {
        draft.ledger.push(LedgerEntry::Again { effect, at });
        self.d.effects.waits_until(effect, at);
        self.seen.permits.give_slot(effect);
        self.retry_queued();
    }

    fn tool_ended(&mut self, effect: Id, attempt: u32, raw: Raw) -> Result<(), Stop> {
        if self.d.effects.reported_end(effect, attempt) {
            let ended = as_its_place_sees(&raw);
            self.seen.permits.ended(effect, attempt, ended);
            self.retry_queued();
        }
        let Some(out) = self.d.effects.out(effect) else {
            return self.late(effect, attempt, raw);
        };
        if out.attempt != attempt || out.was_cut() {
            return Ok(());
        }
        let Some(tool) = out.tool().cloned() else {
            return Ok(());
        };
        let world = out.touches_world();
        let branch = out.branch;
        if self.keeps_question(effect, tool.class, &raw) {
            return self.ended_before_answer(branch, (effect, attempt), &raw, world);
        }
        if out.state == OutState::Held {
            // The session stood at its question.
            self.d.effects.goes_on(effect);
            self.busy();
        }
        let wanted = retry::wanted(&raw, tool.class);
        let raw = self.beside_earlier(effect, raw);
        let note = match &raw {
            Raw::Done(_) | Raw::Made { .. } | Raw::Failed(_) => Note::Done(effect, attempt),
            Raw::NotPerformed(_) => Note::NotPerformed(effect, attempt),
            Raw::Unknown(_) => Note::Unknown(effect, attempt),
        };
        let notes = world.then_some(note).into_iter();
        let left = self
            .wait_left(effect)
            .into_iter()
            .chain(self.question_left(effect));
        let notes: Vec<Note> = notes.chain(left).collect();
        if let Some(wanted) = wanted {
            let attempts = 1 + self.tool_def(&tool.tool).map_or(0, |t| t.retry);
            let now = self.seen.now;
            let tried = attempt.saturating_sub(self.d.ledger.waits_of(effect));
            let next = retry::next(
                wanted,
                tried.max(1),
                attempts,
                self.d.bound.values().seed,
                effect,
                now,
            );
            if next != Next::GiveUp {
                let mut draft = self.draft(branch);
                // The end of this attempt is recorded before another begins.
                for note in notes {
                    draft.note(note);
                }
                match next {
                    Next::After(millis) => self.again_soon(effect, millis),
                    Next::At(at) => self.again_later(&mut draft, effect, at),
                    Next::GiveUp => {}
                }
                return self.write(draft);
            }
        }
        let raw = match wanted {
            Some(_) if attempt > 1 => self.after_all(effect, attempt, raw),
            _ => raw,
        };
        if let (Raw::Unknown(_), Class::Unsafe) = (&raw, tool.class) {
            self.doubt(effect, attempt, raw)
        } else {
            self.answer_raw(effect, raw, notes);
            Ok(())
        }
    }

    /// An attempt ended without an outcome while a person was asked for it: the question stays open.
    fn ended_before_answer(
        &mut self,
        branch: Id,
        (effect, attempt): (Id, u32),
        raw: &Raw,
        world: bool,
    ) -> Result<(), Stop> {
        let mut draft = self.draft(branch);
        if world {
            draft.note(match raw {
                Raw::NotPerformed(_) => Note::NotPerformed(effect, attempt),
                _ => Note::Unknown(effect, attempt),
            });
        }
        self.write(draft)
    }

    /// Adds to the last failure how many attempts there were, over how long.
    fn after_all(&self, effect: Id, attempts: u32, raw: Raw) -> Raw {
        let since = self.d.effects.out(effect).map(|out| out.since);
        let lasted = since.map_or(0, |since| since.until(self.seen.now));
        raw.map_fault(|fault| Fault {
            message: format!(
                "{} ({attempts} attempts in {})",
                fault.message,
                super::outage::span(lasted)
            ),
            ..fault
        })
    }

    /// If an earlier attempt may have happened, turns a proof that this one did not happen into `Unknown`.
    fn beside_earlier(&self, effect: Id, raw: Raw) -> Raw {
        let progress = self.d.ledger.effect(effect).map(|record| record.progress);
        match (raw, progress) {
            (
                Raw::NotPerformed(fault),
                Some(crate::ledger::Progress::Started { doubtful: true }),
            ) => Raw::Unknown(Fault {
                message: format!("{}; an earlier attempt may have happened", fault.message),
                ..fault
            }),
            (raw, _) => raw,
        }
    }

    /// Handles an `unsafe` effect that may have happened: opens the doubt as its definition declares.
    pub(super) fn doubt(&mut self, effect: Id, attempt: u32, raw: Raw) -> Result<(), Stop> {
        let mut draft = self.draft(self.d.effects.outs()[&effect].branch);
        draft.note(Note::Unknown(effect, attempt));
        if let Some(left) = self.question_left(effect) {
            draft.note(left);
        }
        let reason = match &raw {
            Raw::Unknown(fault) | Raw::NotPerformed(fault) | Raw::Failed(fault) => {
                fault.message.clone()
            }
            Raw::Done(_) | Raw::Made { .. } => String::new(),
        };
        self.way_out(&mut draft, effect, &reason);
        self.write(draft)
    }

    /// Opens the doubt of an effect, or gives it up if the definition asks nobody.
    pub(super) fn way_out(&mut self, draft: &mut Draft, effect: Id, reason: &str) {
        let Some(out) = self.d.effects.out(effect) else {
            return;
        };
        let Some(tool) = out.tool().cloned() else {
            return;
        };
        let digest = self.digest(effect);
        let is_asked = self.opens_doubt(draft, effect, (&tool.tool, digest), reason);
        // A declared probe follows from the open doubt: see `probe.rs`.
        self.d.effects.holds(effect);
        if !is_asked {
            self.give_up(effect, Decider::Rule, reason);
        }
    }

    /// Ends the doubt: the model is told that the effect may have happened.
    pub(super) fn give_up(&mut self, effect: Id, by: Decider, reason: &str) {
        let released = Note::Released {
            effect,
            why: Why::Doubt,
            how: Release::GivenUp,
            by,
            text: None,
        };
        let raw = Raw::Unknown(Fault::new(Code::InDoubt, reason));
        self.answer_raw(effect, raw, vec![released]);
    }

    pub(super) fn released(effect: Id, why: Why, how: Release, by: Decider) -> Note {
        Note::Released {
            effect,
            why,
            how,
            by,
            text: None,
        }
    }

    /// Returns the function that finds the parts of an answer that an adapter has to check against a JSON Schema; `None` if
    /// nothing checks them.
    pub(super) fn judged_of(&self, branch: Id, agent: Id) -> Option<Judged> {
        self.seen.engine.0.options.judge.as_ref()?;
        let network = self.network().clone();
        let snapshot = self.d.branches.live()[&branch].snapshot.clone();
        Some(Arc::new(move |answer| {
            to_be_judged(&network, snapshot.agent(agent), answer)
        }))
    }

    /// Returns the label of the model that was asked.
    fn model_label(&self, effect: Id) -> Name {
        let bound = self.bound_of(effect);
        bound.map_or_else(|| "unknown".into(), |bound| bound.label())
    }

    /// Returns the bound model that was asked.
    pub(super) fn bound_of(&self, effect: Id) -> Option<BoundModel> {
        let out = self.d.effects.out(effect)?;
        let chain = self.network().chain(out.asked.as_ref()?);
        self.bound_model(chain.get(out.rung).copied()?)
    }

    /// Returns the texts streamed so far by outstanding model calls of a branch.
    pub(super) fn shown(&self, branch: Id) -> Vec<(Id, Arc<str>)> {
        let outs = self.d.effects.outs().iter();
        let here = outs.filter(|(_, out)| out.branch == branch && out.is_model());
        let shown = here.map(|(id, out)| (*id, self.seen.permits.streamed(*id, out.attempt).0));
        shown.filter(|(_, text)| !text.is_empty()).collect()
    }

    /// Cancels running effects that may be repeated; effects that touch the world are waited for.
    pub(super) fn cut_free(&mut self) {
        for (effect, attempt) in self.d.effects.cut_free() {
            self.out.orders.push(Do::Cut { effect, attempt });
        }
    }
}

/// Returns the parts of an answer that an adapter has to check, each with the text of its JSON Schema: calls by their index,
/// `None` for the text.
fn to_be_judged(
    network: &Network,
    agent: &Agent,
    answer: &Answer,
) -> Vec<(Option<usize>, Arc<str>)> {
    let def = network.agent(&agent.def);
    let model = network.in_force(agent);
    let mut asked = Vec::new();
    for (n, ask) in answer.asks.iter().enumerate() {
        let name = model.and_then(|model| offered_as(model, &ask.name));
        let parameters = name.and_then(|name| {
            let tool = network.tools.get(name).map(|t| &t.parameters);
            tool.or_else(|| network.agents.get(name).map(|a| &a.parameters))
        });
        if let Some(Parameters::Schema(schema)) = parameters {
            asked.push((Some(n), Arc::clone(schema)));
        }
    }
    if let Some(output) = &def.output
        && let TypeKind::Schema(schema) = &output.ty.kind
        && answer.asks.is_empty()
        && answer.text.is_some()
    {
        asked.push((None, Arc::clone(schema)));
    }
    asked
}

/// Renders the arguments of a probe. An argument that is exactly a template of an unset optional value is left out.
pub(super) fn rendered(
    args: &[(Name, Data)],
    scope: &dyn Scope,
) -> Result<serde_json::Map<String, Json>, EvalError> {
    let mut rendered = serde_json::Map::new();
    for (name, data) in args {
        if let Some(value) = data.eval_field(scope)? {
            rendered.insert(name.to_string(), value);
        }
    }
    Ok(rendered)
}

/// Translates the end of an attempt into a report for the limiter: after status 429 the place is left alone as long as it asks.
fn as_its_place_sees(raw: &Raw) -> Ended {
    match raw {
        Raw::NotPerformed(fault) | Raw::Unknown(fault) if fault.status == Some(429) => {
            Ended::Pause(fault.again.unwrap_or(0))
        }
        Raw::Done(_)
        | Raw::Made { .. }
        | Raw::Failed(_)
        | Raw::NotPerformed(_)
        | Raw::Unknown(_) => Ended::Answered(None),
    }
}

/// Returns the tool or agent that a model knows under this name.
fn offered_as<'a>(model: &'a ModelAgent, seen: &str) -> Option<&'a Name> {
    let used = model.tools.iter().find(|used| used.is_called(seen))?;
    match &used.of {
        Offers::Tool(name) | Offers::Agent(name) => Some(name),
    }
}

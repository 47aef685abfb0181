//! Recorded outcomes of effects: outcomes that no branch took, which the ledger keeps whole, and outcomes that a branch takes up
//! later (a dry branch, a branch that is current again, an adoption).

use super::cancel::said_in;
use super::draft::{Draft, Note, Offer};
use super::events::is_event;
use super::left::work_of;
use super::transport::TransportScope;
use super::{Job, Out, OutState, Stop, What};
use crate::ledger::Progress;
use crate::past::{ERASED, Past};
use crate::session::Fate;
use crate::store::StoreError;
use serde_json::{Map, Value as Json};
use std::sync::Arc;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::codec;
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::commit::{Release, Why};
use steersman_machine::stored::ids::{Body, Id, Line, Name};
use steersman_machine::stored::interaction::{How, Interaction};
use steersman_machine::stored::outcome::{Mapped, Outcome};
use steersman_machine::tick;
use steersman_machine::tick::effect::{Fact, Known, Offered, ToolWork, Wish};
use steersman_machine::view::mapping;
use steersman_machine::view::mapping::Raw;

impl Job<'_, '_> {
    // ---- what the ledger knows

    /// Returns what the ledger knows of the outstanding effects of a branch that may have touched the world.
    pub(super) fn known(&self, branch: Id) -> Result<Known, Stop> {
        let snapshot = &self.d.branches.live()[&branch].snapshot;
        let mut known = Known::new();
        for effect in snapshot.effects.keys() {
            let out = self.d.effects.out(*effect);
            if out.is_some_and(Out::touches_world) {
                known.push((*effect, self.fact(*effect)?));
            }
        }
        Ok(known)
    }

    /// Returns what the ledger knows of one effect.
    pub(super) fn fact(&self, effect: Id) -> Result<Fact, Stop> {
        let Some(record) = self.d.ledger.effect(effect) else {
            return Ok(Fact::NeverStarted);
        };
        let starting = self
            .d
            .effects
            .out(effect)
            .is_some_and(|out| matches!(out.state, OutState::Starting(_)));
        Ok(match record.progress {
            Progress::Wished | Progress::NotPerformed => Fact::NeverStarted,
            // Its line is on its way to the disk and nothing has begun; the caller ends the effect.
            Progress::Started { doubtful: false } if starting => Fact::NeverStarted,
            Progress::Started { .. } | Progress::Unknown { .. } | Progress::GivenUp { .. } => {
                Fact::Unknown
            }
            Progress::Done { at, kept } => {
                let mapped = self.done(effect, at, kept)?;
                Fact::Done(Box::new(Outcome::Mapped(mapped)))
            }
        })
    }

    /// Returns the recorded outcome of an effect that was done; `None` if it is not known to be done.
    pub(super) fn recorded(&self, effect: Id) -> Result<Option<Mapped>, Stop> {
        match self.d.ledger.effect(effect).map(|record| record.progress) {
            Some(Progress::Done { at, kept }) => Ok(Some(self.done(effect, at, kept)?)),
            _ => Ok(None),
        }
    }

    /// An effect that was done is never in doubt again: if its outcome cannot be read, a text that says so takes its place.
    fn done(&self, effect: Id, at: Line, kept: Option<Body>) -> Result<Mapped, StoreError> {
        if let Some(kept) = kept {
            let Some(text) = self.seen.past.stored(kept)? else {
                return Ok(Mapped::plain(How::Done, None, ERASED));
            };
            return codec::kept_outcome(&text).map_err(|what| StoreError::Corrupt {
                place: format!("session `{}` line {at}", self.d.who.session()),
                what: format!("a kept outcome cannot be read: {what}"),
            });
        }
        let wish = self.seen.past.line(effect.line())?;
        let mut wished = wish.commit.iter().flat_map(|c| &c.wished);
        let call = wished.find(|w| w.id == effect).and_then(|w| w.what.call());
        let line = self.seen.past.line(at)?;
        let pushes = line.commit.as_ref().map_or(&[][..], |c| &c.pushes);
        let found = pushes
            .iter()
            .enumerate()
            .find_map(|(k, push)| match &push.what {
                Interaction::Result(result) if Some(result.call) == call => Some((k, result)),
                _ => None,
            });
        match found {
            Some((k, result)) => self.seen.past.mapped_of(&line, result, pushes.get(k + 1)),
            None => Ok(Mapped::plain(
                How::Done,
                None,
                "It is done; what it gave was not recorded.",
            )),
        }
    }

    // ---- outcomes that nobody waits for

    /// Records the end of an attempt whose effect is no longer out: the ledger keeps what it says of the world.
    pub(super) fn late(&mut self, effect: Id, attempt: u32, raw: Raw) -> Result<(), Stop> {
        let Some(progress) = self.d.ledger.effect(effect).map(|record| record.progress) else {
            return Ok(());
        };
        let note = match (&raw, progress) {
            (_, Progress::Done { .. } | Progress::GivenUp { .. }) => {
                Some(Note::Late(effect, attempt, self.kept(effect, &raw)?))
            }
            (Raw::Done(_) | Raw::Made { .. } | Raw::Failed(_), _) => {
                Some(Note::Kept(effect, attempt, self.kept(effect, &raw)?))
            }
            (Raw::NotPerformed(_), _) => Some(Note::NotPerformed(effect, attempt)),
            (Raw::Unknown(_), Progress::Unknown { .. }) => None,
            (Raw::Unknown(_), _) => Some(Note::Unknown(effect, attempt)),
        };
        let mut draft = self.draft(self.d.ledger.current);
        if let Some(note) = note {
            draft.note(note);
        }
        self.left_unknown(&mut draft, Some(effect))?;
        self.write(draft)
    }

    /// Handles an offer that its branch cannot take any more: what it says of the world is kept, and its message is answered.
    pub(super) fn left_over(&mut self, draft: &mut Draft, offer: Offer) -> Result<(), Stop> {
        let kept = match &offer.what {
            What::Raw { effect, raw, .. }
                if offer.notes.iter().any(|note| says_done(note).is_some()) =>
            {
                Some(self.kept(*effect, raw)?)
            }
            _ => None,
        };
        let effect = offer.what.effect();
        self.given_up(draft, offer, kept.as_deref());
        self.left_unknown(draft, effect)
    }

    /// Handles an offer that the machine found stale: what it says of the world is kept in the ledger.
    pub(super) fn stale(
        &mut self,
        draft: &mut Draft,
        offer: Offer,
        offered: &Offered,
    ) -> Result<(), Stop> {
        let kept = match offered {
            Offered::Outcome {
                outcome: Outcome::Mapped(mapped),
                ..
            } => Some(codec::keep_outcome(mapped)),
            _ => None,
        };
        let effect = offer.what.effect();
        self.given_up(draft, offer, kept.as_deref());
        self.left_unknown(draft, effect)
    }

    fn given_up(&mut self, draft: &mut Draft, mut offer: Offer, kept: Option<&str>) {
        let notes = std::mem::take(&mut offer.notes);
        self.keep_notes(draft, notes, kept);
        if let Some(effect) = offer.what.effect() {
            self.forget(draft, effect);
        }
        if let (Some(message), Some(text)) = (&offer.message, said_in(&offer.what)) {
            self.drop_said(draft, message, "left behind", text);
        } else if let Some(message) = offer.message.take_if(|message| is_event(message)) {
            // The event met a wait that is over: it is for the next wait.
            self.d.mail.events_wait([message]);
            self.d.mail.look();
        } else if let Some(message) = offer.message {
            draft.accept(&message);
            let why = "nobody waits for this any more".to_owned();
            self.receipt(draft, &message.id, Fate::Refused(why));
        }
        self.keep_unheard(draft.branch, offer.drops);
    }

    /// Adds the notes of an offer that no commit takes. A note that something is done also gets the outcome.
    pub(super) fn keep_notes(&mut self, draft: &mut Draft, notes: Vec<Note>, kept: Option<&str>) {
        for note in notes {
            let done = says_done(&note).zip(kept);
            let Some(((effect, attempt), kept)) = done else {
                draft.note(note);
                continue;
            };
            if matches!(note, Note::Released { .. }) {
                draft.note(note);
            }
            let attempt = attempt.or_else(|| self.d.ledger.effect(effect).map(|r| r.attempt));
            let (attempt, kept) = (attempt.unwrap_or_default(), kept.to_owned());
            let given_up = self
                .d
                .ledger
                .effect(effect)
                .is_some_and(|r| matches!(r.progress, Progress::GivenUp { .. }));
            draft.note(if given_up {
                Note::Late(effect, attempt, kept)
            } else {
                Note::Kept(effect, attempt, kept)
            });
        }
    }

    /// Returns the stored form of an outcome, mapped and sealed as if its branch had taken it.
    pub(super) fn kept(&mut self, effect: Id, raw: &Raw) -> Result<String, Stop> {
        let stood = self.stood(effect)?;
        let stood = stood.and_then(|(snapshot, wish)| Some((snapshot, work_of(&wish)?.clone())));
        let mut mapped = match stood {
            Some((snapshot, tool)) => {
                let given = if tool.inputs.is_empty() {
                    Vec::new()
                } else {
                    let since = self.d.ledger.effect(effect).map(|r| r.since);
                    let since = since.unwrap_or(effect.line());
                    self.inputs_given(effect, since)?
                };
                self.mapped_in(&snapshot, effect, raw, Some((&tool, &given)))?
            }
            // Never the raw outcome: it may contain secrets.
            None => Mapped::plain(
                How::Done,
                None,
                "It is done; what it gave was not recorded.",
            ),
        };
        self.store_contents(&mut mapped);
        Ok(codec::keep_outcome(&mapped))
    }

    /// Returns the reason why a result that a person gives does not fit the definition. An empty result is checked for missing
    /// fields, too.
    pub(super) fn unfit(&mut self, effect: Id, raw: &Raw) -> Result<Option<String>, Stop> {
        let Some((snapshot, wish)) = self.stood(effect)? else {
            return Ok(None);
        };
        let Some(tool) = work_of(&wish) else {
            return Ok(None);
        };
        let needed = self.tool_def(&tool.tool).map(mapping::needed);
        let needed = needed.unwrap_or_default();
        let nothing = Raw::Done(Json::Object(Map::new()));
        let given = match raw {
            Raw::Done(Json::Null) if !needed.is_empty() => &nothing,
            raw => raw,
        };
        let left = !self.d.effects.outs().contains_key(&effect);
        let ran = left.then_some((tool, &[][..]));
        let mapped = self.mapped_in(&snapshot, effect, given, ran)?;
        if mapped.code.as_deref() != Some(Code::Misfit.text()) {
            return Ok(None);
        }
        let why = mapped.shown.unwrap_or_default();
        let needed: Vec<String> = needed.iter().map(|name| format!("`{name}`")).collect();
        let needs = match &needed[..] {
            [] => String::new(),
            names => format!("; `{}` needs {}", tool.tool, names.join(", ")),
        };
        Ok(Some(format!(
            "this result does not fit ({why}): give the one that the tool would have given{needs}"
        )))
    }

    /// Returns the last snapshot in which the call of an effect was open, and the effect's wish.
    pub(super) fn stood(&mut self, effect: Id) -> Result<Option<(Snapshot, Wish)>, Stop> {
        let Some(branch) = self.d.ledger.effect(effect).map(|record| record.branch) else {
            return Ok(None);
        };
        let open = |snapshot: &Snapshot| snapshot.effects.contains_key(&effect);
        let here = self
            .d
            .branches
            .live()
            .get(&branch)
            .map(|b| b.snapshot.clone());
        let mut found = here.filter(open);
        let last = self.d.ledger.branch(branch).map(|b| b.commit);
        // After the line that wished the effect, it was certainly open.
        for at in last.into_iter().chain([effect.line()]) {
            if found.is_none() {
                found = Some(self.snapshot_at(branch, at)?).filter(open);
            }
        }
        let Some(snapshot) = found else {
            return Ok(None);
        };
        let wishes = self.ask(|cx| tick::wishes(cx, &snapshot))?;
        let wish = wishes.into_iter().find(|wish| wish.id == effect);
        Ok(wish.map(|wish| (snapshot, wish)))
    }

    /// Stores the contents that an outcome made, before a line names them.
    pub(super) fn store_contents(&mut self, mapped: &mut Mapped) {
        for version in mapped.versions() {
            if let Some(content) = version.content.take() {
                self.out.blobs.push((version.hash, content));
            }
        }
    }

    // ---- mapping

    /// Maps a raw outcome by the machine's pure function, masks its secrets, and seals it. `ran`: the tool's work and the sealed
    /// secrets that it was given, if the effect is no longer out.
    pub(super) fn mapped_in(
        &self,
        snapshot: &Snapshot,
        effect: Id,
        raw: &Raw,
        ran: Option<(&ToolWork, &[(Name, String)])>,
    ) -> Result<Mapped, Stop> {
        let found = snapshot
            .effects
            .get(&effect)
            .map(|e| (e.agent, e.what.call()));
        let Some((owner, Some(call))) = found else {
            return Ok(Mapped::plain(How::Done, None, String::new()));
        };
        let mut mapped = self.ask(|cx| mapping::map(cx, snapshot, owner, call, raw))?;
        let out = self.d.effects.out(effect);
        let ran = ran.or_else(|| Some((out?.tool()?, &out?.inputs[..])));
        if let Some((tool, inputs)) = ran {
            let given = (Some(tool.args.clone()), inputs);
            let scope = self.scope_in(&self.seen.past, snapshot.clone(), owner, given);
            let secrets = crate::secrets::readable(self.network(), &tool.tool, &*scope);
            super::transport::mask(&mut mapped, &secrets);
        }
        let sealer = self.seen.engine.sealer();
        for write in &mut mapped.writes {
            if write.seal {
                write.value = write.value.as_ref().map(|v| sealer.seal(v));
                write.seal = false;
            }
        }
        Ok(mapped)
    }

    /// Returns the scope that transport fields read, with secrets opened. `past`: the image for a job, the reader for an attempt.
    /// `given`: the arguments and their sealed inputs.
    pub(super) fn scope_in(
        &self,
        past: &Arc<Past>,
        snapshot: Snapshot,
        agent: Id,
        given: (Option<Arc<str>>, &[(Name, String)]),
    ) -> Arc<TransportScope> {
        Arc::new(TransportScope::new(
            self.network().clone(),
            past.clone(),
            snapshot,
            agent,
            given,
            self.seen.engine,
            self.d.bound.values().folder(),
        ))
    }
}

/// Returns the effect that a note says is done, and the attempt if the note names it.
fn says_done(note: &Note) -> Option<(Id, Option<u32>)> {
    match note {
        Note::Done(effect, attempt) => Some((*effect, Some(*attempt))),
        Note::Released {
            effect,
            why: Why::Doubt,
            how: Release::Outcome,
            ..
        } => Some((*effect, None)),
        _ => None,
    }
}

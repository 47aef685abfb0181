//! The session as a person was asked about it. The attempts of a call read the session as of the line that asked for the call,
//! and an approval counts only while what the call reads is as it was there: what a person approved is what runs.

use super::act::not_open;
use super::branches::Acted;
use super::draft::{Again, Draft, Note, Offer};
use super::{Job, Out, Stop, What};
use crate::store::InboxMessage;
use serde_json::{Map, Value as Json};
use std::sync::Arc;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::by::{By, Decider};
use steersman_machine::stored::commit::{Release, Why};
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::tick;
use steersman_machine::tick::Changed;
use steersman_machine::tick::effect::{Offered, Wish, Work};
use steersman_machine::values::types::{Parameters, equal, in_clear, misfit};

/// Maximum number of changes that are told.
const TOLD: usize = 2;

impl Job<'_, '_> {
    /// Returns the session as the question of a tool's call shows it, and makes the wish ask so. `None` for the effects of others.
    pub(super) fn asked_in(
        &mut self,
        draft: &Draft,
        branch: Id,
        wish: &mut Wish,
    ) -> Result<Option<Arc<Snapshot>>, Stop> {
        if !matches!(wish.work, Work::Tool(_)) {
            return Ok(None);
        }
        let now = self.d.branches.live()[&branch].snapshot.clone();
        if wish.id.line() == draft.n {
            // Questions about edited arguments are those of this line. If it changes what they show, no approval of them counts.
            let of = wish.call().map(|call| (wish.agent, call));
            let mut again = draft.wished_again.iter();
            let again = again.find(|again| Some(again.call) == of);
            let then = again.and_then(|again| again.asked_in.clone());
            return Ok(Some(then.unwrap_or_else(|| Arc::new(now))));
        }
        let past = &self.seen.past;
        let at = tick::asked_at(wish.id, |n| past.line(n))?;
        if at == now.line {
            return Ok(Some(Arc::new(now)));
        }
        let then = self.snapshot_at(branch, at)?;
        self.ask(|cx| tick::ask_as_of(cx, &then, &now, wish))?;
        Ok(Some(Arc::new(then)))
    }

    /// Returns the session that the attempts of an effect read: as of the line that asked for its call, at the present time.
    pub(super) fn read_by(&self, out: &Out) -> Snapshot {
        let live = &self.d.branches.live()[&out.branch].snapshot;
        match &out.asked_in {
            Some(then) if then.line != live.line => Snapshot {
                now: live.now,
                ..Snapshot::clone(then)
            },
            _ => live.clone(),
        }
    }

    /// Returns what has changed since the question of a held call, in words for people. A call that began before runs as it was
    /// asked for: its key is that of one action.
    pub(super) fn changed(&self, effect: Id) -> Result<Option<String>, Stop> {
        let Some(out) = self.d.effects.out(effect) else {
            return Ok(None);
        };
        let live = &self.d.branches.live()[&out.branch].snapshot;
        let began = self.d.ledger.effect(effect).is_some_and(|r| r.attempt > 0);
        let then = out.asked_in.as_ref().filter(|then| then.line != live.line);
        let Some(then) = then.filter(|_| !began) else {
            return Ok(None);
        };
        let changed = self.ask(|cx| tick::changed(cx, then, live, effect))?;
        Ok(told(&changed))
    }

    /// Asks for a call again, because something that it reads has changed since it was asked for. `changed`: the change, if a person was
    /// asked already; the answer in the message does not count.
    pub(super) fn ask_anew(
        &mut self,
        message: Option<&InboxMessage>,
        effect: Id,
        by: Option<By>,
        changed: Option<String>,
    ) {
        let Some((branch, _)) = self.d.effects.offers_outcome(effect) else {
            return;
        };
        let mut offer = Offer::new(What::Offer(Box::new(Offered::Anew { effect, by })));
        offer
            .notes
            .extend(changed.clone().map(|changed| Note::Released {
                effect,
                why: Why::Approval,
                how: Release::Cancelled,
                by: Decider::Rule,
                text: Some(changed),
            }));
        offer.message = message.cloned();
        offer.changed = changed;
        self.offer(branch, offer);
    }

    /// Approves exactly the edited arguments: the machine wishes the call with them under a new effect. Arguments that may not run
    /// now are refused to the person, and the question stays open.
    pub(super) fn approve_edited(
        &mut self,
        message: &InboxMessage,
        effect: Id,
        by: By,
        args: &str,
    ) -> Result<Acted, Stop> {
        let (approver, args) = match self.edited(effect, args) {
            Ok(edited) => edited,
            Err(why) => return Ok(Err(why)),
        };
        let Some(out) = self.d.effects.out(effect) else {
            return Ok(Err(not_open(effect)));
        };
        let (branch, owner, call) = (out.branch, out.wish.agent, out.wish.call());
        let snapshot = &self.d.branches.live()[&branch].snapshot;
        if let Some(call) = call
            && let Err(refusal) = self.ask(|cx| tick::allowed(cx, snapshot, owner, call, &args))?
        {
            return Ok(Err(refusal.text));
        }
        let text = args.to_string();
        let what = What::Offer(Box::new(Offered::Edited {
            effect,
            args: text.as_str().into(),
            by: by.clone(),
            approver,
        }));
        let mut offer = Offer::new(what);
        offer.message = Some(message.clone());
        offer.notes.push(Note::Released {
            effect,
            why: Why::Approval,
            how: Release::Edited,
            by: by.into(),
            text: Some(text),
        });
        self.d.effects.offers_outcome(effect);
        self.offer(branch, offer);
        Ok(Ok(()))
    }

    /// Returns the person who is asked about an effect, and its arguments with these changes, if the person may make them.
    fn edited(&self, effect: Id, args: &str) -> Result<(Name, Json), String> {
        let out = self.d.effects.out(effect).ok_or_else(|| not_open(effect))?;
        let tool = out.tool().ok_or_else(|| not_open(effect))?;
        let hold = self.d.ledger.hold(effect, Why::Approval);
        let asked = tool.next_approval(&out.approved);
        let asked = asked.and_then(|asked| asked.asked(&hold?.by));
        let asked = asked.ok_or_else(|| not_open(effect))?;
        let (may, approver) = (asked.edit.clone(), asked.by.clone());
        let given: Map<String, Json> = steersman_machine::values::json::read(args)
            .map_err(|e| format!("the arguments are not a JSON object: {e}"))?;
        let mut merged: Map<String, Json> =
            steersman_machine::values::json::read(&tool.args).unwrap_or_default();
        for (name, value) in given {
            let changed = !merged.get(&name).is_some_and(|was| equal(was, &value));
            if changed && !may.iter().any(|m| **m == *name) {
                return Err(format!("the argument `{name}` may not be changed here"));
            }
            // a typing mistake does not use the approval up
            let def = self.tool_def(&tool.tool);
            let ty = def.and_then(|def| match &def.parameters {
                Parameters::Fields(fields) => Some(&fields.iter().find(|(n, _)| **n == *name)?.1),
                Parameters::Schema(_) => None,
            });
            let misfit = ty.and_then(|ty| misfit(ty, &value).or_else(|| in_clear(ty, &value)));
            if let Some(misfit) = misfit {
                return Err(misfit.under(&name).to_string());
            }
            merged.insert(name, value);
        }
        Ok((approver, Json::Object(merged)))
    }

    /// Notes in the line that takes an offer that the call of its effect is wished again, if it is. Returns the agent and its call.
    pub(super) fn wished_again(&self, draft: &mut Draft, offer: &Offer) -> Option<(Id, Id)> {
        let What::Offer(offered) = &offer.what else {
            return None;
        };
        let (effect, edited) = match &**offered {
            Offered::Edited { effect, .. } => (*effect, true),
            Offered::Anew { effect, .. } => (*effect, false),
            _ => return None,
        };
        let out = self.d.effects.out(effect)?;
        let call = (out.wish.agent, out.wish.call()?);
        draft.wished_again.push(Again {
            call,
            asked_in: out.asked_in.clone().filter(|_| edited),
            changed: offer.changed.clone(),
        });
        Some(call)
    }
}

impl Draft {
    /// Returns the reason why an answer does not count, because this line asks for the call again.
    pub(super) fn asks_anew(&self, call: Option<(Id, Id)>, changed: &str) -> String {
        let mut wished = self.commit.iter().flat_map(|commit| &commit.wished);
        let anew = wished.find(|w| call == w.what.call().map(|of| (w.agent, of)));
        let then = match anew {
            Some(anew) => format!("It is asked again as {}@{}", anew.id, self.n),
            None => "A requirement is not met any more, so the call was refused".to_owned(),
        };
        format!("the question is over: {changed}. {then}")
    }
}

/// Returns changes in words for people; `None` if there are none.
fn told(changed: &[Changed]) -> Option<String> {
    let mut told: Vec<String> = changed.iter().take(TOLD).map(ToString::to_string).collect();
    if changed.len() > TOLD {
        told.push(format!("{} more changed", changed.len() - TOLD));
    }
    (!told.is_empty()).then(|| told.join(", "))
}

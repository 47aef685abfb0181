//! The repeat guard: the ledger's verdict about equal effects ([`crate::ledger::Verdict`]) becomes a wait, an answer or a hold.
//! `Started` is written only after this guard, so no effect starts without passing it.

use super::draft::{Draft, NewHold};
use super::{Job, Out, OutState, Stop};
use crate::ledger::{Beginning, Equal, Record, Stands, Verdict};
use steersman_machine::stored::by::By;
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::commit::{LedgerEntry, Release, Why};
use steersman_machine::stored::ids::{Id, Time};
use steersman_machine::stored::interaction::Class;
use steersman_machine::tick::effect::{Approval, ToolWork};

impl Job<'_, '_> {
    /// Returns true if a call may not begin now because of an equal one: it then waits for the end of that one, is answered, or
    /// is held. Checked each time the call is about to begin: an equal one may have begun meanwhile.
    pub(super) fn passes_guard(&mut self, draft: &mut Draft, id: Id) -> Result<bool, Stop> {
        let out = &self.d.effects.outs()[&id];
        let Some(tool) = out.tool().cloned() else {
            return Ok(false);
        };
        let begins = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Started { .. });
        if !self.d.ledger.has_begun() && !draft.ledger.iter().any(begins) {
            return Ok(false);
        }
        match self.d.ledger.verdict(self.beginning(draft, id, &tool)) {
            Verdict::Begins => return Ok(false),
            // The approver is told about the equal effect; their approval also allows the repetition.
            Verdict::Repeats(_) if tool.next_approval(&out.approved).is_some() => return Ok(false),
            verdict => {
                self.seen.permits.give_slot(id);
                self.keeps_from(draft, id, &tool, verdict)?;
            }
        }
        Ok(true)
    }

    fn beginning<'a>(&'a self, draft: &'a Draft, id: Id, tool: &ToolWork) -> Beginning<'a> {
        let out = &self.d.effects.outs()[&id];
        Beginning {
            effect: id,
            branch: out.branch,
            digests: out.digests(self.seen.engine.sealer()),
            class: tool.class,
            epoch: self.d.who.claim().epoch,
            may_repeat: self.tool_def(&tool.tool).is_some_and(|t| t.repeat_allowed),
            word: out.word,
            line: draft.n,
            beside: &draft.ledger,
        }
    }

    fn keeps_from(
        &mut self,
        draft: &mut Draft,
        id: Id,
        tool: &ToolWork,
        verdict: Verdict,
    ) -> Result<(), Stop> {
        match verdict {
            Verdict::Begins => {}
            Verdict::Waits(before) => self.d.effects.waits_behind(id, before),
            Verdict::Doubted(equal) if self.is_tried_again(equal, tool.class) => {
                self.d.effects.waits_behind(id, equal.effect);
            }
            Verdict::Doubted(equal) => {
                let message = format!("{} It is not started while that is open.", equal.said());
                self.answer_fault(id, Code::InDoubt, &message);
            }
            Verdict::Repeats(equal) if self.seen.engine.0.options.user_reachable => {
                let ask = format!("{} Do it again?", equal.told());
                let asked = tool.approve.first().map(|approval| approval.by.clone());
                // The approval of edited arguments is over already: the tool's first approver decides.
                let declared = || Some(self.tool_def(&tool.tool)?.approve.first()?.by.clone());
                let approver = asked.or_else(declared);
                draft.hold(NewHold {
                    effect: id,
                    why: Why::Repeat,
                    digest: self.digest(id),
                    by: vec![approver.unwrap_or_else(|| "user".into())],
                    ask: Some(&ask),
                    due: None,
                    about: Some(equal.about()),
                });
                self.d.effects.holds(id);
            }
            Verdict::Repeats(equal) => {
                let (code, text) = self.instead_of(equal, None)?;
                self.answer_fault(id, code, &text);
            }
        }
        Ok(())
    }

    /// Returns true if the equal effect is one that this process tries again under its key: it ends without a person.
    fn is_tried_again(&self, equal: Equal, class: Class) -> bool {
        let out = self.d.effects.out(equal.effect);
        let ends = |out: &Out| !matches!(out.state, OutState::Held | OutState::Over);
        class == Class::Idempotent && !equal.recorded && out.is_some_and(ends)
    }

    /// Returns the code and the text that a model reads instead of a repetition that was not allowed: that the call was not
    /// repeated, why, and what is on record of the equal effect.
    pub(super) fn instead_of(
        &self,
        equal: Equal,
        why: Option<&str>,
    ) -> Result<(Code, String), Stop> {
        let code = match equal.stands {
            Stands::Done => Code::DoneBefore,
            Stands::Runs | Stands::InDoubt | Stands::GivenUp => Code::InDoubt,
        };
        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
        let text = format!("It is not done again{why}. {}", self.what_came(equal)?);
        Ok((code, text))
    }

    /// Returns a text about an equal effect, for a model.
    pub(super) fn what_came(&self, equal: Equal) -> Result<String, Stop> {
        let recorded = if equal.recorded {
            None
        } else {
            self.recorded(equal.effect)?
        };
        let gave = recorded.map(|recorded| recorded.told());
        let told = equal.said();
        Ok(match gave.filter(|gave| !gave.is_empty()) {
            Some(gave) => format!("{told} It gave: {gave}"),
            None => told,
        })
    }

    /// Returns the equal effect that a hold of this effect names, in its present state.
    pub(super) fn held_about(&self, id: Id, why: Why) -> Option<Equal> {
        let about = self.d.ledger.hold(id, why)?.about.clone()?;
        let out = self.d.effects.out(id)?;
        let tool = out.tool()?;
        let draft = Draft::default();
        let mut equals = self.d.ledger.equals(self.beginning(&draft, id, tool));
        equals.find(|equal| equal.about() == about)
    }

    /// Opens the hold of an approval. If an equal effect was done or given up before, the hold is about that one, and the
    /// approver knows that they allow a repetition. An equal call that waits at the same time is only mentioned: it may never
    /// be done. The same holds for a change since the question before.
    pub(super) fn ask_approval(
        &mut self,
        draft: &mut Draft,
        id: Id,
        approval: &Approval,
        now: Time,
    ) {
        let out = &self.d.effects.outs()[&id];
        let Some(tool) = out.tool() else {
            return;
        };
        let digest = self.digest(id);
        let repeats = |equal: &Equal| matches!(equal.stands, Stands::Done | Stands::GivenUp);
        let equals = self.d.ledger.equals(self.beginning(draft, id, tool));
        let before = equals.filter(repeats).max_by_key(|equal| equal.at);
        let beside = || {
            let mut outs = self.d.effects.outs().range(..id);
            let sealer = self.seen.engine.sealer();
            let same = |out: &Out| out.touches_world() && out.digest(sealer) == digest;
            let waits = |out: &Out| !matches!(out.state, OutState::Over);
            outs.find(|(_, out)| same(out) && waits(out))
                .map(|(id, _)| *id)
        };
        let waits = |other| format!("The same call waits beside it ({other}).");
        let told = before.as_ref().map(Equal::told);
        let told = told.or_else(|| beside().map(waits));
        let call = out.wish.call().map(|call| (out.wish.agent, call));
        let mut again = draft.wished_again.iter();
        let again = again.find(|again| Some(again.call) == call);
        let changed = again.and_then(|again| again.changed.as_ref());
        let changed = changed.map(|changed| format!("Asked again: {changed}."));
        let ask = [Some(approval.ask.clone()), changed, told];
        let ask = ask.into_iter().flatten().collect::<Vec<_>>().join(" ");
        draft.hold(NewHold {
            effect: id,
            why: Why::Approval,
            digest,
            by: vec![approval.by.clone()],
            ask: Some(&ask),
            due: approval.timeout.map(|ms| now.plus(ms)),
            about: before.map(|equal| equal.about()),
        });
        self.d.effects.holds(id);
    }

    /// A person approved a call that was presented as a repetition: the ledger records this, and nobody is asked twice.
    pub(super) fn approves_repetition(&mut self, draft: &mut Draft, id: Id, by: &By) {
        let open = self.d.ledger.effect(id).and_then(Record::open_hold);
        let Some((at, about)) = open.and_then(|(at, hold)| Some((at, hold.about.clone()?))) else {
            return;
        };
        draft.ledger.push(LedgerEntry::Released {
            effect: id,
            why: Why::Repeat,
            how: Release::Go,
            about: Some(about),
            by: by.clone().into(),
            body: None,
        });
        self.d.effects.may_repeat(id, Some(at));
    }
}

//! Questions that the server of a tool asks a person while the tool runs.
//!
//! A question is a hold of its call, so the session waits for a person as it does for an approval. The attempt stays at work
//! meanwhile, and the answer goes to it; or it has ended with the question ([`Question::parks`]), and another one gets the answer. The
//! answer is also recorded as a step of the call: an attempt that is made again gets it without asking anybody.
//!
//! If the attempt ends while its question is open, the class of the tool decides. A call that may be repeated leaves the question open,
//! and is made again when it is answered. An `unsafe` one is in doubt, and the question is over.

use super::act::not_open;
use super::branches::Acted;
use super::draft::{NewHold, Note};
use super::{Do, Job, OnDisk, Stop, Told};
use crate::fields::Fields;
use crate::store::InboxMessage;
use crate::toolset::{Given, Question};
use std::sync::Arc;
use steersman_machine::stored::by::{By, Decider, USER};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::commit::{About, LedgerEntry, Release, Stepped, Why};
use steersman_machine::stored::ids::{Body, Id, Name};
use steersman_machine::stored::interaction::Class;
use steersman_machine::view::mapping::{Fault, Raw};

/// The open question of a server.
struct OfServer {
    /// The words of the server.
    ask: Arc<str>,
    /// The schema of the fields that it wants.
    schema: Arc<str>,
}

impl Job<'_, '_> {
    /// Handles a question of an attempt that nobody has answered yet.
    pub(super) fn question_asked(
        &mut self,
        effect: Id,
        attempt: u32,
        name: Name,
        question: Question,
    ) -> Result<(), Stop> {
        let Some(out) = self.d.effects.out(effect) else {
            return Ok(());
        };
        let mut draft = self.draft(out.branch);
        // Its server gave up the question before.
        if let Some(left) = self.question_left(effect) {
            draft.note(left);
        }
        let schema = draft.body(&question.schema);
        let by = match question.declined {
            None => vec![USER.into()],
            Some(_) => Vec::new(),
        };
        draft.hold(NewHold {
            effect,
            why: Why::Elicited,
            digest: self.digest(effect),
            by,
            ask: Some(&question.message),
            due: None,
            about: Some(About::Fields(schema)),
        });
        if let Some(why) = question.declined {
            draft.note(Note::Released {
                effect,
                why: Why::Elicited,
                how: Release::Refused,
                by: Decider::Rule,
                text: Some(why),
            });
            let over = OnDisk::Step(effect, attempt, name, Box::new(Told::Over));
            draft.then.push(over);
            return self.write(draft);
        }
        self.d.effects.holds(effect);
        self.busy();
        self.write(draft)?;
        // It takes no room among the calls of its answer while it waits.
        self.retry_queued();
        if question.parks {
            self.tells_step(effect, attempt, name, Told::Park);
        } else if self.d.course.is_stopping() {
            self.leaves_questions()?;
        }
        Ok(())
    }

    /// Takes the fields that a person gave: the text of an answer.
    pub(super) fn answers_question(
        &mut self,
        message: &InboxMessage,
        effect: Id,
        by: &By,
        text: &str,
    ) -> Result<Acted, Stop> {
        self.settles_question(message, effect, by, |fields| fields.given(text))
    }

    /// Takes the consent of a person who gives no field.
    pub(super) fn accepts_question(
        &mut self,
        message: &InboxMessage,
        effect: Id,
        by: &By,
    ) -> Result<Acted, Stop> {
        self.settles_question(message, effect, by, Fields::defaults)
    }

    fn settles_question(
        &mut self,
        message: &InboxMessage,
        effect: Id,
        by: &By,
        read: impl FnOnce(&Fields) -> Result<serde_json::Value, String>,
    ) -> Result<Acted, Stop> {
        let Some(question) = self.of_server(effect)? else {
            return Ok(Err(not_open(effect)));
        };
        match Fields::read(&question.schema).and_then(|fields| read(&fields)) {
            Ok(fields) => self.question_over(message, effect, by, &Given::Fields(fields), None),
            Err(why) => Ok(Err(why)),
        }
    }

    /// Ends a question with the answer of a person. `reason`: the words of one who declines, for the log.
    pub(super) fn question_over(
        &mut self,
        message: &InboxMessage,
        effect: Id,
        by: &By,
        given: &Given,
        reason: Option<String>,
    ) -> Result<Acted, Stop> {
        let Some(name) = self.question_name(effect)? else {
            return Ok(Err(not_open(effect)));
        };
        let Some(out) = self.d.effects.out(effect) else {
            return Ok(Err(not_open(effect)));
        };
        let (branch, attempt) = (out.branch, out.attempt);
        let mut draft = self.draft(branch);
        self.accepted(&mut draft, message);
        let (how, text) = match given {
            Given::Fields(fields) => (Release::Outcome, Some(fields.to_string())),
            Given::Declined => (Release::Refused, reason),
        };
        draft.note(Note::Released {
            effect,
            why: Why::Elicited,
            how,
            by: by.clone().into(),
            text,
        });
        let answer = given.text();
        let body = draft.body(&answer);
        draft.ledger.push(LedgerEntry::Step {
            effect,
            // An attempt of an earlier owner that may be repeated has no number in the log.
            attempt: attempt.max(1),
            nth: self.d.ledger.next_step(effect),
            name: name.clone(),
            what: Stepped::Done(body),
        });
        if self.d.effects.is_asking(effect) {
            self.d.effects.goes_on(effect);
            let told = Box::new(Told::Ended(Ok(answer)));
            draft.then.push(OnDisk::Step(effect, attempt, name, told));
            self.write(draft)?;
            return Ok(Ok(()));
        }
        self.gate(&mut draft, effect)?;
        let ready = std::mem::take(&mut draft.ready);
        self.write(draft)?;
        for id in ready {
            self.d.effects.wakes(id);
        }
        Ok(Ok(()))
    }

    /// Returns the open question of an effect.
    fn of_server(&self, effect: Id) -> Result<Option<OfServer>, Stop> {
        let hold = self.d.ledger.hold(effect, Why::Elicited);
        let Some((Some(ask), Some(schema))) =
            hold.map(|hold| (hold.ask, hold.about.as_ref().and_then(About::body)))
        else {
            return Ok(None);
        };
        let text = |body: Body| -> Result<Arc<str>, Stop> {
            Ok(self.seen.past.stored(body)?.unwrap_or_default())
        };
        Ok(Some(OfServer {
            ask: text(ask)?,
            schema: text(schema)?,
        }))
    }

    /// Returns the name under which the attempt waits for the answer to its open question.
    fn question_name(&self, effect: Id) -> Result<Option<Name>, Stop> {
        let question = self.of_server(effect)?;
        Ok(question.map(|of| self.d.ledger.next_answer(effect, &of.ask, &of.schema)))
    }

    /// Returns the end of a question whose call goes on or ends without it, if there is one.
    pub(super) fn question_left(&self, effect: Id) -> Option<Note> {
        self.d.ledger.hold(effect, Why::Elicited)?;
        let how = Release::Cancelled;
        Some(Self::released(effect, Why::Elicited, how, Decider::Rule))
    }

    /// Returns true if an attempt that ended in this way leaves its question open: the call is made again with the answer.
    pub(super) fn keeps_question(&self, effect: Id, class: Class, raw: &Raw) -> bool {
        class != Class::Unsafe
            && matches!(raw, Raw::NotPerformed(_) | Raw::Unknown(_))
            && self.d.ledger.hold(effect, Why::Elicited).is_some()
    }

    /// The session is being stopped, and no attempt may wait for a person meanwhile. One that may be repeated is cut, and its
    /// question stays open. The server of any other one is told that nobody answers, so that it says how its call ends.
    pub(super) fn leaves_questions(&mut self) -> Result<(), Stop> {
        let outs = self.d.effects.outs().iter();
        let asking = outs.filter(|(id, _)| self.d.effects.is_asking(**id));
        let asking: Vec<(Id, u32, Option<Class>)> = asking
            .map(|(id, out)| (*id, out.attempt, out.tool().map(|tool| tool.class)))
            .collect();
        for (effect, attempt, class) in asking {
            if class != Some(Class::Unsafe) {
                self.out.orders.push(Do::Cut { effect, attempt });
                continue;
            }
            let Some(name) = self.question_name(effect)? else {
                continue;
            };
            let mut draft = self.draft(self.d.effects.outs()[&effect].branch);
            draft.note(Note::Released {
                effect,
                why: Why::Elicited,
                how: Release::Cancelled,
                by: Decider::Rule,
                text: Some("the process that made the call was stopped".to_owned()),
            });
            let over = Fault::new(Code::Cancelled, "its session is being stopped");
            let told = Box::new(Told::Refused(over));
            draft.then.push(OnDisk::Step(effect, attempt, name, told));
            self.d.effects.goes_on(effect);
            self.write(draft)?;
        }
        Ok(())
    }
}

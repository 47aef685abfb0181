//! Orders of people that stay in force, and requests to repeat: pause, hold, retry.

use super::act::{not_open, word};
use super::branches::{Acted, ToBegin};
use super::draft::Note;
use super::{Job, OutState, Stop};
use crate::ledger::Record;
use crate::store::InboxMessage;
use steersman_machine::snapshot::Phase;
use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::{Admitted, LedgerEntry, Want};
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::stored::interaction::{Cause, Interaction};
use steersman_machine::tick::effect::{Opened, Work};

impl Job<'_, '_> {
    /// Pauses or resumes the session. Nothing new begins while it is paused.
    pub(super) fn pause(
        &mut self,
        message: &InboxMessage,
        paused: bool,
        by: By,
    ) -> Result<Acted, Stop> {
        self.accept_with(message, vec![LedgerEntry::Paused { paused, by }])?;
        if paused {
            self.give_back_slots();
        } else {
            self.d.effects.wakes_ready();
        }
        Ok(Ok(()))
    }

    /// Keeps effects of a tool from beginning, or lets them begin again.
    pub(super) fn order(
        &mut self,
        message: &InboxMessage,
        tool: Option<Name>,
        barred: bool,
        by: By,
    ) -> Result<Acted, Stop> {
        if let Some(tool) = &tool
            && barred
            && self.tool_def(tool).is_none()
        {
            return Ok(Err(format!("this session has no tool `{tool}`")));
        }
        let known = self.d.ledger.barred().any(|known| known == tool.as_ref());
        if known && barred {
            // the same order again: accept the message, change nothing
            self.accept_with(message, Vec::new())?;
            return Ok(Ok(()));
        }
        if !known && !barred {
            return Ok(Err(match tool {
                Some(tool) => format!("`{tool}` is not held here"),
                None => "nothing is held here by that order".to_owned(),
            }));
        }
        let entry = LedgerEntry::Barred { tool, barred, by };
        self.accept_with(message, vec![entry])?;
        let free: Vec<Id> = self
            .d
            .effects
            .outs()
            .iter()
            .filter(|(id, out)| matches!(out.state, OutState::Barred) && !self.is_barred(**id))
            .map(|(id, _)| *id)
            .collect();
        let now = self.seen.now;
        for id in free {
            self.d.effects.tries_now(id, now);
        }
        // Effects that are ready and have not begun are barred now, so that lists show it immediately.
        let ready: Vec<Id> = self
            .d
            .effects
            .outs()
            .iter()
            .filter(|(id, out)| {
                let idle = matches!(out.state, OutState::Ready | OutState::Queued);
                idle && self.is_barred(**id)
            })
            .map(|(id, _)| *id)
            .collect();
        for id in ready {
            self.bar(id);
        }
        Ok(Ok(()))
    }

    /// Returns true if an order keeps this effect from beginning. A simulated effect is never barred: it touches nothing.
    pub(super) fn is_barred(&self, id: Id) -> bool {
        let Some(out) = self.d.effects.out(id) else {
            return false;
        };
        match &out.wish.work {
            Work::Tool(tool) => self.d.ledger.bars(&tool.tool, tool.class),
            _ => false,
        }
    }

    /// Bars an effect: it stays out and holds no slot.
    pub(super) fn bar(&mut self, id: Id) {
        self.d.effects.bars(id);
        self.seen.permits.give_slot(id);
    }

    /// Bars an effect that was about to begin. If its `Started` is on disk, the ledger notes that nothing happened.
    pub(super) fn keep_back(&mut self, id: Id) -> Result<(), Stop> {
        let out = &self.d.effects.outs()[&id];
        let began = matches!(out.state, OutState::Starting(_)) && out.touches_world();
        let mut draft = self.draft(out.branch);
        if began {
            draft.note(Note::NotPerformed(id, out.attempt));
        }
        self.bar(id);
        self.retry_queued();
        self.write(draft)
    }

    /// Repeats something that failed, on request of a person: attempts that wait for a time, calls of a place that does not
    /// answer or that did not fit into a budget which sessions share, probes, or the model call whose failure ended the session.
    pub(super) fn retry(
        &mut self,
        message: &InboxMessage,
        effect: Option<Id>,
        by: By,
    ) -> Result<Acted, Stop> {
        let now = self.seen.now;
        let waiting: Vec<Id> = self
            .d
            .effects
            .outs()
            .iter()
            .filter(|(id, out)| {
                let again = match out.state {
                    OutState::Soon(at) => at > now,
                    OutState::Later(_) => self
                        .d
                        .ledger
                        .effect(**id)
                        .is_some_and(|r| r.again.is_some()),
                    _ => false,
                };
                again && effect.is_none_or(|wanted| wanted == **id)
            })
            .map(|(id, _)| *id)
            .collect();
        let held = self.held_by_places(effect);
        let unfit = self.held_by_periods(effect);
        if !waiting.is_empty() || !held.is_empty() || !unfit.is_empty() {
            let mut draft = self.draft(self.d.ledger.current);
            for id in unfit {
                self.draws_again(&mut draft, id, by.clone().into());
            }
            self.accepted(&mut draft, message);
            self.write(draft)?;
            for id in waiting {
                self.d.effects.tries_now(id, now);
            }
            self.try_places(held);
            return Ok(Ok(()));
        }
        if let Some(acted) = self.probe_again(message, effect)? {
            return Ok(acted);
        }
        if let Some(effect) = effect {
            let held = self.d.ledger.effect(effect).and_then(Record::open_hold);
            return Ok(Err(match held {
                Some((_, hold)) => format!("{effect} waits for something else: {}", word(hold.why)),
                None if self.d.effects.outs().contains_key(&effect) => {
                    format!("{effect} has not failed: no other attempt of it is waited for")
                }
                None => not_open(effect),
            }));
        }
        match self.failed_after()? {
            Ok(at) => {
                let opened = Opened {
                    rewound: true,
                    ..Opened::default()
                };
                let begin = ToBegin::new(self.d.ledger.current, Some(at), opened);
                self.open_by_person(message, begin)
            }
            Err(why) => Ok(Err(why)),
        }
    }

    /// Returns the commit before the one where a failed model call ended the session: there that call is open.
    fn failed_after(&mut self) -> Result<Result<Line, String>, Stop> {
        const NOTHING: &str = "nothing failed here, and no other attempt is waited for";
        let Some(branch) = self.d.branches.live().get(&self.d.ledger.current) else {
            return Ok(Err(NOTHING.to_owned()));
        };
        let Some(root) = branch.snapshot.root_agent() else {
            return Ok(Err(NOTHING.to_owned()));
        };
        if root.phase != Phase::Resting || root.stack.height == 0 {
            return Ok(Err(NOTHING.to_owned()));
        }
        let (id, last) = (root.id, root.stack.last);
        let line = self.seen.past.line(last)?;
        let Some(commit) = &line.commit else {
            return Ok(Err(NOTHING.to_owned()));
        };
        let failed = commit.pushes.iter().any(|push| {
            let ended = &push.what;
            push.agent == id
                && matches!(
                    ended,
                    Interaction::Finished {
                        cause: Cause::Failed,
                        ..
                    }
                )
        });
        if !failed {
            return Ok(Err(NOTHING.to_owned()));
        }
        let before = self.snapshot_at(line.branch, commit.parent)?;
        let outcomes = commit
            .admitted
            .iter()
            .filter(|admitted| admitted.kind == Admitted::Outcome)
            .filter_map(|admitted| before.effects.get(&admitted.id?));
        let step = outcomes.into_iter().any(|effect| effect.what == Want::Step);
        if step {
            return Ok(Ok(commit.parent));
        }
        let session = self.d.who.session();
        let limit = commit.pushes.iter().find_map(|push| match &push.what {
            Interaction::Finished {
                cause: Cause::Limit,
                code,
                ..
            } => Some(code.as_deref().unwrap_or("limit").to_owned()),
            _ => None,
        });
        if let Some(limit) = limit {
            return Ok(Err(format!(
                "what failed at line {last} was no model call: an agent reached its limit `{limit}`, and would reach it again; \
                 raise it in the definition, then: steersman run --resume {session} --rebind --input \"...\""
            )));
        }
        let back = match commit.parent {
            Line::NONE => "begin another session".to_owned(),
            before => format!("go back to the line before it: steersman rewind {session}@{before}"),
        };
        Ok(Err(format!(
            "what failed at line {last} was not a model call; {back}"
        )))
    }
}

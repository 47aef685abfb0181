//! Notification of people about things that wait for them: the tool of their `reach` is run, once for each question or hold and
//! each person that may answer it.
//!
//! The open questions and holds determine which notifications are due, so a new owner of the session finds them too. A
//! notification is an effect. Its id comes from its first ledger entry, and is the idempotency key of every attempt. An attempt
//! begins when its line is on disk. Nothing waits for a notification: people may answer meanwhile, and a question stays open even
//! if nobody could be notified.

use super::transport::TransportScope;
use super::{Aside, Do, Job, OnDisk, OutState, Stop};
use crate::ledger::Record;
use crate::retry::{self, Next};
use crate::toolset::ToolRun;
use serde_json::json;
use std::slice;
use std::sync::Arc;
use steersman_machine::stored::commit::{LedgerEntry, Reaching};
use steersman_machine::stored::ids::{Bodies as _, Id, Name, Time};
use steersman_machine::stored::interaction::Class;
use steersman_machine::tick::effect::{ToolWork, Work};
use steersman_machine::view;
use steersman_machine::view::mapping::Raw;

/// A notification to make.
pub(super) struct Wanted {
    /// The effect that waits.
    of: Id,
    /// The role for which it waits.
    role: Name,
    /// The tool that notifies the person.
    tool: Name,
    /// The notification's effect and last attempt, if this is not the first attempt.
    before: Option<(Id, u32)>,
}

/// The open question, in words for the person.
struct Question {
    text: Arc<str>,
    due: Option<Time>,
}

impl Job<'_, '_> {
    /// Returns the next notification to make.
    pub(super) fn next_reach(&self) -> Option<Wanted> {
        let network = self.d.bound.network()?;
        let reachable = network.people.values().any(|person| person.reach.is_some());
        if !reachable || self.is_halted() {
            return None;
        }
        let mut all = self.d.effects.outs().keys().flat_map(|of| {
            let asked = self.asked(*of).iter();
            asked.map(|by| (*of, by))
        });
        all.find_map(|(of, by)| {
            let tool = network.people.get(by)?.reach.clone()?;
            let before = match self.d.ledger.reach(of, by) {
                Some((_, reach)) if reach.over => return None,
                Some((_, reach)) if reach.again.is_some() => return None,
                Some((effect, _)) if self.d.asides.knows(effect) => return None,
                Some((effect, reach)) => Some((effect, reach.attempt)),
                None => None,
            };
            Some(Wanted {
                of,
                role: by.clone(),
                tool,
                before,
            })
        })
    }

    /// Returns true if a person must still be notified. If this owner stops, the next one does it.
    pub(super) fn owes_reach(&self) -> bool {
        let Some(network) = self.d.bound.network().filter(|_| !self.d.ledger.paused) else {
            return false;
        };
        if network.people.values().all(|person| person.reach.is_none()) {
            return false;
        }
        let owed = |of: Id, by: &Name| {
            let person = network.people.get(by);
            let reach = self.d.ledger.reach(of, by);
            person.is_some_and(|person| person.reach.is_some())
                && reach.is_none_or(|(_, reach)| !reach.over && reach.again.is_none())
        };
        let mut all = self.d.effects.outs().keys();
        all.any(|of| self.asked(*of).iter().any(|by| owed(*of, by)))
    }

    /// Returns the notifications that are tried again later: the time, and the effect.
    pub(super) fn reaches_again(&self) -> impl Iterator<Item = (Time, Id)> {
        self.d.ledger.reaches_again().filter_map(|(effect, reach)| {
            let asked = self.asked(reach.of).contains(&reach.role);
            Some((reach.again?, effect)).filter(|_| asked)
        })
    }

    /// Begins another attempt when its time has come.
    pub(super) fn reach_again(&mut self, effect: Id) -> Result<(), Stop> {
        let Some(reach) = self.d.ledger.reached(effect).cloned() else {
            return Ok(());
        };
        let person = self.network().people.get(&reach.role);
        match person.and_then(|person| person.reach.clone()) {
            Some(tool) => {
                let wanted = Wanted {
                    of: reach.of,
                    role: reach.role,
                    tool,
                    before: Some((effect, reach.attempt)),
                };
                self.reach(wanted)
            }
            None => self.note_reach(effect, &reach, Some(UNREACHABLE)),
        }
    }

    /// Returns the people for whom an effect waits: each of them is notified, and any of them may answer.
    fn asked(&self, of: Id) -> &[Name] {
        let Some(out) = self.d.effects.out(of) else {
            return &[];
        };
        let record = self.d.ledger.effect(of);
        if let Some((_, hold)) = record.and_then(Record::open_hold) {
            return match out.state {
                // A probe may settle it without a person.
                OutState::Held if self.is_probed(of) => &[],
                OutState::Held => &hold.by,
                _ => &[],
            };
        }
        match &out.wish.work {
            Work::Ask { to, .. } if matches!(out.state, OutState::Waits) => slice::from_ref(to),
            _ => &[],
        }
    }

    /// Writes the line of an attempt; the attempt begins when the line is on disk.
    pub(super) fn reach(&mut self, wanted: Wanted) -> Result<(), Stop> {
        let Wanted {
            of,
            role,
            tool,
            before,
        } = wanted;
        let Some(out) = self.d.effects.out(of) else {
            return Ok(());
        };
        let mut draft = self.draft(out.branch);
        let line = draft.n;
        let (effect, attempt) = match before {
            Some((effect, attempt)) => (effect, attempt + 1),
            None => (Id::new(line, 0), 1),
        };
        draft.urgent = true;
        draft.ledger.push(LedgerEntry::Reach {
            effect,
            of,
            role,
            what: Reaching::Started { tool, attempt },
        });
        self.d.asides.notice_begins(effect);
        self.write(draft)?;
        self.d.course.when_durable(line, OnDisk::Reach(effect));
        Ok(())
    }

    /// Begins the attempt.
    pub(super) fn start_reach(&mut self, effect: Id) {
        let Some((run, timeout)) = self.reach_run(effect) else {
            // The question was answered meanwhile: nobody has to be notified.
            self.d.asides.forgets(effect);
            return;
        };
        let (attempt, class) = (run.attempt, run.work.class);
        self.begins_aside(effect, attempt, Aside::Reach, class, Ok((run, timeout)));
    }

    /// Returns the input of an attempt, and its timeout in milliseconds; `None` if nothing waits any more.
    fn reach_run(&self, effect: Id) -> Option<(ToolRun, u64)> {
        let reach = self.d.ledger.reached(effect)?;
        let by = self.asked(reach.of).iter().find(|by| **by == reach.role)?;
        let person = self.network().people.get(by)?;
        let tool = person.reach.clone()?;
        let def = self.tool_def(&tool)?;
        let question = self.question(reach.of)?;
        let out = self.d.effects.out(reach.of)?;
        let due = question
            .due
            .map(|due| view::iso(due, &self.network().timezone));
        let link = format!("{}/{}", self.d.who.session(), reach.of);
        let question = json!({
            "id": reach.of.to_string(),
            "text": &*question.text,
            "link": link,
            "due": due,
        });
        let person = json!({ "name": &*person.name, "role": &*person.role });
        let snapshot = self.d.branches.live().get(&out.branch)?.snapshot.clone();
        let scope = TransportScope::new(
            self.network().clone(),
            self.seen.reader.clone(),
            snapshot,
            out.wish.agent,
            (Some("{}".into()), &[]),
            self.seen.engine,
            self.d.bound.values().folder(),
        );
        let run = ToolRun {
            network: self.network().clone(),
            session: self.d.who.session().clone(),
            part: self.d.who.claim().scope.clone(),
            mark: self.mark_of(effect),
            effect,
            attempt: reach.attempt,
            work: ToolWork {
                makes: tool.clone(),
                tool,
                class: def.effect,
                args: "{}".into(),
                approve: Vec::new(),
                inputs: Vec::new(),
            },
            folder: self.d.bound.values().folder(),
            artifacts: self.artifacts(reach.of),
            steps: None,
            trace: None,
            writes: None,
            scope: Arc::new(scope.with("question", question).with("person", person)),
        };
        Some((run, def.timeout))
    }

    fn question(&self, of: Id) -> Option<Question> {
        let record = self.d.ledger.effect(of);
        if let Some((_, hold)) = record.and_then(Record::open_hold) {
            let text = hold.ask.map(|ask| self.seen.past.text(ask));
            return Some(Question {
                text: text.unwrap_or_else(|| "something waits".into()),
                due: hold.due,
            });
        }
        let wish = &self.d.effects.out(of)?.wish;
        match &wish.work {
            Work::Ask { question, .. } => Some(Question {
                text: question.clone(),
                due: wish.due,
            }),
            _ => None,
        }
    }

    /// Handles the end of an attempt: notes it, or schedules another one.
    pub(super) fn reached(&mut self, effect: Id, attempt: u32, raw: Raw) -> Result<(), Stop> {
        let Some(reach) = self.d.ledger.reached(effect).cloned() else {
            return Ok(());
        };
        // A tool of `reach` is idempotent: `check` requires it.
        let wanted = retry::wanted(&raw, Class::Idempotent);
        let fault = match raw {
            Raw::Done(_) | Raw::Made { .. } => {
                self.d.asides.notice_ends(effect);
                return self.note_reach(effect, &reach, None);
            }
            Raw::Failed(fault) | Raw::NotPerformed(fault) | Raw::Unknown(fault) => fault,
        };
        let person = self.network().people.get(&reach.role);
        let tool = person.and_then(|person| self.tool_def(person.reach.as_ref()?));
        let attempts = 1 + tool.map_or(0, |tool| tool.retry);
        let now = self.seen.now;
        let seed = self.d.bound.values().seed;
        let next = wanted.map(|wanted| retry::next(wanted, attempt, attempts, seed, effect, now));
        if let Some(Next::After(millis)) = next {
            self.d.asides.notice_again_soon(effect);
            self.out.orders.push(Do::Alarm {
                effect,
                attempt,
                millis,
            });
            return Ok(());
        }
        if let Some(Next::At(at)) = next
            && self.asked(reach.of).contains(&reach.role)
        {
            return self.notify_later(effect, reach.of, at);
        }
        self.d.asides.notice_ends(effect);
        let why = format!("{}: {}", fault.code, fault.message);
        self.note_reach(effect, &reach, Some(&why))
    }

    /// Schedules another attempt after a long delay. The time is in the log, so it survives this process.
    fn notify_later(&mut self, effect: Id, of: Id, at: Time) -> Result<(), Stop> {
        self.d.asides.forgets(effect);
        let mut draft = self.draft(self.d.effects.outs()[&of].branch);
        draft.urgent = true;
        draft.ledger.push(LedgerEntry::Again { effect, at });
        self.write(draft)
    }

    fn note_reach(
        &mut self,
        effect: Id,
        reach: &crate::ledger::Reach,
        why: Option<&str>,
    ) -> Result<(), Stop> {
        let out = self.d.effects.out(reach.of);
        let branch = out.map_or(self.d.ledger.current, |out| out.branch);
        let mut draft = self.draft(branch);
        let what = match why {
            Some(why) => Reaching::Failed(draft.body(&clipped(why))),
            None => Reaching::Done,
        };
        draft.urgent = true;
        draft.ledger.push(LedgerEntry::Reach {
            effect,
            of: reach.of,
            role: reach.role.clone(),
            what,
        });
        self.write(draft)
    }
}

/// Reason why nobody is notified after the definition was changed.
const UNREACHABLE: &str = "the definition has no `reach` tool for them";

/// Cuts a reason to the length that the log keeps.
pub(super) fn clipped(why: &str) -> String {
    const LONGEST: usize = 200;
    why.chars().take(LONGEST).collect()
}

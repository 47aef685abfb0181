//! The rest of a recording after the rerun has left it: outcomes and messages that answer the same requests, and acts of people
//! that are not repeated.

use super::People;
use super::walk::{Walk, fault, same_tool};
use crate::engine::recorded::{Asked, Heard, Left};
use crate::store::StoreError;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::{Admitted, Commit, LedgerEntry, LogLine};
use steersman_machine::stored::ids::{Bodies, Id};
use steersman_machine::stored::interaction::{How, Interaction, Origin};
use steersman_machine::stored::outcome::{Mapped, Outcome};
use steersman_machine::tick::effect::{Offered, Until, Work};

impl Walk<'_> {
    /// Collects the outcomes and messages of a line that is not followed; they answer the same requests later.
    pub(super) fn leave(
        &self,
        line: &LogLine,
        commit: &Commit,
        left: &mut Left,
    ) -> Result<(), StoreError> {
        let before = self.old.before(line);
        // Reconstructed once, for all answers of the line.
        let mut offers = None;
        for admission in &commit.admitted {
            let (Admitted::Outcome, Some(effect)) = (admission.kind, admission.id) else {
                continue;
            };
            let Some(work) = self.works.get(&effect) else {
                continue;
            };
            if let Work::Model = work {
                let offers = match &offers {
                    Some(offers) => offers,
                    None => offers.insert(self.told(line, commit)?.unwrap_or_default()),
                };
                let answer = offers.iter().find_map(|offered| match offered {
                    Offered::Outcome {
                        effect: e,
                        outcome: Outcome::Answer(answer),
                        ..
                    } if *e == effect => Some(answer.clone()),
                    _ => None,
                });
                if let Some((answer, request)) =
                    answer.and_then(|a| Some((a.clone(), a.usage.request?)))
                {
                    left.answers.entry(request).or_default().push_back(answer);
                }
                continue;
            }
            let call = before.call_of(effect).map(|open| open.call.clone());
            let asked = match (work, &call) {
                (Work::Tool(tool) | Work::Simulate(tool), _) => {
                    if !same_tool(&self.old.network, &self.changed.network, &tool.tool) {
                        continue;
                    }
                    Asked::Tool(self.digest(tool))
                }
                (Work::Ask { to, question, .. }, _) if *self.people != People::Stop => {
                    Asked::Person(to.clone(), question.clone())
                }
                (Work::Event { .. } | Work::Timer, Some(call)) => {
                    Asked::Wait(call.name.clone(), self.old.past.text(call.args))
                }
                _ => continue,
            };
            let Some(call) = call else { continue };
            if let Some(mapped) = self.result(line, commit, call.id)? {
                left.outcomes.entry(asked).or_default().push_back(mapped);
            }
        }
        if *self.people != People::Stop && self.recording.path.contains(&line.n) {
            self.heard(commit, &before, left)?;
        }
        Ok(())
    }

    fn result(
        &self,
        line: &LogLine,
        commit: &Commit,
        call: Id,
    ) -> Result<Option<Mapped>, StoreError> {
        for (k, push) in commit.pushes.iter().enumerate() {
            if let Interaction::Result(result) = &push.what
                && result.call == call
            {
                let next = commit.pushes.get(k + 1);
                return self.recording.past.mapped_of(line, result, next).map(Some);
            }
        }
        Ok(None)
    }

    /// Collects messages of people, and answers that they gave by addressing a question.
    fn heard(&self, commit: &Commit, before: &Snapshot, left: &mut Left) -> Result<(), StoreError> {
        let mut has_message = false;
        for admission in &commit.admitted {
            if !matches!(admission.kind, Admitted::Message | Admitted::Interrupt) {
                continue;
            }
            let Some(to) = admission.id else {
                has_message = true;
                continue;
            };
            let (Some(Work::Ask { to, question, .. }), Some(open)) =
                (self.works.get(&to), before.call_of(to))
            else {
                has_message = true;
                continue;
            };
            for push in &commit.pushes {
                if let Interaction::Result(result) = &push.what
                    && result.call == open.call.id
                    && let Some(body) = result.body
                {
                    let (shown, more) = self.old.past.of_outcome(body);
                    let mapped = Mapped {
                        shown,
                        more,
                        by: result.by.clone(),
                        ..Mapped::plain(How::Done, None, "")
                    };
                    let asked = Asked::Person(to.clone(), question.clone());
                    left.outcomes.entry(asked).or_default().push_back(mapped);
                }
            }
        }
        // Each message is pushed once, onto the stack of the agent that heard it.
        for push in commit.pushes.iter().filter(|_| has_message) {
            if let Interaction::UserMessage {
                from: Origin::Outside(by),
                body,
            } = &push.what
            {
                left.heard.push_back(Heard {
                    text: self.old.past.text(*body).to_string(),
                    by: by.clone(),
                });
            }
        }
        fault(&self.old.past)
    }
}

/// Returns the acts of a person in a line other than messages, in words. They are not repeated once the recording is left.
pub(super) fn deeds(line: &LogLine, commit: &Commit) -> Vec<String> {
    let ledger = &line.ledger;
    let searched = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Search { .. });
    let opening = commit.opening.as_ref().filter(|o| o.of.is_none());
    let opening = opening.filter(|_| commit.parent.is_some() && !ledger.iter().any(searched));
    let by_person = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Accepted { .. });
    let by_person = ledger.iter().any(by_person);
    let mut done = Vec::new();
    for admission in &commit.admitted {
        let name = || match opening.and_then(|opening| opening.label.as_ref()) {
            Some(label) => label.to_string(),
            None => line.branch.to_string(),
        };
        done.extend(match admission.kind {
            Admitted::Opened if opening.is_some() => Some(format!("fork {}", name())),
            Admitted::Rewound if opening.is_some() => Some(format!("rewind {}", name())),
            Admitted::Adopted if by_person => Some(format!("adopt @{}", line.n)),
            Admitted::Join => Some(format!("join @{}", line.n)),
            Admitted::Cancel => Some(format!("cancel @{}", line.n)),
            Admitted::Edited => Some(format!("edit @{}", line.n)),
            Admitted::Rebound => Some(format!("another definition @{}", line.n)),
            _ => None,
        });
    }
    done
}

/// Returns the reason why the events of a line are not taken under the other definition.
pub(super) fn not_taken(commit: &Commit, until: Option<&Until>) -> String {
    let kind = commit.admitted.first().map(|admission| admission.kind);
    let what = match kind {
        _ if !commit.parent.is_some() => "how it began",
        Some(Admitted::Message | Admitted::Interrupt) => "what was said here",
        Some(Admitted::Outcome) => "what came of an effect here",
        _ => "what happened here",
    };
    match until {
        Some(Until::Refused(why)) => format!("{what} is not taken: {why}"),
        Some(Until::Stale) => format!("{what} is not taken: nobody waits for it"),
        Some(_) => format!("{what} is not taken: its agent is at work"),
        None => format!("{what} is not taken"),
    }
}

//! A different message at a line of a recording: the machine takes it right there, so that nothing can come before it.

use super::walk::{Walk, fault};
use crate::engine::EngineError;
use crate::inbox::random_id;
use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::{LedgerEntry, LogLine};
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::tick::effect::{Offered, Said};
use steersman_machine::tick::hooks::before_models;
use steersman_machine::tick::tick;

impl Walk<'_> {
    /// Adds a line, after those that were followed, which takes the message. Wishes that are open there are cancelled: they
    /// belong to the earlier messages, and none of them has begun.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), EngineError> {
        let Some(last) = self.lines.last() else {
            return Err(EngineError::Refused(
                "no message can be sent before the session began".to_owned(),
            ));
        };
        let branch = if self.new.branches.contains_key(&self.target) {
            self.target
        } else {
            last.branch
        };
        let n = Line(last.n.0 + 1);
        let id = random_id();
        let before = self.new.branches[&branch].clone();
        let now = before.now;
        let offered = offer(&id, text, before.effects.is_empty());
        let mut step = tick(&self.new.cx(), before, n, now, &[offered]);
        before_models(&self.new.cx(), &*self.new.past, n, &mut step);
        fault(&self.new.past)?;
        let refused = step.left.first().map(|(_, until)| format!("{until:?}"));
        let Some(commit) = step.commit.filter(|_| refused.is_none()) else {
            return Err(EngineError::Refused(format!(
                "no message can be sent at line {}: {}",
                last.n,
                refused.unwrap_or_else(|| "nobody takes it".to_owned())
            )));
        };
        self.contents.extend(step.contents);
        let mut made = LogLine {
            n,
            at: now,
            prev: self.prev.get(&branch).copied().unwrap_or(Line::NONE),
            branch,
            commit: Some(commit),
            ledger: vec![LedgerEntry::Accepted {
                message: id,
                by: Some(By::default()),
                parent: None,
            }],
            bodies: step.bodies,
        };
        self.with_owed(&mut made);
        self.push(made)
    }
}

/// Returns the offer: a plain message if no effect is outstanding, otherwise an interrupt that replaces the effects.
fn offer(id: &Name, text: &str, rests: bool) -> Offered {
    let message = Said {
        id: id.clone(),
        text: text.into(),
        to: None::<Id>,
        by: By::default(),
        sender: None,
        came: Vec::new(),
        sets: Vec::new(),
    };
    if rests {
        return Offered::Message(message);
    }
    Offered::Interrupt {
        message,
        known: Vec::new(),
        shown: Vec::new(),
    }
}

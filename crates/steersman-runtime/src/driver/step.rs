//! Standing after each line, for whoever looks at them one by one ([`crate::step`]).

use super::{Driver, OutState};
use crate::session::Standing;
use crate::step::Let;
use steersman_machine::commit::LogLine;
use steersman_machine::ids::Id;

/// Whether a session stands after each line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Stepping {
    /// It goes on by itself.
    Free,
    /// It may make one line.
    Line,
    /// It made that, and nothing begins.
    Stands,
}

impl Driver {
    /// It stands after each line from here on; one that has not begun makes its first line before.
    pub(super) fn steps(&mut self, steps: bool) {
        self.stepping = match (steps, &self.network) {
            (false, _) => Stepping::Free,
            (true, None) => Stepping::Line,
            (true, Some(_)) => Stepping::Stands,
        };
    }

    /// Whether it makes no line and begins nothing. Who lets go of it takes what has ended meanwhile.
    pub(super) fn stands(&self) -> bool {
        self.stepping == Stepping::Stands && self.stopping.is_none()
    }

    pub(super) fn let_go_on(&mut self, how: Let) {
        self.stepping = match (how, self.stepping) {
            (Let::Free, _) | (_, Stepping::Free) => Stepping::Free,
            (Let::Line, _) => Stepping::Line,
        };
    }

    /// Where nothing goes on by itself somebody outside does something next: that is its next line.
    pub(super) fn rests(&mut self) {
        if self.stepping == Stepping::Stands && !self.ledger.paused {
            self.stepping = Stepping::Line;
        }
    }

    pub(super) fn made_line(&mut self, line: &LogLine) {
        if self.stepping == Stepping::Line && line.commit.is_some() {
            self.stepping = Stepping::Stands;
        }
    }

    /// The next effect whose `Started` is on disk: it was let go before, and what died here would leave a doubt.
    pub(super) fn next_granted(&mut self) -> Option<Id> {
        let starting = |id: &&Id| {
            let out = self.outs.get(id);
            out.is_some_and(|out| matches!(out.state, OutState::Starting(_)))
        };
        let found = self.to_start.iter().find(starting).copied()?;
        self.to_start.remove(&found);
        Some(found)
    }

    /// Where lines are made one by one nothing begins with the line that wishes it: it is looked at first. True if it is to
    /// begin when somebody lets it.
    pub(super) fn waits_for_go(&mut self, id: Id) -> bool {
        if self.stepping == Stepping::Free {
            return false;
        }
        let Some(out) = self.outs.get_mut(&id) else {
            return false;
        };
        out.state = OutState::Queued;
        self.to_start.insert(id);
        true
    }

    /// Whoever waits is told behind which line it stands, once that is on disk.
    pub(super) fn publish_line(&self) {
        if !self.writer.is_idle() || self.inbox.look || self.inbox.late {
            return;
        }
        let mut outs = self.outs.values();
        let running =
            outs.any(|out| matches!(out.state, OutState::Running(_) | OutState::Starting(_)));
        let line = self.writer.durable;
        self.standing.send_if_modified(|standing| match standing {
            Standing::Gone(_) => false,
            Standing::Stands {
                line: known,
                running: runs,
            } if *known == line => {
                *runs = running;
                false
            }
            _ => {
                *standing = Standing::Stands { line, running };
                true
            }
        });
    }
}

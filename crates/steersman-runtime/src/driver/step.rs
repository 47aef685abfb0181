//! Stepping: a session that stops after each line ([`crate::step`]).

use super::{Driver, OutState};
use crate::session::Standing;
use crate::step::Let;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::Id;

/// Stepping state of a session.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Stepping {
    /// The session does not stop after lines.
    Free,
    /// The session may make one line.
    Line,
    /// The session made that line, and nothing begins.
    Stands,
}

impl Driver {
    /// Makes the session stop after each line, or not. A session that has not begun makes its first line before it stops.
    pub(super) fn steps(&mut self, steps: bool) {
        self.stepping = match (steps, &self.network) {
            (false, _) => Stepping::Free,
            (true, None) => Stepping::Line,
            (true, Some(_)) => Stepping::Stands,
        };
    }

    /// Returns true if the session makes no line and begins nothing. While it is being stopped for good, it still takes outcomes.
    pub(super) fn stands(&self) -> bool {
        self.stepping == Stepping::Stands && self.stopping.is_none()
    }

    pub(super) fn let_go_on(&mut self, how: Let) {
        self.stepping = match (how, self.stepping) {
            (Let::Free, _) | (_, Stepping::Free) => Stepping::Free,
            (Let::Line, _) => Stepping::Line,
        };
    }

    /// Allows one line if the session has settled: that line comes from an input from outside.
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

    /// Returns the next effect whose `Started` is on disk. It was allowed to begin before; if the process died now, it would be
    /// in doubt.
    pub(super) fn next_granted(&mut self) -> Option<Id> {
        let starting = |id: &&Id| {
            let out = self.outs.get(id);
            out.is_some_and(|out| matches!(out.state, OutState::Starting(_)))
        };
        let found = self.to_start.iter().find(starting).copied()?;
        self.to_start.remove(&found);
        Some(found)
    }

    /// Returns true if the effect waits for the next step: while the session steps, no effect begins with the line that wishes
    /// it, so that the line can be looked at first.
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

    /// Tells those who wait at which line the session stopped, once that line is on disk.
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

//! The course of a session: what was heard, what waits for the disk, and orders for the whole session.

use super::{Heard, OnDisk};
use crate::driver::HALF;
use crate::driver::cancel::Everything;
use crate::driver::rest::Kept;
use crate::step::Let;
use crate::store::{InboxMessage, SessionState};
use std::collections::VecDeque;
use std::sync::Arc;
use steersman_machine::stored::ids::{Line, Name};

/// The course of a session.
///
/// Invariants, which [`Course::recount`] checks: the lines in `ahead` ascend; `unhurried` is below the bounds at which a batch becomes
/// urgent.
#[derive(Clone, Default)]
pub(crate) struct Course {
    /// Everything that was heard and was not handled yet.
    heard: VecDeque<Arc<Heard>>,
    /// Actions to take once a line is on disk.
    ahead: VecDeque<(Line, OnDisk)>,
    /// Numbers of lines and bytes in the batches after the last urgent one. The store may sync these batches later.
    unhurried: (u64, usize),
    /// The state shown in session lists, as it was last written.
    shown: Arc<SessionState>,
    /// Says if the session stops after each line.
    stepping: Stepping,
    /// True once a stop was requested.
    stopping: bool,
    /// A cancel of the whole session that has not reached all branches.
    cancelling: Option<Arc<Everything>>,
    /// State that an earlier driver of the same owner left, until it is restored.
    kept: Option<Arc<Kept>>,
}

/// Stepping state of a session.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stepping {
    /// The session does not stop after lines.
    #[default]
    Free,
    /// The session may make one line.
    Line,
    /// The session made that line, and nothing begins.
    Stands,
}

/// Everything that was heard.
impl Course {
    /// Returns what is handled next.
    pub(crate) fn next_heard(&self) -> Option<&Heard> {
        self.heard.front().map(|heard| &**heard)
    }

    pub(crate) fn take_heard(&mut self) -> Option<Heard> {
        self.heard.pop_front().map(Arc::unwrap_or_clone)
    }

    /// Takes what is handled next, if it is a message of the inbox.
    pub(crate) fn take_mail(&mut self) -> Option<InboxMessage> {
        match self
            .heard
            .pop_front_if(|heard| matches!(**heard, Heard::Mail(_)))
            .map(Arc::unwrap_or_clone)
        {
            Some(Heard::Mail(message)) => Some(message),
            _ => None,
        }
    }

    /// These are handled after everything that was heard before.
    pub(crate) fn hears(&mut self, heard: impl IntoIterator<Item = Heard>) {
        self.heard.extend(heard.into_iter().map(Arc::new));
    }

    /// This is handled before everything else that was heard.
    pub(crate) fn hears_first(&mut self, heard: Heard) {
        self.heard.push_front(Arc::new(heard));
    }

    /// The rest of the inbox is read again later.
    pub(crate) fn leaves_mail(&mut self) {
        let mail = |heard: &Heard| matches!(heard, Heard::Mail(_) | Heard::MailRead(_));
        self.heard.retain(|heard| !mail(heard));
    }
}

/// Actions that wait for the disk.
impl Course {
    /// An action is taken when a line is on disk.
    pub(crate) fn when_durable(&mut self, line: Line, then: OnDisk) {
        let at = self.ahead.partition_point(|(before, _)| *before <= line);
        self.ahead.insert(at, (line, then));
    }

    /// Returns the actions whose lines are on disk.
    pub(crate) fn on_disk(&self, durable: Line) -> impl Iterator<Item = &OnDisk> {
        let ready = self.ahead.iter();
        let ready = ready.take_while(move |(line, _)| *line <= durable);
        ready.map(|(_, then)| then)
    }

    pub(crate) fn take_on_disk(&mut self, durable: Line) -> Vec<OnDisk> {
        let ready = self.ahead.partition_point(|(line, _)| *line <= durable);
        self.ahead.drain(..ready).map(|(_, then)| then).collect()
    }

    /// Returns true if the sender of a message is told its fate when a line is on disk. `None`: of any message.
    pub(crate) fn owes_receipt(&self, of: Option<&Name>) -> bool {
        self.ahead
            .iter()
            .any(|(_, then)| matches!(then, OnDisk::Receipt(id, _) if of.is_none_or(|of| of == id)))
    }

    /// A batch is appended. Returns true if it is urgent: somebody waits for it, or many before it wait for the disk.
    pub(crate) fn appends(&mut self, lines: u64, bytes: usize, urgent: bool) -> bool {
        let (all_lines, all_bytes) = (self.unhurried.0 + lines, self.unhurried.1 + bytes);
        let urgent = urgent || all_lines >= HALF.0 || all_bytes >= HALF.1;
        self.unhurried = if urgent {
            (0, 0)
        } else {
            (all_lines, all_bytes)
        };
        urgent
    }
}

/// Orders for the whole session, and what lists show.
impl Course {
    pub(crate) fn shown(&self) -> &Arc<SessionState> {
        &self.shown
    }

    /// Lists show this state with the line that is written now.
    pub(crate) fn shows(&mut self, state: SessionState) {
        self.shown = Arc::new(state);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// The session is stopped, or looked at as if it were not. Returns true if it was stopped before.
    pub(crate) fn stops(&mut self, stops: bool) -> bool {
        std::mem::replace(&mut self.stopping, stops)
    }

    pub(crate) fn cancelling(&self) -> Option<&Arc<Everything>> {
        self.cancelling.as_ref()
    }

    /// A cancel of the session begins, goes on, or has reached all branches.
    pub(crate) fn cancels(&mut self, all: Option<Everything>) {
        self.cancelling = all.map(Arc::new);
    }

    /// The session stops after each line, or not. One that has not begun makes its first line before it stops.
    pub(crate) fn steps(&mut self, steps: bool, has_begun: bool) {
        self.stepping = match (steps, has_begun) {
            (false, _) => Stepping::Free,
            (true, false) => Stepping::Line,
            (true, true) => Stepping::Stands,
        };
    }

    pub(crate) fn stepping(&self) -> Stepping {
        self.stepping
    }

    /// A session that stops after each line may go on.
    pub(crate) fn goes_on(&mut self, how: Let) {
        self.stepping = match (how, self.stepping) {
            (Let::Free, _) | (_, Stepping::Free) => Stepping::Free,
            (Let::Line, _) => Stepping::Line,
        };
    }

    /// The session has settled: it may make one line, which comes from an input from outside.
    pub(crate) fn settled(&mut self) {
        if self.stepping == Stepping::Stands {
            self.stepping = Stepping::Line;
        }
    }

    /// A line with a commit was made.
    pub(crate) fn made_commit(&mut self) {
        if self.stepping == Stepping::Line {
            self.stepping = Stepping::Stands;
        }
    }
}

/// A session is parked or taken out of memory, and goes on.
impl Course {
    /// Returns true if what an earlier driver left is not restored yet.
    pub(crate) fn is_to_restore(&self) -> bool {
        self.kept.is_some()
    }

    pub(crate) fn take_kept(&mut self) -> Option<Kept> {
        self.kept.take().map(Arc::unwrap_or_clone)
    }

    /// The session is driven again: this is to be done first, and this to be restored.
    pub(crate) fn opens(&mut self, heard: impl IntoIterator<Item = Heard>, kept: Kept) {
        self.hears(heard);
        self.kept = Some(Arc::new(kept));
    }

    /// Takes out what is kept; everything that was heard is done. `parks`: nothing is on its way to the disk, and no order is in force.
    pub(crate) fn closes(&mut self, parks: bool) -> Self {
        let all = std::mem::take(self);
        if parks {
            return Self {
                shown: all.shown,
                ..Self::default()
            };
        }
        Self {
            heard: VecDeque::new(),
            cancelling: None,
            kept: None,
            ..all
        }
    }

    /// Checks the invariants. Returns what is wrong.
    pub(crate) fn recount(&self) -> Result<(), String> {
        if !self.ahead.iter().is_sorted_by_key(|(line, _)| *line) {
            return Err("what waits for the disk is out of order".to_owned());
        }
        if self.unhurried.0 >= HALF.0 || self.unhurried.1 >= HALF.1 {
            return Err(format!("{:?} are unhurried", self.unhurried));
        }
        Ok(())
    }
}

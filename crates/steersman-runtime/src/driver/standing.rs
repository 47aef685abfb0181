//! Standing of a session: the state in lists, what it waits for, and its result.

use super::{Job, Out, OutState};
use crate::log::last::last;
use crate::log::standing::{outcome, settled};
use crate::pending::{self, Pending};
use crate::session::{Outside, Settled};
use crate::store::SessionState;
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Line, Time};
use steersman_machine::view::Cx;

/// Standing of a session with nothing left to do.
pub(crate) enum Stood {
    /// It stopped after this line. `running`: an effect is running meanwhile.
    Line { line: Line, running: bool },
    /// Effects are running, or will be tried again soon.
    Outside(Outside),
    /// It continues only after an input from outside, or at a time. `line` is the last one on disk.
    Settled {
        line: Line,
        settled: Arc<Settled>,
        outside: Outside,
    },
}

impl Job<'_, '_> {
    /// Returns how the session stands, once nothing is left to do; `None` if something is on its way to the disk, or if the session
    /// is being stopped and only the next owner can continue it.
    pub(crate) fn standing(&mut self) -> Option<Stood> {
        if self.is_between_steps() && !self.is_quiet() {
            if !self.is_idle() || self.d.mail.looks() || self.d.mail.is_late() {
                return None;
            }
            let mut outs = self.d.effects.outs().values();
            let runs = |out: &Out| matches!(out.state, OutState::Running | OutState::Starting(_));
            let (line, running) = (self.seen.durable, outs.any(runs));
            return Some(Stood::Line { line, running });
        }
        if !self.is_still() {
            return None;
        }
        let outside = self.outside();
        if !self.is_quiet() {
            let leaves = self.d.course.is_stopping() && outside.running == 0;
            return (!leaves).then_some(Stood::Outside(outside));
        }
        self.rests();
        Some(Stood::Settled {
            line: self.seen.durable,
            settled: Arc::new(self.settled()),
            outside,
        })
    }

    /// Returns true if the driver has nothing to do and everything is on disk; effects may run.
    pub(super) fn is_still(&self) -> bool {
        self.is_idle()
            && !self.d.mail.looks()
            && !self.d.mail.is_late()
            && self.next_branch().is_none()
            && self.next_search().is_none()
            && !self.d.servers.has_come()
            && (self.d.effects.next().is_none()
                || self.d.ledger.paused
                || self.d.course.is_stopping())
    }

    /// Returns the outside events of which one must happen before the session continues.
    pub(super) fn outside(&self) -> Outside {
        // The limiter's clock moves effects that wait for a turn; the end of another effect moves those that wait for a slot.
        let waits_for_end =
            |id: &Id, out: &Out| self.d.effects.waits_for_an_end(*id, out.wish.agent);
        let running = self
            .d
            .effects
            .outs()
            .iter()
            .filter(|(id, out)| match out.state {
                OutState::Running => true,
                OutState::Queued => !self.d.ledger.paused && !waits_for_end(id, out),
                // It waits for a person, and the server of its tool waits with it.
                OutState::Held => self.d.effects.is_asking(**id),
                _ => false,
            });
        // Attempts whose branch was superseded, or whose call was cancelled.
        let left = self
            .d
            .effects
            .at_work()
            .iter()
            .filter(|((id, attempt), at_work)| {
                let mut out = self.d.effects.out(*id).into_iter();
                **at_work && !out.any(|out| out.attempt == *attempt)
            });
        let soon = self
            .d
            .effects
            .outs()
            .values()
            .filter_map(|out| match out.state {
                OutState::Soon(at) if !self.d.ledger.paused => Some(at),
                _ => None,
            });
        Outside {
            running: running.count()
                + left.count()
                + self.d.asides.running()
                + self.d.searches.judging()
                + usize::from(self.d.servers.is_asking()),
            due: soon.chain(self.next_due()).min(),
            place: self.place_out(),
        }
    }

    /// Returns true if the session waits only for the outside or for a time, and everything is on disk. An effect that does not
    /// begin because the session is being stopped waits for the next owner, so the session is not quiet.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_still()
            && !self.is_probing()
            && !self.d.servers.is_asking()
            && self.d.asides.notifying() == 0
            && self.d.searches.judging() == 0
            && self.d.effects.outs().iter().all(|(id, out)| match out.state {
                OutState::AwaitsSearch | OutState::Held | OutState::Barred | OutState::Waits | OutState::Later(_) => true,
                // The effect that it waits for decides whether the session is quiet.
                OutState::Queued if self.d.effects.waits_for_another(*id) => true,
                OutState::Ready | OutState::Queued | OutState::Soon(_) => self.d.ledger.paused,
                OutState::Starting(_) | OutState::Running | OutState::Over => false,
            })
            // Effects that are due already end in the next turn of the loop.
            && self.next_due().is_none_or(|due| due > self.seen.now)
    }

    /// Returns the standing of the current branch. The caller has checked that the session is quiet.
    pub(super) fn settled(&self) -> Settled {
        let Some(branch) = self.d.branches.live().get(&self.d.ledger.current) else {
            return Settled::Empty;
        };
        let Some(network) = self.d.bound.network() else {
            return Settled::Empty;
        };
        settled(
            network,
            &self.d.ledger,
            &branch.snapshot,
            self.pending(Some(self.d.ledger.current)),
            &*self.seen.past,
        )
    }

    /// Returns what a branch waits for, oldest first; `None` means all branches.
    fn pending(&self, of: Option<Id>) -> Vec<Pending> {
        let cx = Cx {
            network: self.network(),
            bodies: &*self.seen.past,
        };
        let mut pending: Vec<Pending> = self
            .d
            .effects
            .outs()
            .values()
            .filter(|out| of.is_none_or(|id| out.branch == id))
            .filter(|out| !matches!(out.state, OutState::Over))
            .filter_map(|out| {
                let snapshot = &self.d.branches.live().get(&out.branch)?.snapshot;
                let mut pending = pending::of(&cx, &self.d.ledger, snapshot, &out.wish, out.since)?;
                // A wait is older than its owner, if another one began it.
                if pending.since == out.since {
                    let wished = self.seen.past.wished_at(out.wish.id);
                    pending.since = Some(wished).filter(|at| at.0 > 0).unwrap_or(out.since);
                }
                Some(pending)
            })
            .chain(self.left_in_doubt(of))
            .collect();
        pending.sort_by_key(|p| (p.since, p.effect));
        pending
    }

    /// Returns the state that lists show, if it changed with the line that is written now.
    pub(super) fn changed_info(&mut self, now: Time) -> Option<SessionState> {
        let rerun = self.seen.engine.0.recorded.as_ref();
        let state = self.info(rerun.and_then(|rerun| rerun.listed_at()).unwrap_or(now));
        let shown = self.d.course.shown();
        if shown_parts(&state) == shown_parts(shown) && spent(&state) == spent(shown) {
            return None;
        }
        let branch = self.d.branches.live().get(&self.d.ledger.current);
        let last = branch.map(|branch| last(&branch.snapshot, &*self.seen.past));
        let state = SessionState {
            last: last.unwrap_or_default(),
            ..state
        };
        self.d.course.shows(state.clone());
        Some(state)
    }

    /// Returns true if lists show an outdated state: something came to rest without a line, for example a probe that decides
    /// nothing.
    pub(super) fn is_misshown(&self) -> bool {
        shown_parts(&self.info(self.d.course.shown().updated)) != shown_parts(self.d.course.shown())
    }

    /// Returns the state that lists should show.
    pub(super) fn info(&self, now: Time) -> SessionState {
        let busy = self.is_probing()
            || self
                .d
                .effects
                .outs()
                .iter()
                .any(|(id, out)| match out.state {
                    OutState::Held | OutState::Barred | OutState::Waits | OutState::Later(_) => {
                        false
                    }
                    OutState::Queued if self.d.effects.waits_for_another(*id) => false,
                    OutState::Ready | OutState::Queued | OutState::Soon(_) => !self.d.ledger.paused,
                    OutState::AwaitsSearch
                    | OutState::Starting(_)
                    | OutState::Running
                    | OutState::Over => true,
                });
        let offered = self.next_branch().is_some();
        let mut state = SessionState {
            status: "running".into(),
            updated: now,
            micros: self.d.ledger.spent.micros,
            tokens: self.d.ledger.spent.tokens,
            model_calls: self.d.ledger.calls,
            definition: self.d.course.shown().definition.clone(),
            waits: pending::list(&[]),
            outcome: self.d.course.shown().outcome.clone(),
            ..SessionState::default()
        };
        if let Some(branch) = self.d.branches.live().get(&self.d.ledger.current)
            && let Some(binding) = &branch.snapshot.binding
        {
            state.definition = binding.digest.short().into();
        }
        let current = self.d.branches.live().contains_key(&self.d.ledger.current);
        if !busy && !offered && !self.owes_reach() && current && self.d.bound.network().is_some() {
            let settled = self.settled();
            state.status = settled.word().into();
            state.waits = pending::list(&self.pending(None));
            state.outcome = self.outcome();
        }
        state
    }

    /// Returns the values of `outcome:` as JSON. An expression that fails is left out.
    fn outcome(&self) -> Arc<str> {
        let snapshot = &self.d.branches.live()[&self.d.ledger.current].snapshot;
        let cx = Cx {
            network: self.network(),
            bodies: &*self.seen.past,
        };
        outcome(&cx, snapshot).to_string().into()
    }
}

/// Returns the sums of a state. Only lines change them, so their change needs no line of its own.
fn spent(state: &SessionState) -> (u64, u64, u64) {
    (state.model_calls, state.tokens, state.micros)
}

/// Returns the parts of a state whose change is worth a line of its own.
fn shown_parts(state: &SessionState) -> (&str, &str, &str, &str) {
    let SessionState {
        status,
        waits,
        outcome,
        definition,
        ..
    } = state;
    (status, waits, outcome, definition)
}

//! Standing of a session: the state in lists, what it waits for, and its result.

use super::{Driver, OutState};
use crate::feed::FeedItem;
use crate::log::last::last;
use crate::log::standing::{outcome, settled};
use crate::pending::{self, Pending};
use crate::session::{Outside, Settled, Standing};
use crate::store::SessionState;
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Time};
use steersman_machine::view::Cx;

impl Driver {
    pub(super) fn publish(&mut self) {
        if self.stands() && !self.is_quiet() {
            self.publish_line();
            return;
        }
        if !self.is_still() {
            return;
        }
        let outside = self.outside();
        if !self.is_quiet() {
            self.standing.send_if_modified(|standing| {
                if !matches!(standing, Standing::Gone(_)) {
                    *standing = Standing::Outside(outside);
                }
                false
            });
            self.still.notify_waiters();
            return;
        }
        self.rests();
        let settled: Arc<Settled> = Arc::new(self.settled());
        let changed = self.standing.send_if_modified(|standing| match standing {
            Standing::Busy | Standing::Outside(_) | Standing::Stands { .. } => {
                *standing = Standing::Settled(settled.clone(), outside);
                true
            }
            Standing::Settled(_, known) => {
                *known = outside;
                false
            }
            Standing::Gone(_) => false,
        });
        if changed {
            self.live.show(FeedItem::Settled(settled));
        }
    }

    /// Returns true if the driver has nothing to do and everything is on disk; effects may run.
    pub(super) fn is_still(&self) -> bool {
        self.writer.is_idle()
            && !self.inbox.look
            && !self.inbox.late
            && self.next_branch().is_none()
            && self.next_search().is_none()
            && !self.following.has_come()
            && (self.to_start.is_empty() || self.ledger.paused || self.stopping.is_some())
    }

    /// Returns the outside events of which one must happen before the session continues.
    pub(super) fn outside(&self) -> Outside {
        // The limiter's clock moves effects that wait for a turn; the end of another effect moves those that wait for a slot.
        let waits_for_slot = |id: &Id| {
            self.waits_for_another(*id)
                || self.short.contains(id)
                || self.queued.values().any(|ids| ids.contains(id))
        };
        let running = self.outs.iter().filter(|(id, out)| match out.state {
            OutState::Running(_) => true,
            OutState::Queued => !self.ledger.paused && !waits_for_slot(id),
            _ => false,
        });
        // Attempts whose branch was superseded, or whose call was cancelled.
        let left = self.at_work.iter().filter(|((id, attempt), at_work)| {
            let mut out = self.outs.get(id).into_iter();
            at_work.world && !out.any(|out| out.attempt == *attempt)
        });
        let soon = self.outs.values().filter_map(|out| match out.state {
            OutState::Soon(at) if !self.ledger.paused => Some(at),
            _ => None,
        });
        Outside {
            running: running.count()
                + left.count()
                + self.probing.len()
                + self.searches.judging()
                + self.reaching_now()
                + usize::from(self.following.is_asking()),
            due: soon.chain(self.next_due()).min(),
            place: self.place_out(),
        }
    }

    /// Returns true if the session waits only for the outside or for a time, and everything is on disk.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_still()
            && !self.is_probing()
            && !self.following.is_asking()
            && self.reaching_now() == 0
            && self.searches.judging() == 0
            && self.outs.iter().all(|(id, out)| match out.state {
                OutState::Stands | OutState::Held | OutState::Barred | OutState::Waits | OutState::Later(_) => true,
                // The effect that it waits for decides whether the session is quiet.
                OutState::Queued if self.waits_for_another(*id) => true,
                OutState::Ready | OutState::Queued | OutState::Soon(_) => {
                    self.ledger.paused || self.stopping.is_some()
                }
                OutState::Starting(_) | OutState::Running(_) | OutState::Over => false,
            })
            // Effects that are due already end in the next turn of the loop.
            && self.next_due().is_none_or(|due| due > self.engine.clock().now())
    }

    /// Returns the standing of the current branch. The caller has checked that the session is quiet.
    pub(super) fn settled(&self) -> Settled {
        let Some(branch) = self.branches.get(&self.ledger.current) else {
            return Settled::Empty;
        };
        let Some(network) = &self.network else {
            return Settled::Empty;
        };
        settled(
            network,
            &self.ledger,
            &branch.snapshot,
            self.pending(Some(self.ledger.current)),
            &*self.past,
        )
    }

    /// Returns what a branch waits for, oldest first; `None` means all branches.
    fn pending(&self, of: Option<Id>) -> Vec<Pending> {
        let cx = Cx {
            network: self.network(),
            bodies: &*self.past,
        };
        let mut pending: Vec<Pending> = self
            .outs
            .values()
            .filter(|out| of.is_none_or(|id| out.branch == id))
            .filter(|out| !matches!(out.state, OutState::Over))
            .filter_map(|out| {
                let snapshot = &self.branches.get(&out.branch)?.snapshot;
                pending::of(&cx, &self.ledger, snapshot, &out.wish, out.since)
            })
            .chain(self.left_in_doubt(of))
            .collect();
        pending.sort_by_key(|p| (p.since, p.effect));
        pending
    }

    /// Returns the state that lists show, if it changed with the line that is written now.
    pub(super) fn changed_info(&mut self, now: Time) -> Option<SessionState> {
        let rerun = self.engine.0.recorded.as_ref();
        let state = self.info(rerun.and_then(|rerun| rerun.listed_at()).unwrap_or(now));
        if shown_parts(&state) == shown_parts(&self.shown) {
            return None;
        }
        let branch = self.branches.get(&self.ledger.current);
        let last = branch.map(|branch| last(&branch.snapshot, &*self.past));
        let state = SessionState {
            last: last.unwrap_or_default(),
            ..state
        };
        self.shown = state.clone();
        Some(state)
    }

    /// Returns true if lists show an outdated state: something came to rest without a line, for example a probe that decides
    /// nothing.
    pub(super) fn is_misshown(&self) -> bool {
        shown_parts(&self.info(self.shown.updated)) != shown_parts(&self.shown)
    }

    fn info(&self, now: Time) -> SessionState {
        let busy = self.is_probing()
            || self.outs.iter().any(|(id, out)| match out.state {
                OutState::Held | OutState::Barred | OutState::Waits | OutState::Later(_) => false,
                OutState::Queued if self.waits_for_another(*id) => false,
                OutState::Ready | OutState::Queued | OutState::Soon(_) => !self.ledger.paused,
                OutState::Stands
                | OutState::Starting(_)
                | OutState::Running(_)
                | OutState::Over => true,
            });
        let offered = !self.fresh.is_empty();
        let mut state = SessionState {
            status: "running".into(),
            updated: now,
            micros: self.ledger.spent.micros,
            tokens: self.ledger.spent.tokens,
            model_calls: self.ledger.calls,
            definition: self.shown.definition.clone(),
            waits: pending::list(&[]).into(),
            outcome: self.shown.outcome.clone(),
            ..SessionState::default()
        };
        if let Some(branch) = self.branches.get(&self.ledger.current)
            && let Some(binding) = &branch.snapshot.binding
        {
            state.definition = binding.digest.short().into();
        }
        let current = self.branches.contains_key(&self.ledger.current);
        if !busy && !offered && !self.owes_reach() && current && self.network.is_some() {
            let settled = self.settled();
            state.status = settled.word().into();
            state.waits = pending::list(&self.pending(None)).into();
            state.outcome = self.outcome();
        }
        state
    }

    /// Returns the values of `outcome:` as JSON. An expression that fails is left out.
    fn outcome(&self) -> Arc<str> {
        let snapshot = &self.branches[&self.ledger.current].snapshot;
        let cx = Cx {
            network: self.network(),
            bodies: &*self.past,
        };
        outcome(&cx, snapshot).to_string().into()
    }
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

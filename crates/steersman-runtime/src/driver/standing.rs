//! Standing of a session: the state in lists, what it waits for, and its result.

use super::{Driver, OutState};
use crate::log::last::last;
use crate::log::standing::{outcome, settled};
use crate::pending::{self, Pending};
use crate::session::Settled;
use crate::store::SessionState;
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Time};
use steersman_machine::view::Cx;

impl Driver {
    /// The standing of the current branch, as far as nothing goes on by itself.
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
        if told(&state) == told(&self.shown) {
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
        told(&self.info(self.shown.updated)) != told(&self.shown)
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

    /// `outcome:` as JSON; an expression that fails is left out.
    fn outcome(&self) -> Arc<str> {
        let snapshot = &self.branches[&self.ledger.current].snapshot;
        let cx = Cx {
            network: self.network(),
            bodies: &*self.past,
        };
        outcome(&cx, snapshot).to_string().into()
    }
}

/// The parts of a state whose change is worth a line of its own.
fn told(state: &SessionState) -> (&str, &str, &str, &str) {
    let SessionState {
        status,
        waits,
        outcome,
        definition,
        ..
    } = state;
    (status, waits, outcome, definition)
}

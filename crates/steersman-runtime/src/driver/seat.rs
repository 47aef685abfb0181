//! The release of a session, and the seat that its owner leaves: when the session is wanted again, or why it could not be driven.

use super::due::Due;
use super::{Job, OutState};
use crate::engine::EngineError;
use crate::pending;
use crate::store::{Left, Needs, StoreError, Trouble};
use steersman_machine::stored::ids::Time;

/// Times after which a session that could not be driven is taken again, in milliseconds. The last one repeats.
const AGAIN: [u64; 3] = [60_000, 300_000, 3_600_000];

impl Job<'_, '_> {
    /// Returns the seat to leave if the session is released now.
    pub(crate) fn left(&mut self) -> Left {
        // Work that only the stop keeps from going on is a reason to own the session again.
        let stopping = self.d.course.stops(false);
        let wants = if self.is_at_work() {
            Some(self.seen.now)
        } else {
            let acts = self.dues().filter(|(_, due)| self.acts_on(due));
            acts.map(|(at, _)| at).min()
        };
        self.d.course.stops(stopping);
        // Only a person's act continues a dry rerun.
        let is_left = self.d.ledger.is_dry_rerun();
        let place = self.place_out().filter(|_| !self.d.ledger.paused);
        let wants = wants.filter(|_| !is_left);
        Left {
            mail: self.d.mail.delivered(),
            wants: wants.into_iter().chain(self.expires()).min(),
            place: place.filter(|_| !is_left),
            trouble: None,
        }
    }

    /// Returns the time at which the session is to be erased, if it has ended and its definition keeps sessions for a time only.
    fn expires(&self) -> Option<Time> {
        let network = self
            .d
            .bound
            .network()
            .filter(|network| network.keep.is_some())?;
        let branch = self.d.branches.live().get(&self.d.ledger.current)?;
        let state = self.info(self.d.course.shown().updated);
        pending::expires_at(network, &self.d.ledger, &state, branch.snapshot.now)
    }

    /// Returns true if the session has work that needs no input from outside, even if something stops the session now.
    fn is_at_work(&self) -> bool {
        let paused = self.d.ledger.paused;
        let works = self
            .d
            .effects
            .outs()
            .iter()
            .any(|(id, out)| match out.state {
                OutState::Ready | OutState::Soon(_) => !paused,
                OutState::Queued => !paused && !self.d.effects.waits_for_another(*id),
                OutState::Starting(_) | OutState::Running | OutState::Over => true,
                OutState::AwaitsSearch
                | OutState::Held
                | OutState::Barred
                | OutState::Waits
                | OutState::Later(_) => false,
            });
        works
            || self.next_branch().is_some()
            || self.next_search().is_some()
            || self.d.searches.judging() > 0
            || self.is_probing()
            || self.next_probe().is_some()
            || self.next_reach().is_some()
            || self.d.asides.notifying() > 0
    }

    /// Returns true if this session does something when the time comes. A paused one begins no attempt.
    fn acts_on(&self, due: &Due) -> bool {
        match due {
            Due::Effect(id) if self.d.ledger.paused => {
                let out = self.d.effects.out(*id);
                !out.is_some_and(|out| matches!(out.state, OutState::Later(_)))
            }
            _ => true,
        }
    }

    /// Returns the seat to leave because the session cannot be driven here: it is taken again after a while, and immediately when
    /// a message comes. `None` if the seat stays as it is. If the session was not wanted when it was claimed and nothing was
    /// written since, it is not wanted now.
    pub(crate) fn leaves_in_trouble(&self, why: &EngineError) -> Option<Left> {
        // An owner that lost its claim or was killed writes nothing.
        if matches!(
            why,
            EngineError::Stopped | EngineError::Store(StoreError::Fenced { .. })
        ) {
            return None;
        }
        let (claim, now) = (self.d.who.claim(), self.seen.now);
        let before = &claim.before;
        let mut left = before.clone();
        let is_wanted = before.wants.is_some_and(|wants| wants <= now) || claim.mail > before.mail;
        let known = before
            .trouble
            .as_ref()
            .filter(|_| !self.d.who.has_claimed());
        let times = known.map_or(0, |trouble| trouble.times);
        if self.d.who.has_claimed() || is_wanted || before.place.is_some() {
            let again = AGAIN[(times as usize).min(AGAIN.len() - 1)];
            left.wants = Some(now.plus(again));
            left.mail = claim.mail.max(self.d.mail.delivered());
            left.place = None;
        }
        left.trouble = Some(Trouble {
            times: times.saturating_add(1),
            why: why.to_string().into(),
        });
        Some(left)
    }

    /// Returns the needs of a program that drives this session, once for each owner and each network.
    pub(super) fn changed_needs(&mut self) -> Option<Needs> {
        let network = self.d.bound.tells_needs()?;
        Some(crate::engine::natives::needs(network))
    }
}

//! The owner of a session, the lines that it writes, and the network and the values that the session is bound to.

use crate::bind::Values;
use crate::load::Since;
use crate::store::{Claim, SessionId, StoreAccepted};
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::stored::ids::Line;

/// The owner of a session, and the lines that it writes.
///
/// Invariants: lines ascend; the first line of an owner says that it claimed the session ([`Who::claims`]).
#[derive(Clone)]
pub(crate) struct Who {
    session: SessionId,
    claim: Claim,
    /// Random number that makes ids unique after a backup is restored. Written with the first line of this owner.
    mark: u64,
    /// True once the first line of this owner was made.
    claimed: bool,
    /// The last line that was made, and the next one.
    last: Line,
    next: Line,
    /// Amount written since the ledger's last checkpoint.
    since: Since,
}

impl Who {
    /// `claimed`: an earlier driver of this owner made lines.
    pub(crate) fn new(claim: Claim, mark: u64, claimed: bool, since: Since) -> Self {
        Self {
            session: claim.session.clone(),
            last: claim.head,
            next: claim.first,
            claim,
            mark,
            claimed,
            since,
        }
    }

    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }

    pub(crate) fn mark(&self) -> u64 {
        self.mark
    }

    pub(crate) fn has_claimed(&self) -> bool {
        self.claimed
    }

    pub(crate) fn last(&self) -> Line {
        self.last
    }

    pub(crate) fn next(&self) -> Line {
        self.next
    }

    /// The first line of this owner says that it claimed the session. Returns what a person accepted with the claim.
    pub(crate) fn claims(&mut self) -> Option<StoreAccepted> {
        debug_assert!(!self.claimed, "only the first line of an owner claims");
        self.claimed = true;
        self.claim.accepted.take()
    }

    /// A line was made.
    pub(crate) fn wrote(&mut self, line: Line) {
        debug_assert!(line >= self.next, "line {line} was made before");
        (self.last, self.next) = (line, line.next());
    }

    /// This many bytes were written. Returns the checkpoint of the ledger, if one is due.
    pub(crate) fn checkpoint(
        &mut self,
        wrote: usize,
        make: impl FnOnce() -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        self.since.checkpoint(wrote, make)
    }
}

/// The network and the values that a session is bound to.
///
/// Invariant: there is a network if, and only if, the session has begun.
#[derive(Clone, Default)]
pub(crate) struct Bound {
    network: Option<Arc<Network>>,
    values: Arc<Values>,
    /// True once the store knows what a program needs to drive the session.
    needs_told: bool,
}

impl Bound {
    /// Returns the network, once the session has begun.
    pub(crate) fn network(&self) -> Option<&Arc<Network>> {
        self.network.as_ref()
    }

    pub(crate) fn values(&self) -> &Values {
        &self.values
    }

    /// The session begins with this network and these values, or is read with them: a program may need others.
    pub(crate) fn begins(&mut self, network: Arc<Network>, values: Values) {
        *self = Self {
            network: Some(network),
            values: Arc::new(values),
            needs_told: false,
        };
    }

    /// Lines bind the session to other values.
    pub(crate) fn binds(&mut self, values: Values) {
        self.values = Arc::new(values);
    }

    /// The network follows from the new values. `needs`: a program may need other things to drive it.
    pub(crate) fn changes(&mut self, network: Arc<Network>, needs: bool) {
        self.network = Some(network);
        self.needs_told &= !needs;
    }

    /// Returns the network if the store is to be told what a program needs to drive the session, once for each owner and network.
    pub(crate) fn tells_needs(&mut self) -> Option<&Arc<Network>> {
        let network = self.network.as_ref().filter(|_| !self.needs_told)?;
        self.needs_told = true;
        Some(network)
    }

    pub(crate) fn has_told_needs(&self) -> bool {
        self.needs_told
    }

    /// An earlier driver of the same owner told the needs, or not.
    pub(crate) fn restores(&mut self, needs_told: bool) {
        self.needs_told = needs_told;
    }
}

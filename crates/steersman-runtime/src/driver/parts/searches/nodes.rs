//! Nodes of a search that are kept in memory: branches begin there, and are judged there.

use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::codec::Hash;
use steersman_machine::stored::ids::{Id, Line};

/// Maximum number of nodes that a search keeps in memory, in addition to those at which blocks of a round begin. If there are
/// more, only the `NODES / 2` nodes that were used last stay.
const NODES: usize = 256;

/// A branch, and its commit at the node.
type Place = (Id, Line);

/// Nodes in memory; the others are on disk.
#[derive(Clone, Default)]
pub(super) struct Nodes {
    all: BTreeMap<Place, Kept>,
    /// Number of uses so far; orders the nodes by their last use.
    looked: u64,
}

#[derive(Clone)]
struct Kept {
    snapshot: Snapshot,
    hash: Hash,
    /// Value of `looked` at the last use.
    at: u64,
}

impl Nodes {
    pub(super) fn keep(&mut self, of: Place, (snapshot, hash): (Snapshot, Hash)) {
        self.looked += 1;
        let at = self.looked;
        self.all.insert(of, Kept { snapshot, hash, at });
    }

    /// Returns the snapshot of a node and the hash of its line.
    pub(super) fn kept(&mut self, of: Place) -> Option<(Snapshot, Hash)> {
        self.looked += 1;
        let known = self.all.get_mut(&of)?;
        known.at = self.looked;
        Some((known.snapshot.clone(), known.hash))
    }

    /// Drops nodes if there are too many. Those that were used last stay, and those in `but`.
    pub(super) fn forget(&mut self, but: &BTreeSet<Place>) {
        if self.all.len() <= NODES {
            return;
        }
        let mut looked: Vec<u64> = self.all.values().map(|node| node.at).collect();
        looked.sort_unstable();
        let since = looked[looked.len() - NODES / 2];
        self.all
            .retain(|of, node| node.at >= since || but.contains(of));
    }
}

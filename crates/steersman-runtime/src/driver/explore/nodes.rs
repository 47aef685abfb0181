//! Where branches of a search stood, as far as that is in memory: branches begin there, and it is judged there.

use std::collections::{BTreeMap, BTreeSet};
use steersman_machine::codec::Hash;
use steersman_machine::ids::{Id, Line};
use steersman_machine::snapshot::Snapshot;

/// Nodes that a search keeps in memory, beside those at which blocks of a round begin. Beyond it the half of them that was
/// looked at last stays.
const NODES: usize = 256;

/// A branch, and its commit there.
type Place = (Id, Line);

/// Nodes in memory; the others are on the disk.
#[derive(Default)]
pub(super) struct Nodes {
    all: BTreeMap<Place, Kept>,
    /// How often one was looked at.
    looked: u64,
}

struct Kept {
    snapshot: Snapshot,
    hash: Hash,
    /// When it was looked at last.
    at: u64,
}

impl Nodes {
    pub(super) fn keep(&mut self, of: Place, (snapshot, hash): (Snapshot, Hash)) {
        self.looked += 1;
        let at = self.looked;
        self.all.insert(of, Kept { snapshot, hash, at });
    }

    /// How a branch stood there, and the hash of that line.
    pub(super) fn kept(&mut self, of: Place) -> Option<(Snapshot, Hash)> {
        self.looked += 1;
        let known = self.all.get_mut(&of)?;
        known.at = self.looked;
        Some((known.snapshot.clone(), known.hash))
    }

    /// Of too many those stay that were looked at last, and these.
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

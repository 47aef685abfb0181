//! Checkpoints of snapshots. They are caches: one that cannot be used is discarded.

use super::Snapshot;
use crate::stored::codec::{Hash, decode_checkpoint, encode_checkpoint};
use crate::stored::ids::Line;

/// Version of the form of snapshots in checkpoints, and of the meaning of the fold. Checkpoints of other versions are discarded.
pub const SNAPSHOT_VERSION: u8 = 17;

/// Encodes a checkpoint of a branch: its snapshot, the last line on the branch (the snapshot's own, or a later one that holds
/// ledger entries only), and the hash of that line.
pub fn encode_snapshot(snapshot: &Snapshot, at: Line, hash: &Hash, salt: &[u8; 16]) -> Vec<u8> {
    encode_checkpoint(SNAPSHOT_VERSION, at, hash, salt, snapshot)
}

/// Returns the snapshot of a checkpoint, the line after which it holds, and that line's hash. `None` means that the
/// checkpoint cannot be used; a checkpoint is only a cache.
pub fn decode_snapshot(bytes: &[u8], salt: &[u8; 16]) -> Option<(Snapshot, Line, Hash)> {
    let (at, hash, snapshot): (Line, Hash, Snapshot) =
        decode_checkpoint(SNAPSHOT_VERSION, bytes, salt)?;
    (snapshot.line <= at).then_some((snapshot, at, hash))
}

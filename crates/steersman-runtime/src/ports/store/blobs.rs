//! The blobs port: large contents by their hash.

use super::StoreError;
use crate::Boxed;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use steersman_machine::stored::ids::Line;

/// Large contents by their blake3 hash. A store keeps them itself, or passes them on to a place for large objects.
pub trait Blobs: Send + Sync + 'static {
    /// Stores a blob under its blake3 hash, before the line that names it. Contents that a session makes are stored with their
    /// line instead ([`Batch::blobs`](super::Batch::blobs)). A blob may be stored again.
    fn put_blob(&self, hash: [u8; 32], bytes: Arc<[u8]>) -> Boxed<'_, Result<(), StoreError>>;

    /// Returns a blob after checking it against its hash. Fails with `Corrupt` if it does not match.
    fn blob<'a>(&'a self, hash: &'a [u8; 32]) -> Boxed<'a, Result<Option<Arc<[u8]>>, StoreError>>;

    /// Reads a blob synchronously in the calling thread, and checks it as [`Blobs::blob`] does.
    fn blob_now(&self, hash: &[u8; 32]) -> Result<Option<Arc<[u8]>>, StoreError>;

    /// Deletes blobs, and returns how many existed. The caller knows that nothing names them.
    fn drop_blobs(&self, hashes: Vec<[u8; 32]>) -> Boxed<'_, Result<u64, StoreError>>;
}

/// Contents of a session that are on their way to the disk. Readers look here before they ask the store. Clones share the contents.
#[derive(Clone, Default)]
pub(crate) struct Coming(Arc<Mutex<HashMap<[u8; 32], Content>>>);

/// A content, and the line with which it is stored.
type Content = (Line, Arc<[u8]>);

impl Coming {
    /// Keeps contents until this line is on disk.
    pub(crate) fn add(&self, until: Line, blobs: &[([u8; 32], Arc<[u8]>)]) {
        if blobs.is_empty() {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (hash, bytes) in blobs {
            all.insert(*hash, (until, bytes.clone()));
        }
    }

    /// Drops the contents that are on disk: those until a line up to `upto`.
    pub(crate) fn written(&self, upto: Line) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.is_empty() {
            all.retain(|_, (until, _)| *until > upto);
        }
    }

    pub(crate) fn get(&self, hash: &[u8; 32]) -> Option<Arc<[u8]>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(hash).map(|(_, bytes)| bytes.clone())
    }
}

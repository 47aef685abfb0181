//! The blobs port: large contents by their hash.

use super::StoreError;
use crate::Boxed;
use std::sync::Arc;

/// Large contents by their blake3 hash. A store keeps them itself, or passes them on to a place for large objects.
pub trait Blobs: Send + Sync + 'static {
    /// Stores a blob under its blake3 hash. Call this before the line that names it. A blob may be stored again.
    fn put_blob(&self, hash: [u8; 32], bytes: Arc<[u8]>) -> Boxed<'_, Result<(), StoreError>>;

    /// Returns a blob after checking it against its hash. Fails with `Corrupt` if it does not match.
    fn blob<'a>(&'a self, hash: &'a [u8; 32]) -> Boxed<'a, Result<Option<Arc<[u8]>>, StoreError>>;

    /// Reads a blob synchronously in the calling thread, and checks it as [`Blobs::blob`] does.
    fn blob_now(&self, hash: &[u8; 32]) -> Result<Option<Arc<[u8]>>, StoreError>;

    /// Deletes blobs, and returns how many existed. The caller knows that nothing names them.
    fn drop_blobs(&self, hashes: Vec<[u8; 32]>) -> Boxed<'_, Result<u64, StoreError>>;
}

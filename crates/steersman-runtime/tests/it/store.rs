//! The stores in memory pass the suite of the store port.

use std::sync::Arc;
use steersman_machine::stored::ids::Line;
use steersman_runtime::conformance::{Place, suite};
use steersman_runtime::store::awkward::AwkwardStore;
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{Store, StoreError};

impl Place for Memory {
    fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(self.0.clone()))
    }
    fn damage(&self, session: &str, n: Line, byte: usize) -> bool {
        self.0.damage(session, n, byte)
    }
}

struct Memory(MemoryStore);

struct Awkward(AwkwardStore);

impl Place for Awkward {
    fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(self.0.clone()))
    }
    fn damage(&self, session: &str, n: Line, byte: usize) -> bool {
        self.0.damage(session, n, byte)
    }
}

#[tokio::test]
async fn the_store_in_memory() {
    suite(|| Memory(MemoryStore::new())).await;
}

#[tokio::test]
async fn the_store_in_memory_with_a_sync() {
    suite(|| Memory(MemoryStore::with_sync(std::time::Duration::from_micros(50)))).await;
}

#[tokio::test]
async fn the_awkward_store() {
    suite(|| Awkward(AwkwardStore::new())).await;
}

//! Memories of agents, as people look at them and change them.

use crate::{Error, Steersman};
use steersman_runtime::memory::{Found, MemoryError};
use steersman_runtime::store::{Memory, MemoryQuery, Rated};

fn of_memory(error: MemoryError) -> Error {
    match error {
        MemoryError::Store(error) => error.into(),
        other => Error::Refused(other.to_string()),
    }
}

impl Steersman {
    /// Returns the memories that match, newest first. This method sets `query.now`.
    pub async fn memories(&self, query: MemoryQuery) -> Result<Vec<Memory>, Error> {
        Ok(self.engine().memories(query).await?)
    }

    /// Returns the memories of a scope that fit a query best, as agents of that scope would find them.
    ///
    /// # Errors
    /// [`Error::Refused`] if the scope cannot be searched.
    pub async fn search_memories(
        &self,
        scope: &str,
        query: &str,
        most: usize,
    ) -> Result<Vec<Found>, Error> {
        let part = self.engine().scope().cloned().unwrap_or_default();
        let found = self
            .engine()
            .search_memories(Some(&part), scope, query, most);
        found.await.map_err(of_memory)
    }

    /// Rates a memory. A person's rating outranks those of agents.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such memory, or the rating is out of range.
    pub async fn rate_memory(&self, id: u64, rated: Rated) -> Result<(), Error> {
        self.engine()
            .rate_memory(id, rated)
            .await
            .map_err(of_memory)
    }

    /// Deletes memories and returns how many were deleted. The store's next collection removes their contents, unless
    /// something else names them.
    pub async fn forget_memories(&self, ids: Vec<u64>) -> Result<u64, Error> {
        Ok(self.engine().store().forget_memories(ids).await?)
    }
}

//! Erasure: of a session, of many, and of all that a person or a tenant has.

use crate::{Error, Steersman};
use steersman_runtime::erase::{Erased, ErasedMany, What};
use steersman_runtime::store::{Scope, SessionId};

impl Steersman {
    /// Replaces texts of a session by tombstones that still verify. Nothing of the session may be open, and no other
    /// process may drive it. If `apply` is false, only reports what would be erased. Its reruns hold the same texts and are not
    /// erased with it: [`Erased::reruns`] names them.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if something of the session is open; the message names it.
    pub async fn erase(&self, id: &str, what: What, apply: bool) -> Result<Erased, Error> {
        if let Some(driven) = self.engine().driven(id) {
            driven.stop().await;
        }
        Ok(self.engine().erase(id, what, apply).await?)
    }

    /// Erases everything that a person (a scope with a subject) or a tenant has: tokens, webhooks, schedules, events, heads of
    /// conversations, credentials, memories, and all texts of its sessions and their reruns. If `apply` is false, only reports what
    /// would be erased. A session that is driven, or in which something is open, stays as it is and is named in
    /// [`ErasedMany::left`]; all else is done. After an interruption, or once those sessions rest, the same call does the rest.
    ///
    /// Sessions stay in lists, with their ids, keys and sums, and so does the name of the subject. Large texts and contents of artifacts
    /// are deleted by the next `steersman gc`, unless something else names them.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn erase_scope(&self, of: &Scope, apply: bool) -> Result<ErasedMany, Error> {
        Ok(self.engine().erase_scope(of, apply).await?)
    }

    /// Erases all texts of these sessions. The first flag adds their reruns, which hold the same texts; the second one forgets the
    /// memories that they saved. Obstacles, interruptions and `apply` are as for [`Steersman::erase_scope`].
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn erase_sessions(
        &self,
        sessions: Vec<SessionId>,
        (reruns, memories): (bool, bool),
        apply: bool,
    ) -> Result<ErasedMany, Error> {
        let with = (reruns, memories);
        Ok(self.engine().erase_sessions(sessions, with, apply).await?)
    }
}

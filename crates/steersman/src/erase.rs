//! Erasure: of a session together with what holds the same texts, of many, and of all that a person or a tenant has.

use crate::{Error, Steersman};
use steersman_runtime::erase::{Erased, ErasedMany, What};
use steersman_runtime::rerun::rerun_of;
use steersman_runtime::store::{Memory, MemoryQuery, Scope, SessionId};

/// Everything that belongs to the erasure of a session, or of a part of it. Nothing is erased yet.
#[derive(Clone, Debug)]
pub struct Erasure {
    /// The session.
    pub session: SessionId,
    /// The part of it that is to be erased.
    pub what: What,
    /// The reruns that are erased with it, because they hold the same texts.
    pub with: Vec<SessionId>,
    /// The sums over the session and these reruns. [`Erased::reruns`] names all reruns of the session, erased with it or not.
    pub erased: Erased,
    /// The memories that these sessions saved. They outlive the sessions.
    pub saved: Vec<Memory>,
    /// The session that it repeats, if it is a rerun and that session is in the store. It holds the same texts and stays.
    pub origin: Option<SessionId>,
}

/// Reasons for which a session cannot be erased.
#[derive(Debug, thiserror::Error)]
pub enum ErasureError {
    /// Only a part of the session is to be erased, and these reruns hold the same texts, perhaps at other lines.
    #[error("its reruns hold the same texts, at lines that may differ: {}", .0.join(", "))]
    Reruns(Vec<SessionId>),
    /// A rerun that would be erased with it cannot be.
    #[error("its rerun {session}: {error}")]
    Rerun {
        /// The rerun.
        session: SessionId,
        /// The reason.
        error: Error,
    },
    /// The session itself cannot be erased, or the store cannot be read.
    #[error(transparent)]
    Session(#[from] Error),
}

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

    /// Returns what an erasure takes with it: reruns hold the same texts, and are erased with a whole session unless it is erased
    /// `alone`. Nothing is changed.
    ///
    /// # Errors
    /// If something of the session or of a rerun is open; if a part is to be erased of a session with reruns, which hold the same
    /// texts at lines that may differ, and not `alone`.
    pub async fn erasure(
        &self,
        id: &str,
        what: What,
        alone: bool,
    ) -> Result<Erasure, ErasureError> {
        let info = self.info(id).await?;
        let engine = self.engine();
        let mut erased = engine.erase(id, what, false).await.map_err(Error::from)?;
        if !erased.reruns.is_empty() && !alone && what != What::All {
            return Err(ErasureError::Reruns(erased.reruns));
        }
        let with = if alone {
            Vec::new()
        } else {
            erased.reruns.clone()
        };
        let mut saved = self.saved_by(id).await?;
        for session in &with {
            let more = engine.erase(session, What::All, false).await;
            let more = more.map_err(|error| ErasureError::Rerun {
                session: session.clone(),
                error: error.into(),
            })?;
            erased.adds(more);
            saved.extend(self.saved_by(session).await?);
        }
        let origin = match rerun_of(&info) {
            Some(of) => self.info(of).await.ok().map(|info| info.id),
            None => None,
        };
        Ok(Erasure {
            session: info.id,
            what,
            with,
            erased,
            saved,
            origin,
        })
    }

    /// Carries out an erasure: texts become tombstones that still verify. It cannot be undone. Memories are not forgotten with it,
    /// and contents of artifacts stay in the store ([`Erased::contents`]).
    ///
    /// # Errors
    /// As [`Steersman::erase`]. The same erasure can be carried out again.
    pub async fn carry_out(&self, erasure: &Erasure) -> Result<Erased, Error> {
        // The session itself comes last: if this is interrupted, the same erasure still finds the reruns.
        let mut erased = Erased::default();
        for session in &erasure.with {
            erased.adds(self.erase(session, What::All, true).await?);
        }
        let own = self.erase(&erasure.session, erasure.what, true).await?;
        let reruns = own.reruns.clone();
        erased.adds(own);
        Ok(Erased { reruns, ..erased })
    }

    async fn saved_by(&self, session: &str) -> Result<Vec<Memory>, Error> {
        let query = MemoryQuery {
            session: Some(session.into()),
            ..MemoryQuery::default()
        };
        self.memories(query).await
    }
}

//! Erasing a session together with what holds the same texts.

use crate::{Erased, Error, Steersman, What};
use steersman_runtime::rerun::rerun_of;
use steersman_runtime::store::{Memory, MemoryQuery, SessionId};

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
            add(&mut erased, more);
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
            add(&mut erased, self.erase(session, What::All, true).await?);
        }
        let own = self.erase(&erasure.session, erasure.what, true).await?;
        let reruns = own.reruns.clone();
        add(&mut erased, own);
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

/// Adds what is erased of another session.
fn add(all: &mut Erased, more: Erased) {
    all.texts += more.texts;
    all.blobs += more.blobs;
    let new = more.contents.into_iter();
    let new: Vec<_> = new.filter(|hash| !all.contents.contains(hash)).collect();
    all.contents.extend(new);
}

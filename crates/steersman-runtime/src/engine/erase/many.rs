//! Erasing many sessions: those of a list, or all that a person or a tenant has.

use super::{Erased, What};
use crate::engine::{Engine, EngineError};
use crate::session::Standing;
use crate::store::{Holdings, Memory, MemoryQuery, Scope, SessionId, SessionQuery, StoreError};
use std::collections::BTreeSet;
use std::fmt;

/// The result of [`Engine::erase_scope`] and [`Engine::erase_sessions`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErasedMany {
    /// Sessions that held texts.
    pub sessions: Vec<SessionId>,
    /// Sessions that stay as they are.
    pub left: Vec<NotErased>,
    /// Sums over all sessions. Its reruns are empty: they are among the sessions.
    pub sum: Erased,
    /// Number of memories.
    pub memories: u64,
    /// Numbers of what the scope had apart from its sessions and memories.
    pub holdings: Holdings,
}

/// A session that is not erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotErased {
    /// Id of the session.
    pub session: SessionId,
    /// The reason.
    pub why: Obstacle,
}

/// A reason why a session is not erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Somebody drives it.
    Busy(String),
    /// Something of it is open: an effect, a question, or a message that was not taken yet.
    Open(String),
    /// It cannot be read or written.
    Failed(String),
}

impl Obstacle {
    /// Returns the reason in one word: `busy`, `open`, `failed`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Busy(_) => "busy",
            Self::Open(_) => "open",
            Self::Failed(_) => "failed",
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(why) | Self::Open(why) | Self::Failed(why) => f.write_str(why),
        }
    }
}

impl Engine {
    /// Erases everything that a person or a tenant has: what lets them in (tokens, webhooks) and what would begin sessions (schedules,
    /// events in the box) goes first, then heads of conversations and credentials, memories, and the texts of all sessions, with
    /// their reruns. The sessions themselves stay in lists, with their ids and sums, and so do ids of events, so that none is taken
    /// twice. A session that is driven, or in which something is open, stays as it is and is named; all else is done. After an
    /// interruption, the same call does the rest. If `apply` is false, nothing is written, and the result says what would go.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn erase_scope(&self, of: &Scope, apply: bool) -> Result<ErasedMany, EngineError> {
        let mut all = ErasedMany {
            holdings: self.store().holdings(of, apply).await?,
            ..ErasedMany::default()
        };
        let query = MemoryQuery {
            part: Some(of.clone()),
            ..MemoryQuery::default()
        };
        let memories = self.store().memories(query).await?;
        let query = SessionQuery {
            scope: Some(of.clone()),
            ..SessionQuery::default()
        };
        let sessions = self.store().sessions(&query).await?;
        let sessions = sessions.into_iter().map(|info| info.id).collect();
        let sessions = self.with_reruns(sessions).await?;
        self.erase_each(&mut all, &sessions, Some(memories), apply)
            .await?;
        Ok(all)
    }

    /// Erases all texts of these sessions and, if `reruns` is true, of their reruns; if `memories` is true, also the memories that
    /// they saved. Obstacles, interruptions and `apply` are as for [`Engine::erase_scope`].
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn erase_sessions(
        &self,
        sessions: Vec<SessionId>,
        (reruns, memories): (bool, bool),
        apply: bool,
    ) -> Result<ErasedMany, EngineError> {
        let mut all = ErasedMany::default();
        let sessions = if reruns {
            self.with_reruns(sessions).await?
        } else {
            sessions
        };
        self.erase_each(&mut all, &sessions, memories.then(Vec::new), apply)
            .await?;
        Ok(all)
    }

    /// Adds the reruns of these sessions before them: an interrupted erasure still finds them.
    async fn with_reruns(&self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>, EngineError> {
        let mut all = self.reruns_of(&sessions).await?;
        let known: BTreeSet<SessionId> = all.iter().cloned().collect();
        all.extend(sessions.into_iter().filter(|id| !known.contains(id)));
        Ok(all)
    }

    /// Erases memories, which are those given and those that the sessions saved, and then the sessions. `None` keeps all memories.
    async fn erase_each(
        &self,
        all: &mut ErasedMany,
        sessions: &[SessionId],
        memories: Option<Vec<Memory>>,
        apply: bool,
    ) -> Result<(), EngineError> {
        if let Some(mut memories) = memories {
            for session in sessions {
                let query = MemoryQuery {
                    session: Some(session.clone()),
                    ..MemoryQuery::default()
                };
                memories.extend(self.store().memories(query).await?);
            }
            let ids: BTreeSet<u64> = memories.iter().map(|memory| memory.id).collect();
            all.memories = ids.len() as u64;
            all.sum
                .adds_contents(memories.iter().map(|memory| memory.hash));
            if apply && !ids.is_empty() {
                let ids = ids.into_iter().collect();
                self.store().forget_memories(ids).await?;
            }
        }
        for session in sessions {
            match self.erase_whole(session, apply).await {
                Ok(Ok(erased)) => {
                    if erased.texts > 0 {
                        all.sessions.push(session.clone());
                    }
                    all.sum.adds(erased);
                }
                Ok(Err(why)) => all.left.push(NotErased {
                    session: session.clone(),
                    why,
                }),
                Err(EngineError::Store(error @ StoreError::Io { .. })) => return Err(error.into()),
                Err(error) => all.left.push(NotErased {
                    session: session.clone(),
                    why: Obstacle::Failed(error.to_string()),
                }),
            }
        }
        Ok(())
    }

    /// Erases all texts of one session, unless something stands in the way. A session that this process drives is released first if
    /// it rests.
    async fn erase_whole(
        &self,
        id: &SessionId,
        apply: bool,
    ) -> Result<Result<Erased, Obstacle>, EngineError> {
        let driven = self.driven(id);
        let rests = |standing: &Standing| matches!(standing, Standing::Settled(_, outside) if outside.running == 0);
        if driven
            .as_ref()
            .is_some_and(|session| !rests(&session.standing.borrow()))
        {
            return Ok(Err(Obstacle::Busy("this process drives it".to_owned())));
        }
        let open = |error: EngineError| match error {
            EngineError::Refused(why) => Ok(Err(Obstacle::Open(why))),
            EngineError::Store(StoreError::Owned { process, .. }) => {
                Ok(Err(Obstacle::Busy(format!("process {process} drives it"))))
            }
            error => Err(error),
        };
        if driven.is_none()
            && let Some(owner) = self.owner_of(id).await?
        {
            return Ok(Err(Obstacle::Busy(format!("process {owner} drives it"))));
        }
        let meant = match self.erase_one(id, What::All, false).await {
            Ok(meant) => meant,
            Err(error) => return open(error),
        };
        if !apply {
            return Ok(Ok(meant));
        }
        if let Some(session) = driven {
            session.stop().await;
        }
        match self.erase_one(id, What::All, true).await {
            Ok(erased) => Ok(Ok(erased)),
            Err(error) => open(error),
        }
    }

    /// Returns the process that drives a session, if there is one.
    async fn owner_of(&self, id: &SessionId) -> Result<Option<String>, EngineError> {
        let query = SessionQuery {
            prefix: Some(id.to_string()),
            ..SessionQuery::default()
        };
        let found = self.store().sessions(&query).await?;
        let found = found.into_iter().find(|info| info.id == *id);
        Ok(found.and_then(|info| info.owner))
    }
}

impl Erased {
    /// Adds what is erased of another session.
    pub fn adds(&mut self, more: Self) {
        self.texts += more.texts;
        self.blobs += more.blobs;
        self.large.extend(more.large);
        self.adds_contents(more.contents);
    }

    /// Adds contents to delete, each once.
    fn adds_contents(&mut self, more: impl IntoIterator<Item = [u8; 32]>) {
        let known: BTreeSet<[u8; 32]> = self.contents.iter().copied().collect();
        let new = more.into_iter().filter(|hash| !known.contains(hash));
        let new: BTreeSet<[u8; 32]> = new.collect();
        self.contents.extend(new);
    }
}

//! Tokens and the last lines of sessions, which hold until something in the store changes. A client that asks again and again
//! whether a session has changed is answered without a read, and what any process changes is noticed at once.

use crate::caller::Caller;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use steersman::Scope;
use steersman::machine::stored::ids::Line;
use steersman::runtime::store::{SessionId, Token};

/// Maximum number of tokens, and of sessions.
const KEPT: usize = 10_000;

/// Everything that holds as of one version of the store.
#[derive(Default)]
pub(crate) struct Fresh(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    version: Option<u64>,
    /// Tokens by the digests of their texts.
    tokens: HashMap<[u8; 32], Arc<Token>>,
    /// The last lines of sessions, each as far as a scope sees it.
    heads: HashMap<(Scope, SessionId), Line>,
}

impl Fresh {
    /// Calls `with` with what holds as of a version; all of another version is forgotten. Without a version nothing holds.
    fn at<T>(&self, version: Option<u64>, with: impl FnOnce(&mut Kept) -> Option<T>) -> Option<T> {
        let version = version?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.version != Some(version) {
            *kept = Kept {
                version: Some(version),
                ..Kept::default()
            };
        }
        with(&mut kept)
    }

    /// Returns the token that was read for this text.
    pub(crate) fn token(&self, version: Option<u64>, text: &str) -> Option<Arc<Token>> {
        let digest = blake3::hash(text.as_bytes());
        self.at(version, |kept| kept.tokens.get(digest.as_bytes()).cloned())
    }

    /// Keeps the token of a text, which was read after this version was.
    pub(crate) fn keep_token(&self, version: Option<u64>, text: &str, token: &Arc<Token>) {
        let digest = blake3::hash(text.as_bytes());
        self.at(version, |kept| {
            if kept.tokens.len() >= KEPT {
                kept.tokens.clear();
            }
            kept.tokens.insert(digest.into(), token.clone())
        });
    }
}

/// The looks at the version of a store. Requests that have come are answered with one look.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// Number of looks that have begun.
    begun: AtomicU64,
    /// The version that the last one found.
    found: Mutex<Option<u64>>,
}

impl Looks {
    /// Returns the version as of now or later, which `look` reads.
    pub(crate) async fn now(&self, look: impl FnOnce() -> Option<u64>) -> Option<u64> {
        let before = self.begun.load(Ordering::SeqCst);
        // Requests that have come meanwhile get here before anybody looks.
        tokio::task::yield_now().await;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        // The number grows only while the lock is held, so a look that began since has ended.
        if self.begun.load(Ordering::SeqCst) == before {
            self.begun.store(before + 1, Ordering::SeqCst);
            // A store that fails leaves no older version behind.
            *found = None;
            *found = look();
        }
        *found
    }
}

impl Caller {
    /// Returns the last line of a session that the token sees, if it was read and held when the request began.
    pub(crate) fn kept_head(&self, session: &str) -> Option<Line> {
        let key: (Scope, SessionId) = (self.token.scope.clone(), session.into());
        let fresh = self.server.fresh();
        fresh.at(self.version(), |kept| kept.heads.get(&key).copied())
    }

    /// Keeps the last line of a session that the token sees.
    pub(crate) fn keep_head(&self, session: &SessionId, head: Line) {
        let key = (self.token.scope.clone(), session.clone());
        self.server.fresh().at(self.version(), |kept| {
            if kept.heads.len() >= KEPT {
                kept.heads.clear();
            }
            kept.heads.insert(key, head)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join_all;

    #[tokio::test]
    async fn requests_share_a_look_that_began_after_they_came() {
        let (looks, looked) = (Looks::default(), AtomicU64::new(0));
        let look = || Some(looked.fetch_add(1, Ordering::SeqCst));
        let together = join_all((0..10).map(|_| looks.now(look))).await;
        assert_eq!(together, [Some(0); 10]);
        assert_eq!(looks.now(look).await, Some(1));
    }
}

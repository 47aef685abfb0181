//! Sessions that their definition keeps for a time only: which of them are over, and their erasure.

use super::What;
use crate::engine::{Engine, EngineError};
use crate::pending::has_ended;
use crate::store::{Claim, IMMEDIATELY, Left, SessionQuery};
use steersman_machine::stored::ids::Time;

/// Maximum number of sessions that one look erases, so that those which have work do not wait.
pub(crate) const AT_ONCE: usize = 64;

/// Time after which the erasure of a session that could not be erased is tried again, in milliseconds.
const AGAIN: u64 = 3_600_000;

impl Engine {
    /// Erases a session that was taken because the time for which its definition keeps it after its end is over, and releases it.
    /// Returns the claim if the session was taken for another reason. The flag tells if there was anything to erase.
    ///
    /// # Errors
    /// The session cannot be erased now. It is released, and tried again later.
    pub(crate) async fn expires(&self, claim: Claim) -> Result<Result<bool, Claim>, EngineError> {
        // One whose owner died is wanted immediately, and driven first. One that has ended may also be wanted because a value of its
        // state expires: only its definition tells whether its time is over.
        let is_timed = claim.before.wants.is_some_and(|at| at > IMMEDIATELY);
        if !is_timed || claim.mail > claim.before.mail || !self.has_ended(&claim).await? {
            return Ok(Err(claim));
        }
        // Driving it tells the reason for which it cannot be read.
        let at = self.expires_at(&claim.session).await.ok().flatten();
        if at.is_none_or(|at| at > self.clock().now()) {
            return Ok(Err(claim));
        }
        let erased = self.erase_owned(&claim, What::All).await;
        let again = self.clock().now().plus(AGAIN);
        let left = Left {
            mail: claim.mail,
            wants: erased.is_err().then_some(again),
            ..Left::default()
        };
        self.store().release(claim, left).await?;
        let erased = erased?;
        Ok(Ok(erased.texts > 0 || !erased.contents.is_empty()))
    }

    /// Returns the time at which a session that nobody drives is to be erased, if it has ended and its definition keeps sessions for a
    /// time only.
    pub(crate) async fn expires_at(&self, id: &str) -> Result<Option<Time>, EngineError> {
        Ok(self.inspect(id).await?.expires_at())
    }

    /// Returns true if lists show the session as ended.
    pub(super) async fn has_ended(&self, claim: &Claim) -> Result<bool, EngineError> {
        let query = SessionQuery {
            prefix: Some(claim.session.to_string()),
            ..SessionQuery::default()
        };
        let found = self.store().sessions(&query).await?;
        let info = found.into_iter().find(|info| info.id == claim.session);
        Ok(info.is_some_and(|info| has_ended(&info.state)))
    }
}

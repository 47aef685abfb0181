//! An effect ended.

use crate::effect::{Outcome, Until};
use crate::ids::Id;
use crate::take::Taken;
use crate::tick::Tick;

impl Tick<'_> {
    pub(crate) fn take_outcome(&mut self, _effect: Id, _outcome: &Outcome) -> Taken {
        Err(Until::Stale)
    }
}

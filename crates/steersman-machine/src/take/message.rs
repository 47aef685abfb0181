//! Something was said.

use crate::effect::{Known, Said, Until};
use crate::ids::Id;
use crate::take::Taken;
use crate::tick::Tick;
use std::sync::Arc;

impl Tick<'_> {
    pub(crate) fn take_message(&mut self, _said: &Said) -> Taken {
        Err(Until::Stale)
    }

    pub(crate) fn take_interrupt(
        &mut self,
        _message: &Said,
        _known: &Known,
        _shown: &[(Id, Arc<str>)],
    ) -> Taken {
        Err(Until::Stale)
    }
}

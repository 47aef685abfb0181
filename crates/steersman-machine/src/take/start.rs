//! The session begins.

use crate::effect::{Start, Until};
use crate::take::Taken;
use crate::tick::Tick;

impl Tick<'_> {
    pub(crate) fn take_start(&mut self, _start: &Start) -> Taken {
        Err(Until::Stale)
    }
}

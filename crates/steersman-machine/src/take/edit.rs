//! A person changed arguments or state, or time passed.

use crate::effect::{NewWrite, Until};
use crate::ids::{Id, Name};
use crate::take::Taken;
use crate::tick::Tick;

impl Tick<'_> {
    pub(crate) fn take_edited(&mut self, _effect: Id, _args: &str, _by: &Name) -> Taken {
        Err(Until::Stale)
    }

    pub(crate) fn take_edit(&mut self, _writes: &[NewWrite], _by: &Name) -> Taken {
        Err(Until::Stale)
    }

    /// Entries whose time is over become unset.
    pub(crate) fn expire(&mut self) {}

    pub(crate) fn take_clock(&mut self) -> Taken {
        Err(Until::Stale)
    }
}

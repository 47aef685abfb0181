//! Something is cancelled, children first.

use crate::effect::{Cancelled, Known, Until};
use crate::ids::{Id, Name};
use crate::take::Taken;
use crate::tick::Tick;
use std::sync::Arc;

impl Tick<'_> {
    pub(crate) fn take_cancel(
        &mut self,
        _what: &Cancelled,
        _by: &Name,
        _known: &Known,
        _shown: &[(Id, Arc<str>)],
    ) -> Taken {
        Err(Until::Stale)
    }
}

//! Branch operations: what a fork call begins.

use crate::ids::Id;
use crate::tick::Tick;

impl Tick<'_> {
    /// The `fork` call is the last open one of its exchange: asks the driver for its branches.
    pub(crate) fn begin_fork(&mut self, _owner: Id, _call: Id) {}
}

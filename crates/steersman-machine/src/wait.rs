//! Waits: for an event, a time, a predicate over state, commits, branches; and the machine's own deadlines.

use crate::ids::Time;
use crate::snapshot::Snapshot;
use crate::tick::Cx;

/// When the driver is to offer [`crate::effect::Offered::Clock`]: a state entry expires, or a limit of time is reached.
pub fn deadline(cx: &Cx<'_>, snapshot: &Snapshot) -> Option<Time> {
    let _ = cx;
    snapshot.expiring.get_min().map(|(at, _, _)| *at)
}

//! Branches begin, are adopted, end and are joined.

use crate::effect::{BranchEnd, Known, Opened, Until};
use crate::ids::{Id, Line, Name};
use crate::snapshot::Snapshot;
use crate::take::Taken;
use crate::tick::Tick;

impl Tick<'_> {
    pub(crate) fn take_opened(&mut self, _opened: &Opened) -> Taken {
        Err(Until::Refused("not built in this version"))
    }

    pub(crate) fn take_adopt(
        &mut self,
        _call: Option<(Id, Id)>,
        _branch: Id,
        _at: Line,
        _from: &Snapshot,
        _known: &Known,
    ) -> Taken {
        Err(Until::Refused("not built in this version"))
    }

    pub(crate) fn take_ended(&mut self, _call: (Id, Id), _ends: &[BranchEnd]) -> Taken {
        Err(Until::Refused("not built in this version"))
    }

    pub(crate) fn take_join(&mut self, _branches: &[Id], _then: Option<&Name>) -> Taken {
        Err(Until::Refused("not built in this version"))
    }
}

//! A call that is asked for again, because a person approved what it reads no longer.

use crate::stored::by::By;
use crate::stored::commit::{Admission, Admitted, Want, Wished};
use crate::stored::ids::Id;
use crate::tick::Tick;
use crate::tick::call::refusal;
use crate::tick::effect::Until;
use crate::tick::table::Event;
use crate::tick::take::Taken;
use crate::view::mapping;

impl Tick<'_> {
    /// Asks for the call of a held effect again, with the arguments that it has: it is judged again and wished as another effect, whose
    /// questions are those of this line.
    pub(crate) fn take_anew(&mut self, effect: Id, by: Option<&By>) -> Taken {
        let open = self.held_call(effect, Event::CallAnew)?;
        let Some(tool) = self.network.tools.get(&open.call.name) else {
            return Err(Until::Stale);
        };
        self.admit(Admission {
            kind: Admitted::Edited,
            id: Some(effect),
            message: None,
            by: by.cloned(),
            body: None,
        });
        let args = mapping::arguments(&self.cx(), &self.snapshot, &open);
        if let Some(why) = refusal(&self.cx(), &self.snapshot, &open, tool, args) {
            self.refuse_held(&open, why, None);
            return Ok(());
        }
        self.stop(effect);
        let id = self.id();
        self.wish(Wished {
            id,
            agent: open.owner,
            what: Want::Call(open.call.id),
            args: None,
            due: None,
        });
        Ok(())
    }
}

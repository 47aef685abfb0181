//! Messages that first cancel everything that their addressee has open.

use crate::stored::commit::Admitted;
use crate::stored::ids::Id;
use crate::tick::Tick;
use crate::tick::effect::{Known, Said, Until};
use crate::tick::table::{self, Event, Rule};
use crate::tick::take::Taken;
use crate::tick::take::cancel::Cut;
use std::sync::Arc;

impl Tick<'_> {
    /// Takes a message that first cancels everything that its addressee has open.
    pub(crate) fn take_interrupt(
        &mut self,
        said: &Said,
        known: &Known,
        shown: &[(Id, Arc<str>)],
    ) -> Taken {
        let agent = self.addressee(said)?;
        match table::rule(self.agent(agent).phase, Event::Interrupt) {
            Rule::Take => {}
            Rule::TakeUnlessEnded => self.may_hear(agent)?,
            Rule::TakeIfNothingWished
            | Rule::TakeIfAddressed
            | Rule::Queue
            | Rule::Leave
            | Rule::Stale
            | Rule::Nothing => return Err(Until::Stale),
        }
        let cut = Cut { known, shown };
        self.cut_calls(agent, &cut);
        self.cut_thought(agent, &cut);
        self.hear(agent, said, Admitted::Interrupt);
        Ok(())
    }
}

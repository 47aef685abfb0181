//! Passing of time: state entries expire, limits of time are reached.

use crate::network::OnLimit;
use crate::stored::commit::Admitted;
use crate::stored::ids::{Id, Name};
use crate::stored::interaction::{Reduce, Write};
use crate::tick::Tick;
use crate::tick::effect::Until;
use crate::tick::limits::Reached;
use crate::tick::take::Taken;
use crate::tick::take::cancel::Cut;
use crate::view::declares;

impl Tick<'_> {
    /// Resets entries that expired to their default, or unsets them. Returns true if there was one.
    pub(crate) fn expire(&mut self) -> bool {
        let now = self.now;
        let due: Vec<(Id, Name)> = self
            .snapshot
            .expiring
            .iter()
            .take_while(|(at, ..)| *at <= now)
            .map(|(_, scope, name)| (*scope, name.clone()))
            .collect();
        for (scope, name) in &due {
            let cx = self.cx();
            let declared = declares(&cx, &self.snapshot, *scope, name);
            let default = declared.and_then(|(_, ty)| ty.default.clone());
            let def = self.agent(*scope).def.clone();
            let value = default.map(|json| self.texts.default_of(&def, name, &json));
            self.edit(Write {
                scope: *scope,
                name: name.clone(),
                value,
                reduce: Reduce::Last,
                expires: None,
            });
        }
        !due.is_empty()
    }

    /// Applies a limit of time: it ends everything that is open. If a person is asked for more, the work continues until they
    /// answer.
    fn out_of_time(&mut self, agent: Id, reached: &Reached) {
        let cut = Cut::default();
        if reached.then != OnLimit::Ask {
            self.cut_calls(agent, &cut);
            self.cut_thought(agent, &cut);
        }
        if self.limit(agent, reached) {
            // The last call is made even though the time is over.
            self.will_think(agent);
        }
    }

    /// Takes a clock offer, if entries expired or a limit of time is reached.
    pub(crate) fn take_clock(&mut self, expired: bool) -> Taken {
        let late = crate::tick::wait::limit_of_time(&self.cx(), &self.snapshot);
        let late = late.filter(|(at, ..)| *at <= self.now);
        if !expired && late.is_none() {
            return Err(Until::Stale);
        }
        self.admit_as(Admitted::Clock, None);
        if let Some((_, agent, reached)) = late {
            self.out_of_time(agent, &reached);
        }
        Ok(())
    }
}

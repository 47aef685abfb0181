//! Changes of an agent's mode. A tool or an exit changes it only when an exchange closes or when the agent owes a model call, and
//! at most once in a tick. So all calls of an answer are judged in the mode in which the model was asked for the answer. New work
//! may begin in the start mode again.

use crate::network::{ExitsWhen, FINISH, ModeExit};
use crate::stored::commit::{Change, Fired, Turned};
use crate::stored::ids::{Id, Name};
use crate::stored::interaction::{How, Interaction};
use crate::tick::Tick;

/// A call of an exchange that closes.
pub(crate) struct Ended {
    id: Id,
    /// The tool or agent that was called. `seen` is the name under which the model saw it.
    name: Name,
    seen: Option<Name>,
    succeeded: bool,
    /// The mode that the call asked for.
    mode: Option<Name>,
}

impl Ended {
    /// Returns true if a name of an exit means this call.
    fn has_name(&self, name: &Name) -> bool {
        self.name == *name || self.seen.as_ref() == Some(name)
    }
}

impl Tick<'_> {
    /// Returns the mode that a tool set for its caller, if the caller has modes. The error says that there is no such mode.
    pub(crate) fn mode_said(&self, owner: Id, said: Option<&str>) -> Result<Option<Name>, String> {
        let (Some(said), Some(modes)) = (said, &self.def(owner).modes) else {
            return Ok(None);
        };
        match modes.get(said) {
            Some(mode) => Ok(Some(mode.name.clone())),
            None => Err(format!(
                "there is no mode `{}`; there are {}",
                crate::stored::bounds::name(said),
                modes.names()
            )),
        }
    }

    /// Returns the exchange of an agent with modes, if the end of this call closes it. Must be called before the call ends.
    pub(crate) fn closing(&self, owner: Id, call: Id, how: How) -> Option<Vec<Ended>> {
        if self.agent(owner).stack.open != 1 || self.def(owner).modes.is_none() {
            return None;
        }
        let ended = self.snapshot.exchange(owner).map(|open| {
            let before = open.closed.as_ref().map(|closed| closed.how);
            let how = before.or((open.call.id == call).then_some(how));
            Ended {
                id: open.call.id,
                name: open.call.name.clone(),
                seen: open.call.seen.clone(),
                succeeded: how.is_some_and(How::is_ok),
                mode: open.mode.clone(),
            }
        });
        Some(ended.collect())
    }

    /// Changes the mode after an exchange closed and its writes took effect. A mode that a tool set has priority over exits.
    pub(crate) fn exchange_closed(&mut self, owner: Id, exchange: &[Ended]) {
        let said = exchange.iter().rev().filter(|call| call.succeeded);
        let said = said
            .clone()
            .find_map(|call| Some((call.id, call.mode.clone()?)));
        if let Some((call, mode)) = said {
            if Some(&mode) != self.mode_of(owner) {
                self.turn(owner, mode, Turned::Said(call));
            }
            return;
        }
        // An expression that fails ends the agent later, when it owes its next step.
        if let Ok(Some((to, why))) = self.exit(owner, exchange) {
            self.turn(owner, to, why);
        }
    }

    /// Checks the exits when the agent owes a model call. Exits after a tool do not fire here.
    ///
    /// # Errors
    /// The expression of an exit failed.
    pub(crate) fn leaves_mode(&mut self, agent: Id) -> Result<(), String> {
        if let Some((to, why)) = self.exit(agent, &[])? {
            self.turn(agent, to, why);
        }
        Ok(())
    }

    /// Returns true if an exit led to `finish`. The agent then makes no further model call.
    pub(crate) fn is_leaving(&self, agent: Id) -> bool {
        self.agent(agent).mode.as_deref() == Some(FINISH)
    }

    /// Returns true if a message was pushed for the agent in this tick.
    pub(crate) fn heard(&self, agent: Id) -> bool {
        let mut pushes = self.commit.pushes.iter();
        pushes
            .any(|push| push.agent == agent && matches!(push.what, Interaction::UserMessage { .. }))
    }

    /// Puts an agent back into the start mode of its definition, for its next work.
    pub(crate) fn mode_anew(&mut self, agent: Id) {
        let Some(start) = self.def(agent).mode(None) else {
            return;
        };
        if self.agent(agent).mode.as_ref() != Some(&start.name) {
            self.turn(agent, start.name.clone(), Turned::Anew);
        }
    }

    /// Returns the name of the mode in force.
    fn mode_of(&self, agent: Id) -> Option<&Name> {
        let mode = self.def(agent).mode(self.agent(agent).mode.as_ref());
        mode.map(|mode| &mode.name)
    }

    fn turn(&mut self, agent: Id, to: Name, why: Turned) {
        self.change(Change::Mode(agent, to, why));
    }

    /// Returns true if the agent's mode changed in this tick.
    fn has_turned(&self, agent: Id) -> bool {
        let mut changes = self.commit.changes.iter();
        changes.any(|change| matches!(change, Change::Mode(turned, ..) if *turned == agent))
    }

    /// Returns the first exit that fires: first the exits of all modes, then those of the mode in force.
    fn exit(&self, agent: Id, exchange: &[Ended]) -> Result<Option<(Name, Turned)>, String> {
        let def = self.def(agent);
        let state = self.agent(agent);
        let (Some(modes), Some(mode)) = (&def.modes, def.mode(state.mode.as_ref())) else {
            return Ok(None);
        };
        if self.has_turned(agent) || self.is_leaving(agent) {
            return Ok(None);
        }
        let everywhere = (1..).zip(&modes.exits).map(|(n, exit)| (n, exit, true));
        let own = (1..).zip(&mode.exits).map(|(n, exit)| (n, exit, false));
        for (n, exit, all) in everywhere.chain(own) {
            if exit.to == mode.name {
                continue;
            }
            if let Some(fired) = self.fires(agent, exit, exchange)? {
                let why = if all {
                    Turned::Everywhere(n, fired)
                } else {
                    Turned::Exit(n, fired)
                };
                return Ok(Some((exit.to.clone(), why)));
            }
        }
        Ok(None)
    }

    fn fires(
        &self,
        agent: Id,
        exit: &ModeExit,
        exchange: &[Ended],
    ) -> Result<Option<Fired>, String> {
        Ok(match &exit.cause {
            ExitsWhen::AfterTool(names) => {
                let meant = |call: &&Ended| names.iter().any(|name| call.has_name(name));
                let mut calls = exchange.iter().rev().filter(|call| call.succeeded);
                calls.find(meant).map(|call| Fired::Call(call.id))
            }
            ExitsWhen::AfterCalls(calls) => {
                let made = self.agent(agent).counters.mode_calls;
                (made >= *calls).then_some(Fired::Calls(made))
            }
            ExitsWhen::Holds(when) => {
                let holds = self.view(agent).holds(when);
                let holds = holds.map_err(|e| format!("an exit: {e}"))?;
                holds.then_some(Fired::Held)
            }
        })
    }
}

//! Describes changes of modes.

use super::{Row, Story, Tone, row};
use crate::words::line as one_line;
use std::sync::Arc;
use steersman_machine::network::{ExitsWhen, FINISH, ModeExit, Modes, Network};
use steersman_machine::stored::commit::{Commit, Fired, LogLine, Turned};
use steersman_machine::stored::ids::{Id, Name};

/// Maximum width of an expression in a note.
const WIDTH: usize = 40;

impl Story {
    /// Sets the definition that a line binds. Rows of later lines use it.
    pub(crate) fn bound(&mut self, network: Arc<Network>) {
        self.network = Some(network);
    }

    /// Adds rows for the modes that were entered. An exit to `finish` enters none.
    pub(super) fn turned(&self, line: &LogLine, commit: &Commit, rows: &mut Vec<Row>) {
        for (agent, mode, turned) in commit.modes() {
            let network = self.network.as_deref();
            let modes = network.and_then(|network| modes(network, self.defs.get(&agent)?));
            let why = why(
                turned,
                |call| Some(self.calls.get(&call)?.name.clone()),
                |turned| expression(modes?, mode, turned),
            );
            let (text, note) = match turned {
                _ if &**mode == FINISH => ("is about to end".to_owned(), format!("exit, {why}")),
                Turned::Anew => (format!("begins again in mode {mode}"), String::new()),
                _ => (format!("mode is now {mode}"), why),
            };
            rows.push(row(line, self.agent(agent), text, note, Tone::Engine));
        }
    }
}

/// Returns the modes of an agent.
pub(crate) fn modes<'n>(network: &'n Network, agent: &Name) -> Option<&'n Modes> {
    network.agents.get(agent)?.modes.as_deref()
}

/// Returns the expression that held when an agent changed its mode; `None` if several exits are possible.
pub(crate) fn expression(modes: &Modes, to: &Name, turned: &Turned) -> Option<String> {
    let exit = |exits: &[ModeExit], n: u32| -> Option<String> {
        let exit = exits.get(usize::try_from(n).ok()?.checked_sub(1)?)?;
        match &exit.cause {
            ExitsWhen::Holds(when) if exit.to == *to => Some(when.source.to_string()),
            _ => None,
        }
    };
    let mut all = match turned {
        Turned::Everywhere(n, Fired::Held) => vec![exit(&modes.exits, *n)?],
        Turned::Exit(n, Fired::Held) => {
            let own = modes.all.iter();
            own.filter_map(|mode| exit(&mode.exits, *n)).collect()
        }
        _ => Vec::new(),
    };
    all.dedup();
    match all.as_slice() {
        [only] => Some(one_line(only, WIDTH)),
        _ => None,
    }
}

/// Describes the cause of a mode change. `name` returns the name of a call, `held` the expression of an exit.
pub(crate) fn why(
    why: &Turned,
    name: impl Fn(Id) -> Option<Name>,
    held: impl Fn(&Turned) -> Option<String>,
) -> String {
    let called = |call: Id| name(call).map_or_else(|| call.to_string(), |name| name.to_string());
    let fired = |turned: &Turned, n: u32, fired: &Fired, of: &str| match fired {
        Fired::Call(call) => format!("after {}", called(*call)),
        Fired::Calls(1) => "after 1 model call".to_owned(),
        Fired::Calls(calls) => format!("after {calls} model calls"),
        Fired::Held => match held(turned) {
            Some(expression) => format!("because {expression}"),
            None => format!("exit {n}{of} holds"),
        },
    };
    match why {
        Turned::Exit(n, fires) => fired(why, *n, fires, ""),
        Turned::Everywhere(n, fires) => fired(why, *n, fires, " of all modes"),
        Turned::Said(call) => format!("{} says so", called(*call)),
        Turned::Anew => "anew".to_owned(),
    }
}

//! The toolset of a case: it returns the outcomes that the case lists, in order.

use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;
use steersman_definition::test::{Gives, ToolOutcome};
use steersman_machine::network::manifest::{Listed, Listing};
use steersman_machine::network::{Network, Source};
use steersman_machine::stored::ids::{Id, Name, Time};
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::Boxed;
use steersman_runtime::clock::{Clock, Virtual};
use steersman_runtime::toolset::{Asked, ServerAsk, ToolRun, Toolset};
use tokio_util::sync::CancellationToken;

/// Runs the tools that a case names, and all that reach outside of the process.
pub(super) struct Outcomes {
    left: Mutex<BTreeMap<Name, VecDeque<ToolOutcome>>>,
    /// Outcomes that were returned, with effect and attempt, in order.
    given: Mutex<Vec<(Id, u32, Name, ToolOutcome)>>,
    named: Vec<Name>,
    clock: Virtual,
    /// End times of the calls that wait for the clock.
    waiting: Mutex<Vec<Time>>,
}

impl Outcomes {
    pub(super) fn new(tools: &BTreeMap<Name, Vec<ToolOutcome>>, clock: Virtual) -> Self {
        let left = tools
            .iter()
            .map(|(name, list)| (name.clone(), list.iter().cloned().collect()))
            .collect();
        Self {
            left: Mutex::new(left),
            given: Mutex::default(),
            named: tools.keys().cloned().collect(),
            clock,
            waiting: Mutex::default(),
        }
    }

    /// Returns the end times of the calls that wait for the clock, without those whose time has come.
    pub(super) fn waiting(&self) -> Vec<Time> {
        let now = self.clock.now();
        let waiting = self.waiting.lock().unwrap();
        waiting.iter().copied().filter(|at| *at > now).collect()
    }

    /// Takes back outcomes after a kill: an attempt whose end is not in the log gets the same outcome when it runs again.
    pub(super) fn take_back(&self, kept: impl Fn(Id, u32) -> bool) {
        let mut left = self.left.lock().unwrap();
        for (effect, attempt, tool, outcome) in self.given.lock().unwrap().drain(..).rev() {
            if !kept(effect, attempt) {
                left.entry(tool).or_default().push_front(outcome);
            }
        }
    }

    /// Removes and returns the next outcome of a tool, if it is a result.
    pub(super) fn next_result(&self, tool: &str) -> Option<Json> {
        let mut left = self.left.lock().unwrap();
        let list = left.get_mut(tool)?;
        let Gives::Result(result) = list.front()?.gives.clone() else {
            return None;
        };
        list.pop_front();
        Some(result)
    }

    /// Returns the next outcome of a tool. An attempt that runs again under the same number gets the outcome that it had.
    fn take(&self, run: &ToolRun) -> Option<ToolOutcome> {
        let (tool, of) = (&run.work.tool, (run.effect, run.attempt));
        let mut given = self.given.lock().unwrap();
        let known = given
            .iter()
            .find(|(effect, attempt, ..)| (*effect, *attempt) == of);
        if let Some((.., outcome)) = known {
            return Some(outcome.clone());
        }
        let mut left = self.left.lock().unwrap();
        let outcome = left.get_mut(tool)?.pop_front()?;
        given.push((run.effect, run.attempt, tool.clone(), outcome.clone()));
        Some(outcome)
    }
}

/// Lists a call among those that wait for the clock, until it is dropped.
struct Waits<'a>(&'a Outcomes, Time);

impl<'a> Waits<'a> {
    fn until(tools: &'a Outcomes, at: Time) -> Self {
        tools.waiting.lock().unwrap().push(at);
        Self(tools, at)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting.lock().unwrap();
        if let Some(at) = waiting.iter().position(|at| *at == self.1) {
            waiting.swap_remove(at);
        }
    }
}

impl Toolset for Outcomes {
    fn has(&self, network: &Network, tool: &str) -> bool {
        let outside = network.tools.get(tool).is_some_and(|tool| {
            matches!(
                tool.source,
                Source::Native { .. }
                    | Source::Mcp { .. }
                    | Source::Http(_)
                    | Source::Command { .. }
            )
        });
        outside || self.named.iter().any(|name| **name == *tool)
    }

    /// A server offers the tools that the definition names and those that the case has outcomes for.
    fn list<'a>(&'a self, ask: &'a ServerAsk) -> Boxed<'a, Asked> {
        let of = |name: &Name| {
            let (server, tool) = name.split_once('.')?;
            (*server == *ask.server).then(|| tool.to_owned())
        };
        let names = self.named.iter().chain(ask.network.tools.keys());
        let names: BTreeSet<String> = names.filter_map(of).collect();
        let tools = names.into_iter().map(|name| Listed {
            name,
            input: json!({ "type": "object" }),
            ..Listed::default()
        });
        let listing = Listing {
            tools: tools.collect(),
            ..Listing::default()
        };
        Box::pin(std::future::ready(Asked::Offers(listing)))
    }

    /// Tools have no timeout: a call takes as long as the case says.
    fn is_timed(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        Box::pin(async move {
            let tool = &run.work.tool;
            let Some(outcome) = self.take(run) else {
                let why = format!("the case has no further outcome for `{tool}`");
                return Raw::NotPerformed(Fault::new("failed", why));
            };
            if let Some(after) = outcome.after {
                let at = self.clock.now().plus(after);
                let waits = Waits::until(self, at);
                let cut = tokio::select! {
                    biased;
                    () = self.clock.sleep_until(at) => false,
                    () = cancel.cancelled() => true,
                };
                drop(waits);
                if cut {
                    return Raw::Unknown(Fault::new("cancelled", "it was cut off"));
                }
            }
            match &outcome.gives {
                Gives::Result(result) => outcome.done(result.clone()),
                Gives::Error { code, message } => {
                    Raw::NotPerformed(Fault::new(code, message.clone()))
                }
                Gives::Unknown => Raw::Unknown(Fault::new("timeout", "no answer came")),
            }
        })
    }
}

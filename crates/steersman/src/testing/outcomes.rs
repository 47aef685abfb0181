//! Outcomes that a test gives to tools, in order.

use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use steersman_machine::definition::test::{Gives, ToolOutcome};
use steersman_machine::ids::{Id, Name, Time};
use steersman_machine::interaction::Class;
use steersman_machine::manifest::{Listed, Listing};
use steersman_machine::mapping::{Fault, Raw};
use steersman_machine::network::{Network, Source};
use steersman_runtime::Boxed;
use steersman_runtime::clock::{Clock, Virtual};
use steersman_runtime::toolset::{Asked, ServerAsk, ToolRun, Toolset};
use tokio_util::sync::CancellationToken;

/// Answers for the tools that a test names, for those that change the world, and for those in Rust that nobody registered;
/// others run for real.
pub(super) struct ToolOutcomes {
    left: Mutex<BTreeMap<Name, VecDeque<ToolOutcome>>>,
    /// Outcomes that were given, with the effect, in order.
    given: Mutex<Vec<(Id, Name, ToolOutcome)>>,
    named: Vec<Name>,
    registered: Vec<Name>,
    clock: Virtual,
    /// When calls that wait for the clock end.
    waiting: Mutex<Vec<Time>>,
    /// Tools that were called and had no outcome.
    missed: Mutex<Vec<Name>>,
}

impl ToolOutcomes {
    pub(super) fn new(
        tools: &BTreeMap<Name, Vec<ToolOutcome>>,
        registered: Vec<Name>,
        clock: Virtual,
    ) -> Self {
        let left = tools
            .iter()
            .map(|(name, list)| (name.clone(), list.iter().cloned().collect()))
            .collect();
        Self {
            left: Mutex::new(left),
            given: Mutex::default(),
            named: tools.keys().cloned().collect(),
            registered,
            clock,
            waiting: Mutex::default(),
            missed: Mutex::default(),
        }
    }

    /// When the calls end that wait for the clock; not those whose time has come.
    pub(super) fn waiting(&self) -> Vec<Time> {
        let now = self.clock.now();
        let waiting = lock(&self.waiting);
        waiting.iter().copied().filter(|at| *at > now).collect()
    }

    /// The process died: effects that are not kept on disk had no outcome so far, and have the same when they run again.
    pub(super) fn take_back(&self, kept: impl Fn(Id) -> bool) {
        let mut left = lock(&self.left);
        for (effect, tool, outcome) in lock(&self.given).drain(..).rev() {
            if !kept(effect) {
                left.entry(tool).or_default().push_front(outcome);
            }
        }
    }

    /// Tools that were called and had no outcome.
    pub(super) fn missed(&self) -> Vec<Name> {
        lock(&self.missed).clone()
    }

    /// Tools with outcomes that were never wanted, and how many.
    pub(super) fn left_over(&self) -> Vec<(Name, usize)> {
        let left = lock(&self.left);
        left.iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| (name.clone(), list.len()))
            .collect()
    }

    /// The next outcome of a tool, if it is a result: it is given now.
    pub(super) fn next_result(&self, tool: &str) -> Option<Json> {
        let mut left = lock(&self.left);
        let list = left.get_mut(tool)?;
        let Gives::Result(result) = list.front()?.gives.clone() else {
            return None;
        };
        list.pop_front();
        Some(result)
    }

    fn take(&self, tool: &str) -> Option<ToolOutcome> {
        let mut left = lock(&self.left);
        left.get_mut(tool)?.pop_front()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that waits for the clock, for as long as it does.
struct Waits<'a>(&'a ToolOutcomes, Time);

impl<'a> Waits<'a> {
    fn until(tools: &'a ToolOutcomes, at: Time) -> Self {
        lock(&tools.waiting).push(at);
        Self(tools, at)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.0.waiting);
        if let Some(at) = waiting.iter().position(|at| *at == self.1) {
            waiting.swap_remove(at);
        }
    }
}

impl Toolset for ToolOutcomes {
    fn has(&self, network: &Network, tool: &str) -> bool {
        let def = network.tools.get(tool);
        let native = def.is_some_and(|t| matches!(t.source, Source::Native { .. }));
        // A test must not move money because a line was forgotten.
        let changes = def.is_some_and(|t| matches!(t.effect, Class::Idempotent | Class::Unsafe));
        let outside =
            def.is_some_and(|t| matches!(t.source, Source::Http(_) | Source::Command { .. }));
        let named = |names: &[Name]| names.iter().any(|name| **name == *tool);
        // Nor must it depend on a server that somebody runs.
        let remote = def.is_some_and(|t| matches!(t.source, Source::Mcp { .. }));
        named(&self.named) || remote || native && !named(&self.registered) || changes && outside
    }

    /// A server offers what the definition names of it and what the test has outcomes for.
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

    /// A call takes as long as the test says.
    fn is_timed(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        Box::pin(async move {
            let tool = &run.work.tool;
            let fault = |code: &str, message: String| Fault {
                code: code.to_owned(),
                message,
                status: None,
                again: None,
            };
            let Some(outcome) = self.take(tool) else {
                lock(&self.missed).push(tool.clone());
                return Raw::NotPerformed(fault(
                    "failed",
                    format!("the test has no further outcome for `{tool}`"),
                ));
            };
            lock(&self.given).push((run.effect, tool.clone(), outcome.clone()));
            if let Some(after) = outcome.after {
                let at = self.clock.now().plus(after);
                let waits = Waits::until(self, at);
                let cut = tokio::select! {
                    () = self.clock.sleep_until(at) => false,
                    () = cancel.cancelled() => true,
                };
                drop(waits);
                if cut {
                    return Raw::Unknown(fault("cancelled", "it was cut off".into()));
                }
            }
            match outcome.gives {
                Gives::Result(result) => Raw::Done(result),
                Gives::Error { code, message } => Raw::NotPerformed(fault(&code, message)),
                Gives::Unknown => Raw::Unknown(fault("timeout", "no answer came".into())),
            }
        })
    }
}

//! Outcomes that a test gives to tools, in order.

use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steersman_definition::test::{Gives, ToolOutcome};
use steersman_machine::network::manifest::{Listed, Listing};
use steersman_machine::network::{Network, Source};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::ids::{Id, Name, Time};
use steersman_machine::stored::interaction::Class;
use steersman_machine::values::rate::Rate;
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::Boxed;
use steersman_runtime::clock::{Clock, Virtual};
use steersman_runtime::model::scripted::nearest::{differs, distance, short};
use steersman_runtime::toolset::{Asked, ServerAsk, ToolRun, Toolset};
use tokio_util::sync::CancellationToken;

/// A toolset that answers in place of three kinds of tools: those for which the test has outcomes, those that reach outside of the
/// process, and those in Rust that are not registered. If real runs are allowed, commands and requests that change nothing and have
/// no outcome in the test run for real.
pub(super) struct ToolOutcomes {
    /// Outcomes that were not used yet.
    left: Mutex<BTreeMap<Name, VecDeque<ToolOutcome>>>,
    /// Outcomes that were used, with effect and attempt, in order.
    given: Mutex<Vec<(Id, u32, Name, ToolOutcome)>>,
    /// Tools for which the test has outcomes.
    named: Vec<Name>,
    /// Tools in Rust that are registered.
    registered: Vec<Name>,
    /// True if tools that only read run for real when the test has no outcomes for them.
    real: bool,
    clock: Virtual,
    /// End times of the calls that wait for the clock.
    waiting: Mutex<Vec<Time>>,
    /// Calls without an outcome, each with its nearest match.
    missed: Mutex<Vec<String>>,
    /// Arguments of the calls that had an outcome, in order.
    asked: Mutex<Vec<(Name, Json)>>,
}

impl ToolOutcomes {
    pub(super) fn new(
        tools: &BTreeMap<Name, Vec<ToolOutcome>>,
        registered: Vec<Name>,
        real: bool,
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
            real,
            clock,
            waiting: Mutex::default(),
            missed: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    /// Returns the end times of calls that wait for the clock, without those that are due.
    pub(super) fn waiting(&self) -> Vec<Time> {
        let now = self.clock.now();
        let waiting = lock(&self.waiting);
        waiting.iter().copied().filter(|at| *at > now).collect()
    }

    /// Makes outcomes available again after the process died: those of attempts whose end is not on disk (`kept` is false).
    /// Such an attempt gets the same outcome when it runs again.
    pub(super) fn take_back(&self, kept: impl Fn(Id, u32) -> bool) {
        let mut left = lock(&self.left);
        for (effect, attempt, tool, outcome) in lock(&self.given).drain(..).rev() {
            if !kept(effect, attempt) {
                left.entry(tool).or_default().push_front(outcome);
            }
        }
    }

    /// Returns the calls without an outcome, each with the nearest call that had one, and the differences.
    pub(super) fn missed(&self) -> Vec<String> {
        lock(&self.missed).clone()
    }

    fn miss(&self, run: &ToolRun) {
        let (tool, args) = (&run.work.tool, &read(&run.work.args));
        let mut rows = vec![format!(
            "`{tool}` was called and the test has no (further) outcome for it under `tools:`"
        )];
        if !self.named.contains(tool) {
            rows.push(format!(
                "  write what it gives: `tools: {{ {tool}: [ RESULT ] }}`"
            ));
            if only_looks(&run.network, tool) {
                rows.push("  or run it: `steersman test --real`".to_owned());
            }
        }
        rows.push(format!("  called with: {}", short(&args.to_string())));
        let asked = lock(&self.asked);
        let of = asked.iter().filter(|(name, _)| name == tool).enumerate();
        let near = of.min_by_key(|(_, (_, known))| differs(known, args).len());
        if let Some((k, (_, known))) = near {
            let call = k + 1;
            rows.push(format!(
                "  nearest: call {call} of it, which had an outcome, with {}",
                short(&known.to_string())
            ));
            let differences = differs(known, args);
            if differences.is_empty() {
                rows.push("    the arguments are the same".to_owned());
            }
            rows.extend(differences.iter().map(|row| format!("    {row}")));
        } else {
            let left = lock(&self.left);
            let left = left.iter().filter(|(_, list)| !list.is_empty());
            if let Some((name, list)) = left.min_by_key(|(name, _)| distance(name, tool)) {
                let n = list.len();
                rows.push(format!("  nearest: `{name}`, with unused outcomes: {n}"));
            }
        }
        lock(&self.missed).push(rows.join("\n"));
    }

    /// Returns the tools with unused outcomes, and how many are left.
    pub(super) fn left_over(&self) -> Vec<(Name, usize)> {
        let left = lock(&self.left);
        left.iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| (name.clone(), list.len()))
            .collect()
    }

    /// Takes the next outcome of a tool, if it is a result.
    pub(super) fn next_result(&self, tool: &str) -> Option<Json> {
        let mut left = lock(&self.left);
        let list = left.get_mut(tool)?;
        let Gives::Result(result) = list.front()?.gives.clone() else {
            return None;
        };
        list.pop_front();
        Some(result)
    }

    /// Takes the next outcome of a tool. An attempt that runs again after a restart gets the same outcome as the first
    /// time.
    fn take(&self, run: &ToolRun) -> Option<ToolOutcome> {
        let (tool, of) = (&run.work.tool, (run.effect, run.attempt));
        let mut given = lock(&self.given);
        let known = given
            .iter()
            .find(|(effect, attempt, ..)| (*effect, *attempt) == of);
        if let Some((.., outcome)) = known {
            return Some(outcome.clone());
        }
        let outcome = lock(&self.left).get_mut(tool)?.pop_front()?;
        lock(&self.asked).push((tool.clone(), read(&run.work.args)));
        given.push((run.effect, run.attempt, tool.clone(), outcome.clone()));
        Some(outcome)
    }
}

/// Returns true for a request or command that changes nothing outside (class `pure` or `read`).
pub(super) fn only_looks(network: &Network, tool: &str) -> bool {
    let def = network.tools.get(tool);
    def.is_some_and(|tool| {
        matches!(tool.source, Source::Http(_) | Source::Command { .. })
            && matches!(tool.effect, Class::Pure | Class::Read)
    })
}

/// Runs tools for real, and counts the runs of each.
pub(super) struct Ran<T> {
    pub(super) tools: T,
    pub(super) ran: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl<T: Toolset> Toolset for Ran<T> {
    fn has(&self, network: &Network, tool: &str) -> bool {
        self.tools.has(network, tool)
    }

    fn place(&self, run: &ToolRun) -> Option<(String, Rate)> {
        self.tools.place(run)
    }

    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        *lock(&self.ran)
            .entry(run.work.tool.to_string())
            .or_default() += 1;
        self.tools.run(run, cancel)
    }
}

/// Parses arguments for comparison.
fn read(args: &str) -> Json {
    serde_json::from_str(args).unwrap_or_else(|_| args.into())
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that waits for the clock: in the list of `waiting` until this value is dropped.
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
        // If the test forgets an outcome, the tool does not run for real: a test must not move money or depend on the
        // outside.
        let outside =
            def.is_some_and(|t| matches!(t.source, Source::Http(_) | Source::Command { .. }));
        let runs = self.real && only_looks(network, tool);
        let named = |names: &[Name]| names.iter().any(|name| **name == *tool);
        // A test must not depend on a running server either.
        let remote = def.is_some_and(|t| matches!(t.source, Source::Mcp { .. }));
        named(&self.named) || remote || native && !named(&self.registered) || outside && !runs
    }

    /// A server offers the tools that the definition and the test's outcomes name.
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

    /// Returns false: the test says how long a call takes.
    fn is_timed(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        Box::pin(async move {
            let tool = &run.work.tool;
            let Some(outcome) = self.take(run) else {
                self.miss(run);
                return Raw::NotPerformed(Fault::new(
                    Code::Failed,
                    format!("the test has no further outcome for `{tool}`"),
                ));
            };
            if let Some(after) = outcome.after {
                let at = self.clock.now().plus(after);
                let waits = Waits::until(self, at);
                let cut = tokio::select! {
                    () = self.clock.sleep_until(at) => false,
                    () = cancel.cancelled() => true,
                };
                drop(waits);
                if cut {
                    return Raw::Unknown(Fault::new(Code::Cancelled, "it was cut off"));
                }
            }
            match &outcome.gives {
                Gives::Result(result) => outcome.done(result.clone()),
                Gives::Error { code, message } => {
                    Raw::NotPerformed(Fault::new(code, message.clone()))
                }
                Gives::Unknown => Raw::Unknown(Fault::new(Code::Timeout, "no answer came")),
            }
        })
    }
}

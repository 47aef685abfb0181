//! Outcomes that a test gives to tools, in order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use steersman_machine::definition::test::{Gives, ToolOutcome};
use steersman_machine::ids::Name;
use steersman_machine::mapping::{Fault, Raw};
use steersman_machine::network::Network;
use steersman_runtime::Boxed;
use steersman_runtime::clock::{Clock, Virtual};
use steersman_runtime::toolset::{ToolRun, Toolset};
use tokio_util::sync::CancellationToken;

/// Answers for the tools that a test names; others run for real.
pub(super) struct ToolOutcomes {
    left: Mutex<BTreeMap<Name, VecDeque<ToolOutcome>>>,
    named: Vec<Name>,
    clock: Virtual,
    waiting: AtomicUsize,
}

impl ToolOutcomes {
    pub(super) fn new(tools: &BTreeMap<Name, Vec<ToolOutcome>>, clock: Virtual) -> Self {
        let left = tools
            .iter()
            .map(|(name, list)| (name.clone(), list.iter().cloned().collect()))
            .collect();
        Self {
            left: Mutex::new(left),
            named: tools.keys().cloned().collect(),
            clock,
            waiting: AtomicUsize::new(0),
        }
    }

    /// Calls that wait for the clock.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Tools with outcomes that were never wanted, and how many.
    pub(super) fn left_over(&self) -> Vec<(Name, usize)> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| (name.clone(), list.len()))
            .collect()
    }

    fn take(&self, tool: &str) -> Option<ToolOutcome> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.get_mut(tool)?.pop_front()
    }
}

impl Toolset for ToolOutcomes {
    fn has(&self, _network: &Network, tool: &str) -> bool {
        self.named.iter().any(|name| **name == *tool)
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
                return Raw::NotPerformed(fault(
                    "failed",
                    format!("the test has no further outcome for `{tool}`"),
                ));
            };
            if let Some(after) = outcome.after {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                let cut = tokio::select! {
                    () = self.clock.sleep(after) => false,
                    () = cancel.cancelled() => true,
                };
                self.waiting.fetch_sub(1, Ordering::SeqCst);
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

//! Steps in which the process dies, and what a test says of them.

use super::{Did, Run};
use crate::testing::Report;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_definition::test::{Act, Kill, Test};
use steersman_machine::stored::commit::{LedgerEntry, LogLine};
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::stored::interaction::{Interaction, Target};

/// Maximum number of calls that are named where a line to die at is not reached.
const NAMED: usize = 6;

impl Run<'_> {
    /// Returns the line after which the process dies in step `n`, if the step after it is a `kill`.
    pub(super) async fn dies_in(&self, n: usize) -> Result<Option<Line>, String> {
        match self.test.steps.get(n + 1).and_then(|s| s.act.as_ref()) {
            Some(Act::Kill(Kill::Line(line))) => Ok(Some(Line(*line))),
            Some(Act::Kill(Kill::Random)) => {
                let test = Test {
                    steps: self.test.steps[..=n].to_vec(),
                    ..self.test.clone()
                };
                let stage = self.stage.another(self.network, &test).await?;
                let mut other = Run::new(&stage, self.network, &test);
                other.undisturbed(&test).await?;
                let (_, lines) = other.look().await?;
                // The line is derived from the seed, so that the same test dies at the same line.
                let drawn = self.test.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
                let at = usize::try_from(drawn).unwrap_or(0) % lines.len().max(1);
                Ok(lines.get(at).map(|line| line.n))
            }
            _ => Ok(None),
        }
    }

    /// Runs all steps except `kill` and `resume`.
    pub(super) async fn undisturbed(&mut self, test: &Test) -> Did {
        // A doubt that a kill caused does not exist without the kill.
        let mut killed = false;
        for step in &test.steps {
            match &step.act {
                Some(Act::Kill(_) | Act::Resume) => killed = true,
                Some(Act::Resolve { .. }) if killed => {}
                act => {
                    killed &= matches!(act, None | Some(Act::Advance(_)));
                    Box::pin(self.step(step)).await?;
                }
            }
        }
        Ok(())
    }

    /// Returns why a process cannot die at a line: the session has no such line. The text names the lines that it has.
    pub(super) async fn is_not_reached(&self, kill: Kill) -> Option<String> {
        let Kill::Line(line) = kill else { return None };
        let (inspection, lines) = self.look().await.ok()?;
        let last = inspection.info.head;
        (last.0 < line).then(|| {
            let mut told = format!(
                "line {line} was not reached, so nothing was killed: the session came to rest at line {last}"
            );
            for call in called(&lines) {
                told.push_str("; ");
                told.push_str(&call);
            }
            told
        })
    }

    /// Takes what the session did so far into the report, also where a step failed.
    pub(super) async fn counts(&self, report: &mut Report) {
        if self.id.is_none() {
            return;
        }
        if let Ok((inspection, lines)) = self.look().await {
            report.lines = lines.len() as u64;
            report.model_calls = inspection.ledger.calls;
            report.micros = inspection.ledger.spent.micros;
        }
    }
}

/// Returns, for each call of a tool, the lines at which it began and ended.
fn called(lines: &[Arc<LogLine>]) -> Vec<String> {
    let mut calls: BTreeMap<Id, (String, Option<Line>, Option<Line>)> = BTreeMap::new();
    let mut of: BTreeMap<Id, Id> = BTreeMap::new();
    for line in lines {
        for push in line.commit.iter().flat_map(|commit| &commit.pushes) {
            match &push.what {
                Interaction::Call(call) if matches!(call.target, Target::Tool(_)) => {
                    calls.insert(call.id, (call.name.to_string(), None, None));
                }
                Interaction::Result(result) => {
                    if let Some((.., ended)) = calls.get_mut(&result.call) {
                        *ended = Some(line.n);
                    }
                }
                _ => {}
            }
        }
        for wished in line.commit.iter().flat_map(|commit| &commit.wished) {
            if let Some(call) = wished.what.call() {
                of.insert(wished.id, call);
                if let Some((_, began, _)) = calls.get_mut(&call) {
                    began.get_or_insert(line.n);
                }
            }
        }
        for entry in &line.ledger {
            if let LedgerEntry::Started {
                effect, attempt: 1, ..
            } = entry
                && let Some((_, began, _)) = of.get(effect).and_then(|call| calls.get_mut(call))
            {
                *began = Some(line.n);
            }
        }
    }
    let told = calls.into_values().take(NAMED).map(|(tool, began, ended)| {
        // Nothing was wished for it: a handoff, a call that was refused.
        if let (None, Some(n)) = (began, ended) {
            return format!("`{tool}` was made and ended at line {n}");
        }
        let began = began.map_or_else(
            || "did not begin".to_owned(),
            |n| format!("began at line {n}"),
        );
        let ended = ended.map_or_else(
            || "has not ended".to_owned(),
            |n| format!("ended at line {n}"),
        );
        format!("`{tool}` {began} and {ended}")
    });
    told.collect()
}

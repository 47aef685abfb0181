//! `test`: the tests of a definition, offline.

use crate::cli::Test;
use crate::commands::check;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, bold, dim, green, red};
use crate::words::{count, span};
use serde_json::json;
use std::time::Instant;
use steersman::testing;

pub(crate) async fn run(args: Test, printer: &Printer) -> Result<Exit, CommandError> {
    let network = check::required(&args.definition, printer)?;
    let names: Vec<String> = network
        .checked()
        .tests
        .keys()
        .filter(|name| args.name.as_ref().is_none_or(|part| name.contains(part)))
        .cloned()
        .collect();
    if names.is_empty() {
        let error = CommandError::usage(match &args.name {
            Some(part) => format!(
                "`{}` has no test whose name contains `{part}`",
                network.name()
            ),
            None => format!("`{}` has no tests", network.name()),
        });
        return Err(
            error.hint("they stand under `tests:`, or in tests/*.yaml beside the definition")
        );
    }
    let (mut failed, began) = (0, Instant::now());
    for name in &names {
        let report = if args.replay {
            testing::replay(&network, name).await
        } else {
            testing::run(&network, name).await
        };
        let passed = report.failures.is_empty();
        failed += u64::from(!passed);
        if printer.is_json() {
            printer.json(&json!({
                "test": report.name,
                "passed": passed,
                "failures": report.failures,
                "lines": report.lines,
                "model_calls": report.model_calls,
            }))?;
            continue;
        }
        let word = if passed {
            green("ok    ")
        } else {
            red("failed")
        };
        let sizes = count(report.model_calls, "model call");
        printer.data(format!("{word}  {name}   {}", dim(&sizes)))?;
        for failure in &report.failures {
            for row in failure.lines() {
                printer.data(format!("        {row}"))?;
            }
        }
    }
    let took = span(i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX));
    let sum = format!("{} in {took}", count(names.len() as u64, "test"));
    if failed == 0 {
        printer.talk(green(&format!(
            "{sum}, all passed. No model was asked, nothing outside was changed."
        )));
        return Ok(Exit::Answered);
    }
    printer.talk(format!(
        "{sum}, {}",
        bold(&red(&format!("{failed} failed")))
    ));
    Ok(Exit::Differs)
}

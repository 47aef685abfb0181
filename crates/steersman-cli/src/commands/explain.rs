//! `explain`: explains a code: of a diagnostic, with an example, or of a stop or failure, with its cause and what to do.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, bold, typed};
use crate::tell::remedy::command;
use crate::words::{width, wrap};
use serde_json::json;
use steersman::views::remedy::{self, Part, Remedy};

pub(crate) const LISTED: &str = "Explain a code: of a diagnostic, or of a stop or failure";

/// Explain a code: of a diagnostic of `check`, or of a stop or a failed call of a session, with its cause and what to do.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The code: `E0302`, `provider_overloaded`.
    code: String,
}

pub(crate) async fn run(
    args: ExplainArgs,
    _global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let code = args.code.trim();
    let remedies: Vec<&Remedy> = remedy::of(&code.to_ascii_lowercase()).collect();
    if !remedies.is_empty() {
        stops(code, &remedies, printer)?;
        return Ok(Exit::Answered);
    }
    let code = code.to_ascii_uppercase();
    let Some(text) = steersman_definition::explain(&code) else {
        return Err(
            CommandError::usage(format!("there is no code `{}`", args.code)).hint(
                "a code stands in brackets behind `error`, `warning` or `Failed`: steersman check, steersman show",
            ),
        );
    };
    if printer.is_json() {
        printer.json(&json!({ "code": code, "text": text }))?;
    } else {
        for row in rendered(text) {
            printer.data(row)?;
        }
    }
    Ok(Exit::Answered)
}

/// Returns the rows of a page that is written in Markdown: the title in bold, examples indented, without their fences.
fn rendered(text: &str) -> Vec<String> {
    let mut in_example = false;
    let rows = text.trim_end().lines().filter_map(|row| {
        if row.starts_with("```") {
            in_example = !in_example;
            return None;
        }
        Some(match row.strip_prefix("# ") {
            Some(title) if !in_example => bold(title),
            _ if in_example && !row.is_empty() => format!("    {row}"),
            _ => row.to_owned(),
        })
    });
    rows.collect()
}

/// Prints the causes of a code of a stop or failure, each with what to do.
fn stops(code: &str, remedies: &[&Remedy], printer: &Printer) -> Result<(), CommandError> {
    if printer.is_json() {
        return printer.json(&json!({ "code": code, "remedies": remedies }));
    }
    for remedy in remedies {
        let of = match remedy.of {
            Part::Model => "of a model call",
            Part::Limit => "of a limit",
            Part::Call => "of a call of a tool or agent",
        };
        printer.data(format!("{} {of}", bold(code)))?;
        for row in wrap(&remedy.sentence(), width().saturating_sub(2)) {
            printer.data(format!("  {row}"))?;
        }
        for act in remedy.acts {
            printer.data(format!("  {}", typed(&command(*act, "SESSION"))))?;
        }
    }
    Ok(())
}

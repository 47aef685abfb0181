//! `explain`: explains the code of a diagnostic, with an example.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use serde_json::json;

pub(crate) const LISTED: &str = "Explain the code of a diagnostic";

/// Explain the code of a diagnostic.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The code: `E0302`.
    code: String,
}

pub(crate) async fn run(
    args: ExplainArgs,
    _global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let code = args.code.trim().to_ascii_uppercase();
    let Some(text) = steersman_definition::explain(&code) else {
        return Err(
            CommandError::usage(format!("there is no diagnostic `{}`", args.code))
                .hint("a code stands in brackets behind `error` or `warning`: steersman check"),
        );
    };
    if printer.is_json() {
        printer.json(&json!({ "code": code, "text": text }))?;
    } else {
        printer.data(text.trim_end())?;
    }
    Ok(Exit::Answered)
}

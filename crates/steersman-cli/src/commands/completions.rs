//! `completions`: prints the completion script of a shell.

use crate::cli::{self, Global};
use crate::error::{CommandError, Exit};
use crate::printer::Printer;

pub(crate) const LISTED: &str = "Print completions for a shell";

/// Print completions for a shell.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: clap_complete::Shell,
}

pub(crate) async fn run(
    args: CompletionsArgs,
    _global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "steersman", &mut out);
    let text = String::from_utf8_lossy(&out);
    if printer.is_json() {
        printer.json(&serde_json::json!({ "shell": args.shell.to_string(), "script": text }))?;
        return Ok(Exit::Answered);
    }
    printer.whole(text.trim_end())?;
    Ok(Exit::Answered)
}

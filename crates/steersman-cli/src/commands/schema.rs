//! `schema`: the JSON Schema of definitions, for editors.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;

pub(crate) const LISTED: &str = "Print the JSON Schema of definitions, for editors";

/// Print the JSON Schema of definitions, for editors.
#[derive(Debug, clap::Args)]
pub(crate) struct SchemaArgs {}

pub(crate) async fn run(
    _args: SchemaArgs,
    _global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    printer.whole(format!("{:#}", steersman_definition::schema()))?;
    Ok(Exit::Answered)
}

//! `schema`: the JSON Schema of definitions, for editors.

use crate::error::{CommandError, Exit};
use crate::printer::Printer;

pub(crate) fn run(printer: &Printer) -> Result<Exit, CommandError> {
    printer.data(format!("{:#}", steersman_definition::schema()))?;
    Ok(Exit::Answered)
}

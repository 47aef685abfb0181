//! `gc`: deletes large texts and definitions that are no longer referenced.

use crate::cli::Global;
use crate::commands::erase::many::erased;
use crate::error::{CommandError, Exit};
use crate::place::Place;
use crate::printer::{Printer, typed};
use crate::store;
use crate::words::{count, digits};
use serde_json::json;
use steersman::runtime::store::StoreError;

pub(crate) const LISTED: &str = "Delete large texts and definitions that nothing names any more";

/// Delete large texts and definitions that nothing names any more. Tells what it would do unless --yes.
#[derive(Debug, clap::Args)]
pub(crate) struct GcArgs {
    /// Do it.
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(
    args: GcArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let place = Place::to_look(global).await?;
    let erased = erased(&place).await?.contents;
    let file = place.file.clone();
    place.close();
    let collected = store::garbage(&file, args.yes, erased).await?;
    let garbage = collected.map_err(|error| {
        let refused = CommandError::from(error.clone());
        match error {
            StoreError::Io { .. } => {
                refused.hint("stop the process that drives sessions of this store, and try again")
            }
            _ => refused,
        }
    })?;
    if printer.is_json() {
        printer.json(&json!({
            "unnamed": garbage.blobs,
            "bytes": garbage.bytes,
            "named": garbage.kept,
            "deleted": args.yes,
        }))?;
    }
    let all = count(garbage.blobs, "blob");
    let bytes = digits(garbage.bytes);
    if garbage.blobs == 0 {
        printer.talk(format!(
            "Nothing to delete: {} named by something.",
            match garbage.kept {
                1 => "the only blob is".to_owned(),
                kept => format!("all {} blobs are", digits(kept)),
            }
        ));
    } else if args.yes {
        printer.talk(format!("Deleted {all} that nothing names, {bytes} bytes."));
    } else {
        let verb = if garbage.blobs == 1 { "is" } else { "are" };
        printer.talk(format!("{all} {verb} named by nothing, {bytes} bytes."));
        printer.talk(format!("Next:  {}", typed("steersman gc --yes")));
    }
    Ok(Exit::Answered)
}

//! `backup`: copies the store while it is in use.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::printer::{Printer, typed};
use crate::store;
use crate::words::digits;
use serde_json::json;
use std::path::PathBuf;

pub(crate) const LISTED: &str = "Copy the store while it is in use";

/// Copy the store while it is in use. The copy holds no key.
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// The file to be made. One that exists is left as it is.
    to: PathBuf,
}

pub(crate) async fn run(
    args: BackupArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let file = locate::existing(global)?;
    if args.to.exists() {
        let to = locate::shown(&args.to);
        return Err(CommandError::usage(format!("`{to}` is there already"))
            .hint("name a new file: a backup replaces nothing"));
    }
    let store = store::look(&file)?;
    let bytes = store.backup(&args.to).await.map_err(|error| {
        CommandError::from(error)
            .hint("nothing was left behind; is there a folder, and room in it?")
    })?;
    let to = locate::shown(&args.to);
    if printer.is_json() {
        printer.json(&json!({ "from": file.display().to_string(), "to": to, "bytes": bytes }))?;
    }
    printer.talk(format!("Copied {} bytes to {to}.", digits(bytes)));
    printer.talk(
        "It holds no key: keep the file `key` beside the store (or STEERSMAN_KEY) elsewhere, or what is sealed stays sealed.",
    );
    let accepts = typed(&format!("steersman doctor --accept-store --store {to}"));
    if store.doubt().is_some() {
        printer.talk(format!(
            "The store is open for reading only until a person accepts it, and so is the copy: {accepts} says to drive it.",
        ));
    } else if store.has_begun_unsafe().await? {
        printer.talk(format!(
            "Effects of class `unsafe` began in it: the copy opens for reading only, until {accepts} says to drive it.",
        ));
    }
    printer.next(format!("steersman fsck --store {to}"), "verifies the copy");
    Ok(Exit::Answered)
}

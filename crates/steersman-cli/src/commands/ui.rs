//! `ui`: opens the console of a running server in a browser.

use crate::browser;
use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::printer::{Printer, yellow};
use crate::remote::Remote;
use serde_json::json;

pub(crate) const LISTED: &str = "Open the console of a running server in a browser";

/// Open the console of a running server in a browser.
///
/// The server is that of --server, otherwise the one on this computer at http://127.0.0.1:7410. The address has a code in place of the token, which is
/// good once and for 60 seconds.
#[derive(Debug, clap::Args)]
pub(crate) struct UiArgs {
    /// Print the address, and start no browser.
    #[arg(long)]
    print: bool,
}

pub(crate) async fn run(
    args: UiArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let remote = Remote::or_here(global)?;
    let made = remote.client.tokens().make_code().await?;
    let url = browser::address(&remote.url, Some(&made.code));
    if printer.is_json() {
        printer.json(&json!({ "url": url, "seconds": 60 }))?;
        return Ok(Exit::Answered);
    }
    if args.print {
        printer.data(&url)?;
        return Ok(Exit::Answered);
    }
    let store = locate::store(global.store.as_deref())?;
    let folder = crate::store::folder(&store)?.filter(|folder| folder.is_dir());
    match browser::open(&url, folder.as_deref()) {
        Ok(()) => printer.talk(format!("Opens the console of {}.", remote.url)),
        Err(why) => {
            printer.complain(yellow(&why));
            printer.data(&url)?;
        }
    }
    Ok(Exit::Answered)
}

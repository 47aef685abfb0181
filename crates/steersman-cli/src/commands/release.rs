//! `release`: lets the effects begin that `hold` prevents.

use crate::cli::Global;
use crate::commands::orders::{Held, Wanted};
use crate::error::{CommandError, Exit};
use crate::printer::Printer;

pub(crate) const LISTED: &str = "Let them begin again";

/// Let effects begin again that `hold` keeps.
#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    held: Held,
}

pub(crate) async fn run(
    args: ReleaseArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let wanted = Wanted::drives(args.held.release(), "released");
    let (which, own) = (&args.held.which, &args.held.act.own);
    wanted.carry_out(which, own, global, printer).await
}

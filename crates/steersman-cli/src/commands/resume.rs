//! `resume`: ends a pause, and continues the session.

use crate::cli::{Global, Own, Which};
use crate::commands::orders::Wanted;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;

pub(crate) const LISTED: &str = "End a pause, and go on";

/// End a pause, and go on.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    own: Own,
}

pub(crate) async fn run(
    args: ResumeArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let goes_on = Wanted::resumes();
    let (which, own) = (&args.which, &args.own);
    goes_on.carry_out(which, own, global, printer).await
}

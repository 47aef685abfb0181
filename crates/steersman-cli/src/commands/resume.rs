//! `resume`: ends a pause, and continues the session.

use crate::cli::{Global, Own, Which};
use crate::commands::orders::Wanted;
use crate::commands::there::There;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use steersman_client::{Given, Order};

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
    if let Some(there) = There::of(&args.which, global, &args.own).await? {
        let (orders, given) = (there.remote.client.orders(), Given::default());
        let receipt = orders.resume(there.id(), &Order::default(), &given).await?;
        return there.report(&receipt, printer);
    }
    let goes_on = Wanted::resumes();
    let (which, own) = (&args.which, &args.own);
    goes_on.carry_out(which, own, global, printer).await
}

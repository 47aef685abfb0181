//! `pause`: prevents anything new from beginning in a session, until `resume`.

use crate::cli::{Global, Own, Which};
use crate::commands::orders::Wanted;
use crate::commands::there::There;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use steersman::Act;
use steersman_client::{Given, Order};

pub(crate) const LISTED: &str = "Let nothing new begin in a session, or in all that match";

/// Let nothing new begin, until `resume`. What runs ends; what comes in is taken.
#[derive(Debug, clap::Args)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    own: Own,
}

pub(crate) async fn run(
    args: PauseArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if let Some(there) = There::of(&args.which, global, &args.own).await? {
        let (orders, given) = (there.remote.client.orders(), Given::default());
        let receipt = orders.pause(there.id(), &Order::default(), &given).await?;
        return there.ordered(&receipt, "paused", Some("resume"), printer);
    }
    let begins = Wanted::order(Act::pause(), "paused", Some("resume"));
    let (which, own) = (&args.which, &args.own);
    begins.carry_out(which, own, global, printer).await
}

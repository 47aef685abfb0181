//! `retry`: retries what failed.

use crate::cli::{Global, Own, Which};
use crate::commands::orders::Wanted;
use crate::commands::there::There;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use steersman::{Act, By};
use steersman_client::{Given, Retry};
use steersman_machine::stored::ids::Id;

pub(crate) const LISTED: &str = "Try again what failed";

/// Try again what failed: an attempt that is waited for, or the model call that ended the session.
#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    which: Which,
    /// Only this effect, by its id: `--effect 21.1`.
    #[arg(long, value_name = "ID", conflicts_with = "filter")]
    effect: Option<String>,
    #[command(flatten)]
    own: Own,
}

pub(crate) async fn run(
    args: RetryArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let effect = args.effect.as_deref().map(|text| {
        text.parse::<Id>().map_err(|()| {
            CommandError::usage(format!("`{text}` is no effect"))
                .hint("an effect is named as `steersman effects` shows it: 21.1")
        })
    });
    let effect = effect.transpose()?;
    if let Some(there) = There::of(&args.which, global, &args.own).await? {
        let (orders, given) = (there.remote.client.orders(), Given::default());
        let retry = Retry {
            role: None,
            effect: effect.map(|effect| effect.to_string()),
        };
        let receipt = orders.retry(there.id(), &retry, &given).await?;
        return there.report(&receipt, printer);
    }
    let act = Act::retry(effect, By::user());
    let wanted = Wanted::drives(act, "tried again");
    let (which, own) = (&args.which, &args.own);
    wanted.carry_out(which, own, global, printer).await
}

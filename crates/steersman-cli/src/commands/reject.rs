//! `reject`: prevents a held call from running.

use crate::cli::{Acting, Global};
use crate::commands::act::{Target, by};
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use steersman::Act;
use steersman::runtime::pending::PendingKind;

pub(crate) const LISTED: &str = "Keep a held call from running";

/// Keep a held call from running. The reason goes to the model.
#[derive(Debug, clap::Args)]
pub(crate) struct RejectArgs {
    /// The session.
    session: String,
    /// The held effect, if several are open.
    effect: Option<String>,
    /// Why; the model sees it.
    #[arg(long, value_name = "TEXT")]
    say: Option<String>,
    #[command(flatten)]
    act: Acting,
}

/// Kinds of holds that a person can reject.
const HELD: &[PendingKind] = &[
    PendingKind::Approval,
    PendingKind::Repeat,
    PendingKind::Budget,
];

pub(crate) async fn run(
    args: RejectArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let target = Target::find(&args.session, global, &args.act.own.drive).await?;
    let pending = target
        .pending(args.effect.as_deref(), HELD, "approval", &args.act)
        .await?;
    let act = Act::reject(pending.id(), args.say.as_deref(), by(&args.act));
    target.deliver(act, &args.act.own, printer).await
}

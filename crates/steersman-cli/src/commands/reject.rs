//! `reject`: prevents a held call from running.

use crate::cli::{Acting, Global};
use crate::commands::act::{Target, by};
use crate::commands::there::There;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use steersman::Act;
use steersman::runtime::pending::PendingKind;
use steersman_client::{Given, Reject};

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
    PendingKind::Question,
];

pub(crate) async fn run(
    args: RejectArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let (own, effect) = (&args.act.own, args.effect.as_deref());
    if let Some(there) = There::find(&args.session, global, own, false).await? {
        let pending = there.pending(effect, HELD, "approval").await?;
        let (id, questions) = (pending.id().to_string(), there.remote.client.questions());
        let reject = Reject {
            role: args.act.role.clone(),
            reason: args.say.clone(),
        };
        let given = Given::default();
        let receipt = questions
            .reject(there.id(), &id, &reject, &given)
            .await?
            .receipt()?;
        return there.report(&receipt, printer);
    }
    let target = Target::find(&args.session, global, &args.act.own.drive).await?;
    let pending = target.pending(effect, HELD, "approval", &args.act).await?;
    let act = Act::reject(pending.id(), args.say.as_deref(), by(&args.act));
    target.deliver(act, &args.act.own, printer).await
}

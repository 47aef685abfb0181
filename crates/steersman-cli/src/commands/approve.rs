//! `approve`: lets a held call run once, with exactly its arguments or with edited ones; a budget may get an amount.

use crate::asked;
use crate::cli::{Acting, Global};
use crate::commands::act::{Target, by};
use crate::commands::there::{There, repeats};
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, yellow};
use crate::words;
use steersman::Act;
use steersman::runtime::pending::{Pending, PendingKind};
use steersman_client::{Approve, Given};
use steersman_machine::network::ToolDef;
use steersman_machine::values::types::Parameters;

pub(crate) const LISTED: &str = "Let a held call run, with exactly its arguments";

/// Let a held call run, once, with exactly its arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct ApproveArgs {
    /// The session.
    session: String,
    /// The held effect, if several are open: by its id, or by its tool. `12.1@13` is exactly what `pending` listed.
    effect: Option<String>,
    /// Do again what was done before, or may have been: what would do that begins by this word alone.
    #[arg(long, conflicts_with = "edit")]
    repeat: bool,
    /// Run it with another argument: `--edit cents=1200`. Only those that the definition lets be changed.
    #[arg(long, value_name = "NAME=VALUE")]
    edit: Vec<String>,
    /// For a budget: allow this much more, in money or tokens as the limit counts, not only what the call may need.
    #[arg(long, value_name = "AMOUNT", conflicts_with_all = ["edit", "repeat"])]
    more: Option<String>,
    #[command(flatten)]
    act: Acting,
}

/// Kinds of holds that `approve` ends. The server of a tool that asks gets the defaults of its fields.
const GRANTED: &[PendingKind] = &[
    PendingKind::Approval,
    PendingKind::Repeat,
    PendingKind::Budget,
    PendingKind::Question,
];

pub(crate) async fn run(
    args: ApproveArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let own = &args.act.own;
    if let Some(there) = There::find(&args.session, global, own, false).await? {
        return at_server(&args, &there, printer).await;
    }
    let target = Target::find(&args.session, global, &args.act.own.drive).await?;
    let pending = target
        .pending(args.effect.as_deref(), GRANTED, "approval", &args.act)
        .await?;
    fits(&args, pending)?;
    let session = &target.inspection.info.id;
    let elsewhere = asked::elsewhere(&target.place, session, std::slice::from_ref(pending)).await?;
    for told in elsewhere.into_values().flatten() {
        printer.talk(yellow(&format!("Also: {told}.")));
    }
    let (of, by) = (pending.id(), by(&args.act));
    let network = target.inspection.network.as_deref();
    let tool = network.and_then(|network| network.tools.get(pending.tool.as_deref()?));
    let edited = match &args.more {
        Some(more) => Some(serde_json::json!({ "more": more })),
        None => edited(&args.edit, &pending.edit, tool)?,
    };
    let act = match edited {
        Some(edited) => Act::approve_edited(of, &edited, by),
        None => Act::approve(of, by),
    };
    target.deliver(act, &args.act.own, printer).await
}

/// Refuses what does not fit the question: a repetition that was not meant, or more of a budget where none is asked for.
fn fits(args: &ApproveArgs, pending: &Pending) -> Result<(), CommandError> {
    if let Some(error) = repeats(pending, &args.session, (args.repeat, !args.edit.is_empty())) {
        return Err(error);
    }
    if args.more.is_some() && pending.kind != PendingKind::Budget {
        return Err(CommandError::usage(format!(
            "`--more` is for a budget, and this is the {} {}",
            words::wait(pending.kind),
            pending.effect
        )));
    }
    Ok(())
}

/// Approves at a server, which knows the types of the arguments.
async fn at_server(
    args: &ApproveArgs,
    there: &There,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let pending = there
        .pending(args.effect.as_deref(), GRANTED, "approval")
        .await?;
    fits(args, pending)?;
    there.warn(pending, printer);
    let edited = match &args.more {
        Some(more) => Some(serde_json::json!({ "more": more })),
        None => edited(&args.edit, &pending.edit, None)?,
    };
    let approve = Approve {
        args: edited.and_then(|edited| edited.as_object().cloned()),
        role: args.act.role.clone(),
    };
    let questions = there.remote.client.questions();
    let id = pending.id().to_string();
    let given = Given::default();
    let receipt = questions
        .approve(there.id(), &id, &approve, &given)
        .await?
        .receipt()?;
    there.report(&receipt, printer)
}

fn edited(
    typed: &[String],
    allowed: &[std::sync::Arc<str>],
    tool: Option<&ToolDef>,
) -> Result<Option<serde_json::Value>, CommandError> {
    if typed.is_empty() {
        return Ok(None);
    }
    let mut args = serde_json::Map::new();
    for edit in typed {
        let Some((name, value)) = edit.split_once('=') else {
            return Err(CommandError::usage(format!("`{edit}` is not an edit"))
                .hint("NAME=VALUE: --edit cents=1200"));
        };
        if !allowed.iter().any(|a| **a == *name) {
            let allowed: Vec<&str> = allowed.iter().map(|a| &**a).collect();
            let error = CommandError::usage(format!("an approver may not change `{name}`"));
            return Err(if allowed.is_empty() {
                error.hint(
                    "the definition allows no argument to be changed: `edit:` under `approve:`",
                )
            } else {
                error.hint(format!("it may be: {}", allowed.join(", ")))
            });
        }
        let ty = tool.and_then(|tool| match &tool.parameters {
            Parameters::Fields(fields) => fields.iter().find(|(known, _)| **known == *name),
            Parameters::Schema(_) => None,
        });
        args.insert(
            name.to_owned(),
            words::value_of(value, ty.map(|(_, ty)| ty)),
        );
    }
    Ok(Some(serde_json::Value::Object(args)))
}

//! `resolve`: reports the outcome of an effect in doubt.

use crate::cli::{Acting, Global};
use crate::commands::act::{Target, by};
use crate::commands::there::There;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use crate::words;
use steersman::runtime::ledger::Record;
use steersman::runtime::pending::{PendingId, PendingKind};
use steersman::{Act, Resolution};
use steersman_client::{Given, How, Resolve};
use steersman_machine::stored::ids::Id;

pub(crate) const LISTED: &str = "Say what became of an effect that is in doubt";

/// Say what became of an effect that is in doubt.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct ResolveArgs {
    /// The session.
    session: String,
    /// The effect in doubt, if several are.
    effect: Option<String>,
    /// It happened; the tool's result as JSON or text, if it is known.
    #[arg(long, group = "what", value_name = "RESULT", num_args = 0..=1, default_missing_value = "null", require_equals = true)]
    done: Option<String>,
    /// It did not happen; it may run again.
    #[arg(long, group = "what")]
    not_performed: bool,
    /// Nobody will know; the model is told that it may have happened.
    #[arg(long, group = "what")]
    fail: bool,
    #[command(flatten)]
    act: Acting,
}

pub(crate) async fn run(
    args: ResolveArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let effect = args.effect.as_deref();
    if let Some(there) = There::find(&args.session, global, &args.act.own, false).await? {
        return at_server(&args, &there, printer).await;
    }
    let target = Target::find(&args.session, global, &args.act.own.drive).await?;
    let left = effect.and_then(|effect| effect.parse::<PendingId>().ok());
    let seen = &target.inspection;
    let left = left.filter(|of| seen.is_left_in_doubt(of.effect));
    let meant = if let Some(of) = left {
        // The effect is on a superseded branch, and the question about it is still open.
        let open = seen.ledger.effect(of.effect).and_then(Record::open_hold);
        PendingId {
            hold: of.hold.or(open.map(|(at, _)| at)),
            ..of
        }
    } else {
        let found = target
            .pending(effect, &[PendingKind::Doubt], "doubt", &args.act)
            .await;
        found.map_err(|error| joined(&args, error))?.id()
    };
    let how = match args.done {
        Some(result) => Resolution::Done {
            result: given(&result)?.to_string(),
        },
        None if args.not_performed => Resolution::NotPerformed,
        None => Resolution::Fail,
    };
    let as_role = args.act.role.as_deref();
    let as_role = as_role.map_or_else(String::new, |role| format!(" --as {}", words::quoted(role)));
    let said = matches!(how, Resolution::Done { .. });
    let act = Act::resolve(meant, how, by(&args.act));
    let delivered = target.deliver(act, &args.act.own, printer).await;
    delivered.map_err(|error| match error.exit {
        Exit::Usage if said => error.hint(format!(
            "say what the tool would have answered, as JSON: steersman resolve {} {meant}{as_role} --done='{{\"id\": \"4711\"}}'",
            args.session
        )),
        _ => error,
    })
}

/// Adds advice where the text may be meant as the result. The command does not guess.
fn joined(args: &ResolveArgs, error: CommandError) -> CommandError {
    match (&args.done, &args.effect) {
        (Some(_), Some(effect)) if effect.parse::<Id>().is_err() => error.hint(
            "an effect is named by its id or its tool; a result is joined to its option: --done=RESULT",
        ),
        _ => error,
    }
}

/// Resolves at a server.
async fn at_server(
    args: &ResolveArgs,
    there: &There,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let pending = there
        .pending(args.effect.as_deref(), &[PendingKind::Doubt], "doubt")
        .await
        .map_err(|error| joined(args, error))?;
    let result = args.done.as_deref().map(given).transpose()?;
    let resolve = Resolve {
        role: args.act.role.clone(),
        how: match &result {
            Some(_) => How::Done,
            None if args.not_performed => How::NotPerformed,
            None => How::Fail,
        },
        result,
    };
    let questions = there.remote.client.questions();
    let id = pending.id().to_string();
    let given = Given::default();
    let receipt = questions
        .resolve(there.id(), &id, &resolve, &given)
        .await?
        .receipt()?;
    there.report(&receipt, printer)
}

/// Parses the result of the tool: JSON, or else a plain text.
fn given(typed: &str) -> Result<serde_json::Value, CommandError> {
    let bare = typed.trim();
    if bare == "..." {
        return Err(
            CommandError::usage("`...` is a placeholder for the answer of the tool").hint(
                "write the answer in its place; if the answer is `...` itself, quote it: --done='\"...\"'",
            ),
        );
    }
    match words::value(typed) {
        serde_json::Value::String(_) if bare.starts_with(['{', '[']) => {
            Err(CommandError::usage(format!("`{}` is no JSON", words::line(bare, 60)))
                .hint("write an object as --done='{\"id\": \"4711\"}'; put a text that begins with a bracket in quotes"))
        }
        value => Ok(value),
    }
}

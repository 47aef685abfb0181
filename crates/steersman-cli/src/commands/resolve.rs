//! `resolve`: says what became of an effect that is in doubt.

use crate::cli::{Global, Resolve};
use crate::commands::act::{Target, role};
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use crate::words;
use steersman::runtime::inbox::{Message, Resolution};
use steersman::runtime::pending::PendingKind;
use steersman_machine::ids::Id;

pub(crate) async fn run(
    args: Resolve,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if let (Some(_), Some(effect)) = (&args.done, &args.effect)
        && effect.parse::<Id>().is_err()
    {
        return Err(
            CommandError::usage(format!("`{effect}` is no effect: those look like 21.1")).hint(
                format!(
                    "a result is joined to its option: steersman resolve {} --done={}",
                    args.session,
                    words::quoted(effect)
                ),
            ),
        );
    }
    let target = Target::find(&args.session, global, &args.act.own.drive).await?;
    let pending = target.pending(
        args.effect.as_deref(),
        &[PendingKind::Doubt],
        "doubt",
        &args.act,
    )?;
    let how = match args.done {
        Some(result) => Resolution::Done {
            result: words::value(&result).to_string(),
        },
        None if args.not_performed => Resolution::NotPerformed,
        None => Resolution::Fail,
    };
    let message = Message::Resolve {
        effect: pending.effect,
        by: role(&args.act),
        how,
    };
    let said = matches!(
        message,
        Message::Resolve {
            how: Resolution::Done { .. },
            ..
        }
    );
    let delivered = target.deliver(message, None, &args.act.own, printer).await;
    delivered.map_err(|error| match error.exit {
        Exit::Usage if said => error.hint(format!(
            "say what the tool would have answered, as JSON: steersman resolve {} --done='{{\"id\": \"4711\"}}'",
            args.session
        )),
        _ => error,
    })
}

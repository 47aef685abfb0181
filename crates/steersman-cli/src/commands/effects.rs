//! `effects`: lists the effects of a session on the world, also those that may have happened.

use crate::address::Address;
use crate::asked;
use crate::cli::{Global, Look};
use crate::commands::log;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, dim, green, red};
use crate::source::Source;
use crate::words::{arguments, table};
use steersman::views::effects::Sum;
use steersman::views::screen::{Ask, EffectsScreen};
use steersman_machine::stored::ids::Id;

pub(crate) const LISTED: &str = "Show what a session did to the world, or may have done";

/// Show what a session did to the world, or may have done.
#[derive(Debug, clap::Args)]
pub(crate) struct EffectsArgs {
    #[command(flatten)]
    look: Look,
}

pub(crate) async fn run(
    args: EffectsArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let source = Source::to_look(global).await?;
    let address = Address::parse(&args.look.address)?;
    let shown: EffectsScreen = source.screen(&address, Ask::default()).await?;
    let effects = &shown.effects;
    if printer.is_json() {
        for effect in effects {
            printer.json(&effect.document)?;
        }
        return Ok(Exit::Answered);
    }
    if effects.is_empty() {
        let what = if shown.is_branch { "branch" } else { "session" };
        printer.talk(format!("This {what} has changed nothing outside."));
        return Ok(Exit::Answered);
    }
    let rows: Vec<Vec<String>> = effects
        .iter()
        .map(|effect| {
            vec![
                effect.id.to_string(),
                effect.class.clone(),
                effect.status.clone(),
                effect
                    .attempts
                    .map_or_else(String::new, |attempts| attempts.to_string()),
                format!("{}({})", effect.tool, arguments(&effect.args)),
            ]
        })
        .collect();
    for (i, row) in table(&["EFFECT", "CLASS", "STATUS", "ATTEMPTS", "WHAT"], &rows)
        .into_iter()
        .enumerate()
    {
        printer.data(match i {
            0 => dim(&row),
            i if effects[i - 1].is_remarkable => red(&row),
            _ => row,
        })?;
    }
    for (tool, sum) in &shown.sums {
        printer.talk(summed(&format!("{tool}: "), *sum));
    }
    if let Some(doubt) = effects.iter().find(|effect| effect.is_in_doubt) {
        printer.next(settles(&shown, doubt.id), "or --not-performed, or --fail");
        return Ok(Exit::Doubt);
    }
    if let Some(left) = effects.iter().find(|effect| effect.is_left) {
        printer.next(
            settles(&shown, left.id),
            "or --not-performed, or --fail; no branch waits for it any more",
        );
    }
    printer.next(format!("steersman log {}", shown.name), log::SHOWS);
    Ok(Exit::Answered)
}

/// Returns the command that resolves an effect in doubt.
fn settles(shown: &EffectsScreen, effect: Id) -> String {
    let mut asked = shown.doubts.iter();
    let asked = asked.find(|doubt| doubt.effect == effect);
    let resolve = asked.and_then(|p| asked::commands(&shown.short, p).into_iter().next());
    resolve.unwrap_or_else(|| {
        format!(
            "steersman resolve {} {effect} --done='{{...}}'",
            shown.short
        )
    })
}

/// Renders the sums of a tool.
pub(crate) fn summed(before: &str, sum: Sum) -> String {
    let Sum {
        intended,
        done,
        repeated,
    } = sum;
    let told = format!("{before}{intended} intended, {done} done, {repeated} repeated");
    if repeated == 0 {
        green(&told)
    } else {
        red(&told)
    }
}

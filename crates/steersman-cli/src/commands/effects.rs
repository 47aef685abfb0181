//! `effects`: lists the effects of a session on the world, also those that may have happened.

use crate::asked;
use crate::cli::{Global, Look};
use crate::commands::log;
use crate::error::{CommandError, Exit};
use crate::place::{Place, Sight};
use crate::printer::{Printer, dim, green, red};
use crate::words::{arguments, table};
use steersman::runtime::pending::PendingKind;
use steersman::views::effects::{Effect, Effects, Sum};
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
    let place = Place::to_look(global).await?;
    let sight = place.look(&args.look.address).await?;
    let only = sight.named().map(|branch| branch.id);
    let mut effects = Effects::of(&sight.log.lines, &sight.log.texts, None);
    effects.driven(sight.inspection.info.owner.is_some());
    for pending in sight
        .inspection
        .pending
        .iter()
        .filter(|p| p.kind == PendingKind::Hold)
    {
        effects.held(pending.effect);
    }
    effects.under(sight.inspection.network.as_deref());
    let shown: Vec<_> = effects
        .all()
        .filter(|d| only.is_none_or(|branch| d.branch == branch))
        .collect();
    if printer.is_json() {
        for effect in shown {
            printer.view(effect)?;
        }
        return Ok(Exit::Answered);
    }
    if shown.is_empty() {
        let what = only.map_or("session", |_| "branch");
        printer.talk(format!("This {what} has changed nothing outside."));
        return Ok(Exit::Answered);
    }
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|d| {
            vec![
                d.id.to_string(),
                d.class.word().to_owned(),
                status(d),
                // Attempts of harmless tools are not counted, except those of probes.
                if d.attempts > 0 || d.counts() {
                    d.attempts.to_string()
                } else {
                    String::new()
                },
                format!("{}({})", d.tool, arguments(&d.args)),
            ]
        })
        .collect();
    for (i, row) in table(&["EFFECT", "CLASS", "STATUS", "ATTEMPTS", "WHAT"], &rows)
        .into_iter()
        .enumerate()
    {
        printer.data(match i {
            0 => dim(&row),
            i if shown[i - 1].is_open() || shown[i - 1].repeats.is_some() => red(&row),
            _ => row,
        })?;
    }
    for (tool, sum) in Effects::sums(shown.iter().copied()) {
        printer.talk(summed(&format!("{tool}: "), sum));
    }
    let mut doubts = shown.iter().filter(|d| d.is_in_doubt());
    if let Some(doubt) = doubts.next() {
        printer.next(settles(&sight, doubt.id), "or --not-performed, or --fail");
        return Ok(Exit::Doubt);
    }
    let seen = &sight.inspection;
    if let Some(left) = shown.iter().find(|d| seen.is_left_in_doubt(d.id)) {
        printer.next(
            settles(&sight, left.id),
            "or --not-performed, or --fail; no branch waits for it any more",
        );
    }
    printer.next(format!("steersman log {}", sight.name()), log::SHOWS);
    Ok(Exit::Answered)
}

/// Returns the command that resolves an effect in doubt.
fn settles(sight: &Sight, effect: Id) -> String {
    let mut asked = sight.inspection.pending.iter();
    let asked = asked.find(|p| p.kind == PendingKind::Doubt && p.effect == effect);
    let resolve = asked.and_then(|p| asked::commands(&sight.short, p).into_iter().next());
    resolve.unwrap_or_else(|| {
        format!(
            "steersman resolve {} {effect} --done='{{...}}'",
            sight.short
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

/// Describes the status of an effect. If it repeats an equal effect, names that effect and the person who allowed the repetition.
fn status(effect: &Effect) -> String {
    let words = [Some(effect.word()), effect.course(), effect.repetition()];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

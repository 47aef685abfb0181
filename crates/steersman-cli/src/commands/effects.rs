//! `effects`: lists the effects of a session on the world, or possible effects.

use crate::asked;
use crate::cli::{Global, Look};
use crate::deeds::{Deed, Deeds, Standing};
use crate::error::{CommandError, Exit};
use crate::place::{Place, Sight};
use crate::printer::{Printer, dim, green, red};
use crate::words::{arguments, table};
use steersman::runtime::pending::PendingKind;
use steersman_machine::commit::Why;
use steersman_machine::ids::Id;
use steersman_machine::network::Network;

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
    let mut deeds = Deeds::of(&sight.log.lines, &sight.log.texts, None);
    deeds.driven(sight.inspection.info.owner.is_some());
    for pending in sight
        .inspection
        .pending
        .iter()
        .filter(|p| p.kind == PendingKind::Hold)
    {
        deeds.held(pending.effect);
    }
    let shown: Vec<_> = deeds
        .all()
        .filter(|d| only.is_none_or(|branch| d.branch == branch))
        .collect();
    let network = sight.inspection.network.as_deref();
    if printer.is_json() {
        for deed in shown {
            printer.json(&deed.json(network))?;
        }
        return Ok(Exit::Answered);
    }
    if shown.is_empty() {
        printer.talk("It had no effects outside.");
        return Ok(Exit::Answered);
    }
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|d| {
            vec![
                d.id.to_string(),
                d.class.word().to_owned(),
                stands(d, network),
                // Attempts of harmless tools are not counted, except those of probes.
                if d.attempts > 0 || d.counts() {
                    d.attempts.to_string()
                } else {
                    "-".into()
                },
                format!("{}({})", d.tool, arguments(&d.args)),
            ]
        })
        .collect();
    for (i, row) in table(&["EFFECT", "CLASS", "STANDS", "ATTEMPTS", "WHAT"], &rows)
        .into_iter()
        .enumerate()
    {
        printer.data(match i {
            0 => dim(&row),
            i if matches!(
                shown[i - 1].standing,
                Standing::Doubt | Standing::Unknown | Standing::Held(_) | Standing::Barred
            ) || shown[i - 1].repeats.is_some() =>
            {
                red(&row)
            }
            _ => row,
        })?;
    }
    for (tool, (intended, done, repeated)) in Deeds::sums(shown.iter().copied()) {
        let sum = format!("{tool}: {intended} intended, {done} done, {repeated} repeated");
        printer.talk(if repeated == 0 {
            green(&sum)
        } else {
            red(&sum)
        });
    }
    let mut doubts = shown
        .iter()
        .filter(|d| matches!(d.standing, Standing::Doubt | Standing::Held(Why::Doubt)));
    if let Some(doubt) = doubts.next() {
        printer.next(settles(&sight, doubt.id), "or --not-performed, or --fail");
        return Ok(Exit::Doubt);
    }
    let seen = &sight.inspection;
    if let Some(left) = shown.iter().find(|d| seen.is_left_in_doubt(d.id)) {
        printer.next(
            settles(&sight, left.id),
            "or --not-performed, or --fail: whether it happened in what is left behind",
        );
    }
    printer.next(
        format!("steersman log {}", sight.name()),
        "each line with its ledger",
    );
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

/// Describes the status of an effect, and the equal effect that it repeats, with who allowed the repetition.
fn stands(deed: &Deed, network: Option<&Network>) -> String {
    let word = deed.word();
    match (&deed.repeats, deed.allowed(network)) {
        (None, _) => word,
        (Some(of), Some(by)) => format!("{word}, repeats {of} ({by})"),
        (Some(of), None) => format!("{word}, repeats {of} (nobody allowed it)"),
    }
}

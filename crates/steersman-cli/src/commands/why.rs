//! `why`: explains from the log why an agent acted.

use crate::address::Address;
use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, bold, cyan, dim, typed};
use crate::source::Source;
use crate::tell::remedy::advised;
use crate::words::{fold, width};
use serde_json::json;
use steersman::views::screen::{Ask, Other, WhyScreen};
use steersman::views::why::Step;
use steersman_machine::stored::ids::Id;

pub(crate) const LISTED: &str = "Say why an agent acted, from what was recorded";

/// Say why an agent acted, from what was recorded. No model is asked, and nothing is evaluated again.
#[derive(Debug, clap::Args)]
pub(crate) struct WhyArgs {
    /// SESSION[:BRANCH][@LINE]: as in `show`. With a line: its last step; without: the newest step.
    #[arg(default_value = "last")]
    address: String,
    /// A call, an effect or an agent by its id `21.1`; or an agent or a tool by its name: its newest step.
    id: Option<String>,
}

/// Widths of the columns for the line, the actor, and the word before a fact.
const NUMBER: usize = 6;
const WHO: usize = 13;
const WORD: usize = 10;
/// Maximum number of other acts of a line that are listed.
const OTHERS: usize = 5;

pub(crate) async fn run(
    args: WhyArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let address = Address::parse(&args.address)?;
    let source = Source::to_look(global).await?;
    let ask = Ask {
        of: args.id.clone(),
        ..Ask::default()
    };
    let found = source.screen::<WhyScreen>(&address, ask).await;
    let shown = found.map_err(|error| match args.address.parse::<Id>() {
        Ok(id) if error.exit == Exit::Usage => {
            CommandError::usage(format!("`{id}` is an id; name its session, too"))
                .hint(format!("steersman why last {id}"))
        }
        _ => error,
    })?;
    if printer.is_json() {
        printer.json(&json!({
            "session": shown.session,
            "branch": shown.branch,
            "steps": shown.steps,
            "others": shown.others,
        }))?;
        return Ok(Exit::Answered);
    }
    for (k, step) in shown.steps.iter().enumerate() {
        for row in rows(step, k > 0) {
            printer.data(row)?;
        }
    }
    if let Some(stop) = &shown.stop {
        let (sentence, commands) = advised(stop, &shown.name);
        printer.talk("");
        printer.talk(sentence);
        for command in commands {
            printer.talk(typed(&command));
        }
    }
    tell(&shown, printer);
    Ok(Exit::Answered)
}

/// Prints commands for the other acts of the line, and for the context of a model call.
fn tell(shown: &WhyScreen, printer: &Printer) {
    let name = &shown.name;
    printer.talk("");
    for Other { id, what } in shown.others.iter().rev().take(OTHERS) {
        match id {
            Some(id) => printer.talk(format!(
                "{}   {}",
                typed(&format!("steersman why {name} {id}")),
                dim(what)
            )),
            None => printer.talk(dim(&format!("At that line, too: {what}"))),
        }
    }
    if let Some(line) = shown.context {
        let command = format!("steersman context {name}@{line}");
        printer.talk(format!(
            "{}   {}",
            typed(&command),
            dim("what the model saw")
        ));
    }
    printer.talk(format!(
        "{}   {}",
        typed(&format!("steersman show {name}")),
        dim("all of it")
    ));
}

fn rows(step: &Step, because: bool) -> Vec<String> {
    let mut rows = Vec::new();
    let arrow = if because { "<-" } else { "  " };
    let number = format!("{arrow} {:<NUMBER$}", format!("@{}", step.line));
    let who = format!("{:<WHO$} ", crate::words::line(&step.who, WHO));
    let left = number.len() + WHO + 1;
    let id = step
        .id
        .as_ref()
        .map_or_else(String::new, |id| format!("  {id}"));
    let width = width();
    let text = fold(&step.text, width.saturating_sub(left + 8));
    for (k, part) in text.iter().enumerate() {
        let part = if because { part.clone() } else { bold(part) };
        rows.push(match k {
            0 => format!("{}{}{part}{}", dim(&number), cyan(&who), dim(&id)),
            _ => format!("{}{part}", " ".repeat(left)),
        });
    }
    for fact in &step.facts {
        for (k, part) in fold(&fact.text, width.saturating_sub(left + WORD))
            .iter()
            .enumerate()
        {
            let word = if k == 0 { fact.title() } else { "" };
            rows.push(format!(
                "{}{}{part}",
                " ".repeat(left),
                dim(&format!("{word:<WORD$}"))
            ));
        }
    }
    rows
}

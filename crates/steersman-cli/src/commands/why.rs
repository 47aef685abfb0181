//! `why`: explains from the log why an agent acted.

use crate::address::{Address, LineName};
use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::place::{self, Place, branch_name, typed_as};
use crate::printer::{Printer, bold, cyan, dim, typed};
use crate::tell::remedy::remedy;
use crate::words::{fold, width};
use serde_json::json;
use std::sync::Arc;
use steersman::views::cause::Reason;
use steersman::views::context;
use steersman::views::log::Log;
use steersman::views::why::{Act, Past, Step};
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Id, Line};

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
    let place = Place::to_look(global).await?;
    let found = place.inspect(&address).await;
    let (inspection, at) = found.map_err(|error| match args.address.parse::<Id>() {
        Ok(id) if error.exit == Exit::Usage => {
            CommandError::usage(format!("`{id}` is an id; name its session, too"))
                .hint(format!("steersman why last {id}"))
        }
        _ => error,
    })?;
    let named = address.branch.as_ref().map(|_| &inspection.branches[at]);
    let short = typed_as(&place.short(&inspection.info.id).await?, named);
    let reader = place.reader(&inspection.info.id);
    let log = Log::read(&reader).await?;
    let branch = &inspection.branches[at];
    let path = log.history(branch, &inspection.branches);
    let line = place::line(address.line.as_ref(), &path)?;
    let path: Vec<&Arc<LogLine>> = match line {
        Some(line) => path.into_iter().filter(|l| l.n <= line).collect(),
        None => path,
    };
    let past = Past::new(&log, log.bound(&reader).await?);
    let (act, others) = match &args.id {
        Some(id) => (by_id(&past, id, &path, &short)?, Vec::new()),
        None => at_line(&past, &path, line, address.line.as_ref(), &short)?,
    };
    let steps = past.chain(act);
    if printer.is_json() {
        let others = others.iter().map(|act| {
            let (id, what) = past.short(*act);
            json!({ "id": id.map(|id| id.to_string()), "what": what })
        });
        printer.json(&json!({
            "session": &*inspection.info.id,
            "branch": branch_name(branch),
            "steps": steps,
            "others": others.collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::Answered);
    }
    for (k, step) in steps.iter().enumerate() {
        for row in rows(step, k > 0) {
            printer.data(row)?;
        }
    }
    if args.id.is_none() && line.is_none() {
        let (settled, first) = if branch.id == inspection.current {
            (inspection.settled.clone(), Reason::of(&inspection))
        } else {
            (inspection.settled_on(branch), None)
        };
        if let Some((sentence, commands)) = remedy(&settled, first.as_ref(), &short) {
            printer.talk("");
            printer.talk(sentence);
            for command in commands {
                printer.talk(typed(&command));
            }
        }
    }
    let seen = steps
        .iter()
        .find(|step| matches!(step.kind, "answer" | "route"))
        .map(|step| Line(step.line))
        .filter(|line| context::is_known(&path, Some(*line)));
    tell(&past, &others, &short, seen, printer);
    Ok(Exit::Answered)
}

/// Prints commands for the other acts of the line, and for the context of a model call at the line `seen`.
fn tell(past: &Past<'_>, others: &[Act], short: &str, seen: Option<Line>, printer: &Printer) {
    printer.talk("");
    for act in others.iter().rev().take(OTHERS) {
        let (id, what) = past.short(*act);
        match id {
            Some(id) => printer.talk(format!(
                "{}   {}",
                typed(&format!("steersman why {short} {id}")),
                dim(&what)
            )),
            None => printer.talk(dim(&format!("At that line, too: {what}"))),
        }
    }
    if let Some(line) = seen {
        let command = format!("steersman context {short}@{line}");
        printer.talk(format!(
            "{}   {}",
            typed(&command),
            dim("what the model saw")
        ));
    }
    printer.talk(format!(
        "{}   {}",
        typed(&format!("steersman show {short}")),
        dim("all of it")
    ));
}

fn by_id(
    past: &Past<'_>,
    typed: &str,
    path: &[&Arc<LogLine>],
    short: &str,
) -> Result<Act, CommandError> {
    let hint = format!(
        "`steersman effects {short}` and `steersman log {short}` list ids; a line is {short}@12"
    );
    let Ok(id) = typed.parse::<Id>() else {
        let what =
            format!("no agent and no tool `{typed}` did anything on this branch up to there");
        let found = past.newest_of(typed, path);
        return found.ok_or_else(|| CommandError::usage(what).hint(&hint));
    };
    if let Some(act) = past.call(id).map(Act::Push).or_else(|| past.of_effect(id)) {
        return Ok(act);
    }
    if past.knows_agent(id) {
        return past.newest(id, path).ok_or_else(|| {
            CommandError::usage(format!("agent {id} did nothing on this branch up to there"))
                .hint(format!("what was done: steersman show {short}"))
        });
    }
    Err(CommandError::usage(format!("nothing in session {short} has the id {id}")).hint(hint))
}

/// Returns the act of a line (its last, or the call that the address names) and its other acts. If no line is named, this is
/// the newest line with an act.
fn at_line(
    past: &Past<'_>,
    path: &[&Arc<LogLine>],
    line: Option<Line>,
    named: Option<&LineName>,
    short: &str,
) -> Result<(Act, Vec<Act>), CommandError> {
    let found = match line {
        Some(line) => path.iter().find(|l| l.n == line).map(|l| past.acts(l)),
        None => path
            .iter()
            .rev()
            .map(|l| past.acts(l))
            .find(|acts| !acts.is_empty()),
    };
    let mut acts = found.unwrap_or_default();
    if let Some(LineName::First(tool)) = named
        && let Some(at) = acts.iter().position(|act| past.calls_for(*act, tool))
    {
        let act = acts.remove(at);
        acts.push(act);
    }
    let Some(act) = acts.pop() else {
        let what = match line {
            Some(line) => format!("nobody acted at @{line}"),
            None => "nobody acted in this session yet".to_owned(),
        };
        return Err(
            CommandError::usage(what).hint(format!("what the lines hold: steersman log {short}"))
        );
    };
    // Acts without an id are part of the chain already.
    acts.retain(|other| past.short(*other).0.is_some());
    Ok((act, acts))
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

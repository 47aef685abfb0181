//! `pending`: lists what waits for a person, an event or a time, in all sessions.

use crate::asked;
use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, bold, dim, typed, yellow};
use crate::source::Source;
use crate::words::{ago, arguments, count, due, left as left_until, list, people, wait};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use steersman::runtime::pending::{Pending as Waits, PendingKind};
use steersman::views::filter::Filter;
pub(crate) use steersman::views::screen::listed;
use steersman::views::screen::{LeftRow, ListAsk, Mail, PendingScreen, WaitRow};

pub(crate) const LISTED: &str = "Show what waits for a person, an event or time, in all sessions";

/// Show what waits for a person, an event or time, in all sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct PendingArgs {
    /// Only those that match, as in `sessions`; also `for = ROLE` and `kind = approval`.
    #[arg(long = "where", value_name = "FILTER")]
    filter: Option<String>,
    /// All of them, not the first twenty.
    #[arg(long)]
    all: bool,
}

/// Reason why a message stays in the inbox of a session.
const UNDRIVEN: &str = "no process drives the session";
/// Describes what `run --all` does.
pub(crate) const DRIVES: &str = "drives all that have something to do, until Ctrl-C";

/// Number of rows that are shown without `--all`.
const SHOWN: usize = 20;

pub(crate) async fn run(
    args: PendingArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    Filter::parse(args.filter.as_deref())?;
    let Some(source) = Source::existing(global).await? else {
        printer.talk("Nothing waits.");
        return Ok(Exit::Answered);
    };
    let ask = ListAsk {
        filter: args.filter.clone(),
        ..ListAsk::default()
    };
    let mut screen: PendingScreen = source.list(&ask).await?;
    let broken = broken(&mut screen, &source.shown());
    let nothing = screen.waits.is_empty()
        && screen.boxed.is_empty()
        && screen.dead.is_empty()
        && screen.left.is_empty();
    if printer.is_json() {
        documents(&screen, printer)?;
    } else if !nothing {
        tell(&screen, args.all, printer)?;
    } else if broken.is_empty() {
        printer.talk("Nothing waits.");
    }
    let all_broken = broken.into_iter().reduce(|mut first, other| {
        first.message = format!("{}\n       {}", first.message, other.message);
        first
    });
    all_broken.map_or(Ok(Exit::Answered), Err)
}

/// Prints each row as one document.
fn documents(screen: &PendingScreen, printer: &Printer) -> Result<(), CommandError> {
    for row in &screen.waits {
        printer.json(&row.document)?;
    }
    for event in &screen.boxed {
        printer.json(&json!({
            "kind": "boxed",
            "network": &*event.network,
            "event": &*event.event,
            "id": &*event.id,
            "since": asked::time(event.at),
            "until": asked::time(event.until),
        }))?;
    }
    for row in &screen.left {
        printer.json(&left_json(row))?;
    }
    for row in &screen.dead {
        printer.json(&json!({
            "kind": "interrupted",
            "session": row.session,
            "network": &*row.network,
            "since": asked::time(row.since),
        }))?;
    }
    Ok(())
}

/// Returns the damage to the lists by which sessions are found, since the command may then miss something that waits, and the sessions
/// that cannot be read.
fn broken(screen: &mut PendingScreen, place: &str) -> Vec<CommandError> {
    let damage = screen.damage.take().map(|(places, first)| {
        let places = count(places as u64, "place");
        let why = format!(
            "{place}: the lists by which sessions are found are damaged in {places} ({first}), so something that waits may be missing here"
        );
        CommandError::store(why).hint("`steersman fsck` lists all damage")
    });
    let sessions = screen.broken.drain(..).map(|broken| match broken.error {
        Some(error) => error.into(),
        None => CommandError::store(broken.why),
    });
    damage.into_iter().chain(sessions).collect()
}

fn left_json(row: &LeftRow) -> Json {
    let mut document = json!({
        "kind": "inbox",
        "session": row.session,
        "network": &*row.network,
        "what": match &row.mail {
            Mail::Event(event, ..) => format!("event {event}"),
            Mail::Said(_) | Mail::Message(_) => "message".to_owned(),
            Mail::Unread { is_newer: false, .. } => "damaged".to_owned(),
            Mail::Unread { is_newer: true, .. } => "newer".to_owned(),
        },
    });
    if let Mail::Event(_, id, _) = &row.mail {
        document["id"] = (&**id).into();
    }
    if let Mail::Event(_, _, at) | Mail::Said(at) | Mail::Message(at) = &row.mail {
        document["since"] = asked::time(*at);
    }
    if let Mail::Unread { message, why, .. } = &row.mail {
        document["message"] = (&**message).into();
        document["why"] = why.as_str().into();
    }
    document
}

fn left_told(row: &LeftRow, now: i64) -> String {
    let session = &row.short;
    let came = |at: &i64| ago(now, *at);
    match &row.mail {
        Mail::Event(event, id, at) if row.status != "new" => {
            format!(
                "event {event} {id} for session {session} ({}) waits in its inbox until the session waits for it",
                came(at)
            )
        }
        Mail::Event(event, id, at) => {
            format!(
                "event {event} {id} for session {session} ({}) waits: {UNDRIVEN}",
                came(at)
            )
        }
        Mail::Said(at) | Mail::Message(at) => {
            format!(
                "message for session {session} ({}) waits: {UNDRIVEN}",
                came(at)
            )
        }
        Mail::Unread { why, .. } => yellow(&format!("session {session}: {why}")),
    }
}

fn tell(screen: &PendingScreen, show_all: bool, printer: &Printer) -> Result<(), CommandError> {
    let PendingScreen {
        now,
        waits: found,
        boxed,
        left,
        dead,
        ..
    } = screen;
    let rows: Vec<Vec<String>> = found
        .iter()
        .take(if show_all { found.len() } else { SHOWN })
        .map(|row| {
            let pending = &row.pending;
            vec![
                due(*now, pending.due.map(|d| d.0)),
                row.short.clone(),
                pending.effect.to_string(),
                match &pending.roles[..] {
                    [] => "-".to_owned(),
                    roles => people(roles),
                },
                what(pending),
                row.labels.join(" "),
            ]
        })
        .collect();
    let heading = ["DUE", "SESSION", "EFFECT", "FOR", "WHAT", "LABELS"];
    if !rows.is_empty() {
        for (i, row) in list(&heading, &rows).into_iter().enumerate() {
            printer.data(if i == 0 { dim(&row) } else { row })?;
        }
    }
    for event in boxed {
        // The stored id begins with the network and the event, which the row shows already.
        let known = format!("{} event {} ", event.network, event.event);
        let id = event.id.strip_prefix(&known).unwrap_or(&event.id);
        printer.data(format!(
            "event {} {id} for {} ({}): no session waits for it; it is dropped in {}",
            event.event,
            event.network,
            ago(*now, event.at),
            left_until(*now, event.until)
        ))?;
    }
    for row in dead {
        printer.data(format!(
            "session {} was at work when its process died",
            row.short
        ))?;
    }
    for row in left {
        printer.data(left_told(row, *now))?;
    }
    talk(printer, found, rows.len());
    let mut next = Vec::new();
    let message = |row: &&LeftRow| matches!(row.mail, Mail::Said(_) | Mail::Message(_));
    if let Some(row) = left.iter().find(message) {
        let waits = found.iter().filter(|other| other.session == row.session);
        let waits: Vec<&Waits> = waits.map(|waits| &waits.pending).collect();
        let said = matches!(row.mail, Mail::Said(_));
        next.extend(asked::advice(&row.short, &row.status, &waits, said));
    }
    if let Some(row) = dead.first() {
        next.push((
            format!("steersman run --resume {}", row.short),
            "continues it, and shows what may have happened",
        ));
    }
    if !boxed.is_empty() || dead.len() > 1 {
        next.push(("steersman run --all".to_owned(), DRIVES));
    }
    let said: Vec<String> = next.iter().map(|(command, _)| command.clone()).collect();
    for (command, why) in next {
        printer.next(command, why);
    }
    if let Some(first) = found.first() {
        let mut commands = asked::commands(&first.short, &first.pending);
        commands.retain(|command| !said.contains(command));
        if commands.is_empty() {
            return Ok(());
        }
        printer.talk(format!(
            "Next:  {}",
            commands
                .iter()
                .map(|c| typed(c))
                .collect::<Vec<_>>()
                .join("   ")
        ));
    }
    Ok(())
}

fn talk(printer: &Printer, found: &[WaitRow], shown: usize) {
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for row in found {
        *kinds.entry(wait(row.pending.kind)).or_default() += 1;
    }
    let held = wait(PendingKind::Hold);
    let sums = kinds.iter().map(|(kind, n)| match *kind {
        kind if kind == held => format!("{} {held}", count(*n, "call")),
        kind => count(*n, kind),
    });
    let sums: Vec<String> = sums.collect();
    if !sums.is_empty() {
        printer.talk(format!("{}.", sums.join(", ")));
    }
    if found.len() > shown {
        printer.talk(format!(
            "{} more: {}, or {}",
            found.len() - shown,
            bold("--all"),
            bold("--where \"for = ROLE\"")
        ));
    }
}

fn what(pending: &Waits) -> String {
    let mut kind = wait(pending.kind).to_owned();
    if pending.kind == PendingKind::Hold {
        kind.push(':');
    }
    if pending.repeats.is_some() && pending.kind != PendingKind::Repeat {
        kind += ", again:";
    }
    let left = if pending.left {
        ", left behind: no agent waits for it"
    } else {
        ""
    };
    match (&pending.tool, &pending.args) {
        (Some(tool), Some(args)) => format!("{kind} {tool}({}){left}", arguments(args)),
        // A question of the engine itself has no tool; its text names the agent.
        (Some(own), None) if own.contains('/') => format!("{kind} {}", pending.text),
        (Some(tool), None) => format!("{kind} {tool}"),
        (None, _) => match &pending.place {
            Some(place) => format!("{kind} {place}"),
            None => format!("{kind} {}", pending.text),
        },
    }
}

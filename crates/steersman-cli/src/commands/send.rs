//! `send`: sends a message to a session, or an event to a session or a network.

use crate::attach;
use crate::cli::{Acting, Global};
use crate::commands::act::{Reached, Target, is_plain, noted};
use crate::commands::edit::{entries, values};
use crate::commands::run::standard_input;
use crate::commands::there::{There, files, on_a_store};
use crate::commands::{check, pending};
use crate::error::{CommandError, Exit};
use crate::place::Place;
use crate::play::follow::follow;
use crate::play::there::{Followed, follow as follow_there, reported};
use crate::printer::Printer;
use serde_json::{Value as Json, json};
use std::path::Path;
use steersman::runtime::pending::PendingKind;
use steersman::runtime::store::{SessionQuery, bounds};
use steersman::{Act, By, Sent};
use steersman_client::{Given, Post, Say, Stands, Where};

pub(crate) const LISTED: &str = "Send a message to a session, or an event to a network";

/// Send a message to a session, or an event to a network.
#[derive(Debug, clap::Args)]
pub(crate) struct SendArgs {
    /// The session, or one of its branches: SESSION:BRANCH; with --event a session, or a definition: a folder or a file.
    to: String,
    /// The message; `-` reads it from standard input. With --event the payload, a JSON object.
    text: Option<String>,
    /// Send an event of this name.
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// Cancel what is open and say this first, before messages that wait.
    #[arg(long, conflicts_with = "event")]
    interrupt: bool,
    /// Set an entry of state with the message; `NAME=none` unsets it. An entry whose type says `expires: answer` ends with the answer. May be given more than once.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with_all = ["event", "interrupt"])]
    state: Vec<String>,
    /// Attach a file under a name, or under its own; with --event it is the content of a field that is an artifact.
    #[arg(long, value_name = "[NAME=]PATH")]
    file: Vec<String>,
    /// An id; the same id is accepted once [default: a random one, of an event the one that its definition says].
    #[arg(long, value_parser = message_id)]
    id: Option<String>,
    #[command(flatten)]
    act: Acting,
}

pub(crate) async fn run(
    args: SendArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let text = match args.text.as_deref() {
        Some("-") => Some(standard_input()?.trim_end().to_owned()),
        other => other.map(str::to_owned),
    };
    if let Some(event) = &args.event {
        return send_event(
            event,
            text.as_deref().unwrap_or("{}"),
            &args,
            global,
            printer,
        )
        .await;
    }
    let contents = attach::to_message(&args.file)?;
    let text = text.unwrap_or_default();
    if text.trim().is_empty() && contents.is_empty() {
        return Err(CommandError::usage("there is nothing to send")
            .hint("steersman send SESSION \"...\", or - to read it from standard input"));
    }
    if let Some(there) = There::find(&args.to, global, &args.act.own, true).await? {
        if !args.state.is_empty() {
            return Err(on_a_store("--state"));
        }
        let say = Say {
            role: args.act.role.clone(),
            branch: there.branch.clone(),
            files: files(&contents),
            interrupt: args.interrupt.then_some(true),
            text: Some(text),
            to: None,
        };
        return said(&args, &there, &say, printer).await;
    }
    let target = Target::of_branch(&args.to, global, &args.act.own.drive).await?;
    let branch = target.branch().map(|branch| branch.id);
    let by = args.act.role.as_deref().map(By::role);
    let mut act = if args.interrupt {
        Act::interrupt(&text, by, branch)
    } else {
        Act::say(&text, by, branch)
    };
    let state = entries(&args.state)?;
    let state = values(&state, target.inspection.network.as_deref());
    if !state.is_empty() {
        act = act.with_state(state.iter().map(|(name, value)| (name.as_str(), value)));
    }
    if let Some(id) = &args.id {
        act = act.with_id(id);
    }
    let act = act.with_files(&contents);
    let reached = target.reach(act, &args.act.own, printer).await?;
    if let Reached::Elsewhere(line) = reached
        && !printer.is_json()
    {
        let (place, id) = (&target.place, &target.inspection.info.id);
        let rested = follow(place, printer, id, branch, line).await?;
        return match rested {
            Some(rested) => rested.report(place, printer, id).await,
            None => Ok(Exit::Answered),
        };
    }
    let waits = matches!(reached, Reached::Waits(_));
    let exit = target.report(reached, printer).await?;
    if waits && !args.interrupt && contents.is_empty() {
        interrupts(&target.name().await?, printer);
    }
    Ok(exit)
}

/// Proposes to interrupt a session that leaves a message waiting.
fn interrupts(name: &str, printer: &Printer) {
    printer.next(
        format!("steersman send {name} --interrupt \"...\""),
        "is heard at once, and cancels what is open",
    );
}

/// Says something to a session of a server, and follows what it does.
async fn said(
    args: &SendArgs,
    there: &There,
    say: &Say,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let client = &there.remote.client;
    let given = Given {
        key: args.id.clone(),
        ..Given::default()
    };
    let receipt = client
        .sessions()
        .say(there.id(), say, &given)
        .await?
        .receipt()?;
    there.taken_by(printer);
    if let Some(line) = receipt.line.filter(|_| !printer.is_json()) {
        let followed = Followed {
            session: there.id(),
            branch: there.branch.as_deref(),
            after: line.saturating_sub(1),
            least: line.saturating_sub(1),
            begins: false,
            whole: false,
        };
        return match follow_there(&there.remote, printer, &followed).await? {
            Some(screen) => reported(printer, screen),
            None => Ok(Exit::Answered),
        };
    }
    let exit = there.noted(&receipt, printer)?;
    if receipt.fate == Stands::Waits && !args.interrupt && say.files.is_none() {
        interrupts(&there.seen.name, printer);
    }
    Ok(exit)
}

/// Sends an event to a session of a server.
async fn post(
    event: &str,
    fields: &Json,
    args: &SendArgs,
    there: &There,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if args.id.is_some() {
        return Err(on_a_store("--id"));
    }
    let post = Post {
        definition: Some(there.seen.network.to_string()),
        event: Some(event.to_owned()),
        fields: fields.as_object().cloned(),
        session: Some(there.id().to_owned()),
    };
    let posted = there.remote.client.events().post(&post).await?;
    there.taken_by(printer);
    let fate = match posted.sent {
        Where::Known => "known",
        _ => "taken",
    };
    noted(printer, there.id(), &there.seen.short, fate)
}

async fn send_event(
    event: &str,
    payload: &str,
    args: &SendArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let mut fields: Json = steersman_machine::values::json::read(payload).map_err(|e| {
        CommandError::usage(format!("the payload is not JSON: {e}"))
            .hint("steersman send TO --event NAME '{\"FIELD\": \"...\"}'")
    })?;
    if !fields.is_object() {
        return Err(CommandError::usage(
            "the payload of an event is a JSON object",
        ));
    }
    attach::to_event(&args.file, &mut fields)?;
    // A definition's path or a network's name addresses all sessions of the network that wait for the event.
    let path = Path::new(&args.to);
    if path.exists() && global.server().is_none() {
        if args.id.is_some() {
            return Err(CommandError::usage(
                "an event for a network has the id that its definition says: `id` of the event",
            )
            .hint("leave --id out; it is for a message, or for an event to one session"));
        }
        let network = check::required(path, printer)?;
        let place = Place::open(global, &args.act.own.drive).await?;
        return to_network(&place, &network, event, &fields, printer).await;
    }
    if let Some(there) = There::find(&args.to, global, &args.act.own, false).await? {
        return post(event, &fields, args, &there, printer).await;
    }
    let target = Target::find(&args.to, global, &args.act.own.drive).await.map_err(|error| {
        if is_plain(&args.to) {
            error.hint("an event for a network names its definition: steersman send ./desk --event NAME '{..}'")
        } else {
            error
        }
    })?;
    let network = target.inspection.network.as_ref().ok_or_else(|| {
        CommandError::usage("this session has not begun, so its events are not known")
    })?;
    let event = steersman::event_message(network, event, &fields)?;
    let mut act = Act::event(event);
    if let Some(id) = &args.id {
        act = act.with_id(id);
    }
    target.deliver(act, &args.act.own, printer).await
}

async fn to_network(
    place: &Place,
    network: &steersman::Network,
    event: &str,
    fields: &Json,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let sent = place.steersman.post(network, event, fields).await?;
    let (fate, session) = match &sent {
        Sent::Known(id) => ("known", id.as_ref()),
        Sent::Started(id) => ("started", Some(id)),
        Sent::Session(id) => ("inbox", Some(id)),
        Sent::Offered => ("offered", None),
    };
    if printer.is_json() {
        printer.json(&json!({ "event": event, "status": fate, "session": session }))?;
    }
    let short = match session {
        Some(id) => place.short(id).await?,
        None => String::new(),
    };
    match sent {
        Sent::Known(Some(_)) => {
            printer.talk(format!(
                "It was accepted before, by session {short}; nothing was done."
            ));
            printer.next(format!("steersman show {short}"), "");
        }
        Sent::Known(None) => printer
            .talk("It was accepted before, for the session that waits for it; nothing was done."),
        Sent::Started(_) => {
            printer.talk(format!("It began session {short}."));
            printer.next(format!("steersman run --resume {short}"), "drives it");
        }
        Sent::Session(_) => {
            printer.talk(format!("It is stored in the inbox of session {short}."));
            printer.next(format!("steersman run --resume {short}"), "drives it");
        }
        Sent::Offered => {
            printer.talk("Accepted. A session that waits for it takes it when it is driven.");
            let waiting = waiting(place, network.name(), event).await?;
            if let [only] = &waiting[..] {
                let short = place.short(only).await?;
                printer.next(
                    format!("steersman run --resume {short}"),
                    "drives the one that waits for it",
                );
            }
            printer.next("steersman run --all", pending::DRIVES);
            printer.next("steersman pending", "");
        }
    }
    Ok(Exit::Answered)
}

/// Returns the sessions of a network that wait for an event, as far as lists show it. Each session checks whether the event
/// matches.
async fn waiting(place: &Place, network: &str, event: &str) -> Result<Vec<String>, CommandError> {
    let all = place.store().sessions(&SessionQuery::default()).await?;
    let own = all.iter().filter(|info| *info.network == *network);
    let waits = own.filter(|info| {
        let pending = pending::listed(info).unwrap_or_default();
        let mut pending = pending.iter();
        pending.any(|p| p.kind == PendingKind::Event && p.text.split(" or ").any(|e| e == event))
    });
    Ok(waits.map(|info| info.id.to_string()).collect())
}

/// Parses a message id. It is stored as long as the session and printed, so control characters are refused.
fn message_id(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err("an id has no control characters".into());
    }
    match bounds::id("message id", text) {
        Ok(()) => Ok(text.to_owned()),
        Err(why) => Err(why.to_string()),
    }
}

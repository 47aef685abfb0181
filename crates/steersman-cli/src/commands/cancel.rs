//! `cancel`: cancels a call, an agent, or everything in one session or in all that match.

use crate::address::Address;
use crate::cli::{Acting, Global, Own, Which};
use crate::commands::act::{Reached, Target, by};
use crate::commands::orders::Wanted;
use crate::commands::there::{There, on_a_store};
use crate::error::{CommandError, Exit};
use crate::place::{branch_name, typed_as};
use crate::play::{self, Ended, Play, Told};
use crate::printer::Printer;
use crate::words::count;
use serde_json::json;
use steersman::runtime::session::Settled;
use steersman::views::screen::{Ask, FollowScreen, ShowScreen};
use steersman::{Act, By, CancelWhat};
use steersman_client::{Cancel, Given, Stands, What};
use steersman_machine::stored::ids::{Id, Line};

pub(crate) const LISTED: &str =
    "Cancel a call, an agent, or all of a session, or of all that match";

/// Cancel a call, an agent, a branch (SESSION:BRANCH), or all that is open in a session, or in all that match.
#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    which: Which,
    /// A call or an agent by its id (`21.1`) or name [default: all that is open].
    #[arg(conflicts_with = "filter")]
    what: Option<String>,
    #[command(flatten)]
    act: Acting,
}

pub(crate) async fn run(
    args: CancelArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if let Some(session) = &args.which.session
        && let Some(there) = There::find(session, global, &args.act.own, true).await?
    {
        return at_server(&args, &there, printer).await;
    }
    if global.server().is_some() {
        return Err(on_a_store("--where"));
    }
    let by = by(&args.act);
    let named = args.what.as_deref().filter(|what| *what != "session");
    if let Some(session) = &args.which.session
        && Address::parse(session)?.branch.is_some()
    {
        return on_branch(
            session,
            args.what.as_deref(),
            by,
            &args.act.own,
            global,
            printer,
        )
        .await;
    }
    if let (Some(session), Some(name)) = (&args.which.session, named) {
        // Only part of the session is cancelled: the caller receives the result and goes on.
        let target = Target::find(session, global, &args.act.own.drive).await?;
        let act = Act::cancel(find(&target, name)?, by, None);
        return in_part(&target, act, &args.act.own, printer).await;
    }
    let act = Act::cancel(CancelWhat::Session, by, None);
    let order = Wanted::order(act, "cancelled", None);
    match &args.which.session {
        Some(session) => {
            let target = Target::find(session, global, &args.act.own.drive).await?;
            in_one(&order, target, &args.act.own, printer).await
        }
        None => {
            order
                .in_all(&args.which, &args.act.own, global, printer)
                .await
        }
    }
}

/// Cancels at a server: all of a session or of a branch, or a call or an agent, which have ids there.
async fn at_server(
    args: &CancelArgs,
    there: &There,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let named = args.what.as_deref().filter(|what| *what != "session");
    let (what, id) = match (named, &there.branch) {
        (None, None) => (What::Session, None),
        (None, Some(branch)) => (What::Branch, Some(branch.clone())),
        (Some(name), Some(_)) => {
            let short = &there.seen.short;
            return Err(CommandError::usage(
                "at a server a call or an agent is named without its branch: its id is enough",
            )
            .hint(format!("steersman cancel {short} {name}")));
        }
        (Some(name), None) => part(there, name).await?,
    };
    let cancel = Cancel {
        role: args.act.role.clone(),
        id,
        what,
    };
    let (orders, given) = (there.remote.client.orders(), Given::default());
    let receipt = orders.cancel(there.id(), &cancel, &given).await?;
    if what != What::Session || receipt.fate != Stands::Taken {
        return there.report(&receipt, printer);
    }
    let stands: FollowScreen = there.remote.screen_of(there.id(), &Ask::default()).await?;
    let settled = (stands.head, stands.stands.into());
    is_over(printer, (there.id(), &*stands.short), settled, stands.now)
}

/// Finds an agent by its id or name, or a call by its id.
async fn part(there: &There, name: &str) -> Result<(What, Option<String>), CommandError> {
    let shown: ShowScreen = there.remote.screen_of(there.id(), &Ask::default()).await?;
    let page = shown.page();
    let agents = page.agents.iter();
    let agents = agents.filter(|agent| agent.id.to_string() == *name || *agent.name == *name);
    let agents: Vec<String> = agents.map(|agent| agent.id.to_string()).collect();
    match &agents[..] {
        [agent] => Ok((What::Agent, Some(agent.clone()))),
        [] if name.parse::<Id>().is_ok() => Ok((What::Call, Some(name.to_owned()))),
        [] => Err(CommandError::usage(format!("no agent is named `{name}`"))
            .hint("a call at a server is named by its id; `steersman log` shows ids")),
        several => Err(CommandError::usage(format!("`{name}` means more than one"))
            .hint(format!("name one by its id: {}", several.join(", ")))),
    }
}

/// Cancels everything open on one branch, or a call or agent of it. A call that waits for the branch receives its end and
/// goes on.
async fn on_branch(
    session: &str,
    what: Option<&str>,
    by: By,
    own: &Own,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let target = Target::of_branch(session, global, &own.drive).await?;
    let Some(branch) = target.branch() else {
        return Err(CommandError::usage("this session has not begun"));
    };
    let (id, name) = (branch.id, branch_name(branch));
    if branch.superseded {
        return Err(
            CommandError::usage(format!("`{name}` is left behind: nothing of it goes on"))
                .hint("`steersman show` draws the branches"),
        );
    }
    let what = match what {
        Some(what) => find(&target, what)?,
        None if branch.snapshot.effects.is_empty()
            && branch.ended
            && !target.inspection.is_spoken_to(id) =>
        {
            return Err(CommandError::usage(format!(
                "nothing is open on `{name}`: it came to its end"
            ))
            .hint("`steersman show` draws the branches"));
        }
        None => CancelWhat::Branch,
    };
    let whole = what == CancelWhat::Branch;
    let act = Act::cancel(what, by, Some(id));
    if !whole {
        return in_part(&target, act, own, printer).await;
    }
    match target.reach(act, own, printer).await? {
        Reached::Driven(play, ended, Some(line)) => {
            whole_branch(&target, (id, &name), (*play, ended, line), printer).await
        }
        other => reported(&target, other, printer).await,
    }
}

/// Cancels part of a session and reports its status afterwards: the caller goes on.
async fn in_part(
    target: &Target,
    act: Act,
    own: &Own,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let reached = target.reach(act, own, printer).await?;
    reported(target, reached, printer).await
}

async fn reported(
    target: &Target,
    reached: Reached<'_>,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    match reached {
        Reached::Driven(mut play, ended, _) => {
            play.branch = target.branch().map(|branch| branch.id);
            went_on(*play, ended).await
        }
        other => target.noted(&other, printer).await,
    }
}

/// Reports the status of the session after the cancel. If the cancel ended the whole session, that is a success.
async fn went_on(play: Play<'_>, ended: Ended) -> Result<Exit, CommandError> {
    let (exit, cancelled) = play.came_to(ended).await?;
    Ok(if cancelled { Exit::Answered } else { exit })
}

/// Reports the end of a branch, with the messages that it never received. If a call that waited for the branch went on, its
/// status is reported too.
async fn whole_branch(
    target: &Target,
    (id, name): (Id, &str),
    (mut play, ended, line): (Play<'_>, Ended, Line),
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let (session, current) = (&target.inspection.info.id, target.inspection.current);
    let log = target.place.log(session).await?;
    let unheard = log.refused(line);
    if printer.is_json() {
        printer.json(&json!({
            "session": &**session,
            "branch": name,
            "line": line.0,
            "status": "cancelled",
            "unheard": unheard,
        }))?;
    }
    printer.talk(format!("{name} is cancelled."));
    if !unheard.is_empty() {
        let all = count(unheard.len() as u64, "message");
        printer.talk(format!(
            "{all} to it will not be taken: the line above shows the text."
        ));
    }
    let mut after = log.lines.iter().filter(|l| l.n >= line);
    let moved = after.any(|l| l.branch == current && l.commit.is_some());
    if moved || matches!(ended, Ended::Interrupted) {
        return went_on(play, ended).await;
    }
    if !play.let_go().await? {
        return went_on(play, Ended::Interrupted).await;
    }
    let seen = target.place.engine().inspect(session).await?;
    let stands = seen.branches.iter().find(|branch| branch.id == id);
    match stands.map(|branch| seen.settled_on(branch)) {
        Some(doubt @ Settled::Doubt(_)) => {
            let exit = play::exit(&doubt);
            let name = typed_as(&target.place.short(session).await?, stands);
            let told = Told::of(name, doubt);
            for row in play::summary(&told, target.place.now()) {
                printer.talk(row);
            }
            Ok(exit)
        }
        _ => Ok(Exit::Answered),
    }
}

/// Cancels everything open in one session. Nothing new begins, and messages in the inbox are not answered. The status is
/// reported afterwards, because an effect may be in doubt.
async fn in_one(
    order: &Wanted,
    target: Target,
    own: &Own,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let (place, info) = (&target.place, &target.inspection.info);
    let outcome = order.ordered(place, info, own).await?;
    if outcome.is_bad() {
        return Err(CommandError::usage(outcome.text));
    }
    if outcome.fate == "inbox" {
        return target.noted(&Reached::Inbox, printer).await;
    }
    let seen = place.engine().inspect(&info.id).await?;
    let short = place.short(&info.id).await?;
    let settled = (seen.info.head, seen.settled);
    is_over(printer, (&*info.id, &*short), settled, place.now())
}

/// Reports a session of which everything was cancelled.
fn is_over(
    printer: &Printer,
    (session, short): (&str, &str),
    (head, settled): (Line, Settled),
    now: i64,
) -> Result<Exit, CommandError> {
    // A message that arrived meanwhile is on the stack, but nothing begins until the session is driven.
    let heard = !matches!(&settled, Settled::Cancelled | Settled::Doubt(_));
    let settled = if heard { Settled::Cancelled } else { settled };
    if printer.is_json() {
        printer.json(&play::document(session, head, &settled, None))?;
    }
    let exit = match &settled {
        Settled::Cancelled => Exit::Answered,
        other => play::exit(other),
    };
    for row in play::summary(&Told::of(short.to_owned(), settled), now) {
        printer.talk(row);
    }
    if heard {
        printer.talk("What was said meanwhile is answered when it goes on.");
        printer.next(format!("steersman run --resume {short}"), "");
    }
    Ok(exit)
}

/// Finds an open call or an agent, by id or by name.
fn find(target: &Target, name: &str) -> Result<CancelWhat, CommandError> {
    let meant = target.branch().or(target.inspection.current_branch());
    let Some(branch) = meant else {
        return Err(CommandError::usage("this session has not begun"));
    };
    let snapshot = &branch.snapshot;
    let id = name.parse::<Id>().ok();
    let effects: Vec<Id> = snapshot
        .effects
        .iter()
        .filter(|(effect, _)| {
            let call = snapshot.call_of(**effect);
            id == Some(**effect)
                || call.is_some_and(|c| id == Some(c.call.id) || *c.call.name == *name)
        })
        .map(|(effect, _)| *effect)
        .collect();
    let agents: Vec<Id> = snapshot
        .agents
        .values()
        .filter(|a| id == Some(a.id) || *a.def == *name)
        .map(|a| a.id)
        .collect();
    match (effects.as_slice(), agents.as_slice()) {
        ([effect], []) => Ok(CancelWhat::Effect(*effect)),
        ([], [agent]) => Ok(CancelWhat::Agent(*agent)),
        ([], []) => Err(CommandError::usage(format!(
            "no open call and no agent is named `{name}`"
        ))
        .hint("`steersman show` names them")),
        _ => {
            let ids: Vec<String> = effects.iter().chain(&agents).map(Id::to_string).collect();
            Err(CommandError::usage(format!("`{name}` means more than one"))
                .hint(format!("name one by its id: {}", ids.join(", "))))
        }
    }
}

//! `pending`: lists what waits for a person, an event or a time, in all sessions.

use crate::asked;
use crate::cli::Global;
use crate::commands::sessions;
use crate::error::{CommandError, Exit};
use crate::place::{Place, shortest};
use crate::printer::{Printer, bold, dim, typed, yellow};
use crate::words::{ago, arguments, count, due, left as left_until, list, people, wait};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use steersman::runtime::inbox::{DecodeError, Message, Wanted};
use steersman::runtime::pending::{self, Pending as Waits, PendingKind};
use steersman::runtime::store::{BoxedEvent, SessionInfo, SessionQuery};
use steersman::views::cause;
use steersman::views::filter::{Field, Filter, label_names, value};
use steersman_machine::stored::ids::{Name, Time};

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
    let filter = Filter::parse(args.filter.as_deref())?;
    let Some(place) = Place::existing(global).await? else {
        printer.talk("Nothing waits.");
        return Ok(Exit::Answered);
    };
    let mut broken: Vec<CommandError> = damage(&place).await?.into_iter().collect();
    let all = place.store().sessions(&SessionQuery::default()).await?;
    filter.known_among(label_names(&all))?;
    roles_are_known(&place, &filter, &all).await?;
    let now = place.now();
    let mut found: Vec<(&SessionInfo, Waits)> = Vec::new();
    let mut unseen: Vec<&str> = Vec::new();
    for info in &all {
        let pending = match listed(info) {
            Some(pending) => pending,
            None => match looked_at(&place, &info.id).await {
                Ok(pending) => pending,
                // Continue with the other sessions.
                Err(error) => {
                    broken.push(error);
                    unseen.push(&*info.id);
                    continue;
                }
            },
        };
        for pending in pending {
            if filter.holds(now, |name| field(info, now, &pending, name))? {
                found.push((info, pending));
            }
        }
    }
    let dead: Vec<&SessionInfo> = dead(&all)
        .filter(|info| args.filter.is_none() && !unseen.contains(&&*info.id))
        .collect();
    let left = match args.filter {
        None => left(&place, &all).await?,
        Some(_) => Vec::new(),
    };
    // Sorted by due time; entries without one come last.
    found.sort_by_key(|(_, p)| (p.due.map_or(i64::MAX, |d| d.0), p.since.0));
    // `damage` has reported an event box that cannot be read.
    let events = place
        .store()
        .event_box(None, place.engine().clock().now(), SHOWN)
        .await
        .unwrap_or_default();
    // A filter selects what waits, so events in the box are left out.
    let events = match args.filter {
        None => events,
        Some(_) => Vec::new(),
    };
    if printer.is_json() {
        for (info, pending) in &found {
            let mut document = asked::json(pending);
            document["session"] = (&*info.id).into();
            document["network"] = (&*info.network).into();
            printer.json(&document)?;
        }
        for event in &events {
            printer.json(&json!({
                "kind": "boxed",
                "network": &*event.network,
                "event": &*event.event,
                "id": &*event.id,
                "since": asked::time(event.at.0),
                "until": asked::time(event.until.0),
            }))?;
        }
        for (info, what) in &left {
            printer.json(&what.json(info))?;
        }
        for info in &dead {
            printer.json(&json!({
                "kind": "interrupted",
                "session": &*info.id,
                "network": &*info.network,
                "since": asked::time(info.state.updated.0),
            }))?;
        }
    } else if !(found.is_empty() && events.is_empty() && dead.is_empty() && left.is_empty()) {
        tell(
            &found,
            (&events, &dead, &left),
            &all,
            now,
            args.all,
            printer,
        )?;
    } else if broken.is_empty() {
        printer.talk("Nothing waits.");
    }
    let all_broken = broken.into_iter().reduce(|mut first, other| {
        first.message = format!("{}\n       {}", first.message, other.message);
        first
    });
    all_broken.map_or(Ok(Exit::Answered), Err)
}

/// Reports damage to the lists by which sessions are found: the command may then miss something that waits.
async fn damage(place: &Place) -> Result<Option<CommandError>, CommandError> {
    let damaged = place.store().damaged_lists().await?;
    Ok(damaged.first().map(|first| {
        let places = count(damaged.len() as u64, "place");
        let why = format!(
            "{}: the lists by which sessions are found are damaged in {places} ({first}), so something that waits may be missing here",
            crate::locate::shown(&place.file)
        );
        CommandError::store(why).hint("`steersman fsck` lists all damage")
    }))
}

/// The content of an inbox message.
enum Mail {
    /// An event, with the id of its message and its time.
    Event(Name, Name, Time),
    /// A user message.
    Said(Time),
    /// Any other message.
    Message(Time),
    /// A message that cannot be read.
    Unread(DecodeError),
}

impl Mail {
    fn json(&self, info: &SessionInfo) -> serde_json::Value {
        let mut document = json!({
            "kind": "inbox",
            "session": &*info.id,
            "network": &*info.network,
            "what": match self {
                Self::Event(event, ..) => format!("event {event}"),
                Self::Said(_) | Self::Message(_) => "message".to_owned(),
                Self::Unread(DecodeError::Corrupt(_)) => "damaged".to_owned(),
                Self::Unread(DecodeError::Newer(..)) => "newer".to_owned(),
            },
        });
        if let Self::Event(_, id, _) = self {
            document["id"] = (&**id).into();
        }
        if let Self::Event(_, _, at) | Self::Said(at) | Self::Message(at) = self {
            document["since"] = asked::time(at.0);
        }
        if let Self::Unread(error) = self {
            document["message"] = (&**error.message()).into();
            document["why"] = error.to_string().into();
        }
        document
    }

    fn told(&self, session: &str, info: &SessionInfo, now: i64) -> String {
        let came = |at: &Time| ago(now, at.0);
        match self {
            Self::Event(event, id, at) if sessions::status(info) != "new" => {
                format!(
                    "event {event} {id} for session {session} ({}) waits in its inbox until the session waits for it",
                    came(at)
                )
            }
            Self::Event(event, id, at) => {
                format!(
                    "event {event} {id} for session {session} ({}) waits: {UNDRIVEN}",
                    came(at)
                )
            }
            Self::Said(at) | Self::Message(at) => {
                format!(
                    "message for session {session} ({}) waits: {UNDRIVEN}",
                    came(at)
                )
            }
            Self::Unread(error) => yellow(&format!("session {session}: {error}")),
        }
    }
}

/// Returns the sessions that were at work when their process died. What they began may have happened.
fn dead(all: &[SessionInfo]) -> impl Iterator<Item = &SessionInfo> {
    all.iter()
        .filter(|info| sessions::status(info) == "interrupted" && !cause::is_left_rerun(info))
}

/// Returns true for a user message, which is taken only when nothing else is open.
fn is_said(message: &Message) -> bool {
    matches!(
        message.wanted,
        Wanted::Say { .. } | Wanted::SayWith { .. } | Wanted::Sent { .. }
    )
}

/// Returns inbox messages of sessions that no process drives. An event stays there until something waits for it.
async fn left<'a>(
    place: &Place,
    all: &'a [SessionInfo],
) -> Result<Vec<(&'a SessionInfo, Mail)>, CommandError> {
    let mut left = Vec::new();
    let with_mail = SessionQuery {
        inbox: true,
        ..SessionQuery::default()
    };
    for found in place.store().sessions(&with_mail).await? {
        let Some(info) = all
            .iter()
            .find(|info| info.id == found.id && info.owner.is_none())
        else {
            continue;
        };
        for boxed in place.store().inbox(&info.id).await?.1 {
            left.push((
                info,
                match Message::decode(&boxed) {
                    Ok(message) if is_said(&message) => Mail::Said(boxed.at),
                    Ok(message) => match message.wanted {
                        Wanted::Event { event, .. } => Mail::Event(event, boxed.id, boxed.at),
                        _ => Mail::Message(boxed.at),
                    },
                    Err(error) => Mail::Unread(error),
                },
            ));
        }
    }
    Ok(left)
}

/// The other lists that the command shows: events in the box, sessions whose process died, and inbox messages.
type Apart<'a> = (
    &'a [BoxedEvent],
    &'a [&'a SessionInfo],
    &'a [(&'a SessionInfo, Mail)],
);

fn tell(
    found: &[(&SessionInfo, Waits)],
    (events, dead, left): Apart<'_>,
    all: &[SessionInfo],
    now: i64,
    show_all: bool,
    printer: &Printer,
) -> Result<(), CommandError> {
    let short = |id: &str| shortest(id, all.iter().map(|i| &*i.id)).to_owned();
    let rows: Vec<Vec<String>> = found
        .iter()
        .take(if show_all { found.len() } else { SHOWN })
        .map(|(info, pending)| {
            vec![
                due(now, pending.due.map(|d| d.0)),
                short(&info.id),
                pending.effect.to_string(),
                match &pending.roles[..] {
                    [] => "-".to_owned(),
                    roles => people(roles),
                },
                what(pending),
                sessions::labels(info),
            ]
        })
        .collect();
    let heading = ["DUE", "SESSION", "EFFECT", "FOR", "WHAT", "LABELS"];
    if !rows.is_empty() {
        for (i, row) in list(&heading, &rows).into_iter().enumerate() {
            printer.data(if i == 0 { dim(&row) } else { row })?;
        }
    }
    for event in events {
        // The stored id begins with the network and the event, which the row shows already.
        let known = format!("{} event {} ", event.network, event.event);
        let id = event.id.strip_prefix(&known).unwrap_or(&event.id);
        printer.data(format!(
            "event {} {id} for {} ({}): no session waits for it; it is dropped in {}",
            event.event,
            event.network,
            ago(now, event.at.0),
            left_until(now, event.until.0)
        ))?;
    }
    for info in dead {
        printer.data(format!(
            "session {} was at work when its process died",
            short(&info.id)
        ))?;
    }
    for (info, what) in left {
        printer.data(what.told(&short(&info.id), info, now))?;
    }
    talk(printer, found, rows.len());
    let mut next = Vec::new();
    let message = |what: &Mail| matches!(what, Mail::Said(_) | Mail::Message(_));
    if let Some((info, what)) = left.iter().find(|(_, what)| message(what)) {
        let waits = found.iter().filter(|(other, _)| other.id == info.id);
        let waits: Vec<&Waits> = waits.map(|(_, waits)| waits).collect();
        let said = matches!(what, Mail::Said(_));
        next.extend(asked::advice(
            &short(&info.id),
            sessions::status(info),
            &waits,
            said,
        ));
    }
    if let Some(info) = dead.first() {
        next.push((
            format!("steersman run --resume {}", short(&info.id)),
            "continues it, and shows what may have happened",
        ));
    }
    if !events.is_empty() || dead.len() > 1 {
        next.push(("steersman run --all".to_owned(), DRIVES));
    }
    let said: Vec<String> = next.iter().map(|(command, _)| command.clone()).collect();
    for (command, why) in next {
        printer.next(command, why);
    }
    if let Some((info, first)) = found.first() {
        let mut commands = asked::commands(&short(&info.id), first);
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

/// Returns what a session waits for, as the list of sessions stores it. `None` means that the session must be inspected: it
/// is at work, or was when its process died, or it has too many waits for the list.
pub(crate) fn listed(info: &SessionInfo) -> Option<Vec<Waits>> {
    match &*info.state.status {
        // The session was not driven yet.
        "" => Some(Vec::new()),
        "running" => None,
        _ => pending::read(&info.state.waits),
    }
}

/// Inspects a session whose waits are not in the list.
async fn looked_at(place: &Place, session: &str) -> Result<Vec<Waits>, CommandError> {
    Ok(place.engine().inspect(session).await?.pending)
}

fn talk(printer: &Printer, found: &[(&SessionInfo, Waits)], shown: usize) {
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, pending) in found {
        *kinds.entry(wait(pending.kind)).or_default() += 1;
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

/// Refuses a role that no definition of these sessions has: it would select nothing, or with `!=` everything.
async fn roles_are_known(
    place: &Place,
    filter: &Filter,
    all: &[SessionInfo],
) -> Result<(), CommandError> {
    let always = ["user", "any", "anybody", "-"];
    let mut wanted = filter
        .values("for")
        .filter(|role| !always.contains(role) && !role.contains('*'))
        .peekable();
    if wanted.peek().is_none() {
        return Ok(());
    }
    let mut roles: BTreeSet<Name> = BTreeSet::from(["user".into()]);
    let mut seen = BTreeSet::new();
    for info in all {
        if !seen.insert(&info.state.definition) {
            continue;
        }
        // A session that cannot be read may have any role.
        let Ok(inspection) = place.engine().inspect(&info.id).await else {
            return Ok(());
        };
        let people = inspection.network.iter().flat_map(|n| n.people.values());
        roles.extend(people.map(|person| person.role.clone()));
    }
    let Some(unknown) = wanted.find(|role| !roles.contains(*role)) else {
        return Ok(());
    };
    let known: Vec<&str> = roles.iter().map(|role| &**role).collect();
    Err(CommandError::usage(format!(
        "no definition has a person in the role `{unknown}`"
    ))
    .hint(format!("roles are {}", known.join(", "))))
}

fn field(info: &SessionInfo, now: i64, pending: &Waits, name: &str) -> Option<Field> {
    match name {
        "for" if pending.roles.is_empty() => Some(Field::Text("-".to_owned())),
        // The list shows `any` as `anybody`, so both are found.
        "for" => Some(Field::Any(
            pending
                .roles
                .iter()
                .flat_map(|role| [role.to_string(), people(std::slice::from_ref(role))])
                .collect(),
        )),
        "kind" => Some(Field::Text(pending.kind.word().to_owned())),
        "tool" => Some(Field::Text(pending.tool.as_deref()?.to_owned())),
        other => value(info, now, other),
    }
}

//! Shows people what a session waits for: boxes, commands to type, JSON.

use crate::error::CommandError;
use crate::place::Place;
use crate::printer::{bold, dim, red, yellow};
use crate::words::{
    ago, arguments, fold, left, line as one_line, operand, people, question, quoted, wait,
    written_out,
};
use serde_json::Value as Json;
use steersman::runtime::pending::{HELD_ALL, Pending, PendingKind, ProbeState};
pub(crate) use steersman::views::elsewhere::Elsewhere;
use steersman::views::elsewhere::{self, beside};
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::values::json::read;
use steersman_machine::view::mapping::WHOLE;

/// Returns a time as JSON: RFC 3339.
pub(crate) fn time(millis: i64) -> Json {
    jiff::Timestamp::from_millisecond(millis).map_or(Json::Null, |t| t.to_string().into())
}

/// Returns what people should know of other branches before they decide these questions of a session. The log is read only if a
/// question may need it.
pub(crate) async fn elsewhere(
    place: &Place,
    session: &str,
    all: &[Pending],
) -> Result<Elsewhere, CommandError> {
    let decides = |p: &Pending| matches!(p.kind, PendingKind::Approval | PendingKind::Repeat);
    if !all.iter().any(decides) {
        return Ok(Elsewhere::new());
    }
    let seen = place.engine().inspect(session).await?;
    if !all
        .iter()
        .any(|pending| beside(&seen.ledger, pending).next().is_some())
    {
        return Ok(Elsewhere::new());
    }
    let log = place.log(session).await?;
    Ok(elsewhere::told(&log, &seen, all))
}

/// Draws a box around a question to a person, for a layout of this width.
pub(crate) fn frame(
    pending: &Pending,
    elsewhere: &Elsewhere,
    now: i64,
    width: usize,
) -> Vec<String> {
    let wide = width - 4;
    let by = match &pending.roles[..] {
        [] => String::new(),
        roles => format!(", for {}", people(roles)),
    };
    let title = format!("{} {}{by}", wait(pending.kind), pending.effect);
    let title = one_line(&title, wide - 6);
    let mut rows = vec![format!(
        "  +- {} {}+",
        if pending.kind == PendingKind::Doubt {
            red(&title)
        } else {
            yellow(&title)
        },
        "-".repeat(wide - 5 - title.chars().count())
    )];
    let mut row = |text: &str, paint: &dyn Fn(&str) -> String| {
        let text = one_line(text, wide - 4);
        let gap = wide - 4 - text.chars().count();
        // `one_line` removed leading blanks; the cells below add their own.
        rows.push(format!("  | {}{} |", paint(&text), " ".repeat(gap)));
    };
    let args = pending.args.as_deref();
    let call = pending.tool.as_deref().zip(args);
    let call = call.map(|(tool, args)| format!("{tool}({})", arguments(args)));
    let asked = question(&pending.text);
    // If the call itself is the question, it is shown once, in one row if it fits.
    let is_call = call.as_ref() == Some(&asked);
    let in_a_row = is_call && asked.chars().count() <= wide - 4 && !asked.contains('\n');
    if !is_call || in_a_row {
        for text in bounded(fold(&asked, wide - 4)) {
            row(&text, &|t| bold(t));
        }
    }
    let because = pending.because.as_deref();
    if in_a_row {
        if let Some(why) = because {
            row(&format!("because {why}"), &|t| t.to_owned());
        }
    } else if let Some(tool) = &pending.tool {
        let why = because.map_or_else(String::new, |why| format!(", because {why}"));
        row(&format!("{tool}{why}"), &|t| t.to_owned());
        for (name, value) in cells(args) {
            for line in cell(&name, &value, wide) {
                row(&line, &|t| t.to_owned());
            }
        }
    }
    let parts = notes(pending, now);
    let joined = parts.join("; ");
    // If they do not fit in one row, each has its own.
    let parts = if joined.chars().count() <= wide - 4 {
        vec![joined]
    } else {
        parts
    };
    for text in parts.iter().flat_map(|part| fold(part, wide - 4)) {
        row(&text, &|t| dim(t));
    }
    for told in elsewhere.get(&pending.effect).into_iter().flatten() {
        for text in bounded(fold(told, wide - 4)) {
            row(&text, &|t| yellow(t));
        }
    }
    if let Some(probe) = &pending.probe {
        for text in bounded(fold(&probe.sentence(), wide - 4)) {
            row(&text, &|t| t.to_owned());
        }
    }
    if !pending.needs.is_empty() {
        let why = match pending.kind {
            PendingKind::Question => "it wants",
            _ => "if it happened, its result is needed",
        };
        let needs = format!("{why}: {}", pending.needs.join(", "));
        for text in fold(&needs, wide - 4) {
            row(&text, &|t| t.to_owned());
        }
    }
    rows.push(format!("  +{}+", "-".repeat(wide - 2)));
    rows
}

/// Returns what an answer decides, and what happens without one.
fn notes(pending: &Pending, now: i64) -> Vec<String> {
    let note = match pending.kind {
        PendingKind::Approval => "the approval is valid for exactly these arguments, once",
        PendingKind::Doubt if pending.left => {
            "no agent waits for it any more; an equal call is refused until somebody resolves it"
        }
        PendingKind::Doubt => "it was started, and no answer came; it is not repeated",
        PendingKind::Repeat => "the same was done before, or given up",
        PendingKind::Input => "sealed: no model, log or export sees it",
        PendingKind::Budget => "it may cost more than is left of a limit",
        PendingKind::Hold => "held by a person's order; it begins after `steersman release`",
        PendingKind::Outage => "continues when the server answers",
        PendingKind::Question | PendingKind::Event | PendingKind::Timer | PendingKind::Again => "",
    };
    let mut parts = Vec::new();
    if pending.kind == PendingKind::Outage {
        parts.push(format!("began to wait {}", ago(now, pending.since.0)));
    }
    if !note.is_empty() {
        parts.push(note.to_owned());
    }
    if let Some(due) = pending.due {
        let left = left(now, due.0);
        parts.push(match (&pending.next, pending.kind) {
            (Some(next), _) => format!("the question goes on to {next} in {left}"),
            (None, PendingKind::Budget | PendingKind::Again) => {
                format!("tried again by itself in {left}")
            }
            (None, PendingKind::Outage) => format!("the call fails in {left}"),
            (None, kind) if kind.is_asked() => format!("the question ends by itself in {left}"),
            (None, _) => format!("the wait ends by itself in {left}"),
        });
    }
    parts
}

fn cells(args: Option<&str>) -> Vec<(String, String)> {
    match args.map(read::<Json>) {
        Some(Ok(Json::Object(fields))) => fields
            .into_iter()
            .map(|(name, value)| (name, written_out(&value)))
            .collect(),
        _ => Vec::new(),
    }
}

/// Maximum number of options of a question that are listed as commands.
const OPTIONS: usize = 4;

/// Maximum number of rows of one text or argument; the number of omitted rows is shown.
const ROWS: usize = 40;

fn bounded(mut rows: Vec<String>) -> Vec<String> {
    if rows.len() > ROWS {
        let more = rows.len() - ROWS;
        rows.truncate(ROWS);
        rows.push(format!(
            "> NOT ALL OF IT: {more} rows more, in `steersman pending --json`"
        ));
    }
    rows
}

/// Renders an argument in rows. All of it is shown, because all of it is approved.
fn cell(name: &str, value: &str, wide: usize) -> Vec<String> {
    let rows = fold(&format!(". {name}: {value}"), wide - 6);
    let rows = rows
        .into_iter()
        .enumerate()
        .map(|(at, row)| if at == 0 { row } else { format!("> {row}") });
    bounded(rows.collect())
}

/// Returns the option that reports an effect as done, with the fields that its result must have.
pub(crate) fn done(needs: &[String]) -> String {
    if needs.iter().any(|name| name == WHOLE) {
        return "--done='...'".to_owned();
    }
    let mut fields: Vec<&str> = Vec::new();
    for name in needs {
        let (first, _) = name.split_once('.').unwrap_or((name, ""));
        if !fields.contains(&first) {
            fields.push(first);
        }
    }
    if fields.is_empty() {
        return "--done='{...}'".to_owned();
    }
    let fields: Vec<String> = fields
        .iter()
        .map(|name| format!("\"{name}\": ..."))
        .collect();
    // A field name may contain characters that a shell interprets.
    format!("--done={}", quoted(&format!("{{{}}}", fields.join(", "))))
}

/// Returns true if the user at the terminal may decide it without naming a role.
pub(crate) fn is_users(pending: &Pending) -> bool {
    is_for(pending, "user")
}

/// Returns true if a person in this role may decide it.
pub(crate) fn is_for(pending: &Pending, role: &str) -> bool {
    let mut roles = pending.roles.iter();
    pending.roles.is_empty() || roles.any(|of| **of == *role || **of == *"any")
}

/// Returns the commands that move a session on, each with a reason. The process that drives a session takes messages from
/// its inbox. A user message (`said`) is taken only after everything that is open, so driving alone would change nothing.
pub(crate) fn advice(
    session: &str,
    status: &str,
    waits: &[&Pending],
    said: bool,
) -> Vec<(String, &'static str)> {
    if status == "paused" {
        let resume = format!("steersman resume {session}");
        return vec![(resume, "ends the pause, and continues")];
    }
    let Some(first) = waits.first().filter(|_| said) else {
        let run = format!("steersman run --resume {session}");
        return vec![(run, "takes the messages in its inbox")];
    };
    let commands = commands(session, first).into_iter();
    commands
        .map(|command| (command, "then the message is taken"))
        .collect()
}

/// Returns the `--as` option for a role that must decide; empty if the user may.
pub(crate) fn role(pending: &Pending) -> String {
    match &pending.roles[..] {
        [role, ..] if !is_users(pending) => format!(" --as {}", quoted(role)),
        _ => String::new(),
    }
}

/// Returns the command that lets a held effect begin. A repetition needs the option `--repeat`.
pub(crate) fn approval(session: &str, pending: &Pending) -> String {
    let again = pending.repeats.as_ref().map_or("", |_| " --repeat");
    let (id, role) = (pending.id(), role(pending));
    format!("steersman approve {session} {id}{again}{role}")
}

/// Returns the command with which a call draws again from a budget that sessions share. Such a hold ends by itself.
fn draws_again(session: &str, pending: &Pending) -> Option<String> {
    let is_shared = pending.kind == PendingKind::Budget && pending.due.is_some();
    is_shared.then(|| format!("steersman retry {session} --effect {}", pending.effect))
}

/// Returns the commands that end a wait. Each names the id of the question, so a late command cannot end another one.
pub(crate) fn commands(session: &str, pending: &Pending) -> Vec<String> {
    let id = pending.id();
    let role = role(pending);
    match pending.kind {
        PendingKind::Approval | PendingKind::Repeat | PendingKind::Budget => {
            let shown = pending.show.iter();
            let shown =
                shown.map(|name| format!("steersman artifacts {session} {}", operand(name)));
            shown
                .chain([
                    approval(session, pending),
                    format!("steersman reject {session} {id}{role} --say \"why not\""),
                ])
                .chain(draws_again(session, pending))
                .collect()
        }
        // Input is typed hidden or read from standard input, because other users of this machine can read command lines.
        PendingKind::Input => vec![
            format!("steersman run --resume {session}"),
            format!("steersman answer {session} {id} -{role}"),
        ],
        PendingKind::Question => {
            // List the options to choose from. The question whether to leave a task has none, and is answered with yes or
            // no.
            let leaves = pending.tool.as_deref() == Some(BuiltIn::NeedHelp.name());
            let options = if leaves {
                vec!["yes", "no"]
            } else {
                pending
                    .options
                    .iter()
                    .map(String::as_str)
                    .take(OPTIONS)
                    .collect()
            };
            let answer =
                |said: &&str| format!("steersman answer {session} {id}{role} {}", operand(said));
            let mut all: Vec<String> = options.iter().map(answer).collect();
            if all.is_empty() {
                all.push(match pending.needs.len() {
                    2.. => format!("steersman answer {session} {id} '{{...}}'{role}"),
                    _ => format!("steersman answer {session} {id} \"...\"{role}"),
                });
            }
            // It is the question of a server: consent with the defaults of its fields, or decline.
            if pending.hold.is_some() {
                all.push(format!("steersman approve {session} {id}{role}"));
                all.push(format!("steersman reject {session} {id}{role}"));
            }
            all
        }
        PendingKind::Doubt => {
            let done = done(&pending.needs);
            let mut all = vec![
                format!("steersman resolve {session} {id}{role} {done}"),
                format!("steersman resolve {session} {id}{role} --not-performed"),
                format!("steersman resolve {session} {id}{role} --fail"),
            ];
            let asked_again = |probe: &ProbeState| probe.over || probe.again.is_some();
            // A probe is not repeated for a doubt that no branch waits for.
            if !pending.left && pending.probe.as_ref().is_some_and(asked_again) {
                all.push(format!(
                    "steersman retry {session} --effect {}",
                    pending.effect
                ));
            }
            all
        }
        PendingKind::Event => {
            let names = pending.text.split(" or ");
            names
                .map(|name| format!("steersman send {session} --event {name} '{{...}}'"))
                .collect()
        }
        PendingKind::Hold if pending.because.as_deref() == Some(HELD_ALL) => {
            vec![format!("steersman release {session}")]
        }
        PendingKind::Hold => {
            let tool = pending.tool.as_deref().unwrap_or("TOOL");
            vec![format!("steersman release {session} --tool {tool}")]
        }
        PendingKind::Outage => vec![
            format!("steersman resume {session}"),
            "steersman run --all".to_owned(),
        ],
        PendingKind::Again => vec![
            format!("steersman run --resume {session}"),
            format!("steersman retry {session} --effect {}", pending.effect),
        ],
        PendingKind::Timer => {
            vec![format!("steersman run --resume {session}")]
        }
    }
}

//! `erase`: replaces texts by tombstones.

use crate::address::{Address, LineName};
use crate::cli::{Drive, Global};
use crate::error::{CommandError, Exit};
use crate::place::Place;
use crate::printer::{Printer, typed, yellow};
use crate::store::{Forgotten, Passed, forget};
use crate::words::count;
use serde_json::json;
use std::path::Path;
use steersman::runtime::erase::{Erased, What, erased_artifacts};
use steersman::runtime::store::{Memory, MemoryQuery, SessionQuery};
use steersman_machine::stored::ids::{Id, Line};

pub(crate) const LISTED: &str = "Erase what was said; all else still verifies";

/// Erase what was said in a session, at a line or by an effect. All else still verifies.
#[derive(Debug, clap::Args)]
pub(crate) struct EraseArgs {
    /// SESSION[@LINE]: all that was said in it, or at one line.
    address: String,
    /// Only arguments and result of this effect: `--effect 21.1`.
    #[arg(long, value_name = "ID")]
    effect: Option<String>,
    /// Also forget what it saved to memory, which is kept otherwise.
    #[arg(long, conflicts_with = "effect")]
    memory: bool,
    /// Do it. It cannot be undone.
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(
    args: EraseArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let address = Address::parse(&args.address)?;
    if address.branch.is_some() {
        return Err(CommandError::usage(
            "a branch alone cannot be erased: branches share their beginnings",
        )
        .hint("a session (SESSION), a line (SESSION@LINE) or an effect (SESSION --effect 21.1)"));
    }
    let place = Place::required(global, &Drive::default()).await?;
    let info = place.session(&address.session).await?;
    let what = what(&address, args.effect.as_deref())?;
    if let What::Line(line) = what
        && place.store().row(&info.id, line).await?.is_none()
    {
        return Err(
            CommandError::usage(format!("there is no line {line} in `{}`", info.id))
                .hint(format!("its last is {}", info.head)),
        );
    }
    let short = place.short(&info.id).await?;
    let erased = place
        .engine()
        .erase(&info.id, what, false)
        .await
        .map_err(|e| {
            CommandError::from(e).hint(format!(
                "let it come to its end or end it first: `steersman cancel {short}`"
            ))
        })?;
    let mut all = count(erased.texts, "text");
    if !erased.contents.is_empty() {
        let contents = count(erased.contents.len() as u64, "content");
        all = format!("{all} and {contents} of artifacts");
    }
    let saved = saved(&place, &info.id).await?;
    if !args.yes {
        if printer.is_json() {
            printer
                .json(&json!({ "session": &*info.id, "texts": erased.texts, "artifacts": erased.contents.len(), "memories": saved.len(), "erased": false }))?;
        }
        printer.talk(format!("{all} would be erased, for good."));
        printer.talk(yellow(match what {
            What::All => "Models that go on with this session would see [erased], its state would be unset, its labels and its outcome gone from lists.",
            What::Line(_) | What::Effect(_) => "Models that go on with this session would see [erased] there; state that was written with it would be unset.",
        }));
        remembered(&args, &saved, &short, printer);
        printer.talk(format!(
            "Next:  {}",
            typed(&format!("{} --yes", typed_again(&args)))
        ));
        return Ok(Exit::Answered);
    }
    let file = place.file.clone();
    let erased = place.engine().erase(&info.id, what, true).await?;
    let load =
        steersman::runtime::load::Load::new(place.store().clone(), info.id.clone(), info.salt);
    let report = load.inspect().await?;
    let mut contents = erased.contents.clone();
    if args.memory {
        contents.extend(saved.iter().map(|memory| memory.hash));
        let ids = saved.iter().map(|memory| memory.id).collect();
        place.store().forget_memories(ids).await?;
    }
    let passed = passed(&place, &contents).await?;
    drop(load);
    place.close();
    let forgotten = forget(&file, &info.id, contents, passed).await?;
    let done = Done {
        all,
        erased,
        lines: report.lines as u64,
        verifies: report.damaged.is_empty(),
        forgotten,
    };
    remembered(&args, &saved, &short, printer);
    let mut again = format!("{} --yes", typed_again(&args));
    if args.memory {
        again += ", steersman gc --yes";
    }
    tell(done, (&info.id, &short), (&file, &again), printer)
}

/// Returns the memories that a session saved. They outlive the session, unless they are to be forgotten with it.
async fn saved(place: &Place, session: &str) -> Result<Vec<Memory>, CommandError> {
    let query = MemoryQuery {
        session: Some(session.into()),
        ..MemoryQuery::default()
    };
    Ok(place.engine().memories(query).await?)
}

fn remembered(args: &EraseArgs, saved: &[Memory], short: &str, printer: &Printer) {
    if saved.is_empty() {
        return;
    }
    let all = match saved.len() {
        1 => "1 memory".to_owned(),
        n => format!("{n} memories"),
    };
    let told = match (args.memory, args.yes) {
        (true, true) => format!("{all} that it saved: forgotten."),
        (true, false) => format!("{all} that it saved would be forgotten with it."),
        (false, _) => format!(
            "{all} that it saved for other sessions: kept. To forget them: {}",
            typed(&format!("steersman memory forget --session {short} --yes"))
        ),
    };
    printer.talk(told);
}

/// The result of an erasure.
struct Done {
    all: String,
    erased: Erased,
    lines: u64,
    verifies: bool,
    forgotten: Forgotten,
}

fn tell(
    done: Done,
    (session, short): (&str, &str),
    (file, again): (&Path, &str),
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let Done {
        all,
        erased,
        lines,
        verifies,
        forgotten,
    } = done;
    if printer.is_json() {
        printer.json(&json!({
            "session": session,
            "texts": erased.texts,
            "artifacts": forgotten.deleted(),
            "erased": true,
            "verifies": verifies,
        }))?;
    }
    printer.talk(format!(
        "Erased {all}. Everything still verifies: {lines} lines."
    ));
    if erased.blobs > 0 {
        printer.talk(format!(
            "{} of them were stored outside the log and may be shared: {} deletes those that nothing names any more.",
            erased.blobs,
            typed("steersman gc --yes")
        ));
    }
    forgotten.tell(file, again, printer)?;
    printer.talk("Copies of the store (backups) still hold it.");
    if verifies {
        return Ok(Exit::Answered);
    }
    Err(CommandError::store("a line does not verify any more")
        .hint(format!("`steersman fsck {short}` says which")))
}

/// Returns the erased lines of all sessions. References of these lines to artifacts keep no content alive.
async fn passed(place: &Place, contents: &[[u8; 32]]) -> Result<Passed, CommandError> {
    let mut passed = Passed::new();
    if contents.is_empty() {
        return Ok(passed);
    }
    for info in place.store().sessions(&SessionQuery::default()).await? {
        let erased = erased_artifacts(place.store(), &info).await?;
        passed.insert(info.id, erased.lines);
    }
    Ok(passed)
}

/// Converts an address and an effect into the part to erase.
fn what(address: &Address, effect: Option<&str>) -> Result<What, CommandError> {
    Ok(match (&address.line, effect) {
        (Some(_), Some(_)) => {
            return Err(CommandError::usage("name a line or an effect, not both")
                .hint("leave @LINE or --effect out"));
        }
        (Some(LineName::Number(n)), None) => What::Line(Line(*n)),
        (Some(_), None) => {
            return Err(
                CommandError::usage("the line to erase is named by its number")
                    .hint("`steersman log` shows the numbers: SESSION@12"),
            );
        }
        (None, Some(effect)) => What::Effect(effect.parse::<Id>().map_err(|()| {
            CommandError::usage(format!("`{effect}` is no effect"))
                .hint("an effect is named as `steersman effects` shows it: 21.1")
        })?),
        (None, None) => What::All,
    })
}

fn typed_again(args: &EraseArgs) -> String {
    let effect = args.effect.as_ref();
    let effect = effect.map_or_else(String::new, |effect| format!(" --effect {effect}"));
    let memory = if args.memory { " --memory" } else { "" };
    format!("steersman erase {}{effect}{memory}", args.address)
}

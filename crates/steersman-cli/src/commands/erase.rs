//! `erase`: replaces texts by tombstones.

pub(crate) mod many;

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
use steersman::runtime::load::Load;
use steersman::runtime::store::{Memory, SessionId, SessionInfo, SessionQuery};
use steersman::{Erasure, ErasureError, Error};
use steersman_machine::stored::ids::{Id, Line};

pub(crate) const LISTED: &str =
    "Erase what was said, or all that a person has; all else still verifies";

/// Erase what was said in a session, at a line or by an effect, or all that a person or a tenant has. All else still verifies.
///
/// Tells what it would do unless --yes.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("meant").required(true).multiple(true))]
pub(crate) struct EraseArgs {
    /// SESSION[@LINE]: all that was said in it, or at one line.
    #[arg(group = "meant", conflicts_with_all = ["subject", "tenant", "filter"])]
    address: Option<String>,
    /// Only arguments and result of this effect: `--effect 21.1`.
    #[arg(long, value_name = "ID", conflicts_with_all = ["subject", "tenant", "filter"])]
    effect: Option<String>,
    /// All that this person has: sessions, memories, events, tokens, heads of conversations.
    #[arg(long, value_name = "NAME", group = "meant", conflicts_with = "filter")]
    subject: Option<String>,
    /// All that this tenant has; with --subject, the tenant of that person.
    #[arg(long, value_name = "NAME", group = "meant", conflicts_with = "filter")]
    tenant: Option<String>,
    /// All sessions that match: `network = desk and updated < -90d`.
    #[arg(long = "where", value_name = "FILTER", group = "meant")]
    filter: Option<String>,
    /// Also forget what it saved to memory, which is kept otherwise.
    #[arg(long, conflicts_with_all = ["effect", "subject", "tenant"])]
    memory: bool,
    /// Leave its reruns as they are. They hold the same texts.
    #[arg(long, conflicts_with_all = ["subject", "tenant"])]
    alone: bool,
    /// Do it. It cannot be undone.
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(
    args: EraseArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let Some(address) = &args.address else {
        return many::run(&args, global, printer).await;
    };
    let address = Address::parse(address)?;
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
    let plan = Plan::of(&args, info, what, &place).await?;
    if args.yes {
        return plan.carry_out(&args, place, printer).await;
    }
    plan.tell(&args, printer)
}

/// Everything that is to be erased.
struct Plan {
    info: SessionInfo,
    short: String,
    erasure: Erasure,
    about: About,
}

impl Plan {
    async fn of(
        args: &EraseArgs,
        info: SessionInfo,
        what: What,
        place: &Place,
    ) -> Result<Self, CommandError> {
        let short = place.short(&info.id).await?;
        let erasure = match place.steersman.erasure(&info.id, what, args.alone).await {
            Ok(erasure) => erasure,
            Err(ErasureError::Session(error)) => return Err(open(error, &short)),
            Err(ErasureError::Rerun { session, error }) => {
                return Err(open_rerun(error, &place.short(&session).await?));
            }
            Err(ErasureError::Reruns(reruns)) => {
                let names = names(place, &reruns).await?;
                let what =
                    format!("its reruns hold the same texts, at lines that may differ: {names}");
                return Err(CommandError::usage(what).hint(format!(
                    "erase there what is to go (`steersman log RERUN` shows the lines), or the whole session (`steersman erase {short}`); \
                     --alone leaves the reruns as they are"
                )));
            }
        };
        let about = About {
            names: names(place, &erasure.erased.reruns).await?,
            count: erasure.erased.reruns.len() as u64,
            erases: !erasure.with.is_empty(),
            origin: match &erasure.origin {
                Some(origin) => Some(place.short(origin).await?),
                None => None,
            },
        };
        Ok(Self {
            info,
            short,
            erasure,
            about,
        })
    }

    /// Tells what would be erased.
    fn tell(&self, args: &EraseArgs, printer: &Printer) -> Result<Exit, CommandError> {
        let erased = &self.erasure.erased;
        if printer.is_json() {
            let reruns: Vec<&str> = self.erasure.with.iter().map(|id| &**id).collect();
            printer.json(&json!({
                "session": &*self.info.id,
                "texts": erased.texts,
                "artifacts": erased.contents.len(),
                "memories": self.erasure.saved.len(),
                "reruns": reruns,
                "erased": false,
            }))?;
        }
        let all = erased_words(erased);
        printer.talk(format!("{all} would be erased, for good."));
        printer.talk(yellow(match self.erasure.what {
            What::All => "Models that go on with this session would see [erased], its state would be unset, its labels and its outcome gone from lists.",
            What::Line(_) | What::Effect(_) => "Models that go on with this session would see [erased] there; state that was written with it would be unset.",
        }));
        self.about.tell(false, printer);
        remembered(args, &self.erasure.saved, &self.short, printer);
        printer.talk(format!(
            "Next:  {}",
            typed(&format!("{} --yes", typed_again(args)))
        ));
        Ok(Exit::Answered)
    }

    async fn carry_out(
        self,
        args: &EraseArgs,
        place: Place,
        printer: &Printer,
    ) -> Result<Exit, CommandError> {
        let (info, erasure) = (&self.info, &self.erasure);
        let erased = place.steersman.carry_out(erasure).await?;
        let (mut lines, mut verifies) = (0, true);
        for id in erasure.with.iter().chain([&info.id]) {
            let load = Load::new(place.store().clone(), id.clone(), info.salt);
            let report = load.inspect().await?;
            lines += report.lines as u64;
            verifies &= report.damaged.is_empty();
        }
        let mut contents = erased.contents.clone();
        if args.memory {
            contents.extend(erasure.saved.iter().map(|memory| memory.hash));
            let ids = erasure.saved.iter().map(|memory| memory.id).collect();
            place.store().forget_memories(ids).await?;
        }
        let passed = passed(&place, &contents).await?;
        let file = place.file.clone();
        place.close();
        let forgotten = forget(&file, &info.id, contents, passed).await?;
        let done = Done {
            all: erased_words(&erasure.erased),
            erased,
            reruns: erasure.with.clone(),
            lines,
            verifies,
            forgotten,
        };
        self.about.tell(true, printer);
        remembered(args, &self.erasure.saved, &self.short, printer);
        let mut again = format!("{} --yes", typed_again(args));
        if args.memory {
            again += ", steersman gc --yes";
        }
        tell(done, (&info.id, &self.short), (&file, &again), printer)
    }
}

/// Returns the error for a session in which something is open.
fn open(error: Error, short: &str) -> CommandError {
    CommandError::from(error).hint(format!(
        "let it come to its end or end it first: `steersman cancel {short}`"
    ))
}

/// Returns the error for a rerun in which something is open.
fn open_rerun(error: Error, short: &str) -> CommandError {
    let mut error = open(error, short);
    error.message = format!("its rerun {short}: {}", error.message);
    error.hint("--alone leaves its reruns as they are")
}

/// Returns sessions as people type them.
async fn names(place: &Place, sessions: &[SessionId]) -> Result<String, CommandError> {
    let mut names = Vec::with_capacity(sessions.len());
    for id in sessions {
        names.push(place.short(id).await?);
    }
    Ok(names.join(", "))
}

fn erased_words(erased: &Erased) -> String {
    let texts = count(erased.texts, "text");
    if erased.contents.is_empty() {
        return texts;
    }
    let contents = count(erased.contents.len() as u64, "content");
    format!("{texts} and {contents} of artifacts")
}

/// The sessions that hold the same texts as the one that is erased.
struct About {
    /// Its reruns, as people type them.
    names: String,
    count: u64,
    /// True if the reruns are erased with it.
    erases: bool,
    /// The session that it repeats, if it is a rerun, as people type it.
    origin: Option<String>,
}

impl About {
    fn tell(&self, is_done: bool, printer: &Printer) {
        let (names, reruns) = (&self.names, count(self.count, "rerun"));
        match (self.count, self.erases, is_done) {
            (0, ..) => {}
            (_, true, false) => printer.talk(format!(
                "{reruns} of it would be erased with it: {names}. --alone leaves them as they are."
            )),
            (_, true, true) => printer.talk(format!("Erased with it: {names}, {reruns} of it.")),
            (_, false, _) => printer.talk(yellow(&format!(
                "{reruns} of it, which hold the same texts: kept. {names}"
            ))),
        }
        if let Some(origin) = &self.origin {
            printer.talk(yellow(&format!(
                "It is a rerun of {origin}, which holds the same texts and stays: {}",
                typed(&format!("steersman erase {origin}"))
            )));
        }
    }
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
    /// The reruns that were erased with the session.
    reruns: Vec<SessionId>,
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
        reruns,
        lines,
        verifies,
        forgotten,
    } = done;
    if printer.is_json() {
        printer.json(&json!({
            "session": session,
            "texts": erased.texts,
            "artifacts": forgotten.deleted(),
            "reruns": reruns.iter().map(|id| &**id).collect::<Vec<_>>(),
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
    let alone = if args.alone { " --alone" } else { "" };
    let address = args.address.as_deref().unwrap_or_default();
    format!("steersman erase {address}{effect}{memory}{alone}")
}

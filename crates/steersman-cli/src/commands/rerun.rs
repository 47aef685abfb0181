//! `rerun`: runs a session again with something changed; or many sessions, with a table of the changes.

mod idle;
mod many;

use crate::address::Address;
use crate::cli::{Drive, Global, Grading, model_set};
use crate::commands::{changed, check, diff, migrate};
use crate::error::{CommandError, Exit};
use crate::grading::{self, Sheet};
use crate::place::{self, Place, branch_name};
use crate::printer::{Printer, typed, yellow};
use crate::step;
use crate::words::{self, count, digits, money};
use clap::builder::{NonEmptyStringValueParser, RangedU64ValueParser};
use idle::{Idle, elsewhere};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use steersman::grading::{Case, Judges};
use steersman::runtime::session::Settled;
use steersman::views::cause::Reason;
use steersman::views::grade::{Graded, Verdict};
use steersman::views::rerun::{Reran, differs};
use steersman::{Diff, Network, People, Rerun, Rerunned};
use steersman_machine::stored::ids::{Id, Line, Name};

pub(crate) const LISTED: &str =
    "Run sessions again with something changed, dry, and say what differs";

/// Run a session again from its recording, with another definition, model or message; dry unless --live. Exit code 8
/// if the outcome differs.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("sessions").required(true))]
pub(crate) struct RerunArgs {
    /// SESSION[:BRANCH][@LINE]: what came up to the line stays [default: everything again].
    #[arg(group = "sessions")]
    address: Option<String>,
    /// All sessions that match: `definition = invoice and updated > -7d`. Reruns are left out.
    #[arg(long = "where", value_name = "FILTER", group = "sessions", conflicts_with_all = ["say", "name"])]
    filter: Option<String>,
    /// Set a value of the definition: `models.default.model=gpt-5-nano`. May be given more than once.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Ask this model: short for `--set models.default.model=NAME`; `local` is any model of a server on this computer.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Bind another value of `config` than the session took when it began. May be given more than once.
    #[arg(long, value_name = "NAME=VALUE")]
    config: Vec<String>,
    /// Another definition: a file, or a folder with a steersman.yaml.
    #[arg(long, value_name = "FILE")]
    definition: Option<PathBuf>,
    /// Say this at the line, before anything else happens there, in place of the next recorded message.
    #[arg(long, value_name = "TEXT")]
    say: Option<String>,
    #[command(flatten)]
    grading: Grading,
    /// So many times.
    #[arg(long, visible_alias = "runs", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Let effects touch the world that are not on record.
    #[arg(long, conflicts_with = "filter")]
    live: bool,
    /// Who answers for people: `recorded`, `stop`, or an agent of the definition for questions without a recorded answer.
    #[arg(long, value_name = "WHO", default_value = "recorded", value_parser = NonEmptyStringValueParser::new())]
    people: String,
    /// Stop after each line: Enter goes to the next one, `c` goes on without stops, `q` leaves it paused, any other text is
    /// said there. Reads standard input, a terminal or not; its end is a `q`.
    #[arg(long, conflicts_with = "filter")]
    step: bool,
    /// A name for it: its label `rerun`.
    #[arg(long = "as", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    /// At most so many sessions, newest first.
    #[arg(long, value_name = "N", requires = "filter", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    limit: Option<usize>,
    /// Begin no more once this much was paid.
    #[arg(long, value_name = "AMOUNT", requires = "filter")]
    cost: Option<f64>,
    /// Write a report into this folder: a page for each session and a summary, as Markdown and JSON.
    /// Overwrites nothing.
    #[arg(long, value_name = "DIR", requires = "filter")]
    report: Option<PathBuf>,
    /// So many at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    parallel: u16,
    #[command(flatten)]
    drive: Drive,
}

pub(crate) async fn run(
    args: RerunArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let changes = Changes::of(&args, printer)?;
    let place = Place::required(global, &args.drive).await?;
    if let Some(filter) = &args.filter {
        return many::run(&args, filter, &changes, &place, printer).await;
    }
    let address = args.address.as_deref().unwrap_or("last");
    let spot = Spot::find(address, &place).await?;
    let grades = Grades::of(&args, &changes, &spot.session, &place, printer).await?;
    let mut sheet = match &grades {
        Some(grades) => Some(grades.sheet(&args)?),
        None => None,
    };
    let mut worst = Exit::Answered;
    for n in 0..args.repeat {
        let (rerun, mut idle) = changes.rerun(&args, &spot, &place, printer).await?;
        let ran = tokio::select! {
            ran = place.steersman.rerun(&spot.session, rerun) => {
                ran.map_err(|e| changes.hinted(e.into()))?
            }
            stop = tokio::signal::ctrl_c() => {
                stop?;
                printer.complain("Stopped. What was begun is dry and does nothing by itself; rerun it again.");
                return Ok(Exit::Interrupted);
            }
        };
        if *ran.settled == Settled::Paused {
            return left_paused(&ran, &place, printer).await;
        }
        let sides = ((&*spot.session, Some(spot.branch)), (&*ran.session, None));
        let found = place.steersman.diff(sides.0, sides.1).await?;
        idle.extend(changes.without_effect(&ran, &found, &idle));
        tell(&ran, &found, &idle, (&spot, &place, &args), printer).await?;
        changes.say(&idle, printer);
        if let (Some(grades), Some(sheet)) = (&grades, &mut sheet) {
            sheet.add(grades.measure(&ran, &spot.session, &place).await?, printer)?;
        }
        if n + 1 < args.repeat {
            printer.talk("");
        }
        if differs(&ran, &found) {
            worst = Exit::Differs;
        }
    }
    match sheet {
        Some(sheet) => sheet.finish(&args.grading, printer),
        None => Ok(worst),
    }
}

/// The grades by which reruns are measured, with their judges.
struct Grades {
    network: Network,
    judges: Judges,
}

impl Grades {
    /// Returns the grades, if `--grade` was given: those of `--definition`, otherwise those of the file that the session's definition
    /// was read from.
    async fn of(
        args: &RerunArgs,
        changes: &Changes,
        session: &str,
        place: &Place,
        printer: &Printer,
    ) -> Result<Option<Self>, CommandError> {
        if !args.grading.grade {
            return Ok(None);
        }
        let network = if let Some(network) = &changes.definition {
            network.clone()
        } else {
            let seen = place.steersman.inspect(session).await?;
            let Some(file) = changed::file(&seen) else {
                let what =
                    "the file of the session's definition, which has the grades, is not there";
                return Err(CommandError::usage(what)
                    .hint("--definition FILE names a definition with its grades"));
            };
            check::required(&file, printer)?
        };
        grading::required(&network)?;
        let judges = grading::judges(&args.drive)?;
        Ok(Some(Self { network, judges }))
    }

    fn sheet(&self, args: &RerunArgs) -> Result<Sheet<'_>, CommandError> {
        Sheet::new(&self.network, &args.grading)
    }

    /// Measures a rerun of a session.
    async fn measure(
        &self,
        ran: &Rerunned,
        of: &str,
        place: &Place,
    ) -> Result<Vec<Graded>, CommandError> {
        let case = Case::Session(of);
        let graded = place
            .steersman
            .grade(&ran.session, case, &self.network, &self.judges);
        Ok(graded.await?)
    }

    /// Returns what is known of a session that could not be rerun: nothing.
    fn unmeasured(&self, of: &str, why: &str) -> Vec<Graded> {
        let grades = self.network.grades().iter();
        let grades = grades.filter(|(_, grade)| grade.is_of(Case::Session(of)));
        let unknown = |(name, _): (&String, _)| Graded {
            grade: name.clone(),
            case: of.to_owned(),
            verdict: Verdict::Unknown(format!("it could not be rerun: {why}")),
            micros: 0,
        };
        grades.map(unknown).collect()
    }
}

/// Reports a rerun that was left paused by the person who stepped through its lines.
async fn left_paused(
    ran: &Rerunned,
    place: &Place,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if printer.is_json() {
        let status = ran.settled.word();
        printer.json(&json!({ "session": &*ran.session, "status": status, "lines": ran.lines }))?;
    }
    let short = place.short(&ran.session).await?;
    printer.talk(format!("{short} is left paused."));
    let resume = format!("steersman run --resume {short} --step");
    printer.next(
        resume,
        "goes on by itself: models are asked, the recording is not",
    );
    Ok(Exit::Waits)
}

/// The session, branch and line at which a rerun begins.
struct Spot {
    session: String,
    branch: Id,
    name: String,
    at: Option<Line>,
}

impl Spot {
    async fn find(text: &str, place: &Place) -> Result<Self, CommandError> {
        let address = Address::parse(text)?;
        let (seen, at) = place.inspect(&address).await?;
        let branch = &seen.branches[at];
        let line = match &address.line {
            None => None,
            Some(line) => {
                let log = place.log(&seen.info.id).await?;
                let mut path = log.path(branch, &seen.branches);
                path.retain(|line| line.commit.is_some());
                place::line(Some(line), &path)?
            }
        };
        let short = place.short(&seen.info.id).await?;
        Ok(Self {
            session: seen.info.id.to_string(),
            branch: branch.id,
            name: if branch.id == Id::MAIN {
                short
            } else {
                format!("{short}:{}", branch_name(branch))
            },
            at: line,
        })
    }
}

/// The changes that are applied to each session.
struct Changes {
    definition: Option<Network>,
    /// The values of `--set` in their order, then that of `--model`.
    values: Vec<(String, Json)>,
    /// Number of values of `--set`.
    typed: usize,
    config: BTreeMap<Name, Json>,
    people: People,
    /// Paths for which a warning was printed.
    warned: Mutex<BTreeSet<String>>,
}

impl Changes {
    fn of(args: &RerunArgs, printer: &Printer) -> Result<Self, CommandError> {
        let definition = match &args.definition {
            Some(path) => Some(check::required(path, printer)?),
            None => None,
        };
        let mut values = Vec::new();
        for given in &args.set {
            let Some((path, value)) = given.split_once('=').filter(|(path, _)| !path.is_empty())
            else {
                return Err(CommandError::usage(format!(
                    "`--set {given}` has no value: write a path, `=` and the new value"
                ))
                .hint("--set models.default.model=gpt-5-nano"));
            };
            values.push((path.to_owned(), words::value(value)));
        }
        let typed = values.len();
        if let Some(model) = &args.model {
            values.push(model_set(model));
        }
        let people = match &*args.people {
            "recorded" => People::Recorded,
            "stop" => People::Stop,
            agent => People::Agent(agent.into()),
        };
        Ok(Self {
            definition,
            values,
            typed,
            config: migrate::parsed(&args.config)?,
            people,
            warned: Mutex::default(),
        })
    }

    /// Warns about a value that is set for an agent but overridden by its modes, or for a model that nothing asks. There is one
    /// warning for each path.
    fn warn(&self, network: &Network, printer: &Printer) {
        for (path, _) in &self.values {
            if let Some(text) = elsewhere(path, network) {
                self.warn_once(path, &text, printer);
            }
        }
    }

    /// Says which values change nothing.
    fn say(&self, idle: &[Idle], printer: &Printer) {
        for Idle { path, why } in idle {
            self.warn_once(path, why, printer);
        }
    }

    fn warn_once(&self, path: &str, text: &str, printer: &Printer) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.insert(path.to_owned()) {
            printer.complain(yellow(&format!("warning: {text}")));
        }
    }

    fn was_warned_of(&self, path: &str) -> bool {
        let warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        warned.contains(path)
    }

    /// Replaces the hints of an error about a model that `--set` names: scripts are not the cause.
    fn hinted(&self, error: CommandError) -> CommandError {
        let about_models = error.message.starts_with("model `");
        let set = self
            .values
            .iter()
            .filter(|(path, _)| path.starts_with("models."));
        let set: Vec<String> = set.map(|(path, value)| format!("{path}={value}")).collect();
        if !about_models || set.is_empty() {
            return error;
        }
        CommandError {
            hints: vec![format!(
                "{} must answer calls that are not recorded: name its provider (--set models.default.provider=openai) and set its key, or give --script-all FILE",
                set.join(", ")
            )],
            ..error
        }
    }

    /// Returns true if the sessions' definitions and their values are not changed.
    fn is_plain(&self) -> bool {
        self.values.is_empty() && self.config.is_empty()
    }

    /// Returns the definition for the rerun of a session, with the values set; `None` means the session's own. Without
    /// another definition, the values are set in the one that the session is bound to.
    async fn network(&self, session: &str, place: &Place) -> Result<Option<Network>, CommandError> {
        let has_config = !self.config.is_empty();
        let definition = self.definition.as_ref();
        let changed =
            place
                .steersman
                .changed_definition(session, definition, &self.values, has_config);
        Ok(changed.await?)
    }

    /// Returns the changes for one session, and the values that cannot change anything in its rerun.
    async fn rerun(
        &self,
        args: &RerunArgs,
        spot: &Spot,
        place: &Place,
        printer: &Printer,
    ) -> Result<(Rerun, Vec<Idle>), CommandError> {
        let idle = self.idle(spot, place).await?;
        let definition = self.network(&spot.session, place).await?;
        if let Some(network) = &definition {
            self.warn(network, printer);
        }
        let rerun = Rerun {
            branch: Some(spot.branch),
            at: spot.at,
            definition,
            models: args
                .model
                .iter()
                .map(|model| ("default".to_owned(), model.clone()))
                .collect(),
            config: self
                .config
                .iter()
                .map(|(name, value)| (name.to_string(), value.clone()))
                .collect(),
            say: args.say.clone(),
            live: args.live,
            people: self.people.clone(),
            name: args.name.clone(),
            steps: args.step.then(|| step::steps(place.engine(), printer)),
        };
        Ok((rerun, idle))
    }
}

/// Returns what to say of a value that is set for a model that no agent asks.
fn not_asked(path: &str, network: &Network) -> Option<String> {
    let model = path.strip_prefix("models.")?.split('.').next()?;
    let asked = network.checked().all_models();
    if asked.iter().any(|name| ***name == *model) {
        return None;
    }
    let nobody = format!("`{path}` changes no answer, because no agent asks the model `{model}`");
    let asked: Vec<&str> = asked.iter().map(|name| &***name).collect();
    Some(match asked.first() {
        None => nobody,
        Some(first) => format!(
            "{nobody}; they ask {}: --set models.{first}.model=NAME",
            asked.join(", ")
        ),
    })
}

/// Describes in a sentence how far the recording was followed.
fn sentence(ran: &Rerunned) -> String {
    let were = if ran.lines == 1 { "was" } else { "were" };
    let followed = format!(
        "{} of the recording {were} followed",
        count(ran.lines, "line")
    );
    match &ran.diverged {
        None => format!("{followed} to its end"),
        Some(left) => format!("{followed}; at @{} {}", left.line, left.why),
    }
}

/// Says how many model calls were made, and how many the recording answered.
fn calls(ran: &Rerunned) -> String {
    let asked = count(ran.live_calls, "model call");
    let recorded = count(ran.recorded_calls, "answer");
    if ran.recorded_calls == 0 {
        return format!("{asked} made");
    }
    let of = if ran.live_calls == 0 {
        ": nobody was asked, and"
    } else {
        ","
    };
    format!("{asked} made{of} {recorded} came from the recording")
}

/// Returns what to say of a changed model or a script that was given although nobody was asked.
fn of_no_use(ran: &Rerunned, args: &RerunArgs) -> Option<String> {
    let drive = &args.drive;
    let given = if let Some(model) = &args.model {
        format!("--model {model}")
    } else if drive.script_all.is_some() {
        "--script-all".to_owned()
    } else if drive.script.is_some() {
        "--script".to_owned()
    } else {
        return None;
    };
    (ran.live_calls == 0 && ran.recorded_calls > 0).then(|| {
        format!(
            "{given} changed nothing: each request, and the name of the model that gets it, equals the recorded one, so the \
             recording answered; --set changes what is asked"
        )
    })
}

/// Returns the report of a rerun as JSON, with the values of `--set` that changed nothing.
fn with_idle(reran: Reran, idle: &[Idle]) -> Json {
    let mut document = serde_json::to_value(reran).unwrap_or_default();
    if !idle.is_empty() {
        let each = idle
            .iter()
            .map(|idle| json!({ "path": idle.path, "why": idle.why }));
        document["no_effect"] = each.collect();
    }
    document
}

/// Lists the acts of people that were not repeated; `None` if all were.
fn not_repeated(ran: &Rerunned) -> Option<String> {
    let all = &ran.not_repeated;
    (!all.is_empty()).then(|| format!("not repeated: {}", all.join(", ")))
}

async fn tell(
    ran: &Rerunned,
    found: &Diff,
    idle: &[Idle],
    (spot, place, args): (&Spot, &Place, &RerunArgs),
    printer: &Printer,
) -> Result<(), CommandError> {
    if printer.is_json() {
        let reran = Reran::of(ran, found, &spot.session, spot.at);
        return printer.view(&with_idle(reran, idle));
    }
    let short = place.short(&ran.session).await?;
    let how = if args.live {
        "live: what is not on record touches the world"
    } else {
        "dry: nothing touches the world"
    };
    printer.talk(format!("{short} is a rerun of {}, {how}.", spot.name));
    printer.talk(format!("{}.", sentence(ran)));
    if !ran.servers.is_empty() {
        printer.complain(yellow(&format!(
            "The servers list other tools now ({}); the rerun has those of the recording.",
            ran.servers.join(", ")
        )));
    }
    if let Some(leaf) = &ran.leaf {
        printer.talk(format!("It ends at a leaf: {leaf}."));
    }
    if let (Settled::Failed { code, message }, Some(_)) = (&*ran.settled, &ran.diverged) {
        let seen = place.engine().inspect(&ran.session).await?;
        let code = Reason::of(&seen).map_or_else(|| code.to_string(), |first| first.told());
        let message = message.trim_end_matches('.');
        printer.talk(format!("It failed ({code}): {message}."));
    }
    for row in diff::rows(found, &spot.name, &short) {
        printer.data(row)?;
    }
    if let Some(left_out) = not_repeated(ran) {
        printer.data(left_out)?;
    }
    printer.data(format!(
        "{}; {} tokens, {}",
        calls(ran),
        digits(ran.tokens),
        money(ran.micros),
    ))?;
    if let Some(text) = of_no_use(ran, args) {
        printer.complain(yellow(&text));
    }
    for command in [
        format!("steersman show {short}"),
        format!("steersman diff {} {short}", spot.name),
    ] {
        printer.talk(format!("  {}", typed(&command)));
    }
    Ok(())
}

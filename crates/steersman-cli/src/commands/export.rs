//! `export`: writes sessions as documents or as trajectories, or the artifacts that they made.

use crate::address::Address;
use crate::cli::Global;
use crate::commands::test::write_new;
use crate::commands::there::on_a_store;
use crate::commands::{artifacts, sessions};
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::place::Place;
use crate::printer::{Printer, red, yellow};
use crate::remote::Remote;
use crate::words::count;
use serde_json::{Value as Json, json};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use steersman::runtime::artifact::{Artifacts, Version};
use steersman::runtime::engine::{BranchView, Inspection};
use steersman::runtime::known::Known;
use steersman::runtime::store::SessionInfo;
use steersman::views::cause;
use steersman::views::filter::Filter;
use steersman::views::screen::{ArtifactRow, Ask, LogScreen, ShowScreen};
use steersman_machine::search::reward::Reward;
use steersman_machine::snapshot::Snapshot;

pub(crate) const LISTED: &str =
    "Print sessions as documents or as trajectories, or write their artifacts";

/// Print sessions as documents, or as trajectories to train on, or write their artifacts.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("exported").required(true))]
pub(crate) struct ExportArgs {
    /// The session.
    #[arg(group = "exported")]
    session: Option<String>,
    /// All sessions that match.
    #[arg(long = "where", value_name = "FILTER", group = "exported")]
    filter: Option<String>,
    /// Reruns, too, which a filter leaves out otherwise unless it names `rerun` or `rerun_of`.
    #[arg(long, conflicts_with = "session")]
    reruns: bool,
    /// Messages, calls, answers and rewards of each model call, one JSON object a line.
    #[arg(long)]
    trajectories: bool,
    /// The form of a session: one document with all that `show` and `log` tell, or spans for tracing tools [default: document].
    #[arg(long, value_enum, value_name = "FORM", conflicts_with_all = ["trajectories", "artifacts"])]
    form: Option<Form>,
    /// With `--form otlp`: the texts of messages, calls and results, too. Secrets that the session knows are masked.
    #[arg(long, requires = "form")]
    trace_content: bool,
    /// What a branch is worth: a value of its `outcome:` by name, or an expression over those names, `outcome`, `answer`,
    /// `state` and `calls`; a number or true or false [default: what a search judged it to be worth].
    #[arg(long, value_name = "EXPR", requires = "trajectories")]
    reward: Option<String>,
    /// Write the artifacts into this folder instead, every version, and `index.json`, which lists them with their ratings.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["trajectories", "out"])]
    artifacts: Option<PathBuf>,
    /// Write into this file. Overwrites nothing.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Forms of an exported session.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    // Their descriptions are in that of the option.
    Document,
    #[cfg(feature = "otel")]
    Otlp,
}

pub(crate) async fn run(
    args: ExportArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    // Without the feature there is one form, and it has no texts to leave out.
    #[cfg(not(feature = "otel"))]
    let _ = (args.form, args.trace_content);
    if let Some(remote) = Remote::of(global)? {
        return Box::pin(at_server(&remote, &args, printer)).await;
    }
    let place = Place::to_look(global).await?;
    let found = match &args.session {
        Some(session) => vec![place.session(&Address::parse(session)?.session).await?],
        None => matching(&args, &place, printer).await?,
    };
    if found.is_empty() {
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(CommandError::usage(format!(
            "no session matches `{filter}`: nothing was written"
        ))
        .hint("`steersman sessions --all` lists those that there are"));
    }
    if let Some(folder) = &args.artifacts {
        return artifacts_of(&place, &found, folder, printer).await;
    }
    let (mut text, mut rows) = (String::new(), 0);
    let unrewarded = Unrewarded::default();
    for info in &found {
        let known = place.engine().secrets_of(&info.id).await?;
        missed(&known, info, printer);
        #[cfg(feature = "otel")]
        if args.form == Some(Form::Otlp) {
            let _ = writeln!(text, "{}", spans(&args, &place, info).await?);
            rows += 1;
            continue;
        }
        let documents = if args.trajectories {
            let reward = reward(&args, &place, info).await?;
            let worth = |seen: &Inspection, branch: &BranchView| match &reward {
                None => seen.ledger.score(branch.id),
                Some(reward) => unrewarded.record(seen.reward_on(branch, reward)),
            };
            let blocks = place.steersman.trajectories(&info.id, worth).await?;
            let documents = blocks.iter().map(serde_json::to_value);
            documents
                .collect::<Result<Vec<Json>, _>>()
                .map_err(|e| CommandError::new(Exit::Failed, e.to_string()))?
        } else {
            vec![whole(&place, info).await?]
        };
        for document in documents {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{document}");
            rows += 1;
        }
    }
    if rows == 0 {
        let sessions = count(found.len() as u64, "session");
        return Err(CommandError::usage(format!(
            "there are no trajectories: no agent of {sessions} has called a model yet"
        ))
        .hint("without --trajectories each session is one document"));
    }
    unrewarded.complain(&args, printer);
    match &args.out {
        Some(out) => {
            write_new(out, &text)?;
            let sessions = count(found.len() as u64, "session");
            let told = if args.trajectories {
                format!("{} of {sessions}", count(rows, "block"))
            } else {
                sessions
            };
            printer.talk(format!("{}: {told}", locate::shown(out)));
        }
        None => printer.bytes(text.as_bytes())?,
    }
    Ok(Exit::Answered)
}

/// Returns the sessions that match the filter, without reruns unless they are asked for.
async fn matching(
    args: &ExportArgs,
    place: &Place,
    printer: &Printer,
) -> Result<Vec<SessionInfo>, CommandError> {
    let filter = Filter::parse(args.filter.as_deref())?;
    let found = sessions::select(place, &filter).await?;
    let (found, reruns) = cause::work(found, args.reruns || filter.names_reruns());
    if reruns > 0 {
        let reruns = count(reruns as u64, "rerun");
        printer.talk(format!("{reruns} not written: --reruns"));
    }
    Ok(found)
}

/// Parses `--reward`, if it is given, and checks it against the session's definition.
async fn reward(
    args: &ExportArgs,
    place: &Place,
    info: &SessionInfo,
) -> Result<Option<Reward>, CommandError> {
    let Some(source) = &args.reward else {
        return Ok(None);
    };
    let Some(network) = place.engine().inspect(&info.id).await?.network else {
        return Ok(None);
    };
    let read = Reward::read(source, &network);
    Ok(Some(read.map_err(|why| {
        CommandError::usage(format!("--reward: {why}"))
            .hint(format!("session {}; nothing was written", info.id))
    })?))
}

/// The number of branches without a reward although one was asked for, and the reason for the first.
#[derive(Default)]
struct Unrewarded(Cell<u64>, RefCell<Option<String>>);

impl Unrewarded {
    fn record(&self, worth: Result<f64, String>) -> Option<f64> {
        match worth {
            Ok(worth) => Some(worth),
            Err(why) => {
                self.0.set(self.0.get() + 1);
                self.1.borrow_mut().get_or_insert(why);
                None
            }
        }
    }

    fn complain(&self, args: &ExportArgs, printer: &Printer) {
        if let (Some(why), Some(reward)) = (&*self.1.borrow(), &args.reward) {
            let branches = match self.0.get() {
                1 => "1 branch has".to_owned(),
                n => format!("{n} branches have"),
            };
            printer.complain(yellow(&format!(
                "{branches} no reward by `{reward}`: {why}"
            )));
        }
    }
}

/// Warns about values in the output that may be secrets but are not known as such.
fn missed(known: &Known, info: &SessionInfo, printer: &Printer) {
    if let Some(why) = known.misses() {
        printer.complain(yellow(&format!(
            "session {}: {why}: if such a value was said in clear, the output contains it",
            info.id
        )));
    }
}

/// Returns the spans of a session as one document of OTLP.
#[cfg(feature = "otel")]
async fn spans(
    args: &ExportArgs,
    place: &Place,
    info: &SessionInfo,
) -> Result<String, CommandError> {
    use steersman::adapters::otel;
    use steersman::views::spans::Tracer;
    let reader = std::sync::Arc::new(place.reader(&info.id));
    let spans = Tracer::all(reader, &info.id, args.trace_content).await?;
    let service = otel::service(&steersman::runtime::process_env());
    Ok(otel::json(&spans, &service))
}

/// Returns a session as one document: what `show` prints, and the lines under `log`.
async fn whole(place: &Place, info: &SessionInfo) -> Result<Json, CommandError> {
    let shown: ShowScreen = place.screen_of(&info.id, &document()).await?;
    let log: LogScreen = place.screen_of(&info.id, &lines(None)).await?;
    let mut document = shown.document.unwrap_or_default();
    document["log"] = log.events.into();
    Ok(document)
}

/// Asks for a page as a document.
fn document() -> Ask {
    Ask {
        form: Some(ShowScreen::DOCUMENT.to_owned()),
        ..Ask::default()
    }
}

/// Asks for the lines of a log as documents.
fn lines(after: Option<u64>) -> Ask {
    Ask {
        form: Some("lines".to_owned()),
        after,
        ..Ask::default()
    }
}

/// Prints or writes a session of a server as one document.
async fn at_server(
    remote: &Remote,
    args: &ExportArgs,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let on_stores = [
        ("--where", args.filter.is_some()),
        ("--trajectories", args.trajectories),
        ("--artifacts", args.artifacts.is_some()),
        (
            "--form",
            args.form.is_some_and(|form| form != Form::Document),
        ),
    ];
    if let Some((name, _)) = on_stores.into_iter().find(|(_, is_given)| *is_given) {
        return Err(on_a_store(name));
    }
    let session = args.session.as_deref().unwrap_or("last");
    let session = remote.session(&Address::parse(session)?.session).await?;
    let shown: ShowScreen = remote.screen_of(&session, &document()).await?;
    let (mut log, mut after) = (Vec::new(), None);
    loop {
        let screen: LogScreen = remote.screen_of(&session, &lines(after)).await?;
        log.extend(screen.events);
        if !screen.has_more {
            break;
        }
        after = Some(screen.upto.0);
    }
    let mut document = shown.document.unwrap_or_default();
    document["log"] = log.into();
    let text = format!("{document}\n");
    match &args.out {
        Some(out) => {
            write_new(out, &text)?;
            printer.talk(format!("{}: 1 session", locate::shown(out)));
        }
        None => printer.bytes(text.as_bytes())?,
    }
    Ok(Exit::Answered)
}

/// Writes every version of each artifact to `SESSION/vN/NAME`, and a list of them to `index.json`. A failure does not stop
/// the others.
async fn artifacts_of(
    place: &Place,
    found: &[SessionInfo],
    folder: &Path,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let (mut index, mut saved) = (Vec::new(), 0);
    let mut failed: Vec<CommandError> = Vec::new();
    for info in found {
        let seen = place.engine().inspect(&info.id).await?;
        let snapshot = seen.current_branch();
        let snapshot = snapshot.map_or_else(Snapshot::empty, |branch| branch.snapshot.clone());
        let versions = Artifacts::new(place.store().clone(), snapshot, None).versions();
        let known = place.engine().secrets_of(&info.id).await?;
        missed(&known, info, printer);
        let names = shown_names(&versions, &known);
        for version in &versions {
            let mut row = ArtifactRow::from(version).document;
            known.mask(&mut row);
            let name = &names[&*version.name];
            row["artifact"] = json!(name);
            row["session"] = json!(&*info.id);
            row["file"] = Json::Null;
            let file = format!("{}/v{}/{name}", info.id, version.version);
            match one_artifact(place, &known, version, (folder, &file), &mut row).await {
                // An erased artifact is listed without a file.
                Ok(false) => {}
                Ok(true) => {
                    row["file"] = file.into();
                    saved += 1;
                }
                Err(error) => {
                    printer.complain(red(&format!("not saved: {error}")));
                    row["why"] = error.to_string().into();
                    failed.push(error);
                }
            }
            index.push(row);
        }
    }
    let text = format!("{:#}\n", Json::Array(index));
    artifacts::save_below(folder, "index.json", text.as_bytes())?;
    let (files, sessions) = (count(saved, "file"), count(found.len() as u64, "session"));
    printer.talk(format!("{}: {files} of {sessions}", locate::shown(folder)));
    let all = failed.len() + usize::try_from(saved).unwrap_or(usize::MAX);
    match artifacts::not_saved(&failed, all, "file") {
        Some(error) => {
            Err(error.hint("`index.json` has no `file` where nothing was written, and says why"))
        }
        None => Ok(Exit::Answered),
    }
}

/// Writes one version with its secrets masked. Returns false if its content was erased.
async fn one_artifact(
    place: &Place,
    known: &Known,
    version: &Version,
    (folder, file): (&Path, &str),
    row: &mut Json,
) -> Result<bool, CommandError> {
    let Some(content) = place.store().blob(&version.hash).await? else {
        return Ok(false);
    };
    let masked = std::str::from_utf8(&content).ok();
    let masked = masked.filter(|text| known.occurs_in(text));
    let masked = masked.map(|text| known.masked(text).into_bytes());
    row["masked"] = masked.is_some().into();
    artifacts::save_below(folder, file, masked.as_deref().unwrap_or(&content))?;
    Ok(true)
}

/// Returns the names of artifacts with secrets masked. Different names stay different.
fn shown_names(versions: &[Version], known: &Known) -> BTreeMap<String, String> {
    let names: BTreeSet<&str> = versions.iter().map(|version| &*version.name).collect();
    let (secret, plain): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| known.occurs_in(name));
    let mut used: BTreeSet<String> = plain.iter().map(ToString::to_string).collect();
    let mut shown: BTreeMap<String, String> = used
        .iter()
        .map(|name| (name.clone(), name.clone()))
        .collect();
    for name in secret {
        let masked = known.masked(name);
        let numbered = (2..).map(|n| format!("{masked}.{n}"));
        let mut free = std::iter::once(masked.clone()).chain(numbered);
        let found = free.find(|name| !used.contains(name)).unwrap_or(masked);
        used.insert(found.clone());
        shown.insert(name.to_owned(), found);
    }
    shown
}

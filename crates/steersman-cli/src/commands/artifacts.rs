//! `artifacts`: lists, shows and saves the artifacts of a session.

use crate::address::Address;
use crate::cli::{Acting, Global};
use crate::commands::act::{Reached, Target, by};
use crate::commands::there::There;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, bold, dim, red};
use crate::source::Source;
use crate::words::{bytes, count, operand, table};
use serde_json::json;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use steersman::Act;
use steersman::runtime::artifact::{ArtifactError, Artifacts};
use steersman::views::screen::{ArtifactRow, ArtifactsScreen, Ask, RatingRow};
use steersman_client::{ArtifactRating, Given};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::view::rating::BEST;

pub(crate) const LISTED: &str = "List, show, save and rate what a session made";

/// List, show, save and rate what a session made.
#[derive(Debug, clap::Args)]
pub(crate) struct ArtifactsArgs {
    /// SESSION[:BRANCH][@LINE]; with a line those that there were then.
    #[arg(default_value = "last")]
    address: String,
    /// Print this one; also by the digest that `context` shows.
    name: Option<String>,
    /// This version of it, from 1 [default: the newest].
    #[arg(long, value_name = "N")]
    version: Option<usize>,
    /// Write it into this file or folder; without a name all of them into this folder. Overwrites nothing.
    #[arg(long, value_name = "PATH")]
    save: Option<PathBuf>,
    /// Rate it, from 1 to 5. What a person says outranks what agents say.
    #[arg(long, value_name = "1-5", requires = "name", conflicts_with = "save",
          value_parser = clap::value_parser!(u8).range(1..=5))]
    rate: Option<u8>,
    /// Why.
    #[arg(long, value_name = "TEXT", requires = "rate")]
    reason: Option<String>,
    #[command(flatten)]
    act: Acting,
}

pub(crate) async fn run(
    args: ArtifactsArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if let (Some(name), Some(rating)) = (&args.name, args.rate) {
        return match There::find(&args.address, global, &args.act.own, false).await? {
            Some(there) => rate_there(&there, &args, name, rating, printer).await,
            None => rate(&args, name, rating, global, printer).await,
        };
    }
    let source = Source::to_look(global).await?;
    let address = Address::parse(&args.address)?;
    let ask = Ask {
        of: args.name.clone(),
        form: args.version.map(|version| version.to_string()),
        ..Ask::default()
    };
    let screen: ArtifactsScreen = source.screen(&address, ask).await?;
    let shown = Shown {
        source,
        address,
        screen,
    };
    match &shown.screen.found {
        Some(found) => one(&shown, found, &args, printer).await,
        None if args.version.is_some() => Err(CommandError::usage("a version of which artifact?")
            .hint(format!(
                "`steersman artifacts {}` lists them",
                shown.screen.name
            ))),
        None => all(&shown, &args, printer).await,
    }
}

/// The artifacts of an address.
struct Shown {
    source: Source,
    address: Address,
    screen: ArtifactsScreen,
}

impl Shown {
    async fn content(&self, of: &ArtifactRow) -> Result<Vec<u8>, CommandError> {
        self.source.content(&self.address, of).await
    }
}

/// Rates a version as a person. The rating is an edit of state, so the session is driven for it if no process drives it.
async fn rate(
    args: &ArtifactsArgs,
    name: &str,
    rating: u8,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let target = Target::find(&args.address, global, &args.act.own.drive).await?;
    let snapshot = target.inspection.current_branch();
    let snapshot = snapshot.map_or_else(Snapshot::empty, |branch| branch.snapshot.clone());
    let artifacts = Artifacts::new(target.place.store().clone(), snapshot, None);
    let version = artifacts.find(name, args.version).map_err(refused)?;
    let (by, reason) = (by(&args.act), args.reason.as_deref());
    let meant = (name, args.version);
    let act = Act::rate_artifact(&artifacts, meant, rating, reason, by);
    let act = act.map_err(refused)?;
    match target.reach(act, &args.act.own, printer).await? {
        Reached::Driven(mut play, ..) => {
            play.let_go().await?;
        }
        Reached::Elsewhere(_) => {}
        other => return target.noted(&other, printer).await,
    }
    rated(printer, name, version.version, rating)
}

/// Rates a version at a server.
async fn rate_there(
    there: &There,
    args: &ArtifactsArgs,
    name: &str,
    rating: u8,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let ask = Ask {
        of: Some(name.to_owned()),
        form: args.version.map(|version| version.to_string()),
        ..Ask::default()
    };
    let screen: ArtifactsScreen = there.remote.screen_of(there.id(), &ask).await?;
    let version = screen.found.map_or(0, |found| found.version);
    let rate = ArtifactRating {
        role: args.act.role.clone(),
        rating: rating.into(),
        reason: args.reason.clone(),
        version: Some(version as u64),
    };
    let (views, given) = (there.remote.client.views(), Given::default());
    let receipt = views.rate_artifact(there.id(), name, &rate, &given).await?;
    if There::took(&receipt) {
        there.taken_by(printer);
        return rated(printer, name, version, rating);
    }
    there.report(&receipt, printer)
}

fn rated(printer: &Printer, name: &str, version: usize, rating: u8) -> Result<Exit, CommandError> {
    if printer.is_json() {
        printer.json(&json!({ "artifact": name, "version": version, "rating": rating }))?;
    }
    printer.talk(format!(
        "Rated version {version} of {} {rating} of {BEST}.",
        bold(name)
    ));
    Ok(Exit::Answered)
}

async fn all(shown: &Shown, args: &ArtifactsArgs, printer: &Printer) -> Result<Exit, CommandError> {
    let newest = &shown.screen.newest;
    if let Some(folder) = &args.save {
        save_all(shown, folder, printer).await?;
    }
    if printer.is_json() {
        for document in &shown.screen.documents {
            printer.json(document)?;
        }
        return Ok(Exit::Answered);
    }
    if newest.is_empty() {
        printer.talk("It made no artifacts.");
        return Ok(Exit::Answered);
    }
    if args.save.is_some() {
        return Ok(Exit::Answered);
    }
    let rows: Vec<Vec<String>> = newest
        .iter()
        .map(|a| {
            vec![
                a.name.clone(),
                a.version.to_string(),
                a.media.clone(),
                bytes(a.len),
                format!("@{}", a.line),
                a.rating.as_ref().map_or_else(String::new, in_list),
            ]
        })
        .collect();
    let heading = ["ARTIFACT", "VERSION", "TYPE", "SIZE", "LINE", "RATED"];
    for (i, row) in table(&heading, &rows).into_iter().enumerate() {
        printer.data(if i == 0 { dim(&row) } else { row })?;
    }
    printer.next(
        format!(
            "steersman artifacts {} {}",
            shown.screen.name,
            operand(&newest[0].name)
        ),
        "prints it; --save FILE keeps it, without a name --save FOLDER keeps all",
    );
    Ok(Exit::Answered)
}

/// Saves all artifacts. A failure does not stop the others.
async fn save_all(shown: &Shown, folder: &Path, printer: &Printer) -> Result<(), CommandError> {
    let newest = &shown.screen.newest;
    let mut failed: Vec<CommandError> = Vec::new();
    for version in newest {
        let saved = match shown.content(version).await {
            Ok(content) => save_below(folder, &version.name, &content),
            Err(error) => Err(error),
        };
        match saved {
            Ok(path) => printer.talk(format!("saved {}", path.display())),
            Err(error) => {
                printer.complain(red(&format!("not saved: {error}")));
                failed.push(error);
            }
        }
    }
    let hint = "the saved files stay; save the others one by one: `steersman artifacts SESSION NAME --save FILE`";
    not_saved(&failed, newest.len(), "artifact").map_or(Ok(()), |error| Err(error.hint(hint)))
}

/// Returns an error with the number of items that were not saved, if there are any.
pub(crate) fn not_saved(failed: &[CommandError], all: usize, what: &str) -> Option<CommandError> {
    let first = failed.first()?;
    let not = failed.len();
    let sum = count(all as u64, what);
    let message = format!("{not} of {sum} not saved, {} saved", all - not);
    Some(CommandError::new(first.exit, message))
}

async fn one(
    shown: &Shown,
    version: &ArtifactRow,
    args: &ArtifactsArgs,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let content = shown.content(version).await?;
    if let Some(path) = &args.save {
        let path = if path.is_dir() {
            save_below(path, &version.name, &content)?
        } else {
            save(path, &content)?
        };
        printer.talk(format!("saved {}", path.display()));
        return Ok(Exit::Answered);
    }
    let text = std::str::from_utf8(&content);
    if printer.is_json() {
        let mut document = version.document.clone();
        document["text"] = json!(text.ok());
        printer.json(&document)?;
        return Ok(Exit::Answered);
    }
    match text {
        Err(_) if std::io::stdout().is_terminal() => Err(CommandError::usage(format!(
            "`{}` is no text but {}, {}",
            version.name,
            version.media,
            bytes(version.len)
        ))
        .hint("keep it: --save FILE")),
        Err(_) => {
            printer.bytes(&content)?;
            Ok(Exit::Answered)
        }
        Ok(text) => {
            let rated = version.rating.as_ref();
            let rated = rated.map_or_else(String::new, |r| format!(", {}", r.told));
            printer.talk(format!(
                "{}   {}",
                bold(&version.name),
                dim(&format!(
                    "version {}, {}, {}{rated}",
                    version.version,
                    version.media,
                    bytes(version.len)
                ))
            ));
            if std::io::stdout().is_terminal() {
                printer.whole(text.trim_end_matches('\n'))?;
            } else {
                printer.bytes(&content)?;
            }
            Ok(Exit::Answered)
        }
    }
}

fn in_list(rating: &RatingRow) -> String {
    format!("{} by {}", rating.rating, rating.by)
}

/// Writes a new file in a folder. Names of artifacts are relative paths without `..`, and links on the way are refused, so
/// nothing is written outside of the folder.
pub(crate) fn save_below(
    folder: &Path,
    name: &str,
    content: &[u8],
) -> Result<PathBuf, CommandError> {
    let refused = |at: &Path, what| {
        let error = CommandError::usage(format!("`{}` {what}", at.display()));
        Err(error
            .hint("name another place: nothing is overwritten, and nothing written through a link"))
    };
    let path = folder.join(name);
    let mut at = folder.to_owned();
    for part in Path::new(name).components() {
        at.push(part);
        match std::fs::symlink_metadata(&at) {
            Err(_) => break,
            Ok(there) if there.is_symlink() => return refused(&at, "is a link"),
            Ok(there) if at != path && !there.is_dir() => {
                return refused(&at, "is there already and is no folder");
            }
            Ok(_) => {}
        }
    }
    save(&path, content)
}

/// Writes a file that does not exist yet. If there is a file with the same content, nothing is written.
fn save(path: &Path, content: &[u8]) -> Result<PathBuf, CommandError> {
    let told =
        |error: std::io::Error| CommandError::usage(format!("`{}`: {error}", path.display()));
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(told)?;
    }
    // Check the metadata first: reading a file that is not regular could block or never end.
    let same = |there: &std::fs::Metadata| there.is_file() && there.len() == content.len() as u64;
    let there = std::fs::metadata(path);
    if there.as_ref().is_ok_and(same) && std::fs::read(path).is_ok_and(|there| there == content) {
        return Ok(path.to_owned());
    }
    if there.is_ok_and(|there| !there.is_file()) {
        return Err(CommandError::usage(format!(
            "`{}` is there already and is no file",
            path.display()
        ))
        .hint("name another place: nothing is overwritten"));
    }
    let file = std::fs::File::create_new(path);
    let mut file = file.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            CommandError::usage(format!("`{}` is there already and differs", path.display()))
                .hint("name another place: nothing is overwritten")
        }
        _ => told(error),
    })?;
    if let Err(error) = std::io::Write::write_all(&mut file, content) {
        // A partial file would block the next attempt.
        let _ = std::fs::remove_file(path);
        return Err(told(error));
    }
    Ok(path.to_owned())
}

pub(crate) fn refused(error: ArtifactError) -> CommandError {
    match error {
        ArtifactError::Store(error) => error.into(),
        other => CommandError::usage(other.to_string()),
    }
}

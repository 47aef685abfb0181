//! `graph`: draws a definition, or the state of a session in it.

use crate::address::{Address, SessionName};
use crate::cli::Global;
use crate::commands::check;
use crate::error::{CommandError, Exit};
use crate::locate;
use crate::printer::{Printer, bold, dim};
use crate::source::Source;
use crate::tell::graph::{mermaid, terminal};
use crate::tell::timeline;
use crate::words;
use std::path::{Path, PathBuf};
use steersman::views::graph::{self, Graph, Layout, svg};
use steersman::views::screen::{Ask, GraphScreen};
use steersman_runtime::files;

pub(crate) const LISTED: &str = "Draw a definition, or where a session stands in it";

/// Draw a definition, or where a session stands in it.
#[derive(Debug, clap::Args)]
pub(crate) struct GraphArgs {
    /// A definition (a file, or a folder with a steersman.yaml), or SESSION[:BRANCH][@LINE] [default: the definition here].
    #[arg(value_name = "DEFINITION|SESSION")]
    target: Option<String>,
    /// As what.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Write it into this file; its ending says as what: .svg, .mmd, or .md with the diagram in it.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The output format of a drawing.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For a terminal.
    Terminal,
    /// For pages that draw Mermaid: GitHub, GitLab, most wikis.
    Mermaid,
    /// A picture of its own.
    Svg,
}

/// Number of bytes that are read to recognise a file that this command drew.
const HEAD: usize = 256;

pub(crate) async fn run(
    args: GraphArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    if printer.is_json() && (args.format.is_some() || args.output.is_some()) {
        return Err(CommandError::usage(
            "--json cannot be used together with --format or --output",
        )
        .hint("into a file: steersman graph --json > graph.json"));
    }
    let format = match (args.format, &args.output) {
        (Some(Format::Terminal), Some(file)) => {
            let file = file.display();
            return Err(
                CommandError::usage("what is for a terminal goes to standard output")
                    .hint(format!("into a file: steersman graph > {file}")),
            );
        }
        (Some(format), _) => Some(format),
        (None, Some(file)) => Some(by_name(file)?),
        (None, None) => None,
    };
    let graph = match resolve(args.target.as_deref(), global).await? {
        Target::Definition(path) => {
            let network = check::right(&path, printer)?;
            graph::draw(network.checked()).graph
        }
        Target::Session(source, address) => {
            let screen: GraphScreen = source.screen(&address, Ask::default()).await?;
            screen.graph
        }
    };
    if printer.is_json() {
        let mut document = serde_json::to_value(&graph).unwrap_or_default();
        let shapes = Layout::of(&graph).shapes(0.0, 0.0);
        document["shapes"] = serde_json::to_value(shapes).unwrap_or_default();
        printer.json(&document)?;
        return Ok(Exit::Answered);
    }
    let Some(file) = args.output else {
        return show(&graph, format.unwrap_or(Format::Terminal), printer);
    };
    let format = format.expect("a file has a format");
    write(&file, &written(&graph, format, &file))?;
    printer.talk(format!("Drawn into {}.", bold(&file.display().to_string())));
    Ok(Exit::Answered)
}

fn show(graph: &Graph, format: Format, printer: &Printer) -> Result<Exit, CommandError> {
    match format {
        Format::Terminal => {
            for row in terminal::rows(graph, words::width()) {
                printer.data(row)?;
            }
            if graph.stands.is_some() {
                printer.talk("");
                printer.talk(dim(
                    "> at work   ? waits   * current   o wanted   x over   (2x) taken 2 times",
                ));
            }
        }
        Format::Mermaid => printer.whole(mermaid::text(graph).trim_end())?,
        Format::Svg => printer.whole(svg::text(graph).trim_end())?,
    }
    Ok(Exit::Answered)
}

// ---- the target ----------------------------------------------------------------------------------------------

enum Target {
    Definition(PathBuf),
    Session(Source, Address),
}

/// Decides whether a target is a definition or a session. A name with a path separator or with the ending `.yaml` or `.yml` is a
/// definition, and so is a file or a folder with a `steersman.yaml` that exists. Anything else is a session. If both are
/// possible, the command refuses and asks for a clear name.
async fn resolve(target: Option<&str>, global: &Global) -> Result<Target, CommandError> {
    let Some(target) = target else {
        let here = PathBuf::from(".");
        return match locate::definition(&here) {
            Ok(_) => Ok(Target::Definition(here)),
            Err(error) => Err(error.hint("of a session: steersman graph last")),
        };
    };
    let path = Path::new(target);
    let shaped = target == "."
        || target == ".."
        || target.contains(std::path::MAIN_SEPARATOR)
        || matches!(
            path.extension().and_then(|e| e.to_str()),
            Some("yaml" | "yml")
        );
    if shaped {
        locate::definition(path).map_err(|error| {
            error.hint("a definition is a folder with a steersman.yaml, or a file")
        })?;
        return Ok(Target::Definition(path.to_owned()));
    }
    let is_definition = locate::definition(path).is_ok();
    let session = session(target, global).await?;
    match (is_definition, session) {
        (true, None) => Ok(Target::Definition(path.to_owned())),
        (true, Some(_)) => Err(CommandError::usage(format!(
            "`{target}` is a definition here, and a session"
        ))
        .hint(format!("the definition: steersman graph ./{target}"))
        .hint(format!("the session: steersman graph {target}@head"))),
        (false, Some((source, address))) => Ok(Target::Session(source, address)),
        (false, None) => {
            // The target `last` means a session, so report why there is none.
            let is_last =
                target == "last" || target.starts_with("last@") || target.starts_with("last:");
            if is_last && global.server().is_none() {
                locate::existing(global)?;
            }
            let what = if path.is_dir() {
                format!("there is no `steersman.yaml` in `{target}`, and no session `{target}`")
            } else {
                format!("there is no definition `{target}`, and no session of this name")
            };
            Err(CommandError::usage(what)
                .hint("a definition is a folder with a steersman.yaml or a file: steersman graph ./FOLDER")
                .hint("a session is `last`, the beginning of an id, or a label: `steersman sessions` lists them"))
        }
    }
}

/// Finds the session of this name. An ambiguous or malformed name is an error.
async fn session(target: &str, global: &Global) -> Result<Option<(Source, Address)>, CommandError> {
    let Ok(address) = Address::parse(target) else {
        return Ok(None);
    };
    let Some(source) = Source::existing(global).await? else {
        return Ok(None);
    };
    match source.session(&address.session).await {
        Ok(_) => Ok(Some((source, address))),
        Err(error)
            if error.message.starts_with("there is no session")
                || error.message.starts_with("there are no sessions")
                || error.message.starts_with("no session has") =>
        {
            match address.session {
                SessionName::Prefix(_) => Ok(None),
                SessionName::Last | SessionName::Label(..) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

// ---- files ---------------------------------------------------------------------------------------------------

fn by_name(file: &Path) -> Result<Format, CommandError> {
    match file.extension().and_then(|e| e.to_str()) {
        Some("svg") => Ok(Format::Svg),
        Some("mmd" | "md") => Ok(Format::Mermaid),
        _ => Err(
            CommandError::usage(format!("`{}` does not say what to draw", file.display()))
                .hint("name it .svg, .mmd or .md, or say --format svg or --format mermaid"),
        ),
    }
}

fn written(graph: &Graph, format: Format, file: &Path) -> String {
    match format {
        Format::Terminal => unreachable!("a drawing for a terminal is not written to a file"),
        Format::Mermaid if file.extension().is_some_and(|e| e == "md") => {
            format!("```mermaid\n{}```\n", mermaid::text(graph))
        }
        Format::Mermaid => mermaid::text(graph),
        Format::Svg => svg::text(graph),
    }
}

/// Writes a picture into a file. A file that is there and was not drawn by this program is not overwritten.
pub(crate) fn write(file: &Path, text: &str) -> Result<(), CommandError> {
    let ours = |there: &str| {
        let head = there.strip_prefix("```mermaid\n").unwrap_or(there);
        [mermaid::MARK, svg::MARK, timeline::svg::MARK]
            .iter()
            .any(|mark| head.starts_with(mark))
    };
    // A target that is not a regular file is overwritten without a check, because reading it could block.
    match files::begin(file, HEAD) {
        Ok(there) if !there.is_empty() && !ours(&String::from_utf8_lossy(&there)) => {
            return Err(CommandError::usage(format!(
                "`{}` is there already, and was not drawn by this command",
                file.display()
            ))
            .hint("name another file, or remove it"));
        }
        _ => {}
    }
    std::fs::write(file, text)
        .map_err(|e| CommandError::usage(format!("`{}`: {e}", file.display())))
}

//! `import`: converts a definition of another program.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, yellow};
use crate::words::count;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use steersman_definition::import::{Imported, aiwaves};
use steersman_runtime::files;

pub(crate) const LISTED: &str = "Make a definition of what another program reads";

/// Make a definition of what another program reads.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    from: ImportFrom,
}

/// The program whose definition is imported.
#[derive(Debug, clap::Subcommand)]
enum ImportFrom {
    /// Make a definition of a configuration of aiwaves agents, version 1. What is not carried over is told on stderr.
    Aiwaves {
        /// Its JSON file.
        file: PathBuf,
        /// Name of the network [default: the file's; of a `config.json` its folder's].
        #[arg(long)]
        name: Option<String>,
        /// Write the definition into this file instead of stdout. Overwrites nothing.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

/// Maximum size of a file in bytes; definitions are limited to less.
const LARGEST: usize = 16 << 20;

pub(crate) async fn run(
    args: ImportArgs,
    _global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    match args.from {
        ImportFrom::Aiwaves { file, name, out } => {
            let text = read(&file)?;
            let name = name.unwrap_or_else(|| named(&file));
            let imported = aiwaves::import(&text, &name).map_err(|error| {
                CommandError::usage(format!("{}: {error}", file.display())).hint(&*error.help)
            })?;
            give(&imported, out.as_deref(), printer)
        }
    }
}

fn read(file: &Path) -> Result<String, CommandError> {
    let bytes = files::named(file, LARGEST).map_err(|e| {
        let error = CommandError::usage(format!("{} cannot be read: {e}", file.display()));
        match e.kind() {
            ErrorKind::FileTooLarge => error.hint("give the JSON file of a configuration"),
            _ => error,
        }
    })?;
    files::text(bytes).map_err(|_| {
        CommandError::usage(format!("{} is not UTF-8 text", file.display()))
            .hint("give the JSON file of a configuration")
    })
}

/// Returns the name of the network: that of the file, or of its folder if the file is called `config`.
fn named(file: &Path) -> String {
    let text =
        |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
    let stem = text(file.file_stem()).unwrap_or_default();
    if stem != "config" {
        return stem;
    }
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    text(whole.parent().and_then(Path::file_name)).unwrap_or(stem)
}

fn give(imported: &Imported, out: Option<&Path>, printer: &Printer) -> Result<Exit, CommandError> {
    if let Some(out) = out {
        write(out, &imported.yaml)?;
    }
    if printer.is_json() {
        let warnings: Vec<_> = imported
            .warnings
            .iter()
            .map(|w| json!({ "path": w.path, "code": w.code, "message": w.message }))
            .collect();
        printer.json(&json!({
            "definition": imported.yaml,
            "file": out.map(|out| out.display().to_string()),
            "warnings": warnings,
        }))?;
        return Ok(Exit::Answered);
    }
    if out.is_none() {
        printer.bytes(imported.yaml.as_bytes())?;
    }
    for warning in &imported.warnings {
        printer.complain(format!("{} {warning}", yellow("warning:")));
    }
    match out {
        None => printer.talk(count(imported.warnings.len() as u64, "warning") + "."),
        Some(out) => {
            let warnings = count(imported.warnings.len() as u64, "warning");
            printer.talk(format!("Wrote {}. {warnings}.", out.display()));
            printer.next(format!("steersman check {}", out.display()), "");
        }
    }
    Ok(Exit::Answered)
}

fn write(out: &Path, yaml: &str) -> Result<(), CommandError> {
    let cannot = |e: std::io::Error| {
        let error = CommandError::usage(format!("{} cannot be written: {e}", out.display()));
        if e.kind() == ErrorKind::AlreadyExists {
            error.hint("nothing is overwritten: name another file")
        } else {
            error
        }
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(PathBuf::from(out))
        .map_err(cannot)?;
    file.write_all(yaml.as_bytes()).map_err(cannot)
}

//! `new NAME`: writes a small definition to start from; with `--from`, a model drafts one.

mod draft;

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::{Printer, bold, dim};
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;
use std::path::{Path, PathBuf};

pub(crate) const LISTED: &str = "Write a small definition to start from";

/// Write a small definition to start from: one tool, a guard, an approval and a test. With --from, a model drafts it, and mends it
/// until `check` finds nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    /// Name of the folder and of the network: small letters, digits, hyphens.
    name: String,
    /// The wish, in your own words: a model drafts the definition. Costs model calls.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    from: Option<String>,
    /// With --from: ask this model; `local` is any model of a server on this computer.
    #[arg(long, value_name = "NAME", requires = "from")]
    model: Option<String>,
    /// With --from: the answers of the model, from a file.
    #[arg(long, value_name = "FILE", requires = "from")]
    script_all: Option<PathBuf>,
}

const FILES: &[(&str, &str, &str)] = &[
    (
        "steersman.yaml",
        include_str!("new/steersman.yaml"),
        "a desk with one tool, a guard and an approval",
    ),
    (
        "prompts/desk.md",
        include_str!("new/prompts/desk.md"),
        "what the desk is told",
    ),
    (
        "script.yaml",
        include_str!("new/script.yaml"),
        "what a model would say, to try it offline",
    ),
    (
        "tests/desk.yaml",
        include_str!("new/tests/desk.yaml"),
        "three tests, offline",
    ),
    (
        "outbox/.gitkeep",
        "",
        "where the tool puts what it sent, until it calls a bank",
    ),
    (".gitignore", ".steersman/\n", ""),
];

pub(crate) async fn run(
    args: NewArgs,
    _global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let name = args.name.clone();
    if !is_name(&name) {
        return Err(
            CommandError::usage(format!("`{name}` is no name for a network"))
                .hint("small letters, digits and hyphens, a letter first: steersman new bank"),
        );
    }
    let folder = Path::new(&name);
    if folder.exists() {
        return Err(
            CommandError::usage(format!("`{name}` exists already; nothing was written"))
                .hint("take another name, or remove it first"),
        );
    }
    if let Some(wish) = &args.from {
        let script = args.script_all.as_deref();
        return draft::draft(&name, wish, args.model.as_deref(), script, printer).await;
    }
    for (path, text, _) in FILES {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text.replace("NAME", &name))?;
    }
    // Sessions of this folder are stored here.
    let own = folder.join(".steersman");
    std::fs::create_dir_all(&own)?;
    let schema = steersman_definition::schema();
    std::fs::write(own.join("schema.json"), format!("{schema:#}\n"))?;

    if printer.is_json() {
        let files: Vec<&str> = FILES.iter().map(|(path, ..)| *path).collect();
        printer.json(&json!({ "folder": name, "files": files }))?;
        return Ok(Exit::Answered);
    }
    printer.talk(bold(&format!("{name}/")));
    for (path, text, what) in FILES.iter().filter(|(.., what)| !what.is_empty()) {
        let lines = match text.lines().count() {
            0 => String::new(),
            n => format!("{n:>3} lines: "),
        };
        printer.talk(format!("  {path:<17} {}", dim(&format!("{lines}{what}"))));
    }
    printer.talk("");
    printer.talk(format!(
        "Next:  {}",
        bold(&format!("cd {name} && steersman check && steersman test"))
    ));
    printer.talk(format!(
        "       {}   {}",
        bold("steersman run --script-all script.yaml --input \"Send 150 to anna\""),
        dim("offline; without --script-all on a model"),
    ));
    Ok(Exit::Answered)
}

fn is_name(name: &str) -> bool {
    name.len() <= 48
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

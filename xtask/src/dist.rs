//! `cargo xtask dist`: makes the files of a release, installs each of them, and runs what was installed.

mod again;
mod build;
mod crates;
mod forms;
mod needs;
mod parts;
mod tree;
mod tried;

use crate::tidy::root;
use crate::{run, say};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const USE: &str = "dist [--target TRIPLE]... [--try | --make]";

/// The version of the release.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The targets of a release. A program for musl is linked statically, so it needs nothing of the system that it runs on.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// The extent of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Extent {
    /// Makes the files, tries them, builds each package of a crate, and makes the files again in another folder.
    #[default]
    Whole,
    /// Makes the files from a program without optimisation, for the kind of this machine, and tries them. CI does it.
    Try,
    /// Only makes the files.
    Make,
}

/// The words after `cargo xtask dist`.
#[derive(Default)]
struct Options {
    targets: Vec<String>,
    extent: Extent,
}

impl Options {
    fn read(words: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--target" => {
                    let target = words.next().filter(|target| TARGETS.contains(target));
                    let target = target.ok_or_else(|| {
                        format!(
                            "--target takes a target of a release: {}",
                            TARGETS.join(", ")
                        )
                    })?;
                    options.targets.push((*target).to_owned());
                }
                "--try" => options.extent = Extent::Try,
                "--make" => options.extent = Extent::Make,
                other => return Err(format!("`{other}` is not an option of `dist`; use: {USE}")),
            }
        }
        if options.extent == Extent::Try {
            if !options.targets.is_empty() {
                return Err("--try makes the files for the kind of this machine".into());
            }
            options.targets = vec![build::this_machine()?.to_owned()];
        } else if options.targets.is_empty() {
            options.targets = TARGETS.map(str::to_owned).to_vec();
        }
        Ok(options)
    }

    /// The words that make the same files without trying them.
    fn only_make(&self) -> Vec<&str> {
        let targets = self.targets.iter();
        let targets = targets.flat_map(|target| ["--target", target]);
        ["dist", "--make"].into_iter().chain(targets).collect()
    }
}

/// The folders of a run.
struct Places {
    /// The files of the release, and nothing else.
    out: PathBuf,
    /// Everything that the files are made of.
    work: PathBuf,
    /// The level of compression, from 1 to 9.
    level: u8,
}

impl Places {
    /// Makes both folders empty.
    fn emptied(whole: &Path, level: u8) -> Result<Self, String> {
        let places = Self {
            out: whole.join(format!("steersman-{VERSION}")),
            work: whole.join("work"),
            level,
        };
        for folder in [&places.out, &places.work] {
            if folder.exists() {
                fs::remove_dir_all(folder).map_err(at(folder))?;
            }
            fs::create_dir_all(folder).map_err(at(folder))?;
        }
        Ok(places)
    }
}

/// The files of a release for one target.
struct Made {
    target: String,
    /// The files of an installation, from which the forms are made.
    tree: PathBuf,
    archive: PathBuf,
    package: PathBuf,
    image: PathBuf,
}

/// Runs `cargo xtask dist` with the words that follow it.
pub(crate) fn dist(words: &[&str]) -> Result<(), String> {
    let options = Options::read(words)?;
    needs::check(&options)?;
    if options.extent != Extent::Try {
        is_committed()?;
    }
    let level = if options.extent == Extent::Try { 1 } else { 9 };
    let places = Places::emptied(&root().join("target/dist"), level)?;
    let made = make(&options, &places)?;
    match options.extent {
        Extent::Make => {}
        Extent::Try => {
            crates::check()?;
            tried::all(&made, &places)?;
            again::wrapped(&made, &places)?;
        }
        Extent::Whole => {
            crates::check()?;
            tried::all(&made, &places)?;
            crates::build()?;
            again::made(&options, &places)?;
        }
    }
    say(&format!("== {} has", places.out.display()));
    run(Command::new("ls").arg("-l").arg(&places.out))
}

/// Makes all files of a release.
fn make(options: &Options, places: &Places) -> Result<Vec<Made>, String> {
    let pages = build::pages(places)?;
    let mut made = Vec::new();
    for target in &options.targets {
        let program = build::program(target, options.extent != Extent::Try, places)?;
        let parts = parts::of(target)?;
        parts.are(&program.crates)?;
        let tree = tree::staged(target, &program.path, &pages, &parts, places)?;
        made.push(forms::made(target, &tree, places)?);
    }
    forms::finished(places)?;
    Ok(made)
}

/// The files of a release are those of a commit, so that somebody else can make them again.
fn is_committed() -> Result<(), String> {
    let changed = said(
        Command::new("git")
            .current_dir(root())
            .args(["status", "--porcelain"]),
    )?;
    if changed.is_empty() {
        return Ok(());
    }
    Err(format!(
        "a release is made from a commit, and these files differ from it (`--try` does not mind):\n{changed}"
    ))
}

/// The time of the files, in seconds: what `SOURCE_DATE_EPOCH` says, else the time of the commit.
fn date() -> Result<String, String> {
    if let Ok(date) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(date);
    }
    said(
        Command::new("git")
            .current_dir(root())
            .args(["log", "-1", "--format=%ct"]),
    )
}

/// The machine of a target, as `uname -m` names it.
fn machine(target: &str) -> &str {
    target.split('-').next().unwrap_or(target)
}

/// Runs a command; returns what it prints. What it complains about is in the error.
fn said(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command
        .output()
        .map_err(|e| format!("`{name}` could not be started: {e}"))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).trim_end().to_owned());
    }
    let (told, complained) = (
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr),
    );
    Err(format!(
        "{command:?} ended with {}:\n{told}{complained}",
        out.status
    ))
}

/// Adds the path to an error of a file.
fn at(path: &Path) -> impl Fn(std::io::Error) -> String {
    let path = path.display().to_string();
    move |e| format!("{path}: {e}")
}

fn copied(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }
    fs::copy(from, to).map_err(at(from)).map(|_| ())
}

/// Makes an empty folder.
fn emptied(folder: PathBuf) -> Result<PathBuf, String> {
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(at(&folder))?;
    }
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_select_targets() {
        let options = Options::read(&[]).expect("all targets");
        assert!(options.targets == TARGETS && options.extent == Extent::Whole);
        let one = Options::read(&["--target", TARGETS[1]]).expect("one target");
        assert_eq!(one.targets, [TARGETS[1]]);
        let words = one.only_make();
        assert_eq!(words, ["dist", "--make", "--target", TARGETS[1]]);
        let again = Options::read(&words[1..]).expect("the same target");
        assert!(again.targets == one.targets && again.extent == Extent::Make);
        assert!(Options::read(&["--target", "wasm32-wasip1"]).is_err());
        assert!(Options::read(&["--target"]).is_err());
        assert!(Options::read(&["--try", "--target", TARGETS[0]]).is_err());
        assert!(Options::read(&["--sign"]).is_err());
    }
}

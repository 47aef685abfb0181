//! `cargo xtask dist`: makes the files of a release, installs each of them, and runs what was installed.

mod build;
mod crates;
mod forms;
mod parts;
mod tree;
mod tried;

use crate::tidy::root;
use crate::{run, say};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const USE: &str = "dist [--target TRIPLE]... [--build-std] [--try]";

/// The version of the release.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The targets of a release. A program for musl is linked statically, so it needs nothing of the system that it runs on.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// The words after `cargo xtask dist`.
#[derive(Default)]
struct Options {
    targets: Vec<String>,
    /// Compiles the standard library of a target from its sources, because rustup cannot add it.
    builds_std: bool,
    /// Uses the program that the tests built, for this machine, to see that everything works.
    tries: bool,
}

impl Options {
    fn read(words: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--target" => {
                    let target = words.next().filter(|target| target.contains("-linux-"));
                    let target = target.ok_or_else(|| {
                        format!("--target takes a target of Linux, such as {}", TARGETS[0])
                    })?;
                    options.targets.push((*target).to_owned());
                }
                "--build-std" => options.builds_std = true,
                "--try" => options.tries = true,
                other => return Err(format!("`{other}` is not an option of `dist`; use: {USE}")),
            }
        }
        if options.tries {
            if options.builds_std || !options.targets.is_empty() {
                return Err("--try uses the program that the tests built, for this machine".into());
            }
            options.targets = vec![build::this_machine()?];
        } else if options.targets.is_empty() {
            options.targets = TARGETS.map(str::to_owned).to_vec();
        }
        Ok(options)
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
    fn emptied(level: u8) -> Result<Self, String> {
        let whole = root().join("target/dist");
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
    archive: PathBuf,
    package: PathBuf,
    image: PathBuf,
    /// Needs no library of the system.
    is_static: bool,
}

/// Runs `cargo xtask dist` with the words that follow it. Targets that this machine cannot build are named at the end, after the
/// others were made.
pub(crate) fn dist(words: &[&str]) -> Result<(), String> {
    let options = Options::read(words)?;
    crates::check()?;
    let places = Places::emptied(if options.tries { 1 } else { 9 })?;
    let pages = build::pages(&places)?;
    let (mut made, mut missing) = (Vec::new(), Vec::new());
    for target in &options.targets {
        if !options.tries
            && let Some(lack) = build::lack(target, options.builds_std)?
        {
            missing.push(format!("{target} was not built: {lack}"));
            continue;
        }
        say(&format!("== {target}"));
        let program = if options.tries {
            build::of_the_tests(&places)?
        } else {
            build::optimised(target, &options, &places)?
        };
        let parts = parts::of(target)?;
        let tree = tree::staged(target, &program, &pages, &parts, &places)?;
        made.push(forms::made(target, &tree, &places)?);
    }
    if !made.is_empty() {
        forms::finished(&places)?;
        tried::all(&made, &places)?;
        say(&format!("== {} has", places.out.display()));
        run(Command::new("ls").arg("-l").arg(&places.out))?;
    }
    if missing.is_empty() {
        Ok(())
    } else {
        Err(missing.join("\n"))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_select_targets() {
        let options = Options::read(&[]).expect("all targets");
        assert_eq!(options.targets, TARGETS);
        let one = Options::read(&["--target", TARGETS[1], "--build-std"]).expect("one target");
        assert!(one.targets == [TARGETS[1]] && one.builds_std);
        assert!(Options::read(&["--target", "wasm32-wasip1"]).is_err());
        assert!(Options::read(&["--target"]).is_err());
        assert!(Options::read(&["--try", "--target", TARGETS[0]]).is_err());
        assert!(Options::read(&["--sign"]).is_err());
    }
}

//! The program for a target, and its pages.

use super::{Places, TARGETS, at, date, machine, said};
use crate::tidy::root;
use crate::{messages_of, run, say};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The script that installs zig, which compiles the C code and links for every target.
const ZIG: &str = "scripts/zig.sh";

/// A program for a target.
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// Cargo's ids of the crates that were compiled for the target.
    pub(super) crates: BTreeSet<String>,
}

/// The target of a release for the kind of this machine.
pub(super) fn this_machine() -> Result<&'static str, String> {
    let here = std::env::consts::ARCH;
    let target = TARGETS.into_iter().find(|target| machine(target) == here);
    target.ok_or_else(|| format!("there is no release for machines of the kind {here}"))
}

/// The folder of the compiler.
pub(super) fn sysroot() -> Result<PathBuf, String> {
    said(Command::new("rustc").args(["--print", "sysroot"])).map(PathBuf::from)
}

/// Builds the program for a target, without symbols. It is static, and names no folder of this machine.
pub(super) fn program(target: &str, optimised: bool, places: &Places) -> Result<Program, String> {
    let begun = Instant::now();
    // The folders of the crates have to be there before they can be renamed.
    said(
        crate::cargo()
            .current_dir(root())
            .args(["fetch", "--quiet", "--locked", "--target", target]),
    )?;
    let zig = zig()?;
    let mut cargo = Command::new(zig.join("cargo-zigbuild"));
    cargo.args(["zigbuild", "--locked", "--target", target]);
    cargo.args(["--package", "steersman-cli", "--bin", "steersman"]);
    cargo.args(["--message-format=json", "--profile"]);
    if optimised {
        cargo.arg("dist");
    } else {
        cargo
            .arg("dev")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_DEV_STRIP", "symbols");
    }
    let (folders, renamed) = folders_of_this_machine()?;
    let path = std::env::var("PATH").unwrap_or_default();
    cargo
        .env("PATH", format!("{}:{path}", zig.display()))
        .env("CARGO_ENCODED_RUSTFLAGS", renamed);
    let messages = messages_of(&mut cargo)?;
    let built = messages
        .iter()
        .filter(|message| message["target"]["name"] == "steersman")
        .find_map(|message| message["executable"].as_str());
    let built = Path::new(built.ok_or_else(|| format!("no program for {target} was built"))?);
    let compiled = messages.iter().filter(|message| {
        let files = message["filenames"].as_array().into_iter().flatten();
        let mut files = files.filter_map(|file| file.as_str());
        // Build scripts and procedural macros are compiled for this machine.
        files.any(|file| file.contains(&format!("/{target}/")))
    });
    let compiled = compiled.filter_map(|message| message["package_id"].as_str());
    let crates = compiled.map(str::to_owned).collect();
    let path = places.work.join(format!("steersman-{target}"));
    fs::copy(built, &path).map_err(at(built))?;
    is_portable(&path, &folders)?;
    let size = fs::metadata(&path).map_err(at(&path))?.len();
    say(&format!(
        "== {target}: {:.1} MB, built in {} s",
        size as f64 / 1e6,
        begun.elapsed().as_secs()
    ));
    Ok(Program { path, crates })
}

/// The program needs no library, has no symbols, and names none of the folders.
fn is_portable(program: &Path, folders: &[String]) -> Result<(), String> {
    let read = |what: &str| said(Command::new("readelf").args(["--wide", what]).arg(program));
    if read("--program-headers")?.contains("INTERP") || read("--dynamic")?.contains("NEEDED") {
        return Err(format!("{} is not static", program.display()));
    }
    let sections = read("--sections")?;
    if sections.contains(".symtab") || sections.contains(".debug_") {
        return Err(format!("{} has symbols", program.display()));
    }
    for folder in folders {
        let mut grep = Command::new("grep");
        grep.args(["--quiet", "--text", "--fixed-strings", "--", folder]);
        match grep.arg(program).status().map(|status| status.code()) {
            Ok(Some(1)) => {}
            Ok(Some(0)) => {
                return Err(format!(
                    "{} names {folder}, so it is another one if it is built in another folder",
                    program.display()
                ));
            }
            other => return Err(format!("`grep` ended with {other:?}")),
        }
    }
    Ok(())
}

/// Returns the folders of this machine that the compiler knows, and the options that give them other names, so that the program is
/// the same wherever it is built.
fn folders_of_this_machine() -> Result<(Vec<String>, String), String> {
    let home = std::env::var("HOME").unwrap_or_default();
    let cargo = std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    let about = said(Command::new("rustc").arg("-vV"))?;
    let commit = about
        .lines()
        .find_map(|line| line.strip_prefix("commit-hash: "));
    let commit = commit.ok_or("`rustc -vV` names no commit")?;
    let library = sysroot()?.join("lib/rustlib/src/rust");
    let mut names = vec![(library, format!("/rustc/{commit}"))];
    // One folder for each registry, whatever it is called here.
    let registries = Path::new(&cargo).join("registry/src");
    for registry in fs::read_dir(&registries).map_err(at(&registries))? {
        let registry = registry.map_err(at(&registries))?;
        names.push((registry.path(), "crates".into()));
    }
    names.push((root(), "steersman".into()));
    let options = names.iter();
    let options = options.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    let options: Vec<String> = options.collect();
    let folders = names.iter().map(|(from, _)| from.display().to_string());
    Ok((folders.collect(), options.join("\x1f")))
}

/// Writes completions and man pages, in the folders of an installation. A unit test of the program does it, because only the
/// program knows its commands; so the program that people get has no code for man pages.
pub(super) fn pages(places: &Places) -> Result<PathBuf, String> {
    let folder = places.work.join("pages");
    let test = "cli::tests::the_pages_of_all_commands_are_written";
    run(crate::cargo()
        // As the stage `tests` of CI builds it, so that nothing is built twice.
        .args(["test", "--quiet", "--workspace", "--bin", "steersman"])
        .args(["--", "--exact", test])
        .env("STEERSMAN_PAGES", &folder)
        // Not `SOURCE_DATE_EPOCH`: build scripts of C code look at that, so everything above them would be built again.
        .env("STEERSMAN_PAGES_TIME", date()?))?;
    if folder.join("share/man/man1/steersman.1").exists() {
        Ok(folder)
    } else {
        Err(format!("the test `{test}` wrote no pages"))
    }
}

/// Installs zig and cargo-zigbuild; returns the folder of their programs.
fn zig() -> Result<PathBuf, String> {
    let mut script = Command::new("bash");
    said(script.arg(root().join(ZIG))).map(PathBuf::from)
}

/// The code of zig in the program.
pub(super) struct Zig {
    pub(super) version: String,
    /// Names, licences and terms.
    pub(super) parts: Vec<(&'static str, &'static str, String)>,
}

/// Returns the code that zig brings as sources and links into the program.
pub(super) fn zig_in_the_program() -> Result<Zig, String> {
    let python = zig()?.join("python");
    let about = said(Command::new(python).args([
        "-c",
        "import importlib.metadata as m, os, ziglang; print(m.version('ziglang'), os.path.dirname(ziglang.__file__))",
    ]))?;
    let (version, folder) = about
        .split_once(' ')
        .ok_or("the package `ziglang` has no version")?;
    let read = |name: &str| {
        let file = Path::new(folder).join(name);
        fs::read_to_string(&file).map_err(at(&file))
    };
    Ok(Zig {
        version: version.to_owned(),
        parts: vec![
            ("musl", "MIT", read("lib/libc/musl/COPYRIGHT")?),
            (
                "libunwind",
                "Apache-2.0 WITH LLVM-exception",
                read("lib/libunwind/LICENSE.TXT")?,
            ),
            ("compiler-rt", "MIT", read("LICENSE")?),
        ],
    })
}

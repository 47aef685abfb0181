//! The program for a target, and its pages.

use super::{Options, Places, at, said};
use crate::tidy::root;
use crate::{built, built_by, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The script that installs zig, which compiles the C code and links for every target.
const ZIG: &str = "scripts/zig.sh";

/// The target that the compiler builds for by default.
pub(super) fn this_machine() -> Result<String, String> {
    let about = said(Command::new("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "`rustc -vV` names no host".to_owned())
}

/// The folder of the compiler.
pub(super) fn sysroot() -> Result<PathBuf, String> {
    said(Command::new("rustc").args(["--print", "sysroot"])).map(PathBuf::from)
}

/// Returns what this machine lacks to build for a target, with the remedy.
pub(super) fn lack(target: &str, builds_std: bool) -> Result<Option<String>, String> {
    let libraries = sysroot()?.join("lib/rustlib");
    Ok(if builds_std {
        let sources = libraries.join("src/rust/library/Cargo.lock");
        (!sources.exists()).then(|| {
            "the sources of the standard library are not here: `rustup component add rust-src`"
                .to_owned()
        })
    } else {
        let library = libraries.join(target).join("lib");
        (!library.exists()).then(|| {
            format!(
                "its standard library is not here: `rustup target add {target}`. Where rustup cannot add it, `--build-std` \
                 compiles it from its sources (`rustup component add rust-src`)"
            )
        })
    })
}

/// Builds the program for a target, optimised and without symbols.
pub(super) fn optimised(
    target: &str,
    options: &Options,
    places: &Places,
) -> Result<PathBuf, String> {
    let mut cargo = Command::new(zig()?.join("cargo-zigbuild"));
    cargo.args(["rustc", "--locked", "--release", "--target", target]);
    cargo.args(["--package", "steersman-cli", "--bin", "steersman"]);
    if options.builds_std {
        // The compiler takes this option only if it is told to take unstable ones.
        cargo.arg("-Zbuild-std=std").env("RUSTC_BOOTSTRAP", "1");
        // The sources have no objects that start a program; zig has them.
        cargo.args(["--message-format=json", "--", "-Clink-self-contained=no"]);
    } else {
        cargo.arg("--message-format=json");
    }
    let path = std::env::var("PATH").unwrap_or_default();
    cargo
        .env("PATH", format!("{}:{path}", zig()?.display()))
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        .env("CARGO_ENCODED_RUSTFLAGS", nameless_paths());
    let program = built_by(&mut cargo, "steersman")?;
    let kept = places.work.join(format!("steersman-{target}"));
    fs::copy(&program, &kept).map_err(at(&program))?;
    Ok(kept)
}

/// Options of the compiler that keep the folders of this machine out of the messages of panics.
fn nameless_paths() -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    let cargo = std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    let crates = format!("--remap-path-prefix={cargo}/registry/src=crates");
    let ours = format!("--remap-path-prefix={}=steersman", root().display());
    format!("{crates}\x1f{ours}")
}

/// Returns the program that `cargo test --workspace` builds, without debug information.
pub(super) fn of_the_tests(places: &Places) -> Result<PathBuf, String> {
    let program = built(
        &["test", "--workspace", "--test", "it", "--no-run"],
        "steersman",
    )?;
    let stripped = places.work.join("steersman");
    run(Command::new("strip").arg("-o").arg(&stripped).arg(&program))?;
    Ok(stripped)
}

/// Writes completions and man pages, in the folders of an installation. A unit test of the program does it, because only the
/// program knows its commands; so the program that people get has no code for man pages.
pub(super) fn pages(places: &Places) -> Result<PathBuf, String> {
    let folder = places.work.join("pages");
    let test = "cli::tests::the_pages_of_all_commands_are_written";
    run(Command::new("cargo")
        // As the tests are built, so that nothing is built for it.
        .args([
            "test",
            "--quiet",
            "-p",
            "steersman-cli",
            "--bin",
            "steersman",
        ])
        .args(["--", "--exact", test])
        .env("STEERSMAN_PAGES", &folder))?;
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

/// The licence of musl, which zig brings as sources and links into the program.
pub(super) fn licence_of_musl() -> Result<String, String> {
    let programs = zig()?;
    let python = programs.join("python");
    let folder = said(Command::new(python).args([
        "-c",
        "import os, ziglang; print(os.path.dirname(ziglang.__file__))",
    ]))?;
    let file = Path::new(&folder).join("lib/libc/musl/COPYRIGHT");
    fs::read_to_string(&file).map_err(at(&file))
}

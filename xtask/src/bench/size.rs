//! The size of the program: by crate, and what each default feature adds.

use super::install::build;
use super::results::Raw;
use super::said;
use crate::features;
use crate::tidy::root;
use serde_json::{Value as Json, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const PACKAGE: &str = "steersman-cli";
const PROGRAM: &str = "steersman";

/// Builds the program with all default features and without each of them, and measures it.
pub(crate) fn measure(work: &Path, is_optimised: bool, raw: &mut Raw) -> Result<(), String> {
    let profile: &[&str] = if is_optimised { &["--release"] } else { &[] };
    let mut smaller = Vec::new();
    for (name, without) in features::without_each(&root(), PACKAGE)? {
        let mut options = profile.to_vec();
        options.extend(without.iter().map(String::as_str));
        let size = stripped(&build(PACKAGE, PROGRAM, &options)?, work)?;
        smaller.push((name, size));
    }
    let program = build(PACKAGE, PROGRAM, profile)?;
    let whole = stripped(&program, work)?;
    raw.write(&json!({ "w": "program", "case": "as it is built", "bytes": length(&program)? }))?;
    raw.write(&json!({ "w": "program", "case": "stripped", "bytes": whole }))?;
    for (name, size) in smaller {
        raw.write(&json!({ "w": "feature", "case": name, "bytes": whole.saturating_sub(size) }))?;
    }
    by_crate(profile, raw)
}

/// Sizes of the code of each crate, as `cargo bloat` attributes them.
fn by_crate(profile: &[&str], raw: &mut Raw) -> Result<(), String> {
    let tool = said("scripts/cargo-bloat.sh", &[]);
    let out = Command::new(tool)
        .current_dir(root())
        .args([
            "bloat",
            "--crates",
            "-n",
            "0",
            "--message-format",
            "json",
            "--package",
            PACKAGE,
            "--bin",
            PROGRAM,
        ])
        .args(profile)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("`cargo bloat` could not be started: {e}"))?;
    let found: Json =
        serde_json::from_slice(&out.stdout).map_err(|e| format!("`cargo bloat`: {e}"))?;
    let crates = found["crates"]
        .as_array()
        .ok_or("`cargo bloat` names no crates")?;
    for one in crates {
        raw.write(&json!({ "w": "crate", "case": one["name"], "bytes": one["size"] }))?;
    }
    Ok(())
}

fn length(path: &Path) -> Result<u64, String> {
    let meta = fs::metadata(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(meta.len())
}

/// The size of a program without its symbols.
fn stripped(program: &Path, work: &Path) -> Result<u64, String> {
    let to = work.join("stripped");
    let mut strip = Command::new("strip");
    crate::run(strip.arg("-o").arg(&to).arg(program))?;
    length(&to)
}

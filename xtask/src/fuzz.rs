//! `cargo xtask long fuzz [TARGET] [MINUTES]`: runs the fuzz targets of `crates/steersman-fuzz` under libFuzzer, guided by coverage.
//!
//! The stable compiler can instrument code for coverage; only sanitizers need a nightly one. An input that breaks a target is put
//! into the target's corpus, where `cargo test -p steersman-fuzz` runs it from then on.

use crate::{run, say, tidy};
use std::process::Command;

/// The targets: `TARGETS` of the crate.
const TARGETS: [&str; 7] = [
    "definitions",
    "lines",
    "streams",
    "arguments",
    "expressions",
    "orders",
    "fields",
];
/// Minutes for each target, unless the command says otherwise.
const MINUTES: f64 = 10.0;
/// Flags of the compiler that make code tell libFuzzer what it runs and compares.
const INSTRUMENTED: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Runs one target, or all of them one after the other. All of them run, even if one breaks.
pub(crate) fn campaign(words: &[&str]) -> Result<(), String> {
    let wrong = || format!("use: fuzz [{}] [MINUTES]", TARGETS.join("|"));
    let mut minutes = MINUTES;
    let mut targets = TARGETS.to_vec();
    for word in words {
        match word.parse() {
            Ok(number) => minutes = number,
            Err(_) if TARGETS.contains(word) => targets = vec![*word],
            Err(_) => return Err(wrong()),
        }
    }
    let binary = build()?;
    let mut broken = Vec::new();
    for target in targets {
        say(&format!("== fuzz {target}: {minutes} minutes"));
        if let Err(why) = explore(&binary, target, minutes) {
            broken.push(format!("{target}: {why}"));
        }
    }
    if broken.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}; the input is printed above, and saved where `Test unit written to` says",
        broken.join("; ")
    ))
}

/// Builds the instrumented binary; returns its path. Code of the compiler (macros, build scripts) is not instrumented, because
/// the target is named.
fn build() -> Result<String, String> {
    let rustc = Command::new("rustc").arg("-vV").output();
    let rustc = rustc.map_err(|e| format!("`rustc` could not be started: {e}"))?;
    let told = String::from_utf8_lossy(&rustc.stdout).into_owned();
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("`rustc -vV` names no host")?;
    let target = tidy::root().join("target/fuzz");
    run(crate::cargo()
        .args(["build", "-p", "steersman-fuzz", "--bin", "fuzz"])
        .args(["--features", "libfuzzer", "--target", host])
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
        .env("RUSTFLAGS", INSTRUMENTED))?;
    let binary = target.join(host).join("debug/fuzz");
    Ok(binary.to_string_lossy().into_owned())
}

/// Runs one target from its seeds, its corpus, and the inputs that earlier runs found worth keeping.
fn explore(binary: &str, target: &str, minutes: f64) -> Result<(), String> {
    let root = tidy::root();
    let corpus = root.join("crates/steersman-fuzz/corpus").join(target);
    let own = root.join("target/fuzz/inputs").join(target);
    let (found, seeds) = (own.join("found"), own.join("seeds"));
    for folder in [&corpus, &found, &seeds] {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let seconds = (minutes * 60.0).ceil();
    run(Command::new(binary)
        .args([
            format!("-max_total_time={seconds}"),
            format!("-artifact_prefix={}/", corpus.display()),
            "-timeout=20".to_owned(),
            "-rss_limit_mb=4096".to_owned(),
            "-print_final_stats=1".to_owned(),
        ])
        .args([&found, &seeds, &corpus])
        .env("STEERSMAN_FUZZ", target)
        .env("STEERSMAN_FUZZ_SEEDS", &seeds))
}

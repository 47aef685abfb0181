//! `cargo xtask ci`: what CI runs is what you run.

mod api;
mod tidy;

use std::process::{Command, ExitCode};
use std::time::Instant;

fn main() -> ExitCode {
    let verb = std::env::args().nth(1).unwrap_or_default();
    let done = match verb.as_str() {
        "ci" => ci(),
        "tidy" => tidy::check(&tidy::root()).map_err(|faults| faults.join("\n")),
        "api" => api::check(&tidy::root(), true),
        _ => Err("use: cargo xtask ci | tidy | api".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&why);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a task runner talks to the terminal")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// All stages in order; each prints its wall time, since a number that is seen gets defended.
fn ci() -> Result<(), String> {
    let strict = [("RUSTDOCFLAGS", "-D warnings")];
    let stages: [(&str, &[&str]); 4] = [
        ("format", &["fmt", "--all", "--check"]),
        (
            "lints",
            &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ],
        ),
        ("tests", &["test", "--workspace"]),
        ("docs", &["doc", "--workspace", "--no-deps"]),
    ];
    let mut times = Vec::new();
    for (name, args) in stages {
        let begun = Instant::now();
        say(&format!("== {name}: cargo {}", args.join(" ")));
        let status = Command::new("cargo")
            .args(args)
            .envs(strict)
            .status()
            .map_err(|e| format!("cargo could not be started: {e}"))?;
        if !status.success() {
            return Err(format!("{name} failed"));
        }
        times.push(format!("{name} {:.0} s", begun.elapsed().as_secs_f64()));
    }
    let missing = counterparts(&mut times)?;
    say(&format!("== all passed: {}", times.join(", ")));
    for what in missing {
        say(&format!("== NOT TESTED HERE: {what}"));
    }
    Ok(())
}

/// Tests that need something beside this repository. They are ignored where one runs all tests, so that no test passes
/// that tests nothing; here each runs where it can, and what could not is returned.
fn counterparts(times: &mut Vec<String>) -> Result<Vec<String>, String> {
    let set = |name: &str| std::env::var_os(name).is_some();
    let needed = [
        (
            "real::",
            "steersman-adapters",
            set("STEERSMAN_REAL_MODEL"),
            "a real model behind a real server: STEERSMAN_REAL_MODEL is not set (scripts/real-model.sh)",
        ),
        (
            "real::",
            "steersman-cli",
            set("STEERSMAN_REAL_MODEL"),
            "reruns on a real model: STEERSMAN_REAL_MODEL is not set (scripts/real-model.sh)",
        ),
        (
            "real_embeddings::",
            "steersman-adapters",
            set("STEERSMAN_REAL_EMBEDDINGS"),
            "a real model for embeddings: STEERSMAN_REAL_EMBEDDINGS is not set (scripts/real-embeddings.sh)",
        ),
        (
            "aimock::",
            "steersman-adapters",
            set("STEERSMAN_MOCK_SERVER"),
            "a provider's stand-in: STEERSMAN_MOCK_SERVER is not set (scripts/mock-server.sh)",
        ),
        (
            "reference::",
            "steersman-adapters",
            set("STEERSMAN_MCP_SERVERS"),
            "MCP servers of others: STEERSMAN_MCP_SERVERS is not set (scripts/mcp-servers.sh)",
        ),
        (
            "disk::",
            "steersman-cli",
            may_mount(),
            "disks that are full, read-only or gone: no file system can be mounted here",
        ),
    ];
    let mut missing = Vec::new();
    for (tests, package, is_there, without) in needed {
        if !is_there {
            missing.push(without.to_owned());
            continue;
        }
        let args = [
            "test",
            "-p",
            package,
            "--test",
            "it",
            "--",
            "--ignored",
            tests,
        ];
        let begun = Instant::now();
        say(&format!("== counterparts: cargo {}", args.join(" ")));
        let status = Command::new("cargo")
            .args(args)
            .status()
            .map_err(|e| format!("cargo could not be started: {e}"))?;
        if !status.success() {
            return Err(format!("{tests} failed"));
        }
        times.push(format!("{tests} {:.0} s", begun.elapsed().as_secs_f64()));
    }
    Ok(missing)
}

/// Whether this user may mount a file system.
fn may_mount() -> bool {
    let at = std::env::temp_dir().join(format!("steersman-mount-{}", std::process::id()));
    if std::fs::create_dir(&at).is_err() {
        return false;
    }
    let done = |command: &mut Command| command.output().is_ok_and(|o| o.status.success());
    let mounted = done(
        Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(&at),
    );
    let free = !mounted || done(Command::new("umount").arg(&at));
    // An empty folder that stays in the temporary one harms nobody.
    drop(std::fs::remove_dir(&at));
    mounted && free
}

//! `cargo xtask ci`: what CI runs is what you run. Depends on nothing.

mod tidy;

use std::process::{Command, ExitCode};
use std::time::Instant;

fn main() -> ExitCode {
    let verb = std::env::args().nth(1).unwrap_or_default();
    let done = match verb.as_str() {
        "ci" => ci(),
        "tidy" => tidy::check(&tidy::root()).map_err(|faults| faults.join("\n")),
        _ => Err("use: cargo xtask ci | tidy".to_owned()),
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
    say(&format!("== all passed: {}", times.join(", ")));
    Ok(())
}

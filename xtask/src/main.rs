//! Checks of the repository. `cargo xtask ci` runs exactly the checks of CI.

mod api;
mod bench;
mod ci;
mod clients;
mod counterpart;
mod counts;
mod dist;
mod features;
mod fuzz;
mod graph;
mod house;
mod long;
mod mutants;
mod named;
mod rooms;
mod tidy;

use serde_json::Value as Json;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const USE: &str = "use: cargo xtask ci [NAME]... [--without NAME]... | console | long [NAME]... | long fuzz [TARGET] [MINUTES] | long soak [MINUTES] | long dist [OPTION]... | mutants [NAME]... | tidy | api | clients | house [CRATE] | counts [--write] | bench [OPTION]... | dist [OPTION]...";

/// The counterparts with which the console is tested: browsers, and a compiler that checks that its modules fit together.
const CONSOLE: [&str; 4] = ["chromium", "console-marks", "firefox", "typescript-client"];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["ci", ref rest @ ..] => ci::run_stages(rest),
        ["console"] => ci::run_stages(&CONSOLE),
        ["long", ref names @ ..] => long::all(names),
        ["mutants", ref names @ ..] => mutants::run(&tidy::root(), names),
        ["tidy"] => tidy::check(&tidy::root()).map_err(|faults| faults.join("\n")),
        ["house"] => house::print(&tidy::root()),
        ["house", name] => graph::of_crate(&tidy::root(), name).map(|graph| graph.print()),
        ["counts"] => counts::check(false),
        ["counts", "--write"] => counts::check(true),
        ["bench", ref rest @ ..] => bench::bench(rest),
        ["dist", ref rest @ ..] => dist::dist(rest),
        ["clients"] => clients::check(&tidy::root(), true),
        ["api"] => api::check(&tidy::root(), true),
        _ => Err(USE.to_owned()),
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

/// Returns the command `cargo` without the variables that cargo sets for this program. Build scripts of dependencies read some of
/// them, so with them a build here and one by hand would each undo the other's.
fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        let is_of_this_program = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if is_of_this_program {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Builds with cargo. Returns the path of the program that belongs to a target.
fn built(args: &[&str], target: &str) -> Result<PathBuf, String> {
    let mut cargo = cargo();
    let messages = messages_of(cargo.args(args).arg("--message-format=json"))?;
    let built = messages
        .iter()
        .filter(|message| message["target"]["name"] == target)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    built.ok_or_else(|| format!("`{target}` was not built"))
}

/// Builds with a command that prints the JSON messages of cargo. Returns the messages.
fn messages_of(command: &mut Command) -> Result<Vec<Json>, String> {
    let out = command
        .current_dir(tidy::root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("{command:?} could not be started: {e}"))?;
    if !out.status.success() {
        return Err(format!("{command:?} ended with {}", out.status));
    }
    let messages = String::from_utf8_lossy(&out.stdout);
    let messages = messages.lines();
    Ok(messages
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

/// Runs a command in the root of the workspace; returns an error if it fails.
fn run(command: &mut Command) -> Result<(), String> {
    run_within(command, Duration::MAX)
}

/// Runs a command in the root of the workspace. If it has not ended in this time, it is killed with everything that it started.
fn run_within(command: &mut Command, limit: Duration) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .current_dir(tidy::root())
        .spawn()
        .map_err(|e| format!("`{name}` could not be started: {e}"))?;
    let id = child.id();
    let (ended, waits) = mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        let late = waits.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
        if late {
            kill_with_children(id);
        }
        late
    });
    let status = child.wait();
    drop(ended);
    if matches!(watch.join(), Ok(true)) {
        return Err(format!("`{name}` did not end within {limit:?}"));
    }
    let status = status.map_err(|e| format!("`{name}`: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{name}` ended with {status}"))
    }
}

/// Kills a process and everything that it started and that still belongs to it.
fn kill_with_children(id: u32) {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
    let _ = Command::new("kill")
        .args(["-KILL", &id.to_string()])
        .status();
    for child in children.unwrap_or_default().split_whitespace() {
        if let Ok(child) = child.parse() {
            kill_with_children(child);
        }
    }
}

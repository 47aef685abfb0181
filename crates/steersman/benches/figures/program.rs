//! The program: its size, and how soon it answers.

use crate::measure::{Goal, Size, Table, median, timed};
use crate::store::file;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The program as `cargo build --release` puts it beside this benchmark.
fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let program = own.parent()?.parent()?.join("steersman");
    program.is_file().then_some(program)
}

/// The section of the program.
pub(crate) fn report(table: &Table, size: Size) {
    let Some(program) = program() else {
        table.note("the program is not there: `cargo build --release` first");
        return;
    };
    let mib =
        |path: &PathBuf| std::fs::metadata(path).map_or(0.0, |m| m.len() as f64 / 1_048_576.0);
    let stripped = file("steersman");
    let strip = Command::new("strip")
        .arg("-o")
        .args([&stripped, &program])
        .stderr(Stdio::null())
        .status();
    if strip.is_ok_and(|s| s.success()) {
        let beside = format!("{:.1} MiB as it is built", mib(&program));
        let goal = Goal::AtMost(30.0);
        table.row("program, stripped", mib(&stripped), " MiB", goal, &beside);
    } else {
        let goal = Goal::AtMost(30.0);
        table.row(
            "program as it is built",
            mib(&program),
            " MiB",
            goal,
            "no `strip` here",
        );
    }
    let version = || {
        let run = Command::new(&program)
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        assert!(run.is_ok_and(|s| s.success()), "it tells its version");
    };
    let times = (0..size.of(31, 1)).map(|_| timed(version).1.clock * 1e3);
    let goal = Goal::AtMost(10.0);
    table.row(
        "`steersman --version`",
        median(times),
        " ms",
        goal,
        "by the clock",
    );
}

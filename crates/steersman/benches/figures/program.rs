//! The program: its size, and the time until it has printed its version.

use crate::measure::{Goal, Size, Table, median, short, timed};
use crate::store::file;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program that `cargo build --release` puts into the folder above this benchmark.
pub(crate) fn program() -> Option<PathBuf> {
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
    let run = |program: &Path, args: &[&str]| {
        let mut run = Command::new(program);
        let run = run.args(args).stdout(Stdio::null()).status();
        run.is_ok_and(|s| s.success())
    };
    let (mut all, mut empty) = (Vec::new(), Vec::new());
    for _ in 0..size.of(31, 1) {
        let (told, took) = timed(|| run(&program, &["--version"]));
        assert!(told, "it tells its version");
        all.push(took.clock * 1e3);
        empty.push(timed(|| run(Path::new("true"), &[])).1.clock * 1e3);
    }
    let beside = format!("by the clock; {} ms for `true`", short(median(empty)));
    let goal = Goal::AtMost(10.0);
    table.row("`steersman --version`", median(all), " ms", goal, &beside);
}

//! Counts the instructions of hot paths with callgrind, and compares them with the numbers in `tests/counts.tsv`.
//!
//! The binary is the one that `cargo test --workspace` builds anyway, without optimisation: its counts show more work as well as
//! those of a release build do, and cost no build. Two runs of one path, with and without repetitions, differ by the path alone.

use crate::tidy::root;
use crate::{built, run, say};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Hot paths: name, repetitions, what one repetition is.
const PATHS: [(&str, u64, &str); 5] = [
    ("tick", 200, "a tick of a tool loop"),
    ("encode", 400, "a line encoded and hashed"),
    (
        "render",
        100,
        "a request with 20 exchanges in view, one of them new",
    ),
    (
        "store",
        200,
        "a line ticked, encoded and inserted into SQLite, without its sync",
    ),
    (
        "step",
        40,
        "a turn of a session in memory: a model call and a tool call",
    ),
];

/// The numbers that a run is compared with.
const FILE: &str = "tests/counts.tsv";

/// Most that a count may exceed the number in the file, in percent.
const MORE: u64 = 15;

/// Counts all paths. Fails if one has become more expensive; with `write`, writes the file instead.
pub(crate) fn check(write: bool) -> Result<(), String> {
    // As the tests are built, so that nothing is built for it.
    let program = built(
        &["test", "--workspace", "--bench", "figures", "--no-run"],
        "figures",
    )?;
    let counted: Result<Vec<u64>, String> = PATHS
        .iter()
        .map(|(name, times, _)| {
            // The file of the second run stays, so that a person can look at it.
            let without = count(&program, name, 0)?;
            Ok((count(&program, name, *times)? - without) / times)
        })
        .collect();
    let counted = counted?;
    if write {
        let rows = PATHS.iter().zip(&counted);
        let rows = rows.map(|((name, _, what), count)| format!("{name}\t{count}\t{what}\n"));
        let text = rows.collect::<String>();
        return fs::write(root().join(FILE), text).map_err(|e| format!("{FILE}: {e}"));
    }
    let known = known()?;
    let mut faults = Vec::new();
    for ((name, _, what), now) in PATHS.iter().zip(counted) {
        let then = *known
            .get(*name)
            .ok_or_else(|| format!("{FILE} has no `{name}`: run `cargo xtask counts --write`"))?;
        say(&format!(
            "{name}: {now} instructions, {then} before ({what})"
        ));
        faults.extend(judge(name, then, now));
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults.join("\n"))
    }
}

/// Compares a count with the number before it.
fn judge(name: &str, then: u64, now: u64) -> Option<String> {
    if now * 100 > then * (100 + MORE) {
        let more = now * 100 / then - 100;
        return Some(format!(
            "{name} takes {more} % more instructions than {FILE} says ({now} over {then}): `callgrind_annotate \
             target/counts/{name}.out` shows where; if you meant it, run `cargo xtask counts --write`"
        ));
    }
    if now * (100 + MORE) < then * 100 {
        say(&format!(
            "{name} became cheaper: `cargo xtask counts --write` keeps it so"
        ));
    }
    None
}

fn known() -> Result<BTreeMap<String, u64>, String> {
    let text = fs::read_to_string(root().join(FILE)).map_err(|e| format!("{FILE}: {e}"))?;
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.split('\t');
        Some((cells.next()?.to_owned(), cells.next()?.parse().ok()?))
    });
    Ok(rows.collect())
}

/// Instructions of a run with so many repetitions.
fn count(program: &Path, name: &str, times: u64) -> Result<u64, String> {
    let folder = root().join("target/counts");
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let out = folder.join(format!("{name}.out"));
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--tool=callgrind"]);
    valgrind.arg(format!("--callgrind-out-file={}", out.display()));
    valgrind
        .arg(program)
        .args(["--count", name, &times.to_string()]);
    run(&mut valgrind)
        .map_err(|why| format!("{why}; the package `valgrind` of the system is needed"))?;
    let text = fs::read_to_string(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let total = total.and_then(|total| total.trim().parse().ok());
    total.ok_or_else(|| format!("{} has no total", out.display()))
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn a_sixth_more_fails_and_a_tenth_more_does_not() {
        assert!(judge("tick", 1_000, 1_160).is_some());
        assert!(judge("tick", 1_000, 1_100).is_none());
        assert!(judge("tick", 1_000, 500).is_none());
    }
}

//! Golden logs: everything that sessions store, as text, for every case file and for seeds of random sessions. A change that
//! is meant to leave stored data alone must leave the files under `tests/golden/` alone. Both are the same if the owner of a
//! session keeps nothing in memory: a new driver is opened for each event, and each job is done again after it was read. The
//! text has no bytes and no hashes of stored forms, so it stays comparable when these forms change or code moves between
//! crates.
//!
//! `STEERSMAN_GOLDEN=write` writes the files. `STEERSMAN_GOLDEN_SEEDS` is the number of seeds to compare.
//! `STEERSMAN_GOLDEN_SEED` prints the whole rendering of one seed. `seeds.txt` holds only hashes, so to see how a seed
//! differs, print it before and after the change.

mod chance;
mod outcomes;
mod random;
mod render;
mod stage;
mod steps;
mod tree;

use render::short_hash;
use stage::Memory;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steersman_definition::{Compiled, Files, compile_with_tests};

/// Number of seeds in `seeds.txt`.
const SEEDS: u64 = 500;
/// Number of seeds that are compared by default.
const COMPARED: u64 = 200;
/// Number of seeds that are compared by default with nothing in memory.
const COMPARED_COLD: u64 = 40;
/// The most rows that are printed of each side of a difference.
const SHOWN: usize = 12;
/// The most cases whose difference is printed.
const SHOWN_CASES: usize = 6;

/// Tests of case files that cannot be played through the runtime: case, test, reason. All can, so far.
const SKIPPED: &[(&str, &str, &str)] = &[];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn writes() -> bool {
    std::env::var("STEERSMAN_GOLDEN").is_ok_and(|how| how == "write")
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs a future in this thread, on a runtime of its own.
fn alone<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().unwrap();
    runtime.block_on(what)
}

/// Returns the first rows that differ, with their numbers, and the rows before them. `None` means that the texts are equal.
fn differs(was: &str, is: &str) -> Option<String> {
    let (was, is): (Vec<&str>, Vec<&str>) = (was.lines().collect(), is.lines().collect());
    let same = was.iter().zip(&is).take_while(|(a, b)| a == b).count();
    if same == was.len().max(is.len()) {
        return None;
    }
    let mut shown = String::new();
    for row in &was[same.saturating_sub(3)..same] {
        writeln!(shown, "    {row}").unwrap();
    }
    let rows = |rows: &[&str], sign: char| {
        let rows = rows.iter().skip(same).take(SHOWN).enumerate();
        let rows = rows.map(|(k, row)| format!("{sign} {:>5} {row}\n", same + k + 1));
        rows.collect::<String>()
    };
    shown.push_str(&rows(&was, '-'));
    shown.push_str(&rows(&is, '+'));
    Some(shown)
}

/// Plays all tests of a case file and returns their rendering.
fn case(name: &str, text: String, memory: Memory) -> String {
    let files = Files::new(format!("{name}.yaml"), text);
    let (compiled, found) = compile_with_tests(&files, None);
    let Compiled {
        mut network, tests, ..
    } = compiled.unwrap_or_else(|| panic!("{name}: {found:?}"));
    network.natives = steersman_testkit::states::natives();
    let network = Arc::new(network);
    let mut all = String::new();
    for (test, steps) in &tests {
        if SKIPPED.iter().any(|(c, t, _)| *c == name && **t == **test) {
            continue;
        }
        let played = alone(Box::pin(steps::Run::new(&network, steps, memory).play()));
        let played = played.unwrap_or_else(|why| panic!("{name}, {test}: {why}"));
        writeln!(all, "# {test}\n{played}").unwrap();
    }
    all
}

/// Returns the case files by name.
fn cases() -> BTreeMap<String, PathBuf> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../steersman-machine/tests/cases");
    named(&cases, "yaml")
}

/// Returns the files of a folder with this ending, by their names without it.
fn named(folder: &Path, ending: &str) -> BTreeMap<String, PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|e| e == ending));
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    paths.map(|path| (name(&path), path)).collect()
}

/// Plays all case files and returns their renderings by name.
fn renderings(memory: Memory) -> BTreeMap<String, String> {
    let is = cases().into_iter().map(|(name, path)| {
        let text = std::fs::read_to_string(path).unwrap();
        let rendering = case(&name, text, memory);
        (name, rendering)
    });
    is.collect()
}

/// Fails if the renderings of the cases are not what is written down.
fn compare_cases(is: &BTreeMap<String, String>) {
    let mut was = BTreeMap::new();
    for (name, path) in named(&folder().join("cases"), "txt") {
        was.insert(name, std::fs::read_to_string(path).unwrap());
    }
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let text = |of: &BTreeMap<String, String>, name| of.get(name).cloned().unwrap_or_default();
    let wrong = names.into_iter().filter_map(|name| {
        let rows = differs(&text(&was, name), &text(is, name))?;
        Some((name, rows))
    });
    let wrong: Vec<(&String, String)> = wrong.collect();
    let mut shown = String::new();
    for (name, rows) in wrong.iter().take(SHOWN_CASES) {
        writeln!(shown, "{name}\n{rows}").unwrap();
    }
    let names: Vec<&str> = wrong.iter().map(|(name, _)| name.as_str()).collect();
    assert!(
        wrong.is_empty(),
        "{} cases store something else: {}. The first rows that differ (-: as written down, +: as it is now); \
         STEERSMAN_GOLDEN=write writes down what is meant:\n{shown}",
        names.len(),
        names.join(", ")
    );
}

#[test]
fn cases_store_what_is_written_down() {
    for (case, test, why) in SKIPPED {
        println!("skipped: {case}, {test}: {why}");
    }
    let is = renderings(Memory::All);
    if writes() {
        let folder = folder().join("cases");
        std::fs::remove_dir_all(&folder).ok();
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in is {
            std::fs::write(folder.join(format!("{name}.txt")), text).unwrap();
        }
        return;
    }
    compare_cases(&is);
}

#[test]
fn cases_store_the_same_if_nothing_stays_in_memory() {
    if !writes() {
        compare_cases(&renderings(Memory::Nothing));
    }
}

/// Plays these seeds in two threads and returns their rows of `seeds.txt`.
fn rows(last: u64, memory: Memory) -> BTreeMap<u64, String> {
    let row = |seed| {
        let stored = alone(Box::pin(random::played(seed, memory)));
        let (lines, hash) = (stored.matches("\nline ").count(), short_hash(&stored));
        (seed, format!("{seed} {lines} {hash}"))
    };
    let half = |odd: u64| (1..=last).filter(move |seed| seed % 2 == odd).map(row);
    std::thread::scope(|scope| {
        let odd = scope.spawn(|| half(1).collect::<BTreeMap<_, _>>());
        let mut rows: BTreeMap<u64, String> = half(0).collect();
        rows.extend(odd.join().unwrap());
        rows
    })
}

/// Fails if the rows of the first seeds are not what is written down.
fn compare_rows(is: &BTreeMap<u64, String>) {
    let was = std::fs::read_to_string(folder().join("seeds.txt")).unwrap();
    let was = was.lines().skip(1).take(is.len());
    let wrong = was.zip(is.values()).filter(|(was, is)| *was != **is);
    let wrong: Vec<String> = wrong
        .map(|(was, is)| format!("- {was}\n+ {is}\n"))
        .collect();
    let (n, wrong) = (wrong.len(), wrong.concat());
    assert!(
        wrong.is_empty(),
        "{n} seeds store something else (seed, lines, hash; -: as written down, +: as it is now); \
         STEERSMAN_GOLDEN_SEED=n prints what one stores:\n{wrong}"
    );
}

/// Returns the number of seeds to compare: `usual`, unless the environment says another.
fn seeds(usual: u64) -> u64 {
    number("STEERSMAN_GOLDEN_SEEDS").map_or(usual, |n| n.min(SEEDS))
}

#[test]
fn random_sessions_store_what_is_written_down() {
    if let Some(seed) = number("STEERSMAN_GOLDEN_SEED") {
        println!("{}", alone(Box::pin(random::played(seed, Memory::All))));
        return;
    }
    if writes() {
        let mut text = String::from("# seed, lines of its log, hash of what it stores\n");
        text.extend(
            rows(SEEDS, Memory::All)
                .values()
                .map(|row| format!("{row}\n")),
        );
        std::fs::write(folder().join("seeds.txt"), text).unwrap();
        return;
    }
    compare_rows(&rows(seeds(COMPARED), Memory::All));
}

#[test]
fn random_sessions_store_the_same_if_nothing_stays_in_memory() {
    if !writes() && number("STEERSMAN_GOLDEN_SEED").is_none() {
        compare_rows(&rows(seeds(COMPARED_COLD), Memory::Nothing));
    }
}

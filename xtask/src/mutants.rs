//! `cargo xtask mutants [NAME...]`: breaks the program on purpose, one guarantee at a time, and checks that the campaign over
//! acts or a simulation finds each fault.
//!
//! Each patch under `tests/mutants/` is applied to a copy of the tracked tree, and the program is built there. The campaign
//! itself is run from this tree, so that no mutant can break its own test. The copy without a patch must pass; each copy with
//! a patch must fail with a finding.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Number of sequences that a mutant may pass before it counts as missed.
const SEQUENCES: &str = "150";
/// Number of simulations that a mutant may pass before it counts as missed.
const SIMULATIONS: &str = "500";
/// The definition that is simulated, in the root of the repository, and what must hold of its effects.
const SIMULATED: [&str; 2] = [
    "tests/mutants/desk.yaml",
    "effect.tool != 'pay' or effect.performed == 0 or effect.args.cents <= 100 or 'clerk' in effect.approvals",
];
/// The prefix of the line on which the program prints an invariant that broke.
const BROKEN: &str = "broken  ";
/// The prefix of the line on which the campaign prints a finding.
const FINDING: &str = "FINDING: ";

/// The folders in which the copy is made and built.
struct Scratch {
    root: PathBuf,
    tree: PathBuf,
    target: PathBuf,
}

/// Result of one mutant; times in seconds.
struct Tried {
    name: String,
    built: f64,
    ran: f64,
    /// The finding of the campaign. `None` if it found nothing, or if the mutant does not build.
    found: Option<String>,
    builds: bool,
}

/// Runs the named mutants; all of them if no name is given.
pub(crate) fn run(root: &Path, names: &[&str]) -> Result<(), String> {
    let patches = patches(root, names)?;
    let scratch = Scratch {
        root: root.to_owned(),
        tree: root.join("target/mutants/tree"),
        target: root.join("target/mutants/target"),
    };
    // reports a patch that no longer applies before anything is built
    scratch.copy()?;
    for patch in &patches {
        git_apply(&scratch.tree, patch, &["--check"])?;
    }
    crate::say(&format!("== {} patches apply", patches.len()));
    let mut all = vec![scratch.try_out("(none)", None)?];
    if let Some(found) = &all[0].found {
        return Err(format!("the campaign fails without a mutant: {found}"));
    }
    if !all[0].builds {
        return Err("the program does not build".to_owned());
    }
    for patch in &patches {
        let tried = scratch.try_out(&name_of(patch), Some(patch))?;
        crate::say(&row(&tried));
        all.push(tried);
    }
    crate::say("\nmutant                       built    ran   what the campaign saw");
    for tried in &all {
        crate::say(&row(tried));
    }
    let missed: Vec<&str> = all
        .iter()
        .skip(1)
        .filter(|tried| tried.found.is_none())
        .map(|tried| &*tried.name)
        .collect();
    if missed.is_empty() {
        return Ok(());
    }
    Err(format!("not found: {}", missed.join(", ")))
}

/// Reports patches that do not apply to the code as it is: a change of the code writes them again.
pub(crate) fn check(root: &Path, faults: &mut Vec<String>) {
    match patches(root, &[]) {
        Ok(all) => {
            let applied = all.iter().map(|patch| git_apply(root, patch, &["--check"]));
            faults.extend(applied.filter_map(Result::err));
        }
        Err(why) => faults.push(why),
    }
}

/// Applies a patch to a tree.
fn git_apply(tree: &Path, patch: &Path, how: &[&str]) -> Result<(), String> {
    let out = Command::new("git")
        .current_dir(tree)
        // a copy is inside a checkout but is not one itself
        .env("GIT_CEILING_DIRECTORIES", tree.parent().unwrap_or(tree))
        .arg("apply")
        .args(how)
        .arg(patch)
        .output()
        .map_err(|e| format!("git could not be started: {e}"))?;
    if out.status.success() {
        return Ok(());
    }
    Err(format!(
        "tests/mutants/{}.patch does not apply any more: find where the code keeps this guarantee now, and write the patch so that it breaks the same one:\n{}",
        name_of(patch),
        String::from_utf8_lossy(&out.stderr).trim_end()
    ))
}

fn row(tried: &Tried) -> String {
    let Tried {
        name,
        built,
        ran,
        found,
        builds,
    } = tried;
    let nothing = if *builds { "nothing" } else { "does not build" };
    let found = found.as_deref().unwrap_or(nothing);
    format!("{name:<28} {built:>3.0} s  {ran:>3.0} s   {found}")
}

fn name_of(patch: &Path) -> String {
    let name = patch.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the named patches, or all of them, sorted.
fn patches(root: &Path, names: &[&str]) -> Result<Vec<PathBuf>, String> {
    let folder = root.join("tests/mutants");
    let listed = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut found: Vec<PathBuf> = listed
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "patch"))
        .collect();
    found.sort();
    for name in names {
        if !found.iter().any(|patch| name_of(patch) == **name) {
            let known: Vec<String> = found.iter().map(|patch| name_of(patch)).collect();
            return Err(format!(
                "there is no mutant `{name}`; there are: {}",
                known.join(", ")
            ));
        }
    }
    found.retain(|patch| names.is_empty() || names.contains(&&*name_of(patch)));
    Ok(found)
}

impl Scratch {
    /// Makes the copy equal to the tracked tree. Unchanged files keep their time, so that little is rebuilt.
    fn copy(&self) -> Result<(), String> {
        let listed = Command::new("git")
            .current_dir(&self.root)
            .args(["ls-files", "-z"])
            .output()
            .map_err(|e| format!("git could not be started: {e}"))?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let tracked: BTreeSet<PathBuf> = listed
            .split_terminator('\0')
            .map(PathBuf::from)
            .filter(|path| self.root.join(path).exists())
            .collect();
        for path in &tracked {
            let (from, to) = (self.root.join(path), self.tree.join(path));
            let failed = |e: std::io::Error| format!("{}: {e}", to.display());
            fs::create_dir_all(to.parent().unwrap_or(&self.tree)).map_err(failed)?;
            if let Ok(goal) = fs::read_link(&from) {
                if fs::read_link(&to).ok().as_ref() != Some(&goal) {
                    std::os::unix::fs::symlink(&goal, &to).map_err(failed)?;
                }
                continue;
            }
            let bytes = fs::read(&from).map_err(failed)?;
            if fs::read(&to).is_ok_and(|known| known == bytes) {
                continue;
            }
            fs::write(&to, bytes).map_err(failed)?;
        }
        self.delete_unknown(&self.tree, &tracked)
    }

    fn delete_unknown(&self, folder: &Path, tracked: &BTreeSet<PathBuf>) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() && !path.is_symlink() {
                self.delete_unknown(&path, tracked)?;
            } else if !path
                .strip_prefix(&self.tree)
                .is_ok_and(|path| tracked.contains(path))
            {
                fs::remove_file(&path).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Runs simulations with the program that was built. Returns the first invariant that broke.
    fn simulated(&self) -> Result<Option<String>, String> {
        let [definition, invariant] = SIMULATED;
        let out = Command::new(self.target.join("debug/steersman"))
            .args(["simulate", "--seeds", SIMULATIONS, "--invariant", invariant])
            .arg(self.root.join(definition))
            .output()
            .map_err(|e| format!("the program could not be started: {e}"))?;
        let text = String::from_utf8_lossy(&out.stdout);
        let broken = text.lines().find_map(|line| line.strip_prefix(BROKEN));
        match (out.status.code(), broken) {
            (Some(0), _) => Ok(None),
            (_, Some(broken)) => Ok(Some(broken.to_owned())),
            _ => Ok(Some(format!("it ended with {}", out.status))),
        }
    }

    /// Builds the program with a patch and runs simulations and the campaign against it.
    fn try_out(&self, name: &str, patch: Option<&Path>) -> Result<Tried, String> {
        self.copy()?;
        if let Some(patch) = patch {
            git_apply(&self.tree, patch, &[])?;
        }
        let begun = Instant::now();
        let out = crate::cargo()
            .current_dir(&self.tree)
            .args(["build", "--quiet", "--bin", "steersman"])
            .env("CARGO_TARGET_DIR", &self.target)
            .output()
            .map_err(|e| format!("cargo could not be started: {e}"))?;
        let built = begun.elapsed().as_secs_f64();
        // Warnings about unused code in a mutant that builds are of no interest.
        if !out.status.success() {
            crate::say(&String::from_utf8_lossy(&out.stderr));
            return Ok(Tried {
                name: name.to_owned(),
                built,
                ran: 0.0,
                found: None,
                builds: false,
            });
        }
        let begun = Instant::now();
        if let Some(found) = self.simulated()? {
            return Ok(Tried {
                name: name.to_owned(),
                built,
                ran: begun.elapsed().as_secs_f64(),
                builds: true,
                found: Some(format!("simulation: {found}").chars().take(110).collect()),
            });
        }
        let mut campaign = crate::cargo();
        campaign
            .current_dir(&self.root)
            .args(["test", "--quiet", "-p", "steersman-cli", "--test", "acts"])
            .args([
                "--",
                "--nocapture",
                "--exact",
                "orders_are_as_safe_as_ticks",
            ])
            .env("STEERSMAN_PROGRAM", self.target.join("debug/steersman"))
            .env("STEERSMAN_SEED", "1");
        if patch.is_some() {
            // the first finding is enough and need not be shrunk: the defect is known
            campaign
                .env("STEERSMAN_ACTS", SEQUENCES)
                .env("STEERSMAN_SHRINK", "0");
        }
        let out = campaign
            .output()
            .map_err(|e| format!("cargo could not be started: {e}"))?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let found = text.lines().find_map(|line| line.strip_prefix(FINDING));
        if !out.status.success() && found.is_none() {
            return Err(format!(
                "the campaign did not run against {name}:\n{text}\n{}",
                String::from_utf8_lossy(&out.stderr)
            ));
        }
        Ok(Tried {
            name: name.to_owned(),
            built,
            ran: begun.elapsed().as_secs_f64(),
            builds: true,
            found: found.map(|found| found.chars().take(110).collect()),
        })
    }
}

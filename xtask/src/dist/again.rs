//! Makes files a second time. They have to be the same, byte for byte.

use super::{Made, Options, Places, VERSION, at, emptied, forms, said};
use crate::tidy::root;
use crate::{run, say};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Makes the forms again of the same trees.
pub(super) fn wrapped(made: &[Made], places: &Places) -> Result<(), String> {
    let again = Places::emptied(&places.work.join("again"), places.level)?;
    for one in made {
        forms::made(&one.target, &one.tree, &again)?;
    }
    forms::finished(&again)?;
    same(&places.out, &again.out)?;
    say("== every form made again has the same bytes");
    Ok(())
}

/// Checks out the commit in another folder, makes its files there, programs included, and compares them.
pub(super) fn made(options: &Options, places: &Places) -> Result<(), String> {
    let begun = Instant::now();
    let folder = emptied(places.work.join("another-checkout"))?;
    said(
        Command::new("git")
            .args(["clone", "--quiet"])
            .arg(root())
            .arg(&folder),
    )?;
    let mut cargo = crate::cargo();
    cargo.args(["run", "--quiet", "--locked", "--package", "xtask"]);
    cargo.arg("--manifest-path").arg(folder.join("Cargo.toml"));
    cargo.arg("--").args(options.only_make());
    // Nothing that was built before may help.
    run(cargo.env("CARGO_TARGET_DIR", folder.join("target")))?;
    let release = format!("target/dist/steersman-{VERSION}");
    same(&places.out, &folder.join(release))?;
    say(&format!(
        "== every file made again in another folder has the same bytes: {} s",
        begun.elapsed().as_secs()
    ));
    // Gigabytes that nobody reads again.
    fs::remove_dir_all(&folder).map_err(at(&folder))
}

/// Both folders have the same files.
fn same(one: &Path, other: &Path) -> Result<(), String> {
    said(
        Command::new("diff")
            .args(["--recursive", "--brief"])
            .args([one, other]),
    )
    .map(|_| ())
    .map_err(|why| format!("the files are not the same when they are made again: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_with_another_byte_or_file_are_not_the_same() {
        let folder = std::env::temp_dir().join(format!("steersman-again-{}", std::process::id()));
        let (one, other) = (folder.join("one"), folder.join("other"));
        for place in [&one, &other] {
            fs::create_dir_all(place).unwrap();
            fs::write(place.join("a"), "a").unwrap();
        }
        same(&one, &other).unwrap();
        fs::write(other.join("a"), "b").unwrap();
        assert!(same(&one, &other).is_err());
        fs::write(other.join("a"), "a").unwrap();
        fs::write(other.join("b"), "b").unwrap();
        assert!(same(&one, &other).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}

//! The packages that the crates are published as: each can be made, and each has all the files that its code includes.

use super::said;
use crate::say;
use crate::tidy::root;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Makes a package of each crate that may be published, in the order in which they have to be published, and checks its files.
/// A program or library that needs a file of another folder builds here, and nowhere else.
pub(super) fn check() -> Result<(), String> {
    let crates = published()?;
    let mut faults = Vec::new();
    for (name, folder) in &crates {
        let listed = said(crate::cargo().current_dir(root()).args([
            "package",
            "--quiet",
            "--list",
            "--allow-dirty",
            "--package",
            name,
        ]))?;
        let listed: BTreeSet<&str> = listed.lines().collect();
        for terms in ["LICENSE-MIT", "LICENSE-APACHE"] {
            if !listed.contains(terms) {
                faults.push(format!("{name}: its package has no {terms}"));
            }
        }
        for source in listed.iter().filter(|path| {
            path.starts_with("src/") && Path::new(path).extension() == Some("rs".as_ref())
        }) {
            let text = fs::read_to_string(folder.join(source)).unwrap_or_default();
            for file in included(source, &text) {
                if !listed.contains(&*file) {
                    faults.push(format!(
                        "{name}: {source} includes {file}, which its package lacks"
                    ));
                }
            }
        }
    }
    if faults.is_empty() {
        said(packages(&crates).arg("--no-verify")).map(|_| ())
    } else {
        Err(faults.join("\n"))
    }
}

/// Makes a package of each crate, and builds each from the files of its package alone.
pub(super) fn build() -> Result<(), String> {
    let begun = Instant::now();
    let crates = published()?;
    said(&mut packages(&crates))?;
    say(&format!(
        "== {} crates build from their packages: {} s",
        crates.len(),
        begun.elapsed().as_secs()
    ));
    Ok(())
}

/// A command that makes a package of each crate.
fn packages(crates: &[(String, PathBuf)]) -> Command {
    let mut cargo = crate::cargo();
    cargo
        .current_dir(root())
        .args(["package", "--quiet", "--locked", "--allow-dirty"]);
    for (name, _) in crates {
        cargo.args(["--package", name]);
    }
    cargo
}

/// The crates of the workspace that may be published, with their folders.
fn published() -> Result<Vec<(String, PathBuf)>, String> {
    let metadata = said(crate::cargo().current_dir(root()).args([
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
    ]))?;
    let metadata: Json = serde_json::from_str(&metadata).map_err(|e| e.to_string())?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    // `publish = false` is an empty list of registries.
    let packages = packages.filter(|package| package["publish"].is_null());
    let crates = packages.filter_map(|package| {
        let manifest = Path::new(package["manifest_path"].as_str()?);
        let name = package["name"].as_str()?.to_owned();
        Some((name, manifest.parent()?.to_owned()))
    });
    Ok(crates.collect())
}

/// The files that a source includes, from the folder of its package.
fn included(source: &str, text: &str) -> Vec<String> {
    let folder = Path::new(source).parent().unwrap_or(Path::new(""));
    let uses = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let uses = uses.flat_map(|line| {
        let after = ["include_str!(\"", "include_bytes!(\""].map(|call| line.split(call).skip(1));
        after.into_iter().flatten()
    });
    let paths = uses.filter_map(|rest| rest.split('"').next());
    paths.map(|path| resolved(&folder.join(path))).collect()
}

/// A path without `..` where that is possible.
fn resolved(path: &Path) -> String {
    let mut parts: Vec<Component<'_>> = Vec::new();
    for part in path.components() {
        match (part, parts.last()) {
            (Component::ParentDir, Some(Component::Normal(_))) => drop(parts.pop()),
            (Component::CurDir, _) => {}
            (part, _) => parts.push(part),
        }
    }
    let whole: PathBuf = parts.into_iter().collect();
    whole.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::included;

    #[test]
    fn an_included_file_is_named_from_the_folder_of_the_package() {
        let text = "include_str!(\"../a.txt\") include_bytes!(\"b/c\")\n// include_str!(\"no\")\ninclude_str!(\"../../../x\")";
        assert_eq!(
            included("src/main.rs", text),
            ["a.txt", "src/b/c", "../../x"]
        );
    }
}

//! The folders and files of an installation, as they are below `/usr/local` or `~/.local`. Every form of a release has them.

use super::parts::Parts;
use super::{Places, VERSION, at, build, copied, said};
use crate::tidy::root;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the documents in an installation.
pub(super) const DOCUMENTS: &str = "share/doc/steersman";

/// Files of an installation that a person looks for by name.
pub(super) const EXPECTED: [&str; 11] = [
    "bin/steersman",
    "share/bash-completion/completions/steersman",
    "share/zsh/site-functions/_steersman",
    "share/fish/vendor_completions.d/steersman.fish",
    "share/man/man1/steersman.1",
    "share/man/man1/steersman-run.1",
    "share/doc/steersman/LICENSE-MIT",
    "share/doc/steersman/LICENSE-APACHE",
    "share/doc/steersman/NOTICES.txt",
    "share/doc/steersman/RUST.html",
    "share/doc/steersman/sbom.cdx.json",
];

/// Puts an installation together; returns its folder, whose name has version and target.
pub(super) fn staged(
    target: &str,
    program: &Path,
    pages: &Path,
    parts: &Parts,
    places: &Places,
) -> Result<PathBuf, String> {
    let tree = places.work.join(format!("steersman-{VERSION}-{target}"));
    copied(program, &tree.join("bin/steersman"))?;
    said(
        Command::new("cp")
            .arg("-r")
            .arg(pages.join("share"))
            .arg(&tree),
    )?;
    let documents = tree.join(DOCUMENTS);
    for name in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copied(&root().join(name), &documents.join(name))?;
    }
    let terms = build::sysroot()?.join("share/doc/rust/COPYRIGHT-library.html");
    copied(&terms, &documents.join("RUST.html"))?;
    write(&documents.join("NOTICES.txt"), &parts.notices())?;
    write(
        &documents.join("sbom.cdx.json"),
        &format!("{:#}\n", parts.sbom()),
    )?;
    plain(&tree)?;
    let absent = EXPECTED.iter().find(|file| !tree.join(file).exists());
    match absent {
        None => Ok(tree),
        Some(file) => Err(format!("{} has no {file}", tree.display())),
    }
}

/// Gives all files and folders the rights that an installation has, whatever the umask of this run is.
pub(super) fn plain(folder: &Path) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        if path.is_dir() {
            plain(&path)?;
        } else {
            let is_program = path.parent().is_some_and(|folder| folder.ends_with("bin"));
            let rights = if is_program { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(rights)).map_err(at(&path))?;
        }
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).map_err(at(folder))
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(at(path))
}

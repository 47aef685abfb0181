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
    let readme = documents.join("README.md");
    let text = fs::read_to_string(&readme).map_err(at(&readme))?;
    let is_there = |target: &str| documents.join(target).exists();
    write(&readme, &linked(&text, is_there))?;
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

/// Returns a text in Markdown in which links to files that are not there are their words alone. Links within the text and to other
/// hosts stay.
fn linked(text: &str, is_there: impl Fn(&str) -> bool) -> String {
    let mut linked = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let Some((words, target, end)) = link(&rest[open..]) else {
            linked.push_str(&rest[..=open]);
            rest = &rest[open + 1..];
            continue;
        };
        let file = target.split('#').next().unwrap_or_default();
        let stays = file.is_empty() || target.contains("://") || is_there(file);
        let before = &rest[..open];
        if stays {
            linked.push_str(&rest[..open + end]);
        } else {
            linked.push_str(before.strip_suffix('!').unwrap_or(before));
            linked.push_str(words);
        }
        rest = &rest[open + end..];
    }
    linked.push_str(rest);
    linked
}

/// Returns the words and the target of the link with which a text begins, and its length.
fn link(text: &str) -> Option<(&str, &str, usize)> {
    let (words, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (target, _) = rest.split_once(')')?;
    let plain = !words.contains(['[', ']', '\n']) && !target.contains(char::is_whitespace);
    let length = 1 + words.len() + 2 + target.len() + 1;
    plain.then_some((words, target, length))
}

#[cfg(test)]
mod tests {
    use super::linked;

    #[test]
    fn links_that_lead_nowhere_are_their_words() {
        let text = "![A desk](docs/desk.svg) [the docs](docs/README.md), [here](#a) [b](LICENSE-MIT#x) [c] [d](https://e.example) `[f](g h)`";
        let there =
            "A desk the docs, [here](#a) [b](LICENSE-MIT#x) [c] [d](https://e.example) `[f](g h)`";
        assert_eq!(linked(text, |file| file == "LICENSE-MIT"), there);
        assert_eq!(linked(text, |_| true), text);
    }
}

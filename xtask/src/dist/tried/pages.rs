//! Completions and man pages of an installation: each shell completes a word with them, and the pages have no faults.

use super::super::{Places, at, emptied, said};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that loads completions into bash by the name of a command.
pub(crate) const BASH_COMPLETION: &str = "/usr/share/bash-completion/bash_completion";

/// Loads the completion of the command by its name and completes `steersman dem`.
const BASH: &str = r#"
. "$1"
_completion_loader steersman
complete -p steersman | grep -q -e '-F _steersman ' || exit 1
COMP_WORDS=(steersman dem) COMP_CWORD=1 COMP_LINE='steersman dem' COMP_POINT=13
_steersman steersman dem steersman
printf '%s\n' "${COMPREPLY[@]}"
"#;

/// Types into a zsh that has a terminal, and reads until the word is whole.
const ZSH: &str = r#"
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w -n shell $'steersman dem\t'
zpty -r shell line '*steersman demo*' || exit 1
zpty -d shell
print demo
"#;

const FISH: &str = "complete -C 'steersman dem'";

/// All pages of an installation.
pub(super) fn load(prefix: &Path, places: &Places) -> Result<(), String> {
    let home = emptied(places.work.join("shells"))?;
    let share = prefix.join("share");
    let path = format!("{}:/usr/bin:/bin", prefix.join("bin").display());
    // A shell that waits for ever is ended.
    let shell = |words: &[&str]| {
        let mut shell = Command::new("timeout");
        shell.env_clear().env("HOME", &home).env("PATH", &path);
        shell.current_dir(&home).env("TERM", "dumb");
        shell.env("XDG_DATA_DIRS", format!("{}:/usr/share", share.display()));
        shell.arg("300").args(words);
        shell
    };
    let bash = [
        "bash",
        "--noprofile",
        "--norc",
        "-c",
        BASH,
        "bash",
        BASH_COMPLETION,
    ];
    let mut zsh = shell(&["zsh", "-f", "-c", ZSH, "zsh"]);
    zsh.arg(share.join("zsh/site-functions"));
    for (name, mut shell) in [
        ("bash", shell(&bash)),
        ("zsh", zsh),
        ("fish", shell(&["fish", "-c", FISH])),
    ] {
        let completed = said(&mut shell)?;
        let mut words = completed.lines().filter_map(|line| line.split('\t').next());
        if !words.any(|word| word == "demo") {
            return Err(format!(
                "{name} completes `steersman dem` with `{completed}`"
            ));
        }
    }
    manual(&share.join("man"))
}

/// Neither of two programs that set pages warns of one, and `man` finds the page of the program.
fn manual(folder: &Path) -> Result<(), String> {
    let pages = folder.join("man1");
    let pages: Result<Vec<PathBuf>, String> = fs::read_dir(&pages)
        .map_err(at(&pages))?
        .map(|page| page.map(|page| page.path()).map_err(at(&pages)))
        .collect();
    let pages = pages?;
    said(
        Command::new("mandoc")
            .args(["-T", "lint", "-W", "warning"])
            .args(&pages),
    )?;
    let mut groff = Command::new("groff");
    groff.args(["-man", "-Tutf8", "-Kutf8", "-ww", "-z"]);
    let out = groff
        .args(&pages)
        .output()
        .map_err(|e| format!("`groff` could not be started: {e}"))?;
    if !out.status.success() || !out.stderr.is_empty() {
        return Err(String::from_utf8_lossy(&out.stderr).into_owned());
    }
    let found = said(
        Command::new("man")
            .args(["--where", "steersman"])
            .env("MANPATH", folder),
    )?;
    if Path::new(&found) == folder.join("man1/steersman.1") {
        Ok(())
    } else {
        Err(format!("`man` finds {found}"))
    }
}

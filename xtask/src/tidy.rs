//! Checks rules of the repository that no compiler checks. A test of this crate runs them.

use crate::named::{Declared, PAGES};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is in the workspace")
        .to_owned()
}

const LINES_MAX: usize = 800;
const BYTES_MAX: u64 = 512 * 1024;

/// Crates that the machine may depend on directly. Each line was a deliberate decision.
const MACHINE_MAY_USE: &[&str] = &[
    "blake3",
    "imbl",
    "jiff",
    "minijinja",
    "postcard",
    "regex",
    "serde",
    "serde_json",
];

/// Words that must not begin a doc comment.
pub(crate) const QUESTIONS: &[&str] = &[
    "What", "Whatever", "Who", "Whoever", "Whom", "Whose", "Where", "Wherever", "When", "Whenever",
    "Why", "How", "Whether",
];

/// Enums of the log. Code that names a variant of one interprets the log.
pub(crate) const LOG: &[&str] = &["Interaction", "LedgerEntry"];

/// Code that the driver of a session must not have.
const IMPURE: &[&str] = &[
    "async fn",
    "tokio::",
    "getrandom",
    "Instant",
    "SystemTime",
    "std::fs",
    "std::env",
    ".clock().now()",
];

/// Crates banned from the whole dependency tree of a crate: crate, banned crates, reason.
const BANNED: &[(&str, &[&str], &str)] = &[
    (
        "steersman-machine",
        &[
            "tokio",
            "getrandom",
            "rand",
            "reqwest",
            "rusqlite",
            "serde-saphyr",
            "annotate-snippets",
        ],
        "the machine has no async, clock, I/O or randomness, and knows no YAML",
    ),
    (
        "steersman-definition",
        &["tokio", "getrandom", "rand", "reqwest", "rusqlite"],
        "a definition is compiled from texts alone",
    ),
    (
        "steersman-lsp",
        &["tokio", "clap", "reqwest", "rusqlite", "steersman-runtime"],
        "the language server is a function of messages: no I/O, no terminal, no engine",
    ),
    (
        "steersman-runtime",
        // the MCP client depends on chrono; code of this workspace must not
        &[
            "reqwest", "rusqlite", "rustls", "hyper", "axum", "clap", "rmcp", "chrono",
        ],
        "the runtime knows traits, no vendor, no SQL, no TLS, one clock library",
    ),
    (
        "steersman-views",
        &["axum", "hyper", "reqwest", "rusqlite", "clap", "anstream"],
        "views are data: no server, no SQL, no terminal",
    ),
    (
        "steersman-adapters",
        &["clap", "axum"],
        "adapters know vendors, not terminals or servers",
    ),
    (
        "steersman",
        &["clap", "axum"],
        "a program that uses the library does not pay for the command line",
    ),
    (
        "steersman-server",
        &["clap", "anstream"],
        "a server knows HTTP, no command line and no terminal",
    ),
    (
        "steersman-client",
        &[
            "axum",
            "clap",
            "steersman-machine",
            "steersman-runtime",
            "steersman",
        ],
        "a client knows HTTP, no engine and no server",
    ),
    (
        "steersman-examples",
        &[
            "clap",
            "rusqlite",
            "reqwest",
            "steersman",
            "steersman-adapters",
        ],
        "a service of an example knows no engine, no vendor and no program",
    ),
    (
        "steersman-cli",
        &[
            "steersman-testkit",
            "openssl",
            "native-tls",
            "aws-lc-sys",
            "sqlx",
            "lazy_static",
        ],
        "one TLS stack, one SQLite, nothing that std has",
    ),
];

/// Crates whose build scripts may call a C compiler: BLAKE3, SQLite, and the cryptography of TLS.
const BUILDS_C: &[&str] = &["blake3", "libmimalloc-sys", "libsqlite3-sys", "ring"];

/// Crates for build scripts that need more than a C compiler.
const BUILD_TOOLS: &[&str] = &["bindgen", "cmake", "cxx-build", "link-cplusplus", "nasm-rs"];

/// Checks all rules; returns the faults, each with its place.
pub(crate) fn check(root: &Path) -> Result<(), Vec<String>> {
    let mut faults = Vec::new();
    let mut declared = Declared::default();
    let avoided = avoided(root);
    for path in tracked(root) {
        let Ok(meta) = fs::metadata(root.join(&path)) else {
            continue;
        };
        if meta.len() > BYTES_MAX && !path.ends_with("Cargo.lock") {
            faults.push(format!(
                "{path}: {} bytes; files stay under {BYTES_MAX}",
                meta.len()
            ));
        }
        let Ok(text) = fs::read_to_string(root.join(&path)) else {
            continue;
        };
        if Path::new(&path).extension().is_some_and(|e| e == "rs") {
            rust_file(&path, &text, &mut faults);
            first_words(&path, &text, &mut faults);
        }
        declared.learn(&path, &text);
        if Path::new(&path).extension().is_some_and(|e| e == "md") {
            links(root, &path, &text, &mut faults);
        }
        avoided_words(&path, &text, &avoided, &mut faults);
    }
    for page in PAGES {
        match fs::read_to_string(root.join(page)) {
            Ok(text) => faults.extend(declared.faults(page, &text)),
            Err(e) => faults.push(format!("{page}: {e}")),
        }
    }
    machine_manifest(root, &mut faults);
    crate::rooms::check(root, &mut faults);
    crate::mutants::check(root, &mut faults);
    trees(root, &mut faults);
    builds(root, &mut faults);
    examples(root, &mut faults);
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

/// Returns the files that git tracks or would track.
pub(crate) fn tracked(root: &Path) -> Vec<String> {
    let out = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .output()
        .expect("git lists the files of a checkout");
    String::from_utf8_lossy(&out.stdout)
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The page with the terms that have one meaning, and with the table of words to avoid.
const GLOSSARY: &str = "docs/concepts/words.md";

/// Returns the words of the glossary's table of words to avoid.
fn avoided(root: &Path) -> BTreeSet<String> {
    let page = fs::read_to_string(root.join(GLOSSARY)).expect("the repository has a glossary");
    let table = page.split("| instead of |").nth(1).unwrap_or_default();
    let rows = table
        .lines()
        .skip(2)
        .filter_map(|row| row.split('|').nth(1));
    rows.flat_map(|cell| cell.split(','))
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

/// Reports words to avoid in the prose of documents and in comments.
fn avoided_words(path: &str, text: &str, avoided: &BTreeSet<String>, faults: &mut Vec<String>) {
    let extension = Path::new(path).extension().and_then(|e| e.to_str());
    let is_page = extension == Some("md") && path != GLOSSARY;
    if !is_page && extension != Some("rs") {
        return;
    }
    let mut is_code = false;
    for (i, line) in text.lines().enumerate() {
        is_code ^= is_page && line.trim_start().starts_with("```");
        if is_code || !is_page && !line.trim_start().starts_with("//") {
            continue;
        }
        // The names of tests and items are one word each.
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        for word in words.map(str::to_lowercase) {
            if avoided.contains(&word) {
                faults.push(format!(
                    "{path}:{}: `{word}` is a word to avoid: {GLOSSARY} says what to write",
                    i + 1
                ));
            }
        }
    }
}

/// Reports doc comments that begin with a question word: they do not say what the item is or does. The help of the program's
/// arguments is exempt, because it may say which question a value answers. It is in types that derive a trait of clap, up to
/// their closing brace.
fn first_words(path: &str, text: &str, faults: &mut Vec<String>) {
    if !path.contains("/src/") {
        return;
    }
    let is_doc = |line: &str| line.starts_with("///") || line.starts_with("//!");
    let clap = ["Args", "Parser", "Subcommand", "ValueEnum"];
    let (mut before, mut is_help) = ("", false);
    for (i, whole) in text.lines().enumerate() {
        let line = whole.trim_start();
        is_help |= line.starts_with("#[derive(") && clap.iter().any(|name| line.contains(name));
        is_help &= whole != "}";
        let first = line
            .get(3..)
            .filter(|_| is_doc(line) && !is_doc(before) && !is_help);
        let first = first.and_then(|rest| rest.split_whitespace().next());
        if let Some(word) = first
            && QUESTIONS.contains(&word.trim_end_matches([',', ':']))
        {
            faults.push(format!(
                "{path}:{}: a doc comment begins with `{word}`: say what the item is or does",
                i + 1
            ));
        }
        before = line;
    }
}

/// Checks the length of a Rust file, and its lines against rules that a search for words can decide.
fn rust_file(path: &str, text: &str, faults: &mut Vec<String>) {
    let lines = text.lines().count();
    // Nobody reads what a program writes from top to bottom.
    let is_generated = path.ends_with("/generated.rs");
    if lines > LINES_MAX && !is_generated {
        faults.push(format!(
            "{path}: {lines} lines; files stay under {LINES_MAX}"
        ));
    }
    let is_this_file = path.ends_with("tidy.rs");
    for (i, line) in text.lines().enumerate() {
        let at = || format!("{path}:{}", i + 1);
        if !is_this_file
            && ["FIXME", "TODO", "XXX:"]
                .iter()
                .any(|word| line.contains(word))
        {
            faults.push(format!(
                "{}: finish it, or write a decision note and name it",
                at()
            ));
        }
        if path.starts_with("crates/steersman-machine/src")
            && (line.contains("async fn") || awaits(line))
        {
            faults.push(format!("{}: the machine has no async", at()));
        }
        if path.starts_with("crates/steersman-runtime/src/driver")
            && (awaits(line) || IMPURE.iter().any(|word| line.contains(word)))
        {
            faults.push(format!(
                "{}: the driver has no async, clock, I/O or randomness: what it may read is in `Captured`",
                at()
            ));
        }
        if line.contains("fn is_") && line.contains("(&mut self") && !line.contains("bool") {
            faults.push(format!(
                "{}: a name that begins with `is_` asks; name what changes by a verb",
                at()
            ));
        }
        if path.starts_with("crates/steersman-cli/src")
            && LOG.iter().any(|name| line.contains(&format!("{name}::")))
        {
            faults.push(format!(
                "{}: the program interprets no log: steersman-views does",
                at()
            ));
        }
        // campaigns wait in real time: real processes die at random moments, and clients are slow
        let campaigns = [
            "tests/it/crash.rs",
            "tests/it/serve_hostile.rs",
            "tests/it/serve_kills.rs",
            "tests/acts/process.rs",
        ];
        if !is_this_file
            && !campaigns.iter().any(|file| path.ends_with(file))
            && path.contains("/tests/")
            && (line.contains("thread::sleep") || line.contains("time::sleep("))
        {
            faults.push(format!(
                "{}: tests do not sleep; use the virtual clock or wait for an event",
                at()
            ));
        }
        if path.starts_with("crates/")
            && (line.contains("unbounded_channel") || line.contains("mpsc::channel()"))
        {
            faults.push(format!("{}: everything has a bound", at()));
        }
    }
}

/// Returns true if a line of code awaits a future; `.awaits_` is an ordinary method.
fn awaits(line: &str) -> bool {
    line.split(".await")
        .skip(1)
        .any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Reports relative links in Markdown whose target does not exist.
fn links(root: &Path, path: &str, text: &str, faults: &mut Vec<String>) {
    let folder = root
        .join(path)
        .parent()
        .expect("a file is in a folder")
        .to_owned();
    for piece in text.split("](").skip(1) {
        let Some((target, _)) = piece.split_once(')') else {
            continue;
        };
        let target = target.split('#').next().unwrap_or_default();
        let outside = target.is_empty()
            || target.contains("://")
            || target.contains(' ')
            || target.starts_with("mailto:");
        if !outside && !folder.join(target).exists() {
            faults.push(format!("{path}: the link to `{target}` leads nowhere"));
        }
    }
}

fn machine_manifest(root: &Path, faults: &mut Vec<String>) {
    let text = fs::read_to_string(root.join("crates/steersman-machine/Cargo.toml"))
        .expect("the machine has a manifest");
    let section = text.split("[dependencies]").nth(1).unwrap_or_default();
    for line in section.lines().take_while(|line| !line.starts_with('[')) {
        let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if !name.is_empty() && !MACHINE_MAY_USE.contains(&name) {
            faults.push(format!("steersman-machine depends on `{name}`: a new arrow of the machine needs a decision note"));
        }
    }
}

/// Reports banned crates in dependency trees.
fn trees(root: &Path, faults: &mut Vec<String>) {
    for (krate, banned, why) in BANNED {
        let tree = crate::cargo()
            .current_dir(root)
            .args([
                "tree",
                "--offline",
                "--quiet",
                "-e",
                "normal",
                "--prefix",
                "none",
                "-p",
                krate,
            ])
            .output()
            .expect("cargo runs where this test was built");
        if !tree.status.success() {
            let said = String::from_utf8_lossy(&tree.stderr);
            faults.push(format!("`cargo tree -p {krate}` failed: {said}"));
        }
        let tree = String::from_utf8_lossy(&tree.stdout);
        let reached = tree.lines().filter_map(|line| line.split(' ').next());
        let reached: BTreeSet<&str> = reached.collect();
        for name in banned.iter().filter(|name| reached.contains(*name)) {
            faults.push(format!("{krate} reaches `{name}`: {why}"));
        }
    }
}

/// Reports dependencies of the program that need C++, cmake or another tool to be built.
fn builds(root: &Path, faults: &mut Vec<String>) {
    let tree = crate::cargo()
        .current_dir(root)
        .args(["tree", "--offline", "--quiet", "-p", "steersman-cli"])
        .args(["-e", "normal,build", "--prefix", "depth"])
        .output()
        .expect("cargo runs where this test was built");
    // Each line is a depth and a name: the crate above one at depth n is the last one before it at depth n - 1.
    let mut above: Vec<String> = Vec::new();
    for line in String::from_utf8_lossy(&tree.stdout).lines() {
        let digits = line.chars().take_while(char::is_ascii_digit).count();
        let depth: usize = line[..digits].parse().unwrap_or(0);
        let name = line[digits..].split(' ').next().unwrap_or_default();
        above.truncate(depth);
        let user = above.last().map_or("", String::as_str);
        if BUILD_TOOLS.contains(&name) {
            faults.push(format!(
                "`{user}` is built with `{name}`: an installation needs only Rust and C"
            ));
        }
        if name == "cc" && !BUILDS_C.contains(&user) {
            faults.push(format!(
                "`{user}` is built with a C or C++ compiler: if it is C, add it to BUILDS_C"
            ));
        }
        above.push(name.to_owned());
    }
    if above.is_empty() {
        faults.push("`cargo tree -p steersman-cli` shows nothing".to_owned());
    }
}

fn examples(root: &Path, faults: &mut Vec<String>) {
    let Ok(folders) = fs::read_dir(root.join("examples")) else {
        return;
    };
    for folder in folders.flatten().map(|f| f.path()).filter(|p| p.is_dir()) {
        for file in ["README.md", "steersman.yaml"] {
            if !folder.join(file).exists() {
                faults.push(format!("{}: an example has a {file}", folder.display()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_is_tidy() {
        if let Err(faults) = super::check(&super::root()) {
            panic!("\n{}", faults.join("\n"));
        }
    }
}

//! Builds the program of the workloads, and installs the peers outside the repository.

use super::matrix::{Kind, Peer, Places, peers_folder};
use super::said;
use crate::tidy::root;
use crate::{built, run, say};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a binary of the workspace. Returns its path.
pub(crate) fn build(package: &str, binary: &str, options: &[&str]) -> Result<PathBuf, String> {
    let mut args = vec!["build", "--package", package];
    args.extend(options);
    built(&args, binary)
}

/// Builds and installs all that these peers need.
pub(crate) fn install(work: &Path, peers: &[&Peer], is_optimised: bool) -> Result<Places, String> {
    let profile: &[&str] = if is_optimised { &["--release"] } else { &[] };
    let places = Places {
        work: work.to_owned(),
        ours: build("steersman-bench", "steersman-bench", profile)?,
    };
    let peers_folder = peers_folder(&root());
    for peer in peers {
        match peer.kind {
            Kind::Ours(_) => {}
            Kind::Rust => rust(&places, &peers_folder)?,
            Kind::Python(name) => python(&places, &peers_folder, name)?,
            Kind::Node(_) => node(&places, &peers_folder)?,
        }
    }
    Ok(places)
}

/// Peers are built optimised even if ours is not: their build takes a minute.
fn rust(places: &Places, peers: &Path) -> Result<(), String> {
    let manifest = peers.join("rust/Cargo.toml");
    let mut cargo = crate::cargo();
    cargo
        .args(["build", "--release", "--locked", "--manifest-path"])
        .arg(manifest);
    run(cargo.env("CARGO_TARGET_DIR", places.rust_target()))
}

fn python(places: &Places, peers: &Path, name: &str) -> Result<(), String> {
    copy(&peers.join("py"), &places.work.join("py"))?;
    let wanted = peers.join(format!("py/requirements/{name}.txt"));
    let folder = places.work.join("venv").join(name);
    if is_installed(&folder, &wanted) {
        return Ok(());
    }
    say(&format!("== installing {name}"));
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut pip = Command::new(places.python(name));
    run(pip
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
        ])
        .arg(&wanted))?;
    installed(&folder, &wanted)
}

fn node(places: &Places, peers: &Path) -> Result<(), String> {
    let folder = places.work.join("node");
    copy(&peers.join("js"), &folder)?;
    let wanted = peers.join("js/package.json");
    if is_installed(&folder, &wanted) {
        return Ok(());
    }
    say("== installing agentkit");
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--prefix",
    ]);
    run(npm.arg(&folder))?;
    installed(&folder, &wanted)
}

/// The list of versions that a folder was installed from is kept in it, so that another list is installed again.
fn is_installed(folder: &Path, wanted: &Path) -> bool {
    let had = fs::read(folder.join("installed.txt"));
    had.is_ok_and(|had| fs::read(wanted).is_ok_and(|wanted| wanted == had))
}

fn installed(folder: &Path, wanted: &Path) -> Result<(), String> {
    let copied = fs::copy(wanted, folder.join("installed.txt"));
    copied
        .map(|_| ())
        .map_err(|e| format!("{}: {e}", folder.display()))
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = || -> std::io::Result<()> {
        fs::create_dir_all(to)?;
        for file in fs::read_dir(from)? {
            let file = file?;
            if file.file_type()?.is_file() {
                fs::copy(file.path(), to.join(file.file_name()))?;
            }
        }
        Ok(())
    };
    copied().map_err(|e| format!("{}: {e}", to.display()))
}

/// The computer and the versions of all that is measured.
pub(crate) fn about(peers: &[&Peer], is_optimised: bool) -> Json {
    let folder = peers_folder(&root());
    let read = |path: &str| fs::read_to_string(folder.join(path)).unwrap_or_default();
    let mut versions = BTreeMap::new();
    let dirty = !said("git", &["status", "--porcelain"]).is_empty();
    let commit = said("git", &["rev-parse", "--short=8", "HEAD"]);
    let changed = if dirty { " with changes" } else { "" };
    versions.insert("steersman".to_owned(), format!("commit {commit}{changed}"));
    versions.insert(
        "rustc".to_owned(),
        said("rustc", &["--version"]).replace("rustc ", ""),
    );
    for peer in peers {
        let (key, value) = match peer.kind {
            Kind::Ours(_) => continue,
            Kind::Rust => ("rust", pinned(&read("rust/Cargo.toml"))),
            Kind::Python(name) => (name, read(&format!("py/requirements/{name}.txt"))),
            Kind::Node(_) => ("node", pinned(&read("js/package.json"))),
        };
        versions.insert(
            key.to_owned(),
            value.trim().replace('\n', ", ").replace("==", " "),
        );
    }
    for (name, program) in [("Python", "python3"), ("Node", "node")] {
        let version = said(program, &["--version"]);
        versions.insert(
            name.to_owned(),
            version.replace("Python ", "").replace('v', ""),
        );
    }
    let of_proc = |file: &str, key: &str| {
        let text = fs::read_to_string(format!("/proc/{file}")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.map_or_else(String::new, |line| {
            line.trim_start_matches(['\t', ' ', ':']).to_owned()
        })
    };
    let memory = of_proc("meminfo", "MemTotal").replace(" kB", "");
    let gib = memory.trim().parse::<f64>().unwrap_or(0.0) / f64::from(1 << 20);
    serde_json::json!({
        "cpu": of_proc("cpuinfo", "model name"), "memory_gib": (gib * 10.0).round() / 10.0,
        "cores": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "system": said("uname", &["-sr"]), "optimised": is_optimised, "versions": versions,
    })
}

/// The pinned versions of a manifest in TOML or JSON, one a line: lines that name a version with digits and points.
fn pinned(manifest: &str) -> String {
    let lines = manifest.lines().filter_map(|line| {
        let (name, rest) = line.split_once(['=', ':'])?;
        let version = rest.split('"').find(|part| {
            let part = part.trim_start_matches(['=', '^']);
            part.contains('.') && part.chars().all(|c| c.is_ascii_digit() || c == '.')
        })?;
        let name = name.trim().trim_matches('"');
        let is_own = ["version", "edition", "steersman-peers"].contains(&name);
        (!is_own).then(|| format!("{name} {}", version.trim_start_matches(['=', '^'])))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::pinned;

    #[test]
    fn versions_are_read_from_manifests() {
        let toml =
            "version = \"0.0.0\"\ngraph-flow = { version = \"=0.8.1\", default-features = false }";
        assert_eq!(pinned(toml), "graph-flow 0.8.1");
        let json = "{\n  \"dependencies\": {\n    \"zod\": \"4.6.7\"\n  }\n}";
        assert_eq!(pinned(json), "zod 4.6.7");
    }
}

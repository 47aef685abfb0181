//! The forms in roots of their own: programs there find nothing but what the form brought.

use super::super::forms::architecture;
use super::super::{Made, Places, VERSION, at, build, copied, emptied, needs, said};
use super::holds;
use crate::tidy::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An answer that a scripted model gives without any tool, since an empty root has no programs.
const SCRIPT: &str = "desk: [ At your service. ]\n";

/// A root, and the path of the program that runs there.
struct Place<'a> {
    root: &'a Path,
    program: &'a str,
}

impl Place<'_> {
    /// Runs the program, which the root has nothing else for, up to the first answer of a scripted model.
    fn answers(&self, made: &Made) -> Result<(), String> {
        // The program of another kind of machine runs through an emulator, which is a static program itself.
        let emulated = made.target != build::this_machine()?;
        if emulated {
            let emulator = needs::emulator(&made.target);
            copied(Path::new(&emulator), &self.root.join("emulator"))?;
        }
        let script = self.root.join("hello.yaml");
        fs::write(&script, SCRIPT).map_err(at(&script))?;
        let run = |words: &[&str]| {
            let mut chroot = Command::new("chroot");
            chroot
                .env_clear()
                .env("PATH", "/usr/bin:/usr/sbin:/bin:/sbin")
                .env("HOME", "/");
            chroot.arg(self.root);
            if emulated {
                chroot.arg("/emulator");
            }
            said(chroot.arg(self.program).args(words))
        };
        let version = run(&["--version"])?;
        if version != format!("steersman {VERSION}") {
            return Err(format!("the program says that it is `{version}`"));
        }
        run(&["new", "desk"])?;
        run(&["check", "desk"])?;
        run(&["test", "desk"])?;
        let answer = run(&[
            "run",
            "desk",
            "--script-all",
            "hello.yaml",
            "--input",
            "Hello",
        ])?;
        if answer.contains("At your service.") {
            Ok(())
        } else {
            Err(format!(
                "the program in {} answers: {answer}",
                self.root.display()
            ))
        }
    }
}

/// Unpacks the archive in an empty root, as somebody without the script does. Returns the prefix there.
pub(super) fn archive(made: &Made, places: &Places) -> Result<PathBuf, String> {
    let root = emptied(places.work.join("unpacked"))?;
    let prefix = emptied(root.join("usr/local"))?;
    said(
        Command::new("tar")
            .args(["--strip-components=1", "-xzf"])
            .arg(&made.archive)
            .arg("-C")
            .arg(&prefix),
    )?;
    Place {
        root: &root,
        program: "/usr/local/bin/steersman",
    }
    .answers(made)?;
    holds(made, "the archive runs in an empty root");
    Ok(prefix)
}

/// Installs the Debian package in a root that has only an empty list of packages, and removes it.
pub(super) fn package(made: &Made, places: &Places) -> Result<(), String> {
    let root = emptied(places.work.join("debian"))?;
    let database = root.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        let folder = database.join(folder);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
    }
    let status = database.join("status");
    fs::write(&status, "").map_err(at(&status))?;
    let dpkg = |words: &[&str]| {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", root.display()))
            .arg("--force-architecture");
        dpkg.args(["--log=/dev/null"]).args(words);
        dpkg
    };
    said(dpkg(&["--install"]).arg(&made.package))?;
    Place {
        root: &root,
        program: "/usr/bin/steersman",
    }
    .answers(made)?;
    said(&mut dpkg(&["--remove", "steersman"]))?;
    let left = said(
        Command::new("find")
            .arg(root.join("var/lib/dpkg/info"))
            .args(["-name", "steersman*"]),
    )?;
    if root.join("usr").exists() || !left.is_empty() {
        return Err(format!(
            "dpkg leaves files in {} when it removes the package",
            root.display()
        ));
    }
    holds(
        made,
        "the package runs in an empty root, and leaves nothing there when it is removed",
    );
    Ok(())
}

/// Installs the package in the system of this machine, with its list of packages and its triggers, uses it, and removes it. A layer
/// over the system takes the changes, so that this machine keeps what it has.
pub(super) fn system(made: &Made, places: &Places) -> Result<(), String> {
    let place = emptied(places.work.join("system"))?;
    said(
        Command::new("unshare")
            .args(["--mount", "sh", "-eu"])
            .arg(root().join("xtask/src/dist/tried/system.sh"))
            .arg(&place)
            .arg(&made.package)
            .arg(VERSION),
    )?;
    holds(
        made,
        "the package runs in the system of this machine, and leaves nothing there when it is removed",
    );
    Ok(())
}

/// Unpacks the image as an engine for containers does, and runs its program.
pub(super) fn image(made: &Made, places: &Places) -> Result<(), String> {
    let layout = emptied(places.work.join("layout"))?;
    said(
        Command::new("tar")
            .arg("-xf")
            .arg(&made.image)
            .arg("-C")
            .arg(&layout),
    )?;
    let read = |path: &Path| -> Result<serde_json::Value, String> {
        let text = fs::read(path).map_err(at(path))?;
        serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))
    };
    let blob = |descriptor: &serde_json::Value| {
        let digest = descriptor["digest"].as_str().unwrap_or_default();
        layout.join("blobs").join(digest.replace(':', "/"))
    };
    let manifest = read(&blob(&read(&layout.join("index.json"))?["manifests"][0]))?;
    let config = read(&blob(&manifest["config"]))?;
    let entry = config["config"]["Entrypoint"][0].as_str();
    if entry != Some("/usr/bin/steersman") || config["architecture"] != architecture(&made.target) {
        return Err(format!("the image is not one of {}: {config}", made.target));
    }
    let root = emptied(places.work.join("container"))?;
    for layer in manifest["layers"].as_array().into_iter().flatten() {
        said(
            Command::new("tar")
                .arg("-xf")
                .arg(blob(layer))
                .arg("-C")
                .arg(&root),
        )?;
    }
    Place {
        root: &root,
        program: "/usr/bin/steersman",
    }
    .answers(made)?;
    holds(made, "the image runs in an empty root");
    Ok(())
}

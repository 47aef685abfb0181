//! The needs of a run beyond the toolchain of the repository. Everything that is missing is told at once, before anything is made.

use super::{Extent, Options, build, machine, said};
use std::path::Path;
use std::process::Command;

/// A file of the system, and the package of Debian that has it.
struct Need {
    file: &'static str,
    package: &'static str,
    /// Only trying needs it.
    tries: bool,
}

/// `.ci/run` installs the same packages.
const NEEDS: [Need; 10] = [
    Need::to_make("/usr/bin/buildah", "buildah"),
    Need::to_make("/usr/bin/readelf", "binutils"),
    Need::to_make("/etc/ssl/certs/ca-certificates.crt", "ca-certificates"),
    Need::to_try("/usr/bin/curl", "curl"),
    Need::to_try("/usr/bin/fish", "fish"),
    Need::to_try("/usr/bin/man", "man-db"),
    Need::to_try("/usr/bin/mandoc", "mandoc"),
    Need::to_try("/usr/bin/wget", "wget"),
    Need::to_try("/usr/bin/zsh", "zsh"),
    Need::to_try(super::tried::BASH_COMPLETION, "bash-completion"),
];

impl Need {
    const fn to_make(file: &'static str, package: &'static str) -> Self {
        Self {
            file,
            package,
            tries: false,
        }
    }

    const fn to_try(file: &'static str, package: &'static str) -> Self {
        Self {
            file,
            package,
            tries: true,
        }
    }
}

/// The emulator of the machine of a target: a static program, so it works in an empty root.
pub(super) fn emulator(target: &str) -> String {
    format!("/usr/bin/qemu-{}-static", machine(target))
}

/// Returns an error that names everything that is missing, with its remedy.
pub(super) fn check(options: &Options) -> Result<(), String> {
    let tries = options.extent != Extent::Make;
    let mut packages: Vec<&str> = NEEDS
        .iter()
        .filter(|need| (tries || !need.tries) && !Path::new(need.file).exists())
        .map(|need| need.package)
        .collect();
    let here = build::this_machine()?;
    let mut others = options.targets.iter().filter(|target| *target != here);
    if tries && others.any(|target| !Path::new(&emulator(target)).exists()) {
        packages.push("qemu-user-static");
    }
    let libraries = build::sysroot()?.join("lib/rustlib");
    let targets = options.targets.iter();
    let targets: Vec<&str> = targets
        .filter(|target| !libraries.join(target).join("lib").exists())
        .map(String::as_str)
        .collect();
    let mut faults = Vec::new();
    if !packages.is_empty() {
        let packages = packages.join(" ");
        faults.push(format!("packages of Debian: `apt-get install {packages}`"));
    }
    if !targets.is_empty() {
        let targets = targets.join(" ");
        faults.push(format!("standard libraries: `rustup target add {targets}`"));
    }
    if tries && said(Command::new("id").arg("-u"))? != "0" {
        faults.push("the rights of root, to run programs in a root of their own (`--make` only makes the files)".into());
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!(
        "`dist` lacks, on this machine:\n  {}",
        faults.join("\n  ")
    ))
}

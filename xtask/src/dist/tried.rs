//! Installs what was made in every way that the documents name, and runs it. A release that nobody installed is none.

mod bill;
mod pages;
mod roots;
mod script;

use super::forms::{SUMS, architecture};
use super::tree::EXPECTED;
use super::{Made, Places, VERSION, build, said};
use crate::say;
use std::process::Command;

pub(super) use pages::BASH_COMPLETION;

/// Tries all files of a release.
pub(super) fn all(made: &[Made], places: &Places) -> Result<(), String> {
    said(
        Command::new("sha256sum")
            .current_dir(&places.out)
            .args(["--quiet", "--check", SUMS]),
    )?;
    let here = build::this_machine()?;
    for one in made {
        complete(one)?;
        bill::is_valid(one)?;
        let prefix = roots::archive(one, places)?;
        pages::load(&prefix, places)?;
        roots::package(one, places)?;
        roots::image(one, places)?;
        // The script installs the archive of the machine that it runs on.
        if one.target == here {
            script::installs(one, places)?;
            script::refuses(one, places)?;
            script::serves_a_user(places)?;
            roots::system(one, places)?;
        }
    }
    Ok(())
}

/// Tells what holds.
fn holds(made: &Made, what: &str) {
    say(&format!("== {}: {what}", made.target));
}

/// The archive and the package have each file that people look for.
fn complete(made: &Made) -> Result<(), String> {
    let archive = said(Command::new("tar").arg("-tzf").arg(&made.archive))?;
    let package = said(
        Command::new("dpkg-deb")
            .arg("--contents")
            .arg(&made.package),
    )?;
    for file in EXPECTED {
        let in_archive = format!("steersman-{VERSION}-{}/{file}", made.target);
        let in_package = format!("./usr/{file}").replace("site-functions", "vendor-completions");
        if !archive.lines().any(|line| line == in_archive) {
            return Err(format!("{} has no {in_archive}", made.archive.display()));
        }
        if !package.lines().any(|line| line.ends_with(&in_package)) {
            return Err(format!("{} has no {in_package}", made.package.display()));
        }
    }
    let field = |name: &str| {
        said(
            Command::new("dpkg-deb")
                .arg("--field")
                .arg(&made.package)
                .arg(name),
        )
    };
    let (version, of) = (field("Version")?, field("Architecture")?);
    if version == VERSION && of == architecture(&made.target) {
        Ok(())
    } else {
        Err(format!(
            "{} says it is {version} for {of}",
            made.package.display()
        ))
    }
}

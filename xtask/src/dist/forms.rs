//! The forms of a release: an archive, a Debian package, an image for containers, and the checksums of all of them.

use super::tree::{DOCUMENTS, plain, write};
use super::{Made, Places, VERSION, at, copied, machine, said};
use crate::tidy::root;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file with the checksums.
pub(super) const SUMS: &str = "SHA256SUMS";

/// The certificates that HTTPS needs, where Debian keeps them.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Makes all forms of an installation.
pub(super) fn made(target: &str, tree: &Path, places: &Places) -> Result<Made, String> {
    let program = tree.join("bin/steersman");
    let linked = said(
        Command::new("readelf")
            .arg("--program-headers")
            .arg(program),
    )?;
    let is_static = !linked.contains("INTERP");
    let date = said(
        Command::new("git")
            .current_dir(root())
            .args(["log", "-1", "--format=%ct"]),
    )?;
    Ok(Made {
        target: target.to_owned(),
        archive: archive(target, tree, &date, places)?,
        package: package(target, tree, is_static, &date, places)?,
        image: image(target, tree, &date, places)?,
        is_static,
    })
}

/// An archive that has one folder. Two runs over the same files make the same bytes.
fn archive(target: &str, tree: &Path, date: &str, places: &Places) -> Result<PathBuf, String> {
    let name = format!("steersman-{VERSION}-{target}");
    let file = places.out.join(format!("{name}.tar.gz"));
    said(
        Command::new("tar")
            .current_dir(&places.work)
            .args(["--create", "--sort=name", "--format=ustar"])
            .args(["--owner=0", "--group=0", "--numeric-owner"])
            .arg(format!("--mtime=@{date}"))
            .arg("--use-compress-program")
            .arg(format!("gzip -{} --no-name", places.level))
            .arg("--file")
            .arg(&file)
            .arg(tree.file_name().unwrap_or_default()),
    )?;
    Ok(file)
}

/// The name that Debian and images have for a machine.
pub(super) fn architecture(target: &str) -> &str {
    match machine(target) {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// A Debian package of the same files, below `/usr`.
fn package(
    target: &str,
    tree: &Path,
    is_static: bool,
    date: &str,
    places: &Places,
) -> Result<PathBuf, String> {
    let architecture = architecture(target);
    let whole = places.work.join(format!("deb-{architecture}"));
    let usr = whole.join("usr");
    copied_tree(tree, &usr)?;
    // Debian's zsh looks here.
    let completions = usr.join("share/zsh/vendor-completions");
    fs::rename(usr.join("share/zsh/site-functions"), &completions).map_err(at(&completions))?;
    let documents = usr.join(DOCUMENTS);
    write(
        &documents.join("copyright"),
        "Steersman may be passed on under the terms of LICENSE-MIT or of LICENSE-APACHE, as you prefer.\n\
         The terms of the packages whose code it contains are in NOTICES.txt and RUST.html.\n",
    )?;
    plain(&whole)?;
    let needs = if is_static {
        ""
    } else {
        "Depends: libc6, libgcc-s1\n"
    };
    let size = said(
        Command::new("du")
            .args(["-sk", "--apparent-size"])
            .arg(&usr),
    )?;
    let size = size.split_whitespace().next().unwrap_or("0");
    fs::create_dir_all(whole.join("DEBIAN")).map_err(at(&whole))?;
    write(
        &whole.join("DEBIAN/control"),
        &format!(
            "Package: steersman\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: The Steersman authors\n\
             Section: utils\nPriority: optional\nInstalled-Size: {size}\n{needs}Recommends: ca-certificates\n\
             Description: runs multi-agent LLM systems as durable state machines\n \
             A definition in YAML declares agents, tools, people and limits. Steersman runs it.\n \
             Every step is one line of a log in SQLite, so a run survives a crash, and an\n \
             action whose outcome is unknown is not repeated.\n"
        ),
    )?;
    let file = places
        .out
        .join(format!("steersman_{VERSION}_{architecture}.deb"));
    said(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zxz", &format!("-z{}", places.level)])
            .arg("--build")
            .arg(&whole)
            .arg(&file)
            .env("SOURCE_DATE_EPOCH", date),
    )?;
    Ok(file)
}

/// An image that has the program, its terms, certificates and a folder for data, and no system. Buildah writes it as an archive
/// in the format of the Open Container Initiative.
fn image(target: &str, tree: &Path, date: &str, places: &Places) -> Result<PathBuf, String> {
    let whole = places.work.join(format!("image-{}", machine(target)));
    copied(
        &tree.join("bin/steersman"),
        &whole.join("usr/bin/steersman"),
    )?;
    copied_tree(&tree.join(DOCUMENTS), &whole.join("usr").join(DOCUMENTS))?;
    copied(
        &Path::new("/").join(CERTIFICATES),
        &whole.join(CERTIFICATES),
    )
    .map_err(|why| {
        format!(
            "{why}: the package `ca-certificates` of the system has the certificates of the image"
        )
    })?;
    for folder in ["data", "tmp"] {
        fs::create_dir_all(whole.join(folder)).map_err(at(&whole))?;
    }
    plain(&whole)?;
    let everybody = fs::Permissions::from_mode(0o1777);
    fs::set_permissions(whole.join("tmp"), everybody).map_err(at(&whole))?;
    let file = places
        .out
        .join(format!("steersman-{VERSION}-{}.oci.tar", machine(target)));
    let store = places.work.join("buildah");
    let buildah = |words: &[&str]| {
        let mut buildah = Command::new("buildah");
        buildah.args(["--storage-driver", "vfs", "--root"]);
        buildah
            .arg(store.join("root"))
            .arg("--runroot")
            .arg(store.join("run"));
        said(buildah.args(words))
            .map_err(|why| format!("{why}\nthe package `buildah` of the system makes images"))
    };
    let container = buildah(&["from", "scratch"])?;
    buildah(&[
        "copy",
        "--quiet",
        &container,
        &whole.display().to_string(),
        "/",
    ])?;
    buildah(&[
        "config",
        "--os",
        "linux",
        "--arch",
        architecture(target),
        "--entrypoint",
        r#"["/usr/bin/steersman"]"#,
        "--workingdir",
        "/data",
        "--env",
        "STEERSMAN_STORE=/data/sessions.db",
        "--volume",
        "/data",
        "--label",
        "org.opencontainers.image.title=steersman",
        "--label",
        &format!("org.opencontainers.image.version={VERSION}"),
        "--label",
        "org.opencontainers.image.licenses=MIT OR Apache-2.0",
        &container,
    ])?;
    let to = format!("oci-archive:{}:steersman:{VERSION}", file.display());
    buildah(&[
        "commit",
        "--quiet",
        "--format",
        "oci",
        "--timestamp",
        date,
        &container,
        &to,
    ])?;
    buildah(&["rm", &container])?;
    Ok(file)
}

fn copied_tree(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }
    said(Command::new("cp").arg("-r").arg(from).arg(to)).map(|_| ())
}

/// Adds what belongs to all targets: the install script, and the checksums.
pub(super) fn finished(places: &Places) -> Result<(), String> {
    copied(
        &root().join("scripts/install.sh"),
        &places.out.join("install.sh"),
    )?;
    let mut names: Vec<String> = fs::read_dir(&places.out)
        .map_err(at(&places.out))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    let sums = said(
        Command::new("sha256sum")
            .current_dir(&places.out)
            .args(&names),
    )?;
    write(&places.out.join(SUMS), &format!("{sums}\n"))
}

//! The forms of a release: an archive, a Debian package, an image for containers, and the checksums of all of them.

use super::tree::{DOCUMENTS, plain, write};
use super::{Made, Places, VERSION, at, copied, date, machine, said};
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
    let date = date()?;
    Ok(Made {
        target: target.to_owned(),
        tree: tree.to_owned(),
        archive: archive(tree, &date, &places.out, places.level)?,
        package: package(target, tree, &date, places)?,
        image: image(target, tree, &date, places)?,
    })
}

/// An archive that has the folder, and its name.
pub(super) fn archive(tree: &Path, date: &str, out: &Path, level: u8) -> Result<PathBuf, String> {
    let name = tree.file_name().unwrap_or_default();
    let file = out.join(format!("{}.tar.gz", name.to_string_lossy()));
    let gzip = format!("gzip -{level} --no-name");
    let mut tar = packs(tree.parent().unwrap_or(tree), &file, date);
    said(tar.args(["--use-compress-program", &gzip]).arg(name))?;
    Ok(file)
}

/// A command that packs names of a folder, which are added to it. It makes the same bytes of the same files.
fn packs(folder: &Path, file: &Path, date: &str) -> Command {
    let mut tar = Command::new("tar");
    tar.current_dir(folder)
        .args(["--create", "--sort=name", "--format=ustar"])
        .args(["--owner=0", "--group=0", "--numeric-owner"])
        .arg(format!("--mtime=@{date}"))
        .arg("--file")
        .arg(file);
    tar
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
fn package(target: &str, tree: &Path, date: &str, places: &Places) -> Result<PathBuf, String> {
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
    // In KiB. The sizes of folders are those of a file system, and not of the package.
    let size = size_of(&usr)?.div_ceil(1024);
    fs::create_dir_all(whole.join("DEBIAN")).map_err(at(&whole))?;
    write(
        &whole.join("DEBIAN/control"),
        &format!(
            "Package: steersman\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: The Steersman authors\n\
             Section: utils\nPriority: optional\nInstalled-Size: {size}\nRecommends: ca-certificates\n\
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

/// An image that has the program, its terms, certificates and a folder for data, and no system. Buildah writes it in the layout of
/// the Open Container Initiative, and the archive has this layout.
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
    )?;
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
    let layout = places.work.join(format!("layout-{}", machine(target)));
    let to = format!("oci:{}:steersman:{VERSION}", layout.display());
    buildah(&[
        "commit",
        "--quiet",
        "--disable-compression=false",
        "--format",
        "oci",
        "--timestamp",
        date,
        &container,
        &to,
    ])?;
    buildah(&["rm", &container])?;
    plain(&layout)?;
    let mut tar = packs(&layout, &file, date);
    said(tar.args(["blobs", "index.json", "oci-layout"]))?;
    Ok(file)
}

/// The bytes of all files below a folder.
fn size_of(folder: &Path) -> Result<u64, String> {
    let mut size = 0;
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        size += if path.is_dir() {
            size_of(&path)?
        } else {
            fs::metadata(&path).map_err(at(&path))?.len()
        };
    }
    Ok(size)
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
    summed(&places.out)
}

/// Writes the checksums of all files of a folder into it.
pub(super) fn summed(folder: &Path) -> Result<(), String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .map_err(at(folder))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    let sums = said(Command::new("sha256sum").current_dir(folder).args(&names))?;
    write(&folder.join(SUMS), &format!("{sums}\n"))
}

//! Reads the files of a definition.

use crate::error::Error;
use std::io::{Error as IoError, ErrorKind};
use std::path::{Path, PathBuf};
use steersman_definition::{self as definition, Files};
use steersman_runtime::{files, unreadable};

/// Name of the main file in a folder.
pub(crate) const MAIN: &str = "steersman.yaml";

/// Reads the files of a definition: the main file, its tests, and the files that these name.
///
/// # Errors
/// [`Error::Read`] if one of them cannot be read. A missing file that another names becomes a diagnostic.
pub(crate) fn definition(path: &Path) -> Result<Files, Error> {
    let main = if path.is_dir() {
        path.join(MAIN)
    } else {
        path.to_owned()
    };
    let folder = main.parent().map(PathBuf::from).unwrap_or_default();
    let mut files = main_file(&main, &folder)?;
    let text = |path: &str| {
        let file = folder.join(path);
        inside(&main, &folder, &file).and_then(|real| plain(&real))
    };
    for test in tests_in(&folder) {
        let text = text(&test).map_err(|e| cannot_read(&folder.join(&test), e))?;
        files.add(test, text);
    }
    definition::gather(&mut files, |path| match text(path) {
        Ok(text) => Ok(Some(text)),
        // The diagnostic points to the place that names the file.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(cannot_read(&folder.join(path), e)),
    })?;
    for documents in definition::documents(&files) {
        if let Some(why) = unreadable(&folder, &documents) {
            files.cannot_read(documents, why);
        }
    }
    Ok(files)
}

/// Reads the main file. A `steersman.yaml` gives the network the name of its folder.
fn main_file(main: &Path, folder: &Path) -> Result<Files, Error> {
    let text = bounded(main).map_err(|e| cannot_read(main, e))?;
    let name = main.file_name().map(|n| n.to_string_lossy().into_owned());
    let files = Files::new(name.unwrap_or_default(), text);
    if !main.ends_with(MAIN) {
        let is_beside_main = folder.join(MAIN).is_file();
        return Ok(if is_beside_main {
            files.beside_main()
        } else {
            files
        });
    }
    let full = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    Ok(match full.file_name() {
        Some(name) => files.named(name.to_string_lossy()),
        None => files,
    })
}

fn cannot_read(path: &Path, source: IoError) -> Error {
    Error::Read {
        path: path.to_owned(),
        source,
    }
}

/// Returns the real path of a file that a definition names. The file must be in the folder of the definition. If the main file is a
/// link, the file may also be in the folder that this link leads to. Any other link out of the folder is refused: through it, the
/// author of the definition could show a model any file of the computer.
fn inside(main: &Path, folder: &Path, file: &Path) -> std::io::Result<PathBuf> {
    let real = file.canonicalize()?;
    let is_inside = |folder: &Path| {
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        folder
            .canonicalize()
            .is_ok_and(|folder| real.starts_with(folder))
    };
    let real_main = main.canonicalize().ok();
    if is_inside(folder)
        || real_main
            .as_deref()
            .and_then(Path::parent)
            .is_some_and(is_inside)
    {
        Ok(real)
    } else {
        Err(IoError::other(
            "it leads out of the folder of the definition",
        ))
    }
}

/// Maximum number of bytes read from one file. Definitions are limited to far less, with a diagnostic.
const FILE_MAX: usize = 64 << 20;

/// Returns the text of a file that a definition names, up to [`FILE_MAX`] bytes. Refuses pipes and devices.
fn plain(path: &Path) -> std::io::Result<String> {
    files::plain(path, FILE_MAX).and_then(files::text)
}

/// Returns the text of a file that a person names, up to [`FILE_MAX`] bytes. It may be a pipe.
pub(crate) fn bounded(path: &Path) -> std::io::Result<String> {
    files::named(path, FILE_MAX).and_then(files::text)
}

/// Returns the paths `tests/*.yaml` of a definition's folder, sorted.
fn tests_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder.join("tests")) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            Path::new(name)
                .extension()
                .is_some_and(|e| e == "yaml" || e == "yml")
        })
        .map(|name| format!("tests/{name}"))
        .collect();
    names.sort_unstable();
    names
}

//! Documents of agents: their files and contents. Changed files are read again when something is searched.

use super::split::{self, Passage};
use crate::files;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Endings of the files that are read in folders.
const ENDINGS: [&str; 4] = ["md", "markdown", "txt", "text"];
/// Maximum number of files of one agent.
const FILES: usize = 5_000;
/// Deepest nesting of folders.
const DEPTH: usize = 16;
/// Maximum number of bytes of a file.
const LARGEST: usize = 8 << 20;

/// Data by which a change of a file is noticed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    changed: Option<SystemTime>,
    len: u64,
}

/// Returns the reason why documents of a definition cannot be read now; `None` if they can. `folder` is that of the definition,
/// `path` is relative to it. Each file is read to its end.
pub fn unreadable(folder: &Path, path: &str) -> Option<String> {
    let mut found = BTreeMap::new();
    if let Err(why) = files_of(folder, path, &mut found) {
        return Some(why);
    }
    if found.is_empty() {
        return Some("there is no text or Markdown in it (.md, .markdown, .txt, .text)".to_owned());
    }
    found.keys().find_map(|file| {
        let why = read(folder, file).err()?;
        let within = file
            .strip_prefix(path)
            .map(|rest| rest.trim_start_matches('/'));
        match within {
            Some(rest) if !rest.is_empty() => Some(format!("{rest}: {why}")),
            _ => Some(why),
        }
    })
}

/// Returns the files of an agent's documents, by their paths in the definition's folder. An error names the document and the
/// remedy.
pub(super) fn list(
    folder: &Path,
    documents: &[Arc<str>],
) -> Result<BTreeMap<String, Mark>, String> {
    let mut found = BTreeMap::new();
    for path in documents {
        files_of(folder, path, &mut found).map_err(|why| unreadable_error(path, &why))?;
    }
    Ok(found)
}

/// Returns the passages of a file.
pub(super) fn passages(folder: &Path, file: &str) -> Result<Vec<Passage>, String> {
    let text = read(folder, file).map_err(|why| unreadable_error(file, &why))?;
    let ending = Path::new(file).extension().and_then(|e| e.to_str());
    let ending = ending.unwrap_or_default().to_ascii_lowercase();
    Ok(split::passages(
        &text,
        matches!(&*ending, "md" | "markdown"),
    ))
}

fn unreadable_error(path: &str, why: &str) -> String {
    format!(
        "documents `{path}` cannot be read: {why}; restore them, or remove them from `knowledge`"
    )
}

fn files_of(folder: &Path, path: &str, found: &mut BTreeMap<String, Mark>) -> Result<(), String> {
    let full = folder.join(path);
    let metadata = metadata_inside(folder, &full)?;
    if metadata.is_file() {
        found.insert(path.to_owned(), mark(&metadata));
        return Ok(());
    }
    walk(folder, &full, path.trim_end_matches('/'), 0, found)
}

fn walk(
    root: &Path,
    folder: &Path,
    path: &str,
    depth: usize,
    found: &mut BTreeMap<String, Mark>,
) -> Result<(), String> {
    if depth > DEPTH {
        return Err(format!("its folders are nested more than {DEPTH} deep"));
    }
    let entries = std::fs::read_dir(folder).map_err(|e| e.to_string())?;
    let mut names: Vec<PathBuf> = Vec::new();
    for entry in entries {
        names.push(entry.map_err(|e| e.to_string())?.path());
    }
    names.sort_unstable();
    for full in names {
        // A name that is not UTF-8 cannot be used in a definition.
        let Some(name) = full.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        if name.starts_with('.') {
            continue;
        }
        let inner = if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}/{name}")
        };
        let is_text = full
            .extension()
            .and_then(|e| e.to_str())
            .is_some_and(|e| ENDINGS.contains(&&*e.to_ascii_lowercase()));
        if full.is_dir() {
            metadata_inside(root, &full).map_err(|why| format!("{name}: {why}"))?;
            walk(root, &full, &inner, depth + 1, found)?;
        } else if is_text {
            let metadata = metadata_inside(root, &full).map_err(|why| format!("{name}: {why}"))?;
            if found.len() >= FILES {
                return Err(format!("there are more than {FILES} files in it"));
            }
            found.insert(inner, mark(&metadata));
        }
    }
    Ok(())
}

fn mark(metadata: &Metadata) -> Mark {
    Mark {
        changed: metadata.modified().ok(),
        len: metadata.len(),
    }
}

/// Returns the metadata of a path that is inside the folder. A link out of the folder is refused: it could show any file to a
/// model.
fn metadata_inside(folder: &Path, full: &Path) -> Result<Metadata, String> {
    let real = full.canonicalize().map_err(|e| e.to_string())?;
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let inside = folder.canonicalize().map_err(|e| e.to_string())?;
    if !real.starts_with(&inside) {
        return Err("it leads out of the definition's folder".to_owned());
    }
    let metadata = real.metadata().map_err(|e| e.to_string())?;
    if metadata.is_file() || metadata.is_dir() {
        Ok(metadata)
    } else {
        Err("it is neither a file nor a folder".to_owned())
    }
}

fn read(folder: &Path, file: &str) -> Result<String, String> {
    let read = files::plain(&folder.join(file), LARGEST).and_then(files::text);
    let text = read.map_err(|e| e.to_string())?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(bare) => bare.to_owned(),
        None => text,
    })
}

//! Finds the store and the file of a definition.

use crate::cli::Global;
use crate::error::CommandError;
use std::path::{Path, PathBuf};

/// Returns the address of the store: the one that was named, otherwise the file in the nearest `.steersman` folder upward,
/// otherwise that in the user's data folder.
pub(crate) fn store(asked: Option<&Path>) -> Result<PathBuf, CommandError> {
    if let Some(address) = asked {
        return Ok(crate::store::site(address)?.address());
    }
    let here = std::env::current_dir()?;
    if let Some(folder) = upward(&here) {
        return Ok(folder.join("sessions.db"));
    }
    data_folder()
        .map(|folder| folder.join("steersman").join("sessions.db"))
        .ok_or_else(|| {
            CommandError::store("there is no home folder to keep sessions in")
                .hint("name a file: --store FILE or STEERSMAN_STORE")
        })
}

/// Returns the address of a store that must exist.
pub(crate) fn existing(global: &Global) -> Result<PathBuf, CommandError> {
    let file = store(global.store.as_deref())?;
    if crate::store::site(&file)?.exists() {
        return Ok(file);
    }
    Err(CommandError::usage(format!(
        "there are no sessions yet: `{}` does not exist",
        shown(&file)
    ))
    .hint("begin one with `steersman run`, or name a store: --store FILE"))
}

fn upward(from: &Path) -> Option<PathBuf> {
    from.ancestors()
        .map(|folder| folder.join(".steersman"))
        .find(|folder| folder.is_dir())
}

fn data_folder() -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    if let Some(folder) = set("XDG_DATA_HOME") {
        return Some(folder);
    }
    let home = set("HOME").or_else(|| set("USERPROFILE"))?;
    Some(if cfg!(target_os = "macos") {
        home.join("Library").join("Application Support")
    } else {
        home.join(".local").join("share")
    })
}

/// Returns the file of a definition: the path itself, or the steersman.yaml of a folder.
pub(crate) fn definition(path: &Path) -> Result<PathBuf, CommandError> {
    let file = if path.is_dir() {
        path.join("steersman.yaml")
    } else {
        path.to_owned()
    };
    if file.is_file() {
        return Ok(file);
    }
    let place = path.display();
    Err(if path.is_dir() {
        CommandError::usage(format!("there is no `steersman.yaml` in `{place}`"))
            .hint("name a definition, or begin with `steersman new NAME`")
    } else {
        CommandError::usage(format!("there is no definition `{place}`")).hint(
            "a definition is a YAML file, or a folder with a `steersman.yaml`; `steersman new NAME` writes one; a message to a \
             session is given with --input",
        )
    })
}

/// Returns the error for a file that cannot be written, with advice.
pub(crate) fn unwritten(path: &Path, error: &std::io::Error) -> CommandError {
    use std::io::ErrorKind;
    let place = path.display();
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    match (error.kind(), folder) {
        (ErrorKind::AlreadyExists, _) => {
            CommandError::usage(format!("there is a file `{place}` already"))
                .hint("nothing is overwritten: name another file, or delete that one first")
        }
        (ErrorKind::NotFound, Some(folder)) => CommandError::usage(format!(
            "`{place}` cannot be written: there is no folder `{}`",
            folder.display()
        ))
        .hint(format!("make it first: mkdir -p {}", folder.display())),
        (ErrorKind::IsADirectory, _) => {
            CommandError::usage(format!("`{place}` is a folder")).hint("name a file in it")
        }
        (ErrorKind::NotADirectory, _) => CommandError::usage(format!(
            "`{place}` cannot be written: a part of its path is a file, not a folder"
        ))
        .hint("name another place"),
        (ErrorKind::PermissionDenied, _) => CommandError::usage(format!(
            "`{place}` cannot be written: you may not write there"
        ))
        .hint("name another place, or ask the owner of the folder"),
        _ => CommandError::usage(format!("`{place}` cannot be written: {error}"))
            .hint("name another place"),
    }
}

/// Renders a path as a person would type it in the current folder.
pub(crate) fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here)
        .ok()
        .filter(|rest| !rest.as_os_str().is_empty())
        .unwrap_or(path)
        .display()
        .to_string()
}

//! Opens the files of a store, each of which has to be a plain file. Anything else in the place of such a file is refused
//! immediately, with advice.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use steersman_runtime::files;

/// Opens a plain file without waiting for other programs, as [`files::open`] does.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> Result<File> {
    files::open(path, options).map_err(|e| advised(path, e))
}

/// Opens a plain file for reading.
pub(crate) fn read(path: &Path) -> Result<File> {
    open(path, OpenOptions::new().read(true))
}

/// Returns an error if a path that SQLite is about to open is not a plain file. A path without a file is fine.
pub(crate) fn look(path: &Path) -> Result<()> {
    files::look(path).map_err(|e| advised(path, e))
}

/// Returns an error if a file that is open already is not a plain file.
pub(crate) fn judge(path: &Path, found: &Metadata) -> Result<()> {
    files::judge(found).map_err(|e| advised(path, e))
}

/// Adds advice to the error for a file that is not plain.
fn advised(path: &Path, e: Error) -> Error {
    if e.kind() != ErrorKind::InvalidInput {
        return e;
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    let what = format!(
        "`{}`: {e}, so it is not opened: another program put it there; move it away, or put the store's own file back",
        name.display()
    );
    Error::new(e.kind(), what)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Each file of a store that is opened by a path is opened in this module. Folders and files that were just made are exempt.
    #[test]
    fn no_file_of_a_store_is_opened_elsewhere() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let modules = std::fs::read_dir(source.join("sqlite")).unwrap();
        let modules = modules.map(|entry| entry.unwrap().path());
        for path in modules.chain([source.join("sqlite.rs"), source.join("secrets.rs")]) {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            // Code for systems other than Unix is exempt: they have no named pipes.
            let parts = code.split("#[cfg(not(unix))]").enumerate();
            let code = parts.map(|(n, part)| match n {
                0 => part,
                _ => part.split_once("\n    }\n").map_or(part, |(_, rest)| rest),
            });
            for line in code.flat_map(str::lines) {
                let opens = [
                    "File::open(",
                    "fs::read(",
                    "fs::read_to_string(",
                    "options.open(",
                ];
                let opens = opens.iter().any(|call| line.contains(call));
                let may = ["folder", "aside"].iter().any(|what| line.contains(what));
                assert!(!opens || may, "{}: {}", path.display(), line.trim());
            }
        }
    }
}

//! Opens the files of a store, each of which is a plain file. Anything else in the place of one is refused immediately, with
//! advice.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use steersman_runtime::files;

/// Opens a file without waiting for anybody.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> Result<File> {
    files::open(path, options).map_err(|e| advised(path, e))
}

/// Opens a file for reading.
pub(crate) fn read(path: &Path) -> Result<File> {
    open(path, OpenOptions::new().read(true))
}

/// Looks at a file that SQLite is about to open. A path without a file is fine.
pub(crate) fn look(path: &Path) -> Result<()> {
    files::look(path).map_err(|e| advised(path, e))
}

/// Judges a file that is open already.
pub(crate) fn judge(path: &Path, found: &Metadata) -> Result<()> {
    files::judge(found).map_err(|e| advised(path, e))
}

fn advised(path: &Path, e: Error) -> Error {
    if e.kind() != ErrorKind::InvalidInput {
        return e;
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    let what = format!(
        "`{}`: {e}, so it is not opened: another program put it there; move it away, or put back what belongs there",
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
            // Elsewhere than on Unix there are no pipes with names.
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

//! Opens the files of a store. Each of them is a regular file: to open a pipe is to wait for a writer, and a device may never
//! end. All are opened here, and anything else is refused at once.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Opens a file without waiting for anybody.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> Result<File> {
    look(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // It may have become something else since. What is a regular file takes no notice of this.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    let file = options.open(path)?;
    judge(path, &file.metadata()?)?;
    Ok(file)
}

/// The same to read it.
pub(crate) fn read(path: &Path) -> Result<File> {
    open(path, OpenOptions::new().read(true))
}

/// Looks at what others are about to open: what is no regular file is refused. Nothing there is well.
pub(crate) fn look(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(found) => judge(path, &found),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

/// Refuses what is no regular file.
pub(crate) fn judge(path: &Path, found: &Metadata) -> Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    let what = format!(
        "`{}` is {} and no regular file, so it is not opened: another program put it there; move it away, or put back what \
         belongs there",
        name.display(),
        kind(found.file_type())
    );
    Err(Error::new(ErrorKind::InvalidInput, what))
}

#[cfg(unix)]
fn kind(found: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if found.is_dir() {
        "a folder"
    } else if found.is_fifo() {
        "a pipe"
    } else if found.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn kind(found: FileType) -> &'static str {
    if found.is_dir() {
        "a folder"
    } else {
        "something else"
    }
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

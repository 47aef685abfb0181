//! The way in which files are read that a person or a definition names: none is read beyond a bound, and what others name is
//! a plain file.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

/// What a person names on the command line: a plain file, or a pipe that the person fills. A device is read as far as its
/// bound, too.
///
/// # Errors
/// Why it cannot be read; [`ErrorKind::FileTooLarge`] if there is more in it than `most` bytes.
pub fn named(path: &Path, most: usize) -> Result<Vec<u8>> {
    read(File::open(path)?, most)
}

/// What a definition names, or what is read again and again: a plain file. Anything else could keep its reader waiting, and
/// gives what it has only once.
///
/// # Errors
/// Why it cannot be read; [`ErrorKind::FileTooLarge`] if there is more in it than `most` bytes.
pub fn plain(path: &Path, most: usize) -> Result<Vec<u8>> {
    read(open_plain(path)?, most)
}

/// The first `most` bytes of a plain file, to see what it is; none of what is no plain file.
///
/// # Errors
/// Why it cannot be read.
pub fn begin(path: &Path, most: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_plain(path)?
        .take(most as u64)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What was read as a text.
///
/// # Errors
/// It is none.
pub fn text(bytes: Vec<u8>) -> Result<String> {
    let no_text = |_| Error::new(ErrorKind::InvalidData, "it is no text in UTF-8");
    String::from_utf8(bytes).map_err(no_text)
}

fn open_plain(path: &Path) -> Result<File> {
    // Looked at first: to open a pipe is to wait for somebody at its other end.
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::other("it is no plain file"));
    }
    File::open(path)
}

fn read(file: File, most: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        let most = match most {
            0..0x400 => format!("{most} bytes"),
            0x400..0x10_0000 => format!("{} KiB", most >> 10),
            _ => format!("{} MiB", most >> 20),
        };
        let why = format!("it is larger than {most}");
        return Err(Error::new(ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

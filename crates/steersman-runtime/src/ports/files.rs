//! Opens and reads files of this computer. Each read has a bound. A file that a definition or a program names has to be a plain
//! file: opening a pipe waits for a writer, and a device may never end.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

/// Opens a plain file without waiting for other programs, except for one that holds a lease on the file.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if the path is not a plain file; otherwise the error of opening it.
pub fn open(path: &Path, options: &mut OpenOptions) -> Result<File> {
    look(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe may have taken the place of the file since.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    let opened = match options.open(path) {
        // A program (such as Samba, for another computer) holds a lease on the plain file. The system revokes the lease, and the
        // second try waits for that.
        Err(e) if e.kind() == ErrorKind::WouldBlock => {
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::custom_flags(options, 0);
            options.open(path)
        }
        opened => opened,
    };
    let file = opened?;
    judge(&file.metadata()?)?;
    Ok(file)
}

/// Returns an error if the path is not a plain file. A path without a file is fine.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if something else is at the path; otherwise the error of looking it up.
pub fn look(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(found) => judge(&found),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

/// Returns an error for anything but a plain file.
///
/// # Errors
/// [`ErrorKind::InvalidInput`]; its text names the kind of file.
pub fn judge(found: &Metadata) -> Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let what = format!("it is {} and no plain file", kind(found.file_type()));
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

/// Reads a file that a person names on the command line: a plain file, or a pipe that the person fills. A device is not refused
/// either, and is read no further than the bound.
///
/// # Errors
/// [`ErrorKind::FileTooLarge`] if the file holds more than `most` bytes; otherwise the error of opening or reading it.
pub fn named(path: &Path, most: usize) -> Result<Vec<u8>> {
    read(File::open(path)?, most)
}

/// Reads a plain file that a definition names, or that is read repeatedly. Other kinds of file are refused: they could make the
/// reader wait, and may give their content only once.
///
/// # Errors
/// [`ErrorKind::FileTooLarge`] if the file holds more than `most` bytes; otherwise the error of [`open`] or of reading.
pub fn plain(path: &Path, most: usize) -> Result<Vec<u8>> {
    read(open_plain(path)?, most)
}

/// Returns the first `most` bytes of a plain file, or all if it has fewer, for a caller that detects its format.
///
/// # Errors
/// The error of [`open`] or of reading.
pub fn begin(path: &Path, most: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_plain(path)?
        .take(most as u64)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Converts UTF-8 bytes to a text.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if the bytes are not UTF-8. The message says at which line the first wrong one is.
pub fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..at]);
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        let wrong = error.as_bytes().get(at).copied().unwrap_or_default();
        let what = format!(
            "it is no text in UTF-8: line {line} has the byte {wrong:#04x} at column {column}"
        );
        Error::new(ErrorKind::InvalidData, what)
    })
}

fn open_plain(path: &Path) -> Result<File> {
    open(path, OpenOptions::new().read(true))
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

//! Services that the examples call. They are small processes of their own: some listen on loopback, some use standard input
//! and output.

pub(crate) mod bank;
pub(crate) mod invoice;
pub(crate) mod mcp;
pub(crate) mod pdf;
pub(crate) mod research;
pub(crate) mod support;

use serde_json::Value as Json;
use std::io::Write as _;
use std::path::Path;
use steersman_runtime::files;

/// Maximum size in bytes of a file that a service reads.
const LARGEST: usize = 64 << 20;

/// Returns the entries of a book; none if the file does not exist.
fn read_book(file: &Path) -> std::io::Result<Vec<Json>> {
    match files::plain(file, LARGEST).and_then(files::text) {
        Ok(text) => Ok(text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(e),
    }
}

fn append(file: &Path, booked: &Json) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)?;
    // one write per line, so that concurrent readers see whole lines
    file.write_all(format!("{booked}\n").as_bytes())
}

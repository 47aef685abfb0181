//! Services that examples call: small, on loopback, a process of their own; and one that is spoken to over its standard
//! input and output.

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

/// Bytes of a file that a service reads.
const LARGEST: usize = 64 << 20;

/// What a book holds; one that is not there holds nothing.
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
    // whole lines, for whoever reads meanwhile
    file.write_all(format!("{booked}\n").as_bytes())
}

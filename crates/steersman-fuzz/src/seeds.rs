//! Reads seeds from files of this repository.

use std::path::{Path, PathBuf};

/// Returns the contents of all files of this extension below a folder of the repository, in the order of their names.
pub(crate) fn files(folder: &str, extension: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    walk(&root.join(folder), extension, &mut found);
    assert!(!found.is_empty(), "`{folder}` has files of `{extension}`");
    found.sort();
    let read = |path: &PathBuf| std::fs::read(path).expect("a file of the repository can be read");
    found.iter().map(read).collect()
}

fn walk(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the folder is in the repository");
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            walk(&path, extension, found);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
}

/// Returns the bytes of hexadecimal digits; white space is ignored.
pub(crate) fn unhex(digits: &[u8]) -> Vec<u8> {
    let digits = digits.iter().filter(|digit| !digit.is_ascii_whitespace());
    let values: Vec<u8> = digits
        .map(|digit| char::from(*digit).to_digit(16).expect("a digit") as u8)
        .collect();
    values
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

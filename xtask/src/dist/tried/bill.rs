//! The bill of materials, and the notices, as somebody finds them who unpacked the archive.

use super::super::tree::DOCUMENTS;
use super::super::{Made, at, said};
use super::holds;
use crate::tidy::root;
use serde_json::Value as Json;
use std::fs;
use std::process::Command;

/// The bill is valid by the schema of its format, and the notices name each of its parts and have terms for it.
pub(super) fn is_valid(made: &Made) -> Result<(), String> {
    let documents = made.tree.join(DOCUMENTS);
    let bill = documents.join("sbom.cdx.json");
    let python = said(Command::new("bash").arg(root().join("scripts/sbom.sh")))?;
    let valid = said(
        Command::new(python)
            .arg(root().join("scripts/sbom.py"))
            .arg(&bill),
    )?;
    let notices = documents.join("NOTICES.txt");
    let notices = fs::read_to_string(&notices).map_err(at(&notices))?;
    let bill = fs::read_to_string(&bill).map_err(at(&bill))?;
    let bill: Json = serde_json::from_str(&bill).map_err(|e| e.to_string())?;
    let parts = bill["components"].as_array().into_iter().flatten();
    let absent: Vec<String> = parts.filter_map(|part| unnamed(part, &notices)).collect();
    if !absent.is_empty() {
        return Err(format!("NOTICES.txt has no terms of {absent:?}"));
    }
    holds(
        made,
        &format!("the bill of materials is {valid}; the notices have terms for each of them"),
    );
    Ok(())
}

/// The name of a part that is not in the list of the notices or not above a text.
fn unnamed(part: &Json, notices: &str) -> Option<String> {
    let of = |key: &str| part[key].as_str().unwrap_or_default();
    let name = format!("{} {}", of("name"), of("version"));
    // Those that are made here have the terms of the program.
    if of("name").starts_with("steersman") {
        return None;
    }
    let lists = notices
        .lines()
        .any(|line| line.starts_with(&format!("{name}: ")));
    let rule = "-".repeat(80);
    let mut heads = notices
        .lines()
        .zip(notices.lines().skip(1))
        .filter(|(above, _)| *above == rule)
        .flat_map(|(_, head)| head.split(", "));
    (!lists || !heads.any(|head| head == name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::unnamed;
    use serde_json::json;

    #[test]
    fn a_part_needs_a_row_and_a_text() {
        let rule = "-".repeat(80);
        let notices = format!("a 1: MIT\nb 2: MIT\n\n{rule}\na 1, c 3\n{rule}\n\nYou may.\n");
        let part = |name: &str, version: &str| json!({ "name": name, "version": version });
        assert_eq!(unnamed(&part("a", "1"), &notices), None);
        assert_eq!(unnamed(&part("b", "2"), &notices).as_deref(), Some("b 2"));
        assert_eq!(unnamed(&part("c", "3"), &notices).as_deref(), Some("c 3"));
    }
}

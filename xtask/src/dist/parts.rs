//! The crates whose code is in the program: their licences as a text for people, and all of them as a bill of materials (SBOM) in
//! CycloneDX.

use super::{VERSION, at, build, said};
use crate::tidy::root;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Beginnings of the names of files with the terms of a crate.
const TERMS: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];

/// The terms of crates whose packages have no file with them, by the address of the repository that has the file.
const TERMS_ELSEWHERE: [(&str, &str); 2] = [
    (
        "https://github.com/Nugine/simd",
        include_str!("terms/simd.txt"),
    ),
    (
        "https://github.com/open-telemetry/opentelemetry-rust",
        include_str!("terms/apache-2.0.txt"),
    ),
];

/// The libraries of the console, which no crate has, and their terms by package.
const VENDORED: &str = include_str!("../../../crates/steersman-server/console/vendor/VENDOR.md");
const VENDORED_TERMS: [(&str, &str); 2] = [
    (
        "preact",
        include_str!("../../../crates/steersman-server/console/vendor/preact.LICENSE"),
    ),
    (
        "htm",
        include_str!("../../../crates/steersman-server/console/vendor/htm.LICENSE"),
    ),
];

/// A crate whose code is in the program.
pub(super) struct Part {
    id: String,
    pub(super) name: String,
    pub(super) version: String,
    /// An SPDX expression.
    licence: String,
    /// The texts of the files with its terms.
    terms: Vec<String>,
    /// The address of its repository.
    repository: String,
    is_ours: bool,
    /// The SHA-256 of its package, as `Cargo.lock` has it.
    checksum: Option<String>,
    /// The ids of the crates that it uses.
    uses: Vec<String>,
}

impl Part {
    /// Returns the address of the repository, without a folder in it.
    fn home(&self) -> &str {
        let home = self.repository.split("/tree/").next();
        home.unwrap_or(&self.repository)
    }
}

/// Code in the program that no crate of the list has.
struct Other {
    name: &'static str,
    version: String,
    licence: &'static str,
    about: String,
}

/// Everything in the program of one target.
pub(super) struct Parts {
    pub(super) crates: Vec<Part>,
    others: Vec<Other>,
}

/// Asks cargo for the crates in the program of a target.
pub(super) fn of(target: &str) -> Result<Parts, String> {
    let tree = said(
        crate::cargo()
            .current_dir(root())
            .args(["tree", "--locked", "--package", "steersman-cli"])
            // The code of procedural macros and of build scripts runs in the compiler.
            .args(["--edges", "normal,no-proc-macro", "--target", target])
            .args(["--prefix", "none", "--format", "{p}"]),
    )?;
    let inside: BTreeSet<(&str, &str)> = tree.lines().filter_map(name_and_version).collect();
    let metadata = said(crate::cargo().current_dir(root()).args([
        "metadata",
        "--locked",
        "--format-version",
        "1",
    ]))?;
    let metadata: Json = serde_json::from_str(&metadata).map_err(|e| e.to_string())?;
    let lock = fs::read_to_string(root().join("Cargo.lock")).map_err(|e| e.to_string())?;
    let checksums = checksums(&lock);
    let of = |value: &Json, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let packages = packages.filter(|package| {
        let (name, version) = (of(package, "name"), of(package, "version"));
        inside.contains(&(&*name, &*version))
    });
    let crates = packages.map(|package| {
        let (name, version) = (of(package, "name"), of(package, "version"));
        let manifest = PathBuf::from(of(package, "manifest_path"));
        Ok(Part {
            id: of(package, "id"),
            checksum: checksums.get(&(name.as_str(), version.as_str())).cloned(),
            name,
            version,
            licence: expression(&of(package, "license")),
            terms: terms_in(manifest.parent().unwrap_or(Path::new("")))?,
            repository: of(package, "repository"),
            is_ours: package["source"].is_null(),
            uses: Vec::new(),
        })
    });
    let mut crates = crates.collect::<Result<Vec<Part>, String>>()?;
    crates.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    if crates.len() != inside.len() {
        return Err(format!(
            "cargo knows {} crates of the program, and its tree has {}",
            crates.len(),
            inside.len()
        ));
    }
    learn_uses(&mut crates, &metadata["resolve"]);
    learn_terms(&mut crates)?;
    Ok(Parts {
        crates,
        others: others()?,
    })
}

/// The licence of a manifest as an expression that the list of SPDX knows.
fn expression(licence: &str) -> String {
    licence
        // A form that older manifests have.
        .replace('/', " OR ")
        // Of the versions that may be chosen, this is the one whose terms are passed on.
        .replace("MPL-2.0+", "MPL-2.0")
}

/// Reads `name v1.2.3 (..)`, a row of `cargo tree`.
fn name_and_version(row: &str) -> Option<(&str, &str)> {
    let mut words = row.split(' ');
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

/// The checksums in `Cargo.lock`, by name and version.
fn checksums(lock: &str) -> BTreeMap<(&str, &str), String> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let of = |key: &str| {
            let row = package
                .lines()
                .find_map(|row| row.strip_prefix(key)?.strip_prefix(" = "));
            row.map(|value| value.trim_matches('"'))
        };
        if let (Some(name), Some(version), Some(sum)) = (of("name"), of("version"), of("checksum"))
        {
            found.insert((name, version), sum.to_owned());
        }
    }
    found
}

/// Adds which crates use which, without those that only tests and build scripts use.
fn learn_uses(crates: &mut [Part], resolve: &Json) {
    let ids: BTreeSet<String> = crates.iter().map(|part| part.id.clone()).collect();
    let nodes = resolve["nodes"].as_array().into_iter().flatten();
    let mut uses: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for node in nodes {
        let used = node["deps"].as_array().into_iter().flatten();
        let used = used.filter(|used| {
            let mut kinds = used["dep_kinds"].as_array().into_iter().flatten();
            kinds.any(|kind| kind["kind"].is_null())
        });
        let used = used.filter_map(|used| used["pkg"].as_str());
        let mut used: Vec<String> = used
            .filter(|id| ids.contains(*id))
            .map(str::to_owned)
            .collect();
        used.sort();
        uses.insert(node["id"].as_str().unwrap_or_default(), used);
    }
    for part in crates {
        part.uses = uses.remove(part.id.as_str()).unwrap_or_default();
    }
}

/// Gives a crate without terms of its own those of its repository: another crate may have them, or this repository does.
fn learn_terms(crates: &mut [Part]) -> Result<(), String> {
    let mut known: BTreeMap<String, Vec<String>> = TERMS_ELSEWHERE
        .iter()
        .map(|(repository, text)| ((*repository).to_owned(), vec![(*text).to_owned()]))
        .collect();
    for part in crates.iter().filter(|part| !part.terms.is_empty()) {
        known.insert(part.home().to_owned(), part.terms.clone());
    }
    let mut faults = Vec::new();
    for part in crates.iter_mut() {
        if part.terms.is_empty() {
            part.terms = known.get(part.home()).cloned().unwrap_or_default();
        }
        if part.terms.is_empty() || part.licence.is_empty() {
            faults.push(format!(
                "{} {} ({}) has no file with its terms: add those of {} to `TERMS_ELSEWHERE`",
                part.name, part.version, part.licence, part.repository
            ));
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults.join("\n"))
    }
}

/// The libraries of the console that the list of the folder names.
fn vendored() -> Result<Vec<Other>, String> {
    let mut found: Vec<Other> = Vec::new();
    for row in VENDORED.lines().filter(|row| row.contains(".mjs |")) {
        let cells: Vec<&'static str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [_, name, version, licence, ..] = cells[..] else {
            return Err(format!("VENDOR.md: this is no row of a library: {row}"));
        };
        if found.iter().any(|other| other.name == name) {
            continue;
        }
        let terms = VENDORED_TERMS.iter().find(|(of, _)| *of == name);
        let (_, terms) = terms.ok_or_else(|| format!("{name} has no terms in `VENDORED_TERMS`"))?;
        found.push(Other {
            name,
            version: version.to_owned(),
            licence,
            about: (*terms).to_owned(),
        });
    }
    Ok(found)
}

/// The code in the program that comes with the tools of its build.
fn others() -> Result<Vec<Other>, String> {
    let rustc = said(Command::new("rustc").arg("--version"))?;
    let mut others = vec![Other {
        name: "rust-std",
        version: rustc.replace("rustc ", ""),
        licence: "MIT OR Apache-2.0",
        about: "The terms of the standard library and of what is in it are in RUST.html.\n".into(),
    }];
    others.extend(vendored()?);
    let zig = build::zig_in_the_program()?;
    others.extend(zig.parts.into_iter().map(|(name, licence, about)| Other {
        name,
        version: format!("of zig {}", zig.version),
        licence,
        about,
    }));
    Ok(others)
}

impl Parts {
    /// The terms of all parts, each text once, with the parts that it belongs to.
    pub(super) fn notices(&self) -> String {
        let mut list = String::new();
        let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for part in self.crates.iter().filter(|part| !part.is_ours) {
            let named = format!("{} {}", part.name, part.version);
            let _ = writeln!(list, "{named}: {}", part.licence);
            for text in &part.terms {
                texts.entry(text.clone()).or_default().push(named.clone());
            }
        }
        for other in &self.others {
            let named = format!("{} {}", other.name, other.version);
            let _ = writeln!(list, "{named}: {}", other.licence);
            texts.entry(other.about.clone()).or_default().push(named);
        }
        let mut page = format!(
            "The program steersman {VERSION} contains code of the following packages. Behind the list come the terms under which they are \
             passed on.\nNone of them is changed, but that one module of preact names the other by its file. Their source code is in the registry of Rust's packages, \
             that of preact and htm in the registry of npm, under these names and versions.\nSQLite, which is in libsqlite3-sys, is in the public domain.\n\n{list}"
        );
        let mut texts: Vec<(String, Vec<String>)> = texts.into_iter().collect();
        texts.sort_by(|a, b| a.1.cmp(&b.1));
        for (text, names) in texts {
            let line = "-".repeat(80);
            let (names, text) = (names.join(", "), text.trim());
            let _ = write!(page, "\n{line}\n{names}\n{line}\n\n{text}\n");
        }
        page
    }

    /// Compares the crates with those that the compiler made for the program, by cargo's ids.
    pub(super) fn are(&self, compiled: &BTreeSet<String>) -> Result<(), String> {
        let listed: BTreeSet<String> = self.crates.iter().map(|part| part.id.clone()).collect();
        if listed == *compiled {
            return Ok(());
        }
        let more: Vec<&str> = compiled.difference(&listed).map(String::as_str).collect();
        let less: Vec<&str> = listed.difference(compiled).map(String::as_str).collect();
        Err(format!(
            "the lists of crates are wrong: compiled, but not listed: {more:?}; listed, but not compiled: {less:?}"
        ))
    }

    /// The bill of materials: CycloneDX 1.5 as JSON.
    pub(super) fn sbom(&self) -> Json {
        let whole = self.crates.iter().find(|part| part.name == "steersman-cli");
        let mut components: Vec<Json> = self
            .crates
            .iter()
            .filter(|part| part.name != "steersman-cli")
            .map(Part::component)
            .collect();
        components.extend(self.others.iter().map(|other| {
            json!({
                "type": "library",
                "bom-ref": other.name,
                "name": other.name,
                "version": other.version,
                "licenses": [{ "expression": other.licence }],
            })
        }));
        let names: BTreeMap<&str, String> = self
            .crates
            .iter()
            .map(|part| (part.id.as_str(), part.address()))
            .collect();
        let uses: Vec<Json> = self
            .crates
            .iter()
            .map(|part| {
                let uses: Vec<&String> = part.uses.iter().map(|id| &names[id.as_str()]).collect();
                json!({ "ref": part.address(), "dependsOn": uses })
            })
            .collect();
        json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": { "component": {
                "type": "application",
                "bom-ref": whole.map(Part::address),
                "name": "steersman",
                "version": VERSION,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            } },
            "components": components,
            "dependencies": uses,
        })
    }
}

impl Part {
    /// Its package URL, which is also its name within the bill.
    fn address(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }

    fn component(&self) -> Json {
        let mut component = json!({
            "type": "library",
            "bom-ref": self.address(),
            "name": self.name,
            "version": self.version,
            "purl": self.address(),
            "licenses": [{ "expression": self.licence }],
        });
        if let Some(sum) = &self.checksum {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        component
    }
}

/// The texts of the files with terms in a folder and below: a crate may have the code of others in folders with terms of their own.
fn terms_in(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    paths.sort();
    let mut texts = Vec::new();
    for path in paths {
        if path.is_dir() {
            texts.extend(terms_in(&path)?);
        } else if path
            .file_name()
            .is_some_and(|name| has_terms(&name.to_string_lossy()))
        {
            let bytes = fs::read(&path).map_err(at(&path))?;
            texts.push(String::from_utf8_lossy(&bytes).replace("\r\n", "\n"));
        }
    }
    Ok(texts)
}

/// Returns true if a file has terms, by its name.
fn has_terms(name: &str) -> bool {
    let name = name.to_uppercase();
    let mut rests = TERMS.iter().filter_map(|begin| name.strip_prefix(begin));
    rests.any(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_gives_the_checksum_of_a_version() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"r\"\nchecksum = \"x\"\n\n[[package]]\nname = \"a\"\nversion = \"2.0.0\"\n";
        let found = checksums(lock);
        assert_eq!(found.get(&("a", "1.0.0")).map(String::as_str), Some("x"));
        assert_eq!(found.get(&("a", "2.0.0")), None);
    }

    #[test]
    fn files_with_terms_are_known_by_their_names() {
        for name in ["LICENSE", "license-mit", "COPYING.txt", "NOTICE"] {
            assert!(has_terms(name), "{name}");
        }
        for name in ["copyrights.yml", "copy.rs", "README.md", "licensed.rs"] {
            assert!(!has_terms(name), "{name}");
        }
    }

    fn part(name: &str, repository: &str, terms: &[&str]) -> Part {
        Part {
            id: name.into(),
            name: name.into(),
            version: "1.0.0".into(),
            licence: "MIT".into(),
            terms: terms.iter().map(|text| (*text).to_owned()).collect(),
            repository: repository.into(),
            is_ours: false,
            checksum: None,
            uses: Vec::new(),
        }
    }

    #[test]
    fn a_crate_without_terms_has_those_of_its_repository() {
        let mut crates = [part("a", "r", &["Do."]), part("b", "r", &[])];
        learn_terms(&mut crates).unwrap();
        assert_eq!(crates[1].terms, ["Do."]);
        let fault = learn_terms(&mut [part("c", "s", &[])]).unwrap_err();
        assert!(fault.contains("c 1.0.0 (MIT) has no file"), "{fault}");
    }

    #[test]
    fn the_list_has_the_crates_that_were_compiled() {
        let parts = Parts {
            crates: vec![part("a", "r", &["Do."]), part("b", "r", &["Do."])],
            others: Vec::new(),
        };
        let compiled = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        parts.are(&compiled(&["a", "b"])).unwrap();
        assert!(parts.are(&compiled(&["a"])).is_err());
        assert!(parts.are(&compiled(&["a", "b", "c"])).is_err());
    }

    /// Each crate is named with its terms, and the bill names its users.
    #[test]
    fn the_program_has_notices_and_a_bill_of_materials() {
        let parts = of(build::this_machine().unwrap()).unwrap();
        let (notices, bill) = (parts.notices(), parts.sbom());
        for name in ["serde", "ring", "libsqlite3-sys", "imbl"] {
            let part = parts.crates.iter().find(|part| part.name == name).unwrap();
            assert!(
                notices.contains(&format!("\n{name} {}: ", part.version)),
                "{name}"
            );
            assert!(
                !part.licence.is_empty() && part.checksum.is_some(),
                "{name}"
            );
        }
        for library in vendored().unwrap() {
            let row = format!(
                "\n{} {}: {}\n",
                library.name, library.version, library.licence
            );
            assert!(notices.contains(&row), "{row}");
            assert!(notices.contains(library.about.trim()), "{row}");
        }
        // C code and the code of others in the folders of crates has terms of its own.
        for owner in ["Daan Leijen", "the fiat-crypto authors"] {
            assert!(notices.contains(owner), "{owner}");
        }
        assert!(
            !notices.contains("serde_derive"),
            "its code runs in the compiler"
        );
        let components = bill["components"].as_array().unwrap();
        assert_eq!(
            components.len(),
            parts.crates.len() - 1 + parts.others.len()
        );
        let uses = bill["dependencies"].as_array().unwrap();
        let machine = format!("pkg:cargo/steersman-machine@{VERSION}");
        let users = uses.iter().filter(|row| {
            let used = row["dependsOn"].as_array().unwrap();
            used.iter().any(|used| used == &*machine)
        });
        assert!(users.count() > 3, "{machine} is used");
    }
}

//! Checks that each test named in a page that promises something exists in the crate and the file that its name says.

use std::collections::{BTreeMap, BTreeSet};

/// The pages whose promises name their tests.
pub(crate) const PAGES: [&str; 2] = ["docs/reference/guarantees.md", "docs/concepts/security.md"];
/// The folder of the case files. Each case is a key of its file, and a test.
const CASES: &str = "crates/steersman-machine/tests/cases/";

/// The functions and modules that files of Rust declare, and the cases.
#[derive(Default)]
pub(crate) struct Declared {
    by_crate: BTreeMap<String, Vec<File>>,
    all: BTreeSet<String>,
    cases: BTreeSet<String>,
}

struct File {
    /// The path below the folder of the crate, without `.rs`.
    path: Vec<String>,
    names: BTreeSet<String>,
}

impl Declared {
    /// Adds what a file declares.
    pub(crate) fn learn(&mut self, path: &str, text: &str) {
        if path.starts_with(CASES) {
            let keys = text.lines().filter_map(|line| line.split_once(':'));
            self.cases
                .extend(keys.map(|(key, _)| key.trim().to_owned()));
        }
        let Some(path) = path.strip_suffix(".rs") else {
            return;
        };
        let names: BTreeSet<String> = names(text).into_iter().map(str::to_owned).collect();
        self.all.extend(names.iter().cloned());
        let mut path = path.split('/').map(str::to_owned);
        if path.next().as_deref() == Some("crates")
            && let Some(name) = path.next()
        {
            let path = path.collect();
            let files = self.by_crate.entry(name).or_default();
            files.push(File { path, names });
        }
    }

    /// Returns a fault for each name in the tables of a page that no test has. A name is `crate::file::test`. After such a name
    /// in the same row, `::test` is a test of the same file, `::file::test` one of the same crate, and a name alone is a test of
    /// the same crate or a case.
    pub(crate) fn faults(&self, page: &str, text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        let rows = text.lines().enumerate();
        for (number, row) in rows.filter(|(_, line)| line.starts_with('|')) {
            let mut before: Vec<&str> = Vec::new();
            let spans = row.split('`').skip(1).step_by(2);
            for span in spans.filter(|span| !span.contains(' ')) {
                let mut place: Vec<&str> = span.split("::").collect();
                if place.len() == 1 {
                    if is_test(span) && !self.has_alone(before.first(), span) {
                        faults.push(fault(page, number, span, before.first()));
                    }
                    continue;
                }
                if place[0].is_empty() {
                    let kept = if place.len() == 2 { before.len() } else { 1 };
                    let kept = before.iter().take(kept).copied();
                    place = kept.chain(place.into_iter().skip(1)).collect();
                }
                let name = place.pop().expect("a text has a last part");
                if !self.has(&place, name) {
                    faults.push(fault(page, number, span, place.first()));
                }
                before = place;
            }
        }
        faults
    }

    /// Returns true if a file in this place declares the name, or is a file of that name.
    fn has(&self, place: &[&str], name: &str) -> bool {
        let Some((of, within)) = place.split_first() else {
            return false;
        };
        let mut files = self.by_crate.get(*of).into_iter().flatten();
        files.any(|file| {
            let knows = |part: &&str| file.path.iter().any(|p| p == part) || file.names(part);
            let is_file = file.path.last().is_some_and(|last| last == name);
            within.iter().all(knows) && (name == "*" || is_file || file.names(name))
        })
    }

    fn has_alone(&self, of: Option<&&str>, name: &str) -> bool {
        let declared = match of {
            Some(of) => self.has(&[of], name),
            None => self.all.contains(name),
        };
        declared || self.cases.contains(name)
    }
}

impl File {
    fn names(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

fn fault(page: &str, number: usize, span: &str, of: Option<&&str>) -> String {
    let of = of.map_or_else(String::new, |of| format!(" there in `{of}`"));
    format!("{page}:{}: no test `{span}`{of}", number + 1)
}

/// Returns true if a word looks like the name of a test: lower case, with at least two underscores.
fn is_test(word: &str) -> bool {
    let bare = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    word.matches('_').count() > 1 && word.chars().all(bare)
}

/// Returns the functions and modules that a Rust file declares.
fn names(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let pairs = words.windows(2).map(|pair| (pair[0], pair[1]));
    let declared = pairs.filter(|(before, _)| ["fn", "mod"].contains(before));
    declared.map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::Declared;

    fn faults(page: &str) -> Vec<String> {
        let mut declared = Declared::default();
        let words = "#[cfg(test)] mod tests { fn a_word_is_one() {} }";
        declared.learn("crates/views/src/words.rs", words);
        declared.learn("crates/cli/src/words.rs", "fn line() {}");
        declared.learn("crates/cli/tests/it/keys.rs", "fn a_key_is_one() {}");
        declared.learn("crates/cli/tests/it/store.rs", "fn a_store_is_one() {}");
        let cases = "crates/steersman-machine/tests/cases/limits.yaml";
        declared.learn(cases, "  a_limit_is_one:\n    - 1\n");
        declared.faults("page.md", &format!("| {page} |"))
    }

    #[test]
    fn a_test_is_in_its_crate_and_file() {
        for fits in [
            "`views::words::tests::a_word_is_one`",
            "`views::words` (unit test `a_word_is_one`)",
            "`cli::keys::*`, `::a_key_is_one`, `::store::a_store_is_one`",
            "`cli::keys::a_key_is_one`, `a_store_is_one`, `a_limit_is_one`",
            "`a_word_is_one`, `no_test` and `send --id`",
        ] {
            assert_eq!(faults(fits), [""; 0], "{fits}");
        }
    }

    #[test]
    fn a_test_of_another_crate_or_file_is_a_fault() {
        for (wrong, name) in [
            ("`cli::words::a_word_is_one`", "cli::words::a_word_is_one"),
            ("`cli::words` (unit test `a_word_is_one`)", "a_word_is_one"),
            ("`cli::store::a_key_is_one`", "cli::store::a_key_is_one"),
            ("`cli::store::*`, `::a_key_is_one`", "::a_key_is_one"),
            ("`nowhere::store::*`", "nowhere::store::*"),
            ("`a_test_of_nobody`", "a_test_of_nobody"),
        ] {
            let found = faults(wrong);
            assert_eq!(found.len(), 1, "{wrong}: {found:?}");
            assert!(found[0].contains(&format!("`{name}`")), "{found:?}");
        }
    }
}

//! Full text in memory: SQLite's FTS5 over passages. The index is derived data and is lost with the process.
//!
//! A word consists of letters and digits as Unicode defines them, without case and, in Latin letters, without diacritics;
//! English endings are cut off. A term with punctuation inside (`INV-2024-7`) is also found as a sequence of its words.
//! Characters of languages without spaces are words of their own.

use rusqlite::{Connection, params};
use std::collections::BTreeSet;
use steersman_runtime::retrieval::{Index, IndexError, Retrieval};

/// Maximum number of different terms of a query. Further terms are ignored, because they add little.
const WORDS: usize = 64;
/// Minimum number of texts in the index for common terms to be ignored: those that more than half of the texts contain.
const MANY: u64 = 8;

/// Makes indexes in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullText;

impl Retrieval for FullText {
    fn index(&self) -> Result<Box<dyn Index>, IndexError> {
        Ok(Box::new(Fts::open().map_err(broken)?))
    }
}

struct Fts {
    db: Connection,
    texts: u64,
}

fn broken(error: rusqlite::Error) -> IndexError {
    IndexError(error.to_string())
}

impl Fts {
    fn open() -> rusqlite::Result<Self> {
        let db = Connection::open_in_memory()?;
        // The caller keeps the texts: the table has only the index over their words.
        db.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA temp_store = MEMORY;
             CREATE VIRTUAL TABLE passage USING fts5(words, content = '', contentless_delete = 1,
                 tokenize = \"porter unicode61 remove_diacritics 2\");",
        )?;
        Ok(Self { db, texts: 0 })
    }

    /// Returns the terms of a query in FTS5 syntax, each with the number of texts that contain it.
    fn terms(&self, query: &str) -> rusqlite::Result<Vec<(String, u64)>> {
        let mut count = self
            .db
            .prepare_cached("SELECT count(*) FROM passage WHERE passage MATCH ?1")?;
        terms(query)
            .into_iter()
            .map(|term| {
                let texts: i64 = count.query_row([&term], |row| row.get(0))?;
                Ok((term, texts.cast_unsigned()))
            })
            .collect()
    }

    /// Returns the texts that fit a query best, except those that `without` excludes: number and score.
    fn found(
        &self,
        query: &str,
        most: usize,
        without: &dyn Fn(u64) -> bool,
    ) -> rusqlite::Result<Vec<(u64, f64)>> {
        let mut terms = self.terms(query)?;
        terms.retain(|(_, texts)| *texts > 0);
        let common = |texts: u64| self.texts >= MANY && texts * 2 > self.texts;
        if terms.iter().any(|(_, texts)| !common(*texts)) {
            terms.retain(|(_, texts)| !common(*texts));
        }
        let terms: Vec<String> = terms.into_iter().map(|(term, _)| term).collect();
        if terms.is_empty() {
            return Ok(Vec::new());
        }
        let mut find = self.db.prepare_cached(
            "SELECT rowid, bm25(passage) FROM passage WHERE passage MATCH ?1 ORDER BY rank, rowid",
        )?;
        let mut rows = find.query([terms.join(" OR ")])?;
        let mut found = Vec::new();
        while found.len() < most
            && let Some(row) = rows.next()?
        {
            let (number, score): (i64, f64) = (row.get(0)?, row.get(1)?);
            let number = number.cast_unsigned();
            if !without(number) {
                found.push((number, -score));
            }
        }
        Ok(found)
    }

    /// Returns, for each text that contains a term of the query, the share of the query's weight that its terms have: from 0 to
    /// 1.
    fn covered(&self, query: &str) -> rusqlite::Result<Vec<(u64, f64)>> {
        let terms = self.terms(query)?;
        let weighed = terms
            .iter()
            .map(|(term, texts)| (term, idf(self.texts, *texts)));
        let all: f64 = weighed.clone().map(|(_, weight)| weight).sum();
        if all <= 0.0 {
            return Ok(Vec::new());
        }
        let mut covered = std::collections::BTreeMap::<u64, f64>::new();
        let mut find = self
            .db
            .prepare_cached("SELECT rowid FROM passage WHERE passage MATCH ?1")?;
        for (term, weight) in weighed {
            let rows = find.query_map([term], |row| row.get::<_, i64>(0))?;
            for number in rows {
                *covered.entry(number?.cast_unsigned()).or_default() += weight / all;
            }
        }
        Ok(covered.into_iter().collect())
    }
}

/// Returns the inverse document frequency of a term, never negative.
fn idf(texts: u64, with: u64) -> f64 {
    let (texts, with) = (texts as f64, with as f64);
    (1.0 + (texts - with + 0.5) / (with + 0.5)).ln()
}

impl Index for Fts {
    fn add(&mut self, texts: &[(u64, &str)]) -> Result<(), IndexError> {
        let add = || {
            let put = self.db.unchecked_transaction()?;
            {
                let mut insert =
                    put.prepare_cached("INSERT INTO passage (rowid, words) VALUES (?1, ?2)")?;
                for (number, text) in texts {
                    insert.execute(params![number.cast_signed(), spaced(text)])?;
                }
            }
            put.commit()
        };
        add().map_err(broken)?;
        self.texts += texts.len() as u64;
        Ok(())
    }

    fn remove(&mut self, numbers: &[u64]) -> Result<(), IndexError> {
        let remove = || {
            let put = self.db.unchecked_transaction()?;
            {
                let mut delete = put.prepare_cached("DELETE FROM passage WHERE rowid = ?1")?;
                for number in numbers {
                    delete.execute([number.cast_signed()])?;
                }
            }
            put.commit()
        };
        remove().map_err(broken)?;
        self.texts = self.texts.saturating_sub(numbers.len() as u64);
        Ok(())
    }

    fn find(
        &mut self,
        query: &str,
        most: usize,
        without: &dyn Fn(u64) -> bool,
    ) -> Result<Vec<(u64, f64)>, IndexError> {
        self.found(query, most, without).map_err(broken)
    }

    fn coverage(&mut self, query: &str) -> Result<Vec<(u64, f64)>, IndexError> {
        self.covered(query).map_err(broken)
    }
}

/// Splits a query into its different words, and into sequences of words for terms with punctuation and digits. All are quoted,
/// so that none has a meaning in FTS5 syntax.
fn terms(query: &str) -> Vec<String> {
    let spaced = spaced(query);
    let mut seen = BTreeSet::new();
    let mut terms = Vec::new();
    let mut push = |words: &[&str]| {
        let term = format!("\"{}\"", words.join(" ").to_lowercase());
        if terms.len() < WORDS && seen.insert(term.clone()) {
            terms.push(term);
        }
    };
    for written in spaced.split_whitespace() {
        let words: Vec<&str> = written
            .split(|c: char| !is_of_word(c))
            .filter(|word| word.chars().any(char::is_alphanumeric))
            .collect();
        for word in &words {
            push(&[word]);
        }
        if words.len() > 1 && words.iter().any(|word| word.chars().any(char::is_numeric)) {
            push(&words);
        }
    }
    terms
}

/// Returns true for letters, digits and the diacritics that combine with the letter before them.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\u{300}'..='\u{36f}')
}

/// Puts blanks around the characters of languages that are written without spaces.
fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    for c in text.chars() {
        if is_sign(c) {
            spaced.push(' ');
            spaced.push(c);
            spaced.push(' ');
        } else {
            // A zero would end the text for SQLite.
            spaced.push(if c == '\0' { ' ' } else { c });
        }
    }
    spaced
}

/// Returns true for Chinese, Japanese, Thai and related scripts.
fn is_sign(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Box<dyn Index> {
        let mut index = FullText.index().unwrap();
        let numbered: Vec<(u64, &str)> = (0..).zip(texts.iter().copied()).collect();
        index.add(&numbered).unwrap();
        index
    }

    fn found(index: &mut dyn Index, query: &str) -> Vec<u64> {
        let found = index.find(query, 5, &|_| false).unwrap();
        found.into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn identifiers_and_words_of_any_language_are_found() {
        let texts = [
            "Order 4711 was sent on Monday.",
            "Invoice INV-2024-7 is not paid.",
            "Invoice INV-2024-8 is paid.",
            "Die Rechnung für Frau Müller liegt bei.",
            "Returns are taken for thirty days.",
            "Заказ был отправлен вчера.",
            "請問退貨需要幾天？",
            "การคืนสินค้าใช้เวลาสามวัน",
            "Η παραγγελία έφτασε χθες.",
        ];
        let mut index = of(&texts);
        let index = &mut *index;
        for (query, wanted) in [
            ("where is 4711?", 0),
            ("INV-2024-7", 1),
            ("inv-2024-8!", 2),
            ("MULLER", 3),
            ("müller", 3),
            ("can I return it", 4),
            ("заказ", 5),
            ("退貨", 6),
            ("สินค้า", 7),
            ("παραγγελία", 8),
        ] {
            assert_eq!(found(index, query).first(), Some(&wanted), "{query}");
        }
    }

    #[test]
    fn any_text_is_a_query() {
        let mut index = of(&["a b c", "NEAR the AND"]);
        let index = &mut *index;
        for query in [
            "",
            "   ",
            "\"",
            "\"\"\"",
            "a AND",
            "NEAR(",
            "x:y",
            "^a",
            "a*",
            "{a b}:c",
            "-",
            "a - b",
            "(",
            "😀",
            "\0",
            "a\0b",
            "'; DROP TABLE passage; --",
            "words : a",
            "\u{301}",
            "_",
        ] {
            index
                .find(query, 5, &|_| false)
                .unwrap_or_else(|e| panic!("{query:?}: {e}"));
            index
                .coverage(query)
                .unwrap_or_else(|e| panic!("{query:?}: {e}"));
        }
        assert_eq!(found(index, "near"), [1]);
        assert!(found(index, "😀").is_empty());
        let long = "word ".repeat(100_000) + "NEAR";
        assert_eq!(found(index, &long), [1]);
    }

    #[test]
    fn words_that_most_texts_have_find_nothing_beside_rarer_ones() {
        let mut texts = vec!["the usual thing is here"; 20];
        texts.push("the walrus is here");
        let mut index = of(&texts);
        assert_eq!(found(&mut *index, "is the walrus here"), [20]);
        assert_eq!(found(&mut *index, "is the").len(), 5);
        assert!(found(&mut *index, "otter").is_empty());
    }

    #[test]
    fn what_is_taken_out_or_left_out_is_not_found() {
        let mut index = of(&["one walrus", "two walrus", "three otters"]);
        index.remove(&[0]).unwrap();
        assert_eq!(found(&mut *index, "walrus"), [1]);
        let found = index.find("walrus", 5, &|number| number == 1).unwrap();
        assert!(found.is_empty());
    }

    #[test]
    fn coverage_is_a_share_of_the_query() {
        let mut index = of(&["walrus and otter", "walrus", "nobody"]);
        let covered = index.coverage("walrus otter").unwrap();
        assert_eq!(covered.len(), 2);
        assert!((covered[0].1 - 1.0).abs() < 1e-9);
        assert!(covered[1].1 > 0.1 && covered[1].1 < 0.5);
    }
}
